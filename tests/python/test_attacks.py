"""Published attacks on loaders of ONNX files: each costs an error message, wherever in a model it stands.

tests/wire/external_test.cc tries the resolver itself: links, devices, ranges, keys, address markers.
"""

from __future__ import annotations

import time

import numpy as np
import onnx
import pytest
from conftest import INVALID_MODEL, OK
from onnx import AttributeProto, TensorProto, helper

FLOATS = TensorProto.FLOAT


def external(location, dims=(2,), **entries):
    tensor = TensorProto(name="w", dims=dims, data_type=FLOATS, data_location=TensorProto.EXTERNAL)
    for key, value in {"location": location, "length": "8", **entries}.items():
        tensor.external_data.add(key=key, value=value)
    return tensor


def port(name):
    return helper.make_tensor_value_info(name, FLOATS, [2])


def model_with(tensor, place):
    """y = x + 1, with the tensor somewhere in it."""
    functions = []
    nodes = [helper.make_node("Constant", [], ["one"], value_floats=[1.0, 1.0]), helper.make_node("Add", ["x", "one"], ["y"])]
    initializers, sparse = [], []
    constant = helper.make_node("Constant", [], ["w"], value=tensor)
    if place == "initializer":
        initializers.append(tensor)
    elif place == "attribute":
        nodes.append(constant)
    elif place == "subgraph":
        branch = helper.make_graph([constant], "b", [], [helper.make_tensor_value_info("w", FLOATS, None)])
        nodes += [helper.make_node("Constant", [], ["c"], value=helper.make_tensor("c", TensorProto.BOOL, [], [True])),
                  helper.make_node("If", ["c"], ["v"], then_branch=branch, else_branch=branch)]
    elif place == "sparse values":
        indices = helper.make_tensor("i", TensorProto.INT64, [2], [0, 1])
        sparse.append(onnx.SparseTensorProto(values=tensor, indices=indices, dims=[4]))
    elif place in ("function", "default of a function's attribute"):
        body = [constant, helper.make_node("Identity", ["a"], ["b"])]
        function = helper.make_function("f", "F", ["a"], ["b"], body if place == "function" else body[1:], [helper.make_opsetid("", 17)])
        if place != "function":
            function.attribute_proto.append(helper.make_attribute("p", tensor))
        functions.append(function)
        nodes.append(helper.make_node("F", ["x"], ["v"], domain="f"))
    graph = helper.make_graph(nodes, "g", [port("x")], [port("y")], initializers, sparse_initializer=sparse)
    model = helper.make_model(graph, ir_version=9, functions=functions,
                              opset_imports=[helper.make_opsetid("", 17), helper.make_opsetid("f", 1)])
    if place == "training":
        model.training_info.add(algorithm=helper.make_graph([], "t", [], [], [tensor]))
    return model


PLACES = ("initializer", "attribute", "subgraph", "sparse values", "function", "default of a function's attribute", "training")


@pytest.mark.parametrize("place", PLACES)
@pytest.mark.parametrize("location", ["../secret.bin", "a/../../secret.bin", "{absolute}"])
def test_no_tensor_reads_outside_the_folder(sardonyx, tmp_path, place, location):  # CVE-2022-25882, 2024-27318, 2026-27489
    secret = tmp_path / "secret.bin"
    secret.write_bytes(b"\0" * 8)
    folder = tmp_path / "model"
    (folder / "a").mkdir(parents=True)
    onnx.save(model_with(external(location.replace("{absolute}", str(secret))), place), folder / "m.onnx")
    for command in (["run", "--input", "x=1 2"], ["convert", "--embed"]):
        arguments = [command[0], folder / "m.onnx", *command[1:]]
        if command[0] == "convert":
            arguments.insert(2, folder / "out.onnx")
        sardonyx.fails(INVALID_MODEL, *arguments, mentions=["secret.bin"])
    assert "XD-05" in sardonyx("check", folder / "m.onnx", expect=1).stdout


