"""The operators of com.microsoft against ONNX Runtime: shapes, attributes, absent inputs, types."""

from __future__ import annotations

import numpy as np
import onnx
import pytest
from conftest import FINDINGS, OK, ROOT, UNSUPPORTED
from contrib_support import Case, Engine, agree, compare, drawing

RANDOM = np.random.default_rng(11)
numbers, integers = drawing(RANDOM)
F32, F16, F64 = np.float32, np.float16, np.float64
both = pytest.mark.parametrize("free", [False, True])


# --- activations ---


@pytest.mark.parametrize("op", ["Gelu", "QuickGelu", "FastGelu"])
@pytest.mark.parametrize("shape", [(2, 3, 16), (5,), (0, 4)])
def test_activation(engine, op, shape):
    agree(engine, Case(op, [numbers(*shape, scale=3)]), tolerance=1e-4)


@pytest.mark.parametrize("op", ["BiasGelu", "FastGelu"])
@both
def test_activation_with_bias(engine, op, free):
    agree(engine, Case(op, [numbers(2, 3, 16), numbers(16)], free=free), tolerance=1e-4)


@pytest.mark.parametrize("alpha", [1.0, 0.5])
def test_quick_gelu_slope(engine, alpha):
    agree(engine, Case("QuickGelu", [numbers(4, 9)], alpha=alpha))


def test_activations_keep_nan_and_infinity(engine):
    x = np.array([np.inf, -np.inf, np.nan, 0, -0.0, 1e-30, 80, -80], F32)
    for op in ("Gelu", "FastGelu"):
        [y] = engine.run(Case(op, [x]).typed([x]), {"x0": x})
        assert y[0] == np.inf and np.isnan(y[2]) and y[3] == 0 and y[6] == 80 and y[7] == 0


# --- normalisations ---


@pytest.mark.parametrize("dtype", [F32, F16])
@pytest.mark.parametrize("outputs", [(True,), (True, False, False, True)])
@pytest.mark.parametrize("beta, bias", [(True, True), (True, False), (False, True)])
def test_skip_layer_normalization(engine, dtype, outputs, beta, bias):
    inputs = [numbers(2, 3, 32, dtype=dtype), numbers(2, 3, 32, dtype=dtype), numbers(32, dtype=dtype),
              numbers(32, dtype=dtype) if beta else None, numbers(32, dtype=dtype) if bias else None]
    case = Case("SkipLayerNormalization", inputs, outputs, epsilon=1e-5, constant=(2, 3, 4))
    agree(engine, case, tolerance=5e-3 if dtype == F16 else None)


@pytest.mark.parametrize("shape", [(1, 3, 32), (3, 32)])
@both
def test_skip_that_repeats(engine, shape, free):
    inputs = [numbers(2, 3, 32), numbers(*shape), numbers(32), numbers(32)]
    agree(engine, Case("SkipLayerNormalization", inputs, (True, False, False, True), free=free))


@pytest.mark.parametrize("dtype", [F32, F16])
@pytest.mark.parametrize("bias", [True, False])
@pytest.mark.parametrize("rank", [2, 3])
def test_skip_simplified_layer_normalization(engine, dtype, bias, rank):
    shape = (2, 5, 48)[3 - rank:]
    inputs = [numbers(*shape, dtype=dtype), numbers(*shape, dtype=dtype), numbers(48, dtype=dtype),
              numbers(48, dtype=dtype) if bias else None]
    case = Case("SkipSimplifiedLayerNormalization", inputs, (True, False, False, True), epsilon=1e-6)
    agree(engine, case, tolerance=5e-3 if dtype == F16 else None)


def test_skip_simplified_layer_normalization_with_a_mean(engine):
    """ONNX Runtime has the output and leaves it as it finds it: only the others are compared."""
    inputs = [numbers(2, 5, 48), numbers(2, 5, 48), numbers(48)]
    made = engine.run(Case("SkipSimplifiedLayerNormalization", inputs, (True, True)).model,
                      Case("SkipSimplifiedLayerNormalization", inputs, (True, True)).feeds)
    np.testing.assert_allclose(made[1], (inputs[0] + inputs[1]).mean(-1, keepdims=True), rtol=1e-5, atol=1e-6)


def test_past_length_without_a_past_says_nothing(engine):
    q, k, v = numbers(1, 3, 16), numbers(1, 4, 16), numbers(1, 4, 16)
    expected = Case("MultiHeadAttention", [q, k, v], num_heads=2).expected()
    length = np.array([3], np.int32)
    agree(engine, Case("MultiHeadAttention", [q, k, v, None, None, None, None, None, length], num_heads=2),
          reference=expected)


@pytest.mark.parametrize("axis", [-1, 1])
@pytest.mark.parametrize("outputs", [(True,), (True, True)])
def test_simplified_layer_normalization(engine, axis, outputs):
    x = numbers(2, 3, 20)
    case = Case("SimplifiedLayerNormalization", [x, numbers(*x.shape[axis:])], outputs, domain="", axis=axis,
                epsilon=1e-6)
    agree(engine, case)


