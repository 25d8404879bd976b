"""Small files that ask inference for much: what each costs beside its size.

    .venv/bin/python tests/python/hostile.py [--program FILE] [NAME…]

prints a row for each: megabytes of the file, megabytes of memory at the peak and seconds of the processor that
`sardonyx infer` takes.
"""

from __future__ import annotations

import argparse
import pathlib
import subprocess
import sys
import tempfile

import numpy as np
import onnx
from onnx import TensorProto, helper, numpy_helper

ROOT = pathlib.Path(__file__).resolve().parent.parent.parent
FLOAT, INT64, BOOL = TensorProto.FLOAT, TensorProto.INT64, TensorProto.BOOL


def node(op: str, inputs: list[str], output: str, **attributes) -> onnx.NodeProto:
    return helper.make_node(op, inputs, [output], **attributes)


def value(name: str, kind: int = FLOAT, shape: list | None = None) -> onnx.ValueInfoProto:
    return helper.make_tensor_value_info(name, kind, shape)


def numbers(name: str, values) -> onnx.TensorProto:
    return numpy_helper.from_array(np.array(values, np.int64), name)


def model(nodes, inputs, outputs, initializers=(), functions=()) -> onnx.ModelProto:
    graph = helper.make_graph(nodes, "g", inputs, outputs, initializers)
    imports = [helper.make_opsetid("", 21), helper.make_opsetid("own", 1)]
    return helper.make_model(graph, ir_version=10, opset_imports=imports, functions=list(functions))


def chain(op: str, count: int, second: str | None = None, first: str = "s", prefix: str = "c") -> list[onnx.NodeProto]:
    """Nodes that each take what the one before makes, twice or with another value."""
    made = []
    for i in range(count):
        last = f"{prefix}{i - 1}" if i else first
        made.append(node(op, [last, second or last], f"{prefix}{i}"))
    return made


def doubling(op: str):
    """A size with itself, again and again."""
    return lambda count: model([node("Shape", ["x"], "s"), *chain(op, count)],
                               [value("x", FLOAT, ["n", "m"])], [value(f"c{count - 1}", INT64)])


def fibonacci(count: int) -> onnx.ModelProto:
    """Max and Mul of the two before in turns: expressions that share nothing."""
    nodes = [node("Shape", ["x"], "c0"), node("Shape", ["y"], "c1")]
    nodes += [node("Max" if i % 2 else "Mul", [f"c{i - 2}", f"c{i - 1}"], f"c{i}") for i in range(2, count)]
    return model(nodes, [value("x", FLOAT, ["n", "m"]), value("y", FLOAT, ["k", "l"])], [value(f"c{count - 1}", INT64)])


def wide_expressions(count: int) -> onnx.ModelProto:
    """A vector of 512 sums of sizes, handed on."""
    inputs = [value(f"x{i}", FLOAT, [f"n{i}_{d}" for d in range(16)]) for i in range(32)]
    nodes = [node("Shape", [f"x{i}"], f"s{i}") for i in range(32)]
    nodes.append(node("Concat", [f"s{i}" for i in range(32)], "s", axis=0))
    nodes += [node("Gather", ["s", "turn"], "t"), *chain("Add", count, "t")]
    return model(nodes, inputs, [value(f"c{count - 1}", INT64)], [numbers("turn", [(i * 7) % 512 for i in range(512)])])


def known_elements(count: int) -> onnx.ModelProto:
    """1,024 numbers, known one by one, in each of many values."""
    return model(chain("Add", count, "one"), [], [value(f"c{count - 1}", INT64)],
                 [numbers("s", range(1024)), numbers("one", [1])])


def shared_elements(count: int) -> onnx.ModelProto:
    """The same, each time spread from one."""
    nodes = [node("Expand", ["one", "many"], f"c{i}") for i in range(count)]
    return model(nodes, [], [value("c0", INT64)], [numbers("many", [1024]), numbers("one", [1])])


def growing_ranks(count: int) -> onnx.ModelProto:
    """Each value has 500 dimensions more than the one before."""
    nodes = [node("Unsqueeze", [f"c{i - 1}" if i else "x", "axes"], f"c{i}") for i in range(count)]
    return model(nodes, [value("x", FLOAT, ["n"])], [value(f"c{count - 1}")], [numbers("axes", range(500))])


def high_ranks(count: int) -> onnx.ModelProto:
    """Values of 1,000 dimensions."""
    nodes = [node("Reshape", ["x", "shape"], "s"), *(node("Relu", [f"c{i - 1}" if i else "s"], f"c{i}") for i in range(count))]
    return model(nodes, [value("x", FLOAT, ["n"])], [value(f"c{count - 1}")], [numbers("shape", [1] * 999 + [-1])])


