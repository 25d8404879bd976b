"""Matrix products of what was transposed, with everything behind them that becomes part of a product."""

from __future__ import annotations

import numpy as np

from .maker import BFLOAT, DOUBLE, FLOAT, HALF, Graph, Maker

SIZES = (1, 1, 2, 3, 5, 14, 16, 31, 33, 64, 70)


def factor(maker: Maker, shape: tuple[int, ...]) -> str:
    """A value of this shape: an input, a constant, what an operator makes, or a Transpose of one of these."""
    if maker.chance(0.3):
        source, perm = shape, None
    else:
        axes = list(range(len(shape)))
        perm = maker.random.sample(axes, len(axes))
        if maker.chance(0.5) and len(axes) > 1:
            perm = [*axes[:-2], axes[-1], axes[-2]]
        source = tuple(shape[perm.index(axis)] for axis in axes)
    x = maker.weight(maker.floats(source)) if maker.chance(0.2) else maker.input(source)
    if maker.chance(0.3):
        x = maker.add("Tanh", [x], source)
    if perm is None:
        return x
    reverses = perm == list(range(len(perm)))[::-1]
    return maker.add("Transpose", [x], shape, **({} if reverses and maker.chance(0.5) else {"perm": perm}))


def behind(maker: Maker, x: str) -> str:
    shape = maker.shapes[x]
    how = maker.random.randrange(7)
    if how == 0:
        return maker.add(maker.random.choice(("Mul", "Div")), [x, maker.number(maker.random.choice((8.0, 3.0, -0.5, 1.0)))], shape)
    if how == 1:
        bias = maker.weight(maker.floats(maker.random.choice((shape[-1:], (1, shape[-1]), (1,)))))
        return maker.add("Add", maker.random.sample([x, bias], 2), shape)
    if how == 2:
        return maker.add("Add", maker.random.sample([x, maker.input(shape)], 2), shape)
    if how == 3:
        return maker.add("Add", [x, maker.input(shape[-2:])], shape)
    if how == 4:
        return maker.add("Mul", [x, maker.input(shape[-1:])], shape)
    return maker.add(maker.random.choice(("Relu", "Sigmoid", "Tanh", "LeakyRelu", "Gelu")), [x], shape)


def product(maker: Maker) -> str:
    rows, inner, columns = maker.random.choices(SIZES, k=3)
    batch = tuple(maker.random.choices((1, 2, 3), k=maker.random.randint(0, 3)))

    def with_batch(*matrix: int) -> tuple[int, ...]:
        own = batch[maker.random.randint(0, len(batch)):]
        return (*(1 if maker.chance(0.25) else size for size in own), *matrix)

    left, right = with_batch(rows, inner), with_batch(inner, columns)
    made = (*np.broadcast_shapes(left[:-2], right[:-2]), rows, columns)
    return maker.add("MatMul", [factor(maker, left), factor(maker, right)], made)


def make(seed: int) -> Graph:
    maker = Maker(seed, FLOAT if seed % 5 else (HALF, BFLOAT, DOUBLE)[seed // 5 % 3])
    maker.exact = False
    maker.batch = 1
    for _ in range(maker.random.randint(1, 2)):
        x = product(maker)
        for _ in range(maker.random.randint(0, 4)):
            x = behind(maker, x)
    return maker.finish()
