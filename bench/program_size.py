#!/usr/bin/env python3
"""The size of the program, stripped, beside the committed figure, and which layer how much of it comes from.

    bench/program_size.py [--build build/release] [--write]

Fails where the program is more than a tenth larger than bench/program_size.json says. --write puts the new figures there and in the
table of docs/performance.md.
"""

from __future__ import annotations

import argparse
import json
import pathlib
import re
import subprocess
import sys
import tempfile

ROOT = pathlib.Path(__file__).resolve().parent.parent
FIGURES = ROOT / "bench" / "program_size.json"
TABLE = ROOT / "docs" / "performance.md"
MARGIN = 0.1


def compiler(build: pathlib.Path) -> str:
    """What compiled it: sizes of another compiler are no measure."""
    cache = (build / "CMakeCache.txt").read_text()
    path = re.search(r"^CMAKE_CXX_COMPILER:\w+=(.*)$", cache, re.MULTILINE).group(1)
    return subprocess.run([path, "--version"], capture_output=True, text=True, check=True).stdout.splitlines()[0]


def stripped(program: pathlib.Path) -> int:
    """Bytes of the program without its symbols."""
    with tempfile.TemporaryDirectory() as folder:
        copy = pathlib.Path(folder) / "program"
        subprocess.run(["strip", "-o", str(copy), str(program)], check=True)
        return copy.stat().st_size


def layers(build: pathlib.Path) -> dict[str, int]:
    """Bytes of code and constants in the objects of each layer. What several objects have in common counts in each, so that
    the sum is more than the program."""
    sizes = {}
    apart = {"ort_api"}  # which is in no program
    for archive in sorted(build.glob("src/*/libsardonyx_*.a")):
        listed = subprocess.run(["size", "--totals", str(archive)], capture_output=True, text=True, check=True).stdout
        text, data, *_ = listed.splitlines()[-1].split()
        if archive.parent.name not in apart:
            sizes[archive.parent.name] = int(text) + int(data)
    return sizes


def table(figures: dict) -> str:
    rows = "".join(f"| {name} | {size / 1e6:.2f} |\n" for name, size in
                   sorted(figures["layers"].items(), key=lambda item: -item[1]))
    return (f"The program without its symbols takes {figures['program'] / 1e6:.1f} MB ({figures['compiler']}).\n\n"
            f"| layer | MB in its objects |\n|---|---|\n{rows}")


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--build", type=pathlib.Path, default=ROOT / "build" / "release")
    parser.add_argument("--write", action="store_true", help="write the figures and the table")
    options = parser.parse_args()
    found = {"compiler": compiler(options.build), "program": stripped(options.build / "bin" / "sardonyx"),
             "layers": layers(options.build)}
    print(table(found))
    if options.write:
        FIGURES.write_text(json.dumps(found, indent=2) + "\n")
        begin, end = "<!-- size:begin -->\n", "<!-- size:end -->\n"
        head, rest = TABLE.read_text().split(begin)
        TABLE.write_text(head + begin + table(found) + end + rest.split(end)[1])
        return 0
    known = json.loads(FIGURES.read_text())
    if found["compiler"] != known["compiler"]:
        print(f"The figures of {FIGURES.name} are of {known['compiler']}: not compared.")
        return 0
    if found["program"] > known["program"] * (1 + MARGIN):
        print(f"The program has grown from {known['program']:,} to {found['program']:,} bytes, by more than a tenth. Find out "
              f"why; where it is worth it, bench/program_size.py --write.", file=sys.stderr)
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
