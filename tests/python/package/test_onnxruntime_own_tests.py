"""tools/onnxruntime_own_tests.py: onnxruntime's own tests on sardonyx.compat.onnxruntime, and each deviation as it is listed."""

from __future__ import annotations

import importlib.util
import os
import subprocess
import sys

import pytest

from .conftest import PACKAGE, ROOT

TOOL = ROOT / "tools" / "onnxruntime_own_tests.py"
spec = importlib.util.spec_from_file_location("onnxruntime_own_tests", TOOL)
tool = importlib.util.module_from_spec(spec)
spec.loader.exec_module(tool)


def run(*options: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run([sys.executable, TOOL, *options], capture_output=True, text=True, env=dict(os.environ, SARDONYX_PACKAGE=str(PACKAGE)))


def test_all_is_as_the_list_of_deviations_says():
    if not (3, 10) <= sys.version_info[:2] <= (3, 13):
        pytest.skip("onnxruntime 1.21, whose pure Python parts the tests use, is for Python 3.10 to 3.13")
    fetched = run("--fetch")
    if fetched.returncode != 0:
        pytest.skip(f"the source archive cannot be reached: {fetched.stderr.strip().splitlines()[-1]}")
    made = run()
    assert made.returncode == 0, made.stdout + made.stderr


def test_every_deviation_has_a_reason():
    listed = tool.DEVIATIONS.listed
    assert listed and all(reason.startswith("[") and len(reason) > 20 for _, reason in listed)
