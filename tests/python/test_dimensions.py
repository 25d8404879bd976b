"""Dimensions as exporters write them: anonymous ones, names for open sizes, declarations that runs contradict."""

from __future__ import annotations

import json

import numpy as np
import onnx
import pytest
from conftest import BAD_INPUT, USAGE
from onnx import TensorProto, helper

ANONYMOUS = [None, "", "?", "None", "-1", -1, -7, 0, "unk__3"]


def value(name: str, dims, element=TensorProto.FLOAT) -> onnx.ValueInfoProto:
    """Dimensions as they are, which onnx.helper would not write: 0, -1, an empty name."""
    info = onnx.ValueInfoProto(name=name)
    info.type.tensor_type.elem_type = element
    info.type.tensor_type.shape.SetInParent()
    for dim in dims:
        written = info.type.tensor_type.shape.dim.add()
        if isinstance(dim, int):
            written.dim_value = dim
        elif dim is not None:
            written.dim_param = dim
    return info


def save(folder, nodes, inputs, outputs, name="model.onnx", value_info=(), initializers=()):
    graph = helper.make_graph(nodes, "g", inputs, outputs, list(initializers), value_info=list(value_info))
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 21)], ir_version=10)
    path = folder / name
    path.write_bytes(model.SerializeToString())
    return path


def relu(folder, dims, out=None, **more):
    nodes = [helper.make_node("Relu", ["x"], ["y"], name="r")]
    return save(folder, nodes, [value("x", dims)], [value("y", dims if out is None else out)], **more)


def arrays(folder, **given):
    path = folder / "inputs.npz"
    np.savez(path, **given)
    return ["--inputs", path]


@pytest.mark.parametrize("dim", ANONYMOUS)
@pytest.mark.parametrize("mode", [[], ["--reference"]])
def test_anonymous_dimensions_are_independent(sardonyx, tmp_path, dim, mode):
    path = relu(tmp_path, [dim, dim, 3])
    given = arrays(tmp_path, x=np.ones((2, 5, 3), np.float32))
    done = sardonyx("run", path, *given, "--json", *mode)
    assert json.loads(done.stdout)["outputs"][0]["shape"] == [2, 5, 3]
    assert done.stderr == ""
    sardonyx("run", path, *arrays(tmp_path, x=np.ones((0, 1, 3), np.float32)), *mode)


@pytest.mark.parametrize("dim", ANONYMOUS)
def test_anonymous_dimensions_have_one_name_everywhere(sardonyx, tmp_path, dim):
    path = relu(tmp_path, [dim, dim, 3])
    assert json.loads(sardonyx("info", path, "--json").stdout)["inputs"][0]["type"] == "float[x.0,x.1,3]"
    report = json.loads(sardonyx("infer", path, "--json", "--all").stdout)
    assert {v["name"]: v["type"] for v in report["values"]} == {"x": "float[x.0,x.1,3]", "y": "float[x.0,x.1,3]"}
    assert report["findings"] == []
    sizes = ["--dim", "x.0=2,x.1=5"]
    report = json.loads(sardonyx("infer", path, "--json", *sizes).stdout)
    assert {v["type"] for v in report["values"]} == {"float[2,5,3]"}
    done = json.loads(sardonyx("run", path, "--random-inputs", *sizes, "--json").stdout)
    assert done["outputs"][0]["shape"] == [2, 5, 3]
    message = sardonyx.fails(BAD_INPUT, "run", path, *arrays(tmp_path, x=np.ones((2, 5, 4), np.float32)))
    assert "float[x.0,x.1,3]" in message and "[2,5,4]" in message and "dimension 2 must be 3, and is 4" in message
    sardonyx("explain", path, *sizes)


def test_sizes_may_be_set_to_0(sardonyx, tmp_path):
    path = relu(tmp_path, ["n", "?", 0, 3])
    report = json.loads(sardonyx("infer", path, "--json", "--dim", "n=0,x.1=0,x.2=0").stdout)
    assert {v["type"] for v in report["values"]} == {"float[0,0,0,3]"}
    done = json.loads(sardonyx("run", path, "--random-inputs", "--dim", "n=0,x.1=2,x.2=1", "--json").stdout)
    assert done["outputs"][0]["shape"] == [0, 2, 1, 3]


