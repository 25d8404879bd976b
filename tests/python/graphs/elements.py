"""Element-wise operators, broadcasts and movement, with sums among them or bytes between them.

Values of many shapes meet (whole, rows, columns, channels, single numbers), are read once or several times, by nodes or as
outputs, so that what fuses nodes meets the neighbourhoods that networks seldom have.
"""

from __future__ import annotations

import numpy as np
from onnx import helper

from . import control
from .maker import BATCH, BFLOAT, DOUBLE, FLOAT, HALF, Graph, Maker, is_free

SMOOTH = """Abs Neg Sigmoid Tanh Relu LeakyRelu Erf Softplus HardSwish HardSigmoid Elu Identity Gelu Mish Celu Sin Selu Softsign
            Cos Swish ThresholdedRelu""".split()
STEPS = ["Floor", "Round", "Sign", "Ceil"]  # what differs a little before them differs much behind
BINARY = "Add Sub Mul Max Min".split()
BOUNDED = {"Div": (1,), "Pow": (0, 1)}  # operands that a Sigmoid keeps away from what has no value
SINCE = {"Swish": 24}


def kinds(maker: Maker) -> list[str]:
    known = [kind for kind in SMOOTH if SINCE.get(kind, 0) <= maker.opset]
    return known + STEPS if maker.dtype in (FLOAT, DOUBLE) else [kind for kind in known if kind != "ThresholdedRelu"]


def usual(maker: Maker) -> list[tuple[int, ...]]:
    n, c, h, w = maker.whole
    return [maker.whole, maker.whole, (c, h, w), (c, 1, 1), (1, c, 1, 1), (w,), (1, w), (h, w), (h, 1), (1,), (), (n, 1, 1, 1),
            (n, c, 1, 1), (1, 1, 1, w)]


def apply(maker: Maker, x: str) -> str:
    kind = maker.random.choice(kinds(maker))
    maker.steps |= kind in STEPS
    return maker.add(kind, [x], maker.shapes[x])


def unary(maker: Maker) -> None:
    x = maker.pick()
    apply(maker, x)


def binary(maker: Maker) -> None:
    kind = maker.random.choice([*BINARY, *BOUNDED])
    if maker.chance(0.5):
        other = maker.pick()
        shape = maker.shapes[other]
    else:
        shape = maker.random.choice([shape for shape in usual(maker) if not any(map(is_free, shape))])
        other = maker.weight(maker.floats(shape))
    both = [(x := maker.pick(), maker.shapes[x]), (other, shape)]
    maker.random.shuffle(both)
    sides, shapes = [side for side, _ in both], [shape for _, shape in both]
    try:
        shape = np.broadcast_shapes(*shapes)
    except ValueError:
        return
    for side in BOUNDED.get(kind, ()):
        sides[side] = maker.add("Sigmoid", [sides[side]], shapes[side])
    maker.add(kind, sides, shape)


def where(maker: Maker) -> None:
    x, y = maker.pick(), maker.pick()
    try:
        shape = np.broadcast_shapes(maker.shapes[x], maker.shapes[y])
    except ValueError:
        return
    test = maker.add(maker.random.choice(["Greater", "LessOrEqual"]), [x, y], (), np.bool_)
    if maker.chance(0.3):
        test = maker.add("Not", [test], (), np.bool_)
    maker.steps = True
    maker.add("Where", [test, x, y], shape)


def clip(maker: Maker) -> None:
    x = maker.pick()
    low, high = (maker.number(bound) for bound in (-0.4, 0.9))
    maker.add("Clip", [x, low, high], maker.shapes[x])


def bytes_between(maker: Maker) -> None:
    x = maker.pick()
    kind = np.dtype(maker.random.choice((np.uint8, np.int8)))
    parts = [maker.number(maker.random.uniform(0.005, 0.03)), maker.weight(np.asarray(maker.random.choice((0, 5, 100)), kind))]
    small = maker.add("QuantizeLinear", [x, *parts], (), kind)
    maker.add("DequantizeLinear", [small, *parts], maker.shapes[x])


