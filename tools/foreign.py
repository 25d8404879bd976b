#!/usr/bin/env python3
"""Puts every model below some folders through Sardonyx and its peers, and prints the classes of outcomes.

    .venv/bin/python tools/foreign.py FOLDER… [--program FILE] [--json FILE] [--limit-mb N] [--only TEXT] [--examples N]

Each `.onnx` file is checked, inferred and run (planned on 1 and 2 threads, and as the reference) by Sardonyx, and put
through onnx.checker (full check), onnx.shape_inference (strict) and ONNX Runtime with the same random inputs. Outcomes are
counted by class, each with examples: what only one of them accepts or runs, with its message, answers that differ,
crashes and time limits. Nothing is written beside the models. Exits with 1 where Sardonyx crashed or ran out of time.
"""

from __future__ import annotations

import argparse
import collections
import hashlib
import json
import os
import pathlib
import re
import resource
import select
import subprocess
import sys
import tempfile

os.environ["ORT_DISABLE_TELEMETRY"] = "1"

import numpy as np

ROOT = pathlib.Path(__file__).resolve().parent.parent
SECONDS = 60
RANDOM_OPERATORS = {"RandomNormal", "RandomNormalLike", "RandomUniform", "RandomUniformLike", "Multinomial", "Bernoulli"}
SIZES = (1, 2, 4, 8)  # of dimensions that a model leaves open: the first with which ONNX Runtime runs it

# --- the peers, in a process of their own ---------------------------------------------------------


def first_line(error: BaseException) -> str:
    text = " ".join(str(error).split())
    return f"{type(error).__name__}: {text}"[:400]


def attempt(action) -> str:
    try:
        action()
    except Exception as error:  # whatever a peer throws is its answer
        return first_line(error)
    return "ok"


class Inputs:
    """Random values for the inputs of a session, the same for every engine."""

    def __init__(self, size: int):
        self.size = size
        self.random = np.random.default_rng(1)

    def tensor(self, kind: str, shape) -> np.ndarray:
        import ml_dtypes

        sizes = [n if isinstance(n, int) and n >= 0 else self.size for n in shape or []]
        if kind == "string":
            return np.full(sizes, "a", object)
        if kind == "bool":
            return self.random.integers(0, 2, sizes).astype(bool)
        named = {"float": np.float32, "double": np.float64, "float16": np.float16, "bfloat16": ml_dtypes.bfloat16}
        if kind in named:
            return self.random.uniform(-1, 1, sizes).astype(named[kind])
        return self.random.integers(0, 2, sizes).astype(np.dtype(kind))

    def value(self, described):
        kind = described.type
        matched = re.fullmatch(r"(optional\()?tensor\((\w+)\)\)?", kind)
        if matched:
            return self.tensor(matched[2], described.shape)
        matched = re.fullmatch(r"seq\(tensor\((\w+)\)\)", kind)
        if matched:
            return [self.tensor(matched[1], [2, 2]) for _ in range(2)]
        raise ValueError(f"no random value of type {kind}")


def encode(name: str, value) -> bytes:
    from onnx import numpy_helper

    if isinstance(value, list):
        return numpy_helper.from_list(value, name).SerializeToString()
    if isinstance(value, dict):
        return numpy_helper.from_dict(value, name).SerializeToString()
    return numpy_helper.from_array(np.asarray(value), name).SerializeToString()


def run_peer(path: str, folder: pathlib.Path) -> dict:
    import onnxruntime as ort

    options = ort.SessionOptions()
    options.log_severity_level = 4
    options.intra_op_num_threads = 1
    try:
        session = ort.InferenceSession(path, options, providers=["CPUExecutionProvider"])
    except Exception as error:
        return {"load": first_line(error)}
    result = {"load": "ok", "run": "no inputs tried"}
    outputs = [o.name for o in session.get_outputs()]
    for size in SIZES:
        try:
            inputs = Inputs(size)
            values = {i.name: inputs.value(i) for i in session.get_inputs()}
            for i, (name, value) in enumerate(values.items()):
                (folder / f"input_{i}.pb").write_bytes(encode(name, value))
            result["inputs"] = list(values)
            answers = session.run(None, values)
        except Exception as error:
            if size == SIZES[0]:
                result["run"] = first_line(error)
            continue
        result["run"] = "ok"
        result["outputs"] = outputs
        result["types"] = [o.type for o in session.get_outputs()]
        kept = []
        for i, answer in enumerate(answers):
            try:
                (folder / f"peer_{i}.pb").write_bytes(encode(outputs[i], answer))
                kept.append(i)
            except Exception:  # what numpy_helper cannot say is not compared
                pass
        result["kept"] = kept
        return result
    return result


