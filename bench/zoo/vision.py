"""Image networks, batch 1, with seeded weights and the layers of the published architectures."""

from __future__ import annotations

from .net import Built, Net


def finish(net: Net, y: str) -> Built:
    return net.finish({y: list(net.values[y].shape)})


def resnet50(blocks=(3, 4, 6, 3), width: int = 64, side: int = 224) -> Built:
    net = Net("resnet50", seed=50)
    x = net.conv_bn_relu(net.image("image", side), width, 7, 2, 3)
    x = net.maxpool(x, 3, 2, 1)
    for stage, count in enumerate(blocks):
        channels = width << stage
        for block in range(count):
            stride = 2 if stage and not block else 1
            y = net.conv_bn_relu(x, channels, 1)
            y = net.conv_bn_relu(y, channels, 3, stride, 1)
            y = net.batchnorm(net.conv(y, channels * 4, 1, bias=False), scale=0.5)
            if not block:
                x = net.batchnorm(net.conv(x, channels * 4, 1, stride, bias=False))
            x = net.op("Relu", net.op("Add", y, x))
    return finish(net, net.classifier(net.op("GlobalAveragePool", x)))


def vgg19(width: int = 64, dense: int = 4096, side: int = 224) -> Built:
    net = Net("vgg19", opset=9, seed=19)
    x = net.image("image", side)
    for stage, count in enumerate((2, 2, 4, 4, 4)):
        for _ in range(count):
            x = net.conv_relu(x, min(width << stage, width * 8), 3, 1, 1)
        x = net.maxpool(x, 2, 2)
    x = net.op("Flatten", x, axis=1)
    for _ in range(2):
        x = net.op("Relu", net.gemm(x, dense))
    return finish(net, net.op("Softmax", net.gemm(x, 1000, target=2.0)))


def squeezenet(side: int = 224) -> Built:
    net = Net("squeezenet", seed=11)

    def fire(x: str, squeeze: int, expand: int) -> str:
        x = net.conv_relu(x, squeeze, 1)
        return net.op("Concat", net.conv_relu(x, expand, 1), net.conv_relu(x, expand, 3, 1, 1), axis=1)

    x = net.maxpool(net.conv_relu(net.image("image", side), 64, 3, 2), 3, 2, ceil_mode=1)
    x = fire(fire(x, 16, 64), 16, 64)
    x = net.maxpool(x, 3, 2, ceil_mode=1)
    x = fire(fire(x, 32, 128), 32, 128)
    x = net.maxpool(x, 3, 2, ceil_mode=1)
    for squeeze in (48, 48, 64, 64):
        x = fire(x, squeeze, squeeze * 4)
    x = net.op("GlobalAveragePool", net.conv_relu(x, 1000, 1))
    return finish(net, net.op("Flatten", x, axis=1))


