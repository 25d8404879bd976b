#!/usr/bin/env python3
"""Runs random nodes of every operator against the reference evaluator and ONNX Runtime.

Nodes are drawn from the signatures by a seed (tools/differential/), evaluated by both, written as
backend cases to build/differential and run by the conformance runner, planned and plain. Sardonyx
has to agree with one of the two that could run the node: where they differ, two of three decide.
tools/differential/wrong.py says, with the reason, where one of them is not asked.
"""

from __future__ import annotations

import argparse
import collections
import json
import multiprocessing
import os
import pathlib
import random
import re
import shutil
import subprocess
import sys
import tempfile
import warnings
from concurrent.futures import ProcessPoolExecutor
from concurrent.futures.process import BrokenProcessPool

ROOT = pathlib.Path(__file__).resolve().parent.parent
sys.path.insert(0, str(ROOT / "tools" / "differential"))
ATTEMPTS = 8  # at drawing one valid node
ENDINGS = ("", ".reference", ".runtime")  # of the folders that one case may have
UNFINISHED = ".unfinished"  # suffix of a mark while it is written


def schemas(domains=("", "ai.onnx.ml")) -> list:
    """The definitions to test: all since opset 7, older ones where they mean the same without their attributes."""
    from onnx import defs

    old = {"consumed_inputs", "broadcast", "is_test", "spatial"}
    return sorted((schema for schema in defs.get_all_schemas_with_history()
                   if schema.domain in domains and not schema.deprecated and not (old & set(schema.attributes))),
                  key=lambda schema: (schema.domain, schema.name, schema.since_version))


def build_model(draw, node):
    """(model, what to feed): inputs by the luck of the draw initializers, or of open sizes."""
    import numpy as np
    from drawing import type_proto
    from onnx import helper, numpy_helper

    names, inputs, initializers, feeds = [], [], [], {}
    while node.inputs and node.inputs[-1] is None:
        node.inputs.pop()
    for number, value in enumerate(node.inputs):
        value = np.asarray(value) if isinstance(value, np.generic) else value  # numpy's sums give scalars
        names.append("" if value is None else f"x{number}")
        if value is None:
            continue
        tensor = isinstance(value, np.ndarray)
        if tensor and number > 0 and draw.maybe(0.4):
            initializers.append(numpy_helper.from_array(value, names[-1]))
            continue
        shape = None
        if tensor:
            how = draw.between(0, 5)
            shape = list(value.shape) if how < 3 else [f"x{number}_{i}" for i in range(value.ndim)]
            shape = None if how == 5 else shape
        inputs.append(helper.make_value_info(names[-1], type_proto(value, shape)))
        feeds[names[-1]] = value
    made = node.outputs if isinstance(node.outputs, list) else [True] * node.outputs
    outputs = [f"y{number}" if wanted else "" for number, wanted in enumerate(made)]
    attributes = {}
    for name, value in node.attributes.items():
        if isinstance(value, tuple):
            value = numpy_helper.from_array(value[1], name)
        attributes[name] = value
    built = helper.make_node(draw.schema.name, names, outputs, domain=draw.schema.domain, **attributes)
    infos = [helper.make_empty_tensor_value_info(name) for name in outputs if name]
    graph = helper.make_graph([built], "differential", inputs, infos, initializers)
    imports = [helper.make_opsetid(draw.schema.domain, draw.schema.since_version)]
    return helper.make_model(graph, opset_imports=imports, ir_version=11), feeds


def value_bytes(value, name: str) -> bytes:
    import numpy as np
    from onnx import numpy_helper

    if isinstance(value, list):
        return sequence_bytes(value, name)
    if isinstance(value, dict):
        return map_bytes(value, name)
    return numpy_helper.from_array(np.asarray(value), name).SerializeToString()


def map_bytes(value: dict, name: str) -> bytes:
    """Floats of maps are of 32 bits, which numpy_helper.from_dict does not know."""
    import numpy as np
    import onnx
    from onnx import TensorProto, numpy_helper

    proto = onnx.MapProto(name=name)
    keys = sorted(value)
    if isinstance(keys[0], str):
        proto.key_type = TensorProto.STRING
        proto.string_keys.extend(key.encode() for key in keys)
    else:
        proto.key_type = TensorProto.INT64
        proto.keys.extend(keys)
    held = type(value[keys[0]])
    dtype = {str: object, int: np.int64}.get(held, np.float32)
    proto.values.name = "values"
    proto.values.elem_type = onnx.SequenceProto.TENSOR
    proto.values.tensor_values.extend(numpy_helper.from_array(np.array(value[key], dtype)) for key in keys)
    return proto.SerializeToString()


