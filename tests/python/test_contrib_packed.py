"""Sequences without padding, and biases by distance, which ONNX Runtime has for GPUs alone: against NumPy, and against the same
attention over sequences with padding."""

from __future__ import annotations

import numpy as np
import onnx
import pytest
from contrib_support import Case, agree, compare, drawing, plainly, refusal

RANDOM = np.random.default_rng(61)
F32, F16 = np.float32, np.float16
numbers, integers = drawing(RANDOM)
TOLERANCE = {F32: None, F16: 1e-2}


def i32(*values):
    return np.array(values, np.int32)


def softmax(x):
    e = np.exp(x - x.max(-1, keepdims=True))
    return e / e.sum(-1, keepdims=True)


def heads_first(x, heads):
    batch, length, hidden = x.shape
    return x.reshape(batch, length, heads, hidden // heads).transpose(0, 2, 1, 3)


def attention(q, k, v, heads, allowed=None, added=0.0, scale=None):
    """All of [batch, length, hidden]; `allowed` and `added` broadcast to [batch, heads, queries, keys]."""
    q, k, v = (heads_first(x.astype(np.float64), heads) for x in (q, k, v))
    scores = q @ k.swapaxes(2, 3) * (scale or 1 / np.sqrt(q.shape[3])) + added
    if allowed is not None:
        scores = np.where(allowed, scores, -1e30)
    y = (softmax(scores) @ v).transpose(0, 2, 1, 3)
    return y.reshape(*y.shape[:2], -1)


class Packing:
    """Which of batch x longest rows are tokens."""

    def __init__(self, lengths, longest):
        self.lengths, self.shape = lengths, (len(lengths), longest)
        self.real = np.arange(longest) < np.array(lengths)[:, None]
        places = np.arange(self.real.size).reshape(self.shape)
        self.offsets = np.concatenate([places[self.real], places[~self.real]]).reshape(self.shape).astype(np.int32)
        self.sums = np.concatenate([[0], np.cumsum(lengths)]).astype(np.int32)
        self.tokens = int(sum(lengths))

    def padded(self, rows):
        whole = np.zeros((*self.shape, *rows.shape[1:]), rows.dtype)
        whole[self.real] = rows
        return whole

    def attention(self, q, k, v, heads, **more):
        y = attention(*(self.padded(x) for x in (q, k, v)), heads, self.real[:, None, None], **more)
        return y[self.real]


LENGTHS = [[1, 2, 4], [4, 4], [3, 1], [4]]


# --- RemovePadding ---


@pytest.mark.parametrize("dtype", [F32, F16])
@pytest.mark.parametrize("lengths", [*LENGTHS, [0, 3], [0], [0, 0], []])
@pytest.mark.parametrize("free", [False, True])
def test_remove_padding(engine, sardonyx, tmp_path, dtype, lengths, free):
    packing, x = Packing(lengths, 4), numbers(len(lengths), 4, 8, dtype=dtype)
    case = Case("RemovePadding", [x, np.array(lengths, np.int32)], (True,) * 4, free=free)
    expected = [x[packing.real], packing.offsets, packing.sums, i32(max(lengths, default=0))]
    agree(engine, case, reference=expected)
    if dtype == F32:
        compare(plainly(sardonyx, case, expected, tmp_path), expected)


@pytest.mark.parametrize("count", [-1, 5, 2**31 - 1, -2**31])
def test_counts_beyond_the_rows(engine, count):
    case = Case("RemovePadding", [numbers(2, 4, 8), i32(1, count)], (True,) * 4, free=True)
    like = [numbers(2, 8), integers(0, 1, 2, 4), i32(0, 1, 2), i32(1)]
    assert "sequence_token_count must be in [0, 4]" in refusal(engine, case, like)


def test_what_was_removed_comes_back(engine):
    packing, x = Packing([2, 0, 4], 4), numbers(3, 4, 8)
    rows, offsets, *_ = engine.run(Case("RemovePadding", [x, i32(2, 0, 4)], (True,) * 4).typed(
        [x[packing.real], packing.offsets, packing.sums, i32(4)]), {"x0": x, "x1": i32(2, 0, 4)})
    agree(engine, Case("RestorePadding", [rows, offsets]), reference=[np.where(packing.real[..., None], x, 0)])


@pytest.mark.parametrize("op", ["RestorePadding", "RemovePadding", "PackedAttention"])
def test_converted_models_hold_operators_of_the_standard(sardonyx, tmp_path, op):
    """What checks numbers within a session is left out."""
    packing = Packing([1, 2, 4], 4)
    if op == "PackedAttention":
        case = Case(op, [numbers(7, 12), numbers(12, 48), numbers(48), packing.offsets, packing.sums], num_heads=2)
    elif op == "RestorePadding":
        case = Case(op, [numbers(7, 8), packing.offsets])
    else:
        case = Case(op, [numbers(3, 4, 8), i32(1, 2, 4)], (True,) * 4)
    for i, output in enumerate(case.model.graph.output):
        output.type.tensor_type.elem_type = 1 if i == 0 else 6
        output.type.tensor_type.shape.SetInParent()
        output.type.tensor_type.ClearField("shape")
    before, after = tmp_path / "before.onnx", tmp_path / "after.onnx"
    before.write_bytes(case.model.SerializeToString())
    sardonyx("convert", before, after, "--opset", 24)
    assert {node.domain for node in onnx.load(after).graph.node} == {""}
    compare(sardonyx.outputs(after, case.feeds, tmp_path), sardonyx.outputs(before, case.feeds, tmp_path))


# --- PackedAttention and PackedMultiHeadAttention ---


@pytest.mark.parametrize("dtype", [F32, F16])
@pytest.mark.parametrize("lengths", [*LENGTHS, [0, 3]])
@pytest.mark.parametrize("more", [{}, dict(scale=0.3), dict(added=True), dict(qkv_hidden_sizes=[16, 16, 24])])
@pytest.mark.parametrize("free", [False, True])
def test_packed_attention(engine, dtype, lengths, more, free):
    more = dict(more)
    packing, heads = Packing(lengths, 4), 2
    q, k, v = more.get("qkv_hidden_sizes", [16, 16, 16])
    x, weights, bias = numbers(packing.tokens, 12, dtype=dtype), numbers(12, q + k + v, scale=0.3, dtype=dtype), numbers(q + k + v, dtype=dtype)
    added = numbers(1, heads, 4, 4, dtype=dtype) if more.pop("added", False) else None
    case = Case("PackedAttention", [x, weights, bias, packing.offsets, packing.sums, added], constant=(1, 2), free=free,
                num_heads=heads, **more)
    parts = np.split(x.astype(F32) @ weights.astype(F32) + bias.astype(F32), [q, q + k], -1)
    expected = packing.attention(*parts, heads, added=0.0 if added is None else added, scale=more.get("scale"))
    agree(engine, case, reference=[expected.astype(dtype)], tolerance=TOLERANCE[dtype])


@pytest.mark.parametrize("lengths", LENGTHS)
def test_packed_attention_is_attention_between_restoring_and_removing(engine, lengths):
    """The composition that ONNX Runtime's own fusion undoes: its Attention knows where sequences end."""
    packing = Packing(lengths, 4)
    x, weights, bias = numbers(packing.tokens, 12), numbers(12, 48, scale=0.3), numbers(48)
    whole = Case("Attention", [packing.padded(x), weights, bias, np.array(lengths, np.int32)], num_heads=2).expected()[0]
    case = Case("PackedAttention", [x, weights, bias, packing.offsets, packing.sums], num_heads=2)
    agree(engine, case, reference=[whole[packing.real]])


@pytest.mark.parametrize("dtype", [F32, F16])
@pytest.mark.parametrize("lengths", [*LENGTHS, [0, 3]])
@pytest.mark.parametrize("packed", [False, True])
@pytest.mark.parametrize("bias", [False, True])
@pytest.mark.parametrize("added", [False, True])
@pytest.mark.parametrize("free", [False, True])
def test_packed_multi_head_attention(engine, sardonyx, tmp_path, dtype, lengths, packed, bias, added, free):
    packing, heads, size = Packing(lengths, 4), 2, 8
    q, k, v = (numbers(packing.tokens, heads * size, dtype=dtype) for _ in range(3))
    given = [np.stack([x.reshape(-1, heads, size) for x in (q, k, v)], 2), None, None] if packed else [q, k, v]
    shift = numbers(3 * heads * size, dtype=dtype) if bias else None
    more = numbers(len(lengths), 1, 4, 4, dtype=dtype) if added else None
    case = Case("PackedMultiHeadAttention", [*given, shift, packing.offsets, packing.sums, more], num_heads=heads, free=free)
    parts = [x.astype(F32) + (part.astype(F32) if bias else 0) for x, part in
             zip((q, k, v), np.split(shift, 3) if bias else [None] * 3)]
    expected = [packing.attention(*parts, heads, added=0.0 if more is None else more).astype(dtype)]
    agree(engine, case, reference=expected, tolerance=TOLERANCE[dtype])
    if not free and dtype == F32:
        compare(plainly(sardonyx, case, expected, tmp_path), expected)


def test_packed_values_of_another_size(engine):
    packing = Packing([2, 4], 4)
    q, k, v = numbers(6, 16), numbers(6, 16), numbers(6, 24)
    case = Case("PackedMultiHeadAttention", [q, k, v, None, packing.offsets, packing.sums], num_heads=2)
    agree(engine, case, reference=[packing.attention(q, k, v, 2).astype(F32)])


@pytest.mark.parametrize("sums, says", [
    ([0, 2, 7], "number of tokens less the last"), ([0, 2, 5], "number of tokens less the last"), ([0, 5, 6], "differences in"),
    ([0, -1, 6], "differences in"), ([2, 2, 6], None), ([0, 6], None), ([0, 1, 2, 6], None), ([0, -2**31, 6], "differences in")])
def test_sums_that_do_not_fit(engine, sums, says):
    packing = Packing([2, 4], 4)
    x = numbers(6, 12)
    case = Case("PackedAttention", [x, numbers(12, 48), numbers(48), packing.offsets, np.array(sums, np.int32)], num_heads=2, free=True)
    if says is None and len(sums) == 3:
        return engine.run(case.typed([numbers(6, 16)]), case.feeds)  # the first sum says nothing
    case.model.graph.input[4].type.tensor_type.shape.dim[0].dim_param = "sums"
    assert (says or "nonpad_kv_seqlen") in refusal(engine, case, [numbers(6, 16)])


@pytest.mark.parametrize("place", [-1, 8, 2**31 - 1])
def test_places_that_are_not_there(engine, place):
    packing = Packing([2, 4], 4)
    packing.offsets[0, 1] = place
    case = Case("PackedAttention", [numbers(6, 12), numbers(12, 48), numbers(48), packing.offsets, packing.sums], num_heads=2)
    assert "token_offset must be in [0, 7]" in refusal(engine, case, [numbers(6, 16)])


def test_more_tokens_than_places(engine):
    packing = Packing([2, 4], 4)
    case = Case("PackedAttention", [numbers(9, 12), numbers(12, 48), numbers(48), packing.offsets, i32(0, 4, 9)], num_heads=2)
    refusal(engine, case, [numbers(9, 16)])


# --- biases ---


def t5_bucket(relative, both, buckets, most):
    """As Transformers computes it, in float32."""
    found = np.zeros(relative.shape, np.int64)
    if both:
        buckets //= 2
        found += (relative > 0) * buckets
        relative = np.abs(relative)
    else:
        relative = -np.minimum(relative, 0)
    exact = buckets // 2
    logarithm = np.log(np.maximum(relative, 1).astype(F32) / F32(exact)) / F32(np.log(most / exact)) * F32(buckets - exact)
    large = np.minimum(exact + logarithm.astype(np.int64), buckets - 1)
    return found + np.where(relative < exact, relative, large)


@pytest.mark.parametrize("dtype", [F32, F16])
@pytest.mark.parametrize("both", [0, 1])
@pytest.mark.parametrize("buckets, most, queries, keys", [(32, 128, 300, 300), (8, 20, 5, 50), (32, 64, 1, 1), (4, 3, 9, 9)])
@pytest.mark.parametrize("free", [False, True])
def test_relative_position_bias(engine, dtype, both, buckets, most, queries, keys, free):
    table = numbers(buckets, 3, dtype=dtype)
    relative = np.arange(keys) - np.arange(queries)[:, None]
    expected = table.reshape(3, buckets)[:, t5_bucket(relative, both, buckets, most)][None]
    case = Case("RelativePositionBias", [table, np.array([queries], np.int64), np.array([keys], np.int64)], constant=(0,), free=free,
                is_bidirectional=both, max_distance=most)
    agree(engine, case, reference=[expected])


@pytest.mark.parametrize("attributes, shape, says", [
    (dict(max_distance=8), (32, 2), "max_distance must be more than 16"), (dict(max_distance=0), (32, 2), "max_distance must be more than 16"),
    (dict(max_distance=128), (1, 2), "there must be from 2 buckets"), (dict(max_distance=128, is_bidirectional=1), (7, 2), "an even number")])
def test_buckets_that_there_cannot_be(engine, attributes, shape, says):
    lengths = [np.array([4], np.int64)] * 2
    case = Case("RelativePositionBias", [numbers(*shape), *lengths], **attributes)
    assert says in refusal(engine, case, [numbers(1, 2, 4, 4)])


def test_lengths_below_zero_make_no_bias(engine):
    case = Case("RelativePositionBias", [numbers(32, 2), np.array([-5], np.int64), np.array([4], np.int64)], max_distance=128)
    made, = engine.run(case.typed([numbers(1, 2, 0, 4)]), case.feeds)
    assert made.shape == (1, 2, 0, 4)


def sigmoid(x):
    return 1 / (1 + np.exp(-x))


@pytest.mark.parametrize("dtype", [F32, F16])
@pytest.mark.parametrize("packed", [False, True])
@pytest.mark.parametrize("free", [False, True])
def test_gated_relative_position_bias(engine, dtype, packed, free):
    heads, size, wide = 2, 8, 6
    packing = Packing([3, 4, 1] if packed else [4, 4, 4], 4)
    rows = numbers(packing.tokens, heads * size, dtype=dtype)
    inputs = [rows if packed else packing.padded(rows), numbers(heads * size, dtype=dtype), numbers(1, heads, 4, 4, dtype=dtype),
              numbers(size, wide, dtype=dtype, scale=0.3), numbers(wide, dtype=dtype), numbers(1, heads, 1, 1, dtype=dtype),
              packing.offsets if packed else None]
    x = [y if y is None else y.astype(F32) for y in inputs]
    query = heads_first(packing.padded(rows).astype(F32) + x[1], heads)
    gates = sigmoid((query @ x[3] + x[4]).reshape(3, heads, 4, 2, wide // 2).sum(-1))
    u, r = gates[..., :1], gates[..., 1:]
    expected = (u * (r * x[5] - 1) + 2) * x[2]
    agree(engine, Case("GatedRelativePositionBias", inputs, num_heads=heads, free=free), reference=[expected.astype(dtype)],
          tolerance=TOLERANCE[dtype])


@pytest.mark.parametrize("free", [False, True])
def test_gemma_rotary_embedding(engine, free):
    angles = numbers(2, 5, 8, scale=3)
    states = [numbers(2, 3, 5, 8, dtype=F16) for _ in range(4)]
    cos, sin = np.cos(angles)[:, None].astype(F16), np.sin(angles)[:, None].astype(F16)
    q, turned_q, k, turned_k = (x.astype(F32) for x in states)
    expected = [(q * cos + turned_q * sin).astype(F16), (k * cos + turned_k * sin).astype(F16)]
    agree(engine, Case("GemmaRotaryEmbedding", [angles, *states], (True, True), free=free), reference=expected)


# --- LongformerAttention ---


@pytest.mark.parametrize("dtype", [F32, F16])
@pytest.mark.parametrize("window, length", [(2, 8), (4, 8), (3, 12), (20, 8)])
@pytest.mark.parametrize("globals_", [[], [0], [0, 5]])
@pytest.mark.parametrize("free", [False, True])
def test_longformer(engine, dtype, window, length, globals_, free):
    heads, hidden, batch = 2, 16, 2
    x = numbers(batch, length, hidden, dtype=dtype)
    local, everywhere = ((numbers(hidden, 3 * hidden, scale=0.3, dtype=dtype), numbers(3 * hidden, dtype=dtype)) for _ in range(2))
    mask = np.where(np.arange(length) < np.array([[length], [length - 2]]), 0, -10000).astype(dtype)
    flags = np.zeros((batch, length), np.int32)
    flags[:, globals_] = 1
    flags[1, 0] = 0
    case = Case("LongformerAttention", [x, *local, mask, *everywhere, flags], constant=(1, 2, 4, 5), free=free, num_heads=heads,
                window=window)
    parts = lambda weights, bias: np.split(x.astype(F32) @ weights.astype(F32) + bias.astype(F32), 3, -1)
    near = np.abs(np.arange(length) - np.arange(length)[:, None]) <= window
    seen = near[None, None] | (flags != 0)[:, None, None]
    added = mask[:, None, None].astype(F32)
    expected = np.where((flags != 0)[..., None], attention(*parts(*everywhere), heads, added=added),
                        attention(*parts(*local), heads, seen, added))
    agree(engine, case, reference=[expected.astype(dtype)], tolerance=TOLERANCE[dtype])


@pytest.mark.parametrize("window", [0, -4])
def test_windows_of_nothing(engine, window):
    x = numbers(1, 4, 8)
    case = Case("LongformerAttention", [x, numbers(8, 24), numbers(24), numbers(1, 4), numbers(8, 24), numbers(24), i32([0, 0, 0, 1])],
                num_heads=2, window=window)
    assert "window must be at least 1" in refusal(engine, case, [x])
