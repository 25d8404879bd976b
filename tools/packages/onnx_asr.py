"""The preprocessors of onnx-asr, which are models of the package."""

REQUIRES = "onnx-asr onnxruntime"
WHAT = "its preprocessors (spectra of a recording)"

# onnxruntime's STFT is off from its own convolution, and from both of ours, by up to 0.0023 of 1.4 in a logarithm.
TOLERANCE = 3e-3


def prepare():
    import importlib.resources

    import numpy
    import onnxruntime

    folder = importlib.resources.files("onnx_asr.preprocessors")
    paths = sorted((one for one in folder.rglob("*.onnx")) if hasattr(folder, "rglob") else [], key=str)
    assert paths
    sessions = {path.stem: onnxruntime.InferenceSession(path) for path in paths}
    # With noise: the logarithm of a spectrum that is nothing but rounding is no answer to compare.
    noise = numpy.random.default_rng(0).standard_normal(32000)
    wave = (0.3 * numpy.sin(numpy.arange(32000) * 0.05) + 0.05 * noise).astype(numpy.float32)[None]

    def run():
        made = []
        for name, session in sessions.items():
            inputs = {one.name: one for one in session.get_inputs()}
            feeds = {}
            for key, one in inputs.items():
                if one.type == "tensor(int64)":
                    feeds[key] = numpy.array([wave.shape[1]], numpy.int64)
                elif one.type == "tensor(float)" and len(one.shape) == 2:
                    feeds[key] = wave
            if len(feeds) == len(inputs):
                made.append([name, session.run(None, feeds)])
        assert made
        return made

    return run
