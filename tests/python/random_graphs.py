"""Random graphs of ordinary operators, whose planned run must give what plain evaluation gives.

Values of many shapes meet (whole, rows, columns, channels, single numbers), are read once or several times, by nodes or as outputs,
so that what fuses nodes meets the neighbourhoods that networks seldom have.

    .venv/bin/python tests/python/random_graphs.py PROGRAM [--seed 1] [--count 1000]
"""

from __future__ import annotations

import argparse
import dataclasses
import pathlib
import random
import sys
import tempfile

import numpy as np
import onnx
from conftest import Program
from onnx import TensorProto, helper, numpy_helper

TOLERANCE = 1e-3  # of the root mean square

UNARY = """Abs Neg Sigmoid Tanh Relu LeakyRelu Erf Softplus HardSwish HardSigmoid Elu Floor Identity Gelu Mish Celu Sin Selu
           Softsign Round""".split()
BINARY = "Add Sub Mul Max Min".split()
BOUNDED = {"Div": (1,), "Pow": (0, 1)}  # operands that a Sigmoid keeps away from what has no value


@dataclasses.dataclass
class Graph:
    model: onnx.ModelProto
    inputs: dict[str, np.ndarray]
    outputs: list[str]
    exact: bool  # nothing sums, so that the same bits are expected


