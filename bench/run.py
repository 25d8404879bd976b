#!/usr/bin/env python3
"""Times Sardonyx and ONNX Runtime side by side on the models of bench/zoo.

For each model and number of threads both engines hold the model in a process of their own and take
turns, a batch of runs each. The outputs of both are compared. A ratio above 1 means that Sardonyx is
faster, or takes less.
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
import values
import zoo

ROOT = pathlib.Path(__file__).resolve().parent.parent
PAUSE = 0.02  # seconds between turns, so that neither's spinning threads disturb the other


class EngineError(Exception):
    pass


class Engine:
    """One child process that speaks the protocol described in ort_child.py."""

    def __init__(self, command: list[str]):
        self.process = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)

    def __enter__(self) -> Engine:
        return self

    def __exit__(self, *_) -> None:
        try:
            self.process.stdin.write("quit\n")
            self.process.stdin.close()
            self.process.wait(timeout=30)
        except (OSError, subprocess.TimeoutExpired):
            self.process.kill()
            self.process.wait()

    def ask(self, *words) -> dict:
        try:
            self.process.stdin.write(" ".join(str(word) for word in words) + "\n")
            self.process.stdin.flush()
        except OSError:
            raise EngineError(f"the process ended before '{words[0]}'") from None
        line = self.process.stdout.readline()
        if not line:
            raise EngineError(f"the process ended during '{words[0]}'")
        answer = json.loads(line)
        if "error" in answer:
            raise EngineError(answer["error"])
        return answer


def commands(program: str) -> dict[str, list[str]]:
    child = pathlib.Path(__file__).with_name("ort_child.py")
    return {"sardonyx": [program, "bench", "--serve"], "onnxruntime": [sys.executable, str(child)]}


def probe(program: str) -> dict:
    result = subprocess.run([program, "bench", "--probe", "--json"], capture_output=True, text=True)
    if result.returncode:
        sys.exit(f"bench: the probe of the machine's peak failed: {result.stderr.strip()}")
    return json.loads(result.stdout)


def compare(engines: dict[str, Engine], folder: pathlib.Path, count: int, entry: zoo.Entry | None) -> float:
    """The largest difference of any output as a share of its RMS, without what may be apart."""
    for name, engine in engines.items():
        engine.ask("outputs", folder / name)
    ours, theirs = (values.read(folder / name, count) for name in ("sardonyx", "onnxruntime"))
    counterparts, loose = (bool(entry.baseline), entry.loose) if entry else (False, 0.0)
    tolerance = entry.tolerance if entry else values.TOLERANCE
    pairs = [pair for pair in zip(ours, theirs) if not loose or values.share_apart(*pair, tolerance) > loose]
    return max((values.difference(*pair, counterparts) for pair in pairs), default=0.0)


def same_outputs(row: dict, entry: zoo.Entry | None) -> bool:
    return bool(row["max_diff_over_rms"] <= (max(entry.tolerance, entry.drift) if entry else values.TOLERANCE))


def creation_times(command: list[str], model: pathlib.Path, threads: int, count: int) -> list[float]:
    times = []
    for _ in range(count):
        with Engine(command) as engine:
            times.append(engine.ask("load", model, threads)["create_ms"])
    return times


def take_turns(engines: dict[str, Engine], seconds: float) -> dict[str, list[float]]:
    """Batches of about 60 ms in turn, at least five each; the first run of a batch warms up and is dropped."""
    batch = {}
    for name, engine in engines.items():
        engine.ask("run", 2)
        once = max(engine.ask("run", 1)["ms"][0], 1e-3)
        batch[name] = int(min(2000, max(1, 60 / once)))
    times = {name: [] for name in engines}
    start, rounds = time.monotonic(), 0
    while rounds < 5 or (time.monotonic() - start < seconds and rounds < 200):
        order = list(engines) if rounds % 2 else list(reversed(engines))
        for name in order:
            times[name] += engines[name].ask("run", batch[name] + 1)["ms"][1:]
            time.sleep(PAUSE)
        rounds += 1
    return times


def warm(file: pathlib.Path) -> None:
    """Both engines find the file in memory."""
    with file.open("rb") as stream:
        while stream.read(1 << 24):
            pass


def measure(name: str, known: dict, threads: int, peak: dict, options: argparse.Namespace) -> dict:
    entry = zoo.ENTRIES.get(name)
    baseline = entry.baseline if entry else ""
    models = {"sardonyx": options.models_folder / f"{name}.onnx",
              "onnxruntime": options.models_folder / f"{baseline or name}.onnx"}
    for model in set(models.values()):
        for file in (model, model.with_suffix(".data")):
            if file.exists():
                warm(file)
    row = {"model": name, "threads": threads, "gflop": known["gflop"], "weights_mb": known["weights_mb"],
           "nodes": known["nodes"], "opset": known["opset"], "baseline": baseline}
    children = commands(options.program)
    creation = {}
    try:
        for engine in children:
            creation[engine] = creation_times(children[engine], models[engine], threads, options.loads - 1)
        with Engine(children["sardonyx"]) as ours, Engine(children["onnxruntime"]) as theirs, \
                tempfile.TemporaryDirectory() as folder:
            engines = {"sardonyx": ours, "onnxruntime": theirs}
            for engine in engines:
                creation[engine].append(engines[engine].ask("load", models[engine], threads)["create_ms"])
                engines[engine].ask("inputs", models[engine].with_suffix(".npz"))
            times = take_turns(engines, options.seconds)
            row["max_diff_over_rms"] = compare(engines, pathlib.Path(folder), known["outputs"], entry)
            if threads > 1 and not same_outputs(row, entry):
                # Where its operators race, what it gives on one thread decides.
                apart = row["max_diff_over_rms"]
                with Engine(children["onnxruntime"]) as judge:
                    judge.ask("load", models["onnxruntime"], 1)
                    judge.ask("inputs", models["onnxruntime"].with_suffix(".npz"))
                    judge.ask("run", 1)
                    row["max_diff_over_rms"] = compare({"sardonyx": ours, "onnxruntime": judge},
                                                       pathlib.Path(folder), known["outputs"], entry)
                if same_outputs(row, entry):
                    print(f"bench: {name} at {threads} threads: ONNX Runtime's outputs differ by {apart:.2g} of their RMS; "
                          "on one thread they agree", file=sys.stderr)
            for engine in engines:
                memory = engines[engine].ask("memory")
                row[f"{engine}_ms"] = statistics.median(times[engine])
                row[f"{engine}_create_ms"] = statistics.median(creation[engine])
                row[f"{engine}_peak_mb"] = memory["peak_mb"] - memory["base_mb"]
    except EngineError as error:
        row["error"] = str(error)
        return row
    row["ratio"] = row["onnxruntime_ms"] / row["sardonyx_ms"]
    row["create_ratio"] = row["onnxruntime_create_ms"] / row["sardonyx_create_ms"]
    row["memory_ratio"] = row["onnxruntime_peak_mb"] / max(row["sardonyx_peak_mb"], 0.1)
    gflops = peak.get(f"gflops_{threads}", peak["gflops_1"] * threads)
    row["share_of_peak"] = known["gflop"] / (row["sardonyx_ms"] * 1e-3) / gflops
    row["same_outputs"] = same_outputs(row, entry)
    return row


def measure_all(known: dict[str, dict], peak: dict, options: argparse.Namespace) -> list[dict]:
    rows = []
    print(report.heading(), flush=True)
    for threads in options.threads:
        for name in options.models:
            rows.append(measure(name, known[name], threads, peak, options))
            print(report.line(rows[-1]), flush=True)
    return rows


def add_options(parser: argparse.ArgumentParser, page: str, folder: str, seconds: float) -> None:
    """What the benchmarks of single things share."""
    parser.add_argument("--program", default=str(ROOT / "build" / "release" / "bin" / "sardonyx"),
                        help="the sardonyx program (./dev bench builds and names it)")
    parser.add_argument("--threads", default="1", type=lambda text: [int(part) for part in text.split(",")],
                        help="numbers of threads with commas between them (default 1)")
    parser.add_argument("--seconds", type=float, default=seconds,
                        help=f"to spend on taking turns, per figure (default {seconds})")
    parser.add_argument("--loads", type=int, default=1, help="sessions created per figure (default 1)")
    parser.add_argument("--json", type=pathlib.Path, help="write the rows to this file")
    parser.add_argument("--write-docs", action="store_true", help=f"put the table into docs/{page}")
    parser.add_argument("--folder", dest="models_folder", type=pathlib.Path, default=ROOT / "build" / folder,
                        help="where models are kept")


def chosen(parser: argparse.ArgumentParser, wanted: str, names: list[str]) -> list[str]:
    """Names with commas between them, or all."""
    found = names if wanted == "all" else wanted.split(",")
    if unknown := [name for name in found if name not in names]:
        parser.error(f"unknown: {', '.join(unknown)}; known: {', '.join(names)}")
    return found


def finish(rows: list[dict], options: argparse.Namespace, tolerance: Callable[[dict], float]) -> int:
    """Saves the rows and names those that failed or whose outputs are too far apart: the exit code."""
    if options.json:
        options.json.write_text(json.dumps(rows, indent=1) + "\n")
    wrong = [row for row in rows if "error" in row or not row["max_diff_over_rms"] <= tolerance(row)]
    for row in wrong:
        what = row.get("error") or f"outputs differ by {row['max_diff_over_rms']:.2g} of their RMS"
        print(f"bench: {row['model']} at {row['threads']} threads: {what}", file=sys.stderr)
    return 1 if wrong else 0


def parse_arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="./dev bench", description=__doc__,
                                     formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--program", default=str(ROOT / "build" / "release" / "bin" / "sardonyx"),
                        help="the sardonyx program (./dev bench builds and names it)")
    parser.add_argument("--models", default="all",
                        help="names with commas between them, or all: " + ", ".join(zoo.MODELS))
    parser.add_argument("--threads", default="1,2", help="numbers of threads with commas between them (default 1,2)")
    parser.add_argument("--json", type=pathlib.Path, help="write the rows to this file")
    parser.add_argument("--image", type=pathlib.Path, default=ROOT / "build" / "bench" / "ratios.png",
                        help="the chart to write (default build/bench/ratios.png)")
    parser.add_argument("--write-docs", action="store_true",
                        help="put table and chart into --page")
    parser.add_argument("--page", type=pathlib.Path, default=ROOT / "docs" / "performance.md",
                        help="for --write-docs: docs/performance.md, or the page of another machine")
    parser.add_argument("--write-models", action="store_true", help="put the table of families into docs/models.md")
    parser.add_argument("--seconds", type=float, default=3.0, help="to spend on taking turns, per row (default 3)")
    parser.add_argument("--loads", type=int, default=3, help="sessions created per row (default 3)")
    parser.add_argument("--models-folder", type=pathlib.Path, default=ROOT / "build" / "bench-models",
                        help="where the models are built")
    options = parser.parse_args()
    options.models = list(zoo.MODELS) if options.models == "all" else options.models.split(",")
    if unknown := [name for name in options.models if name not in zoo.MODELS]:
        parser.error(f"unknown models: {', '.join(unknown)}; known: {', '.join(zoo.MODELS)}")
    try:
        options.threads = [int(part) for part in options.threads.split(",")]
    except ValueError:
        parser.error("--threads takes numbers with commas between them")
    if min(options.threads) < 1 or options.loads < 1:
        parser.error("--threads and --loads start at 1")
    return options


def main() -> int:
    options = parse_arguments()
    known = build_models.build_all(options.models, options.models_folder)
    peak = probe(options.program)
    rows = measure_all(known, peak, options)
    machine = report.machine(peak)
    print(machine)
    if options.json:
        options.json.parent.mkdir(parents=True, exist_ok=True)
        options.json.write_text(json.dumps(rows, indent=1) + "\n")
    report.draw(rows, options.image)
    print(f"chart: {options.image}")
    if options.write_docs:
        report.write_docs(rows, machine, options.page)
    if options.write_models:
        report.write_models(rows, zoo.ENTRIES, machine, ROOT / "docs" / "models.md")
    wrong = [row for row in rows if "error" in row or not row["same_outputs"]]
    for row in wrong:
        what = row.get("error") or f"outputs differ by {row['max_diff_over_rms']:.2g} of their RMS"
        print(f"bench: {row['model']} at {row['threads']} threads: {what}", file=sys.stderr)
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
