"""Convolutions and pools of ONNX Runtime's own layouts: blocks of channels (com.microsoft.nchwc), and channels last."""

from __future__ import annotations

import numpy as np
import onnx
import onnxruntime
import pytest
from contrib_support import Case, agree, compare, drawing, run_onnxruntime
from onnx import TensorProto, helper, numpy_helper

RANDOM = np.random.default_rng(31)
numbers, _ = drawing(RANDOM)
F32 = np.float32


class Net:
    """A graph that grows at its end."""

    def __init__(self, shape):
        self.nodes, self.weights = [], []
        self.input = helper.make_tensor_value_info("x", TensorProto.FLOAT, shape)
        self.outputs = []

    def weight(self, *shape):
        name = f"w{len(self.weights)}"
        self.weights.append(numpy_helper.from_array(numbers(*shape, scale=0.4), name))
        return name

    def add(self, op, *inputs, **attributes):
        name = f"v{len(self.nodes)}"
        self.nodes.append(helper.make_node(op, list(inputs), [name], **attributes))
        return name

    def conv(self, x, out, each, kernel=1, bias=False, **attributes):
        inputs = [x, self.weight(out, each, kernel, kernel)] + ([self.weight(out)] if bias else [])
        return self.add("Conv", *inputs, kernel_shape=[kernel, kernel], **attributes)

    def model(self, *outputs):
        ends = [helper.make_tensor_value_info(name, TensorProto.FLOAT, None) for name in outputs]
        graph = helper.make_graph(self.nodes, "net", [self.input], ends, self.weights)
        return helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=9)


def few_channels(net):
    """3 channels come in, 24 are no whole number of blocks of 16, and a sum and activations are fused."""
    first = net.add("Relu", net.conv("x", 24, 3, 3, bias=True, pads=[1, 1, 1, 1], strides=[2, 2]))
    each = net.conv(first, 24, 1, 3, group=24, pads=[1, 1, 1, 1])
    total = net.add("Relu", net.add("Add", net.conv(each, 24, 24, bias=True), first))
    return [net.conv(total, 40, 24, 3)]


def pools(net):
    x = net.conv("x", 32, 3, 3, pads=[1, 1, 1, 1])
    ends = []
    for op, attributes in (("MaxPool", {"pads": [1, 0, 1, 1]}), ("AveragePool", {"pads": [1, 0, 1, 1]}),
                           ("AveragePool", {"count_include_pad": 1, "pads": [0, 1, 1, 0]}), ("MaxPool", {"ceil_mode": 1})):
        pooled = net.add(op, x, kernel_shape=[3, 3], strides=[2, 2], **attributes)
        ends.append(net.conv(pooled, 16, 32))
    for op in ("GlobalAveragePool", "GlobalMaxPool"):
        ends.append(net.conv(net.add(op, x), 16, 32))
    return ends


def joined(net):
    x = net.conv("x", 16, 3, 3, pads=[1, 1, 1, 1])
    y = net.add("Sigmoid", net.conv(x, 32, 16))
    both = net.add("Concat", x, y, axis=1)
    half = net.conv(both, 32, 48)
    groups = net.conv(half, 64, 16, 3, group=2)
    return [net.add("Tanh", groups), net.conv(net.add("LeakyRelu", half, alpha=0.2), 5, 32)]


def enlarged(net):
    x = net.conv("x", 16, 3, 3, pads=[1, 1, 1, 1])
    net.weights.append(numpy_helper.from_array(np.array([1, 1, 2, 3], F32), "scales"))
    near = net.add("Resize", x, "", "scales", mode="nearest", coordinate_transformation_mode="asymmetric",
                   nearest_mode="floor")
    ends = [net.conv(near, 8, 16)]
    for how in ("asymmetric", "align_corners", "half_pixel"):
        linear = net.add("Resize", x, "", "scales", mode="linear", coordinate_transformation_mode=how)
        ends.append(net.conv(linear, 8, 16))
    return ends


def optimised(model, folder):
    """The file that ONNX Runtime saves, and what it calculates."""
    options = onnxruntime.SessionOptions()
    options.log_severity_level = 3
    options.optimized_model_filepath = str(folder / "optimised.onnx")
    options.graph_optimization_level = onnxruntime.GraphOptimizationLevel.ORT_ENABLE_ALL
    session = onnxruntime.InferenceSession(model.SerializeToString(), options)
    return onnx.load(folder / "optimised.onnx"), session


