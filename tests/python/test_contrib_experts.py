"""MoE and QMoE of com.microsoft against ONNX Runtime, and against numpy where its CPU provider refuses them."""

from __future__ import annotations

import ml_dtypes
import numpy as np
import onnx
import pytest
from contrib_support import Case, agree, compare, drawing

RANDOM = np.random.default_rng(31)
numbers, _ = drawing(RANDOM)
F32, F16 = np.float32, np.float16
ACTIVATIONS = ["relu", "gelu", "silu", "identity", "swiglu"]


def refused(engine, case, words, outputs):
    with pytest.raises(RuntimeError, match=words):
        engine.run(case.typed(outputs), case.feeds)


# --- numpy's version ---


def sigmoid(x):
    return 1 / (1 + np.exp(-x))


def gated(activation, gate, linear, alpha=1.0, beta=0.0, limit=np.inf):
    if activation == "swiglu":
        gate, linear = np.minimum(gate, limit), np.clip(linear, -limit, limit) + beta
        return gate * sigmoid(alpha * gate) * linear
    value = {"relu": lambda x: np.maximum(x, 0), "silu": lambda x: x * sigmoid(x), "identity": lambda x: x,
             "gelu": lambda x: x / 2 * (1 + np.tanh(0.7978845608 * (x + 0.044715 * x**3)))}[activation](gate)
    return value if linear is None else value * linear


def mixture(x, scores, fc1, fc2, fc3=None, k=1, normalize=False, activation="relu", fusion=0, weights=None, **limits):
    """fc: pairs of weights [experts, out, in] and a bias or None."""
    rows = x.reshape(-1, x.shape[-1]).astype(np.float64)
    y = np.zeros((len(rows), fc2[0].shape[1]))
    part = lambda fc, e, v: fc[0][e].astype(np.float64) @ v + (0 if fc[1] is None else fc[1][e])
    for t, row in enumerate(rows):
        chosen = np.argsort(-scores[t], kind="stable")[:k]
        share = np.exp(scores[t].astype(np.float64) - scores[t].max())
        share = share / (share[chosen].sum() if normalize else share.sum()) if weights is None else weights[t].astype(float)
        if weights is not None and normalize:
            share = share / share[chosen].sum()
        for e in chosen:
            first, linear = part(fc1, e, row), None
            if fc3 is not None:
                linear = part(fc3, e, row)
            elif activation == "swiglu":
                half = len(first) // 2
                first, linear = (first[::2], first[1::2]) if fusion == 1 else (first[:half], first[half:])
            y[t] += share[e] * part(fc2, e, gated(activation, first, linear, **limits))
    return y.reshape(x.shape).astype(x.dtype)


# --- MoE ---


def moe_inputs(tokens, experts, hidden, inter, fused, bias, dtype=F32, third=False):
    fc1 = inter * (2 if fused else 1)
    inputs = [numbers(*tokens, hidden), numbers(int(np.prod(tokens)), experts), numbers(experts, fc1, hidden, scale=0.3),
              numbers(experts, fc1) if bias else None, numbers(experts, hidden, inter, scale=0.3),
              numbers(experts, hidden) if bias else None]
    if third:
        inputs += [numbers(experts, inter, hidden, scale=0.3), numbers(experts, inter) if bias else None]
    return [None if x is None else x.astype(dtype) for x in inputs]


@pytest.mark.parametrize("activation", ACTIVATIONS)
@pytest.mark.parametrize("normalize", [0, 1])
@pytest.mark.parametrize("bias", [False, True])
@pytest.mark.parametrize("k", [1, 2, 4])
def test_moe(engine, activation, normalize, bias, k):
    fused = activation == "swiglu"
    for tokens, experts, hidden, inter in [((1,), 4, 16, 24), ((3, 7), 6, 20, 12), ((300,), 5, 8, 8)]:
        inputs = moe_inputs(tokens, experts, hidden, inter, fused, bias)
        extra = {"swiglu_fusion": 1, "activation_alpha": 1.702, "activation_beta": 1.0, "swiglu_limit": 1.5} if fused else {}
        agree(engine, Case("MoE", inputs, k=k, normalize_routing_weights=normalize, activation_type=activation, **extra))


def test_moe_older_shapes_and_open_sizes(engine):
    inputs = moe_inputs((2, 5), 3, 16, 24, False, True)
    agree(engine, Case("MoE", inputs, k=2, free=True, constant=(2, 3, 4, 5)))
    inputs[2], inputs[4] = inputs[2].reshape(3, 16, 24), inputs[4].reshape(3, 24, 16)
    agree(engine, Case("MoE", inputs, k=2))


@pytest.mark.parametrize("dtype, tolerance", [(F32, 2e-5), (F16, 3e-3)])
@pytest.mark.parametrize("activation", ["silu", "gelu", "swiglu"])
def test_moe_with_a_third_layer(engine, activation, dtype, tolerance):
    x = moe_inputs((4, 3), 5, 16, 24, False, True, dtype, third=True)
    want = mixture(x[0], x[1], x[2:4], x[4:6], x[6:8], k=2, normalize=True, activation=activation)
    agree(engine, Case("MoE", x, k=2, normalize_routing_weights=1, activation_type=activation), reference=[want],
          tolerance=tolerance)


