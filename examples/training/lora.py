#!/usr/bin/env python3
"""Low-rank adaptation of a small language model.

A model that continues text by characters learns one text. Then its weights stay, low-rank products beside them learn another one
(LoRA), and become part of the weights: the model that is written has the nodes of the first.

  lora.py [--rank N] [--steps N] [-o adapted.onnx]
"""

from __future__ import annotations

import argparse

import numpy as np

import sardonyx

FIRST = "the sea is wide and the sea is deep, and the ships that sail it never sleep. " * 20
OTHER = "a field of wheat, a field of rye; the larks go up into the sky again. " * 20
LETTERS = "".join(sorted(set(FIRST + OTHER)))
WIDTH, LENGTH = 32, 24


def weights(name: str, *shape: int, seed: int) -> str:
    """An initializer in ONNX's textual syntax."""
    values = np.random.default_rng(seed).uniform(-1, 1, shape) / np.sqrt(shape[0])
    return f"float[{','.join(map(str, shape))}] {name} = {{{', '.join(f'{value:.6f}' for value in values.ravel())}}}"


def language_model() -> sardonyx.Model:
    """One layer of causal attention and one of two products, in ONNX's textual syntax."""
    size = len(LETTERS)
    initializers = ", ".join([
        weights("letters", size, WIDTH, seed=1), weights("places", LENGTH, WIDTH, seed=2), weights("query", WIDTH, WIDTH, seed=3),
        weights("key", WIDTH, WIDTH, seed=4), weights("value", WIDTH, WIDTH, seed=5), weights("up", WIDTH, 2 * WIDTH, seed=6),
        weights("down", 2 * WIDTH, WIDTH, seed=7), weights("head", WIDTH, size, seed=8),
        f"float one = {{1.0}}, float scale = {{{WIDTH ** -0.5}}}, float far = {{-10000.0}}"])
    return sardonyx.parse(f"""
<ir_version: 10, opset_import: ["" : 21]>
model (int64[N,{LENGTH}] text) => (float[N,{LENGTH},{size}] scores) <{initializers}> {{
  embedded = Gather (letters, text)
  x = Add (embedded, places)
  q = MatMul (x, query)
  k = MatMul (x, key)
  v = MatMul (x, value)
  turned = Transpose <perm = [0, 2, 1]> (k)
  products = MatMul (q, turned)
  scaled = Mul (products, scale)
  offset = Constant <value_int = 1> ()
  lengths = Constant <value_ints = [{LENGTH}, {LENGTH}]> ()
  ones = Expand (one, lengths)
  behind = Trilu <upper = 1> (ones, offset)
  mask = Mul (behind, far)
  masked = Add (scaled, mask)
  shares = Softmax <axis = -1> (masked)
  mixed = MatMul (shares, v)
  y = Add (x, mixed)
  wide = MatMul (y, up)
  bent = Relu (wide)
  narrow = MatMul (bent, down)
  z = Add (y, narrow)
  scores = MatMul (z, head)
}}
""")


def windows(text: str) -> dict[str, np.ndarray]:
    """Pieces of the text, and the same pieces one character later."""
    codes = np.array([LETTERS.index(letter) for letter in text])
    starts = np.arange(0, len(codes) - LENGTH - 1, 3)[:, None] + np.arange(LENGTH)
    return {"text": codes[starts], "target": codes[starts + 1]}


def learn(session: sardonyx.TrainingSession, data: dict[str, np.ndarray], steps: int) -> float:
    per_epoch = -(-len(data["text"]) // 32)
    result = session.fit(data, max(1, steps // per_epoch), batch=32)
    return result.epochs[-1].training["loss"]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--rank", type=int, default=4)
    parser.add_argument("--steps", type=int, default=300)
    parser.add_argument("-o", "--output", default="adapted.onnx")
    options = parser.parse_args()
    first, other = windows(FIRST), windows(OTHER)
    names = dict(loss="softmax-cross-entropy", class_axis=2, learning_rate=3e-3, clip_norm=1.0)

    session = sardonyx.TrainingSession(sardonyx.make_trainable(language_model(), **names), seed=1)
    print(f"the first text: loss {learn(session, first, options.steps):.3f}")
    base = sardonyx.Model(session.to_bytes(inference_only=True))

    report: list[sardonyx.TrainableReport] = []
    adapted = sardonyx.make_trainable(base, lora=f"{options.rank}:*", report=report.append, **names)
    print(f"LoRA of rank {options.rank}: {report[0].trained_elements} numbers learn")
    tuning = sardonyx.TrainingSession(adapted, seed=1)
    before = tuning.measure(other, batch=64)["loss"]
    learn(tuning, other, options.steps)
    print(f"the other text: loss {before:.3f} before, {tuning.measure(other, batch=64)['loss']:.3f} after")

    tuning.save(options.output, merge_lora=True)
    merged, beside = sardonyx.Session(options.output), tuning.infer({"text": other["text"][:4]})["scores"]
    difference = np.abs(merged.run({"text": other["text"][:4]})["scores"] - beside).max()
    print(f"wrote {options.output}, merged: {len(sardonyx.Model(options.output).nodes)} nodes as before, "
          f"scores differ by {difference:.1e}")


if __name__ == "__main__":
    main()
