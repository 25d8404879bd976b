"""Operators of bytes against what their definition gives in exact arithmetic: rounding explains all that differs.

Bytes are the nearest to the exact quotient, or, where that lies between two of them, one of the two. Floats are off by
some units in the last place of the terms they are summed of."""

from __future__ import annotations

import numpy as np
import pytest
from contrib_support import Case, drawing, run_onnxruntime

RANDOM = np.random.default_rng(37)
numbers, integers = drawing(RANDOM)
F32, F64 = np.float32, np.float64
BYTES = [np.uint8, np.int8]
MIDDLE = 1e-4  # quotients this near the middle between two bytes may be rounded either way


def bytes_of(dtype, *shape):
    return RANDOM.integers(np.iinfo(dtype).min, np.iinfo(dtype).max + 1, shape).astype(dtype)


def scalar(value, dtype=F32):
    return np.array(value, dtype)


def real(x, scale, zero):
    return (x.astype(F64) - np.asarray(zero).astype(F64)) * np.asarray(scale).astype(F64)


def windows(x, padding):
    """Windows 3x3 of an image with one row of padding on each side."""
    wide = np.pad(x, [(0, 0), (0, 0), (1, 1), (1, 1)], constant_values=padding)
    return np.lib.stride_tricks.sliding_window_view(wide, (3, 3), (2, 3))


def check_bytes(engine, case, exact, scale, zero, theirs=True, middle=MIDDLE):
    """`exact` in float64, before it is divided by `scale`."""
    info = np.iinfo(zero.dtype)
    quotient = exact / F64(scale) + F64(zero)
    results = [run_onnxruntime(case.model, case.feeds)[0]] if theirs else []
    results.append(engine.run(case.typed([np.zeros(0, zero.dtype)]), case.feeds)[0])
    for made in results:
        assert made.dtype == zero.dtype and made.shape == quotient.shape
        off = np.abs(made.astype(F64) - np.clip(quotient, info.min, info.max))
        assert off.max() <= 0.5 + middle, f"{off.max()} at {np.unravel_index(off.argmax(), off.shape)}"


def check_floats(engine, case, exact, terms, theirs=True):
    """`terms`: the largest sum of magnitudes that an output is made of."""
    results = [run_onnxruntime(case.model, case.feeds)[0]] if theirs else []
    results.append(engine.run(case.typed([np.zeros(0, F32)]), case.feeds)[0])
    for made in results:
        np.testing.assert_allclose(made.astype(F64), exact, rtol=0, atol=4 * np.finfo(F32).eps * terms)


def dynamic_bytes(x):
    """DynamicQuantizeLinear, in the float32 its formula is written in."""
    low, high = min(F32(0), x.min()), max(F32(0), x.max())
    scale = F32((high - low) / F32(255)) if low != high else F32(1)
    zero = np.rint(np.clip(F32(0) - low / scale, 0, 255))
    return np.clip(np.rint(x / scale) + zero, 0, 255).astype(np.int64), scale, int(zero)


# --- products ---


@pytest.mark.parametrize("dtype", BYTES)
@pytest.mark.parametrize("each", [False, True])
@pytest.mark.parametrize("shape, k, n", [((4, 3, 16), 16, 12), ((1, 300), 300, 70), ((65, 64), 64, 64), ((2, 1), 1, 1)])
def test_dynamic_quantize_matmul(engine, dtype, each, shape, k, n):
    count = n if each else 1
    x, w = numbers(*shape), bytes_of(dtype, k, n)
    scale, zero, bias = np.abs(numbers(count)) * F32(0.01) + F32(0.001), bytes_of(dtype, count), numbers(n)
    rows, x_scale, x_zero = dynamic_bytes(x)
    sums = (rows - x_zero) @ (w.astype(np.int64) - zero)
    factor = F64(x_scale) * scale.astype(F64)
    case = Case("DynamicQuantizeMatMul", [x, w, scale, zero, bias], constant=(1, 2, 3, 4))
    check_floats(engine, case, sums * factor + bias, np.abs(sums * factor).max() + np.abs(bias).max())


