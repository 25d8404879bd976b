"""Voice activity in a made signal."""

REQUIRES = "silero-vad onnxruntime"
WHAT = "voice activity, window after window"


def prepare():
    import numpy
    import torch
    from silero_vad import get_speech_timestamps, load_silero_vad

    model = load_silero_vad(onnx=True)
    draws = numpy.random.default_rng(0)
    time = numpy.arange(3 * 16000) / 16000
    voiced = numpy.sin(2 * numpy.pi * 140 * time + 3 * numpy.sin(2 * numpy.pi * 3 * time)) * (numpy.sin(2 * numpy.pi * time) > 0)
    signal = torch.from_numpy((0.3 * voiced + 0.01 * draws.standard_normal(time.size)).astype(numpy.float32))

    def run():
        model.reset_states()
        chances = [float(model(signal[i:i + 512], 16000)) for i in range(0, 40 * 512, 512)]
        return [numpy.array(chances), [list(one.values()) for one in get_speech_timestamps(signal, model, sampling_rate=16000, threshold=0.2)]]

    return run
