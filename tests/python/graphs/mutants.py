"""The standard's test cases, changed: attributes at their limits, other sizes and elements of inputs, weights for inputs.

Most are refused. Planned and plain evaluation have to do so alike, and what they do not refuse has to be the same.
"""

from __future__ import annotations

import functools
import pathlib
import random

import numpy as np
import onnx
from onnx import AttributeProto, helper, numpy_helper

from .maker import Graph

ROOT = pathlib.Path(__file__).resolve().parents[3] / "build" / "conformance"
LIMITS = (2**63 - 1, -2**63, 2**62, -2**62, 2**31 - 1, -2**31, 2**32, 2**40, 65536, 1000003, 255, -128)
# Whose outputs are drawn, or may come in any order.
RANDOM = ("Random", "Bernoulli", "Multinomial", "Dropout", "ImageDecoder", "Unique")


@functools.cache
def cases() -> list[pathlib.Path]:
    releases = [folder for folder in ROOT.iterdir() if (folder / "node").is_dir()]
    newest = max(releases, key=lambda folder: [int(part) for part in folder.name.split(".")])
    return sorted(path for path in (newest / "node").iterdir() if (path / "model.onnx").stat().st_size < 20_000)


def integer(source: random.Random) -> int:
    return source.choice((source.choice(LIMITS), source.randint(-3, 3), source.randint(0, 70), source.randint(-5, 1)))


def change_list(source: random.Random, values: list, draw) -> list:
    values = list(values)
    how = source.randrange(5)
    if how == 0 and values:
        del values[source.randrange(len(values))]
    elif how == 1:
        values.insert(source.randint(0, len(values)), draw())
    elif values:
        values[source.randrange(len(values))] = draw()
    return values


def change_attribute(source: random.Random, attribute: onnx.AttributeProto) -> None:
    kind = attribute.type
    if kind == AttributeProto.INT:
        attribute.i = integer(source)
    elif kind == AttributeProto.INTS:
        attribute.ints[:] = change_list(source, attribute.ints, lambda: integer(source))
    elif kind == AttributeProto.FLOAT:
        attribute.f = source.choice((0.0, -1.0, 1e30, -1e30, float("nan"), float("inf"), 0.5, 3.0))
    elif kind == AttributeProto.FLOATS:
        attribute.floats[:] = change_list(source, attribute.floats, lambda: source.choice((0.0, -1.0, 1e30, float("nan"))))


def change_node(source: random.Random, node: onnx.NodeProto) -> None:
    how = source.randrange(8)
    if how < 5 and node.attribute:
        change_attribute(source, source.choice(node.attribute))
    elif how == 5 and node.attribute:
        del node.attribute[source.randrange(len(node.attribute))]
    elif how == 6 and node.input:
        node.input[source.randrange(len(node.input))] = ""
    elif how == 7 and len(node.input) > 1:
        node.input[source.randrange(len(node.input))] = source.choice(node.input)


def change_array(source: random.Random, array: np.ndarray) -> np.ndarray:
    how = source.randrange(6)
    if how < 2 and array.size and array.dtype.kind in "iu":
        array = array.copy()
        place = source.randrange(array.size)
        limits = np.iinfo(array.dtype)
        array.flat[place] = min(max(integer(source), limits.min), limits.max)
    elif how < 2 and array.size and array.dtype.kind == "f":
        array = array.copy()
        array.flat[source.randrange(array.size)] = source.choice((np.nan, np.inf, -np.inf, 0, 1e4, -1e4))
    elif array.ndim and how in (2, 3):
        axis = source.randrange(array.ndim)
        size = source.choice((0, 1, array.shape[axis] - 1, array.shape[axis] + 1, 2 * array.shape[axis], 17))
        indices = np.arange(max(size, 0)) % max(array.shape[axis], 1)
        if array.shape[axis]:
            array = np.take(array, indices, axis)
    elif how == 4:
        array = array[None] if source.random() < 0.5 else array[0] if array.ndim and array.shape[0] else array
    return np.ascontiguousarray(array).reshape(array.shape)


def open_type(source: random.Random, value: onnx.ValueInfoProto) -> None:
    """An input whose sizes are numbers, names, unnamed, or whose rank is open."""
    kind = value.type.tensor_type
    how = source.randrange(4)
    if how == 0:
        kind.ClearField("shape")
    elif how < 3:
        for axis, dimension in enumerate(kind.shape.dim):
            dimension.Clear()
            if how == 1:
                dimension.dim_param = f"{value.name}_{axis}"


def make(seed: int) -> Graph | None:
    source = random.Random(seed)
    path = source.choice(cases())
    model = onnx.load(path / "model.onnx")
    graph = model.graph
    if any(node.op_type.startswith(RANDOM) for node in graph.node):
        return None
    if any(value.type.WhichOneof("value") != "tensor_type" for value in graph.input):
        return None
    arrays = {}
    for number, value in enumerate(graph.input):
        file = path / "test_data_set_0" / f"input_{number}.pb"
        if not file.exists():
            return None
        arrays[value.name] = numpy_helper.to_array(onnx.TensorProto.FromString(file.read_bytes()))
    if any(array.dtype == object or array.size > 100_000 for array in arrays.values()):
        return None
    for value in graph.output:
        if value.type.WhichOneof("value") == "tensor_type":
            value.type.tensor_type.ClearField("shape")
    if source.random() < 0.75:
        for _ in range(source.choice((1, 1, 2))):
            change_node(source, source.choice(graph.node))
    changed = dict(arrays)
    if source.random() < 0.6 and arrays:
        for _ in range(source.choice((1, 1, 2))):
            name = source.choice(list(arrays))
            changed[name] = change_array(source, arrays[name])
    for value in list(graph.input):
        if source.random() < 0.3:  # a weight
            graph.initializer.append(numpy_helper.from_array(changed[value.name], value.name))
            graph.input.remove(value)
            del changed[value.name], arrays[value.name]
        else:
            open_type(source, value)
            kind = value.type.tensor_type
            if kind.HasField("shape") and all(d.HasField("dim_value") for d in kind.shape.dim):
                for dimension, size in zip(kind.shape.dim, changed[value.name].shape):
                    dimension.dim_value = size
                if len(kind.shape.dim) != changed[value.name].ndim:
                    kind.ClearField("shape")
            elif kind.HasField("shape") and len(kind.shape.dim) != changed[value.name].ndim:
                kind.ClearField("shape")
    sets = [changed]
    for _ in range(2):
        sets.append({name: change_array(source, array) if source.random() < 0.5 else array for name, array in arrays.items()})
    near = {"worst": 2e-2, "mean": 5e-3, "absolute": 0.01, "bytes": 1}
    return Graph(model, sets, {"plan": near, "other": near, "may_refuse": True})
