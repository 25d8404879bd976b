#!/usr/bin/env python3
"""Writes src/ops/shared/letter_cases.h: what Unicode says of upper and lower case, as this Python knows it.

  tools/generate_letter_cases.py            # writes
  tools/generate_letter_cases.py --verify   # fails where the file is another
"""

from __future__ import annotations

import argparse
import pathlib
import sys
import unicodedata

FILE = pathlib.Path(__file__).resolve().parent.parent / "src" / "ops" / "shared" / "letter_cases.h"
CODES = [code for code in range(0x110000) if not 0xD800 <= code < 0xE000]
SIGMA, FINAL_SIGMA = "\u03a3", "\u03c2"


def single(mapped: list[tuple[int, int]]) -> list[tuple[int, int, int, int]]:
    """Runs (first, last, step, offset) of letters whose other case lies equally far away."""
    runs: list[list[int]] = []
    for code, other in mapped:
        offset = other - code
        if runs and runs[-1][3] == offset:
            first, last, step, _ = runs[-1]
            if code - last == step or (first == last and code - last == 2):
                runs[-1][1:3] = [code, code - last]
                continue
        runs.append([code, code, 1, offset])
    return [tuple(run) for run in runs]


def ranges(codes: list[int]) -> list[tuple[int, int]]:
    found: list[list[int]] = []
    for code in codes:
        if found and found[-1][1] == code - 1:
            found[-1][1] = code
        else:
            found.append([code, code])
    return [tuple(one) for one in found]


def becomes_final(text: str) -> bool:
    return (text + SIGMA).lower().endswith(FINAL_SIGMA)


def cell_of(row: tuple) -> str:
    def item(place: int, value: int | tuple) -> str:
        if isinstance(value, tuple):
            return cell_of(value)
        return hex(value) if place in (0, 1) and value >= 0 else str(value)

    return "{" + ", ".join(item(place, value) for place, value in enumerate(row)) + "}"


def table(kind: str, name: str, rows: list[tuple], note: str) -> str:
    cells = [cell_of(row) for row in rows]
    lines, line = [], "   "
    for cell in cells:
        if len(line) + len(cell) + 2 > 98:
            lines.append(line)
            line = "   "
        line += f" {cell},"
    return f"// {note}\nconstexpr {kind} {name}[] = {{\n" + "\n".join([*lines, line]) + "\n};\n"


def content() -> str:
    upper = {code: chr(code).upper() for code in CODES if chr(code).upper() != chr(code)}
    lower = {code: chr(code).lower() for code in CODES if chr(code).lower() != chr(code)}
    pairs = lambda cases: [(code, ord(other)) for code, other in cases.items() if len(other) == 1]  # noqa: E731
    longer = [(code, tuple(([ord(letter) for letter in other] + [0])[:3])) for code, other in upper.items() if len(other) > 1]
    assert [code for code, other in lower.items() if len(other) > 1] == [0x130]  # that one is written out in utf8.cc
    cased = [code for code in CODES if becomes_final(chr(code))]
    skipped = sorted({code for code in CODES if becomes_final("a" + chr(code))} - set(cased))
    return "\n".join([
        f"// Upper and lower case of Unicode {unicodedata.unidata_version}. Written by tools/generate_letter_cases.py.",
        "#pragma once\n",
        "#include <cstdint>\n",
        "namespace sardonyx::ops::letters {\n",
        "// Every `step`th letter from `first` to `last`; its other case lies `offset` further.",
        "struct Run {\n  char32_t first, last;\n  int32_t step, offset;\n};\n",
        "struct Range {\n  char32_t first, last;\n};\n",
        "// A letter that is two or three in the other case; the third may be 0.",
        "struct Expansion {\n  char32_t code;\n  char32_t to[3];\n};\n",
        "// clang-format off",
        table("Run", "to_lower", single(pairs(lower)), "Letters with a small form of one letter."),
        table("Run", "to_upper", single(pairs(upper)), "Letters with a capital form of one letter."),
        table("Expansion", "to_upper_longer", longer, "Letters with a capital form of more."),
        table("Range", "cased", ranges(cased), "Letters with a case, which can end a word."),
        table("Range", "ignored", ranges(skipped), "What is passed over where the end of a word is looked for."),
        "// clang-format on\n",
        "}  // namespace sardonyx::ops::letters\n",
    ])


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--verify", action="store_true", help="compare instead of writing")
    if parser.parse_args().verify:
        return 0 if FILE.read_text() == content() else 1
    FILE.write_text(content())
    return 0


if __name__ == "__main__":
    sys.exit(main())
