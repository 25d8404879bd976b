"""Every field of every message that the onnx package's descriptors know: read, written back byte for byte, and known
by name in the other forms. The tests are made from the descriptors, so that a field of a new edition fails them."""

from __future__ import annotations

import functools
import os
import pathlib
import re
import subprocess

import onnx
import pytest
from google.protobuf import json_format, text_format
from google.protobuf.descriptor import FieldDescriptor as Field
from google.protobuf.descriptor import FileDescriptor
from onnx import onnx_data_pb2, onnx_ml_pb2, onnx_operators_ml_pb2

ROOT = pathlib.Path(__file__).resolve().parents[2]
PROGRAM = pathlib.Path(os.environ.get("SARDONYX_PROGRAM", ROOT / "build" / "release" / "bin" / "sardonyx"))
RUNNER = PROGRAM.with_name("form_runner")

# How src/wire/fields.h calls messages.
STRUCTS = {"StringEntry": "StringStringEntryProto", "Segment": "TensorProto.Segment",
           "Dimension": "TensorShapeProto.Dimension", "TensorShape": "TensorShapeProto", "ValueInfo": "ValueInfoProto",
           "Attribute": "AttributeProto", "IntIntListEntry": "IntIntListEntryProto",
           "SimpleShardedDim": "SimpleShardedDimProto", "ShardedDim": "ShardedDimProto",
           "ShardingSpec": "ShardingSpecProto", "NodeDeviceConfiguration": "NodeDeviceConfigurationProto",
           "Node": "NodeProto", "Graph": "GraphProto", "OperatorSetId": "OperatorSetIdProto", "Function": "FunctionProto",
           "TrainingInfo": "TrainingInfoProto", "DeviceConfiguration": "DeviceConfigurationProto", "Model": "ModelProto",
           "OperatorDefinition": "OperatorProto", "OperatorSet": "OperatorSetProto"}
# Those that the struct of TypeProto holds itself.
INSIDE_TYPE = {"TypeProto.Tensor", "TypeProto.Sequence", "TypeProto.Map", "TypeProto.Optional", "TypeProto.SparseTensor",
               "TypeProto.Opaque"}
# Of editions before the package's.
REMOVED = {("FunctionProto", 2, "since_version"), ("FunctionProto", 3, "status")}


def messages_of(file: FileDescriptor):
    def inside(message):
        yield message
        for nested in message.nested_types:
            yield from inside(nested)
    for message in file.message_types_by_name.values():
        yield from inside(message)


MESSAGES = {message.full_name.removeprefix("onnx."): message
            for module in (onnx_ml_pb2, onnx_data_pb2, onnx_operators_ml_pb2) for message in messages_of(module.DESCRIPTOR)}


def test_the_table_of_fields_is_the_standards():
    source = (ROOT / "src" / "wire" / "fields.h").read_text()
    known = set()
    for block in source.split("template <class V, Like<")[1:]:
        struct = re.match(r"(?:ir::)?(\w+)>", block)[1]
        for number, name in re.findall(r'\bv\.\w+\((\d+), "(\w+)"', block) + re.findall(r', (\d+), "(\w+)"', block):
            known.add((STRUCTS.get(struct, struct), int(number), name))
    standard = {(name, field.number, field.name) for name, message in MESSAGES.items() if name not in INSIDE_TYPE
                for field in message.fields}
    assert known - REMOVED == standard
    assert len(MESSAGES) >= 33


def routes(root: str) -> dict[str, list[tuple[str, str]]]:
    """For each message that a file of this kind can hold: the shortest way there, as (message, field)."""
    found, waiting = {root: []}, [root]
    for name in waiting:
        for field in MESSAGES[name].fields:
            inner = field.message_type and field.message_type.full_name.removeprefix("onnx.")
            if inner and inner not in found:
                found[inner] = found[name] + [(name, field.name)]
                waiting.append(inner)
    return found


def values_of(field: Field) -> list:
    """Some that differ in how they are written: the default, large, negative."""
    if field.type == Field.TYPE_STRING:
        return ["", "text", "\u00e9 \" \\ \n"]
    if field.type == Field.TYPE_BYTES:
        return [b"", b"bytes", bytes([0, 255, 128, 10])]
    if field.type in (Field.TYPE_FLOAT, Field.TYPE_DOUBLE):
        return [0.0, -1.5, 1e30]
    if field.type == Field.TYPE_ENUM:
        return [value.number for value in field.enum_type.values]
    if field.type == Field.TYPE_UINT64:
        return [0, 1, 2 ** 64 - 1]
    return [0, 7, -1, 2 ** 31 - 1] + ([-(2 ** 63)] if field.type == Field.TYPE_INT64 else [])


def fillings(field: Field) -> list:
    """What to put into the field: no, one or several values."""
    if field.type == Field.TYPE_MESSAGE:
        return [1, 2] if field.is_repeated else [1]
    values = values_of(field)
    return [[value] for value in values] + [values] if field.is_repeated else values


def put(message, field: Field, filling) -> None:
    if field.type == Field.TYPE_MESSAGE:
        for _ in range(filling):
            inner = getattr(message, field.name).add() if field.is_repeated else getattr(message, field.name)
            inner.SetInParent()
    elif field.is_repeated:
        getattr(message, field.name).extend(filling)
    else:
        setattr(message, field.name, filling)


