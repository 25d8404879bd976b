"""The textual syntax against the onnx package: what one prints, the other reads, to the same model."""

import functools
import os
import pathlib
import subprocess

import onnx
import pytest
from onnx import parser, printer

ROOT = pathlib.Path(__file__).resolve().parents[2]
PROGRAM = os.environ.get("SARDONYX_PROGRAM", str(ROOT / "build" / "release" / "bin" / "sardonyx"))
DATA = pathlib.Path(onnx.__file__).parent / "backend" / "test" / "data"


@functools.cache
def models():
    """Every fifth of the models that the package carries."""
    return sorted(DATA.rglob("*.onnx"))[::5]


def shown(path, *options):
    result = subprocess.run([PROGRAM, "show", str(path), *options], capture_output=True, timeout=60)
    assert result.returncode == 0, result.stderr.decode()
    return result.stdout.decode(errors="surrogateescape")


def plain(model):
    """Without header fields that say nothing."""
    for field in ("producer_name", "producer_version", "domain", "model_version", "doc_string"):
        if model.HasField(field) and not getattr(model, field):
            model.ClearField(field)
    return model.SerializeToString(deterministic=True)


def test_there_are_models():
    assert len(models()) > 20


@pytest.mark.parametrize("path", models(), ids=lambda path: path.parent.name + "/" + path.name)
def test_onnx_reads_what_we_print(path):
    theirs = parser.parse_model(printer.to_text(onnx.load(path)))
    ours = parser.parse_model(shown(path, "--bare"))
    theirs.ClearField("doc_string")
    theirs.ClearField("metadata_props")
    assert plain(ours) == plain(theirs)


@pytest.mark.parametrize("path", models(), ids=lambda path: path.parent.name + "/" + path.name)
def test_we_read_what_onnx_prints(path, tmp_path):
    text = printer.to_text(onnx.load(path))
    file = tmp_path / "model.onnxtxt"
    file.write_text(text, errors="surrogateescape")
    assert plain(parser.parse_model(shown(file))) == plain(parser.parse_model(text))


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
