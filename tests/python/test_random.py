"""Operators that draw: what they draw has the distribution asked for, is the same for the same seed, and another for another.

The seeds are fixed, so that a test passes always or never. Bounds are those that one in a million honest generators
would miss.
"""

from __future__ import annotations

import math

import ml_dtypes  # noqa: F401  (bfloat16 as an array's type)
import numpy as np
import pytest

COUNT = 200_000
TYPES = {"float": 1, "double": 11, "float16": 10}
NORMAL = np.vectorize(lambda x: 0.5 * (1 + math.erf(x / math.sqrt(2))))
# Of Kolmogorov's distribution and the normal one: probability 1e-6 to lie beyond.
KOLMOGOROV, SIGMAS = 2.7, 4.9


def drawn(sardonyx, save, folder, nodes, feeds=None, inputs="", types="float", outputs="y", more=()):
    values = ", ".join(f"{types}[] {name}" for name in outputs.split(", "))
    text = f'<ir_version: 10, opset_import: ["" : 22]>\ng ({inputs}) => ({values}) {{ {nodes} }}'
    return sardonyx.outputs(save(text), feeds or {}, folder, *more)


def distance(sample: np.ndarray, cumulative: np.ndarray) -> float:
    """Kolmogorov's statistic of sorted values whose distribution function is given."""
    steps = np.arange(1, len(sample) + 1) / len(sample)
    return max(np.max(np.abs(steps - cumulative)), np.max(np.abs(steps - 1 / len(sample) - cumulative)))


def assert_normal(values: np.ndarray, mean: float, scale: float, grain: float = 0.0):
    sample = np.sort((values.astype(np.float64).ravel() - mean) / scale)
    assert distance(sample, NORMAL(sample)) < KOLMOGOROV / math.sqrt(len(sample)) + grain


def assert_uniform(values: np.ndarray, low: float, high: float, grain: float = 0.0):
    sample = np.sort((values.astype(np.float64).ravel() - low) / (high - low))
    assert sample[0] >= 0 and sample[-1] <= 1
    assert distance(sample, sample) < KOLMOGOROV / math.sqrt(len(sample)) + grain


def assert_no_echo(values: np.ndarray):
    """Neighbours, and values some way apart, do not go together."""
    centred = values.astype(np.float64).ravel() - values.astype(np.float64).mean()
    for lag in (1, 2, 4, 8, 16, 64, 1024):
        correlation = np.mean(centred[:-lag] * centred[lag:]) / np.mean(centred * centred)
        assert abs(correlation) < SIGMAS / math.sqrt(len(centred) - lag), lag


def assert_share(hits, count, probability):
    bound = SIGMAS * math.sqrt(count * probability * (1 - probability))
    assert abs(float(hits) - count * probability) <= bound, (hits, count, probability)


# How far the rounding of a type alone moves the distribution function.
GRAIN = {"float": 0.0, "double": 0.0, "float16": 0.002}


