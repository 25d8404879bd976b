#!/usr/bin/env python3
"""ONNX Runtime behind the protocol of `sardonyx bench --serve`: a command a line in, a JSON object a line out.

    load MODEL.onnx THREADS   {"create_ms": ...}
    inputs FILE.npz           {}
    run N                     {"ms": [...]}
    outputs FILE.npz          {}
    memory                    {"peak_mb": ..., "base_mb": ...}
    quit
"""

from __future__ import annotations

import json
import sys
import time

import numpy as np
import onnxruntime


def process_memory(field: str) -> float:
    with open("/proc/self/status") as status:
        for line in status:
            if line.startswith(field + ":"):
                return int(line.split()[1]) / 1024
    return 0.0


class Child:
    def __init__(self):
        self.session = None
        self.binding = None
        self.base = 0.0

    def load(self, path: str, threads: str) -> dict:
        self.base = process_memory("VmRSS")
        options = onnxruntime.SessionOptions()
        options.intra_op_num_threads = int(threads)
        options.inter_op_num_threads = 1
        options.log_severity_level = 3
        start = time.perf_counter_ns()
        self.session = onnxruntime.InferenceSession(path, options, providers=["CPUExecutionProvider"])
        return {"create_ms": (time.perf_counter_ns() - start) / 1e6}

    def inputs(self, path: str) -> dict:
        self.binding = self.session.io_binding()
        with np.load(path) as arrays:
            for name in arrays.files:
                self.binding.bind_ortvalue_input(name, onnxruntime.OrtValue.ortvalue_from_numpy(arrays[name]))
        for output in self.session.get_outputs():
            self.binding.bind_output(output.name)
        return {}

    def run(self, count: str) -> dict:
        times = []
        for _ in range(int(count)):
            start = time.perf_counter_ns()
            self.session.run_with_iobinding(self.binding)
            times.append((time.perf_counter_ns() - start) / 1e6)
        return {"ms": times}

    def outputs(self, path: str) -> dict:
        names = [output.name for output in self.session.get_outputs()]
        np.savez(path, **dict(zip(names, self.binding.copy_outputs_to_cpu())))
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