def test_a_list_without_elements_stays_one(sardonyx, tmp_path):
    """An empty list of axes: nothing is reduced."""
    nodes = [helper.make_node("ReduceSum", ["x", "axes"], ["y"], noop_with_empty_axes=1)]
    path = save(tmp_path, nodes, [value("x", [0, 2]), value("axes", [0], TensorProto.INT64)], [value("y", [0, 2])])
    report = json.loads(sardonyx("infer", path, "--json").stdout)
    assert {v["name"]: v["type"] for v in report["values"]} == {"x": "float[x.0,2]", "axes": "int64[0]", "y": "float[x.0,2]"}
    given = arrays(tmp_path, x=np.ones((3, 2), np.float32), axes=np.zeros(0, np.int64))
    for mode in [[], ["--reference"]]:
        assert json.loads(sardonyx("run", path, *given, "--json", *mode).stdout)["outputs"][0]["shape"] == [3, 2]
    sardonyx.fails(BAD_INPUT, "run", path, "--random-inputs", "--dim", "axes.0=1", mentions=["axes.0"])
    one = arrays(tmp_path, x=np.ones((3, 2), np.float32), axes=np.zeros(1, np.int64))
    sardonyx.fails(BAD_INPUT, "run", path, *one, mentions=["dimension 0 must be 0, and is 1"])


def test_anonymous_sizes_of_several_inputs_and_in_the_graph(sardonyx, tmp_path):
    nodes = [helper.make_node("Concat", ["a", "b"], ["c"], axis=0), helper.make_node("Neg", ["c"], ["y"])]
    path = save(tmp_path, nodes, [value("a", ["None", 2]), value("b", ["None", 2])], [value("y", ["None", 2])],
                value_info=[value("c", ["None", "?"])])
    report = json.loads(sardonyx("infer", path, "--json").stdout)
    assert {v["name"]: v["type"] for v in report["values"]}["y"] == "float[a.0 + b.0,2]"
    assert report["findings"] == [] and report["names"] == {}
    given = arrays(tmp_path, a=np.ones((2, 2), np.float32), b=np.ones((3, 2), np.float32))
    assert sardonyx("run", path, *given).stderr == ""


def test_a_size_can_be_computed_from_an_anonymous_one(sardonyx, tmp_path):
    nodes = [helper.make_node("Reshape", ["x", "s"], ["y"])]
    shape = helper.make_tensor("s", TensorProto.INT64, [2], [-1, 4])
    path = save(tmp_path, nodes, [value("x", [0, 2, 2])], [value("y", [0, 4])], initializers=[shape])
    report = json.loads(sardonyx("run", path, *arrays(tmp_path, x=np.ones((3, 2, 2), np.float32)), "--json").stdout)
    assert report["outputs"][0]["shape"] == [3, 4]


def test_the_name_of_a_place_that_a_size_has_already(sardonyx, tmp_path):
    path = relu(tmp_path, ["?", "x.0"])
    assert json.loads(sardonyx("info", path, "--json").stdout)["inputs"][0]["type"] == "float[x.0_,x.0]"
    done = json.loads(sardonyx("run", path, "--random-inputs", "--dim", "x.0=3,x.0_=4", "--json").stdout)
    assert done["outputs"][0]["shape"] == [4, 3]


def test_what_infer_writes_is_read_back(sardonyx, tmp_path):
    path = relu(tmp_path, ["?", 0, -1])
    sardonyx("infer", path, "-o", tmp_path / "typed.onnx")
    graph = onnx.load(tmp_path / "typed.onnx").graph
    for info in [graph.input[0], graph.output[0]]:
        assert [d.dim_param for d in info.type.tensor_type.shape.dim] == ["x.0", "x.1", "x.2"]
    sardonyx("infer", path, "--dim", "x.1=7", "-o", tmp_path / "typed.onnx")
    graph = onnx.load(tmp_path / "typed.onnx").graph
    assert [d.dim_value for d in graph.input[0].type.tensor_type.shape.dim] == [0, 7, 0]


