"""The rarer operators of com.microsoft and those of ONNX Runtime's own layouts, against ONNX Runtime where its
CPU provider has a kernel, otherwise against numpy."""

from __future__ import annotations

import numpy as np
import onnx
import pytest
from contrib_support import Case, agree, drawing, element_type
from onnx import TensorProto

RANDOM = np.random.default_rng(23)
numbers, integers = drawing(RANDOM)
F32, F16, F64 = np.float32, np.float16, np.float64
both = pytest.mark.parametrize("free", [False, True])


def refused(engine, case, words, outputs):
    """`words` is what the error says of this case; `outputs` are the shapes and types it might have given."""
    with pytest.raises(RuntimeError, match=words):
        engine.run(case.typed(outputs), case.feeds)


# --- forms that the standard took over ---


@pytest.mark.parametrize("axis", [0, 1, 3, -1, -2])
@pytest.mark.parametrize("constant", [(), (1,)])
def test_expand_dims(engine, axis, constant):
    agree(engine, Case("ExpandDims", [numbers(2, 3, 4), np.array(axis, np.int32)], constant=constant))


@pytest.mark.parametrize("index", [np.int32, np.int64])
@pytest.mark.parametrize("dtype", [F32, F64, np.int64, np.uint8, bool])
def test_gather_nd(engine, index, dtype):
    data = numbers(4, 5, 6, scale=9).astype(dtype)
    agree(engine, Case("GatherND", [data, integers(-4, 4, 3, 2, 2, dtype=index)]))
    agree(engine, Case("GatherND", [data, integers(0, 4, 7, 1, dtype=index)], free=True))


@pytest.mark.parametrize("mode", ["bilinear", "nearest", "bicubic"])
@pytest.mark.parametrize("padding_mode", ["zeros", "border", "reflection"])
@pytest.mark.parametrize("align_corners", [0, 1])
def test_grid_sample(engine, mode, padding_mode, align_corners):
    # Where border meets bicubic, ONNX Runtime moves the place itself to the border, the standard each pixel it reads.
    reach = 0.5 if (mode, padding_mode) == ("bicubic", "border") else 1.4
    grid = RANDOM.uniform(-reach, reach, (2, 5, 6, 2)).astype(F32)
    agree(engine, Case("GridSample", [numbers(2, 3, 7, 8), grid], mode=mode, padding_mode=padding_mode,
                       align_corners=align_corners), tolerance=1e-4)


@pytest.mark.parametrize("mode, value", [("constant", None), ("constant", ()), ("constant", (1,)), ("reflect", None),
                                         ("edge", None)])
@pytest.mark.parametrize("flat", [True, False])
def test_pad(engine, mode, value, flat):
    pads = np.array([1, 0, 2, 0, 2, 1], np.int64)
    inputs = [numbers(3, 4, 5), pads if flat else pads[None], None if value is None else np.full(value, 2.5, F32)]
    agree(engine, Case("Pad", inputs, mode=mode, constant=(1,)))
    agree(engine, Case("Pad", inputs, mode=mode))


@pytest.mark.parametrize("dtype", [F32, F64, np.int16, np.int32, np.int64])
@pytest.mark.parametrize("start, limit, delta", [(1, 7, 2), (7, 0, -3), (0, 5, None), (3, 3, None)])
@pytest.mark.parametrize("shape", [(), (1,)])
def test_range(engine, dtype, start, limit, delta, shape):
    inputs = [None if x is None else np.full(shape, x, dtype) for x in (start, limit, delta)]
    agree(engine, Case("Range", inputs))
    agree(engine, Case("Range", inputs, constant=(0, 1, 2)))


@pytest.mark.parametrize("dtype", [F32, F64, np.int64])
@pytest.mark.parametrize("upper", [0, 1])
@pytest.mark.parametrize("k", [None, 0, 1, -2, 9])
def test_trilu(engine, dtype, upper, k):
    x = numbers(2, 4, 5, scale=9).astype(dtype)
    agree(engine, Case("Trilu", [x, None if k is None else np.array(k, np.int64)], upper=upper))


@both
def test_unique(engine, free):
    x = integers(-3, 4, 40).astype(F32)
    agree(engine, Case("Unique", [x], (True, True, True), free=free))


