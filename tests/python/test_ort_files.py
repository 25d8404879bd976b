"""Models in ONNX Runtime's own format (.ort) are what the .onnx files are that they were made of."""

from __future__ import annotations

import os
import pathlib
import sys

os.environ["ORT_DISABLE_TELEMETRY"] = "1"

import numpy as np
import onnx
import onnxruntime
import pytest
from conftest import INVALID_MODEL, ROOT, UNSUPPORTED, USAGE
from onnx import numpy_helper, parser

sys.path.insert(0, str(ROOT / "tests" / "wire" / "data"))
import make_ort_fixtures as fixtures  # noqa: E402

LEVELS = {"as_it_is": onnxruntime.GraphOptimizationLevel.ORT_DISABLE_ALL,
          "optimised": onnxruntime.GraphOptimizationLevel.ORT_ENABLE_EXTENDED}


def quantised():
    model = parser.parse_model("""
        <ir_version: 9, opset_import: ["" : 17]>
        net (float[batch,4] x) => (float[batch,3] y, uint8[batch,4] q) {
          q, scale, zero = DynamicQuantizeLinear (x)
          sum = MatMulInteger (q, w, zero)
          plain = Cast <to = 1> (sum)
          scaled = Mul (plain, scale)
          flat = Tanh (scaled)
          y = Softmax (flat)
        }""")
    model.graph.initializer.append(fixtures.array(np.arange(12).reshape(4, 3) - 6, "w", np.int8))
    return model


def normalised():
    """Nodes that ONNX Runtime's optimiser fuses into several of com.microsoft."""
    rng = np.random.default_rng(3)
    model = parser.parse_model("""
        <ir_version: 9, opset_import: ["" : 17]>
        net (float[n,8] x) => (float[n,8] y) {
          p = MatMul (x, w)
          s = Add (p, b)
          h = Div (s, root)
          e = Erf (h)
          one = Constant <value = float {1}> ()
          half = Constant <value = float {0.5}> ()
          shifted = Add (e, one)
          m = Mul (s, shifted)
          gelu = Mul (m, half)
          skipped = Add (gelu, x)
          y = LayerNormalization (skipped, scale, b)
        }""")
    model.graph.initializer.extend([
        fixtures.array(rng.standard_normal((8, 8)), "w"), fixtures.array(rng.standard_normal(8), "b"),
        fixtures.array(np.sqrt(2), "root"), fixtures.array(np.ones(8), "scale")])
    return model


X = np.random.default_rng(1)
CASES = {
    "mlp": (fixtures.mlp, {"x": X.standard_normal((5, 2), np.float32)}),
    "if_and_loop": (fixtures.bodies, {"x": X.standard_normal(4, np.float32), "c": np.array(True), "trips": np.array(3, np.int64)}),
    "other_branch": (fixtures.bodies, {"x": X.standard_normal(4, np.float32), "c": np.array(False), "trips": np.array(2, np.int64)}),
    "convolution": (fixtures.convolution, {"x": X.standard_normal((1, 1, 3, 3), np.float32)}),
    "sparse": (fixtures.sparse, {"x": X.standard_normal((1, 2), np.float32)}),
    "quantised": (quantised, {"x": X.standard_normal((2, 4), np.float32)}),
    "normalised": (normalised, {"x": X.standard_normal((3, 8), np.float32)}),
}


