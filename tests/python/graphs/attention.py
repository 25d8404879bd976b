"""Transformers' neighbourhoods: projections, heads, masks, softmax, normalisations as operators and decomposed, gates, rotary
embeddings, caches."""

from __future__ import annotations

import numpy as np
from onnx import helper

from . import control
from .maker import BFLOAT, DOUBLE, FLOAT, HALF, Graph, Maker


def linear(maker: Maker, x: str, columns: int) -> str:
    *outer, terms = maker.shapes[x]
    shape = (*outer, columns)
    y = maker.add("MatMul", [x, maker.weight(maker.floats((terms, columns), terms**-0.5))], shape)
    if maker.chance(0.5):
        y = maker.add("Add", maker.random.sample([y, maker.weight(maker.floats((columns,), 0.2))], 2), shape)
    return y


def mean_of(maker: Maker, x: str) -> str:
    return maker.add("ReduceMean", [x, maker.ints(-1)], (*maker.shapes[x][:-1], 1), keepdims=1)


def scaled(maker: Maker, y: str, shift: bool) -> str:
    size = maker.shapes[y][-1:]
    y = maker.add("Mul", maker.random.sample([y, maker.weight(maker.floats(size))], 2), maker.shapes[y])
    return maker.add("Add", [y, maker.weight(maker.floats(size))], maker.shapes[y]) if shift else y


def divided(maker: Maker, x: str, squares: str) -> str:
    """x by the root of a mean of squares, as exporters write it."""
    shape = maker.shapes[squares]
    root = maker.add("Sqrt", [maker.add("Add", [squares, maker.number(1e-3)], shape)], shape)
    if maker.chance(0.5):
        return maker.add("Div", [x, root], maker.shapes[x])
    return maker.add("Mul", [x, maker.add("Reciprocal", [root], shape)], maker.shapes[x])


def squared(maker: Maker, x: str) -> str:
    if maker.chance(0.5):
        return maker.add("Pow", [x, maker.number(2)], maker.shapes[x])
    return maker.add("Mul", [x, x], maker.shapes[x])


def normalise(maker: Maker, x: str) -> str:
    shape = maker.shapes[x]
    how = maker.random.randrange(5)
    if how == 0:
        more = [maker.weight(maker.floats(shape[-1:])) for _ in range(maker.random.randint(1, 2))]
        return maker.add("LayerNormalization", [x, *more], shape, epsilon=1e-3)
    if how == 1:
        return maker.add("RMSNormalization", [x, maker.weight(maker.floats(shape[-1:]))], shape, epsilon=1e-3)
    if how == 2:
        axis = -2 if len(shape) > 2 and shape[-2] < 50 and maker.chance(0.3) else -1
        return maker.add("LayerNormalization", [x, maker.weight(maker.floats(shape[axis:]))], shape, axis=axis, epsilon=1e-3)
    if how == 3:
        centred = maker.add("Sub", [x, mean_of(maker, x)], shape)
        return scaled(maker, divided(maker, centred, mean_of(maker, squared(maker, centred))), True)
    return scaled(maker, divided(maker, x, mean_of(maker, squared(maker, x))), False)


def gelu(maker: Maker, x: str) -> str:
    shape = maker.shapes[x]
    how = maker.random.randrange(5)
    if how == 0:
        return maker.add("Gelu", [x], shape, approximate=maker.random.choice(("none", "tanh")))
    if how == 1:
        y = maker.add("Div", [x, maker.number(1.41421356)], shape)
        y = maker.add("Add", [maker.add("Erf", [y], shape), maker.number(1)], shape)
        y = maker.add("Mul", maker.random.sample([x, y], 2), shape)
        return maker.add("Mul", [y, maker.number(0.5)], shape)
    if how == 2:
        cube = maker.add("Pow", [x, maker.number(3)], shape)
        y = maker.add("Add", [x, maker.add("Mul", [cube, maker.number(0.044715)], shape)], shape)
        y = maker.add("Tanh", [maker.add("Mul", [y, maker.number(0.7978846)], shape)], shape)
        y = maker.add("Add", [y, maker.number(1)], shape)
        return maker.add("Mul", [maker.add("Mul", [x, maker.number(0.5)], shape), y], shape)
    if how == 3:
        y = maker.add("Sigmoid", [maker.add("Mul", [x, maker.number(1.702)], shape)], shape)
        return maker.add("Mul", maker.random.sample([x, y], 2), shape)
    return maker.add("Mul", [x, maker.add("Sigmoid", [x], shape)], shape)


