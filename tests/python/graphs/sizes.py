"""Nets whose sizes are all open, and many runs of one session: huge then tiny, odd, 1 and 0."""

from __future__ import annotations


import numpy as np
import onnx
from onnx import TensorProto, helper, numpy_helper

from .maker import Drawn, Graph

BATCHES = (1, 1, 1, 2, 3, 5, 0)
EDGES = (0, 1, 2, 3, 4, 5, 7, 8, 9, 13, 16, 17, 31, 32, 33, 48, 65)
LENGTHS = (0, 1, 1, 2, 3, 7, 8, 15, 16, 17, 33, 64, 100)
OPSET = 21


class Net(Drawn):
    """Nodes and weights under new names; channels are known, other sizes are not."""

    def __init__(self, seed: int):
        super().__init__(seed)
        self.numbers = np.random.default_rng(seed)
        self.nodes: list[onnx.NodeProto] = []
        self.weights: list[onnx.TensorProto] = []

    def add(self, kind: str, *inputs: str, **attributes) -> str:
        name = self.name()
        self.nodes.append(helper.make_node(kind, inputs, [name], **attributes))
        return name

    def constant(self, array) -> str:
        name = f"w{len(self.weights)}"
        self.weights.append(numpy_helper.from_array(np.asarray(array), name))
        return name

    def ints(self, *values: int) -> str:
        return self.constant(np.array(values, np.int64))

    def floats(self, *shape: int, scale: float | None = None) -> str:
        scale = scale or 1 / np.sqrt(max(np.prod(shape[1:]), 1))
        return self.constant(self.numbers.normal(0, scale, shape).astype(np.float32))

    def graph(self, inputs, outputs, name="sizes"):
        return helper.make_graph(self.nodes, name, inputs, [onnx.ValueInfoProto(name=output) for output in outputs], self.weights)


def activation(net: Net, x: str) -> str:
    kind = net.pick("Relu", "Relu", "Clip", "Sigmoid", "HardSwish", "LeakyRelu", "swish", "")
    if kind == "Clip":
        return net.add("Clip", x, net.constant(np.float32(0)), net.constant(np.float32(6)))
    if kind == "swish":
        return net.add("Mul", x, net.add("Sigmoid", x))
    return net.add(kind, x) if kind else x


