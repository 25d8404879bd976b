#!/usr/bin/env python3
"""Training artifacts of ONNX Runtime, stepped by its training API and by Sardonyx: the same files and batches.

  bench/artifacts.py --onnxruntime PYTHON    a Python that has onnxruntime-training 1.19, torch and onnx below 1.17

The models are those of bench/training.py; AdamW at a rate of 0.001, batches of 64. Prints for each model and number of threads the
time of a step (medians of the last epochs, both measured in turn) as a share of ONNX Runtime's, the largest relative difference
of the losses, and the peak memory of a process. ONNX Runtime runs in a process of its own: this file with --child.
"""

from __future__ import annotations

import argparse
import json
import os
import pathlib
import shlex
import statistics
import subprocess
import sys
import tempfile
import time

import numpy as np
from training import BATCH, BATCHES, ROOT, measured, write_model

MODELS = ("mlp", "resnet", "transformer", "graph")  # its gradient of LSTM is a graph that it refuses


def make_artifacts(folder):
    """Of folder/model.onnx, whose normalisations get the form that trains."""
    import onnx
    from onnxruntime.training import artifacts

    model = onnx.load(folder / "model.onnx")
    kept = {one.name for one in model.graph.initializer if one.data_type != onnx.TensorProto.FLOAT} | {"incidence"}
    for node in model.graph.node:
        if node.op_type == "BatchNormalization":
            kept |= set(node.input[3:])
            node.output.extend([node.output[0] + "_mean", node.output[0] + "_variance"])
            node.attribute.append(onnx.helper.make_attribute("training_mode", 1))
        if node.op_type == "LayerNormalization":
            node.output.extend([node.output[0] + "_mean", node.output[0] + "_deviation"])
    names = [one.name for one in model.graph.initializer]
    artifacts.generate_artifacts(model, requires_grad=[one for one in names if one not in kept],
                                 frozen_params=[one for one in names if one in kept], loss=artifacts.LossType.CrossEntropyLoss,
                                 optimizer=artifacts.OptimType.AdamW, artifact_directory=str(folder))


def child(folder, threads, epochs):
    import resource

    os.environ["ORT_DISABLE_TELEMETRY"] = "1"
    import onnxruntime
    import onnxruntime.training.api as api

    if threads == 0:
        make_artifacts(folder)
        print("{}")
        return
    settings = onnxruntime.SessionOptions()
    settings.intra_op_num_threads = threads
    state = api.CheckpointState.load_checkpoint(str(folder / "checkpoint"))
    module = api.Module(str(folder / "training_model.onnx"), state, session_options=settings)
    optimizer = api.Optimizer(str(folder / "optimizer_model.onnx"), module)
    optimizer.set_learning_rate(0.001)
    data = np.load(folder / "data.npz")
    x, target = data["x"], data["target"]
    losses, seconds = [], []
    for _ in range(epochs):
        begin = time.perf_counter()
        for i in range(BATCHES):
            rows = slice(i * BATCH, (i + 1) * BATCH)
            module.train()
            losses.append(float(module(x[rows], target[rows])))
            optimizer.step()
            module.lazy_reset_grad()
        seconds.append((time.perf_counter() - begin) / BATCHES)
    print(json.dumps({"losses": losses, "seconds": seconds,
                      "peak_kib": resource.getrusage(resource.RUSAGE_SELF).ru_maxrss}))


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--models", default=",".join(MODELS))
    parser.add_argument("--threads", default="1,2")
    parser.add_argument("--epochs", type=int, default=20)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--onnxruntime", default=sys.executable, help="the command of a Python that has onnxruntime-training")
    parser.add_argument("--program", default=ROOT / "build/release/bin/sardonyx")
    parser.add_argument("--child", nargs=3, help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.child:
        child(pathlib.Path(options.child[0]), *map(int, options.child[1:]))
        return

    def theirs(folder, threads):
        out, _ = measured([*shlex.split(options.onnxruntime), __file__, "--child", folder, threads, options.epochs])
        return json.loads(out.splitlines()[-1])

    def ours(folder, threads):
        out, peak = measured([options.program, "train", folder / "trainable.onnx", "--data", folder / "data.npz", "-o",
                              folder / "out.onnx", "--epochs", options.epochs, "--batch", BATCH, "--no-shuffle", "--json",
                              "--log-every", 1, "--threads", threads])
        lines = [json.loads(line) for line in out.splitlines()]
        return {"losses": [line["loss"] for line in lines if line["event"] == "step"], "peak_kib": peak,
                "seconds": [line["seconds"] / BATCHES for line in lines if line["event"] == "epoch"]}

    def step_of(runs):
        return statistics.median(statistics.median(run["seconds"][len(run["seconds"]) // 2:]) for run in runs)

    print("| model | threads | step, ms | of ONNX Runtime | losses differ by | memory, MB | of ONNX Runtime |")
    print("|---|---|---|---|---|---|---|")
    for name in options.models.split(","):
        with tempfile.TemporaryDirectory() as scratch:
            folder = pathlib.Path(scratch)
            write_model(name, folder)
            with np.load(folder / "data.npz") as data:
                arrays = {"x": data["x"], "target": data["target"], "labels": data["target"]}
            np.savez(folder / "data.npz", **arrays)
            theirs(folder, 0)
            subprocess.run([options.program, "make-trainable", folder, "-o", folder / "trainable.onnx"], check=True,
                           stdout=subprocess.DEVNULL)
            for threads in map(int, options.threads.split(",")):
                runs = [(ours(folder, threads), theirs(folder, threads)) for _ in range(options.rounds)]
                mine, other = zip(*runs)
                a, b = np.array(mine[0]["losses"]), np.array(other[0]["losses"])
                peak = [min(run["peak_kib"] for run in one) / 1024 for one in (mine, other)]
                print(f"| {name} | {threads} | {step_of(mine) * 1e3:.2f} | {step_of(mine) / step_of(other):.2f} | "
                      f"{np.max(np.abs(a - b) / np.abs(b)):.1e} | {peak[0]:.0f} | {peak[0] / peak[1]:.2f} |", flush=True)


if __name__ == "__main__":
    main()
