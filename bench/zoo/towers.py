"""Encoders: windows that shift, two towers that meet, sentences as points."""

from __future__ import annotations

import numpy as np

from .net import Built
from .transformers import Transformer


def norm(net: Transformer, x: str, epsilon: float = 1e-5) -> str:
    size = net.values[x].shape[-1]
    scale = net.weight((1 + net.normal(size, std=0.2)).astype(np.float32))
    return net.op("LayerNormalization", x, scale, net.weight(net.normal(size, std=0.1)), axis=-1, epsilon=epsilon)


def roll(net: Transformer, x: str, shift: int) -> str:
    """torch.roll over both axes of [batch, height, width, channels], as exporters spell it."""
    for axis in (1, 2):
        end, cut = net.ints(np.iinfo(np.int64).max), net.ints(shift)
        tail = net.op("Slice", x, cut, end, net.ints(axis), net.ints(1))
        head = net.op("Slice", x, net.ints(0), cut, net.ints(axis), net.ints(1))
        x = net.op("Concat", tail, head, axis=axis)
    return x


def window_mask(side: int, window: int, shift: int) -> np.ndarray:
    """What keeps places apart that only the roll has made neighbours: [windows, 1, window^2, window^2]."""
    region = np.zeros((side, side))
    cuts = (slice(0, -window), slice(-window, -shift), slice(-shift, None))
    for i, rows in enumerate(cuts):
        for j, columns in enumerate(cuts):
            region[rows, columns] = 3 * i + j
    count = side // window
    region = region.reshape(count, window, count, window).transpose(0, 2, 1, 3).reshape(count * count, window * window)
    return np.where(region[:, None, :] != region[:, :, None], -100.0, 0.0).astype(np.float32)[:, None]


def relative_places(window: int) -> np.ndarray:
    grid = np.stack(np.meshgrid(*[np.arange(window)] * 2, indexing="ij")).reshape(2, -1)
    apart = grid[:, :, None] - grid[:, None, :] + window - 1
    return apart[0] * (2 * window - 1) + apart[1]


