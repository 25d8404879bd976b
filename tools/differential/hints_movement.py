"""How nodes of ai.onnx that move elements are drawn."""

from __future__ import annotations

import numpy as np
from drawing import DTYPES, Draw, Hints, Invalid, Node, is_float, listed

HINTS = Hints()
of = HINTS.of


# --- movement ----------------------------------------------------------------------------------------


@of("Transpose")
def transpose(d: Draw) -> Node:
    shape = d.shape(0, 5)
    perm = d.random.sample(range(len(shape)), len(shape))
    return Node([d.array(d.dtype("data"), shape)], d.attributes(perm=perm) if shape else {})


@of("Reshape")
def reshape(d: Draw) -> Node:
    shape = d.shape(0, 4)
    size = int(np.prod(shape))
    made = d.attributes(allowzero=d.between(0, 1))
    allowzero = made.get("allowzero", 0)
    wanted = list(shape)
    d.random.shuffle(wanted)
    if size and d.maybe():
        at = d.between(0, len(wanted))
        wanted = wanted[:at] + [-1] + wanted[at:] if not d.maybe(0.3) else [-1]
        if -1 in wanted and len(wanted) > 2 and d.maybe():
            wanted.remove(d.one_of(*[w for w in wanted if w != -1]))
    if size == 0 and not allowzero:
        wanted = [0] * min(len(shape), 1) + [-1] if shape and shape[0] else list(shape)
        if any(w == 0 and (i >= len(shape) or shape[i] != 0) for i, w in enumerate(wanted)):
            raise Invalid("zeros copy")
    x = d.array(d.dtype("data"), shape)
    return Node([x, listed(wanted)], made) if d.version >= 5 else Node([x], {"shape": wanted})


@of("Flatten")
def flatten(d: Draw) -> Node:
    shape = d.shape(1, 4)
    axis = d.between(-len(shape) if d.version >= 11 else 0, len(shape))
    return Node([d.array(d.dtype("input"), shape)], d.attributes(axis=axis))


@of("Squeeze")
def squeeze(d: Draw) -> Node:
    shape = [size if d.maybe() else 1 for size in d.shape(0, 5)]
    ones = [i for i, size in enumerate(shape) if size == 1]
    axes = d.random.sample(ones, d.between(0, len(ones)))
    if d.version >= 11:
        axes = [axis - len(shape) if d.maybe(0.3) else axis for axis in axes]
    x = d.array(d.dtype("data"), shape)
    if not axes:
        return Node([x])
    return Node([x], {"axes": axes}) if d.version < 13 else Node([x, listed(axes)])


@of("Unsqueeze")
def unsqueeze(d: Draw) -> Node:
    shape = d.shape(0, 3)
    added = d.between(1, 3)
    rank = len(shape) + added
    axes = d.random.sample(range(rank), added)
    if d.version >= 11:
        axes = [axis - rank if d.maybe(0.3) else axis for axis in axes]
    else:
        axes.sort()
    x = d.array(d.dtype("data"), shape)
    return Node([x], {"axes": axes}) if d.version < 13 else Node([x, listed(axes)])


@of("Concat")
def concat(d: Draw) -> Node:
    shape = d.shape(1, 4)
    axis = d.axis(len(shape))
    if d.version < 11:
        axis %= len(shape)
    dtype = d.dtype(d.schema.inputs[0].name)
    inputs = []
    for _ in range(d.between(1, 5)):
        shape[axis] = d.size(0)
        inputs.append(d.array(dtype, shape))
    return Node(inputs, {"axis": axis})


