#!/usr/bin/env python3
"""Compares the plans that two builds of the program make: compare_plans.py OLD NEW MODEL_OR_FOLDER…

For a change that must not change what runs: each model below the folders goes through `explain --json` of both; prints those
whose steps, or whose refusals, differ, and how many there are.
"""

from __future__ import annotations

import json
import pathlib
import subprocess
import sys


def plan(program: str, model: pathlib.Path):
    command = [program, "explain", "--json", "--threads", "1", str(model)]
    try:
        report = json.loads(subprocess.run(command, capture_output=True, text=True, timeout=60).stdout)
    except (subprocess.TimeoutExpired, json.JSONDecodeError) as error:
        return type(error).__name__
    return report.get("steps") or report.get("error")


def difference(ours, theirs) -> str:
    if not isinstance(ours, list) or not isinstance(theirs, list):
        return f"{str(ours)[:200]}\n  {str(theirs)[:200]}"
    pair = next(((a, b) for a, b in zip(ours, theirs) if a != b), (None, None))
    return f"{len(ours)} and {len(theirs)} steps; {str(pair[0])[:200]}\n  {str(pair[1])[:200]}"


def main() -> int:
    if len(sys.argv) < 4:
        print(__doc__, file=sys.stderr)
        return 2
    old, new, *places = sys.argv[1:]
    models = [file for place in map(pathlib.Path, places)
              for file in (sorted(place.rglob("*.onnx")) if place.is_dir() else [place])]
    different = 0
    for model in models:
        before, after = plan(old, model), plan(new, model)
        if before != after:
            different += 1
            print(f"{model}\n  {difference(before, after)}")
    print(f"{len(models)} models, {different} differ")
    return 1 if different else 0


if __name__ == "__main__":
    sys.exit(main())
