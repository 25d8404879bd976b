#!/usr/bin/env python3
"""Holds sessions from packed files against sessions without: compare_packed.py MODEL_OR_FOLDER…

Each model below the folders is packed; a session from the file and one without get the same drawn inputs, and must give the same
bits, or refuse in the same words. Says how many did, how many took their optimised graph from the file, and what differs. Needs the
package (`PYTHONPATH=build/release/python`).
"""

from __future__ import annotations

import collections
import pathlib
import sys
import tempfile
import warnings

import numpy as np
import sardonyx

FLOATS = {"float": np.float32, "double": np.float64, "float16": np.float16}
OTHERS = {"bool": np.bool_} | {f"{sign}int{bits}": getattr(np, f"{sign}int{bits}") for sign in ("", "u") for bits in (8, 16, 32, 64)}
TAKEN = "the optimised graph is taken"


def drawn_inputs(session: sardonyx.Session) -> dict[str, np.ndarray] | None:
    """Open sizes are 2. None where an input is no tensor of numbers."""
    random = np.random.default_rng(1)
    feeds = {}
    for value in session.inputs:
        element = value.type.split("[")[0]
        shape = [size if isinstance(size, int) else 2 for size in value.shape or []]
        if element in FLOATS:
            feeds[value.name] = random.random(shape).astype(FLOATS[element])
        elif element in OTHERS:
            feeds[value.name] = random.integers(0, 2, shape).astype(OTHERS[element])
        else:
            return None
    return feeds


def bits(value):
    """Something that compares equal for the same bits alone."""
    if isinstance(value, list | tuple):
        return [bits(one) for one in value]
    if isinstance(value, dict):
        return {key: bits(one) for key, one in value.items()}
    array = np.asarray(value)
    return array.dtype.str, array.shape, array.tolist() if array.dtype == object else array.tobytes()


def answer(session: sardonyx.Session, feeds: dict[str, np.ndarray]):
    try:
        return bits(session.run(feeds))
    except sardonyx.Error as error:
        return str(error)


def compare(model: pathlib.Path, packed: str) -> tuple[str, str]:
    """The kind of outcome, and what there is to say of it."""
    try:
        plain = sardonyx.Session(model, threads=1, seed=7)
    except sardonyx.Error as error:
        return "refused without a file", str(error)
    told: list[str] = []
    try:
        sardonyx.pack(model, packed)
        session = sardonyx.Session(model, threads=1, seed=7, packed=packed, log_level="debug",
                                   log=lambda message: told.append(str(message)))
    except sardonyx.Error as error:
        return "differ", f"refused with the file: {error}"
    feeds = drawn_inputs(plain)
    if feeds is None:
        return "not run: inputs are no numbers", ""
    if answer(plain, feeds) != answer(session, feeds):
        return "differ", "other results"
    return ("same, graph taken" if any(TAKEN in message for message in told) else "same, no graph"), ""


def main() -> int:
    if len(sys.argv) < 2:
        print(__doc__, file=sys.stderr)
        return 2
    models = [file for place in map(pathlib.Path, sys.argv[1:])
              for file in (sorted(place.rglob("*.onnx")) if place.is_dir() else [place])]
    outcomes = collections.Counter()
    warnings.simplefilter("ignore")  # of what models declare
    with tempfile.TemporaryDirectory() as folder:
        for model in models:
            kind, text = compare(model, f"{folder}/packed.sdx")
            outcomes[kind] += 1
            if kind == "differ":
                print(f"{model}: {text}")
    print(f"{len(models)} models: " + ", ".join(f"{count} {kind}" for kind, count in outcomes.most_common()))
    return 1 if outcomes["differ"] else 0


if __name__ == "__main__":
    sys.exit(main())
