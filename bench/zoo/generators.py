"""Networks that make pictures and sound: their images grow on the way."""

from __future__ import annotations

import numpy as np

from .net import Built, Net


def generator(width: int = 64, noise: int = 100, levels: int = 4) -> Built:
    """DCGAN's generator: a picture of 64 pixels out of noise, by transposed convolutions of 4x4; free batch."""
    net = Net("generator", opset=17, seed=64)
    x = net.input("noise", net.normal(1, noise, 1, 1), ["batch", noise, 1, 1])
    for level in reversed(range(levels)):
        first = level == levels - 1
        y = net.conv_transpose(x, width << level, 4, 1 if first else 2, 0 if first else 1, bias=False)
        x = net.op("Relu", net.batchnorm(y))
    x = net.op("Tanh", net.conv_transpose(x, 3, 4, 2, 1, bias=False))
    return net.finish({x: ["batch", 3, "height", "width"]})


def vocoder(width: int = 256, mels: int = 80, frames: int = 60, rates: tuple = (8, 8, 2, 2), kernels: tuple = (3, 7),
            dilations: tuple = (1, 3, 5)) -> Built:
    """HiFi-GAN: samples out of Mel frames, 256 for each; blocks of dilated convolutions between; free batch and length."""
    net = Net("vocoder", opset=17, seed=256)
    x = net.input("mels", net.normal(1, mels, frames), ["batch", mels, "frames"])
    x = net.conv(x, width, 7, pad=3)
    for level, rate in enumerate(rates):
        channels = width >> (level + 1)
        x = net.conv_transpose(net.op("LeakyRelu", x, alpha=0.1), channels, 2 * rate, rate, rate // 2)
        blocks = [residual(net, x, channels, kernel, dilations) for kernel in kernels]
        total = blocks[0]
        for block in blocks[1:]:
            total = net.op("Add", total, block)
        x = net.op("Div", total, net.const(float(len(blocks))))
    x = net.conv(net.op("LeakyRelu", x, alpha=0.01), 1, 7, pad=3)
    return net.finish({net.op("Tanh", x): ["batch", 1, "samples"]})


def residual(net: Net, x: str, channels: int, kernel: int, dilations: tuple) -> str:
    for dilation in dilations:
        y = x
        for step in (dilation, 1):
            weight = net.weight(net.normal(channels, channels, kernel))
            bias = net.weight(np.zeros(channels, np.float32))
            y = net.op("Conv", net.op("LeakyRelu", y, alpha=0.1), weight, bias, kernel_shape=[kernel],
                       dilations=[step], pads=[step * (kernel - 1) // 2] * 2)
            net._calibrate(weight, y, bias, 1, 0.5)
        x = net.op("Add", x, y)
    return x


def style_transfer(width: int = 32, side: int = 224, blocks: int = 5) -> Built:
    """A picture in another style: instance normalisation, reflected borders, pixels doubled; free picture size."""
    net = Net("style_transfer", opset=17, seed=9)

    def layer(x: str, outputs: int, kernel: int, stride: int = 1, relu: bool = True) -> str:
        pad = kernel // 2
        x = net.op("Pad", x, net.ints(0, 0, pad, pad, 0, 0, pad, pad), mode="reflect")
        x = net.conv(x, outputs, kernel, stride)
        if outputs > 3:
            scale, shift = net.random.uniform(0.7, 1.3, outputs).astype(np.float32), net.normal(outputs, std=0.2)
            x = net.op("InstanceNormalization", x, net.weight(scale), net.weight(shift))
        return net.op("Relu", x) if relu else x

    x = net.image("picture", side, [1, 3, "height", "width"])
    for level, (kernel, stride) in enumerate(((9, 1), (3, 2), (3, 2))):
        x = layer(x, width << level, kernel, stride)
    for _ in range(blocks):
        x = net.op("Add", x, layer(layer(x, 4 * width, 3), 4 * width, 3, relu=False))
    for level in (1, 0):
        x = net.op("Resize", x, "", net.const([1.0, 1.0, 2.0, 2.0]), mode="nearest",
                   coordinate_transformation_mode="asymmetric", nearest_mode="floor")
        x = layer(x, width << level, 3)
    return net.finish({layer(x, 3, 9, relu=False): [1, 3, "new_height", "new_width"]})