def convolution(net: Net, x: str, channels: int, out: int) -> str:
    groups = channels if net.chance(0.25) else net.pick(1, 1, 1, 2) if channels % 2 == 0 else 1
    if groups == channels:
        out = channels
    if out % groups:
        groups = 1
    kernel = net.pick((1, 1), (3, 3), (3, 3), (3, 3), (5, 5), (1, 3), (2, 2), (7, 7))
    attributes = {"strides": net.pick([1, 1], [1, 1], [2, 2], [1, 2], [3, 3]), "group": groups}
    if net.chance(0.2):
        attributes["dilations"] = net.pick([2, 2], [3, 1])
    if net.chance(0.75):
        attributes["auto_pad"] = net.pick("SAME_UPPER", "SAME_LOWER") if "dilations" not in attributes else "SAME_UPPER"
    elif net.chance(0.7):
        attributes["pads"] = [net.random.randint(0, size // 2) for size in kernel * 2]
    inputs = [x, net.floats(out, channels // groups, *kernel)]
    if net.chance(0.6):
        inputs.append(net.floats(out))
    return net.add("Conv", *inputs, **attributes), out


def transposed(net: Net, x: str, channels: int, out: int) -> str:
    stride, kernel = net.pick((2, 2), (2, 4), (2, 3), (3, 3), (3, 5), (1, 3), (4, 2))
    pad = net.random.randint(0, max(0, min(kernel - 1, 2)))
    attributes = {"strides": [stride, stride], "pads": [pad, pad, net.random.randint(0, pad), pad]}
    if stride > 1 and net.chance(0.3):
        attributes["output_padding"] = [1, 0]
    inputs = [x, net.floats(channels, out, kernel, kernel)]
    if net.chance(0.5):
        inputs.append(net.floats(out))
    return net.add("ConvTranspose", *inputs, **attributes)


def normalised(net: Net, x: str, channels: int) -> str:
    ones = net.constant(net.numbers.uniform(0.5, 1.5, channels).astype(np.float32))
    return net.add("BatchNormalization", x, ones, net.floats(channels), net.floats(channels), ones)


def excited(net: Net, x: str, channels: int) -> str:
    mean = net.add("GlobalAveragePool", x)
    hidden = net.add("Relu", net.add("Conv", mean, net.floats(4, channels, 1, 1)))
    return net.add("Mul", x, net.add("Sigmoid", net.add("Conv", hidden, net.floats(channels, 4, 1, 1))))


def resized(net: Net, x: str) -> str:
    scales = net.constant(np.array([1, 1, *net.pick((2, 2), (0.5, 0.5), (1.5, 2), (3, 1))], np.float32))
    mode, transform = net.pick(("nearest", "asymmetric"), ("linear", "half_pixel"))
    return net.add("Resize", x, "", scales, mode=mode, coordinate_transformation_mode=transform)


def padded(net: Net, x: str) -> str:
    return net.add("Pad", x, net.ints(0, 0, *(net.random.randint(-1, 2) for _ in range(2)), 0, 0,
                                      *(net.random.randint(-1, 2) for _ in range(2))), mode=net.pick("constant", "constant", "reflect", "edge"))


def cropped(net: Net, x: str) -> str:
    return net.add("Slice", x, net.ints(0, 1), net.ints(net.pick(-1, 5, 1000), 1000), net.ints(2, 3), net.ints(net.pick(1, 2), 1))


def pooled(net: Net, x: str) -> str:
    kernel = net.pick(2, 3)
    kind = net.pick("MaxPool", "AveragePool")
    attributes = {"count_include_pad": net.pick(0, 1)} if kind == "AveragePool" else {}
    return net.add(kind, x, kernel_shape=[kernel, kernel], strides=net.pick([1, 1], [2, 2], [2, 1]), ceil_mode=net.pick(0, 0, 1),
                   pads=net.pick([0, 0, 0, 0], [1, 1, 1, 1], [0, 0, 1, 1]), **attributes)


def shuffled(net: Net, x: str, channels: int) -> str:
    """Channels dealt out, by a shape that the graph computes."""
    shape = net.add("Shape", x)
    part = lambda begin, end: net.add("Slice", shape, net.ints(begin), net.ints(end))
    dealt = net.add("Reshape", x, net.add("Concat", part(0, 1), net.ints(2, channels // 2), part(2, 4), axis=0), allowzero=1)
    return net.add("Reshape", net.add("Transpose", dealt, perm=[0, 2, 1, 3, 4]), shape, allowzero=1)


def images(net: Net):
    channels = first = net.pick(1, 3, 4, 8)
    x, outputs = "x", []
    for _ in range(net.random.randint(2, 7)):
        before = x
        step = net.random.randrange(12)
        if step < 4:
            x, channels = convolution(net, x, channels, net.pick(3, 4, 8, 16, 24, 32))
            if net.chance(0.4):
                x = normalised(net, x, channels)
            x = activation(net, x)
        elif step == 4:
            out = net.pick(1, 3, 8, 16)
            x, channels = activation(net, transposed(net, x, channels, out)), out
        elif step == 5:
            x = excited(net, x, channels)
        elif step == 6:
            x = resized(net, x)
        elif step == 7:
            x = padded(net, x)
        elif step == 8:
            x = pooled(net, x)
        elif step == 9:
            x = net.add("Concat", x, activation(net, net.add("Conv", x, net.floats(8, channels, 3, 3), pads=[1, 1, 1, 1])), axis=1)
            channels += 8
        elif step == 10 and channels % 2 == 0:
            x = shuffled(net, x, channels)
        else:
            inner = activation(net, net.add("Conv", x, net.floats(16, channels, 1, 1)))
            inner = activation(net, net.add("Conv", inner, net.floats(16, 1, 3, 3), net.floats(16), pads=[1, 1, 1, 1], group=16))
            x = net.add("Add", x, net.add("Conv", inner, net.floats(channels, 16, 1, 1)))
        if net.chance(0.12):
            outputs.append(before)
    if net.chance(0.15):
        x = cropped(net, x)
    if net.chance(0.3):
        outputs.append(x)
        mean = net.add("ReduceMean", x, net.ints(2, 3), keepdims=0)
        x = net.add("Gemm", mean, net.floats(channels, 10), net.floats(10))
    outputs.append(x)
    sizes = lambda: (net.random.choice(BATCHES), first, net.random.choice(EDGES), net.random.choice(EDGES))
    return {"x": (np.float32, ["n", first, "h", "w"], sizes)}, outputs


def attention(net: Net, x: str, width: int) -> str:
    heads = net.pick(1, 2, 4)
    size = width // heads

    def split(y: str) -> str:
        y = net.add("Reshape", y, net.ints(0, 0, heads, size))
        return net.add("Transpose", y, perm=[0, 2, 1, 3])

    q, k, v = (split(net.add("MatMul", x, net.floats(width, width))) for _ in range(3))
    if net.chance(0.4):
        k, v = net.add("Concat", "past_k" if heads == 2 and net.cache else k, k, axis=2), net.add("Concat", "past_v" if heads == 2 and net.cache else v, v, axis=2)
    scores = net.add("MatMul", q, net.add("Transpose", k, perm=[0, 1, 3, 2]))
    scores = net.add("Mul", scores, net.constant(np.float32(1 / np.sqrt(size))))
    made = net.add("MatMul", net.add("Softmax", scores, axis=-1), v)
    made = net.add("Reshape", net.add("Transpose", made, perm=[0, 2, 1, 3]), net.ints(0, 0, width))
    return net.add("Add", x, net.add("MatMul", made, net.floats(width, width)))


def recurrent(net: Net, x: str, width: int) -> str:
    kind, gates = net.pick(("LSTM", 4), ("GRU", 3), ("RNN", 1))
    both = net.pick("forward", "reverse", "bidirectional")
    ways, hidden = (2, width // 2) if both == "bidirectional" else (1, width)
    attributes = {"linear_before_reset": net.pick(0, 1)} if kind == "GRU" else {}
    steps = net.add("Transpose", x, perm=[1, 0, 2])
    inputs = [steps, net.floats(ways, gates * hidden, width, scale=0.2), net.floats(ways, gates * hidden, hidden, scale=0.2)]
    if net.chance(0.5):
        inputs.append(net.floats(ways, 2 * gates * hidden, scale=0.2))
    made = net.add(kind, *inputs, direction=both, hidden_size=hidden, **attributes)  # [seq, ways, batch, hidden]
    made = net.add("Transpose", made, perm=[2, 0, 1, 3])
    return net.add("Reshape", made, net.ints(0, 0, width) if net.chance(0.7) else net.add("Shape", x))


def feed_forward(net: Net, x: str, width: int) -> str:
    hidden = net.add("Gelu", net.add("Add", net.add("MatMul", x, net.floats(width, 3 * width)), net.floats(3 * width)))
    return net.add("Add", x, net.add("MatMul", hidden, net.floats(3 * width, width)))


def layer_norm(net: Net, x: str, width: int) -> str:
    if net.chance(0.5):
        return net.add("LayerNormalization", x, net.floats(width), net.floats(width), axis=-1)
    centred = net.add("Sub", x, net.add("ReduceMean", x, net.ints(-1)))
    variance = net.add("ReduceMean", net.add("Mul", centred, centred), net.ints(-1))
    return net.add("Div", centred, net.add("Sqrt", net.add("Add", variance, net.constant(np.float32(1e-5)))))


def line_convolution(net: Net, x: str, width: int) -> str:
    turned = net.add("Transpose", x, perm=[0, 2, 1])
    group = net.pick(1, width)
    kernel = net.pick(1, 3, 5)
    made = net.add("Conv", turned, net.floats(width, width // group, kernel), group=group, pads=[kernel // 2] * 2)
    return net.add("Transpose", made, perm=[0, 2, 1])


def growing(net: Net, x: str, width: int) -> str:
    """A loop whose state grows by a row each time, read from outside as well."""
    body = Net(net.random.randrange(1 << 30))
    body.made = net.made + 1000
    grown = body.add("Concat", "state", body.add("ReduceMax", net.pick("state", x), body.ints(1), keepdims=1), axis=1)
    kept = body.add("Identity", "go")
    row = body.add("ReduceSum", "state", body.ints(1), keepdims=0)
    step = [helper.make_tensor_value_info("trip", TensorProto.INT64, []), helper.make_tensor_value_info("go", TensorProto.BOOL, []),
            helper.make_tensor_value_info("state", TensorProto.FLOAT, None)]
    for weight in body.weights:
        weight.name = f"b{net.made}_{weight.name}"
    for node in body.nodes:
        node.input[:] = [f"b{net.made}_{i}" if i.startswith("w") and f"b{net.made}_{i}" in {w.name for w in body.weights} else i for i in node.input]
    outputs = [onnx.ValueInfoProto(name=kept), onnx.ValueInfoProto(name=grown)]
    gathers = net.chance(0.5)
    if gathers:
        outputs.append(onnx.ValueInfoProto(name=row))
    graph = helper.make_graph(body.nodes, "body", step, outputs, body.weights)
    net.made = body.made + 1000
    names = [net.name() for _ in range(1 + gathers)]
    net.nodes.append(helper.make_node("Loop", ["trips", "", x], names, body=graph))
    if gathers and net.chance(0.5):
        return net.add("Add", names[0], net.add("ReduceMean", names[1], net.ints(0), keepdims=0) and net.constant(np.float32(1)))
    return names[0]


def lines(net: Net):
    width = 16
    x, outputs = "x", []
    net.cache = net.chance(0.4)
    net.loops = net.chance(0.4)
    for _ in range(net.random.randint(1, 5)):
        how = net.random.randrange(8)
        if how < 2:
            x = attention(net, x, width)
        elif how == 2:
            x = recurrent(net, x, width)
        elif how == 3:
            x = feed_forward(net, x, width)
        elif how == 4:
            x = layer_norm(net, x, width)
        elif how == 5:
            x = line_convolution(net, x, width)
        elif how == 6 and net.loops:
            x = growing(net, x, width)
        else:
            x = net.add("CumSum", x, net.constant(np.int64(1))) if net.chance(0.5) else net.add("Softmax", x, axis=net.pick(1, 2, -1))
        if net.chance(0.3):
            outputs.append(x)
    outputs.append(net.add("ReduceMax", x, net.ints(1), keepdims=0) if net.chance(0.2) else net.add("Identity", x))
    used = {name for node in net.nodes for name in node.input}
    batch = [1]

    def first():
        batch[0] = net.random.choice(BATCHES)
        return batch[0], net.random.choice(LENGTHS), width

    past = [0]

    def cached(which):
        def draw():
            if which == "past_k":
                past[0] = net.random.choice(LENGTHS)
            return batch[0], 2, past[0], 8
        return draw

    inputs = {"x": (np.float32, ["n", "seq", width], first)}
    for name in ("past_k", "past_v"):
        if name in used:
            inputs[name] = (np.float32, ["n", 2, "past", 8], cached(name))
    if any(node.op_type == "Loop" for node in net.nodes):
        inputs["trips"] = (np.int64, [], tuple)
    return inputs, outputs


def make(seed: int) -> Graph:
    net = Net(seed)
    is_image = net.chance(0.5)
    inputs, outputs = images(net) if is_image else lines(net)
    outputs = [name for name in dict.fromkeys(outputs) if name not in inputs]
    infos = []
    named = net.chance(0.7)
    for name, (dtype, shape, _) in inputs.items():
        sizes = shape if named else [size if isinstance(size, int) else None for size in shape]
        infos.append(helper.make_tensor_value_info(name, helper.np_dtype_to_tensor_dtype(np.dtype(dtype)), sizes))
    model = helper.make_model(net.graph(infos, outputs), opset_imports=[helper.make_opsetid("", OPSET)], ir_version=10)
    sets = []
    for _ in range(9):
        one = {}
        for name, (dtype, _, sizes) in inputs.items():
            shape = sizes()
            one[name] = (np.array(net.random.choice((0, 1, 2, 5, 20)), np.int64) if dtype == np.int64
                         else net.numbers.normal(0, 1, shape).astype(dtype))
        sets.append(one)
    near = {"worst": 2e-3, "mean": 2e-4, "absolute": 1e-5}
    other = {"worst": 1e-2, "mean": 1e-3, "absolute": 1e-4}
    return Graph(model, sets, {"plan": near, "other": other, "may_refuse": True})
