"""No memory that the input does not justify: what small files make the program take."""

from __future__ import annotations

import resource
import subprocess

import numpy as np
import onnx
import pytest
from conftest import OK, RUN_FAILED, USAGE
from onnx import TensorProto, helper

MB = 1 << 20


def run_in(sardonyx, megabytes: int, *arguments) -> subprocess.CompletedProcess:
    """Runs the program in a process that can't have more than so much memory."""

    def limit():
        resource.setrlimit(resource.RLIMIT_DATA, (megabytes * MB, megabytes * MB))

    return subprocess.run([sardonyx.path, *map(str, arguments)], capture_output=True, text=True, preexec_fn=limit)


def model(nodes, inputs, outputs, initializers, path):
    graph = helper.make_graph(nodes, "g", inputs, outputs, initializers)
    onnx.save(helper.make_model(graph, opset_imports=[helper.make_opsetid("", 21)], ir_version=10), path)
    return path


def long_text(name="text", length=60_000):
    return helper.make_tensor(name, TensorProto.STRING, [1], [b"x" * length])


def numbers(name, values):
    return helper.make_tensor(name, TensorProto.INT64, [len(values)], values)


REPEATED = {
    "Expand": ([helper.make_node("Expand", ["text", "shape"], ["y"])], [numbers("shape", [100_000])]),
    "Tile": ([helper.make_node("Tile", ["text", "shape"], ["y"])], [numbers("shape", [100_000])]),
    "Gather": (
        [
            helper.make_node("Expand", ["zero", "shape"], ["zeros"]),
            helper.make_node("Gather", ["text", "zeros"], ["y"]),
        ],
        [numbers("zero", [0]), numbers("shape", [100_000])],
    ),
    "Concat": ([helper.make_node("Concat", ["text"] * 20_000, ["y"], axis=0)], []),
}


@pytest.mark.parametrize("name", REPEATED)
def test_texts_count_while_constants_are_folded(sardonyx, tmp_path, name):
    nodes, weights = REPEATED[name]
    nodes = [*nodes, helper.make_node("Shape", ["y"], ["n"])]
    outputs = [helper.make_tensor_value_info("n", TensorProto.INT64, [1])]
    path = model(nodes, [], outputs, [long_text(), *weights], tmp_path / "m.onnx")
    result = run_in(sardonyx, 1500, "explain", path, "--threads", 1)
    assert result.returncode == OK, result.stderr


@pytest.mark.parametrize("mode", ["planned", "plain"])
@pytest.mark.parametrize("name", ["Expand", "Tile"])
def test_texts_count_in_a_run_and_the_error_names_the_node(sardonyx, tmp_path, name, mode):
    node = helper.make_node(name, ["text", "shape"], ["y"], name="many")
    given = helper.make_tensor_value_info("shape", TensorProto.INT64, [1])
    made = helper.make_tensor_value_info("y", TensorProto.STRING, ["n"])
    path = model([node], [given], [made], [long_text()], tmp_path / "m.onnx")
    more = ["--reference"] if mode == "plain" else []
    result = sardonyx(
        "run", path, "--input", "shape=100000", "--memory-limit", "1G", "--threads", 1, *more, expect=RUN_FAILED
    )
    assert "'many'" in result.stderr
    assert "--memory-limit" in result.stderr
    sardonyx("run", path, "--input", "shape=100", "--memory-limit", "1G", "--threads", 1, *more)


def ranges(path, count, elements):
    nodes, sums = [], []
    for i in range(count):
        nodes += [
            helper.make_node("Range", ["zero", "end", "one"], [f"r{i}"]),
            helper.make_node("Add", [f"r{i}", "x"], [f"s{i}"]),
        ]
        sums.append(f"s{i}")
    nodes.append(helper.make_node("Concat", sums, ["all"], axis=0))
    nodes.append(helper.make_node("ReduceMax", ["all"], ["n"], keepdims=0))
    scalars = [helper.make_tensor(k, TensorProto.INT64, [], [v]) for k, v in (("zero", 0), ("end", elements), ("one", 1))]
    given = helper.make_tensor_value_info("x", TensorProto.INT64, [1])
    return model(nodes, [given], [helper.make_tensor_value_info("n", TensorProto.INT64, [])], scalars, path)


