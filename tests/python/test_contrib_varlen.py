"""GatedDeltaNet and VarlenCausalConvWithState, which ONNX Runtime has for GPUs alone: against NumPy, and each sequence against
CausalConvWithState and LinearAttention, which its CPU provider has."""

from __future__ import annotations

import numpy as np
import pytest
from contrib_support import Case, agree, compare, drawing, plainly, refusal

RANDOM = np.random.default_rng(59)
F32, F16 = np.float32, np.float16
numbers, integers = drawing(RANDOM)
TOLERANCE = {F32: 1e-4, F16: 5e-3}


def i32(*values):
    return np.array(values, np.int32)


def sums(lengths):
    return np.cumsum([0, *lengths]).astype(np.int32)


def parts(lengths):
    ends = np.cumsum(lengths)
    return [slice(end - n, end) for end, n in zip(ends, lengths)]


def sigmoid(x):
    return 1 / (1 + np.exp(-x))


# --- VarlenCausalConvWithState ---


def convolution(lengths, channels=6, taps=4, dilation=1, dtype=F32, bias=False, activation="none", capacity=0, free=False):
    total, held = sum(lengths), (taps - 1) * dilation
    x, w = numbers(total, channels, dtype=dtype), numbers(channels, 1, taps, dtype=dtype)
    shift, state = numbers(channels, dtype=dtype) if bias else None, numbers(len(lengths), channels, held, dtype=dtype)
    counts = integers(-1, 12, len(lengths)) if capacity else None
    case = Case("VarlenCausalConvWithState", [x, w, sums(lengths), shift, state, counts], (True, True, capacity > 0), free=free,
                dilation=dilation, activation=activation, state_update_capacity=capacity)
    y, after = np.zeros((total, channels), F32), np.zeros_like(state)
    update = np.zeros((len(lengths), capacity, channels), dtype)
    for b, part in enumerate(parts(lengths)):
        whole = np.concatenate([state[b].T.astype(F32), x[part].astype(F32)])
        for t in range(lengths[b]):
            taken = whole[t:t + held + 1:dilation]
            y[part][t] = (taken * w[:, 0].T.astype(F32)).sum(0) + (shift.astype(F32) if bias else 0)
        after[b] = whole[len(whole) - held:].T.astype(dtype)
        if capacity:
            kept = min(max(counts[b], 0), capacity, lengths[b])
            update[b, :kept] = x[part][:kept]
    if activation != "none":
        y = y * sigmoid(y)
    return case, [y.astype(dtype), after] + ([update] if capacity else [])


@pytest.mark.parametrize("lengths", [[1], [3, 1, 9], [20, 2]])
@pytest.mark.parametrize("dtype", [F32, F16])
@pytest.mark.parametrize("more", [{}, dict(bias=True, activation="silu"), dict(dilation=3), dict(taps=1), dict(capacity=4, activation="swish")])
@pytest.mark.parametrize("free", [False, True])
def test_convolutions(engine, sardonyx, tmp_path, lengths, dtype, more, free):
    case, expected = convolution(lengths, dtype=dtype, free=free, **more)
    agree(engine, case, reference=expected, tolerance=TOLERANCE[dtype])
    if not free and dtype == F32:
        compare(plainly(sardonyx, case, expected, tmp_path), expected)


def test_a_sequence_is_the_convolution_of_it_alone(engine):
    lengths = [3, 1, 9]
    case, expected = convolution(lengths, bias=True, activation="silu")
    ours = engine.run(case.typed(expected), case.feeds)
    for b, part in enumerate(parts(lengths)):
        alone = Case("CausalConvWithState", [case.feeds["x0"][part].T[None].copy(), case.feeds["x1"], case.feeds["x3"], case.feeds["x4"][b:b + 1]],
                     (True, True), activation="silu").expected()
        compare([ours[0][part].T[None], ours[1][b:b + 1]], alone, tolerance=1e-5)


