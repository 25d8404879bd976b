"""sardonyx.compat.onnx: onnx's functions, messages in and out."""

from __future__ import annotations

import sys

import numpy as np
import onnx
import onnx.checker
import onnx.compose
import onnx.inliner
import onnx.parser
import onnx.printer
import onnx.reference
import onnx.shape_inference
import onnx.version_converter
import pytest
from onnx import helper

from sardonyx.compat.onnx import (backend, checker, compose, external_data_helper, inliner, parser, printer, reference, shape_inference,
                                  utils, version_converter)

from .conftest import ROOT

sys.path.insert(0, str(ROOT / "tests" / "python"))
import broken_models  # noqa: E402

X = np.arange(6, dtype=np.float32).reshape(2, 3)


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


CALLED = """<ir_version: 10, opset_import: ["" : 21, "com.example" : 1]> g (float[n] x) => (float[n] y) { y = com.example.Twice(x) }
    <domain: "com.example", opset_import: ["" : 21]> Twice (a) => (b) { t = Add(a, a) b = Neg(t) }"""
SCALED = """<domain: "com.example", opset_import: ["" : 21]> Scaled <by> (a) => (b)
    { k = Constant <value_float: float = @by> () b = Mul(a, k) }"""


def test_functions_and_names_of_the_evaluator_beside_theirs():
    whole = onnx.parser.parse_model(CALLED)
    scaled, ml = onnx.parser.parse_function(SCALED), helper.make_node("Scaler", ["x"], ["y"], domain="ai.onnx.ml", offset=[1.0], scale=[3.0])
    made = []
    for kind in (reference.ReferenceEvaluator, onnx.reference.ReferenceEvaluator):
        graph = kind(whole.graph, opsets={"": 21, "com.example": 1}, functions=[whole.functions[0]])
        made.append([graph.run(None, {"x": X[0]})[0].tolist(), kind(scaled).run(None, {"a": X[0]}, attributes={"by": 3.0})[0].tolist(),
                     kind(ml).run(None, {"x": X})[0].tolist(), kind(whole).opsets, graph.input_types, kind(whole).output_types,
                     kind(scaled).opsets.get("")])
    assert made[0] == made[1]


def test_values_by_name_beside_theirs(model):
    proto = model("g (float[n] x) => (float[n] y) { t = Add(x, x) y = Mul(t, x) }")
    for kind in (reference.ReferenceEvaluator, onnx.reference.ReferenceEvaluator):
        assert [one.tolist() for one in kind(proto).run(["y", "t", "x"], {"x": X[0]})] == [[0, 2, 8], [0, 2, 4], [0, 1, 2]]
        with pytest.raises(RuntimeError, match="z"):
            kind(proto).run(["z"], {"x": X[0]})
        with pytest.raises(TypeError):
            kind(proto, verbos=1)
    for option in ({"new_ops": [onnx.reference.op_run.OpRun]}, {"check_shape_annotations": True}):
        with pytest.raises(NotImplementedError, match=next(iter(option))):
            reference.ReferenceEvaluator(proto, **option)


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
    assert shape_inference.infer_shapes(proto.SerializeToString()).graph.value_info == mine.graph.value_info
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


# --- what checks and makes models -------------------------------------------------------------


def test_checker(double, model, tmp_path):
    wrong = model("g (float[n] x) => (float[n] y) { y = Softmax <colour = 3> (x) }")
    onnx.save(double, tmp_path / "m.onnx")
    onnx.save(wrong, tmp_path / "wrong.onnx")
    for check in (checker.check_model, onnx.checker.check_model):
        for good in (double, double.SerializeToString(), str(tmp_path / "m.onnx"), tmp_path / "m.onnx"):
            check(good)
        for bad in (wrong, wrong.SerializeToString(), str(tmp_path / "wrong.onnx")):
            with pytest.raises(onnx.checker.ValidationError, match="colour"):
                check(bad)
    types = model("g (float[2] x, int64[2] i) => (float[2] y) { y = Add(x, i) }")
    checker.check_model(types)
    for check in (checker.check_model, onnx.checker.check_model):
        with pytest.raises(onnx.shape_inference.InferenceError):
            check(types, full_check=True)
    with pytest.raises(onnx.checker.ValidationError):
        checker.check_model(b"no model at all")
    checker.check_graph(double.graph)
    checker.check_node(double.graph.node[0])
    with pytest.raises(onnx.checker.ValidationError, match="colour"):
        checker.check_node(wrong.graph.node[0])
    checker.check_tensor(helper.make_tensor("w", 1, [2], [1.0, 2.0]))
    with pytest.raises(onnx.checker.ValidationError):
        checker.check_tensor(onnx.TensorProto(name="w", data_type=1, dims=[3], float_data=[1.0]))


