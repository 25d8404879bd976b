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
    """{(domain, operator, version, constraint): (types that run, types that do not)}."""
    table = {}
    rows = (ROOT / "docs" / "operators.md").read_text().partition("|---|---|---|---|---|\n")[2]
    for line in rows.splitlines():
        if match := re.fullmatch(r"\| ([\w.]+) \| (\w+) \| ([\d, ]+) \| (.*?) \| (.*?) \|", line):
            domain, _, op = match[1].rpartition(".")
            split = lambda text: {part for part in text.split(", ") if part}  # noqa: E731
            for version in match[3].split(", "):
                table[domain, op, int(version), match[2]] = split(match[4]), split(match[5])
    return table


def test_no_type_is_missing():
    """No operator, no version of it and no type of its signature lacks a case that ran."""
    table = documented()
    assert len(table) > 800
    assert [key for key, (_, bad) in table.items() if bad] == []
    newest = {key: schema.since_version for key, schema in check_types.newest_schemas().items()}
    of_newest = {(domain, op, constraint): types for (domain, op, version, constraint), types in table.items()
                 if version == newest[domain, op]}
    assert check_types.missing_types(of_newest) == []
    assert check_types.missing_old_types(table) == []


def run_tool(sardonyx, tmp_path, *options):
    runner = os.path.join(os.path.dirname(sardonyx.path), "conformance_runner")
    command = [sys.executable, ROOT / "tools" / "check_types.py", "--runner", runner, "--keep", tmp_path / "cases", *options]
    result = subprocess.run(command, capture_output=True, text=True, timeout=600)
    assert result.returncode == 0, result.stdout[-3000:] + result.stderr[-1000:]
    assert "no case" not in result.stderr, result.stderr[-2000:]
    return result.stdout


def test_models_of_our_own_run(sardonyx, tmp_path):
    """More than a thousand small models, one for each type where the standard's suite has none."""
    run_tool(sardonyx, tmp_path, "--own")


def test_older_versions_run_with_their_types(sardonyx, tmp_path):
    """A twelfth of the nearly six thousand cases; `tools/check_types.py --old` runs all of them."""
    said = run_tool(sardonyx, tmp_path, "--only-old", "--part", "12")
    assert int(re.search(r"(\d+) of older ones", said)[1]) > 400