@pytest.mark.parametrize("ends", [(1, 3, 4, 13), (0, 3, 3, 13), (0, 4, 3, 13), (0, 3, 4, 12), (0, 3, 4, 14), (0, -1, 4, 13), (0, 2**31 - 1, 4, 13)])
def test_sums_of_convolutions(engine, ends):
    case, expected = convolution([3, 1, 9], free=True)
    case.feeds["x2"] = i32(*ends)
    assert "must grow from 0 to 13" in refusal(engine, case, expected)


@pytest.mark.parametrize("attributes, says", [
    (dict(dilation=0), "dilation must be in"), (dict(dilation=2**40), "dilation must be in"), (dict(activation="relu"), "activation must be"),
    (dict(dilation=2), "(taps - 1) * dilation"), (dict(state_update_capacity=9), "state_update_capacity must be in"),
    (dict(state_update_capacity=2), "capture_count must be given")])
@pytest.mark.parametrize("free", [False, True])
def test_convolutions_that_do_not_fit(engine, attributes, says, free):
    made, expected = convolution([3, 1, 9])
    feeds = made.feeds
    case = Case("VarlenCausalConvWithState", [feeds["x0"], feeds["x1"], feeds["x2"], None, feeds["x4"]], (True, True), free=free, **attributes)
    assert says in refusal(engine, case, expected)


# --- GatedDeltaNet ---


def recurrence(lengths, heads=2, values=4, size=8, v_size=6, rule="gated_delta", dtype=F32, packed=False, wide=False, qwen=False, rate=False,
               normal=True, state=True, uniform=False, rank=3, scale=None, free=False):
    total, batch, repeat = sum(lengths), len(lengths), values // heads
    q, k, v = numbers(total, heads, size, dtype=dtype), numbers(total, heads, size, dtype=dtype), numbers(total, values, v_size, dtype=dtype)
    gated, corrected = rule.startswith("gated"), rule.endswith("delta")
    decay = -np.abs(numbers(total, values, *([size] if wide else []))) if gated else None
    beta = numbers(total, values) if corrected and rate else RANDOM.uniform(0, 1, (total, values)).astype(F32) if corrected else None
    first = numbers(batch, values, v_size, size) if state else None
    a_log, dt = (numbers(values, scale=0.3), numbers(values)) if qwen else (None, None)
    given = [q, k, v]
    if packed:
        given = [np.concatenate([x.reshape(total, -1) for x in (q, k, v)], -1), None, None]
    tensors = [*given, None if uniform else sums(lengths), decay, beta, first, a_log, dt]
    if rank == 4:
        split = lambda x: None if x is None else x.reshape(batch, -1, *x.shape[1:])
        tensors = [*map(split, given), None, split(decay), split(beta), first, a_log, dt]
    case = Case("GatedDeltaNet", tensors, (True, True), free=free, update_rule=rule, gate_activation="qwen" if qwen else None,
                beta_activation="sigmoid" if rate else None, qk_l2_norm=int(normal), scale=scale)
    y, last = np.zeros((total, values, v_size)), np.zeros((batch, values, v_size, size))
    unit = lambda x: x / np.sqrt((x**2).sum(-1, keepdims=True) + 1e-6) if normal else x
    q, k = (np.repeat(unit(x.astype(np.float64)), repeat, 1) for x in (q, k))
    for b, part in enumerate(parts(lengths)):
        for h in range(values):
            held = first[b, h].T.astype(np.float64) if state else np.zeros((size, v_size))
            for t in range(part.start, part.stop):
                if gated:
                    g = decay[t, h].astype(np.float64)
                    g = -np.exp(a_log[h]) * np.log1p(np.exp(g + dt[h])) if qwen else g
                    held = held * (np.exp(g)[:, None] if wide else np.exp(g))
                new = v[t, h].astype(np.float64)
                if corrected:
                    new = (sigmoid(beta[t, h]) if rate else beta[t, h]) * (new - held.T @ k[t, h])
                held = held + np.outer(k[t, h], new)
                y[t, h] = held.T @ q[t, h] * (scale or 1 / np.sqrt(size))
            last[b, h] = held.T
    shape = (batch, -1, values, v_size) if rank == 4 else y.shape
    return case, [y.reshape(shape).astype(dtype), last.astype(F32)]