@pytest.mark.parametrize("text", [
    "g (float[2] x) => (float[3] y) { y = Relu(x) }", "g (float[2] x) => (float[2,1] y) { y = Relu(x) }",
    "g (float[2] x) => (int64[2] y) { y = Relu(x) }", "g (float[2] x) => (float[2] y) <float[3] t> { t = Relu(x) y = Relu(t) }",
    "g (float[2] x) => (float[2] y) <int64[2] t> { t = Relu(x) y = Relu(t) }", "g (float x) => (float y) { y = Softmax(x) }",
    "g (float[8] x) => (float[2] y, int64[2] i) <int64 k = {2}> { y, i = TopK(x, k) }"])
def test_what_inference_contradicts_is_refused(text, model):
    for check in (checker.check_model, onnx.checker.check_model):
        check(model(text))
        with pytest.raises(onnx.shape_inference.InferenceError):
            check(model(text), full_check=True)


def test_what_onnx_accepts_in_full_is_accepted(model):
    bases = {**broken_models.structural_bases(), **broken_models.operator_bases(1)}
    for text in ("g (float[n] x) => (float[3] y) { y = Relu(x) }", "g (float[n] x) => (float[m] y) { y = Relu(x) }",
                 "g (float[n] x) => (float[?] y) { y = com.example.Nothing(x) }"):
        bases[text] = model(text)
        bases[text].opset_import.add(domain="com.example", version=1)
    accepted = [proto for proto in bases.values() if broken_models.reference_refuses(proto.SerializeToString()) is None]
    assert len(accepted) > len(bases) * 0.9
    for proto in accepted:
        checker.check_model(proto, full_check=True)


@pytest.mark.parametrize("version", [0, -1, 99, 1])
def test_what_cannot_be_converted_is_a_runtime_error(version, double):
    double.graph.node[0].op_type = "Gelu"
    del double.graph.node[0].input[1:]
    for convert in (version_converter.convert_version, onnx.version_converter.convert_version):
        with pytest.raises(RuntimeError):
            convert(double, version)
    with pytest.raises(onnx.version_converter.ConvertError) as error:
        version_converter.convert_version(double, version)
    assert isinstance(error.value, version_converter.ConvertError)


def test_versions(double):
    old = helper.make_model(double.graph, ir_version=7, opset_imports=[helper.make_opsetid("", 12)])
    mine, theirs = version_converter.convert_version(old, 20), onnx.version_converter.convert_version(old, 20)
    assert mine.opset_import[0].version == theirs.opset_import[0].version == 20
    with pytest.raises(onnx.version_converter.ConvertError):
        version_converter.convert_version(old, -1)


def names(proto):
    graph = proto.graph
    return [[(node.op_type, node.name, list(node.input), list(node.output)) for node in graph.node],
            *([one.name for one in values] for values in (graph.input, graph.output, graph.initializer))]


BRANCHES = """g (bool c, float[n] x) => (float[n] y) { y = If(c) <
    then_branch = t () => (float[n] r) { q = Relu(x) r = If(c) <then_branch = u () => (float[n] w) { v = Neg(q) w = Add(v, x) },
                                                                else_branch = o () => (float[n] w2) { w2 = Abs(q) }> },
    else_branch = e () => (float[n] r2) { r2 = Abs(x) }> }"""


def test_prefixes_reach_into_branches(model):
    """So that what one of two models makes inside has no name of the other's."""
    inner, outer = model(BRANCHES), model("g (float[n] u) => (float[n] x) { q = Relu(u) w2 = Neg(q) x = Abs(w2) }")
    mine, theirs = ([onnx.printer.to_text(one.g).replace('[""] ', "") for one in module.add_prefix(inner, "p_").graph.node[0].attribute]
                    for module in (compose, onnx.compose))
    assert mine == theirs
    joined = compose.merge_models(outer, compose.add_prefix(inner, "p_"), [("x", "p_x")])
    onnx.checker.check_model(joined)
    assert "p_" not in onnx.printer.to_text(inner)