@pytest.mark.parametrize("a_type", BYTES)
@pytest.mark.parametrize("b_type", BYTES)
@pytest.mark.parametrize("constant", [(), (1, 2, 3, 4, 5, 6)])
@pytest.mark.parametrize("m, k, n", [(1, 35, 40), (70, 256, 65)])
def test_matmul_integer_to_float(engine, a_type, b_type, constant, m, k, n):
    a, b = bytes_of(a_type, m, k), bytes_of(b_type, k, n)
    a_scale, b_scale = scalar(0.1), np.abs(numbers(n)) * F32(0.1)
    a_zero, b_zero, bias = scalar(7, a_type), bytes_of(b_type, n), numbers(n)
    sums = (a.astype(np.int64) - 7) @ (b.astype(np.int64) - b_zero)
    factor = F64(a_scale) * b_scale.astype(F64)
    case = Case("MatMulIntegerToFloat", [a, b, a_scale, b_scale, a_zero, b_zero, bias], constant=constant)
    check_floats(engine, case, sums * factor + bias, np.abs(sums * factor).max() + np.abs(bias).max(),
                 theirs=(a_type, b_type) != (np.int8, np.uint8))


@pytest.mark.parametrize("a_type, b_type", [(np.uint8, np.uint8), (np.uint8, np.int8), (np.int8, np.int8)])
@pytest.mark.parametrize("quantized", [False, True])
@pytest.mark.parametrize("trans_a, trans_b", [(0, 0), (0, 1), (1, 0)])
@pytest.mark.parametrize("alpha", [1.0, 0.7])
@pytest.mark.parametrize("m, k, n", [(1, 35, 40), (70, 128, 65)])
def test_qgemm(engine, a_type, b_type, quantized, trans_a, trans_b, alpha, m, k, n):
    a, b = bytes_of(a_type, m, k), bytes_of(b_type, k, n)
    a_zero, b_zero = scalar(9, a_type), np.full(n, 3, b_type)
    b_scale, c = np.abs(numbers(n)) * F32(0.1) + F32(0.01), integers(-500, 500, n)
    y_scale, y_zero = scalar(40.0), scalar(20, a_type)
    inputs = [a.T.copy() if trans_a else a, scalar(0.1), a_zero, b.T.copy() if trans_b else b, b_scale, b_zero, c]
    inputs += [y_scale, y_zero] if quantized else [None, None]
    sums = (a.astype(np.int64) - 9) @ (b.astype(np.int64) - 3) + c
    exact = sums * (F64(F32(alpha)) * F64(F32(0.1)) * b_scale.astype(F64))
    case = Case("QGemm", inputs, constant=(1, 2, 3, 4, 5, 6, 7, 8), transA=trans_a, transB=trans_b, alpha=alpha)
    if quantized:
        check_bytes(engine, case, exact, y_scale, y_zero)
    else:
        check_floats(engine, case, exact, np.abs(exact).max())


