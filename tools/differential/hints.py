"""How nodes of ai.onnx are drawn where anything at random would be invalid: one function for each family."""

from __future__ import annotations

import numpy as np
from drawing import Draw, Invalid, Node, is_float
from onnx import TensorProto, helper

HINTS: dict[str, callable] = {}


def of(*names: str):
    def add(function):
        HINTS.update({name: function for name in names})
        return function
    return add


def ints(*values) -> np.ndarray:
    return np.array(values, np.int64)


def listed(values) -> np.ndarray:
    return np.array(list(values), np.int64)


# --- element by element -------------------------------------------------------------------------


def generic(d: Draw) -> Node:
    """Inputs of shapes that broadcast, float attributes near 1, the rest by default."""
    common = d.shape(0, 4)
    inputs = []
    for formal in d.schema.inputs:
        count = d.between(max(1, formal.min_arity), 4) if formal.option.name == "Variadic" else 1
        for _ in range(count):
            inputs.append(d.array(d.dtype(formal.name), d.to_broadcast(common)))
    floats = {name: d.real() for name, attribute in d.schema.attributes.items()
              if attribute.type.name == "FLOAT"}
    return Node(inputs, d.attributes(**floats))


@of("PRelu", "Expand")
def one_way(d: Draw) -> Node:
    shape = d.shape(0, 4)
    x = d.array(d.dtype(d.schema.inputs[0].name), shape)
    if d.name == "Expand":
        return Node([d.array(x.dtype, d.to_broadcast(shape)), listed(shape)])
    slope = d.to_broadcast(shape) if d.version >= 7 else [shape[1]] if len(shape) > 1 else [1]
    return Node([x, d.array(x.dtype, slope)])


@of("Mod")
def mod(d: Draw) -> Node:
    dtype, shape = d.dtype("A"), d.shape(0, 4)
    low = 1 if np.dtype(dtype).kind == "u" else -7
    b = d.array(dtype, d.to_broadcast(shape), low, 7, edges=0)
    b = np.where(b == 0, np.asarray(3).astype(dtype), b).astype(dtype)
    fmod = 1 if is_float(dtype) else d.between(0, 1)
    return Node([d.array(dtype, shape, -50, 50, edges=0), b], {"fmod": fmod} if fmod or d.maybe() else {})


@of("Div")
def div(d: Draw) -> Node:
    dtype, shape = d.dtype("A"), d.shape(0, 4)
    if is_float(dtype):
        return generic(d)
    b = d.array(dtype, d.to_broadcast(shape), -7, 7, edges=0)
    return Node([d.array(dtype, shape, -100, 100, edges=0), np.where(b == 0, np.asarray(2).astype(dtype), b).astype(dtype)])


@of("Pow")
def power(d: Draw) -> Node:
    x = d.dtype("X")
    y = x if d.version < 12 else d.dtype("Y")
    shape = d.shape(0, 4)
    if is_float(x):
        return Node([d.array(x, shape, -3, 3, edges=0.1), d.array(y, d.to_broadcast(shape), -3, 3, edges=0.1 if is_float(y) else 0)])
    whole = np.round(d.array(np.float64, d.to_broadcast(shape), 0, 3, edges=0)).astype(y)  # others have no result of integers
    return Node([d.array(x, shape, -3, 3, edges=0), whole])


@of("BitShift")
def shift(d: Draw) -> Node:
    dtype, shape = d.dtype("X"), d.shape(0, 4)
    bits = np.dtype(dtype).itemsize * 8
    return Node([d.array(dtype, shape, 0, 200), d.array(dtype, d.to_broadcast(shape), 0, bits - 1, edges=0)],
                {"direction": d.one_of("LEFT", "RIGHT")})


@of("Clip")
def clip(d: Draw) -> Node:
    if d.version < 11:
        return Node([d.array(d.dtype("input"), d.shape())], d.attributes(min=d.real(-3, 1), max=d.real(-1, 3)))
    dtype = d.dtype("input")
    bound = lambda: d.array(dtype, [], -3, 3, edges=0.05) if d.maybe(0.7) else None  # noqa: E731
    return Node([d.array(dtype, d.shape()), bound(), bound()])


@of("Cast")
def cast(d: Draw) -> Node:
    if d.version < 6:
        return Node([d.array(d.dtype("input"), d.shape())], {"to": d.one_of("FLOAT", "DOUBLE", "INT32", "INT64", "BOOL")})
    source = d.type_of("T1")
    allowed = [t[len("tensor("):-1] for c in d.schema.type_constraints if c.type_param_str == "T2"
               for t in c.allowed_type_strs]
    from drawing import DTYPES
    target = d.one_of(*sorted(t for t in allowed if t in DTYPES and (t == "string") <= (source != "string")))
    shape = d.shape(0, 3)
    if source == "string":
        words = ["1", "-2", "3.5", "0", "1e3", "12"] if "float" in target or target == "double" else ["1", "2", "0", "7"]
        x = np.array([d.one_of(*words) for _ in range(int(np.prod(shape)))], object).reshape(shape)
    else:
        wide = is_float(DTYPES[source]) and not (is_float(DTYPES[target]) or target in ("bool", "string"))
        x = d.array(DTYPES[source], shape, 0 if target.startswith("u") else -8 if target == "int4" else -100,
                    7 if target == "int4" else 15 if target == "uint4" else 100, edges=0 if wide else 0.4)
        if target == "string" and is_float(DTYPES[source]):
            x = np.round(x.astype(np.float64)).astype(DTYPES[source])
    made = {"to": helper.np_dtype_to_tensor_dtype(np.dtype(DTYPES[target])) if target != "string" else TensorProto.STRING}
    return Node([x], {**made, **d.attributes(saturate=d.between(0, 1))})


@of("CastLike")
def cast_like(d: Draw) -> Node:
    node = cast(d)
    from drawing import DTYPES
    to = node.attributes.pop("to")
    name = next(t for t in DTYPES if (TensorProto.STRING if t == "string" else helper.np_dtype_to_tensor_dtype(np.dtype(DTYPES[t]))) == to)
    return Node([node.inputs[0], d.array(DTYPES[name], [1])], node.attributes)