@functools.cache
def cases(root: str) -> list[tuple[str, object]]:
    """Files that hold little but one field, for every field and filling."""
    kind = onnx.ModelProto if root == "ModelProto" else onnx_operators_ml_pb2.OperatorSetProto
    made = []
    for name, way in routes(root).items():
        for field in MESSAGES[name].fields:
            for filling in fillings(field):
                file = kind(ir_version=14) if kind is onnx.ModelProto else kind(magic="ONNXOPSET", ir_version=14)
                if (name, field.name) in (("OperatorSetProto", "magic"), (root, "ir_version")):
                    continue
                at = file
                for _, step in way:
                    inner = getattr(at, step)
                    at = inner.add() if hasattr(inner, "add") else inner
                    at.SetInParent()
                put(at, field, filling)
                made.append((f"{name}.{field.name} = {filling!r}", file))
    return made


def converted(form: str, contents: list[bytes], ending: str, folder: pathlib.Path) -> list[bytes]:
    """The models in another form, by our program."""
    files = []
    for number, content in enumerate(contents):
        files.append(folder / f"{number}.{ending}")
        files[-1].write_bytes(content)
    out = subprocess.run([RUNNER, form], input="".join(f"{file}\n" for file in files).encode(), capture_output=True,
                         check=True).stdout
    answers, at = [], 0
    for _ in files:
        end = out.index(b"\n", at)
        kind, size = out[at:end].split()
        answers.append((kind + b": " if kind != b"ok" else b"") + out[end + 1:end + 1 + int(size)])
        at = end + 1 + int(size)
    return answers


def fields_covered() -> int:
    return len({label.split(" = ")[0] for root in ("ModelProto", "OperatorSetProto") for label, _ in cases(root)})


def test_the_cases_cover_all_but_the_forms_of_values():
    """Which are read, not written, as files: tests/wire/tensor_test.cc."""
    values = sum(len(MESSAGES[name].fields) for name in ("SequenceProto", "MapProto", "OptionalProto"))
    headers = 3  # ir_version twice, and magic, which every case has
    assert fields_covered() == sum(len(message.fields) for message in MESSAGES.values()) - values - headers


def test_each_field_comes_back_byte_for_byte(tmp_path):
    models = cases("ModelProto")
    contents = [model.SerializeToString(deterministic=True) for _, model in models]
    wrong = [label for (label, _), content, again in zip(models, contents, converted("binary", contents, "onnx", tmp_path))
             if again != content]
    assert not wrong, f"{len(wrong)} of {len(models)}: {wrong[:10]}"
    assert len(models) > 350


@pytest.mark.parametrize("form", ["json", "textproto"])
def test_each_field_is_known_by_name(form, tmp_path):
    """Fields that were only kept unread would be missing here."""
    models = cases("ModelProto")
    contents = [model.SerializeToString(deterministic=True) for _, model in models]
    written = converted(form, contents, "onnx", tmp_path)
    parse = (json_format if form == "json" else text_format).Parse
    wrong = [label for (label, model), text in zip(models, written)
             if text.startswith(b"failed") or parse(text.decode(), onnx.ModelProto()) != model]
    assert not wrong, f"{len(wrong)} of {len(models)}: {wrong[:10]}"
    back = converted("binary", written, form, tmp_path)
    wrong = [label for (label, _), content, again in zip(models, contents, back) if again != content]
    assert not wrong, f"{len(wrong)} of {len(models)}: {wrong[:10]}"


def test_each_field_survives_among_fields_of_newer_editions(tmp_path):
    """Unknown fields of every kind of encoding stand behind what is known, in the model and in the inner message."""
    unknown = bytes([0xf8, 0x7f, 0x05]) + bytes([0xfa, 0x7f, 0x03]) + b"new" + bytes([0xfd, 0x7f, 1, 2, 3, 4])
    unknown += bytes([0xf9, 0x7f, 1, 2, 3, 4, 5, 6, 7, 8])
    models = cases("ModelProto")
    contents = [model.SerializeToString(deterministic=True) + unknown for _, model in models]
    wrong = [label for (label, _), content, again in zip(models, contents, converted("binary", contents, "onnx", tmp_path))
             if again != content]
    assert not wrong, f"{len(wrong)} of {len(models)}: {wrong[:10]}"


def test_each_field_of_documents_comes_back(tmp_path):
    documents = cases("OperatorSetProto")
    chosen = {}
    for label, document in documents:  # one program each: the last filling of each field
        chosen[label.split(" = ")[0]] = (label, document)
    wrong = []
    for label, document in chosen.values():
        content = document.SerializeToString(deterministic=True)
        (tmp_path / "a.onnx").write_bytes(content)
        for ending in ("json", "textproto"):
            for given, wanted in (("a.onnx", f"b.{ending}"), (f"b.{ending}", "c.onnx")):
                subprocess.run([PROGRAM, "opset", tmp_path / given, "--convert", tmp_path / wanted], check=True,
                               capture_output=True)
            if (tmp_path / "c.onnx").read_bytes() != content:
                wrong.append(f"{label} through {ending}")
    assert not wrong, f"{len(wrong)}: {wrong[:10]}"
