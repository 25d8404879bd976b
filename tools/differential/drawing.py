"""Random nodes: what all operators share in drawing element types, shapes, values and attributes."""

from __future__ import annotations

import dataclasses
import random

import ml_dtypes
import numpy as np
import onnx
from onnx import TensorProto, defs, helper

# Element types as signatures write them.
DTYPES = {
    "float": np.float32, "double": np.float64, "float16": np.float16, "bfloat16": ml_dtypes.bfloat16,
    "int8": np.int8, "int16": np.int16, "int32": np.int32, "int64": np.int64,
    "uint8": np.uint8, "uint16": np.uint16, "uint32": np.uint32, "uint64": np.uint64,
    "bool": np.bool_, "string": np.object_,
    "float8e4m3fn": ml_dtypes.float8_e4m3fn, "float8e4m3fnuz": ml_dtypes.float8_e4m3fnuz,
    "float8e5m2": ml_dtypes.float8_e5m2, "float8e5m2fnuz": ml_dtypes.float8_e5m2fnuz,
    "float4e2m1": ml_dtypes.float4_e2m1fn, "int4": ml_dtypes.int4, "uint4": ml_dtypes.uint4,
    "complex64": np.complex64, "complex128": np.complex128,
}
WORDS = ["", "a", "b", "cat", "dog and cat", "Ünï", "A", "1.5", "the quick  brown", "x,y,,z"]


@dataclasses.dataclass
class Node:
    """One node to be: inputs in order (None: absent), attributes, and which outputs it names."""

    inputs: list
    attributes: dict = dataclasses.field(default_factory=dict)
    outputs: int | list[bool] = 1


class Invalid(Exception):
    """What was drawn can't be made valid: draw again."""


def is_float(dtype) -> bool:
    return np.dtype(dtype).kind == "f" or "float" in np.dtype(dtype).name


def is_complex(dtype) -> bool:
    return np.dtype(dtype).kind == "c"


def limits(dtype) -> tuple[int, int]:
    info = ml_dtypes.iinfo(dtype)
    return int(info.min), int(info.max)


