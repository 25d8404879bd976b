"""`sardonyx convert`: the converted model is valid and gives the outputs of the old one, in ONNX Runtime too."""

import numpy
import onnx
import onnx.parser
import pytest
from onnx import TensorProto, helper, numpy_helper

ort = pytest.importorskip("onnxruntime")


def model_of(nodes, inputs, outputs, opset, initializers=(), imports=()):
    def infos(items):
        return [helper.make_tensor_value_info(name, kind, shape) for name, kind, shape in items]

    graph = helper.make_graph(nodes, "g", infos(inputs), infos(outputs),
                              [numpy_helper.from_array(array, name) for name, array in initializers])
    opsets = [helper.make_opsetid("", opset), *(helper.make_opsetid(*entry) for entry in imports)]
    return helper.make_model(graph, opset_imports=opsets, ir_version=7)


def convert(sardonyx, tmp_path, model, opset):
    onnx.save(model, tmp_path / "old.onnx")
    sardonyx("convert", tmp_path / "old.onnx", tmp_path / "new.onnx", "--opset", opset)
    new = onnx.load(tmp_path / "new.onnx")
    onnx.checker.check_model(new, full_check=True)
    assert {entry.domain: entry.version for entry in new.opset_import}[""] == opset
    return new


def outputs(model, feeds):
    session = ort.InferenceSession(model.SerializeToString(), providers=["CPUExecutionProvider"])
    return session.run(None, feeds)


FLOAT = TensorProto.FLOAT
X = numpy.linspace(-2, 3, 24, dtype=numpy.float32).reshape(1, 2, 3, 4)


@pytest.mark.parametrize("opset", [18, 21])
@pytest.mark.parametrize("node, old", [
    (helper.make_node("Softmax", ["x"], ["y"]), 11),
    (helper.make_node("Hardmax", ["x"], ["y"], axis=2), 11),
    (helper.make_node("Clip", ["x"], ["y"], min=-1.0, max=1.5), 7),
    (helper.make_node("Pad", ["x"], ["y"], pads=[0, 0, 1, 0, 0, 0, 0, 2], value=7.0), 10),
    (helper.make_node("Slice", ["x"], ["y"], starts=[1], ends=[3], axes=[3]), 9),
    (helper.make_node("ReduceMean", ["x"], ["y"], axes=[2, 3]), 13),
    (helper.make_node("Unsqueeze", ["x"], ["y"], axes=[0]), 11),
    (helper.make_node("Upsample", ["x"], ["y"], scales=[1.0, 1.0, 2.0, 1.5], mode="linear"), 7),
    (helper.make_node("Dropout", ["x"], ["y"], ratio=0.25), 10),
])
def test_nodes_keep_their_meaning(sardonyx, tmp_path, node, old, opset):
    rank = 5 if node.op_type == "Unsqueeze" else 4
    model = model_of([node], [("x", FLOAT, [1, 2, 3, 4])], [("y", FLOAT, [None] * rank)], old)
    new = convert(sardonyx, tmp_path, model, opset)
    for was, now in zip(outputs(model, {"x": X}), outputs(new, {"x": X})):
        numpy.testing.assert_allclose(now, was, rtol=1e-5, atol=1e-6)


def test_what_onnx_runtime_no_longer_runs(sardonyx, tmp_path):
    """Opset 6: expected values from the definition."""
    node = helper.make_node("Add", ["x", "b"], ["y"], broadcast=1, axis=1)
    model = model_of([node], [("x", FLOAT, [1, 2, 3, 4]), ("b", FLOAT, [2])], [("y", FLOAT, [1, 2, 3, 4])], 6)
    new = convert(sardonyx, tmp_path, model, 21)
    b = numpy.array([10, 20], numpy.float32)
    numpy.testing.assert_allclose(outputs(new, {"x": X, "b": b})[0], X + b.reshape(1, 2, 1, 1))


def test_subgraphs_are_converted(sardonyx, tmp_path):
    branches = [helper.make_graph([helper.make_node("Squeeze", ["x"], [name], axes=[0])], name, [],
                                  [helper.make_tensor_value_info(name, FLOAT, [2])]) for name in ("p", "q")]
    node = helper.make_node("If", ["c"], ["y"], then_branch=branches[0], else_branch=branches[1])
    model = model_of([node], [("c", TensorProto.BOOL, []), ("x", FLOAT, [1, 2])], [("y", FLOAT, [2])], 11)
    new = convert(sardonyx, tmp_path, model, 21)
    x = numpy.ones((1, 2), numpy.float32)
    assert outputs(new, {"c": numpy.array(True), "x": x})[0].shape == (2,)


