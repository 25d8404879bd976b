"""Twice the input costs at most about twice the instructions, which valgrind counts."""

from __future__ import annotations

import os
import re
import shutil
import subprocess

import onnx
import pytest
from onnx import TensorProto, helper

# What is allowed for twice as much: hash tables and sorting take a little more than twice.
MOST = 2.4

FLOAT, STRING, INT64 = TensorProto.FLOAT, TensorProto.STRING, TensorProto.INT64


def value(name, kind=FLOAT, shape=(1,)):
    return helper.make_tensor_value_info(name, kind, shape)


def save(path, nodes, inputs, outputs, initializers=()):
    graph = helper.make_graph(nodes, "g", inputs, outputs, list(initializers))
    onnx.save(helper.make_model(graph, opset_imports=[helper.make_opsetid("", 21)], ir_version=10), path)


def texts(name, values):
    return helper.make_tensor(name, STRING, [len(values)], values)


def many_texts(path, size):
    save(path, [helper.make_node("Equal", ["x", "w"], ["y"])], [value("x", STRING)],
         [value("y", TensorProto.BOOL, (size,))], [texts("w", [b"a"] * size)])


def many_inputs(path, size):
    names = [f"v{i}" for i in range(size)]
    save(path, [helper.make_node("Sum", names, ["y"])], [value(name) for name in names], [value("y")])


def many_outputs(path, size):
    save(path, [helper.make_node("Relu", ["x"], [f"v{i}"]) for i in range(size)], [value("x")], [value("v0")])


def long_delimiter(path, size):
    save(path, [helper.make_node("StringSplit", ["x"], ["y", "n"], delimiter="a" * (size // 2) + "b")],
         [value("x", STRING)], [value("y", STRING, None), value("n", INT64)])
    path.with_suffix(".txt").write_text("a" * size)


def many_nodes(path, size):
    nodes = [helper.make_node("Relu" if i % 2 else "Tanh", [f"v{i}"], [f"v{i + 1}"]) for i in range(size)]
    save(path, nodes, [value("v0")], [value(f"v{size}")])


CASES = {
    # More texts in one list than the reader makes room for at once.
    "texts": (many_texts, (1 << 19) + 40, ["bench", "-n", "1"]),
    "inputs": (many_inputs, 4000, ["bench", "-n", "1"]),
    "all outputs": (many_outputs, 2000, ["run", "--all-outputs", "--random-inputs"]),
    "a delimiter that almost matches": (long_delimiter, 20_000, ["run", "-i", "x={text}"]),
    "nodes, explained": (many_nodes, 2000, ["explain"]),
    "nodes, checked": (many_nodes, 2000, ["check", "--strict"]),
}


def instructions(sardonyx, arguments) -> int:
    command = ["valgrind", "--tool=callgrind", "--callgrind-out-file=/dev/null", sardonyx.path, *map(str, arguments)]
    done = subprocess.run(command, capture_output=True, text=True, env={**os.environ, "SARDONYX_CPU": "avx2"})
    assert done.returncode == 0, done.stderr[-2000:]
    return int(re.search(r"Collected : (\d+)", done.stderr)[1])


@pytest.mark.parametrize("name", CASES)
def test_twice_the_input_costs_twice(sardonyx, tmp_path, name):
    if not shutil.which("valgrind"):
        pytest.skip("valgrind is not installed")
    make, size, arguments = CASES[name]
    # What the program takes whatever it reads is not part of the comparison.
    counts = []
    for at, factor in enumerate((0, 1, 2)):
        path = tmp_path / f"{at}.onnx"
        make(path, factor * size or 2)
        given = [str(a).format(text=path.with_suffix(".txt")) for a in arguments]
        threads = ["--threads", "1"] if arguments[0] != "check" else []
        counts.append(instructions(sardonyx, [given[0], path, *given[1:], *threads]))
    none, once, twice = counts
    assert once > none, counts
    assert twice - none <= MOST * (once - none), counts
