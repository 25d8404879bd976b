"""The quantiser of onnxruntime that packs weights in blocks of 4 and 8 bits, and what it makes."""

REQUIRES = "onnxruntime onnx-ir onnx"
WHAT = "its quantiser of matrix products in blocks, and the models that it makes"

# onnxruntime rounds the other factor, too, where a DequantizeLinear stands before a product: off by 1.14 of 269. Ours is off by 0.0001.
TOLERANCE = 6e-3


def prepare():
    import logging

    import numpy
    import onnx
    import onnxruntime
    from onnxruntime.quantization import QuantFormat
    from onnxruntime.quantization.matmul_nbits_quantizer import DefaultWeightOnlyQuantConfig, MatMulNBitsQuantizer

    logging.disable(logging.INFO)
    model = onnx.parser.parse_model('''<ir_version: 10, opset_import: ["" : 21]>
      g (float[n,128] x) => (float[n,48] y) { t = MatMul (x, w) r = Relu (t) y = MatMul (r, v) }''')
    draws = numpy.random.default_rng(0)
    for name, shape in (("w", (128, 96)), ("v", (96, 48))):
        model.graph.initializer.append(onnx.numpy_helper.from_array(draws.standard_normal(shape).astype(numpy.float32), name))
    x = draws.standard_normal((5, 128)).astype(numpy.float32)
    plain = onnxruntime.InferenceSession(model.SerializeToString()).run(None, {"x": x})[0]

    def quantised(bits, symmetric, form):
        copy = onnx.ModelProto()
        copy.CopyFrom(model)
        config = DefaultWeightOnlyQuantConfig(block_size=32, is_symmetric=symmetric, bits=bits, quant_format=form)
        quantiser = MatMulNBitsQuantizer(copy, algo_config=config)
        quantiser.process()
        return quantiser.model.model.SerializeToString()

    def run():
        made = []
        for bits, symmetric, form in ((4, True, QuantFormat.QOperator), (4, False, QuantFormat.QOperator),
                                      (8, False, QuantFormat.QOperator), (4, True, QuantFormat.QDQ)):
            made.append(onnxruntime.InferenceSession(quantised(bits, symmetric, form)).run(None, {"x": x})[0])
            assert abs(made[-1] - plain).max() < 0.3 * abs(plain).max() and (made[-1] != plain).any()
        return made

    return run
