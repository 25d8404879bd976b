"""Tensors of all element types in one graph: arithmetic, casts, quantising, movement, folds, sequences and branches.

Sizes are 0 and 1 as often as others. A value is known to be a multiple of a power of two below a bound, so that most of
what is added and multiplied is exact whatever the order; steps that jump take only such values. Some graphs then get what
exporters leave: nodes twice, nodes that nobody reads, outputs that are inputs or weights, calls of functions.
"""

from __future__ import annotations

from typing import NamedTuple

import ml_dtypes
import numpy as np
import onnx
from onnx import TensorProto, helper, numpy_helper

from .maker import BFLOAT, DOUBLE, FLOAT, HALF, Drawn, Graph

OPSET = 21
DIGITS = {FLOAT: 24, DOUBLE: 53, HALF: 11, BFLOAT: 8}
INTEGERS = [np.dtype(t) for t in (np.int64, np.int32, np.int8, np.uint8, np.int16, np.uint16, np.uint32, np.uint64)]
BOOL, INT64, INT32 = np.dtype(bool), np.dtype(np.int64), np.dtype(np.int32)
FLOATS = [FLOAT, FLOAT, FLOAT, DOUBLE, HALF, BFLOAT]
SMALL = [TensorProto.FLOAT8E4M3FN, TensorProto.FLOAT8E5M2]
SIZES = (0, 1, 1, 2, 3, 4, 5, 8, 17)
Shape = tuple


class Known(NamedTuple):
    dtype: np.dtype
    shape: tuple
    fine: int  # multiples of 2^-fine
    most: float  # magnitudes are at most this
    exact: bool  # the same bits whoever computes it


def number_of(dtype) -> int:
    return helper.np_dtype_to_tensor_dtype(np.dtype(dtype))


def is_float(dtype) -> bool:
    return dtype in DIGITS


