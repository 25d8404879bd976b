"""`--library`: operators from outside on the command line."""

from __future__ import annotations

import json
import pathlib

import numpy as np
import pytest
from conftest import INVALID_MODEL, ROOT, UNREADABLE, UNSUPPORTED

MODEL = ROOT / "examples" / "custom_operators" / "model.onnxtxt"


@pytest.fixture(scope="module")
def library(sardonyx) -> pathlib.Path:
    built = pathlib.Path(sardonyx.path).parent.parent / "examples/custom_operators/example_operators.so"
    assert built.exists(), "the examples are not built: ./dev build"
    return built


def test_run(sardonyx, library, tmp_path):
    x = np.array([1, 2, 3, -10, -20], np.float32)
    for more in ([], ["--reference"]):
        [y] = sardonyx.outputs(MODEL, {"x": x}, tmp_path, "--library", library, *more)
        np.testing.assert_array_equal(y, np.array([12, -5, -27], np.float32))


def test_explain_shows_the_kernels(sardonyx, library):
    text = sardonyx("explain", MODEL, "--library", library).stdout
    assert "example.window_sum" in text and "example.leaky" in text


def test_infer_and_check(sardonyx, library):
    report = json.loads(sardonyx("infer", MODEL, "--json", "--library", library).stdout)
    types = {value["name"]: value["type"] for value in report["values"]}
    assert types["sums"] == "float[3]" and not report["findings"]
    assert "WindowSum" in sardonyx("check", MODEL).stdout + sardonyx("check", MODEL).stderr
    assert "nothing is known" not in sardonyx("check", MODEL, "--full", "--library", library).stdout


def test_check_holds_nodes_against_the_signature(sardonyx, library, tmp_path):
    broken = tmp_path / "broken.onnxtxt"
    broken.write_text(MODEL.read_text().replace("<width = 3>", ""))
    assert "width" in sardonyx("check", broken, "--library", library, expect=1).stdout


def test_info(sardonyx, library):
    with_it = json.loads(sardonyx("info", MODEL, "--json", "--library", library).stdout)
    without = json.loads(sardonyx("info", MODEL, "--json").stdout)
    supported = lambda info: {op["name"]: op["supported"] for op in info["operators"]}  # noqa: E731
    assert all(supported(with_it).values())
    assert supported(without) == {"Add": True, "com.example.WindowSum": False, "com.example.Leaky": False}
    # The sums' size comes from the library's own inference: 5 additions, 3 sums, 3 results of Leaky.
    assert with_it["cost"]["unknown_nodes"] == 0 and with_it["cost"]["flops"] == 11
    assert without["cost"]["unknown_nodes"] == 2 and without["cost"]["flops"] == 5
    assert "without 2 nodes whose operator or sizes are not known" in sardonyx("info", MODEL).stdout


def test_convert_carries_up_what_stands_around(sardonyx, library, tmp_path):
    old = tmp_path / "old.onnxtxt"
    old.write_text(MODEL.read_text().replace('"" : 21', '"" : 6').replace("Add (x, x)", "Add <axis = 0, broadcast = 1> (x, x)"))
    new = tmp_path / "new.onnx"
    sardonyx("convert", old, new, "--opset", "21", "--library", library)
    shown = sardonyx("show", new).stdout
    assert "WindowSum <width = 3>" in shown and "broadcast" not in shown
    x = np.array([1, 2, 3, -10, -20], np.float32)
    [y] = sardonyx.outputs(new, {"x": x}, tmp_path, "--library", library)
    np.testing.assert_array_equal(y, np.array([12, -5, -27], np.float32))
    broken = tmp_path / "broken.onnxtxt"
    broken.write_text(MODEL.read_text().replace("<width = 3>", ""))
    assert "width" in sardonyx("convert", broken, new, "--opset", "22", "--library", library, expect=INVALID_MODEL).stderr


def test_without_the_library(sardonyx):
    sardonyx.fails(UNSUPPORTED, "run", MODEL, "--input", "x=ones", mentions=["com.example", "WindowSum", "library"])


def test_no_library(sardonyx, tmp_path):
    sardonyx.fails(UNREADABLE, "run", MODEL, "--input", "x=ones", "--library", tmp_path / "none.so", mentions=["none.so"])
    text = tmp_path / "text.so"
    text.write_text("no library")
    sardonyx.fails(UNREADABLE, "run", MODEL, "--input", "x=ones", "--library", text, mentions=["cannot be loaded"])
