#!/usr/bin/env python3
"""Times type and shape inference beside onnx.shape_inference, from file to file.

Both read NAME.onnx and write it again with what they inferred. Sardonyx is a process of its own, its start
included; onnx runs in a warm Python process, with data propagation. Memory is what a process holds at most,
beyond what onnx's holds when nothing has been inferred yet.
"""

from __future__ import annotations

import argparse
import json
import os
import pathlib
import statistics
import subprocess
import sys
import tempfile
import time

import build_models
import zoo

ROOT = pathlib.Path(__file__).resolve().parent.parent
CHILD = """
import json, resource, sys, time
import onnx, onnx.shape_inference
base = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
times = []
for _ in range(int(sys.argv[3])):
    start = time.perf_counter()
    onnx.shape_inference.infer_shapes_path(sys.argv[1], sys.argv[2], data_prop=True)
    times.append((time.perf_counter() - start) * 1e3)
print(json.dumps({"ms": times, "mb": (resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - base) / 1e3}))
"""


def time_program(program: str, model: pathlib.Path, output: pathlib.Path, count: int) -> dict:
    times, peak = [], 0
    for _ in range(count):
        start = time.perf_counter()
        process = subprocess.Popen([program, "infer", str(model), "-o", str(output)], stdout=subprocess.DEVNULL)
        _, status, usage = os.wait4(process.pid, 0)
        times.append((time.perf_counter() - start) * 1e3)
        process.returncode = os.waitstatus_to_exitcode(status)
        if process.returncode not in (0, 1):
            raise RuntimeError(f"{program} infer {model} ended with {process.returncode}")
        peak = max(peak, usage.ru_maxrss / 1e3)
    return {"ms": statistics.median(times), "mb": peak}


def time_reference(model: pathlib.Path, output: pathlib.Path, count: int) -> dict:
    result = subprocess.run([sys.executable, "-c", CHILD, str(model), str(output), str(count)],
                            capture_output=True, text=True)
    if result.returncode:
        raise RuntimeError(result.stderr.strip().splitlines()[-1])
    answer = json.loads(result.stdout)
    return {"ms": statistics.median(answer["ms"]), "mb": answer["mb"]}


def states(program: str, model: pathlib.Path) -> dict:
    result = subprocess.run([program, "infer", str(model), "--json"], capture_output=True, text=True)
    return json.loads(result.stdout)["counts"]


def measure(name: str, model: pathlib.Path, options: argparse.Namespace) -> dict:
    row = {"model": name, "file_mb": model.stat().st_size / 1e6}
    with tempfile.TemporaryDirectory(dir=model.parent) as folder:
        ours = time_program(options.program, model, pathlib.Path(folder) / "ours.onnx", options.count)
        row |= {"sardonyx_ms": ours["ms"], "sardonyx_mb": ours["mb"]}
        row["states"] = states(options.program, model)
        try:
            theirs = time_reference(model, pathlib.Path(folder) / "theirs.onnx", options.count)
            row |= {"onnx_ms": theirs["ms"], "onnx_mb": theirs["mb"]}
            row["ratio"] = row["onnx_ms"] / row["sardonyx_ms"]
        except RuntimeError as error:
            row["onnx_error"] = str(error)
    return row


def table(rows: list[dict]) -> str:
    lines = ["| model | file, MB | Sardonyx, ms | onnx, ms | ratio | Sardonyx, MB | onnx, MB | known / bounded / open |",
             "|---|---|---|---|---|---|---|---|"]
    for row in rows:
        state = row["states"]
        counts = f"{state['known']} / {state['bounded']} / {state['open'] + state['partial'] + state['unknown']}"
        theirs = (f"{row['onnx_ms']:.1f} | {row['ratio']:.1f}" if "ratio" in row else "failed | ",
                  f"{row['onnx_mb']:.0f}" if "onnx_mb" in row else "")
        lines.append(f"| {row['model']} | {row['file_mb']:.1f} | {row['sardonyx_ms']:.1f} | {theirs[0]} | "
                     f"{row['sardonyx_mb']:.0f} | {theirs[1]} | {counts} |")
    return "\n".join(lines)


def main() -> int:
    parser = argparse.ArgumentParser(prog="./dev bench --infer", description=__doc__,
                                     formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--program", default=str(ROOT / "build" / "release" / "bin" / "sardonyx"))
    parser.add_argument("--models", default="all",
                        help="names with commas between them, or all: " + ", ".join(zoo.MODELS))
    parser.add_argument("--models-folder", type=pathlib.Path, default=ROOT / "build" / "bench-models")
    parser.add_argument("--file", type=pathlib.Path, action="append", default=[], help="also this model (repeatable)")
    parser.add_argument("--count", type=int, default=5, help="repetitions; the median counts (default 5)")
    parser.add_argument("--json", type=pathlib.Path, help="write the rows to this file")
    options = parser.parse_args()
    names = list(zoo.MODELS) if options.models == "all" else [name for name in options.models.split(",") if name]
    if unknown := [name for name in names if name not in zoo.MODELS]:
        parser.error(f"unknown models: {', '.join(unknown)}; known: {', '.join(zoo.MODELS)}")
    build_models.build_all(names, options.models_folder)
    models = [(name, options.models_folder / f"{name}.onnx") for name in names]
    rows = [measure(name, path, options) for name, path in models + [(file.stem, file) for file in options.file]]
    print(table(rows))
    if options.json:
        options.json.write_text(json.dumps(rows, indent=1))
    return 0


if __name__ == "__main__":
    sys.exit(main())
