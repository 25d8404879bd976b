"""Models with small integers for weights, made from the float ones: what a quantiser writes, in its usual forms."""

from __future__ import annotations

import ml_dtypes
import numpy as np
import onnx
import onnxruntime
from onnx import helper, numpy_helper

from . import decoders, mobile, transformers, vision
from .net import Built, ir_version

weight_bits = 8  # of int8 weights; bench/run.py --weight-bits sets it
signed_activations = False  # int8 instead of uint8; bench/run.py --signed-activations sets it


def largest_weight() -> int:
    return 2**(weight_bits - 1) - 1


def ranges(built: Built) -> dict[str, tuple[float, float]]:
    """Least and largest of each float value while the model runs on its inputs; always about zero."""
    probe = onnx.ModelProto()
    probe.CopyFrom(built.model)
    del probe.graph.output[:]
    probe.graph.output.extend(onnx.ValueInfoProto(name=name) for node in probe.graph.node for name in node.output)
    options = onnxruntime.SessionOptions()
    options.log_severity_level = 3
    options.graph_optimization_level = onnxruntime.GraphOptimizationLevel.ORT_DISABLE_ALL
    results = onnxruntime.InferenceSession(probe.SerializeToString(), options).run(None, built.inputs)
    values = dict(zip((output.name for output in probe.graph.output), results)) | built.inputs
    return {name: (min(float(value.min()), 0.0), max(float(value.max()), 0.0)) for name, value in values.items()
            if value.dtype == np.float32 and value.size}


def fold_normalisation(model: onnx.ModelProto) -> None:
    """BatchNormalization into the convolution before it, as every quantiser begins."""
    weights = {tensor.name: tensor for tensor in model.graph.initializer}
    made = {node.output[0]: node for node in model.graph.node}
    for node in [node for node in model.graph.node if node.op_type == "BatchNormalization"]:
        conv = made[node.input[0]]
        scale, bias, mean, variance = (numpy_helper.to_array(weights[name]) for name in node.input[1:])
        epsilon = next((a.f for a in node.attribute if a.name == "epsilon"), 1e-5)
        factor = scale / np.sqrt(variance + epsilon)
        weight = weights[conv.input[1]]
        shape = (-1, *[1] * (len(weight.dims) - 1))
        folded = numpy_helper.to_array(weight) * factor.reshape(shape)
        weight.CopyFrom(numpy_helper.from_array(folded.astype(np.float32), weight.name))
        name = conv.output[0] + ".bias"
        before = numpy_helper.to_array(weights[conv.input[2]]) if len(conv.input) > 2 else 0
        model.graph.initializer.append(numpy_helper.from_array((bias + (before - mean) * factor).astype(np.float32), name))
        weights[name] = model.graph.initializer[-1]
        del conv.input[2:]
        conv.input.append(name)
        conv.output[0] = node.output[0]
        model.graph.node.remove(node)


class Quantiser:
    """Carries a float model over, node by node."""

    def __init__(self, built: Built, name: str):
        self.model = onnx.ModelProto()
        self.model.CopyFrom(built.model)
        fold_normalisation(self.model)
        self.built, self.name = built, name
        self.ranges = ranges(Built(self.model, built.inputs))
        self.weights = {tensor.name: numpy_helper.to_array(tensor) for tensor in self.model.graph.initializer}
        self.nodes: list[onnx.NodeProto] = []
        self.new: dict[str, onnx.TensorProto] = {}
        self.small: dict[str, str] = {}  # a float value's name -> that of its quantised form

    def keep(self, name: str, array: np.ndarray) -> str:
        self.new[name] = numpy_helper.from_array(array, name)
        return name

    def add(self, kind: str, inputs: list[str], output: str, **attributes) -> str:
        self.nodes.append(helper.make_node(kind, inputs, [output], name=output + "/" + kind, **attributes))
        return output

    def step(self, name: str) -> tuple[np.float32, np.uint8 | np.int8]:
        low, high = self.ranges[name]
        scale = np.float32(max(high - low, 1e-6) / 255)
        zero = np.clip(round(-low / scale), 0, 255)
        return scale, np.int8(zero - 128) if signed_activations else np.uint8(zero)

    def parameters(self, name: str) -> list[str]:
        scale, zero = self.step(name)
        return [self.keep(name + "_scale", np.array(scale)), self.keep(name + "_zero_point", np.array(zero))]

    def quantise(self, name: str) -> str:
        if name not in self.small:
            self.small[name] = self.add("QuantizeLinear", [name, *self.parameters(name)], name + "_quantized")
        return self.small[name]

    def weight(self, name: str, axis: int) -> tuple[list[str], np.ndarray]:
        """A weight in int8 with a scale for each channel, no zero point but 0."""
        array = self.weights[name]
        others = tuple(i for i in range(array.ndim) if i != axis)
        most = largest_weight()
        scales = (np.maximum(np.abs(array).max(others), 1e-8) / most).astype(np.float32)
        shape = [1] * array.ndim
        shape[axis] = -1
        small = np.clip(np.round(array / scales.reshape(shape)), -most, most).astype(np.int8)
        return [self.keep(name + "_quantized", small), self.keep(name + "_scale", scales),
                self.keep(name + "_zero_point", np.zeros(len(scales), np.int8))], scales

    def bias(self, name: str, x: str, scales: np.ndarray) -> tuple[str, np.ndarray]:
        scale = (self.step(x)[0] * scales).astype(np.float32)
        return self.keep(name + "_quantized", np.round(self.weights[name] / scale).astype(np.int32)), scale

    def finish(self) -> Built:
        used = {name for node in self.nodes for name in node.input}
        graph = self.model.graph
        kept = [tensor for tensor in graph.initializer if tensor.name in used]
        new = helper.make_graph(self.nodes, self.name, graph.input, graph.output, [*kept, *self.new.values()])
        opsets = self.model.opset_import
        model = helper.make_model(new, ir_version=ir_version(opsets), opset_imports=opsets,
                                  producer_name="sardonyx bench/zoo")
        return Built(model, self.built.inputs, self.built.gflop)


