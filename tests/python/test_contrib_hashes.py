"""NGramHashMapping and VarlenNGramHashMapping, against ONNX Runtime."""

from __future__ import annotations

import numpy as np
import pytest
from contrib_support import Case, agree, compare, drawing, refusal

RANDOM = np.random.default_rng(67)
numbers, integers = drawing(RANDOM)
TYPES = [np.int32, np.int64]


def i32(*values):
    return np.array(values, np.int32)


def tables(dtype, sizes, heads):
    far = np.iinfo(dtype)
    return [RANDOM.integers(far.min, far.max, sizes, dtype=dtype), integers(1, 50000, (sizes - 1) * heads, dtype=dtype)]


def dense(dtype=np.int64, batch=2, length=9, sizes=3, heads=2, past=False, offsets=False, eos=None, segments=False, free=False,
          high=6, **more):
    inputs = [integers(-2, high, batch, length, dtype=dtype), *tables(dtype, sizes, heads),
              integers(-2, high, batch, sizes - 1, dtype=dtype) if past else None,
              integers(0, 10**6, (sizes - 1) * heads, dtype=dtype) if offsets else None,
              None if eos is None else np.array(eos, dtype), np.sort(integers(0, 3, batch, length), 1) if segments else None]
    return Case("NGramHashMapping", inputs, (True, True), free=free,
                **{**dict(max_ngram_size=sizes, n_head_per_ngram=heads, pad_id=4), **more})


@pytest.mark.parametrize("dtype", TYPES)
@pytest.mark.parametrize("sizes, heads", [(2, 1), (3, 2), (5, 3)])
@pytest.mark.parametrize("length", [1, 3, 9])
@pytest.mark.parametrize("past", [False, True])
@pytest.mark.parametrize("more", [{}, dict(offsets=True), dict(eos=2), dict(eos=2, reset_on_eos=1), dict(segments=True),
                                  dict(segments=True, eos=1, reset_on_eos=1, offsets=True), dict(reset_on_eos=1)])
@pytest.mark.parametrize("free", [False, True])
def test_hashes(engine, dtype, sizes, heads, length, past, more, free):
    agree(engine, dense(dtype, length=length, sizes=sizes, heads=heads, past=past, free=free, **more))


@pytest.mark.parametrize("past", [False, True])
def test_no_tokens(engine, past):
    agree(engine, dense(length=0, past=past))


def test_chunks_give_what_the_whole_gives(engine):
    case = dense(length=20, sizes=4, eos=1, reset_on_eos=1, past=True)
    whole, last = engine.run(case.typed(case.expected()), case.feeds)
    made, past = [], case.feeds["x3"]
    for part in (slice(0, 1), slice(1, 3), slice(3, 15), slice(15, 20)):
        inputs = [case.feeds["x0"][:, part], *(case.feeds[f"x{i}"] for i in (1, 2)), past, None, case.feeds["x5"]]
        one = Case("NGramHashMapping", inputs, (True, True), max_ngram_size=4, n_head_per_ngram=2, pad_id=4, reset_on_eos=1)
        hashes, past = engine.run(one.typed([whole, last]), one.feeds)
        made.append(hashes)
    np.testing.assert_array_equal(np.concatenate(made, 1), whole)
    np.testing.assert_array_equal(past, last)


@pytest.mark.parametrize("attributes, says", [
    (dict(max_ngram_size=1), "max_ngram_size must be in"), (dict(max_ngram_size=2**62), "max_ngram_size must be in"),
    (dict(n_head_per_ngram=0), "n_head_per_ngram in"), (dict(n_head_per_ngram=3), "input 2"), (dict(max_ngram_size=4), "input 2")])
@pytest.mark.parametrize("free", [False, True])
def test_attributes_that_do_not_fit(engine, attributes, says, free):
    case = dense(free=free)
    like = case.expected()
    case = dense(free=free)
    node = case.model.graph.node[0]
    for attribute in node.attribute:
        if attribute.name in attributes:
            attribute.i = attributes[attribute.name]
    assert says in refusal(engine, case, like)