@pytest.mark.parametrize("dim, size, step", [(-1, 3, 1), (0, 2, 2), (1, 5, 1), (-2, 1, 3)])
@pytest.mark.parametrize("dtype", [F32, np.int32, np.uint8])
@both
def test_unfold(engine, dim, size, step, dtype, free):
    x = numbers(4, 5, 6, scale=9).astype(dtype)
    case = Case("UnfoldTensor", [x], dim=dim, size=size, step=step, free=free)
    windows = np.lib.stride_tricks.sliding_window_view(x, size, dim)
    axis = dim % 3
    agree(engine, case, reference=[np.take(windows, np.arange(0, windows.shape[axis], step), axis)])
    if dtype != np.uint8:  # of which ONNX Runtime has no kernel
        agree(engine, case)


def test_unfold_refuses_slices_that_are_too_long(engine):
    refused(engine, Case("UnfoldTensor", [numbers(4, 5)], size=6), "longer", [numbers(4, 1, 6)])
    refused(engine, Case("UnfoldTensor", [numbers(4, 5)], size=0), "1 or more", [numbers(4, 1, 6)])
    refused(engine, Case("UnfoldTensor", [numbers(4, 5)], size=2, dim=3), "dim", [numbers(4, 1, 6)])


@pytest.mark.parametrize("metric", ["euclidean", "sqeuclidean"])
@pytest.mark.parametrize("dtype", [F32, F64])
@both
def test_distances(engine, metric, dtype, free):
    agree(engine, Case("CDist", [numbers(6, 9, dtype=dtype), numbers(11, 9, dtype=dtype)], metric=metric, free=free),
          tolerance=1e-5)


def test_distances_refuse_other_metrics(engine):
    refused(engine, Case("CDist", [numbers(2, 3), numbers(4, 3)], metric="cosine"), "metric", [numbers(2, 4)])
    refused(engine, Case("CDist", [numbers(2, 3), numbers(4, 5)]), "", [numbers(2, 4)])


@pytest.mark.parametrize("group", [1, 2])
@pytest.mark.parametrize("bias", [False, True])
def test_transposed_convolution_with_pads_as_input(engine, group, bias):
    inputs = [numbers(1, 4, 5, 6), numbers(4, 3, 3, 3), np.array([1, 0, 1, 2], np.int64),
              numbers(3 * group) if bias else None]
    agree(engine, Case("ConvTransposeWithDynamicPads", inputs, constant=(1, 2), group=group, strides=[2, 2],
                       kernel_shape=[3, 3], output_padding=[1, 1]))


def test_sample_op(engine):
    agree(engine, Case("SampleOp", [numbers(3, 4)]))


def test_matmul_of_16_bit_integers(engine):
    inputs = [integers(-3000, 3000, 2, 4, 9, dtype=np.int16), integers(-3000, 3000, 2, 9, 5, dtype=np.int16)]
    agree(engine, Case("MatMulInteger16", inputs))


# --- of other devices: against numpy ---


@pytest.mark.parametrize("zeros", [False, True])
def test_mul_integer(engine, zeros):
    a, b = integers(0, 256, 3, 4, dtype=np.uint8), integers(0, 256, 4, dtype=np.uint8)
    za, zb = (np.array(7, np.uint8), np.array(200, np.uint8)) if zeros else (None, None)
    expected = (a.astype(np.int32) - (7 if zeros else 0)) * (b.astype(np.int32) - (200 if zeros else 0))
    agree(engine, Case("MulInteger", [a, za, b, zb]), reference=[expected])


@pytest.mark.parametrize("keepdims", [0, 1])
def test_reduce_sum_integer(engine, keepdims):
    x = integers(-128, 128, 3, 4, 5, dtype=np.int8)
    expected = x.astype(np.int32).sum((0, 2), keepdims=keepdims == 1, dtype=np.int32)
    agree(engine, Case("ReduceSumInteger", [x], axes=[0, 2], keepdims=keepdims), reference=[expected])


def normalized_groups(x, groups, gamma, beta, epsilon, activation):
    n, c = x.shape[:2]
    wide = x.astype(F64).reshape(n, groups, -1)
    wide = (wide - wide.mean(-1, keepdims=True)) / np.sqrt(wide.var(-1, keepdims=True) + epsilon)
    shape = (1, c, 1, 1)
    y = wide.reshape(x.shape) * gamma.astype(F64).reshape(shape) + beta.astype(F64).reshape(shape)
    return y / (1 + np.exp(-y)) if activation else y


