"""Checking, converting and composing from Python: messages, bytes, paths and models in, the same out."""

from __future__ import annotations

import io
import pickle

import numpy as np
import onnx
import pytest

import sardonyx

X = np.arange(6, dtype=np.float32).reshape(2, 3)


@pytest.fixture
def two(model) -> onnx.ModelProto:
    proto = model("two (float[rows,3] x) => (float[rows,3] y) { t = Mul(x, w) y = Relu(t) }")
    proto.graph.initializer.append(onnx.numpy_helper.from_array(np.array([1, -2, 3], np.float32), "w"))
    return proto


def forms(proto, tmp_path) -> dict:
    onnx.save(proto, tmp_path / "given.onnx")
    return {"message": proto, "bytes": proto.SerializeToString(), "path": tmp_path / "given.onnx",
            "file": io.BytesIO(proto.SerializeToString()), "model": sardonyx.Model(proto)}


FORMS = pytest.mark.parametrize("form", ["message", "bytes", "path", "file", "model"])


# --- looking ----------------------------------------------------------------------------------


def test_what_a_model_says(two):
    two.producer_name, two.domain, two.model_version, two.doc_string = "maker", "com.example", 3, "says"
    onnx.helper.set_model_props(two, {"key": "ü"})
    held = sardonyx.Model(two)
    assert (held.ir_version, held.producer_name, held.domain, held.model_version, held.doc_string) == (10, "maker", "com.example", 3, "says")
    assert held.metadata == {"key": "ü"} and held.opset_imports == {"": 21, "ai.onnx.ml": 4} and held.graph_name == "two"
    assert held.inputs == [("x", "float[rows,3]")] and held.outputs[0].name == "y"
    assert [(node.op_type, node.inputs, node.outputs) for node in held.nodes] == [("Mul", ["x", "w"], ["t"]), ("Relu", ["t"], ["y"])]


def test_weights_are_views(model, tmp_path):
    """Of what lies aligned in memory, as external data does; the bytes inside of a message lie anywhere."""
    proto = model("g (float[1000] x) => (float[1000] y) { y = Add(x, w) }")
    weight = np.arange(1000, dtype=np.float32)
    proto.graph.initializer.append(onnx.numpy_helper.from_array(weight, "w"))
    other = onnx.ModelProto.FromString(proto.SerializeToString())
    onnx.save(other, tmp_path / "m.onnx", save_as_external_data=True, location="w.bin", size_threshold=0)
    for held in (sardonyx.Model(proto), sardonyx.Model(tmp_path / "m.onnx"), sardonyx.Model(tmp_path / "m.onnx", load_external_data=False)):
        assert list(held.initializers) == ["w"] and len(held.initializers) == 1
        array = held.initializers["w"]
        np.testing.assert_array_equal(array, weight)
        assert not array.flags.writeable
        shared = np.shares_memory(array, held.initializers["w"])
        assert shared or held.path != str(tmp_path / "m.onnx") or not held._options["load_external_data"]
        with pytest.raises(KeyError):
            held.initializers["nobody"]
    del held
    np.testing.assert_array_equal(array, weight)  # which lives on without the model


@pytest.mark.parametrize("ending", ["onnx", "json", "textproto", "onnxtxt"])
def test_forms_of_files(ending, two, tmp_path):
    sardonyx.save(two, tmp_path / f"m.{ending}")
    np.testing.assert_array_equal(sardonyx.Session(tmp_path / f"m.{ending}")(X), np.maximum(X * [1, -2, 3], 0))
    assert sardonyx.diff(two, tmp_path / f"m.{ending}") == []
    if ending == "onnx":
        assert onnx.load(tmp_path / "m.onnx") == two


def test_saving_with_weights_beside(two, tmp_path):
    sardonyx.Model(two).save(tmp_path / "m.onnx", external_data="w.bin", threshold=1)
    assert onnx.load(tmp_path / "m.onnx", load_external_data=False).graph.initializer[0].data_location == onnx.TensorProto.EXTERNAL
    np.testing.assert_array_equal(sardonyx.Session(tmp_path / "m.onnx")(X)[0], [0, 0, 6])
    sardonyx.save(tmp_path / "m.onnx", tmp_path / "whole.onnx", embed=True)
    np.testing.assert_array_equal(sardonyx.Session((tmp_path / "whole.onnx").read_bytes())(X)[0], [0, 0, 6])
    with pytest.raises(sardonyx.BadInputError):
        sardonyx.save(two, tmp_path / "m.xyz")


