#!/usr/bin/env python3
"""Times reading, checking, printing and saving of model files beside the onnx package.

Each operation runs in a process of its own, several times; the least time counts, without the start of the process. The
files lie in the page cache. Memory is the most a process had resident, above what it had before the first run. `print`
makes the text in memory, `show` writes it to a file. Saving takes turns with a raw write of the same bytes, of both the
median counts. Checking and printing are also timed as whole programs.
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

import numpy as np

ROOT = pathlib.Path(__file__).resolve().parent.parent
SIZES = {"1MB": 1 << 20, "100MB": 100 << 20, "2GB": 1900 << 20}
REPEAT = {"1MB": 1000, "100MB": 5, "2GB": 3}  # times, the least of which counts

CHILD = """
import json, sys, time
import onnx, onnx.checker, onnx.printer
what, path, out, repeat = *sys.argv[1:4], int(sys.argv[4])
def resident():
    return next(int(line.split()[1]) / 1024 for line in open("/proc/self/status") if line.startswith("VmHWM"))
base = resident()
def write(text):
    with open(out + ".txt", "w") as file:
        file.write(text)
operation = {"load": lambda: onnx.load(path),
             "check": lambda: onnx.checker.check_model(path),
             "print": lambda: onnx.printer.to_text(onnx.load(path)),
             "show": lambda: write(onnx.printer.to_text(onnx.load(path))),
             "save": lambda: onnx.save(onnx.load(path), out)}[what]
seconds, processor = [], []
for _ in range(repeat):
    start, before = time.perf_counter(), time.process_time()
    operation()
    processor.append(time.process_time() - before)
    seconds.append(time.perf_counter() - start)
