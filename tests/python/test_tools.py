"""`check`, `info`, `show`, and what the program says of itself."""

from __future__ import annotations

import pathlib
import re
import urllib.parse

import onnx
import pytest
from conftest import DIGITS, FINDINGS, OK, ROOT, parse_json
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
    report = parse_json(sardonyx("check", model, "--json", expect=FINDINGS))
    found = next(finding for finding in report["findings"] if finding["severity"] == "error")
    assert found["rule"] == "D-23" and found["graph"] == "graph 'g'" and found["index"] == 0
    assert found["operator"] == "Relu" and found["part"] == "attribute 'slope'" and found["message"] and found["place"]


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


def test_check_sarif(sardonyx, save):
    model = save("""<ir_version: 8, opset_import: ["" : 17]>
        g (float[2,3] x) => (float[2,3] y) { [bad one] y = Relu <slope = 1.0> (x) }""".replace("bad one", "bad"))
    log = parse_json(sardonyx("check", model, "--sarif", expect=FINDINGS))
    run = log["runs"][0]
    assert log["version"] == "2.1.0" and run["tool"]["driver"]["name"] == "sardonyx"
    result = next(item for item in run["results"] if item["ruleId"] == "D-23")
    assert result["level"] == "error" and "slope" in result["message"]["text"]
    assert run["tool"]["driver"]["rules"][result["ruleIndex"]]["id"] == "D-23"
    location = result["locations"][0]
    assert location["physicalLocation"]["artifactLocation"]["uri"].endswith("model.onnx")
    assert "Relu 'bad'" in location["logicalLocations"][0]["fullyQualifiedName"]


def require_sarif(log: dict, path: pathlib.Path) -> int:
    """What the schema of SARIF 2.1.0 asks of the properties that are written; gives the number of results."""
    assert set(log) == {"$schema", "version", "runs"} and log["version"] == "2.1.0"
    (run,) = log["runs"]
    driver = run["tool"]["driver"]
    assert driver["name"] == "sardonyx" and driver["version"]
    rules = [rule["id"] for rule in driver["rules"]]
    assert len(set(rules)) == len(rules)
    for rule in driver["rules"]:
        assert rule["shortDescription"]["text"]
        assert rule["defaultConfiguration"]["level"] in ("none", "note", "warning", "error")
    for result in run["results"]:
        assert rules[result["ruleIndex"]] == result["ruleId"]
        assert result["level"] in ("note", "warning", "error") and result["message"]["text"]
        (location,) = result["locations"]
        uri = location["physicalLocation"]["artifactLocation"]["uri"]
        assert re.fullmatch(r"(file://)?([A-Za-z0-9/._~-]|%[0-9A-F]{2})+", uri)
        assert urllib.parse.unquote(uri).removeprefix("file://") == str(path)
        assert location["logicalLocations"][0]["fullyQualifiedName"]
    return len(run["results"])


def test_sarif_of_every_rule(sardonyx, tmp_path):
    results = 0
    for number, model in enumerate(sorted((ROOT / "tests" / "check" / "models").glob("*-bad.*"))):
        file = tmp_path / f"{number} % \u00fc #.{'onnxtxt' if model.suffix == '.txt' else 'textproto'}"
        file.write_bytes(model.read_bytes())
        log = sardonyx("check", file, "--sarif", expect=None)
        assert log.returncode in (OK, FINDINGS), f"{model}: {log.stderr}"
        results += require_sarif(parse_json(log), file)
    assert results > 300


@pytest.mark.parametrize("old, new, rule, words", [
    ("float[2,4] y", "float[2,5] y", "G-20", ["'y'", "float[2,5]", "float[2,4]"]),
    ("float[2,4] y", "int64[2,4] y", "SH-17", ["'y'", "int64[2,4]"]),
    ("float[2,3] h", "float[7] h", "G-20", ["'h'"]),
    ("float[3,4] w", "float[2,4] w", "D-13", ["MatMul 'product'"]),
    ("float[3,4] w", "int64[3,4] w", "D-13", ["MatMul"]),
])
def test_check_full(sardonyx, tmp_path, old, new, rule, words):
    text = """<ir_version: 8, opset_import: ["" : 17]>
        g (float[2,3] x, float[3,4] w) => (float[2,4] y) <float[2,3] h> { h = Relu (x)  [product] y = MatMul (h, w) }"""
    file = tmp_path / "m.onnxtxt"
    file.write_text(text)
    sardonyx("check", "--full", file)
    assert old in text
    file.write_text(text.replace(old, new))
    result = sardonyx("check", "--full", file, expect=None).stdout
    line = next((line for line in result.splitlines() if f"[{rule}]" in line), "")
    assert all(word in line for word in words), result