def sequence_bytes(value: list, name: str) -> bytes:
    import onnx
    from onnx import numpy_helper

    if not value or not isinstance(value[0], dict):
        return numpy_helper.from_list(value, name).SerializeToString()
    proto = onnx.SequenceProto(name=name, elem_type=onnx.SequenceProto.MAP)
    for item in value:
        proto.map_values.add().ParseFromString(map_bytes(item, ""))
    return proto.SerializeToString()


def write_case(folder: pathlib.Path, model, feeds: dict, outputs: list) -> None:
    import onnx
    from drawing import type_proto
    from oracles import widest_tolerance

    typed = onnx.ModelProto()
    typed.CopyFrom(model)
    for info, value in zip(typed.graph.output, outputs):
        info.type.CopyFrom(type_proto(value))
    data = folder / "test_data_set_0"
    data.mkdir(parents=True)
    (folder / "model.onnx").write_bytes(typed.SerializeToString())
    for number, (name, value) in enumerate(feeds.items()):
        (data / f"input_{number}.pb").write_bytes(value_bytes(value, name))
    for number, (info, value) in enumerate(zip(typed.graph.output, outputs)):
        (data / f"output_{number}.pb").write_bytes(value_bytes(value, info.name))
    relative, absolute = widest_tolerance(outputs)
    (folder / "tolerance.json").write_text(json.dumps({"rtol": relative, "atol": absolute}))


def case_name(task) -> str:
    domain, name, version, number, *_ = task
    return f"{'ml.' if domain else ''}{name}-{version}-{number}"


def make_case(task, without: tuple[str, ...] = ()) -> tuple[str, str, str]:
    """(name, state, what was said): state is of `both`, `reference`, `runtime`, `disputed`, `nobody`, `undrawn`. Evaluators
    in `without` are not asked."""
    domain, name, version, number, seed, out = task
    from drawing import Draw, Invalid
    from hints import HINTS, generic
    from hints_ml import HINTS as ML_HINTS
    from onnx import defs
    from oracles import Refused, by_reference, by_runtime, differ
    from wrong import Case, is_wrong

    warnings.simplefilter("ignore")
    schema = defs.get_schema(name, version, domain)
    case = case_name(task)
    function = (ML_HINTS if domain else HINTS).get(name, generic)
    said = ""
    for attempt in range(ATTEMPTS):
        try:
            draw = Draw(schema, f"{seed} {case} {attempt}")
            node = function(draw)
            model, feeds = build_model(draw, node)
        except (Invalid, ValueError, OverflowError) as error:
            said = f"{type(error).__name__}: {error}"
            continue
        found = {}
        for oracle, run in (("reference", by_reference), ("runtime", by_runtime)):
            if oracle in without or is_wrong(oracle, Case(name, version, node.inputs, node.attributes)):
                continue
            try:
                found[oracle] = run(model, feeds)
            except Refused as error:
                said += f"{oracle}: {str(error)[:300]}\n"
        if not found:
            continue
        folder = pathlib.Path(out)
        try:
            if len(found) == 2 and (difference := differ(found["reference"], found["runtime"])):
                write_case(folder / f"{case}.reference", model, feeds, found["reference"])
                write_case(folder / f"{case}.runtime", model, feeds, found["runtime"])
                return case, "disputed", difference
            write_case(folder / case, model, feeds, next(iter(found.values())))
        except (Invalid, AttributeError, TypeError, ValueError, NotImplementedError) as error:
            for ending in ENDINGS:
                shutil.rmtree(folder / (case + ending), ignore_errors=True)
            said += f"cannot be written: {error}"
            continue
        return case, "both" if len(found) == 2 else next(iter(found)), said
    return case, "undrawn" if "refer" not in said else "nobody", said


def make_marked(task, marks: str, without: tuple[str, ...] = ()) -> tuple[str, str, str]:
    """The case, whose task stands in a file of this process while it is made."""
    mark = pathlib.Path(marks) / str(os.getpid())
    unfinished = mark.with_suffix(UNFINISHED)
    unfinished.write_text(json.dumps(task))
    unfinished.replace(mark)  # so that a mark is there whole or not at all, whenever the process ends
    for ending in ENDINGS:  # what a process may have left that ended
        shutil.rmtree(pathlib.Path(task[-1]) / (case_name(task) + ending), ignore_errors=True)
    try:
        return make_case(task, without)
    finally:
        mark.unlink()


def take_marks(marks: pathlib.Path) -> list[tuple]:
    """The tasks that processes had begun when they ended; removes their marks."""
    begun = [tuple(json.loads(mark.read_text())) for mark in marks.iterdir() if mark.suffix != UNFINISHED]
    for mark in marks.iterdir():
        mark.unlink()
    return begun