@of("BitCast")
def bit_cast(d: Draw) -> Node:
    pairs = {"float": "int32", "int32": "uint32", "double": "uint64", "int64": "double", "float16": "int16",
             "bfloat16": "uint16", "uint8": "int8", "int16": "float16", "uint32": "float"}
    source = d.type_of("T1", *pairs)
    from drawing import DTYPES
    return Node([d.array(DTYPES[source], d.shape(), edges=0)],
                {"to": helper.np_dtype_to_tensor_dtype(np.dtype(DTYPES[pairs[source]]))})


@of("IsInf")
def is_inf(d: Draw) -> Node:
    return Node([d.array(d.dtype("X"), d.shape(), edges=0.9)],
                d.attributes(detect_negative=d.between(0, 1), detect_positive=d.between(0, 1)))


@of("Where")
def where(d: Draw) -> Node:
    shape = d.shape(0, 4)
    dtype = d.dtype("X")
    return Node([d.array(np.bool_, d.to_broadcast(shape)), d.array(dtype, d.to_broadcast(shape)),
                 d.array(dtype, d.to_broadcast(shape))])


@of("Erf")
def erf(d: Draw) -> Node:
    return Node([d.array(d.dtype("input", "float", "double", "float16", "bfloat16"), d.shape())])


@of("Gelu")
def gelu(d: Draw) -> Node:
    return Node([d.array(d.dtype("X"), d.shape())], d.attributes(approximate=d.one_of("none", "tanh")))


@of("Hardmax", "Softmax", "LogSoftmax")
def softmax(d: Draw) -> Node:
    shape = d.shape(1, 4)
    return Node([d.array(d.dtype("input"), shape, edges=0.05)],
                d.attributes(axis=d.axis(len(shape)) if d.version >= 11 else d.between(0, len(shape) - 1)))


@of("CumSum", "CumProd")
def cumulate(d: Draw) -> Node:
    shape = d.shape(1, 4)
    axis = d.axis(len(shape))
    return Node([d.array(d.dtype("x"), shape, -2, 2, edges=0.05), np.array(axis, d.one_of(np.int32, np.int64))],
                d.attributes(exclusive=d.between(0, 1), reverse=d.between(0, 1)))


@of("RegexFullMatch")
def regex(d: Draw) -> Node:
    return Node([d.array(np.object_, d.shape(0, 3))],
                {"pattern": d.one_of("[a-z]+", ".*", "(a|b)", r"\w+@\w+\.com", r"[^ ]*", "", "c.t", r"\d+\.?\d*")})


@of("StringSplit")
def string_split(d: Draw) -> Node:
    return Node([d.array(np.object_, d.shape(0, 2))],
                d.attributes(delimiter=d.one_of(" ", ",", "", "a", "og"), maxsplit=d.between(0, 3)), 2)


@of("StringNormalizer")
def string_normalizer(d: Draw) -> Node:
    shape = [d.between(1, 5)] if d.maybe() else [1, d.between(1, 5)]
    return Node([d.array(np.object_, shape)],
                d.attributes(case_change_action=d.one_of("LOWER", "UPPER", "NONE"), is_case_sensitive=d.between(0, 1),
                             stopwords=[d.one_of("a", "cat", "A", "b")], locale="en_US"))


# --- reductions -------------------------------------------------------------------------------------


@of("ReduceL1", "ReduceL2", "ReduceLogSum", "ReduceLogSumExp", "ReduceMax", "ReduceMean", "ReduceMin",
    "ReduceProd", "ReduceSum", "ReduceSumSquare")
def reduce(d: Draw) -> Node:
    shape = d.shape(0, 4)
    low = 0.1 if d.name == "ReduceLogSum" else -3
    x = d.array(d.dtype("data"), shape, low, 3, edges=0.1 if d.name in ("ReduceMax", "ReduceMin") else 0.0)
    axes = d.axes(len(shape))
    if d.version < 11:
        axes = [axis % len(shape) for axis in axes]
    made = d.attributes(keepdims=d.between(0, 1), noop_with_empty_axes=d.between(0, 1))
    if d.has("axes"):
        return Node([x], {**made, **({"axes": axes} if axes else {})})
    return Node([x, listed(axes) if axes or d.maybe(0.3) else None], made)


@of("ArgMax", "ArgMin")
def arg_extreme(d: Draw) -> Node:
    shape = d.shape(1, 4)
    axis = d.axis(len(shape))
    if d.version < 11:
        axis %= len(shape)
    if shape[axis] == 0:
        raise Invalid("nothing to choose from")
    x = d.array(d.dtype("data"), shape, -2, 2, edges=0)
    if d.maybe():  # equals
        x = np.round(x.astype(np.float64)).astype(x.dtype) if is_float(x.dtype) else x
    return Node([x], {"axis": axis, **d.attributes(keepdims=d.between(0, 1), select_last_index=d.between(0, 1))})


@of("TopK")
def top_k(d: Draw) -> Node:
    shape = d.shape(1, 4)
    axis = d.axis(len(shape))
    if d.version < 11:
        axis %= len(shape)
    k = d.between(0 if d.version >= 10 else 1, max(shape[axis], 0 if d.version >= 10 else 1))
    if k > shape[axis]:
        raise Invalid("k is beyond the size")
    made = {"axis": axis, **d.attributes(largest=d.between(0, 1))}
    x = d.array(d.dtype("X"), shape, -9, 9, edges=0)
    return Node([x, ints(k)], made, 2) if d.version >= 10 else Node([x], {**made, "k": k}, 2)


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
        from drawing import DTYPES
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


# --- products ----------------------------------------------------------------------------------------


@of("MatMul", "MatMulInteger")
def matmul(d: Draw) -> Node:
    batch = d.shape(0, 2)
    m, k, n = d.size(), d.size(), d.size()
    left, right = d.to_broadcast(batch) + [m, k], d.to_broadcast(batch) + [k, n]
    if d.maybe(0.1):
        left = [k]
    if d.maybe(0.1):
        right = [k]
    if d.name == "MatMul":
        dtype = d.dtype("A")
        return Node([d.array(dtype, left, edges=0), d.array(dtype, right, edges=0)])
    a, b = d.dtype("A"), d.dtype("B")
    za = d.array(a, []) if d.maybe() else None
    zb = d.array(b, [] if d.maybe(0.6) or right == [k] else [right[-1]]) if d.maybe() else None
    return Node([d.array(a, left, -99, 200), d.array(b, right, -99, 200), za, zb])


