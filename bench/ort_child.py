#!/usr/bin/env python3
"""ONNX Runtime behind the protocol of `sardonyx bench --serve`: a command a line in, a JSON object a line out.

    load MODEL.onnx THREADS   {"create_ms": ...}
    inputs FILE.npz           {}
    run N                     {"ms": [...]}
    outputs DIR               {}: output_0.npy and so on; a list of maps as a matrix of their values
    memory                    {"peak_mb": ..., "base_mb": ...}
    quit
"""

from __future__ import annotations

import json
import pathlib
import sys
import time

import numpy as np
import onnxruntime

import values


def process_memory(field: str) -> float:
    with open("/proc/self/status") as status:
        for line in status:
            if line.startswith(field + ":"):
                return int(line.split()[1]) / 1024
    return 0.0


class Child:
    def __init__(self):
        self.session = None
        self.binding = self.once = self.results = None
        self.base = 0.0

    def load(self, path: str, threads: str) -> dict:
        self.base = process_memory("VmRSS")
        options = onnxruntime.SessionOptions()
        options.intra_op_num_threads = int(threads)
        options.inter_op_num_threads = 1
        options.log_severity_level = 3
        self.binding = None
        start = time.perf_counter_ns()
        self.session = onnxruntime.InferenceSession(path, options, providers=["CPUExecutionProvider"])
        return {"create_ms": (time.perf_counter_ns() - start) / 1e6}

    def inputs(self, path: str) -> dict:
        """Bound where they lie; strings and outputs that are no tensors can't be."""
        with np.load(path) as arrays:
            feeds = dict(arrays)
        results = self.session.get_outputs()
        if any(array.dtype.kind in "US" for array in feeds.values()) or any(
                not result.type.startswith("tensor(") or "string" in result.type for result in results):
            feeds = {name: array.astype(object) if array.dtype.kind in "US" else array
                     for name, array in feeds.items()}
            self.once = lambda: setattr(self, "results", self.session.run(None, feeds))
            return {}
        binding = self.session.io_binding()
        for name, array in feeds.items():
            binding.bind_ortvalue_input(name, onnxruntime.OrtValue.ortvalue_from_numpy(array))
        for output in results:
            binding.bind_output(output.name)
        self.binding = binding
        self.once = lambda: self.session.run_with_iobinding(binding)
        return {}

    def run(self, count: str) -> dict:
        times = []
        for _ in range(int(count)):
            start = time.perf_counter_ns()
            self.once()
            times.append((time.perf_counter_ns() - start) / 1e6)
        return {"ms": times}

    def outputs(self, path: str) -> dict:
        folder = pathlib.Path(path)
        folder.mkdir(parents=True, exist_ok=True)
        results = self.binding.copy_outputs_to_cpu() if self.binding else self.results
        for index, result in enumerate(results):
            np.save(folder / f"output_{index}.npy", values.plain(result))
        return {}

    def memory(self) -> dict:
        return {"peak_mb": process_memory("VmHWM"), "base_mb": self.base}


def main() -> None:
    child = Child()
    for line in sys.stdin:
        command, *arguments = line.split()
        if command == "quit":
            return
        try:
            answer = getattr(child, command)(*arguments)
        except Exception as error:  # whatever it is, the caller hears of it
            answer = {"error": f"{type(error).__name__}: {error}"}
        print(json.dumps(answer), flush=True)


if __name__ == "__main__":
    main()
