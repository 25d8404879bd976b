"""The older generation of rapidocr, with models of its own."""

REQUIRES = "rapidocr_onnxruntime"
WHAT = "detects and reads lines of text"


def prepare():
    import importlib.util
    import pathlib

    spec = importlib.util.spec_from_file_location("other", pathlib.Path(__file__).with_name("rapidocr.py"))
    other = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(other)
    from rapidocr_onnxruntime import RapidOCR

    engine, image = RapidOCR(), other.image_of_text()

    def run():
        found, _ = engine(image)
        return [[text for _, text, _ in found], [float(score) for *_, score in found], [box for box, *_ in found]]

    return run