print(json.dumps({"s": min(seconds), "cpu": min(processor), "mb": resident(), "base_mb": base}))
"""


def make_model(path: pathlib.Path, size: int) -> None:
    """A chain of matrix products whose weights take about `size` bytes."""
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


def measure(command: list[str]) -> dict:
    result = subprocess.run(command, capture_output=True, text=True)
    if result.returncode:
        raise SystemExit(f"{command[0]} failed: {result.stderr[-500:]}")
    figures = json.loads(result.stdout)
    return figures | {"mb": figures["mb"] - figures["base_mb"]}


def refusal_of_onnx(path: pathlib.Path) -> str:
    """What onnx.load says of a file that it cannot read."""
    command = [sys.executable, "-c", CHILD, "load", str(path), "-", "1"]
    result = subprocess.run(command, capture_output=True, text=True)
    return result.stderr.strip().splitlines()[-1] if result.returncode else f"takes {json.loads(result.stdout)}"


def time_large(program: str, repeat: int) -> list[dict]:
    figures = []
    for name, size, external in (("3GB file", 3 << 30, False), ("10GB external data", 10 << 30, True)):
        with tempfile.TemporaryDirectory() as folder:
            path = make_large(pathlib.Path(folder), size, external)
            found = measure([program, "load", str(path), "-", str(repeat)])
            onnx = "would read all of it" if external else refusal_of_onnx(path)
        figures.append({"model": name, "what": "load", **found, "onnx": onnx})
        print(f"{name}: opened in {found['s'] * 1000:.2f} ms with {found['mb']:.1f} MB more resident; onnx: {onnx}",
              flush=True)
    return figures


def program_seconds(command: list[str], repeat: int) -> float:
    """Seconds of a whole program, its start included; its output goes nowhere."""
    seconds = []
    for _ in range(repeat):
        start = time.perf_counter()
        subprocess.run(command, stdout=subprocess.DEVNULL, check=True)
        seconds.append(time.perf_counter() - start)
    return min(seconds)


def time_model(options: argparse.Namespace, name: str, path: pathlib.Path, out: pathlib.Path) -> list[dict]:
    """All operations on one model, in both libraries; then as programs."""
    rows = []
    for what in ("load", "check", "print", "show", "save"):
        repeat = options.repeat or REPEAT[name]
        if what in ("print", "show"):
            repeat = min(repeat, 50)
        row = {"model": name, "what": what, "form": "library"}
        line = f"{name:>6} {what:<6}"
        if name == "2GB" and what == "show":
            continue  # 6 GB of text say nothing that 100 MB do not
        mine = measure([options.program, what, str(path), str(out), str(repeat)])
        row |= mine
        line += f" {mine['s'] * 1000:10.3f} ms {mine['mb']:8.1f} MB"
        if name == "2GB" and what == "print":
            line += "   onnx would hold the text twice in memory, 12 GB"
        else:
            theirs = measure([sys.executable, "-c", CHILD, what, str(path), str(out), str(repeat)])
            row |= {"onnx_s": theirs["s"], "onnx_cpu": theirs["cpu"], "onnx_mb": theirs["mb"]}
            line += (f"   onnx {theirs['s'] * 1000:10.3f} ms {theirs['mb']:8.1f} MB"
                     f"   {theirs['s'] / mine['s']:8.1f}x")
        if what == "save":
            line += (f"   medians {mine['median_s'] * 1000:.2f} ms, {mine['median_s'] / mine['raw_s']:.2f}x of a raw write"
                     f" and fsync; of the processor {mine['median_cpu'] / mine['raw_cpu']:.2f}x")
        for ending in (".txt", ".onnxtxt"):
            pathlib.Path(f"{out}{ending}").unlink(missing_ok=True)
        rows.append(row)
        print(line, flush=True)
    for what, command in (("check", "check"), ("print", "show")):
        if name == "2GB" and what == "print":
            continue
        repeat = min(options.repeat or REPEAT[name], 10)
        script = {"check": "import onnx, sys; onnx.checker.check_model(sys.argv[1])",
                  "print": "import onnx, onnx.printer, sys; print(onnx.printer.to_text(onnx.load(sys.argv[1])))"}[what]
        mine = program_seconds([options.sardonyx, command, str(path)], repeat)
        theirs = program_seconds([sys.executable, "-c", script, str(path)], repeat)
        rows.append({"model": name, "what": what, "form": "program", "s": mine, "onnx_s": theirs})
        print(f"{name:>6} {what:<6} {mine * 1000:10.3f} ms as a program"
              f"   onnx {theirs * 1000:10.3f} ms   {theirs / mine:8.1f}x", flush=True)
    return rows


def shown_time(seconds: float) -> str:
    if seconds >= 1:
        return f"{seconds:.1f} s"
    milliseconds = seconds * 1000
    return f"{milliseconds:.0f} ms" if milliseconds >= 100 else f"{milliseconds:.3g} ms"


def markdown(figures: list[dict]) -> str:
    """The table of docs/format.md."""
    names = {"load": "load", "check": "check", "print": "print, all weights as numbers", "show": "the same into a file",
             "save": "save"}
    models = [name for name in SIZES if any(row["model"] == name for row in figures)]
    lines = [f"The least of several runs, in one go, on {len(os.sched_getaffinity(0))} cores:", "",
             "| | " + " | ".join(name.replace("MB", " MB").replace("GB", " GB") for name in models) + " |",
             "|---" * (len(models) + 1) + "|"]
    for form, what in [("library", what) for what in names] + [("program", "check"), ("program", "print")]:
        cells = []
        for model in models:
            row = next((r for r in figures if (r["model"], r["what"], r.get("form")) == (model, what, form)), None)
            if row is None:
                cells.append("")
                continue
            cell = shown_time(row["s"])
            if row.get("mb", 0) > 20:
                cell += f" and {row['mb']:.0f} MB"
            if "onnx_s" in row:
                cell += f"; onnx {shown_time(row['onnx_s'])}"
                if row.get("onnx_mb", 0) > 20:
                    cell += f" and {row['onnx_mb']:.0f} MB"
                cell += f": {row['onnx_s'] / row['s']:.{0 if row['onnx_s'] / row['s'] >= 10 else 1}f}x"
            if "raw_s" in row:
                cell += (f"; medians {shown_time(row['median_s'])}, raw write and fsync {shown_time(row['raw_s'])},"
                         f" of the processor {shown_time(row['median_cpu'])} and {shown_time(row['raw_cpu'])}")
            cells.append(cell)
        label = names[what] if form == "library" else f"`sardonyx {'show' if what == 'print' else what}` as a program"
        lines.append(f"| {label} | " + " | ".join(cells) + " |")
    return "\n".join(lines) + "\n"


def write_docs(figures: list[dict]) -> None:
    """Puts the table between the marks of docs/format.md."""
    page = ROOT / "docs" / "format.md"
    begin, end = "<!-- figures: ./dev bench --format --write-docs -->\n", "<!-- end of figures -->\n"
    text = page.read_text()
    before, rest = text.split(begin)
    page.write_text(before + begin + markdown(figures) + end + rest.split(end)[1])


def main() -> int:
    parser = argparse.ArgumentParser(prog="./dev bench --format", description=__doc__.splitlines()[0])
    parser.add_argument("--sizes", nargs="*", choices=SIZES, default=list(SIZES))
    parser.add_argument("--repeat", type=int, help="the best of so many (default 1000 for the smallest, 3 for the largest)")
    parser.add_argument("--program", default=str(ROOT / "build" / "release" / "bin" / "format_bench"))
    parser.add_argument("--sardonyx", default=str(ROOT / "build" / "release" / "bin" / "sardonyx"))
    parser.add_argument("--json", type=pathlib.Path, help="write the figures to this file")
    parser.add_argument("--write-docs", action="store_true", help="bring the table of docs/format.md up to date")
    options = parser.parse_args()
    if options.write_docs and set(options.sizes) != set(SIZES):
        parser.error("--write-docs goes with all sizes")
    figures = time_large(options.program, options.repeat or REPEAT["100MB"])
    with tempfile.TemporaryDirectory() as folder:
        out = pathlib.Path(folder) / "out.onnx"
        for name in options.sizes:
            path = pathlib.Path(folder) / f"{name}.onnx"
            make_model(path, SIZES[name])
            figures += time_model(options, name, path, out)
            path.unlink()
    if options.json:
        options.json.write_text(json.dumps(figures, indent=1) + "\n")
    if options.write_docs:
        write_docs(figures)
    return 0


if __name__ == "__main__":
    sys.exit(main())