@of("Gemm")
def gemm(d: Draw) -> Node:
    m, k, n = d.size(), d.size(), d.size()
    ta, tb = d.between(0, 1), d.between(0, 1)
    dtype = d.dtype("A")
    c = d.array(dtype, d.to_broadcast([m, n]), edges=0) if d.version < 11 or d.maybe(0.7) else None
    numbers = {} if not is_float(dtype) else d.attributes(alpha=d.real(), beta=d.real())
    return Node([d.array(dtype, [k, m] if ta else [m, k], edges=0), d.array(dtype, [n, k] if tb else [k, n], edges=0), c],
                {**({"transA": ta} if ta or d.maybe() else {}), **({"transB": tb} if tb or d.maybe() else {}), **numbers})


@of("Einsum")
def einsum(d: Draw) -> Node:
    sizes = {letter: d.between(1, 4) for letter in "bijk"}
    equation = d.one_of("ij,jk->ik", "ij,jk", "bij,bjk->bik", "ii->i", "ii", "ij->ji", "ij->", "i,j->ij", "ij,ij->i",
                        "...ij,...jk->...ik", "bij->b", "i,i->", "b...->...b", "ij,jk,ki->", " ij , jk -> k ")
    lead = d.shape(0, 2)
    inputs = []
    dtype = d.dtype("Inputs")
    for term in equation.replace(" ", "").split("->")[0].split(","):
        shape = []
        for letter in term.replace("...", "."):
            shape += lead if letter == "." else [sizes[letter]]
        inputs.append(d.array(dtype, shape, edges=0))
    return Node(inputs, {"equation": equation})


@of("Det")
def det(d: Draw) -> Node:
    n = d.between(1, 4)
    return Node([d.array(d.dtype("X"), d.shape(0, 2) + [n, n], edges=0)])


# --- windows ------------------------------------------------------------------------------------------


class Windows:
    """The attributes that convolutions and pooling share, for a kernel that fits its input."""

    def __init__(self, d: Draw, spatial: int | None = None):
        self.rank = spatial or d.one_of(1, 2, 2, 2, 3)
        self.kernel = [d.between(1, 3) for _ in range(self.rank)]
        self.strides = [d.between(1, 3) for _ in range(self.rank)]
        self.dilations = [d.between(1, 2) if d.has("dilations") else 1 for _ in range(self.rank)]
        reach = [(k - 1) * dil + 1 for k, dil in zip(self.kernel, self.dilations)]
        self.auto = d.one_of("NOTSET", "NOTSET", "VALID", "SAME_UPPER", "SAME_LOWER") if d.has("auto_pad") else "NOTSET"
        self.pads = [d.between(0, min(2, self.kernel[i % self.rank] - 1)) for i in range(2 * self.rank)]
        self.size = [r + d.between(0, 6) for r in reach]
        self.attributes = {}
        if self.auto == "NOTSET" and d.maybe(0.7):
            self.attributes["pads"] = self.pads
        elif self.auto != "NOTSET":
            self.attributes["auto_pad"] = self.auto
            if self.auto.startswith("SAME"):
                self.dilations = [1] * self.rank
        if d.name == "ConvTranspose":  # which way SAME crops where windows leave gaps is not written down
            self.strides = [min(stride, k) for stride, k in zip(self.strides, self.kernel)]
        if d.maybe(0.7):
            self.attributes["strides"] = self.strides
        if any(x != 1 for x in self.dilations):
            self.attributes["dilations"] = self.dilations


