#!/usr/bin/env python3
"""Runs the tests that onnxruntime has of its Python interface on sardonyx.compat.onnxruntime.

    tools/onnxruntime_own_tests.py                  # all files, beside the list of deviations
    tools/onnxruntime_own_tests.py iobinding -k ortvalue
    tools/onnxruntime_own_tests.py --theirs         # on the package onnxruntime itself
    tools/onnxruntime_own_tests.py --write-docs     # brings the table of docs/python.md up to date

Debian's source archive of the release in its stable edition comes from the mirror that apt uses, once, into .cache/. Its test files run
unchanged in an environment of their own, with the packages of their time, whose pure Python parts they use; `import onnxruntime` finds
Sardonyx. The archive is without binary files: tools/onnxruntime_test_models.py makes the models.
tests/python/onnxruntime_deviations.txt has each test that does not pass, with the reason: a failure that is not listed is an error, and
so is a listed test that passes.
"""

from __future__ import annotations

import argparse
import hashlib
import pathlib
import subprocess
import sys
import tempfile
import urllib.error
import urllib.request

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent))
import onnxruntime_test_models
import own_tests
from own_tests import CACHE, ROOT

RELEASE = "1.21.0"
ARCHIVE = f"onnxruntime_{RELEASE}+dfsg.orig.tar.xz"
DIGEST = "32df1f82bd6b07b18372c0f387133214905cbde7a586b3ad83f0ed0075f80273"
# What the tests of that release were written beside.
REQUIREMENTS = [f"onnxruntime=={RELEASE}", "onnx==1.17.0", "numpy==2.2.6", "ml_dtypes==0.5.1", "sympy==1.13.3", "packaging==25.0",
                "parameterized==0.9.0", "pytest==9.2.0"]
# What each file, or each file of a folder, tests.
FILES = {
    "onnxruntime_test_python": "sessions, options, values",
    "onnxruntime_test_python_backend": "onnxruntime.backend",
    "onnxruntime_test_python_backend_mlops": "onnxruntime.backend, classic models",
    "onnxruntime_test_python_iobinding": "bindings",
    "onnxruntime_test_python_mlops": "classic models",
    "onnxruntime_test_python_nested_control_flow_op": "optional values in nested bodies",
    "onnxruntime_test_python_sparse_matmul": "sparse tensors",
    "onnxruntime_test_python_symbolic_shape_infer": "its shape inference in Python",
    "onnxruntime_test_float8": "casts of float8",
    "onnxruntime_test_scatternd": "ScatterND",
    "quantization/*": "quantising, with the package's quantiser",
}
DEVIATIONS = own_tests.Deviations(ROOT / "tests" / "python" / "onnxruntime_deviations.txt")


def mirrors() -> list[str]:
    command = ["apt-get", "indextargets", "--format", "$(REPO_URI)", "Created-By: Packages"]
    lines = subprocess.run(command, capture_output=True, text=True, check=True).stdout.split()
    return list(dict.fromkeys(lines))


def fetched() -> pathlib.Path:
    """The source archive. SystemExit where no mirror has it."""
    archive = CACHE / ARCHIVE
    tried = []
    for mirror in [] if archive.exists() else mirrors():
        try:
            with urllib.request.urlopen(f"{mirror}pool/main/o/onnxruntime/{ARCHIVE}", timeout=60) as answer:
                data = answer.read()
        except (urllib.error.URLError, OSError) as error:
            tried.append(f"{mirror}: {error}")
            continue
        if hashlib.sha256(data).hexdigest() != DIGEST:
            sys.exit(f"onnxruntime_own_tests: {ARCHIVE} has another digest than it should have")
        CACHE.mkdir(exist_ok=True)
        archive.with_suffix(".part").write_bytes(data)
        archive.with_suffix(".part").rename(archive)
        break
    if not archive.exists():
        sys.exit("\n".join([f"onnxruntime_own_tests: {ARCHIVE} could not be fetched", *tried]))
    return archive


def run(names: list[str], more: list[str], theirs: bool = False) -> own_tests.Outcomes:
    with tempfile.TemporaryDirectory() as name:
        scratch = pathlib.Path(name)
        folder = own_tests.unpacked(fetched(), f"onnxruntime-{RELEASE}/onnxruntime/test/", scratch / "tests")
        onnxruntime_test_models.write(folder / "testdata")
        files = [str(path.relative_to(folder / "python").with_suffix("")) for one in names
                 for path in sorted((folder / "python").glob(f"{one}.py")) if path.name.startswith(("onnxruntime_test", "test"))]
        outcomes = own_tests.run("" if theirs else "sardonyx.compat", folder, scratch / "result.json", [f"python/{one}" for one in files],
                                 more, [], own_tests.environment(REQUIREMENTS))
    return {name.removeprefix("python/"): one for name, one in outcomes.items()}


def table(outcomes: own_tests.Outcomes) -> str:
    def of(pattern: str) -> own_tests.Outcomes:
        return {name: one for name, one in outcomes.items() if pathlib.PurePath(name.split("::")[0]).match(pattern)}

    return own_tests.table([(pattern, what, of(pattern)) for pattern, what in FILES.items()])


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("files", nargs="*", help="the ends of names of files; default: all")
    own_tests.arguments(parser)
    options = parser.parse_args()
    if options.fetch:
        print(fetched())
        return
    names = [name for name in FILES if any(name.removesuffix("/*").endswith(end) for end in options.files)] if options.files else list(FILES)
    if not names:
        parser.error(f"there is no file {options.files[0]!r} among those that are run")
    outcomes = run(names, ["-k", options.k] if options.k else [], options.theirs)
    own_tests.finish(options, outcomes, DEVIATIONS, "tools/onnxruntime_own_tests.py", table(outcomes))


if __name__ == "__main__":
    main()
