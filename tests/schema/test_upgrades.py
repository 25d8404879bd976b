"""docs/upgrades.md against spec/ops: every step between two versions stands there once, every test exists."""

import collections
import re
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT / "tools"))
import spec_format as spec  # noqa: E402

STEP = re.compile(r"(ml\.)?(\w+)\s+(\d+)→(\d+)")


def steps_of_the_spec():
    sets = spec.TypeSets(ROOT / "spec/type_sets.txt")
    steps = set()
    for path in sorted((ROOT / "spec/ops").rglob("*.txt")):
        prefix = "ml." if path.parent.name == "ai.onnx.ml" else ""
        versions = sorted(version.since for version in spec.Reader(sets).read_file(path)[1])
        steps |= {(prefix + path.stem, old, new) for old, new in zip(versions, versions[1:])}
    return steps


def listed():
    """Steps of the tables' rows, with the text of the row's last cell; steps that change nothing, with None."""
    changing, unchanged = (ROOT / "docs/upgrades.md").read_text().split("## Steps that change nothing")
    for line in changing.splitlines():
        if line.startswith("| ") and "→" in (cells := line.strip("| ").split(" | "))[0]:
            for match in STEP.finditer(cells[0]):
                yield ((match[1] or "") + match[2], int(match[3]), int(match[4])), cells[-1]
    for match in STEP.finditer(unchanged):
        yield ((match[1] or "") + match[2], int(match[3]), int(match[4])), None


def test_every_step_stands_there_once():
    counts = collections.Counter(step for step, _ in listed())
    assert [step for step, count in counts.items() if count > 1] == []
    assert set(counts) == steps_of_the_spec()


def test_every_named_test_exists():
    tests = set()
    for path in (ROOT / "tests").rglob("*_test.cc"):
        tests |= {f"{suite}.{name}" for suite, name in re.findall(r"\bTEST\((\w+),\s*(\w+)\)", path.read_text())}
    for step, cell in listed():
        if cell is None:
            continue
        names = re.findall(r"`(\w+\.\w+)`", cell)
        assert names or cell.startswith(("none: ", "the suites")), step
        assert set(names) <= tests, (step, set(names) - tests)