def open_sizes(count: int) -> onnx.ModelProto:
    """60 sizes that the run decides, in each of many values."""
    nodes = [node("ConstantOfShape", ["sizes"], f"c{i}") for i in range(count)]
    return model(nodes, [value("sizes", INT64, [60])], [value("c0")])


def broadcasts(count: int) -> onnx.ModelProto:
    """Sums of tensors with 60 named sizes each, none of which is known to agree."""
    inputs = [value(name, FLOAT, [f"{name}_a_long_name_of_a_size_{d}" for d in range(60)]) for name in "xy"]
    nodes = [node("Add", ["x", "y"], f"c{i}") for i in range(count)]
    return model(nodes, inputs, [value("c0")])


def long_name(count: int) -> onnx.ModelProto:
    """The name of a size is a megabyte long, and in the type of every value."""
    nodes = [node("Relu", ["x"], f"c{i}") for i in range(count)]
    return model(nodes, [value("x", FLOAT, ["n" * 1_000_000])], [value("c0")])


def long_names_of_nodes(count: int) -> onnx.ModelProto:
    """Nodes with long names make 60 sizes each that are explained by these."""
    nodes = [helper.make_node("ConstantOfShape", ["sizes"], [f"c{i}"], name="n" * 100_000) for i in range(count)]
    return model(nodes, [value("sizes", INT64, [60])], [value("c0")])


def long_name_of_an_input(count: int) -> onnx.ModelProto:
    """Sizes without a name are called by their input, whose name is long."""
    name = "x" * 1_000_000
    nodes = [node("Relu", [name], "r"), *(node("Relu", ["r"], f"c{i}") for i in range(count))]
    return model(nodes, [value(name, FLOAT, [None, None])], [value("c0")])


def loops(depth: int) -> onnx.ModelProto:
    """Loop in Loop, each with a carried value that grows."""
    def body(level: int) -> onnx.GraphProto:
        last = f"h{level}"
        nodes = [node("Identity", [f"go{level}"], f"on{level}")]
        if level + 1 < depth:
            nodes.append(node("Loop", ["trips", "", last], f"w{level}", body=body(level + 1)))
            last = f"w{level}"
        nodes.append(node("Concat", [last, f"h{level}"], f"out{level}", axis=0))
        return helper.make_graph(nodes, f"b{level}",
                                 [value(f"i{level}", INT64, []), value(f"go{level}", BOOL, []), value(f"h{level}")],
                                 [value(f"on{level}", BOOL, []), value(f"out{level}")])
    return model([node("Loop", ["trips", "", "x"], "y", body=body(0))],
                 [value("x", FLOAT, ["n"]), value("trips", INT64, [])], [value("y")])


def branches(count: int) -> onnx.ModelProto:
    """Thousands of small subgraphs."""
    def branch(i: int, op: str) -> onnx.GraphProto:
        return helper.make_graph([node(op, ["x"], f"{op}{i}")], f"b{i}", [], [value(f"{op}{i}")])
    nodes = [node("If", ["c"], f"c{i}", then_branch=branch(i, "Relu"), else_branch=branch(i, "NonZero")) for i in range(count)]
    return model(nodes, [value("x", FLOAT, ["n", "m"]), value("c", BOOL, [])], [value("c0")])


def nested_branches(depth: int) -> onnx.ModelProto:
    """If in If."""
    made = [node("Relu", ["x"], "y")]
    for level in range(depth):
        inner = helper.make_graph(made, f"b{level}", [], [value("y" if level == 0 else f"y{level - 1}")])
        made = [node("If", ["c"], f"y{level}", then_branch=inner,
                     else_branch=helper.make_graph([node("Neg", ["x"], f"z{level}")], "e", [], [value(f"z{level}")]))]
    return model(made, [value("x", FLOAT, ["n"]), value("c", BOOL, [])], [value(f"y{depth - 1}")])


def calls(depth: int) -> onnx.ModelProto:
    """Functions that call two of the one below: 2^depth nodes."""
    functions = [helper.make_function("own", "f0", ["a"], ["b"], [node("Relu", ["a"], "b")],
                                      [helper.make_opsetid("", 21), helper.make_opsetid("own", 1)])]
    for level in range(1, depth):
        nodes = [node(f"f{level - 1}", ["a"], "t", domain="own"), node(f"f{level - 1}", ["t"], "b", domain="own")]
        functions.append(helper.make_function("own", f"f{level}", ["a"], ["b"], nodes,
                                              [helper.make_opsetid("", 21), helper.make_opsetid("own", 1)]))
    return model([node(f"f{depth - 1}", ["x"], "y", domain="own")], [value("x", FLOAT, ["n"])], [value("y")], (), functions)


