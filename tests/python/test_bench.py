"""The benchmark, end to end on two small models, and its comparison of outputs."""

from __future__ import annotations

import json
import subprocess
import sys

import numpy as np
import pytest
from conftest import ROOT


def test_it_compares_times_and_draws(sardonyx, tmp_path):
    command = [sys.executable, ROOT / "bench" / "run.py", "--program", sardonyx.path, "--models", "functions,detector",
               "--threads", "1", "--seconds", "0.1", "--loads", "2", "--json", tmp_path / "rows.json",
               "--picture", tmp_path / "ratios.png", "--models-folder", tmp_path / "models"]
    result = subprocess.run(command, capture_output=True, text=True, timeout=300)
    assert result.returncode == 0, result.stdout + result.stderr
    rows = json.loads((tmp_path / "rows.json").read_text())
    assert [row["model"] for row in rows] == ["functions", "detector"]
    for row in rows:
        assert row["threads"] == 1 and row["same_outputs"]
        assert row["ratio"] == pytest.approx(row["onnxruntime_ms"] / row["sardonyx_ms"])
        assert min(row["sardonyx_ms"], row["sardonyx_create_ms"], row["sardonyx_peak_mb"]) > 0
    assert (tmp_path / "ratios.png").read_bytes().startswith(b"\x89PNG")


@pytest.mark.parametrize("ours, theirs, want", [
    (np.float32([1, 1]), np.float32([1, 1]), 0),
    (np.float32([1, 3]), np.float32([1, 1]), 2),
    (np.float32([1, np.nan]), np.float32([1, 1]), np.inf),
    (np.float32([[1, 1]]), np.float32([1, 1]), np.inf),
    (np.float64([1, 1]), np.float32([1, 1]), np.inf),
    (np.int64([1, 2]), np.int64([1, 2]), 0),
    (np.int64([1, 2]), np.int64([1, 3]), np.inf),
])
def test_difference(ours, theirs, want):
    import values

    assert values.difference(ours, theirs) == want


def test_layers_outside_the_range_are_refused(tmp_path, monkeypatch):
    import build_models
    import zoo

    def too_loud():
        net = zoo.Net("loud")
        return net.finish({net.gemm(net.input("x", net.normal(1, 4), [1, 4]), 4, target=50.0): [1, 4]})

    monkeypatch.setitem(zoo.MODELS, "loud", too_loud)
    with pytest.raises(SystemExit, match="gemm"):
        build_models.build("loud", tmp_path, "stamp")
    assert not (tmp_path / "loud.onnx").exists()
