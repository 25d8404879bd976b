#!/usr/bin/env python3
"""Finds backend cases that a later release of onnx re-issued with other outputs.

Two releases agree on a case when its model is the same up to producer, documentation, names of graphs
and IR version, its operators bind to the same versions, and its inputs are the same. Where their outputs then differ by more than the
runner tolerates, no runtime can pass both. What is found is compared with the list that the runner
reads, tests/conformance/exceptions.txt; the exit status is 1 where a found case is not in it.

Needs the cases of all releases: `./dev conformance --all` or tools/generate_conformance.py makes them.
"""

from __future__ import annotations

import argparse
import hashlib
import json
import pathlib
import sys

import numpy
import onnx
from onnx import numpy_helper

import conformance_exceptions as exceptions

ROOT = pathlib.Path(__file__).resolve().parent.parent


def bound_versions(model: onnx.ModelProto) -> bytes:
    """The versions that the main graph's nodes bind to: releases write their own opset for the same meaning."""
    imports = {entry.domain: entry.version for entry in model.opset_import}
    versions = []
    for node in model.graph.node:
        try:
            schema = onnx.defs.get_schema(node.op_type, imports.get(node.domain, 1), node.domain)
            versions.append(schema.since_version)
        except onnx.defs.SchemaError:
            versions.append(imports.get(node.domain, 1))
    return repr(versions).encode()


def model_key(path: pathlib.Path) -> bytes:
    model = onnx.load(path, load_external_data=False)
    digest = hashlib.sha256(bound_versions(model))
    for name in ("producer_name", "producer_version", "doc_string", "model_version", "domain", "ir_version",
                 "opset_import"):
        model.ClearField(name)
    model.graph.ClearField("name")
    model.graph.ClearField("doc_string")
    for node in model.graph.node:
        node.ClearField("doc_string")
    digest.update(model.SerializeToString(deterministic=True))
    return digest.digest()


def input_bytes(file: pathlib.Path) -> bytes:
    """An input without its name, which some releases write otherwise."""
    data = file.read_bytes()
    try:
        tensor = onnx.TensorProto()
        tensor.ParseFromString(data)
        array = numpy_helper.to_array(tensor)
        return f"{tensor.data_type} {array.shape}".encode() + array.tobytes() if array.dtype != object else data
    except Exception:  # no tensor, or a broken one
        return data


def key_of(case: pathlib.Path) -> bytes:
    """What decides a case's outputs: its model and its inputs."""
    digest = hashlib.sha256(model_key(case / "model.onnx"))
    for file in sorted(case.glob("test_data_set_*/input_*.pb")):
        digest.update(f"{file.parent.name}/{file.name}".encode() + input_bytes(file))
    return digest.digest()


def parsed(file: pathlib.Path, kind: str):
    message = {"tensor_type": onnx.TensorProto, "sequence_type": onnx.SequenceProto,
               "optional_type": onnx.OptionalProto, "map_type": onnx.MapProto}[kind]()
    message.ParseFromString(file.read_bytes())
    convert = {"tensor_type": numpy_helper.to_array, "sequence_type": numpy_helper.to_list,
               "optional_type": numpy_helper.to_optional, "map_type": numpy_helper.to_dict}[kind]
    return convert(message)


def agree(a, b, tolerance: dict) -> bool:
    if isinstance(a, (list, tuple)):
        return isinstance(b, (list, tuple)) and len(a) == len(b) and all(
            agree(x, y, tolerance) for x, y in zip(a, b))
    if not isinstance(a, numpy.ndarray) or not isinstance(b, numpy.ndarray):
        return type(a) is type(b) and a == b
    if a.dtype != b.dtype or a.shape != b.shape:
        return False
    if a.dtype.kind in "OSU":
        return bool((a == b).all())
    a, b = (x.astype(complex if x.dtype.kind == "c" else float) for x in (a, b))
    return bool(numpy.allclose(a, b, rtol=tolerance["rtol"], atol=max(tolerance["atol"], 1e-6), equal_nan=True))


def difference(old: pathlib.Path, new: pathlib.Path) -> str | None:
    """How the outputs of two issues of a case differ, or None."""
    model = onnx.load(new / "model.onnx", load_external_data=False)
    kinds = [output.type.WhichOneof("value") for output in model.graph.output]
    tolerance = json.loads((new / "tolerance.json").read_text())
    for old_set in sorted(old.glob("test_data_set_*")):
        for number, kind in enumerate(kinds):
            files = [folder / old_set.name / f"output_{number}.pb" for folder in (old, new)]
            if not all(file.exists() for file in files):
                if files[0].exists() != files[1].exists():
                    return f"output {number} is in one of them only"
                continue
            if files[0].read_bytes() == files[1].read_bytes():
                continue
            try:
                a, b = (parsed(file, kind) for file in files)
            except ValueError:  # strings that are none
                return f"output {number} can't be read"
            if not agree(a, b, tolerance):
                return f"output {number}"
    return None


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--cases", type=pathlib.Path, default=ROOT / "build" / "conformance",
                        help="the folder with one folder of cases a release")
    options = parser.parse_args()
    releases = [name for name in exceptions.releases() if (options.cases / name / "complete").exists()]
    if len(releases) < 2:
        sys.exit(f"find_reissued: {options.cases} holds the cases of fewer than two releases")
    listed = exceptions.read()
    newest: dict[tuple[str, bytes], pathlib.Path] = {}  # the last issue of a case, model and inputs
    found = missing = 0
    for release in reversed(releases):
        for model in sorted((options.cases / release).rglob("model.onnx")):
            case = model.parent
            last = newest.setdefault((case.name, key_of(case)), case)
            how = None if last is case else difference(case, last)
            if how is None:
                continue
            found += 1
            entry = exceptions.find(listed, release, case.name)
            missing += entry is None
            by = last.relative_to(options.cases).parts[0]
            print(f"{release} {case.name}: {how}, re-issued by {by}; {entry.reason if entry else 'NOT LISTED'}")
    print(f"{found} re-issued cases, {missing} of them not listed in {exceptions.LIST.relative_to(ROOT)}")
    return 1 if missing else 0


if __name__ == "__main__":
    sys.exit(main())