@of("Conv", "ConvInteger", "QLinearConv")
def conv(d: Draw) -> Node:
    w = Windows(d)
    group = d.one_of(1, 1, 2, 3)
    channels, outputs = group * d.between(1, 3), group * d.between(1, 3)
    if d.maybe(0.15):
        channels = outputs = group
    made = dict(w.attributes)
    if d.maybe():
        made["kernel_shape"] = w.kernel
    if group != 1 or d.maybe():
        made["group"] = group
    x_shape = [d.between(1, 2), channels, *w.size]
    w_shape = [outputs, channels // group, *w.kernel]
    if d.name == "Conv":
        dtype = d.dtype("X")
        bias = d.array(dtype, [outputs], edges=0) if d.maybe() else None
        return Node([d.array(dtype, x_shape, edges=0), d.array(dtype, w_shape, edges=0), bias], made)
    tx, tw = d.dtype("x"), d.dtype("w")
    x, weights = d.array(tx, x_shape, -120, 250), d.array(tw, w_shape, -120, 250)
    if d.name == "ConvInteger":
        zx = d.array(tx, []) if d.maybe() else None
        zw = d.array(tw, [] if d.maybe() else [outputs]) if d.maybe() else None
        return Node([x, weights, zx, zw], made)
    many = [outputs] if d.maybe() else []
    scale = lambda shape: d.numpy.uniform(0.01, 0.1, shape).astype(np.float32)  # noqa: E731
    bias = d.array(np.int32, [outputs], -500, 500, edges=0) if d.maybe() else None
    return Node([x, scale([]), d.array(tx, []), weights, scale(many), d.array(tw, many), scale([]) * 10,
                 d.array(d.dtype("y_zero_point"), []), bias], made)


@of("ConvTranspose")
def conv_transpose(d: Draw) -> Node:
    w = Windows(d)
    group = d.one_of(1, 1, 2)
    channels, outputs = group * d.between(1, 3), d.between(1, 3)
    made = dict(w.attributes)
    if group != 1:
        made["group"] = group
    if d.maybe(0.3) and "strides" in made:
        made["output_padding"] = [d.between(0, stride - 1) for stride in made["strides"]]
    if d.maybe():
        made["kernel_shape"] = w.kernel
    dtype = d.dtype("X")
    bias = d.array(dtype, [outputs * group], edges=0) if d.maybe() else None
    return Node([d.array(dtype, [d.between(1, 2), channels, *w.size], edges=0),
                 d.array(dtype, [channels, outputs, *w.kernel], edges=0), bias], made)


@of("DeformConv")
def deform_conv(d: Draw) -> Node:
    w = Windows(d, 2)
    group, offsets = d.one_of(1, 2), d.one_of(1, 2)
    channels, outputs = 2 * d.between(1, 2), 2 * d.between(1, 2)
    made = dict(w.attributes)
    pads, strides, dil = made.get("pads", [0] * 4), made.get("strides", [1] * 2), made.get("dilations", [1] * 2)
    out = [(w.size[i] + pads[i] + pads[i + 2] - (w.kernel[i] - 1) * dil[i] - 1) // strides[i] + 1 for i in range(2)]
    n, taps = d.between(1, 2), w.kernel[0] * w.kernel[1]
    dtype = d.dtype("X")
    real = lambda shape: d.array(dtype, shape, -1.5, 1.5, edges=0)  # noqa: E731
    return Node([real([n, channels, *w.size]), real([outputs, channels // group, *w.kernel]),
                 real([n, offsets * taps * 2, *out]), real([outputs]) if d.maybe() else None,
                 real([n, offsets * taps, *out]) if d.maybe() else None],
                {**made, "group": group, "offset_group": offsets, **d.attributes(kernel_shape=w.kernel)})


@of("MaxPool", "AveragePool", "LpPool")
def pool(d: Draw) -> Node:
    w = Windows(d)
    made = {"kernel_shape": w.kernel, **w.attributes,
            **d.attributes(ceil_mode=d.between(0, 1), count_include_pad=d.between(0, 1), p=d.between(1, 3),
                           storage_order=d.between(0, 1))}
    if d.name == "LpPool" and d.version == 1:
        made["p"] = float(made.get("p", 2))
    x = d.array(d.dtype("X"), [d.between(1, 2), d.between(1, 3), *w.size], edges=0)
    outputs = 2 if d.name == "MaxPool" and d.version >= 8 and d.maybe() else 1
    return Node([x], made, outputs)


@of("MaxUnpool")
def max_unpool(d: Draw) -> Node:
    shape = [d.between(1, 2), d.between(1, 2), d.between(1, 3), d.between(1, 3)]
    kernel = [2, 2]
    out = [shape[2] * 2, shape[3] * 2]
    total = shape[0] * shape[1] * out[0] * out[1]
    where = d.numpy.permutation(total)[:int(np.prod(shape))].reshape(shape).astype(np.int64)
    return Node([d.array(d.dtype("X"), shape, edges=0), where], {"kernel_shape": kernel, "strides": kernel})


@of("GlobalAveragePool", "GlobalMaxPool", "GlobalLpPool")
def global_pool(d: Draw) -> Node:
    return Node([d.array(d.dtype("X"), d.shape(3, 5, 1, 4), edges=0)],
                d.attributes(p=d.between(1, 3) if d.version > 1 else float(d.between(1, 3))))


@of("LRN")
def lrn(d: Draw) -> Node:
    return Node([d.array(d.dtype("X"), [d.between(1, 2), d.between(1, 7), *d.shape(1, 2)], edges=0)],
                {"size": d.between(1, 6), **d.attributes(alpha=d.real(0, 1), beta=d.real(0.1, 1), bias=d.real(0.5, 2))})


@of("Col2Im")
def col2im(d: Draw) -> Node:
    w = Windows(d, 2)
    pads, strides = w.attributes.get("pads", [0] * 4), w.attributes.get("strides", [1] * 2)
    dil = w.attributes.get("dilations", [1] * 2)
    blocks = np.prod([(w.size[i] + pads[i] + pads[i + 2] - (w.kernel[i] - 1) * dil[i] - 1) // strides[i] + 1 for i in range(2)])
    return Node([d.array(d.dtype("input", "float", "double"), [d.between(1, 2), d.between(1, 3) * int(np.prod(w.kernel)), int(blocks)], edges=0),
                 listed(w.size), listed(w.kernel)], w.attributes)


@of("MaxRoiPool")
def max_roi_pool(d: Draw) -> Node:
    n = d.between(1, 2)
    rois = [[d.between(0, n - 1), *sorted([d.between(0, 4), d.between(0, 4)])] for _ in range(d.between(1, 3))]
    boxes = [[r[0], r[1], d.between(0, 2), r[2], d.between(2, 5)] for r in rois]
    dtype = d.dtype("X")
    return Node([d.array(dtype, [n, d.between(1, 2), 6, 6], edges=0), np.array(boxes, dtype)],
                {"pooled_shape": [d.between(1, 3), d.between(1, 3)], **d.attributes(spatial_scale=1.0)})


@of("RoiAlign")
def roi_align(d: Draw) -> Node:
    n, count = d.between(1, 2), d.between(1, 3)
    dtype = d.dtype("X")
    corner = d.numpy.uniform(0, 3, (count, 2))
    boxes = np.concatenate([corner, corner + d.numpy.uniform(0.5, 4, (count, 2))], axis=1).astype(dtype)
    return Node([d.array(dtype, [n, d.between(1, 3), 6, 7], edges=0), boxes, d.indices(np.int64, [count], n, False)],
                d.attributes(mode=d.one_of("avg", "max"), output_height=d.between(1, 3), output_width=d.between(1, 3),
                             sampling_ratio=d.between(0, 3), spatial_scale=d.real(0.5, 1.5),
                             coordinate_transformation_mode=d.one_of("half_pixel", "output_half_pixel")))


# --- normalisation -------------------------------------------------------------------------------------


@of("BatchNormalization")
def batch_normalization(d: Draw) -> Node:
    shape = d.shape(2, 4)
    names = [formal.name for formal in d.schema.inputs]
    vector = lambda name, low: d.array(d.dtype(name), [shape[1]], low, 2, edges=0)  # noqa: E731
    made = d.attributes(epsilon=abs(d.real()) + 1e-3)
    training = d.version >= 14 and d.maybe(0.3) and np.prod(shape) > 0
    if training:
        made["training_mode"] = 1
        made.update(d.attributes(momentum=d.real(0, 1)))
    inputs = [d.array(d.dtype("X"), shape, edges=0), *(vector(name, -2) for name in names[1:4]), vector(names[4], 0.1)]
    return Node(inputs, made, 3 if training else 1)


@of("InstanceNormalization")
def instance_normalization(d: Draw) -> Node:
    shape = d.shape(3, 5)
    dtype = d.dtype("input")
    return Node([d.array(dtype, shape, edges=0), d.array(dtype, [shape[1]], edges=0), d.array(dtype, [shape[1]], edges=0)],
                d.attributes(epsilon=abs(d.real()) + 1e-3))


@of("GroupNormalization")
def group_normalization(d: Draw) -> Node:
    groups, each = d.between(1, 3), d.between(1, 3)
    shape = [d.between(1, 2), groups * each, *d.shape(1, 2)]
    dtype = d.dtype("X")
    vector = lambda: d.array(dtype, [shape[1]], edges=0)  # noqa: E731
    return Node([d.array(dtype, shape, edges=0), vector(), vector()],
                {"num_groups": groups, **d.attributes(epsilon=abs(d.real()) + 1e-3)})


@of("LayerNormalization", "RMSNormalization")
def layer_normalization(d: Draw) -> Node:
    shape = d.shape(1, 4)
    axis = d.axis(len(shape))
    inner = shape[axis:] if d.maybe(0.7) else d.to_broadcast(shape[axis:])
    dtype = d.dtype("X")
    scale = d.array(dtype if d.name == "LayerNormalization" else d.dtype("scale"), inner, edges=0)
    made = {"axis": axis, **d.attributes(epsilon=abs(d.real()) + 1e-3)}
    if d.name == "RMSNormalization":
        return Node([d.array(dtype, shape, edges=0), scale], made)
    bias = d.array(dtype, inner, edges=0) if d.maybe() else None
    return Node([d.array(dtype, shape, edges=0), scale, bias], made, 3 if np.dtype(dtype) == np.float32 and d.maybe(0.4) else 1)


@of("MeanVarianceNormalization")
def mean_variance(d: Draw) -> Node:
    shape = d.shape(4, 4)
    return Node([d.array(d.dtype("X"), shape, edges=0)], d.attributes(axes=sorted(a % 4 for a in d.axes(4)) or [0]))


@of("LpNormalization")
def lp_normalization(d: Draw) -> Node:
    shape = d.shape(1, 4)
    return Node([d.array(d.dtype("input"), shape, edges=0)], d.attributes(axis=d.axis(len(shape)), p=d.between(1, 2)))


@of("Dropout")
def dropout(d: Draw) -> Node:
    x = d.array(d.dtype("data"), d.shape(0, 4))
    if d.version < 12:
        return Node([x], d.attributes(ratio=d.real(0, 0.9)), d.between(1, 2))
    ratio = np.array(d.real(0, 0.9), d.dtype("ratio")) if d.maybe() else None
    return Node([x, ratio, np.array(False) if d.maybe() else None], {}, d.between(1, 2))


@of("NegativeLogLikelihoodLoss", "SoftmaxCrossEntropyLoss")
def loss(d: Draw) -> Node:
    n, classes = d.between(1, 3), d.between(1, 5)
    rest = d.shape(0, 2)
    first, second, third = (formal.name for formal in d.schema.inputs[:3])
    dtype = d.dtype(first)
    made = d.attributes(reduction=d.one_of("none", "mean", "sum"))
    labels = d.numpy.integers(0, classes, [n, *rest]).astype(d.dtype(second))
    if d.maybe(0.4):
        made["ignore_index"] = d.between(-1, classes - 1)
        if made["ignore_index"] < 0:
            labels.reshape(-1)[0] = made["ignore_index"]
    weight = np.asarray(d.numpy.uniform(0.1, 2, classes)).astype(dtype) if d.maybe() else None
    outputs = d.between(1, 2) if d.name.startswith("Softmax") else 1
    return Node([d.array(dtype, [n, classes, *rest], edges=0), labels, weight], made, outputs)


# --- quantisation ----------------------------------------------------------------------------------------


def quantisation_shape(d: Draw):
    """(shape of x, shape of the scales, attributes): per tensor, per axis or in blocks."""
    shape = d.shape(1, 3)
    axis = d.axis(len(shape))
    kind = d.between(0, 2)
    if kind == 0 or not d.has("axis"):
        return shape, [], {}
    if kind == 1 or not d.has("block_size"):
        return shape, [shape[axis]], {"axis": axis}
    block = d.between(1, 3)
    shape[axis] = block * d.between(1, 3)
    scales = list(shape)
    scales[axis] //= block
    return shape, scales, {"axis": axis, "block_size": block}


@of("QuantizeLinear")
def quantize(d: Draw) -> Node:
    shape, scales, made = quantisation_shape(d)
    names = [formal.name for formal in d.schema.inputs]
    x = d.array(d.dtype(names[0]), shape, -60, 60, edges=0)
    scale = np.asarray(d.numpy.uniform(0.1, 0.5, scales)).astype(d.dtype(names[1], "float", "float16", "bfloat16"))
    if x.dtype == np.int32 and d.dtype(names[1]) == np.int32:
        scale = d.array(np.int32, scales, 1, 3, edges=0)
    zero = d.array(d.dtype(names[2]), scales, -10, 10, edges=0.1)
    if is_float(zero.dtype):
        zero = np.zeros_like(zero)
    if zero.dtype == np.uint8 and d.maybe(0.3):
        zero = None
    return Node([x, scale, zero], {**made, **d.attributes(saturate=d.between(0, 1))})


@of("DequantizeLinear")
def dequantize(d: Draw) -> Node:
    shape, scales, made = quantisation_shape(d)
    x = d.array(d.dtype("x"), shape, -100, 200)
    scale = np.asarray(d.numpy.uniform(0.1, 0.5, scales)).astype(d.dtype("x_scale"))
    zero = d.array(x.dtype, scales, -10, 10) if d.maybe(0.7) else None
    if zero is not None and (x.dtype == np.int32 or is_float(x.dtype)):
        zero = np.zeros_like(zero)
    return Node([x, scale, zero], made)


@of("DynamicQuantizeLinear")
def dynamic_quantize(d: Draw) -> Node:
    return Node([d.array(np.float32, d.shape(1, 3), d.one_of(-4, 0.5), 9, edges=0)], {}, 3)


@of("QLinearMatMul")
def qlinear_matmul(d: Draw) -> Node:
    m, k, n = d.between(1, 4), d.between(1, 6), d.between(1, 4)
    batch = d.shape(0, 1)
    scale_type = d.dtype("a_scale") if d.version >= 21 else np.float32
    scale = lambda: np.asarray(d.numpy.uniform(0.02, 0.1, [])).astype(scale_type)  # noqa: E731
    a, b, y = (d.dtype(name, "int8", "uint8") for name in ("a", "b", "y_zero_point"))
    return Node([d.array(a, [*batch, m, k], -99, 200), scale(), d.array(a, [], -10, 10), d.array(b, [*batch, k, n], -99, 200),
                 scale(), d.array(b, [], -10, 10), (scale() * 8).astype(scale_type), d.array(y, [], -10, 10)])


# --- sampling --------------------------------------------------------------------------------------------


@of("Upsample")
def upsample(d: Draw) -> Node:
    shape = d.shape(2, 4, 1, 4)
    scales = [1.0] * (len(shape) - 2) + [d.one_of(1.0, 2.0, 1.5, 3.0) for _ in range(2)]
    x = d.array(d.dtype("X", "float", "double", "float16"), shape, edges=0)
    made = d.attributes(mode="nearest" if d.maybe() else "linear")
    if made.get("mode") == "linear" and len(shape) not in (2, 4):
        made["mode"] = "nearest"
    return Node([x, np.array(scales, np.float32)], made) if d.version >= 9 else Node([x], {**made, "scales": scales})


@of("Resize")
def resize(d: Draw) -> Node:
    shape = [d.between(1, 2), d.between(1, 2), d.between(1, 6), d.between(1, 6)][d.between(0, 2):]
    rank = len(shape)
    mode = d.one_of("nearest", "linear", "cubic") if d.version >= 11 else d.one_of("nearest", "linear")
    if mode == "cubic" and rank != 4:
        mode = "linear"
    if mode == "linear" and rank == 3:
        mode = "nearest"
    scales = [1.0] * (rank - 2) + [d.one_of(0.5, 0.6, 1.0, 1.3, 2.0, 3.0) for _ in range(2)]
    types = ["float", "double", "float16"]  # interpolated integers are cut off, wherever rounding left them
    x = d.array(d.dtype(d.schema.inputs[0].name, *types, *["int32", "uint8", "int8"] * (mode == "nearest")), shape, edges=0)
    if any(int(size * scale) < 1 for size, scale in zip(shape, scales)):
        raise Invalid("nothing would be left")
    if d.version == 10:
        return Node([x, np.array(scales, np.float32)], {"mode": mode})
    transformations = ["half_pixel", "asymmetric", "align_corners", "pytorch_half_pixel", "tf_crop_and_resize"]
    if d.version >= 19:
        transformations.append("half_pixel_symmetric")
    transformation = d.one_of(*transformations)
    made = {"mode": mode, "coordinate_transformation_mode": transformation}
    if mode == "nearest":
        made.update(d.attributes(nearest_mode=d.one_of("round_prefer_floor", "round_prefer_ceil", "floor", "ceil")))
    if mode == "cubic":
        made.update(d.attributes(cubic_coeff_a=d.one_of(-0.5, -0.75), exclude_outside=d.between(0, 1)))
    if mode != "nearest" and d.version >= 18 and min(scales) < 1 and transformation != "tf_crop_and_resize":
        made.update(d.attributes(antialias=1))
    roi = None
    if transformation == "tf_crop_and_resize":
        roi = np.array([0.0] * (rank - 2) + [0.07, 0.19] + [1.0] * (rank - 2) + [0.93, 1.11], np.float32)
        made.update(d.attributes(extrapolation_value=float(d.between(0, 3))))
    elif d.version == 11:
        roi = np.array([], np.float32)
    if d.maybe(0.6) and roi is None or d.version == 11 and roi is not None and roi.size == 0:
        return Node([x, roi, np.array(scales, np.float32)], made)
    sizes = shape[:rank - 2] + [d.between(1, 9), d.between(1, 9)]
    return Node([x, roi, np.array([], np.float32) if d.version == 11 else None, listed(sizes)], made)


@of("GridSample")
def grid_sample(d: Draw) -> Node:
    spatial = 2 if d.version < 20 or d.maybe(0.7) else 3
    n = d.between(1, 2)
    mode = d.one_of("bilinear", "nearest", "bicubic") if d.version < 20 else d.one_of(*["linear", "nearest"] + ["cubic"] * (spatial == 2))
    grid = d.numpy.uniform(-1.3, 1.3, [n, *[d.between(1, 4) for _ in range(spatial)], spatial]).astype(d.dtype("grid", "float", "double"))
    return Node([d.array(d.dtype("X", "float", "double"), [n, d.between(1, 2), *[d.between(2, 5) for _ in range(spatial)]], edges=0), grid],
                {"mode": mode, **d.attributes(padding_mode=d.one_of("zeros", "border", "reflection"), align_corners=d.between(0, 1))})


@of("AffineGrid")
def affine_grid(d: Draw) -> Node:
    spatial, n = d.one_of(2, 3), d.between(1, 2)
    return Node([d.array(d.dtype("theta"), [n, spatial, spatial + 1], edges=0),
                 listed([n, d.between(1, 2), *[d.between(2, 4) for _ in range(spatial)]])], d.attributes(align_corners=d.between(0, 1)))


@of("NonMaxSuppression")
def nms(d: Draw) -> Node:
    n, boxes, classes = d.between(1, 2), d.between(1, 6), d.between(1, 2)
    corner = d.numpy.uniform(0, 3, (n, boxes, 2))
    made = d.attributes(center_point_box=d.between(0, 1))
    places = np.concatenate([corner, corner + d.numpy.uniform(0.5, 3, (n, boxes, 2))], axis=2).astype(np.float32)
    return Node([places, d.numpy.random((n, classes, boxes)).astype(np.float32), ints(d.between(0, 4)) if d.maybe(0.9) else None,
                 np.array([d.real(0, 1)], np.float32) if d.maybe() else None,
                 np.array([d.real(0, 0.7)], np.float32) if d.maybe() else None], made)


# --- signals ----------------------------------------------------------------------------------------------


@of("BlackmanWindow", "HammingWindow", "HannWindow")
def window(d: Draw) -> Node:
    made = d.attributes(periodic=d.between(0, 1))
    if d.maybe():
        made["output_datatype"] = d.element_attribute("float", "double")
    return Node([np.array(d.between(2, 12), d.dtype("size"))], made)


@of("MelWeightMatrix")
def mel(d: Draw) -> Node:
    integer = lambda value: np.array(value, np.int64)  # noqa: E731
    return Node([integer(d.between(1, 8)), integer(d.one_of(16, 32, 64)), integer(d.one_of(8000, 16000)),
                 np.array(d.real(0, 100), np.float32), np.array(d.real(1000, 4000), np.float32)])


@of("DFT")
def dft(d: Draw) -> Node:
    shape = [d.between(1, 2), d.between(1, 6), d.between(1, 6)]
    inverse = d.between(0, 1)
    onesided = d.between(0, 1) if not inverse else 0
    x = d.array(d.dtype("input", "float", "double"), [*shape, 1 if onesided or (d.maybe() and not inverse) else 2], edges=0)
    length = np.array(d.between(1, 8), np.int64) if d.maybe(0.4) else None
    made = {"inverse": inverse, "onesided": onesided}
    axis = d.one_of(1, 2, -2)
    return Node([x, length], {**made, "axis": axis % 4}) if d.version < 20 else Node([x, length, np.array(axis, np.int64)], made)


@of("STFT")
def stft(d: Draw) -> Node:
    length, frame = d.between(8, 16), d.between(2, 8)
    dtype = d.dtype("signal", "float", "double")
    use_window = d.maybe()
    return Node([d.array(dtype, [d.between(1, 2), length, 1], edges=0), np.array(d.between(1, 4), np.int64),
                 d.array(dtype, [frame], edges=0) if use_window else None,
                 np.array(frame, np.int64) if not use_window or d.maybe() else None], d.attributes(onesided=d.between(0, 1)))


# --- recurrent -----------------------------------------------------------------------------------------------


@of("RNN", "GRU", "LSTM")
def recurrent(d: Draw) -> Node:
    gates = {"RNN": 1, "GRU": 3, "LSTM": 4}[d.name]
    direction = d.one_of("forward", "reverse", "bidirectional")
    ways = 2 if direction == "bidirectional" else 1
    steps, n, width, hidden = d.between(1, 4), d.between(1, 3), d.between(1, 4), d.between(1, 4)
    layout = d.between(0, 1) if d.version >= 14 and d.maybe(0.3) else 0
    dtype = d.dtype("X", "float", "double")
    real = lambda *shape: d.array(dtype, shape, -1, 1, edges=0)  # noqa: E731
    made = {"hidden_size": hidden, "direction": direction, **({"layout": 1} if layout else {}),
            **d.attributes(clip=d.real(0.2, 3), linear_before_reset=d.between(0, 1))}
    if d.name == "LSTM":
        made.update(d.attributes(input_forget=d.between(0, 1)) if d.maybe(0.3) else {})
    if d.maybe(0.4):
        count = {"RNN": 1, "GRU": 2, "LSTM": 3}[d.name] * ways
        made["activations"] = [d.one_of("Relu", "Tanh", "Sigmoid", "Softsign", "Softplus") for _ in range(count)]
    lens = d.numpy.integers(1, steps + 1, n).astype(np.int32) if d.maybe() else None
    state = (lambda: real(n, ways, hidden) if layout else real(ways, n, hidden))
    inputs = [real(n, steps, width) if layout else real(steps, n, width), real(ways, gates * hidden, width),
              real(ways, gates * hidden, hidden), real(ways, 2 * gates * hidden) if d.maybe() else None, lens,
              state() if d.maybe() else None]
    if d.name == "LSTM":
        inputs += [state() if d.maybe() else None, real(ways, 3 * hidden) if d.maybe(0.3) else None]
    return Node(inputs, made, 3 if d.name == "LSTM" else 2)


# --- attention -------------------------------------------------------------------------------------------------


@of("Attention")
def attention(d: Draw) -> Node:
    n, kv_heads, size, value_size = d.between(1, 2), d.between(1, 2), d.between(1, 4), d.between(1, 4)
    heads = kv_heads * d.between(1, 2)
    queries, keys, past = d.between(1, 4), d.between(1, 4), d.between(1, 3)
    q, v = d.dtype("Q", "float", "double"), d.dtype("V", "float", "double")
    flat = d.maybe(0.3)
    real = lambda dtype, *shape: d.array(dtype, shape, -1, 1, edges=0)  # noqa: E731
    heads_of = lambda dtype, count, length, width: (  # noqa: E731
        real(dtype, n, length, count * width) if flat else real(dtype, n, count, length, width))
    made = d.attributes(is_causal=d.between(0, 1), scale=d.real(0.1, 1), softcap=d.real(0.5, 2))
    if flat:
        made.update(q_num_heads=heads, kv_num_heads=kv_heads)
    with_past = d.maybe(0.3)
    total = keys + (past if with_past else 0)
    mask = None
    if d.maybe():
        mask_shape = d.one_of([queries, total], [n, 1, queries, total], [1, heads, queries, total])
        kind = d.dtype("attn_mask", "bool", "float", "double")
        if np.dtype(kind) != np.bool_:
            kind = q
            d.types[next(f.type_str for f in d.schema.inputs if f.name == "attn_mask")] = "float"
        mask = d.array(kind, mask_shape, edges=0)
        if mask.dtype == np.bool_:
            mask[..., 0] = True
            if made.get("is_causal"):
                mask[...] = True
    inputs = [heads_of(q, heads, queries, size), heads_of(q, kv_heads, keys, size), heads_of(v, kv_heads, keys, value_size), mask]
    outputs = 1
    if with_past:
        inputs += [real(q, n, kv_heads, past, size), real(v, n, kv_heads, past, value_size)]
        outputs = 3
    return Node(inputs, made, outputs)


@of("RotaryEmbedding")
def rotary(d: Draw) -> Node:
    n, heads, length, half = d.between(1, 2), d.between(1, 3), d.between(1, 4), d.between(1, 3)
    dtype = d.dtype("X", "float", "float16")
    real = lambda *shape: d.array(dtype, shape, -1, 1, edges=0)  # noqa: E731
    made = d.attributes(interleaved=d.between(0, 1))
    rotated, size = half, 2 * half
    if d.maybe(0.3):
        size += 2 * d.between(1, 2)
        made["rotary_embedding_dim"] = 2 * half
    flat = d.maybe()
    if flat or d.maybe(0.2):
        made["num_heads"] = heads
    x = real(n, length, heads * size) if flat else real(n, heads, length, size)
    if d.maybe():
        return Node([x, real(8, rotated), real(8, rotated), d.indices(np.int64, [n, length], 8, False)], made)
    return Node([x, real(n, length, rotated), real(n, length, rotated)], made)


# --- sequences and optionals -----------------------------------------------------------------------------------


def tensors(d: Draw, dtype, least: int = 0) -> list:
    shape = d.shape(0, 3)
    alike = d.maybe(0.6)
    return [d.array(dtype, shape if alike else d.shape(0, 3)) for _ in range(d.between(max(least, 1), 4))]


def position(d: Draw, count: int):
    return np.array(d.between(-count, count - 1), d.one_of(np.int32, np.int64))


@of("SequenceAt", "SequenceErase", "SequenceLength", "SequenceInsert", "SequenceConstruct", "SequenceEmpty")
def sequence(d: Draw) -> Node:
    if d.name == "SequenceEmpty":
        return Node([], d.attributes(dtype=d.element_attribute("float", "int64", "double")))
    items = tensors(d, d.one_of(np.float32, np.int64, np.float64, np.bool_, np.object_))
    if d.name == "SequenceConstruct":
        return Node(items)
    if d.name == "SequenceLength":
        return Node([items])
    if d.name == "SequenceInsert":
        at = np.array(d.between(-len(items), len(items)), np.int64) if d.maybe(0.7) else None
        return Node([items, d.array(items[0].dtype, d.shape(0, 3)), at])
    return Node([items, position(d, len(items)) if d.name == "SequenceAt" or d.maybe(0.8) else None])


@of("ConcatFromSequence")
def concat_from_sequence(d: Draw) -> Node:
    shape = d.shape(1, 3)
    new = d.between(0, 1)
    axis = d.axis(len(shape) + new)
    items = []
    for _ in range(d.between(1, 4)):
        if not new:
            shape[axis] = d.between(0, 3)
        items.append(d.array(np.float32, shape))
    return Node([items], {"axis": axis, **({"new_axis": 1} if new else d.attributes(new_axis=0))})


@of("SplitToSequence")
def split_to_sequence(d: Draw) -> Node:
    shape = d.shape(1, 3)
    axis = d.axis(len(shape))
    dtype = d.dtype("input")
    made = {"axis": axis}
    kind = d.between(0, 2)
    if kind == 0:
        return Node([d.array(dtype, shape)], {**made, **d.attributes(keepdims=d.between(0, 1))})
    if kind == 1:
        return Node([d.array(dtype, shape), np.array(d.between(1, 3), np.int64)], made)
    sizes = [d.between(0, 3) for _ in range(d.between(1, 3))]
    shape[axis] = sum(sizes)
    return Node([d.array(dtype, shape), listed(sizes)], made)


# --- the rest ----------------------------------------------------------------------------------------------------


@of("Constant")
def constant(d: Draw) -> Node:
    kinds = {"value": ("tensor", d.array(d.one_of(np.float32, np.int64, np.bool_, np.float16, np.object_), d.shape(0, 3)))}
    if d.version >= 12:
        kinds.update(value_float=d.real(), value_floats=[d.real(), d.real()], value_int=d.between(-9, 9),
                     value_ints=[1, -2, 3], value_string="word", value_strings=["a", ""])
    name = d.one_of(*kinds)
    return Node([], {name: kinds[name]})


@of("TfIdfVectorizer")
def tfidf(d: Draw) -> Node:
    grams = [1, 2, 3, 4, 1, 2, 2, 3, 3, 1]  # four of one element, three of two
    made = {"mode": d.one_of("TF", "IDF", "TFIDF"), "min_gram_length": d.between(1, 2), "max_gram_length": 2,
            "max_skip_count": d.between(0, 3), "ngram_counts": [0, 4], "ngram_indexes": d.random.sample(range(7), 7),
            "pool_int64s": grams}
    if d.maybe():
        made["weights"] = [d.real(0.1, 2) for _ in range(7)]
    shape = [d.between(1, 9)] if d.maybe() else [d.between(1, 3), d.between(1, 9)]
    return Node([d.numpy.integers(1, 5, shape).astype(d.one_of(np.int32, np.int64))], made)


@of("SwiGLU")
def swiglu(d: Draw) -> Node:
    dtype, shape = d.dtype("A"), d.shape(0, 4)
    return Node([d.array(dtype, shape, edges=0), d.array(dtype, shape, edges=0)], d.attributes(alpha=d.real()))


# Operators that need more than a node of random inputs, with the reason; their own tests cover them.
LEFT_OUT = {
    "Bernoulli": "random", "Multinomial": "random", "RandomNormal": "random", "RandomNormalLike": "random",
    "RandomUniform": "random", "RandomUniformLike": "random",
    "ImageDecoder": "needs pictures", "If": "needs bodies", "Loop": "needs bodies", "Scan": "needs bodies",
    "SequenceMap": "needs bodies", "Optional": "no evaluator takes optional inputs of a graph",
    "OptionalGetElement": "as Optional", "OptionalHasElement": "as Optional",
    "CausalConvWithState": "no second implementation", "LinearAttention": "no second implementation",
}