def output_axis(node: onnx.NodeProto) -> int:
    transposed = any(attribute.name == "transB" and attribute.i for attribute in node.attribute)
    return 0 if node.op_type == "Conv" or transposed else 1


def as_pairs(built: Built, name: str, kinds: set[str]) -> Built:
    """QuantizeLinear and DequantizeLinear around what nodes of these kinds take, and after the last of them."""
    work = Quantiser(built, name)
    pairs: dict[str, str] = {}
    results = {output.name for output in built.model.graph.output}

    def pair(value: str) -> str:
        if value not in pairs:
            pairs[value] = work.add("DequantizeLinear", [work.quantise(value), *work.parameters(value)],
                                    value + "_dequantized")
        return pairs[value]

    for node in work.model.graph.node:
        copy = onnx.NodeProto()
        copy.CopyFrom(node)
        if node.op_type in kinds:
            for index, value in enumerate(node.input[:2]):
                if value not in work.weights:
                    copy.input[index] = pair(value)
                elif work.weights[value].ndim > 1:
                    axis = output_axis(node)
                    parts, scales = work.weight(value, axis)
                    copy.input[index] = work.add("DequantizeLinear", parts, value + "_dequantized", axis=axis)
                    if len(node.input) > 2:
                        small, scale = work.bias(node.input[2], node.input[0], scales)
                        copy.input[2] = work.add("DequantizeLinear", [small, work.keep(small + "_scale", scale)],
                                                 node.input[2] + "_dequantized", axis=0)
            if node.output[0] in results:
                copy.output[0] += "_exact"
                work.ranges[copy.output[0]] = work.ranges[node.output[0]]
        work.nodes.append(copy)
        if copy.output[0] != node.output[0]:
            exact = copy.output[0]
            work.add("DequantizeLinear", [work.quantise(exact), *work.parameters(exact)], node.output[0])
    return work.finish()


def as_operators(built: Built, name: str) -> Built:
    """QLinearConv and QLinearMatMul: the value between two of them is a byte; what has no such form runs in float."""
    work = Quantiser(built, name)
    nodes = list(work.model.graph.node)
    readers: dict[str, list[onnx.NodeProto]] = {}
    for node in nodes:
        for value in node.input:
            readers.setdefault(value, []).append(node)
    done = set()
    for node in nodes:
        x, y = node.input[0], node.output[0]
        after = readers.get(y, [])
        if y in done:
            continue
        if node.op_type == "Conv":
            if len(after) == 1 and after[0].op_type == "Relu":  # its range begins at 0: quantising cuts it off
                y = after[0].output[0]
                done.add(y)
            parts, scales = work.weight(node.input[1], 0)
            small, _ = work.bias(node.input[2], x, scales)
            attributes = {a.name: helper.get_attribute_value(a) for a in node.attribute}
            inputs = [work.quantise(x), *work.parameters(x), parts[0], *parts[1:], *work.parameters(y), small]
            work.small[y] = work.add("QLinearConv", inputs, y + "_quantized", **attributes)
        elif node.op_type in ("MaxPool", "Flatten", "Reshape"):
            attributes = {a.name: helper.get_attribute_value(a) for a in node.attribute}
            work.ranges[y] = work.ranges[x]
            work.small[y] = work.add(node.op_type, [work.quantise(x), *node.input[1:]], y + "_quantized", **attributes)
        elif node.op_type == "Gemm":
            weight = node.input[1]
            if output_axis(node) == 0:
                work.weights[weight] = np.ascontiguousarray(work.weights[weight].T)
            parts, _ = work.weight(weight, 1)
            inputs = [work.quantise(x), *work.parameters(x), parts[0], *parts[1:], *work.parameters(y)]
            product = work.add("QLinearMatMul", inputs, y + "_quantized")
            product = work.add("DequantizeLinear", [product, *work.parameters(y)], y + "_product")
            work.add("Add", [product, node.input[2]], y)
        else:
            copy = onnx.NodeProto()
            copy.CopyFrom(node)
            for index, value in enumerate(node.input):
                if value in work.small:
                    copy.input[index] = f"{y}_in{index}"
                    work.add("DequantizeLinear", [work.small[value], *work.parameters(value)], copy.input[index])
            work.nodes.append(copy)
    return work.finish()


