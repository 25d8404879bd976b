#!/usr/bin/env python3
"""What Sardonyx infers of the standard's test cases beside onnx.shape_inference with data propagation.

Runs infer_runner on the cases, infers the same models with onnx and counts, for the outputs of all
nodes of the main graphs, how much each knows. Lists every value of which onnx knows more.
"""

from __future__ import annotations

import argparse
import collections
import json
import pathlib
import subprocess
import sys
import tempfile

import onnx

ROOT = pathlib.Path(__file__).resolve().parent.parent
CLASSES = ("full", "unknown sizes", "no rank", "nothing")


def prepare(path: pathlib.Path, inputs: str) -> onnx.ModelProto:
    """The model as infer_runner sees it: no declarations but those of the inputs."""
    model = onnx.load(path)
    graph = model.graph
    del graph.value_info[:]
    for output in graph.output:
        if output.type.HasField("tensor_type"):
            output.type.tensor_type.ClearField("shape")
        else:
            output.ClearField("type")
    defaults = {tensor.name for tensor in graph.initializer}
    for value in graph.input if inputs != "fixed" else []:
        kind = value.type.WhichOneof("value")
        if value.name in defaults or kind not in ("tensor_type", "sparse_tensor_type"):
            continue
        if inputs == "unranked":
            getattr(value.type, kind).ClearField("shape")
            continue
        for axis, dim in enumerate(getattr(value.type, kind).shape.dim):
            dim.dim_param = f"{value.name}.{axis}"
    return model


def reference_types(model: onnx.ModelProto) -> dict[str, onnx.TypeProto]:
    try:
        inferred = onnx.shape_inference.infer_shapes(model, check_type=False, strict_mode=False, data_prop=True)
    except Exception as error:  # the reference refuses some models of its own suite
        print(f"onnx: {error}".splitlines()[0], file=sys.stderr)
        return {}
    return {value.name: value.type for value in (*inferred.graph.value_info, *inferred.graph.output)}


def element_type(kind: onnx.TypeProto, field: str) -> onnx.TypeProto | None:
    held = getattr(kind, field)
    return held.value_type if field == "map_type" else held.elem_type


def reference_value(kind: onnx.TypeProto | None, inputs: set[str]) -> dict:
    """One type in the form infer_runner writes; names that onnx made up count as unknown sizes."""
    if kind is None or kind.WhichOneof("value") is None:
        return {"class": "nothing"}
    field = kind.WhichOneof("value")
    if field not in ("tensor_type", "sparse_tensor_type"):
        return {"class": reference_value(element_type(kind, field), inputs)["class"], "shape": None}
    tensor = getattr(kind, field)
    if not tensor.elem_type:
        return {"class": "nothing"}
    if not tensor.HasField("shape"):
        return {"class": "no rank", "element": tensor.elem_type}
    dims = [dim.dim_value if dim.HasField("dim_value") else dim.dim_param for dim in tensor.shape.dim]
    full = all(isinstance(dim, int) or dim in inputs for dim in dims)
    return {"class": "full" if full else "unknown sizes", "element": tensor.elem_type, "shape": dims}


def our_class(value: dict) -> str:
    return {"known": "full", "bounded": "unknown sizes", "open": "unknown sizes", "partial": "no rank",
            "unknown": "nothing"}[value["state"]]


# Where what onnx says is wrong: operator, the kinds of inputs of which this is so, what is wrong, and why.
ALL = {"fixed", "named", "unranked"}
WRONG = [
    ("Attention", {"named"}, lambda theirs, ours: 0 in (theirs.get("shape") or []),
     "it takes the name of a size for 0"),
    ("Attention", {"unranked"}, lambda theirs, ours: theirs.get("shape") == [],
     "it takes the products of Q and K, of four dimensions, for a scalar"),
    ("Scan", {"named"}, lambda theirs, ours: True,
     "it takes sizes that the body declares for those of the values it is given, which may be others"),
    ("Loop", ALL, lambda theirs, ours: ours["shape"] is None,
     "it takes the type that the body declares of a carried sequence for that of its items, which the run makes otherwise; "
     "and a Loop that does not run at all hands on what it was given"),
    ("SequenceMap", ALL, lambda theirs, ours: True,
     "it takes the name of a size in a sequence's type for one size of all items; those of the standard's cases differ"),
    ("MaxPool", ALL, lambda theirs, ours: True,
     "it counts a window that begins in the padding after the input, which the standard leaves out"),
]


