"""Models that ONNX Runtime's tools quantised: they load, run and agree."""

from __future__ import annotations

import logging

import numpy as np
import onnx
import pytest
from contrib_support import run_onnxruntime
from onnx import numpy_helper, parser

quantization = pytest.importorskip("onnxruntime.quantization")
logging.getLogger().setLevel(logging.ERROR)
RANDOM = np.random.default_rng(3)


def weights(**shapes):
    return [numpy_helper.from_array((RANDOM.standard_normal(s) * (0.5 / max(1, np.prod(s[1:])) ** 0.5 * 2)).astype(np.float32), n)
            for n, s in shapes.items()]


def convolutional() -> onnx.ModelProto:
    model = parser.parse_model(
        """<ir_version: 8, opset_import: ["" : 17]>
        net (float[2,3,20,18] x) => (float[2,10] y)
        { a = Conv <pads = [1,1,1,1], strides = [2,2], kernel_shape = [3,3]> (x, w0, b0)
          ar = Relu (a)
          p = MaxPool <kernel_shape = [3,3], strides = [1,1], pads = [1,1,1,1]> (ar)
          b = Conv <pads = [1,1,1,1], kernel_shape = [3,3]> (p, w1, b1)
          br = Relu (b)
          c = Conv <kernel_shape = [1,1]> (br, w2, b2)
          s = Add (c, p)
          sr = Relu (s)
          d = Conv <group = 16, pads = [1,1,1,1], kernel_shape = [3,3]> (sr, w3, b3)
          dr = Relu (d)
          g = GlobalAveragePool (dr)
          f = Flatten (g)
          y = Gemm <transB = 1> (f, w4, b4) }""")
    model.graph.initializer.extend(weights(w0=(16, 3, 3, 3), b0=(16,), w1=(24, 16, 3, 3), b1=(24,), w2=(16, 24, 1, 1),
                                           b2=(16,), w3=(16, 1, 3, 3), b3=(16,), w4=(10, 16), b4=(10,)))
    return model


def encoder() -> onnx.ModelProto:
    model = parser.parse_model(
        """<ir_version: 8, opset_import: ["" : 17]>
        net (float[2,6,32] x) => (float[2,6,32] y)
        { q0 = MatMul (x, wq)
          q = Add (q0, bq)
          k0 = MatMul (x, wk)
          k = Add (k0, bk)
          v0 = MatMul (x, wv)
          v = Add (v0, bv)
          kt = Transpose <perm = [0,2,1]> (k)
          s = MatMul (q, kt)
          scaled = Mul (s, scale)
          p = Softmax <axis = -1> (scaled)
          c = MatMul (p, v)
          o = MatMul (c, wo)
          r = Add (o, x)
          n = LayerNormalization <axis = -1> (r, gamma, beta)
          h0 = MatMul (n, w1)
          h = Add (h0, b1)
          hr = Relu (h)
          z = MatMul (hr, w2)
          y = Add (z, n) }""")
    model.graph.initializer.extend(weights(wq=(32, 32), bq=(32,), wk=(32, 32), bk=(32,), wv=(32, 32), bv=(32,), wo=(32, 32),
                                           w1=(32, 64), b1=(64,), w2=(64, 32), gamma=(32,), beta=(32,)))
    model.graph.initializer.append(numpy_helper.from_array(np.array(32**-0.5, np.float32), "scale"))
    return model


class Reader(quantization.CalibrationDataReader):
    def __init__(self, shape):
        self.data = iter([{"x": RANDOM.standard_normal(shape).astype(np.float32)} for _ in range(4)])

    def get_next(self):
        return next(self.data, None)


def input_shape(model):
    return [d.dim_value for d in model.graph.input[0].type.tensor_type.shape.dim]


def agree(engine, path, model):
    quantized = onnx.load(path)
    x = RANDOM.standard_normal(input_shape(model)).astype(np.float32)
    expected = run_onnxruntime(quantized, {"x": x})
    ours = engine.run(quantized, {"x": x})
    exact = run_onnxruntime(model, {"x": x})
    span = np.abs(exact[0]).max()
    # Steps that fall the other way meet in the sums after them: as far from each other as a step of the output.
    assert np.abs(ours[0] - expected[0]).max() <= 0.02 * span
    assert np.abs(ours[0] - expected[0]).mean() <= 0.004 * span


@pytest.mark.parametrize("build", [convolutional, encoder])
@pytest.mark.parametrize("form", ["QDQ", "QOperator"])
@pytest.mark.parametrize("per_channel", [False, True])
@pytest.mark.parametrize("activations", ["QUInt8", "QInt8"])
def test_static(engine, tmp_path, build, form, per_channel, activations):
    model = build()
    onnx.save(model, tmp_path / "float.onnx")
    quantization.quantize_static(
        str(tmp_path / "float.onnx"), str(tmp_path / "q.onnx"), Reader(input_shape(model)),
        quant_format=getattr(quantization.QuantFormat, form), per_channel=per_channel,
        activation_type=getattr(quantization.QuantType, activations), weight_type=quantization.QuantType.QInt8)
    agree(engine, tmp_path / "q.onnx", model)


@pytest.mark.parametrize("build", [convolutional, encoder])
@pytest.mark.parametrize("weight_type", ["QUInt8", "QInt8"])
@pytest.mark.parametrize("per_channel", [False, True])
def test_dynamic(engine, tmp_path, build, weight_type, per_channel):
    model = build()
    onnx.save(model, tmp_path / "float.onnx")
    quantization.quantize_dynamic(str(tmp_path / "float.onnx"), str(tmp_path / "q.onnx"), per_channel=per_channel,
                                  weight_type=getattr(quantization.QuantType, weight_type))
    agree(engine, tmp_path / "q.onnx", model)


def test_a_static_model_computes_in_bytes(sardonyx, tmp_path):
    """Its convolutions and products take bytes and give bytes, behind DequantizeLinear or not."""
    for build, expected in ((convolutional, {"conv_scaled.int8_nhwc": 4, "quantized_matmul.packed": 1, "conv.packed": 0}),
                            (encoder, {"quantized_matmul.packed": 6, "quantized_matmul": 2, "matmul.batched": 0})):
        model = build()
        onnx.save(model, tmp_path / "float.onnx")
        quantization.quantize_static(str(tmp_path / "float.onnx"), str(tmp_path / "q.onnx"), Reader(input_shape(model)),
                                     quant_format=quantization.QuantFormat.QDQ)
        steps = sardonyx("explain", tmp_path / "q.onnx").stdout.splitlines()
        kernels = [line.split()[1] for line in steps if line.split() and line.split()[0].isdigit()]
        assert {kernel: kernels.count(kernel) for kernel in expected} == expected
