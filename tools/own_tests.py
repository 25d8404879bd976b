"""What tools/onnx_own_tests.py and tools/onnxruntime_own_tests.py share: running tests of another package on Sardonyx's functions under
its names, and holding the outcomes against a list of deviations.

Loaded into pytest (-p own_tests) it puts Sardonyx in the place of the package that OWN_TESTS_INSTALL names (sardonyx.compat or
sardonyx.compat.onnx; empty: the package itself) and writes each test's outcome to the file OWN_TESTS_RESULT.
"""

from __future__ import annotations

import argparse
import collections
import fnmatch
import hashlib
import importlib
import json
import os
import pathlib
import subprocess
import sys
import tarfile
from typing import NoReturn

ROOT = pathlib.Path(__file__).resolve().parent.parent
CACHE = ROOT / ".cache"
PAGE = ROOT / "docs" / "python.md"

# The outcome of each test, and the text of its failure.
Outcomes = dict[str, tuple[str, str]]

# --- inside of pytest ----------------------------------------------------------------------------

_outcomes: Outcomes = {}


def pytest_configure() -> None:
    name = os.environ.get("OWN_TESTS_INSTALL", "")
    if name:
        importlib.import_module(name).install()


def pytest_runtest_logreport(report: object) -> None:
    name = report.nodeid.replace(".py::", "::")  # type: ignore[attr-defined]
    outcome = report.outcome  # type: ignore[attr-defined]
    if report.when == "call" or outcome != "passed":  # type: ignore[attr-defined]
        text = ""
        if outcome == "failed":
            text = report.longreprtext.strip().splitlines()[-1]  # type: ignore[attr-defined]
            crash = getattr(report.longrepr, "reprcrash", None)  # type: ignore[attr-defined]
            text = crash.message if crash is not None else text
        if _outcomes.get(name, ("passed",))[0] == "passed":
            _outcomes[name] = ("skipped" if outcome == "skipped" else outcome, text)


def pytest_collectreport(report: object) -> None:
    """A file that can't be imported counts as one failed test."""
    if report.outcome == "failed":  # type: ignore[attr-defined]
        name = report.nodeid.removesuffix(".py")  # type: ignore[attr-defined]
        _outcomes[f"{name}::import"] = ("failed", report.longreprtext.strip().splitlines()[-1])  # type: ignore[attr-defined]


def pytest_sessionfinish() -> None:
    if "OWN_TESTS_RESULT" in os.environ:
        pathlib.Path(os.environ["OWN_TESTS_RESULT"]).write_text(json.dumps(_outcomes))


# --- outside -------------------------------------------------------------------------------------


def environment(requirements: list[str]) -> pathlib.Path:
    """The interpreter of a virtual environment with these packages, made once, in .cache/. SystemExit where the index lacks one."""
    digest = hashlib.sha256("\n".join([sys.version, *requirements]).encode()).hexdigest()[:12]
    folder = CACHE / f"environment-{digest}"
    python = folder / "bin" / "python"
    if (folder / "complete").exists():
        return python
    pip = [str(python), "-m", "pip", "install", "--quiet", "--disable-pip-version-check", "--retries", "2", "--timeout", "20"]
    for command in ([sys.executable, "-m", "venv", "--clear", str(folder)], [*pip, *requirements]):
        made = subprocess.run(command, capture_output=True, text=True)
        if made.returncode != 0:
            sys.exit(f"own_tests: {' '.join(command)} failed\n{made.stderr[-2000:]}")
    (folder / "complete").touch()
    return python


def unpacked(archive: pathlib.Path, prefix: str, folder: pathlib.Path) -> pathlib.Path:
    """The files of an archive whose names begin with `prefix`, in `folder` without it."""
    with tarfile.open(archive) as opened:
        for member in opened:
            if not member.name.startswith(prefix) or not member.isfile() or ".." in member.name:
                continue
            target = folder / member.name[len(prefix):]
            target.parent.mkdir(parents=True, exist_ok=True)
            source = opened.extractfile(member)
            assert source is not None
            target.write_bytes(source.read())
    return folder


