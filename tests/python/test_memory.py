"""Memory over many runs: what the first ones take is all that is ever taken."""

from __future__ import annotations

import numpy as np
import pytest
import run
import zoo

SLACK = 1.5  # MB; the allocator's own pages


@pytest.fixture
def engine(sardonyx):
    with run.Engine([sardonyx.path, "bench", "--serve"]) as child:
        yield child


def give(engine, folder, feeds: dict[str, np.ndarray]) -> None:
    np.savez(folder / "inputs.npz", **feeds)
    engine.ask("inputs", folder / "inputs.npz")


def peak(engine) -> float:
    return engine.ask("memory")["peak_mb"]


@pytest.mark.parametrize("name", ["functions", "loop", "optional", "strings", "classic"])
def test_ten_thousand_runs_leak_nothing(engine, tmp_path, name):
    entry = zoo.ENTRIES[name]
    built = entry.build(**dict(entry.small, **({"trips": 3} if name == "loop" else {})))
    built.save(tmp_path / "model.onnx")
    engine.ask("load", tmp_path / "model.onnx", 1)
    give(engine, tmp_path, built.inputs)
    engine.ask("run", 500)
    before = peak(engine)
    engine.ask("run", 9500)
    assert peak(engine) - before < SLACK


@pytest.mark.parametrize("threads", [1, 2])
def test_memory_is_flat_over_changing_shapes(engine, tmp_path, threads):
    built = zoo.ENTRIES["sentence"].build(**dict(zoo.ENTRIES["sentence"].small, positions=256))
    built.save(tmp_path / "model.onnx")
    engine.ask("load", tmp_path / "model.onnx", threads)
    random = np.random.default_rng(1)

    def round_of_shapes(lengths) -> None:
        for length in lengths:
            batch = int(random.integers(1, 5))
            give(engine, tmp_path, {"input_ids": random.integers(0, 100, (batch, length)),
                                    "attention_mask": np.ones((batch, length), np.int64)})
            engine.ask("run", 2)

    round_of_shapes([256, *range(250, 0, -25)])
    give(engine, tmp_path, {"input_ids": np.ones((4, 256), np.int64), "attention_mask": np.ones((4, 256), np.int64)})
    engine.ask("run", 2)
    before = peak(engine)
    for _ in range(6):
        round_of_shapes(random.integers(1, 257, 25))
    assert peak(engine) - before < 2 * SLACK