def densenet121(blocks=(6, 12, 24, 16), growth: int = 32, side: int = 224) -> Built:
    net = Net("densenet121", seed=121)
    x = net.maxpool(net.conv_bn_relu(net.image("image", side), 2 * growth, 7, 2, 3), 3, 2, 1)
    for stage, count in enumerate(blocks):
        for _ in range(count):
            y = net.op("Relu", net.batchnorm(x))
            y = net.conv_bn_relu(y, 4 * growth, 1)
            x = net.op("Concat", x, net.conv(y, growth, 3, 1, 1, bias=False), axis=1)
        x = net.op("Relu", net.batchnorm(x))
        if stage + 1 < len(blocks):
            x = net.averagepool(net.conv(x, net.values[x].shape[1] // 2, 1, bias=False), 2, 2)
    return finish(net, net.classifier(net.op("GlobalAveragePool", x)))


def inception_v1(side: int = 224) -> Built:
    net = Net("inception_v1", opset=9, seed=1)

    def lrn(x: str) -> str:
        return net.op("LRN", x, size=5, alpha=1e-4, beta=0.75, bias=1.0)

    def module(x: str, a: int, b0: int, b: int, c0: int, c: int, d: int) -> str:
        return net.op("Concat", net.conv_relu(x, a, 1),
                      net.conv_relu(net.conv_relu(x, b0, 1), b, 3, 1, 1),
                      net.conv_relu(net.conv_relu(x, c0, 1), c, 5, 1, 2),
                      net.conv_relu(net.maxpool(x, 3, 1, 1), d, 1), axis=1)

    x = net.conv_relu(net.image("image", side), 64, 7, 2, 3)
    x = lrn(net.maxpool(x, 3, 2))
    x = lrn(net.conv_relu(net.conv_relu(x, 64, 1), 192, 3, 1, 1))
    x = net.maxpool(x, 3, 2)
    x = module(module(x, 64, 96, 128, 16, 32, 32), 128, 128, 192, 32, 96, 64)
    x = net.maxpool(x, 3, 2)
    for sizes in ((192, 96, 208, 16, 48, 64), (160, 112, 224, 24, 64, 64), (128, 128, 256, 24, 64, 64),
                  (112, 144, 288, 32, 64, 64), (256, 160, 320, 32, 128, 128)):
        x = module(x, *sizes)
    x = net.maxpool(x, 3, 2)
    x = module(module(x, 256, 160, 320, 32, 128, 128), 384, 192, 384, 48, 128, 128)
    return finish(net, net.classifier(net.op("GlobalAveragePool", x), softmax=True))


def inception_v2(side: int = 224) -> Built:
    net = Net("inception_v2", seed=2)

    def two(x: str, first: int, second: int, stride: int = 1) -> str:
        return net.conv_bn_relu(net.conv_bn_relu(x, first, 1), second, 3, stride, 1)

    def three(x: str, first: int, second: int, stride: int = 1) -> str:
        y = net.conv_bn_relu(net.conv_bn_relu(x, first, 1), second, 3, 1, 1)
        return net.conv_bn_relu(y, second, 3, stride, 1)

    def module(x: str, a: int, b0: int, b: int, c0: int, c: int, d: int, pool: str = "average") -> str:
        pooled = net.averagepool(x, 3, 1, 1) if pool == "average" else net.maxpool(x, 3, 1, 1)
        return net.op("Concat", net.conv_bn_relu(x, a, 1), two(x, b0, b), three(x, c0, c),
                      net.conv_bn_relu(pooled, d, 1), axis=1)

    def reduction(x: str, b0: int, b: int, c0: int, c: int) -> str:
        return net.op("Concat", two(x, b0, b, 2), three(x, c0, c, 2), net.maxpool(x, 3, 2, [0, 0, 1, 1]), axis=1)

    x = net.conv_bn_relu(net.image("image", side), 64, 7, 2, 3)
    x = net.maxpool(x, 3, 2, [0, 0, 1, 1])
    x = net.conv_bn_relu(net.conv_bn_relu(x, 64, 1), 192, 3, 1, 1)
    x = net.maxpool(x, 3, 2, [0, 0, 1, 1])
    x = module(module(x, 64, 64, 64, 64, 96, 32), 64, 64, 96, 64, 96, 64)
    x = reduction(x, 128, 160, 64, 96)
    for sizes in ((224, 64, 96, 96, 128, 128), (192, 96, 128, 96, 128, 128), (160, 128, 160, 128, 160, 96),
                  (96, 128, 192, 160, 192, 96)):
        x = module(x, *sizes)
    x = reduction(x, 128, 192, 192, 256)
    x = module(x, 352, 192, 320, 160, 224, 128)
    x = module(x, 352, 192, 320, 192, 224, 128, pool="max")
    return finish(net, net.classifier(net.averagepool(x, net.values[x].shape[2], 1), softmax=True))


def shufflenet(side: int = 224) -> Built:
    """ShuffleNet v1 with 4 groups, without the narrow middle."""
    net = Net("shufflenet", opset=9, seed=4)
    groups = 4

    def unit(x: str, outputs: int, stride: int) -> str:
        branch = outputs - net.values[x].shape[1] if stride == 2 else outputs
        y = net.conv_bn_relu(x, branch, 1, group=groups)
        _, _, height, width = net.values[y].shape
        y = net.op("Reshape", y, net.ints(1, groups, branch // groups, height, width))
        y = net.op("Transpose", y, perm=[0, 2, 1, 3, 4])
        y = net.op("Reshape", y, net.ints(1, branch, height, width))
        y = net.batchnorm(net.conv(y, branch, 3, stride, 1, group=branch, bias=False))
        y = net.batchnorm(net.conv(y, branch, 1, group=groups, bias=False), scale=0.7)
        if stride == 2:
            return net.op("Relu", net.op("Concat", y, net.averagepool(x, 3, 2, 1), axis=1))
        return net.op("Relu", net.op("Sum", x, y))

    x = net.maxpool(net.conv_bn_relu(net.image("image", side), 24, 3, 2, 1), 3, 2, 1)
    for stage, count in enumerate((4, 8, 4)):
        for block in range(count):
            x = unit(x, 136 << stage, 1 if block else 2)
    return finish(net, net.classifier(net.averagepool(x, net.values[x].shape[2], 1), softmax=True))


def alexnet(dense: int = 4096) -> Built:
    net = Net("alexnet", opset=9, seed=12)

    def lrn_pool(x: str) -> str:
        return net.maxpool(net.op("LRN", x, size=5, alpha=1e-4, beta=0.75, bias=1.0), 3, 2)

    x = lrn_pool(net.conv_relu(net.image("image", 224), 96, 11, 4))
    x = lrn_pool(net.conv_relu(x, 256, 5, 1, 2, group=2))
    x = net.conv_relu(x, 384, 3, 1, 1)
    x = net.conv_relu(x, 384, 3, 1, 1, group=2)
    x = net.maxpool(net.conv_relu(x, 256, 3, 1, 1, group=2), 3, 2, [0, 0, 1, 1])
    x = net.op("Flatten", x, axis=1)
    for _ in range(2):
        x = net.op("Dropout", net.op("Relu", net.gemm(x, dense)), ratio=0.5)
    return finish(net, net.op("Softmax", net.gemm(x, 1000, target=2.0)))


def zfnet512(width: int = 512, dense: int = 4096) -> Built:
    net = Net("zfnet512", opset=9, seed=512)

    def lrn_pool(x: str) -> str:
        return net.maxpool(net.op("LRN", x, size=5, alpha=5e-4, beta=0.75, bias=2.0), 3, 2)

    x = lrn_pool(net.conv_relu(net.image("image", 224), 96, 7, 2))
    x = lrn_pool(net.conv_relu(x, 256, 5, 2))
    for _ in range(3):
        x = net.conv_relu(x, width, 3, 1, 1)
    x = net.op("Flatten", net.maxpool(x, 2, 2), axis=1)
    for size in (dense, dense // 4):
        x = net.op("Relu", net.gemm(x, size))
    return finish(net, net.op("Softmax", net.gemm(x, 1000, target=2.0)))


def mobilenet_v2(side: int = 224) -> Built:
    net = Net("mobilenet_v2", seed=22)

    def clipped(x: str, outputs: int, kernel: int, stride: int = 1, pad: int = 0, group: int = 1) -> str:
        y = net.batchnorm(net.conv(x, outputs, kernel, stride, pad, group, bias=False), scale=1.5)
        return net.op("Clip", y, net.const(0.0), net.const(6.0))

    x = clipped(net.image("image", side), 32, 3, 2, 1)
    for expand, outputs, count, first_stride in ((1, 16, 1, 1), (6, 24, 2, 2), (6, 32, 3, 2), (6, 64, 4, 2),
                                                 (6, 96, 3, 1), (6, 160, 3, 2), (6, 320, 1, 1)):
        for block in range(count):
            stride = 1 if block else first_stride
            channels = net.values[x].shape[1]
            y = clipped(x, channels * expand, 1) if expand > 1 else x
            y = clipped(y, channels * expand, 3, stride, 1, group=channels * expand)
            y = net.batchnorm(net.conv(y, outputs, 1, bias=False), scale=0.7)
            x = net.op("Add", x, y) if stride == 1 and channels == outputs else y
    x = clipped(x, 1280, 1)
    return finish(net, net.classifier(net.op("GlobalAveragePool", x)))


def efficientnet_b0(side: int = 224) -> Built:
    net = Net("efficientnet_b0", seed=23)

    def swish(x: str) -> str:
        return net.op("Mul", x, net.op("Sigmoid", x))

    def conv_bn_swish(x: str, outputs: int, kernel: int, stride: int = 1, group: int = 1) -> str:
        y = net.conv(x, outputs, kernel, stride, kernel // 2, group, bias=False)
        return swish(net.batchnorm(y, scale=1.5, epsilon=1e-3))

    def squeeze_excite(x: str, squeezed: int) -> str:
        y = net.op("GlobalAveragePool", x)
        y = swish(net.conv(y, squeezed, 1))
        return net.op("Mul", net.op("Sigmoid", net.conv(y, net.values[x].shape[1], 1)), x)

    x = conv_bn_swish(net.image("image", side), 32, 3, 2)
    for expand, kernel, first_stride, outputs, count in (
            (1, 3, 1, 16, 1), (6, 3, 2, 24, 2), (6, 5, 2, 40, 2), (6, 3, 2, 80, 3), (6, 5, 1, 112, 3),
            (6, 5, 2, 192, 4), (6, 3, 1, 320, 1)):
        for block in range(count):
            stride = 1 if block else first_stride
            channels = net.values[x].shape[1]
            y = conv_bn_swish(x, channels * expand, 1) if expand > 1 else x
            y = conv_bn_swish(y, channels * expand, kernel, stride, group=channels * expand)
            y = squeeze_excite(y, max(1, channels // 4))
            y = net.batchnorm(net.conv(y, outputs, 1, bias=False), scale=0.7, epsilon=1e-3)
            x = net.op("Add", y, x) if stride == 1 and channels == outputs else y
    x = conv_bn_swish(x, 1280, 1)
    return finish(net, net.classifier(net.op("GlobalAveragePool", x)))
