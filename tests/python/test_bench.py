"""The benchmark, end to end on two small models, and its comparison of outputs."""

from __future__ import annotations

import json
import platform
import subprocess
import sys

import numpy as np
import onnx
import pytest
from conftest import DIGITS, ROOT


def test_it_compares_times_and_draws(sardonyx, tmp_path):
    command = [sys.executable, ROOT / "bench" / "run.py", "--program", sardonyx.path, "--models", "functions,detector",
               "--threads", "1", "--seconds", "0.1", "--loads", "2", "--no-openvino", "--json", tmp_path / "rows.json",
               "--image", tmp_path / "ratios.png", "--models-folder", tmp_path / "models"]
    result = subprocess.run(command, capture_output=True, text=True, timeout=300)
    assert result.returncode == 0, result.stdout + result.stderr
    rows = json.loads((tmp_path / "rows.json").read_text())
    assert [row["model"] for row in rows] == ["functions", "detector"]
    for row in rows:
        assert row["threads"] == 1 and row["same_outputs"]
        assert row["ratio"] == pytest.approx(row["onnxruntime_ms"] / row["sardonyx_ms"])
        assert row["best_peer"] == "onnxruntime" and row["best_ratio"] == row["ratio"]
        for engine in ("sardonyx", "onnxruntime"):
            assert row[f"{engine}_first_ms"] > row[f"{engine}_create_ms"] > 0 and row[f"{engine}_peak_mb"] > 0
    assert "micro models" in result.stdout and "commit " in result.stdout and "ONNX Runtime 1" in result.stdout
    assert (tmp_path / "ratios.png").read_bytes().startswith(b"\x89PNG")


@pytest.mark.parametrize("script, choice", [("operators", ["--cases", "Det,Trilu"]), ("estimators", ["--estimators", "PCA", "--rows", "7"])])
def test_single_operators_and_estimators(sardonyx, tmp_path, script, choice):
    command = [sys.executable, ROOT / "bench" / f"{script}.py", "--program", sardonyx.path, *choice, "--seconds", "0.05",
               "--json", tmp_path / "rows.json", "--folder", tmp_path]
    result = subprocess.run(command, capture_output=True, text=True, timeout=300)
    assert result.returncode == 0, result.stdout + result.stderr
    rows = json.loads((tmp_path / "rows.json").read_text())
    assert rows and all(row["max_diff_over_rms"] < 1e-3 and row["ratio"] > 0 for row in rows)


def test_first_answers(sardonyx, tmp_path):
    """Of processes that do nothing else, one of them with packed weights."""
    command = [sys.executable, ROOT / "bench" / "first_answers.py", "--program", sardonyx.path, "functions", "detector",
               "--threads", "1,2", "--turns", "2", "--runs", "2", "--json", tmp_path / "rows.json", "--models-folder", tmp_path]
    result = subprocess.run(command, capture_output=True, text=True, timeout=300)
    assert result.returncode == 0, result.stdout + result.stderr
    rows = json.loads((tmp_path / "rows.json").read_text())
    assert [(row["model"], row["threads"]) for row in rows] == [(name, n) for name in ("functions", "detector") for n in (1, 2)]
    for row in rows:
        for way in ("plain", "packed", "onnxruntime"):
            assert row[f"{way}_first"] > row[f"{way}_create"] > 0 and row[f"{way}_steady"] > 0
        assert row["beside_peer"] == pytest.approx(row["plain_first"] / row["onnxruntime_first"])
        assert row["packed_beside_steady"] == pytest.approx((row["packed_first"] - row["read_ms"]) / row["packed_steady"])
    assert "of ONNX Runtime's: " in result.stdout
    wrong = subprocess.run([*command[:2], "nothing"], capture_output=True, text=True)
    assert wrong.returncode == 1 and "no model 'nothing'" in wrong.stderr


def test_kernels_need_no_package():
    """`./dev bench --kernels` runs in the system's Python."""
    code = "import sys; sys.modules['numpy'] = None; sys.path.insert(0, sys.argv[1]); import kernels"
    subprocess.run([sys.executable, "-c", code, ROOT / "bench"], check=True)


# With a mask, with places, with both.
@pytest.mark.parametrize("name", ["gpt2", "llama", "llama_spelled"])
def test_a_decoders_steps_take_what_the_one_before_gave(driven, tmp_path, name):
    import run
    import values
    import zoo

    entry = zoo.ENTRIES[name]
    built = entry.build(**entry.small)
    built.save(tmp_path / "model.onnx")
    np.savez(tmp_path / "inputs.npz", **built.inputs)
    past = next(value for key, value in built.inputs.items() if key.startswith("past")).shape[2]
    engines = {engine: run.Guest(driven, engine) for engine in ("sardonyx", "onnxruntime")}
    carried = sum(key.startswith("past") for key in built.inputs)
    for engine in engines.values():
        engine.ask("load", tmp_path / "model.onnx", 1)
        engine.ask("inputs", tmp_path / "inputs.npz")
        assert engine.ask("steps", 4) == {"carried": carried}
    # The fifth step is the first one again, whatever was run before; so is a run that is asked for.
    for runs, longer in ((1, 1), (3, 3), (4, 4), (5, 1), (6, 2), (1, 1)):
        for engine in engines.values():
            engine.ask("run", runs)
        assert run.compare(engines, tmp_path, 1 + carried, entry) <= entry.tolerance
        assert values.read(tmp_path / "sardonyx", 1 + carried)[-1].shape[2] == past + longer
    for engine in engines.values():  # runs as they were
        engine.ask("inputs", tmp_path / "inputs.npz")
        engine.ask("run", 2)
    assert values.read(tmp_path / "sardonyx", 1 + carried)[-1].shape[2] == past + 1


