"""Builds a model node by node, evaluating each node on sample inputs as it is added.

Because every value is known while building, weights are scaled so that each layer's output has
the wanted RMS, and batch normalisation carries the statistics of what it really sees.
"""

from __future__ import annotations

import dataclasses

import numpy as np
import onnx
import onnxruntime
from onnx import helper, numpy_helper

# Operators whose output counts as that of a layer when the RMS is checked.
LAYERS = {
    "AveragePool", "BatchNormalization", "Concat", "Conv", "Erf", "Gemm", "GlobalAveragePool", "LRN",
    "LSTM", "LayerNormalization", "MatMul", "MaxPool", "Relu", "Sigmoid", "Sum", "Tanh",
}


@dataclasses.dataclass
class Built:
    """A model, inputs to try it on, and what is known of it."""

    model: onnx.ModelProto
    inputs: dict[str, np.ndarray]
    gflop: float = 0.0
    rms: dict[str, float] = dataclasses.field(default_factory=dict)  # of each layer's output

    @property
    def megabytes(self) -> float:
        return sum(len(tensor.raw_data) for tensor in self.model.graph.initializer) / 1e6


def rms(array: np.ndarray) -> float:
    return float(np.sqrt(np.mean(np.square(array, dtype=np.float64)))) if array.size else 0.0


def evaluate(node: onnx.NodeProto, feeds: dict[str, np.ndarray], opset: int) -> list[np.ndarray]:
    inputs = [helper.make_tensor_value_info(name, helper.np_dtype_to_tensor_dtype(array.dtype), array.shape)
              for name, array in feeds.items()]
    outputs = [onnx.ValueInfoProto(name=name) for name in node.output]
    model = helper.make_model(helper.make_graph([node], "one", inputs, outputs), ir_version=9,
                              opset_imports=[helper.make_opsetid("", opset)])
    options = onnxruntime.SessionOptions()
    options.log_severity_level = 3
    options.graph_optimization_level = onnxruntime.GraphOptimizationLevel.ORT_DISABLE_ALL
    return onnxruntime.InferenceSession(model.SerializeToString(), options).run(None, feeds)


