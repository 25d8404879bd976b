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


def bodies_of_tests():
    """The text of each C++ test, and of the functions of its file that it calls."""
    tests = {}
    for path in (ROOT / "tests").rglob("*_test.cc"):
        text = path.read_text()
        helpers = dict(re.findall(r"^[\w:<>&* ]+ (\w+)\([^;{]*\) \{\n(.*?)^\}", text, re.M | re.S))
        for suite, name, body in re.findall(r"^TEST\((\w+),\s*(\w+)\) \{(\n.*?^\}|[^\n]*\}$)", text, re.M | re.S):
            called = [helpers[word] for word in set(re.findall(r"\b(\w+)\(", body)) & set(helpers)]
            tests[f"{suite}.{name}"] = "\n".join([body, *called])
    return tests


def test_every_step_that_changes_something_has_a_test():
    """Tests that exist, and of which one names the operator."""
    tests = bodies_of_tests()
    assert len(tests) > 300
    without = []
    for (operator, old, new), cell in listed():
        if cell is None:
            continue
        names = re.findall(r"`(\w+\.\w+)`", cell)
        assert names and set(names) <= set(tests), (operator, old, new, set(names) - set(tests))
        word = re.compile(rf"\b{operator.removeprefix('ml.')}\b")
        if not any(word.search(tests[name]) for name in names):
            without.append((operator, old, new))
    assert without == []
