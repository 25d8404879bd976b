#!/usr/bin/env python3
"""Checks that nothing public is without a word: every declaration in include/sardonyx has a comment.

A paragraph of declarations (lines without a blank one between) is documented where a comment stands above it,
inside it, or behind one of its lines; so is what stands inside a documented class, struct or enumeration whose
paragraph says it. What needs no words is in PLAIN.
"""

from __future__ import annotations

import pathlib
import re
import sys

ROOT = pathlib.Path(__file__).resolve().parent.parent
# Lines that say nothing of their own.
PLAIN = re.compile(
    r"^(#|namespace\b|extern \"C\"|\}|public:|private:|protected:|friend\b|using\b|template\b|class \w+;|struct \w+;"
    r"|typedef struct \w+ \w+;|struct \[\[gnu::visibility|~|explicit \w+\(\) = default|\w+\(\) = default|static_assert|enum \{)")


def paragraphs(text: str):
    """(line, lines) of each run of lines that are not blank."""
    lines, start = [], 0
    for number, line in enumerate(text.splitlines(), 1):
        if line.strip():
            if not lines:
                start = number
            lines.append(line)
        elif lines:
            yield start, lines
            lines = []
    if lines:
        yield start, lines


def is_documented(lines: list[str]) -> bool:
    return any("//" in line or "/*" in line or line.lstrip().startswith("*") for line in lines)


def undocumented(path: pathlib.Path) -> list[str]:
    problems, private = [], 0
    for start, lines in paragraphs(path.read_text(encoding="utf-8")):
        opening = [i for i, line in enumerate(lines) if line.strip() == "private:"]
        before = lines[: opening[0]] if opening else lines
        if private:  # until the class ends
            if any(line.startswith("};") for line in lines):
                private = 0
            continue
        if opening and not any(line.startswith("};") for line in lines[opening[0]:]):
            private = 1
        said = [line for line in before if not PLAIN.match(line.strip())]
        if said and not is_documented(before):
            problems.append(f"{path.relative_to(ROOT)}:{start}: nothing is said of: {said[0].strip()}")
    return problems


def main() -> int:
    problems = [problem for path in sorted((ROOT / "include" / "sardonyx").glob("*.h"))
                for problem in undocumented(path)]
    for problem in problems:
        print(problem)
    if problems:
        print(f"{len(problems)} public declarations without a comment", file=sys.stderr)
    return 1 if problems else 0


if __name__ == "__main__":
    sys.exit(main())