def draws_numbers(node) -> bool:
    """Whether a node may give other values in each run."""
    training = node.op_type == "Dropout" and len(node.input) > 2 and node.input[2]
    return bool(training) or node.op_type in RANDOM_OPERATORS


def peers(path: str, folder: str) -> dict:
    import onnx

    result = {"checker": attempt(lambda: onnx.checker.check_model(path, full_check=True))}
    try:
        model = onnx.load(path)
        result["random"] = any(draws_numbers(node) for node in model.graph.node)
        result["infer"] = attempt(lambda: onnx.shape_inference.infer_shapes(model, strict_mode=True, data_prop=True))
    except Exception as error:
        result["infer"] = first_line(error)
    result["ort"] = run_peer(path, pathlib.Path(folder))
    return result


def worker() -> None:
    answers = os.fdopen(os.dup(1), "w")
    os.dup2(2, 1)  # what libraries print must not mix with the answers
    for line in sys.stdin:
        request = json.loads(line)
        print(json.dumps(peers(request["model"], request["folder"])), file=answers, flush=True)


class Peers:
    """Starts the process again where a model crashes it or takes too long."""

    def __init__(self):
        self.process = None

    def ask(self, model: str, folder: str) -> dict:
        if self.process is None:
            self.process = subprocess.Popen([sys.executable, __file__, "--worker"], stdin=subprocess.PIPE,
                                            stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True)
        self.process.stdin.write(json.dumps({"model": model, "folder": folder}) + "\n")
        self.process.stdin.flush()
        ready, _, _ = select.select([self.process.stdout], [], [], SECONDS)
        line = self.process.stdout.readline() if ready else ""
        if line:
            return json.loads(line)
        ended = "crash" if ready else "time limit"
        self.process.kill()
        self.process.wait()
        self.process = None
        return {"checker": ended, "infer": ended, "ort": {"load": ended}}

    def close(self) -> None:
        if self.process is not None:
            self.process.stdin.close()
            self.process.wait()


# --- Sardonyx -------------------------------------------------------------------------------------


def limit_memory() -> None:
    resource.setrlimit(resource.RLIMIT_AS, (16 << 30, 16 << 30))


def sardonyx(program: str, *arguments: str) -> str:
    """'ok', or the exit code and the message."""
    try:
        done = subprocess.run([program, *arguments], capture_output=True, timeout=SECONDS, preexec_fn=limit_memory)
    except subprocess.TimeoutExpired:
        return "time limit"
    if done.returncode == 0:
        return "ok"
    if done.returncode < 0:
        return f"crash: signal {-done.returncode}"
    text = (done.stderr or done.stdout).decode(errors="replace").strip().splitlines()
    errors = [line for line in text if not line.startswith("sardonyx: warning")]
    return f"exit {done.returncode}: {(errors or text or [''])[0]}"[:400]


def decode(path: pathlib.Path, kind: str = ""):
    """What --output or a peer wrote: an array, a list or a dictionary. `kind` is the output's declared type."""
    import onnx
    from onnx import numpy_helper

    if path.suffix == ".npy":
        return np.load(path, allow_pickle=True)
    data = path.read_bytes()
    if kind.startswith("optional"):
        optional = onnx.OptionalProto()
        optional.ParseFromString(data)
        return numpy_helper.to_optional(optional)
    for message, read in ((onnx.TensorProto, numpy_helper.to_array), (onnx.SequenceProto, numpy_helper.to_list),
                          (onnx.MapProto, numpy_helper.to_dict)):
        try:
            made = message()
            made.ParseFromString(data)
            return read(made)
        except Exception:
            continue
    return None


