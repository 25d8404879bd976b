#!/usr/bin/env python3
"""Times type and shape inference beside onnx.shape_inference, from file to file.

Both read NAME.onnx and write it again with what they inferred. Times are processor time, so that other work on the
machine counts less. Sardonyx is a process of its own, its start included; onnx runs in a warm Python process, with
data propagation. "Without writing" is inference of the file alone. Memory is what a process holds at most, beyond what onnx's holds when nothing has been inferred yet.
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
import json, sys, time
import onnx, onnx.shape_inference

def peak():
    return next(int(line.split()[1]) / 1e3 for line in open("/proc/self/status") if line.startswith("VmHWM"))

def timed(action):
    times = []
    for _ in range(int(sys.argv[3])):
        start = time.process_time()
        action()
        times.append((time.process_time() - start) * 1e3)
    return times

base = peak()
answer = {"ms": timed(lambda: onnx.shape_inference.infer_shapes_path(sys.argv[1], sys.argv[2], data_prop=True)),
          "mb": peak() - base}
answer["alone_ms"] = timed(lambda: onnx.shape_inference.infer_shapes(onnx.load(sys.argv[1]), data_prop=True))
print(json.dumps(answer))
"""


def peak_memory(pid: int) -> float:
    """The most that a running process has held, in MB."""
    status = pathlib.Path(f"/proc/{pid}/status").read_text()
    return next((int(line.split()[1]) / 1e3 for line in status.splitlines() if line.startswith("VmHWM")), 0.0)


def time_program(command: list[str], count: int) -> dict:
    times, peak = [], 0
    for _ in range(count):
        process = subprocess.Popen(command, stdout=subprocess.DEVNULL)
        done = 0
        while not done:  # what wait4 says of memory begins with this process's own
            peak = max(peak, peak_memory(process.pid))
            done, status, usage = os.wait4(process.pid, os.WNOHANG)
            time.sleep(5e-4)
        times.append((usage.ru_utime + usage.ru_stime) * 1e3)
        process.returncode = os.waitstatus_to_exitcode(status)
        if process.returncode not in (0, 1):
            raise RuntimeError(f"{' '.join(command)} ended with {process.returncode}")
    return {"ms": statistics.median(times), "mb": peak}


def time_reference(model: pathlib.Path, output: pathlib.Path, count: int) -> dict:
    result = subprocess.run([sys.executable, "-c", CHILD, str(model), str(output), str(count)],
                            capture_output=True, text=True)
    if result.returncode:
        raise RuntimeError(result.stderr.strip().splitlines()[-1])
    answer = json.loads(result.stdout)
    return {"ms": statistics.median(answer["ms"]), "mb": answer["mb"],
            "alone_ms": statistics.median(answer["alone_ms"])}


def states(program: str, model: pathlib.Path) -> dict:
    result = subprocess.run([program, "infer", str(model), "--json"], capture_output=True, text=True)
    return json.loads(result.stdout)["counts"]


def measure(name: str, model: pathlib.Path, options: argparse.Namespace) -> dict:
    row = {"model": name, "file_mb": model.stat().st_size / 1e6}
    with tempfile.TemporaryDirectory(dir=model.parent) as folder:
        command = [options.program, "infer", str(model)]
        ours = time_program(command + ["-o", str(pathlib.Path(folder) / "ours.onnx")], options.count)
        row |= {"sardonyx_ms": ours["ms"], "sardonyx_mb": ours["mb"],
                "sardonyx_alone_ms": time_program(command, options.count)["ms"]}
        row["states"] = states(options.program, model)
        try:
            theirs = time_reference(model, pathlib.Path(folder) / "theirs.onnx", options.count)
            row |= {"onnx_ms": theirs["ms"], "onnx_mb": theirs["mb"], "onnx_alone_ms": theirs["alone_ms"]}
            row["ratio"] = row["onnx_ms"] / row["sardonyx_ms"]
            row["alone_ratio"] = row["onnx_alone_ms"] / row["sardonyx_alone_ms"]
        except RuntimeError as error:
            row["onnx_error"] = str(error)
    return row


def table(rows: list[dict]) -> str:
    lines = ["| model | file, MB | Sardonyx, ms | onnx, ms | ratio | without writing | onnx | ratio | Sardonyx, MB "
             "| onnx, MB | known / bounded / open |", "|---" * 11 + "|"]
    for row in rows:
        state = row["states"]
        counts = f"{state['known']} / {state['bounded']} / {state['open'] + state['partial'] + state['unknown']}"
        failed = "ratio" not in row
        theirs = ["failed", "", "", "", ""] if failed else [
            f"{row[key]:.1f}" for key in ("onnx_ms", "ratio", "onnx_alone_ms", "alone_ratio", "onnx_mb")]
        lines.append(f"| {row['model']} | {row['file_mb']:.1f} | {row['sardonyx_ms']:.1f} | {theirs[0]} | {theirs[1]} "
                     f"| {row['sardonyx_alone_ms']:.1f} | {theirs[2]} | {theirs[3]} | {row['sardonyx_mb']:.0f} "
                     f"| {theirs[4]} | {counts} |")
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
