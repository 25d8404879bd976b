"""How nodes of ai.onnx are drawn where anything at random would be invalid: one function for each family."""

from __future__ import annotations

import hints_layers
import hints_models
import hints_movement
import numpy as np
from drawing import DTYPES, Draw, Hints, Invalid, Node, ints, is_float, listed
from onnx import TensorProto, helper

HINTS = Hints(hints_movement.HINTS | hints_layers.HINTS | hints_models.HINTS)
of = HINTS.of


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
    to = node.attributes.pop("to")
    name = next(t for t in DTYPES if (TensorProto.STRING if t == "string" else helper.np_dtype_to_tensor_dtype(np.dtype(DTYPES[t]))) == to)
    return Node([node.inputs[0], d.array(DTYPES[name], [1])], node.attributes)


@of("BitCast")
def bit_cast(d: Draw) -> Node:
    pairs = {"float": "int32", "int32": "uint32", "double": "uint64", "int64": "double", "float16": "int16",
             "bfloat16": "uint16", "uint8": "int8", "int16": "float16", "uint32": "float"}
    source = d.type_of("T1", *pairs)
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