def test_all_folding_shares_one_budget(sardonyx, tmp_path):
    path = ranges(tmp_path / "m.onnx", 2000, 120_000)
    result = run_in(sardonyx, 700, "explain", path, "--threads", 1)
    assert result.returncode == OK, result.stderr
    assert "range" in result.stdout.lower()  # what is beyond the budget is left to the run


def test_a_few_constants_are_folded(sardonyx, tmp_path):
    path = ranges(tmp_path / "m.onnx", 20, 120_000)
    assert "Range" not in sardonyx("explain", path).stdout


def test_the_limit_holds_for_loading_and_names_itself(sardonyx, tmp_path):
    """Weights that a run packs do not fit."""
    weights = helper.make_tensor("w", TensorProto.FLOAT, [4096, 4096], np.ones(1 << 24, np.float32).tobytes(), raw=True)
    given = helper.make_tensor_value_info("x", TensorProto.FLOAT, ["n", 4096])
    made = helper.make_tensor_value_info("y", TensorProto.FLOAT, ["n", 4096])
    path = model([helper.make_node("MatMul", ["x", "w"], ["y"], name="big")], [given], [made], [weights], tmp_path / "m.onnx")
    arguments = ["run", path, "--input", "x=ones", "--set", "n=64", "--threads", 1]
    message = sardonyx.fails(RUN_FAILED, *arguments, "--memory-limit", "40M", mentions=["--memory-limit"])
    assert "40 MiB" in message
    sardonyx(*arguments, "--memory-limit", "none")
    sardonyx(*arguments)


@pytest.mark.parametrize("text", ["0", "-1", "4X", "", "1.5G", "99999999999G"])
def test_a_limit_that_is_no_size_is_refused(sardonyx, affine, text):
    sardonyx.fails(USAGE, "info", affine, f"--memory-limit={text}", mentions=["--memory-limit"])


TABLES = {  # the node, its inputs' types and shapes, and what they are given
    "Resize": ({"mode": "nearest"}, {"x": (1, [1, 1, 1, 2], "ones"), "": None, " ": None, "sizes": (7, [4], "1 1 1 60000000")}),
    "Range": ({}, {"start": (7, [], "0"), "end": (7, [], "1000000000"), "step": (7, [], "1")}),
    "HannWindow": ({}, {"n": (7, [], "2000000000")}),
    "DFT": ({}, {"x": (1, [1, 4, 1], "ones"), "n": (7, [], "1073741824")}),
    "AffineGrid": ({}, {"theta": (1, [1, 2, 3], "ones"), "size": (7, [4], "1 1 40000 40000")}),
    "OneHot": ({}, {"x": (7, [1], "0"), "depth": (7, [], "4000000000"), "values": (1, [2], "ones")}),
    "Pad": ({}, {"x": (1, [2], "ones"), "pads": (7, [2], "0 4000000000")}),
    "EyeLike": ({}, {"x": (1, ["n", "n"], "ones")}),
}


@pytest.mark.parametrize("mode", ["planned", "plain"])
@pytest.mark.parametrize("op", TABLES)
def test_whatever_a_size_makes_too_large_names_the_node(sardonyx, tmp_path, op, mode):
    attributes, given = TABLES[op]
    node = helper.make_node(op, [name.strip() for name in given], ["y"], name="large", **attributes)
    infos = [helper.make_tensor_value_info(name, *given[name][:2]) for name in given if name.strip()]
    element = 7 if op == "Range" else 1
    path = model([node], infos, [helper.make_tensor_value_info("y", element, None)], [], tmp_path / "m.onnx")
    arguments = ["--threads", 1, "--set", "n=20000"] if op == "EyeLike" else ["--threads", 1]
    for name in infos:
        arguments += ["--input", f"{name.name}={given[name.name][2]}"]
    more = ["--reference"] if mode == "plain" else []
    sardonyx.fails(RUN_FAILED, "run", path, *arguments, *more, "--memory-limit", "300M", mentions=["--memory-limit"] if op == "EyeLike" else ["'large'", "--memory-limit"])
