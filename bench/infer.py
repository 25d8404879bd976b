#!/usr/bin/env python3
"""Times type and shape inference beside onnx.shape_inference.

Four ways: inside one warm process, from the path of a model to the types of its values; inside one, too, from file to
file, where both write NAME.onnx again with what they inferred; the same with Sardonyx as a process of its own, its start
included, while onnx is warm; and such a process that appends to the file instead. onnx runs with data propagation. Times
are processor time, so that other work on the machine counts less. Memory is what a process holds at most, beyond what
onnx's holds when nothing has been inferred yet.
"""

from __future__ import annotations

import argparse
import json
import math
import os
import pathlib
import shutil
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable

import build_models
import numpy as np
import onnx
import zoo
from onnx import TensorProto, helper

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
answer = {}
if sys.argv[2]:
    answer["ms"] = timed(lambda: onnx.shape_inference.infer_shapes_path(sys.argv[1], sys.argv[2], data_prop=True))
    answer["mb"] = peak() - base
answer["alone_ms"] = timed(lambda: onnx.shape_inference.infer_shapes(onnx.load(sys.argv[1]), data_prop=True))
print(json.dumps(answer))
"""


def peak_memory(pid: int) -> float:
    """The most that a running process has held, in MB."""
    status = pathlib.Path(f"/proc/{pid}/status").read_text()
    return next((int(line.split()[1]) / 1e3 for line in status.splitlines() if line.startswith("VmHWM")), 0.0)


def time_program(command: list[str], count: int, after: Callable[[], None] = lambda: None) -> dict:
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
        after()
    return {"ms": statistics.median(times), "mb": peak}


def time_reference(model: pathlib.Path, output: pathlib.Path | None, count: int) -> dict:
    """File to file and inside the process, or without an output only the latter."""
    result = subprocess.run([sys.executable, "-c", CHILD, str(model), str(output or ""), str(count)],
                            capture_output=True, text=True)
    if result.returncode:
        raise RuntimeError(result.stderr.strip().splitlines()[-1])
    answer = json.loads(result.stdout)
    inside = {"alone_ms": statistics.median(answer["alone_ms"])}
    return inside | {"ms": statistics.median(answer["ms"]), "mb": answer["mb"]} if output else inside


def time_inside(bench: str, what: str, model: pathlib.Path, output: pathlib.Path, count: int) -> float:
    """What: `types`, or `write` for file to file."""
    repetitions = max(count, 20) if what == "types" else count
    command = [bench, what, str(model), str(output), str(repetitions)]
    return json.loads(subprocess.run(command, capture_output=True, text=True, check=True).stdout)["ms"]


def time_in_place(program: str, model: pathlib.Path, copy: pathlib.Path, count: int) -> float:
    """On a copy that is as it was before each repetition."""
    shutil.copyfile(model, copy)
    size = copy.stat().st_size
    try:
        return time_program([program, "infer", str(copy), "--in-place"], count, lambda: os.truncate(copy, size))["ms"]
    finally:
        copy.unlink()


def states(program: str, model: pathlib.Path) -> dict:
    result = subprocess.run([program, "infer", str(model), "--json"], capture_output=True, text=True)
    return json.loads(result.stdout)["counts"]


def measure(name: str, model: pathlib.Path, options: argparse.Namespace) -> dict:
    row = {"model": name, "file_mb": model.stat().st_size / 1e6}
    with tempfile.TemporaryDirectory(dir=model.parent) as folder:
        output = pathlib.Path(folder) / "ours.onnx"
        ours = time_program([options.program, "infer", str(model), "-o", str(output)], options.count)
        row |= {"sardonyx_ms": ours["ms"], "sardonyx_mb": ours["mb"],
                "sardonyx_alone_ms": time_inside(options.bench, "types", model, output, options.count),
                "sardonyx_write_ms": time_inside(options.bench, "write", model, output, options.count),
                "sardonyx_place_ms": time_in_place(options.program, model, output, options.count)}
        row["states"] = states(options.program, model)
        try:
            theirs = time_reference(model, pathlib.Path(folder) / "theirs.onnx", options.count)
            row |= {"onnx_ms": theirs["ms"], "onnx_mb": theirs["mb"], "onnx_alone_ms": theirs["alone_ms"]}
        except RuntimeError as error:
            row["onnx_error"] = str(error)
    return row


def write_perceptron(path: pathlib.Path) -> None:
    """Fifteen square matrices of 128 MB: what one message of the format can still hold."""
    side, layers = 5792, 15
    matrix = np.zeros((side, side), np.float32).tobytes()
    weights = [helper.make_tensor(f"w{i}", TensorProto.FLOAT, [side, side], matrix, raw=True) for i in range(layers)]
    nodes = [helper.make_node("Gemm", [f"x{i}", f"w{i}"], [f"x{i + 1}"]) for i in range(layers)]
    ends = [helper.make_tensor_value_info(f"x{i}", TensorProto.FLOAT, ["batch", side]) for i in (0, layers)]
    graph = helper.make_graph(nodes, "perceptron", ends[:1], ends[1:], weights)
    onnx.save(helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)]), path)


def measure_inside(name: str, model: pathlib.Path, options: argparse.Namespace) -> dict:
    size = model.stat().st_size / 1e6
    count = max(3, min(options.count, round(options.count * 20 / max(size, 1e-9))))
    row = {"model": name, "file_mb": size, "sardonyx_ms": time_inside(options.bench, "types", model, model, options.count)}
    try:
        row["onnx_ms"] = time_reference(model, None, count)["alone_ms"]
    except RuntimeError as error:
        row["onnx_error"] = str(error)
    return row


def inside_table(rows: list[dict]) -> str:
    """A line for each size of files, and those that fall short of ten times by name."""
    lines = ["| file | models | Sardonyx, ms | onnx, ms | times faster: least | geometric mean | most |", "|---" * 7 + "|"]
    compared = [row for row in rows if "onnx_ms" in row]
    bounds = [(0, 0.1, "below 100 KB"), (0.1, 1, "to 1 MB"), (1, 10, "to 10 MB"), (10, 100, "to 100 MB"),
              (100, 1000, "to 1 GB"), (1000, math.inf, "beyond 1 GB"), (0, math.inf, "all")]
    for low, high, title in bounds:
        group = [row for row in compared if low <= row["file_mb"] < high]
        if not group:
            continue
        ratios = [row["onnx_ms"] / row["sardonyx_ms"] for row in group]
        middle = [statistics.median(row[who] for row in group) for who in ("sardonyx_ms", "onnx_ms")]
        lines.append(f"| {title} | {len(group)} | {middle[0]:.2f} | {middle[1]:.1f} "
                     f"| {min(ratios):.1f} | {statistics.geometric_mean(ratios):.0f} | {max(ratios):.0f} |")
    short = [f"{row['model']} {row['onnx_ms'] / row['sardonyx_ms']:.1f}" for row in compared
             if row["onnx_ms"] < 10 * row["sardonyx_ms"]]
    failed = [f"{row['model']} ({row['onnx_error']})" for row in rows if "onnx_error" in row]
    return "\n".join([*lines, "", f"Less than ten times ({len(short)} of {len(compared)}): {', '.join(short)}.",
                      *([f"onnx failed: {'; '.join(failed)}."] if failed else [])])


def compare_inside(models: list[tuple[str, pathlib.Path]], options: argparse.Namespace) -> list[dict]:
    rows = [measure_inside(name, path, options) for name, path in models]
    with tempfile.TemporaryDirectory(dir=options.models_folder) as folder:
        path = pathlib.Path(folder) / "perceptron.onnx"
        write_perceptron(path)
        return [*rows, measure_inside("perceptron", path, options)]


def table(rows: list[dict]) -> str:
    lines = ["| model | file, MB | in process, ms | onnx | ratio | file to file, ms | onnx | ratio | as a process, ms "
             "| ratio | in place, ms | ratio | memory, MB | onnx | known / bounded / open |", "|---" * 15 + "|"]
    for row in rows:
        state = row["states"]
        failed = "onnx_ms" not in row

        def beside(ours: str, theirs: str) -> str:
            ratio = "" if failed else f"{row[theirs] / row[ours]:.1f}"
            return f"{row[ours]:.2f} | {'failed' if failed else format(row[theirs], '.1f')} | {ratio}"

        def against(ours: str) -> str:
            return f"{row[ours]:.2f} | " + ("" if failed else f"{row['onnx_ms'] / row[ours]:.1f}")

        lines.append(
            f"| {row['model']} | {row['file_mb']:.1f} | {beside('sardonyx_alone_ms', 'onnx_alone_ms')} "
            f"| {beside('sardonyx_write_ms', 'onnx_ms')} | {against('sardonyx_ms')} | {against('sardonyx_place_ms')} "
            f"| {row['sardonyx_mb']:.0f} | {'' if failed else format(row['onnx_mb'], '.0f')} "
            f"| {state['known']} / {state['bounded']} / {state['open'] + state['partial'] + state['unknown']} |")
    return "\n".join(lines)


def main() -> int:
    parser = argparse.ArgumentParser(prog="./dev bench --infer", description=__doc__,
                                     formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--program", default=str(ROOT / "build" / "release" / "bin" / "sardonyx"))
    parser.add_argument("--bench", default=str(ROOT / "build" / "release" / "bin" / "infer_bench"))
    parser.add_argument("--models", default="all",
                        help="names with commas between them, or all: " + ", ".join(zoo.MODELS))
    parser.add_argument("--models-folder", type=pathlib.Path, default=ROOT / "build" / "bench-models")
    parser.add_argument("--file", type=pathlib.Path, action="append", default=[], help="also this model (repeatable)")
    parser.add_argument("--inside", action="store_true", help="only inside a process, summed up")
    parser.add_argument("--published", type=pathlib.Path, help="with --inside: also the models in this folder")
    parser.add_argument("--count", type=int, default=5, help="repetitions; the median counts (default 5)")
    parser.add_argument("--json", type=pathlib.Path, help="write the rows to this file")
    options = parser.parse_args()
    names = list(zoo.MODELS) if options.models == "all" else [name for name in options.models.split(",") if name]
    if unknown := [name for name in names if name not in zoo.MODELS]:
        parser.error(f"unknown models: {', '.join(unknown)}; known: {', '.join(zoo.MODELS)}")
    build_models.build_all(names, options.models_folder)
    models = [(name, options.models_folder / f"{name}.onnx") for name in names]
    models += [(file.stem, file) for file in options.file]
    if options.inside:
        published = sorted(options.published.glob("*.onnx")) if options.published else []
        rows = compare_inside(models + [(file.stem, file) for file in published], options)
        print(inside_table(rows))
    else:
        rows = [measure(name, path, options) for name, path in models]
        print(table(rows))
    if options.json:
        options.json.write_text(json.dumps(rows, indent=1))
    return 0


if __name__ == "__main__":
    sys.exit(main())