def test_other_domains_get_the_least_that_suffices(sardonyx, tmp_path):
    node = helper.make_node("LabelEncoder", ["x"], ["y"], domain="ai.onnx.ml", classes_strings=["a", "b"])
    model = model_of([node], [("x", TensorProto.STRING, [2])], [("y", TensorProto.INT64, [2])], 9,
                     imports=[("ai.onnx.ml", 1)])
    new = convert(sardonyx, tmp_path, model, 21)
    assert {entry.domain: entry.version for entry in new.opset_import}["ai.onnx.ml"] == 2
    assert outputs(new, {"x": numpy.array(["b", "z"], object)})[0].tolist() == [1, -1]


@pytest.mark.parametrize("opset", [16, 18])
def test_domains_that_functions_alone_import(sardonyx, tmp_path, opset):
    model = onnx.parser.parse_model("""<ir_version: 8, opset_import: ["" : 17, "local" : 1]>
      g (float[2,3] x) => (float[2,3] y) { y = local.f (x) }
      <domain: "local", opset_import: ["" : 17, "ai.onnx.ml" : 3]> f (a) => (b) { b = ai.onnx.ml.Normalizer <norm = "L1"> (a) }""")
    new = convert(sardonyx, tmp_path, model, opset)
    assert {entry.domain: entry.version for entry in new.opset_import}["ai.onnx.ml"] == 3
    assert outputs(new, {"x": numpy.ones((2, 3), numpy.float32)})[0].tolist() == outputs(model, {"x": numpy.ones((2, 3), numpy.float32)})[0].tolist()


def test_an_opset_that_cannot_say_it_is_refused(sardonyx, tmp_path):
    node = helper.make_node("Einsum", ["x"], ["y"], equation="ij->ji")
    onnx.save(model_of([node], [("x", FLOAT, [1, 2])], [("y", FLOAT, [2, 1])], 12), tmp_path / "m.onnx")
    paths = tmp_path / "m.onnx", tmp_path / "n.onnx"
    sardonyx.fails(6, "convert", *paths, "--opset", 11, mentions=["Einsum", "no such operator", "opset 12 is the least"])
    sardonyx.fails(6, "convert", *paths, "--opset", 29, mentions=["must be in [1, 28]"])
    node = helper.make_node("ReduceLogSumExp", ["x", "axes"], ["y"])
    onnx.save(model_of([node], [("x", FLOAT, [1, 2]), ("axes", TensorProto.INT64, [1])], [("y", FLOAT, [None, None])], 18), paths[0])
    sardonyx.fails(6, "convert", *paths, "--opset", 13,
                   mentions=["ReduceLogSumExp making 'y'", "of the ReduceMax that it takes, its input 'axes' must be constant", "opset 18"])
    assert not paths[1].exists()