def agree(ours, theirs) -> str:
    """'' where they agree, else what differs."""
    if isinstance(theirs, list) or isinstance(ours, list):
        if not isinstance(ours, list) or not isinstance(theirs, list) or len(ours) != len(theirs):
            return "sequences of other lengths"
        return next((d for d in map(agree, ours, theirs) if d), "")
    if isinstance(theirs, dict):
        return "" if isinstance(ours, dict) and set(ours) == set(theirs) else "maps of other keys"
    ours, theirs = np.asarray(ours), np.asarray(theirs)
    if ours.shape != theirs.shape:
        return f"shape {list(ours.shape)}, ONNX Runtime {list(theirs.shape)}"
    if ours.dtype.kind == "V" and ours.dtype.itemsize == theirs.dtype.itemsize:
        ours = ours.view(theirs.dtype)  # .npy files know no types of ml_dtypes
    if (ours.dtype.kind in "OUS") != (theirs.dtype.kind in "OUS"):
        return f"{ours.dtype}, ONNX Runtime {theirs.dtype}"
    if theirs.dtype == object or theirs.dtype.kind in "USbiu":
        as_text = theirs.dtype == object or theirs.dtype.kind in "US"
        if as_text:
            same = [str(a) for a in ours.ravel()] == [str(b) for b in theirs.ravel()]
            return "" if same else "strings differ"
        steps = np.abs(ours.astype(np.float64) - theirs.astype(np.float64))
        most = float(steps.max(initial=0))
        return "" if most == 0 else f"integers differ by up to {'1' if most == 1 else 'more than 1'}"
    a, b = ours.astype(np.float64), theirs.astype(np.float64)
    if not np.array_equal(np.isnan(a), np.isnan(b)):
        return "NaN at other places"
    coarse = theirs.dtype.itemsize < 4
    finite = b[np.isfinite(b)]
    rms = float(np.sqrt(np.mean(finite**2))) if finite.size else 0.0
    close = np.isclose(a, b, rtol=2e-2 if coarse else 1e-3, atol=(1e-2 if coarse else 1e-4) * max(rms, 1e-6), equal_nan=True)
    return "" if close.all() else "numbers differ"


class Runs:
    """A model's runs by Sardonyx with the inputs that the peer ran with."""

    FORMS = {"planned": ["--threads", "1"], "two threads": ["--threads", "2"], "reference": ["--reference"]}

    def __init__(self, program: str, model: str, folder: pathlib.Path):
        self.program, self.model, self.folder = program, model, folder

    def run(self, form: str, inputs: list[str] | None) -> str:
        arguments = ["run", self.model, *self.FORMS[form], "--output", str(self.folder / form.replace(" ", "_"))]
        if inputs is None:
            arguments.append("--random-inputs")
        for i, name in enumerate(inputs or []):
            arguments += ["--input", f"{name}=@{self.folder}/input_{i}.pb"]
        return sardonyx(self.program, *arguments)

    def difference(self, form: str, kept: list[int], types: list[str]) -> str:
        for i in kept:
            stem = self.folder / form.replace(" ", "_") / f"output_{i}"
            ours = next((p for p in (stem.with_suffix(".npy"), stem.with_suffix(".pb")) if p.exists()), None)
            theirs = decode(self.folder / f"peer_{i}.pb")
            if ours is None or theirs is None:
                continue
            found = agree(decode(ours, types[i]), theirs)
            if found:
                return found
        return ""


def examine(program: str, model: pathlib.Path, asked: Peers) -> dict:
    with tempfile.TemporaryDirectory() as temporary:
        folder = pathlib.Path(temporary)
        path = str(model)
        result = {"model": path, **asked.ask(path, temporary)}
        ort = result["ort"]
        result["check"] = sardonyx(program, "check", path, "--strict", "--full")
        result["check_standard"] = sardonyx(program, "check", path)
        result["infer_ours"] = sardonyx(program, "infer", path)
        runs = Runs(program, path, folder)
        result["runs"] = {form: runs.run(form, ort.get("inputs")) for form in runs.FORMS}
        if ort.get("run") == "ok" and not result.get("random"):
            result["differences"] = {form: runs.difference(form, ort["kept"], ort["types"])
                                     for form, ended in result["runs"].items() if ended == "ok"}
        return result


# --- the classes ----------------------------------------------------------------------------------


def general(message: str) -> str:
    """A message without what is this model's own: names, numbers, paths."""
    text = re.sub(r"'[^']*'|\"[^\"]*\"|\([^()]*/[^()]*\)|\S*/\S+", "…", message)
    text = re.sub(r"\[[-\d, ?A-Za-z_]*\]", "[…]", text)
    return re.sub(r"-?\d+", "N", text)[:220]


