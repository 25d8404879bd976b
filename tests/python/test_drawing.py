"""Drawings of models (docs/cli.md): DOT and SVG, and the endings that say what is written."""

from __future__ import annotations

import re
import xml.etree.ElementTree as ElementTree

import numpy as np
import onnx
import pytest
from conftest import BAD_INPUT, DIGITS, OK, UNREADABLE, USAGE
from onnx import TensorProto, helper, numpy_helper

SVG = "{http://www.w3.org/2000/svg}"
HEAD = '<ir_version: 8, opset_import: ["" : 17]>'
CONTROL = f"""{HEAD}
control (float[n,4] x, bool cond) => (float[n,4] y)
{{ h = Relu (x)
  y = If (cond) <
    then_branch = t () => (float[n,4] a) {{ a = Add (h, x) }},
    else_branch = e () => (float[n,4] b) {{ b = Neg (h) }} > }}"""
TRANSFORMER = f"""{HEAD}
block (float[b,s,8] x, float[8,24] wqkv, float[8,8] wo) => (float[b,s,8] y)
{{ qkv = MatMul (x, wqkv)
  q, k, v = Split <axis = 2, num_outputs = 3> (qkv)
  kt = Transpose <perm = [0, 2, 1]> (k)
  scores = MatMul (q, kt)
  p = Softmax <axis = -1> (scores)
  o = MatMul (p, v)
  r = MatMul (o, wo)
  sum = Add (x, r)
  mean = ReduceMean <axes = [2]> (sum)
  y = Sub (sum, mean) }}""".replace(", num_outputs = 3", "")


def boxes(root) -> dict[str, tuple[float, float, float, float]]:
    """Each box by the first bold text in it."""
    found = {}
    rectangles = [r for r in root.iter(SVG + "rect") if r.get("class") in ("b", "c", "i", "u")]
    titles = [t for t in root.iter(SVG + "text") if t.get("class") == "t"]
    for r in rectangles:
        x, y, w, h = (float(r.get(k)) for k in ("x", "y", "width", "height"))
        inside = [t for t in titles if x <= float(t.get("x")) <= x + w and y <= float(t.get("y")) <= y + 30]
        found[inside[0].text] = (x, y, w, h)
    return found


def drawing(sardonyx, model, tmp_path):
    sardonyx("convert", model, tmp_path / "m.svg")
    return ElementTree.parse(tmp_path / "m.svg").getroot()


def test_a_network_is_drawn_from_top_to_bottom(sardonyx, tmp_path):
    root = drawing(sardonyx, DIGITS / "digits.onnx", tmp_path)
    found = boxes(root)
    order = ["image", "Flatten", "Softmax", "probabilities"]
    assert [found[name][1] for name in order] == sorted(found[name][1] for name in order)
    texts = [t.text for t in root.iter(SVG + "text")]
    assert "→ conv_0 float[N, 16, 16, 16]" in texts  # the shape is inferred: the file declares none
    assert "layer0.weight float[16, 1, 3, 3]" in texts
    assert len([p for p in root.iter(SVG + "path") if p.get("marker-end")]) == 15


def test_boxes_do_not_overlap(sardonyx, save, tmp_path):
    root = drawing(sardonyx, save(TRANSFORMER), tmp_path)
    rectangles = [[float(r.get(k)) for k in ("x", "y", "width", "height")] for r in root.iter(SVG + "rect")
                  if r.get("class") in ("b", "i", "u")]
    assert len(rectangles) == 14
    for i, (x, y, w, h) in enumerate(rectangles):
        for x2, y2, w2, h2 in rectangles[:i]:
            assert x + w <= x2 or x2 + w2 <= x or y + h <= y2 or y2 + h2 <= y


def test_bodies_lie_inside_their_node(sardonyx, save, tmp_path):
    found = boxes(drawing(sardonyx, save(CONTROL), tmp_path))
    x, y, w, h = found["If"]
    for name in ("Add", "Neg", "a", "b"):
        inner = found[name]
        assert x < inner[0] and inner[0] + inner[2] < x + w and y < inner[1] and inner[1] + inner[3] < y + h


def test_names_of_strangers_stay_text(sardonyx, tmp_path):
    name = '<script>&"\\n\x07\ufffe'
    node = helper.make_node("Relu", ["x"], ["y"], name=name)
    graph = helper.make_graph([node], "]]><b>", [helper.make_tensor_value_info("x", TensorProto.FLOAT, [1])],
                              [helper.make_tensor_value_info("y", TensorProto.FLOAT, [1])])
    onnx.save(helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8), tmp_path / "m.onnx")
    root = drawing(sardonyx, tmp_path / "m.onnx", tmp_path)
    assert any("<script>&\"" in (t.text or "") for t in root.iter(SVG + "text"))
    assert not list(root.iter("script"))
    dot = sardonyx("show", tmp_path / "m.onnx", "--dot").stdout
    label = re.search(r'n1 \[label="(.*)", shape', dot).group(1)
    assert '\\"' in label and "&amp;" in label and "\\\\n" in label