@pytest.mark.parametrize("dtype", [F32, F16])
@pytest.mark.parametrize("last", [0, 1])
@pytest.mark.parametrize("activation", [0, 1])
@pytest.mark.parametrize("skip, bias", [(None, False)] + [(s, b) for s in ((2, 8, 3, 5), (2, 8), (2, 8, 1, 1)) for b in (0, 1)])
def test_group_norm(engine, dtype, last, activation, skip, bias):
    x, gamma, beta = numbers(2, 8, 3, 5, dtype=dtype), numbers(8), numbers(8)
    added = [] if skip is None else [numbers(*skip, dtype=dtype)] + ([numbers(8, dtype=dtype)] if bias else [])
    total = x
    if added:
        total = total + added[0].reshape(*added[0].shape, *[1] * (4 - added[0].ndim))
    if bias:
        total = total + added[1].reshape(1, 8, 1, 1)
    turn = (lambda v: np.ascontiguousarray(np.moveaxis(v, 1, -1)) if last and v.ndim == 4 else v)
    expected = [turn(normalized_groups(total, 4, gamma, beta, 1e-5, activation)).astype(dtype)]
    inputs = [turn(x), gamma, beta, *map(turn, added)]
    outputs = (True,) if skip is None else (True, True)
    if skip is not None:
        expected.append(turn(total))
    case = Case("GroupNorm" if skip is None else "SkipGroupNorm", inputs, outputs, groups=4, activation=activation,
                channels_last=last, constant=(1, 2))
    agree(engine, case, reference=expected, tolerance=5e-3 if dtype == F16 else 2e-5)


def test_group_norm_refuses_what_does_not_fit(engine):
    inputs = [numbers(1, 2, 2, 8), numbers(8), numbers(8)]
    refused(engine, Case("GroupNorm", inputs, groups=3, activation=0), "", [inputs[0]])
    refused(engine, Case("GroupNorm", inputs, groups=4, activation=2), "activation", [inputs[0]])
    refused(engine, Case("GroupNorm", [numbers(2, 8), *inputs[1:]], groups=4, activation=1), "rank 4", [numbers(2, 8)])


def gelu(x):
    import math
    return x * 0.5 * (1 + np.vectorize(math.erf)(x / math.sqrt(2)))


def test_bias_fusions(engine):
    x, bias, skip = numbers(2, 6, 8), numbers(8), numbers(2, 6, 8)
    agree(engine, Case("BiasAdd", [x, bias, skip]), reference=[x + bias + skip])
    both_halves = (x + bias).astype(F64)
    split = both_halves[..., :4] * gelu(both_halves[..., 4:])
    agree(engine, Case("BiasSplitGelu", [x, bias]), reference=[split.astype(F32)])
    agree(engine, Case("BiasDropout", [x, bias, skip]), reference=[x + bias + skip])
    agree(engine, Case("BiasDropout", [x, bias], (True, True)), reference=[x + bias, np.ones(x.shape, bool)])
    weights = numbers(8, 5)
    tanh = lambda v: (0.5 * v * (1 + np.tanh(np.sqrt(2 / np.pi) * (v + 0.044715 * v**3)))).astype(F32)
    shift = numbers(5)
    agree(engine, Case("GemmFastGelu", [x, weights, shift]), reference=[tanh(x @ weights + shift)], tolerance=1e-4)
    agree(engine, Case("GemmFastGelu", [x, weights]), reference=[tanh(x @ weights)], tolerance=1e-4)


def test_embedding_of_torch(engine):
    weights, at = numbers(8, 5), integers(0, 8, 3, 2, dtype=np.int64)
    agree(engine, Case("TorchEmbedding", [weights, at]), reference=[weights[at]])


@pytest.mark.parametrize("axis", [1, 2, -1])
def test_bias_softmax(engine, axis):
    x, bias = numbers(2, 3, 4), numbers(1, 3, 4)
    total = (x + bias).astype(F64)
    flat = total.reshape(int(np.prod(x.shape[:axis % 3])), -1)
    y = np.exp(flat - flat.max(-1, keepdims=True))
    expected = (y / y.sum(-1, keepdims=True)).reshape(x.shape).astype(F32)
    agree(engine, Case("BiasSoftmax", [x, bias], axis=axis, is_inner_broadcast=0), reference=[expected])


@pytest.mark.parametrize("dims", [1, 2])
@pytest.mark.parametrize("dtype", [F32, F64])
def test_fourier(engine, dims, dtype):
    x = numbers(3, 6, 8, dtype=dtype)
    axes = tuple(range(-dims, 0))
    spectrum = np.fft.rfftn(x, axes=axes)
    parts = np.stack([spectrum.real, spectrum.imag], -1).astype(dtype)
    agree(engine, Case("Rfft", [x], signal_ndim=dims), reference=[parts])
    agree(engine, Case("Irfft", [parts], signal_ndim=dims), reference=[x])


