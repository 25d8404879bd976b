#!/usr/bin/env python3
"""A recommender: what someone thinks of something is the product of two learned vectors, and two biases.

  recommender.py [--users N] [--items N] [--epochs N]
"""

from __future__ import annotations

import argparse

import numpy as np

import sardonyx

WIDTH = 8


def ratings(users: int, items: int, seed: int = 0) -> tuple[dict[str, np.ndarray], np.ndarray]:
    """Ratings by tastes that the model does not see: a third of all pairs, and what all would be."""
    rng = np.random.default_rng(seed)
    tastes, kinds = rng.normal(size=(users, 3)), rng.normal(size=(items, 3))
    whole = 3 + tastes @ kinds.T / 2 + rng.normal(0, 0.5, items)
    known = rng.random((users, items)) < 1 / 3
    user, item = np.nonzero(known)
    noisy = (whole + rng.normal(0, 0.1, whole.shape))[known].astype(np.float32)
    return {"user": user, "item": item, "target": noisy[:, None]}, whole


def model_of(users: int, items: int) -> sardonyx.Model:
    def table(name: str, rows: int, columns: int) -> str:
        values = np.random.default_rng(len(name)).normal(0, 0.1, rows * columns)
        return f"float[{rows},{columns}] {name} = {{{', '.join(f'{value:.5f}' for value in values)}}}"

    return sardonyx.parse(f"""
<ir_version: 10, opset_import: ["" : 21]>
recommender (int64[N] user, int64[N] item) => (float[N,1] rating)
<{table("users", users, WIDTH)}, {table("items", items, WIDTH)}, {table("user_bias", users, 1)}, {table("item_bias", items, 1)},
 float[1] usual = {{3.0}}, int64[1] last = {{1}}>
{{
  u = Gather (users, user)
  i = Gather (items, item)
  products = Mul (u, i)
  product = ReduceSum (products, last)
  ub = Gather (user_bias, user)
  ib = Gather (item_bias, item)
  biases = Add (ub, ib)
  raised = Add (biases, usual)
  rating = Add (product, raised)
}}
""")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--users", type=int, default=120)
    parser.add_argument("--items", type=int, default=80)
    parser.add_argument("--epochs", type=int, default=60)
    options = parser.parse_args()

    data, whole = ratings(options.users, options.items)
    model = sardonyx.make_trainable(model_of(options.users, options.items), loss="mse", optimizer="adam", learning_rate=0.02,
                                    weight_decay=1e-4)
    session = sardonyx.TrainingSession(model, seed=1)
    result = session.fit(data, options.epochs, batch=128)
    print(f"{len(data['user'])} ratings: root of the mean square error {result.epochs[-1].training['loss'] ** 0.5:.3f}")

    user, item = np.divmod(np.arange(whole.size), options.items)
    guessed = session.infer({"user": user, "item": item})["rating"].reshape(whole.shape)
    unseen = np.ones(whole.shape, bool)
    unseen[data["user"], data["item"]] = False
    error = np.sqrt(np.mean((guessed - whole)[unseen] ** 2))
    print(f"what nobody has rated: {error:.3f}; always guessing the mean: {whole[unseen].std():.3f}")
    best = np.argsort(np.where(unseen[0], -guessed[0], np.inf))[:3]
    print("for user 0: " + ", ".join(f"item {i} ({guessed[0, i]:.1f}, would rate {whole[0, i]:.1f})" for i in best))


if __name__ == "__main__":
    main()