@pytest.mark.parametrize("opset", [9, 11, 12, 13, 17])
@pytest.mark.parametrize("node, constants", [
    (helper.make_node("Softmax", ["x"], ["y"], axis=1), {}),
    (helper.make_node("Clip", ["x", "a", "b"], ["y"]), {"a": numpy.float32(-1), "b": numpy.float32(1.5)}),
    (helper.make_node("Pad", ["x", "a", "b", "c"], ["y"]),
     {"a": numpy.array([1, 0, 0, 2]), "b": numpy.float32(7), "c": numpy.array([-1, 2])}),
    (helper.make_node("Slice", ["x", "a", "b", "c"], ["y"]), {"a": numpy.array([1]), "b": numpy.array([3]), "c": numpy.array([-1])}),
    (helper.make_node("ReduceMean", ["x", "a"], ["y"]), {"a": numpy.array([2, -1])}),
    (helper.make_node("ReduceMean", ["x"], ["y"], noop_with_empty_axes=1), {}),
    (helper.make_node("Split", ["x"], ["y", "z"], axis=-1, num_outputs=2), {}),
    (helper.make_node("Shape", ["x"], ["y"], start=1, end=-1), {}),
    (helper.make_node("Resize", ["x", "", "a"], ["y"], axes=[3, 2], coordinate_transformation_mode="asymmetric", nearest_mode="floor"),
     {"a": numpy.array([2, 3], numpy.float32)}),
    (helper.make_node("TopK", ["x", "a"], ["y", "z"]), {"a": numpy.array([2])}),
    (helper.make_node("Gelu", ["x"], ["y"]), {}),
    (helper.make_node("LayerNormalization", ["x", "a"], ["y"]), {"a": numpy.arange(4, dtype=numpy.float32)}),
    (helper.make_node("GroupNormalization", ["x", "a", "b"], ["y"], num_groups=1),
     {"a": numpy.array([2, 3], numpy.float32), "b": numpy.array([1, -1], numpy.float32)}),
])
def test_nodes_keep_their_meaning_in_older_opsets(sardonyx, tmp_path, node, constants, opset):
    kind = TensorProto.INT64 if node.op_type == "Shape" else FLOAT
    rank = 1 if node.op_type == "Shape" else 4
    made = [(name, TensorProto.INT64 if node.op_type == "TopK" and name == "z" else kind, [None] * rank) for name in node.output]
    model = model_of([node], [("x", FLOAT, [1, 2, 3, 4])], made, 21, initializers=constants.items())
    new = convert(sardonyx, tmp_path, model, opset)
    for was, now in zip(outputs(model, {"x": X}), outputs(new, {"x": X})):
        numpy.testing.assert_allclose(now, was, rtol=1e-5, atol=1e-5)


def test_subgraphs_are_converted_down(sardonyx, tmp_path):
    """Constants of the graph around them, and integers, which constants are not before opset 9."""
    branches = [helper.make_graph([helper.make_node("Constant", [], [f"{name}_axes"], value_ints=[0]),
                                   helper.make_node("Squeeze", ["x", axes], [f"{name}_"]),
                                   helper.make_node("Gather", [f"{name}_", f"{name}_axes"], [name])], name, [],
                                  [helper.make_tensor_value_info(name, FLOAT, [1])])
                for name, axes in (("p", "p_axes"), ("q", "outer"))]
    node = helper.make_node("If", ["c"], ["y"], then_branch=branches[0], else_branch=branches[1])
    model = model_of([node], [("c", TensorProto.BOOL, []), ("x", FLOAT, [1, 2])], [("y", FLOAT, [1])], 21,
                     initializers=[("outer", numpy.array([0]))])
    for opset in (8, 11, 13):
        new = convert(sardonyx, tmp_path, model, opset)
        assert ("outer" in {tensor.name for tensor in new.graph.initializer}) == (opset == 13)
        for chosen in (True, False):
            feeds = {"c": numpy.array(chosen), "x": numpy.array([[3, 4]], numpy.float32)}
            assert outputs(new, feeds)[0].tolist() == [3]


def test_the_ir_version_is_that_of_the_opset(sardonyx, tmp_path):
    node = helper.make_node("MatMul", ["x", "w"], ["y"])
    model = model_of([node], [("x", FLOAT, [1, 2])], [("y", FLOAT, [1, 3])], 21, initializers=[("w", numpy.ones((2, 3), numpy.float32))])
    model.ir_version = 10
    for opset, ir_version in ((20, 9), (13, 7), (11, 6), (9, 4), (8, 3)):
        new = convert(sardonyx, tmp_path, model, opset)
        assert new.ir_version == ir_version
        # Up to IR version 3 initializers are inputs, too.
        assert [info.name for info in new.graph.input] == (["x", "w"] if ir_version == 3 else ["x"])
        assert outputs(new, {"x": numpy.ones((1, 2), numpy.float32)})[0].tolist() == [[2, 2, 2]]


@pytest.mark.parametrize("opset", [11, 21])
def test_names_of_nodes_differ(sardonyx, tmp_path, opset):
    """What stands for a node has its name, and other readers want names that differ."""
    nodes = [helper.make_node("Gelu", ["x"], ["h"], name="node"), helper.make_node("LayerNormalization", ["h", "a"], ["y"], name="same"),
             helper.make_node("HardSwish", ["h"], ["z"], name="same")]
    model = model_of(nodes, [("x", FLOAT, [1, 2, 3, 4])], [("y", FLOAT, [None] * 4), ("z", FLOAT, [None] * 4)], 20,
                     initializers=[("a", numpy.ones(4, numpy.float32))])
    new = convert(sardonyx, tmp_path, model, opset)
    names = [node.name for node in new.graph.node if node.name]
    assert len(names) == len(set(names)) and "node" in names
    model.graph.node[2].name = "other"
    for was, now in zip(outputs(model, {"x": X}), outputs(new, {"x": X})):
        numpy.testing.assert_allclose(now, was, rtol=1e-5, atol=1e-5)