@pytest.mark.parametrize("level", LEVELS)
@pytest.mark.parametrize("case", CASES)
def test_outputs_are_those_of_the_onnx_file(sardonyx, tmp_path, case, level):
    make, feeds = CASES[case]
    model = make()
    onnx.save(model, tmp_path / "m.onnx")
    fixtures.save(str(tmp_path / "m.ort"), model, LEVELS[level])
    of_onnx = sardonyx.outputs(tmp_path / "m.onnx", feeds, tmp_path)
    session = onnxruntime.InferenceSession(str(tmp_path / "m.ort"), providers=["CPUExecutionProvider"])
    theirs = session.run(None, feeds)
    for more in ([], ["--strict-model"], ["--reference"]):
        found = sardonyx.outputs(tmp_path / "m.ort", feeds, tmp_path, *more)
        assert len(found) == len(of_onnx) == len(theirs)
        for ours, expected, other in zip(found, of_onnx, theirs):
            np.testing.assert_allclose(ours, expected, rtol=1e-5, atol=1e-6)
            np.testing.assert_allclose(ours, other, rtol=1e-4, atol=1e-5)
    assert sardonyx("run", tmp_path / "m.ort", "--random-inputs").stderr == ""  # no warning


def test_types_come_along(sardonyx, tmp_path):
    model = fixtures.types()
    model.graph.initializer[-1].string_data[2] = b"that the program can print"
    fixtures.save(str(tmp_path / "m.ort"), model)
    shown = sardonyx("show", tmp_path / "m.ort").stdout
    assert "seq(float[n, ?]) list, map(string, float[]) table" in shown
    sardonyx("convert", tmp_path / "m.ort", tmp_path / "made.onnx")
    made = {tensor.name: numpy_helper.to_array(tensor) for tensor in onnx.load(tmp_path / "made.onnx").graph.initializer}
    for tensor in model.graph.initializer:
        np.testing.assert_array_equal(made[tensor.name], numpy_helper.to_array(tensor))
        assert made[tensor.name].dtype == numpy_helper.to_array(tensor).dtype


def test_commands_take_it(sardonyx, tmp_path):
    fixtures.save(str(tmp_path / "m.ort"), fixtures.mlp())
    named_otherwise = tmp_path / "m.bin"
    named_otherwise.write_bytes((tmp_path / "m.ort").read_bytes())
    for file in (tmp_path / "m.ort", named_otherwise):
        assert "producer     fixtures 2" in sardonyx("info", file).stdout
        assert "0 errors" in sardonyx("check", file).stdout
        assert "5 values: 5 known" in sardonyx("infer", file).stdout
        sardonyx("convert", file, tmp_path / "made.onnx")
        onnx.checker.check_model(onnx.load(tmp_path / "made.onnx"), full_check=True)
        sardonyx("diff", file, tmp_path / "made.onnx")
    with open(tmp_path / "m.ort", "rb") as pipe:
        assert "producer     fixtures 2" in sardonyx("info", "-", stdin=pipe).stdout


def test_it_is_not_written(sardonyx, tmp_path):
    fixtures.save(str(tmp_path / "m.ort"), fixtures.mlp())
    before = (tmp_path / "m.ort").read_bytes()
    sardonyx.fails(USAGE, "convert", tmp_path / "m.ort", tmp_path / "n.ort", mentions=["only read"])
    sardonyx.fails(USAGE, "convert", tmp_path / "m.ort", tmp_path / "m.ort", mentions=["only read"])
    sardonyx.fails(UNSUPPORTED, "infer", tmp_path / "m.ort", "--in-place", mentions=["only read"])
    assert (tmp_path / "m.ort").read_bytes() == before


def test_damage_is_told(sardonyx, tmp_path):
    whole = pathlib.Path(ROOT / "tests" / "wire" / "data" / "mlp.ort").read_bytes()
    file = tmp_path / "m.ort"
    file.write_bytes(whole[:1000])
    sardonyx.fails(INVALID_MODEL, "info", file, mentions=["at byte", "1000 bytes"])
    file.write_bytes(whole[:10])
    sardonyx.fails(INVALID_MODEL, "info", file, mentions=["ONNX Runtime's own format", "cut off"])
    at = whole.index(b"\x01\x00\x00\x006")
    file.write_bytes(whole[:at + 4] + b"9" + whole[at + 5:])
    sardonyx.fails(UNSUPPORTED, "info", file, mentions=["version '9'; versions 1 to 6 are read"])