@pytest.mark.parametrize("activation, alpha, curve", [
    ("Relu", None, lambda y: np.maximum(y, 0)), ("Tanh", None, np.tanh), ("LeakyRelu", 0.3, lambda y: np.where(y > 0, y, y * F32(0.3)))])
def test_matmul_with_an_activation(engine, activation, alpha, curve):
    a, b = numbers(3, 4), numbers(5, 4)
    agree(engine, Case("FusedMatMulActivation", [a, b], transB=1, alpha=0.5, activation=activation,
                       activation_alpha=alpha), reference=[curve(a @ b.T * F32(0.5)).astype(F32)])


# --- kernels ---


@pytest.mark.parametrize("mode", ["bilinear", "nearest"])
@pytest.mark.parametrize("size", [(3, 4), (1, 1), (7, 1)])
@pytest.mark.parametrize("constant", [(3,), ()])
def test_crop_and_resize(engine, mode, size, constant):
    rois = np.array([[0, 0, 1, 1], [0.1, 0.3, 0.8, 0.7], [-0.4, 0.2, 1.3, 1.1], [0.9, 0.8, 0.1, 0.2]], F32)
    inputs = [numbers(2, 3, 6, 5), rois, np.array([0, 1, 1, 0], np.int32), np.array(size, np.int32)]
    agree(engine, Case("CropAndResize", inputs, mode=mode, extrapolation_value=-2.0, constant=constant))


def test_crops_refuse_what_is_not_there(engine):
    inputs = [numbers(2, 3, 6, 5), numbers(2, 4), np.array([0, 2], np.int32), np.array([3, 4], np.int32)]
    y = [numbers(2, 3, 3, 4)]
    refused(engine, Case("CropAndResize", inputs, constant=(3,)), "batch_indices", y)
    refused(engine, Case("CropAndResize", [*inputs[:3], np.array([0, 4], np.int32)], constant=(3,)), "crop_size", y)
    refused(engine, Case("CropAndResize", [*inputs[:3], np.array([-1, 4], np.int32)]), "", y)
    nan = np.full((2, 4), np.nan, F32)
    [got] = engine.run(Case("CropAndResize", [inputs[0], nan, np.array([0, 1], np.int32), inputs[3]], constant=(3,))
                       .typed(y), {"x0": inputs[0], "x1": nan, "x2": np.array([0, 1], np.int32)})
    assert (got == 0).all()


@pytest.mark.parametrize("shape", [(5, 7), (1, 9, 4), (1, 1), (1, 6), (6, 1)])
@both
def test_time_warping(engine, shape, free):
    agree(engine, Case("DynamicTimeWarping", [numbers(*shape)], free=free))
    agree(engine, Case("DynamicTimeWarping", [integers(0, 3, *shape).astype(F32)], free=free))


def test_time_warping_with_costs_that_are_no_numbers(engine):
    x = np.full((4, 5), np.nan, F32)
    [y] = engine.run(Case("DynamicTimeWarping", [x]).typed([np.zeros((2, 4), np.int32)]), {"x0": x})
    assert y[:, -1].tolist() == [3, 4] and (y >= 0).all()
    refused(engine, Case("DynamicTimeWarping", [numbers(2, 3, 4)]), "1, M, N", [np.zeros((2, 4), np.int32)])
    refused(engine, Case("DynamicTimeWarping", [numbers(0, 4)]), "empty", [np.zeros((2, 4), np.int32)])


@pytest.mark.parametrize("dtype", [F32, F64, F16])
@pytest.mark.parametrize("shape", [(3, 3), (2, 5, 5), (2, 3, 1, 1), (17, 17)])
def test_inverse(engine, dtype, shape):
    x = (numbers(*shape) + 4 * np.eye(shape[-1])).astype(dtype)
    agree(engine, Case("Inverse", [x]), tolerance={F32: 1e-5, F64: 1e-12, F16: 4e-3}[dtype])


def test_inverse_of_what_has_none(engine):
    x = np.ones((2, 2), F32)
    [y] = engine.run(Case("Inverse", [x]).typed([x]), {"x0": x})
    assert not np.isfinite(y).any()
    refused(engine, Case("Inverse", [numbers(2, 3)]), "square", [numbers(2, 3)])
    refused(engine, Case("Inverse", [numbers(3)]), "matrices", [numbers(3)])