def test_a_model_is_a_message_for_others(two):
    held = sardonyx.Model(two)
    assert onnx.load_model_from_string(held.SerializeToString()) == two
    assert sardonyx.diff(sardonyx.parse(held.to_text()), held) == []
    assert "two" in sardonyx.to_text(two) and "…" not in sardonyx.to_text(two)
    assert sardonyx.Model(io.StringIO(held.to_text())).nodes == held.nodes


def test_text_with_strings_that_are_not_utf8_is_read():
    tensor = onnx.helper.make_tensor("s", onnx.TensorProto.STRING, [2], [b"\xff\xfe", "\xfc".encode()])
    graph = onnx.helper.make_graph([onnx.helper.make_node("Identity", ["s"], ["y"])], "g", [],
                                   [onnx.helper.make_tensor_value_info("y", onnx.TensorProto.STRING, [2])], [tensor])
    held = sardonyx.Model(onnx.helper.make_model(graph, opset_imports=[onnx.helper.make_opsetid("", 21)], ir_version=10))
    assert sardonyx.diff(sardonyx.parse(held.to_text()), held) == []
    with pytest.raises(TypeError, match="a str, and a bytes was given"):
        sardonyx.parse(held.to_text().encode("utf-8", "surrogateescape"))


def test_models_that_were_made_pickle(two):
    made = sardonyx.inline(sardonyx.Model(two))
    again = pickle.loads(pickle.dumps(made))
    assert again.to_bytes() == made.to_bytes() and "2 nodes" in repr(made)
    assert sardonyx.Session(pickle.loads(pickle.dumps(sardonyx.Session(made))).model)(X).shape == (2, 3)


# --- checking ---------------------------------------------------------------------------------


@FORMS
def test_a_sound_model(form, two, tmp_path):
    report = sardonyx.check(forms(two, tmp_path)[form], full=True)
    assert report.ok and report.errors == [] and "error" not in str(report)


@FORMS
def test_a_broken_model(form, model, tmp_path):
    proto = model("g (float[n] x) => (float[n] y) { y = Softmax <axis = 1, colour = 3> (x) }")
    report = sardonyx.check(forms(proto, tmp_path)[form])
    (found,) = report.errors
    assert not report.ok and "colour" in str(found) and "node 0 Softmax" in found.place and found.rule
    assert found.severity == "error" and "<table>" in report._repr_html_()


def test_profiles(model):
    wrong = model("g (float[2] x, int64[2] i) => (float[2] y) { y = Add(x, i) }")
    assert sardonyx.check(wrong).ok and not sardonyx.check(wrong, full=True).ok and not sardonyx.check(wrong, profile="strict").ok
    with pytest.raises(sardonyx.BadInputError, match="profile"):
        sardonyx.check(wrong, profile="lax")
    unknown = model("g (float[2] x) => (float[2] y) { y = com.nobody.Nothing(x) }")
    unknown.opset_import.append(onnx.helper.make_opsetid("com.nobody", 1))
    assert sardonyx.check(unknown).ok and not sardonyx.check(unknown, unknown_domains_are_errors=True).ok


# --- making models of models ------------------------------------------------------------------

KINDS = {"message": onnx.ModelProto, "bytes": bytes, "path": sardonyx.Model, "file": sardonyx.Model, "model": sardonyx.Model}


@FORMS
def test_what_is_given_comes_back(form, two, tmp_path):
    old = onnx.helper.make_model(two.graph, ir_version=8, opset_imports=[onnx.helper.make_opsetid("", 13)])
    calls = [lambda one: sardonyx.convert_version(one, 21), sardonyx.inline, lambda one: sardonyx.extract(one, ["x"], ["t"]),
             lambda one: sardonyx.rename(one, prefix="p_"), lambda one: sardonyx.infer_shapes(one, **({"output": tmp_path / "o.onnx"}
                                                                                                       if form == "path" else {}))]
    for call in calls:
        made = call(forms(old, tmp_path)[form])
        if form == "path" and isinstance(made, str):
            assert made == str(tmp_path / "o.onnx")
        else:
            assert type(made) is KINDS[form]
        assert sardonyx.check(made, full=True).ok