class Net:
    def __init__(self, name: str, opset: int = 13, seed: int = 0):
        self.name = name
        self.opset = opset
        self.random = np.random.default_rng(seed)
        self.nodes: list[onnx.NodeProto] = []
        self.weights: dict[str, np.ndarray] = {}
        self.values: dict[str, np.ndarray] = {}
        self.infos: list[onnx.ValueInfoProto] = []
        self.feeds: dict[str, np.ndarray] = {}
        self.flop = 0
        self.rms: dict[str, float] = {}

    # --- values -------------------------------------------------------------------------------

    def input(self, name: str, sample: np.ndarray, dims: list) -> str:
        kind = helper.np_dtype_to_tensor_dtype(sample.dtype)
        self.infos.append(helper.make_tensor_value_info(name, kind, dims))
        self.values[name] = self.feeds[name] = sample
        return name

    def image(self, name: str, side: int, dims: list | None = None) -> str:
        """A smooth picture with some noise, normalised as networks expect it."""
        coarse = self.random.normal(size=(1, 3, side // 16, side // 16))
        fine = np.kron(coarse, np.ones((1, 1, 16, 16))) + 0.5 * self.random.normal(size=(1, 3, side, side))
        return self.input(name, (fine / fine.std()).astype(np.float32), dims or [1, 3, side, side])

    def weight(self, array: np.ndarray, name: str = "") -> str:
        name = name or f"w{len(self.weights)}"
        self.weights[name] = self.values[name] = array
        return name

    def normal(self, *shape: int, std: float = 1.0) -> np.ndarray:
        return self.random.standard_normal(shape, np.float32) * np.float32(std)

    def const(self, value, dtype=np.float32) -> str:
        """A Constant node, as exporters write small operands."""
        array = np.array(value, dtype=dtype)
        name = f"c{len(self.nodes)}"
        self.nodes.append(helper.make_node("Constant", [], [name], name=name + "/Constant",
                                           value=numpy_helper.from_array(array)))
        self.values[name] = array
        return name

    def ints(self, *values: int) -> str:
        return self.const(list(values), np.int64)

    def op(self, kind: str, *inputs: str, outputs: int = 1, names: list[str] | None = None, **attributes):
        """Adds a node; returns its output's name, or the list of them where there are several."""
        names = names or [f"{kind.lower()}{len(self.nodes)}" + (f"_{i}" if outputs > 1 else "")
                          for i in range(outputs)]
        node = helper.make_node(kind, list(inputs), names, name=f"{names[0]}/{kind}", **attributes)
        results = evaluate(node, {name: self.values[name] for name in inputs if name}, self.opset)
        self.nodes.append(node)
        self.values.update(zip(names, results))
        self._count(node, results)
        if kind in LAYERS and results[0].dtype == np.float32 and results[0].size:
            self.rms[names[0]] = rms(results[0])
        return names[0] if len(names) == 1 else names

    def _count(self, node: onnx.NodeProto, results: list[np.ndarray]) -> None:
        if node.op_type == "Conv":
            self.flop += 2 * results[0].size * int(np.prod(self.values[node.input[1]].shape[1:]))
        elif node.op_type in ("Gemm", "MatMul"):
            last = self.values[node.input[0]].shape
            transposed = any(a.name == "transA" and a.i for a in node.attribute)
            self.flop += 2 * results[0].size * last[0 if transposed else -1]
        elif node.op_type == "LSTM":
            steps, batch = self.values[node.input[0]].shape[:2]
            weights = self.values[node.input[1]].size + self.values[node.input[2]].size
            self.flop += 2 * steps * batch * weights

    # --- layers -------------------------------------------------------------------------------

    def _calibrate(self, weight: str, output: str, bias: str, channel_axis: int, target: float) -> None:
        """Scales a linear layer's weight so that its output, without the bias, has RMS `target`."""
        factor = np.float32(target / max(rms(self.values[output]), 1e-12))
        self.weights[weight] *= factor
        self.values[output] = self.values[output] * factor
        if bias:
            values = self.normal(len(self.values[bias]), std=0.1 * target)
            self.weights[bias][:] = values
            shape = [1] * self.values[output].ndim
            shape[channel_axis] = -1
            self.values[output] = self.values[output] + values.reshape(shape)
        self.rms[output] = rms(self.values[output])

    def conv(self, x: str, outputs: int, kernel: int, stride: int = 1, pad: int = 0, group: int = 1,
             bias: bool = True, target: float = 1.0) -> str:
        channels = self.values[x].shape[1] // group
        inputs = [x, self.weight(self.normal(outputs, channels, kernel, kernel))]
        if bias:
            inputs.append(self.weight(np.zeros(outputs, np.float32)))
        y = self.op("Conv", *inputs, kernel_shape=[kernel] * 2, strides=[stride] * 2, pads=[pad] * 4, group=group)
        self._calibrate(inputs[1], y, inputs[2] if bias else "", 1, target)
        return y

    def gemm(self, x: str, outputs: int, target: float = 1.0, transposed: bool = True) -> str:
        inputs = self.values[x].shape[1]
        weight = self.weight(self.normal(*((outputs, inputs) if transposed else (inputs, outputs))))
        bias = self.weight(np.zeros(outputs, np.float32))
        y = self.op("Gemm", x, weight, bias, **({"transB": 1} if transposed else {}))
        self._calibrate(weight, y, bias, 1, target)
        return y

    def matmul_add(self, x: str, outputs: int, target: float = 1.0) -> str:
        """A dense layer on the last axis, written as exporters do for inputs of rank 3."""
        y = self.matmul(x, outputs, target)
        return self.op("Add", self.weight(self.normal(outputs, std=0.1 * target)), y)

    def matmul(self, x: str, outputs: int, target: float = 1.0) -> str:
        weight = self.weight(self.normal(self.values[x].shape[-1], outputs))
        y = self.op("MatMul", x, weight)
        self._calibrate(weight, y, "", -1, target)
        return y

    def batchnorm(self, x: str, scale: float = 1.0, epsilon: float = 1e-5) -> str:
        values = self.values[x]
        axes = (0, *range(2, values.ndim))
        mean, variance = values.mean(axes), values.var(axes)
        count = len(mean)
        parameters = [
            self.random.uniform(0.7, 1.3, count) * scale,
            self.normal(count, std=0.2 * scale),
            mean + 0.05 * self.normal(count) * np.sqrt(variance),
            np.maximum(variance, 0.01 * variance.mean()) * self.random.uniform(0.9, 1.1, count),
        ]
        return self.op("BatchNormalization", x, *(self.weight(p.astype(np.float32)) for p in parameters),
                       epsilon=epsilon)

    def conv_bn_relu(self, x: str, outputs: int, kernel: int, stride: int = 1, pad: int = 0, group: int = 1) -> str:
        y = self.conv(x, outputs, kernel, stride, pad, group, bias=False)
        return self.op("Relu", self.batchnorm(y))

    def conv_relu(self, x: str, outputs: int, kernel: int, stride: int = 1, pad: int = 0, group: int = 1) -> str:
        return self.op("Relu", self.conv(x, outputs, kernel, stride, pad, group))

    def maxpool(self, x: str, kernel: int, stride: int, pads: list[int] | int = 0, **attributes) -> str:
        pads = pads if isinstance(pads, list) else [pads] * 4
        return self.op("MaxPool", x, kernel_shape=[kernel] * 2, strides=[stride] * 2, pads=pads, **attributes)

    def averagepool(self, x: str, kernel: int, stride: int, pad: int = 0) -> str:
        return self.op("AveragePool", x, kernel_shape=[kernel] * 2, strides=[stride] * 2, pads=[pad] * 4,
                       count_include_pad=1)

    def classifier(self, x: str, classes: int = 1000, softmax: bool = False) -> str:
        y = self.gemm(self.op("Flatten", x, axis=1), classes, target=2.0)
        return self.op("Softmax", y, axis=1) if softmax else y

    # --- the model ----------------------------------------------------------------------------

    def finish(self, outputs: dict[str, list]) -> Built:
        """outputs: the value that each output is, in order, with its declared dimensions."""
        infos = [helper.make_tensor_value_info(name, helper.np_dtype_to_tensor_dtype(self.values[name].dtype), dims)
                 for name, dims in outputs.items()]
        graph = helper.make_graph(self.nodes, self.name, self.infos, infos,
                                  [numpy_helper.from_array(array, name) for name, array in self.weights.items()])
        model = helper.make_model(graph, ir_version=8, opset_imports=[helper.make_opsetid("", self.opset)],
                                  producer_name="sardonyx bench/zoo")
        return Built(model, self.feeds, self.flop / 1e9, self.rms)
