#!/usr/bin/env python3
"""Times Sardonyx, ONNX Runtime and OpenVINO side by side on the models of bench/zoo.

For each model and number of threads one process holds the model in all engines, which take turns, a batch of runs each;
all of them are called through their libraries (bench/driver), so that no Python is in what is timed. Outputs are compared.
A decoder's runs are steps: each takes the past that the one before gave, one longer.
The first answer (making the session, and the first run) and the peak of memory are those of a process that does nothing
else. A ratio above 1 means that Sardonyx is faster, or takes less.
"""

from __future__ import annotations

import argparse
import importlib.util
import json
import os
import pathlib
import statistics
import subprocess
import sys
import tempfile
from collections.abc import Callable

import avx2
import build_models
import report
import values
import zoo
from zoo import quantised

ROOT = pathlib.Path(__file__).resolve().parent.parent
PEERS = ROOT / "build" / "bench-peers"  # what tools/requirements-bench.txt names, installed by ./dev bench
NAMES = {"sardonyx": "Sardonyx", "onnxruntime": "ONNX Runtime", "openvino": "OpenVINO"}
ENVIRONMENT = dict(os.environ, ORT_DISABLE_TELEMETRY="1")
STEPS = 32  # of decoders, each of which takes what the one before gave; then they begin anew
STEPS_COMPARED = 3
chosen_processor = ""  # pretend() sets it


class EngineError(Exception):
    pass


class Process:
    """A child process that speaks the protocol described in bench/driver/main.cc."""

    def __init__(self, command: list[str]):
        self.process = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, env=ENVIRONMENT)

    def __enter__(self):
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


Engine = Process  # of one engine alone


class Guest:
    """One of the engines of a process that has several."""

    def __init__(self, process: Process, name: str):
        self.process, self.name = process, name

    def ask(self, *words) -> dict:
        return self.process.ask(f"@{self.name}", *words)


def library(name: str) -> pathlib.Path | None:
    """The shared library of a peer; None where its package is not there."""
    if name == "openvino":
        found = sorted((PEERS / "openvino" / "libs").glob("libopenvino_c.so*"))
    else:
        spec = importlib.util.find_spec("onnxruntime")  # not imported: that would run it
        found = sorted(pathlib.Path(spec.origin).parent.glob("capi/libonnxruntime.so.*")) if spec else []
    if found and chosen_processor:
        return avx2.counterpart(found[0], PEERS.with_name("bench-avx2"))
    return found[0] if found else None


def pretend(processor: str) -> None:
    """From now on all engines find this processor."""
    global chosen_processor
    chosen_processor = processor
    if processor:
        ENVIRONMENT.update(avx2.environment(processor))


def engine_words(names: list[str]) -> list[str]:
    """How bench_driver is told of engines; those whose library is not there are left out."""
    return [name if name == "sardonyx" else f"{name}={library(name)}" for name in names if name == "sardonyx" or library(name)]


def driver(program: str) -> list[str]:
    """The command, to which words of engines are added."""
    return [str(pathlib.Path(program).with_name("bench_driver")), *([avx2.option(chosen_processor)] if chosen_processor else [])]


def commands(program: str) -> dict[str, list[str]]:
    """A process for each engine."""
    return {word.split("=")[0]: [*driver(program), word] for word in engine_words(list(NAMES))}


def versions(program: str) -> dict[str, str]:
    found = {}
    for name, command in commands(program).items():
        with Process(command) as engine:
            found[name] = engine.ask("version")["version"]
    return found


def probe(program: str) -> dict:
    result = subprocess.run([program, "bench", "--probe", "--json"], capture_output=True, text=True, env=ENVIRONMENT)
    if result.returncode:
        sys.exit(f"bench: the probe of the machine's peak failed: {result.stderr.strip()}")
    return json.loads(result.stdout)


def compare(engines: dict[str, Process | Guest], folder: pathlib.Path, count: int, entry: zoo.Entry | None,
            peer: str = "onnxruntime", left_out: list[int] | None = None) -> float:
    """The largest difference of any output as a share of its RMS, without outputs of which a share of elements may be others
    (Entry.loose): their places go to `left_out`."""
    for name in ("sardonyx", peer):
        engines[name].ask("outputs", folder / name)
    ours, theirs = (values.read(folder / name, count) for name in ("sardonyx", peer))
    counterparts, loose = (bool(entry.baseline), entry.loose) if entry else (False, 0.0)
    tolerance = entry.tolerance if entry else values.TOLERANCE
    found = []
    for place, pair in enumerate(zip(ours, theirs)):
        difference = values.difference(*pair, counterparts)
        if loose and difference > tolerance and values.share_apart(*pair, tolerance) <= loose:
            if left_out is not None:
                left_out.append(place)
        else:
            found.append(difference)
    return max(found, default=0.0)


def tolerance_of(entry: zoo.Entry | None) -> float:
    return max(entry.tolerance, entry.drift) if entry else values.TOLERANCE


def same_outputs(row: dict, entry: zoo.Entry | None) -> bool:
    return bool(row["max_diff_over_rms"] <= tolerance_of(entry))