def test_joints_beside_theirs(double, model):
    other = model("other (float[k] a) => (float[k] b) { b = Relu(a) }")
    for options in ({}, {"prefix1": "one_", "prefix2": "two_"}):
        mine, theirs = (one(double, other, [("y", "a")], **options) for one in (compose.merge_models, onnx.compose.merge_models))
        assert [node.op_type for node in mine.graph.node] == [node.op_type for node in theirs.graph.node]
        assert [one.name for one in mine.graph.input] == [one.name for one in theirs.graph.input]
        assert [one.name for one in mine.graph.output] == [one.name for one in theirs.graph.output]
        assert (mine.graph.name, mine.producer_name, mine.model_version) == (theirs.graph.name, theirs.producer_name, theirs.model_version)
        name = mine.graph.input[0].name
        np.testing.assert_array_equal(backend.run_model(mine, {name: X[0] - 1})[0], np.maximum(2 * (X[0] - 1), 0))
    for one in (compose.merge_models, onnx.compose.merge_models):
        with pytest.raises(ValueError):
            one(double, other, [("nobody", "a")])
    mine, theirs = (one(double, "p_") for one in (compose.add_prefix, onnx.compose.add_prefix))
    assert names(mine) == names(theirs)
    mine, theirs = (one(double, "p_", rename_inputs=False) for one in (compose.add_prefix, onnx.compose.add_prefix))
    assert names(mine) == names(theirs)


def test_texts(double):
    text = onnx.printer.to_text(double)
    assert onnx.printer.to_text(parser.parse_model(text)) == text  # fields that are empty may be there or not
    assert onnx.printer.to_text(onnx.parser.parse_model(printer.to_text(double))) == text
    graph = onnx.printer.to_text(double.graph)
    assert onnx.printer.to_text(onnx.parser.parse_graph(printer.to_text(double.graph))) == graph
    assert onnx.printer.to_text(parser.parse_graph(graph)) == graph
    node = parser.parse_node("y = Softmax <axis = 1> (x)")
    assert (node.op_type, list(node.input), list(node.output), node.attribute[0].i) == ("Softmax", ["x"], ["y"], 1)
    for parse in (parser.parse_model, onnx.parser.parse_model):
        with pytest.raises(onnx.parser.ParseError):
            parse("this is no model")


def test_inliner():
    text = ('<ir_version: 10, opset_import: ["" : 21, "local" : 1]> g (float[n] x) => (float[n] y) { y = local.twice(x) } '
            '<domain: "local", opset_import: ["" : 21]> twice (a) => (b) { b = Add(a, a) }')
    mine, theirs = (one(onnx.parser.parse_model(text)) for one in (inliner.inline_local_functions, onnx.inliner.inline_local_functions))
    assert [node.op_type for node in mine.graph.node] == [node.op_type for node in theirs.graph.node] == ["Add"]
    assert not mine.functions and not theirs.functions
    assert inliner.inline_local_functions(onnx.parser.parse_model(text), convert_version=True).graph.node[0].op_type == "Add"


def test_parts_and_external_data(model, tmp_path):
    proto = model("g (float[4] x) => (float[4] y) { t = Mul(x, w) y = Relu(t) }")
    proto.graph.initializer.append(onnx.numpy_helper.from_array(np.array([1, -2, 3, 4], np.float32), "w"))
    external_data_helper.save_model(proto, tmp_path / "m.onnx", location="w.bin", size_threshold=1)
    assert (tmp_path / "w.bin").stat().st_size >= 16
    assert onnx.load(tmp_path / "m.onnx").graph.initializer[0].raw_data == proto.graph.initializer[0].raw_data
    outside = onnx.load(tmp_path / "m.onnx", load_external_data=False)
    external_data_helper.load_external_data_for_model(outside, tmp_path)
    assert outside.graph.initializer[0].raw_data == proto.graph.initializer[0].raw_data
    utils.extract_model(tmp_path / "m.onnx", tmp_path / "part.onnx", ["x"], ["t"])
    assert [node.op_type for node in onnx.load(tmp_path / "part.onnx").graph.node] == ["Mul"]
    with pytest.raises(ValueError):
        utils.extract_model(tmp_path / "m.onnx", tmp_path / "part.onnx", ["x"], ["nobody"])
