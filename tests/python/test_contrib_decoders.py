"""Attention of com.microsoft whose past and present share a buffer, or whose beams read each other's past: against ONNX
Runtime where its CPU provider has it, else against NumPy."""

from __future__ import annotations

import numpy as np
import pytest
from contrib_support import Case, agree, compare, drawing, plainly, refusal
from onnx import TensorProto

RANDOM = np.random.default_rng(83)
F32, F16 = np.float32, np.float16
numbers, integers = drawing(RANDOM)

ELEMENT = {np.dtype(F32): TensorProto.FLOAT, np.dtype(F16): TensorProto.FLOAT16}
VALUES = {np.dtype(F32): None, np.dtype(F16): 1e-2}


def i32(*values):
    return np.array(values, np.int32)


def heads_first(x, heads):
    batch, length, hidden = x.shape
    return x.reshape(batch, length, heads, hidden // heads).transpose(0, 2, 1, 3)


def softmax(x):
    e = np.exp(x - x.max(-1, keepdims=True))
    return e / e.sum(-1, keepdims=True)


def written(past, new, at):
    """The buffer [batch, heads, rows, size] with the new rows from `at` on."""
    present = past.copy()
    present[:, :, at:at + new.shape[2]] = new
    return present


def of_beams(present, chosen, at):
    """Rows before `at` are those of the beams that `chosen` [batch, beams, rows] names."""
    width, read = chosen.shape[1], present.copy()
    for b in range(len(present)):
        for t in range(at):
            read[b, :, t] = present[b // width * width + chosen[b // width, b % width, t], :, t]
    return read


def attention(q, k, v, past_k, past_v, at, heads, chosen=None, mask=None, bias=None, causal=False, scale=None):
    """Y, the present keys and values, and the scores; all computed in double."""
    q, k, v = (heads_first(x.astype(np.float64), heads) for x in (q, k, v))
    present_k, present_v = written(past_k.astype(np.float64), k, at), written(past_v.astype(np.float64), v, at)
    total = at + q.shape[2]
    read_k, read_v = (present_k, present_v) if chosen is None else (of_beams(x, chosen, at) for x in (present_k, present_v))
    scores = q @ read_k[:, :, :total].swapaxes(2, 3) * (scale or 1 / np.sqrt(q.shape[3]))
    if bias is not None:
        scores = scores + bias
    if mask is not None:
        scores = scores + np.where(mask[:, None, None], 0, -10000.0)
    if causal:
        scores = np.where(np.arange(total) <= at + np.arange(q.shape[2])[:, None], scores, -np.inf)
    y = (softmax(scores) @ read_v[:, :, :total]).transpose(0, 2, 1, 3)
    return y.reshape(*y.shape[:2], -1), present_k, present_v, scores


def with_scores(case, dtype=F32):
    """ONNX Runtime infers no type for the scores: it is declared."""
    case.model.graph.output[3].type.tensor_type.elem_type = ELEMENT[np.dtype(dtype)]
    return case


# --- MultiHeadAttention ---


def multi_head(length, past, rows, dtype=F32, batch=2, heads=2, size=8, mask=None, bias=False, added=False, width=None,
               free=False, constant=(), **attributes):
    q, k, v = (numbers(batch, length, heads * size, dtype=dtype) for _ in range(3))
    total = past + length
    given = {None: None, "keys": (np.arange(total) < total - np.arange(batch)[:, None] % total).astype(np.int32),
             "ends": np.maximum(1, total - np.arange(batch)).astype(np.int32)}[mask]
    pasts = [numbers(batch, heads, rows, size, dtype=dtype) for _ in range(2)]
    chosen = integers(0, width, batch // width, width, rows) if width else None
    inputs = [q, k, v, numbers(3 * heads * size, dtype=dtype) if bias else None, given,
              numbers(1, heads, length, total, dtype=dtype) if added else None, *pasts, i32(past), chosen]
    return with_scores(Case("MultiHeadAttention", inputs, (True,) * 4, num_heads=heads, free=free, constant=constant,
                            **attributes), dtype), inputs


@pytest.mark.parametrize("length, past, rows", [(1, 3, 8), (2, 3, 8), (4, 0, 6), (3, 3, 6), (1, 5, 6)])
@pytest.mark.parametrize("mask", [None, "keys", "ends"])
@pytest.mark.parametrize("bias", [False, True])
@pytest.mark.parametrize("free", [False, True])
def test_a_past_in_a_buffer(engine, length, past, rows, mask, bias, free):
    case, _ = multi_head(length, past, rows, mask=mask, bias=bias, added=bias, free=free)
    agree(engine, case)


@pytest.mark.parametrize("length, past", [(3, 4), (1, 4), (4, 0)])
def test_a_causal_past_in_a_buffer(engine, sardonyx, tmp_path, length, past):
    case, inputs = multi_head(length, past, 9, unidirectional=1)
    expected = case.expected()
    ours = engine.run(case.typed(expected), case.feeds)
    compare(ours[:3], expected[:3])
    seen = np.isfinite(ours[3])
    assert (seen == (np.arange(past + length) <= past + np.arange(length)[:, None])).all()
    compare([ours[3][seen]], [expected[3][seen]])
    compare(plainly(sardonyx, case, expected, tmp_path), ours)


@pytest.mark.parametrize("past", [0, 1, 5])
@pytest.mark.parametrize("bias", [False, True])
@pytest.mark.parametrize("free", [False, True])
def test_beams_of_a_buffer(engine, past, bias, free):
    case, _ = multi_head(1, past, 6, batch=6, width=3, mask="keys", bias=bias, free=free)
    agree(engine, case)


def test_beams_say_what_several_queries_read(engine, sardonyx, tmp_path):
    """ONNX Runtime reads each beam's own rows there."""
    case, (q, k, v, _, _, _, past_k, past_v, _, chosen) = multi_head(2, 3, 6, batch=4, width=2)
    expected = [x.astype(F32) for x in attention(q, k, v, past_k, past_v, 3, 2, chosen)]
    agree(engine, case, reference=expected)
    compare(plainly(sardonyx, case, expected, tmp_path), expected)


@pytest.mark.parametrize("length, past, rows", [(1, 3, 8), (5, 3, 12), (1, 300, 600), (70, 200, 600)])
@pytest.mark.parametrize("what", [np.nan, np.inf])
@pytest.mark.parametrize("unidirectional", [0, 1])
@pytest.mark.parametrize("scores", [False, True])
def test_rows_behind_the_last_may_hold_anything(engine, length, past, rows, what, unidirectional, scores):
    """As in memory that nobody has set."""
    case, inputs = multi_head(length, past, rows, unidirectional=unidirectional)
    if not scores:
        case = Case("MultiHeadAttention", inputs, (True, True, True), num_heads=2, unidirectional=unidirectional)
    for name in ("x6", "x7"):
        case.feeds[name][:, :, past + length:] = what
    expected = case.expected()
    ours = engine.run(case.typed(expected), case.feeds)
    compare(ours[:1], expected[:1])
    assert np.isfinite(ours[0]).all()
    for mine, yours in zip(ours[1:3], expected[1:3]):
        np.testing.assert_array_equal(mine, yours)


def test_a_buffer_of_float16(engine):
    case, (q, k, v, _, _, _, past_k, past_v, _, chosen) = multi_head(1, 4, 6, dtype=F16, batch=4, width=2)
    agree(engine, case, reference=[x.astype(F16) for x in attention(q, k, v, past_k, past_v, 4, 2, chosen)], tolerance=1e-2)


def test_a_length_that_the_file_holds(engine):
    case, _ = multi_head(2, 3, 8, constant=(8,))
    agree(engine, case)


@pytest.mark.parametrize("past", [-1, 7, 2**31 - 1, -2**31])
@pytest.mark.parametrize("free", [False, True])
@pytest.mark.parametrize("constant", [(), (8,)])
def test_lengths_that_are_not_in_the_buffer(engine, past, free, constant):
    case, inputs = multi_head(2, 3, 8, free=free)
    like = case.expected()
    inputs[8] = i32(past)
    case = with_scores(Case("MultiHeadAttention", inputs, (True,) * 4, num_heads=2, free=free, constant=constant))
    assert "write_indices must be in [0, 6]" in refusal(engine, case, like)


def test_more_lengths_than_one(engine):
    case, _ = multi_head(2, 3, 8, free=True)
    like = case.expected()
    case.feeds["x8"] = i32(3, 3, 3)
    case.model.graph.input[-1].type.tensor_type.shape.dim[0].dim_param = "other"
    refusal(engine, case, like)


@pytest.mark.parametrize("beam", [-1, 2, 2**31 - 1, -2**31])
def test_beams_that_are_not_there(engine, beam):
    case, inputs = multi_head(1, 3, 6, batch=4, width=2)
    like = [x.astype(F32) for x in attention(*inputs[:3], *inputs[6:8], 3, 2, inputs[9])]
    case.feeds["x9"][0, 1, 2] = beam
    assert "beams that cache_indirection names must be in [0, 1]" in refusal(engine, case, like)
    # What stands behind the past says nothing.
    case.feeds["x9"][0, 1, 2], case.feeds["x9"][0, 1, 3:] = 0, beam
    chosen = case.feeds["x9"]
    agree(engine, case, reference=[x.astype(F32) for x in attention(*inputs[:3], *inputs[6:8], 3, 2, chosen)])


@pytest.mark.parametrize("shape", [(2, 2, 5), (1, 2, 6), (4, 1, 6, 1), (1, 0, 6), (4, 0, 6)])
def test_beams_of_wrong_sizes(engine, shape):
    case, inputs = multi_head(1, 3, 6, batch=4, width=2)
    like = [x.astype(F32) for x in attention(*inputs[:3], *inputs[6:8], 3, 2, inputs[9])]
    inputs[9] = np.zeros(shape, np.int32)
    case = with_scores(Case("MultiHeadAttention", inputs, (True,) * 4, num_heads=2))
    if shape == (4, 1, 6, 1):  # as many numbers as [4, 1, 6], which are four batches of one beam
        return
    refusal(engine, case, like)


# --- DecoderMaskedMultiHeadAttention ---


def masked(past, rows, dtype=F32, batch=4, heads=2, size=8, width=None, mask=False, added=None, bias=False, packed=False,
           free=False, **attributes):
    q, k, v = (numbers(batch, 1, heads * size, dtype=dtype) for _ in range(3))
    total = past + 1
    chosen = integers(0, width, batch // width, width, rows) if width else None
    seen = integers(0, 2, batch, total) if mask else None
    if mask:
        seen[:, 0] = 1
    inputs = [np.concatenate([q, k, v], -1) if packed else q, None if packed else k, None if packed else v, seen,
              numbers(*added, 1, total, dtype=dtype) if added else None,
              *(numbers(batch, heads, rows, size, dtype=dtype) for _ in range(2)), i32(past), i32(width or 1), chosen,
              numbers(3 * heads * size, dtype=dtype) if bias else None]
    case = Case("DecoderMaskedMultiHeadAttention", inputs, (True,) * 4, num_heads=heads, past_present_share_buffer=1,
                output_qk=1, free=free, **attributes)
    if bias:
        q, k, v = (x + part for x, part in zip((q, k, v), np.split(inputs[10], 3)))
    reference = attention(q, k, v, *inputs[5:7], past, heads, chosen, seen, inputs[4], scale=attributes.get("scale"))
    return with_scores(case, dtype), [x.astype(dtype) for x in reference], inputs


@pytest.mark.parametrize("past, rows", [(3, 8), (0, 4), (7, 8)])
@pytest.mark.parametrize("width", [None, 2, 4])
@pytest.mark.parametrize("more", [{}, dict(mask=True), dict(added=(1, 2)), dict(added=(1, 1)), dict(bias=True, scale=0.3)])
@pytest.mark.parametrize("free", [False, True])
def test_one_token_of_a_decoder(engine, past, rows, width, more, free):
    case, reference, _ = masked(past, rows, width=width, free=free, **more)
    compare(case.expected(), reference)
    agree(engine, case, reference=reference)


@pytest.mark.parametrize("more", [dict(packed=True), dict(packed=True, bias=True, width=2), dict(dtype=F16, width=2),
                                  dict(added=(4, 2), width=2), dict(packed=True, dtype=F16, free=True)])
def test_one_token_as_the_cpu_provider_does_not_do_it(engine, sardonyx, tmp_path, more):
    """Packed operands, float16; and a bias for each beam, of which it takes that of beam batch / beams."""
    case, reference, _ = masked(3, 8, **more)
    tolerance = VALUES[np.dtype(more.get("dtype", F32))]
    agree(engine, case, reference=reference, tolerance=tolerance)
    compare(plainly(sardonyx, case, reference, tmp_path), reference, tolerance=tolerance)


@pytest.mark.parametrize("bias", [False, True])
@pytest.mark.parametrize("mask", [False, True])
def test_one_token_of_another_sequence(engine, bias, mask):
    q, k, v = numbers(3, 1, 16), numbers(3, 2, 5, 8), numbers(3, 2, 5, 8)
    seen = (np.arange(5) < i32(5, 2, 3)[:, None]).astype(np.int32) if mask else None
    case = Case("DecoderMaskedMultiHeadAttention", [q, k, v, seen], (True, False, False, True), num_heads=2, output_qk=1)
    case.model.graph.output[1].type.tensor_type.elem_type = TensorProto.FLOAT
    agree(engine, case)


def test_beam_width_is_that_of_the_beams(engine):
    for width, beams, says in [(2, None, "without cache_indirection, must be in [0, 0]"),
                               (3, 2, "less the beams of cache_indirection must be in [0, 0]"), (-1, 2, "must be in [0, 0]")]:
        case, reference, inputs = masked(3, 8, width=beams)
        case.feeds["x8"] = i32(width)
        assert says in refusal(engine, case, reference)


@pytest.mark.parametrize("past", [-1, 8, 2**31 - 1])
@pytest.mark.parametrize("free", [False, True])
def test_one_token_beyond_the_buffer(engine, past, free):
    case, reference, _ = masked(3, 8, width=2, free=free)
    case.feeds["x7"] = i32(past)
    assert "write_indices must be in [0, 7]" in refusal(engine, case, reference)


# --- DecoderMaskedSelfAttention and Attention ---


def turned(x, at, rotated):
    """[batch, heads, length, size], the first `rotated` elements by their position."""
    half = rotated // 2
    angles = (at + np.arange(x.shape[2]))[:, None] * 10000.0 ** (-np.arange(half) / half)
    a, b = x[..., :half], x[..., half:rotated]
    cos, sin = np.cos(angles), np.sin(angles)
    return np.concatenate([a * cos - b * sin, a * sin + b * cos, x[..., rotated:]], -1)


def projected(x, weights, bias, past, at, heads, chosen=None, mask=None, added=None, causal=False, rotated=0):
    q, k, v = np.split(x.astype(np.float64) @ weights + bias, 3, -1)
    if rotated:
        flat = lambda y: y.transpose(0, 2, 1, 3).reshape(*x.shape[:2], -1)
        q, k = (flat(turned(heads_first(y, heads), at, rotated)) for y in (q, k))
    y, present_k, present_v, _ = attention(q, k, v, past[0], past[1], at, heads, chosen, mask, added, causal)
    return [y, np.stack([present_k, present_v])]


def self_attention(past, rows, dtype=F32, batch=4, heads=2, size=8, width=None, mask=False, added=False, rotary=False,
                   free=False):
    hidden, total = heads * size, past + 1
    seen = (np.arange(total) % 2 == 0).astype(np.int32)[None].repeat(batch, 0) if mask else None
    chosen = integers(0, width, batch // width, width, rows) if width else None
    inputs = [numbers(batch, 1, 12, dtype=dtype), numbers(12, 3 * hidden, scale=0.3, dtype=dtype), numbers(3 * hidden, dtype=dtype),
              seen, numbers(2, batch, heads, rows, size, dtype=dtype), numbers(1, heads, 1, total, dtype=dtype) if added else None,
              i32(past), i32(width or 1), chosen]
    case = Case("DecoderMaskedSelfAttention", inputs, (True, True), constant=(1, 2), num_heads=heads, do_rotary=int(rotary),
                past_present_share_buffer=1, free=free)
    made = projected(*inputs[:3], inputs[4], past, heads, chosen, seen, inputs[5], rotated=size if rotary else 0)
    return case, [x.astype(dtype) for x in made]


@pytest.mark.parametrize("past, rows", [(3, 8), (0, 4), (7, 8)])
@pytest.mark.parametrize("width", [None, 2])
@pytest.mark.parametrize("more", [{}, dict(mask=True), dict(added=True), dict(rotary=True), dict(dtype=F16)])
@pytest.mark.parametrize("free", [False, True])
def test_self_attention_of_one_token(engine, past, rows, width, more, free):
    case, reference = self_attention(past, rows, width=width, free=free, **more)
    agree(engine, case, reference=reference, tolerance=VALUES[np.dtype(more.get("dtype", F32))])


@pytest.mark.parametrize("past", [-1, 8])
def test_self_attention_beyond_the_buffer(engine, past):
    case, reference = self_attention(3, 8, free=True)
    case.feeds["x6"] = i32(past)
    assert "write_indices must be in [0, 7]" in refusal(engine, case, reference)


@pytest.mark.parametrize("length, past, rows", [(1, 3, 8), (3, 2, 8), (4, 0, 5), (2, 6, 8)])
@pytest.mark.parametrize("causal", [0, 1])
@pytest.mark.parametrize("rotary", [None, 0, 4])
@pytest.mark.parametrize("free", [False, True])
def test_attention_with_a_buffer(engine, sardonyx, tmp_path, length, past, rows, causal, rotary, free):
    batch, heads, size = 2, 2, 8
    inputs = [numbers(batch, length, 12), numbers(12, 48, scale=0.3), numbers(48), None, numbers(2, batch, heads, rows, size),
              None, i32(past)]
    case = Case("Attention", inputs, (True, True), constant=(1, 2), num_heads=heads, past_present_share_buffer=1,
                unidirectional=causal, do_rotary=int(rotary is not None), rotary_embedding_dim=rotary or None, free=free)
    rotated = 0 if rotary is None else rotary or size
    reference = [x.astype(F32) for x in projected(*inputs[:3], inputs[4], past, heads, causal=causal, rotated=rotated)]
    agree(engine, case, reference=reference)
    if not free:
        compare(plainly(sardonyx, case, reference, tmp_path), reference)


@pytest.mark.parametrize("past", [0, 3])
def test_attention_that_turns_beside_a_past_that_grows(engine, past):
    inputs = [numbers(2, 4, 12), numbers(12, 48, scale=0.3), numbers(48), None, numbers(2, 2, 2, past, 8) if past else None]
    case = Case("Attention", inputs, (True, True), constant=(1, 2), num_heads=2, do_rotary=1)
    room = np.concatenate([inputs[4] if past else np.zeros((2, 2, 2, 0, 8)), np.zeros((2, 2, 2, 4, 8))], 3)
    agree(engine, case, reference=[x.astype(F32) for x in projected(*inputs[:3], room, past, 2, rotated=8)])


@pytest.mark.parametrize("attributes, says", [
    (dict(do_rotary=1, rotary_embedding_dim=10), "rotary_embedding_dim must be even and at most"),
    (dict(do_rotary=1, rotary_embedding_dim=3), "rotary_embedding_dim must be even and at most"),
    (dict(do_rotary=1, rotary_embedding_dim=-2), "rotary_embedding_dim must be even and at most"),
    (dict(past_present_share_buffer=1), "past_present_share_buffer needs the input past_sequence_length")])
def test_attention_says_what_is_wrong(engine, attributes, says):
    inputs = [numbers(2, 4, 12), numbers(12, 48), numbers(48), None, numbers(2, 2, 2, 3, 8)]
    case = Case("Attention", inputs, (True, True), constant=(1, 2), num_heads=2, **attributes)
    assert says in refusal(engine, case, [numbers(2, 4, 16), numbers(2, 2, 2, 7, 8)])


# --- masks and biases that ONNX Runtime's CPU provider does not have ---


@pytest.mark.parametrize("past, buffered", [(0, False), (3, False), (3, True)])
@pytest.mark.parametrize("free", [False, True])
def test_masks_of_all_positions(engine, sardonyx, tmp_path, past, buffered, free):
    """Megatron's: rows are those of the queries' positions."""
    batch, length, heads, size, rows = 2, 4, 2, 8, 10
    whole = (RANDOM.random((batch, 1, rows, rows)) < 0.6).astype(np.int32)
    whole[..., 0] = 1
    held = numbers(2, batch, heads, 9 if buffered else past, size) if past else None
    inputs = [numbers(batch, length, 12), numbers(12, 48, scale=0.3), numbers(48), whole, held, None, i32(past) if buffered else None]
    case = Case("Attention", inputs, (True, past > 0), constant=(1, 2), num_heads=heads, free=free, past_present_share_buffer=int(buffered))
    room = np.zeros((2, batch, heads, 9, size)) if not past else held if buffered else np.concatenate([held, np.zeros((2, batch, heads, length, size))], 3)
    added = np.where(whole[:, :, past:past + length, :past + length], 0, -10000.0)
    reference = [x.astype(F32) for x in projected(*inputs[:3], room, past, heads, added=added)][:2 if past else 1]
    agree(engine, case, reference=reference)
    if not free:
        compare(plainly(sardonyx, case, reference, tmp_path), reference)


def test_masks_of_too_few_positions(engine):
    inputs = [numbers(2, 4, 12), numbers(12, 48), numbers(48), np.ones((2, 1, 3, 3), np.int32)]
    assert "must be in [0, 3]" in refusal(engine, Case("Attention", inputs, constant=(1, 2), num_heads=2), [numbers(2, 4, 16)])
    inputs[3] = np.ones((2, 1, 4, 4), np.int32)
    case = Case("Attention", inputs, constant=(1, 2), num_heads=2, unidirectional=1)
    assert "a mask of four dimensions" in refusal(engine, case, [numbers(2, 4, 16)])


@pytest.mark.parametrize("free", [False, True])
def test_a_bias_of_packed_operands(engine, free):
    q, k, v, bias = *(numbers(2, 5, 2, 8) for _ in range(3)), numbers(48)
    flat = [x.reshape(2, 5, 16) for x in (q, k, v)]
    expected = Case("MultiHeadAttention", [*flat, bias], num_heads=2).expected()
    agree(engine, Case("MultiHeadAttention", [np.stack([q, k, v], 3), None, None, bias], num_heads=2, free=free), reference=expected)
    case = Case("MultiHeadAttention", [flat[0], np.stack([k, v], 3), None, bias], num_heads=2)
    assert "a bias with packed keys and values" in refusal(engine, case, expected)
