#!/usr/bin/env python3
"""Runs the tests that the package onnx has of its own functions on sardonyx.compat.onnx.

    tools/onnx_own_tests.py                  # all files, beside the list of deviations
    tools/onnx_own_tests.py checker_test -k sparse
    tools/onnx_own_tests.py --write-docs     # brings the table of docs/python.md up to date

The source archive of the release that tools/requirements.txt pins comes from the package index once, into .cache/. Its test files run
unchanged; the functions of the package's modules are Sardonyx's (sardonyx.compat.onnx.install). tests/python/onnx_deviations.txt has
each test that does not pass, with the reason: a failure that is not listed is an error, and so is a listed test that passes.
"""

from __future__ import annotations

import argparse
import collections
import fnmatch
import hashlib
import json
import os
import pathlib
import re
import shutil
import subprocess
import sys
import tarfile
import tempfile

ROOT = pathlib.Path(__file__).resolve().parent.parent
CACHE = ROOT / ".cache"
DEVIATIONS = ROOT / "tests" / "python" / "onnx_deviations.txt"
PAGE = ROOT / "docs" / "python.md"
DIGESTS = {"1.23.2": "008cb0467b2bbee41448acc7da8b6f4e704624cb0d327a2d5adafc7ce19bc5b8"}
# What each file tests, for the table.
FILES = {
    "checker_test": "checker", "data_propagation_test": "shape inference, known elements",
    "function_inference_test": "shape inference of a function", "inference_function_test": "shape inference of one node",
    "model_inference_test": "shape inference of models with functions", "node_shape_inference_test": "shape inference by a schema",
    "split_shape_inference_test": "shape inference of Split", "symbolic_shape_test": "symbolic shapes",
    "shape_inference_test": "shape inference, operator by operator",
    "version_converter_test": "version converter", "version_converter/automatic_upgrade_test": "version converter, upwards",
    "version_converter/automatic_downgrade_test": "version converter, downwards",
    "compose_test": "compose",
    "parser_test": "parser", "printer_test": "printer", "inliner_test": "inliner", "function_test": "functions in parts of models",
    "external_data_test": "external data", "model_container_test": "models of more than one file", "utils_test": "extracting",
}


def version() -> str:
    (found,) = re.findall(r"^onnx==(\S+)$", (ROOT / "tools" / "requirements.txt").read_text(), re.M)
    return found


def fetched(release: str) -> pathlib.Path:
    """The source archive. pip asks an archive for its metadata before it keeps it, for which it would have to be built: something
    else answers in its place, so that no code of the archive runs."""
    archive = CACHE / f"onnx-{release}.tar.gz"
    if not archive.exists():
        with tempfile.TemporaryDirectory() as name:
            folder = pathlib.Path(name)
            backend = folder / "scikit_build_core"
            backend.mkdir()
            (backend / "__init__.py").touch()
            (backend / "build.py").write_text(
                "import pathlib\n"
                "def prepare_metadata_for_build_wheel(directory, settings=None):\n"
                f"    folder = pathlib.Path(directory) / 'onnx-{release}.dist-info'\n"
                "    folder.mkdir()\n"
                f"    (folder / 'METADATA').write_text('Metadata-Version: 2.1\\nName: onnx\\nVersion: {release}\\n')\n"
                "    return folder.name\n")
            command = [sys.executable, "-m", "pip", "download", "--quiet", "--disable-pip-version-check", "--no-deps", "--no-binary=:all:",
                       "--no-build-isolation", f"--dest={folder}", f"onnx=={release}"]
            made = subprocess.run(command, env=dict(os.environ, PYTHONPATH=str(folder)), capture_output=True, text=True)
            found = list(folder.glob("onnx-*.tar.gz"))
            if not found:
                sys.exit(f"onnx_own_tests: the source archive of onnx {release} could not be fetched\n{made.stderr}")
            CACHE.mkdir(exist_ok=True)
            shutil.copy(found[0], archive.with_suffix(".part"))
            archive.with_suffix(".part").rename(archive)
    digest = hashlib.sha256(archive.read_bytes()).hexdigest()
    if release in DIGESTS and digest != DIGESTS[release]:
        archive.unlink()
        sys.exit(f"onnx_own_tests: the archive of onnx {release} has the digest {digest}, not {DIGESTS[release]}")
    return archive


def unpacked(release: str, folder: pathlib.Path) -> pathlib.Path:
    prefix = f"onnx-{release}/tests/python/"
    with tarfile.open(fetched(release)) as archive:
        members = [one for one in archive.getmembers() if one.name.startswith(prefix) and one.isfile() and ".." not in one.name]
        for member in members:
            target = folder / member.name[len(prefix):]
            target.parent.mkdir(parents=True, exist_ok=True)
            source = archive.extractfile(member)
            assert source is not None
            target.write_bytes(source.read())
    return folder


def deviations() -> list[tuple[str, str]]:
    """Patterns of names of tests, each with its reason: a line that begins with "[" begins the reason of the indented ones below it."""
    found: list[tuple[str, str]] = []
    reason = ""
    for line in DEVIATIONS.read_text().splitlines() if DEVIATIONS.exists() else []:
        if not line.strip() or line.startswith("#"):
            continue
        if line[0].isspace():
            found.append((line.strip(), reason))
        else:
            reason = line.strip() if line[0] == "[" else f"{reason} {line.strip()}"
    return found