def feed_forward(maker: Maker, x: str) -> str:
    width, inner = maker.shapes[x][-1], maker.random.choice((8, 24, 64))
    if maker.chance(0.5):
        return linear(maker, gelu(maker, linear(maker, x, inner)), width)
    up, gate = linear(maker, x, inner), gelu(maker, linear(maker, x, inner))
    return linear(maker, maker.add("Mul", maker.random.sample([up, gate], 2), maker.shapes[up]), width)


def heads(maker: Maker, x: str, count: int) -> str:
    """[batch, rows, width] to [batch, heads, rows, size]."""
    batch, rows, width = maker.shapes[x]
    y = maker.reshape(x, (batch, rows, count, width // count))
    return maker.add("Transpose", [y], (batch, count, rows, width // count), perm=[0, 2, 1, 3])


def turned(maker: Maker, x: str) -> str:
    batch, count, rows, size = maker.shapes[x]
    return maker.add("Transpose", [x], (batch, count, size, rows), perm=[0, 1, 3, 2])


def rotary(maker: Maker, x: str) -> str:
    """As an operator, or halves decomposed."""
    shape = maker.shapes[x]
    batch, count, rows, size = shape
    angles = maker.numbers.uniform(0, 3, (rows, size // 2))
    if size % 2:
        return x
    if maker.chance(0.4) and maker.dtype != DOUBLE:
        places = maker.numbers.permutation(rows)
        if maker.batch != maker.shapes[x][0] or batch > 1000:
            return x
        tables = [maker.weight(np.asarray(f(angles), maker.dtype)) for f in (np.cos, np.sin)]
        ids = maker.weight(np.asarray(np.broadcast_to(places, (batch, rows)), np.int64))
        return maker.add("RotaryEmbedding", [x, *tables, ids], shape, interleaved=maker.random.randint(0, 1))
    cosine, sine = (maker.weight(np.asarray(np.concatenate([f(angles)] * 2, -1), maker.dtype)) for f in (np.cos, np.sin))
    half = (*shape[:-1], size // 2)
    low = maker.add("Slice", [x, maker.ints(0), maker.ints(size // 2), maker.ints(3)], half)
    high = maker.add("Slice", [x, maker.ints(size // 2), maker.ints(size), maker.ints(3)], half)
    swapped = maker.add("Concat", [maker.add("Neg", [high], half), low], shape, axis=3)
    straight = maker.add("Mul", [x, cosine], shape)
    return maker.add("Add", [straight, maker.add("Mul", [swapped, sine], shape)], shape)


def repeated(maker: Maker, x: str, times: int) -> str:
    """Heads of keys and values for several of queries each."""
    if times == 1:
        return x
    batch, count, rows, size = maker.shapes[x]
    y = maker.add("Unsqueeze", [x, maker.ints(2)], (batch, count, 1, rows, size))
    y = maker.add("Expand", [y, maker.ints(1, count, times, rows, size)], (batch, count, times, rows, size))
    return maker.reshape(y, (batch, count * times, rows, size))


def broadcasts(shape: tuple[int, ...], to: tuple[int, ...]) -> bool:
    return len(shape) <= len(to) and all(a in (1, b) for a, b in zip(shape[::-1], to[::-1]))


def masked(maker: Maker, scores: str) -> str:
    shape = maker.shapes[scores]
    batch, count, rows, keys = shape
    how = maker.random.randrange(6)
    some = maker.random.choice(((rows, keys), (1, 1, rows, keys), (1, 1, 1, keys), (keys,), (1, count, rows, keys)))
    allowed = np.asarray(maker.numbers.random(some) < 0.7)
    allowed[..., 0] = True
    far = -65504.0 if maker.dtype == HALF else maker.random.choice((-1e4, -1e9, -3.4028235e38))
    if how == 0:
        return maker.add("Add", maker.random.sample([scores, maker.weight(np.asarray(np.where(allowed, 0, far), maker.dtype))], 2), shape)
    if how == 1:
        test, sides = maker.weight(allowed), [scores, maker.number(far)]
        if maker.chance(0.4):
            test, sides = maker.weight(~allowed), [maker.number(far), scores]
        return maker.add("Where", [test, *sides], shape)
    if how == 2:  # lengths come with the run
        mask = maker.input((maker.batch, 1, 1, keys), maker.dtype)
        return maker.add("Add", [scores, mask], shape)
    if how == 3:
        causal = maker.weight(np.tril(np.ones((rows, keys), bool), keys - rows if keys > rows else 0))
        return maker.add("Where", [causal, scores, maker.number(far)], shape)
    if how == 4:
        bias = maker.pick(2)
        if broadcasts(maker.shapes[bias], shape):
            return maker.add("Add", [scores, bias], shape)
    return scores


def spelled_out(maker: Maker, q: str, k: str, v: str) -> str:
    batch, count, rows, size = maker.shapes[q]
    keys = maker.shapes[k][2]
    shape = (batch, count, rows, keys)
    where = maker.random.randrange(3)
    factor = size**-0.5
    if where == 0:
        q = maker.add("Mul", [q, maker.number(factor)], maker.shapes[q])
    elif where == 1:
        q, k = (maker.add("Mul", [x, maker.number(factor**0.5)], maker.shapes[x]) for x in (q, k))
    scores = maker.add("MatMul", [q, turned(maker, k)], shape)
    if where == 2:
        scores = maker.add(*maker.random.choice((("Mul", [scores, maker.number(factor)]), ("Div", [scores, maker.number(1 / factor)]))), shape)
    if maker.chance(0.15):  # a soft cap
        scores = maker.add("Tanh", [maker.add("Div", [scores, maker.number(5)], shape)], shape)
        scores = maker.add("Mul", [scores, maker.number(5)], shape)
    scores = masked(maker, scores)
    shares = maker.add("Softmax", [scores], shape, axis=maker.random.choice((-1, 3)))
    if maker.chance(0.1):
        shares = maker.add("Where", [maker.add("IsNaN", [shares], (), np.bool_), maker.number(0), shares], shape)
    return maker.add("MatMul", [shares, v], (*shape[:3], maker.shapes[v][-1]))


def attention(maker: Maker, x: str) -> str:
    batch, rows, width = maker.shapes[x]
    count = maker.random.choice([c for c in (1, 2, 3, 4, 6) if width % c == 0])
    size = width // count
    shared = maker.random.choice([c for c in (1, count) if count % c == 0])
    other = x if maker.chance(0.8) else maker.random.choice(
        [name for name, shape in maker.shapes.items() if len(shape) == 3 and shape[0] == batch and shape[1] < 1000 and shape[2] < 1000])
    if maker.chance(0.3) and other == x and shared == count:
        parts = [maker.name() for _ in range(3)]
        whole = linear(maker, x, 3 * width)
        maker.nodes.append(helper.make_node("Split", [whole, maker.ints(width, width, width)], parts, axis=-1))
        for part in parts:
            maker.note(part, [whole], (batch, rows, width))
        q, k, v = parts
    else:
        q, k, v = linear(maker, x, width), linear(maker, other, shared * size), linear(maker, other, shared * size)
    if maker.chance(0.35):
        return as_operator(maker, q, k, v, count, shared)
    q, k, v = heads(maker, q, count), heads(maker, k, shared), heads(maker, v, shared)
    if maker.chance(0.2):
        q, k = normalise(maker, q), normalise(maker, k)
    if maker.chance(0.3):
        q, k = rotary(maker, q), rotary(maker, k)
    if maker.chance(0.25):  # what earlier steps left
        past = maker.random.choice((1, 5))
        k, v = (maker.add("Concat", [maker.input((batch, shared, past, size)), step], (batch, shared, past + maker.shapes[step][2], size), axis=2)
                for step in (k, v))
    k, v = repeated(maker, k, count // shared), repeated(maker, v, count // shared)
    y = spelled_out(maker, q, k, v)
    y = maker.add("Transpose", [y], (batch, rows, count, size), perm=[0, 2, 1, 3])
    return maker.reshape(y, (batch, rows, width))


def as_operator(maker: Maker, q: str, k: str, v: str, count: int, shared: int) -> str:
    shape = maker.shapes[q]
    batch, rows, width = shape
    keys = maker.shapes[k][1]
    inputs = [q, k, v]
    if maker.chance(0.4):
        some = maker.random.choice(((rows, keys), (1, 1, rows, keys), (1, count, rows, keys)))
        allowed = np.asarray(maker.numbers.random(some) < 0.7)
        allowed[..., 0] = True
        inputs.append(maker.weight(allowed if maker.chance(0.5) else np.asarray(np.where(allowed, 0.3, -1e4), maker.dtype)))
    more = {"is_causal": maker.random.choice((0, 0, 1)), "softcap": maker.random.choice((0.0, 0.0, 4.0))}
    if maker.chance(0.5):
        return maker.add("Attention", inputs, shape, q_num_heads=count, kv_num_heads=shared, **more)
    inputs[:3] = [heads(maker, q, count), heads(maker, k, shared), heads(maker, v, shared)]
    y = maker.add("Attention", inputs, (batch, count, rows, width // count), **more)
    y = maker.add("Transpose", [y], (batch, rows, count, width // count), perm=[0, 2, 1, 3])
    return maker.reshape(y, shape)


def layer(maker: Maker, x: str) -> str:
    """Attention or feed-forward, with its normalisation before or behind and its residual sum."""
    part = maker.random.choice((attention, feed_forward))
    before = maker.chance(0.6)
    y = part(maker, normalise(maker, x) if before else x)
    y = maker.add("Add", maker.random.sample([x, y], 2), maker.shapes[x])
    return y if before else normalise(maker, y)


def aside(maker: Maker, x: str) -> str:
    """Something less usual on the way."""
    shape = maker.shapes[x]
    how = maker.random.randrange(5)
    if how == 0:
        return maker.add("Mul", [x, maker.add("Sigmoid", [linear(maker, x, shape[-1])], shape)], shape)
    if how == 1:
        return maker.add("Softmax", [x], shape, axis=maker.random.choice((1, 2)))
    if how == 2:
        return maker.add("Add", [x, maker.weight(maker.floats(maker.random.choice((shape[1:], shape[2:], (1, *shape[1:])))))], shape)
    if how == 3:
        return gelu(maker, x)
    return maker.add("Tanh", [x], shape)


def keep(maker: Maker, x: str) -> str:
    return maker.random.choice((feed_forward, normalise, aside, gelu))(maker, x)


def last(maker: Maker, x: str) -> None:
    """One row, or the mean of rows, and a matrix of classes."""
    batch, rows, width = maker.shapes[x]
    if maker.chance(0.5):
        y = maker.add("Gather", [x, maker.weight(np.int64(maker.random.choice((0, -1))))], (batch, width), axis=1)
    else:
        y = maker.add("ReduceMean", [x, maker.ints(1)], (batch, width), keepdims=0)
    columns = maker.random.choice((2, 10))
    weight = maker.weight(maker.floats((columns, width), width**-0.5))
    maker.add("Gemm", [y, weight, maker.weight(maker.floats((columns,)))], (batch, columns), transB=1)


def make(seed: int) -> Graph:
    maker = Maker(seed, FLOAT if seed % 4 else (HALF, BFLOAT, DOUBLE)[seed // 4 % 3], opset=24)
    maker.exact = False
    width = maker.random.choice((8, 12, 24, 32, 64))
    x = maker.input((maker.batch, maker.random.choice((1, 2, 5, 16, 33)), width))
    for _ in range(maker.random.randint(1, 3)):
        how = maker.random.random()
        if how < 0.7:
            x = layer(maker, x)
        elif how < 0.85:
            x = aside(maker, x)
        else:
            control.around(maker, x, keep)
    if maker.chance(0.4):
        last(maker, x)
    return maker.finish()
