"""Vowels for Arabic and Hebrew, by the two models of the package."""

REQUIRES = "piper-tts"
WHAT = "vowels of Arabic and Hebrew"


def prepare():
    from piper.hebrew import NakdimonDiacritizer
    from piper.tashkeel import TashkeelDiacritizer

    hebrew, arabic = NakdimonDiacritizer(), TashkeelDiacritizer()

    def run():
        return [arabic("مرحبا بالعالم هذا نص للتجربة"), hebrew("שלום עולם זה טקסט לניסיון")]

    return run
