"""What rewriting makes of quantised models and of half precision: the steps, and the same results."""

from __future__ import annotations

import numpy as np
import onnx
import onnxruntime
import pytest
from conftest import parse_json
from onnx import TensorProto, helper, numpy_helper


def kernels(sardonyx, model) -> list[str]:
    return [step["kernel"] for step in parse_json(sardonyx("explain", model, "--json"))["steps"]]


def ours_and_theirs(sardonyx, model, feeds, folder):
    options = onnxruntime.SessionOptions()
    options.log_severity_level = 3
    options.graph_optimization_level = onnxruntime.GraphOptimizationLevel.ORT_DISABLE_ALL
    session = onnxruntime.InferenceSession(str(model), options)
    return sardonyx.outputs(model, feeds, folder), session.run(None, feeds)


def quantised_conv(folder, shape, weights, kind=np.uint8, each=True, relu=True, x_zero=3, y_zero=0, **attributes):
    """QuantizeLinear, DequantizeLinear, Conv, maybe Relu, QuantizeLinear, DequantizeLinear."""
    random = np.random.default_rng(sum(shape))
    scales = random.uniform(0.01, 0.02, weights[0] if each else ()).astype(np.float32)
    arrays = {
        "xs": np.float32(0.02), "xz": np.array(x_zero, kind), "ys": np.float32(0.05), "yz": np.array(y_zero, kind),
        "w": random.integers(-127, 128, weights).astype(np.int8), "ws": scales, "wz": np.zeros(scales.shape, np.int8),
        "b": random.integers(-500, 500, weights[0]).astype(np.int32), "bs": (np.float32(0.02) * scales).astype(np.float32),
    }
    nodes = [
        helper.make_node("QuantizeLinear", ["x", "xs", "xz"], ["xq"]),
        helper.make_node("DequantizeLinear", ["xq", "xs", "xz"], ["xd"]),
        helper.make_node("DequantizeLinear", ["w", "ws", "wz"], ["wd"], axis=0),
        helper.make_node("DequantizeLinear", ["b", "bs"], ["bd"], axis=0),
        helper.make_node("Conv", ["xd", "wd", "bd"], ["c"], **attributes),
        helper.make_node("Relu", ["c"], ["r"]),
        helper.make_node("QuantizeLinear", ["r" if relu else "c", "ys", "yz"], ["yq"]),
        helper.make_node("DequantizeLinear", ["yq", "ys", "yz"], ["y"]),
    ]
    if not relu:
        del nodes[5]
    graph = helper.make_graph(nodes, "g", [helper.make_tensor_value_info("x", 1, shape)],
                              [helper.make_tensor_value_info("y", 1, None)],
                              [numpy_helper.from_array(np.asarray(value), name) for name, value in arrays.items()])
    onnx.save(helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8), folder / "m.onnx")
    return folder / "m.onnx", {"x": random.standard_normal(shape).astype(np.float32)}


CONVS = [
    ((1, 3, 9, 9), (8, 3, 3, 3), dict(pads=[1, 1, 1, 1])),
    ((2, 8, 7, 7), (16, 8, 1, 1), {}),
    ((1, 5, 20, 20), (7, 5, 3, 3), dict(pads=[1, 1, 1, 1], strides=[2, 2])),
    ((1, 4, 33, 31), (9, 4, 5, 5), dict(pads=[2, 2, 2, 2])),
    ((1, 6, 12, 40), (6, 2, 3, 3), dict(group=3, dilations=[2, 2])),
    ((1, 16, 14, 14), (16, 1, 3, 3), dict(group=16, pads=[1, 1, 1, 1])),
    ((1, 2, 70), (5, 2, 4), {}),
    ((1, 1, 60, 60), (4, 1, 8, 8), {}),
]


@pytest.mark.parametrize("shape, weights, attributes", CONVS)
@pytest.mark.parametrize("kind, x_zero, y_zero", [(np.uint8, 3, 0), (np.int8, -5, -128), (np.uint8, 255, 0)])
def test_convolution_between_bytes(sardonyx, tmp_path, shape, weights, attributes, kind, x_zero, y_zero):
    model, feeds = quantised_conv(tmp_path, shape, weights, kind, x_zero=x_zero, y_zero=y_zero, **attributes)
    assert [kernel.split(".")[0] for kernel in kernels(sardonyx, model) if "conv" in kernel] == ["conv_scaled"]
    (ours,), (theirs,) = ours_and_theirs(sardonyx, model, feeds, tmp_path)
    steps = np.abs(ours - theirs) / 0.05
    assert steps.max() < 1.01 and (steps > 0.5).mean() < 0.01


@pytest.mark.parametrize("relu, y_zero", [(True, 10), (False, 10), (False, 0)])
def test_relu_is_dropped_only_where_quantizing_does_the_same(sardonyx, tmp_path, relu, y_zero):
    model, feeds = quantised_conv(tmp_path, (1, 3, 9, 9), (8, 3, 3, 3), each=False, relu=relu, y_zero=y_zero)
    assert any("conv_scaled" in kernel for kernel in kernels(sardonyx, model)) == (not relu or y_zero == 0)
    (ours,), (theirs,) = ours_and_theirs(sardonyx, model, feeds, tmp_path)
    assert np.abs(ours - theirs).max() < 0.051
    assert not relu or ours.min() >= 0


