"""GroupQueryAttention whose past is of 4 bits or float8, or keeps the last positions only."""

from __future__ import annotations

import math

import ml_dtypes
import numpy as np
import pytest
from contrib_support import Case, agree, compare, drawing, plainly, refusal

RANDOM = np.random.default_rng(47)
F32, F16, F8 = np.float32, np.float16, ml_dtypes.float8_e4m3fn
numbers, integers = drawing(RANDOM)


def i32(*values):
    return np.array(values, np.int32)


def softmax(x):
    e = np.exp(x - x.max(-1, keepdims=True))
    return e / e.sum(-1, keepdims=True)


def heads_first(x, heads):
    batch, length, hidden = x.shape
    return x.reshape(batch, length, heads, hidden // heads).transpose(0, 2, 1, 3)


# --- 4 bits ---


def unpacked(bytes_, size):
    return np.stack([bytes_ & 15, bytes_ >> 4], -1).reshape(*bytes_.shape[:-1], -1)[..., :size].astype(int) - 8


def scales(kind, size, low, high):
    return np.array([(low + high) / 2], F32) if kind == "PER_TENSOR" else RANDOM.uniform(low, high, (1, 2, 1, size)).astype(F32)


def of_four_bits(kind, length, past, total, dtype=F32, packed=False, free=False, wide=2, size=72, heads=4, ends=None, **more):
    q, k, v = (numbers(wide, length, count * size, dtype=dtype) for count in (heads, 2, 2))
    inputs = [np.concatenate([q, k, v], -1) if packed else q, None if packed else k, None if packed else v,
              *(integers(0, 256, wide, 2, past, (size + 1) // 2, dtype=np.uint8) for _ in range(2)),
              np.array(ends or [total] * wide, np.int32) - 1, i32(total), None, None, None, None, None,
              scales(kind, size, 0.2, 0.4), scales(kind, size, 0.2, 0.4)]
    attributes = {"num_heads": heads, "kv_num_heads": 2, "k_quant_type": kind, "v_quant_type": kind, "kv_cache_bit_width": 4}
    return Case("GroupQueryAttention", inputs, (True, True, True), free=free, **{**attributes, **more})


@pytest.mark.parametrize("kind", ["PER_TENSOR", "PER_CHANNEL"])
@pytest.mark.parametrize("dtype", [F32, F16])
@pytest.mark.parametrize("packed", [False, True])
@pytest.mark.parametrize("free", [False, True])
@pytest.mark.parametrize("length, past, total, wide, ends", [
    (1, 5, 6, 2, None), (6, 0, 6, 2, None), (3, 4, 7, 1, None), (1, 9, 9, 2, [9, 5]), (1, 16, 6, 2, None)])
def test_past_of_four_bits(engine, kind, dtype, packed, free, length, past, total, wide, ends):
    case = of_four_bits(kind, length, past, total, dtype, packed, free, wide, ends=ends)
    expected = case.expected()
    ours = engine.run(case.typed(expected), case.feeds)
    assert [x.dtype for x in ours] == [dtype, np.uint8, np.uint8] and [x.shape for x in ours] == [x.shape for x in expected]
    compare(ours[:1], expected[:1])
    for mine, yours in zip(ours[1:], expected[1:]):
        for b, end in enumerate(ends or [total] * wide):
            np.testing.assert_array_equal(mine[b, :, :end], yours[b, :, :end])


def attend(q, k, v, window=None, bias=None):
    """The last queries of all keys, [batch, heads, length, size]."""
    repeat = q.shape[1] // k.shape[1]
    k, v = np.repeat(k, repeat, 1), np.repeat(v, repeat, 1)
    scores = q @ k.swapaxes(2, 3) / np.sqrt(q.shape[3]) + (0 if bias is None else bias)
    at, key = k.shape[2] - q.shape[2] + np.arange(q.shape[2])[:, None], np.arange(k.shape[2])
    scores = np.where((key <= at) & (key > at - (window or k.shape[2])), scores, -np.inf)
    y = (softmax(scores) @ v).transpose(0, 2, 1, 3)
    return y.reshape(*y.shape[:2], -1)


@pytest.mark.parametrize("kind", ["PER_TENSOR", "PER_CHANNEL"])
@pytest.mark.parametrize("size", [7, 65])
def test_heads_of_an_odd_size(engine, sardonyx, tmp_path, kind, size):
    """Of which ONNX Runtime has none: the last byte of a row holds one number, and a zero."""
    case = of_four_bits(kind, 2, 3, 5, size=size, heads=2)
    feeds = case.feeds
    made = []
    for name, fresh, scale in (("x3", "x1", "x12"), ("x4", "x2", "x13")):
        new = np.clip(np.round(heads_first(feeds[fresh], 2) * (1 / feeds[scale])), -8, 7).astype(int) + 8
        new = np.concatenate([new, np.full((*new.shape[:3], 1), 8)], -1).astype(np.uint8)
        made.append(np.concatenate([feeds[name], new[..., ::2] | new[..., 1::2] << 4], 2))
    k, v = (unpacked(x, size) * feeds[scale] for x, scale in zip(made, ("x12", "x13")))
    reference = [attend(heads_first(feeds["x0"], 2), k, v).astype(F32), *made]
    agree(engine, case, reference=reference)
    compare(plainly(sardonyx, case, reference, tmp_path), reference)


@pytest.mark.parametrize("attributes, words", [
    (dict(kv_cache_bit_width=8), "a past of 8 bits in uint8"), (dict(k_quant_type="NONE", v_quant_type="NONE"), "a past of uint8"),
    (dict(kv_cache_bit_width=3), "a past of 3 bits")])
def test_bytes_that_are_not_of_four_bits(engine, attributes, words):
    case = of_four_bits("PER_TENSOR", 1, 5, 6, **attributes)
    like = [numbers(2, 1, 288), *(np.zeros((2, 2, 6, 36), np.uint8) for _ in range(2))]
    assert words in refusal(engine, case, like)


def test_rows_that_are_not_packed(engine):
    case = of_four_bits("PER_TENSOR", 1, 5, 6, size=8)
    case.feeds["x3"] = np.zeros((2, 2, 5, 8), np.uint8)
    case.model.graph.input[3].type.tensor_type.shape.dim[3].dim_value = 8
    like = [numbers(2, 1, 32), *(np.zeros((2, 2, 6, 4), np.uint8) for _ in range(2))]
    assert "head size" in refusal(engine, case, like)


# --- float8 ---


@pytest.mark.parametrize("kind", ["PER_TENSOR", "PER_CHANNEL"])
@pytest.mark.parametrize("dtype", [F32, F16])
def test_past_of_float8(sardonyx, tmp_path, kind, dtype):
    """The value over its scale, rounded; its largest magnitude is 448."""
    size = 72
    q, k, v = (numbers(2, 3, count * size, dtype=dtype) for count in (4, 2, 2))
    k[0, 0, 0] = 500
    pasts = [numbers(2, 2, 4, size).astype(F8) for _ in range(2)]
    parts = [scales(kind, size, 0.5, 1.5) for _ in range(2)]
    cast = lambda name, to: f"{name}8 = Cast <to = {to}> ({name})\n"
    model = f"""<ir_version: 10, opset_import: ["" : 21, "com.microsoft" : 1]>
      g ({'float' if dtype == F32 else 'float16'}[2,3,288] q, {'float' if dtype == F32 else 'float16'}[2,3,144] k,
         {'float' if dtype == F32 else 'float16'}[2,3,144] v, float[2,2,4,72] a, float[2,2,4,72] b, int32[2] ends, int32[1] total,
         float[{', '.join(map(str, parts[0].shape))}] ks, float[{', '.join(map(str, parts[0].shape))}] vs)
      => ({'float' if dtype == F32 else 'float16'}[2,3,288] y, float[2,2,7,72] m, float[2,2,7,72] n)
      {{ {cast('a', 17)} {cast('b', 17)}
        y, o, p = com.microsoft.GroupQueryAttention <num_heads = 4, kv_num_heads = 2, k_quant_type = "{kind}",
          v_quant_type = "{kind}", kv_cache_bit_width = 8> (q, k, v, a8, b8, ends, total, "", "", "", "", "", ks, vs)
        m = Cast <to = 1> (o)
        n = Cast <to = 1> (p) }}"""
    import onnx.parser

    path = tmp_path / "float8.onnx"
    onnx.save(onnx.parser.parse_model(model), path)
    feeds = dict(q=q, k=k, v=v, a=pasts[0].astype(F32), b=pasts[1].astype(F32), ends=i32(6, 6), total=i32(7), ks=parts[0],
                 vs=parts[1])
    held = [np.concatenate([past.astype(F32), np.clip(heads_first(x, 2).astype(F32) * (1 / scale), -448, 448).astype(F8).astype(F32)], 2)
            for past, x, scale in zip(pasts, (k, v), parts)]
    y = attend(heads_first(q, 4).astype(F32), *(x * scale for x, scale in zip(held, parts))).astype(dtype)
    for more in ([], ["--reference"]):
        ours = sardonyx.outputs(path, feeds, tmp_path, *more)
        compare(ours[:1], [y], tolerance=None if dtype == F32 else 5e-3)
        np.testing.assert_array_equal(ours[1], held[0])
        np.testing.assert_array_equal(ours[2], held[1])


# --- a buffer ---


@pytest.mark.parametrize("length", [1, 3])
@pytest.mark.parametrize("what", [np.nan, np.inf])
def test_rows_behind_the_last_may_hold_anything(engine, length, what):
    past = [numbers(1, 2, 16, 8) for _ in range(2)]
    for x in past:
        x[:, :, 4 + length:] = what
    q, k, v = (numbers(1, length, count * 8) for count in (4, 2, 2))
    case = Case("GroupQueryAttention", [q, k, v, *past, i32(3 + length), i32(4 + length)], (True,) * 3, num_heads=4, kv_num_heads=2)
    expected = case.expected()
    ours = engine.run(case.typed(expected), case.feeds)
    assert np.isfinite(expected[0]).all()
    compare(ours[:1], expected[:1])


# --- a past that keeps the last positions ---


def resident(total, capacity, window):
    gap = capacity - window + 1
    return total if total <= capacity else total - gap * math.ceil((total - capacity) / gap)


class Sliding:
    """A batch that has seen `before` tokens and sees `length` more; numbers of all of them are drawn."""

    def __init__(self, before, length, capacity, window, batch=1, size=8, bias=None, dtype=F32, packed=False, free=False, **more):
        total = before + length
        q = numbers(batch, length, 4 * size, dtype=dtype)
        self.all = [numbers(batch, 2, total, size, dtype=dtype) for _ in range(2)]
        k, v = (x[:, :, before:].transpose(0, 2, 1, 3).reshape(batch, length, 2 * size) for x in self.all)
        held = resident(before, capacity, window)
        pasts = [np.zeros((batch, 2, capacity, size), dtype) for _ in range(2)]
        for past, x in zip(pasts, self.all):
            past[:, :, :held] = x[:, :, before - held:before]
        added = numbers(*bias, length if bias[0] == 1 else 1, total, dtype=dtype) if bias else None
        self.kept = resident(total, capacity, window)
        self.inputs = [np.concatenate([q, k, v], -1) if packed else q, None if packed else k, None if packed else v, *pasts,
                       np.full(batch, total - 1, np.int32), i32(total), None, None, None, added]
        self.case = Case("GroupQueryAttention", self.inputs, (True, True, True), num_heads=4, kv_num_heads=2, free=free,
                         local_window_size=window, sliding_window_cache=1, **more)
        self.y = attend(heads_first(q, 4).astype(F32), *(x.astype(F32) for x in self.all), window,
                        None if added is None else added.astype(F32)).astype(dtype)

    def check(self, ours, tolerance=None):
        compare(ours[:1], [self.y], tolerance=tolerance)
        for mine, whole in zip(ours[1:], self.all):
            assert mine.shape == (*whole.shape[:2], self.inputs[3].shape[2], whole.shape[3])
            np.testing.assert_array_equal(mine[:, :, :self.kept], whole[:, :, whole.shape[2] - self.kept:])
            assert not mine[:, :, self.kept:].any()


@pytest.mark.parametrize("before, length, capacity, window, batch", [
    (3, 1, 8, 4, 1), (7, 1, 8, 4, 2), (8, 1, 8, 4, 2), (20, 1, 8, 4, 3), (21, 1, 8, 8, 2), (20, 3, 8, 4, 1), (5, 20, 8, 4, 1),
    (0, 20, 8, 4, 1), (0, 5, 8, 4, 2), (7, 1, 4, 4, 2), (4, 1, 4, 1, 1)])
@pytest.mark.parametrize("more", [{}, dict(bias=(1, 4)), dict(bias=(1, 1)), dict(free=True), dict(packed=True)])
def test_the_last_positions(engine, before, length, capacity, window, batch, more):
    sliding = Sliding(before, length, capacity, window, batch, **more)
    expected = sliding.case.expected()
    compare(expected[:1], [sliding.y])
    sliding.check(engine.run(sliding.case.typed(expected), sliding.case.feeds))


@pytest.mark.parametrize("before, length", [(20, 1), (20, 5), (0, 30)])
def test_the_last_positions_of_halves(engine, sardonyx, tmp_path, before, length):
    sliding = Sliding(before, length, 8, 4, dtype=F16)
    like = [sliding.y, *sliding.inputs[3:5]]
    sliding.check(engine.run(sliding.case.typed(like), sliding.case.feeds), 5e-3)
    sliding.check(plainly(sardonyx, sliding.case, like, tmp_path), 5e-3)


def test_steps_make_the_layout_of_one(engine):
    """However the tokens come, the same rows remain."""
    size, total = 8, 23
    q, k, v = numbers(1, total, 4 * size), numbers(1, total, 2 * size), numbers(1, total, 2 * size)
    made, pasts, at = [], [np.zeros((1, 2, 7, size), F32)] * 2, 0
    for length in (2, 1, 9, 1, 1, 5, 4):
        part = slice(at, at + length)
        at += length
        case = Case("GroupQueryAttention", [q[:, part], k[:, part], v[:, part], *pasts, i32(at - 1), i32(at)], (True,) * 3,
                    num_heads=4, kv_num_heads=2, local_window_size=5, sliding_window_cache=1)
        y, *pasts = engine.run(case.typed([q, *pasts]), case.feeds)
        made.append(y)
    reference = attend(heads_first(q, 4), heads_first(k, 2), heads_first(v, 2), 5)
    compare([np.concatenate(made, 1)], [reference.astype(F32)])
    kept = resident(total, 7, 5)
    np.testing.assert_array_equal(pasts[0][:, :, :kept], heads_first(k, 2)[:, :, total - kept:])


def test_batches_of_other_lengths(engine):
    """Each batch's past begins at a position of its own."""
    one, two = Sliding(20, 1, 8, 4), Sliding(6, 1, 8, 4)
    inputs = [np.concatenate([a, b]) if a is not None and a.ndim > 1 else a for a, b in zip(one.inputs, two.inputs)]
    inputs[5], inputs[6] = i32(20, 6), i32(21)
    case = Case("GroupQueryAttention", inputs, (True,) * 3, num_heads=4, kv_num_heads=2, local_window_size=4, sliding_window_cache=1)
    expected = case.expected()
    ours = engine.run(case.typed(expected), case.feeds)
    compare(ours[:1], [np.concatenate([one.y, two.y])])
    for b, sliding in enumerate((one, two)):
        sliding.check([sliding.y, *(x[b:b + 1] for x in ours[1:])])


def test_the_last_positions_of_bytes(engine):
    """Quantised and sliding at once, against the same cache that holds all positions."""
    size, before, capacity, window = 8, 20, 8, 4
    q, k, v = numbers(1, 1, 4 * size), numbers(1, 1, 2 * size), numbers(1, 1, 2 * size)
    whole = [integers(0, 256, 1, 2, before, size // 2, dtype=np.uint8) for _ in range(2)]
    held = resident(before, capacity, window)
    attributes = dict(num_heads=4, kv_num_heads=2, local_window_size=window, k_quant_type="PER_TENSOR", v_quant_type="PER_TENSOR",
                      kv_cache_bit_width=4)
    rest = [i32(before), i32(before + 1), None, None, None, None, None, np.array([0.3], F32), np.array([0.2], F32)]
    y, *presents = Case("GroupQueryAttention", [q, k, v, *whole, *rest], (True,) * 3, **attributes).expected()
    pasts = []
    for x in whole:
        past = np.zeros((1, 2, capacity, size // 2), np.uint8)
        past[:, :, :held] = x[:, :, before - held:]
        pasts.append(past)
    case = Case("GroupQueryAttention", [q, k, v, *pasts, *rest], (True,) * 3, sliding_window_cache=1, **attributes)
    ours = engine.run(case.typed([y, *pasts]), case.feeds)
    compare(ours[:1], [y])
    kept = resident(before + 1, capacity, window)
    for mine, present in zip(ours[1:], presents):
        np.testing.assert_array_equal(mine[:, :, :kept], present[:, :, before + 1 - kept:])


@pytest.mark.parametrize("attributes, says", [
    (dict(local_window_size=-1), "needs a local_window_size"), (dict(local_window_size=9), "local_window_size rows")])
@pytest.mark.parametrize("free", [False, True])
def test_windows_that_do_not_fit(engine, attributes, says, free):
    sliding = Sliding(20, 1, 8, 4, free=free)
    case = Case("GroupQueryAttention", sliding.inputs, (True,) * 3, free=free,
                **{**dict(num_heads=4, kv_num_heads=2, local_window_size=4, sliding_window_cache=1), **attributes})
    assert says in refusal(engine, case, [sliding.y, *sliding.inputs[3:5]])


@pytest.mark.parametrize("length, total", [(-1, 21), (-2**31, 21), (0, 5), (2**31 - 1, 21), (0, 1)])
def test_lengths_of_a_sliding_past(engine, length, total):
    """Positions may be any; those before the first are none."""
    sliding = Sliding(20, 3, 8, 4, free=True)
    case = sliding.case
    case.feeds["x5"], case.feeds["x6"] = i32(length), i32(total)
    like = [sliding.y, *sliding.inputs[3:5]]
    if length > 2:
        return sliding_runs(engine, case, like)
    assert "seqlens_k says that batch 0" in refusal(engine, case, like)


def sliding_runs(engine, case, like):
    y, k, _ = engine.run(case.typed(like), case.feeds)
    assert np.isfinite(y).all() and k.shape == like[1].shape
