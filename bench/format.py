#!/usr/bin/env python3
"""Times reading, checking, printing and saving of model files beside the onnx package.

Each operation runs in a process of its own; ours is the command line, start included, theirs the call alone, without
the start of Python and the imports. Memory is the most a process had resident, for theirs above what the imports took.
"""

from __future__ import annotations

import argparse
import json
import os
import pathlib
import subprocess
import sys
import tempfile
import time

ROOT = pathlib.Path(__file__).resolve().parent.parent
SIZES = {"1MB": 1 << 20, "100MB": 100 << 20, "2GB": 1900 << 20}

CHILD = """
import json, resource, sys, time
import onnx, onnx.checker, onnx.printer
what, path, out = sys.argv[1:4]
base = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
model = onnx.load(path) if what in ("print", "save") else None
start = time.perf_counter()
if what == "load": onnx.load(path)
if what == "check": onnx.checker.check_model(path)
if what == "print": open(out, "w").write(onnx.printer.to_text(model))
if what == "save":
    onnx.save(model, out)
print(json.dumps({"s": time.perf_counter() - start, "mb": (resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - base) / 1024}))
"""


def make_model(path: pathlib.Path, size: int) -> None:
    """A chain of matrix products whose weights take about `size` bytes."""
    import numpy as np
    import onnx
    from onnx import TensorProto, helper, numpy_helper

    layers = 16
    width = int((size / layers / 4) ** 0.5)
    rng = np.random.default_rng(0)
    weights, nodes, value = [], [], "x"
    for layer in range(layers):
        array = rng.random((width, width), np.float32)
        weights.append(numpy_helper.from_array(array, f"w{layer}"))
        nodes += [helper.make_node("MatMul", [value, f"w{layer}"], [f"h{layer}"], f"product{layer}"),
                  helper.make_node("Relu", [f"h{layer}"], [f"y{layer}"], f"relu{layer}")]
        value = f"y{layer}"
    ports = [helper.make_tensor_value_info(name, TensorProto.FLOAT, ["N", width]) for name in ("x", value)]
    graph = helper.make_graph(nodes, "chain", ports[:1], ports[1:], weights)
    onnx.save(helper.make_model(graph, ir_version=8, opset_imports=[helper.make_opsetid("", 17)]), path)


def varint(number: int) -> bytes:
    out = bytearray()
    while number >= 0x80:
        out.append(number & 0x7F | 0x80)
        number >>= 7
    out.append(number)
    return bytes(out)


