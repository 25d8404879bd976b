"""Builds a model node by node, evaluating each node on sample inputs as it is added.

Because every value is known while building, weights are scaled so that each layer's output has
the wanted RMS, and batch normalisation carries the statistics of what it really sees.
"""

from __future__ import annotations

import dataclasses
import pathlib

import numpy as np
import onnx
import onnxruntime
from onnx import helper, numpy_helper

# Operators whose output counts as that of a layer when the RMS is checked.
LAYERS = {
    "Attention", "AveragePool", "BatchNormalization", "Concat", "Conv", "ConvTranspose", "Erf", "GRU", "Gemm",
    "GlobalAveragePool", "GroupNormalization", "InstanceNormalization", "LRN", "LSTM", "LayerNormalization", "MatMul",
    "MaxPool", "RMSNormalization", "RNN", "Relu", "Resize", "Sigmoid", "Sum", "Tanh",
}


@dataclasses.dataclass
class Built:
    """A model, inputs to try it on, and what is known of it."""

    model: onnx.ModelProto
    inputs: dict[str, np.ndarray]
    gflop: float = 0.0
    rms: dict[str, float] = dataclasses.field(default_factory=dict)  # of each layer's output
    external: bool = False  # keep large weights in a file of their own
    counterpart: Built | None = None  # the float32 model that this one was made of
    expected: dict[str, np.ndarray] = dataclasses.field(default_factory=dict)  # what another library says

    @property
    def megabytes(self) -> float:
        return sum(len(tensor.raw_data) for tensor in self.model.graph.initializer) / 1e6

    def save(self, path: pathlib.Path) -> None:
        path.unlink(missing_ok=True)
        if not self.external:
            onnx.save(self.model, path)
            return
        path.with_suffix(".data").unlink(missing_ok=True)  # it is written at its end
        model = onnx.ModelProto()
        model.CopyFrom(self.model)
        onnx.save(model, path, save_as_external_data=True, location=path.with_suffix(".data").name, size_threshold=1024)


def rms(array: np.ndarray) -> float:
    return float(np.sqrt(np.mean(np.square(array, dtype=np.float64)))) if array.size else 0.0


def ir_version(opsets: list[onnx.OperatorSetIdProto], least: int = 8) -> int:
    return max(least, helper.find_min_ir_version_for(opsets, ignore_unknown=True))


def captured(graph: onnx.GraphProto) -> set[str]:
    """Names that a subgraph takes from around it."""
    own = {info.name for info in graph.input} | {tensor.name for tensor in graph.initializer}
    own |= {name for node in graph.node for name in node.output}
    used = {name for node in graph.node for name in node.input} | {info.name for info in graph.output}
    for node in graph.node:
        for attribute in node.attribute:
            if attribute.HasField("g"):
                used |= captured(attribute.g)
    return used - own - {""}


def axes_of(attributes: dict, more: list[np.ndarray]) -> tuple[int, ...]:
    return tuple(attributes["axes"]) if "axes" in attributes else tuple(int(axis) for axis in more[0])


def reshaped(array: np.ndarray, shape: np.ndarray) -> np.ndarray:
    return array.reshape([array.shape[i] if size == 0 else int(size) for i, size in enumerate(shape)])


# Small operators that models have by the hundred: what they give is known without a session for each.
SHORTCUTS = {
    "Add": lambda a, x, y: x + y,
    "Cast": lambda a, x: x.astype(helper.tensor_dtype_to_np_dtype(a["to"])),
    "Concat": lambda a, *x: np.concatenate(x, a["axis"]),
    "Gather": lambda a, x, i: np.take(x, i, a.get("axis", 0)),
    "Identity": lambda a, x: x,
    "MatMul": lambda a, x, y: x @ y,
    "Mul": lambda a, x, y: x * y,
    "Relu": lambda a, x: np.maximum(x, 0),
    "Reshape": lambda a, x, shape: reshaped(x, shape),
    "Shape": lambda a, x: np.array(x.shape, np.int64)[a.get("start"):a.get("end")],
    "Sigmoid": lambda a, x: 1 / (1 + np.exp(-x)),
    "Sqrt": lambda a, x: np.sqrt(x),
    "Sub": lambda a, x, y: x - y,
    "Tanh": lambda a, x: np.tanh(x),
    "Transpose": lambda a, x: np.ascontiguousarray(x.transpose(a["perm"])),
    "Unsqueeze": lambda a, x, *axes: np.expand_dims(x, axes_of(a, axes)),
}


def evaluate_here(node: onnx.NodeProto, feeds: dict[str, np.ndarray]) -> list | None:
    if node.op_type not in SHORTCUTS or node.domain or not all(node.input):
        return None
    attributes = {attribute.name: helper.get_attribute_value(attribute) for attribute in node.attribute}
    with np.errstate(all="ignore"):
        return [np.asarray(SHORTCUTS[node.op_type](attributes, *(feeds[name] for name in node.input)))]


