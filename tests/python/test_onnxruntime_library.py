"""libonnxruntime.so.1: what it exports, and that the tests of its functions say what ONNX Runtime's own library does."""

from __future__ import annotations

import ctypes
import os
import pathlib
import re
import subprocess

import onnxruntime
import pytest


@pytest.fixture(scope="module")
def build(sardonyx) -> pathlib.Path:
    return pathlib.Path(sardonyx.path).resolve().parents[1]


@pytest.fixture(scope="module")
def library(build) -> pathlib.Path:
    path = build / "onnxruntime" / "libonnxruntime.so.1"
    assert path.exists(), f"it is built with the tests: {path}"
    return path


def symbols(library: pathlib.Path) -> set[str]:
    text = subprocess.run(["objdump", "-T", library], check=True, capture_output=True, text=True).stdout
    defined = [line for line in text.splitlines() if "*UND*" not in line]
    return {match[1] for line in defined if (match := re.search(r"\(?VERS_[\d.]+\)?\s+(\w\S*)$", line))} | {
        line.split()[-1] for line in defined if re.match(r"[0-9a-f]{16} ", line) and "VERS_" not in line}


def test_it_exports_what_programs_ask_for_and_no_more(library):
    assert {name for name in symbols(library) if not name.startswith("VERS_")} == {
        "OrtGetApiBase", "OrtSessionOptionsAppendExecutionProvider_CPU"}


def test_programs_of_all_releases_find_their_version(library):
    loaded = ctypes.CDLL(str(library))
    dlvsym = ctypes.CDLL(None).dlvsym
    dlvsym.restype = ctypes.c_void_p
    dlvsym.argtypes = [ctypes.c_void_p, ctypes.c_char_p, ctypes.c_char_p]
    for version in ("1.0.0", "1.4.0", "1.16.3", "1.20.2", "1.22.0", "1.30.0", "1.31.1", "1.40.0"):
        found = dlvsym(loaded._handle, b"OrtGetApiBase", f"VERS_{version}".encode())
        assert found is not None, version
        function = ctypes.CFUNCTYPE(ctypes.c_void_p)(found)
        assert function(), version


def test_its_tests_hold_for_onnxruntime(build):
    """Those of tests/ort_api, run against the library in the package of onnxruntime."""
    theirs = sorted((pathlib.Path(onnxruntime.__file__).parent / "capi").glob("libonnxruntime.so.*"))
    assert theirs, "the package of onnxruntime has its library as a file"
    made = subprocess.run([build / "bin" / "test_ort_api"], capture_output=True, text=True,
                          env=dict(os.environ, ORT_LIBRARY=str(theirs[0]), ORT_DISABLE_TELEMETRY="1"))
    assert made.returncode == 0, made.stdout[-4000:] + made.stderr[-2000:]
    assert int(re.search(r"\[  PASSED  \] (\d+) tests", made.stdout)[1]) > 80
