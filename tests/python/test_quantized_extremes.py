"""QuantizeLinear of NaN and infinity, and scales that are no ordinary numbers: every way in which bytes are
calculated, on every instruction set, gives what plain evaluation does, and that what ONNX Runtime does: NaN becomes the
lowest value of the type."""

from __future__ import annotations

import numpy as np
import onnx
import pytest
from contrib_support import Engine, run_onnxruntime
from onnx import TensorProto, helper, numpy_helper

F32 = np.float32
TYPES = {np.uint8: TensorProto.UINT8, np.int8: TensorProto.INT8, np.uint16: TensorProto.UINT16, np.int16: TensorProto.INT16}
STRANGE = [np.nan, np.inf, -np.inf, 3e38, -3e38, 0, 1, -1, 1e-40, 12.34]
SETS = [None, "avx512", "avx_vnni", "avx2", "baseline"]


@pytest.fixture(scope="module", params=SETS, ids=lambda s: s or "widest")
def engine(request, sardonyx, tmp_path_factory):
    engine = Engine(sardonyx.path, tmp_path_factory.mktemp("extremes"), request.param)
    yield engine
    engine.close()


def constant(name, values, dtype=F32):
    return numpy_helper.from_array(np.array(values, dtype), name)


def model_of(nodes, x, y_type, weights):
    graph = helper.make_graph(nodes, "g", [helper.make_tensor_value_info("x", helper.np_dtype_to_tensor_dtype(x.dtype), x.shape)],
                              [helper.make_tensor_value_info("y", y_type, None)], weights)
    return helper.make_model(graph, opset_imports=[helper.make_opsetid("", 21)], ir_version=10)


def all_ways(engine, sardonyx, folder, model, x):
    """What ONNX Runtime gives, after it was compared with the planned and the plain run."""
    [expected] = run_onnxruntime(model, {"x": x})
    [planned] = engine.run(model, {"x": x})
    onnx.save(model, folder / "m.onnx")
    [plain] = sardonyx.outputs(folder / "m.onnx", {"x": x}, folder, "--reference")
    np.testing.assert_array_equal(plain, planned)
    np.testing.assert_array_equal(planned, expected)
    return expected


@pytest.mark.parametrize("dtype", TYPES)
@pytest.mark.parametrize("axis", [False, True])
@pytest.mark.parametrize("scale", [0.1, 0.0, np.inf, np.nan, 1e-39])
def test_floats(engine, sardonyx, tmp_path, dtype, axis, scale):
    x = np.array((STRANGE * 14)[:138], F32).reshape(2, 69)
    each = lambda value: [value] * 69 if axis else value
    weights = [constant("s", each(scale)), constant("z", each(3), dtype)]
    model = model_of([helper.make_node("QuantizeLinear", ["x", "s", "z"], ["y"], axis=1)], x, TYPES[dtype], weights)
    y = all_ways(engine, sardonyx, tmp_path, model, x)
    assert (y[np.isnan(x)] == np.iinfo(dtype).min).all()


@pytest.mark.parametrize("dtype", [np.uint8, np.int8])
@pytest.mark.parametrize("ops", [["Log"], ["Sqrt", "Relu"], ["Log", "Tanh"], ["Reciprocal", "Sqrt"]])
@pytest.mark.parametrize("scale", [0.1, 0.0, np.inf])
def test_arithmetic_that_becomes_a_table(engine, sardonyx, tmp_path, dtype, ops, scale):
    x = (np.arange(300) % 256).astype(np.uint8).view(dtype)
    values = ["x"] + [f"v{i}" for i in range(len(ops) + 1)]
    nodes = [helper.make_node("DequantizeLinear", ["x", "s", "z"], ["v0"])]
    nodes += [helper.make_node(op, [values[i + 1]], [values[i + 2]]) for i, op in enumerate(ops)]
    nodes.append(helper.make_node("QuantizeLinear", [values[-1], "s", "z"], ["y"]))
    all_ways(engine, sardonyx, tmp_path, model_of(nodes, x, TYPES[dtype], [constant("s", scale), constant("z", 7, dtype)]), x)


MOVES = {"Reshape": [[4, 3]], "Transpose": [], "Flatten": [], "Slice": [[0, 0], [2, 2]], "Gather": [1], "Expand": [[2, 3, 4]]}