def why_wrong(theirs: dict, ours: dict, inputs: str) -> str | None:
    for op, kinds, is_wrong, reason in WRONG:
        if ours["op"] == op and inputs in kinds and is_wrong(theirs, ours):
            return reason
    return None


def knows_more(theirs: dict, ours: dict) -> str | None:
    mine = our_class(ours)
    if CLASSES.index(theirs["class"]) < CLASSES.index(mine):
        return f"{theirs['class']} against {mine}"
    shape, own = theirs.get("shape"), ours["shape"]
    if shape is None or own is None:
        return None
    if len(shape) != len(own):
        return f"rank {len(shape)} against {len(own)}"
    for theirs_dim, our_dim in zip(shape, own):
        if isinstance(theirs_dim, int) and theirs_dim != our_dim:
            return f"{shape} against {own}"
    return None


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("cases", nargs="+", type=pathlib.Path, help="folders that hold cases, at any depth")
    parser.add_argument("--runner", default=ROOT / "build" / "release" / "bin" / "infer_runner")
    parser.add_argument("--filter", default=".*", help="only cases whose name matches")
    parser.add_argument("--inputs", default="fixed", choices=("fixed", "named", "unranked"),
                        help="as declared, every dimension a name of its own, or not even ranks (default fixed)")
    parser.add_argument("--json", type=pathlib.Path, help="write the counts and the list here")
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        report = pathlib.Path(folder) / "report.json"
        command = [str(options.runner), "--cases", *map(str, options.cases), "--filter", options.filter,
                   "--exceptions", str(ROOT / "tests" / "conformance" / "exceptions.txt"), "--json", str(report), "--inputs", options.inputs]
        status = subprocess.run(command).returncode
        cases = json.loads(report.read_text())
    counts = {"sardonyx": collections.Counter(), "onnx": collections.Counter()}
    behind, wrong, ahead = [], [], 0
    for case in cases:
        if "values" not in case:
            continue
        model = prepare(pathlib.Path(case["case"]) / "model.onnx", options.inputs)
        types = reference_types(model)
        inputs = {dim.dim_param for value in model.graph.input for dim in value.type.tensor_type.shape.dim}
        for name, value in case["values"].items():
            theirs = reference_value(types.get(name), inputs)
            counts["sardonyx"][our_class(value)] += 1
            counts["onnx"][theirs["class"]] += 1
            ahead += CLASSES.index(our_class(value)) < CLASSES.index(theirs["class"])
            if more := knows_more(theirs, value):
                row = {"case": case["case"], "value": name, "op": value["op"], "why": more}
                if reason := why_wrong(theirs, value, options.inputs):
                    wrong.append(row | {"wrong": reason})
                else:
                    behind.append(row)
    for row in wrong:
        print(f"onnx is wrong: {row['case']} {row['op']} '{row['value']}': {row['why']}: {row['wrong']}")
    for row in behind:
        print(f"onnx knows more: {row['case']} {row['op']} '{row['value']}': {row['why']}")
    print(f"{'':10}" + "".join(f"{name:>15}" for name in CLASSES))
    for engine, count in counts.items():
        print(f"{engine:10}" + "".join(f"{count[name]:>15}" for name in CLASSES))
    print(f"Sardonyx knows more of {ahead} values, onnx of {len(behind)}; it is wrong of {len(wrong)} others")
    if options.json:
        report = {"counts": counts, "ahead": ahead, "behind": behind, "wrong": wrong}
        options.json.write_text(json.dumps(report, indent=1))
    return status or (1 if behind else 0)


if __name__ == "__main__":
    sys.exit(main())