@pytest.mark.parametrize("make", [few_channels, pools, joined, enlarged])
def test_what_onnxruntime_saves(sardonyx, engine, tmp_path, make):
    net = Net([2, 3, 13, 12])
    model = net.model(*make(net))
    saved, session = optimised(model, tmp_path)
    if not any(node.domain == "com.microsoft.nchwc" for node in saved.graph.node):
        pytest.skip("ONNX Runtime has no blocks of channels for this processor")
    x = numbers(2, 3, 13, 12)
    expected = session.run(None, {"x": x})
    compare(engine.run(saved, {"x": x}), expected, tolerance=1e-4)
    compare(sardonyx.outputs(tmp_path / "optimised.onnx", {"x": x}, tmp_path, "--reference"), expected, tolerance=1e-4)
    compare(engine.run(model, {"x": x}), expected, tolerance=1e-4)


def blocked(weights, block):
    """Weights as ONNX Runtime orders them, in the shape that it gives them."""
    m, c = weights.shape[:2]
    whole = np.pad(weights, [(0, -m % block), (0, -c % block if c >= block else 0), (0, 0), (0, 0)])
    parts = whole.reshape(-1, block, *whole.shape[1:])
    if whole.shape[1] % block == 0:
        parts = parts.reshape(parts.shape[0], block, -1, block, *whole.shape[2:])
        return parts.transpose(0, 2, 4, 5, 3, 1).reshape(whole.shape)
    return parts.transpose(0, 2, 3, 4, 1).reshape(whole.shape)


def blocks_of_eight(last=0):
    """A model as a processor with vectors of 8 elements saves it: 16 output channels, then 24."""
    w0, w1 = numbers(16, 3, 3, 3), numbers(24, 16, 1, 1)
    nchwc = lambda op, inputs, output, **attributes: helper.make_node(op, inputs, [output], domain="com.microsoft.nchwc",
                                                                     **attributes)
    nodes = [nchwc("Conv", ["x", "w0"], "a", kernel_shape=[3, 3], activation="Relu"), nchwc("Conv", ["a", "w1"], "b"),
             nchwc("ReorderOutput", ["b"], "y", channels=20, channels_last=last)]
    graph = helper.make_graph(nodes, "eight", [helper.make_tensor_value_info("x", TensorProto.FLOAT, [1, 3, 6, 7])],
                              [helper.make_tensor_value_info("y", TensorProto.FLOAT, None)],
                              [numpy_helper.from_array(blocked(w, 8), n) for n, w in (("w0", w0), ("w1", w1))])
    plain = helper.make_graph(
        [helper.make_node("Conv", ["x", "w0"], ["a"]), helper.make_node("Relu", ["a"], ["r"]),
         helper.make_node("Conv", ["r", "w1"], ["y"])], "plain", graph.input, graph.output,
        [numpy_helper.from_array(w, n) for n, w in (("w0", w0), ("w1", w1))])
    imports = [helper.make_opsetid("", 17), helper.make_opsetid("com.microsoft.nchwc", 1)]
    make = lambda g: helper.make_model(g, opset_imports=imports, ir_version=9)
    return make(graph), make(plain)


@pytest.mark.parametrize("last", [0, 1])
def test_blocks_of_eight_are_recognised(engine, last):
    model, plain = blocks_of_eight(last)
    x = numbers(1, 3, 6, 7)
    [expected] = run_onnxruntime(plain, {"x": x})
    expected = expected[:, :20]
    compare(engine.run(model, {"x": x}), [np.moveaxis(expected, 1, -1) if last else expected], tolerance=1e-5)


@pytest.mark.parametrize("last", [0, 1])
@pytest.mark.parametrize("channels", [5, 16, 40])
def test_reorder_there_and_back(engine, last, channels):
    shape = (2, 3, 4, channels) if last else (2, channels, 3, 4)
    nodes = [helper.make_node("ReorderInput", ["x"], ["a"], domain="com.microsoft.nchwc", channels_last=last),
             helper.make_node("ReorderOutput", ["a"], ["y"], domain="com.microsoft.nchwc", channels=channels,
                              channels_last=last)]
    graph = helper.make_graph(nodes, "g", [helper.make_tensor_value_info("x", TensorProto.FLOAT, shape)],
                              [helper.make_tensor_value_info("y", TensorProto.FLOAT, None)])
    imports = [helper.make_opsetid("", 17), helper.make_opsetid("com.microsoft.nchwc", 1)]
    x = numbers(*shape)
    [y] = engine.run(helper.make_model(graph, opset_imports=imports, ir_version=9), {"x": x})
    assert (y == x).all() and y.shape == x.shape


