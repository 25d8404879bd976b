"""What a session says of its model."""

from __future__ import annotations

import dataclasses
import mmap
import os
import re
from collections.abc import Iterator
from typing import Any

from ..._session import ValueInfo


class NodeArg:
    """An input or output: `name`, `type` ("tensor(float)") and `shape` (numbers, names, None where open)."""

    def __init__(self, name: str, type: str, shape: list[Any]):  # noqa: A002: their name
        self.name = name
        self.type = type
        self.shape = shape

    def __str__(self) -> str:
        return f"NodeArg(name='{self.name}', type='{self.type}', shape={self.shape})"


_OPTIONAL_TENSOR = re.compile(r"optional\(\w+\[([^\]]*)\]\)")
_KEY = re.compile(r"map\((\w+),")


def onnxruntime_type(info: ValueInfo) -> str:
    """ "float[n,3]" -> "tensor(float)", "seq(map(int64,float[]))" -> "seq(map(int64,tensor(float)))"."""
    text = re.sub(r"\[[^\]]*\]", "", info.type).replace(" ", "")
    if info.kind == "tensor":
        return f"tensor({info.element_type})"
    if text.startswith("sparse"):
        return text if "(" in text else text.replace("sparse_", "sparse_tensor(") + ")"
    keys = _KEY.findall(text)
    text = re.sub(r"\b(\w+)(?=[,)]|$)", lambda one: f"tensor({one.group(1)})", text)
    for key in keys:
        text = text.replace(f"map(tensor({key}),", f"map({key},")
    return text


def node_arg(info: ValueInfo, sizes: dict[str, int]) -> NodeArg:
    shape: list[Any] = []
    held = _OPTIONAL_TENSOR.fullmatch(info.type)
    if held is not None:
        info = info._replace(shape=tuple(int(one) if one.isdigit() else None if one == "?" else one for one in held.group(1).split(",") if one))
    for i, size in enumerate(info.shape or ()):
        if isinstance(size, str) and size == f"{info.name}.{i}":
            size = None  # a name that Sardonyx gives a place that has none
        shape.append(sizes.get(size, size) if isinstance(size, str) else size)
    return NodeArg(info.name, onnxruntime_type(info), shape)


@dataclasses.dataclass
class ModelMetadata:
    producer_name: str = ""
    graph_name: str = ""
    domain: str = ""
    description: str = ""
    graph_description: str = ""
    version: int = 2**63 - 1  # what onnxruntime says of a model without one
    custom_metadata_map: dict[str, str] = dataclasses.field(default_factory=dict)


def _varint(data: Any, at: int) -> tuple[int, int]:
    value = shift = 0
    while True:
        byte = data[at]
        at += 1
        value |= (byte & 0x7F) << shift
        if byte < 0x80:
            return value, at
        shift += 7
        if shift > 63:
            raise ValueError("a number of more than ten bytes")


def _fields(data: Any, begin: int, end: int) -> Iterator[tuple[int, Any]]:
    """Number and value of each field of a message: an integer, or where its bytes lie. Nothing is copied."""
    at = begin
    while at < end:
        tag, at = _varint(data, at)
        kind = tag & 7
        if kind == 0:
            value, at = _varint(data, at)
            yield tag >> 3, value
        elif kind == 2:
            size, at = _varint(data, at)
            if size > end - at:
                raise ValueError("a field goes beyond its message")
            yield tag >> 3, (at, at + size)
            at += size
        elif kind in (1, 5):
            at += 8 if kind == 1 else 4
        else:
            raise ValueError(f"wire type {kind}")


def _text(data: Any, place: Any) -> str:
    return bytes(data[place[0]:place[1]]).decode("utf-8", "replace")


def _read(data: Any) -> ModelMetadata:
    made = ModelMetadata()
    for number, value in _fields(data, 0, len(data)):
        if number == 2:
            made.producer_name = _text(data, value)
        elif number == 4:
            made.domain = _text(data, value)
        elif number == 5:
            made.version = value - 2**64 if value >= 2**63 else value
        elif number == 6:
            made.description = _text(data, value)
        elif number == 14:
            entry = {key: _text(data, place) for key, place in _fields(data, *value)}
            made.custom_metadata_map[entry.get(1, "")] = entry.get(2, "")
        elif number == 7:
            for inner, place in _fields(data, *value):
                if inner == 2:
                    made.graph_name = _text(data, place)
                elif inner == 10:
                    made.graph_description = _text(data, place)
    return made


def read_metadata(path: str | None, data: bytes | None) -> ModelMetadata:
    """Of a model in the binary form; others have none to show."""
    try:
        if data is not None:
            return _read(data)
        if path is None or os.path.getsize(path) == 0:
            return ModelMetadata()
        with open(path, "rb") as file, mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ) as mapped:
            return _read(mapped)
    except (ValueError, IndexError, TypeError, OSError):
        return ModelMetadata()
