"""Quantised neighbourhoods: pairs of QuantizeLinear and DequantizeLinear around operators, and operators of bytes themselves.

Every float value that steps know is one that came out of a DequantizeLinear, or one that did not on purpose.
"""

from __future__ import annotations

import dataclasses

import numpy as np
from onnx import helper

from . import control
from .convolutions import window
from .maker import FLOAT, Graph, Maker, is_free

CHANNELS = (1, 3, 4, 8, 16, 17, 32)


@dataclasses.dataclass
class Scale:
    """The inputs behind a quantised value: a name for scale and zero point each."""

    scale: str
    zero: str | None
    kind: np.dtype

    def inputs(self) -> list[str]:
        return [self.scale, *([self.zero] if self.zero else [])]


class Bytes(Maker):
    """`small` knows values of bytes: their shapes and scales."""

    def __init__(self, seed: int):
        super().__init__(seed, FLOAT, 21)
        self.small: dict[str, tuple[tuple[int, ...], Scale]] = {}
        self.signed = self.random.choice((True, False, None))
        self.one_scale = self.new_scale() if self.chance(0.3) else None
        self.steps = True
        self.exact = False

    def new_scale(self) -> Scale:
        kind = np.dtype(np.int8 if (self.chance(0.5) if self.signed is None else self.signed) else np.uint8)
        middle = {"i": (0, 0, 0, -7, 11), "u": (128, 128, 113, 0, 140)}[kind.kind]
        zero = self.random.choice(middle)
        scale = self.random.choice((0.02, 0.025, 0.03, 2**-5)) * (0.7 if zero == 0 and kind == np.uint8 else 1)
        left_out = zero == 0 and kind == np.uint8 and self.chance(0.3)
        return Scale(self.number(scale), None if left_out else self.weight(np.asarray(zero, kind)), kind)

    def scale_of_steps(self) -> Scale:
        return self.one_scale if self.one_scale and self.chance(0.7) else self.new_scale()

    def quantised(self, x: str, scale: Scale | None = None) -> str:
        scale = scale or self.scale_of_steps()
        name = self.add("QuantizeLinear", [x, *scale.inputs()], (), scale.kind)
        self.small[name] = (self.shapes[x], scale)
        return name

    def opened(self, q: str) -> str:
        shape, scale = self.small[q]
        return self.add("DequantizeLinear", [q, *scale.inputs()], shape)

    def through(self, x: str, scale: Scale | None = None) -> str:
        """Bytes and back, mostly."""
        return x if self.chance(0.12) else self.opened(self.quantised(x, scale))

    def q_weight(self, shape: tuple[int, ...], axis: int, terms: int):
        """A constant matrix or filter as bytes: its name, and the inputs and attribute of DequantizeLinear."""
        floats = self.numbers.normal(0, terms**-0.5, shape)
        by_channel = self.chance(0.6)
        size = shape[axis] if by_channel else ()
        signed = self.chance(0.75)
        scales = np.asarray(np.broadcast_to(4 * terms**-0.5 / 127, size) * self.numbers.uniform(0.8, 1.2, size), np.float32)
        spread = scales.reshape([-1 if i == axis else 1 for i in range(len(shape))]) if by_channel else scales
        zero = np.asarray(0 if signed else 128)
        if self.chance(0.15):
            zero = zero + self.numbers.integers(-3, 4, size if self.chance(0.5) else ())
        zero = np.broadcast_to(zero, size)
        spread_zero = zero.reshape(np.shape(spread))
        kind = np.int8 if signed else np.uint8
        info = np.iinfo(kind)
        values = np.clip(np.round(floats / spread) + spread_zero, info.min, info.max).astype(kind)
        inputs = [self.weight(values), self.weight(scales)]
        if not signed or np.any(zero) or self.chance(0.5):
            inputs.append(self.weight(zero.astype(kind)))
        return inputs, {"axis": axis} if by_channel else {}, scales

    def weight_floats(self, shape: tuple[int, ...], axis: int, terms: int) -> tuple[str, np.ndarray]:
        inputs, attributes, scales = self.q_weight(shape, axis, terms)
        name = self.name()
        self.nodes.append(helper.make_node("DequantizeLinear", inputs, [name], **attributes))  # no value for other steps
        return name, scales

    def bias(self, size: int, scales: np.ndarray, x_scale: float = 0.02) -> str:
        """Floats, or whole numbers of 32 bits behind DequantizeLinear."""
        if self.chance(0.4):
            return self.weight(self.floats((size,), 0.3))
        name = self.name()
        steps = np.asarray(np.broadcast_to(scales * x_scale, (size,)), np.float32)
        parts = [self.weight(self.numbers.integers(-1000, 1000, size).astype(np.int32)), self.weight(steps)]
        self.nodes.append(helper.make_node("DequantizeLinear", parts, [name], axis=0))
        return name

    def bytes_of(self, least: int = 1, most: int = 5) -> str:
        """A value of bytes, one that is there or a float's."""
        fitting = [name for name, (shape, _) in self.small.items() if name in self.others and least <= len(shape) <= most]
        if fitting and self.chance(0.7):
            return self.random.choice(fitting[-4:])
        return self.quantised(self.pick(least, most) or self.pick())