def test_initializers_that_are_inputs_become_attributes(sardonyx, tmp_path):
    node = helper.make_node("Upsample", ["x", "s"], ["y"])
    model = model_of([node], [("x", FLOAT, [1, 2, 3, 4]), ("s", FLOAT, [4])], [("y", FLOAT, [1, 2, 6, 8])], 9,
                     initializers=[("s", numpy.array([1, 1, 2, 2], numpy.float32))])
    new = convert(sardonyx, tmp_path, model, 8)
    assert [node.op_type for node in new.graph.node] == ["Upsample"] and [info.name for info in new.graph.input] == ["x"]
    numpy.testing.assert_allclose(outputs(new, {"x": X})[0], outputs(model, {"x": X})[0])


def test_broken_models_are_refused(sardonyx, tmp_path):
    node = helper.make_node("Softmax", [], ["y"])
    onnx.save(model_of([node], [], [("y", FLOAT, [1])], 11), tmp_path / "m.onnx")
    sardonyx.fails(4, "convert", tmp_path / "m.onnx", tmp_path / "n.onnx", "--opset", 21, mentions=["Softmax", "D-10"])


HALF, INTS, INT64 = TensorProto.FLOAT16, TensorProto.INT32, TensorProto.INT64
PARAMETERS = {name: numpy.array([1, 2], numpy.float32) for name in ("s", "b", "m", "v")}
EMPTY = {"a": numpy.array([], numpy.int64)}


