"""DecoderAttention and IsAllFinite, against NumPy; WordConvEmbedding, against ONNX Runtime."""

from __future__ import annotations

import numpy as np
import pytest
from contrib_support import Case, agree, compare, drawing, plainly, refusal

RANDOM = np.random.default_rng(97)
F32, F16 = np.float32, np.float16
numbers, integers = drawing(RANDOM)


def softmax(x):
    e = np.exp(x - x.max(-1, keepdims=True))
    return e / e.sum(-1, keepdims=True)


# --- DecoderAttention ---


def fairseq(static_kv, use_past, masked, layer_state=True, dtype=F32, heads=2, size=8, batch=3, length=2, other=5, held=4, free=False,
            constant=(8, 9, 10, 11)):
    hidden = heads * size
    query, key = numbers(length, batch, hidden, dtype=dtype), numbers(other, batch, hidden, dtype=dtype)
    wq, wkv = numbers(hidden, hidden, scale=0.3, dtype=dtype), numbers(hidden, 2 * hidden, scale=0.3, dtype=dtype)
    bias, caches = numbers(3 * hidden, dtype=dtype), [numbers(batch, heads, held, size, dtype=dtype) for _ in range(2)]
    flags = [np.array(x) for x in (static_kv, use_past, layer_state, masked)]
    wide = lambda x: x.astype(F32)
    cut = lambda x: x.reshape(-1, batch, heads, size).transpose(1, 2, 0, 3)
    q = cut(wide(query) @ wide(wq) + wide(bias)[:hidden])
    k, v = (cut(x) for x in np.split(wide(key if static_kv else query) @ wide(wkv) + wide(bias)[hidden:], 2, -1))
    if use_past and layer_state:
        k, v = ([wide(c) for c in caches] if static_kv else [np.concatenate([wide(c), x], 2) for c, x in zip(caches, (k, v))])
    mask = RANDOM.random((batch, k.shape[2])) < 0.4
    mask[:, 0] = False
    scores = q @ k.swapaxes(2, 3) / np.sqrt(size) + (np.where(mask, -10000.0, 0)[:, None, None] if masked else 0)
    y = (softmax(scores) @ v).transpose(2, 0, 1, 3).reshape(length, batch, hidden)
    case = Case("DecoderAttention", [query, key, wq, wkv, bias, mask if masked else None, *caches, *flags], (True, True, True), free=free,
                constant=constant, num_heads=heads)
    return case, [x.astype(dtype) for x in (y, k, v)]


@pytest.mark.parametrize("dtype", [F32, F16])
@pytest.mark.parametrize("static_kv", [False, True])
@pytest.mark.parametrize("use_past, layer_state", [(False, True), (True, True), (True, False)])
@pytest.mark.parametrize("masked", [False, True])
@pytest.mark.parametrize("free", [False, True])
def test_decoder_attention(engine, sardonyx, tmp_path, dtype, static_kv, use_past, layer_state, masked, free):
    case, expected = fairseq(static_kv, use_past, masked, layer_state, dtype, free=free)
    agree(engine, case, reference=expected, tolerance=1e-2 if dtype == F16 else None)
    if not free and dtype == F32:
        compare(plainly(sardonyx, case, expected, tmp_path), expected)


def test_what_decides_must_be_constant(engine):
    case, expected = fairseq(False, False, False, constant=(8, 9, 10))
    assert "no constant of one boolean" in refusal(engine, case, expected)


def test_caches_that_are_absent(engine):
    case, expected = fairseq(False, True, False)
    inputs = [case.feeds.get(f"x{i}") for i in range(6)] + [None, None] + [np.array(x) for x in (False, True, True, False)]
    case = Case("DecoderAttention", inputs, (True, True, True), constant=(8, 9, 10, 11), num_heads=2)
    assert "use_past needs key_cache" in refusal(engine, case, expected)


# --- WordConvEmbedding ---


def words(count, longest, window, alphabet=20, size=6, features=9, free=False, **more):
    ids = integers(1, alphabet, count, longest)
    for i, length in enumerate(RANDOM.integers(1, longest + 1, count)):
        ids[i, length:] = 0
    inputs = [ids, numbers(features, 1, window, size), numbers(features), numbers(alphabet, size)]
    return Case("WordConvEmbedding", inputs, free=free, **more)


@pytest.mark.parametrize("count, longest, window", [(5, 8, 3), (1, 4, 4), (12, 6, 1), (3, 9, 5)])
@pytest.mark.parametrize("free", [False, True])
def test_words(engine, count, longest, window, free):
    agree(engine, words(count, longest, window, free=free))
    agree(engine, words(count, longest, window, embedding_size=9, conv_window_size=window, char_embedding_size=6))


def test_words_without_letters(engine):
    """Which ONNX Runtime leaves as they are: here they become zeros. Letters behind the first gap count, as there."""
    case = words(4, 7, 3)
    case.feeds["x0"][1] = 0
    case.feeds["x0"][2] = [3, 0, 5, 0, 7, 0, 0]
    expected = case.expected()
    ours = engine.run(case.typed(expected), case.feeds)
    assert not ours[0][1].any()
    compare([ours[0][[0, 2, 3]]], [expected[0][[0, 2, 3]]])


@pytest.mark.parametrize("letter", [20, 2**31 - 1, -21, -2**31])
def test_letters_that_are_not_there(engine, letter):
    case = words(4, 7, 3)
    like = case.expected()
    case.feeds["x0"][2, 1] = letter
    refusal(engine, case, like)


def test_windows_longer_than_words(engine):
    case = words(4, 3, 5)
    assert "the window of characters must be in [1, 3]" in refusal(engine, case, [numbers(4, 9)])


@pytest.mark.parametrize("more", [dict(embedding_size=8), dict(conv_window_size=2), dict(char_embedding_size=5)])
def test_attributes_beside_the_weights(engine, more):
    assert "the weights" in refusal(engine, words(4, 7, 3, **more), [numbers(4, 9)])


# --- IsAllFinite ---


@pytest.mark.parametrize("dtype", [F32, F16, np.float64])
@pytest.mark.parametrize("what", [None, np.inf, -np.inf, np.nan])
@pytest.mark.parametrize("count", [1, 3])
@pytest.mark.parametrize("attributes", [{}, dict(isinf_only=1), dict(isnan_only=1)])
@pytest.mark.parametrize("free", [False, True])
def test_is_all_finite(engine, dtype, what, count, attributes, free):
    inputs = [numbers(2, 3, dtype=dtype), numbers(7, dtype=dtype), numbers(0, 4, dtype=dtype)][:count]
    if what is not None:
        inputs[count // 2].flat[2] = what
    case = Case("IsAllFinite", inputs, free=free, **attributes)
    bad = what is not None and not (attributes.get("isinf_only") and np.isnan(what)) and not (attributes.get("isnan_only") and np.isinf(what))
    agree(engine, case, reference=[np.array(not bad)])


def test_both_at_once(engine):
    case = Case("IsAllFinite", [numbers(3)], isinf_only=1, isnan_only=1)
    assert "exclude each other" in refusal(engine, case, [np.array(True)])