@pytest.mark.parametrize("dtype", [np.int32, np.uint32, np.int64, np.uint64, F32, F64, str])
@pytest.mark.parametrize("seed", [None, 0, 42])
@pytest.mark.parametrize("positive", [0, 1])
def test_hash(engine, sardonyx, tmp_path, dtype, seed, positive):
    if dtype is str:
        x = np.array(["", "a", "ab", "abc", "abcd", "a longer text é"], dtype=object)
        agree_on_texts(sardonyx, tmp_path, Case("MurmurHash3", [x], seed=seed, positive=positive,
                                                 types={"x0": TensorProto.STRING}))
        return
    x = numbers(3, 4, scale=1e4).astype(F64).astype(np.int64).astype(dtype)
    agree(engine, Case("MurmurHash3", [x], seed=seed, positive=positive))


def agree_on_texts(sardonyx, tmp_path, case):
    """A case whose input is texts: planned and plain, against ONNX Runtime."""
    [expected] = case.expected()
    output = case.model.graph.output[0]
    output.type.tensor_type.elem_type = TensorProto.STRING if expected.dtype == object else element_type(expected)
    onnx.save(case.model, tmp_path / "m.onnx")
    for option in ([], ["--reference"]):
        texts = case.feeds["x0"].astype(str)
        [got] = sardonyx.outputs(tmp_path / "m.onnx", {"x0": texts}, tmp_path, *option)
        assert got.shape == expected.shape
        assert got.ravel().tolist() == expected.ravel().tolist()


TEXTS = np.array(["Hello World", "I love computer science !", "", "a,b;;c", "ééà ü"], dtype=object)


@pytest.mark.parametrize("attributes", [
    {"separators": [" "]}, {"separators": [" ", ","]}, {"separators": [";", "o"], "mincharnum": 2},
    {"separators": [""]}, {"tokenexp": "."}, {"tokenexp": "[a-z]+"}, {"tokenexp": "[a-zé]+", "mincharnum": 3},
    {"tokenexp": "a|ab|l+"}, {"separators": ["[ ,;]+"]}, {"separators": ["l|lo"]}])
@pytest.mark.parametrize("mark", [0, 1])
@pytest.mark.parametrize("shape", [(5,), (5, 1)])
def test_tokenizer(sardonyx, tmp_path, attributes, mark, shape):
    case = Case("Tokenizer", [TEXTS.reshape(shape)], types={"x0": TensorProto.STRING}, mark=mark, pad_value="#",
                **{"mincharnum": 1, **attributes})
    agree_on_texts(sardonyx, tmp_path, case)


# --- what ONNX Runtime has in ai.onnx and the standard has not ---


@pytest.mark.parametrize("opset", [7, 9, 11, 13, 16])
@pytest.mark.parametrize("bias", [False, True])
@pytest.mark.parametrize("outputs", [(True,), (True, True, True)])
def test_layer_normalization_before_the_standard_had_it(sardonyx, engine, tmp_path, opset, bias, outputs):
    x = numbers(2, 3, 8)
    case = Case("LayerNormalization", [x, numbers(8), numbers(8) if bias else None], outputs, domain="", axis=-1, epsilon=1e-5)
    case.model.opset_import[0].version = opset
    case.model.ir_version = 8
    expected = agree(engine, case)
    onnx.save(case.model, tmp_path / "m.onnx")
    for mine, yours in zip(sardonyx.outputs(tmp_path / "m.onnx", case.feeds, tmp_path, "--reference"), expected, strict=True):
        np.testing.assert_allclose(mine, yours, atol=2e-5)
    report = sardonyx("check", tmp_path / "m.onnx")
    assert "no part of the standard before version 17" in report.stdout + report.stderr


@pytest.mark.parametrize("op, attributes, inputs", [
    ("Affine", {"alpha": 2.0, "beta": 3.0}, ()), ("ScaledTanh", {"alpha": 2.0, "beta": 3.0}, ()), ("Scale", {"scale": 2.0}, ()),
    ("ParametricSoftplus", {"alpha": 2.0, "beta": 3.0}, ()), ("ImageScaler", {"scale": 2.0, "bias": [1.0, 2.0, 3.0]}, ()),
    ("Crop", {"border": [0, 1, 1, 0]}, ()), ("Crop", {"border": [1, 0, 0, 0], "scale": [2, 3]}, ()),
    ("MeanVarianceNormalization", {"across_channels": 1}, ()), ("ThresholdedRelu", {"alpha": 0.5}, ()),
    ("DynamicSlice", {}, ([0, 1, 1], [2, 3, 4]))])
def test_experiments(engine, op, attributes, inputs):
    """In version 7, where ONNX Runtime still has them."""
    case = Case(op, [numbers(2, 3, 4, 5), *(np.array(i, np.int64) for i in inputs)], domain="", **attributes)
    case.model.opset_import[0].version = 7
    case.model.ir_version = 8
    agree(engine, case)
