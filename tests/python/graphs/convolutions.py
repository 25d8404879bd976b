"""Convolutions of all kinds and what stands around them in networks: normalisation, bias, residual sums, gates, pools, joins."""

from __future__ import annotations

import numpy as np
from onnx import helper

from . import control
from .maker import BFLOAT, DOUBLE, FLOAT, HALF, Graph, Maker

CHANNELS = (1, 3, 4, 5, 8, 16, 17, 24, 32, 48)
ACTIVATIONS = "Relu Sigmoid Tanh HardSwish HardSigmoid LeakyRelu Elu Gelu Mish Softplus Clip PRelu SiLU Identity".split()


def image(maker: Maker, spatial: int | None = None) -> str | None:
    """A value of channels and 1 to 3 axes more."""
    least, most = (spatial + 2, spatial + 2) if spatial else (3, 5)
    return maker.pick(least, most, fixed=(1,))


def window(maker: Maker, sizes: tuple[int, ...], kernels: tuple[int, ...]):
    """Attributes of a window, and the sizes it gives; None where it does not fit."""
    kernel = [maker.random.choice(kernels) for _ in sizes]
    strides = [maker.random.choice((1, 1, 1, 2, 3))] * len(sizes) if maker.chance(0.8) else [maker.random.choice((1, 2)) for _ in sizes]
    dilations = [maker.random.choice((1, 1, 1, 1, 2, 3))] * len(sizes)
    reach = [(k - 1) * d + 1 for k, d in zip(kernel, dilations)]
    attributes = {"strides": strides, "dilations": dilations, "kernel_shape": kernel}
    how = maker.random.random()
    if how < 0.6:
        pads = [r // 2 for r in reach] * 2
    elif how < 0.75:
        pads = [maker.random.randint(0, k // 2) for k in kernel * 2]
    elif how < 0.85:
        pads = [0] * (2 * len(sizes))
    elif any(r < s for r, s in zip(reach, strides)):
        return None  # ONNX Runtime crops the begin of some there, which neither the standard's evaluator nor we do
    else:
        attributes["auto_pad"] = maker.random.choice(("SAME_UPPER", "SAME_LOWER"))
        return attributes, kernel, [-(-size // s) for size, s in zip(sizes, strides)]
    attributes["pads"] = pads
    rank = len(sizes)
    out = [(size + pads[i] + pads[i + rank] - reach[i]) // strides[i] + 1 for i, size in enumerate(sizes)]
    fits = all(size + pads[i] + pads[i + rank] >= reach[i] for i, size in enumerate(sizes))
    return (attributes, kernel, out) if fits else None


def conv(maker: Maker, x: str | None = None, channels: int | None = None, kept: bool = False) -> str | None:
    if not (x := x or image(maker)):
        return None
    n, c, *sizes = maker.shapes[x]
    kind = maker.random.choice(("pointwise", "pointwise", "dense", "dense", "depthwise", "grouped"))
    groups = {"depthwise": c, "grouped": maker.random.choice([g for g in (1, 2, 3, 4, 8) if c % g == 0])}.get(kind, 1)
    if channels is None:
        each = maker.random.choice((1, 1, 1, 2)) if kind == "depthwise" else maker.random.choice((1, 2, 4, 8))
        channels = groups * each if groups > 1 or kind == "depthwise" else maker.random.choice(CHANNELS)
    if channels % groups:
        groups = 1
    if kind == "pointwise" and (kept or maker.chance(0.8)):
        attributes, kernel, out = {}, [1] * len(sizes), sizes
    elif kept:
        kernel = [maker.random.choice((3, 5))] * len(sizes)
        attributes, out = {"pads": [kernel[0] // 2] * (2 * len(sizes))}, sizes
    else:
        found = window(maker, tuple(sizes), (1, 2, 3, 3, 3, 5, 7))
        if not found:
            return None
        attributes, kernel, out = found
    terms = c // groups * int(np.prod(kernel))
    weights = [maker.weight(maker.floats((channels, c // groups, *kernel), terms**-0.5))]
    if maker.chance(0.5):
        weights.append(maker.weight(maker.floats((channels,), 0.3)))
    maker.exact = False
    return maker.add("Conv", [x, *weights], (n, channels, *out), group=groups, **attributes)


def turned_conv(maker: Maker) -> None:
    if x := image(maker):
        n, c, *sizes = maker.shapes[x]
        group = maker.random.choice([1, 1, c])
        each = maker.random.choice((1, 2, 4) if group == 1 else (1, 1, 2))
        kernel, stride = maker.random.choice((1, 2, 3, 4)), maker.random.choice((1, 2, 2))
        pad = maker.random.randint(0, kernel // 2)
        extra = maker.random.randrange(stride)
        out = [(size - 1) * stride + kernel - 2 * pad + extra for size in sizes]
        if min(out) < 1 or np.prod(out) > 5000:
            return
        weights = [maker.weight(maker.floats((c, each, *[kernel] * len(sizes)), (c / group) ** -0.5))]
        if maker.chance(0.5):
            weights.append(maker.weight(maker.floats((each * group,), 0.3)))
        rank = len(sizes)
        maker.add("ConvTranspose", [x, *weights], (n, each * group, *out), group=group, strides=[stride] * rank, pads=[pad] * 2 * rank,
                  output_padding=[extra] * rank)
        maker.exact = False


def by_channel(maker: Maker, x: str, positive: bool = False) -> str:
    shape = (maker.shapes[x][1], *[1] * (len(maker.shapes[x]) - 2))
    if maker.chance(0.3):
        shape = (1, *shape)
    if maker.chance(0.15):
        shape = ()
    values = maker.floats(shape, 0.5)
    return maker.weight(np.abs(values) + values.dtype.type(0.5) if positive else values)


def batch_normalisation(maker: Maker, x: str) -> str:
    size = maker.shapes[x][1:2]
    parts = [maker.floats(size) for _ in range(3)]
    parts.append(np.asarray(np.abs(maker.floats(size).astype(np.float64)) + 0.5, maker.dtype))
    maker.exact = False
    return maker.add("BatchNormalization", [x, *map(maker.weight, parts)], maker.shapes[x])


def activation(maker: Maker, x: str) -> str:
    kind, shape = maker.random.choice(ACTIVATIONS), maker.shapes[x]
    if kind == "Clip":
        return maker.add("Clip", [x, maker.number(0), maker.number(6)], shape)
    if kind == "PRelu":
        return maker.add("PRelu", [x, by_channel(maker, x)], shape)
    if kind == "SiLU":
        return maker.add("Mul", [x, maker.add("Sigmoid", [x], shape)], shape)
    return maker.add(kind, [x], shape)


def factor(maker: Maker, x: str) -> str:
    kind = maker.random.choice(("Add", "Mul", "Sub", "Div"))
    return maker.add(kind, [x, by_channel(maker, x, kind == "Div")], maker.shapes[x])


def residual(maker: Maker, x: str) -> str:
    both = [x, maker.same_shape(x)]
    maker.random.shuffle(both)
    kinds = ("Add", "Add", "Add", "Mul", "Max", "Sub")[:5 if maker.is_half else 6]
    return maker.add(maker.random.choice(kinds), both, maker.shapes[x])


def keep(maker: Maker, x: str) -> str:
    """A step that keeps the shape."""
    if len(maker.shapes[x]) in (3, 4, 5) and maker.chance(0.4):
        return conv(maker, x, maker.shapes[x][1], kept=True)
    steps = [residual, activation] if len(maker.shapes[x]) < 3 else [residual, activation, factor, batch_normalisation]
    return maker.random.choice(steps)(maker, x)


def block(maker: Maker) -> None:
    """A convolution and some of what follows it."""
    if not (y := conv(maker)):
        return
    for step, share in ((batch_normalisation, 0.3), (factor, 0.3), (activation, 0.5), (residual, 0.4), (activation, 0.3), (factor, 0.1)):
        if maker.chance(share):
            y = step(maker, y)


def bottleneck(maker: Maker) -> None:
    """Down, through and up again, and the sum with what went in."""
    if x := image(maker):
        c = maker.shapes[x][1]
        y = activation(maker, conv(maker, x, maker.random.choice(CHANNELS), kept=True))
        y = activation(maker, conv(maker, y, maker.random.choice((None, maker.shapes[y][1])), kept=True))
        y = conv(maker, y, c, kept=True)
        y = maker.add("Add", [y, x], maker.shapes[x])
        if maker.chance(0.7):
            activation(maker, y)


def gate(maker: Maker) -> None:
    """Squeeze and excitation."""
    if x := image(maker):
        n, c, *sizes = maker.shapes[x]
        ones = (n, c, *[1] * len(sizes))
        if maker.chance(0.5):
            y = maker.add("GlobalAveragePool", [x], ones)
        else:
            y = maker.add("ReduceMean", [x, maker.ints(*range(2, 2 + len(sizes)))], ones, keepdims=1)
        y = activation(maker, conv(maker, y, maker.random.choice((2, 4, 8)), kept=True))
        y = conv(maker, y, c, kept=True)
        y = maker.add(maker.random.choice(("Sigmoid", "HardSigmoid")), [y], ones)
        maker.add("Mul", maker.random.sample([x, y], 2), maker.shapes[x])
        maker.exact = False


def pool(maker: Maker) -> None:
    if x := image(maker):
        n, c, *sizes = maker.shapes[x]
        found = window(maker, tuple(sizes), (1, 2, 3, 3, 5))
        if not found:
            return
        attributes, kernel, out = found
        pads = attributes.get("pads", [0])
        if "auto_pad" in attributes:
            attributes["dilations"] = [1] * len(sizes)  # ONNX Runtime takes a dilated window for one that is not
        if max(pads) >= min(kernel) or (min(kernel) == 1 and max(pads) > 0):
            return
        if maker.chance(0.5):
            maker.add("MaxPool", [x], (n, c, *out), **attributes)
        else:
            maker.add("AveragePool", [x], (n, c, *out), count_include_pad=maker.random.randint(0, 1), **attributes)
            maker.exact = False


def whole_pool(maker: Maker) -> None:
    if x := image(maker):
        n, c, *sizes = maker.shapes[x]
        y = maker.add(maker.random.choice(("GlobalAveragePool", "GlobalMaxPool")), [x], (n, c, *[1] * len(sizes)))
        maker.exact = False
        if maker.chance(0.5):
            y = maker.add("Flatten", [y], (n, c), axis=1)
            columns = maker.random.choice((1, 10, 16, 33))
            weight = maker.weight(maker.floats((columns, c), c**-0.5))
            maker.add("Gemm", [y, weight, maker.weight(maker.floats((columns,)))], (n, columns), transB=1)


def join(maker: Maker) -> None:
    if x := image(maker):
        n, c, *sizes = maker.shapes[x]
        if c >= 100:
            return
        others = [name for name, shape in maker.shapes.items()
                  if len(shape) == len(sizes) + 2 and (shape[0], *shape[2:]) == (n, *sizes) and shape[1] < 100]
        parts = [x, *(maker.random.choice(others) for _ in range(maker.random.randint(1, 2)))]
        maker.random.shuffle(parts)
        maker.add("Concat", parts, (n, sum(maker.shapes[part][1] for part in parts), *sizes), axis=1)


def split(maker: Maker) -> None:
    """Into halves by Split or by Slices, of which one may go on alone."""
    if x := image(maker):
        n, c, *sizes = maker.shapes[x]
        if c < 2:
            return
        first = c // 2 if maker.chance(0.7) else maker.random.randint(1, c - 1)
        if maker.chance(0.5):
            names = [maker.name(), maker.name()]
            maker.nodes.append(helper.make_node("Split", [x, maker.ints(first, c - first)], names, axis=1))
            for name, size in zip(names, (first, c - first)):
                maker.note(name, [x], (n, size, *sizes))
        else:
            for begin, end in ((0, first), (first, c)):
                maker.add("Slice", [x, *(maker.ints(number) for number in (begin, end, 1))], (n, end - begin, *sizes))


def shuffle(maker: Maker) -> None:
    """ShuffleNet's exchange of channels between groups."""
    if x := image(maker):
        n, c, *sizes = maker.shapes[x]
        groups = maker.random.choice((2, 3, 4))
        if c % groups:
            return
        y = maker.reshape(x, (n, groups, c // groups, *sizes))
        order = [0, 2, 1, *range(3, 3 + len(sizes))]
        y = maker.add("Transpose", [y], (n, c // groups, groups, *sizes), perm=order)
        maker.reshape(y, (n, c, *sizes))


def resize(maker: Maker) -> None:
    """By whole factors, or to any sizes, the axes in any order."""
    if x := image(maker):
        n, c, *sizes = maker.shapes[x]
        rank = len(sizes)
        if np.prod(sizes) > 400:
            return
        mode = maker.random.choice(("nearest", "linear", "linear", "cubic")[:4 if rank == 2 else 3]) if rank < 3 else "nearest"
        how = maker.random.choice(("asymmetric", "half_pixel", "align_corners"))
        more = {"nearest_mode": "floor"} if mode == "nearest" else {}
        more |= {"mode": mode, "coordinate_transformation_mode": how}
        if maker.chance(0.6):
            factor_of = maker.random.choice((2, 2, 3))
            scales = maker.weight(np.array([1, 1, *[factor_of] * rank], np.float32))
            y = maker.add("Resize", [x, "", scales], (n, c, *(size * factor_of for size in sizes)), **more)
        else:
            out = [max(1, int(size * maker.random.choice((0.5, 0.7, 1, 1.4, 2)))) for size in sizes]
            axes = maker.random.sample(range(rank), rank)
            asked = maker.ints(*(out[axis] for axis in axes))
            y = maker.add("Resize", [x, "", "", asked], (n, c, *out), axes=[axis + 2 for axis in axes], **more)
            how = "fractions"
        maker.exact = False
        if maker.chance(0.4) and (y := conv(maker, y)) and maker.chance(0.5):
            activation(maker, y)
        maker.steps |= mode == "nearest" and how != "asymmetric"


def pad(maker: Maker) -> None:
    """Mostly the border that a convolution or pool behind it takes in."""
    if x := image(maker):
        n, c, *sizes = maker.shapes[x]
        rank = len(sizes)
        pads = [maker.random.choice((0, 1, 1, 2)) for _ in range(2 * rank)]
        mode = maker.random.choice(("constant", "constant", "constant", "edge", "reflect"))
        if mode == "reflect" and min(sizes) < 3:
            return
        inputs = [x, maker.ints(0, 0, *pads[:rank], 0, 0, *pads[rank:])]
        if mode == "constant" and maker.chance(0.4):
            inputs.append(maker.number(maker.random.choice((0, -1, 0.5))))
        maker.add("Pad", inputs, (n, c, *(size + pads[i] + pads[i + rank] for i, size in enumerate(sizes))), mode=mode)


def last_and_back(maker: Maker) -> None:
    """Channels last, something there, and back, or not."""
    if x := image(maker):
        n, c, *sizes = maker.shapes[x]
        rank = len(sizes)
        y = maker.add("Transpose", [x], (n, *sizes, c), perm=[0, *range(2, rank + 2), 1])
        how = maker.random.randrange(4)
        maker.exact = False
        if how == 0:
            y = maker.add("Add", [y, maker.weight(maker.floats((c,)))], maker.shapes[y])
        elif how == 1:
            y = maker.add("LayerNormalization", [y, maker.weight(maker.floats((c,))), maker.weight(maker.floats((c,)))], maker.shapes[y])
        elif how == 2:
            columns = maker.random.choice((8, 16, c))
            y = maker.add("MatMul", [y, maker.weight(maker.floats((c, columns), c**-0.5))], (n, *sizes, columns))
        if maker.chance(0.7):
            maker.add("Transpose", [y], (n, maker.shapes[y][-1], *sizes), perm=[0, rank + 1, *range(1, rank + 1)])


def depth_to_space(maker: Maker) -> None:
    if x := image(maker, 2):
        n, c, h, w = maker.shapes[x]
        block = maker.random.choice((2, 2, 3))
        if maker.chance(0.5):
            deep = maker.random.choice((1, 3, 8, 16)) * block**2
            if c % block**2 or maker.chance(0.5):
                x, c = conv(maker, x, deep, kept=True), deep
            mode = maker.random.choice(("DCR", "CRD", "CRD"))
            maker.add("DepthToSpace", [x], (n, c // block**2, block * h, block * w), blocksize=block, mode=mode)
        elif h % block == 0 and w % block == 0:
            maker.add("SpaceToDepth", [x], (n, block**2 * c, h // block, w // block), blocksize=block)


def normalise(maker: Maker) -> None:
    if (x := image(maker)) and not maker.is_half:  # which would make much of a little where little varies
        c = maker.shapes[x][1]
        parts = [maker.weight(maker.floats((c,))) for _ in range(2)]
        if maker.chance(0.5):
            maker.add("InstanceNormalization", [x, *parts], maker.shapes[x])
        else:
            groups = maker.random.choice([g for g in (1, 2, 4, 8) if c % g == 0])
            maker.add("GroupNormalization", [x, *parts], maker.shapes[x], num_groups=groups)
        maker.exact = False


def focus(maker: Maker) -> None:
    """Every second pixel, slice by slice, joined along the channels."""
    if x := image(maker, 2):
        n, c, h, w = maker.shapes[x]
        if h % 2 or w % 2 or c > 64:
            return
        parts = []
        for row in (0, 1):
            y = maker.add("Slice", [x, *(maker.ints(number) for number in (row, 1000, 2, 2))], (n, c, h // 2, w))
            for column in (0, 1):
                parts.append(maker.add("Slice", [y, *(maker.ints(number) for number in (column, 1000, 3, 2))], (n, c, h // 2, w // 2)))
        maker.add("Concat", parts, (n, 4 * c, h // 2, w // 2), axis=1)


def alone(maker: Maker) -> None:
    x = maker.pick(3, 5)
    if x and maker.shapes[x][1] < 1000:
        maker.random.choice((activation, residual, factor, batch_normalisation))(maker, x)


def around(maker: Maker) -> None:
    if x := image(maker):
        control.around(maker, x, keep)


STEPS = [block] * 8 + [bottleneck, gate, gate, turned_conv, alone, alone, alone, pool, pool, whole_pool, join, join, split, shuffle, resize, resize,
                       pad, pad, last_and_back, depth_to_space, depth_to_space, normalise, focus, around]


def make(seed: int) -> Graph:
    maker = Maker(seed, FLOAT if seed % 5 else (HALF, BFLOAT, DOUBLE)[seed // 5 % 3], opset=22)
    rank = maker.random.choice((1, 2, 2, 2, 2, 3))
    sizes = {1: (1, 7, 16, 50), 2: (1, 2, 7, 8, 14, 16, 28), 3: (1, 3, 4, 8)}[rank]
    maker.input((maker.batch, maker.random.choice(CHANNELS), *(maker.random.choice(sizes) for _ in range(rank))))
    wanted = maker.random.randint(3, 22)
    for _ in range(40):
        if len(maker.nodes) >= wanted:
            break
        maker.random.choice(STEPS)(maker)
    if not maker.nodes:
        activation(maker, "x0")
    return maker.finish()