def test_names_mean_equality(sardonyx, tmp_path):
    nodes = [helper.make_node("Concat", ["a", "b"], ["y"], axis=0)]
    path = save(tmp_path, nodes, [value("a", ["N", 2]), value("b", ["N", 2])], [value("y", [None, 2])])
    given = arrays(tmp_path, a=np.ones((2, 2), np.float32), b=np.ones((3, 2), np.float32))
    lenient = sardonyx("run", path, *given, "--json")
    assert json.loads(lenient.stdout)["outputs"][0]["shape"] == [5, 2]
    assert "dimension 0 is 3, but 'N' is 2 by dimension 0 of input 'a'" in lenient.stderr
    planned = sardonyx.fails(BAD_INPUT, "run", path, *given, "--strict-model")
    assert "dimension 0 is 3, but 'N' is 2 by dimension 0 of input 'a'" in planned
    assert planned == sardonyx.fails(BAD_INPUT, "run", path, *given, "--strict-model", "--reference")
    assert "--dim b.0=NAME" in planned  # which is the way around it
    sardonyx("rename", path, tmp_path / "other.onnx", "--dim", "b.0=M")
    done = json.loads(sardonyx("run", tmp_path / "other.onnx", *given, "--json").stdout)
    assert done["outputs"][0]["shape"] == [5, 2]
    other = onnx.load(tmp_path / "other.onnx").graph
    assert [i.type.tensor_type.shape.dim[0].dim_param for i in other.input] == ["N", "M"]


def test_rename_names_open_places_only(sardonyx, tmp_path):
    path = relu(tmp_path, ["?", 3])
    sardonyx("rename", path, tmp_path / "o.onnx", "--dim", "x.0=batch")
    assert json.loads(sardonyx("info", tmp_path / "o.onnx", "--json").stdout)["inputs"][0]["type"] == "float[batch,3]"
    for place in ["x.1", "x.2", "y.0", "x"]:
        sardonyx.fails(BAD_INPUT, "rename", path, tmp_path / "p.onnx", "--dim", f"{place}=b", mentions=[place])
    sardonyx.fails(BAD_INPUT, "rename", path, tmp_path / "p.onnx", "--dim", "x.0=")
    for start, name in ((path, "x.0"), (tmp_path / "o.onnx", "batch")):  # a name that looks like the size that it is not
        sardonyx.fails(BAD_INPUT, "rename", start, tmp_path / "p.onnx", "--dim", f"{name}=5", mentions=[f"--dim {name}=5"])


COMMANDS = [["run", "--random-inputs"], ["infer"], ["info"], ["explain"], ["profile", "--runs", "1"], ["bench", "--repeat", "1"]]


@pytest.mark.parametrize("command", COMMANDS, ids=lambda c: c[0])
def test_every_command_refuses_sizes_that_are_not_there(sardonyx, tmp_path, command):
    path = relu(tmp_path, ["batch", "?", 3])
    name, *more = command
    message = sardonyx.fails(BAD_INPUT, name, path, *more, "--dim", "bach=2", mentions=["'bach'", "'batch', 'x.1'"])
    assert "did you mean 'batch'?" in message
    sardonyx.fails(BAD_INPUT, name, path, *more, "--dim", "x.2=2", mentions=["'x.2'"])  # it is 3
    assert "'--dim" not in sardonyx(name, path, *more, "--dim", "batch=2,x.1=2").stderr


@pytest.mark.parametrize("command", COMMANDS, ids=lambda c: c[0])
def test_every_command_takes_sizes_alike(sardonyx, tmp_path, command):
    path = relu(tmp_path, ["batch", "?", 3])
    name, *more = command
    for wrong in ["batch", "=2", "batch=", "batch=x", "batch=-1", "batch=2,", "batch=2,x.1", "batch=1.5",
                  "batch=99999999999999999999"]:
        sardonyx.fails(USAGE, name, path, *more, "--dim", wrong, mentions=["--dim"])
    sardonyx.fails(USAGE, name, path, *more, "--dim", "batch=2", "--dim", "batch=3", mentions=["twice"])
    old = sardonyx(name, path, *more, "--set", "batch=2", "--set", "x.1=2")
    assert "--set is called --dim now" in old.stderr
    assert "--set" not in sardonyx(name, "--help").stdout


def test_names_may_hold_commas_and_equals_signs(sardonyx, tmp_path):
    path = relu(tmp_path, ["max(a,b)", "n=m", "c"])
    done = json.loads(sardonyx("run", path, "--random-inputs", "--dim", "max(a,b)=2,n=m=3,c=4", "--json").stdout)
    assert done["outputs"][0]["shape"] == [2, 3, 4]


def test_the_cost_follows_sizes_of_places(sardonyx, tmp_path):
    nodes = [helper.make_node("MatMul", ["x", "w"], ["y"])]
    weights = helper.make_tensor("w", TensorProto.FLOAT, [3, 5], [1] * 15)
    path = save(tmp_path, nodes, [value("x", [0, 3])], [value("y", [0, 5])], initializers=[weights])
    one, seven = (json.loads(sardonyx("info", path, "--json", "--dim", f"x.0={n}").stdout)["cost"] for n in (1, 7))
    assert one["sizes"] == {"x.0": 1} and seven["sizes"] == {"x.0": 7}
    assert seven["flops"] == 7 * one["flops"] == 7 * 2 * 15
    assert json.loads(sardonyx("info", path, "--json").stdout)["cost"] == one


