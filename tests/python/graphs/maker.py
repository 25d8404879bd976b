"""What the families of random graphs share: a graph that grows node by node, and the inputs of its runs."""

from __future__ import annotations

import contextlib
import dataclasses
import random

import ml_dtypes
import numpy as np
import onnx
from onnx import helper, numpy_helper

BATCH = 1000003  # stands for a first size that each run brings anew; a step may hand it on, but not write it down
FLOAT, HALF, BFLOAT, DOUBLE = np.dtype(np.float32), np.dtype(np.float16), np.dtype(ml_dtypes.bfloat16), np.dtype(np.float64)
# By how much a plan may differ from plain evaluation, as a share of the root mean square: one element, and all in the mean.
# Plain evaluation of half precision rounds after every node, a plan seldom.
TOLERANCES = {FLOAT: (1e-3, 1e-4), DOUBLE: (1e-9, 1e-10), HALF: (0.1, 5e-3), BFLOAT: (1, 0.04)}


@dataclasses.dataclass
class Graph:
    model: onnx.ModelProto
    sets: list[dict[str, np.ndarray]]  # inputs of the runs of one session
    comparison: dict  # for graph_runner.cc


def is_free(size: int) -> bool:
    return size >= BATCH // 4


class Drawn:
    """What is drawn from a seed, and names that nothing else has."""

    def __init__(self, seed: int):
        self.random = random.Random(seed)
        self.made = 0

    def chance(self, share: float) -> bool:
        return self.random.random() < share

    def pick(self, *choices):
        return self.random.choice(choices)

    def name(self) -> str:
        self.made += 1
        return f"v{self.made}"


