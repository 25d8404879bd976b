#!/usr/bin/env python3
"""Makes a C++ test of each block of code in pages: `guide_to_tests.py OUTPUT.inc PAGE.md...`.

A block that begins with ```cpp becomes the body of TEST_F(Guide, PageLineN), in the order of the page. Of a whole program
(a block with a main) `guide_to_tests.py --program OUTPUT.cc PAGE.md` takes the text.
"""

from __future__ import annotations

import pathlib
import sys


def blocks_of(page: pathlib.Path) -> list[tuple[int, list[str]]]:
    """Each block in C++: the number of its first line, and its lines."""
    found, body, start = [], None, 0
    for number, line in enumerate(page.read_text(encoding="utf-8").splitlines(), 1):
        if body is None and line.strip() == "```cpp":
            body, start = [], number + 1
        elif body is not None and line.strip() == "```":
            found.append((start, body))
            body = None
        elif body is not None:
            body.append(line)
    if body is not None or not found:
        sys.exit(f"{page}: no blocks of code, or one that does not end")
    return found


def is_program(lines: list[str]) -> bool:
    return any(line.startswith("int main(") for line in lines)


def tests_of(page: pathlib.Path) -> str:
    name = page.stem.title().replace("_", "")
    out = []
    for start, body in blocks_of(page):
        if is_program(body):
            sys.exit(f"{page}:{start}: a whole program is no test")
        out += [f"TEST_F(Guide, {name}Line{start}) {{", f'#line {start} "{page}"', *body, "}", ""]
    return "\n".join(out)


def program_of(page: pathlib.Path) -> str:
    found = [(start, body) for start, body in blocks_of(page) if is_program(body)]
    if len(found) != 1:
        sys.exit(f"{page}: {len(found)} programs, not one")
    start, body = found[0]
    return "\n".join([f'#line {start} "{page}"', *body, ""])


def main(arguments: list[str]) -> None:
    if len(arguments) == 3 and arguments[0] == "--program":
        pathlib.Path(arguments[1]).write_text(program_of(pathlib.Path(arguments[2])), encoding="utf-8")
    elif len(arguments) >= 2:
        text = "\n".join(tests_of(pathlib.Path(page)) for page in arguments[1:])
        pathlib.Path(arguments[0]).write_text(text, encoding="utf-8")
    else:
        sys.exit(__doc__)


if __name__ == "__main__":
    main(sys.argv[1:])