@pytest.mark.parametrize("each", [False, True])
@pytest.mark.parametrize("constant", [False, True])
def test_product_of_bytes(sardonyx, tmp_path, each, constant):
    random = np.random.default_rng(3)
    scale = random.uniform(0.01, 0.02, 37 if each else ()).astype(np.float32)
    nodes = [helper.make_node("DequantizeLinear", ["a", "as", "az"], ["ad"]),
             helper.make_node("DequantizeLinear", ["b", "bs"], ["bd"], axis=1),
             helper.make_node("MatMul", ["ad", "bd"], ["y"])]
    b = random.integers(-127, 128, (21, 37)).astype(np.int8)
    arrays = {"as": np.float32(0.1), "az": np.uint8(7), "bs": scale, **({"b": b} if constant else {})}
    infos = [helper.make_tensor_value_info("a", TensorProto.UINT8, ["n", 3, 21])]
    infos += [] if constant else [helper.make_tensor_value_info("b", TensorProto.INT8, [21, 37])]
    graph = helper.make_graph(nodes, "g", infos, [helper.make_tensor_value_info("y", 1, ["n", 3, 37])],
                              [numpy_helper.from_array(np.asarray(value), name) for name, value in arrays.items()])
    onnx.save(helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8), tmp_path / "m.onnx")
    if constant:  # which need no DequantizeLinear then
        assert kernels(sardonyx, tmp_path / "m.onnx") == ["quantized_matmul.packed"]
    feeds = {"a": random.integers(0, 256, (2, 3, 21)).astype(np.uint8), **({} if constant else {"b": b})}
    (ours,), (theirs,) = ours_and_theirs(sardonyx, tmp_path / "m.onnx", feeds, tmp_path)
    np.testing.assert_allclose(ours, theirs, rtol=1e-5, atol=1e-4)


def test_half_precision_goes_through_regions(sardonyx, save, tmp_path):
    """Casts stand at the edges alone, weights stay as they are, and what subgraphs take keeps its type."""
    random = np.random.default_rng(4)
    model = save("""<ir_version: 8, opset_import: ["" : 17]>
        g (float16[batch,3,8,8] x, bool side) => (float16[batch,4,8,8] y, float16[batch,4,8,8] z)
        { c = Conv <pads = [1, 1, 1, 1]> (x, w)
          n = BatchNormalization (c, scale, bias, mean, var)
          y = Relu (n)
          s = Sigmoid (y)
          z = If (side) <then_branch = a () => (float16[batch,4,8,8] t) { t = Neg (s) },
                         else_branch = b () => (float16[batch,4,8,8] e) { e = Identity (s) }> }""",
                 w=random.standard_normal((4, 3, 3, 3)).astype(np.float16), scale=np.ones(4, np.float16),
                 bias=np.zeros(4, np.float16), mean=np.zeros(4, np.float16), var=np.ones(4, np.float16))
    steps = kernels(sardonyx, model)
    assert "batch_normalization" not in steps and any(step.startswith("conv.") for step in steps)
    for side in (True, False):
        feeds = {"x": random.standard_normal((2, 3, 8, 8)).astype(np.float16), "side": np.array(side)}
        ours, theirs = ours_and_theirs(sardonyx, model, feeds, tmp_path)
        for mine, yours in zip(ours, theirs):
            assert mine.dtype == np.float16
            np.testing.assert_allclose(mine.astype(np.float32), yours.astype(np.float32), atol=0.03)


@pytest.mark.parametrize("kind", ["ReduceSum", "ReduceMean", "ReduceMax", "ReduceMin", "ReduceProd", "ReduceL1",
                                  "ReduceL2", "ReduceSumSquare", "ReduceLogSum"])
@pytest.mark.parametrize("size", [1, 2, 5, 16, 17])
def test_reduction_of_short_rows(sardonyx, tmp_path, kind, size):
    for dtype in (np.float32, np.float64, np.int64):
        if dtype == np.int64 and kind in ("ReduceL2", "ReduceLogSum"):
            continue
        array = (np.random.default_rng(size).uniform(1, 4, (7, 3, size))).astype(dtype)
        info = helper.np_dtype_to_tensor_dtype(np.dtype(dtype))
        node = helper.make_node(kind, ["x", "axes"], ["y"], keepdims=0)
        graph = helper.make_graph([node], "g", [helper.make_tensor_value_info("x", info, ["a", "b", "c"])],
                                  [helper.make_tensor_value_info("y", info, None)],
                                  [numpy_helper.from_array(np.array([2]), "axes")])
        onnx.save(helper.make_model(graph, opset_imports=[helper.make_opsetid("", 18)], ir_version=8),
                  tmp_path / "m.onnx")
        want = {"ReduceSum": np.sum, "ReduceMean": np.mean, "ReduceMax": np.max, "ReduceMin": np.min,
                "ReduceProd": np.prod, "ReduceL1": lambda v, axis: np.abs(v).sum(axis),
                "ReduceL2": lambda v, axis: np.sqrt((v * v).sum(axis)),
                "ReduceSumSquare": lambda v, axis: (v * v).sum(axis),
                "ReduceLogSum": lambda v, axis: np.log(v.sum(axis))}[kind](array, axis=2)
        (y,) = sardonyx.outputs(tmp_path / "m.onnx", {"x": array}, tmp_path)
        if dtype == np.int64:
            want = np.trunc(want).astype(np.int64)
        np.testing.assert_allclose(y, want, rtol=1e-5)