def evaluate(node: onnx.NodeProto, feeds: dict[str, np.ndarray], opset: int, functions=()) -> list:
    if (known := evaluate_here(node, feeds)) is not None:
        return known
    inputs = [helper.make_tensor_value_info(name, helper.np_dtype_to_tensor_dtype(array.dtype), array.shape)
              for name, array in feeds.items()]
    outputs = [onnx.ValueInfoProto(name=name) for name in node.output if name]
    opsets = [helper.make_opsetid("", opset)]
    opsets += [helper.make_opsetid(domain, 1) for domain in sorted({function.domain for function in functions})]
    if node.domain == "ai.onnx.ml":
        opsets.append(helper.make_opsetid("ai.onnx.ml", 3))
    model = helper.make_model(helper.make_graph([node], "one", inputs, outputs), ir_version=ir_version(opsets, 9),
                              opset_imports=opsets, functions=list(functions))
    options = onnxruntime.SessionOptions()
    options.log_severity_level = 3
    options.intra_op_num_threads = 1
    options.graph_optimization_level = onnxruntime.GraphOptimizationLevel.ORT_DISABLE_ALL
    results = iter(onnxruntime.InferenceSession(model.SerializeToString(), options).run(None, feeds))
    return [next(results) if name else None for name in node.output]


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
        self.functions: list[onnx.FunctionProto] = []
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
        coarse = self.random.normal(size=(1, 3, -(-side // 16), -(-side // 16)))
        fine = np.kron(coarse, np.ones((1, 1, 16, 16)))[..., :side, :side] + 0.5 * self.random.normal(size=(1, 3, side, side))
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

    @staticmethod
    def tensor(array: np.ndarray) -> onnx.TensorProto:
        """For attributes."""
        return numpy_helper.from_array(array)

    def ints(self, *values: int) -> str:
        return self.const(list(values), np.int64)

    def op(self, kind: str, *inputs: str, outputs: int = 1, names: list[str] | None = None, **attributes):
        """Adds a node; returns its output's name, or the list of them where there are several."""
        names = names or [f"{kind.lower()}{len(self.nodes)}" + (f"_{i}" if outputs > 1 else "")
                          for i in range(outputs)]
        node = helper.make_node(kind, list(inputs), names, name=f"{names[0]}/{kind}", **attributes)
        used = dict.fromkeys(name for name in inputs if name)
        for attribute in node.attribute:
            if attribute.HasField("g"):
                used.update(dict.fromkeys(sorted(captured(attribute.g))))
        results = evaluate(node, {name: self.values[name] for name in used}, self.opset, self.functions)
        self.nodes.append(node)
        self.values.update((name, value) for name, value in zip(names, results) if name)
        self._count(node, results)
        if kind in LAYERS and results[0].dtype == np.float32 and results[0].size:
            self.rms[names[0]] = rms(results[0])
        return names[0] if len(names) == 1 else names

    def _count(self, node: onnx.NodeProto, results: list[np.ndarray]) -> None:
        if node.op_type == "Conv":
            self.flop += 2 * results[0].size * int(np.prod(self.values[node.input[1]].shape[1:]))
        elif node.op_type == "ConvTranspose":
            self.flop += 2 * self.values[node.input[0]].size * int(np.prod(self.values[node.input[1]].shape[1:]))
        elif node.op_type in ("Gemm", "MatMul"):
            last = self.values[node.input[0]].shape
            transposed = any(a.name == "transA" and a.i for a in node.attribute)
            self.flop += 2 * results[0].size * last[0 if transposed else -1]
        elif node.op_type in ("LSTM", "GRU", "RNN"):
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
        channels, rank = self.values[x].shape[1] // group, self.values[x].ndim - 2
        inputs = [x, self.weight(self.normal(outputs, channels, *[kernel] * rank))]
        if bias:
            inputs.append(self.weight(np.zeros(outputs, np.float32)))
        y = self.op("Conv", *inputs, kernel_shape=[kernel] * rank, strides=[stride] * rank, pads=[pad] * 2 * rank,
                    group=group)
        self._calibrate(inputs[1], y, inputs[2] if bias else "", 1, target)
        return y

    def conv_transpose(self, x: str, outputs: int, kernel: int, stride: int, pad: int = 0, bias: bool = True,
                       target: float = 1.0, **attributes) -> str:
        channels, rank = self.values[x].shape[1], self.values[x].ndim - 2
        inputs = [x, self.weight(self.normal(channels, outputs, *[kernel] * rank))]
        if bias:
            inputs.append(self.weight(np.zeros(outputs, np.float32)))
        if pad:
            attributes["pads"] = [pad] * 2 * rank
        y = self.op("ConvTranspose", *inputs, kernel_shape=[kernel] * rank, strides=[stride] * rank, **attributes)
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

    def finish(self, outputs: dict[str, list], external: bool = False) -> Built:
        """outputs: the value that each output is, in order, with its declared dimensions."""
        infos = [helper.make_tensor_value_info(name, helper.np_dtype_to_tensor_dtype(self.values[name].dtype), dims)
                 for name, dims in outputs.items()]
        graph = helper.make_graph(self.nodes, self.name, self.infos, infos,
                                  [numpy_helper.from_array(array, name) for name, array in self.weights.items()])
        opsets = [helper.make_opsetid("", self.opset)]
        opsets += [helper.make_opsetid(domain, 1) for domain in sorted({one.domain for one in self.functions})]
        model = helper.make_model(graph, ir_version=ir_version(opsets), opset_imports=opsets,
                                  functions=self.functions, producer_name="sardonyx bench/zoo")
        return Built(model, self.feeds, self.flop / 1e9, self.rms, external)