@pytest.mark.parametrize("node, old, opset, kinds, constants", [
    # Up to opset 6 a Dropout or BatchNormalization that does not say so is not inference.
    (helper.make_node("Dropout", ["x"], ["y"]), 13, 6, [FLOAT], {}),
    (helper.make_node("Dropout", ["x", "r"], ["y"]), 13, 1, [FLOAT], {"r": numpy.float32(0.75)}),
    (helper.make_node("BatchNormalization", ["x", "s", "b", "m", "v"], ["y"]), 15, 6, [FLOAT], PARAMETERS),
    (helper.make_node("BatchNormalization", ["x", "s", "b", "m", "v"], ["y"], is_test=1), 6, 5, [FLOAT], PARAMETERS),
    (helper.make_node("BatchNormalization", ["x", "s", "b", "m", "v"], ["y", "z", "w"], training_mode=1), 15, 9, [FLOAT] * 3, PARAMETERS),
    (helper.make_node("BatchNormalization", ["x", "s", "b", "m", "v"], ["y"], training_mode=1), 15, 13, [FLOAT], PARAMETERS),
    # Attributes were of other kinds or had other names.
    (helper.make_node("Cast", ["x"], ["y"], to=INTS), 13, 5, [INTS], {}),
    (helper.make_node("LpPool", ["x"], ["y"], kernel_shape=[2, 2], p=3), 2, 1, [FLOAT], {}),
    (helper.make_node("GlobalLpPool", ["x"], ["y"], p=3), 2, 1, [FLOAT], {}),
    (helper.make_node("Pad", ["x"], ["y"], pads=[0, 0, 1, 0, 0, 0, 0, 2], value=7.0), 2, 1, [FLOAT], {}),
    # Half precision.
    (helper.make_node("Clip", ["x"], ["y"], min=-1.0, max=1.5), 6, 7, [HALF], {}),
    (helper.make_node("Pad", ["x"], ["y"], pads=[0, 0, 1, 0, 0, 0, 0, 2], value=7.0), 2, 10, [HALF], {}),
    # No axes at all, not all of them.
    (helper.make_node("Squeeze", ["x", "a"], ["y"]), 13, 11, [FLOAT], EMPTY),
    (helper.make_node("Unsqueeze", ["x", "a"], ["y"]), 13, 11, [FLOAT], EMPTY),
    # Axes count from the start up to opset 10.
    (helper.make_node("Split", ["x", "a"], ["y", "t"], axis=-1), 13, 10, [FLOAT, FLOAT], {"a": numpy.array([1, 3])}),
    # Of one name or another, and with negative indices.
    (helper.make_node("Scatter", ["x", "i", "u"], ["y"], axis=3), 9, 10, [FLOAT],
     {"i": numpy.array([[[[1, 3]]]]), "u": numpy.array([[[[8, 9]]]], numpy.float32)}),
    (helper.make_node("OneHot", ["i", "d", "u"], ["y"]), 11, 10, [FLOAT],
     {"i": numpy.array([0, -1, 3]), "d": numpy.array([3]), "u": numpy.array([5, 6], numpy.float32)}),
    (helper.make_node("OneHot", ["i", "d", "u"], ["y"]), 9, 10, [FLOAT],
     {"i": numpy.array([0, -1, 3]), "d": numpy.array([3]), "u": numpy.array([5, 6], numpy.float32)}),
    # Versions 19 and 21 have one type for both inputs.
    (helper.make_node("QuantizeLinear", ["i", "s"], ["y"]), 13, 21, [TensorProto.UINT8],
     {"i": numpy.array([1, 30], numpy.int32), "s": numpy.float32(0.5)}),
])
def test_old_versions_mean_what_newer_ones_do(sardonyx, tmp_path, node, old, opset, kinds, constants):
    ranks = [1 if name in ("z", "w") or node.input[0] != "x" else 4 for name in node.output]
    if node.op_type == "OneHot":
        ranks = [2]
    x = X.astype(numpy.float16) if kinds[0] == HALF else X
    model = model_of([node], [("x", HALF if kinds[0] == HALF else FLOAT, [1, 2, 3, 4])],
                     [(name, kind, [None] * rank) for name, kind, rank in zip(node.output, kinds, ranks)], old, constants.items())
    new = convert(sardonyx, tmp_path, model, opset)
    assert opset >= 11 or all(attribute.i >= 0 for node in new.graph.node for attribute in node.attribute if attribute.name == "axis")
    was, now = (sardonyx.outputs(tmp_path / name, {"x": x}, tmp_path) for name in ("old.onnx", "new.onnx"))
    for a, b in zip(was, now):
        assert a.dtype == b.dtype
        numpy.testing.assert_allclose(b, a, rtol=1e-5, atol=1e-6)


@pytest.mark.parametrize("scale, rounding, fits", [(0.6, "floor", False), (0.6, "ceil", True), (1.5, "floor", True), (1.5, "ceil", False),
                                                   (0.5, "floor", True), (0.5, "round_prefer_floor", True)])
def test_resize_of_opset_10_rounds_by_direction(sardonyx, tmp_path, scale, rounding, fits):
    node = helper.make_node("Resize", ["x", "", "s"], ["y"], coordinate_transformation_mode="asymmetric", nearest_mode=rounding)
    model = model_of([node], [("x", FLOAT, [1, 2, 3, 4])], [("y", FLOAT, [None] * 4)], 13,
                     initializers=[("s", numpy.array([1, 1, scale, scale], numpy.float32))])
    if not fits:
        onnx.save(model, tmp_path / "m.onnx")
        sardonyx.fails(6, "convert", tmp_path / "m.onnx", tmp_path / "n.onnx", "--opset", 10, mentions=["nearest_mode", "opset 11 is the least"])
        return
    new = convert(sardonyx, tmp_path, model, 10)
    numpy.testing.assert_array_equal(outputs(new, {"x": X})[0], outputs(model, {"x": X})[0])


@pytest.mark.parametrize("word, old, opset", [("bilinear", 16, 18), ("bicubic", 16, 19), ("linear", 20, 16), ("cubic", 20, 16), (None, 20, 16)])
def test_modes_of_grid_sample_have_the_words_of_their_opset(sardonyx, tmp_path, word, old, opset):
    grid = numpy.linspace(-1, 1, 8, dtype=numpy.float32).reshape(1, 2, 2, 2)
    node = helper.make_node("GridSample", ["x", "g"], ["y"], **({"mode": word} if word else {}))
    model = model_of([node], [("x", FLOAT, [1, 2, 3, 4])], [("y", FLOAT, [None] * 4)], old, initializers=[("g", grid)])
    new = convert(sardonyx, tmp_path, model, opset)
    numpy.testing.assert_allclose(outputs(new, {"x": X})[0], outputs(model, {"x": X})[0], rtol=1e-5, atol=1e-6)


