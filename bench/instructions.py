#!/usr/bin/env python3
"""Counts the instructions of overhead and of AVX2 kernels with callgrind, beside the committed baseline.

A case may take up to 3 % more than bench/instructions.json says. The counts do not depend on how busy the machine is, but on
compiler and libraries: the baseline names those it is of. After a change that is worth its instructions, or that saves some,
`./dev bench --instructions --write` puts the new counts there.
"""

from __future__ import annotations

import argparse
import json
import os
import pathlib
import platform
import re
import shutil
import subprocess
import sys
import tempfile

ROOT = pathlib.Path(__file__).resolve().parent.parent
BASELINE = ROOT / "bench" / "instructions.json"
MODEL = ROOT / "examples" / "digits" / "digits.onnx"
MARGIN = 0.03


def environment(bench: pathlib.Path) -> dict[str, str]:
    """What the counts depend on beside the sources."""
    compiler = subprocess.run([str(bench), "--compiler"], capture_output=True, text=True, check=True).stdout.strip()
    library = " ".join(platform.libc_ver())
    valgrind = subprocess.run(["valgrind", "--version"], capture_output=True, text=True, check=True).stdout.strip()
    return {"compiler": compiler, "library": library, "processor": platform.machine(), "valgrind": valgrind}


def count(bench: pathlib.Path) -> dict[str, int]:
    """Instructions of each case."""
    with tempfile.TemporaryDirectory() as folder:
        command = ["valgrind", "--tool=callgrind", "--collect-atstart=no", "--toggle-collect=sardonyx_measured",
                   "--dump-after=sardonyx_measured", f"--callgrind-out-file={folder}/out", str(bench), str(MODEL)]
        result = subprocess.run(command, capture_output=True, text=True,
                                env={"PATH": os.environ["PATH"], "SARDONYX_CPU": "avx2", "LC_ALL": "C"})
        if result.returncode:
            raise RuntimeError(f"{' '.join(command)} ended with {result.returncode}: {result.stderr[-2000:]}")
        names = [line for line in result.stdout.splitlines() if line]
        counts = {}
        for index, name in enumerate(names, 1):
            text = (pathlib.Path(folder) / f"out.{index}").read_text()
            counts[name] = int(re.search(r"^(?:totals|summary): (\d+)", text, re.MULTILINE).group(1))
    return counts


def compare(found: dict[str, int], baseline: dict[str, int]) -> list[str]:
    """What is wrong: cases that take more, and cases that only one of the two knows."""
    wrong = [f"'{name}' is not in the baseline" for name in found if name not in baseline]
    wrong += [f"'{name}' is in the baseline and was not counted" for name in baseline if name not in found]
    for name, number in found.items():
        if name in baseline and number > baseline[name] * (1 + MARGIN):
            wrong.append(f"'{name}' takes {number:,} instructions, {number / baseline[name] - 1:.1%} more than the baseline's "
                         f"{baseline[name]:,}")
    return wrong


def main() -> int:
    parser = argparse.ArgumentParser(prog="./dev bench --instructions", description=__doc__,
                                     formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--bench", type=pathlib.Path, default=ROOT / "build" / "release" / "bin" / "instruction_cases")
    parser.add_argument("--write", action="store_true", help="make these counts the baseline")
    options = parser.parse_args()
    if not shutil.which("valgrind"):
        sys.exit("bench: valgrind is not installed")
    found, here = count(options.bench), environment(options.bench)
    if options.write:
        BASELINE.write_text(json.dumps({"of": here, "instructions": found}, indent=1) + "\n")
    known = json.loads(BASELINE.read_text()) if BASELINE.exists() else {"of": {}, "instructions": {}}
    for name, number in found.items():
        base = known["instructions"].get(name)
        print(f"{name:45} {number:>14,}" + (f"  {number / base - 1:+.2%}" if base else "  new"))
    if known["of"] != here:
        print(f"the baseline is of {known['of']}, this is {here}", file=sys.stderr)
    wrong = compare(found, known["instructions"])
    for line in wrong:
        print("bench: " + line, file=sys.stderr)
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
