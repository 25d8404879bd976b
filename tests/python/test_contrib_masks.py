"""Masks of Attention and QAttention that say less than they seem to, against ONNX Runtime."""

from __future__ import annotations

import numpy as np
import pytest
from contrib_support import Case, agree, drawing

RANDOM = np.random.default_rng(41)
numbers, integers = drawing(RANDOM)
F32 = np.float32
BATCH, LENGTH, HEADS, SIZE = 2, 5, 2, 8
HIDDEN = HEADS * SIZE


def attention(mask, past, free, **attributes):
    inputs = [numbers(BATCH, LENGTH, 12), numbers(12, 3 * HIDDEN, scale=0.3), numbers(3 * HIDDEN), mask,
              numbers(2, BATCH, HEADS, past, SIZE) if past else None]
    return Case("Attention", inputs, (True, past > 0), constant=(1, 2), free=free, num_heads=HEADS, **attributes)


def qattention(mask, past, free, **attributes):
    of = lambda dtype, *shape: integers(np.iinfo(dtype).min, np.iinfo(dtype).max + 1, *shape, dtype=dtype)
    inputs = [of(np.uint8, BATCH, LENGTH, 12), of(np.int8, 12, 3 * HIDDEN), numbers(3 * HIDDEN), np.array(0.02, F32),
              np.array(0.01, F32), mask, np.array(120, np.uint8), np.array(0, np.int8),
              numbers(2, BATCH, HEADS, past, SIZE) if past else None]
    return Case("QAttention", inputs, (True, past > 0), constant=(1, 2, 3, 4, 6, 7), free=free, num_heads=HEADS, **attributes)


both = pytest.mark.parametrize("node", [attention, qattention])
open_sizes = pytest.mark.parametrize("free", [False, True])
lengths = pytest.mark.parametrize("past", [0, 4])


@both
@open_sizes
@lengths
@pytest.mark.parametrize("value", [0, 1])
@pytest.mark.parametrize("unidirectional", [0, 1])
def test_a_mask_of_one_column_masks_nothing(engine, node, free, past, value, unidirectional):
    agree(engine, node(np.full((BATCH, 1), value, np.int32), past, free, unidirectional=unidirectional))


@both
@open_sizes
@lengths
def test_a_mask_of_one_number_masks_nothing(engine, node, free, past):
    agree(engine, node(np.zeros((1, 1), np.int32), past, free))


@both
@open_sizes
@lengths
def test_a_mask_of_ends_and_cumulated_lengths_says_where_keys_end(engine, node, free, past):
    """3 * batch + 2 numbers: lengths, then the queries' and the keys' places in rows without padding."""
    ends = np.array([LENGTH + past, 3], np.int32)
    more = np.array([0, LENGTH, 2 * LENGTH, 0, ends[0], ends.sum()], np.int32)
    agree(engine, node(np.concatenate([ends, more]), past, free))


@pytest.mark.parametrize("op", ["Attention", "MultiHeadAttention"])
def test_the_lowest_float_as_filter_stays_a_number_in_half_precision(engine, op):
    """Where all keys are masked, the softmax is that of the scores without the mask."""
    half = lambda *shape, scale=1.0: numbers(*shape, scale=scale, dtype=np.float16)
    if op == "Attention":
        inputs = [half(BATCH, LENGTH, 12), half(12, 3 * HIDDEN, scale=0.3), half(3 * HIDDEN)]
    else:
        inputs = [half(BATCH, LENGTH, HIDDEN) for _ in range(3)] + [None]
    like = [np.zeros((BATCH, LENGTH, HIDDEN), np.float16)]
    found = []
    for value in (0, 1):
        case = Case(op, [*inputs, np.full((BATCH, LENGTH), value, np.int32)], num_heads=HEADS,
                    mask_filter_value=float(np.finfo(F32).min))
        found.append(engine.run(case.typed(like), case.feeds)[0])
    np.testing.assert_allclose(found[0].astype(F32), found[1].astype(F32), atol=0.05)
