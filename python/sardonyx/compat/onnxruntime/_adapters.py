"""LoRA adapters: values for inputs that have defaults, by name, in a file of FlatBuffers with the identifier TORT."""

from __future__ import annotations

import os
import pathlib
import struct
from typing import Any

import numpy as np

from ... import _core
from ._exceptions import invalid_arguments
from ._values import OrtValue

_IDENTIFIER = b"TORT"
_FORMAT_VERSION = 1


class _Broken(Exception):
    pass


class _Reader:
    """Tables of a file. What leads out of the file raises _Broken."""

    def __init__(self, data: bytes):
        self._data = data

    def number(self, form: str, at: int) -> int:
        if at < 0 or at + struct.calcsize(form) > len(self._data):
            raise _Broken(f"it ends before byte {at}")
        (found,) = struct.unpack_from(form, self._data, at)
        return int(found)

    def follow(self, at: int) -> int:
        return at + self.number("<I", at)

    def field(self, table: int, index: int) -> int | None:
        """Where a field of a table lies; None: it has its default."""
        fields = table - self.number("<i", table)
        if 4 + 2 * index >= self.number("<H", fields):
            return None
        offset = self.number("<H", fields + 4 + 2 * index)
        return table + offset if offset else None

    def integer(self, table: int, index: int) -> int:
        at = self.field(table, index)
        return 0 if at is None else self.number("<i", at)

    def vector(self, table: int, index: int, item: int) -> tuple[int, int]:
        """Where its items of `item` bytes begin, and how many there are."""
        at = self.field(table, index)
        if at is None:
            return 0, 0
        begin = self.follow(at)
        count = self.number("<I", begin)
        if begin + 4 + count * item > len(self._data):
            raise _Broken(f"the list at byte {begin} says that it has {count} items, which are not there")
        return begin + 4, count

    def take(self, table: int, index: int, item: int) -> bytes:
        begin, count = self.vector(table, index, item)
        return self._data[begin : begin + count * item]


def _parameter(file: _Reader, table: int) -> tuple[str, OrtValue]:
    name = file.take(table, 0, 1).decode("utf-8", "surrogateescape")
    shape = [int(size) for size in np.frombuffer(file.take(table, 1, 8), "<i8")]
    element = _core.element_type_name(file.integer(table, 2))
    data = file.take(table, 3, 1)
    count = 1
    for size in shape:
        count *= size
    if min(shape, default=0) < 0 or (count * _core.element_bits(element) + 7) // 8 != len(data):
        raise _Broken(f"'{name}' is {element}{shape}, for which {len(data)} bytes are the wrong number")
    array = np.frombuffer(bytearray(data), np.uint8)
    return name, OrtValue(_core.Value.reinterpreted(array, element, shape), array)


def _read(path: str) -> tuple[int, int, int, dict[str, OrtValue]]:
    data = pathlib.Path(path).read_bytes()
    try:
        if data[4:8] != _IDENTIFIER:
            raise _Broken(f"its identifier is {data[4:8]!r}, not {_IDENTIFIER!r}")
        file = _Reader(data)
        root = file.follow(0)
        begin, count = file.vector(root, 3, 4)
        with invalid_arguments():
            found = dict(_parameter(file, file.follow(begin + 4 * i)) for i in range(count))
        return file.integer(root, 0), file.integer(root, 1), file.integer(root, 2), found
    except _Broken as broken:
        raise RuntimeError(f"'{path}' is no file of an adapter: {broken}") from None


def _aligned(data: bytes, to: int, ahead: int = 0) -> bytes:
    return data + bytes(-(len(data) + ahead) % to)


def _table(fields: int) -> bytes:
    """The list of a table's fields, four bytes each, and the table's first number, which leads back to it."""
    size = 4 + 2 * fields
    entries = struct.pack(f"<{2 + fields}H", size, 4 + 4 * fields, *range(4, 4 + 4 * fields, 4))
    entries = bytes(-len(entries) % 4) + entries
    return entries + struct.pack("<i", size)


def _written_parameter(name: str, value: OrtValue) -> tuple[bytes, int]:
    """Its bytes, of a length of whole eights, and where its table begins in them."""
    head = _table(4)
    at = len(head) - 4
    body = head + bytes(16)  # the fields' offsets are known once all the rest is there
    offsets = {}
    offsets[0] = len(body)
    text = name.encode("utf-8", "surrogateescape")
    body += struct.pack("<I", len(text)) + text + b"\0"
    shape = value.shape()
    body = _aligned(body, 8, 4)
    offsets[1] = len(body)
    body += struct.pack("<I", len(shape)) + np.array(shape, "<i8").tobytes()
    data = value._value.to_bytes()
    body = _aligned(body, 8, 4)
    offsets[3] = len(body)
    body = _aligned(body + struct.pack("<I", len(data)) + data, 8)
    fields = [offsets[0] - (at + 4), offsets[1] - (at + 8), value.element_type(), offsets[3] - (at + 16)]
    return body[: at + 4] + struct.pack("<4I", *fields) + body[at + 20 :], at


def _written(format_version: int, adapter_version: int, model_version: int, parameters: dict[str, OrtValue]) -> bytes:
    head = _table(4)
    root = 8 + len(head) - 4
    first = _aligned(bytes(root + 20) + bytes(4 + 4 * len(parameters)), 8)
    body, tables = b"", []
    for name, value in sorted(parameters.items()):
        written, at = _written_parameter(name, value)
        tables.append(len(first) + len(body) + at)
        body += written
    listed = root + 20
    made = struct.pack("<I", root) + _IDENTIFIER + head
    made += struct.pack("<3i", format_version, adapter_version, model_version) + struct.pack("<I", listed - (root + 16))
    made += struct.pack("<I", len(tables))
    for i, at in enumerate(tables):
        made += struct.pack("<I", at - (listed + 4 + 4 * i))
    return _aligned(made, 8) + body


class AdapterFormat:
    """What a file of an adapter has in it, to be made, written and read."""

    def __init__(self, adapter: Any = None):
        self._format_version = _FORMAT_VERSION
        self._adapter_version = self._model_version = 0
        self._parameters: dict[str, OrtValue] = {}

    @staticmethod
    def read_adapter(file_path: str | os.PathLike[str]) -> AdapterFormat:
        """Raises RuntimeError for what is no such file."""
        made = AdapterFormat()
        made._format_version, made._adapter_version, made._model_version, made._parameters = _read(os.fspath(file_path))
        return made

    def export_adapter(self, file_path: str | os.PathLike[str]) -> None:
        pathlib.Path(file_path).write_bytes(
            _written(self._format_version, self._adapter_version, self._model_version, self._parameters))

    def get_format_version(self) -> int:
        return self._format_version

    def set_adapter_version(self, adapter_version: int) -> None:
        self._adapter_version = int(adapter_version)

    def get_adapter_version(self) -> int:
        return self._adapter_version

    def set_model_version(self, model_version: int) -> None:
        self._model_version = int(model_version)

    def get_model_version(self) -> int:
        return self._model_version

    def set_parameters(self, params: dict[str, OrtValue]) -> None:
        self._parameters = dict(params)

    def get_parameters(self) -> dict[str, OrtValue]:
        return dict(self._parameters)


class LoraAdapter:
    """An adapter for RunOptions.add_active_adapter()."""

    def __init__(self) -> None:
        self._parameters: dict[str, OrtValue] = {}

    def Load(self, file_path: str | os.PathLike[str]) -> None:
        """Raises RuntimeError for what is no file of an adapter."""
        self._parameters = _read(os.fspath(file_path))[3]
