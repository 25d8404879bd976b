#!/usr/bin/env python3
"""The first answer of a process, with and without a file of packed weights, beside ONNX Runtime's through its C interface.

    bench/first_answers.py                                # every model of the zoo above 20 MB, on 1 and on 2 threads
    bench/first_answers.py resnet50 vit_b16 --threads 1

Each answer comes from a process of its own (bench/driver), the three kinds of a model in turns; model and file lie in the
page cache. `first` is creation and first run, `steady` the median of later runs, `read` the time for the file's bytes at the
speed of a copy, `peak` the most memory that the process had resident above what it had before, pages of mapped files
included. Two columns have targets: creation and first run beside ONNX Runtime's, at most 0.8; the first answer from packed
weights without `read` beside a steady run, at most 1.3.
"""

from __future__ import annotations

import argparse
import json
import pathlib
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable

import build_models
import report
import run
import zoo

ROOT = pathlib.Path(__file__).resolve().parent.parent
WAYS = ("plain", "packed", "onnxruntime")
PAGE = ROOT / "docs" / "packed_models.md"
BEGIN, END = "<!-- first answers:begin -->", "<!-- first answers:end -->"
PEER_TARGET, STEADY_TARGET = 0.8, 1.3
HEADER = ("model", "threads", "MB", "packed MB", "read ms", "steady ms", "first ms", "packed first ms", "ORT first ms",
          "first / ORT", f"<= {PEER_TARGET}", "(packed first - read) / steady", f"<= {STEADY_TARGET}", "packed first / ORT",
          "peak MB", "packed peak MB", "ORT peak MB")


def one_process(way: str, model: pathlib.Path, threads: int, packed: pathlib.Path,
                options: argparse.Namespace) -> dict[str, float]:
    children = run.commands(options.program)
    with run.Engine(children["onnxruntime" if way == "onnxruntime" else "sardonyx"]) as child:
        if way == "packed":
            child.ask("packed", packed)
        created = child.ask("load", model, threads)["create_ms"]
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


def models_of(name: str, options: argparse.Namespace) -> tuple[pathlib.Path, pathlib.Path]:
    """The model, and the one that ONNX Runtime is timed on, which is another where it can't run the first."""
    if name.endswith(".onnx"):
        return pathlib.Path(name), pathlib.Path(name)
    baseline = zoo.ENTRIES[name].baseline or name
    build_models.build_all([name, baseline], options.models_folder)
    return options.models_folder / f"{name}.onnx", options.models_folder / f"{baseline}.onnx"


def measure(name: str, options: argparse.Namespace, folder: pathlib.Path) -> list[dict]:
    """A row for each number of threads; none for a model that is too small."""
    model, baseline = models_of(name, options)
    megabytes = model.stat().st_size / 1e6
    if not options.models and megabytes < options.min_mb:
        return []
    run.warm(model)
    run.warm(baseline)
    packed = {threads: folder / f"packed{threads}.sdx" for threads in options.threads}
    for threads, path in packed.items():
        subprocess.run([options.program, "pack", model, "-o", path, "--threads", str(threads)], check=True, capture_output=True)
    found: dict[tuple[int, str], list[dict[str, float]]] = {}
    failed: dict[tuple[int, str], str] = {}
    for turn in range(options.turns):
        for threads in options.threads:
            for way in WAYS[turn % 3:] + WAYS[:turn % 3]:
                try:
                    answer = one_process(way, baseline if way == "onnxruntime" else model, threads, packed[threads], options)
                    found.setdefault((threads, way), []).append(answer)
                except run.EngineError as error:
                    failed[threads, way] = str(error)
    for (threads, way), error in failed.items():
        print(f"{name}, {threads} threads, {way}: {error}", file=sys.stderr)
    rows = []
    for threads in options.threads:
        row: dict = {"model": model.stem, "threads": threads, "mb": megabytes, "packed_mb": packed[threads].stat().st_size / 1e6,
                     "read_ms": copy_ms(packed[threads]), "baseline": baseline.stem}
        for way in WAYS:
            for what in ("first", "create", "steady", "peak"):
                times = [one[what] for one in found.get((threads, way), [])]
                row[f"{way}_{what}"] = statistics.median(times) if times and (threads, way) not in failed else None
        row["beside_peer"] = ratio(row["plain_first"], row["onnxruntime_first"])
        row["packed_beside_peer"] = ratio(row["packed_first"], row["onnxruntime_first"])
        row["packed_beside_steady"] = (None if row["packed_first"] is None else
                                       ratio(row["packed_first"] - row["read_ms"], row["packed_steady"]))
        rows.append(row)
    return rows


def ratio(ours: float | None, theirs: float | None) -> float | None:
    return None if ours is None or theirs is None else ours / theirs


def met(value: float | None, most: float) -> str:
    return "" if value is None else "yes" if value <= most else "no"