@pytest.mark.parametrize("w_type", BYTES)
@pytest.mark.parametrize("channels_last", [0, 1])
@pytest.mark.parametrize("group, channels", [(1, 4), (1, 64), (8, 8)])
def test_qlinear_conv(engine, w_type, channels_last, group, channels):
    many = 16
    x, w = bytes_of(np.uint8, 1, channels, 9, 8), bytes_of(w_type, many, channels // group, 3, 3)
    x_zero, w_zero = 120, 0 if w_type == np.int8 else 127
    w_scale, bias = np.abs(numbers(many)) * F32(0.01) + F32(0.001), integers(-1000, 1000, many)
    views = windows(x.astype(np.int64) - x_zero, 0).reshape(1, group, channels // group, 9, 8, 3, 3)
    weights = (w.astype(np.int64) - w_zero).reshape(group, many // group, channels // group, 3, 3)
    sums = np.einsum("ngchwij,gmcij->ngmhw", views, weights).reshape(1, many, 9, 8) + bias[:, None, None]
    exact = sums * (F64(F32(0.1)) * w_scale.astype(F64))[:, None, None]
    y_scale, y_zero = scalar(2.5), scalar(110, np.uint8)
    given = x
    if channels_last:
        given, exact = np.ascontiguousarray(x.transpose(0, 2, 3, 1)), exact.transpose(0, 2, 3, 1)
    inputs = [given, scalar(0.1), scalar(x_zero, np.uint8), w, w_scale, np.full(many, w_zero, w_type), y_scale, y_zero, bias]
    case = Case("QLinearConv", inputs, constant=(1, 2, 3, 4, 5, 6, 7, 8), pads=[1, 1, 1, 1], group=group,
                channels_last=channels_last)
    check_bytes(engine, case, exact, y_scale, y_zero)


# --- element by element ---


@pytest.mark.parametrize("dtype", BYTES)
@pytest.mark.parametrize("op", ["QLinearAdd", "QLinearMul"])
@pytest.mark.parametrize("shape", [(40, 257), (257,), ()])
@pytest.mark.parametrize("scales", [(0.1, 0.05, 0.2), (0.0317, 0.0123, 0.0419)])
def test_qlinear_binary(engine, dtype, op, shape, scales):
    a, b = bytes_of(dtype, 40, 257), bytes_of(dtype, *shape)
    s = [scalar(x) for x in scales]
    z = [scalar(v, dtype) for v in (3, 100, 7)]
    left, right = real(a, s[0], z[0]), real(b, s[1], z[1])
    exact = left + right if op == "QLinearAdd" else left * right
    check_bytes(engine, Case(op, [a, s[0], z[0], b, s[1], z[1], s[2], z[2]], constant=(1, 2, 4, 5, 6, 7)), exact, s[2], z[2])


@pytest.mark.parametrize("dtype", BYTES)
@pytest.mark.parametrize("op", ["QLinearSigmoid", "QLinearLeakyRelu"])
def test_qlinear_unary(engine, dtype, op):
    info = np.iinfo(dtype)
    x = np.arange(info.min, info.max + 1).astype(dtype)
    scale, zero = scalar(0.0473), scalar(9, dtype)
    y_scale, y_zero = scalar(0.0041 if op == "QLinearSigmoid" else 0.0519), scalar(-3 if dtype == np.int8 else 3, dtype)
    value = real(x, scale, zero)
    exact = 1 / (1 + np.exp(-value)) if op == "QLinearSigmoid" else np.where(value < 0, value * F64(F32(0.2)), value)
    attributes = {} if op == "QLinearSigmoid" else {"alpha": 0.2}
    check_bytes(engine, Case(op, [x, scale, zero, y_scale, y_zero], constant=(1, 2, 3, 4), **attributes), exact, y_scale, y_zero)


@pytest.mark.parametrize("dtype", BYTES)
def test_qlinear_softmax(engine, dtype):
    x = bytes_of(dtype, 50, 20)
    scale, zero, y_scale, y_zero = scalar(0.05), scalar(5, dtype), scalar(1 / 256), scalar(np.iinfo(dtype).min, dtype)
    exact = np.exp(real(x, scale, zero))
    exact /= exact.sum(-1, keepdims=True)
    check_bytes(engine, Case("QLinearSoftmax", [x, scale, zero, y_scale, y_zero], constant=(1, 2, 3, 4), opset=13, axis=-1),
                exact, y_scale, y_zero)


@pytest.mark.parametrize("dtype", BYTES)
def test_qlinear_where(engine, dtype):
    take, a, b = RANDOM.random((50, 60)) > 0.5, bytes_of(dtype, 50, 60), bytes_of(dtype, 60)
    s, z = [scalar(v) for v in (0.1, 0.2, 0.15)], [scalar(v, dtype) for v in (5, 9, 3)]
    exact = np.where(take, real(a, s[0], z[0]), real(b, s[1], z[1]))
    check_bytes(engine, Case("QLinearWhere", [take, a, s[0], z[0], b, s[1], z[1], s[2], z[2]], constant=(2, 3, 5, 6, 7, 8)),
                exact, s[2], z[2])


@pytest.mark.parametrize("dtype", BYTES)
def test_qlinear_concat(engine, dtype):
    parts = [(bytes_of(dtype, 30, n), scalar(scale), scalar(zero, dtype)) for n, scale, zero in ((30, 0.1, 5), (40, 0.2, 100), (1, 0.03, 0))]
    y_scale, y_zero = scalar(0.13), scalar(6, dtype)
    inputs = [y_scale, y_zero, *(x for x, s, z in parts for x in (x, s, z))]
    case = Case("QLinearConcat", inputs, constant=tuple(i for i in range(11) if i not in (2, 5, 8)), axis=1)
    check_bytes(engine, case, np.concatenate([real(*part) for part in parts], 1), y_scale, y_zero)


# --- means ---


@pytest.mark.parametrize("dtype", BYTES)
@pytest.mark.parametrize("channels_last", [0, 1])
def test_qlinear_global_average_pool(engine, dtype, channels_last):
    x = bytes_of(dtype, 20, 6, 7, 50)
    scale, zero, y_scale, y_zero = scalar(0.1), scalar(5, dtype), scalar(0.0213), scalar(10, dtype)
    exact = real(x, scale, zero).mean((1, 2) if channels_last else (2, 3), keepdims=True)
    check_bytes(engine, Case("QLinearGlobalAveragePool", [x, scale, zero, y_scale, y_zero], constant=(1, 2, 3, 4),
                             channels_last=channels_last), exact, y_scale, y_zero)


@pytest.mark.parametrize("dtype", BYTES)
@pytest.mark.parametrize("channels_last", [0, 1])
@pytest.mark.parametrize("include", [0, 1])
def test_qlinear_average_pool(engine, dtype, channels_last, include):
    x = bytes_of(dtype, 2, 5, 9, 8)
    scale, zero, y_scale, y_zero = scalar(0.1), scalar(5, dtype), scalar(0.0713), scalar(2, dtype)
    views = windows(real(x, scale, zero), np.nan)[:, :, ::2]
    exact = np.nansum(views, (-2, -1)) / 9 if include else np.nanmean(views, (-2, -1))
    given = x
    if channels_last:
        given, exact = np.ascontiguousarray(x.transpose(0, 2, 3, 1)), exact.transpose(0, 2, 3, 1)
    check_bytes(engine, Case("QLinearAveragePool", [given, scale, zero, y_scale, y_zero], constant=(1, 2, 3, 4), kernel_shape=[3, 3],
                             strides=[2, 1], pads=[1, 1, 1, 1], count_include_pad=include, channels_last=channels_last),
                exact, y_scale, y_zero)


# --- normalisations ---


@pytest.mark.parametrize("op", ["SkipLayerNormalization", "LayerNormalization"])
@pytest.mark.parametrize("mean", [0, 4160, 36305])
def test_rows_far_from_zero_are_normalised(engine, op, mean):
    """The mean is taken off before anything is squared. (ONNX Runtime squares first.)"""
    x, skip, weight = numbers(4, 768, scale=80) + F32(mean), numbers(4, 768), numbers(768)
    total = (x + skip).astype(F64) if op == "SkipLayerNormalization" else x.astype(F64)
    exact = (total - total.mean(-1, keepdims=True)) / np.sqrt(total.var(-1, keepdims=True) + F64(F32(1e-5))) * weight
    if op == "SkipLayerNormalization":
        case = Case(op, [x[None], skip[None], weight], constant=(2,), epsilon=1e-5)
    else:
        case = Case(op, [x[None], weight], domain="", constant=(1,), epsilon=1e-5)
    [made] = engine.run(case.typed([x]), case.feeds)
    unit = np.finfo(F32).eps * max(mean, 80) / 80  # of the sums, after the division
    np.testing.assert_allclose(made[0], exact, rtol=0, atol=2 * unit * np.abs(weight).max() + 1e-5)