@pytest.mark.parametrize("dtype, tolerance", [(F32, 2e-5), (F16, 3e-3)])
def test_moe_swiglu_in_two_halves(engine, dtype, tolerance):
    x = moe_inputs((9,), 4, 16, 12, True, True, dtype)
    limits = {"alpha": 1.5, "beta": 0.5, "limit": 2.0}
    want = mixture(x[0], x[1], x[2:4], x[4:6], k=3, activation="swiglu", fusion=2, **limits)
    case = Case("MoE", x, k=3, activation_type="swiglu", swiglu_fusion=2, activation_alpha=1.5, activation_beta=0.5,
                swiglu_limit=2.0)
    agree(engine, case, reference=[want], tolerance=tolerance)


def test_moe_equal_scores_go_to_the_later_expert(engine):
    x = moe_inputs((6,), 5, 16, 12, False, False)
    x[1] = np.zeros_like(x[1])
    agree(engine, Case("MoE", x, k=2))


def test_moe_without_tokens_and_with_scores_that_are_no_numbers(engine):
    x = moe_inputs((0,), 4, 16, 12, False, False)
    assert engine.run(Case("MoE", x, k=2).typed([x[0]]), {f"x{i}": x[i] for i in (0, 1, 2, 4)})[0].shape == (0, 16)
    x = moe_inputs((5,), 4, 16, 12, False, False)
    x[1][:, 1:] = np.nan
    case = Case("MoE", x, k=3)
    assert engine.run(case.typed([x[0]]), case.feeds)[0].shape == (5, 16)


# --- QMoE ---