def dynamically(built: Built, name: str) -> Built:
    """Weights of MatMul in int8, what meets them quantised by what it turns out to be."""
    work = Quantiser(built, name)
    inputs: dict[str, list[str]] = {}
    for node in work.model.graph.node:
        if node.op_type != "MatMul" or node.input[1] not in work.weights:
            work.nodes.append(node)
            continue
        x, weight = node.input
        y = node.output[0]
        if x not in inputs:
            inputs[x] = [f"{x}_{part}" for part in ("quantized", "scale", "zero_point")]
            work.nodes.append(helper.make_node("DynamicQuantizeLinear", [x], inputs[x], name=x + "/quantize"))
        array = work.weights[weight]
        scale = np.float32(np.abs(array).max() / largest_weight())
        small = work.keep(weight + "_quantized", np.round(array / scale).astype(np.int8))
        zero = work.keep(weight + "_zero_point", np.array(0, np.int8))
        sums = work.add("MatMulInteger", [inputs[x][0], small, inputs[x][2], zero], y + "_sums")
        factor = work.add("Mul", [inputs[x][1], work.keep(weight + "_scale", np.array(scale))], y + "_scale")
        work.add("Mul", [work.add("Cast", [sums], y + "_float", to=1), factor], y)
    return work.finish()


def four_bits(built: Built, name: str, block: int = 32) -> Built:
    """Weights of MatMul in four bits, a scale and a zero point for each block along the sum."""
    work = Quantiser(built, name)
    for node in list(work.model.graph.node):
        if node.op_type == "MatMul" and node.input[1] in work.weights:
            weight = node.input[1]
            blocks = work.weights[weight].reshape(-1, block, work.weights[weight].shape[1])
            low, high = np.minimum(blocks.min(1), 0), np.maximum(blocks.max(1), 0)
            scale = np.maximum(high - low, 1e-6) / 15
            zero = np.clip(np.round(-low / scale), 0, 15)
            small = np.clip(np.round(blocks / scale[:, None]) + zero[:, None], 0, 15).reshape(-1, blocks.shape[2])
            parts = [work.keep(weight + "_quantized", small.astype(ml_dtypes.uint4)),
                     work.keep(weight + "_scale", scale.astype(np.float32)),
                     work.keep(weight + "_zero_point", zero.astype(ml_dtypes.uint4))]
            node.input[1] = work.add("DequantizeLinear", parts, weight + "_dequantized", axis=0, block_size=block)
        work.nodes.append(node)
    return work.finish()


def resnet50_qdq(**sizes) -> Built:
    return as_pairs(vision.resnet50(**sizes), "resnet50_qdq", {"Conv", "Gemm", "Add", "MaxPool", "GlobalAveragePool"})


def resnet50_qlinear(**sizes) -> Built:
    return as_operators(vision.resnet50(**sizes), "resnet50_qlinear")


def mobilenet_v3_qdq(**sizes) -> Built:
    kinds = {"Conv", "Gemm", "Add", "Mul", "HardSwish", "HardSigmoid", "GlobalAveragePool"}
    return as_pairs(mobile.mobilenet_v3(**sizes), "mobilenet_v3_qdq", kinds)


def mobilenet_v3_qlinear(**sizes) -> Built:
    return as_operators(mobile.mobilenet_v3(**sizes), "mobilenet_v3_qlinear")


def bert_qdq(**sizes) -> Built:
    return as_pairs(transformers.bert(**sizes), "bert_qdq", {"MatMul", "Gemm"})


def bert_dynamic(**sizes) -> Built:
    return dynamically(transformers.bert(**sizes), "bert_dynamic")


def llama_int4(**sizes) -> Built:
    return four_bits(decoders.llama(**sizes), "llama_int4")
