#!/usr/bin/env python3
"""What a caller sees of the engine beside the kernels: each row with its target and whether it is met.

Small steps, new sizes, many callers, memory, the making of sessions, and gradient boosting with 1,000 trees. What is
compared is measured in turn, and medians are taken.
"""

from __future__ import annotations

import argparse
import dataclasses
import json
import pathlib
import statistics
import subprocess
import sys
import tempfile
import warnings

import numpy as np
import onnx
from onnx import helper

import build_models
import report
import run
import zoo

ROOT = pathlib.Path(__file__).resolve().parent.parent
BEGIN, END = "<!-- engine:begin -->", "<!-- engine:end -->"
LARGE = ["vgg19", "zfnet512", "gpt2", "bert", "vit_b16", "alexnet", "resnet50"]  # over 50 MB


@dataclasses.dataclass
class Row:
    what: str
    measured: float
    form: str  # how it is shown
    target: float
    at_most: bool  # the target is an upper bound
    detail: str = ""

    @property
    def met(self) -> bool:
        return self.measured <= self.target if self.at_most else self.measured >= self.target

    def cells(self) -> list[str]:
        sign = "at most" if self.at_most else "at least"
        return [self.what, self.form.format(self.measured), f"{sign} {self.target:g}", "yes" if self.met else "no",
                self.detail]