def test_versions(two):
    old = onnx.helper.make_model(two.graph, ir_version=7, opset_imports=[onnx.helper.make_opsetid("", 12)])
    assert [one.version for one in sardonyx.convert_version(old, 18).opset_import if one.domain == ""] == [18]
    np.testing.assert_array_equal(sardonyx.Session(sardonyx.convert_version(old))(X), sardonyx.Session(two)(X))
    with pytest.raises(sardonyx.BadInputError):
        sardonyx.convert_version(two, 1)


def test_functions_are_inlined(model):
    proto = onnx.parser.parse_model('<ir_version: 10, opset_import: ["" : 21, "local" : 1]> g (float[n] x) => (float[n] y) '
                                    '{ y = local.twice(x) } <domain: "local", opset_import: ["" : 21]> twice (a) => (b) { b = Add(a, a) }')
    made = sardonyx.inline(proto)
    assert [node.op_type for node in made.graph.node] == ["Add"] and not made.functions
    np.testing.assert_array_equal(sardonyx.Session(made)(X[0]), 2 * X[0])


def test_a_text_is_no_list_of_names(two):
    for call, name in ((lambda: sardonyx.extract(two, "x", ["y"]), "inputs"), (lambda: sardonyx.extract(two, ["x"], "y"), "outputs"),
                       (lambda: sardonyx.merge(two, two, {"y": "x"}, second_prefix="p", outputs="py"), "outputs"),
                       (lambda: sardonyx.check(two, operator_sets="set.txt"), "operator_sets"),
                       (lambda: sardonyx.check(two, libraries=3), "libraries")):
        with pytest.raises(TypeError, match=f"{name} takes a list"):
            call()


def test_parts_and_joints(two, model):
    double = model("double (float[n,3] x) => (float[n,3] y) { y = Add(x, x) }")
    part = sardonyx.extract(two, ["t"], ["y"])
    assert [node.op_type for node in part.graph.node] == ["Relu"] and not part.graph.initializer
    with pytest.raises(sardonyx.BadInputError, match="nobody"):
        sardonyx.extract(two, ["x"], ["nobody"])
    both = sardonyx.merge(two, sardonyx.rename(double, prefix="d_"), {"y": "d_x"})
    np.testing.assert_array_equal(sardonyx.Session(both)(X), 2 * np.maximum(X * [1, -2, 3], 0))
    again = sardonyx.merge(two, double, [("y", "x")], second_prefix="d_")
    np.testing.assert_array_equal(sardonyx.Session(again)(X), sardonyx.Session(both)(X))
    with pytest.raises(sardonyx.BadInputError):
        sardonyx.merge(two, double, {"nobody": "x"})


def test_names(two):
    made = sardonyx.rename(two, values={"x": "image"}, dimensions={"rows": "batch"})
    assert made.graph.input[0].name == "image" and made.graph.input[0].type.tensor_type.shape.dim[0].dim_param == "batch"
    with pytest.raises(sardonyx.BadInputError, match="nobody"):
        sardonyx.rename(two, values={"nobody": "x"})


def test_differences(two):
    other = onnx.ModelProto()
    other.CopyFrom(two)
    other.graph.initializer[0].CopyFrom(onnx.numpy_helper.from_array(np.array([1, -2, 3.0001], np.float32), "w"))
    assert sardonyx.diff(two, two) == [] == sardonyx.diff(two, other, relative=1e-3)
    (found,) = sardonyx.diff(two, other)
    assert found.kind == "changed" and "'w'" in found.place
    other.graph.node.pop()
    assert {one.kind for one in sardonyx.diff(two, other)} >= {"changed", "only in first"}


def test_external_data_need_not_be_there(two, tmp_path):
    onnx.save(two, tmp_path / "m.onnx", save_as_external_data=True, location="w.bin", size_threshold=0)
    (tmp_path / "w.bin").unlink()
    assert sardonyx.check(tmp_path / "m.onnx").ok and not sardonyx.check(tmp_path / "m.onnx", data=True).ok
    assert sardonyx.rename(tmp_path / "m.onnx", prefix="p_").initializers.keys() == {"p_w"}
    with pytest.raises(sardonyx.UnreadableError):
        sardonyx.Session(tmp_path / "m.onnx")


# --- editing ----------------------------------------------------------------------------------