@pytest.mark.parametrize("size", [0, -1, -2**31])
def test_vocabularies_of_nothing(engine, size):
    case = dense()
    like = case.expected()
    case.feeds["x2"][3] = size
    assert "vocab_sizes must be above 0; number 3" in refusal(engine, case, like)


def test_the_least_number_over_minus_one(engine):
    """Is no quotient; a vocabulary of -1 is refused before."""
    case = dense(np.int32, high=3)
    case.feeds["x0"][:] = np.iinfo(np.int32).min
    agree(engine, case)


def varlen(lengths, dtype=np.int64, sizes=3, heads=2, past=False, offsets=False, eos=None, segments=False, past_segments=False,
           capacity=0, free=False, outputs=None, **more):
    batch, total = len(lengths), sum(lengths)
    inputs = [integers(-2, 6, total, dtype=dtype), *tables(dtype, sizes, heads), np.cumsum([0, *lengths]).astype(np.int32),
              integers(-2, 6, batch, sizes - 1, dtype=dtype) if past else None,
              integers(0, 10**6, (sizes - 1) * heads, dtype=dtype) if offsets else None,
              None if eos is None else np.array(eos, dtype), integers(0, 2, total) if segments else None,
              integers(0, 2, batch, sizes - 1) if past_segments else None, integers(-1, 9, batch) if capacity else None]
    return Case("VarlenNGramHashMapping", inputs, outputs or (True, True, segments, capacity > 0), free=free,
                **{**dict(max_ngram_size=sizes, n_head_per_ngram=heads, pad_id=4, state_update_capacity=capacity), **more})


@pytest.mark.parametrize("dtype", TYPES)
@pytest.mark.parametrize("lengths", [[1], [3, 1, 7], [9, 2]])
@pytest.mark.parametrize("sizes", [2, 4])
@pytest.mark.parametrize("past", [False, True])
@pytest.mark.parametrize("more", [{}, dict(offsets=True), dict(eos=1, reset_on_eos=1), dict(segments=True), dict(capacity=4),
                                  dict(segments=True, past_segments=True, eos=2, reset_on_eos=1, capacity=8)])
@pytest.mark.parametrize("free", [False, True])
def test_packed_hashes(engine, dtype, lengths, sizes, past, more, free):
    if more.get("past_segments") and not past:
        past = True
    case = varlen(lengths, dtype, sizes, past=past, free=free, **more)
    if len(case.model.graph.output) > 2:
        for output in case.model.graph.output[2:]:
            output.type.tensor_type.elem_type = 6 if dtype == np.int32 or output.name == "y2" else 7
    agree(engine, case)


def test_packed_requests_are_those_alone(engine):
    lengths = [3, 1, 7]
    case = varlen(lengths, past=True)
    hashes, present = engine.run(case.typed(case.expected()), case.feeds)[:2]
    for b, (end, length) in enumerate(zip(np.cumsum(lengths), lengths)):
        alone = Case("NGramHashMapping", [case.feeds["x0"][end - length:end][None], case.feeds["x1"], case.feeds["x2"],
                                          case.feeds["x4"][b:b + 1]], (True, True), max_ngram_size=3, n_head_per_ngram=2, pad_id=4)
        compare([hashes[None, end - length:end], present[b:b + 1]], alone.expected())


@pytest.mark.parametrize("sums", [(1, 3, 4, 11), (0, 3, 3, 11), (0, 5, 4, 11), (0, 3, 4, 10), (0, 3, 4, 12), (0, -1, 4, 11),
                                  (0, 2**31 - 1, 4, 11), (0, -2**31, 4, 11)])
def test_requests_that_overlap_or_reach_beyond(engine, sums):
    case = varlen([3, 1, 7], free=True)
    like = case.expected()
    case.feeds["x3"] = i32(*sums)
    assert "cumulative_sequence_length must grow from 0 to 11" in refusal(engine, case, like)


@pytest.mark.parametrize("capacity", [-1, 9])
def test_capacities_that_are_not_allowed(engine, capacity):
    case = varlen([3, 1])
    like = case.expected()
    case = varlen([3, 1], capacity=capacity)
    assert "state_update_capacity must be in [0, 8]" in refusal(engine, case, [*like, like[1]])
