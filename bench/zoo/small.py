"""Models that strain one thing each: recurrence, many small nodes, sizes known only at run time, control flow."""

from __future__ import annotations

import numpy as np
import onnx
from onnx import numpy_helper, parser

from .net import Built, Net


def mlp() -> Built:
    net = Net("mlp", seed=3)
    x = net.input("x", net.normal(1, 784), ["batch", 784])
    for _ in range(2):
        x = net.op("Relu", net.gemm(x, 1024))
    return net.finish({net.gemm(x, 10, 2.0): ["batch", 10]})


def lstm(hidden: int = 512, inputs: int = 256, steps: int = 100) -> Built:
    """Two layers, one direction."""
    net = Net("lstm", opset=14, seed=6)
    x = net.input("x", net.normal(steps, 1, inputs), ["steps", "batch", inputs])
    for _ in range(2):
        size = net.values[x].shape[-1]
        weights = (net.normal(1, 4 * hidden, size, std=2 / np.sqrt(size)),
                   net.normal(1, 4 * hidden, hidden, std=1 / np.sqrt(hidden)),
                   net.normal(1, 8 * hidden, std=0.2))
        y = net.op("LSTM", x, *map(net.weight, weights), outputs=3, hidden_size=hidden)
        x = net.op("Squeeze", y[0], net.ints(1))
    return net.finish({x: ["steps", "batch", hidden], y[2]: [1, "batch", hidden]})


def chain(side: int = 1024) -> Built:
    """Twenty cheap element-wise operators on a million floats."""
    net = Net("chain20", seed=20)
    x = first = net.input("x", net.normal(side, side), [side, side])
    scale, shift = net.weight(1 + net.normal(side, std=0.1)), net.weight(net.normal(side, std=0.1))
    for _ in range(2):
        x = net.op("Mul", x, scale)
        x = net.op("Add", x, shift)
        x = net.op("LeakyRelu", x, alpha=0.2)
        x = net.op("Sub", x, net.const(0.125))
        x = net.op("Abs", x)
        x = net.op("Neg", x)
        x = net.op("Min", x, first)
        x = net.op("Mul", x, net.const(1.5))
        x = net.op("Clip", x, net.const(-3.0), net.const(3.0))
        x = net.op("Add", x, first)
    return net.finish({x: [side, side]})


def tiny_nodes(count: int = 200) -> Built:
    """Many nodes that hardly compute: what is left is the cost of a step."""
    net = Net("tiny200", seed=200)
    x = net.input("x", net.normal(1, 8), [1, 8])
    while len(net.nodes) < count:
        kind = len(net.nodes) % 4
        if kind == 0:
            x = net.matmul(x, 8)
        elif kind == 1:
            x = net.op("Concat", x, net.op("Relu", x), axis=1)
        else:
            x = net.op("ReduceMean", net.op("Reshape", x, net.weight(np.array([1, -1, 8]))), axes=[1], keepdims=0)
    return net.finish({x: [1, 8]})


def detector(side: int = 20, anchors: int = 3, classes: int = 10, channels: int = 64) -> Built:
    """A detection head: how many boxes are left is known only at run time."""
    net = Net("detector", seed=9)
    x = net.conv_relu(net.input("features", net.normal(1, channels, side, side), [1, channels, side, side]),
                      channels, 3, 1, 1)
    count = side * side * anchors

    def rows(y: str, width: int) -> str:
        y = net.op("Reshape", y, net.ints(1, anchors, width, side * side))
        return net.op("Reshape", net.op("Transpose", y, perm=[0, 3, 1, 2]), net.ints(1, count, width))

    scores = net.op("Sigmoid", rows(net.conv(x, anchors * classes, 1, target=1.2), classes))
    deltas = net.op("Mul", rows(net.conv(x, anchors * 4, 1), 4), net.const(0.3))
    places, spreads = net.op("Split", deltas, net.ints(2, 2), outputs=2, axis=2)
    grid = np.stack(np.meshgrid(*[np.arange(side)] * 2, indexing="ij"), -1).reshape(-1, 1, 2) + 0.5
    grid = np.broadcast_to(grid / side, (side * side, anchors, 2)).reshape(1, count, 2).astype(np.float32)
    sizes = np.tile(np.array([[2, 2], [4, 2], [2, 4]])[:anchors] / side, (side * side, 1))[None].astype(np.float32)
    centres = net.op("Add", net.op("Mul", places, net.weight(sizes)), net.weight(grid))
    halves = net.op("Mul", net.op("Mul", net.op("Exp", spreads), net.weight(sizes.copy())), net.const(0.5))
    boxes = net.op("Concat", net.op("Sub", centres, halves), net.op("Add", centres, halves), axis=2)

    kept = net.op("NonMaxSuppression", boxes, net.op("Transpose", scores, perm=[0, 2, 1]),
                  net.const(50, np.int64), net.const(0.5), net.const(0.95))
    kind = net.op("Squeeze", net.op("Slice", kept, net.ints(1), net.ints(2), net.ints(1)), net.ints(1))
    box = net.op("Squeeze", net.op("Slice", kept, net.ints(2), net.ints(3), net.ints(1)), net.ints(1))
    pair = net.op("Concat", net.op("Unsqueeze", box, net.ints(1)), net.op("Unsqueeze", kind, net.ints(1)), axis=1)
    score = net.op("GatherND", net.op("Squeeze", scores, net.ints(0)), pair)
    most = net.op("ReduceMin", net.op("Concat", net.op("Shape", score), net.ints(300), axis=0), axes=[0], keepdims=1)
    best, order = net.op("TopK", score, most, outputs=2, axis=0)
    chosen = net.op("Gather", net.op("Squeeze", boxes, net.ints(0)), net.op("Gather", box, order))
    return net.finish({chosen: ["found", 4], best: ["found"], net.op("Gather", kind, order): ["found"]})


