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
               "--image", tmp_path / "ratios.png", "--models-folder", tmp_path / "models"]
    result = subprocess.run(command, capture_output=True, text=True, timeout=300)
    assert result.returncode == 0, result.stdout + result.stderr
    rows = json.loads((tmp_path / "rows.json").read_text())
    assert [row["model"] for row in rows] == ["functions", "detector"]
    for row in rows:
        assert row["threads"] == 1 and row["same_outputs"]
        assert row["ratio"] == pytest.approx(row["onnxruntime_ms"] / row["sardonyx_ms"])
        assert min(row["sardonyx_ms"], row["sardonyx_create_ms"], row["sardonyx_peak_mb"]) > 0
    assert (tmp_path / "ratios.png").read_bytes().startswith(b"\x89PNG")


@pytest.mark.parametrize("script, choice", [("operators", ["--cases", "Det,Trilu"]), ("estimators", ["--estimators", "PCA", "--rows", "7"])])
def test_single_operators_and_estimators(sardonyx, tmp_path, script, choice):
    command = [sys.executable, ROOT / "bench" / f"{script}.py", "--program", sardonyx.path, *choice, "--seconds", "0.05",
               "--json", tmp_path / "rows.json", "--folder", tmp_path]
    result = subprocess.run(command, capture_output=True, text=True, timeout=300)
    assert result.returncode == 0, result.stdout + result.stderr
    rows = json.loads((tmp_path / "rows.json").read_text())
    assert rows and all(row["max_diff_over_rms"] < 1e-3 and row["ratio"] > 0 for row in rows)


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


def test_kernels_are_held_against_their_bound():
    import kernels

    machine = {"gflops": 200.0, "levels": [{"name": "L2", "bytes": 2**21, "gbps": 100.0}, {"name": "memory", "gbps": 10.0}]}
    product = {"name": "matmul 128x768x768", "operations": 1.5e8, "bytes": 3e6, "ours_us": 1000, "theirs_us": 900, "ratio": 0.9}
    kernels.judge(product, machine, {"matmul": "why"})
    assert product["bound"] == "compute" and product["share"] == pytest.approx(0.75)
    assert product["missed"] and product["reason"] == "why"
    row = {"name": "layer norm 1x768", "operations": 0, "bytes": 6144, "ours_us": 0.07, "theirs_us": 0.1, "ratio": 1.4}
    kernels.judge(row, machine, {"layer norm": "why"})
    assert row["bound"] == "L2" and row["share"] == pytest.approx(6144 / 100e3 / 0.07)
    assert not row["missed"] and row["reason"] == ""
    exponentials = {"name": "exp 8192", "operations": 0, "bytes": 65536, "ours_us": 4, "theirs_us": 3, "ratio": 0.75}
    kernels.judge(exponentials, machine, {})
    assert exponentials["nanoseconds"] == pytest.approx(4000 / 8192) and exponentials["missed"]
    assert kernels.table([product, row, exponentials]).count("\n") == 4


def test_a_table_goes_between_its_markers(tmp_path):
    import report

    page = tmp_path / "page.md"
    page.write_text("before\n<!-- a:begin -->\nold\n<!-- a:end -->\nafter\n")
    report.put_between(page, "<!-- a:begin -->", "<!-- a:end -->", "new")
    assert page.read_text() == "before\n<!-- a:begin -->\nnew\n<!-- a:end -->\nafter\n"
    report.put_between(page, "<!-- b:begin -->", "<!-- b:end -->", "more")
    assert page.read_text().endswith("after\n\n<!-- b:begin -->\nmore\n<!-- b:end -->\n")


@pytest.mark.parametrize("measured, at_most, met", [(0.1, True, True), (0.2, True, False), (0.1, False, False)])
def test_rows_of_the_engine_know_their_target(measured, at_most, met):
    import engine

    row = engine.Row("what", measured, "{:.2f}", 0.15, at_most)
    assert row.met == met and row.cells()[3] == ("yes" if met else "no")
