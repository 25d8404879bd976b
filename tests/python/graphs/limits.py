"""Chains of what makes sizes out of numbers, with numbers at the limits: what is too much has to be refused.

Nothing here holds many elements unless its sizes say so, which is for the memory limit to find.
"""

from __future__ import annotations

import random

import numpy as np
import onnx
from onnx import TensorProto, helper, numpy_helper

from .maker import Graph

LIMITS = (2**63 - 1, -2**63, 2**62, 2**61, 2**33, 2**32, 2**31, 2**31 - 1, -2**31, 2**20, 65537, -1, -2, 0, 0, 1, 1, 2, 2, 3, 5, 7)
SMALL = (0, 0, 1, 1, 2, 3)


class Chain:
    def __init__(self, seed: int):
        self.random = random.Random(seed)
        self.nodes: list[onnx.NodeProto] = []
        self.weights: list[onnx.TensorProto] = []
        self.inputs: dict[str, int] = {}  # how many integers each holds; 0: one that is no list
        self.tensors = ["x"]
        self.numbers: list[str] = []  # lists of one integer

    def name(self) -> str:
        return f"v{len(self.nodes)}"

    def integer(self) -> int:
        return self.random.choice(LIMITS if self.random.random() < 0.4 else SMALL)

    def list(self, length: int) -> str:
        """Integers that are a weight, come with the run, or are computed."""
        how = self.random.randrange(4)
        if how == 0 and length == 1 and self.numbers:
            return self.random.choice(self.numbers)
        if how < 3:
            name = f"w{len(self.weights)}"
            values = np.array([self.integer() for _ in range(length)], np.int64)
            self.weights.append(numpy_helper.from_array(values, name))
        else:
            name = f"k{len(self.inputs)}"
            self.inputs[name] = length
        return name

    def scalar(self) -> str:
        name = f"k{len(self.inputs)}"
        self.inputs[name] = 0
        return name

    def add(self, kind: str, *inputs: str, **attributes) -> str:
        name = self.name()
        self.nodes.append(helper.make_node(kind, inputs, [name], **attributes))
        return name

    def step(self) -> None:
        """All tensors have rank 2."""
        x = self.random.choice(self.tensors)
        kind = self.random.randrange(16)
        new = None
        if kind == 0:
            new = self.add("Tile", x, self.list(2))
        elif kind == 1:
            new = self.add("Expand", x, self.list(2))
        elif kind == 2:
            new = self.add("ConstantOfShape", self.list(2))
        elif kind == 3:
            new = self.add("Pad", x, self.list(4), mode=self.random.choice(("constant", "constant", "edge", "wrap", "reflect")))
        elif kind == 4:
            new = self.add("Concat", x, self.random.choice(self.tensors), x, axis=self.random.choice((0, 1)))
        elif kind == 5:
            new = self.add("Reshape", x, self.list(2), allowzero=self.random.choice((0, 1)))
        elif kind == 6:
            new = self.add("Slice", x, self.list(1), self.list(1), self.list(1), self.list(1))
        elif kind == 7:
            new = self.add("Resize", x, "", "", self.list(2), mode=self.random.choice(("nearest", "linear")))
        elif kind == 8:
            new = self.add("MatMul", x, self.add("Transpose", self.random.choice(self.tensors)))
        elif kind == 9:
            new = self.add("Gather", x, self.list(1), axis=self.random.choice((0, 1)))
        elif kind == 10:
            new = self.add("Unsqueeze", self.add("Range", self.scalar(), self.scalar(), self.scalar()), self.weight([0]))
            new = self.add("Cast", new, to=TensorProto.FLOAT)
        elif kind == 11:
            new = self.add("Add", x, self.random.choice(self.tensors))
        elif kind == 12:
            new = self.add("CenterCropPad", x, self.list(2))
        elif kind == 13:
            new = self.add("ReduceSum", x, self.weight([self.random.choice((0, 1))]))
        elif kind == 14:
            self.numbers.append(self.add("Mul", self.list(1), self.add("Slice", self.add("Shape", x), self.weight([0]), self.weight([1]))))
        else:
            self.numbers.append(self.add(self.random.choice(("Add", "Sub", "Mul", "Div", "Mod")), self.list(1), self.list(1)))
        if new:
            self.tensors.append(new)

    def weight(self, values) -> str:
        name = f"w{len(self.weights)}"
        self.weights.append(numpy_helper.from_array(np.array(values, np.int64), name))
        return name

    def finish(self) -> Graph:
        outputs = []
        for x in self.tensors[-3:]:
            how = self.random.randrange(4)
            if how == 0 and x != "x":
                outputs.append(x)
            elif how == 1:
                outputs.append(self.add("Shape", x))
            elif how == 2:
                outputs.append(self.add("ReduceSum", x, keepdims=0))
            else:
                outputs.append(self.add("Slice", x, self.weight([0, 0]), self.weight([2, 2])))
        infos = [helper.make_tensor_value_info("x", TensorProto.FLOAT, ["n", "m"])]
        infos += [helper.make_tensor_value_info(name, TensorProto.INT64, [length] if length else []) for name, length in self.inputs.items()]
        graph = helper.make_graph(self.nodes, "limits", infos, [onnx.ValueInfoProto(name=name) for name in dict.fromkeys(outputs)], self.weights)
        model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 21)], ir_version=10)
        sets = []
        for _ in range(4):
            values = {"x": np.ones((self.random.choice(SMALL), self.random.choice(SMALL)), np.float32)}
            for name, length in self.inputs.items():
                integers = [self.integer() for _ in range(length)]
                values[name] = np.array(integers if length else self.integer(), np.int64)
            sets.append(values)
        near = {"worst": 1e-3, "mean": 1e-4, "absolute": 1e-5}
        return Graph(model, sets, {"plan": near, "other": near, "may_refuse": True})


def make(seed: int) -> Graph:
    chain = Chain(seed)
    for _ in range(chain.random.randint(1, 6)):
        chain.step()
    return chain.finish()
