#!/usr/bin/env python3
"""Other people's packages, unmodified, on onnxruntime and on Sardonyx under its name: the same answers?

Each tools/packages/NAME.py is a case: REQUIRES names what it needs from the package index, and run() does what the package's
own example does and returns what it found. A case runs in two processes, one with onnxruntime, one with
sardonyx.compat.install(), and what comes back is compared: texts and integers as they are, floats by TOLERANCE (1e-3 of the
largest unless the case says otherwise). No case fetches a model: packages bring theirs, or the case makes one.

    tools/packages.py --python VENV/bin/python          # a Python that has the packages
    tools/packages.py --python … --write-docs           # also writes the table of docs/python.md
"""

from __future__ import annotations

import argparse
import importlib.util
import os
import pathlib
import pickle
import subprocess
import sys
import tempfile

ROOT = pathlib.Path(__file__).resolve().parent.parent
CASES = ROOT / "tools" / "packages"
PAGE = ROOT / "docs" / "python.md"
BEGIN, END = "<!-- tools/packages.py writes this table -->", "<!-- end of the table -->"

CHILD = """
import importlib.metadata, importlib.util, pickle, sys, time, warnings
who, case, output = sys.argv[1:]
warnings.simplefilter("ignore")
if who == "ours":
    import sardonyx.compat
    sardonyx.compat.install()
spec = importlib.util.spec_from_file_location("case", case)
module = importlib.util.module_from_spec(spec)
spec.loader.exec_module(module)
run = module.prepare()
result = run()
times = []
for _ in range(5):
    begin = time.perf_counter()
    run()
    times.append(time.perf_counter() - begin)
import onnxruntime
assert ("sardonyx" in onnxruntime.__version__) == (who == "ours"), onnxruntime.__version__
with open(output, "wb") as file:
    pickle.dump({"result": result, "seconds": sorted(times)[2], "onnxruntime": onnxruntime.__version__,
                 "version": importlib.metadata.version(module.REQUIRES.split()[0])}, file)
"""


def load_case(path: pathlib.Path):
    spec = importlib.util.spec_from_file_location(path.stem, path)
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def run_child(python: str, who: str, case: pathlib.Path) -> dict | str:
    """What the case gave, or the last line of what went wrong."""
    with tempfile.TemporaryDirectory() as folder:
        output = pathlib.Path(folder) / "result.pickle"
        environment = dict(os.environ, PYTHONPATH=os.environ.get("SARDONYX_PACKAGE", str(ROOT / "build" / "release" / "python")),
                           ORT_DISABLE_TELEMETRY="1", OMP_NUM_THREADS="1")
        made = subprocess.run([python, "-c", CHILD, who, str(case), str(output)], env=environment, capture_output=True, text=True,
                              cwd=folder)
        if made.returncode:
            return (made.stderr.strip().splitlines() or ["stopped without a word"])[-1]
        with output.open("rb") as file:
            return pickle.load(file)


def difference(mine, other, tolerance: float, place: str = "result") -> str | None:
    """Where two results differ, or None."""
    if isinstance(other, (list, tuple)):
        if len(mine) != len(other):
            return f"{place}: {len(mine)} items, not {len(other)}"
        for i, (one, another) in enumerate(zip(mine, other)):
            found = difference(one, another, tolerance, f"{place}[{i}]")
            if found:
                return found
        return None
    if isinstance(other, dict):
        return difference(sorted(mine.items()), sorted(other.items()), tolerance, place)
    if hasattr(other, "shape"):
        if mine.shape != other.shape or mine.dtype != other.dtype:
            return f"{place}: {mine.dtype}{mine.shape}, not {other.dtype}{other.shape}"
        if other.dtype.kind in "fc":
            largest = abs(other).max() if other.size else 0
            worst = abs(mine - other).max() if other.size else 0
            return None if worst <= tolerance * max(largest, 1e-6) else f"{place}: off by {worst:.3g} of {largest:.3g}"
        return None if (mine == other).all() else f"{place}: other values"
    if isinstance(other, float):
        return None if abs(mine - other) <= tolerance * max(abs(other), 1e-6) else f"{place}: {mine}, not {other}"
    return None if mine == other else f"{place}: {mine!r}, not {other!r}"


def row_of(python: str, path: pathlib.Path) -> tuple[list[str], bool]:
    case = load_case(path)
    theirs, ours = run_child(python, "theirs", path), run_child(python, "ours", path)
    name = case.REQUIRES.split()[0]
    if isinstance(theirs, str):
        return [name, "", case.WHAT, f"does not run with onnxruntime: {theirs}", "", ""], "No module named" in theirs
    if isinstance(ours, str):
        return [name, theirs["version"], case.WHAT, f"fails: {ours}", "", ""], False
    found = difference(ours["result"], theirs["result"], getattr(case, "TOLERANCE", 1e-3))
    times = [f"{1e3 * one['seconds']:.1f}" for one in (theirs, ours)]
    return [name, theirs["version"], case.WHAT, found or "yes", *times], found is None


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--python", default=sys.executable, help="a Python that has the packages, and onnxruntime")
    parser.add_argument("--write-docs", action="store_true", help="put the table into docs/python.md")
    parser.add_argument("names", nargs="*", help="cases (default: all)")
    options = parser.parse_args()
    lines = ["| package | version | what runs | same answers | onnxruntime, ms | Sardonyx, ms |", "|---|---|---|---|---|---|"]
    good = True
    for path in sorted(CASES.glob("*.py")):
        if options.names and path.stem not in options.names:
            continue
        row, ok = row_of(options.python, path)
        good = good and ok
        lines.append("| " + " | ".join(row) + " |")
        print(lines[-1], flush=True)
    if options.write_docs:
        text = PAGE.read_text()
        before, rest = text.split(BEGIN)
        PAGE.write_text(before + BEGIN + "\n" + "\n".join(lines) + "\n" + END + rest.split(END)[1])
    return 0 if good else 1


if __name__ == "__main__":
    sys.exit(main())