class Engine:
    def __init__(self, options: argparse.Namespace):
        self.options = options
        self.folder = options.models_folder.parent / "bench-engine"
        self.folder.mkdir(parents=True, exist_ok=True)

    def bench(self, *words) -> dict:
        result = subprocess.run([self.options.bench, *map(str, words)], capture_output=True, text=True)
        if result.returncode:
            sys.exit(f"bench: engine_bench {' '.join(map(str, words))}: {result.stderr.strip()}")
        return json.loads(result.stdout)

    def zoo(self, *names: str) -> list[pathlib.Path]:
        build_models.build_all(list(names), self.options.models_folder)
        return [self.options.models_folder / f"{name}.onnx" for name in names]

    # --- rows ---------------------------------------------------------------------------------

    def tiny(self) -> list[Row]:
        """Nodes that hardly compute and that nothing fuses; and one alone."""
        x, y = (helper.make_tensor_value_info(name, 1, [1, 8]) for name in ("x", "y"))
        nodes, value = [], "x"
        for index in range(200):  # no two neighbours go into one region
            name = "y" if index == 199 else f"v{index}"
            kind = ("CumSum", "Softmax")[index % 2]
            nodes.append(helper.make_node(kind, [value, "axis"] if kind == "CumSum" else [value], [name]))
            value = name
        axis = onnx.numpy_helper.from_array(np.array(1, np.int64), "axis")
        models = {}
        for count, chosen in ((200, nodes), (1, [helper.make_node("Softmax", ["x"], ["y"])])):
            graph = helper.make_graph(chosen, "tiny", [x], [y], [axis] if count > 1 else [])
            models[count] = self.folder / f"tiny{count}.onnx"
            onnx.save(helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8), models[count])
        many, one = self.bench("run", models[200], 500), self.bench("run", models[1], 20000)
        if many["steps"] != 200:
            sys.exit(f"bench: the 200 nodes became {many['steps']} steps; they are to stay apart")
        return [Row("a node of 200 tiny ones, µs", many["us"] / 200, "{:.3f}", 0.15, True),
                Row("a run of one tiny node, µs", one["us"], "{:.3f}", 0.5, True)]

    def pasts(self) -> list[Row]:
        (model,) = self.zoo("gpt2")
        found = self.bench("pasts", model, self.options.steps)
        return [Row("GPT-2 step with a new past: binding it, µs", found["new_us"] - found["same_us"], "{:.0f}", 1000, True,
                    f"{found['steps']} steps; a profiled run takes {found['new_ms']:.1f} ms, {found['same_ms']:.1f} ms with "
                    "the past of the run before")]

    def lengths(self) -> list[Row]:
        (model,) = self.zoo("bert")
        found = self.bench("lengths", model, "sequence", 64, 512, self.options.lengths)
        return [Row("BERT over random lengths 64 to 512: speed beside fixed", found["ratio"], "{:.3f}", 0.98, False,
                    f"{found['random_ms']:.1f} ms beside {found['fixed_ms']:.1f} ms on average")]

    def shapes(self) -> list[Row]:
        path = self.folder / "bert_small.onnx"
        zoo.ENTRIES["bert"].build(layers=2, hidden=64, heads=4, vocabulary=100, positions=512, length=16).save(path)
        found = self.bench("shapes", path, "sequence", 1, 512, 1000)
        grown = found["after_all_mb"] - found["after_few_mb"]
        return [Row("memory grown from the 50th to the 1,000th random shape, MB", grown, "{:.2f}", 0.5, True,
                    f"{found['after_all_mb']:.0f} MB resident")]

    def more(self) -> list[Row]:
        """Sessions of one Model share its weights, also those that are packed or made by folding."""
        (model,) = self.zoo("bert")
        found = self.bench("more", model, "sequence", 64, 4)
        return [Row("memory of a further session of one Model beside the first's, BERT", found["more_mb"] / found["first_mb"],
                    "{:.3f}", 0.1, True, f"{found['more_mb']:.1f} MB, {found['first_mb']:.0f} MB"),
                Row("making it, ms", found["more_ms"], "{:.2f}", 1, True, f"the first {found['first_ms']:.1f} ms")]

    def callers(self) -> list[Row]:
        """Where others use the machine, eight threads get more of it than two: the ratio then says little."""
        rows = []
        for name in ("mlp", "mobilenet_v2", "resnet50"):
            (model,) = self.zoo(name)
            found = self.bench("callers", model, 8, 2)
            rows.append(Row(f"8 callers of one session with 2 threads, {name}", found["ratio"], "{:.2f}", 0.95, False,
                            f"{found['shared_per_s']:.1f} runs a second; two sessions with a thread and a caller each: "
                            f"{found['independent_per_s']:.1f}"))
        return rows

    def boosting(self) -> list[Row]:
        from sklearn import ensemble
        from zoo import pipelines

        x, y = pipelines.data("diabetes")
        path = self.folder / "boosting1000.onnx"
        if not path.exists():
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")
                model = ensemble.GradientBoostingRegressor(n_estimators=1000, max_depth=3, random_state=3).fit(x, y)
                pipelines.converted(model, x, pipelines.valued(model, x), opset=15, ml=2).save(path)
        name = onnx.load(path).graph.input[0].name
        rows = []
        for batch in (1, 1000):
            feeds = self.folder / f"boosting1000_{batch}.npz"
            np.savez(feeds, **{name: np.resize(x, (batch, x.shape[1])).astype(np.float32)})
            for threads in (1, 2):
                ours, theirs = self.beside(path, feeds, threads)
                rows.append(Row(f"gradient boosting, 1,000 trees, batch {batch}, {threads} thread{'s'[:threads - 1]}",
                                theirs / ours, "{:.2f}", 1.5, False, f"{ours:.4g} ms, ONNX Runtime {theirs:.4g} ms"))
        return rows

    def beside(self, model: pathlib.Path, feeds: pathlib.Path, threads: int) -> tuple[float, float]:
        names = ["sardonyx", "onnxruntime"]
        with run.Process([*run.driver(self.options.program), *run.engine_words(names)]) as process, \
                tempfile.TemporaryDirectory() as folder:
            engines = {name: run.Guest(process, name) for name in names}
            for engine in engines.values():
                engine.ask("load", model, threads)
                engine.ask("inputs", feeds)
            times = run.take_turns(process, self.options.seconds)
            difference = run.compare(engines, pathlib.Path(folder), len(onnx.load(model).graph.output), None)
        if difference > 1e-3:
            sys.exit(f"bench: outputs of {model.name} differ by {difference:.2g} of their RMS")
        return statistics.median(times["sardonyx"]), statistics.median(times["onnxruntime"])

    def sessions(self) -> list[Row]:
        """The first answer of large models, each with its session, and the peak of memory with one run."""
        children = run.commands(self.options.program)
        children.pop("openvino", None)
        rows = []
        for name, model in zip(LARGE, self.zoo(*LARGE)):
            run.warm(model)
            feeds, answered, peaks = model.with_suffix(".npz"), {}, {}
            for turn in range(self.options.loads):
                # The one that comes after a process with much memory finds the system still busy with that.
                for engine, command in sorted(children.items(), reverse=turn % 2 == 1):
                    with run.Engine(command) as child:
                        created = child.ask("load", model, 1)["create_ms"]
                        child.ask("inputs", feeds)
                        answered.setdefault(engine, []).append(created + child.ask("run", 1)["ms"][0])
                        memory = child.ask("memory")
                        peaks.setdefault(engine, []).append(memory["peak_mb"] - memory["base_mb"])

            def medians(of: dict) -> tuple[float, float]:
                return statistics.median(of["sardonyx"]), statistics.median(of["onnxruntime"])

            ours, theirs = medians(answered)
            rows.append(Row(f"first answer of {name}: times earlier", theirs / ours, "{:.1f}", 1, False,
                            f"{ours:.0f} ms, ONNX Runtime {theirs:.0f} ms, each with its session"))
            ours, theirs = medians(peaks)
            rows.append(Row(f"peak memory of {name} beside ONNX Runtime's", ours / theirs,
                            "{:.2f}", 0.75, True, f"{ours:.0f} MB, {theirs:.0f} MB"))
        return rows


