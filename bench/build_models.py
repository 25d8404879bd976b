#!/usr/bin/env python3
"""Writes the models that the benchmark runs: NAME.onnx, NAME.npz (inputs) and NAME.json (what is known of it)."""

from __future__ import annotations

import argparse
import hashlib
import json
import pathlib
import sys
import time

import numpy as np

import zoo

ROOT = pathlib.Path(__file__).resolve().parent.parent
RMS_RANGE = (0.1, 10.0)


def sources_stamp() -> str:
    """Changes with the builders, so that models made by older ones are made anew."""
    digest = hashlib.sha256()
    for file in sorted((pathlib.Path(__file__).parent / "zoo").glob("*.py")):
        if file.stem not in ("__init__", "families"):  # they build nothing
            digest.update(file.read_bytes())
    return digest.hexdigest()[:16]


def build(name: str, folder: pathlib.Path, stamp: str) -> dict:
    """Builds one model unless it is there; returns what NAME.json says."""
    note = folder / f"{name}.json"
    if note.exists() and (known := json.loads(note.read_text())).get("stamp") == stamp:
        return known
    start = time.monotonic()
    built = zoo.MODELS[name]()
    outside = {output: value for output, value in built.rms.items()
               if not RMS_RANGE[0] <= value <= RMS_RANGE[1]}
    if outside:
        sys.exit(f"build_models: {name}: layers with an RMS outside {RMS_RANGE}: {outside}")
    built.save(folder / f"{name}.onnx")
    np.savez(folder / f"{name}.npz", **built.inputs)
    known = {
        "stamp": stamp,
        "gflop": round(built.gflop, 4),
        "weights_mb": round(built.megabytes, 2),
        "nodes": len(built.model.graph.node),
        "outputs": len(built.model.graph.output),
        "opset": max((opset.version for opset in built.model.opset_import if not opset.domain), default=0),
        "rms_least": round(min(built.rms.values()), 3) if built.rms else None,
        "rms_most": round(max(built.rms.values()), 3) if built.rms else None,
    }
    note.write_text(json.dumps(known) + "\n")
    print(f"{name}: {known['nodes']} nodes, {known['gflop']} GFLOP, {known['weights_mb']} MB, layers' RMS "
          f"{known['rms_least']} to {known['rms_most']}, built in {time.monotonic() - start:.1f} s", file=sys.stderr,
          flush=True)
    return known


def build_all(names: list[str], folder: pathlib.Path) -> dict[str, dict]:
    """Those named, and those that ONNX Runtime runs in their place."""
    folder.mkdir(parents=True, exist_ok=True)
    stamp = sources_stamp()
    baselines = [zoo.ENTRIES[name].baseline for name in names if name in zoo.ENTRIES]
    return {name: build(name, folder, stamp) for name in dict.fromkeys([*names, *filter(None, baselines)])}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--models", default="all", help="names with commas between them, or all: " + ", ".join(zoo.MODELS))
    parser.add_argument("--out", type=pathlib.Path, default=ROOT / "build" / "bench-models")
    options = parser.parse_args()
    names = list(zoo.MODELS) if options.models == "all" else options.models.split(",")
    if unknown := [name for name in names if name not in zoo.MODELS]:
        parser.error(f"unknown models: {', '.join(unknown)}")
    build_all(names, options.out)


if __name__ == "__main__":
    main()
