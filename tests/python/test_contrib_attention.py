"""Operators of com.microsoft around attention that ONNX Runtime's CPU provider does not have, against NumPy."""

from __future__ import annotations

import numpy as np
import pytest
from contrib_support import Case, agree

RANDOM = np.random.default_rng(5)


def padded(lengths, longest):
    """Offsets of all tokens, then those of the padding."""
    places = np.arange(len(lengths) * longest).reshape(len(lengths), longest)
    real = np.arange(longest) < np.array(lengths)[:, None]
    return np.concatenate([places[real], places[~real]]).reshape(places.shape).astype(np.int32)


@pytest.mark.parametrize("dtype", [np.float32, np.float16])
@pytest.mark.parametrize("lengths", [[1, 2, 4], [4, 4], [0, 3], [0]])
@pytest.mark.parametrize("free", [False, True])
def test_restore_padding(engine, dtype, lengths, free):
    offsets, tokens = padded(lengths, 4), RANDOM.standard_normal((sum(lengths), 8)).astype(dtype)
    expected = np.zeros((len(lengths) * 4, 8), dtype)
    expected[offsets.reshape(-1)[:len(tokens)]] = tokens
    case = Case("RestorePadding", [tokens, offsets], free=free)
    agree(engine, case, reference=[expected.reshape(len(lengths), 4, 8)])


@pytest.mark.parametrize("offset", [12, -13, 2**31 - 1])
def test_restore_padding_refuses_places_that_are_not_there(engine, offset):
    offsets, tokens = padded([1, 2, 4], 4), np.ones((7, 8), np.float32)
    offsets[0, 0] = offset
    case = Case("RestorePadding", [tokens, offsets])
    with pytest.raises(RuntimeError):
        engine.run(case.typed([tokens]), case.feeds)