def from_text(text: str, inputs: dict[str, np.ndarray], weights: dict[str, np.ndarray]) -> Built:
    model = parser.parse_model(text)
    for name, array in weights.items():
        model.graph.initializer.append(numpy_helper.from_array(array, name))
    onnx.checker.check_model(model)
    return Built(model, inputs)


def loop(size: int = 64, trips: int = 40) -> Built:
    """A Loop that uses values from around it, carries a state and gathers what each trip gives."""
    text = f"""
    <ir_version: 8, opset_import: ["" : 17]>
    loop (float[1,{size}] start, int64 trips, float limit)
      => (float[1,{size}] last, int64 count, float[trips_done,1,{size}] states, float[trips_done] sizes)
    {{
      zero = Constant <value_int = 0> ()
      yes = Constant <value = bool {{1}}> ()
      pushed = Mul (limit, limit)
      last, count, states, sizes = Loop (trips, yes, start, zero) <body = trip
        (int64 index, bool going, float[1,{size}] state, int64 counted)
        => (bool go_on, float[1,{size}] next, int64 counted_next, float[1,{size}] state_seen, float size_seen)
        {{
          product = MatMul (state, weight)
          next = Tanh (product)
          squares = ReduceSumSquare <keepdims = 0> (next)
          size_seen = Identity (squares)
          state_seen = Identity (next)
          one = Constant <value_int = 1> ()
          counted_next = Add (counted, one)
          go_on = Less (squares, pushed)
        }}>
    }}"""
    random = np.random.default_rng(31)
    weight = (1.1 * random.standard_normal((size, size)) / np.sqrt(size)).astype(np.float32)
    inputs = {
        "start": random.standard_normal((1, size)).astype(np.float32),
        "trips": np.array(trips, np.int64),
        "limit": np.array(1e6, np.float32),
    }
    return from_text(text, inputs, {"weight": weight})


def functions(size: int = 32) -> Built:
    """Functions of the model's own: nested, with attributes handed down, one called in a branch."""
    text = f"""
    <ir_version: 8, opset_import: ["" : 17, "zoo" : 1]>
    functions (float[rows,{size}] x, bool sharp) => (float[rows,{size}] y, float[rows,{size}] chosen)
    {{
      hidden = zoo.Dense <slope = 0.2> (x, weight, bias)
      y = zoo.Block <steepness = 1.5, slope = 0.1> (hidden, weight, bias)
      chosen = If (sharp) <then_branch = yes () => (float[rows,{size}] a) {{ a = zoo.Swish <steepness = 4.0> (y) }},
                           else_branch = no () => (float[rows,{size}] b) {{ b = zoo.Swish <steepness = 0.5> (y) }}>
    }}
    <domain: "zoo", opset_import: ["" : 17]>
    Swish <steepness> (x) => (y)
    {{
      factor = Constant <value_float: float = @steepness> ()
      scaled = Mul (x, factor)
      gate = Sigmoid (scaled)
      y = Mul (x, gate)
    }}
    <domain: "zoo", opset_import: ["" : 17]>
    Dense <slope> (x, w, b) => (y)
    {{
      product = Gemm (x, w, b)
      y = LeakyRelu <alpha: float = @slope> (product)
    }}
    <domain: "zoo", opset_import: ["" : 17, "zoo" : 1]>
    Block <steepness, slope> (x, w, b) => (y)
    {{
      inner = zoo.Dense <slope: float = @slope> (x, w, b)
      gated = zoo.Swish <steepness: float = @steepness> (inner)
      y = Add (x, gated)
    }}"""
    random = np.random.default_rng(32)
    weights = {
        "weight": (random.standard_normal((size, size)) / np.sqrt(size)).astype(np.float32),
        "bias": (0.1 * random.standard_normal(size)).astype(np.float32),
    }
    return from_text(text, {"x": random.standard_normal((5, size)).astype(np.float32), "sharp": np.array(True)},
                     weights)