@pytest.mark.parametrize("place", PLACES)
def test_every_tensor_is_read_through_the_resolver(sardonyx, tmp_path, place):
    (tmp_path / "w.bin").write_bytes(np.ones(2, np.float32).tobytes())
    onnx.save(model_with(external("w.bin"), place), tmp_path / "m.onnx")
    sardonyx("run", tmp_path / "m.onnx", "--input", "x=1 2")
    sardonyx("convert", tmp_path / "m.onnx", tmp_path / "whole.onnx", "--embed")
    assert b"w.bin" not in (tmp_path / "whole.onnx").read_bytes()


@pytest.mark.parametrize("place", ("initializer", "training"))
@pytest.mark.parametrize("dims, entries, words", [
    ([2 ** 62, 4], {}, ["overflow"]),  # onnx#7580
    ([-2], {}, ["negative"]),
    ([2], {"offset": "-1"}, ["-1"]),
    ([2], {"offset": "18446744073709551612"}, ["offset"]),  # openvino#34070
    ([2], {"offset": "5"}, ["offset 5"]),  # one byte beyond the end
    ([4], {"length": "8"}, ["16"]),
    ([2], {"length": "1" * 30}, ["length"]),
])
def test_sizes_that_lie(sardonyx, tmp_path, place, dims, entries, words):
    (tmp_path / "w.bin").write_bytes(b"\0" * 12)
    onnx.save(model_with(external("w.bin", dims, **entries), place), tmp_path / "m.onnx")
    sardonyx.fails(INVALID_MODEL, "convert", tmp_path / "m.onnx", tmp_path / "out.onnx", "--embed", mentions=words)


def test_nested_ifs_cost_no_more_than_their_number(sardonyx, tmp_path):
    def branch(depth):
        if depth == 0:
            return helper.make_graph([helper.make_node("Relu", ["x"], ["r"])], "leaf", [], [port("r")])
        node = helper.make_node("If", ["c"], [f"v{depth}"], then_branch=branch(depth - 1), else_branch=branch(0))
        return helper.make_graph([node], f"b{depth}", [], [port(f"v{depth}")])

    graph = branch(26)
    graph.output[0].name = graph.node[0].output[0] = "y"
    graph.input.extend([port("x"), helper.make_tensor_value_info("c", TensorProto.BOOL, [])])
    onnx.save(helper.make_model(graph, ir_version=9, opset_imports=[helper.make_opsetid("", 17)]), tmp_path / "m.onnx")
    start = time.monotonic()
    sardonyx("run", tmp_path / "m.onnx", "--input", "x=1 -2", "--input", "c=true")
    sardonyx("check", "--full", tmp_path / "m.onnx")
    assert time.monotonic() - start < 60  # exponential work in the depth would take days


@pytest.mark.parametrize("form, text", [
    ("onnxtxt", "<ir_version: 9> g () => () { " + "y = If (c) <then_branch = g () => () { " * 5000),
    ("json", '{"graph": ' * 1 + '{"node": [{"attribute": [{"g": ' * 50_000),
    ("textproto", "graph { " + "node { attribute { g { " * 50_000),
    ("json", '{"graph": ' + "[" * 1_000_000),
])
def test_text_that_nests_without_end(sardonyx, tmp_path, form, text):
    (tmp_path / f"m.{form}").write_text(text)
    sardonyx.fails(INVALID_MODEL, "check", tmp_path / f"m.{form}")


def test_attributes_of_the_wrong_kind(sardonyx, tmp_path):  # type confusion in Slice's and Gemm's old versions
    for op, opset, attribute in (("Slice", 1, AttributeProto(name="starts", type=AttributeProto.STRING, s=b"x")),
                                 ("Gemm", 6, AttributeProto(name="broadcast", type=AttributeProto.GRAPH))):
        node = helper.make_node(op, ["x", "x", "x"][:3 if op == "Gemm" else 1], ["y"])
        node.attribute.append(attribute)
        graph = helper.make_graph([node], "g", [port("x")], [port("y")])
        onnx.save(helper.make_model(graph, ir_version=3, opset_imports=[helper.make_opsetid("", opset)]), tmp_path / "m.onnx")
        assert sardonyx("run", tmp_path / "m.onnx", "--input", "x=1 2", expect=None).returncode not in (OK, -6, -11)