class Mixed(Drawn):
    def __init__(self, seed: int):
        super().__init__(seed)
        self.numbers = np.random.default_rng(seed)
        self.nodes: list[onnx.NodeProto] = []
        self.weights: list[onnx.TensorProto] = []
        self.values: dict[str, Known] = {}
        self.sequences: dict[str, list[Known]] = {}
        self.inputs: dict[str, Known] = {}
        self.functions: list[onnx.FunctionProto] = []
        self.read: set[str] = set()
        self.hidden: set[str] = set()  # made inside a body

    # --- what steps use ---

    def weight(self, array) -> str:
        name = f"w{len(self.weights)}_{self.made}"
        self.weights.append(numpy_helper.from_array(np.asarray(array), name))
        return name

    def ints(self, *values: int) -> str:
        return self.weight(np.array(values, np.int64))

    def known(self, dtype, shape, fine=0, most=None, exact=True) -> Known:
        dtype = np.dtype(dtype)
        if dtype.kind in "iu":
            limit = float(np.iinfo(dtype).max)
            most = limit if most is None or most > limit else most
            return Known(dtype, tuple(shape), 0, most, exact)
        if dtype == BOOL:
            return Known(dtype, tuple(shape), 0, 1, exact)
        return Known(dtype, tuple(shape), fine, most if most is not None else 1e9, exact)

    def sized(self, known: Known) -> Known:
        """Rounded to halves, values are the same only where nothing was rounded."""
        fits = known.most * 2.0**known.fine <= 2.0 ** DIGITS.get(known.dtype, 99)
        return known if fits or known.dtype in (FLOAT, DOUBLE) else known._replace(exact=False)

    def add(self, kind: str, inputs: list[str], known: Known, domain: str = "", **attributes) -> str:
        name = self.name()
        self.nodes.append(helper.make_node(kind, inputs, [name], domain=domain or None, **attributes))
        for one in inputs:
            if one in self.values:
                known = known._replace(exact=known.exact and self.values[one].exact)
        self.values[name] = known
        self.read.update(inputs)
        return name

    def like(self, x: str, **changed) -> Known:
        return self.values[x]._replace(**changed)

    def choose(self, test=lambda known: True) -> str | None:
        fitting = [name for name, known in self.values.items() if test(known)]
        if not fitting:
            return None
        return self.random.choice(fitting[-6:] if self.chance(0.6) else fitting)

    def array(self, known: Known) -> np.ndarray:
        if known.dtype == BOOL:
            return self.numbers.integers(0, 2, known.shape).astype(bool)
        if known.dtype.kind == "u":
            return self.numbers.integers(0, int(known.most) + 1, known.shape).astype(known.dtype)
        if known.dtype.kind == "i":
            return self.numbers.integers(-int(known.most), int(known.most) + 1, known.shape).astype(known.dtype)
        steps = int(known.most * 2**known.fine)
        return (self.numbers.integers(-steps, steps + 1, known.shape) / 2.0**known.fine).astype(known.dtype)

    def fresh(self, dtype, shape) -> Known:
        return self.known(dtype, shape, 2, 4.0) if is_float(dtype) else self.known(dtype, shape, 0, 7)

    def shape(self, most: int = 4) -> tuple:
        return tuple(self.random.choice(SIZES) for _ in range(self.random.randint(0, most)))

    def source(self, dtype, shape) -> str:
        """A new input, or a weight."""
        known = self.fresh(dtype, shape)
        if self.chance(0.5):
            name = f"x{len(self.inputs)}"
            self.inputs[name] = known
        else:
            name = self.weight(self.array(known))
        self.values[name] = known
        return name

    def other(self, x: str) -> str:
        """Something that broadcasts to x."""
        known = self.values[x]
        same = [name for name, one in self.values.items() if one.dtype == known.dtype and one.shape == known.shape]
        if self.chance(0.5):
            return self.random.choice(same)
        shape = tuple(1 if self.chance(0.4) else size for size in known.shape)[self.random.randint(0, len(known.shape)):]
        return self.source(known.dtype, shape)

    def axis(self, x: str) -> int:
        rank = len(self.values[x].shape)
        return self.random.randrange(-rank, rank)

    # --- steps ---

    def arithmetic(self) -> None:
        x = self.choose(lambda k: k.dtype != BOOL)
        if x is None:
            return
        a = self.values[x]
        kind = self.pick("Add", "Sub", "Mul", "Min", "Max", "Neg", "Abs", "Clip", "Where", "compare", "Sign", "Div", "Mod")
        unsigned = a.dtype.kind == "u"
        if kind in ("Add", "Sub", "Mul", "Min", "Max"):
            y = self.other(x)
            b = self.values[y]
            fine, most = max(a.fine, b.fine), max(a.most, b.most)
            if kind in ("Add", "Sub"):
                most = a.most + b.most
            if kind == "Mul":
                fine, most = a.fine + b.fine, a.most * b.most
            inputs = [x, y] if self.chance(0.5) else [y, x]
            self.add(kind, inputs, self.sized(self.known(a.dtype, a.shape, fine, most)))
        elif kind in ("Neg", "Abs", "Sign"):
            if not unsigned or kind == "Abs":
                self.add(kind, [x], self.like(x) if kind != "Sign" else self.like(x, fine=0, most=1))
        elif kind == "Clip":
            bounds = [self.weight(np.asarray(v, a.dtype)) for v in ((0, 3) if unsigned else (-2, 3))]
            self.add("Clip", [x, *bounds], self.like(x, most=min(a.most, 3)))
        elif kind == "Where":
            y = self.other(x)
            test = self.choose(lambda k: k.dtype == BOOL and k.shape == a.shape) or self.source(BOOL, a.shape)
            b = self.values[y]
            self.add("Where", [test, x, y], self.like(x, fine=max(a.fine, b.fine), most=max(a.most, b.most)))
        elif kind == "compare":
            if a.exact:
                y = self.other(x)
                if self.values[y].exact:
                    self.add(self.pick("Less", "Equal", "GreaterOrEqual"), [x, y], self.known(BOOL, a.shape))
        elif kind in ("Div", "Mod") and a.dtype.kind in "iu":
            self.add(kind, [x, self.weight(np.asarray(self.pick(1, 2, 3, 7), a.dtype))], self.like(x))
        elif kind == "Div" and is_float(a.dtype):
            self.add("Div", [x, self.weight(np.asarray(self.pick(0.5, 2, 4), a.dtype))], self.sized(self.like(x, fine=a.fine + 2, most=2 * a.most)))

    def bits(self) -> None:
        x = self.choose(lambda k: k.dtype.kind in "iub")
        if x is None:
            return
        a = self.values[x]
        y = self.other(x)
        if a.dtype == BOOL:
            kind = self.pick("And", "Or", "Xor", "Not", "Equal")
            self.add(kind, [x] if kind == "Not" else [x, y], self.known(BOOL, a.shape))
            return
        kind = self.pick("BitwiseAnd", "BitwiseOr", "BitwiseXor", "BitwiseNot", "BitShift")
        if kind == "BitShift":
            if a.dtype.kind == "u":
                self.add(kind, [x, self.weight(np.asarray(self.pick(0, 1, 3), a.dtype))], self.known(a.dtype, a.shape), direction=self.pick("LEFT", "RIGHT"))
            return
        self.add(kind, [x] if kind == "BitwiseNot" else [x, y], self.known(a.dtype, a.shape))

    def cast(self) -> None:
        x = self.choose()
        a = self.values[x]
        to = self.random.choice([*FLOATS, *INTEGERS, BOOL])
        if is_float(a.dtype) and not is_float(to):
            if not a.exact or (to != BOOL and a.most > (100 if to.itemsize == 1 else 30000)):
                return
            if to.kind == "u":
                x = self.add("Abs", [x], self.like(x))
        if to in (HALF, BFLOAT) and a.most > 60000:
            return
        kept = self.known(to, a.shape, a.fine, a.most)
        if to in DIGITS and not is_float(a.dtype) and a.most > 2.0 ** DIGITS[to]:
            kept = kept._replace(exact=False)
        if to in DIGITS and is_float(a.dtype):
            kept = self.sized(kept)
        if to in INTEGERS and not is_float(a.dtype):
            kept = self.known(to, a.shape)
        if self.chance(0.8):
            self.add("Cast", [x], kept, to=number_of(to))
        else:
            self.add("CastLike", [x, self.source(to, (1,))], kept)

    def quantise(self) -> None:
        x = self.choose(lambda k: k.dtype in (FLOAT, HALF, FLOAT) and k.exact and k.most < 1e4 and len(k.shape) > 0)
        if x is None:
            return
        a = self.values[x]
        kind = self.pick(TensorProto.INT8, TensorProto.UINT8, TensorProto.INT16, TensorProto.UINT16, TensorProto.INT4, TensorProto.UINT4, *SMALL)
        how = self.random.randrange(3)
        axis = self.axis(x)
        scales = 2.0 ** self.numbers.integers(-2, 1, a.shape[axis] if how else ())
        scale = self.weight(scales.astype(a.dtype))
        inputs = [scale]
        if kind in SMALL or self.chance(0.7):
            name = f"z{self.made}_{len(self.weights)}"
            values = np.zeros(scales.shape) if kind in (*SMALL, TensorProto.INT8) else self.numbers.integers(0, 4, scales.shape)
            self.weights.append(helper.make_tensor(name, kind, scales.shape, values.flatten().tolist()))
            inputs.append(name)
            attributes = {}
        else:
            attributes = {"output_dtype": kind}
        if how:
            attributes["axis"] = axis
        q = self.name()
        self.nodes.append(helper.make_node("QuantizeLinear", [x, *inputs], [q], **attributes))
        self.read.add(x)
        attributes.pop("output_dtype", None)
        limit = {TensorProto.INT8: 128, TensorProto.UINT8: 256, TensorProto.INT4: 16, TensorProto.UINT4: 16}.get(kind, 1e4)
        fine = 2 if kind not in SMALL else 12
        self.add("DequantizeLinear", [q, *inputs], self.sized(self.known(a.dtype, a.shape, fine, min(limit, 4 * a.most + 5))._replace(exact=a.exact)), **attributes)

    def dynamic(self) -> None:
        x = self.choose(lambda k: k.dtype == FLOAT and k.exact and np.prod(k.shape) > 0)
        if x is None:
            return
        names = [self.name() for _ in range(3)]
        self.nodes.append(helper.make_node("DynamicQuantizeLinear", [x], names))
        self.read.add(x)
        shape = self.values[x].shape
        for name, known in zip(names, (self.known(np.uint8, shape), self.known(FLOAT, (), 0, 1e3), self.known(np.uint8, ()))):
            self.values[name] = known
        self.add("DequantizeLinear", [names[0], names[1], names[2]], self.known(FLOAT, shape, 0, 2 * self.values[x].most + 1, False))

    def product(self) -> None:
        x = self.choose(lambda k: k.dtype in (FLOAT, FLOAT, DOUBLE, HALF, INT32, INT64, np.dtype(np.uint32)) and len(k.shape) >= 2)
        if x is None:
            return
        a = self.values[x]
        inner, columns = a.shape[-1], self.random.choice(SIZES)
        batch = a.shape[:-2] if self.chance(0.5) else ()
        y = self.source(a.dtype, (*batch, inner, columns))
        b = self.values[y]
        most, fine = a.most * b.most * max(inner, 1), a.fine + b.fine
        fits = most * 2.0**fine <= 2.0 ** DIGITS.get(a.dtype, 64)
        self.add("MatMul", [x, y], self.known(a.dtype, (*a.shape[:-1], columns), fine, most, fits))

    def move(self) -> None:
        x = self.choose(lambda k: len(k.shape) > 0)
        if x is None:
            return
        a = self.values[x]
        rank, axis = len(a.shape), self.axis(x)
        front = axis % rank
        size = a.shape[front]
        kind = self.pick("Transpose", "Concat", "Slice", "Gather", "Pad", "Tile", "Expand", "Flatten", "Split", "GatherElements", "Trilu",
                         "Unsqueeze", "Reshape", "Compress", "ScatterElements", "NonZero", "GatherND", "Reverse", "Shape", "OneHot", "Unique")
        set_size = lambda n: (*a.shape[:front], n, *a.shape[front + 1:])
        if kind == "Transpose":
            order = self.random.sample(range(rank), rank)
            self.add(kind, [x], self.like(x, shape=tuple(a.shape[i] for i in order)), perm=order)
        elif kind == "Concat":
            parts = [x] + [self.random.choice((x, self.source(a.dtype, set_size(self.random.choice(SIZES))))) for _ in range(self.random.randint(0, 2))]
            self.random.shuffle(parts)
            every = [self.values[p] for p in parts]
            self.add(kind, parts, self.like(x, shape=set_size(sum(p.shape[front] for p in every)), most=max(p.most for p in every),
                                            fine=max(p.fine for p in every)), axis=axis)
        elif kind == "Slice":
            begin, end, step = self.random.randint(-size - 1, size + 1), self.random.randint(-size - 2, size + 2), self.pick(1, 1, 2, -1, -2, 5)
            if self.chance(0.2):
                end = self.pick(2**63 - 1, -2**63)
            count = len(range(*slice(begin, None if end == -2**63 and step < 0 else end, step).indices(size)))
            if step < 0 and end < 0 and end + size < 0:
                count = len(range(*slice(begin, None, step).indices(size)))
            if step < 0 and begin + size < 0:
                return  # evaluators differ
            self.add(kind, [x, self.ints(begin), self.ints(end), self.ints(axis), self.ints(step)], self.like(x, shape=set_size(count)))
        elif kind == "Gather" and size:
            shape = self.shape(2)
            indices = self.weight(self.numbers.integers(-size, size, shape))
            self.add(kind, [x, indices], self.like(x, shape=(*a.shape[:front], *shape, *a.shape[front + 1:])), axis=axis)
        elif kind == "Pad":
            pads = [self.random.randint(-1 if s > 1 else 0, 2) for s in a.shape] + [self.random.randint(0, 2) for _ in a.shape]
            shape = tuple(s + b + e for s, b, e in zip(a.shape, pads[:rank], pads[rank:]))
            if min(shape) >= 0 and a.dtype != BFLOAT:
                self.add(kind, [x, self.ints(*pads)], self.like(x, shape=shape))
        elif kind == "Tile":
            times = [self.pick(0, 1, 1, 2, 3) if np.prod(a.shape) < 2000 else 1 for _ in a.shape]
            self.add(kind, [x, self.ints(*times)], self.like(x, shape=tuple(s * t for s, t in zip(a.shape, times))))
        elif kind == "Expand":
            shape = [self.pick(1, s) if s != 1 else self.pick(0, 1, 2, 3) for s in a.shape]
            made = tuple(t if s == 1 else s for s, t in zip(a.shape, shape))
            self.add(kind, [x, self.ints(*shape)], self.like(x, shape=made))
        elif kind == "Flatten":
            self.add(kind, [x], self.like(x, shape=(int(np.prod(a.shape[:front])), int(np.prod(a.shape[front:])))), axis=axis)
        elif kind == "Split" and size:
            first = self.random.randint(0, size)
            names = [self.name(), self.name()]
            self.nodes.append(helper.make_node(kind, [x, self.ints(first, size - first)], names, axis=axis))
            self.read.add(x)
            for name, n in zip(names, (first, size - first)):
                self.values[name] = self.like(x, shape=set_size(n))
        elif kind == "GatherElements" and size:
            shape = set_size(self.random.choice(SIZES))
            self.add(kind, [x, self.weight(self.numbers.integers(-size, size, shape))], self.like(x, shape=shape), axis=axis)
        elif kind == "Trilu" and rank >= 2:
            self.add(kind, [x, self.weight(np.array(self.random.randint(-3, 3)))], self.like(x), upper=self.pick(0, 1))
        elif kind == "Unsqueeze" and rank < 5:
            at = self.random.randint(0, rank)
            y = self.add(kind, [x, self.ints(at if self.chance(0.5) else at - rank - 1)], self.like(x, shape=(*a.shape[:at], 1, *a.shape[at:])))
            if self.chance(0.3):
                self.add("Squeeze", [y, self.ints(at)] if 1 in a.shape or self.chance(0.5) else [y], self.like(x))
        elif kind == "Reshape":
            total = int(np.prod(a.shape))
            shape = self.random.choice([(total,), (1, total), (*a.shape[::-1],), (*a.shape, 1)])
            asked = list(shape)
            if total and self.chance(0.5):
                asked[self.random.randrange(len(asked))] = -1
            self.add(kind, [x, self.ints(*asked)], self.like(x, shape=shape), allowzero=1)
        elif kind == "Compress":
            keep = self.numbers.integers(0, 2, size).astype(bool)
            self.add(kind, [x, self.weight(keep)], self.like(x, shape=set_size(int(keep.sum()))), axis=axis)
        elif kind == "ScatterElements" and size:
            count = self.random.randint(0, size)
            shape = set_size(count)
            indices = self.weight(np.broadcast_to(self.numbers.permutation(size)[:count].reshape([-1 if i == front else 1 for i in range(rank)]), shape).copy())
            updates = self.source(a.dtype, shape)
            b = self.values[updates]
            self.add(kind, [x, indices, updates], self.like(x, fine=max(a.fine, b.fine), most=max(a.most, b.most)), axis=axis)
        elif kind == "NonZero" and a.exact and a.dtype != BFLOAT:
            name = self.add("NonZero", [x], self.known(INT64, (rank, 0)))
            known = self.values.pop(name)
            self.add("ReduceSum", [name], self.known(INT64, (), 0, None), keepdims=0)
        elif kind == "GatherND" and 0 not in a.shape:
            depth, count = self.random.randint(1, rank), self.random.choice(SIZES)
            indices = np.stack([self.numbers.integers(-s, s, count) for s in a.shape[:depth]], -1)
            self.add(kind, [x, self.weight(indices)], self.like(x, shape=(count, *a.shape[depth:])))
        elif kind == "Reverse" and rank >= 2 and a.shape[0] and a.shape[1]:
            lengths = self.weight(self.numbers.integers(1, a.shape[0] + 1, a.shape[1]))
            self.add("ReverseSequence", [x, lengths], self.like(x), batch_axis=1, time_axis=0)
        elif kind == "Shape":
            begin, end = self.random.randint(-rank, rank), self.random.randint(-rank, rank)
            self.add("Shape", [x], self.known(INT64, (len(range(rank)[begin:end]),), 0, 5000), start=begin, end=end)
        elif kind == "OneHot" and a.dtype in (INT64, INT32) and a.exact:
            self.add("OneHot", [x, self.ints(4), self.weight(np.array([0, 2], np.float32))], self.known(FLOAT, (*a.shape, 4), 0, 2))

    def fold(self) -> None:
        x = self.choose(lambda k: k.dtype in (FLOAT, FLOAT, DOUBLE, HALF, BFLOAT, INT64, INT32, np.dtype(np.int8), np.dtype(np.uint8)))
        if x is None:
            return
        a = self.values[x]
        rank = len(a.shape)
        kind = self.pick("ReduceSum", "ReduceMax", "ReduceMin", "ReduceMean", "ReduceProd", "ReduceL1", "ReduceL2", "ReduceSumSquare",
                         "ReduceLogSumExp", "ReduceLogSum", "Arg", "TopK", "CumSum", "Softmax", "norm", "Hardmax")
        if kind.startswith("Reduce"):
            if a.dtype in (np.dtype(np.int8), np.dtype(np.uint8)) and kind not in ("ReduceMax", "ReduceMin"):
                return
            if kind in ("ReduceMax", "ReduceMin", "ReduceMean") and 0 in a.shape:
                return  # what others make of nothing differs
            if not is_float(a.dtype) and kind in ("ReduceMean", "ReduceL2", "ReduceLogSumExp", "ReduceLogSum"):
                return
            axes = self.random.sample(range(rank), self.random.randint(0, rank))
            keep, noop = self.pick(0, 1), self.pick(0, 0, 1)
            inputs, over = [x], set(axes)
            if axes:
                inputs.append(self.ints(*(i if self.chance(0.5) else i - rank for i in axes)))
            elif self.chance(0.4):
                inputs.append(self.weight(np.zeros(0, np.int64)))
            if not axes and not noop:
                over = set(range(rank))
            shape = tuple(1 if i in over else s for i, s in enumerate(a.shape) if keep or i not in over)
            count = int(np.prod([a.shape[i] for i in over])) if over else 1
            most, fine, exact = a.most * max(count, 1), a.fine, True
            if kind in ("ReduceMax", "ReduceMin"):
                most = a.most
            elif kind == "ReduceSumSquare":
                most, fine = most * a.most, 2 * fine
            elif kind not in ("ReduceSum", "ReduceL1"):
                exact = not is_float(a.dtype)
                most = 1e4
            if kind == "ReduceLogSum":
                x = self.add("Abs", [x], self.like(x))
                inputs[0] = x
            exact &= most * 2.0**fine <= 2.0 ** DIGITS.get(a.dtype, 99)
            if kind == "ReduceProd" and (count > 3 or not a.exact):
                return
            self.add(kind, inputs, self.known(a.dtype, shape, fine, most, exact), keepdims=keep, noop_with_empty_axes=noop)
            return
        if rank == 0:
            return
        axis = self.axis(x)
        size = a.shape[axis]
        if kind == "Arg" and a.exact and size and a.dtype != BFLOAT:
            keep = self.pick(0, 1)
            shape = list(a.shape)
            shape[axis] = 1
            if not keep:
                del shape[axis]
            self.add(self.pick("ArgMax", "ArgMin"), [x], self.known(INT64, shape, 0, size), axis=axis, keepdims=keep, select_last_index=self.pick(0, 1))
        elif kind == "TopK" and a.exact and a.dtype in (FLOAT, DOUBLE, INT64, INT32):
            k = self.random.randint(0, size)
            names = [self.name(), self.name()]
            shape = list(a.shape)
            shape[axis] = k
            self.nodes.append(helper.make_node("TopK", [x, self.ints(k)], names, axis=axis, largest=self.pick(0, 1)))
            self.read.add(x)
            self.values[names[0]] = self.like(x, shape=tuple(shape))
            self.values[names[1]] = self.known(INT64, shape, 0, size)
        elif kind == "CumSum" and a.dtype in (FLOAT, DOUBLE, INT64, INT32):
            most = a.most * max(size, 1)
            self.add("CumSum", [x, self.weight(np.array(axis))], self.known(a.dtype, a.shape, a.fine, most, most * 2.0**a.fine <= 2.0 ** DIGITS.get(a.dtype, 99)),
                     exclusive=self.pick(0, 1), reverse=self.pick(0, 1))
        elif kind == "Softmax" and is_float(a.dtype) and a.most < 1e4:
            which = self.pick("Softmax", "Softmax", "LogSoftmax")
            self.add(which, [x], self.known(a.dtype, a.shape, 0, 1 if which == "Softmax" else 1e4, False), axis=axis)
        elif kind == "Hardmax" and a.dtype in (FLOAT, DOUBLE) and a.exact and size:
            self.add("Hardmax", [x], self.known(a.dtype, a.shape, 0, 1), axis=axis)
        elif kind == "norm" and a.dtype == FLOAT and a.most < 1e4 and 0 not in a.shape[axis:]:
            tail = a.shape[axis:]
            if int(np.prod(tail)) > 1:
                scale = self.weight(self.numbers.uniform(0.5, 1.5, tail).astype(np.float32))
                # Rows of one value are rounding errors divided by their size: a large epsilon.
                self.add("LayerNormalization", [x, scale], self.known(FLOAT, a.shape, 0, 100, False), axis=axis, epsilon=0.5)

    def smooth(self) -> None:
        x = self.choose(lambda k: is_float(k.dtype) and k.most < 100)
        if x is None:
            return
        a = self.values[x]
        kind = self.pick("Sigmoid", "Tanh", "Exp", "Erf", "Softplus", "Sqrt")
        if kind == "Sqrt":
            x = self.add("Abs", [x], self.like(x))
        if kind == "Exp":
            x = self.add("Sigmoid", [x], self.like(x, most=1, exact=False))
        self.add(kind, [x], self.known(a.dtype, a.shape, 0, 100, False))

    # --- sequences and bodies ---

    def sequence(self) -> None:
        x = self.choose(lambda k: len(k.shape) > 0 and k.dtype != BFLOAT)
        if x is None:
            return
        a = self.values[x]
        if not self.sequences or self.chance(0.35):
            q = self.name()
            how = self.random.randrange(3)
            if how == 0:
                parts = [x, *(self.source(a.dtype, tuple(self.random.choice(SIZES) for _ in a.shape)) for _ in range(self.random.randint(0, 2)))]
                self.nodes.append(helper.make_node("SequenceConstruct", parts, [q]))
                items = [self.values[p] for p in parts]
            elif how == 1:
                self.nodes.append(helper.make_node("SequenceEmpty", [], [q], dtype=number_of(a.dtype)))
                items = []
            else:
                axis = self.axis(x) % len(a.shape)
                keep = self.pick(0, 1)
                self.nodes.append(helper.make_node("SplitToSequence", [x], [q], axis=axis, keepdims=keep))
                shape = (*a.shape[:axis], *([1] if keep else []), *a.shape[axis + 1:])
                items = [a._replace(shape=shape)] * a.shape[axis]
            self.read.add(x)
            self.sequences[q] = [a, *items]
            return
        q = self.random.choice([*self.sequences])
        first, *items = self.sequences[q]
        self.read.add(q)
        kind = self.pick("Insert", "Erase", "At", "Length", "Concat", "Stack", "If", "Loop", "Identity")
        new = self.name()
        if kind == "Insert":
            item = self.choose(lambda k: k.dtype == first.dtype)
            if item is None:
                return
            at = self.random.randint(-len(items), len(items))
            self.nodes.append(helper.make_node("SequenceInsert", [q, item, self.weight(np.array(at))], [new]))
            self.read.add(item)
            items.insert(at if at >= 0 else at + len(items), self.values[item])
            self.sequences[new] = [first, *items]
        elif kind == "Erase" and items:
            at = self.random.randrange(-len(items), len(items))
            self.nodes.append(helper.make_node("SequenceErase", [q, self.weight(np.array(at))], [new]))
            del items[at]
            self.sequences[new] = [first, *items]
        elif kind == "At" and items:
            at = self.random.randrange(-len(items), len(items))
            self.nodes.append(helper.make_node("SequenceAt", [q, self.weight(np.array(at))], [new]))
            self.values[new] = items[at]
        elif kind == "Length":
            self.nodes.append(helper.make_node("SequenceLength", [q], [new]))
            self.values[new] = self.known(INT64, (), 0, len(items))
        elif kind == "Concat" and items and len({(len(k.shape), k.shape[1:]) for k in items}) == 1 and items[0].shape:
            self.nodes.append(helper.make_node("ConcatFromSequence", [q], [new], axis=0))
            self.values[new] = items[0]._replace(shape=(sum(k.shape[0] for k in items), *items[0].shape[1:]), most=max(k.most for k in items),
                                                 fine=max(k.fine for k in items), exact=all(k.exact for k in items))
        elif kind == "Stack" and items and len({k.shape for k in items}) == 1:
            self.nodes.append(helper.make_node("ConcatFromSequence", [q], [new], axis=-1, new_axis=1))
            self.values[new] = items[0]._replace(shape=(*items[0].shape, len(items)), most=max(k.most for k in items),
                                                 fine=max(k.fine for k in items), exact=all(k.exact for k in items))
        elif kind == "If":
            test = self.pick(True, False)
            grown = [first, *items, a] if first.dtype == a.dtype and test else [first, *items]
            branches = {}
            for name, adds in (("then", first.dtype == a.dtype), ("else", False)):
                out = self.name()
                node = helper.make_node("SequenceInsert", [q, x], [out]) if adds else helper.make_node("Identity", [q], [out])
                branches[f"{name}_branch"] = helper.make_graph([node], name, [], [onnx.ValueInfoProto(name=out)])
            self.nodes.append(helper.make_node("If", [self.truth(test)], [new], **branches))
            self.read.add(x)
            self.sequences[new] = grown
        elif kind == "Loop" and first.dtype == a.dtype:
            trips = self.random.randint(0, 4)
            step, go, state, out, going = (self.name() for _ in range(5))
            nodes = [helper.make_node("Identity", [go], [going])]
            if self.chance(0.5):
                nodes.append(helper.make_node("SequenceInsert", [state, x], [out]))
                grown = [first, *items, *[a] * trips]
            else:
                nodes.append(helper.make_node("SequenceInsert", [state, x, self.weight(np.array(0))], [out]))
                grown = [first, *[a] * trips, *items]
            body = helper.make_graph(nodes, "body", [helper.make_tensor_value_info(step, TensorProto.INT64, []),
                                                     helper.make_tensor_value_info(go, TensorProto.BOOL, []), onnx.ValueInfoProto(name=state)],
                                     [onnx.ValueInfoProto(name=going), onnx.ValueInfoProto(name=out)])
            self.nodes.append(helper.make_node("Loop", [self.weight(np.array(trips)) if self.chance(0.5) else self.given(np.array(trips)), "", q], [new], body=body))
            self.read.add(x)
            self.sequences[new] = grown
        elif kind == "Identity":
            self.nodes.append(helper.make_node("Identity", [q], [new]))
            self.sequences[new] = [first, *items]

    def given(self, array: np.ndarray) -> str:
        name = f"x{len(self.inputs)}"
        self.inputs[name] = self.known(array.dtype, array.shape)
        self.fixed[name] = array
        return name

    def truth(self, value: bool) -> str:
        return self.weight(np.array(value)) if self.chance(0.4) else self.given(np.array(value))

    fixed: dict

    def optional(self) -> None:
        x = self.choose(lambda k: k.dtype != BFLOAT)
        if x is None:
            return
        o = self.name()
        self.nodes.append(helper.make_node("Optional", [x], [o]))
        self.read.add(x)
        if self.chance(0.5):
            has = self.name()
            self.nodes.append(helper.make_node("OptionalHasElement", [o], [has]))
            self.values[has] = self.known(BOOL, ())
        got = self.name()
        self.nodes.append(helper.make_node("OptionalGetElement", [o], [got]))
        self.values[got] = self.values[x]

    def inner(self, steps: int) -> tuple[list, str]:
        """Steps in a body, which read what is outside; values made inside end with it."""
        outer, values, sequences, read = self.nodes, dict(self.values), dict(self.sequences), set(self.read)
        self.nodes = []
        inputs = dict(self.inputs)
        for _ in range(20):
            if len(self.nodes) >= steps:
                break
            self.pick(self.arithmetic, self.move, self.cast, self.fold, self.bits)()
        made = [name for node in self.nodes for name in node.output if name in self.values]
        if not made:
            x = self.choose()
            made = [self.add("Identity", [x], self.values[x])]
        nodes, result = self.nodes, made[-1]
        known = self.values[result]
        added = {name: one for name, one in self.values.items() if name in self.inputs or name.startswith("w")}
        self.nodes, self.values, self.sequences = outer, values | added, sequences
        self.result = known
        return nodes, result

    def branch(self) -> None:
        test = self.pick(True, False)
        graphs, knowns = {}, {}
        for name in ("then", "else"):
            nodes, result = self.inner(self.random.randint(1, 4))
            graphs[f"{name}_branch"] = helper.make_graph(nodes, name, [], [onnx.ValueInfoProto(name=result)])
            knowns[name == "then"] = self.result
        if knowns[True].dtype != knowns[False].dtype:
            return
        new = self.name()
        self.nodes.append(helper.make_node("If", [self.truth(test)], [new], **graphs))
        self.values[new] = knowns[test]

    def loop(self) -> None:
        """A state that is multiplied and clipped, and a second result for each trip."""
        x = self.choose(lambda k: is_float(k.dtype))
        if x is None:
            return
        a = self.values[x]
        trips = self.random.randint(1, 4)
        step, go, state, out, going = (self.name() for _ in range(5))
        nodes, result = self.inner(self.random.randint(1, 3))
        gathered = self.result
        nodes = [*nodes, helper.make_node("Identity", [go], [going]), helper.make_node("Neg", [state], [out])]
        scanned = self.name()
        nodes.append(helper.make_node("Identity", [result], [scanned]))
        body = helper.make_graph(nodes, "body", [helper.make_tensor_value_info(step, TensorProto.INT64, []),
                                                 helper.make_tensor_value_info(go, TensorProto.BOOL, []), onnx.ValueInfoProto(name=state)],
                                 [onnx.ValueInfoProto(name=n) for n in (going, out, scanned)])
        names = [self.name(), self.name()]
        self.nodes.append(helper.make_node("Loop", [self.weight(np.array(trips)) if self.chance(0.5) else self.given(np.array(trips)), self.truth(True), x], names, body=body))
        self.read.add(x)
        self.values[names[0]] = a
        self.values[names[1]] = gathered._replace(shape=(trips, *gathered.shape))

    # --- what exporters leave ---

    def repeat(self) -> None:
        """A node twice, the second read as well."""
        at = self.random.randrange(len(self.nodes))
        node = self.nodes[at]
        if any(attribute.type == onnx.AttributeProto.GRAPH for attribute in node.attribute):
            return
        twin = onnx.NodeProto.FromString(node.SerializeToString())
        names = {name: self.name() for name in node.output}
        twin.output[:] = [names[name] for name in node.output]
        self.nodes.insert(at + 1, twin)
        for name, new in names.items():
            if name in self.values:
                self.values[new] = self.values[name]
            if name in self.sequences:
                self.sequences[new] = self.sequences[name]

    def call(self) -> None:
        """A run of nodes becomes a function with a formal that nobody gives."""
        plain = [node for node in self.nodes if all(attribute.type != onnx.AttributeProto.GRAPH for attribute in node.attribute)]
        if not plain:
            return
        start = self.nodes.index(self.random.choice(plain))
        part = []
        for node in self.nodes[start:start + self.random.randint(1, 4)]:
            if any(attribute.type == onnx.AttributeProto.GRAPH for attribute in node.attribute):
                break
            part.append(node)
        inside = [name for node in part for name in node.output]
        outside = [name for name in dict.fromkeys(name for node in part for name in node.input) if name and name not in inside]
        name = f"F{len(self.functions)}"
        formals = {one: f"f_{one}" for one in (*inside, *outside)}
        body = []
        for node in part:
            one = onnx.NodeProto.FromString(node.SerializeToString())
            one.input[:] = [formals.get(i, i) for i in node.input]
            one.output[:] = [formals[o] for o in node.output]
            body.append(one)
        given = [formals[one] for one in outside]
        at = self.random.randint(0, len(given))
        unused = [*given[:at], "absent", *given[at:]]
        actual = [*outside[:at], "", *outside[at:]]
        if self.chance(0.3):
            body.append(helper.make_node("Identity", [body[-1].output[0]], ["spare"]))
        self.functions.append(helper.make_function("own", name, unused, [formals[one] for one in inside], body,
                                                   [helper.make_opsetid("", OPSET)]))
        self.nodes[start:start + len(part)] = [helper.make_node(name, actual, inside, domain="own")]

    def finish(self) -> Graph:
        for _ in range(self.pick(0, 0, 1, 3)):
            self.repeat()
        for _ in range(self.pick(0, 0, 1, 2)):
            self.call()
        # A present optional and what it holds are written the same way.
        top = [name for node in self.nodes for name in node.output if name in self.values or name in self.sequences]
        outputs = [name for name in top if name not in self.read and self.chance(0.85)]
        outputs += [name for name in top if self.chance(0.1)]
        outputs = outputs or top[-1:] or [*self.inputs][:1]
        if self.chance(0.15) and self.inputs:
            outputs.append(self.random.choice([*self.inputs]))
        if self.chance(0.15) and self.weights:
            weight = self.random.choice(self.weights)
            if weight.data_type not in (TensorProto.INT4, TensorProto.UINT4, *SMALL):
                outputs.append(weight.name)
        outputs = [name for name in dict.fromkeys(outputs)]
        exact = [name for name in outputs if name not in self.values or self.values[name].exact]
        exact = [name for name in exact if name not in self.sequences or all(k.exact for k in self.sequences[name])]
        infos = []
        for name, known in self.inputs.items():
            how = self.random.randrange(4)
            shape = known.shape if how < 2 else [f"{name}_{i}" for i in range(len(known.shape))] if how == 2 else [None] * len(known.shape)
            infos.append(helper.make_tensor_value_info(name, number_of(known.dtype), shape))
        graph = helper.make_graph(self.nodes, "mixed", infos, [onnx.ValueInfoProto(name=name) for name in outputs], self.weights)
        model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", OPSET), helper.make_opsetid("own", 1)], ir_version=10,
                                  functions=self.functions)
        sets = [{name: self.fixed[name] if name in self.fixed else self.array(known) for name, known in self.inputs.items()} for _ in range(2)]
        halves = any(known.dtype in (HALF, BFLOAT) for known in self.values.values())
        loose = {"worst": 1.0, "mean": 0.1, "absolute": 0.1} if halves else {"worst": 1e-3, "mean": 1e-4, "absolute": 1e-5}
        return Graph(model, sets, {"plan": loose | {"exact_outputs": exact}, "other": loose | {"exact_outputs": exact}})


def make(seed: int) -> Graph:
    graph = Mixed(seed)
    graph.fixed = {}
    for _ in range(graph.random.randint(1, 3)):
        graph.source(graph.random.choice([*FLOATS, *FLOATS, *INTEGERS, BOOL]), graph.shape())
    if not graph.inputs:
        known = graph.fresh(FLOAT, (2, 3))
        graph.inputs["x0"] = known
        graph.values["x0"] = known
    steps = [graph.arithmetic, graph.arithmetic, graph.bits, graph.cast, graph.cast, graph.quantise, graph.dynamic, graph.product, graph.move, graph.move,
             graph.move, graph.fold, graph.fold, graph.smooth, graph.sequence, graph.sequence, graph.optional, graph.branch, graph.loop]
    liked = graph.random.sample(range(len(steps)), 8)
    for _ in range(graph.random.randint(4, 16)):
        steps[graph.random.choice(liked)]()
    if not graph.nodes:
        graph.add("Identity", ["x0"], graph.values["x0"])
    return graph.finish()
