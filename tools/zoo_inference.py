#!/usr/bin/env python3
"""What Sardonyx knows of the values of the bench zoo, beside onnx.shape_inference with data propagation.

Every model of the zoo, small, with free sizes wherever it still runs with others: the first dimension of each input is
`batch` where the model does not name it, the sides of images are `height` and `width` where no node of the model needs
them to be numbers; sequences have names of their own. Declarations of values are forgotten. Counts all outputs of the
main graphs' nodes and prints a table; exit code 1 where Sardonyx leaves something without a bound that is not among
the values that no size bounds.
"""

from __future__ import annotations

import argparse
import collections
import json
import pathlib
import subprocess
import sys
import tempfile

ROOT = pathlib.Path(__file__).resolve().parent.parent
sys.path[:0] = [str(ROOT / "tools"), str(ROOT / "bench"), str(ROOT / "tests" / "python")]

import compare_inference  # noqa: E402
import onnx  # noqa: E402
import test_infer  # noqa: E402
import test_zoo  # noqa: E402
import zoo  # noqa: E402


def with_free_sizes(model: onnx.ModelProto, images: bool) -> onnx.ModelProto:
    made = onnx.ModelProto()
    made.CopyFrom(model)
    del made.graph.value_info[:]
    for output in made.graph.output:
        if output.type.HasField("tensor_type"):
            output.type.tensor_type.ClearField("shape")
        else:
            output.ClearField("type")
    defaults = {tensor.name for tensor in made.graph.initializer}
    for value in made.graph.input:
        dims = value.type.tensor_type.shape.dim
        if value.name in defaults or not dims:
            continue
        names = {0: "batch"} | ({2: "height", 3: "width"} if images and len(dims) == 4 else {})
        for axis, name in names.items():
            if not dims[axis].dim_param:
                dims[axis].dim_param = name
    return made


def infer(program: pathlib.Path, model: onnx.ModelProto, folder: str) -> dict:
    path = pathlib.Path(folder) / "model.onnx"
    onnx.save(model, path)
    result = subprocess.run([program, "infer", path, "--json"], capture_output=True, text=True)
    return json.loads(result.stdout)


def freed(program: pathlib.Path, model: onnx.ModelProto, folder: str) -> tuple[onnx.ModelProto, dict]:
    """The model with as many free sizes as its nodes allow, and what is inferred of it."""
    for images in (True, False):
        made = with_free_sizes(model, images)
        report = infer(program, made, folder)
        learned = set(report["names"]) & {"batch", "height", "width"}  # which a node wants to be a number
        if not learned and not any(finding["severity"] == "error" for finding in report["findings"]):
            break
    return made, report


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--program", type=pathlib.Path, default=ROOT / "build" / "release" / "bin" / "sardonyx")
    parser.add_argument("--models", help="names with commas between them (default: all)")
    parser.add_argument("--all", action="store_true", help="a row for each model, not only the sums")
    options = parser.parse_args()
    names = options.models.split(",") if options.models else list(zoo.ENTRIES)
    sums = {"Sardonyx": collections.Counter(), "onnx": collections.Counter()}
    rows, failed = [], 0
    for name in names:
        with tempfile.TemporaryDirectory() as folder:
            model, report = freed(options.program, test_zoo.small(name).model, folder)
        made = {output for node in model.graph.node for output in node.output if output}
        ours = collections.Counter(value["state"] for value in report["values"]
                                   if not value["graph"] and value["name"] in made)
        types = compare_inference.reference_types(model)
        inputs = {dim.dim_param for value in model.graph.input for dim in value.type.tensor_type.shape.dim}
        theirs = collections.Counter(compare_inference.reference_value(types.get(value), inputs)["class"] for value in made)
        sums["Sardonyx"] += ours
        sums["onnx"] += theirs
        left = {value["name"] for value in report["values"] if value["state"] not in ("known", "bounded")}
        if left - test_infer.WITHOUT_BOUND.get(name, set()):
            failed += 1
            print(f"{name}: without a bound: {', '.join(sorted(left))}", file=sys.stderr)
        rows.append(f"| {name} | {len(made)} | {ours['known']} | {ours['bounded']} | {len(made) - ours['known'] - ours['bounded']} "
                    f"| {theirs['full']} | {len(made) - theirs['full']} |")
    total, ours, theirs = sum(sums["onnx"].values()), sums["Sardonyx"], sums["onnx"]
    print("| models | values of nodes | Sardonyx: numbers and expressions | named unknowns with a bound | others "
          "| onnx: numbers and names | others |\n" + "|---" * 7 + "|")
    if options.all:
        print("\n".join(rows))
    print(f"| {len(names)} | {total} | {ours['known']} | {ours['bounded']} | {total - ours['known'] - ours['bounded']} "
          f"| {theirs['full']} | {total - theirs['full']} |")
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
