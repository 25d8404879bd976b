"""What inlining repeats: `convert --opset` writes a constant of a function once, however often it is called."""

import numpy as np
import onnx
from conftest import INVALID_MODEL
from onnx import TensorProto, helper, numpy_helper

CALLS = 50


def model_that_calls(nodes, opsets=()):
    function = helper.make_function("f", "F", ["a"], ["b"], nodes, [helper.make_opsetid("", 13), *opsets])
    calls = [helper.make_node("F", [f"x{i}"], [f"x{i + 1}"], domain="f") for i in range(CALLS)]
    value = lambda name: helper.make_tensor_value_info(name, TensorProto.FLOAT, [1])  # noqa: E731
    graph = helper.make_graph(calls, "g", [value("x0")], [value(f"x{CALLS}")])
    imports = [helper.make_opsetid("", 13), helper.make_opsetid("f", 1), *opsets]
    return helper.make_model(graph, functions=[function], opset_imports=imports, ir_version=8)


def test_constants_of_functions_are_written_once(sardonyx, tmp_path):
    constant = numpy_helper.from_array(np.arange(25_000, dtype=np.float32), "v")
    model = model_that_calls([
        helper.make_node("Constant", [], ["c"], value=constant),
        helper.make_node("ReduceMax", ["c"], ["m"], keepdims=0),
        helper.make_node("Add", ["a", "m"], ["b"]),
    ])
    given, made = tmp_path / "given.onnx", tmp_path / "made.onnx"
    onnx.save(model, given)
    sardonyx("convert", given, made, "--opset", "21")
    assert made.stat().st_size < 2 * given.stat().st_size
    onnx.checker.check_model(str(made), full_check=True)
    assert sardonyx.outputs(made, {"x0": np.ones(1, np.float32)}, tmp_path)[0][0] == 1 + CALLS * 24_999


def test_lists_that_calls_repeat_are_bounded(sardonyx, tmp_path):
    """Attributes that no initializer can hold are copied by each call: up to a limit, which is said."""
    strings = ["x" * 1_000_000]
    encoder = helper.make_node("LabelEncoder", ["a"], ["b"], domain="ai.onnx.ml", keys_floats=[1.0],
                               values_floats=[2.0], keys_strings=strings)
    model = model_that_calls([encoder], [helper.make_opsetid("ai.onnx.ml", 2)])
    calls = [helper.make_node("F", ["x0"], [f"y{i}"], domain="f") for i in range(400)]
    model.graph.node.extend(calls)
    given, made = tmp_path / "given.onnx", tmp_path / "made.onnx"
    onnx.save(model, given)
    sardonyx.fails(INVALID_MODEL, "convert", given, made, "--opset", "21", mentions=["add more than"])
    assert not made.exists()