def make_large(folder: pathlib.Path, size: int, external: bool) -> pathlib.Path:
    """A model of one tensor of `size` bytes, which the disk does not hold: a file with a hole."""
    from onnx import ModelProto, TensorProto, helper

    def field(number: int, length: int) -> bytes:
        return varint(number << 3 | 2) + varint(length)

    tensor = TensorProto(name="w", dims=[size // 4], data_type=TensorProto.FLOAT)
    data = b""
    if external:
        tensor.data_location = TensorProto.EXTERNAL
        for key, value in (("location", "w.bin"), ("offset", "0"), ("length", str(size))):
            tensor.external_data.add(key=key, value=value)
        with open(folder / "w.bin", "wb") as file:
            file.truncate(size)
    else:
        data = field(9, size)
    hole = 0 if external else size
    start = tensor.SerializeToString() + data
    ports = [helper.make_tensor_value_info("y", TensorProto.FLOAT, [size // 4])]
    graph = helper.make_graph([helper.make_node("Relu", ["w"], ["y"])], "g", [], ports).SerializeToString()
    graph += field(5, len(start) + hole) + start
    header = ModelProto(ir_version=8, opset_import=[helper.make_opsetid("", 17)]).SerializeToString()
    path = folder / "large.onnx"
    with open(path, "wb") as file:
        file.write(header + field(7, len(graph) + hole) + graph)
        file.truncate(file.tell() + hole)
    return path


def time_large(program: str, repeat: int) -> list[dict]:
    figures = []
    for name, size, external in (("3GB file", 3 << 30, False), ("10GB external data", 10 << 30, True)):
        with tempfile.TemporaryDirectory() as folder:
            path = make_large(pathlib.Path(folder), size, external)
            command = [program, "check", *(["--data"] if external else []), str(path)]
            runs = [measure(command)[:2] for _ in range(repeat)]
        figures.append({"model": name, "what": "open and check", "s": min(s for s, _ in runs), "mb": min(mb for _, mb in runs)})
        print(f"{name}: opened and checked in {figures[-1]['s']:.4f} s with {figures[-1]['mb']:.0f} MB resident", flush=True)
    return figures


def measure(command: list[str]) -> tuple[float, float, str]:
    """Seconds, MB resident at most, and the output of a process."""
    with tempfile.TemporaryFile() as output:
        start = time.perf_counter()
        child = subprocess.Popen(command, stdout=output)
        _, status, usage = os.wait4(child.pid, 0)
        seconds = time.perf_counter() - start
        output.seek(0)
        text = output.read(1 << 16).decode()
    if status:
        raise SystemExit(f"{' '.join(command)} failed")
    return seconds, usage.ru_maxrss / 1024, text


def raw_write(path: pathlib.Path, out: pathlib.Path) -> float:
    """Seconds to write the same bytes to the disk, out of memory."""
    content = path.read_bytes()
    start = time.perf_counter()
    with out.open("wb", buffering=0) as file:
        view = memoryview(content)
        while view:
            view = view[file.write(view[:1 << 30]):]
        os.fsync(file.fileno())
    return time.perf_counter() - start


def ours(program: str, what: str, path: pathlib.Path, out: pathlib.Path) -> list[str]:
    return {"load": [program, "info", str(path)],
            "check": [program, "check", str(path)],
            "print": [program, "convert", str(path), str(out.with_suffix(".onnxtxt"))],
            "save": [program, "convert", str(path), str(out)]}[what]


def main() -> int:
    parser = argparse.ArgumentParser(prog="./dev bench --format", description=__doc__.splitlines()[0])
    parser.add_argument("--sizes", nargs="*", choices=SIZES, default=list(SIZES))
    parser.add_argument("--repeat", type=int, default=3, help="the best of so many (default 3)")
    parser.add_argument("--program", default=str(ROOT / "build" / "release" / "bin" / "sardonyx"))
    parser.add_argument("--json", type=pathlib.Path, help="write the figures to this file")
    options = parser.parse_args()
    figures = time_large(options.program, options.repeat)
    with tempfile.TemporaryDirectory() as folder:
        out = pathlib.Path(folder) / "out.onnx"
        for name in options.sizes:
            path = pathlib.Path(folder) / f"{name}.onnx"
            make_model(path, SIZES[name])
            for what in ("load", "check", "print", "save"):
                if what == "print" and name == "2GB":
                    continue  # the text of all weights would take tens of gigabytes
                mine = [measure(ours(options.program, what, path, out))[:2] for _ in range(options.repeat)]
                theirs = []
                for _ in range(options.repeat):
                    _, _, text = measure([sys.executable, "-c", CHILD, what, str(path), str(out)])
                    theirs.append(json.loads(text))
                row = {"model": name, "what": what, "s": min(s for s, _ in mine), "mb": min(mb for _, mb in mine),
                       "onnx_s": min(t["s"] for t in theirs), "onnx_mb": min(t["mb"] for t in theirs)}
                if what == "save":
                    row["raw_s"] = min(raw_write(path, out) for _ in range(options.repeat))
                figures.append(row)
                print(f"{name:>6} {what:<6} {row['s']:9.4f} s {row['mb']:8.0f} MB   onnx {row['onnx_s']:9.4f} s "
                      f"{row['onnx_mb']:8.0f} MB   {row['onnx_s'] / row['s']:7.1f}x"
                      + (f"   raw write {row['raw_s']:.4f} s, {row['s'] / row['raw_s']:.2f}x" if "raw_s" in row else ""),
                      flush=True)
            path.unlink()
    if options.json:
        options.json.write_text(json.dumps(figures, indent=1) + "\n")
    return 0


if __name__ == "__main__":
    sys.exit(main())