def integers_between(maker: Maker) -> None:
    """Whole numbers by a Cast, a step among them, and back."""
    x = maker.pick()
    kind = np.dtype(maker.random.choice((np.int32, np.int64)))
    scaled = maker.add("Mul", [x, maker.number(8)], maker.shapes[x])
    whole = maker.add("Cast", [scaled], (), kind, to=6 if kind == np.int32 else 7)
    other = maker.weight(np.asarray(maker.random.choice((-3, 2, 7)), kind))
    more = maker.add(maker.random.choice(["Add", "Mul", "Sub", "Max", "Div", "Mod"]), [whole, other], (), kind)
    maker.add("Cast", [more], maker.shapes[x], to=1)


def transpose(maker: Maker) -> None:
    if x := maker.pick(2):
        order = list(range(len(maker.shapes[x])))
        maker.random.shuffle(order)
        maker.add("Transpose", [x], tuple(maker.shapes[x][axis] for axis in order), perm=order)


def reshape(maker: Maker) -> None:
    if x := maker.pick(2):
        first, *rest = maker.shapes[x]
        if not any(map(is_free, rest)) and (first == BATCH or not is_free(first)):
            maker.reshape(x, (first, int(np.prod(rest))))


def concat(maker: Maker) -> None:
    if x := maker.pick(1):
        shape = list(maker.shapes[x])
        axis = maker.random.randrange(len(shape))
        if shape[axis] > 4 * BATCH:
            return
        shape[axis] *= 2
        maker.add("Concat", [x, maker.same_shape(x)], tuple(shape), axis=axis)


def slice_(maker: Maker) -> None:
    if (x := maker.pick(1)) and (axis := maker.fixed_axis(x)) is not None:
        shape = list(maker.shapes[x])
        end, step = maker.random.randint(1, shape[axis]), maker.random.choice((1, 1, 2))
        begin = maker.random.randrange(end)
        shape[axis] = (end - begin + step - 1) // step
        maker.add("Slice", [x, *(maker.ints(number) for number in (begin, end, axis, step))], tuple(shape))


def split(maker: Maker) -> None:
    if (x := maker.pick(1)) and (axis := maker.fixed_axis(x)) is not None:
        shape = list(maker.shapes[x])
        if shape[axis] < 2:
            return
        first = maker.random.randint(1, shape[axis] - 1)
        sizes = (first, shape[axis] - first)
        names = [maker.name(), maker.name()]
        maker.nodes.append(helper.make_node("Split", [x, maker.ints(*sizes)], names, axis=axis))
        for name, size in zip(names, sizes):
            maker.note(name, [x], (*shape[:axis], size, *shape[axis + 1:]))


def pad(maker: Maker) -> None:
    if x := maker.pick(1):
        rank = len(maker.shapes[x])
        pads = [0 if is_free(maker.shapes[x][axis % rank]) else maker.random.choice((0, 0, 1, 2)) for axis in range(2 * rank)]
        shape = tuple(size + pads[axis] + pads[axis + rank] for axis, size in enumerate(maker.shapes[x]))
        maker.add("Pad", [x, maker.ints(*pads)], shape)


def expand(maker: Maker) -> None:
    if x := maker.pick(1):
        shape = tuple(3 if size == 1 and maker.chance(0.5) else size for size in maker.shapes[x])
        maker.add("Expand", [x, maker.ints(*(1 if is_free(size) else size for size in shape))], shape)


def unsqueeze(maker: Maker) -> None:
    if (x := maker.pick()) and len(maker.shapes[x]) < 4:
        axis = maker.random.randint(0, len(maker.shapes[x]))
        shape = [*maker.shapes[x][:axis], 1, *maker.shapes[x][axis:]]
        maker.add("Unsqueeze", [x, maker.ints(axis)], tuple(shape))


def squeeze(maker: Maker) -> None:
    if x := maker.pick(1):
        single = [axis for axis, size in enumerate(maker.shapes[x]) if size == 1]
        if single:
            axis = maker.random.choice(single)
            maker.add("Squeeze", [x, maker.ints(axis)], maker.shapes[x][:axis] + maker.shapes[x][axis + 1:])


def gather(maker: Maker) -> None:
    if (x := maker.pick(1)) and (axis := maker.fixed_axis(x)) is not None:
        shape = list(maker.shapes[x])
        places = maker.numbers.integers(0, shape[axis], maker.random.choice(((), (1,), (4,))))
        shape[axis:axis + 1] = np.shape(places)
        maker.add("Gather", [x, maker.weight(np.asarray(places, np.int64))], tuple(shape), axis=axis)


