#!/usr/bin/env python3
"""Makes a C++ test of each block of code in a page: `guide_to_tests.py PAGE.md OUTPUT.inc`.

A block that begins with ```cpp becomes the body of TEST(Guide, LineN), in the order of the page.
"""

from __future__ import annotations

import pathlib
import sys


def tests_of(page: pathlib.Path) -> str:
    out, body, start = [], None, 0
    for number, line in enumerate(page.read_text(encoding="utf-8").splitlines(), 1):
        if body is None and line.strip() == "```cpp":
            body, start = [], number + 1
        elif body is not None and line.strip() == "```":
            out += [f"TEST_F(Guide, Line{start}) {{", f'#line {start} "{page}"', *body, "}", ""]
            body = None
        elif body is not None:
            body.append(line)
    if body is not None or not out:
        sys.exit(f"{page}: no blocks of code, or one that does not end")
    return "\n".join(out)


if __name__ == "__main__":
    if len(sys.argv) != 3:
        sys.exit(__doc__)
    pathlib.Path(sys.argv[2]).write_text(tests_of(pathlib.Path(sys.argv[1])), encoding="utf-8")