def make_all(tasks: list) -> list[tuple[str, str, str]]:
    """All cases. An evaluator may end the process that asks it: what was being made then is made alone, and without
    ONNX Runtime where it ends its process again."""
    made, left, alone = [], [tuple(task) for task in tasks], []
    with tempfile.TemporaryDirectory() as marks:
        def run(some, workers, without=()):
            with ProcessPoolExecutor(workers, multiprocessing.get_context("fork")) as pool:
                jobs = {pool.submit(make_marked, task, marks, without): task for task in some}
            done = {task: job.result() for job, task in jobs.items() if not isinstance(job.exception(), BrokenProcessPool)}
            made.extend(done.values())
            return [task for task in some if task not in done]

        while left:
            left = run(left, os.cpu_count())
            ended = take_marks(pathlib.Path(marks))
            if left and not ended:
                sys.exit("differential: the processes that make cases end before they begin")
            alone += ended
            left = [task for task in left if task not in ended]
        for task in alone:
            if run([task], 1) and run([task], 1, ("runtime",)):
                made.append((case_name(task), "nobody", "an evaluator ends its process"))
    return sorted(made)


def run_cases(runner: pathlib.Path, folder: pathlib.Path, threads: int) -> dict[str, tuple[str, str]]:
    report = folder.parent / f"differential-{threads}.json"
    report.unlink(missing_ok=True)
    code = subprocess.run([runner, "--cases", folder, "--threads", str(threads), "--json", report, "--quiet"],
                          stdout=subprocess.DEVNULL).returncode
    if not report.exists():
        sys.exit(f"differential: the runner ended with {code} and no report")
    return {case["name"]: (case["state"], case["reason"]) for case in json.loads(report.read_text())["cases"]}


def judge(made: list, results: list[dict]) -> tuple[collections.Counter, list[str]]:
    """How many cases were tested against what, and the failures."""
    counts, failures = collections.Counter(), []
    for case, state, said in made:
        counts[state] += 1
        if state in ("nobody", "undrawn"):
            continue
        names = [f"{case}.reference", f"{case}.runtime"] if state == "disputed" else [case]
        wrong = []
        for result in results:
            reasons = [result.get(name, ("failed", "not run")) for name in names]
            if not any(outcome == "passed" for outcome, _ in reasons):
                wrong = [f"{name}: {reason}" for name, (_, reason) in zip(names, reasons)]
        if wrong:
            failures.append(f"{case} ({state}{': ' + said if state == 'disputed' else ''})\n    " + "\n    ".join(wrong))
    return counts, failures


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--runner", type=pathlib.Path, default=ROOT / "build/release/bin/conformance_runner")
    parser.add_argument("--cases", type=int, default=3, help="for each definition (default 3)")
    parser.add_argument("--seed", default="1")
    parser.add_argument("--filter", default="", help="only definitions such as Softmax-13 that match")
    parser.add_argument("--threads", type=int, action="append", help="of a run; repeatable (default 1 and 2)")
    parser.add_argument("--out", type=pathlib.Path, default=ROOT / "build" / "differential" / "cases")
    parser.add_argument("--json", type=pathlib.Path, help="write what came of each case")
    parser.add_argument("--verbose", action="store_true", help="also say what could not be drawn or evaluated")
    options = parser.parse_args()

    from hints import LEFT_OUT

    shutil.rmtree(options.out, ignore_errors=True)
    options.out.mkdir(parents=True)
    tasks = [(schema.domain, schema.name, schema.since_version, number, options.seed, str(options.out))
             for schema in schemas() if schema.name not in LEFT_OUT
             and re.search(options.filter, f"{schema.name}-{schema.since_version}") for number in range(options.cases)]
    random.Random(1).shuffle(tasks)
    os.environ.setdefault("OMP_NUM_THREADS", "1")
    made = make_all(tasks)
    results = [run_cases(options.runner, options.out, threads) for threads in options.threads or (1, 2)]
    counts, failures = judge(made, results)
    tested = sum(counts[state] for state in ("both", "reference", "runtime", "disputed"))
    if options.verbose:
        for case, state, said in made:
            if state in ("nobody", "undrawn"):
                print(f"{state} {case}: {said.strip()}")
    for failure in failures:
        print(f"failed {failure}")
    if options.json:
        options.json.write_text(json.dumps({"counts": counts, "passed": tested - len(failures), "failures": failures}, indent=1))
    print(f"{tested} nodes of {len({t[:3] for t in tasks})} definitions: {counts['both']} against both evaluators, "
          f"{counts['reference']} against the reference alone, {counts['runtime']} against ONNX Runtime alone, "
          f"{counts['disputed']} where the two differ; {counts['nobody'] + counts['undrawn']} that neither runs")
    print(f"{tested - len(failures)} passed, {len(failures)} failed")
    return 1 if failures else 0


if __name__ == "__main__":
    sys.exit(main())
