#!/usr/bin/env python3
"""Fine-tunes the last layers of a trained vision model: the digit recogniser learns to tell even from odd.

  fine_tune.py [--model examples/digits/digits.onnx] [--train 'layer3.*' --train 'layer4.*'] [--epochs N] [-o tuned.onnx]
"""

from __future__ import annotations

import argparse
import pathlib

import numpy as np

import sardonyx

DIGITS = pathlib.Path(__file__).resolve().parents[1] / "digits"


def even_or_odd(path: pathlib.Path) -> dict[str, np.ndarray]:
    """The images, and class 0 for even digits, 1 for odd ones; the other outputs of the model get no examples."""
    data = np.load(path)
    return {"image": data["image"], "target": data["target"] % 2}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--model", default=DIGITS / "digits.onnx")
    parser.add_argument("--train", action="append", help="which initializers learn; the last two layers otherwise")
    parser.add_argument("--epochs", type=int, default=5)
    parser.add_argument("-o", "--output", default="tuned.onnx")
    options = parser.parse_args()

    report: list[sardonyx.TrainableReport] = []
    model = sardonyx.make_trainable(options.model, optimizer="adamw", weight_decay=1e-4, schedule="cosine:200", warmup=10,
                                    train=options.train or ["layer3.*", "layer4.*"], report=report.append)
    print(f"{len(report[0].trained)} of {len(report[0].trained) + len(report[0].frozen)} initializers learn")

    session = sardonyx.TrainingSession(model, seed=1)
    training, held_back = even_or_odd(DIGITS / "train.npz"), even_or_odd(DIGITS / "test.npz")
    print(f"accuracy before: {session.measure(held_back, batch=64)['accuracy']:.3f}")

    def tell(progress: object) -> None:
        if isinstance(progress, sardonyx.EpochResult):
            print(f"epoch {progress.epoch + 1}: loss {progress.training['loss']:.4f}, "
                  f"held back: accuracy {progress.validation['accuracy']:.3f}")

    session.fit(training, options.epochs, batch=32, validation=held_back, callbacks=tell)
    print(f"accuracy after: {session.measure(held_back, batch=64)['accuracy']:.3f}")
    session.save(options.output, inference_only=True)
    print(f"wrote {options.output}")


if __name__ == "__main__":
    main()
