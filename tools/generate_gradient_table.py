#!/usr/bin/env python3
"""Writes the table of docs/gradients.md: where each operator of the standard has its gradient from.

Reads spec/ops, spec/gradients, spec/functions, src/autodiff and the reasons in tests/session/gradient_test.cc. With --check
it writes nothing and exits with 1 where the table is not up to date.
"""

from __future__ import annotations

import pathlib
import re
import sys

ROOT = pathlib.Path(__file__).resolve().parent.parent
DOCUMENT = ROOT / "docs" / "gradients.md"
BEGIN, END = "<!-- operators: tools/generate_gradient_table.py -->", "<!-- end of operators -->"

WAYS = {
    "text": "formula in `spec/gradients`",
    "rule": "rule in `src/autodiff`",
    "body": "written with other operators in `src/autodiff`",
    "function": "its function body",
    "graphs": "its graphs",
    "marked": "none: the standard marks it as not differentiable",
    "reason": "none: ",
}


def names_in(file: str) -> set[str]:
    return set(re.findall(r'\{"(\w+)",\s*\w+\}', (ROOT / "src" / "autodiff" / file).read_text()))


def newest(path: pathlib.Path) -> str:
    return path.read_text().split("\n  since ")[1]


def way_of(name: str, newest_text: str, sources: dict[str, set[str]], reasons: dict[str, str]) -> str:
    marked = "    not differentiable" in newest_text
    differentiable = re.search(r"^    differentiable \S.* -> \S", newest_text, re.MULTILINE)
    if marked and not differentiable and name not in sources["function"] | sources["body"]:
        return WAYS["marked"]
    for way in ("graphs", "rule", "text", "body"):
        if name in sources[way]:
            return WAYS[way]
    if name in reasons and not reasons[name].endswith(".cc"):
        return WAYS["reason"] + reasons[name]
    if marked and not re.search(r"^    differentiable .*-> \S", newest_text, re.MULTILINE):
        return WAYS["marked"]
    if name in sources["function"]:
        return WAYS["function"]
    raise SystemExit(f"{name} has neither a gradient nor a reason; tests/session/gradient_test.cc holds the reasons")


def table() -> str:
    sources = {
        "graphs": {"If", "Loop", "Scan", "SequenceMap"},
        "rule": names_in("rules.cc"),
        "text": {p.name.split(".")[0] for p in (ROOT / "spec" / "gradients").glob("*.onnxtxt")},
        "body": names_in("bodies.cc"),
        "function": {p.stem for p in (ROOT / "spec" / "functions").glob("*.onnxtxt")},
    }
    test = (ROOT / "tests" / "session" / "gradient_test.cc").read_text()
    block = test[test.index("without_gradient{") :]
    block = block[: block.index("};")]
    reasons = dict(re.findall(r'\{"(\w+)",\s*"([^"]+)"\}', block))
    rows: dict[str, list[str]] = {}
    for path in sorted((ROOT / "spec" / "ops").glob("*.txt")):
        text = newest(path)
        if "    deprecated" in text:
            continue
        rows.setdefault(way_of(path.stem, text, sources, reasons), []).append(path.stem)
    lines = ["| gradient | operators |", "|---|---|"]
    lines += [f"| {way} | {', '.join(names)} |" for way, names in sorted(rows.items(), key=lambda row: -len(row[1]))]
    return "\n".join(lines)


def main() -> int:
    text = DOCUMENT.read_text()
    begin, end = text.index(BEGIN) + len(BEGIN), text.index(END)
    made = f"{text[:begin]}\n{table()}\n{text[end:]}"
    if "--check" in sys.argv[1:]:
        if made != text:
            print("docs/gradients.md is not up to date; run tools/generate_gradient_table.py", file=sys.stderr)
            return 1
        return 0
    DOCUMENT.write_text(made)
    return 0


if __name__ == "__main__":
    sys.exit(main())
