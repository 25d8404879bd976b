"""tools/packages.py: it sees differences, and runs a case whose packages the tests have."""

from __future__ import annotations

import importlib.util
import os
import subprocess
import sys

import numpy as np
import pytest

from .conftest import PACKAGE, ROOT

spec = importlib.util.spec_from_file_location("packages", ROOT / "tools" / "packages.py")
packages = importlib.util.module_from_spec(spec)
spec.loader.exec_module(packages)

ONE = np.array([1, 100], np.float32)


@pytest.mark.parametrize(("mine", "other", "words"), [
    ("a", "b", "'a', not 'b'"), ([1], [1, 2], "1 items, not 2"), ([[1], "x"], [[2], "x"], "result[0][0]"), (1.0, 1.1, "1.0, not 1.1"),
    (ONE, ONE.astype(np.float64), "float32"), (ONE, ONE[:1], "(2,)"), (ONE, ONE + np.float32(1), "off by 1"), ({"a": 1}, {"a": 2}, "1, not 2"),
    (np.array([1, 2]), np.array([1, 3]), "other values"), (ONE * np.nan, ONE, "off by nan")])
def test_differences_are_seen(mine, other, words):
    assert words in packages.difference(mine, other, 1e-3)
    assert packages.difference(other, other, 1e-3) is None


def test_rounding_is_no_difference():
    assert packages.difference([ONE, 1.0, "a"], [ONE * np.float32(1.0001), 1.0001, "a"], 1e-3) is None


def test_a_case_runs():
    made = subprocess.run([sys.executable, ROOT / "tools" / "packages.py", "skl2onnx"], capture_output=True, text=True,
                          env=dict(os.environ, SARDONYX_PACKAGE=str(PACKAGE)))
    assert made.returncode == 0, made.stdout + made.stderr
    assert "| skl2onnx |" in made.stdout and "| yes |" in made.stdout