def test_what_a_model_says_is_changed(two):
    editor = sardonyx.ModelEditor(two)
    editor.set_ir_version(9).set_producer("maker", "1.2").set_domain("com.example").set_model_version(4).set_doc_string("says")
    editor.set_metadata("a", "1").set_metadata("b", "ü").set_metadata("a", "2").remove_metadata("b").set_opset_import("", 22)
    editor.set_graph_name("other")
    made = editor.finish()
    assert isinstance(made, onnx.ModelProto)
    assert (made.ir_version, made.producer_name, made.producer_version, made.domain, made.model_version, made.doc_string) == (
        9, "maker", "1.2", "com.example", 4, "says")
    assert [(one.key, one.value) for one in made.metadata_props] == [("a", "2")]
    assert {one.domain: one.version for one in made.opset_import}[""] == 22 and made.graph.name == "other"
    assert two.graph.name == "two" and two.producer_name == ""


def test_inputs_outputs_and_sizes_are_changed(two):
    editor = sardonyx.ModelEditor(sardonyx.Model(two))
    editor.set_dimension("x", 0, 2).set_dimension("y", 0, "n").add_output("t").set_denotation("x", "TENSOR").set_denotation("x", "DATA_BATCH", 0)
    made = editor.finish()
    assert isinstance(made, sardonyx.Model)
    assert made.inputs == [("x", "float[2,3]")] and made.outputs == [("y", "float[n,3]"), ("t", "float[2,3]")]
    proto = onnx.ModelProto.FromString(made.to_bytes())
    assert proto.graph.input[0].type.denotation == "TENSOR"
    assert proto.graph.input[0].type.tensor_type.shape.dim[0].denotation == "DATA_BATCH"
    editor.set_dimension("x", 0, None).set_type("y", "float[?,3]").remove_output("t").add_input("w", "float[3]")
    again = editor.finish()
    assert again.inputs == [("x", "float[?,3]"), ("w", "float[3]")] and again.outputs == [("y", "float[?,3]")]
    assert len(made.outputs) == 2
    assert editor.remove_input("w").finish().inputs == [("x", "float[?,3]")]


@FORMS
def test_initializers_are_changed(two, tmp_path, form):
    array = np.array([1, 1, 1], np.float32)
    editor = sardonyx.ModelEditor(forms(two, tmp_path)[form])
    assert editor.has_initializer("w") and not editor.has_initializer("v")
    made = editor.replace_initializer("w", array).add_initializer("v", [1, 2]).finish()
    array[:] = 9
    assert type(made) is {"message": onnx.ModelProto, "bytes": bytes}.get(form, sardonyx.Model)
    held = sardonyx.Model(made)
    assert held.initializers["w"].tolist() == [1, 1, 1] and held.initializers["v"].tolist() == [1, 2]
    np.testing.assert_array_equal(sardonyx.Session(made).run({"x": X})["y"], X)
    assert not sardonyx.ModelEditor(made).remove_initializer("v").has_initializer("v")


def test_editing_that_can_not_be(two):
    editor = sardonyx.ModelEditor(two)
    for change in (lambda: editor.set_dimension("none", 0, 1), lambda: editor.set_dimension("x", 5, 1), lambda: editor.set_type("x", "flaot[3]"),
                   lambda: editor.add_output("none"), lambda: editor.remove_initializer("w"), lambda: editor.remove_input("x"),
                   lambda: editor.replace_initializer("none", X), lambda: editor.set_opset_import("", 0),
                   lambda: editor.remove_metadata("none")):
        with pytest.raises(sardonyx.BadInputError):
            change()
    with pytest.raises(TypeError):
        editor.set_dimension("x", 0, 1.5)
    assert editor.finish() == two


# --- operators --------------------------------------------------------------------------------


def test_signatures_beside_onnx():
    for name in ("Softmax", "Conv", "Clip", "Resize", "LSTM", "Loop"):
        for version in sardonyx.operator_versions(name):
            schema = onnx.defs.get_schema(name, version.since)
            assert [one.name for one in version.inputs] == [one.name for one in schema.inputs]
            assert [one.name for one in version.outputs] == [one.name for one in schema.outputs]
            assert set(version.attributes) == set(schema.attributes)
            assert {key: sorted(types) for key, types in version.constraints.items()} == {
                one.type_param_str: sorted(one.allowed_type_strs) for one in schema.type_constraints}
    assert sardonyx.operator_signature("Softmax", opset=12).since == 11
    assert sardonyx.operator_signature("Softmax").attributes["axis"].default == -1
    assert "Softmax" in list(sardonyx.operators()) and "Scaler" in list(sardonyx.operators("ai.onnx.ml"))
    for name, opset in (("Nothing", None), ("Softmax", 0)):
        with pytest.raises(KeyError):
            sardonyx.operator_signature(name, opset=opset)
