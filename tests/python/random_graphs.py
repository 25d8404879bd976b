"""Random graphs, whose planned run must give what plain evaluation gives, and that what ONNX Runtime gives.

The families are in graphs/. Cases are written to a folder and run by graph_runner (tests/conformance/graph_runner.cc).

    .venv/bin/python tests/python/random_graphs.py RUNNER [--family elements] [--seed 1] [--count 1000] [--keep FOLDER]
"""

from __future__ import annotations

import argparse
import contextlib
import functools
import importlib
import json
import os
import pathlib
import subprocess
import sys
import tempfile
from concurrent.futures import ProcessPoolExecutor

import numpy as np
import onnx
from graphs.maker import BFLOAT, HALF, Graph
from onnx import numpy_helper

FAMILIES = ("elements", "convolutions", "quantised", "attention", "products", "mixed", "sizes", "mutants", "limits")
HOSTILE = ("mutants", "limits")  # which ONNX Runtime does not always survive


def write_runtime_outputs(graph: Graph, case: pathlib.Path) -> None:
    """What ONNX Runtime makes of the sets with its optimisations off; nothing where it has not all the kernels."""
    import onnxruntime

    types = {onnx.helper.tensor_dtype_to_np_dtype(value.type.tensor_type.elem_type) for value in graph.model.graph.input}
    if types & {HALF, BFLOAT}:
        return
    options = onnxruntime.SessionOptions()
    options.graph_optimization_level = onnxruntime.GraphOptimizationLevel.ORT_DISABLE_ALL
    options.log_severity_level = 4
    options.intra_op_num_threads = 1
    session = onnxruntime.InferenceSession(graph.model.SerializeToString(), options, providers=["CPUExecutionProvider"])
    for number, inputs in enumerate(graph.sets):
        if any(array.size == 0 for array in inputs.values()):
            continue  # of which it takes some for another shape, and crashes of others
        outputs = session.run(None, inputs)
        # Beyond this, what differs a little has been raised to a power, and differs much.
        if any(isinstance(array, list) for array in outputs):
            continue  # sequences
        if all(np.isfinite(array).all() and np.abs(array).max(initial=0) < 1e4 for array in outputs):
            write_values(case / f"test_data_set_{number}", "output", outputs)


def write_values(folder: pathlib.Path, kind: str, arrays) -> None:
    for index, array in enumerate(arrays):
        (folder / f"{kind}_{index}.pb").write_bytes(numpy_helper.from_array(array).SerializeToString())


def write(family: str, folder: pathlib.Path, runtime: bool, seed: int) -> None:
    graph = importlib.import_module(f"graphs.{family}").make(seed)
    if graph is None:
        return
    case = folder / f"{family}-{seed:07}"
    for number, inputs in enumerate(graph.sets):
        data = case / f"test_data_set_{number}"
        data.mkdir(parents=True)
        write_values(data, "input", inputs.values())
    onnx.save(graph.model, case / "model.onnx")
    (case / "comparison.json").write_text(json.dumps(graph.comparison))
    if runtime and family not in HOSTILE:
        in_a_child(write_runtime_outputs, graph, case)


def in_a_child(function, *arguments) -> None:
    """ONNX Runtime refuses some graphs by an exception, and others by a crash."""
    child = os.fork()
    if child == 0:
        with contextlib.suppress(Exception):
            function(*arguments)
        os._exit(0)
    os.waitpid(child, 0)


def differences(runner: str, family: str, seeds: range, folder: pathlib.Path, runtime: bool = True) -> list[str]:
    """A line for each difference, and one for a crash, behind the name of its case."""
    with ProcessPoolExecutor() as pool:
        list(pool.map(functools.partial(write, family, folder, runtime), seeds, chunksize=8))
    result = subprocess.run([runner, "--cases", str(folder)], capture_output=True, text=True, timeout=3600)
    case, found = "", []
    for line in result.stdout.splitlines():
        if line.startswith("  "):
            found.append(f"{case}: {line.strip()}")
        else:
            case = line
    if result.returncode not in (0, 1) or (result.returncode == 1 and not found):
        found.append(f"{case}: ended with {result.returncode}: {result.stderr[-3000:]}")
    return found


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("runner", help="build/release/bin/graph_runner")
    parser.add_argument("--family", choices=FAMILIES, action="append", help="repeatable; all without it")
    parser.add_argument("--seed", type=int, default=1, help="of the first graph")
    parser.add_argument("--count", type=int, default=1000, help="of each family")
    parser.add_argument("--alone", action="store_true", help="without ONNX Runtime")
    parser.add_argument("--keep", type=pathlib.Path, help="leave the cases in this folder")
    options = parser.parse_args()
    bad = 0
    for family in options.family or FAMILIES:
        with tempfile.TemporaryDirectory() as temporary:
            folder = (options.keep or pathlib.Path(temporary)) / family
            folder.mkdir(parents=True)
            found = differences(options.runner, family, range(options.seed, options.seed + options.count), folder,
                                not options.alone)
        bad += len(found)
        print("\n".join([*found, f"{family}: {options.count} graphs, {len(found)} differences"]), flush=True)
    return 1 if bad else 0


if __name__ == "__main__":
    sys.exit(main())
