"""Detection in an image, by the model of the package."""

REQUIRES = "nudenet"
WHAT = "detection in an image"


def prepare():
    import numpy
    from nudenet import NudeDetector

    detector = NudeDetector()
    across = numpy.linspace(0, 255, 320, dtype=numpy.uint8)
    image = numpy.stack([numpy.tile(across, (320, 1)), numpy.tile(across[:, None], (1, 320)), numpy.full((320, 320), 90, numpy.uint8)], -1)
    feed = (image.transpose(2, 0, 1)[None] / 255).astype(numpy.float32)

    def run():
        raw = detector.onnx_session.run(None, {detector.input_name: feed})
        return [raw, [[one["class"], one["score"], list(one["box"])] for one in detector.detect(image)]]

    return run