def cold_starts(children: dict[str, list[str]], models: dict[str, pathlib.Path], threads: int, count: int) -> dict[str, dict]:
    """Of each engine, medians over processes of their own: making the session, the first answer, the peak of memory. What an
    engine can't do is an error of its own."""
    found: dict[str, list[dict]] = {name: [] for name in children}
    errors: dict[str, dict] = {}
    for turn in range(count):
        # Who comes after a process with much memory finds the system still busy with that.
        for name, command in sorted(children.items(), reverse=turn % 2 == 1):
            try:
                with Process(command) as engine:
                    created = engine.ask("load", models[name], threads)["create_ms"]
                    engine.ask("inputs", models[name].with_suffix(".npz"))
                    first = created + engine.ask("run", 1)["ms"][0]
                    memory = engine.ask("memory")
                found[name].append({"create_ms": created, "first_ms": first, "peak_mb": memory["peak_mb"] - memory["base_mb"]})
            except EngineError as error:
                errors[name] = {"error": str(error)}
    return {name: errors.get(name) or {key: statistics.median(one[key] for one in runs) for key in runs[0]}
            for name, runs in found.items()}


def take_turns(process: Process, seconds: float) -> dict[str, list[float]]:
    """Times of all engines that a process has loaded (bench/driver/main.cc says how)."""
    return process.ask("turns", seconds)


def warm(file: pathlib.Path) -> None:
    """Both engines find the file in memory."""
    with file.open("rb") as stream:
        while stream.read(1 << 24):
            pass


def judge(row: dict, process: Process, folder: pathlib.Path, models: dict, threads: int, known: dict,
          entry: zoo.Entry | None) -> None:
    """Holds the outputs of the engines against each other."""
    engines = {name: Guest(process, name) for name in models}
    left_out: list[int] = []
    if row["carried"]:
        for engine in engines.values():
            engine.ask("run", STEPS_COMPARED)
    row["max_diff_over_rms"] = compare(engines, folder, known["outputs"], entry, left_out=left_out)
    row |= {"outputs": known["outputs"], "outputs_left_out": len(left_out)}
    if threads > 1 and not same_outputs(row, entry):
        # Where its operators race, what it gives on one thread decides.
        apart = row["max_diff_over_rms"]
        engines["onnxruntime"].ask("load", models["onnxruntime"], 1)
        engines["onnxruntime"].ask("inputs", models["onnxruntime"].with_suffix(".npz"))
        engines["onnxruntime"].ask("steps", STEPS)
        engines["onnxruntime"].ask("run", STEPS_COMPARED if row["carried"] else 1)
        row["max_diff_over_rms"] = compare(engines, folder, known["outputs"], entry)
        if same_outputs(row, entry):
            print(f"bench: {row['model']} at {threads} threads: ONNX Runtime's outputs differ by {apart:.2g} of their RMS; "
                  "on one thread they agree", file=sys.stderr)
    if "openvino_ms" in row:  # says what it computes; its rounding is no business of ours
        try:
            row["openvino_diff_over_rms"] = compare(engines, folder, known["outputs"], entry, "openvino")
            row["openvino_same_outputs"] = row["openvino_diff_over_rms"] <= tolerance_of(entry)
        except (EngineError, OSError) as error:
            row["openvino_diff_over_rms"] = None
            print(f"bench: {row['model']}: OpenVINO's outputs can't be compared: {error}", file=sys.stderr)


def measure(name: str, known: dict, threads: int, peak: dict, options: argparse.Namespace) -> dict:
    entry = zoo.ENTRIES.get(name)
    baseline = entry.baseline if entry else ""
    children = commands(options.program)
    if not options.openvino:
        children.pop("openvino", None)
    models = {engine: options.models_folder / f"{name if engine == 'sardonyx' else baseline or name}.onnx" for engine in children}
    for model in set(models.values()):
        for file in (model, model.with_suffix(".data")):
            if file.exists():
                warm(file)
    row = {"model": name, "threads": threads, "gflop": known["gflop"], "weights_mb": known["weights_mb"],
           "nodes": known["nodes"], "opset": known["opset"], "baseline": baseline}
    cold = cold_starts(children, models, threads, options.loads)
    for engine, figures in cold.items():
        row |= {f"{engine}_{key}": value for key, value in figures.items()}
    for engine in ("sardonyx", "onnxruntime"):
        if engine not in cold or "error" in cold[engine]:
            row["error"] = f"{NAMES[engine]}: {cold.get(engine, {'error': 'its package is not installed'})['error']}"
            return row
    models = {engine: model for engine, model in models.items() if "error" not in cold[engine]}
    try:
        with Process([*driver(options.program), *engine_words(list(models))]) as process, tempfile.TemporaryDirectory() as folder:
            for engine, model in models.items():
                Guest(process, engine).ask("load", model, threads)
                Guest(process, engine).ask("inputs", model.with_suffix(".npz"))
                row["carried"] = Guest(process, engine).ask("steps", STEPS)["carried"]
            for engine, times in take_turns(process, options.seconds).items():
                row[f"{engine}_ms"] = statistics.median(times)
            judge(row, process, pathlib.Path(folder), models, threads, known, entry)
    except EngineError as error:
        row["error"] = str(error)
        return row
    row["ratio"] = row["onnxruntime_ms"] / row["sardonyx_ms"]
    peers = [engine for engine in models if engine != "sardonyx"]
    row["best_peer"] = min(peers, key=lambda engine: row[f"{engine}_ms"])
    row["best_ratio"] = row[f"{row['best_peer']}_ms"] / row["sardonyx_ms"]
    row["first_ratio"] = min(row[f"{engine}_first_ms"] for engine in peers) / row["sardonyx_first_ms"]
    row["memory_ratio"] = min(row[f"{engine}_peak_mb"] for engine in peers) / max(row["sardonyx_peak_mb"], 0.1)
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
    parser.add_argument("--loads", type=int, default=1, help="processes started per figure and engine (default 1)")
    parser.add_argument("--json", type=pathlib.Path, help="write the rows to this file")
    parser.add_argument("--write-docs", action="store_true", help=f"put the table into docs/{page}")
    parser.set_defaults(openvino=False)
    parser.add_argument("--folder", dest="models_folder", type=pathlib.Path, default=ROOT / "build" / folder,
                        help="where models are kept")


