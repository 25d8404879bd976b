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
import hashlib
import os
import pathlib
import re
import shutil
import subprocess
import sys
import tempfile

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent))
import own_tests
from own_tests import CACHE, ROOT

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


DEVIATIONS = own_tests.Deviations(ROOT / "tests" / "python" / "onnx_deviations.txt")


def run(names: list[str], more: list[str], theirs: bool = False) -> own_tests.Outcomes:
    with tempfile.TemporaryDirectory() as name:
        release, scratch = version(), pathlib.Path(name)
        folder = own_tests.unpacked(fetched(release), f"onnx-{release}/tests/python/", scratch / "tests")
        return own_tests.run("" if theirs else "sardonyx.compat.onnx", folder, scratch / "result.json", names, more, [folder])


def table(outcomes: own_tests.Outcomes) -> str:
    return own_tests.table([(file, what, {name: one for name, one in outcomes.items() if name.split("::")[0] == file})
                            for file, what in FILES.items()])


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("files", nargs="*", help=f"of: {', '.join(FILES)}; default: all these")
    own_tests.arguments(parser)
    options = parser.parse_args()
    if options.fetch:
        print(fetched(version()))
        return
    names = options.files or list(FILES)
    unknown = [name for name in names if name not in FILES]
    if unknown:
        parser.error(f"there is no file {unknown[0]!r} among those that are run")
    outcomes = run(names, ["-k", options.k] if options.k else [], options.theirs)
    own_tests.finish(options, outcomes, DEVIATIONS, "tools/onnx_own_tests.py", table(outcomes))


if __name__ == "__main__":
    main()
