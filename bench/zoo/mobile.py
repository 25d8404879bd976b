"""Networks found by search: grouped and depthwise convolutions, squeeze and excite, hard activations."""

from __future__ import annotations

from .net import Built, Net
from .vision import finish


class Searched(Net):
    def conv_bn(self, x: str, outputs: int, kernel: int, stride: int = 1, group: int = 1, scale: float = 1.5) -> str:
        return self.batchnorm(self.conv(x, outputs, kernel, stride, kernel // 2, group, bias=False), scale)

    def excite(self, x: str, squeezed: int, gate: str, **attributes) -> str:
        y = self.op("Relu", self.conv(self.op("GlobalAveragePool", x), squeezed, 1))
        return self.op("Mul", x, self.op(gate, self.conv(y, self.values[x].shape[1], 1), **attributes))


def rounded(channels: float, step: int = 8) -> int:
    return max(step, int(channels + step / 2) // step * step)


# kernel, expanded, outputs, squeeze and excite, hard swish, stride
MOBILENET_V3 = (
    (3, 16, 16, False, False, 1), (3, 64, 24, False, False, 2), (3, 72, 24, False, False, 1),
    (5, 72, 40, True, False, 2), (5, 120, 40, True, False, 1), (5, 120, 40, True, False, 1),
    (3, 240, 80, False, True, 2), (3, 200, 80, False, True, 1), (3, 184, 80, False, True, 1),
    (3, 184, 80, False, True, 1), (3, 480, 112, True, True, 1), (3, 672, 112, True, True, 1),
    (5, 672, 160, True, True, 2), (5, 960, 160, True, True, 1), (5, 960, 160, True, True, 1),
)


def mobilenet_v3(width: float = 1.0, side: int = 224, blocks: int = 15, classes: int = 1000) -> Built:
    """The large one, with HardSwish as an operator; free batch."""
    net = Searched("mobilenet_v3", opset=14, seed=33)

    def activate(x: str, hard: bool) -> str:
        return net.op("HardSwish" if hard else "Relu", x)

    x = activate(net.conv_bn(net.image("image", side, ["batch", 3, side, side]), rounded(16 * width), 3, 2), True)
    for kernel, expanded, outputs, excite, hard, stride in MOBILENET_V3[:blocks]:
        channels, expanded, outputs = net.values[x].shape[1], rounded(expanded * width), rounded(outputs * width)
        y = activate(net.conv_bn(x, expanded, 1), hard) if expanded != channels else x
        y = activate(net.conv_bn(y, expanded, kernel, stride, expanded), hard)
        if excite:
            y = net.excite(y, rounded(expanded / 4), "HardSigmoid", alpha=1 / 6, beta=0.5)
        y = net.conv_bn(y, outputs, 1, scale=0.7)
        x = net.op("Add", x, y) if stride == 1 and channels == outputs else y
    x = activate(net.conv_bn(x, rounded(960 * width), 1), True)
    x = net.op("Flatten", net.op("GlobalAveragePool", x), axis=1)
    x = activate(net.gemm(x, rounded(1280 * width)), True)
    return net.finish({net.gemm(x, classes, 2.0): ["batch", classes]})


def resnext50(blocks=(3, 4, 6, 3), width: int = 64, groups: int = 32, side: int = 224, classes: int = 1000) -> Built:
    """ResNeXt-50 32x4d, of opset 7: BatchNormalization and pooling as they were then."""
    net = Net("resnext50", opset=7, seed=324)
    x = net.maxpool(net.conv_bn_relu(net.image("image", side), width, 7, 2, 3), 3, 2, 1)
    for stage, count in enumerate(blocks):
        channels = 2 * width << stage
        for block in range(count):
            stride = 2 if stage and not block else 1
            y = net.conv_bn_relu(net.conv_bn_relu(x, channels, 1), channels, 3, stride, 1, group=groups)
            y = net.batchnorm(net.conv(y, 2 * channels, 1, bias=False), scale=0.5)
            if not block:
                x = net.batchnorm(net.conv(x, 2 * channels, 1, stride, bias=False))
            x = net.op("Relu", net.op("Add", y, x))
    return finish(net, net.classifier(net.op("GlobalAveragePool", x), classes))


def regnet_y(depths=(1, 3, 6, 6), widths=(48, 104, 208, 440), group_width: int = 8, side: int = 224,
             classes: int = 1000) -> Built:
    """RegNetY-400MF: groups of eight channels and squeeze and excite."""
    net = Searched("regnet_y", opset=16, seed=400)
    x = net.op("Relu", net.conv_bn(net.image("image", side, ["batch", 3, side, side]), 32, 3, 2))
    for depth, width in zip(depths, widths):
        for block in range(depth):
            stride, before = (1 if block else 2), net.values[x].shape[1]
            y = net.op("Relu", net.conv_bn(x, width, 1))
            y = net.op("Relu", net.conv_bn(y, width, 3, stride, width // group_width))
            y = net.excite(y, max(4, before // 4), "Sigmoid")
            y = net.conv_bn(y, width, 1, scale=0.5)
            if not block:
                x = net.conv_bn(x, width, 1, stride, scale=1.0)
            x = net.op("Relu", net.op("Add", x, y))
    x = net.op("Flatten", net.op("GlobalAveragePool", x), axis=1)
    return net.finish({net.gemm(x, classes, 2.0): ["batch", classes]})