class Draw:
    """Draws for one node of one definition; the same seed draws the same."""

    def __init__(self, schema: defs.OpSchema, seed: str):
        self.schema = schema
        self.random = random.Random(seed)
        self.numpy = np.random.default_rng(self.random.getrandbits(63))
        self.types: dict[str, str] = {}  # of type constraints

    @property
    def name(self) -> str:
        return self.schema.name

    @property
    def version(self) -> int:
        return self.schema.since_version

    def maybe(self, probability: float = 0.5) -> bool:
        return self.random.random() < probability

    def one_of(self, *choices):
        return self.random.choice(choices)

    def between(self, low: int, high: int) -> int:
        return self.random.randint(low, high)

    # --- types --------------------------------------------------------------------------------

    def dtype(self, name: str, *only: str):
        """The element type of a formal input, one type for all that share its constraint."""
        formal = next(formal for formal in self.schema.inputs if formal.name == name)
        return DTYPES[self.type_of(formal.type_str, *only)]

    def type_of(self, constraint: str, *only: str) -> str:
        if constraint in self.types:
            return self.types[constraint]
        found = next((c for c in self.schema.type_constraints if c.type_param_str == constraint), None)
        allowed = [text[len("tensor("):-1] for text in (found.allowed_type_strs if found else [constraint])
                   if text.startswith("tensor(")]
        allowed = [text for text in allowed if text in DTYPES and (not only or text in only)]
        if not allowed:
            raise Invalid(f"no type for {constraint}")
        chosen = "float" if "float" in allowed and self.maybe(0.4) else self.random.choice(sorted(allowed))
        self.types[constraint] = chosen
        return chosen

    # --- shapes -------------------------------------------------------------------------------

    def size(self, low: int = 1, high: int = 5) -> int:
        if low <= 0 or self.maybe(0.04):
            return self.between(0, high) if low <= 1 else self.between(low, high)
        return self.between(max(low, 1), high) if self.maybe(0.95) else high + self.between(4, 30)

    def shape(self, low: int = 0, high: int = 4, least: int = 1, most: int = 5) -> list[int]:
        rank = self.between(low, high)
        sizes = [self.size(least, most) for _ in range(rank)]
        while np.prod(sizes, dtype=float) > 4000:
            sizes[int(np.argmax(sizes))] = max(least, 2)
        return sizes

    def to_broadcast(self, shape: list[int]) -> list[int]:
        """A shape that broadcasts with this one to this one."""
        kind = self.between(0, 4)
        if kind < 2:
            return list(shape)
        kept = [1 if self.maybe(0.4) else size for size in shape]
        return kept[self.between(0, len(kept)):] if kind > 2 else kept

    def axis(self, rank: int) -> int:
        if rank == 0:
            raise Invalid("a scalar has no axis")
        return self.between(-rank, rank - 1)

    def axes(self, rank: int) -> list[int]:
        chosen = self.random.sample(range(rank), self.between(0, rank))
        return [axis - rank if self.maybe(0.4) else axis for axis in chosen]

    # --- values -------------------------------------------------------------------------------

    def array(self, dtype, shape, low: float = -4, high: float = 4, edges: float = 0.25):
        """Values between low and high; with the probability `edges` some are extreme."""
        shape = tuple(shape)
        dtype = np.dtype(dtype)
        if dtype == np.object_:
            return np.array([self.one_of(*WORDS) for _ in range(int(np.prod(shape)))], object).reshape(shape)
        if dtype == np.bool_:
            return self.numpy.random(shape) < 0.5
        if is_complex(dtype):
            return (self.numpy.uniform(low, high, shape) + 1j * self.numpy.uniform(low, high, shape)).astype(dtype)
        if is_float(dtype):
            values = self.numpy.uniform(low, high, shape)
            if self.maybe(0.3):
                values = np.round(values * 2) / 2  # ties
            values = np.asarray(values).astype(dtype)
            if self.maybe(edges):
                special = [np.nan, np.inf, -np.inf, -0.0, 0.0, float(ml_dtypes.finfo(dtype).max), 1e-40]
                if "e4m3" in dtype.name or "float4" in dtype.name:
                    special = [-0.0, 0.0, 1.0]
                self.sprinkle(values, special)
            return values
        least, most = limits(dtype)
        values = self.numpy.integers(max(least, int(np.ceil(low))), min(most, int(high)), shape, endpoint=True)
        values = np.asarray(values).astype(dtype)
        if self.maybe(edges):
            self.sprinkle(values, [least, most, 0, most - 1])
        return values

    def sprinkle(self, values: np.ndarray, special: list) -> None:
        flat = values.reshape(-1)
        for _ in range(min(flat.size, self.between(1, 3))):
            flat[self.between(0, flat.size - 1)] = self.one_of(*special)

    def indices(self, dtype, shape, limit: int, negative: bool = True):
        if limit <= 0 and np.prod(shape) > 0:
            raise Invalid("nothing to point at")
        low = -limit if negative else 0
        return np.asarray(self.numpy.integers(low, max(limit, low + 1), tuple(shape))).astype(dtype)

    def real(self, low: float = -2, high: float = 2) -> float:
        return float(np.float32(self.random.uniform(low, high)))

    # --- attributes ---------------------------------------------------------------------------

    def has(self, attribute: str) -> bool:
        return attribute in self.schema.attributes

    def attributes(self, **drawn) -> dict:
        """Those that this version has, each with even odds, or always where it is required or has no default.
        A value may be a function that draws it."""
        made = {}
        for name, value in drawn.items():
            if not self.has(name) or value is None:
                continue
            if self.schema.attributes[name].required or self.maybe(0.6):
                made[name] = value() if callable(value) else value
        return made

    def element_attribute(self, *types: str) -> int:
        return helper.np_dtype_to_tensor_dtype(np.dtype(DTYPES[self.one_of(*types)]))


def tensor_type(value: np.ndarray) -> int:
    return TensorProto.STRING if value.dtype == np.object_ else helper.np_dtype_to_tensor_dtype(value.dtype)


def type_proto(value, shape=None) -> onnx.TypeProto:
    """The type of a value; `shape` overrides what is said of a tensor's (None: nothing)."""
    if isinstance(value, np.ndarray):
        return helper.make_tensor_type_proto(tensor_type(value), shape)
    if isinstance(value, list):
        item = type_proto(value[0]) if value else helper.make_tensor_type_proto(TensorProto.FLOAT, None)
        return helper.make_sequence_type_proto(item)
    if isinstance(value, dict):
        key, held = next(iter(value.items()))
        keys = TensorProto.STRING if isinstance(key, str) else TensorProto.INT64
        kinds = {str: TensorProto.STRING, float: TensorProto.FLOAT, int: TensorProto.INT64}
        return helper.make_map_type_proto(keys, helper.make_tensor_type_proto(kinds[type(held)], []))
    raise Invalid(f"no type of {type(value)}")


class Hints(dict):
    """By operator, the function that draws its nodes."""

    def of(self, *names: str):
        def add(function):
            self.update({name: function for name in names})
            return function
        return add


def ints(*values) -> np.ndarray:
    return np.array(values, np.int64)


def listed(values) -> np.ndarray:
    return np.array(list(values), np.int64)
