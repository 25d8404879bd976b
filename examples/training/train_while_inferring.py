#!/usr/bin/env python3
"""A model answers while it learns: one thread trains the digit recogniser from nothing, another asks it.

  train_while_inferring.py [--epochs N]
"""

from __future__ import annotations

import argparse
import pathlib
import threading

import numpy as np

import sardonyx

DIGITS = pathlib.Path(__file__).resolve().parents[1] / "digits"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--epochs", type=int, default=6)
    options = parser.parse_args()

    model = sardonyx.make_trainable(DIGITS / "digits.onnx", initial_weights="random", seed=3)
    session = sardonyx.TrainingSession(model, seed=3, threads=1)
    session.initialize()
    test = np.load(DIGITS / "test.npz")
    done = threading.Event()
    seen: list[tuple[int, float]] = []  # steps before the answer, share of right answers

    def ask() -> None:
        # Each answer is that of the weights before or after a step, never of some of each.
        while not done.is_set():
            turn = session.turn
            answers = session.infer({"image": test["image"]})["probabilities"].argmax(axis=1)
            seen.append((turn, float(np.mean(answers == test["target"]))))

    asking = threading.Thread(target=ask)
    asking.start()
    try:
        session.fit(DIGITS / "train.npz", options.epochs, batch=32)
    finally:
        done.set()
        asking.join()
    answers = session.infer({"image": test["image"]})["probabilities"].argmax(axis=1)
    seen.append((session.turn, float(np.mean(answers == test["target"]))))
    for turn, share in seen[:: max(1, len(seen) // 8)] + seen[-1:]:
        print(f"after step {turn}: {share:.3f} of the answers are right")
    print(f"{len(seen)} times asked during {session.turn} steps")


if __name__ == "__main__":
    main()
