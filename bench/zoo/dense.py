"""Networks that say something of every place: segmentation, and detectors with all that comes after them."""

from __future__ import annotations

import numpy as np
from onnx import helper, parser

from .net import Built, Net


def unet(width: int = 32, levels: int = 4, side: int = 256, classes: int = 4) -> Built:
    """U-Net; the upper half of the way up by ConvTranspose, the lower by Resize; free batch and picture size."""
    net = Net("unet", opset=13, seed=42)
    x = net.image("image", side, ["batch", 3, "height", "width"])
    kept = []
    for level in range(levels):
        x = net.conv_bn_relu(net.conv_bn_relu(x, width << level, 3, 1, 1), width << level, 3, 1, 1)
        kept.append(x)
        x = net.maxpool(x, 2, 2)
    x = net.conv_bn_relu(x, width << levels, 3, 1, 1)
    for level in reversed(range(levels)):
        channels = width << level
        if level % 2:
            y = net.conv_transpose(x, channels, 2, 2)
        else:
            scales = net.const([1.0, 1.0, 2.0, 2.0])
            y = net.op("Resize", x, "", scales, mode="linear", coordinate_transformation_mode="half_pixel")
            y = net.conv(y, channels, 1)
        x = net.op("Concat", kept[level], y, axis=1)
        x = net.conv_bn_relu(net.conv_bn_relu(x, channels, 3, 1, 1), channels, 3, 1, 1)
    x = net.conv(x, classes, 1, target=2.0)
    return net.finish({net.op("Softmax", x, axis=1): ["batch", classes, "height", "width"],
                       net.op("ArgMax", x, axis=1, keepdims=0): ["batch", "height", "width"]})


