"""Overhead and AVX2 kernels take no more instructions than the committed baseline allows (bench/instructions.py)."""

from __future__ import annotations

import json
import pathlib
import shutil

import pytest

import instructions


def test_within_the_baseline(sardonyx):
    if not shutil.which("valgrind"):
        pytest.skip("valgrind is not installed")
    bench = pathlib.Path(sardonyx.path).parent / "instruction_cases"
    baseline = json.loads(instructions.BASELINE.read_text())
    if (here := instructions.environment(bench)) != baseline["of"]:
        pytest.skip(f"the baseline is of {baseline['of']}, this is {here}")
    assert instructions.compare(instructions.count(bench), baseline["instructions"]) == []


def test_more_is_found():
    assert instructions.compare({"a": 104, "b": 102, "new": 1}, {"a": 100, "b": 100, "gone": 1}) == [
        "'new' is not in the baseline", "'gone' is in the baseline and was not counted",
        "'a' takes 104 instructions, 4.0% more than the baseline's 100"]
