#!/usr/bin/env python3
"""Builds the fuzz targets under ASan and UBSan and runs them on mutations of real models, or on nodes they draw.

What goes new ways through the code is kept in build/fuzz/corpus/TARGET, from where the next run goes on.
What makes a target crash is left in build/fuzz/crashes; `build/fuzz/bin/fuzz_TARGET FILE` repeats it.
"""

from __future__ import annotations

import argparse
import os
import pathlib
import subprocess
import sys

ROOT = pathlib.Path(__file__).resolve().parent.parent
BUILD = ROOT / "build" / "fuzz"
TARGETS = ("wire", "window", "formats", "text", "check", "infer", "run", "named_forms", "operator_set",
           "external_data", "operators", "internal_operators", "models", "capi", "capi_models", "values", "deep",
           "training", "packed_file", "checkpoint", "optimized_graphs", "ort_api", "ort_files")
# They draw what they test from random bytes.
DRAWING = ("operators", "internal_operators", "capi", "capi_models", "deep", "training", "optimized_graphs", "ort_api")
SEED_FOLDERS = [pathlib.Path("/usr/share/libonnx-testdata/data")]
LARGEST_SEED = 20_000
MADE_SEEDS = ("named_forms", "operator_set", "external_data", "packed_file")


def seeds(target: str) -> list[pathlib.Path]:
    """Small real models, every tenth of the standard's cases; for text the shown form of them."""
    if target == "text":
        files = [file for folder in ("spec/functions", "tests") for file in (ROOT / folder).rglob("*.onnxtxt")]
        return sorted(files) + sorted((BUILD / "text-seeds").glob("*"))
    if target in DRAWING:
        return []
    if target in MADE_SEEDS:
        return sorted((BUILD / f"{target}-seeds").glob("*"))
    if target == "checkpoint":
        return sorted((ROOT / "tests" / "python" / "artifacts").glob("*/checkpoint*"))
    if target == "ort_files":
        return sorted((ROOT / "tests" / "wire" / "data").glob("*.ort"))
    if target in ("formats", "values"):
        return sorted(file for file in (ROOT / "tests" / "wire" / "data").iterdir() if file.suffix != ".py")
    cases = [ROOT / "build" / "conformance", *SEED_FOLDERS]
    files = next((found for folder in cases if (found := sorted(folder.rglob("model.onnx")))), [])
    return [file for file in files[::10] if file.stat().st_size < LARGEST_SEED]


def make_seeds(target: str) -> None:
    """Seeds that the program makes: models in other forms, its operator sets, models with external data."""
    program = ROOT / "build" / "release" / "bin" / "sardonyx"
    folder = BUILD / f"{target}-seeds"
    if not program.exists() or (folder.exists() and any(folder.iterdir())):
        return  # those of an earlier run will do
    folder.mkdir(parents=True, exist_ok=True)
    if target == "operator_set":
        for domain in ("ai.onnx.ml", "ai.onnx.preview.training"):
            subprocess.run([program, "opset", folder / domain, "--export", domain], capture_output=True)
        return
    for number, file in enumerate(seeds("wire")[:400]):
        if target == "text":
            subprocess.run([program, "convert", file, folder / f"{number}.onnxtxt"], capture_output=True)
        elif target == "packed_file":
            made = folder / f"{number}.sdx"
            subprocess.run([program, "pack", file, "-o", made], capture_output=True)
            if made.exists():  # with the sizes and checksums that the target makes itself, too
                data = made.read_bytes()
                size, count, more, graphs = (int.from_bytes(data[at:at + 8], "little") for at in (32, 40, 160, 168))
                counts = bytes([count % 8, 3, graphs % 4]) + size.to_bytes(2, "little")
                (folder / f"{number}.table").write_bytes(counts + data[256:256 + size + more])
        elif target == "named_forms":
            ending = ("json", "textproto")[number % 2]
            subprocess.run([program, "convert", file, folder / f"{number}.{ending}"], capture_output=True)
        else:
            subprocess.run([program, "convert", file, folder / f"{number}.onnx", "--external-data", "w.bin", "--threshold",
                            "0", "--align", "16", *(["--checksum"] if number % 4 == 0 else [])], capture_output=True)
            (folder / "w.bin").unlink(missing_ok=True)


def fuzz(target: str, limit: list[str], seed: int, programs: pathlib.Path) -> bool:
    if target == "text" or target in MADE_SEEDS:
        make_seeds(target)
    crashes = BUILD / "crashes"
    crashes.mkdir(parents=True, exist_ok=True)
    current = BUILD / f"{target}-{seed}.current"  # other seeds may run beside this one
    environment = dict(os.environ)
    environment.setdefault("ASAN_OPTIONS", "max_allocation_size_mb=2048:detect_leaks=1")
    environment.setdefault("UBSAN_OPTIONS", "print_stacktrace=1")
    print(f"== {target}: {' '.join(limit)} --seed {seed}", flush=True)
    words = [*limit, "--seed", str(seed), "--current", current]
    if programs == BUILD / "bin":  # without guidance nothing is known to be worth keeping
        words += ["--corpus", BUILD / "corpus" / target]
    words += seeds(target)
    code = subprocess.run([programs / f"fuzz_{target}", *words], env=environment).returncode
    if code == 0:
        current.unlink(missing_ok=True)
        return True
    content = current.read_bytes()
    input_bytes = content[8:8 + int.from_bytes(content[:8], sys.byteorder)]
    crash = crashes / f"{target}-{seed}-{len(input_bytes)}"
    crash.write_bytes(input_bytes)
    print(f"{target} ended with {code} on {crash.relative_to(ROOT)}", flush=True)
    return False


def main() -> int:
    parser = argparse.ArgumentParser(prog="./dev fuzz", description=__doc__.splitlines()[0])
    parser.add_argument("target", nargs="*", help=f"only these, of {', '.join(TARGETS)}")
    limit = parser.add_mutually_exclusive_group()
    limit.add_argument("--seconds", type=int, default=60, help="of the processor's time, for each target (default 60)")
    limit.add_argument("--inputs", type=int, help="for each target, in whatever time they take: the same on every machine")
    parser.add_argument("--seed", type=int, default=1, help="of the mutations (default 1)")
    parser.add_argument("--unguided", action="store_true", help="with the objects of build/asan, which do not say what an "
                        "input reaches")
    options = parser.parse_args()
    targets = options.target or list(TARGETS)
    if unknown := [target for target in targets if target not in TARGETS]:
        parser.error(f"no target {', '.join(unknown)}; there are {', '.join(TARGETS)}")
    folder = ROOT / "build" / "asan" if options.unguided else BUILD
    build = ["cmake", "--build", str(folder), "--parallel", str(os.cpu_count()), "--target"]
    if subprocess.run(build + [f"fuzz_{target}" for target in targets]).returncode:
        return 1
    limit = ["--inputs", str(options.inputs)] if options.inputs else ["--seconds", str(options.seconds)]
    return 0 if all([fuzz(target, limit, options.seed, folder / "bin") for target in targets]) else 1


if __name__ == "__main__":
    sys.exit(main())
