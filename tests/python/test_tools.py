"""`check`, `info`, `show`, and what the program says of itself."""

from __future__ import annotations

import re

import onnx
import pytest
from conftest import DIGITS, FINDINGS, parse_json
from onnx import parser


def test_version(sardonyx):
    assert re.search(r"\d+\.\d+\.\d+", sardonyx("--version").stdout)


def test_help_names_the_commands(sardonyx):
    text = sardonyx("--help").stdout
    for command in ("run", "check", "info", "show", "bench"):
        assert command in text
    assert "--input" in sardonyx("run", "--help").stdout


def test_check_accepts(sardonyx):
    sardonyx("check", DIGITS / "digits.onnx")


def test_check_collects_all_it_finds(sardonyx, save):
    model = save("""<ir_version: 8, opset_import: ["" : 17]>
        g (float[2,3] x) => (float[2,3] y, float[2,3] z)
        { [first] y = Relu <slope = 1.0> (x)
          [second] z = Softmax <axis = 5> (absent) }""")
    result = sardonyx("check", model, expect=FINDINGS)
    text = result.stdout + result.stderr
    assert "slope" in text and "absent" in text


def test_check_json(sardonyx, save):
    model = save("""<ir_version: 8, opset_import: ["" : 17]>
        g (float[2,3] x) => (float[2,3] y) { y = Relu <slope = 1.0> (x) }""")
    assert "slope" in str(parse_json(sardonyx("check", model, "--json", expect=FINDINGS)))


def test_info(sardonyx):
    text = sardonyx("info", DIGITS / "digits.onnx").stdout
    for word in ("image", "probabilities", "Conv", "MaxPool", "17"):
        assert word in text


def test_info_counts_parameters(sardonyx):
    model = onnx.load(DIGITS / "digits.onnx")
    count = 0
    for tensor in model.graph.initializer:
        size = 1
        for dim in tensor.dims:
            size *= dim
        count += size
    found = parse_json(sardonyx("info", DIGITS / "digits.onnx", "--json"))
    assert str(count) in str(found)


@pytest.mark.parametrize("name", ["loop", "functions"])
def test_show_can_be_read_back(sardonyx, tmp_path, name):
    import zoo

    built = zoo.MODELS[name]()
    onnx.save(built.model, tmp_path / "m.onnx")
    shown = sardonyx("show", tmp_path / "m.onnx").stdout
    again = parser.parse_model(shown)
    assert [node.op_type for node in again.graph.node] == [node.op_type for node in built.model.graph.node]
    assert len(again.functions) == len(built.model.functions)