def text_of(row: dict) -> str:
    def cell(what: str, digits: int) -> str:
        return "" if row[what] is None else f"{row[what]:.{digits}f}"

    cells = [row["model"], str(row["threads"]), cell("mb", 0), cell("packed_mb", 0), cell("read_ms", 0), cell("packed_steady", 1),
             cell("plain_first", 1), cell("packed_first", 1), cell("onnxruntime_first", 1), cell("beside_peer", 2),
             met(row["beside_peer"], PEER_TARGET), cell("packed_beside_steady", 2), met(row["packed_beside_steady"], STEADY_TARGET),
             cell("packed_beside_peer", 2), cell("plain_peak", 0), cell("packed_peak", 0), cell("onnxruntime_peak", 0)]
    return "| " + " | ".join(cells) + " |"


def summary(rows: list[dict]) -> str:
    def count(what: str, most: float) -> str:
        known = [row[what] for row in rows if row[what] is not None]
        return f"{sum(value <= most for value in known)} of {len(known)}"

    return (f"creation and first run at most {PEER_TARGET} of ONNX Runtime's: {count('beside_peer', PEER_TARGET)} rows; "
            f"first answer from packed weights at most {STEADY_TARGET} of a steady run: {count('packed_beside_steady', STEADY_TARGET)}")


def table(rows: list[dict]) -> str:
    """Of docs/packed_models.md: a line for each model, with a figure for each number of threads."""
    def figures(of_model: list[dict], what: str, form: Callable[[float], str]) -> str:
        return ", ".join("" if row[what] is None else form(row[what]) for row in of_model)

    def ms(value: float) -> str:
        return f"{value:.1f}" if value < 100 else f"{value:.0f}"

    lines = ["| model | MB | first | ONNX Runtime | ratio | from a packed file | steady | beyond reading |", "|---" * 8 + "|"]
    for model in dict.fromkeys(row["model"] for row in rows):
        of_model = [row for row in rows if row["model"] == model]
        lines.append("| " + " | ".join([
            model, f"{of_model[0]['mb']:.0f}", figures(of_model, "plain_first", ms), figures(of_model, "onnxruntime_first", ms),
            figures(of_model, "beside_peer", "{:.2f}".format), figures(of_model, "packed_first", ms),
            figures(of_model, "packed_steady", ms), figures(of_model, "packed_beside_steady", "{:.2f}".format)]) + " |")
    return "\n".join(lines)


def write_docs(rows: list[dict], made: str) -> None:
    def mean(what: str) -> str:
        return f"{statistics.geometric_mean(row[what] for row in rows if row[what] is not None):.2f}"

    threads = " and ".join(map(str, dict.fromkeys(row["threads"] for row in rows)))
    report.put_between(PAGE, BEGIN, END, f"""\
Made by `{made}. Milliseconds on {threads} threads. Ratio: the first answer
without a packed file by ONNX Runtime's, its geometric mean {mean('beside_peer')} (from a packed file {mean('packed_beside_peer')}). Beyond reading:
the first answer from a packed file without the time that reading the file takes at the speed of a copy, in steady runs. Targets:
{summary(rows)}.

{table(rows)}""")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("models", nargs="*", help="names of bench/zoo, or model files with their inputs beside them as .npz; "
                                                  "without them, all models of the zoo above --min-mb")
    parser.add_argument("--threads", type=lambda text: [int(one) for one in text.split(",")], default=[1, 2], help="such as 1,2")
    parser.add_argument("--min-mb", type=float, default=20)
    parser.add_argument("--turns", type=int, default=5, help="processes of each kind")
    parser.add_argument("--runs", type=int, default=5, help="later runs of each process")
    parser.add_argument("--json", type=pathlib.Path, help="a file that takes the rows, written anew after each model")
    parser.add_argument("--write-docs", action="store_true", help="put the table into docs/packed_models.md")
    parser.add_argument("--program", default=str(ROOT / "build" / "release" / "bin" / "sardonyx"))
    parser.add_argument("--models-folder", type=pathlib.Path, default=ROOT / "build" / "bench-models")
    options = parser.parse_args()
    if run.library("onnxruntime") is None:
        sys.exit("bench: onnxruntime is not installed for this Python")
    unknown = [name for name in options.models if not name.endswith(".onnx") and name not in zoo.ENTRIES]
    if unknown:
        sys.exit(f"bench: the zoo has no model '{unknown[0]}'")
    print("| " + " | ".join(HEADER) + " |\n|" + "---|" * len(HEADER))
    rows: list[dict] = []
    for name in options.models or zoo.ENTRIES:
        with tempfile.TemporaryDirectory() as folder:
            made = measure(name, options, pathlib.Path(folder))
        for row in made:
            print(text_of(row), flush=True)
        rows += made
        if options.json:
            options.json.write_text(json.dumps(rows, indent=1) + "\n")
    print("\n" + summary(rows))
    if options.write_docs:
        found = run.versions(options.program)
        found.pop("openvino", None)  # takes no part
        write_docs(rows, f"bench/first_answers.py {' '.join(sys.argv[1:])}`: {report.provenance(run.probe(options.program), found)}")


if __name__ == "__main__":
    main()
