"""The voice activity of faster-whisper, by the model of the package."""

REQUIRES = "faster-whisper"
WHAT = "voice activity of a recording"


def prepare():
    import numpy
    from faster_whisper.vad import VadOptions, get_speech_timestamps, get_vad_model

    draws = numpy.random.default_rng(0)
    time = numpy.arange(4 * 16000) / 16000
    voiced = numpy.sin(2 * numpy.pi * 140 * time + 3 * numpy.sin(2 * numpy.pi * 3 * time)) * (numpy.sin(2 * numpy.pi * time) > 0)
    signal = (0.3 * voiced + 0.01 * draws.standard_normal(time.size)).astype(numpy.float32)

    def run():
        padded = signal[:signal.size // 512 * 512]
        return [get_vad_model()(padded), get_speech_timestamps(signal, VadOptions(threshold=0.2))]

    return run