def chosen(parser: argparse.ArgumentParser, wanted: str, names: list[str]) -> list[str]:
    """Names with commas between them, or all."""
    found = names if wanted == "all" else wanted.split(",")
    if unknown := [name for name in found if name not in names]:
        parser.error(f"unknown: {', '.join(unknown)}; known: {', '.join(names)}")
    return found


def opset_of(model) -> int:
    """Of the standard's operators in a ModelProto."""
    return max((opset.version for opset in model.opset_import if not opset.domain), default=0)


def parse_models(option: str, description: str, names: list[str], folder: str, seconds: float, openvino: bool) -> argparse.Namespace:
    """Of a benchmark of models that it makes itself, whose table goes into docs/models.md."""
    parser = argparse.ArgumentParser(prog=f"./dev bench {option}", description=description,
                                     formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--models", default="all", help="names with commas between them, or all: " + ", ".join(names))
    add_options(parser, "models.md", folder, seconds)
    if openvino:
        parser.add_argument("--no-openvino", dest="openvino", action="store_false", help="leave OpenVINO out")
        parser.set_defaults(openvino=True)
    options = parser.parse_args()
    options.models = chosen(parser, options.models, names)
    return options


def measure_models(options: argparse.Namespace, make: Callable[[str, pathlib.Path], dict]) -> tuple[list[dict], str]:
    """The rows of models that make(name, folder) writes, and what made them."""
    peak = probe(options.program)
    options.models_folder.mkdir(parents=True, exist_ok=True)
    known = {name: make(name, options.models_folder) for name in options.models}
    return measure_all(known, peak, options), report.provenance(peak, versions(options.program))


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
    parser.add_argument("--loads", type=int, default=3, help="processes started per row and engine (default 3)")
    parser.add_argument("--processor", default="", choices=["", *avx2.PROCESSORS], metavar="NAME",
                        help="have all engines find another processor (bench/avx2.py): "
                             + "; ".join(f"{name}, {what}" for name, what in avx2.PROCESSORS.items()))
    parser.add_argument("--weight-bits", type=int, default=8, choices=(7, 8),
                        help="of int8 weights (default 8); with 7, two products of bytes fit 16 bits, which other engines' "
                             "kernels for AVX2 need")
    parser.add_argument("--signed-activations", action="store_true",
                        help="quantise them to int8 instead of uint8, as ONNX Runtime's quantize_static does unless told otherwise")
    parser.add_argument("--no-openvino", dest="openvino", action="store_false", help="leave OpenVINO out")
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
    pretend(options.processor)
    if options.weight_bits != 8:
        quantised.weight_bits = options.weight_bits
        options.models_folder = options.models_folder.with_name(f"{options.models_folder.name}-{options.weight_bits}-bits")
    if options.signed_activations:
        quantised.signed_activations = True
        options.models_folder = options.models_folder.with_name(f"{options.models_folder.name}-signed")
    known = build_models.build_all(options.models, options.models_folder)
    peak = probe(options.program)
    rows = measure_all(known, peak, options)
    machine = report.provenance(peak, versions(options.program))
    print(report.summary(rows, zoo.kind))
    print(machine)
    if options.json:
        options.json.parent.mkdir(parents=True, exist_ok=True)
        options.json.write_text(json.dumps(rows, indent=1) + "\n")
    report.draw(rows, options.image)
    print(f"chart: {options.image}")
    if options.write_docs:
        report.write_docs(rows, machine, options.page, zoo.kind)
    if options.write_models:
        report.write_models(rows, zoo.ENTRIES, machine, ROOT / "docs" / "models.md")
    wrong = [row for row in rows if "error" in row or not row["same_outputs"]]
    for row in wrong:
        what = row.get("error") or f"outputs differ by {row['max_diff_over_rms']:.2g} of their RMS"
        print(f"bench: {row['model']} at {row['threads']} threads: {what}", file=sys.stderr)
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