class Maker:
    """Adds node after node; `shapes` knows the values of type `dtype` so far, `others` the types of the others."""

    def __init__(self, seed: int, dtype: np.dtype = FLOAT, opset: int = 21):
        self.random = random.Random(seed)
        self.numbers = np.random.default_rng(seed)
        self.dtype = dtype
        self.opset = opset
        self.nodes: list[onnx.NodeProto] = []
        self.weights: list[onnx.TensorProto] = []
        self.shapes: dict[str, tuple[int, ...]] = {}
        self.others: dict[str, np.dtype] = {}
        self.inputs: dict[str, tuple[np.dtype, tuple[int, ...]]] = {}
        self.read: set[str] = set()
        self.outside: set[str] = set()  # values of the graphs around a body
        self.steps = False  # something that is no continuous function, so that other evaluators may land on another step
        self.is_half = dtype in (HALF, BFLOAT)
        self.exact = not self.is_half  # until something sums; plain evaluation rounds halves after each node
        self.tolerance = TOLERANCES[dtype]
        self.absolute = {HALF: 0.01, BFLOAT: 0.06}.get(dtype, 0.0)  # where much cancels
        self.batch = BATCH if self.chance(0.5) else self.random.choice((1, 1, 2, 3))
        self.off = 0  # by how much bytes may be off
        self.open = {BATCH: "batch"}  # names of sizes that inputs leave open
        self.made = 0

    def chance(self, share: float) -> bool:
        return self.random.random() < share

    def name(self) -> str:
        self.made += 1
        return f"v{self.made}"

    def add(self, kind: str, inputs: list[str], shape: tuple[int, ...], dtype: np.dtype | None = None, **attributes) -> str:
        """One output; of another type than the graph's floats where `dtype` says so."""
        name = self.name()
        self.nodes.append(helper.make_node(kind, inputs, [name], **attributes))
        self.note(name, inputs, shape, dtype)
        return name

    def note(self, name: str, inputs: list[str], shape: tuple[int, ...], dtype: np.dtype | None = None) -> None:
        if dtype is None or dtype == self.dtype:
            self.shapes[name] = tuple(shape)
        else:
            self.others[name] = np.dtype(dtype)
        self.read.update(inputs)

    def input(self, shape: tuple[int, ...], dtype: np.dtype | None = None) -> str:
        name = f"x{len(self.inputs)}"
        self.inputs[name] = (np.dtype(dtype or self.dtype), tuple(shape))
        self.note(name, [], shape, dtype)
        return name

    def weight(self, array: np.ndarray) -> str:
        name = f"w{len(self.weights)}"
        self.weights.append(numpy_helper.from_array(np.asarray(array), name))
        return name

    def floats(self, shape: tuple[int, ...], scale: float = 0.7) -> np.ndarray:
        return np.asarray(self.numbers.normal(0, scale, shape), self.dtype)

    def number(self, value: float) -> str:
        return self.weight(np.asarray(value, self.dtype))

    def ints(self, *values: int) -> str:
        assert not any(map(is_free, values))
        return self.weight(np.array(values, np.int64))

    def pick(self, rank: int = 0, most: int = 9, fixed: tuple[int, ...] = ()) -> str | None:
        """A value of a rank from `rank` to `most`, mostly a new one, whose axes `fixed` are no free sizes."""
        fitting = [name for name, shape in self.shapes.items()
                   if rank <= len(shape) <= most and not any(is_free(shape[axis]) for axis in fixed)]
        if not fitting:
            return None
        return self.random.choice(fitting[-5:] if self.chance(0.7) else fitting)

    def same_shape(self, x: str) -> str:
        return self.random.choice([name for name, shape in self.shapes.items() if shape == self.shapes[x]])

    def fixed_axis(self, x: str) -> int | None:
        axes = [axis for axis, size in enumerate(self.shapes[x]) if not is_free(size)]
        return self.random.choice(axes) if axes else None

    def size_of(self, x: str, axis: int) -> str:
        """One size of a value, computed by the graph, as a tensor of one element."""
        whole = self.add("Shape", [x], (), np.int64)
        how = self.random.randrange(3)
        if how == 0:
            return self.add("Gather", [whole, self.ints(axis)], (), np.int64)
        if how == 1:
            return self.add("Slice", [whole, self.ints(axis), self.ints(axis + 1)], (), np.int64)
        single = self.add("Gather", [whole, self.weight(np.int64(axis))], (), np.int64)
        return self.add("Unsqueeze", [single, self.ints(0)], (), np.int64)

    def reshape(self, x: str, shape: tuple[int, ...]) -> str:
        """To a shape whose only free size, if there is one, is the value's first; written down or computed."""
        if is_free(shape[0]) and (self.chance(0.5) or shape[0] != self.shapes[x][0]):
            parts = [self.size_of(x, self.shapes[x].index(shape[0])), self.ints(*shape[1:])]
            target = self.add("Concat", parts, (), np.int64, axis=0)
        else:
            target = self.ints(*(0 if is_free(size) else size for size in shape))
        return self.add("Reshape", [x, target], shape)

    def bounded(self, x: str) -> str:
        return self.add("Sigmoid", [x], self.shapes[x])

    @contextlib.contextmanager
    def body(self):
        """What is added inside goes to the list that this gives; its values end with it."""
        outer, self.nodes = self.nodes, []
        shapes, others, outside = dict(self.shapes), dict(self.others), self.outside
        self.outside = {*shapes, *others}
        try:
            yield self.nodes
        finally:
            self.nodes, self.shapes, self.others, self.outside = outer, shapes, others, outside

    def value_info(self, name: str, dtype: np.dtype, shape: tuple[int, ...] | None) -> onnx.ValueInfoProto:
        sizes = None if shape is None else [self.open.get(size, size) for size in shape]
        return helper.make_tensor_value_info(name, helper.np_dtype_to_tensor_dtype(dtype), sizes)

    def values_of(self, dtype: np.dtype, shape: tuple[int, ...]) -> np.ndarray:
        if dtype == np.bool_:
            return np.asarray(self.numbers.integers(0, 2, shape), bool)
        if dtype.kind in "iu":
            return np.asarray(self.numbers.integers(0, 3, shape), dtype)
        return np.asarray(self.numbers.normal(0, 1, shape), dtype)

    def sets(self) -> list[dict[str, np.ndarray]]:
        """Two if a size is open. More than the first may be: a second set that does not suit the graph is left out by all."""
        batches = self.random.sample((1, 2, 3, 5, 0), 2) if self.batch == BATCH else (1, 1)
        known = {size for _, shape in self.inputs.values() for size in shape if 1 < size < BATCH}
        if self.chance(0.4):
            self.open |= {size: f"size{size}" for size in sorted(known) if self.chance(0.6)}
        sets = []
        for number, batch in enumerate(batches[:2 if len(self.open) > 1 or self.batch == BATCH else 1]):
            sizes = {BATCH: batch}
            if number == 1 and self.chance(0.7):
                sizes |= {size: self.random.choice((1, 2, 7, size + 1, size + 9)) for size in self.open if size != BATCH}
            sets.append({name: self.values_of(dtype, tuple(sizes.get(size, size) for size in shape))
                         for name, (dtype, shape) in self.inputs.items()})
        return sets

    def finish(self) -> Graph:
        made = {name: self.dtype for name in self.shapes} | self.others
        made = {name: dtype for name, dtype in made.items() if name not in self.inputs}
        outputs = [name for name in made if name not in self.read]
        while made and self.chance(0.35):  # what others read as well
            outputs.append(self.random.choice([*made]))
        outputs = list(dict.fromkeys(outputs))
        sets = self.sets()
        graph = helper.make_graph(self.nodes, "random", [self.value_info(name, *what) for name, what in self.inputs.items()],
                                  [self.value_info(name, made[name], None) for name in outputs], self.weights)
        model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", self.opset)], ir_version=10)
        worst, mean = self.tolerance
        near = {"worst": 1e9, "mean": 0.02} if self.steps else {"worst": max(worst, 1e-2), "mean": max(mean, 1e-4)}
        near |= {"absolute": self.absolute, "bytes": self.off}
        plan = {"exact": True} if self.exact else {"worst": worst, "mean": mean, "absolute": self.absolute, "bytes": self.off}
        return Graph(model, sets, {"plan": plan, "other": near})