@pytest.mark.parametrize("kind", TYPES)
@pytest.mark.parametrize("like", [False, True])
@pytest.mark.parametrize("op", ["RandomNormal", "RandomUniform"])
def test_continuous_distributions(sardonyx, save, tmp_path, kind, like, op):
    bounds = "mean = 2.0, scale = 3.0" if op == "RandomNormal" else "low = -1.0, high = 0.5"
    if like:
        node = f"y = {op}Like<dtype = {TYPES[kind]}, seed = 7.0, {bounds}>(x)"
        feeds, inputs = {"x": np.zeros((COUNT // 100, 100), np.int32)}, "int32[n, 100] x"
    else:
        node = f"y = {op}<dtype = {TYPES[kind]}, shape = [{COUNT // 100}, 100], seed = 7.0, {bounds}>()"
        feeds, inputs = None, ""
    [y] = drawn(sardonyx, save, tmp_path, node, feeds, inputs, kind)
    assert y.shape == (COUNT // 100, 100)
    if op == "RandomNormal":
        assert_normal(y, 2, 3, GRAIN[kind])
    else:
        assert_uniform(y, -1, 0.5, GRAIN[kind])
    assert_no_echo(y)


@pytest.mark.parametrize("kind", TYPES)
def test_bernoulli(sardonyx, save, tmp_path, kind):
    probabilities = np.repeat([0, 0.02, 0.3, 0.5, 0.9, 1], COUNT // 10)
    x = probabilities.astype({"float": np.float32, "double": np.float64, "float16": np.float16}[kind])
    [y] = drawn(sardonyx, save, tmp_path, "y = Bernoulli<seed = 3.0>(x)", {"x": x}, f"{kind}[n] x", kind)
    assert set(np.unique(y)) == {0, 1}
    for part, given in zip(np.split(y, 6), np.split(x.astype(np.float64), 6), strict=True):
        assert_share(part.astype(np.float64).sum(), len(part), given[0])


def test_multinomial(sardonyx, save, tmp_path):
    """Each row by its own weights, given as logarithms and not normalised; one class is impossible."""
    weights = np.array([[1, 2, 3, 4], [5, 0, 1, 0.5], [1, 1, 1, 1]])
    with np.errstate(divide="ignore"):
        x = np.log(weights * 7).astype(np.float32)
    node = f"y = Multinomial<sample_size = {COUNT}, seed = 1.0, dtype = 7>(x)"
    [y] = drawn(sardonyx, save, tmp_path, node, {"x": x}, "float[3, 4] x", "int64")
    assert y.shape == (3, COUNT) and y.dtype == np.int64
    for row, weight in zip(y, weights, strict=True):
        for kind in range(4):
            assert_share(np.sum(row == kind), COUNT, weight[kind] / weight.sum())
    assert_share(np.sum((y[0] == 3) & (y[2] == 0)), COUNT, 0.4 * 0.25)  # rows do not go together


@pytest.mark.parametrize("ratio", [0.0, 0.1, 0.75])
def test_dropout(sardonyx, save, tmp_path, ratio):
    x = np.full(COUNT, 3, np.float32)
    nodes = (f"r = Constant<value_float = {ratio}>() t = Constant<value = bool {{1}}>() "
             "y, k = Dropout<seed = 11>(x, r, t) m = Cast<to = 1>(k)")
    y, mask = drawn(sardonyx, save, tmp_path, nodes, {"x": x}, "float[n] x", outputs="y, m")
    assert_share(mask.sum(), COUNT, 1 - ratio)
    np.testing.assert_allclose(y, np.where(mask, 3 / (1 - ratio), 0), rtol=1e-6)
    if ratio:
        assert_no_echo(mask)


def test_seeds(sardonyx, save, tmp_path):
    """The same seed gives the same numbers, another one others. Nodes without one differ from each other, and from run
    to run if they are told to."""
    def numbers(nodes, *options, outputs="y"):
        return drawn(sardonyx, save, tmp_path, nodes, outputs=outputs, more=options)

    def assert_apart(a, b):
        assert abs(np.corrcoef(a, b)[0, 1]) < SIGMAS / math.sqrt(COUNT)

    node = f"y = RandomNormal<shape = [{COUNT}], seed = 1.0>()"
    [first] = numbers(node, "--threads", "1")
    np.testing.assert_array_equal(first, numbers(node, "--threads", "2", "--reference")[0])
    assert_apart(first, numbers(node.replace("1.0", "2.0"))[0])
    without = f"y = RandomNormal<shape = [{COUNT}]>() z = RandomNormal<shape = [{COUNT}]>()"
    y, z = numbers(without, outputs="y, z")
    assert_apart(y, z)
    np.testing.assert_array_equal(y, numbers(without, outputs="y, z")[0])
    assert_apart(y, numbers(without, "--seed", "5", outputs="y, z")[0])
