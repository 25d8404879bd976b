"""The program does not grow by more than a tenth unnoticed (bench/program_size.py)."""

from __future__ import annotations

import json
import pathlib
import shutil
import subprocess

import pytest

import program_size as size


def test_within_a_tenth(sardonyx):
    build = pathlib.Path(sardonyx.path).parent.parent
    known = json.loads(size.FIGURES.read_text())
    if not shutil.which("strip"):
        pytest.skip("strip is not installed")
    if (here := size.compiler(build)) != known["compiler"]:
        pytest.skip(f"the figures are of {known['compiler']}, this is {here}")
    assert size.stripped(pathlib.Path(sardonyx.path)) <= known["program"] * (1 + size.MARGIN), (
        "find out why it grew; where that is worth it, bench/program_size.py --write")


def test_the_docs_have_the_figures():
    assert size.table(json.loads(size.FIGURES.read_text())) in size.TABLE.read_text()
