"""Reads tests/conformance/exceptions.txt: backend cases whose expected outputs cannot all be met.

A block begins with `[superseded]`, `[random]` or `[broken]` and the reason, which goes on over lines that are
not indented; an indented line `RELEASES CASE` puts a case in the block. RELEASES is one release, `FIRST..LAST`,
`FIRST..` for all since, or `all`. tests/conformance/exceptions.cc reads the same.
"""

from __future__ import annotations

import dataclasses
import pathlib
import re

ROOT = pathlib.Path(__file__).resolve().parent.parent
LIST = ROOT / "tests" / "conformance" / "exceptions.txt"


def number(release: str) -> tuple[int, ...]:
    return tuple(int(part) for part in release.split("."))


def releases() -> list[str]:
    """The releases whose cases are run, oldest first."""
    lines = (ROOT / "tools" / "onnx-releases.txt").read_text().splitlines()
    return [line.strip() for line in lines if line.strip() and not line.startswith("#")]


@dataclasses.dataclass
class Entry:
    kind: str
    reason: str
    first: str
    last: str
    case: str

    def covers(self, release: str, case: str) -> bool:
        return self.case == case and number(self.first) <= number(release) <= number(self.last)


def read(path: pathlib.Path = LIST) -> list[Entry]:
    entries: list[Entry] = []
    blocks: list[tuple[str, list[str], list[str]]] = []  # kind, lines of the reason, cases
    for line in path.read_text().splitlines():
        if not line.strip() or line.startswith("#"):
            continue
        if begin := re.fullmatch(r"\[(superseded|random|broken)\] (.+)", line):
            blocks.append((begin[1], [begin[2]], []))
        elif not blocks:
            raise ValueError(f"{path}: expected a block's first line; found {line!r}")
        elif line[0].isspace():
            blocks[-1][2].append(line)
        elif blocks[-1][2]:
            raise ValueError(f"{path}: the reason must stand before the cases; found {line!r}")
        else:
            blocks[-1][1].append(line)
    for kind, reason, cases in blocks:
        for line in cases:
            span, case = line.split()
            first, _, last = ("0..999" if span == "all" else span).partition("..")
            last = last or ("999" if ".." in span else first)
            entries.append(Entry(kind, " ".join(reason), first, last, case))
    return entries


def find(entries: list[Entry], release: str, case: str) -> Entry | None:
    return next((entry for entry in entries if entry.covers(release, case)), None)
