#!/usr/bin/env python3
"""Holds what `sardonyx check --strict` refuses against what the onnx package refuses, on broken models made systematically.

    compare_checker.py RUNNER [--part fields|operators] [--only RE] [--cases N] [--examples N] [--ours]

RUNNER is check_runner of a build. `fields` damages every field of valid models, held against
`onnx.checker.check_model(full_check=True)`; `operators` damages single nodes and what they are given, held against
`onnx.shape_inference.infer_shapes(strict_mode=True, data_prop=True)`. What the reference refuses and Sardonyx does not is
listed by class; --ours lists what only Sardonyx refuses. The exit status is 1 for a class that the explicit list of
tests/python/reference_deviations.py does not name.
"""

from __future__ import annotations

import argparse
import collections
import pathlib
import re
import sys
import tempfile

ROOT = pathlib.Path(__file__).resolve().parent.parent
sys.path.insert(0, str(ROOT / "tests" / "python"))

import broken_models  # noqa: E402


def main() -> int:
    options = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    options.add_argument("runner", type=pathlib.Path)
    options.add_argument("--part", choices=("fields", "operators"), default="fields")
    options.add_argument("--only", default="", help="only models whose name matches")
    options.add_argument("--cases", type=int, default=2, help="of each operator")
    options.add_argument("--examples", type=int, default=2, help="to show of a class")
    options.add_argument("--ours", action="store_true", help="list what only Sardonyx refuses")
    options.add_argument("--keep", type=pathlib.Path, help="a folder for an example of each class")
    chosen = options.parse_args()
    by_fields = chosen.part == "fields"
    bases = broken_models.structural_bases() if by_fields else broken_models.operator_bases(chosen.cases)
    mutants = broken_models.field_mutants if by_fields else broken_models.operator_mutants
    made, seen = [], set()
    for name, base in bases.items():
        if not re.search(chosen.only, name):
            continue
        made.append((name, "as it is", base.SerializeToString()))
        for what, data in mutants(base):
            if data not in seen:
                seen.add(data)
                made.append((name, what, data))
    with tempfile.TemporaryDirectory() as folder:
        pathlib.Path(folder, "data.bin").write_bytes(bytes(8))
        with broken_models.working_in(folder):
            theirs = broken_models.reference_answers([data for _, _, data in made], infer_only=not by_fields)
        ours = broken_models.sardonyx_errors(chosen.runner.resolve(), [data for _, _, data in made], folder)
    classes = collections.defaultdict(list)
    counts = collections.Counter()
    for (name, what, data), their, our in zip(made, theirs, ours):
        counts[their is not None, bool(our)] += 1
        if what == "as it is" and (their or our):
            print(f"NOT VALID {name}: {their} {our}")
        elif their and not our:
            classes[broken_models.deviation_class(name, what, their, by_fields)].append((name, what, data, their))
        elif our and not their and chosen.ours:
            rule = our[0].split()[0]
            classes[(rule, re.sub(r"\d+", "N", what))].append((name, what, data, our[0]))
    for number, (key, found) in enumerate(sorted(classes.items())):
        print(f"{len(found):5d}  {' | '.join(key)}")
        for name, what, data, message in found[:chosen.examples]:
            print(f"         {name}: {what}\n           {' '.join(message.split())[:260]}")
        if chosen.keep:
            chosen.keep.mkdir(parents=True, exist_ok=True)
            (chosen.keep / f"{number}.onnx").write_bytes(found[0][2])
    print(f"{len(made)} models: both refuse {counts[True, True]}, neither {counts[False, False]}, "
          f"only the reference {counts[True, False]}, only Sardonyx {counts[False, True]}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
