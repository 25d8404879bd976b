#!/usr/bin/env python3
"""Times Sardonyx and ONNX Runtime side by side on building blocks of networks that bench/zoo does not have whole.

A kernel, a layout or a pass that misses a form shows here at once: windows that are large, dilated or one pixel wide, attention
with positions, gates, normalisations as exporters spell them, what stands around a network. Names are what the blocks come from.
"""

from __future__ import annotations

import pathlib
import sys
from collections.abc import Callable

import numpy as np
import onnx
from onnx import helper, numpy_helper

import report
import run
import values

ROOT = pathlib.Path(__file__).resolve().parent.parent
BEGIN, END = "<!-- blocks:begin -->", "<!-- blocks:end -->"
random = np.random.default_rng(0)
BLOCKS: dict[str, Callable[[Graph], str]] = {}


class Graph:
    """Nodes one after the other, with seeded weights and inputs."""

    def __init__(self) -> None:
        self.nodes: list[onnx.NodeProto] = []
        self.weights: list[onnx.TensorProto] = []
        self.infos: list[onnx.ValueInfoProto] = []
        self.feeds: dict[str, np.ndarray] = {}

    def input(self, array: np.ndarray) -> str:
        name = f"x{len(self.infos)}"
        self.infos.append(helper.make_tensor_value_info(name, helper.np_dtype_to_tensor_dtype(array.dtype), array.shape))
        self.feeds[name] = array
        return name

    def floats(self, *shape: int) -> str:
        return self.input(random.standard_normal(shape, np.float32))

    def const(self, value, kind=np.float32) -> str:
        name = f"w{len(self.weights)}"
        self.weights.append(numpy_helper.from_array(np.array(value, kind), name))
        return name

    def ints(self, *numbers: int) -> str:
        return self.const(numbers, np.int64)

    def weight(self, *shape: int) -> str:
        return self.const(random.standard_normal(shape, np.float32) / np.sqrt(np.prod(shape[1:]) or 1))

    def op(self, kind: str, *inputs: str, outputs: int = 1, **attributes):
        names = [f"v{len(self.nodes)}_{i}" for i in range(outputs)]
        self.nodes.append(helper.make_node(kind, inputs, names, **attributes))
        return names[0] if outputs == 1 else names

    def conv(self, x: str, channels: int, to: int, *kernel: int, group: int = 1, dilation: int = 1, **attributes) -> str:
        """With pads that keep sizes, unless they are given."""
        kernel = kernel if len(kernel) > 1 else kernel * 2
        attributes.setdefault("pads", [(size - 1) * dilation // 2 for size in kernel] * 2)
        return self.op("Conv", x, self.weight(to, channels // group, *kernel), self.weight(to), kernel_shape=kernel, group=group,
                       dilations=[dilation] * len(kernel), **attributes)

    def linear(self, x: str, size: int, to: int) -> str:
        return self.op("Add", self.op("MatMul", x, self.weight(size, to)), self.weight(to))

    def silu(self, x: str) -> str:
        return self.op("Mul", x, self.op("Sigmoid", x))

    def reshape(self, x: str, *shape: int) -> str:
        return self.op("Reshape", x, self.ints(*shape))

    def model(self, output: str) -> onnx.ModelProto:
        graph = helper.make_graph(self.nodes, "block", self.infos, [helper.make_empty_tensor_value_info(output)], self.weights)
        return onnx.shape_inference.infer_shapes(helper.make_model(graph, opset_imports=[helper.make_opsetid("", 20)], ir_version=10))


def block(make: Callable[[Graph], str]) -> Callable[[Graph], str]:
    BLOCKS[make.__name__] = make
    return make


# --- convolutions -------------------------------------------------------------------------------


@block
def deeplab_dilated(g: Graph) -> str:
    x = g.floats(1, 64, 64, 64)
    for dilation in (1, 2, 4, 8):
        x = g.op("Relu", g.conv(x, 64, 64, 3, dilation=dilation))
    return x


@block
def deeplab_depthwise_dilated(g: Graph) -> str:
    x = g.conv(g.floats(1, 96, 32, 32), 96, 96, 1)
    return g.conv(g.op("Relu", g.conv(x, 96, 96, 3, group=96, dilation=4)), 96, 96, 1)


@block
def van_large_kernel(g: Graph) -> str:
    x = g.floats(1, 64, 56, 56)
    y = g.conv(g.conv(x, 64, 64, 5, group=64), 64, 64, 7, group=64, dilation=3)
    return g.op("Mul", x, g.conv(y, 64, 64, 1))


@block
def replknet(g: Graph) -> str:
    x = g.conv(g.floats(1, 64, 28, 28), 64, 64, 1)
    return g.conv(g.op("Relu", g.conv(x, 64, 64, 31, group=64)), 64, 64, 1)


@block
def inception_next_bands(g: Graph) -> str:
    x = g.floats(1, 64, 56, 56)
    return g.conv(g.op("Add", g.conv(x, 64, 64, 1, 11, group=64), g.conv(x, 64, 64, 11, 1, group=64)), 64, 128, 1)


@block
def convnext(g: Graph) -> str:
    x = g.floats(1, 96, 56, 56)
    y = g.op("Transpose", g.conv(x, 96, 96, 7, group=96), perm=[0, 2, 3, 1])
    y = g.linear(g.op("LayerNormalization", y, g.weight(96), g.weight(96)), 96, 384)
    y = g.op("Mul", g.linear(g.op("Gelu", y), 384, 96), g.weight(96))
    return g.op("Add", x, g.op("Transpose", y, perm=[0, 3, 1, 2]))


@block
def video_conv3d(g: Graph) -> str:
    x = g.op("Relu", g.conv(g.floats(1, 3, 16, 64, 64), 3, 32, 3, 3, 3, strides=[1, 2, 2]))
    return g.op("MaxPool", g.op("Relu", g.conv(x, 32, 64, 3, 3, 3)), kernel_shape=[2, 2, 2], strides=[2, 2, 2])


@block
def volume_upsampling(g: Graph) -> str:
    x = g.op("ConvTranspose", g.floats(1, 64, 8, 16, 16), g.weight(64, 32, 2, 2, 2), kernel_shape=[2, 2, 2], strides=[2, 2, 2])
    return g.op("Relu", g.conv(x, 32, 32, 3, 3, 3))


@block
def keras_asymmetric_pads(g: Graph) -> str:
    x = g.op("Relu", g.conv(g.floats(1, 3, 224, 224), 3, 32, 3, strides=[2, 2], pads=[0, 0, 1, 1]))
    x = g.op("Clip", g.conv(x, 32, 32, 3, group=32), g.const(0), g.const(6))
    return g.op("Relu", g.conv(x, 32, 64, 1))


@block
def super_resolution(g: Graph) -> str:
    x = g.conv(g.floats(1, 3, 96, 96), 3, 64, 3)
    x = g.op("Add", x, g.conv(g.op("Relu", g.conv(x, 64, 64, 3)), 64, 64, 3))
    return g.conv(g.op("DepthToSpace", g.conv(x, 64, 256, 3), blocksize=2, mode="CRD"), 64, 3, 3)


@block
def stylegan_modulated(g: Graph) -> str:
    x, style = g.floats(1, 128, 32, 32), g.floats(1, 512)
    style = g.reshape(g.linear(style, 512, 128), 1, 1, 128, 1, 1)
    w = g.op("Mul", g.weight(1, 128, 128, 3, 3), style)
    norm = g.op("ReduceSum", g.op("Mul", w, w), g.ints(2, 3, 4), keepdims=1)
    w = g.op("Mul", w, g.op("Reciprocal", g.op("Sqrt", g.op("Add", norm, g.const(1e-8)))))
    y = g.op("Conv", x, g.reshape(w, 128, 128, 3, 3), kernel_shape=[3, 3], pads=[1] * 4)
    return g.op("LeakyRelu", y, alpha=0.2)


@block
def yolo_pyramid_pooling(g: Graph) -> str:
    x = g.floats(1, 128, 20, 20)
    pools = [g.op("MaxPool", x, kernel_shape=[k, k], pads=[k // 2] * 4) for k in (5, 9, 13)]
    return g.conv(g.op("Concat", x, *pools, axis=1), 512, 128, 1)


@block
def yolo_focus(g: Graph) -> str:
    x, end, axes, steps = g.floats(1, 3, 320, 320), g.ints(2**31, 2**31), g.ints(2, 3), g.ints(2, 2)
    parts = [g.op("Slice", x, g.ints(row, column), end, axes, steps) for row in (0, 1) for column in (0, 1)]
    return g.conv(g.op("Concat", *parts, axis=1), 12, 32, 3)


@block
def coordinate_attention(g: Graph) -> str:
    x = g.floats(1, 64, 56, 56)
    rows = g.op("ReduceMean", x, g.ints(3))
    columns = g.op("Transpose", g.op("ReduceMean", x, g.ints(2)), perm=[0, 1, 3, 2])
    y = g.op("HardSwish", g.conv(g.op("Concat", rows, columns, axis=2), 64, 8, 1))
    rows, columns = g.op("Split", y, g.ints(56, 56), outputs=2, axis=2)
    x = g.op("Mul", x, g.op("Sigmoid", g.conv(rows, 8, 64, 1)))
    return g.op("Mul", x, g.op("Sigmoid", g.conv(g.op("Transpose", columns, perm=[0, 1, 3, 2]), 8, 64, 1)))


@block
def face_prelu(g: Graph) -> str:
    x = g.floats(1, 64, 56, 56)
    y = g.op("PRelu", g.conv(x, 64, 64, 3), g.weight(64, 1, 1))
    return g.op("Add", x, g.op("PRelu", g.conv(y, 64, 64, 3), g.weight(64, 1, 1)))


# --- attention and gates ------------------------------------------------------------------------


def attend(g: Graph, scores: str, v: str) -> str:
    return g.op("MatMul", g.op("Softmax", scores, axis=-1), v)


@block
def segment_anything(g: Graph) -> str:
    q, k, v = (g.floats(12, 1024, 64) for _ in range(3))
    scores = g.op("MatMul", g.op("Mul", q, g.const(0.125)), g.op("Transpose", k, perm=[0, 2, 1]))
    image = g.reshape(q, 12, 32, 32, 64)
    rows = g.op("Einsum", image, g.weight(32, 32, 64), equation="bhwc,hkc->bhwk")
    columns = g.op("Einsum", image, g.weight(32, 32, 64), equation="bhwc,wkc->bhwk")
    scores = g.op("Add", g.reshape(scores, 12, 32, 32, 32, 32), g.op("Unsqueeze", rows, g.ints(4)))
    scores = g.op("Add", scores, g.op("Unsqueeze", columns, g.ints(3)))
    return attend(g, g.reshape(scores, 12, 1024, 1024), v)


@block
def swin_window(g: Graph) -> str:
    x = g.reshape(g.floats(1, 56, 56, 96), 1, 8, 7, 8, 7, 96)
    x = g.reshape(g.op("Transpose", x, perm=[0, 1, 3, 2, 4, 5]), 64, 49, 96)
    parts = g.op("Transpose", g.reshape(g.linear(x, 96, 288), 64, 49, 3, 3, 32), perm=[2, 0, 3, 1, 4])
    q, k, v = (g.op("Squeeze", part, g.ints(0)) for part in g.op("Split", parts, outputs=3, axis=0, num_outputs=3))
    scores = g.op("MatMul", g.op("Mul", q, g.const(0.17)), g.op("Transpose", k, perm=[0, 1, 3, 2]))
    y = attend(g, g.op("Add", scores, g.weight(1, 3, 49, 49)), v)
    return g.linear(g.reshape(g.op("Transpose", y, perm=[0, 2, 1, 3]), 64, 49, 96), 96, 96)


@block
def grouped_queries(g: Graph) -> str:
    q, k, v = g.floats(1, 32, 1, 128), g.floats(1, 8, 1024, 128), g.floats(1, 8, 1024, 128)

    def repeated(heads: str) -> str:
        return g.reshape(g.op("Expand", g.op("Unsqueeze", heads, g.ints(2)), g.ints(1, 8, 4, 1024, 128)), 1, 32, 1024, 128)

    scores = g.op("MatMul", q, g.op("Transpose", repeated(k), perm=[0, 1, 3, 2]))
    return attend(g, g.op("Mul", scores, g.const(0.088)), repeated(v))


@block
def linear_attention(g: Graph) -> str:
    q, k, v = (g.floats(1, 8, 1024, 32) for _ in range(3))
    q, k = g.op("Relu", q), g.op("Transpose", g.op("Relu", k), perm=[0, 1, 3, 2])
    norm = g.op("Add", g.op("MatMul", q, g.op("ReduceSum", k, g.ints(3))), g.const(1e-6))
    return g.op("Div", g.op("MatMul", q, g.op("MatMul", k, v)), norm)


@block
def cross_covariance(g: Graph) -> str:
    def normal(x: str) -> str:
        return g.op("Div", x, g.op("Clip", g.op("ReduceL2", x, g.ints(-1)), g.const(1e-12)))

    q, k = normal(g.floats(1, 8, 32, 784)), g.op("Transpose", normal(g.floats(1, 8, 32, 784)), perm=[0, 1, 3, 2])
    return attend(g, g.op("Mul", g.op("MatMul", q, k), g.weight(8, 1, 1)), g.floats(1, 8, 32, 784))


@block
def rotary(g: Graph) -> str:
    x, half, last = g.floats(1, 32, 128, 64), g.ints(32), g.ints(3)
    front, back = g.op("Slice", x, g.ints(0), half, last), g.op("Slice", x, half, g.ints(64), last)
    rotated = g.op("Concat", g.op("Neg", back), front, axis=3)
    return g.op("Add", g.op("Mul", x, g.weight(1, 1, 128, 64)), g.op("Mul", rotated, g.weight(1, 1, 128, 64)))


@block
def swiglu(g: Graph) -> str:
    x = g.floats(1, 64, 1024)
    y = g.op("Mul", g.silu(g.op("MatMul", x, g.weight(1024, 2816))), g.op("MatMul", x, g.weight(1024, 2816)))
    return g.op("MatMul", y, g.weight(2816, 1024))


@block
def geglu(g: Graph) -> str:
    value, gate = g.op("Split", g.linear(g.floats(1, 256, 320), 320, 2560), outputs=2, axis=-1, num_outputs=2)
    return g.linear(g.op("Mul", value, g.op("Gelu", gate)), 1280, 320)


@block
def experts_by_einsum(g: Graph) -> str:
    x = g.floats(16, 256)
    share = g.op("Softmax", g.op("MatMul", x, g.weight(256, 8)))
    y = g.op("Relu", g.op("Einsum", x, g.weight(8, 256, 512), equation="bi,eio->beo"))
    return g.op("Einsum", g.op("Einsum", y, g.weight(8, 512, 256), equation="beo,eoi->bei"), share, equation="bei,be->bi")


# --- sound and time -----------------------------------------------------------------------------


@block
def wavenet(g: Graph) -> str:
    x = g.floats(1, 64, 2000)
    for dilation in (1, 2, 4, 8):
        both = g.op("Conv", x, g.weight(128, 64, 3), g.weight(128), dilations=[dilation], pads=[dilation] * 2)
        value, gate = g.op("Split", both, outputs=2, axis=1, num_outputs=2)
        y = g.op("Mul", g.op("Tanh", value), g.op("Sigmoid", gate))
        x = g.op("Add", x, g.op("Conv", y, g.weight(64, 64, 1), g.weight(64)))
    return x


@block
def mamba_causal_conv(g: Graph) -> str:
    x = g.op("Transpose", g.linear(g.floats(1, 256, 256), 256, 512), perm=[0, 2, 1])
    y = g.silu(g.op("Conv", x, g.weight(512, 1, 4), g.weight(512), group=512, pads=[3, 0]))
    return g.linear(g.op("Transpose", y, perm=[0, 2, 1]), 512, 256)


@block
def vocoder_upsampling(g: Graph) -> str:
    x = g.op("LeakyRelu", g.floats(1, 512, 80), alpha=0.1)
    return g.op("ConvTranspose", x, g.weight(512, 256, 16), g.weight(256), strides=[8], pads=[4, 4])


@block
def two_way_lstm(g: Graph) -> str:
    return g.op("LSTM", g.floats(100, 1, 256), g.weight(2, 1024, 256), g.weight(2, 1024, 256), g.weight(2, 2048), outputs=3,
                hidden_size=256, direction="bidirectional")[0]


@block
def short_time_spectrum(g: Graph) -> str:
    window = g.const(np.hanning(400))
    return g.op("STFT", g.floats(1, 16000), g.const(160, np.int64), window, g.const(400, np.int64))


# --- normalisations as exporters spell them, and what stands around a network -------------------


@block
def spelled_rms_norm(g: Graph) -> str:
    x = g.floats(1, 128, 2048)
    mean = g.op("ReduceMean", g.op("Pow", x, g.const(2)), g.ints(-1))
    return g.op("Mul", g.weight(2048), g.op("Mul", x, g.op("Reciprocal", g.op("Sqrt", g.op("Add", mean, g.const(1e-6))))))


@block
def spelled_norm_of_channels(g: Graph) -> str:
    x = g.floats(1, 96, 56, 56)
    apart = g.op("Sub", x, g.op("ReduceMean", x, g.ints(1)))
    mean = g.op("ReduceMean", g.op("Pow", apart, g.const(2)), g.ints(1))
    y = g.op("Div", apart, g.op("Sqrt", g.op("Add", mean, g.const(1e-6))))
    y = g.op("Add", g.op("Mul", y, g.weight(96, 1, 1)), g.weight(96, 1, 1))
    return g.conv(y, 96, 192, 2, strides=[2, 2], pads=[0] * 4)


@block
def spelled_group_norm(g: Graph) -> str:
    x = g.floats(1, 128, 64, 64)
    y = g.op("InstanceNormalization", g.reshape(x, 1, 32, -1), g.const(np.ones(32)), g.const(np.zeros(32)))
    y = g.op("Add", g.op("Mul", g.reshape(y, 1, 128, 64, 64), g.weight(128, 1, 1)), g.weight(128, 1, 1))
    return g.conv(g.silu(y), 128, 128, 3)


@block
def spelled_gelu(g: Graph) -> str:
    x = g.floats(1, 197, 3072)
    cube = g.op("Mul", g.op("Pow", x, g.const(3)), g.const(0.044715))
    inner = g.op("Tanh", g.op("Mul", g.op("Add", x, cube), g.const(0.79788)))
    return g.op("Mul", g.op("Mul", x, g.op("Add", inner, g.const(1))), g.const(0.5))


@block
def pixels_to_network(g: Graph) -> str:
    x = g.op("Cast", g.input(random.integers(0, 255, (1, 224, 224, 3)).astype(np.uint8)), to=onnx.TensorProto.FLOAT)
    x = g.op("Div", g.op("Sub", x, g.const([123, 116, 103])), g.const([58, 57, 57]))
    return g.conv(g.op("Transpose", x, perm=[0, 3, 1, 2]), 3, 32, 3, strides=[2, 2])


@block
def classes_of_pixels(g: Graph) -> str:
    x = g.op("Resize", g.floats(1, 21, 65, 65), "", "", g.ints(1, 21, 257, 257), mode="linear",
             coordinate_transformation_mode="align_corners")
    return g.op("ArgMax", x, axis=1)


@block
def best_detections(g: Graph) -> str:
    scores, places = g.op("TopK", g.op("Sigmoid", g.floats(1, 300 * 91)), g.ints(100), outputs=2)
    return g.op("Concat", scores, g.op("Cast", places, to=onnx.TensorProto.FLOAT), axis=1)


@block
def sum_of_embeddings(g: Graph) -> str:
    words = g.input(random.integers(0, 20000, (32, 50)))
    return g.op("ReduceSum", g.op("Gather", g.weight(20000, 64), words), g.ints(1), keepdims=0)


@block
def graph_messages(g: Graph) -> str:
    nodes, edges = g.floats(64, 1000), g.input(random.integers(0, 64, (500, 1)))
    return g.op("ScatterND", nodes, edges, g.floats(500, 1000), reduction="add")

@block
def graph_messages_by_element(g: Graph) -> str:
    """As PyTorch's scatter_add exports: the indices are expanded over the features."""
    edges = g.op("Expand", g.input(random.integers(0, 500, (2000, 1))), g.ints(2000, 64))
    return g.op("ScatterElements", g.const(np.zeros((500, 64))), edges, g.floats(2000, 64), axis=0, reduction="add")


@block
def graph_attention(g: Graph) -> str:
    nodes, edges, heads = 500, 4000, 8
    source, target = g.input(random.integers(0, nodes, edges)), g.input(random.integers(0, nodes, (edges, 1)))
    scores = g.op("LeakyRelu", g.op("Add", g.op("Gather", g.floats(nodes, heads), source), g.floats(edges, heads)), alpha=0.2)
    each = g.op("Expand", target, g.ints(edges, heads))
    top = g.op("ScatterElements", g.const(np.full((nodes, heads), -1e9)), each, scores, axis=0, reduction="max")
    shares = g.op("Exp", g.op("Sub", scores, g.op("GatherElements", top, each, axis=0)))
    sums = g.op("ScatterElements", g.const(np.zeros((nodes, heads))), each, shares, axis=0, reduction="add")
    return g.op("Div", shares, g.op("GatherElements", sums, each, axis=0))


@block
def similarity(g: Graph) -> str:
    return g.op("MatMul", g.floats(64, 512), g.op("Transpose", g.floats(1000, 512), perm=[1, 0]))


@block
def gram_matrix(g: Graph) -> str:
    x = g.floats(1, 64, 4096)
    return g.op("MatMul", x, g.op("Transpose", x, perm=[0, 2, 1]))


@block
def clip_logits(g: Graph) -> str:
    image, texts = (g.op("Div", x, g.op("ReduceL2", x, g.ints(1))) for x in (g.floats(1, 512), g.floats(100, 512)))
    return g.op("Mul", g.op("MatMul", image, g.op("Transpose", texts, perm=[1, 0])), g.const(100.0))


@block
def layer_of_three_rows(g: Graph) -> str:
    return g.op("Gemm", g.floats(3, 1024), g.weight(1024, 1024), g.weight(1024), transB=1)


@block
def head_of_ten_classes(g: Graph) -> str:
    return g.op("Gemm", g.floats(512, 1024), g.weight(10, 1024), g.weight(10), transB=1)


@block
def point_clouds(g: Graph) -> str:
    x, channels = g.floats(8, 3, 1024), 3
    for to in (64, 128, 256):
        x, channels = g.op("Relu", g.op("Conv", x, g.weight(to, channels, 1), g.weight(to))), to
    return g.op("ReduceMax", x, g.ints(2))


@block
def mixer_of_tokens(g: Graph) -> str:
    x = g.floats(1, 196, 512)
    y = g.linear(g.op("Gelu", g.linear(g.op("Transpose", x, perm=[0, 2, 1]), 196, 256)), 256, 196)
    return g.op("Add", x, g.op("Transpose", y, perm=[0, 2, 1]))


@block
def mean_over_time(g: Graph) -> str:
    return g.op("ReduceMean", g.floats(8, 512, 1024), g.ints(1))


@block
def log_shares_of_characters(g: Graph) -> str:
    return g.op("LogSoftmax", g.floats(1, 40, 6625), axis=2)


@block
def interleaved_rotary(g: Graph) -> str:
    x, cosines, sines = g.floats(1, 12, 256, 64), g.floats(256, 32), g.floats(256, 32)
    even, odd = (g.op("Slice", x, g.ints(first), g.ints(64), g.ints(3), g.ints(2)) for first in (0, 1))
    rotated = (g.op("Sub", g.op("Mul", even, cosines), g.op("Mul", odd, sines)), g.op("Add", g.op("Mul", odd, cosines), g.op("Mul", even, sines)))
    return g.reshape(g.op("Concat", *(g.op("Unsqueeze", half, g.ints(4)) for half in rotated), axis=4), 1, 12, 256, 64)


@block
def deeplab_pyramid(g: Graph) -> str:
    x = g.floats(1, 128, 32, 32)
    parts = [g.op("Relu", g.conv(x, 128, 64, 1)), *(g.op("Relu", g.conv(x, 128, 64, 3, dilation=dilation)) for dilation in (6, 12, 18))]
    pooled = g.op("Relu", g.conv(g.op("GlobalAveragePool", x), 128, 64, 1))
    parts.append(g.op("Resize", pooled, "", "", g.ints(1, 64, 32, 32), mode="linear"))
    return g.op("Relu", g.conv(g.op("Concat", *parts, axis=1), 320, 64, 1))


@block
def channel_gate_alone(g: Graph) -> str:
    x = g.floats(8, 96, 56, 56)
    gate = g.conv(g.op("Relu", g.conv(g.op("GlobalAveragePool", x), 96, 24, 1)), 24, 96, 1)
    return g.op("Mul", x, g.op("HardSigmoid", gate))


@block
def raw_audio_convolution(g: Graph) -> str:
    return g.op("Relu", g.op("Conv", g.floats(1, 1, 160000), g.weight(128, 1, 10), strides=[5]))


@block
def lstm_of_many_rows(g: Graph) -> str:
    y, _, _ = g.op("LSTM", g.floats(50, 32, 128), g.weight(1, 512, 128), g.weight(1, 512, 128), g.weight(1, 1024), outputs=3, hidden_size=128)
    return y



def prepare(name: str, folder: pathlib.Path) -> dict:
    graph = Graph()
    model = graph.model(BLOCKS[name](graph))
    onnx.save(model, folder / f"{name}.onnx")
    np.savez(folder / f"{name}.npz", **graph.feeds)
    return {"gflop": 0, "weights_mb": 0, "nodes": len(model.graph.node), "outputs": 1, "opset": 20}


def main() -> int:
    options = run.parse_models("--blocks", __doc__, list(BLOCKS), "bench-blocks", 0.3, openvino=False)
    rows, made = run.measure_models(options, prepare)
    text = report.slowest_first(rows, "block")
    print(text)
    if options.write_docs:
        report.put_between(ROOT / "docs" / "models.md", BEGIN, END, f"Made by `{report.command_line('--blocks')}`: {made}.\n\n{text}")
    return run.finish(rows, options, lambda row: values.TOLERANCE)


if __name__ == "__main__":
    sys.exit(main())