@pytest.mark.parametrize("segments", [True, False])
@pytest.mark.parametrize("mask", [True, False])
@pytest.mark.parametrize("positions", [None, 1, 2])
def test_embed_layer_normalization(engine, segments, mask, positions):
    ids = integers(0, 30, 2, 6)
    inputs = [ids, integers(0, 2, 2, 6) if segments else None, numbers(30, 16), numbers(10, 16),
              numbers(2, 16) if segments else None, numbers(16), numbers(16),
              (np.arange(6) < np.array([[4], [6]])).astype(np.int32) if mask else None,
              None if positions is None else integers(0, 10, positions, 6)]
    agree(engine, Case("EmbedLayerNormalization", inputs, (True, True, True), constant=(2, 3, 4, 5, 6)))


# --- products in floats ---


@pytest.mark.parametrize("op", ["FusedMatMul", "TransposeMatMul"])
@pytest.mark.parametrize("trans_a", [0, 1])
@pytest.mark.parametrize("trans_b", [0, 1])
@pytest.mark.parametrize("batch", [(), (2,), (2, 3)])
@both
def test_fused_matmul(engine, op, trans_a, trans_b, batch, free):
    a = numbers(*batch, *((5, 4) if trans_a else (4, 5)))
    b = numbers(*batch, *((6, 5) if trans_b else (5, 6)))
    agree(engine, Case(op, [a, b], transA=trans_a, transB=trans_b, alpha=0.3, free=free))


def test_fused_matmul_with_its_batch_inside(engine):
    a, b = numbers(2, 3, 4, 5), numbers(2, 3, 5, 6)
    inside = np.ascontiguousarray(np.moveaxis(a, 2, 0))
    agree(engine, Case("FusedMatMul", [inside, b], transBatchA=1), reference=[a @ b])
    agree(engine, Case("FusedMatMul", [inside, b], transBatchA=1))


def test_fused_matmul_double(engine):
    agree(engine, Case("FusedMatMul", [numbers(3, 4, dtype=F64), numbers(5, 4, dtype=F64)], transB=1, alpha=2.0))


@pytest.mark.parametrize("activation, parameters", [
    ("Relu", None), ("Tanh", None), ("Sigmoid", None), ("LeakyRelu", [0.2]), ("Clip", [-0.5, 0.7]),
    ("HardSigmoid", [0.3, 0.4]), (None, None)])
@pytest.mark.parametrize("with_z", [False, True])
def test_fused_conv(engine, activation, parameters, with_z):
    inputs = [numbers(2, 4, 8, 8), numbers(6, 4, 3, 3), numbers(6), numbers(2, 6, 8, 8) if with_z else None]
    case = Case("FusedConv", inputs, activation=activation, activation_params=parameters, pads=[1, 1, 1, 1],
                kernel_shape=[3, 3], constant=(1, 2))
    agree(engine, case)


@pytest.mark.parametrize("activation, alpha, beta", [
    ("Relu", None, None), ("LeakyRelu", 0.1, None), ("Tanh", None, None), ("HardSigmoid", 0.2, 0.5)])
@pytest.mark.parametrize("with_c", [False, True])
def test_fused_gemm(engine, activation, alpha, beta, with_c):
    inputs = [numbers(4, 8), numbers(6, 8), numbers(6) if with_c else None]
    agree(engine, Case("FusedGemm", inputs, activation=activation, activation_alpha=alpha, activation_beta=beta,
                       transB=1, alpha=0.5, beta=2.0))


# --- products with few-bit weights ---


def pack_bits(values: np.ndarray, bits: int) -> np.ndarray:
    """Along the last axis, the first element in the low bits."""
    each = 8 // bits
    padded = np.pad(values, [(0, 0)] * (values.ndim - 1) + [(0, -values.shape[-1] % each)])
    parts = padded.reshape(*padded.shape[:-1], -1, each).astype(np.uint32)
    return (parts << (np.arange(each, dtype=np.uint32) * bits)).sum(-1).astype(np.uint8)