class Detector(Net):
    """A trunk of the YOLO kind: convolutions with SiLU, half of the channels past the bottlenecks."""

    def block(self, x: str, outputs: int, kernel: int, stride: int = 1) -> str:
        y = self.batchnorm(self.conv(x, outputs, kernel, stride, kernel // 2, bias=False), 1.4)
        return self.op("Mul", y, self.op("Sigmoid", y))

    def partial(self, x: str, outputs: int, count: int = 1) -> str:
        y = self.block(x, outputs, 1)
        first, last = self.op("Split", y, self.ints(outputs // 2, outputs // 2), outputs=2, axis=1)
        parts = [first, last]
        for _ in range(count):
            last = self.op("Add", last, self.block(self.block(last, outputs // 2, 3), outputs // 2, 3))
            parts.append(last)
        return self.block(self.op("Concat", *parts, axis=1), outputs, 1)

    def pyramid(self, x: str) -> str:
        y = [self.block(x, self.values[x].shape[1] // 2, 1)]
        for _ in range(3):
            y.append(self.maxpool(y[-1], 5, 1, 2))
        return self.block(self.op("Concat", *y, axis=1), self.values[x].shape[1], 1)

    def up(self, x: str) -> str:
        return self.op("Resize", x, "", self.const([1.0, 1.0, 2.0, 2.0]), mode="nearest",
                       coordinate_transformation_mode="asymmetric", nearest_mode="floor")


def decode(net: Detector, levels: list[str], classes: int) -> tuple[str, str]:
    """All levels' predictions as boxes [1, n, 4] (corners, in sides of the picture) and scores [1, n, classes]."""
    boxes, scores = [], []
    for level, x in enumerate(levels):
        _, _, height, width = net.values[x].shape
        y = net.conv(x, 4 + classes, 1, target=1.5)
        y = net.op("Transpose", net.op("Reshape", y, net.ints(1, 4 + classes, -1)), perm=[0, 2, 1])
        places, sizes, kinds = net.op("Split", net.op("Sigmoid", y), net.ints(2, 2, classes), outputs=3, axis=2)
        grid = np.stack(np.meshgrid(np.arange(height), np.arange(width), indexing="ij")[::-1], -1)
        grid = net.weight(grid.reshape(1, -1, 2).astype(np.float32) - 0.5)
        stride = 1 / height
        centre = net.op("Mul", net.op("Add", net.op("Mul", places, net.const(2.0)), grid), net.const(stride))
        extent = net.op("Pow", net.op("Mul", sizes, net.const(2.0)), net.const(2.0))
        half = net.op("Mul", extent, net.const(1.5 * stride))
        boxes.append(net.op("Concat", net.op("Sub", centre, half), net.op("Add", centre, half), axis=2))
        scores.append(kinds)
    return net.op("Concat", *boxes, axis=1), net.op("Concat", *scores, axis=1)


def yolo(width: int = 32, side: int = 320, classes: int = 80, most: int = 100) -> Built:
    """From the picture to a table of `most` rows [x1, y1, x2, y2, score], their classes, and how many of them count."""
    net = Detector("yolo", opset=16, seed=8)
    x = net.block(net.block(net.image("image", side), width, 3, 2), 2 * width, 3, 2)
    x = net.partial(x, 2 * width)
    small = net.partial(net.block(x, 4 * width, 3, 2), 4 * width, 2)
    middle = net.partial(net.block(small, 8 * width, 3, 2), 8 * width, 2)
    large = net.pyramid(net.partial(net.block(middle, 16 * width, 3, 2), 16 * width))
    up = net.partial(net.op("Concat", net.up(large), middle, axis=1), 8 * width)
    first = net.partial(net.op("Concat", net.up(up), small, axis=1), 4 * width)
    second = net.partial(net.op("Concat", net.block(first, 4 * width, 3, 2), up, axis=1), 8 * width)
    third = net.partial(net.op("Concat", net.block(second, 8 * width, 3, 2), large, axis=1), 16 * width)
    boxes, scores = decode(net, [first, second, third], classes)

    best = net.op("ReduceMax", scores, axes=[2], keepdims=0)
    kinds = net.op("ArgMax", scores, axis=2, keepdims=0)
    kept = net.op("NonMaxSuppression", boxes, net.op("Unsqueeze", best, net.ints(1)), net.const(most, np.int64),
                  net.const(0.6), net.const(0.85))
    index = net.op("Slice", kept, net.ints(0, 2), net.ints(np.iinfo(np.int64).max, 3), net.ints(0, 1), net.ints(1, 1))
    flat = net.op("Reshape", index, net.ints(-1))
    found = net.op("Shape", flat)
    row_scores = net.op("Gather", net.op("Squeeze", best, net.ints(0)), flat)
    top, order = net.op("TopK", row_scores, net.op("Min", found, net.ints(most)), outputs=2, axis=0)
    chosen = net.op("Gather", flat, order)
    rows = net.op("GatherND", boxes, net.op("Unsqueeze", chosen, net.ints(0, 2)), batch_dims=1)
    rows = net.op("Squeeze", rows, net.ints(0))
    kind = net.op("GatherElements", net.op("Squeeze", kinds, net.ints(0)), chosen, axis=0)
    table = net.op("Concat", rows, net.op("Unsqueeze", top, net.ints(1)), axis=1)
    line = net.op("Range", net.const(0, np.int64), net.op("Squeeze", found, net.ints(0)), net.const(1, np.int64))
    empty = net.op("ConstantOfShape", net.ints(most, 5), value=helper.make_tensor("value", 1, [1], [0.0]))
    nothing = net.op("ConstantOfShape", net.ints(most), value=helper.make_tensor("value", 7, [1], [-1]))
    table = net.op("ScatterND", empty, net.op("Unsqueeze", line, net.ints(1)), table)
    return net.finish({table: [most, 5], net.op("ScatterElements", nothing, line, kind): [most], found: [1]})


def ssd(width: int = 32, side: int = 128, classes: int = 12, most: int = 10, threshold: float = 0.97) -> Built:
    """SSD whose boxes are sorted out by a Loop over classes with an If in it, as TensorFlow's exporter has it."""
    net = Net("ssd", opset=13, seed=300)
    x = net.conv_relu(net.conv_relu(net.image("image", side), width, 3, 2, 1), 2 * width, 3, 2, 1)
    levels = [net.conv_relu(x, 2 * width, 3, 2, 1)]
    for _ in range(2):
        levels.append(net.conv_relu(levels[-1], 2 * width, 3, 2, 1))
    boxes, scores = [], []
    for x in levels:
        _, _, height, size = net.values[x].shape
        count = height * size * 2
        delta = net.op("Transpose", net.conv(x, 8, 3, 1, 1), perm=[0, 2, 3, 1])
        delta = net.op("Mul", net.op("Reshape", delta, net.ints(count, 4)), net.const(0.2))
        grid = np.stack(np.meshgrid(np.arange(height), np.arange(size), indexing="ij"), -1).reshape(-1, 1, 2) + 0.5
        grid = np.broadcast_to(grid / height, (height * size, 2, 2)).reshape(count, 2)
        extent = np.tile(np.array([[1.5, 1.5], [1.0, 2.0]]) / height, (height * size, 1))
        corners = np.concatenate([grid - extent / 2, grid + extent / 2], 1).astype(np.float32)
        spread = np.concatenate([extent, extent], 1).astype(np.float32)
        boxes.append(net.op("Add", net.op("Mul", delta, net.weight(spread)), net.weight(corners)))
        kinds = net.op("Transpose", net.conv(x, 2 * classes, 3, 1, 1, target=1.5), perm=[0, 2, 3, 1])
        scores.append(net.op("Sigmoid", net.op("Reshape", kinds, net.ints(count, classes))))
    boxes = net.op("Clip", net.op("Concat", *boxes, axis=0), net.const(0.0), net.const(1.0))
    net.op("Unsqueeze", boxes, net.ints(0), names=["all_boxes"])
    net.op("Transpose", net.op("Concat", *scores, axis=0), perm=[1, 0], names=["by_class"])
    body = parser.parse_graph(f"""
    one_class (int64 kind, bool going, float[before, 6] found)
      => (bool go_on, float[after, 6] found_next, int64 count)
    {{
      row = Gather <axis = 0> (by_class, kind)
      peak = ReduceMax <keepdims = 0> (row)
      limit = Constant <value_float = {threshold}> ()
      any = Greater (peak, limit)
      rows = If (any) <then_branch = some () => (float[chosen, 6] table)
        {{
          one_two = Constant <value_ints = [0, 1]> ()
          table_scores = Unsqueeze (row, one_two)
          most = Constant <value_int = {most}> ()
          overlap = Constant <value_float = 0.45> ()
          kept = NonMaxSuppression (all_boxes, table_scores, most, overlap, limit)
          last = Constant <value_int = 2> ()
          places = Gather <axis = 1> (kept, last)
          zero = Constant <value_ints = [0]> ()
          flat_boxes = Squeeze (all_boxes, zero)
          corners = Gather (flat_boxes, places)
          one = Constant <value_ints = [1]> ()
          values = Gather (row, places)
          value_column = Unsqueeze (values, one)
          kind_float = Cast <to = 1> (kind)
          kind_rank2 = Unsqueeze (kind_float, one_two)
          like_column = Shape (value_column)
          kind_column = Expand (kind_rank2, like_column)
          table = Concat <axis = 1> (kind_column, value_column, corners)
        }}, else_branch = none () => (float[nobody, 6] empty)
        {{
          no_rows = Constant <value_ints = [0, 6]> ()
          empty = ConstantOfShape (no_rows)
        }}>
      found_next = Concat <axis = 0> (found, rows)
      size = Shape (rows)
      first = Constant <value_int = 0> ()
      count = Gather (size, first)
      go_on = Identity (going)
    }}""")
    start = net.op("ConstantOfShape", net.ints(0, 6), value=helper.make_tensor("value", 1, [1], [0.0]))
    found, counts = net.op("Loop", net.const(classes, np.int64), "", start, outputs=2, body=body)
    return net.finish({found: ["found", 6], counts: [classes]})
