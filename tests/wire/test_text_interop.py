"""Additions to the textual syntax, which the onnx package takes for comments; test_forms_interop.py has the rest."""

import os
import pathlib
import subprocess

import onnx
from onnx import parser

ROOT = pathlib.Path(__file__).resolve().parents[2]
PROGRAM = os.environ.get("SARDONYX_PROGRAM", str(ROOT / "build" / "release" / "bin" / "sardonyx"))


def shown(path, *options):
    result = subprocess.run([PROGRAM, "show", str(path), *options], capture_output=True, timeout=60)
    assert result.returncode == 0, result.stderr.decode()
    return result.stdout.decode(errors="surrogateescape")


ANNOTATED = """
<ir_version: 11, opset_import: ["" : 22], doc_string: "two
lines">
g (float[2] x {doc_string: e"two\\nlines"}) => (float[2] y)
{
   y = Relu (x) {metadata_props: ["a.b": "c"], doc_string: "of a node"}
} {doc_string: "of a graph", metadata_props: ["a.b": "c"]}
"""


def test_onnx_skips_our_annotations(tmp_path):
    file = tmp_path / "model.onnxtxt"
    file.write_text(ANNOTATED)
    text = shown(file)
    assert "#@ {" in text
    model = parser.parse_model(text)
    onnx.checker.check_model(model)
    assert model.graph.node[0].op_type == "Relu"
    assert model.doc_string == "two\nlines"