@of("Split")
def split(d: Draw) -> Node:
    shape = d.shape(1, 4)
    axis = d.axis(len(shape)) if d.version >= 11 else d.between(0, len(shape) - 1)
    count = d.between(1, 4)
    sizes = [d.between(0, 3) for _ in range(count)]
    equal = d.maybe(0.4)
    if equal and d.version >= 18:
        shape[axis] = d.between(count, 9)
        part = -(-shape[axis] // count)
        if part * (count - 1) > shape[axis]:
            raise Invalid("a part would be negative")
        return Node([d.array(d.dtype("input"), shape)], {"axis": axis, "num_outputs": count}, count)
    if equal:
        shape[axis] = count * d.between(0, 3)
        return Node([d.array(d.dtype("input"), shape)], {"axis": axis}, count)
    shape[axis] = sum(sizes)
    x = d.array(d.dtype("input"), shape)
    if d.version < 13:
        return Node([x], {"axis": axis, "split": sizes}, count)
    return Node([x, listed(sizes)], {"axis": axis}, count)


@of("Slice")
def slice_(d: Draw) -> Node:
    shape = d.shape(1, 4)
    axes = d.axes(len(shape)) or [0]
    big = [2**31 - 1, -(2**31) + 1, 2**63 - 1, -(2**63) + 1]
    bound = lambda axis: d.one_of(*big) if d.maybe(0.1) else d.between(-shape[axis] - 2, shape[axis] + 2)  # noqa: E731
    starts, ends = [bound(a) for a in axes], [bound(a) for a in axes]
    x = d.array(d.dtype("data"), shape)
    if d.version < 10:
        if d.maybe(0.3):
            axes = sorted(a % len(shape) for a in axes)
        return Node([x], {"starts": starts, "ends": ends, "axes": [a % len(shape) for a in axes]})
    steps = [d.one_of(1, 1, 1, 2, 3, -1, -2, 100, -100) for _ in axes]
    dtype = d.one_of(np.int64, np.int64, np.int32)
    if dtype is np.int32:
        starts, ends = ([max(-(2**31), min(2**31 - 1, v)) for v in b] for b in (starts, ends))
    make = lambda values: np.array(values, dtype)  # noqa: E731
    if sorted(a % len(shape) for a in axes) == list(range(len(axes))) and [a % len(shape) for a in axes] == sorted(
            a % len(shape) for a in axes) and d.maybe():
        return Node([x, make(starts), make(ends)] + ([None, make(steps)] if d.maybe() else []))
    return Node([x, make(starts), make(ends), make(axes)] + ([make(steps)] if d.maybe(0.7) else []))


@of("Gather")
def gather(d: Draw) -> Node:
    shape = d.shape(1, 4)
    axis = d.axis(len(shape))
    indices = d.indices(d.one_of(np.int32, np.int64), d.shape(0, 3, 0), shape[axis], d.version >= 11)
    return Node([d.array(d.dtype("data"), shape), indices], {"axis": axis} if axis or d.maybe() else {})


@of("GatherElements")
def gather_elements(d: Draw) -> Node:
    shape = d.shape(1, 4)
    axis = d.axis(len(shape))
    index_shape = [d.between(0 if d.maybe(0.1) else 1, size) if size else 0 for size in shape]
    index_shape[axis] = d.between(1, 5)
    return Node([d.array(d.dtype("data"), shape), d.indices(d.one_of(np.int32, np.int64), index_shape, shape[axis])],
                d.attributes(axis=axis) if axis % len(shape) == 0 else {"axis": axis})


@of("Scatter", "ScatterElements")
def scatter_elements(d: Draw) -> Node:
    shape = d.shape(1, 3)
    axis = d.axis(len(shape)) if d.version >= 11 else d.between(0, len(shape) - 1)
    index_shape = [d.between(1, size) if size else 0 for size in shape]
    reduction = d.one_of(None, "none", "add", "mul", "max", "min") if d.has("reduction") else None
    if d.version == 16 and reduction in ("max", "min"):
        reduction = "add"
    if reduction in (None, "none"):  # each place once
        places = d.numpy.permuted(np.broadcast_to(np.arange(shape[axis]).reshape(
            [-1 if i == axis % len(shape) else 1 for i in range(len(shape))]), shape), axis=axis)
        indices = places[tuple(slice(0, size) for size in index_shape)].astype(np.int64)
        if d.maybe() and d.version >= 11:
            indices = np.where(d.numpy.random(indices.shape) < 0.5, indices - shape[axis], indices)
    else:
        index_shape[axis] = d.between(1, 4)
        indices = d.indices(np.int64, index_shape, shape[axis])
    dtype = d.dtype("data", *([] if reduction in (None, "none") else
                              ["float", "double", "int32", "int64", "float16", "uint8", "int8", "bfloat16"]))
    made = {"axis": axis, **({"reduction": reduction} if reduction else {})}
    return Node([d.array(dtype, shape, edges=0), indices, d.array(dtype, indices.shape, edges=0)], made)


@of("GatherND")
def gather_nd(d: Draw) -> Node:
    shape = d.shape(1, 4)
    batch = d.between(0, min(len(shape) - 1, 2)) if d.has("batch_dims") else 0
    depth = d.between(1, len(shape) - batch)
    lead = shape[:batch] + d.shape(0 if batch else 0, 2)
    columns = [d.indices(np.int64, lead, shape[batch + i], d.version >= 12) for i in range(depth)]
    indices = np.stack(columns, axis=-1)
    return Node([d.array(d.dtype("data"), shape), indices], {"batch_dims": batch} if batch else {})


@of("ScatterND")
def scatter_nd(d: Draw) -> Node:
    shape = d.shape(1, 3)
    depth = d.between(1, len(shape))
    reduction = d.one_of(None, "none", "add", "mul", "max", "min") if d.has("reduction") else None
    if d.version == 16 and reduction in ("max", "min"):
        reduction = "add"
    every = np.array(list(np.ndindex(*shape[:depth])), np.int64).reshape(-1, depth)
    if len(every) == 0:
        raise Invalid("nothing to point at")
    chosen = d.random.sample(range(len(every)), d.between(1, len(every)))
    if reduction not in (None, "none"):
        chosen += d.random.choices(chosen, k=2)
    indices = every[chosen]
    if d.maybe(0.3):
        indices = indices - np.array(shape[:depth])
    dtype = d.dtype("data", *([] if reduction in (None, "none") else ["float", "double", "int32", "int64", "uint8", "float16"]))
    updates = d.array(dtype, [len(indices), *shape[depth:]], edges=0)
    return Node([d.array(dtype, shape, edges=0), indices, updates], {"reduction": reduction} if reduction else {})


@of("Tile")
def tile(d: Draw) -> Node:
    shape = d.shape(0, 4, 1, 3)
    if d.version == 1:
        shape = shape or [2]
        dtype = d.dtype("input")
        return Node([d.array(dtype, shape), np.array([d.between(1, 3)], dtype), np.array([d.between(0, len(shape) - 1)], dtype)])
    return Node([d.array(d.dtype("input"), shape), listed(d.between(0 if d.maybe(0.1) else 1, 3) for _ in shape)])


@of("Pad")
def pad(d: Draw) -> Node:
    shape = d.shape(1, 4)
    mode = d.one_of(*["constant", "reflect", "edge"] + (["wrap"] if d.version >= 19 else []))
    axes = d.axes(len(shape)) if d.version >= 18 and d.maybe() else list(range(len(shape)))
    begins, ends = [], []
    for axis in axes:
        most = 3 if mode in ("constant",) else 3 if mode == "edge" and shape[axis] else max(shape[axis] - 1, 0)
        begins.append(d.between(0, min(most, 3)))
        ends.append(d.between(0, min(most, 3)))
    if d.maybe(0.15) and mode == "constant":
        begins = [-d.between(0, min(1, shape[axis])) for axis in axes]
    pads = begins + ends
    if d.version < 11:
        value = d.attributes(value=d.real())
        return Node([d.array(d.dtype("data"), shape)], {"pads" if d.version >= 2 else "paddings": pads, "mode": mode, **value})
    dtype = d.dtype("data")
    value = d.array(dtype, []) if d.maybe() else None
    given = listed(axes) if axes != list(range(len(shape))) else None
    return Node([d.array(dtype, shape), listed(pads), value, given], {"mode": mode} if mode != "constant" or d.maybe() else {})


@of("CenterCropPad")
def center_crop_pad(d: Draw) -> Node:
    shape = d.shape(1, 4)
    axes = d.random.sample(range(len(shape)), d.between(1, len(shape)))
    wanted = listed(d.between(1, 7) for _ in axes)
    if axes == list(range(len(shape))) and d.maybe():
        return Node([d.array(d.dtype("input_data"), shape), wanted])
    return Node([d.array(d.dtype("input_data"), shape), wanted],
                {"axes": [axis - len(shape) if d.maybe(0.3) else axis for axis in axes]})


@of("DepthToSpace")
def depth_to_space(d: Draw) -> Node:
    block = d.between(1, 3)
    return Node([d.array(d.dtype("input"), [d.between(1, 2), d.between(1, 3) * block**2, d.between(1, 4), d.between(1, 4)])],
                {"blocksize": block, **d.attributes(mode=d.one_of("DCR", "CRD"))})


@of("SpaceToDepth")
def space_to_depth(d: Draw) -> Node:
    block = d.between(1, 3)
    return Node([d.array(d.dtype("input"), [d.between(1, 2), d.between(1, 3), d.between(1, 3) * block, d.between(1, 3) * block])],
                {"blocksize": block})


@of("Compress")
def compress(d: Draw) -> Node:
    shape = d.shape(1, 4)
    if d.maybe(0.3):
        size = int(np.prod(shape))
        return Node([d.array(d.dtype("input"), shape), d.array(np.bool_, [d.between(0, size)])])
    axis = d.axis(len(shape)) if d.version >= 11 else d.between(0, len(shape) - 1)
    return Node([d.array(d.dtype("input"), shape), d.array(np.bool_, [d.between(0, shape[axis])])], {"axis": axis})


@of("Trilu")
def trilu(d: Draw) -> Node:
    shape = d.shape(2, 4)
    k = np.array(d.between(-6, 6), np.int64) if d.maybe(0.7) else None
    return Node([d.array(d.dtype("input"), shape), k], d.attributes(upper=d.between(0, 1)))


@of("ReverseSequence")
def reverse_sequence(d: Draw) -> Node:
    shape = d.shape(2, 4)
    time = d.between(0, 1)
    lens = d.numpy.integers(0 if d.version > 10 else 1, max(shape[time], 1) + 1, shape[1 - time])
    lens = np.minimum(lens, shape[time]).astype(np.int64)
    return Node([d.array(d.dtype("input"), shape), lens], {"time_axis": time, "batch_axis": 1 - time})


@of("OneHot")
def one_hot(d: Draw) -> Node:
    shape = d.shape(0, 3)
    depth = d.between(1, 6)
    axis = d.between(-len(shape) - 1, len(shape))
    dtype = d.dtype("values")
    index_type = d.dtype("indices", "int64", "int32", "float", "uint8")
    low = 0 if np.dtype(index_type).kind == "u" else -depth - 2
    indices = d.numpy.integers(low, depth + 2, shape)
    return Node([np.asarray(indices).astype(index_type), np.array(depth, d.dtype("depth", "int64", "int32", "float")),
                 d.array(dtype, [2], edges=0)], d.attributes(axis=axis))


@of("Unique")
def unique(d: Draw) -> Node:
    shape = d.shape(1, 3)
    x = d.array(d.dtype("X"), shape, -2, 2, edges=0)
    if is_float(x.dtype):
        x = np.round(x.astype(np.float64)).astype(x.dtype)
    made = {"sorted": d.between(0, 1)} if d.maybe() else {}
    if d.maybe():
        made["axis"] = d.axis(len(shape))
    return Node([x], made, 4)


@of("Shape")
def shape_of(d: Draw) -> Node:
    return Node([d.array(d.dtype("data"), d.shape(0, 5, 0))], d.attributes(start=d.between(-6, 6), end=d.between(-6, 6)))


@of("Size", "NonZero", "Identity", "IsNaN", "Sign", "Round")
def plain(d: Draw) -> Node:
    x = d.array(d.dtype(d.schema.inputs[0].name), d.shape(0, 4, 0 if d.maybe(0.1) else 1), edges=0.4)
    if d.name == "NonZero" and d.maybe():
        x = np.where(d.numpy.random(x.shape) < 0.5, x, np.zeros_like(x))
    return Node([np.asarray(x, x.dtype)])


@of("ConstantOfShape")
def constant_of_shape(d: Draw) -> Node:
    made = {}
    if d.maybe(0.8):
        allowed = [t for t in ("float", "double", "float16", "int8", "int64", "uint8", "bool", "int32", "uint64")]
        made["value"] = ("tensor", d.array(DTYPES[d.one_of(*allowed)], [1]))
    return Node([listed(d.shape(0, 4, 0 if d.maybe(0.2) else 1))], made)


@of("EyeLike")
def eye_like(d: Draw) -> Node:
    made = d.attributes(k=d.between(-6, 6))
    if d.maybe():
        made["dtype"] = d.element_attribute("float", "double", "int32", "int64", "uint8", "bool", "float16")
    return Node([d.array(d.dtype("input"), d.shape(2, 2))], made)


@of("Range")
def range_(d: Draw) -> Node:
    dtype = d.dtype("start", "float", "double", "int16", "int32", "int64")
    delta = d.one_of(-3, -1, 1, 2) if not is_float(dtype) else d.one_of(-0.5, 0.25, 1.5, -2.0)
    return Node([np.array(d.between(-5, 5), dtype), np.array(d.between(-9, 9), dtype), np.array(delta, dtype)])


@of("TensorScatter")
def tensor_scatter(d: Draw) -> Node:
    rank = d.between(3, 4)
    shape = [d.between(1, 3) for _ in range(rank)]
    axis = d.between(1, rank - 1)
    shape[axis] = d.between(2, 7)
    update = list(shape)
    update[axis] = d.between(1, shape[axis])
    circular = d.maybe()
    most = shape[axis] - 1 if circular else shape[axis] - update[axis]
    where = listed(d.between(0, most) for _ in range(shape[0])) if d.maybe(0.8) else None
    dtype = d.dtype("past_cache")
    return Node([d.array(dtype, shape), d.array(dtype, update), where],
                {"axis": axis if d.maybe() else axis - rank, **({"mode": "circular"} if circular else {})})
