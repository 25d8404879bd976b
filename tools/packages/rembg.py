"""The session code of rembg, on a small model that the case makes where its own would be fetched to."""

REQUIRES = "rembg onnxruntime onnx"
WHAT = "U2netpSession on a model that the case makes"


def prepare():
    import numpy
    import onnx
    from PIL import Image
    from rembg import new_session, remove
    from rembg.sessions.u2netp import U2netpSession

    model = onnx.parser.parse_model('''<ir_version: 8, opset_import: ["" : 17]>
      g (float[1,3,320,320] input) => (float[1,1,320,320] output) {
        c = Conv <pads = [1, 1, 1, 1]> (input, w)
        output = Sigmoid (c) }''')
    draws = numpy.random.default_rng(0)
    model.graph.initializer.append(onnx.numpy_helper.from_array(draws.standard_normal((1, 3, 3, 3)).astype(numpy.float32), "w"))
    onnx.save(model, "u2netp.onnx")
    U2netpSession.download_models = classmethod(lambda cls, *arguments, **options: "u2netp.onnx")
    session = new_session("u2netp", providers=["CPUExecutionProvider"])
    image = Image.fromarray((draws.random((120, 160, 3)) * 255).astype(numpy.uint8))

    def run():
        return numpy.asarray(remove(image, session=session, only_mask=True)).astype(numpy.float32)

    return run


TOLERANCE = 0.01  # of 255: a mask is rounded to whole numbers