def run(install: str, folder: pathlib.Path, result: pathlib.Path, files: list[str], more: list[str],
        paths: list[pathlib.Path], python: str | pathlib.Path = sys.executable) -> Outcomes:
    """Runs test files of `folder`. `install`: the module that puts Sardonyx in the package's place, "" for the package itself."""
    package = os.environ.get("SARDONYX_PACKAGE", str(ROOT / "build" / "release" / "python"))
    environment = dict(os.environ, PYTHONPATH=os.pathsep.join([package, str(ROOT / "tools"), *map(str, paths)]), PYTHONHASHSEED="0",
                       OWN_TESTS_RESULT=str(result), OWN_TESTS_INSTALL=install, ORT_DISABLE_TELEMETRY="1")
    command = [str(python), "-m", "pytest", "-q", "--no-header", "--tb=short", "-p", "own_tests", "-p", "no:cacheprovider",
               "--continue-on-collection-errors", f"--rootdir={folder}", *[f"{one}.py" for one in files], *more]
    made = subprocess.run(command, cwd=folder, env=environment, text=True, capture_output=True)
    if not result.exists():
        sys.exit(f"own_tests: pytest came to no end ({made.returncode})\n{made.stdout[-5000:]}\n{made.stderr[-5000:]}")
    return {name: (outcome, text) for name, (outcome, text) in json.loads(result.read_text()).items()}


class Deviations:
    """A file of names of tests, or patterns of them, each with its reason: a line that begins with "[" begins the reason of the indented
    ones below it."""

    def __init__(self, path: pathlib.Path):
        self.listed: list[tuple[str, str]] = []
        reason = ""
        for line in path.read_text().splitlines() if path.exists() else []:
            if not line.strip() or line.startswith("#"):
                continue
            if line[0].isspace():
                self.listed.append((line.strip(), reason))
            else:
                reason = line.strip() if line[0] == "[" else f"{reason} {line.strip()}"

    def judged(self, outcomes: Outcomes, whole: bool) -> list[str]:
        """What is not as the list says: a failure that is not in it, and a test in it that passes or, where all tests have run, isn't there."""
        wrong, used = [], set()
        for name, (outcome, text) in sorted(outcomes.items()):
            matching = [pattern for pattern, _ in self.listed if fnmatch.fnmatchcase(name, pattern.replace("[", "[[]"))]
            used.update(matching)
            if outcome == "failed" and not matching:
                wrong.append(f"{name} fails: {' '.join(text.split())[:300]}")
            if outcome == "passed" and matching and all("*" not in pattern for pattern in matching):
                wrong.append(f"{name} passes, and is listed as a deviation")
        if whole:
            wrong += [f"{pattern} is listed as a deviation, and there is no such test" for pattern, _ in self.listed if pattern not in used]
        return wrong


def failures(outcomes: Outcomes) -> str:
    return "\n".join(f"{name}\n    {' '.join(text.split())[:400]}" for name, (outcome, text) in outcomes.items() if outcome == "failed")


def summary(outcomes: Outcomes) -> str:
    counts = collections.Counter(outcome for outcome, _ in outcomes.values())
    return f"{counts['passed']} passed, {counts['failed']} deviate, {counts['skipped']} skipped by themselves"


def table(rows: list[tuple[str, str, Outcomes]]) -> str:
    """A table of the page: a name, what it tests, and the outcomes of its tests."""
    lines = ["| file | of | passed | deviates | skipped by itself |", "|---|---|---|---|---|"]
    whole: collections.Counter[str] = collections.Counter()
    for name, what, outcomes in rows:
        counts = collections.Counter(outcome for outcome, _ in outcomes.values())
        whole += counts
        lines.append(f"| {name} | {what} | {counts['passed']} | {counts['failed']} | {counts['skipped']} |")
    lines.append(f"| all | | {whole['passed']} | {whole['failed']} | {whole['skipped']} |")
    return "\n".join(lines)


def arguments(parser: argparse.ArgumentParser) -> None:
    """The options that the tools have in common."""
    parser.add_argument("-k", help="only tests whose names match, as pytest's -k")
    parser.add_argument("--theirs", action="store_true", help="run them on the package's own functions instead")
    parser.add_argument("--fetch", action="store_true", help="only fetch the archive")
    parser.add_argument("--failures", action="store_true", help="list every failure with its text, those that are expected too")
    parser.add_argument("--write-docs", action="store_true", help="put the table into docs/python.md; takes all files")


def finish(options: argparse.Namespace, outcomes: Outcomes, deviations: Deviations, tool: str, made_table: str) -> NoReturn:
    """Prints what came out, and ends the process: with 1 where it is not as the deviations say."""
    whole = not options.files and not options.k
    if options.failures:
        print(failures(outcomes))
    print(summary(outcomes))
    if options.theirs:
        sys.exit(0)
    wrong = deviations.judged(outcomes, whole)
    print("\n".join(wrong))
    if options.write_docs:
        if not whole:
            sys.exit("--write-docs takes all files")
        write_table(tool, made_table)
    sys.exit(1 if wrong else 0)


def write_table(tool: str, text: str) -> None:
    begin, end = f"<!-- {tool} writes this table -->\n", "\n<!-- end of the table -->"
    page = PAGE.read_text()
    before, rest = page.split(begin)
    PAGE.write_text(before + begin + text + end + rest.split(end, 1)[1])