@pytest.fixture
def driven(sardonyx):
    """bench_driver with Sardonyx and ONNX Runtime."""
    import run

    with run.Process([*run.driver(sardonyx.path), *run.engine_words(["sardonyx", "onnxruntime"])]) as process:
        yield process


# Strings, maps in sequences, integers, sizes that only the data decide.
@pytest.mark.parametrize("name", ["strings", "texts", "forest", "classic", "pieces", "ssd", "gpt2_f16", "optional"])
def test_both_engines_give_the_same_through_their_libraries(driven, tmp_path, name):
    import run
    import zoo

    entry = zoo.ENTRIES[name]
    built = entry.build(**entry.small)
    built.save(tmp_path / "model.onnx")
    np.savez(tmp_path / "inputs.npz", **built.inputs)
    engines = {engine: run.Guest(driven, engine) for engine in ("sardonyx", "onnxruntime")}
    for engine in engines.values():
        assert engine.ask("load", tmp_path / "model.onnx", 1)["create_ms"] > 0
        engine.ask("inputs", tmp_path / "inputs.npz")
        assert len(engine.ask("run", 3)["ms"]) == 3  # the later ones into the outputs of the first, where that goes
    outputs = len(onnx.load(tmp_path / "model.onnx").graph.output)
    assert run.compare(engines, tmp_path, outputs, None) <= entry.tolerance
    times = run.take_turns(driven, 0.01)
    assert set(times) == set(engines) and all(len(found) >= 5 for found in times.values())
    assert driven.ask("memory")["peak_mb"] > driven.ask("memory")["base_mb"] > 0


def test_outputs_whose_sizes_change_are_made_anew(driven, tmp_path, save):
    import run

    model = save("""<ir_version: 8, opset_import: ["" : 17]> g (float[n] x) => (int64[1, m] y) { y = NonZero (x) }""")
    for values in ([1, 0, 2], [1, 1, 1], [0, 0, 0]):
        np.savez(tmp_path / "x.npz", x=np.array(values, np.float32))
        for name in ("sardonyx", "onnxruntime"):
            engine = run.Guest(driven, name)
            engine.ask("load", model, 1)
            engine.ask("inputs", tmp_path / "x.npz")
            engine.ask("run", 2)
            engine.ask("outputs", tmp_path / name)
            np.testing.assert_array_equal(np.load(tmp_path / name / "output_0.npy"), [np.flatnonzero(values)])


@pytest.mark.parametrize("command, mentions", [
    ("@nobody run 1", "nobody"), ("run 1", "no model"), ("@onnxruntime run 1", "no model"), ("load missing.onnx 1", "missing.onnx"),
    ("@onnxruntime load missing.onnx 1", "missing.onnx"), ("load", "expected"), ("load x -1", "number"), ("dance", "unknown command 'dance'"),
    ("", "unknown command"), ("@onnxruntime", "unknown command"), ("@", "no engine ''"), ("turns soon", "no number of seconds"), ("turns nan", "seconds"),
    ("@onnxruntime inputs missing.npz", "no model"), ("inputs missing.npz", "no model"),
])
def test_the_driver_answers_what_it_can_not_do(driven, command, mentions):
    import run

    with pytest.raises(run.EngineError, match=mentions):
        driven.ask(command)
    assert driven.ask("version")["version"].count(".") == 2  # and goes on


def test_a_driver_without_its_library_says_so(sardonyx):
    import run

    for word in ("onnxruntime=/missing.so", "openvino=/missing.so", "nobody"):
        result = subprocess.run([*run.driver(sardonyx.path), word], input="", capture_output=True, text=True, timeout=60)
        assert result.returncode == 1 and result.stderr.startswith("bench_driver: ")


def compute_the_same(sardonyx, tmp_path, peer: str) -> None:
    import run

    engines = {}
    np.savez(tmp_path / "x.npz", image=np.random.default_rng(0).random((2, 1, 16, 16), np.float32))
    with run.Process([*run.driver(sardonyx.path), *run.engine_words(["sardonyx", peer])]) as process:
        for name in ("sardonyx", peer):
            engines[name] = run.Guest(process, name)
            engines[name].ask("load", DIGITS / "digits.onnx", 1)
            engines[name].ask("inputs", tmp_path / "x.npz")
            engines[name].ask("run", 2)
        assert run.compare(engines, tmp_path, 1, None, peer) < 1e-4


