#!/usr/bin/env python3
"""What a run costs in Python beside the model: one node on four floats, Sardonyx and ONNX Runtime in turns.

Prints the median microseconds of a run for each, their ratio, the time of importing, and how much memory many runs add.
Needs the package: build/release/python, or SARDONYX_PACKAGE.
"""

from __future__ import annotations

import argparse
import gc
import os
import pathlib
import statistics
import subprocess
import sys
import time

ROOT = pathlib.Path(__file__).resolve().parent.parent
PACKAGE = os.environ.get("SARDONYX_PACKAGE", str(ROOT / "build" / "release" / "python"))
os.environ["ORT_DISABLE_TELEMETRY"] = "1"
sys.path.insert(0, PACKAGE)

import numpy as np  # noqa: E402
import onnx.parser  # noqa: E402
import onnxruntime  # noqa: E402

import sardonyx  # noqa: E402
import sardonyx.compat.onnxruntime as compat  # noqa: E402

MODEL = '<ir_version: 8, opset_import: ["" : 17]> one_node (float[n] x) => (float[n] y) { y = Add(x, x) }'


def microseconds(call, runs: int) -> float:
    begin = time.perf_counter()
    for _ in range(runs):
        call()
    return (time.perf_counter() - begin) / runs * 1e6


def importing(module: str) -> float:
    """Milliseconds beyond what numpy takes, in a process of its own."""
    code = f"import time, numpy; begin = time.perf_counter(); import {module}; print((time.perf_counter() - begin) * 1e3)"
    environment = dict(os.environ, PYTHONPATH=PACKAGE)
    return statistics.median(float(subprocess.run([sys.executable, "-c", code], env=environment, check=True, capture_output=True,
                                                  text=True).stdout) for _ in range(5))


def resident_kilobytes() -> int:
    for line in pathlib.Path("/proc/self/status").read_text().splitlines():
        if line.startswith("VmRSS:"):
            return int(line.split()[1])
    return 0


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--rounds", type=int, default=21, help="turns of each")
    parser.add_argument("--runs", type=int, default=5000, help="runs of a turn")
    parser.add_argument("--grow", type=int, default=1_000_000, help="runs that memory is looked at over")
    options = parser.parse_args()
    data = onnx.parser.parse_model(MODEL).SerializeToString()
    feeds = {"x": np.arange(4, dtype=np.float32)}
    own, same, theirs = sardonyx.Session(data), compat.InferenceSession(data), onnxruntime.InferenceSession(data)
    calls = {"sardonyx": lambda: own.run(feeds), "sardonyx.compat.onnxruntime": lambda: same.run(None, feeds),
             "onnxruntime": lambda: theirs.run(None, feeds)}
    times: dict[str, list[float]] = {name: [] for name in calls}
    for _ in range(options.rounds):
        for name, call in calls.items():
            times[name].append(microseconds(call, options.runs))
    medians = {name: statistics.median(one) for name, one in times.items()}
    for name, median in medians.items():
        print(f"{name:28} {median:6.2f} µs a run  {median / medians['onnxruntime']:5.2f} of onnxruntime's")
    for module in ("sardonyx", "sardonyx.compat.onnxruntime", "onnxruntime"):
        print(f"{module:28} {importing(module):6.1f} ms to import, beyond numpy")
    own.run(feeds)
    gc.collect()
    before = resident_kilobytes()
    microseconds(calls["sardonyx"], options.grow // 2)
    microseconds(calls["sardonyx.compat.onnxruntime"], options.grow - options.grow // 2)
    gc.collect()
    print(f"{resident_kilobytes() - before} kB more after {options.grow} runs")


if __name__ == "__main__":
    main()