def test_an_error_names_sizes_that_nothing_set(sardonyx, tmp_path):
    nodes = [helper.make_node("Reshape", ["x", "s"], ["y"])]
    shape = helper.make_tensor("s", TensorProto.INT64, [2], [4, 6])
    path = save(tmp_path, nodes, [value("x", ["n", "?", "height"])], [value("y", [4, 6])], initializers=[shape])
    for command in ["run", "bench", "profile"]:
        more = ["--random-inputs"] if command == "run" else []
        message = sardonyx.fails(BAD_INPUT, command, path, *more, "--dim", "n=2")
        assert message.endswith("sizes taken as 1, since nothing set them: x.1, height; set them with --dim x.1=N"), message
        assert "nothing set them" not in sardonyx.fails(BAD_INPUT, command, path, *more, "--dim", "n=2,x.1=2,height=2")
    sardonyx("run", path, "--random-inputs", "--dim", "n=2,x.1=3,height=4")


@pytest.mark.parametrize("out, says", [
    (["n", 5], "dimension 1 is 4, and declared as 5"),
    (["n"], "rank 2 instead of 1"),
    (["n", "n"], "dimension 1 is 4, and declared as 'n', which is 2 by dimension 0 of input 'x'"),
])
@pytest.mark.parametrize("mode", [[], ["--reference"], ["--all-outputs"]])
def test_outputs_that_are_not_as_declared_warn(sardonyx, tmp_path, out, says, mode):
    path = relu(tmp_path, ["n", 4], out)
    given = arrays(tmp_path, x=np.ones((2, 4), np.float32))
    done = sardonyx("run", path, *given, "--json", "--repeat", 3, *mode)
    assert json.loads(done.stdout)["outputs"][0]["shape"] == [2, 4]
    assert done.stderr.count("warning") == 1 and "output 'y'" in done.stderr and says in done.stderr
    model = onnx.load(path)
    model.graph.output[0].type.tensor_type.ClearField("shape")  # what the warning advises
    onnx.save(model, path)
    assert sardonyx("run", path, *given, *mode).stderr == ""


def test_declarations_inside_the_graph_do_not_keep_it_from_running(sardonyx, tmp_path):
    """As in ONNX Runtime: what is inferred wins."""
    nodes = [helper.make_node("Relu", ["x"], ["h"]), helper.make_node("Neg", ["h"], ["y"])]
    given = arrays(tmp_path, x=np.ones((2, 4), np.float32))
    for dims in [["n", 5], ["n"], ["n", 4, 1], ["m", "m"]]:
        path = save(tmp_path, nodes, [value("x", ["n", 4])], [value("y", ["n", 4])], value_info=[value("h", dims)])
        for mode in [[], ["--reference"]]:
            done = json.loads(sardonyx("run", path, *given, "--json", *mode).stdout)
            assert done["outputs"][0]["shape"] == [2, 4]


@pytest.mark.parametrize("mode", [[], ["--reference"]])
def test_sizes_that_a_session_is_planned_for(sardonyx, tmp_path, mode):
    path = relu(tmp_path, ["n", None])
    fixed = ["--fix-dim", "n=3,x.1=4"]
    done = json.loads(sardonyx("run", path, "--random-inputs", "--json", *fixed, *mode).stdout)
    assert done["outputs"][0]["shape"] == [3, 4]
    given = arrays(tmp_path, x=np.ones((2, 4), np.float32))
    assert "dimension 0 must be 3, and is 2" in sardonyx.fails(BAD_INPUT, "run", path, *given, *fixed, *mode)
    assert "no open size of this name" in sardonyx.fails(BAD_INPUT, "bench", path, "--fix-dim", "m=3", *mode)
    assert "is not a size" in sardonyx.fails(USAGE, "bench", path, "--fix-dim", "n=x", *mode)


def test_sizes_that_a_file_of_packed_weights_is_made_for(sardonyx, tmp_path):
    path, packed = relu(tmp_path, ["n", 4]), tmp_path / "model.sdx"
    sardonyx("pack", path, "-o", packed, "--fix-dim", "n=3")
    sardonyx("pack", path, "-o", packed, "--fix-dim", "n=3", "--verify")
    sardonyx("run", path, "--random-inputs", "--packed", packed, "--fix-dim", "n=3")
