"""sardonyx.compat.onnx: onnx's functions, messages in and out."""

from __future__ import annotations

import unittest

import numpy as np
import onnx
import onnx.backend.test
import onnx.reference
import pytest
from onnx import helper

from sardonyx.compat.onnx import backend, reference, shape_inference

X = np.arange(6, dtype=np.float32).reshape(2, 3)

# Those whose outcome is not the engine's: tests/conformance has them all, with the engine's own runner.
NOT_COMPARED = {
    "bernoulli": "draws random numbers",
    "loop16_seq_none": "the harness can't compare the optional sequence that the case holds",
}


def test_the_standards_cases_run_through_the_backend():
    """Those that bring kinds of values and element types; the harness counts what it skips for lack of a device."""
    cases = onnx.backend.test.BackendTest(backend.SardonyxBackend, __name__)
    cases.include("test_(cast|sequence|optional|loop|if|identity|string|quantize|dequantize|scan|constant|tfidf|regex|split_to|equal|"
                  "reshape|image|concat|where|label|ai_onnx_ml|argmax|nonzero|unique|top_k|gather|bitwise|mod|range|shape|size).*_cpu")
    for name in NOT_COMPARED:
        cases.exclude(name)
    suite = unittest.TestSuite(unittest.defaultTestLoader.loadTestsFromTestCase(one) for one in cases.test_cases.values())
    result = unittest.TestResult()
    suite.run(result)
    ran = result.testsRun - len(result.skipped)
    assert [str(test) for test, _ in [*result.failures, *result.errors]] == []
    assert ran > 400, f"{ran} cases ran"


def test_the_backend_by_itself(double):
    assert backend.supports_device("CPU") and not backend.supports_device("CUDA")
    rep = backend.prepare(double, "CPU", threads=1)
    np.testing.assert_array_equal(rep.run([X[0]])[0], 2 * X[0])
    np.testing.assert_array_equal(rep.run({"x": X[0]})[0], 2 * X[0])
    with pytest.raises(ValueError, match="CUDA"):
        backend.prepare(double, "CUDA")
    (made,) = backend.run_node(helper.make_node("Concat", ["a", "b"], ["c"], axis=0), [X, X + 1])
    np.testing.assert_array_equal(made, np.concatenate([X, X + 1]))
    assert backend.is_compatible(double) and not backend.is_compatible(double, "CUDA")
    assert not backend.is_compatible(helper.make_model(helper.make_graph([helper.make_node("Nope", [], ["y"])], "g", [],
                                                                            [helper.make_tensor_value_info("y", 1, [1])])))


@pytest.mark.parametrize("source", ["model", "bytes", "path", "graph", "node"])
def test_the_evaluator_beside_theirs(source, double, tmp_path):
    onnx.save(double, tmp_path / "m.onnx")
    given = {"model": double, "bytes": double.SerializeToString(), "path": str(tmp_path / "m.onnx"), "graph": double.graph,
             "node": double.graph.node[0]}[source]
    opsets = {"opsets": {"": 21}} if source in ("graph", "node") else {}
    mine, theirs = reference.ReferenceEvaluator(given, **opsets), onnx.reference.ReferenceEvaluator(given, **opsets)
    assert mine.input_names == ["x"] and mine.output_names == list(theirs.output_names)
    np.testing.assert_array_equal(mine.run(None, {"x": X[0]})[0], theirs.run(None, {"x": X[0]})[0])
    np.testing.assert_array_equal(mine.run(["y"], {"x": X[0]})[0], 2 * X[0])


def test_values_in_between(model):
    proto = model("g (float[n] x) => (float[n] y) { t = Add(x, x) y = Mul(t, x) }")
    mine, theirs = (one(proto).run(None, {"x": X[0]}, intermediate=True) for one in
                    (reference.ReferenceEvaluator, onnx.reference.ReferenceEvaluator))
    assert set(mine) == {name for name in theirs if name}
    for name, value in mine.items():
        np.testing.assert_array_equal(value, theirs[name])


def test_shape_inference(model, tmp_path):
    proto = model("g (float[batch,3] x) => (float[m,n] y) { t = Concat <axis = 1> (x, x) y = Relu(t) }")
    mine, theirs = shape_inference.infer_shapes(proto), onnx.shape_inference.infer_shapes(proto)
    assert isinstance(mine, onnx.ModelProto)
    assert [(one.name, one.type) for one in mine.graph.value_info] == [(one.name, one.type) for one in theirs.graph.value_info]
    assert onnx.load_model_from_string(shape_inference.infer_shapes(proto.SerializeToString())).graph.value_info == mine.graph.value_info
    onnx.save(proto, tmp_path / "m.onnx")
    shape_inference.infer_shapes_path(tmp_path / "m.onnx", tmp_path / "typed.onnx")
    assert onnx.load(tmp_path / "typed.onnx").graph.value_info == mine.graph.value_info
    shape_inference.infer_shapes_path(str(tmp_path / "m.onnx"))
    assert onnx.load(tmp_path / "m.onnx").graph.value_info == mine.graph.value_info
    wrong = model("g (float[2] x, int64[2] i) => (float[2] y) { y = Add(x, i) }")
    assert isinstance(shape_inference.infer_shapes(wrong), onnx.ModelProto)
    with pytest.raises(onnx.shape_inference.InferenceError, match="Add"):
        shape_inference.infer_shapes(wrong, strict_mode=True)
    with pytest.raises(TypeError, match="infer_shapes_path"):
        shape_inference.infer_shapes(str(tmp_path / "m.onnx"))