def nbits_inputs(k, n, bits, block, rows, zeros=None, bias=False, dtype=F32, groups=False):
    blocks = -(-k // block)
    q = integers(0, 1 << bits, n, blocks, block, dtype=np.uint8)
    points = None
    if zeros == "packed":
        points = pack_bits(integers(0, 1 << bits, n, blocks, dtype=np.uint8), bits)
    elif zeros == "float":
        points = numbers(n, blocks, scale=2, dtype=dtype) + dtype(1 << (bits - 1))
    group = integers(0, blocks, k) if groups else None
    return [numbers(*rows, k, dtype=dtype), pack_bits(q, bits), numbers(n, blocks, scale=0.1, dtype=dtype), points,
            group, numbers(n, dtype=dtype) if bias else None]


@pytest.mark.parametrize("bits", [2, 4, 8])
@pytest.mark.parametrize("block", [16, 32, 128])
@pytest.mark.parametrize("zeros", [None, "packed"])
@pytest.mark.parametrize("rows", [(1,), (2, 3), (40,)])
def test_matmul_nbits(engine, bits, block, zeros, rows):
    k, n = (256, 37) if block == 128 else (96, 65)
    case = Case("MatMulNBits", nbits_inputs(k, n, bits, block, rows, zeros), constant=(1, 2, 3), K=k, N=n, bits=bits,
                block_size=block)
    agree(engine, case, tolerance=5e-5)


@pytest.mark.parametrize("bias", [False, True])
@pytest.mark.parametrize("k", [80, 33])
def test_matmul_nbits_with_a_last_block_that_is_not_whole(engine, bias, k):
    for rows in ((1,), (20,)):
        case = Case("MatMulNBits", nbits_inputs(k, 24, 4, 32, rows, "packed", bias), constant=(1, 2, 3, 5), K=k, N=24,
                    bits=4, block_size=32)
        agree(engine, case, tolerance=5e-5)


@pytest.mark.parametrize("zeros, groups", [("float", False), (None, True)])
def test_matmul_nbits_in_its_rarer_forms(engine, zeros, groups):
    for rows in ((1,), (3,), (33,)):
        case = Case("MatMulNBits", nbits_inputs(64, 32, 4, 32, rows, zeros, groups=groups), constant=(1, 2, 3, 4), K=64,
                    N=32, bits=4, block_size=32)
        agree(engine, case, tolerance=5e-5)


def test_matmul_nbits_takes_scale_and_zero_point_by_group(engine):
    """ONNX Runtime leaves packed zero points out where there are groups."""
    a, b, scales, zeros, group, _ = inputs = nbits_inputs(64, 32, 4, 32, (3,), "packed", groups=True)
    q = np.stack([b & 15, b >> 4], -1).reshape(32, 64).astype(F32)
    points = np.stack([zeros & 15, zeros >> 4], -1).reshape(32, 2).astype(F32)
    expected = a @ ((q - points[:, group]) * scales[:, group]).T
    case = Case("MatMulNBits", inputs, constant=(1, 2, 3, 4), K=64, N=32, bits=4, block_size=32)
    agree(engine, case, reference=[expected])


def test_matmul_nbits_of_halves(engine):
    case = Case("MatMulNBits", nbits_inputs(64, 32, 4, 32, (3,), "packed", dtype=F16), constant=(1, 2, 3), K=64, N=32,
                bits=4, block_size=32)
    agree(engine, case, tolerance=5e-3)


def test_matmul_nbits_with_weights_that_come_as_inputs(engine):
    case = Case("MatMulNBits", nbits_inputs(64, 32, 4, 32, (3,), "packed"), K=64, N=32, bits=4, block_size=32)
    constant = Case("MatMulNBits", [case.feeds["x0"], case.feeds["x1"], case.feeds["x2"], case.feeds["x3"]],
                    constant=(1, 2, 3), K=64, N=32, bits=4, block_size=32)
    agree(engine, case, reference=constant.expected())


@pytest.mark.parametrize("quant_type", [0, 1])
@pytest.mark.parametrize("rows", [(1,), (20,)])
def test_matmul_bnb4(engine, quant_type, rows):
    k, n, block = 48, 20, 32
    inputs = [numbers(*rows, k), integers(0, 256, n * k // 2, dtype=np.uint8), np.abs(numbers(n * k // block)) + F32(0.1)]
    agree(engine, Case("MatMulBnb4", inputs, constant=(1, 2), K=k, N=n, block_size=block, quant_type=quant_type))


@pytest.mark.parametrize("bits", [4, 8])
@pytest.mark.parametrize("zeros", [False, True])
@pytest.mark.parametrize("index", [np.int32, np.int64])
def test_gather_block_quantized_bytes(engine, bits, zeros, index):
    data = integers(0, 256, 12, 64 * bits // 8, dtype=np.uint8)
    inputs = [data, integers(-12, 12, 2, 3, dtype=index), numbers(12, 4), None]
    if zeros:
        inputs[3] = integers(0, 256, 12, 4 * bits // 8, dtype=np.uint8)
    agree(engine, Case("GatherBlockQuantized", inputs, constant=(0, 2, 3), bits=bits, block_size=16))


# --- 8-bit operators ---


BYTES = [np.uint8, np.int8]


def bytes_of(dtype, *shape):
    info = np.iinfo(dtype)
    return RANDOM.integers(info.min, info.max + 1, shape).astype(dtype)


def scalar(value, dtype=F32):
    return np.array(value, dtype)


@pytest.mark.parametrize("dtype", BYTES)
@pytest.mark.parametrize("op", ["QLinearAdd", "QLinearMul"])
@pytest.mark.parametrize("shape", [(2, 3, 8), (8,), ()])
@pytest.mark.parametrize("zeros", [True, False])
def test_qlinear_binary(engine, dtype, op, shape, zeros):
    zero = lambda v: scalar(v, dtype) if zeros else None
    inputs = [bytes_of(dtype, 2, 3, 8), scalar(0.1), zero(3), bytes_of(dtype, *shape), scalar(0.05), zero(100),
              scalar(0.2), zero(7)]
    # ONNX Runtime cannot tell the type without zero points, which then are 0.
    given = inputs if zeros else [scalar(0, dtype) if x is None else x for x in inputs]
    expected = Case(op, given, constant=(1, 2, 4, 5, 6, 7)).expected()
    agree(engine, Case(op, inputs, constant=(1, 2, 4, 5, 6, 7)), reference=expected, steps=1)


@pytest.mark.parametrize("dtype", BYTES)
@pytest.mark.parametrize("op, attributes", [("QLinearSigmoid", {}), ("QLinearLeakyRelu", {"alpha": 0.2})])
def test_qlinear_unary(engine, dtype, op, attributes):
    scale = 1 / 256 if op == "QLinearSigmoid" else 0.1
    inputs = [bytes_of(dtype, 2, 300), scalar(0.05), scalar(9, dtype), scalar(scale), scalar(-3 if dtype == np.int8 else 3, dtype)]
    agree(engine, Case(op, inputs, constant=(1, 2, 3, 4), **attributes), steps=1)


@pytest.mark.parametrize("dtype", BYTES)
@pytest.mark.parametrize("channels_last", [0, 1])
@pytest.mark.parametrize("include", [0, 1])
def test_qlinear_average_pool(engine, dtype, channels_last, include):
    shape = (2, 9, 8, 3) if channels_last else (2, 3, 9, 8)
    inputs = [bytes_of(dtype, *shape), scalar(0.1), scalar(5, dtype), scalar(0.08), scalar(2, dtype)]
    agree(engine, Case("QLinearAveragePool", inputs, constant=(1, 2, 3, 4), kernel_shape=[3, 3], strides=[2, 1],
                       pads=[1, 0, 1, 1], count_include_pad=include, channels_last=channels_last), steps=1)


@pytest.mark.parametrize("channels_last", [0, 1])
def test_qlinear_global_average_pool(engine, channels_last):
    inputs = [bytes_of(np.uint8, 2, 5, 6, 7), scalar(0.1), scalar(5, np.uint8), scalar(0.02), scalar(100, np.uint8)]
    agree(engine, Case("QLinearGlobalAveragePool", inputs, constant=(1, 2, 3, 4), channels_last=channels_last), steps=1)


def test_qlinear_concat(engine):
    inputs = [scalar(0.1), scalar(5, np.uint8)]
    for columns, scale, zero in ((3, 0.1, 5), (4, 0.2, 100), (1, 0.03, 0)):
        inputs += [bytes_of(np.uint8, 2, columns), scalar(scale), scalar(zero, np.uint8)]
    agree(engine, Case("QLinearConcat", inputs, constant=tuple(i for i in range(11) if i not in (2, 5, 8)), axis=1), steps=1)


@pytest.mark.parametrize("opset, axis", [(13, -1), (13, 1), (12, 1)])
def test_qlinear_softmax(engine, opset, axis):
    inputs = [bytes_of(np.uint8, 2, 3, 20), scalar(0.05), scalar(5, np.uint8), scalar(1 / 256), scalar(0, np.uint8)]
    agree(engine, Case("QLinearSoftmax", inputs, constant=(1, 2, 3, 4), opset=opset, axis=axis), steps=1)


def test_qlinear_where(engine):
    inputs = [RANDOM.random((2, 6)) > 0.5, bytes_of(np.uint8, 2, 6), scalar(0.1), scalar(5, np.uint8),
              bytes_of(np.uint8, 6), scalar(0.2), scalar(9, np.uint8), scalar(0.15), scalar(3, np.uint8)]
    agree(engine, Case("QLinearWhere", inputs, constant=(2, 3, 5, 6, 7, 8)), steps=1)


@pytest.mark.parametrize("keepdims", [0, 1])
def test_qlinear_reduce_mean(engine, keepdims):
    inputs = [bytes_of(np.uint8, 2, 6, 5), scalar(0.1), scalar(5, np.uint8), scalar(0.05), scalar(3, np.uint8)]
    mean = ((inputs[0].astype(F32) - 5) * F32(0.1)).mean(1, keepdims=keepdims == 1)
    expected = np.clip(np.rint(mean / F32(0.05)) + 3, 0, 255).astype(np.uint8)  # ONNX Runtime has no kernel
    case = Case("QLinearReduceMean", inputs, constant=(1, 2, 3, 4), axes=[1], keepdims=keepdims)
    agree(engine, case, reference=[expected], steps=1)


@pytest.mark.parametrize("channels_last", [0, 1])
def test_qlinear_conv(engine, channels_last):
    shape = (1, 7, 8, 4) if channels_last else (1, 4, 7, 8)
    inputs = [bytes_of(np.uint8, *shape), scalar(0.1), scalar(120, np.uint8), bytes_of(np.int8, 6, 4, 3, 3),
              np.abs(numbers(6)) * F32(0.01) + F32(0.001), np.zeros(6, np.int8), scalar(0.3), scalar(110, np.uint8),
              integers(-1000, 1000, 6)]
    agree(engine, Case("QLinearConv", inputs, constant=(1, 2, 3, 4, 5, 6, 7, 8), pads=[1, 1, 1, 1],
                       channels_last=channels_last), steps=1)


@pytest.mark.parametrize("dtype", [np.uint8, np.int8, np.uint16, np.int16])
@pytest.mark.parametrize("axis", [None, 1])
def test_quantize_and_dequantize(engine, dtype, axis):
    scale = scalar(0.1) if axis is None else np.array([0.1, 0.2, 0.3], F32)
    zero = scalar(3, dtype) if axis is None else np.array([1, 2, 3], dtype)
    x = numbers(2, 3, 5, scale=4)
    [q] = agree(engine, Case("QuantizeLinear", [x, scale, zero], axis=axis), steps=0)
    agree(engine, Case("DequantizeLinear", [q, scale, zero], axis=axis))


@pytest.mark.parametrize("dtype", BYTES)
@pytest.mark.parametrize("each", [False, True])
@pytest.mark.parametrize("zero", [False, True])
@pytest.mark.parametrize("bias", [False, True])
def test_dynamic_quantize_matmul(engine, dtype, each, zero, bias):
    n = 12
    inputs = [numbers(2, 5, 16), bytes_of(dtype, 16, n), np.abs(numbers(n if each else 1)) * F32(0.1),
              bytes_of(dtype, n if each else 1) if zero else None, numbers(n) if bias else None]
    agree(engine, Case("DynamicQuantizeMatMul", inputs, constant=(1, 2, 3, 4)))


@pytest.mark.parametrize("a_type", BYTES)
@pytest.mark.parametrize("b_type", BYTES)
@pytest.mark.parametrize("rows", [(1,), (3,), (2, 9)])
@pytest.mark.parametrize("constant", [(), (1, 2, 3, 4, 5, 6)])
def test_matmul_integer_to_float(engine, a_type, b_type, rows, constant):
    k, n = 35, 40
    inputs = [bytes_of(a_type, *rows, k), bytes_of(b_type, k, n), scalar(0.1), np.abs(numbers(n)) * F32(0.1),
              scalar(7, a_type), bytes_of(b_type, n), numbers(n)]
    a, b = inputs[0].astype(np.int64) - 7, inputs[1].astype(np.int64) - inputs[5]
    expected = ((a @ b) * (0.1 * inputs[3].astype(F64)) + inputs[6]).astype(F32)
    agree(engine, Case("MatMulIntegerToFloat", inputs, constant=constant), reference=[expected])
    if (a_type, b_type) != (np.int8, np.uint8):  # of which ONNX Runtime has no kernel
        agree(engine, Case("MatMulIntegerToFloat", inputs, constant=constant))


@pytest.mark.parametrize("quantized", [False, True])
@pytest.mark.parametrize("with_c", [False, True])
def test_qgemm(engine, quantized, with_c):
    m, k, n = 5, 20, 7
    inputs = [bytes_of(np.uint8, m, k), scalar(0.1), scalar(100, np.uint8), bytes_of(np.int8, n, k),
              np.abs(numbers(n)) * F32(0.1), np.zeros(n, np.int8), integers(-500, 500, n) if with_c else None,
              scalar(3.0) if quantized else None, scalar(120, np.uint8) if quantized else None]
    agree(engine, Case("QGemm", inputs, constant=(1, 2, 3, 4, 5, 6, 7, 8), transB=1), steps=1)


# --- attention ---


def masks(kind, batch, queries, keys):
    ends = np.maximum(1, integers(1, keys + 1, batch))
    if kind == "ends":
        return ends
    if kind == "ranges":
        return np.concatenate([np.full(batch, keys, np.int32), integers(0, keys - 1, batch)])
    columns = (np.arange(keys) < ends[:, None]).astype(np.int32)
    return columns if kind == "keys" else np.repeat(columns[:, None], queries, 1)


@pytest.mark.parametrize("mask", [None, "ends", "ranges", "keys", "all"])
@pytest.mark.parametrize("unidirectional", [0, 1])
@pytest.mark.parametrize("past", [0, 4])
@both
def test_attention(engine, mask, unidirectional, past, free):
    batch, length, heads, size = 2, 5, 2, 8
    hidden = heads * size
    inputs = [numbers(batch, length, 12), numbers(12, 3 * hidden, scale=0.3), numbers(3 * hidden),
              masks(mask, batch, length, past + length) if mask else None,
              numbers(2, batch, heads, past, size) if past else None]
    agree(engine, Case("Attention", inputs, (True, past > 0), constant=(1, 2), free=free, num_heads=heads,
                       unidirectional=unidirectional))


@pytest.mark.parametrize("op", ["Attention", "QAttention"])
def test_attention_with_weights_that_come_as_inputs(engine, op):
    """With open sizes nothing says how many columns a third of the weights has."""
    if op == "Attention":
        inputs = [numbers(2, 5, 12), numbers(12, 48, scale=0.3), numbers(48)]
    else:
        inputs = [bytes_of(np.uint8, 2, 5, 12), bytes_of(np.int8, 12, 48), numbers(48), scalar(0.02), scalar(0.01), None,
                  scalar(120, np.uint8), scalar(0, np.int8)]
    agree(engine, Case(op, inputs, free=True, num_heads=2), tolerance=1e-4)


def test_attention_with_its_own_sizes_scale_and_bias(engine):
    inputs = [numbers(2, 5, 12), numbers(12, 16 + 16 + 24, scale=0.3), numbers(56), None, None, numbers(2, 2, 5, 5)]
    agree(engine, Case("Attention", inputs, constant=(1, 2), num_heads=2, qkv_hidden_sizes=[16, 16, 24], scale=0.2))


@pytest.mark.parametrize("mask", [False, True])
@pytest.mark.parametrize("past", [0, 3])
def test_qattention(engine, mask, past):
    hidden = 16
    inputs = [bytes_of(np.uint8, 2, 4, 12), bytes_of(np.int8, 12, 3 * hidden), numbers(3 * hidden), scalar(0.02),
              scalar(0.01), masks("ends", 2, 4, 4 + past) if mask else None, scalar(120, np.uint8), scalar(0, np.int8),
              numbers(2, 2, 2, past, 8) if past else None]
    agree(engine, Case("QAttention", inputs, (True, past > 0), constant=(1, 2, 3, 4, 6, 7), num_heads=2))


@pytest.mark.parametrize("bias", [False, True])
@pytest.mark.parametrize("mask", [None, "ends", "keys", "all"])
@pytest.mark.parametrize("past", [0, 3])
@pytest.mark.parametrize("unidirectional", [0, 1])
def test_multi_head_attention(engine, bias, mask, past, unidirectional):
    batch, length, heads, size = 2, 4, 2, 8
    hidden = heads * size
    pasts = [numbers(batch, heads, past, size) for _ in range(2)] if past else [None, None]
    inputs = [*(numbers(batch, length, hidden) for _ in range(3)), numbers(3 * hidden) if bias else None,
              masks(mask, batch, length, past + length) if mask else None, numbers(1, heads, length, past + length),
              *pasts]
    agree(engine, Case("MultiHeadAttention", inputs, (True, past > 0, past > 0), num_heads=heads,
                       unidirectional=unidirectional, free=past == 0))


def test_multi_head_attention_of_another_sequence(engine):
    inputs = [numbers(2, 4, 16), numbers(2, 7, 16), numbers(2, 7, 24), numbers(56), None]
    agree(engine, Case("MultiHeadAttention", inputs, num_heads=2))
    inputs = [numbers(2, 4, 16), numbers(2, 2, 7, 8), numbers(2, 2, 7, 8), None, None]
    agree(engine, Case("MultiHeadAttention", inputs, num_heads=2))


def test_packed_operands_are_the_unpacked_ones(engine):
    q, k, v = (numbers(2, 5, 2, 8) for _ in range(3))
    flat = [x.reshape(2, 5, 16) for x in (q, k, v)]
    expected = Case("MultiHeadAttention", flat, num_heads=2).expected()
    agree(engine, Case("MultiHeadAttention", [np.stack([q, k, v], 3)], num_heads=2), reference=expected)
    agree(engine, Case("MultiHeadAttention", [flat[0], np.stack([k, v], 3)], num_heads=2), reference=expected)


@pytest.mark.parametrize("interleaved", [0, 1])
@pytest.mark.parametrize("offset", [False, True])
@pytest.mark.parametrize("rank", [3, 4])
@pytest.mark.parametrize("rotated", [0, 4])
def test_rotary_embedding(engine, interleaved, offset, rank, rotated):
    batch, length, heads, size = 2, 5, 3, 8
    x = numbers(batch, heads, length, size) if rank == 4 else numbers(batch, length, heads * size)
    tables = [numbers(20, (rotated or size) // 2) for _ in range(2)]
    positions = np.array([3], np.int64) if offset else integers(0, 20, batch, length, dtype=np.int64)
    agree(engine, Case("RotaryEmbedding", [x, positions, *tables], interleaved=interleaved, constant=(2, 3),
                       rotary_embedding_dim=rotated, num_heads=heads if rotated else 0))


@pytest.mark.parametrize("offset", [False, True])
@pytest.mark.parametrize("interleaved", [0, 1])
def test_rotary_embedding_of_an_open_number_of_heads(engine, offset, interleaved):
    positions = np.array([3], np.int64) if offset else integers(0, 20, 2, 5, dtype=np.int64)
    agree(engine, Case("RotaryEmbedding", [numbers(2, 5, 24), positions, numbers(20, 4), numbers(20, 4)], free=True,
                       interleaved=interleaved))


class Grouped:
    """Inputs of GroupQueryAttention."""

    def __init__(self, batch=1, length=3, heads=4, kv_heads=2, size=16, past=0, buffer=None, lengths=None, packed=False,
                 rotary=False, dtype=F32):
        self.length, self.past = length, past
        make = lambda *shape: numbers(*shape, dtype=dtype)
        parts = [make(batch, length, heads * size), make(batch, length, kv_heads * size),
                 make(batch, length, kv_heads * size)]
        if packed:
            parts = [np.concatenate(parts, -1), None, None]
        held = buffer if buffer is not None else past
        pasts = [make(batch, kv_heads, held, size) for _ in range(2)]
        lengths = np.full(batch, past + length - 1, np.int32) if lengths is None else np.array(lengths, np.int32)
        tables = [make(64, size // 2) for _ in range(2)] if rotary else [None, None]
        self.inputs = [*parts, *pasts, lengths, np.array([past + length], np.int32), *tables]
        self.attributes = dict(num_heads=heads, kv_num_heads=kv_heads, do_rotary=int(rotary))

    def case(self, *more, outputs=(True, True, True), **attributes):
        return Case("GroupQueryAttention", [*self.inputs, *more], outputs, **{**self.attributes, **attributes})


@pytest.mark.parametrize("past", [0, 5])
@pytest.mark.parametrize("length", [1, 4])
@pytest.mark.parametrize("packed", [False, True])
@pytest.mark.parametrize("rotary", [False, True])
def test_group_query_attention(engine, past, length, packed, rotary):
    agree(engine, Grouped(length=length, past=past, packed=packed, rotary=rotary).case())


@pytest.mark.parametrize("attributes", [
    dict(rotary_interleaved=1), dict(scale=0.3), dict(softcap=2.0), dict(local_window_size=2), dict(local_window_size=4),
    dict(smooth_softmax=1), dict(local_window_size=3, softcap=5.0)])
@pytest.mark.parametrize("past, length", [(0, 6), (5, 1), (5, 3)])
def test_group_query_attention_attributes(engine, attributes, past, length):
    agree(engine, Grouped(length=length, past=past, rotary=True).case(**attributes))


@pytest.mark.parametrize("past, length", [(0, 6), (5, 1)])
def test_group_query_attention_with_sinks_and_bias(engine, past, length):
    heads = numbers(4)
    bias = numbers(1, 4, length, past + length)
    grouped = Grouped(length=length, past=past, rotary=True)
    agree(engine, grouped.case(None, None, heads))
    agree(engine, grouped.case(None, bias))


@pytest.mark.parametrize("length, lengths", [(1, [5, 5]), (1, [5, 2]), (6, [5, 5])])
def test_group_query_attention_gives_scores_of_a_past_in_a_buffer(engine, length, lengths):
    """They have total_sequence_length columns, fewer than the buffer has rows."""
    grouped = Grouped(batch=2, length=length, past=6 - length, buffer=10, lengths=lengths, rotary=True)
    case = grouped.case(outputs=(True,) * 4, qk_output=2)
    expected = case.expected()
    assert expected[3].shape == (2, 4, length, 6)
    ours = engine.run(case.typed(expected), case.feeds)
    compare([ours[0]], [expected[0]])
    for mine, yours, last in zip(ours[3], expected[3], lengths, strict=True):
        compare([mine[..., :last + 1]], [yours[..., :last + 1]])


def test_group_query_attention_gives_scores_before_the_softmax(engine):
    """Later keys have none; ONNX Runtime writes 0."""
    case = Grouped(length=6, rotary=True).case(outputs=(True,) * 4, qk_output=1)
    expected = case.expected()
    later = ~np.tri(6, dtype=bool)
    assert (expected[3][..., later] == 0).all()
    expected[3][..., later] = -np.inf
    ours = engine.run(case.typed(expected), case.feeds)
    compare(ours, expected)
    assert (ours[3][..., later] == -np.inf).all()


def test_group_query_attention_takes_one_token_for_each_of_several_lengths(engine):
    grouped = Grouped(batch=3, length=1, past=6, buffer=10, lengths=[6, 3, 1], rotary=True)
    expected = grouped.case().expected()
    case = grouped.case()
    ours = engine.run(case.typed(expected), case.feeds)
    compare(ours[:1], expected[:1])
    for b, count in enumerate([7, 4, 2]):
        compare([y[b, :, :count] for y in ours[1:]], [y[b, :, :count] for y in expected[1:]])


def test_group_query_attention_of_prompts_that_end_early(engine):
    grouped = Grouped(batch=2, length=6, lengths=[5, 2], rotary=True)
    case = grouped.case()
    expected = case.expected()
    ours = engine.run(case.typed(expected), case.feeds)
    for b, count in enumerate([6, 3]):
        compare([ours[0][b, :count]], [expected[0][b, :count]])


def test_group_query_attention_of_halves(engine):
    agree(engine, Grouped(length=3, past=4, rotary=True, dtype=F16).case(), tolerance=5e-3)


# --- what is wrong with a model ---


def nbits_case(inputs, **attributes):
    return Case("MatMulNBits", inputs, constant=(1, 2, 3, 4), **{**dict(K=64, N=32, bits=4, block_size=32), **attributes})


def refusal(engine, case, output=numbers(1)):
    with pytest.raises(RuntimeError) as error:
        engine.run(case.typed([output] * len(case.model.graph.output)), case.feeds)
    return str(error.value)


@pytest.mark.parametrize("attributes, says", [
    (dict(bits=3), "bits must be 2, 4 or 8; got 3"), (dict(block_size=24), "power of two"),
    (dict(block_size=1 << 40), "too large"), (dict(K=128), "must have"), (dict(N=1 << 39, K=1 << 39), "too large"),
    (dict(K=-64), "attribute 'K' must be at least 1"), (dict(weight_prepacked=1), "weight_prepacked")])
def test_matmul_nbits_says_what_is_wrong(engine, attributes, says):
    message = refusal(engine, nbits_case(nbits_inputs(64, 32, 4, 32, (2,)), **attributes))
    assert "MatMulNBits 'node'" in message and says in message


def test_groups_beyond_the_blocks_are_refused(engine):
    inputs = nbits_inputs(64, 32, 4, 32, (2,), groups=True)
    inputs[4][5] = 2
    assert "g_idx[5] is 2; there are 2 blocks" in refusal(engine, nbits_case(inputs))


@pytest.mark.parametrize("lengths", [[40], [-3], [2**31 - 1]])
def test_group_query_attention_refuses_lengths_beyond_its_memory(engine, lengths):
    message = refusal(engine, Grouped(length=2, past=4, lengths=lengths).case())
    assert "seqlens_k says that batch 0 has" in message


def test_group_query_attention_says_what_is_not_supported(engine):
    message = refusal(engine, Grouped(length=2).case(k_quant_type="PER_TENSOR"))
    assert "k_quant_type needs the input k_scale" in message


@pytest.mark.parametrize("op, attributes, says", [
    ("FusedConv", dict(activation="Wobble"), "activation 'Wobble' is not known"),
    ("Attention", dict(num_heads=5), "num_heads 5 must divide")])
def test_builders_say_what_is_wrong(engine, op, attributes, says):
    inputs = [numbers(1, 4, 8, 8), numbers(6, 4, 3, 3)] if op == "FusedConv" else [numbers(1, 2, 8), numbers(8, 24), numbers(24)]
    assert says in refusal(engine, Case(op, inputs, constant=(1, 2) if op == "Attention" else (1,), **attributes))


def test_every_operator_is_held_against_onnx_runtime():
    """A signature without a case of it in these files fails here."""
    known = {path.stem for path in (ROOT / "spec" / "extra" / "com.microsoft").glob("*.txt")}
    text = "".join(file.read_text() for file in (ROOT / "tests" / "python").glob("test_contrib*.py"))
    assert len(known) > 30
    assert [name for name in sorted(known) if f'"{name}"' not in text] == []


def test_the_checker_knows_the_domain(sardonyx, tmp_path):
    def check(case, version=1):
        for imported in case.model.opset_import:
            if imported.domain:
                imported.version = version
        onnx.save(case.typed([numbers(1)]), tmp_path / "model.onnx")
        return sardonyx("check", tmp_path / "model.onnx", expect=None)

    inputs = nbits_inputs(64, 32, 4, 32, (2,))
    good = check(nbits_case(inputs))
    assert good.returncode == OK, good.stdout
    without = check(Case("MatMulNBits", inputs, constant=(1, 2), N=32, block_size=32))
    assert without.returncode == FINDINGS and "'K'" in without.stdout
    assert "newest known version of com.microsoft is 1" in check(nbits_case(inputs), version=2).stdout
    unknown = Case("AttnLSTM", inputs[:1])
    found = check(unknown)
    assert "nothing is known of com.microsoft.AttnLSTM" in found.stdout
    failed = sardonyx("run", tmp_path / "model.onnx", "--input", "x0=ones", expect=None)
    assert failed.returncode == UNSUPPORTED and "not among the operators of com.microsoft" in failed.stderr


# --- every instruction set ---


@pytest.mark.parametrize("instruction_set", ["avx512", "avx2", "baseline"])
def test_products_on_each_instruction_set(sardonyx, tmp_path, instruction_set):
    engine = Engine(sardonyx.path, tmp_path, instruction_set)
    for bits in (2, 4, 8):
        for rows in ((1,), (2,), (3,), (7,), (9,)):
            case = Case("MatMulNBits", nbits_inputs(192, 70, bits, 64, rows, "packed", True), constant=(1, 2, 3, 5), K=192,
                        N=70, bits=bits, block_size=64)
            agree(engine, case, tolerance=5e-5)
    for a_type in BYTES:
        for b_type in BYTES:
            for m, k, n in ((1, 4, 64), (2, 33, 65), (7, 130, 200), (50, 5, 3), (21, 128, 70), (64, 64, 64)):
                a, b = bytes_of(a_type, m, k), bytes_of(b_type, k, n)
                zeros = scalar(11, a_type), bytes_of(b_type, n)
                expected = ((a.astype(np.int64) - 11) @ (b.astype(np.int64) - zeros[1])).astype(F32)
                case = Case("MatMulIntegerToFloat", [a, b, scalar(1.0), scalar(1.0), *zeros], constant=(1, 2, 3, 4, 5))
                agree(engine, case, reference=[expected], tolerance=1e-6)
    for x_type in BYTES:
        for group, channels, stride, size, pads in ((1, 8, 1, 3, [1, 1, 1, 1]), (2, 12, 2, 3, [0, 1, 2, 0]), (1, 5, 1, 1, [0] * 4), (1, 64, 1, 3, [1] * 4),
                                                    (10, 10, 1, 3, [1, 0, 2, 1]), (5, 5, 2, 5, [2, 2, 2, 2]), (5, 5, 3, 2, [0] * 4)):
            inputs = [bytes_of(x_type, 2, channels, 11, 9), scalar(0.1), scalar(17, x_type),
                      bytes_of(x_type, 10, channels // group, size, size), np.abs(numbers(10)) * F32(0.01) + F32(0.001),
                      np.full(10, 3, x_type), scalar(2.0), scalar(60, x_type), integers(-3000, 3000, 10)]
            case = Case("QLinearConv", inputs, domain="", constant=(1, 2, 3, 4, 5, 6, 7, 8), pads=pads, group=group,
                        strides=[stride, stride])
            x, w = inputs[0].astype(np.int64) - 17, inputs[3].astype(np.int64) - 3
            sums = convolved(x, w, pads, stride, group)
            agree(engine, case, reference=[requantized(sums, inputs, x_type)], steps=1)
            case = Case("ConvInteger", [inputs[0], inputs[3], inputs[2], scalar(3, x_type)], domain="", constant=(1, 3),
                        pads=pads, group=group, strides=[stride, stride])
            agree(engine, case, reference=[sums.astype(np.int32)], steps=0)
    engine.close()


def convolved(x, w, pads, stride, group):
    x = np.pad(x, ((0, 0), (0, 0), (pads[0], pads[2]), (pads[1], pads[3])))
    windows = np.lib.stride_tricks.sliding_window_view(x, w.shape[2:], (2, 3))[:, :, ::stride, ::stride]
    windows = windows.reshape(x.shape[0], group, -1, *windows.shape[2:])
    kernels = w.reshape(group, -1, *w.shape[1:])
    return np.einsum("ngchwij,gmcij->ngmhw", windows, kernels).reshape(x.shape[0], w.shape[0], *windows.shape[3:5])


def requantized(sums, inputs, dtype):
    info = np.iinfo(dtype)
    scaled = np.rint((sums + inputs[8][:, None, None]) * (0.1 * inputs[4].astype(F64) / 2.0)[:, None, None]) + 60
    return np.clip(scaled, info.min, info.max).astype(dtype)
