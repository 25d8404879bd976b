#!/usr/bin/env python3
"""Kernel by kernel beside oneDNN and the machine's limits, in turn in one process.

Each row: the time of both, how much faster ours is, and how near it comes to what the machine allows: float32
multiply-adds in registers, or reading from the memory that a call's data fits in.
"""

from __future__ import annotations

import argparse
import json
import os
import pathlib
import subprocess
import sys

import report

ROOT = pathlib.Path(__file__).resolve().parent.parent
BEGIN, END = "<!-- kernels:begin -->", "<!-- kernels:end -->"
# Shares of the bound that are asked for; a row is missed where it has less and where oneDNN is faster.
TARGETS = {"matmul 1x": 0.8, "matmul 4x": 0.8, "matmul": 0.85, "pointwise": 0.8, "3x3": 0.85, "7x7": 0.6, "depthwise": 0.6,
           "softmax": 0.8, "layer norm": 0.8}
NANOSECONDS = 0.35  # an element of exp, tanh, sigmoid and gelu, at most
REASONS = ROOT / "bench" / "kernels" / "reasons.json"


def limits(program: str, threads: int) -> dict:
    """The machine's limits, as `sardonyx profile` measures them."""
    model = ROOT / "examples" / "digits" / "digits.onnx"
    result = subprocess.run([program, "profile", str(model), "--runs", "1", "--threads", str(threads), "--json"],
                            capture_output=True, text=True)
    if result.returncode:
        sys.exit(f"bench: the machine's limits could not be measured: {result.stderr.strip()}")
    return json.loads(result.stdout)["machine"]


def judge(row: dict, machine: dict, reasons: dict) -> None:
    level = next(level for level in machine["levels"] if row["bytes"] <= level.get("bytes", float("inf")))
    compute = row["operations"] / machine["gflops"] * 1e-3  # microseconds at least
    memory = row["bytes"] / level["gbps"] * 1e-3
    row["bound"] = "compute" if compute >= memory else level["name"]
    row["share"] = max(compute, memory) / row["ours_us"]
    row["theirs_share"] = max(compute, memory) / row["theirs_us"]
    target = next((share for name, share in TARGETS.items() if row["name"].startswith(name)), None)
    if target is None:
        row["nanoseconds"] = row["ours_us"] * 1e3 / (row["bytes"] / 8)
        reached = row["nanoseconds"] <= NANOSECONDS
    else:
        reached = row["share"] >= target
    row["missed"] = not reached and row["ratio"] < 1
    found = [reason for name, reason in reasons.items() if row["name"].startswith(name)]
    row["reason"] = found[0] if (not reached or row["ratio"] < 1) and found else ""


def speed(row: dict, side: str) -> str:
    if row["operations"]:
        return f"{row['operations'] / row[f'{side}_us'] * 1e-3:.1f} GFLOP/s"
    return f"{row['bytes'] / row[f'{side}_us'] * 1e-3:.1f} GB/s"


def table(rows: list[dict]) -> str:
    lines = ["| kernel | µs | oneDNN µs | ratio | speed | bound | of it | oneDNN | |", "|---|---|---|---|---|---|---|---|---|"]
    for row in rows:
        each = f", {row['nanoseconds']:.2f} ns an element" if "nanoseconds" in row else ""
        lines.append(f"| {row['name']} | {row['ours_us']:.3g} | {row['theirs_us']:.3g} | {row['ratio']:.2f} | "
                     f"{speed(row, 'ours')}{each} | {row['bound']} | {row['share']:.0%} | {row['theirs_share']:.0%} | "
                     f"{row['reason']} |")
    return "\n".join(lines)


def main() -> int:
    parser = argparse.ArgumentParser(prog="./dev bench --kernels", description=__doc__,
                                     formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--program", default=str(ROOT / "build" / "release" / "bin" / "sardonyx"))
    parser.add_argument("--bench", default=str(ROOT / "build" / "release" / "bin" / "beside_onednn"))
    parser.add_argument("--threads", type=int, default=1, help="of both (default 1, which counts the thread's own time)")
    parser.add_argument("--rounds", type=int, default=9, help="of calls in turn (default 9)")
    parser.add_argument("--filter", default="", help="only kernels whose name holds this")
    parser.add_argument("--json", type=pathlib.Path, help="write the rows to this file")
    parser.add_argument("--write-docs", action="store_true", help="put the table into --page")
    parser.add_argument("--page", type=pathlib.Path, default=ROOT / "docs" / "performance.md",
                        help="for --write-docs: docs/performance.md, or the page of another machine")
    options = parser.parse_args()
    before = limits(options.program, options.threads)
    result = subprocess.run([options.bench, "--threads", str(options.threads), "--rounds", str(options.rounds), "--filter",
                             options.filter], capture_output=True, text=True,
                            env=dict(os.environ, OMP_NUM_THREADS=str(options.threads)))
    if result.returncode:
        sys.exit(f"bench: {result.stderr.strip()}")
    found = json.loads(result.stdout)
    machine = limits(options.program, options.threads)  # the better of before and after
    machine["gflops"] = max(machine["gflops"], before["gflops"])
    for level, other in zip(machine["levels"], before["levels"]):
        level["gbps"] = max(level["gbps"], other["gbps"])
    reasons = json.loads(REASONS.read_text())
    for row in found["rows"]:
        judge(row, machine, reasons)
    text = table(found["rows"])
    bounds = "; ".join([f"{machine['gflops']:.0f} GFLOP/s"] + [f"{level['name']} {level['gbps']:.0f} GB/s"
                                                              for level in machine["levels"]])
    head = (f"oneDNN {found['onednn']}, {options.threads} thread{'s' if options.threads > 1 else ''}, "
            f"{machine['instruction_set']}: {bounds}.")
    print(head + "\n" + text)
    if options.json:
        options.json.write_text(json.dumps(found | {"machine": machine}, indent=1) + "\n")
    if options.write_docs:
        report.put_between(options.page, BEGIN, END,
                           f"Made by `{report.command_line('--kernels')}`. {head}\n\n{text}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