@pytest.mark.parametrize("op", MOVES)
@pytest.mark.parametrize("scale", [0.1, -0.1, 0.0, np.inf, np.nan, 3e38, 1e-45])
@pytest.mark.parametrize("zero", [0, 7])
def test_bytes_that_move(engine, sardonyx, tmp_path, op, scale, zero):
    x = np.array([0, 1, 6, 7, 8, 9, 100, 127, 128, 200, 254, 255], np.uint8).reshape(3, 4)
    weights = [constant("s", scale), constant("z", zero, np.uint8)]
    more = []
    for i, values in enumerate(MOVES[op]):
        weights.append(constant(f"k{i}", values, np.int64))
        more.append(f"k{i}")
    nodes = [helper.make_node("DequantizeLinear", ["x", "s", "z"], ["a"]), helper.make_node(op, ["a", *more], ["b"]),
             helper.make_node("QuantizeLinear", ["b", "s", "z"], ["y"])]
    all_ways(engine, sardonyx, tmp_path, model_of(nodes, x, TensorProto.UINT8, weights), x)


@pytest.mark.parametrize("scale", [0.1, -0.1])
def test_the_largest_by_a_scale_below_zero_is_the_least_byte(engine, sardonyx, tmp_path, scale):
    x = np.arange(32, dtype=np.uint8).reshape(1, 2, 4, 4)
    nodes = [helper.make_node("DequantizeLinear", ["x", "s", "z"], ["a"]),
             helper.make_node("MaxPool", ["a"], ["b"], kernel_shape=[2, 2], strides=[2, 2]),
             helper.make_node("QuantizeLinear", ["b", "s", "z"], ["y"])]
    weights = [constant("s", scale), constant("z", 0, np.uint8)]
    all_ways(engine, sardonyx, tmp_path, model_of(nodes, x, TensorProto.UINT8, weights), x)


@pytest.mark.parametrize("x_scale, y_scale", [(np.inf, 0.1), (0.1, np.inf), (np.nan, 0.1), (3e38, 3e38), (0.1, 0.0), (0.1, -0.1)])
@pytest.mark.parametrize("relu", [False, True])
def test_products_with_strange_scales(engine, sardonyx, tmp_path, x_scale, y_scale, relu):
    x = np.array([[0, 1, 6, 7], [8, 9, 100, 127], [128, 200, 254, 255]], np.uint8)
    w = np.random.default_rng(3).integers(0, 255, (4, 5))
    nodes = [helper.make_node("DequantizeLinear", ["x", "s", "z"], ["a"]),
             helper.make_node("DequantizeLinear", ["w", "sw", "z"], ["b"]), helper.make_node("MatMul", ["a", "b"], ["p"]),
             helper.make_node("Relu" if relu else "Identity", ["p"], ["r"]),
             helper.make_node("QuantizeLinear", ["r", "sy", "z"], ["y"])]
    weights = [constant("s", x_scale), constant("sw", 0.25), constant("sy", y_scale), constant("z", 0, np.uint8),
               constant("w", w, np.uint8)]
    all_ways(engine, sardonyx, tmp_path, model_of(nodes, x, TensorProto.UINT8, weights), x)


@pytest.mark.parametrize("per_column", [False, True])
def test_products_of_no_columns(engine, sardonyx, tmp_path, per_column):
    x = np.arange(12, dtype=np.uint8).reshape(3, 4)
    nodes = [helper.make_node("DequantizeLinear", ["x", "s", "z"], ["a"]),
             helper.make_node("DequantizeLinear", ["w", "sw", "zw"], ["b"], axis=1),
             helper.make_node("MatMul", ["a", "b"], ["p"]), helper.make_node("Add", ["p", "bias"], ["sum"]),
             helper.make_node("QuantizeLinear", ["sum", "s", "z"], ["y"])]
    each = [] if per_column else 1
    weights = [constant("s", 0.5), constant("z", 0, np.uint8), constant("sw", each), constant("zw", each, np.uint8),
               constant("w", np.zeros((4, 0)), np.uint8), constant("bias", [])]
    assert all_ways(engine, sardonyx, tmp_path, model_of(nodes, x, TensorProto.UINT8, weights), x).shape == (3, 0)