class Maker:
    """Adds node after node; `shapes` knows the float values so far."""

    def __init__(self, seed: int):
        self.random = random.Random(seed)
        self.numbers = np.random.default_rng(seed)
        self.nodes: list[onnx.NodeProto] = []
        self.weights: list[onnx.TensorProto] = []
        self.shapes: dict[str, tuple[int, ...]] = {}
        self.read: set[str] = set()
        self.exact = True
        n, c, h, w = (self.random.choice(sizes) for sizes in ((1, 2, 3), (1, 3, 4, 8, 16, 24), (1, 2, 5, 8), (1, 7, 16, 64, 100)))
        self.whole = (n, c, h, w)
        self.usual = [self.whole, self.whole, (c, h, w), (c, 1, 1), (1, c, 1, 1), (w,), (1, w), (h, w), (h, 1), (1,), (),
                      (n, 1, 1, 1), (n, c, 1, 1), (1, 1, 1, w)]

    def add(self, kind: str, inputs: list[str], shape: tuple[int, ...], **attributes) -> str:
        name = f"v{len(self.nodes)}"
        self.nodes.append(helper.make_node(kind, inputs, [name], **attributes))
        self.shapes[name] = shape
        self.read.update(inputs)
        return name

    def weight(self, array: np.ndarray) -> str:
        name = f"w{len(self.weights)}"
        self.weights.append(numpy_helper.from_array(np.asarray(array), name))
        return name

    def floats(self, shape: tuple[int, ...], scale: float = 0.7) -> np.ndarray:
        return np.asarray(self.numbers.normal(0, scale, shape), np.float32)

    def pick(self, rank: int = 0) -> str | None:
        """A value of at least that rank, mostly a new one."""
        fitting = [name for name, shape in self.shapes.items() if len(shape) >= rank]
        if not fitting:
            return None
        return self.random.choice(fitting[-5:] if self.random.random() < 0.7 else fitting)

    def unary(self) -> None:
        x = self.pick()
        self.add(self.random.choice(UNARY), [x], self.shapes[x])

    def binary(self) -> None:
        kind = self.random.choice([*BINARY, *BOUNDED])
        if self.random.random() < 0.5:
            other = self.pick()
            shape = self.shapes[other]
        else:
            shape = self.random.choice(self.usual)
            other = self.weight(self.floats(shape))
        both = [(x := self.pick(), self.shapes[x]), (other, shape)]
        self.random.shuffle(both)
        sides, shapes = [side for side, _ in both], [shape for _, shape in both]
        try:
            shape = np.broadcast_shapes(*shapes)
        except ValueError:
            return
        for side in BOUNDED.get(kind, ()):
            sides[side] = self.add("Sigmoid", [sides[side]], shapes[side])
        self.add(kind, sides, shape)

    def where(self) -> None:
        x, y = self.pick(), self.pick()
        try:
            shape = np.broadcast_shapes(self.shapes[x], self.shapes[y])
        except ValueError:
            return
        test = self.add("Greater", [x, y], ())
        del self.shapes[test]  # no float
        self.add("Where", [test, x, y], shape)

    def clip(self) -> None:
        x = self.pick()
        low, high = (self.weight(np.float32(bound)) for bound in (-0.4, 0.9))
        self.add("Clip", [x, low, high], self.shapes[x])

    def bytes(self) -> None:
        x = self.pick()
        kind = self.random.choice((np.uint8, np.int8))
        parts = [self.weight(np.float32(self.random.uniform(0.005, 0.03))), self.weight(kind(self.random.choice((0, 5, 100))))]
        small = self.add("QuantizeLinear", [x, *parts], self.shapes[x])
        del self.shapes[small]
        self.add("DequantizeLinear", [small, *parts], self.shapes[x])

    def transpose(self) -> None:
        if x := self.pick(2):
            order = list(range(len(self.shapes[x])))
            self.random.shuffle(order)
            self.add("Transpose", [x], tuple(self.shapes[x][axis] for axis in order), perm=order)

    def reshape(self) -> None:
        if x := self.pick(2):
            first, *rest = self.shapes[x]
            shape = (first, int(np.prod(rest)))
            self.add("Reshape", [x, self.weight(np.array(shape))], shape)

    def concat(self) -> None:
        if x := self.pick(1):
            shape = list(self.shapes[x])
            same = [name for name, other in self.shapes.items() if other == self.shapes[x]]
            axis = self.random.randrange(len(shape))
            shape[axis] *= 2
            self.add("Concat", [x, self.random.choice(same)], tuple(shape), axis=axis)

    def slice(self) -> None:
        if x := self.pick(1):
            shape = list(self.shapes[x])
            axis = self.random.randrange(len(shape))
            end = self.random.randint(1, shape[axis])
            parts = [self.weight(np.array([number])) for number in (0, end, axis)]
            shape[axis] = end
            self.add("Slice", [x, *parts], tuple(shape))

    def pad(self) -> None:
        if x := self.pick(1):
            pads = [self.random.choice((0, 0, 1, 2)) for _ in range(2 * len(self.shapes[x]))]
            rank = len(self.shapes[x])
            shape = tuple(size + pads[axis] + pads[axis + rank] for axis, size in enumerate(self.shapes[x]))
            self.add("Pad", [x, self.weight(np.array(pads))], shape)

    def expand(self) -> None:
        if x := self.pick(1):
            shape = tuple(3 if size == 1 and self.random.random() < 0.5 else size for size in self.shapes[x])
            self.add("Expand", [x, self.weight(np.array(shape))], shape)

    def unsqueeze(self) -> None:
        if (x := self.pick()) and len(self.shapes[x]) < 4:
            axis = self.random.randint(0, len(self.shapes[x]))
            shape = [*self.shapes[x][:axis], 1, *self.shapes[x][axis:]]
            self.add("Unsqueeze", [x, self.weight(np.array([axis]))], tuple(shape))

    def squeeze(self) -> None:
        if x := self.pick(1):
            single = [axis for axis, size in enumerate(self.shapes[x]) if size == 1]
            if single:
                axis = self.random.choice(single)
                self.add("Squeeze", [x, self.weight(np.array([axis]))], self.shapes[x][:axis] + self.shapes[x][axis + 1:])

    def gather(self) -> None:
        if x := self.pick(1):
            shape = list(self.shapes[x])
            axis = self.random.randrange(len(shape))
            places = self.numbers.integers(0, shape[axis], self.random.choice(((), (1,), (4,))))
            shape[axis:axis + 1] = places.shape
            self.add("Gather", [x, self.weight(places)], tuple(shape), axis=axis)

    def reduce(self) -> None:
        if x := self.pick(1):
            axis, kept = self.random.randrange(len(self.shapes[x])), self.random.randint(0, 1)
            shape = [size if other != axis else 1 for other, size in enumerate(self.shapes[x]) if other != axis or kept]
            kind = self.random.choice(["ReduceMean", "ReduceMax", "ReduceSum", "ReduceL2"])
            self.add(kind, [x, self.weight(np.array([axis]))], tuple(shape), keepdims=kept)
            self.exact = False

    def softmax(self) -> None:
        if x := self.pick(1):
            self.add(self.random.choice(["Softmax", "LogSoftmax"]), [x], self.shapes[x],
                     axis=self.random.randrange(len(self.shapes[x])))
            self.exact = False

    def normalise(self) -> None:
        if x := self.pick(1):
            size = self.shapes[x][-1:]
            self.add("LayerNormalization", [x, self.weight(self.floats(size)), self.weight(self.floats(size))], self.shapes[x])
            self.exact = False

    def product(self) -> None:
        if x := self.pick(2):
            *outer, terms = self.shapes[x]
            columns = self.random.choice((1, 4, 16, 64))
            self.add("MatMul", [x, self.weight(self.floats((terms, columns), terms**-0.5))], (*outer, columns))
            self.exact = False

    def conv(self) -> None:
        if x := self.pick(4):
            n, c, h, w = self.shapes[x]
            group, size, stride = self.random.choice((1, c)), self.random.choice((1, 3, 5)), self.random.choice((1, 1, 2))
            channels = self.random.choice((c, 8)) if group == 1 else c
            weights = [self.weight(self.floats((channels, c // group, size, size), (c // group * size * size) ** -0.5))]
            if self.random.random() < 0.5:
                weights.append(self.weight(self.floats((channels,))))
            shape = (n, channels, *((side - 1) // stride + 1 for side in (h, w)))
            y = self.add("Conv", [x, *weights], shape, group=group, pads=[size // 2] * 4, strides=[stride] * 2)
            if self.random.random() < 0.3:
                parts = [self.floats((channels,)) for _ in range(3)] + [np.abs(self.floats((channels,))) + 0.5]
                self.add("BatchNormalization", [y, *map(self.weight, parts)], shape)
            self.exact = False

    def turned_conv(self) -> None:
        if x := self.pick(4):
            n, c, h, w = self.shapes[x]
            weight = self.weight(self.floats((c, 4, 2, 2), c**-0.5))
            self.add("ConvTranspose", [x, weight], (n, 4, 2 * h, 2 * w), strides=[2, 2])
            self.exact = False

    def two_matrices(self) -> None:
        if x := self.pick(2):
            order = [*range(len(self.shapes[x]) - 2), len(self.shapes[x]) - 1, len(self.shapes[x]) - 2]
            turned = self.add("Transpose", [x], tuple(self.shapes[x][axis] for axis in order), perm=order)
            self.add("MatMul", [x, turned], (*self.shapes[x][:-1], self.shapes[x][-2]))
            self.exact = False

    def instances(self) -> None:
        if x := self.pick(3):
            size = self.shapes[x][1:2]
            self.add("InstanceNormalization", [x, self.weight(self.floats(size)), self.weight(self.floats(size))], self.shapes[x])
            self.exact = False

    def pool(self) -> None:
        if x := self.pick(4):
            n, c, h, w = self.shapes[x]
            if self.random.random() < 0.3:
                self.add("GlobalAveragePool", [x], (n, c, 1, 1))
            else:
                self.add(self.random.choice(["MaxPool", "AveragePool"]), [x], self.shapes[x], kernel_shape=[3, 3], pads=[1] * 4)
            self.exact = False

    def finish(self) -> Graph:
        made = [name for name in self.shapes if not name.startswith("x")]
        outputs = [name for name in made if name not in self.read]
        if self.random.random() < 0.2:
            outputs = list(dict.fromkeys([*outputs, self.random.choice(made)]))
        named = self.random.random() < 0.3  # the batch has a name

        def info(name: str) -> onnx.ValueInfoProto:
            shape = self.shapes[name]
            free = named and len(shape) == 4 and shape[0] == self.whole[0]
            return helper.make_tensor_value_info(name, TensorProto.FLOAT, ["batch", *shape[1:]] if free else shape)

        inputs = {name: self.floats(shape, 1.0) for name, shape in self.shapes.items() if name.startswith("x")}
        graph = helper.make_graph(self.nodes, "random", [info(name) for name in inputs],
                                  [helper.make_tensor_value_info(name, TensorProto.FLOAT, None) for name in outputs], self.weights)
        model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 21)], ir_version=10)
        return Graph(model, inputs, outputs, self.exact)


def make(seed: int) -> Graph:
    """Every third graph has bytes between its operators and nothing that sums: a sum that ends a bit beside
    another can fall on the other side of a rounding."""
    maker = Maker(seed)
    for index in range(maker.random.randint(1, 4)):
        maker.shapes[f"x{index}"] = maker.whole if index == 0 else maker.random.choice(maker.usual)
    usual = [maker.unary] * 6 + [maker.binary] * 7 + [maker.where, maker.clip, maker.transpose, maker.reshape, maker.concat, maker.slice,
                                                  maker.pad, maker.expand, maker.unsqueeze, maker.squeeze, maker.gather]
    sums = [maker.reduce, maker.softmax, maker.normalise, maker.product, maker.conv, maker.conv, maker.conv, maker.pool,
            maker.turned_conv, maker.two_matrices, maker.instances]
    steps = usual + ([maker.bytes] * 5 if seed % 3 == 0 else sums)
    wanted = maker.random.randint(2, 14)
    while len(maker.nodes) < wanted:
        maker.random.choice(steps)()
    return maker.finish()


def differences(sardonyx: Program, seed: int, folder: pathlib.Path) -> list[str]:
    graph = make(seed)
    path = folder / "random.onnx"
    onnx.save(graph.model, path)
    one, two, plain = (sardonyx.outputs(path, graph.inputs, folder, *more)
                       for more in (("-t", 1), ("-t", 2), ("-t", 1, "--plain")))
    found = []
    for name, mine, other, expected in zip(graph.outputs, one, two, plain):
        if mine.tobytes() != other.tobytes():
            found.append(f"seed {seed}: {name}: two threads give other bits")
        if mine.shape != expected.shape:
            found.append(f"seed {seed}: {name}: shape {mine.shape}, plain {expected.shape}")
            continue
        finite = np.isfinite(expected)
        if graph.exact and not np.array_equal(mine, expected, equal_nan=True):
            found.append(f"seed {seed}: {name}: other numbers than plain")
        elif not np.array_equal(np.isfinite(mine), finite):
            found.append(f"seed {seed}: {name}: other elements are finite")
        elif finite.any():
            size = np.sqrt(np.mean(np.square(expected[finite], dtype=np.float64))) + 1e-6
            worst = np.abs(mine[finite].astype(np.float64) - expected[finite]).max() / size
            if worst > TOLERANCE:
                found.append(f"seed {seed}: {name}: differs by {worst:.2g} of its RMS")
    return found


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("program")
    parser.add_argument("--seed", type=int, default=1, help="of the first graph")
    parser.add_argument("--count", type=int, default=1000)
    options = parser.parse_args()
    bad = 0
    with tempfile.TemporaryDirectory() as folder:
        for seed in range(options.seed, options.seed + options.count):
            for line in differences(Program(options.program), seed, pathlib.Path(folder)):
                print(line, flush=True)
                bad += 1
    print(f"{options.count} graphs, {bad} differences")
    return 1 if bad else 0


if __name__ == "__main__":
    sys.exit(main())
