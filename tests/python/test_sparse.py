"""Sparse initializers: their parts in other files, in subgraphs, and as defaults of inputs."""

from __future__ import annotations

import numpy as np
import onnx
import pytest
from conftest import parse_json
from onnx import TensorProto, helper, numpy_helper

WEIGHTS = np.array([[1, 0, 0], [0, 2, 3]], np.float32)


def sparse(name: str = "w") -> onnx.SparseTensorProto:
    return helper.make_sparse_tensor(numpy_helper.from_array(np.array([1, 2, 3], np.float32), name),
                                     numpy_helper.from_array(np.array([0, 4, 5], np.int64), f"{name}_places"), [2, 3])


def value(name: str) -> onnx.ValueInfoProto:
    return helper.make_tensor_value_info(name, TensorProto.FLOAT, [2, 3])


def model_of(graph: onnx.GraphProto) -> onnx.ModelProto:
    return helper.make_model(graph, opset_imports=[helper.make_opsetid("", 20)], ir_version=10)


def in_a_branch() -> onnx.ModelProto:
    always = helper.make_node("Constant", [], ["c"], value=numpy_helper.from_array(np.array(True)))
    branches = {name: helper.make_graph([helper.make_node("Add", ["x", "w"], [name])], name, [], [value(name)],
                                        sparse_initializer=[sparse()]) for name in ("then_branch", "else_branch")}
    chosen = helper.make_node("If", ["c"], ["y"], **branches)
    return model_of(helper.make_graph([always, chosen], "g", [value("x")], [value("y")]))


def in_the_graph(*inputs: str) -> onnx.ModelProto:
    return model_of(helper.make_graph([helper.make_node("Add", ["x", "w"], ["y"])], "g", [value("x"), *map(value, inputs)],
                                      [value("y")], sparse_initializer=[sparse()]))


def move_out(model: onnx.ModelProto, path, parts: tuple[str, ...]) -> None:
    """Saves the model with these parts of its sparse initializers in a file beside it."""
    graphs = [model.graph] + [attribute.g for node in model.graph.node for attribute in node.attribute if attribute.HasField("g")]
    content = b""
    for initializer in (one for graph in graphs for one in graph.sparse_initializer):
        for part in parts:
            tensor = getattr(initializer, part)
            raw = tensor.raw_data
            tensor.ClearField("raw_data")
            tensor.data_location = TensorProto.EXTERNAL
            for key, entry in (("location", "parts.bin"), ("offset", len(content)), ("length", len(raw))):
                tensor.external_data.add(key=key, value=str(entry))
            content += raw
    (path.parent / "parts.bin").write_bytes(content)
    path.write_bytes(model.SerializeToString())


@pytest.mark.parametrize("parts", [("values",), ("indices",), ("values", "indices")], ids="-".join)
@pytest.mark.parametrize("make", [in_the_graph, in_a_branch])
def test_parts_may_lie_in_other_files(sardonyx, tmp_path, make, parts):
    path, out = tmp_path / "m.onnx", tmp_path / "y.npz"
    move_out(make(), path, parts)
    for mode in ((), ("--reference",)):
        sardonyx("run", path, "--input", "x=ones", "-o", out, *mode)
        assert np.load(out)["y"].tolist() == (WEIGHTS + 1).tolist()
    report = parse_json(sardonyx("infer", path, "--json"))
    assert report["findings"] == []
    sardonyx("convert", path, tmp_path / "inside.onnx", "--embed")
    sardonyx("run", tmp_path / "inside.onnx", "--input", "x=ones", "-o", out)
    assert np.load(out)["y"].tolist() == (WEIGHTS + 1).tolist()


@pytest.mark.parametrize("mode", [(), ("--reference",)], ids=["planned", "plain"])
def test_they_are_defaults_of_inputs(sardonyx, tmp_path, mode):
    path, out, given = tmp_path / "m.onnx", tmp_path / "y.npz", np.full((2, 3), 5, np.float32)
    onnx.save(in_the_graph("w"), path)
    np.save(tmp_path / "w.npy", given)
    sardonyx("run", path, "--input", "x=ones", "-o", out, *mode)
    assert np.load(out)["y"].tolist() == (WEIGHTS + 1).tolist()
    sardonyx("run", path, "--input", "x=ones", "--input", f"w={tmp_path / 'w.npy'}", "-o", out, *mode)
    assert np.load(out)["y"].tolist() == (given + 1).tolist()