def quantized(experts, rows, columns, bits, block, zeros, dtype=F32):
    """Packed weights, scales and zero points, and the floats that they stand for."""
    levels, per_byte = 1 << bits, 8 // bits
    length = block or columns
    codes = RANDOM.integers(0, levels, (experts, rows, columns // length, length))
    scales = RANDOM.uniform(0.02, 0.1, (experts, rows, columns // length)).astype(dtype)
    points = RANDOM.integers(0, levels, scales.shape) if zeros else np.full(scales.shape, levels // 2)
    floats = ((codes - points[..., None]) * scales[..., None].astype(np.float64)).reshape(experts, rows, columns)

    def pack(values):
        values = np.concatenate([values, np.zeros((*values.shape[:-1], -values.shape[-1] % per_byte), values.dtype)], -1)
        parts = values.reshape(*values.shape[:-1], -1, per_byte) << (np.arange(per_byte) * bits)
        return parts.sum(-1).astype(np.uint8)

    if not block:
        scales, points = scales[..., 0], points[..., 0]
    return pack(codes.reshape(experts, rows, columns)), scales, pack(points) if zeros else None, floats


def qmoe(tokens, experts, hidden, inter, bits, block, zeros, activation="silu", bias=True, third=False, weights=False,
         dtype=F32, fc_bits=(None, None, None), **attributes):
    fused = activation == "swiglu" and not third
    x, scores = numbers(*tokens, hidden, dtype=dtype), numbers(int(np.prod(tokens)), experts, dtype=dtype)
    sizes = [(inter * (2 if fused else 1), hidden), (hidden, inter), (inter, hidden)]
    inputs, floats, points = [x, scores], [], []
    for (rows, columns), own in list(zip(sizes, fc_bits))[: 3 if third else 2]:
        packed, scales, zero, wide = quantized(experts, rows, columns, own or bits, block, zeros, dtype)
        added = numbers(experts, rows, scale=0.3, dtype=dtype) if bias else None
        inputs += [packed, scales, added]
        floats.append((wide, added))
        points.append(zero)
    inputs += [None] * (11 - len(inputs)) + points + [None] * (3 - len(points))
    if weights:
        inputs.append(RANDOM.uniform(0.1, 1, scores.shape).astype(dtype))
    for name, own in zip(("fc1", "fc2", "fc3"), fc_bits):
        if own:
            attributes[name + "_expert_weight_bits"] = own
    case = Case("QMoE", inputs, expert_weight_bits=bits, activation_type=activation, block_size=block or None, **attributes)
    return case, inputs, floats


@pytest.mark.parametrize("bits", [4, 8])
@pytest.mark.parametrize("block", [0, 16, 32])
@pytest.mark.parametrize("zeros", [False, True])
@pytest.mark.parametrize("activation", ACTIVATIONS)
def test_qmoe(engine, bits, block, zeros, activation):
    fused = {"swiglu_fusion": 1, "activation_alpha": 1.702, "activation_beta": 1.0} if activation == "swiglu" else {}
    for tokens, experts, hidden, inter, k in [((1,), 4, 64, 32, 2), ((2, 9), 5, 32, 96, 3), ((290,), 2, 32, 32, 1)]:
        case, *_ = qmoe(tokens, experts, hidden, inter, bits, block, zeros, activation, k=k, **fused)
        agree(engine, case, tolerance=1e-4)


@pytest.mark.parametrize("bits", [2, 4, 8])
@pytest.mark.parametrize("block", [0, 16])
def test_qmoe_narrow_floats_and_given_weights(engine, bits, block):
    for normalize in (0, 1):
        case, inputs, floats = qmoe((3, 5), 4, 32, 48, bits, block, True, weights=True, dtype=F16, k=2,
                                    normalize_routing_weights=normalize)
        want = mixture(inputs[0], inputs[1], *floats, k=2, activation="silu", weights=inputs[14], normalize=normalize)
        agree(engine, case, reference=[want], tolerance=3e-3)
        if bits != 2:
            agree(engine, case, tolerance=5e-3)


@pytest.mark.parametrize("activation", ["silu", "swiglu"])
@pytest.mark.parametrize("fc_bits", [(None, None, None), (4, 8, 2)])
def test_qmoe_third_layer(engine, activation, fc_bits):
    case, inputs, floats = qmoe((3, 5), 4, 32, 48, 8, 16, True, activation, third=True, k=2, fc_bits=fc_bits)
    want = mixture(inputs[0], inputs[1], *floats, k=2, activation=activation, normalize=True)
    agree(engine, case, reference=[want], tolerance=1e-4)


def test_qmoe_rows_of_odd_sizes(engine):
    for bits, hidden, inter in [(4, 22, 34), (8, 7, 13), (2, 20, 12), (4, 130, 66)]:
        case, inputs, floats = qmoe((5,), 3, hidden, inter, bits, 0, True, k=2)
        want = mixture(inputs[0], inputs[1], *floats, k=2, activation="silu", normalize=True)
        agree(engine, case, reference=[want], tolerance=1e-4)


# --- what is wrong ---


@pytest.mark.parametrize("change, words", [
    (lambda x: x.__setitem__(0, x[0][0]), "two or three dimensions"),
    (lambda x: x.__setitem__(1, x[1][:-1]), "router_probs must have the shape"),
    (lambda x: x.__setitem__(1, x[1][:, :1]), "k is 2, but there are 1 experts"),
    (lambda x: x.__setitem__(2, x[2][:-1]), "fc1_experts_weights must have the shape"),
    (lambda x: x.__setitem__(2, x[2][:, :, :-1]), "fc1_experts_weights must have the shape"),
    (lambda x: x.__setitem__(3, x[3][:, :-1]), "fc1_experts_bias must have the shape"),
    (lambda x: x.__setitem__(4, x[4][:, :-1]), "fc2_experts_weights"),
    (lambda x: x.__setitem__(4, x[4][0]), "fc2_experts_weights must have three dimensions"),
    (lambda x: x.__setitem__(5, x[5][:-1]), "fc2_experts_bias must have the shape"),
])
@pytest.mark.parametrize("free", [False, True])
def test_wrong_sizes(engine, change, words, free):
    inputs = moe_inputs((5,), 4, 16, 24, False, True)
    change(inputs)
    case = Case("MoE", inputs, k=2, free=free)
    refused(engine, case, words, [numbers(5, 16)])


@pytest.mark.parametrize("place", [2, 3, 4, 5, 6, 7, 11, 12, 14])
@pytest.mark.parametrize("free", [False, True])
def test_wrong_sizes_of_quantised_experts(engine, place, free):
    _, inputs, _ = qmoe((5,), 4, 32, 48, 4, 16, True, weights=True)
    inputs[place] = np.ascontiguousarray(inputs[place][..., :-1])
    case = Case("QMoE", inputs, k=2, block_size=16, activation_type="silu", free=free)
    refused(engine, case, "must have the shape|do not fit", [numbers(5, 32)])


@pytest.mark.parametrize("attributes, words", [
    ({"k": 0}, "k must be at least 1"), ({"k": 9}, "k is 9"), ({"activation_type": "tanh"}, "activation_type must be"),
    ({"activation_type": "swiglu"}, "swiglu needs"), ({"swiglu_fusion": 3}, "swiglu_fusion must be"),
    ({"use_sparse_mixer": 1}, "use_sparse_mixer"),
])
def test_wrong_attributes(engine, attributes, words):
    refused(engine, Case("MoE", moe_inputs((5,), 4, 16, 24, False, True), **attributes), words, [numbers(5, 16)])


@pytest.mark.parametrize("attributes, words", [
    ({"block_size": 12}, "power of two"), ({"block_size": 64}, "must divide"), ({"expert_weight_bits": 3}, "bits of weights"),
    ({"quant_type": "fp8"}, "quant_type 'fp8'"), ({"weights_prepacked": 1}, "weights_prepacked"),
])
def test_wrong_attributes_of_quantised_experts(engine, attributes, words):
    _, inputs, _ = qmoe((5,), 4, 32, 48, 4, 16, True)
    case = Case("QMoE", inputs, **{"k": 2, "block_size": 16, **attributes})
    refused(engine, case, words, [numbers(5, 32)])