@pytest.mark.parametrize("kinds, mask", [((HALF, HALF), numpy.float32), ((FLOAT, HALF), numpy.float32), ((FLOAT, FLOAT), numpy.int32)])
def test_masks_and_values_of_attention_may_be_of_other_types(sardonyx, tmp_path, kinds, mask):
    random = numpy.random.default_rng(0)
    inputs = [(name, kind, [1, 2, 3, 4]) for name, kind in zip("qkv", (kinds[0], *kinds))]
    feeds = {name: random.standard_normal(shape).astype(helper.tensor_dtype_to_np_dtype(kind)) for name, kind, shape in inputs}
    constants = {"m": random.integers(0, 3, (3, 3)).astype(mask)}
    node = helper.make_node("Attention", ["q", "k", "v", "m"], ["y"])
    model = model_of([node], inputs, [("y", kinds[0], [None] * 4)], 23, constants.items())
    convert(sardonyx, tmp_path, model, 18)
    was, now = (sardonyx.outputs(tmp_path / name, feeds, tmp_path)[0] for name in ("old.onnx", "new.onnx"))
    assert was.dtype == now.dtype
    numpy.testing.assert_allclose(now.astype(numpy.float32), was.astype(numpy.float32), rtol=1e-2, atol=1e-2)


@pytest.mark.parametrize("upper", [0, 1])
@pytest.mark.parametrize("diagonal", [-2**63, -1, 2, 2**63 - 1])
def test_any_diagonal_of_trilu(sardonyx, tmp_path, upper, diagonal):
    model = model_of([helper.make_node("Trilu", ["x", "k"], ["y"], upper=upper)], [("x", FLOAT, [1, 2, 3, 4])], [("y", FLOAT, [1, 2, 3, 4])], 14,
                     initializers=[("k", numpy.array(diagonal))])
    convert(sardonyx, tmp_path, model, 13)
    was, now = (sardonyx.outputs(tmp_path / name, {"x": X}, tmp_path)[0] for name in ("old.onnx", "new.onnx"))
    numpy.testing.assert_array_equal(now, was)


def test_volumes_are_not_sampled_before_opset_20(sardonyx, tmp_path):
    node = helper.make_node("GridSample", ["x", "g"], ["y"], mode="nearest")
    onnx.save(model_of([node], [("x", FLOAT, [1, 1, 2, 2, 2]), ("g", FLOAT, [1, 1, 1, 1, 3])], [("y", FLOAT, [None] * 5)], 20), tmp_path / "m.onnx")
    sardonyx.fails(6, "convert", tmp_path / "m.onnx", tmp_path / "n.onnx", "--opset", 16, mentions=["no image", "opset 20 is the least"])


def test_types_that_may_not_differ_in_older_versions(sardonyx, tmp_path):
    model = model_of([helper.make_node("Pow", ["x", "e"], ["y"])], [("x", FLOAT, [2]), ("e", TensorProto.DOUBLE, [2])], [("y", FLOAT, [2])], 15)
    onnx.save(model, tmp_path / "m.onnx")
    sardonyx.fails(6, "convert", tmp_path / "m.onnx", tmp_path / "n.onnx", "--opset", 11, mentions=["'Y'", "'X'", "opset 12 is the least"])


@pytest.mark.parametrize("opset", [11, 12, 13])
@pytest.mark.parametrize("node, old", [
    (helper.make_node("Upsample", ["x", "s"], ["y"]), 9), (helper.make_node("Resize", ["x", "s"], ["y"], mode="linear"), 10)])
def test_resize_has_the_region_that_old_versions_ask_for(sardonyx, tmp_path, node, old, opset):
    model = model_of([node], [("x", FLOAT, [1, 2, 3, 4])], [("y", FLOAT, [1, 2, 6, 8])], old,
                     initializers=[("s", numpy.array([1, 1, 2, 2], numpy.float32))])
    new = convert(sardonyx, tmp_path, model, opset)
    numpy.testing.assert_allclose(outputs(new, {"x": X})[0], outputs(model, {"x": X})[0], rtol=1e-6)