def activation(maker: Bytes, x: str) -> str:
    kind = maker.random.choice("Relu Relu Relu Sigmoid Tanh HardSwish LeakyRelu Gelu Clip Clip SiLU Softplus Abs Neg".split())
    shape = maker.shapes[x]
    if kind == "Clip":
        return maker.add("Clip", [x, maker.number(0), maker.number(maker.random.choice((1.5, 6)))], shape)
    if kind == "SiLU":
        gate = maker.add("Sigmoid", [x], shape)
        return maker.add("Mul", [x, maker.through(gate) if maker.chance(0.6) else gate], shape)
    return maker.add(kind, [x], shape)


def conv(maker: Bytes) -> None:
    if not (x := maker.pick(3, 5, fixed=(1,))):
        return
    n, c, *sizes = maker.shapes[x]
    group = maker.random.choice([1, 1, c, *([2] if c % 2 == 0 else [])])
    channels = group * maker.random.choice((1, 1, 2)) if group > 1 else maker.random.choice(CHANNELS)
    found = window(maker, tuple(sizes), (1, 1, 3, 3, 5))
    if not found:
        return
    attributes, kernel, out = found
    weight, scales = maker.weight_floats((channels, c // group, *kernel), 0, c // group * int(np.prod(kernel)))
    inputs = [x, weight] + ([maker.bias(channels, scales)] if maker.chance(0.7) else [])
    y = maker.add("Conv", inputs, (n, channels, *out), group=group, **attributes)
    if maker.chance(0.5):
        y = activation(maker, y)
    y = maker.through(y)
    if maker.chance(0.4):  # a residual sum
        y = maker.add("Add", maker.random.sample([y, maker.same_shape(y)], 2), maker.shapes[y])
        if maker.chance(0.6):
            y = activation(maker, y)
        maker.through(y)


def product(maker: Bytes) -> None:
    if not (x := maker.pick(2, fixed=(-1,))):
        return
    *outer, terms = maker.shapes[x]
    columns = maker.random.choice((1, 4, 10, 16, 33, 64))
    gemm = len(outer) == 1 and maker.chance(0.5)
    if gemm:
        turned = maker.random.randint(0, 1)
        shape = (columns, terms) if turned else (terms, columns)
        weight, scales = maker.weight_floats(shape, 0 if turned else 1, terms)
        inputs = [x, weight] + ([maker.bias(columns, scales)] if maker.chance(0.7) else [])
        y = maker.add("Gemm", inputs, (*outer, columns), transB=turned)
    else:
        weight, scales = maker.weight_floats((terms, columns), 1, terms)
        y = maker.add("MatMul", maker.random.choice(([x, weight],)), (*outer, columns))
        if maker.chance(0.5):
            y = maker.add("Add", maker.random.sample([y, maker.bias(columns, scales)], 2), (*outer, columns))
    if maker.chance(0.4):
        y = activation(maker, y)
    maker.through(y)


def two_values(maker: Bytes) -> None:
    """A product of two values, neither constant."""
    if x := maker.pick(2, 4):
        *outer, rows, columns = maker.shapes[x]
        order = [*range(len(outer)), len(outer) + 1, len(outer)]
        turned = maker.add("Transpose", [x], (*outer, columns, rows), perm=order)
        if maker.chance(0.5):
            turned = maker.through(turned)
        y = maker.add("MatMul", [x, turned], (*outer, rows, rows))
        y = maker.add("Mul", [y, maker.number(0.2)], maker.shapes[y])
        maker.through(y)


def arithmetic(maker: Bytes) -> None:
    x = maker.pick()
    other = maker.same_shape(x) if maker.chance(0.6) else maker.pick()
    if maker.chance(0.25):
        shape = maker.random.choice(((), (1,), maker.shapes[x][-1:] if not is_free((maker.shapes[x] or (1,))[-1]) else ()))
        other = maker.weight(maker.floats(shape))
        maker.shapes[other] = shape
    try:
        shape = np.broadcast_shapes(maker.shapes[x], maker.shapes[other])
    except ValueError:
        return
    finally:
        if other.startswith("w"):
            del maker.shapes[other]
    y = maker.add(maker.random.choice(("Add", "Add", "Mul", "Mul", "Sub", "Max")), maker.random.sample([x, other], 2), shape)
    if maker.chance(0.4):
        y = activation(maker, y)
    maker.through(y)


def unary(maker: Bytes) -> None:
    maker.through(activation(maker, maker.pick()))


def pool(maker: Bytes) -> None:
    if x := maker.pick(4, 4, fixed=(1,)):
        n, c, h, w = maker.shapes[x]
        how = maker.random.randrange(3)
        if how == 0:
            y = maker.add("GlobalAveragePool", [x], (n, c, 1, 1))
        else:
            kernel = maker.random.choice((2, 3))
            out = [(size + 2 * (kernel // 2) - kernel) // 2 + 1 for size in (h, w)]
            kind = "MaxPool" if how == 1 else "AveragePool"
            y = maker.add(kind, [x], (n, c, *out), kernel_shape=[kernel] * 2, strides=[2, 2], pads=[kernel // 2] * 4)
        maker.through(y, scale_behind(maker, x))


def scale_behind(maker: Bytes, x: str) -> Scale | None:
    """Often that of the value itself, so that only bytes move."""
    node = next((node for node in maker.nodes if node.output[0] == x), None)
    if node is None or node.op_type != "DequantizeLinear" or node.input[0] not in maker.small or maker.chance(0.3):
        return None
    return maker.small[node.input[0]][1]


def movement(maker: Bytes) -> None:
    x = maker.pick(2)
    shape = maker.shapes[x]
    first, *rest = shape
    how = maker.random.randrange(7)
    if how == 0:
        order = list(range(len(shape)))
        maker.random.shuffle(order)
        y = maker.add("Transpose", [x], tuple(shape[axis] for axis in order), perm=order)
    elif how == 1 and not any(map(is_free, rest)):
        y = maker.reshape(x, (first, int(np.prod(rest))))
    elif how == 2:
        y = maker.add("Unsqueeze", [x, maker.ints(1)], (first, 1, *rest)) if len(shape) < 5 else x
    elif how == 3 and not is_free(shape[-1]):
        end = maker.random.randint(1, shape[-1])
        y = maker.add("Slice", [x, maker.ints(0), maker.ints(end), maker.ints(-1)], (*shape[:-1], end))
    elif how == 4 and not is_free(shape[1]):
        places = maker.numbers.integers(0, shape[1], maker.random.choice((1, 3)))
        y = maker.add("Gather", [x, maker.weight(np.asarray(places, np.int64))], (first, places.size, *shape[2:]), axis=1)
    elif how == 5 and len(shape) == 4:
        scales = maker.weight(np.array([1, 1, 2, 2], np.float32))
        y = maker.add("Resize", [x, "", scales], (first, rest[0], rest[1] * 2, rest[2] * 2), mode="nearest",
                      coordinate_transformation_mode="asymmetric", nearest_mode="floor")
    elif how == 6:
        pads = [0] * (2 * len(shape))
        pads[-1] = maker.random.choice((1, 2))
        y = maker.add("Pad", [x, maker.ints(*pads)], (*shape[:-1], shape[-1] + pads[-1]))
    else:
        return
    maker.through(y, scale_behind(maker, x))


def join(maker: Bytes) -> None:
    x = maker.pick(2)
    shape = list(maker.shapes[x])
    axis = maker.random.randrange(1, len(shape))
    if shape[axis] > 100:
        return
    shape[axis] *= 2
    maker.through(maker.add("Concat", [x, maker.same_shape(x)], tuple(shape), axis=axis), scale_behind(maker, x))


def split(maker: Bytes) -> None:
    x = maker.pick(2, fixed=(1,))
    if not x or maker.shapes[x][1] < 2:
        return
    first, size, *rest = maker.shapes[x]
    sizes = (size // 2, size - size // 2)
    names = [maker.name(), maker.name()]
    maker.nodes.append(helper.make_node("Split", [x, maker.ints(*sizes)], names, axis=1))
    for name, part in zip(names, sizes):
        maker.note(name, [x], (first, part, *rest))
        if maker.chance(0.8):
            maker.through(name, scale_behind(maker, x))


def softmax(maker: Bytes) -> None:
    x = maker.pick(1)
    y = maker.add("Softmax", [x], maker.shapes[x], axis=-1)
    maker.through(y, Scale(maker.number(1 / 256), maker.weight(np.uint8(0)), np.dtype(np.uint8)))


def normalise(maker: Bytes) -> None:
    if x := maker.pick(1, fixed=(-1,)):
        size = maker.shapes[x][-1:]
        y = maker.add("LayerNormalization", [x, maker.weight(maker.floats(size)), maker.weight(maker.floats(size))], maker.shapes[x])
        maker.through(y)


def q_conv(maker: Bytes) -> None:
    q = maker.bytes_of(4, 4)
    shape, scale = maker.small[q]
    if len(shape) != 4 or is_free(shape[1]) or scale.zero is None:
        return
    n, c, *sizes = shape
    group = maker.random.choice((1, 1, c))
    channels = c if group > 1 else maker.random.choice(CHANNELS)
    found = window(maker, tuple(sizes), (1, 3, 3))
    if not found:
        return
    attributes, kernel, out = found
    weights, _, scales = maker.q_weight((channels, c // group, *kernel), 0, c // group * int(np.prod(kernel)))
    if len(weights) == 2:
        weights.append(maker.weight(np.zeros(scales.shape, maker.weights[-2].raw_data and np.int8)))
    y = maker.new_scale()
    if y.zero is None or y.kind != scale.kind:
        return
    inputs = [q, *scale.inputs(), *weights, *y.inputs()]
    if maker.chance(0.6):
        inputs.append(maker.weight(maker.numbers.integers(-2000, 2000, channels).astype(np.int32)))
    name = maker.add("QLinearConv", inputs, (), y.kind, group=group, **attributes)
    maker.small[name] = ((n, channels, *out), y)
    maker.opened(name)


def q_product(maker: Bytes) -> None:
    q = maker.bytes_of(2)
    shape, scale = maker.small[q]
    if len(shape) < 2 or is_free(shape[-1]) or scale.zero is None:
        return
    columns = maker.random.choice((4, 16, 33))
    weights, _, scales = maker.q_weight((shape[-1], columns), 1, shape[-1])
    if len(weights) == 2:
        weights.append(maker.weight(np.zeros(scales.shape, np.int8)))
    how = maker.random.randrange(3)
    out = (*shape[:-1], columns)
    if how == 0:
        y = maker.new_scale()
        if y.zero is None or y.kind != scale.kind:
            return
        name = maker.add("QLinearMatMul", [q, *scale.inputs(), *weights, *y.inputs()], (), y.kind)
        maker.small[name] = (out, y)
        maker.opened(name)
        return
    if how == 1:
        sums = maker.add("MatMulInteger", [q, weights[0], scale.zero, weights[2]], (), np.int32)
        factor = [scale.scale, weights[1]]
    else:
        x = maker.opened(q)
        names = [maker.name() for _ in range(3)]
        maker.nodes.append(helper.make_node("DynamicQuantizeLinear", [x], names))
        maker.read.add(x)
        sums = maker.add("MatMulInteger", [names[0], weights[0], names[2], weights[2]], (), np.int32)
        factor = [names[1], weights[1]]
    floats = maker.add("Cast", [sums], out, to=1)
    both = maker.name()
    maker.nodes.append(helper.make_node("Mul", factor, [both]))
    y = maker.add("Mul", maker.random.sample([floats, both], 2), out)
    if maker.chance(0.5):
        y = maker.add("Add", [y, maker.weight(maker.floats((columns,)))], out)
    if maker.chance(0.4):
        y = activation(maker, y)
    if maker.chance(0.5):
        maker.through(y)


def bytes_moved(maker: Bytes) -> None:
    """Operators on the bytes themselves."""
    q = maker.bytes_of(2)
    shape, scale = maker.small[q]
    how = maker.random.randrange(3)
    if how == 0:
        order = list(range(len(shape)))
        maker.random.shuffle(order)
        name, out = maker.add("Transpose", [q], (), scale.kind, perm=order), tuple(shape[axis] for axis in order)
    elif how == 1 and len(shape) == 4:
        name = maker.add("MaxPool", [q], (), scale.kind, kernel_shape=[3, 3], pads=[1] * 4)
        out = shape
    else:
        name, out = maker.add("Concat", [q, q], (), scale.kind, axis=len(shape) - 1), (*shape[:-1], 2 * shape[-1])
    maker.small[name] = (out, scale)
    maker.opened(name)


def keep(maker: Bytes, x: str) -> str:
    return maker.through(activation(maker, x) if maker.chance(0.6) else maker.add("Add", [x, maker.same_shape(x)], maker.shapes[x]))


def around(maker: Bytes) -> None:
    control.around(maker, maker.pick(), keep)


STEPS = [conv] * 6 + [product] * 4 + [arithmetic] * 4 + [unary] * 3 + [pool, pool, movement, movement, movement, join, join, split, softmax,
                                                                     normalise, q_conv, q_product, q_product, bytes_moved, two_values,
                                                                     around]


def make(seed: int) -> Graph:
    maker = Bytes(seed)
    shape = maker.random.choice(((16, 14, 14), (3, 9, 8), (8, 7, 7), (17, 5, 6), (5, 24), (12, 16), (33,), (4, 1, 20)))
    x = maker.input((maker.batch, *shape))
    maker.through(x)
    wanted = maker.random.randint(3, 30)
    for _ in range(60):
        if len(maker.nodes) >= wanted:
            break
        maker.random.choice(STEPS)(maker)
    if not maker.nodes:
        maker.opened(maker.quantised(x))
    maker.tolerance = (0.1, 0.01)
    maker.absolute, maker.off = 0.05, 2
    return maker.finish()
