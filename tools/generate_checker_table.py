#!/usr/bin/env python3
"""Writes the coverage table of docs/checker.md from src/check/rules.h and src/check/coverage.txt.

With --check it writes nothing and exits with 1 where the table is not up to date.
"""

from __future__ import annotations

import pathlib
import re
import sys

ROOT = pathlib.Path(__file__).resolve().parent.parent
DOCUMENT = ROOT / "docs" / "checker.md"
BEGIN, END = "<!-- coverage: tools/generate_checker_table.py -->", "<!-- end of coverage -->"

ROW = re.compile(r'row\(\s*"([A-Z]+-\d+)",\s*levels::(\w+),\s*((?:"[^"]*"\s*)+)(?:,\s*(\d+)(?:,\s*(\d+))?)?\)')
LEVELS = {
    "fatal": "error; a session refuses it",
    "error": "error",
    "said": "error; a session warns of it",
    "tolerated": "warning; error with --strict; a session warns of it",
    "lax": "warning; error with --strict",
    "warning": "warning",
    "advice": "information; warning with --strict",
    "info": "information",
}
# Limits whose models are too large for a file: tests/check/broken_models_test.cc builds them.
MADE_BY_TESTS = {"F-28", "L-01", "L-02", "L-03"}
WAYS = {
    "same": "another rule",
    "full": "`check --full`",
    "data": "`check --data`",
    "opset": "`opset`, `--operator-set`",
    "loader": "reading",
    "parser": "the text parser",
    "writer": "writing",
    "run": "running",
    "train": "training",
    "behaviour": "behaviour of ours",
    "meaning": "not checkable",
    "open": "not yet",
}


def rules() -> dict[str, tuple[str, str, str]]:
    """Rules of the table: level, title, the IR versions it holds for."""
    found = {}
    text = (ROOT / "src" / "check" / "rules.h").read_text()
    for match in ROW.finditer(text):
        name, level, title, first, last = match.groups()
        title = "".join(re.findall(r'"([^"]*)"', title))
        versions = "" if first is None else f" (IR {first}{'' if last == first else f'–{last}' if last else '+'})"
        found[name] = (LEVELS[level], title + versions, level)
    return found


def expand(ids: str) -> list[str]:
    names = []
    for part in ids.split(","):
        first, _, last = part.strip().partition("..")
        group, number = first.split("-")
        until = int((last or first).split("-")[1])
        names += [f"{group}-{i:02d}" for i in range(int(number), until + 1)]
    return names


def others() -> dict[str, tuple[str, str]]:
    found: dict[str, tuple[str, str]] = {}
    for line in (ROOT / "src" / "check" / "coverage.txt").read_text().splitlines():
        if not line or line.startswith("#"):
            continue
        ids, way, note = (part.strip() for part in line.split("|"))
        for name in expand(ids):
            assert name not in found, f"{name} occurs twice in coverage.txt"
            found[name] = (WAYS[way], note)
    return found


def sort_key(name: str) -> tuple[str, int]:
    group, number = name.split("-")
    return group, int(number)


def table() -> str:
    enforced, rest = rules(), others()
    both = enforced.keys() & rest.keys()
    assert not both, f"rules.h has {sorted(both)} too"
    models = {path.name for path in (ROOT / "tests" / "check" / "models").iterdir()}
    lines = [f"{len(enforced)} rules are enforced by the table in `rules.h`, each with a model that keeps it and one that "
             f"breaks it; {len(rest)} more obligations are listed with who enforces them or why nobody can.", "",
             "| rule | reported as | what it asks, or why it is not reported |", "|---|---|---|"]
    for name in sorted(enforced.keys() | rest.keys(), key=sort_key):
        if name in enforced:
            for kind in ("good", "bad"):
                known = name in MADE_BY_TESTS or {f"{name}-{kind}.txt", f"{name}-{kind}.textproto"} & models
                assert known, f"tests/check/models has no {kind} model of {name}"
            level, title, _ = enforced[name]
            lines.append(f"| {name} | {level} | {title} |")
        else:
            way, note = rest[name]
            lines.append(f"| {name} | {way} | {note} |")
    return "\n".join(lines)


def main() -> int:
    text = DOCUMENT.read_text()
    begin, end = text.index(BEGIN) + len(BEGIN), text.index(END)
    made = f"{text[:begin]}\n\n{table()}\n\n{text[end:]}"
    if "--check" in sys.argv[1:]:
        if made != text:
            print("docs/checker.md is not up to date; run tools/generate_checker_table.py")
        return int(made != text)
    DOCUMENT.write_text(made)
    return 0


if __name__ == "__main__":
    sys.exit(main())