def test_dot_has_all_nodes_and_edges(sardonyx, save, tmp_path):
    model = save(CONTROL)
    text = sardonyx("show", model, "--dot").stdout
    assert text.startswith("digraph") and text.count("{") == text.count("}")
    assert len(re.findall(r"^ *n\d+ \[", text, re.M)) == 9
    assert text.count("subgraph cluster_") == 4
    sardonyx("show", model, "-o", tmp_path / "m.gv")
    sardonyx("convert", model, tmp_path / "m.dot")
    assert (tmp_path / "m.gv").read_text() == (tmp_path / "m.dot").read_text() == text


def test_broken_graphs_are_drawn_too(sardonyx, tmp_path):
    """A cycle, a value that nothing makes, a node that reads itself."""
    nodes = [helper.make_node("Add", ["x", "b"], ["a"]), helper.make_node("Neg", ["a"], ["b"]),
             helper.make_node("Add", ["c", "nothing"], ["c"])]
    graph = helper.make_graph(nodes, "g", [helper.make_tensor_value_info("x", TensorProto.FLOAT, [1])],
                              [helper.make_tensor_value_info("a", TensorProto.FLOAT, [1])])
    onnx.save(helper.make_model(graph, ir_version=8), tmp_path / "m.onnx")
    root = drawing(sardonyx, tmp_path / "m.onnx", tmp_path)
    assert any("nothing makes it" in (t.text or "") for t in root.iter(SVG + "text"))


def test_a_large_graph_is_drawn(sardonyx, tmp_path):
    """Links over thousands of ranks: as many lanes would be millions."""
    nodes = [helper.make_node("Relu", ["x"], ["v0"])]
    for i in range(1, 6000):
        nodes.append(helper.make_node("Add", [f"v{i - 1}", "x" if i % 2 else f"v{i // 2}"], [f"v{i}"]))
    graph = helper.make_graph(nodes, "g", [helper.make_tensor_value_info("x", TensorProto.FLOAT, [1])],
                              [helper.make_tensor_value_info("v5999", TensorProto.FLOAT, [1])])
    onnx.save(helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8), tmp_path / "m.onnx")
    root = drawing(sardonyx, tmp_path / "m.onnx", tmp_path)
    assert len(list(root.iter(SVG + "rect"))) == 6004
    assert (tmp_path / "m.svg").stat().st_size < 12_000_000


@pytest.mark.parametrize("name", ["m.svgz", "m.txt", "m.pkl", "m.onnx.bak", "folder.d/m.tflite"])
def test_unknown_endings_are_refused(sardonyx, affine, tmp_path, name):
    (tmp_path / "folder.d").mkdir()
    commands = [["convert", affine, tmp_path / name], ["convert", affine, tmp_path / name, "--opset", "21"],
                ["edit", affine, tmp_path / name, "--producer", "p"], ["rename", affine, tmp_path / name, "--prefix", "p"],
                ["extract", affine, tmp_path / name, "--output", "y"], ["infer", affine, "-o", tmp_path / name],
                ["merge", affine, affine, tmp_path / name, "--map", "y=x", "--prefix2", "q"]]
    for command in commands:
        sardonyx.fails(USAGE, *command, mentions=[".onnx", ".textproto", ".svg"])
    sardonyx.fails(USAGE, "show", affine, "-o", tmp_path / "m.onnx", mentions=[".svg", ".onnxtxt"])
    assert not (tmp_path / name).exists()


def test_what_stays_possible(sardonyx, affine, tmp_path):
    for name in ("m.ONNX", "m.pb", "no_ending"):
        sardonyx("convert", affine, tmp_path / name)
        onnx.load(tmp_path / name, format="protobuf")
    (tmp_path / "odd.bin").write_bytes(affine.read_bytes())
    sardonyx("convert", tmp_path / "odd.bin", tmp_path / "odd.bin")  # the file itself
    assert sardonyx("convert", affine, "/dev/null")
    sardonyx.fails(BAD_INPUT, "convert", affine, tmp_path / "m.svg", "--external-data", "w.bin", mentions=["drawing"])
    sardonyx("infer", affine, "-o", tmp_path / "typed.json")
    assert (tmp_path / "typed.json").read_text().startswith("{")
    sardonyx.fails(UNREADABLE, "show", tmp_path / "absent.onnx", "--svg")