@pytest.mark.parametrize("lengths", [[1], [3, 1, 9], [20, 2]])
@pytest.mark.parametrize("more", [
    {}, dict(rule="linear"), dict(rule="gated", wide=True), dict(rule="delta"), dict(wide=True), dict(qwen=True, rate=True), dict(packed=True),
    dict(heads=4), dict(heads=1, scale=0.7), dict(state=False), dict(dtype=F16), dict(packed=True, dtype=F16, qwen=True)])
@pytest.mark.parametrize("free", [False, True])
def test_recurrences(engine, sardonyx, tmp_path, lengths, more, free):
    case, expected = recurrence(lengths, free=free, **more)
    agree(engine, case, reference=expected, tolerance=TOLERANCE[more.get("dtype", F32)])
    if not free and not more.get("dtype"):
        compare(plainly(sardonyx, case, expected, tmp_path), expected, tolerance=1e-4)


@pytest.mark.parametrize("more", [dict(uniform=True), dict(rank=4), dict(rank=4, state=False), dict(uniform=True, packed=True)])
@pytest.mark.parametrize("free", [False, True])
def test_sequences_of_one_length(engine, more, free):
    case, expected = recurrence([5, 5, 5], free=free, **more)
    agree(engine, case, reference=expected, tolerance=1e-4)


def test_a_sequence_is_linear_attention(engine):
    lengths = [3, 1, 9]
    case, expected = recurrence(lengths, heads=4, normal=False, scale=0.5)
    ours = engine.run(case.typed(expected), case.feeds)
    f = case.feeds
    for b, part in enumerate(parts(lengths)):
        flat = lambda x: x[part].reshape(1, lengths[b], -1)
        alone = Case("LinearAttention", [flat(f["x0"]), flat(f["x1"]), flat(f["x2"]), f["x6"][b:b + 1].swapaxes(2, 3).copy(), flat(f["x4"]), flat(f["x5"])],
                     (True, True), q_num_heads=4, kv_num_heads=4, scale=0.5).expected()
        compare([flat(ours[0]), ours[1][b:b + 1].swapaxes(2, 3)], alone, tolerance=1e-4)


@pytest.mark.parametrize("ends", [(1, 3, 4, 13), (0, 3, 3, 13), (0, 4, 3, 13), (0, 3, 4, 12), (0, 3, 4, 14), (0, -1, 4, 13), (0, 2**31 - 1, 4, 13)])
def test_sums_of_recurrences(engine, ends):
    case, expected = recurrence([3, 1, 9], free=True)
    case.feeds["x3"] = i32(*ends)
    assert "must grow from 0 to 13" in refusal(engine, case, expected)


@pytest.mark.parametrize("attributes, says", [
    (dict(update_rule="some"), "update_rule must be"), (dict(gate_activation="some"), "gate_activation must be"),
    (dict(gate_activation="qwen"), "needs a_log and dt_bias"), (dict(state_update_capacity=2), "state_update_capacity")])
def test_recurrences_that_are_not_known(engine, attributes, says):
    made, expected = recurrence([3, 1])
    case = Case("GatedDeltaNet", list(made.feeds[f"x{i}"] for i in range(7)), (True, True), **attributes)
    assert says in refusal(engine, case, expected)


@pytest.mark.parametrize("i, axis", [(1, 0), (1, 2), (2, 0), (4, 0), (5, 1), (6, 0), (6, 1), (6, 3), (3, 0)])
@pytest.mark.parametrize("packed", [False, True])
def test_sizes_that_do_not_fit(engine, i, axis, packed):
    if packed and i in (1, 2):
        i, axis = 0, 1
    case, expected = recurrence([3, 1, 9], packed=packed, free=True)
    x = case.feeds[f"x{i}"]
    case.feeds[f"x{i}"] = np.delete(x, 0, axis)
    index = [v.name for v in case.model.graph.input].index(f"x{i}")
    case.model.graph.input[index].type.tensor_type.shape.dim[axis].dim_param = "other"
    refusal(engine, case, expected)