def test_openvino_computes_the_same(sardonyx, tmp_path):
    import run

    if not run.library("openvino"):
        pytest.skip("build/bench-peers is not there: `./dev bench` fetches OpenVINO")
    compute_the_same(sardonyx, tmp_path, "openvino")


def test_a_peer_that_finds_avx2_alone(sardonyx, tmp_path, monkeypatch):
    """It asks the driver, not the processor, and computes the same."""
    import avx2
    import run

    if platform.machine() != "x86_64":
        pytest.skip("only processors of x86-64 have these levels")
    monkeypatch.setattr(run, "ENVIRONMENT", dict(run.ENVIRONMENT))
    monkeypatch.setattr(run, "PEERS", tmp_path / "bench-peers")
    monkeypatch.setattr(run, "chosen_processor", "")
    asks = avx2.places_of_cpuid(run.library("onnxruntime"))
    run.pretend("avx2")
    copy = run.library("onnxruntime")
    assert asks and copy.is_relative_to(tmp_path) and avx2.places_of_cpuid(copy) == []
    compute_the_same(sardonyx, tmp_path, "onnxruntime")


def row(model: str, threads: int, ratio: float, best: float, **more) -> dict:
    return {"model": model, "threads": threads, "gflop": 0, "ratio": ratio, "best_ratio": best, "sardonyx_ms": 1.0,
            "onnxruntime_ms": ratio, "baseline": "", **more}


def test_means_are_those_of_each_kind():
    import report
    import zoo

    rows = [row("resnet50", 1, 2.0, 1.0), row("bert", 1, 8.0, 4.0), row("bert_bf16", 1, 3.0, 3.0, baseline="bert"),
            row("forest", 1, 5.0, 5.0), row("tiny200", 1, 9.0, 0.5), row("resnet50", 2, 1.5, 1.5),
            {"model": "vgg19", "threads": 1, "gflop": 0, "error": "no"}]
    lines = report.summary(rows, zoo.kind).splitlines()
    assert lines[2:] == [
        "| networks in float32 | 1 | 2 | 4.00 | 2.00 (resnet50) | 8.00 (bert) | 2.00 | 1.00 (resnet50) |",
        "| networks in float32 | 2 | 1 | 1.50 | 1.50 (resnet50) | 1.50 (resnet50) | 1.50 | 1.50 (resnet50) |",
        "| networks in reduced precision | 1 | 1 | 3.00 | 3.00 (bert_bf16) | 3.00 (bert_bf16) | 3.00 | 3.00 (bert_bf16) |",
        "| classic models | 1 | 1 | 5.00 | 5.00 (forest) | 5.00 (forest) | 5.00 | 5.00 (forest) |",
        "| micro models | 1 | 1 | 9.00 | 9.00 (tiny200) | 9.00 (tiny200) | 0.50 | 0.50 (tiny200) |"]
    table = report.table(rows).splitlines()
    assert "bert_bf16 (peers: bert)" in table[4] and "OpenVINO" not in table[0] and "failed: no" in table[-1]
    with_openvino = report.table([*rows, row("lstm", 1, 2, 1.5, openvino_ms=1.5, best_peer="openvino"),
                                  row("loop", 1, 2, 2, openvino_error="can't", best_peer="onnxruntime")]).splitlines()
    assert all(line.count("|") == with_openvino[0].count("|") for line in with_openvino)
    differing = report.table([row("lstm", 1, 2, 1.5, openvino_ms=1.5, best_peer="openvino", openvino_same_outputs=False,
                                  openvino_diff_over_rms=0.26, max_diff_over_rms=0.5, outputs=3, outputs_left_out=1)])
    assert "| 1.5 (differs: 0.26) | OpenVINO |" in differing and "5.0e-01 of 2 of 3 outputs" in differing
    assert "| 1.5 | OpenVINO | 1.50 |" in with_openvino[-2] and "| fails | ORT | 2.00 |" in with_openvino[-1]


def test_every_model_of_the_zoo_has_a_kind():
    import zoo

    assert {zoo.kind(name) for name in zoo.ENTRIES} == set(zoo.KINDS)
    assert [zoo.kind(name) for name in ("lstm", "gru_tagger", "voice_activity", "llama_int4", "xgboost", "scan")] == \
        ["float32", "float32", "float32", "reduced", "classic", "micro"]


def test_tables_say_what_made_them():
    import report

    text = report.provenance({"gflops_1": 100, "gbps_1": 10}, {"sardonyx": "0.1.0", "onnxruntime": "1.2.3", "openvino": "4.5.6"})
    assert text.startswith("commit ") and "with ONNX Runtime 1.2.3 and OpenVINO 4.5.6, on " in text and "100 GFLOP/s" in text


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