def swin_block(net: Transformer, x: str, batch: str, heads: int, window: int, shift: int) -> str:
    _, side, _, hidden = net.values[x].shape
    count, places = side // window, window * window
    y = norm(net, x)
    y = roll(net, y, shift) if shift else y
    y = net.reshape(y, -1, count, window, count, window, hidden)
    y = net.reshape(net.op("Transpose", y, perm=[0, 1, 3, 2, 4, 5]), -1, places, hidden)
    joint = net.reshape(net.matmul_add(y, 3 * hidden, 1.3), -1, places, 3, heads, hidden // heads)
    joint = net.op("Transpose", joint, perm=[2, 0, 3, 1, 4])
    query, key, value = (net.op("Gather", joint, net.const(i, np.int64), axis=0) for i in range(3))
    query = net.op("Mul", query, net.const((hidden // heads) ** -0.5))
    scores = net.op("MatMul", query, net.op("Transpose", key, perm=[0, 1, 3, 2]))
    table = net.weight(net.normal((2 * window - 1) ** 2, heads, std=0.5))
    bias = net.op("Gather", table, net.weight(relative_places(window).reshape(-1)), axis=0)
    bias = net.op("Transpose", net.op("Reshape", bias, net.ints(places, places, heads)), perm=[2, 0, 1])
    scores = net.op("Add", scores, net.op("Unsqueeze", bias, net.ints(0)))
    if shift:
        mask = net.weight(window_mask(side, window, shift))
        scores = net.reshape(scores, -1, count * count, heads, places, places)
        scores = net.reshape(net.op("Add", scores, mask), -1, heads, places, places)
    y = net.op("MatMul", net.op("Softmax", scores, axis=-1), value)
    y = net.reshape(net.op("Transpose", y, perm=[0, 2, 1, 3]), -1, places, hidden)
    y = net.reshape(net.matmul_add(y, hidden, 0.5), -1, count, count, window, window, hidden)
    y = net.reshape(net.op("Transpose", y, perm=[0, 1, 3, 2, 4, 5]), batch, side, side, hidden)
    y = roll(net, y, side - shift) if shift else y
    x = net.op("Add", x, y)
    y = net.matmul_add(net.gelu_erf(net.matmul_add(norm(net, x), 4 * hidden)), hidden, 0.5)
    return net.op("Add", x, y)


def swin(depths=(2, 2, 6, 2), hidden: int = 96, heads=(3, 6, 12, 24), window: int = 7, side: int = 224,
         classes: int = 1000) -> Built:
    """Swin-T; free batch."""
    net = Transformer("swin", opset=17, seed=77)
    x = net.conv(net.image("image", side, ["batch", 3, side, side]), hidden, 4, 4)
    batch = net.size(x, 0)
    x = norm(net, net.op("Transpose", x, perm=[0, 2, 3, 1]))
    for stage, (depth, count) in enumerate(zip(depths, heads)):
        if stage:
            whole, start = net.ints(np.iinfo(np.int64).max, np.iinfo(np.int64).max), ((0, 0), (1, 0), (0, 1), (1, 1))
            parts = [net.op("Slice", x, net.ints(*corner), whole, net.ints(1, 2), net.ints(2, 2)) for corner in start]
            x = norm(net, net.op("Concat", *parts, axis=3))
            x = net.matmul(x, net.values[x].shape[-1] // 2)
        for block in range(depth):
            small = net.values[x].shape[1] <= window
            x = swin_block(net, x, batch, count, window, window // 2 if block % 2 and not small else 0)
    x = net.op("ReduceMean", norm(net, x), axes=[1, 2], keepdims=0)
    return net.finish({net.gemm(x, classes, 2.0): ["batch", classes]})


def encoder_layer(net: Transformer, x: str, heads: int, mask: str = "", quick: bool = False) -> str:
    """Normalised first; with QuickGELU where `quick`."""
    hidden = net.values[x].shape[-1]
    y = norm(net, x)
    scaled = net.op("Mul", net.matmul_add(y, hidden, 0.9), net.const((hidden // heads) ** -0.5))
    query = net.split_heads(scaled, heads, [0, 2, 1, 3])
    key = net.split_heads(net.matmul_add(y, hidden, 0.9), heads, [0, 2, 3, 1])
    value = net.split_heads(net.matmul_add(y, hidden, 2.0), heads, [0, 2, 1, 3])
    scores = net.op("MatMul", query, key)
    scores = net.op("Add", scores, mask) if mask else scores
    y = net.join_heads(net.op("MatMul", net.op("Softmax", scores, axis=-1), value))
    x = net.op("Add", x, net.matmul_add(y, hidden, 0.5))
    y = net.matmul_add(norm(net, x), 4 * hidden)
    y = net.op("Mul", y, net.op("Sigmoid", net.op("Mul", y, net.const(1.702)))) if quick else net.gelu_erf(y)
    return net.op("Add", x, net.matmul_add(y, hidden, 0.5))


def unit(net: Transformer, x: str) -> str:
    return net.op("Div", x, net.op("ReduceL2", x, axes=[-1], keepdims=1))


def clip(layers: int = 12, image_hidden: int = 768, text_hidden: int = 512, side: int = 224, patch: int = 32,
         vocabulary: int = 49408, length: int = 77, joint: int = 512, width: int = 64) -> Built:
    """Both towers of CLIP ViT-B/32 and how near they come; free numbers of pictures and texts, free length."""
    net = Transformer("clip", opset=17, seed=32)
    x = net.conv(net.image("pixel_values", side, ["pictures", 3, side, side]), image_hidden, patch, patch, bias=False)
    batch = net.size(x, 0)
    x = net.op("Transpose", net.reshape(x, batch, image_hidden, -1), perm=[0, 2, 1])
    token = net.op("Expand", net.weight(net.normal(1, 1, image_hidden)),
                   net.op("Concat", batch, net.ints(1, image_hidden), axis=0))
    x = net.op("Concat", token, x, axis=1)
    x = norm(net, net.op("Add", x, net.weight(net.normal(net.values[x].shape[1], image_hidden, std=0.5))))
    for _ in range(layers):
        x = encoder_layer(net, x, image_hidden // width, quick=True)
    x = net.op("Gather", norm(net, x), net.const(0, np.int64), axis=1)
    picture = unit(net, net.matmul(x, joint))

    tokens = net.random.integers(1, vocabulary - 1, (2, min(length, 16)))
    tokens[:, -1] = tokens[0, 9] = vocabulary - 1  # the end of a text has the largest number
    ids = net.input("input_ids", tokens, ["texts", "sequence"])
    count = net.size(ids, 1)
    numbers = net.weight(np.arange(length, dtype=np.int64)[None])
    place = net.op("Slice", numbers, net.ints(0), count, net.ints(1), net.ints(1))
    x = net.op("Add", net.op("Gather", net.weight(net.normal(vocabulary, text_hidden)), ids),
               net.op("Gather", net.weight(net.normal(length, text_hidden, std=0.5)), place))
    square = net.op("Concat", count, count, axis=0)
    mask = net.op("Expand", net.const(float(np.finfo(np.float32).min)), square)
    mask = net.op("Unsqueeze", net.op("Trilu", mask, net.const(1, np.int64), upper=1), net.ints(0, 1))
    for _ in range(layers):
        x = encoder_layer(net, x, text_hidden // width, mask, quick=True)
    x = norm(net, x)
    end = net.op("ArgMax", ids, axis=1, keepdims=0)
    rows = net.op("Range", net.const(0, np.int64), net.scalar_size(ids, 0), net.const(1, np.int64))
    index = net.op("Concat", net.op("Unsqueeze", rows, net.ints(1)), net.op("Unsqueeze", end, net.ints(1)), axis=1)
    text = unit(net, net.matmul(net.op("GatherND", x, index), joint))
    cosines = net.op("MatMul", text, net.op("Transpose", picture, perm=[1, 0]))
    net.rms.pop(cosines)  # of strangers: small in many dimensions
    near = net.op("Mul", cosines, net.op("Exp", net.weight(np.array(2.6592, np.float32))))
    return net.finish({net.op("Transpose", near, perm=[1, 0]): ["pictures", "texts"], near: ["texts", "pictures"],
                       text: ["texts", joint], picture: ["pictures", joint]})


def sentence(layers: int = 6, hidden: int = 384, heads: int = 12, vocabulary: int = 30522, positions: int = 512,
             length: int = 64, batch: int = 1) -> Built:
    """A DistilBERT that means over its tokens; each text a point on the unit sphere."""
    net = Transformer("sentence", opset=11, seed=66)
    dims = ["batch", "sequence"]
    ids = net.input("input_ids", net.random.integers(0, vocabulary, (batch, length)), dims)
    mask = net.input("attention_mask", np.ones((batch, length), np.int64), dims)
    count = net.op("Gather", net.op("Shape", ids), net.const(1, np.int64))
    place = net.op("Range", net.const(0, np.int64), count, net.const(1, np.int64))
    place = net.op("Expand", net.op("Unsqueeze", place, axes=[0]), net.op("Shape", ids))
    x = net.op("Add", net.op("Gather", net.weight(net.normal(vocabulary, hidden)), ids),
               net.op("Gather", net.weight(net.normal(positions, hidden, std=0.5)), place))
    x = net.layer_norm(x, 1e-12)
    absent = net.op("Equal", mask, net.const(0, np.int64))

    def size(value: str, axis: int) -> str:
        return net.op("Unsqueeze", net.op("Gather", net.op("Shape", value), net.const(axis, np.int64)), axes=[0])

    absent = net.op("Reshape", absent, net.op("Concat", size(mask, 0), net.ints(1, 1), size(mask, 1), axis=0))
    net.size = size
    for _ in range(layers):
        query = net.op("Div", net.matmul_add(x, hidden, 0.9), net.const(np.sqrt(hidden // heads)))
        query = net.split_heads(query, heads, [0, 2, 1, 3])
        key = net.split_heads(net.matmul_add(x, hidden, 0.9), heads, [0, 2, 1, 3])
        value = net.split_heads(net.matmul_add(x, hidden, 2.0), heads, [0, 2, 1, 3])
        scores = net.op("MatMul", query, net.op("Transpose", key, perm=[0, 1, 3, 2]))
        away = net.op("Expand", net.op("Cast", absent, to=9), net.op("Shape", scores))
        scores = net.op("Where", away, net.const(float(np.finfo(np.float32).min)), scores)
        y = net.join_heads(net.op("MatMul", net.op("Softmax", scores, axis=3), value))
        x = net.layer_norm(net.op("Add", net.matmul_add(y, hidden), x), 1e-12)
        y = net.gelu_erf(net.matmul_add(x, 4 * hidden))
        x = net.layer_norm(net.op("Add", net.matmul_add(y, hidden), x), 1e-12)
    weight = net.op("Cast", net.op("Expand", net.op("Unsqueeze", mask, axes=[-1]), net.op("Shape", x)), to=1)
    total = net.op("ReduceSum", net.op("Mul", x, weight), axes=[1], keepdims=0)
    share = net.op("Clip", net.op("ReduceSum", weight, axes=[1], keepdims=0), net.const(1e-9))
    mean = net.op("Div", total, share)
    length_of = net.op("Expand", net.op("Clip", net.op("ReduceL2", mean, axes=[1], keepdims=1), net.const(1e-12)),
                       net.op("Shape", mean))
    return net.finish({net.op("Div", mean, length_of): ["batch", hidden]})