def changed(model, node, **attributes):
    copy = onnx.ModelProto.FromString(model.SerializeToString())
    for name, value in attributes.items():
        found = [a for a in copy.graph.node[node].attribute if a.name == name]
        for old in found:
            copy.graph.node[node].attribute.remove(old)
        copy.graph.node[node].attribute.append(helper.make_attribute(name, value))
    return copy


@pytest.mark.parametrize("node, attributes, words", [
    (2, {"channels": 25}, "25 channels"), (2, {"channels": 0}, "1 or more"), (1, {"block_size": 5}, "8 or 16"),
    (0, {"block_size": 16, "group": 3}, ""), (1, {"activation": "Wobble"}, "Wobble")])
def test_refused_blocks(engine, node, attributes, words):
    model = changed(blocks_of_eight()[0], node, **attributes)
    with pytest.raises(RuntimeError, match=words):
        engine.run(model, {"x": numbers(1, 3, 6, 7)})


def test_weights_of_half_a_block_are_refused(engine):
    model = blocks_of_eight()[0]
    model.graph.initializer[0].CopyFrom(numpy_helper.from_array(numbers(12, 3, 3, 3), "w0"))
    with pytest.raises(RuntimeError, match="multiple of"):
        engine.run(model, {"x": numbers(1, 3, 6, 7)})


@pytest.mark.parametrize("scales", [[1, 1, 2], [1, 2, 2, 2], [1, 1, 0, 2], [1, 1, 1 << 40, 1]])
def test_refused_scales(engine, scales):
    node = helper.make_node("Upsample", ["x"], ["y"], domain="com.microsoft.nchwc", scales=scales)
    graph = helper.make_graph([node], "g", [helper.make_tensor_value_info("x", TensorProto.FLOAT, [1, 16, 2, 2])],
                              [helper.make_tensor_value_info("y", TensorProto.FLOAT, None)])
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17),
                                                    helper.make_opsetid("com.microsoft.nchwc", 1)], ir_version=9)
    with pytest.raises(RuntimeError, match="scales"):
        engine.run(model, {"x": numbers(1, 16, 2, 2)})


# --- channels last ---


@pytest.mark.parametrize("dtype", [np.uint8, np.int8])
@pytest.mark.parametrize("attributes", [{}, {"strides": [2, 1], "pads": [1, 0, 1, 1]}, {"dilations": [2, 2]},
                                        {"strides": [2, 2], "ceil_mode": 1}, {"auto_pad": "SAME_UPPER"}])
def test_nhwc_max_pool(engine, dtype, attributes):
    info = np.iinfo(dtype)
    x = RANDOM.integers(info.min, info.max + 1, (2, 9, 8, 5)).astype(dtype)
    agree(engine, Case("NhwcMaxPool", [x], kernel_shape=[3, 3], **attributes))


@pytest.mark.parametrize("op", ["NhwcConv", "NhwcFusedConv"])
@pytest.mark.parametrize("group", [1, 2])
@pytest.mark.parametrize("bias", [True, False])
def test_nhwc_conv(engine, op, group, bias):
    """Against the standard's: ONNX Runtime has these for GPUs alone."""
    x, w, b, z = numbers(2, 7, 8, 4), numbers(6, 4 // group, 3, 3), numbers(6), numbers(2, 7, 4, 6)
    attributes = {"group": group, "pads": [1, 1, 1, 1], "strides": [1, 2], "kernel_shape": [3, 3]}
    nchw = Case("Conv", [np.ascontiguousarray(np.moveaxis(x, -1, 1)), w, b if bias else None], domain="",
                constant=(1, 2), **attributes)
    expected = np.moveaxis(nchw.expected()[0], 1, -1)
    if op == "NhwcConv":
        agree(engine, Case(op, [x, w, b if bias else None], constant=(1, 2), **attributes), reference=[expected])
        return
    case = Case(op, [x, w, b if bias else None, z], constant=(1, 2), activation="Relu", **attributes)
    agree(engine, case, reference=[np.maximum(expected + z, 0)])