def huge_sizes(count: int) -> onnx.ModelProto:
    """Dimensions of 2^62, multiplied, spread and put together."""
    nodes = []
    for i in range(count):
        last = f"d{i - 1}" if i else "x"
        nodes += [node("Expand", [last, "much"], f"a{i}"), node("Tile", [f"a{i}", "twice"], f"b{i}"),
                  node("Concat", [f"b{i}", f"b{i}"], f"e{i}", axis=0), node("Reshape", [f"e{i}", "flat"], f"d{i}")]
    nodes += [node("Range", ["zero", "end", "step"], "r"), node("ConstantOfShape", ["much"], "z")]
    scalars = [numpy_helper.from_array(np.int64(v), n) for n, v in (("zero", 0), ("end", 2**62), ("step", 1))]
    return model(nodes, [value("x", FLOAT, [2**62])], [value(f"d{count - 1}"), value("r", INT64), value("z")],
                 [numbers("much", [2**62, 2**61]), numbers("twice", [2, 2**40]), numbers("flat", [-1]), *scalars])


def tiny_nodes(count: int) -> onnx.ModelProto:
    """Many nodes, and nothing else."""
    nodes = [node("Relu", [f"c{i - 1}" if i else "x"], f"c{i}") for i in range(count)]
    return model(nodes, [value("x", FLOAT, ["n", "m"])], [value(f"c{count - 1}")])


def contradictions(count: int) -> onnx.ModelProto:
    """A finding for every value."""
    made = tiny_nodes(count)
    made.graph.value_info.extend(value(f"c{i}", FLOAT, [f"k{d}" for d in range(40)]) for i in range(count))
    return made


# Name: the model for its size, and that size.
HOSTILE = {
    "Mul doubling": (doubling("Mul"), 5_000),
    "Add doubling": (doubling("Add"), 5_000),
    "Max and Mul of the two before": (fibonacci, 5_000),
    "512 sums of sizes in 4,000 values": (wide_expressions, 4_000),
    "1,024 numbers in 20,000 values": (known_elements, 20_000),
    "Expand to 1,024 numbers, 20,000 times": (shared_elements, 20_000),
    "ranks growing by 500, 200 times": (growing_ranks, 200),
    "rank 1,000 in 20,000 values": (high_ranks, 20_000),
    "60 open sizes in 20,000 values": (open_sizes, 20_000),
    "60 broadcasts in 2,000 nodes": (broadcasts, 2_000),
    "a size's name of 1 MB in 2,000 values": (long_name, 2_000),
    "an input's name of 1 MB in 2,000 values": (long_name_of_an_input, 2_000),
    "nodes' names of 100 KB with 60 open sizes": (long_names_of_nodes, 20),
    "Loop in Loop, 12 deep": (loops, 12),
    "If in If, 12 deep": (nested_branches, 12),
    "10,000 If": (branches, 10_000),
    "2^24 calls of functions": (calls, 25),
    "sizes of 2^62": (huge_sizes, 2_000),
    "300,000 nodes": (tiny_nodes, 300_000),
    "40 contradictions in 5,000 values": (contradictions, 5_000),
}


# A process begins with the memory of the one that starts it, which must be small.
LAUNCHER = """
import os, subprocess, sys
child = subprocess.Popen(sys.argv[1:], stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
_, status, usage = os.wait4(child.pid, 0)
child.returncode = os.waitstatus_to_exitcode(status)
print(child.returncode, usage.ru_maxrss / 1024, usage.ru_utime + usage.ru_stime)
"""


def measure(program: pathlib.Path, path: pathlib.Path) -> tuple[int, float, float]:
    """Exit status, megabytes at the peak and seconds of the processor of inferring a file."""
    command = [sys.executable, "-S", "-E", "-c", LAUNCHER, program, "infer", path, "--json"]
    made = subprocess.run(command, capture_output=True, text=True, check=True).stdout.split()
    return int(made[0]), float(made[1]), float(made[2])


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("names", nargs="*", help="only models whose name holds one of these")
    parser.add_argument("--program", type=pathlib.Path, default=ROOT / "build" / "release" / "bin" / "sardonyx")
    options = parser.parse_args()
    print("| model | file, MB | memory, MB | processor, s |\n|---|---|---|---|")
    with tempfile.TemporaryDirectory() as folder:
        path = pathlib.Path(folder) / "model.onnx"
        for name, (make, size) in HOSTILE.items():
            if options.names and not any(part in name for part in options.names):
                continue
            path.write_bytes(make(size).SerializeToString())
            status, memory, seconds = measure(options.program, path)
            ended = "" if status in (0, 1) else f" (exit {status})"
            print(f"| {name}{ended} | {path.stat().st_size / 1e6:.2f} | {memory:.0f} | {seconds:.2f} |", flush=True)
    return 0


if __name__ == "__main__":
    sys.exit(main())