def reduce(maker: Maker) -> None:
    if (x := maker.pick(1)) and (axis := maker.fixed_axis(x)) is not None:
        kept = maker.random.randint(0, 1)
        shape = [size if other != axis else 1 for other, size in enumerate(maker.shapes[x]) if other != axis or kept]
        kind = maker.random.choice(["ReduceMean", "ReduceMax", "ReduceSum", "ReduceL2", "ReduceMin", "ReduceSumSquare"])
        maker.add(kind, [x, maker.ints(axis)], tuple(shape), keepdims=kept)
        maker.exact = False


def softmax(maker: Maker) -> None:
    if x := maker.pick(1):
        maker.add(maker.random.choice(["Softmax", "LogSoftmax"]), [x], maker.shapes[x],
                  axis=maker.random.randrange(len(maker.shapes[x])))
        maker.exact = False


def normalise(maker: Maker) -> None:
    if x := maker.pick(1, fixed=(-1,)):
        size = maker.shapes[x][-1:]
        maker.add("LayerNormalization", [x, maker.weight(maker.floats(size)), maker.weight(maker.floats(size))], maker.shapes[x])
        maker.exact = False


def product(maker: Maker) -> None:
    if x := maker.pick(2, fixed=(-1,)):
        *outer, terms = maker.shapes[x]
        columns = maker.random.choice((1, 4, 16, 64))
        maker.add("MatMul", [x, maker.weight(maker.floats((terms, columns), terms**-0.5))], (*outer, columns))
        maker.exact = False


def two_matrices(maker: Maker) -> None:
    if x := maker.pick(2):
        order = [*range(len(maker.shapes[x]) - 2), len(maker.shapes[x]) - 1, len(maker.shapes[x]) - 2]
        turned = maker.add("Transpose", [x], tuple(maker.shapes[x][axis] for axis in order), perm=order)
        maker.add("MatMul", [x, turned], (*maker.shapes[x][:-1], maker.shapes[x][-2]))
        maker.exact = False


def instances(maker: Maker) -> None:
    if x := maker.pick(3, fixed=(1,)):
        size = maker.shapes[x][1:2]
        maker.add("InstanceNormalization", [x, maker.weight(maker.floats(size)), maker.weight(maker.floats(size))], maker.shapes[x])
        maker.exact = False


def keep(maker: Maker, x: str) -> str:
    """A step that keeps the shape, perhaps with another value of that shape from outside."""
    if maker.chance(0.5):
        return apply(maker, x)
    return maker.add(maker.random.choice(BINARY), [x, maker.same_shape(x)], maker.shapes[x])


def around(maker: Maker) -> None:
    control.around(maker, maker.pick(), keep)


USUAL = [unary] * 6 + [binary] * 7 + [where, clip, transpose, reshape, concat, slice_, split, pad, expand, unsqueeze, squeeze, gather,
                                      around]
SUMS = [reduce, softmax, normalise, product, two_matrices, instances]


def make(seed: int) -> Graph:
    """Every third graph has bytes or integers between its operators and nothing that sums: a sum that ends a bit beside
    another can fall on the other side of a rounding. Of the others every fourth is of another type than float."""
    coarse = seed % 3 == 0
    maker = Maker(seed, FLOAT if coarse or seed % 4 else (HALF, BFLOAT, DOUBLE)[seed // 4 % 3], opset=24)
    sizes = ((1, 3, 4, 8, 16, 24), (1, 2, 5, 8), (1, 7, 16, 64, 100))
    maker.whole = (maker.batch, *(maker.random.choice(some) for some in sizes))
    maker.input(maker.whole)
    for _ in range(maker.random.randrange(4)):
        maker.input(maker.random.choice(usual(maker)))
    maker.steps = coarse
    steps = USUAL + ([bytes_between] * 4 + [integers_between] if coarse else SUMS)
    if maker.is_half:
        steps = [step for step in steps if step is not where]
    wanted = maker.random.randint(2, 14)
    while len(maker.nodes) < wanted:
        maker.random.choice(steps)(maker)
    return maker.finish()
