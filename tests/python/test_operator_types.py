"""Every operator with every element type its signature allows: docs/operators.md is whole, and what it says holds."""

from __future__ import annotations

import os
import re
import subprocess
import sys

from conftest import ROOT

sys.path.insert(0, str(ROOT / "tools"))
import check_types  # noqa: E402

def documented() -> dict:
    table = {}
    rows = (ROOT / "docs" / "operators.md").read_text().partition("|---|---|---|---|\n")[2]
    for line in rows.splitlines():
        if match := re.fullmatch(r"\| ([\w.]+) \| (\w+) \| (.*?) \| (.*?) \|", line):
            domain, _, op = match[1].rpartition(".")
            split = lambda text: {part for part in text.split(", ") if part}  # noqa: E731
            table[domain, op, match[2]] = split(match[3]), split(match[4])
    return table


def test_no_type_is_missing():
    table = documented()
    assert len(table) > 250
    assert [key for key, (_, bad) in table.items() if bad] == []
    assert check_types.missing_types(table) == []


def test_models_of_our_own_run(sardonyx, tmp_path):
    """More than a thousand small models, one for each type where the standard's suite has none."""
    runner = os.path.join(os.path.dirname(sardonyx.path), "conformance_runner")
    command = [sys.executable, ROOT / "tools" / "check_types.py", "--own", "--runner", runner, "--keep", tmp_path / "cases"]
    result = subprocess.run(command, capture_output=True, text=True, timeout=600)
    assert result.returncode == 0, result.stdout[-3000:] + result.stderr[-1000:]
    assert "no case" not in result.stderr, result.stderr[-2000:]
