#!/usr/bin/env python3
"""The first answer of a process with and without a file of packed weights, beside ONNX Runtime's.

    bench/packed.py resnet50 vit_base --threads 1

Each answer comes from a process of its own, in turns; model and file lie in the page cache. `first` is creation and first run,
`steady` the median of later runs, `read` the time for the file's bytes at the speed of a copy, `peak` the most memory that the
process had resident above what it had before, pages of mapped files included. A ratio is ONNX Runtime's first answer divided
by ours.
"""

from __future__ import annotations

import argparse
import pathlib
import statistics
import subprocess
import sys
import tempfile
import time

import build_models
import run

ROOT = pathlib.Path(__file__).resolve().parent.parent
WAYS = ("plain", "packed", "onnxruntime")


def one_process(way: str, model: pathlib.Path, packed: pathlib.Path, options: argparse.Namespace) -> dict[str, float]:
    children = run.commands(options.program)
    with run.Engine(children["onnxruntime" if way == "onnxruntime" else "sardonyx"]) as child:
        if way == "packed":
            child.ask("packed", packed)
        created = child.ask("load", model, options.threads)["create_ms"]
        child.ask("inputs", model.with_suffix(".npz"))
        first = child.ask("run", 1)["ms"][0]
        steady = statistics.median(child.ask("run", options.runs)["ms"])
        memory = child.ask("memory")
    return {"create": created, "first": created + first, "steady": steady, "peak": memory["peak_mb"] - memory["base_mb"]}


def copy_ms(path: pathlib.Path) -> float:
    """For the bytes of a file that lies in the page cache."""
    times = []
    buffer = bytearray(1 << 22)
    for _ in range(3):
        start = time.perf_counter()
        with path.open("rb", buffering=0) as file:
            while file.readinto(buffer):
                pass
        times.append(1e3 * (time.perf_counter() - start))
    return min(times)


def measure(name: str, options: argparse.Namespace, folder: pathlib.Path) -> str:
    model = pathlib.Path(name) if name.endswith(".onnx") else options.models_folder / f"{name}.onnx"
    if not name.endswith(".onnx"):
        build_models.build_all([name], options.models_folder)
    run.warm(model)
    packed = folder / "packed.sdx"
    subprocess.run([options.program, "pack", model, "-o", packed], check=True, capture_output=True)
    found: dict[str, list[dict[str, float]]] = {way: [] for way in WAYS}
    for turn in range(options.turns):
        for way in WAYS[turn % 3:] + WAYS[:turn % 3]:
            found[way].append(one_process(way, model, packed, options))

    def middle(way: str, what: str) -> float:
        return statistics.median(one[what] for one in found[way])

    read = copy_ms(packed)
    cells = [model.stem, f"{packed.stat().st_size / 1e6:.0f}", f"{read:.0f}", f"{middle('packed', 'steady'):.1f}"]
    cells += [f"{middle(way, 'first'):.1f}" for way in WAYS]
    cells += [f"{middle('onnxruntime', 'first') / middle(way, 'first'):.1f}" for way in ("plain", "packed")]
    cells += [f"{(middle('packed', 'first') - read) / middle('packed', 'steady'):.2f}",
              f"{middle('packed', 'steady') / middle('plain', 'steady'):.2f}"]
    cells += [f"{middle(way, 'peak'):.0f}" for way in WAYS]
    return "| " + " | ".join(cells) + " |"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("models", nargs="+", help="names of bench/zoo, or model files with their inputs beside them as .npz")
    parser.add_argument("--threads", type=int, default=1)
    parser.add_argument("--turns", type=int, default=5, help="processes of each kind")
    parser.add_argument("--runs", type=int, default=5, help="later runs of each process")
    parser.add_argument("--program", default=str(ROOT / "build" / "release" / "bin" / "sardonyx"))
    parser.add_argument("--models-folder", type=pathlib.Path, default=ROOT / "build" / "bench-models")
    options = parser.parse_args()
    print("| model | file MB | read ms | steady ms | first plain | first packed | first ORT | ORT/plain | ORT/packed | "
          "(packed - read)/steady | steady packed/plain | peak MB plain | packed | ORT |")
    print("|" + "---|" * 14)
    with tempfile.TemporaryDirectory() as folder:
        for name in options.models:
            print(measure(name, options, pathlib.Path(folder)), flush=True)
    return None


if __name__ == "__main__":
    sys.exit(main())
