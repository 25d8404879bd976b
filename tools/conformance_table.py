#!/usr/bin/env python3
"""Writes what `./dev conformance --all` counted into the table of docs/conformance.md.

Reads one JSON file of the runner a release, named as dev names them: RESULTS-X.Y.Z.json.
"""

from __future__ import annotations

import argparse
import json
import pathlib
import sys

import conformance_exceptions

ROOT = pathlib.Path(__file__).resolve().parent.parent
PAGE = ROOT / "docs" / "conformance.md"
BEGIN, END = "<!-- releases: written by ./dev conformance --all --write-docs -->\n", "<!-- end of releases -->\n"
STATES = ("passed", "failed", "skipped", "superseded")


def table(counts: dict[str, dict]) -> str:
    lines = ["| release | cases | " + " | ".join(STATES) + " |", "|---" * (len(STATES) + 2) + "|"]
    for release, states in counts.items():
        numbers = [sum(states[state] for state in STATES), *(states[state] for state in STATES)]
        lines.append(f"| {release} | " + " | ".join(f"{number:,}" for number in numbers) + " |")
    total = [sum(states[state] for states in counts.values()) for state in STATES]
    lines.append("| all | " + " | ".join(f"{number:,}" for number in [sum(total), *total]) + " |")
    return "\n".join(lines) + "\n"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--results", type=pathlib.Path, required=True, help="as given to ./dev conformance --json")
    options = parser.parse_args()
    counts = {}
    for release in conformance_exceptions.releases():
        file = options.results.with_name(f"{options.results.stem}-{release}.json")
        if not file.exists():
            sys.exit(f"conformance_table: {file} is missing; run ./dev conformance --all --json {options.results}")
        counts[release] = json.loads(file.read_text())
    page = PAGE.read_text()
    if BEGIN not in page or END not in page:
        sys.exit(f"conformance_table: {PAGE} lacks the comments between which the table stands")
    before, rest = page.split(BEGIN, 1)
    PAGE.write_text(before + BEGIN + table(counts) + END + rest.split(END, 1)[1])


if __name__ == "__main__":
    main()