def accepted(text: str) -> str:
    return "accepts" if text == "ok" else ("crashes" if text.startswith(("crash", "time limit")) else "refuses")


def classes_of(result: dict) -> list[tuple[str, str, str]]:
    """(subject, class, detail) of one model."""
    ort = result["ort"]
    theirs = ort.get("run", ort["load"]) if ort["load"] == "ok" else ort["load"]
    found = []
    for subject, ours, peer in (("check --strict --full, onnx.checker", result["check"], result["checker"]),
                                ("infer, onnx.shape_inference", result["infer_ours"], result["infer"])):
        kind = f"Sardonyx {accepted(ours)}, onnx {accepted(peer)}"
        one_sided = accepted(ours) != accepted(peer)
        found.append((subject, kind, general(peer if accepted(ours) == "accepts" else ours) if one_sided else ""))
    planned = result["runs"]["planned"]
    kind = f"Sardonyx {accepted(planned)}, ONNX Runtime {accepted(theirs)}"
    if accepted(planned) == accepted(theirs) == "accepts":
        differing = [d for d in result.get("differences", {}).values() if d]
        kind = "both run, " + ("random" if result.get("random") else "answers differ" if differing else "answers agree")
        found.append(("run", kind, general(differing[0]) if differing else ""))
    else:
        found.append(("run", kind, general(theirs if accepted(planned) == "accepts" else planned)))
    forms = {accepted(r) for r in result["runs"].values()}
    if len(forms) > 1:
        ended = "; ".join(f"{form}: {general(text)[:120]}" for form, text in result["runs"].items())
        found.append(("forms of running", "not the same", ended))
    return found


def print_classes(results: list[dict], examples: int) -> None:
    tables: dict = collections.defaultdict(lambda: collections.defaultdict(list))
    for result in results:
        for subject, kind, detail in classes_of(result):
            tables[subject][kind].append((detail, result["model"]))
    for subject, kinds in tables.items():
        print(f"\n{subject}")
        for kind, members in sorted(kinds.items(), key=lambda item: -len(item[1])):
            print(f"  {len(members):5}  {kind}")
            details: dict = collections.defaultdict(list)
            for detail, model in members:
                if detail:
                    details[detail].append(model)
            for detail, models in sorted(details.items(), key=lambda item: -len(item[1])):
                print(f"         {len(models):4}  {detail}")
                for model in models[:examples]:
                    print(f"               {model}")


def models_below(folders: list[str], limit: int, only: str) -> list[pathlib.Path]:
    """Each content once."""
    seen, found = set(), []
    for folder in folders:
        for path in sorted(pathlib.Path(folder).rglob("*.onnx")):
            if only not in str(path) or not path.is_file() or path.stat().st_size > limit:
                continue
            digest = hashlib.sha256(path.read_bytes()).digest()
            if digest not in seen:
                seen.add(digest)
                found.append(path)
    return found


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("folders", nargs="*", metavar="FOLDER")
    parser.add_argument("--program", default=str(ROOT / "build/release/bin/sardonyx"))
    parser.add_argument("--json", help="write each model's outcomes to this file")
    parser.add_argument("--limit-mb", type=float, default=500, help="leave larger files out (500)")
    parser.add_argument("--only", default="", help="only paths that hold this text")
    parser.add_argument("--examples", type=int, default=1, help="of each class (1)")
    parser.add_argument("--worker", action="store_true", help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.worker:
        worker()
        return 0
    models = models_below(options.folders, int(options.limit_mb * 1e6), options.only)
    if not models:
        parser.error("no .onnx file below these folders")
    asked, results = Peers(), []
    for i, model in enumerate(models):
        if sys.stderr.isatty():
            print(f"\r{i + 1}/{len(models)}", end="", file=sys.stderr, flush=True)
        results.append(examine(options.program, model, asked))
    asked.close()
    print(f"{len(results)} models")
    print_classes(results, options.examples)
    if options.json:
        pathlib.Path(options.json).write_text(json.dumps(results, indent=1))
    crashed = any("crash" in text or text == "time limit"
                  for r in results for text in [r["check"], r["infer_ours"], *r["runs"].values()])
    return 1 if crashed else 0


if __name__ == "__main__":
    sys.exit(main())