PARTS = ("tiny", "pasts", "lengths", "shapes", "more", "callers", "boosting", "sessions")


def table(rows: list[Row]) -> str:
    lines = ["| what | measured | target | met | |", "|---|---|---|---|---|"]
    return "\n".join(lines + ["| " + " | ".join(row.cells()) + " |" for row in rows])


def parse_arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="./dev bench --engine", description=__doc__,
                                     formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--program", default=str(ROOT / "build" / "release" / "bin" / "sardonyx"))
    parser.add_argument("--bench", default=str(ROOT / "build" / "release" / "bin" / "engine_bench"))
    parser.add_argument("--models-folder", type=pathlib.Path, default=ROOT / "build" / "bench-models")
    parser.add_argument("--parts", default="all", help="with commas between them, or all: " + ", ".join(PARTS))
    parser.add_argument("--steps", type=int, default=60, help="of GPT-2 with pasts of 1 to so many (default 60)")
    parser.add_argument("--lengths", type=int, default=25, help="of BERT (default 25)")
    parser.add_argument("--seconds", type=float, default=1.5, help="to spend on taking turns, per row (default 1.5)")
    parser.add_argument("--loads", type=int, default=3, help="sessions made per large model (default 3)")
    parser.add_argument("--json", type=pathlib.Path, help="write the rows to this file")
    parser.add_argument("--write-docs", action="store_true", help="put the table into --page")
    parser.add_argument("--page", type=pathlib.Path, default=ROOT / "docs" / "performance.md",
                        help="for --write-docs: docs/performance.md, or the page of another machine")
    options = parser.parse_args()
    options.parts = list(PARTS) if options.parts == "all" else options.parts.split(",")
    if unknown := [part for part in options.parts if part not in PARTS]:
        parser.error(f"unknown parts: {', '.join(unknown)}; known: {', '.join(PARTS)}")
    return options


def main() -> int:
    options = parse_arguments()
    engine = Engine(options)
    rows = []
    for part in options.parts:
        for row in getattr(engine, part)():
            rows.append(row)
            print("  ".join(row.cells()), flush=True)
    if options.json:
        options.json.write_text(json.dumps([dataclasses.asdict(row) | {"met": row.met} for row in rows], indent=1) + "\n")
    if options.write_docs:
        found = run.versions(options.program)
        found.pop("openvino", None)  # takes no part
        made = report.provenance(run.probe(options.program), found)
        report.put_between(options.page, BEGIN, END,
                           f"Made by `{report.command_line('--engine')}`: {made}.\n\n{table(rows)}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