# --- inside of pytest ----------------------------------------------------------------------------


def pytest_configure() -> None:
    import sardonyx.compat.onnx

    if os.environ.get("ONNX_OWN_TESTS_THEIRS") != "1":
        sardonyx.compat.onnx.install()


_outcomes: dict[str, tuple[str, str]] = {}


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


def pytest_sessionfinish() -> None:
    pathlib.Path(os.environ["ONNX_OWN_TESTS_RESULT"]).write_text(json.dumps(_outcomes))


# --- outside -------------------------------------------------------------------------------------


def run(names: list[str], more: list[str], theirs: bool = False) -> dict[str, tuple[str, str]]:
    package = os.environ.get("SARDONYX_PACKAGE", str(ROOT / "build" / "release" / "python"))
    with tempfile.TemporaryDirectory() as name:
        folder = unpacked(version(), pathlib.Path(name) / "tests")
        result = pathlib.Path(name) / "result.json"
        environment = dict(os.environ, PYTHONPATH=os.pathsep.join([package, str(ROOT / "tools"), str(folder)]),
                           ONNX_OWN_TESTS_RESULT=str(result), ONNX_OWN_TESTS_THEIRS=str(int(theirs)), PYTHONHASHSEED="0")
        command = [sys.executable, "-m", "pytest", "-q", "--no-header", "--tb=short", "-p", "onnx_own_tests", "-p", "no:cacheprovider",
                   f"--rootdir={folder}", *[f"{one}.py" for one in names], *more]
        made = subprocess.run(command, cwd=folder, env=environment, text=True, capture_output=True)
        if not result.exists():
            sys.exit(f"onnx_own_tests: pytest came to no end\n{made.stdout[-5000:]}\n{made.stderr[-5000:]}")
        return {name: (outcome, text) for name, (outcome, text) in json.loads(result.read_text()).items()}


def judged(outcomes: dict[str, tuple[str, str]], whole: bool) -> list[str]:
    """What is not as the list of deviations says."""
    listed = deviations()
    wrong, used = [], set()
    for name, (outcome, text) in sorted(outcomes.items()):
        matching = [pattern for pattern, _ in listed if fnmatch.fnmatchcase(name, pattern.replace("[", "[[]"))]
        used.update(matching)
        if outcome == "failed" and not matching:
            wrong.append(f"{name} fails: {' '.join(text.split())[:300]}")
        if outcome == "passed" and matching and all("*" not in pattern for pattern in matching):
            wrong.append(f"{name} passes, and is listed as a deviation")
    if whole:
        wrong += [f"{pattern} is listed as a deviation, and there is no such test" for pattern, _ in listed if pattern not in used]
    return wrong


def table(outcomes: dict[str, tuple[str, str]]) -> str:
    rows = ["| file | of | passed | deviates | skipped by itself |", "|---|---|---|---|---|"]
    whole: collections.Counter[str] = collections.Counter()
    for file, what in FILES.items():
        counts = collections.Counter(outcome for name, (outcome, _) in outcomes.items() if name.split("::")[0] == file)
        whole += counts
        rows.append(f"| {file} | {what} | {counts['passed']} | {counts['failed']} | {counts['skipped']} |")
    rows.append(f"| all | | {whole['passed']} | {whole['failed']} | {whole['skipped']} |")
    return "\n".join(rows)


def write_docs(text: str) -> None:
    begin, end = "<!-- tools/onnx_own_tests.py writes this table -->\n", "\n<!-- end of the table -->"
    page = PAGE.read_text()
    before, rest = page.split(begin)
    PAGE.write_text(before + begin + text + end + rest.split(end, 1)[1])


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("files", nargs="*", help=f"of: {', '.join(FILES)}; default: all these")
    parser.add_argument("-k", help="only tests whose names match, as pytest's -k")
    parser.add_argument("--theirs", action="store_true", help="run them on onnx's own functions instead")
    parser.add_argument("--fetch", action="store_true", help="only fetch the archive")
    parser.add_argument("--failures", action="store_true", help="list every failure with its text, those that are expected too")
    parser.add_argument("--write-docs", action="store_true")
    options = parser.parse_args()
    if options.fetch:
        print(fetched(version()))
        return
    names = options.files or list(FILES)
    unknown = [name for name in names if name not in FILES]
    if unknown:
        parser.error(f"there is no file {unknown[0]!r} among those that are run")
    outcomes = run(names, ["-k", options.k] if options.k else [], options.theirs)
    whole = not options.files and not options.k
    counts = collections.Counter(outcome for outcome, _ in outcomes.values())
    if options.failures:
        for name, (outcome, text) in outcomes.items():
            if outcome == "failed":
                print(f"{name}\n    {' '.join(text.split())[:400]}")
    print(f"{counts['passed']} passed, {counts['failed']} deviate, {counts['skipped']} skipped by themselves")
    if options.theirs:
        return
    wrong = judged(outcomes, whole)
    print("\n".join(wrong))
    if options.write_docs:
        if not whole:
            parser.error("--write-docs takes all files")
        write_docs(table(outcomes))
    sys.exit(1 if wrong else 0)


if __name__ == "__main__":
    main()
