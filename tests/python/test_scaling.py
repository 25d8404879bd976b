"""Twice the input costs at most about twice the instructions, which valgrind counts."""

from __future__ import annotations

import os
import pathlib
import re
import shutil
import subprocess

import onnx
import pytest
import scaling_cases
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


def growing_sequence(path, size):
    """A loop that inserts at the end of one list, and takes the last item out of another one to put it in again."""
    onnx.save(onnx.parser.parse_model(f"""<ir_version: 10, opset_import: ["" : 21]> g (float[2] x) => (int64 n, int64 m) {{
        trips = Constant<value = int64 {{{size}}}>()
        keep = Constant<value = bool {{1}}>()
        first = SequenceConstruct(x)
        grown, other = Loop<body = b (int64 i, bool go, seq(float[]) s, seq(float[]) o)
                                     => (bool on, seq(float[]) s2, seq(float[]) o3) {{
            on = Identity(go)
            s2 = SequenceInsert(s, x)
            o1 = SequenceInsert(o, x)
            o2 = SequenceErase(o1)
            o3 = SequenceInsert(o2, x)
        }}>(trips, keep, first, first)
        n = SequenceLength(grown)
        m = SequenceLength(other)
    }}"""), path)


CASES = {
    # More texts in one list than the reader makes room for at once.
    "texts": (many_texts, (1 << 19) + 40, ["bench", "-n", "1"]),
    "inputs": (many_inputs, 4000, ["bench", "-n", "1"]),
    "all outputs": (many_outputs, 2000, ["run", "--all-outputs", "--random-inputs"]),
    "a delimiter that almost matches": (long_delimiter, 20_000, ["run", "-i", "x={text}"]),
    "a sequence that grows": (growing_sequence, 1000, ["run", "--random-inputs"]),
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


# --- every construct that can be repeated, in every command

# How often each is repeated for the cheaper of two counts, where that is not USUAL. Lists that grow have room for 256 items,
# then 512 and so on: twice a little more than such a number takes them just over the next.
USUAL = 260
SIZES = {
    "branches_in_branches": 6, "calls_in_calls": 20, "loops_that_grow": 130, "dimensions": 10, "names": 20_000,
    "strings": 4100, "constants_of_numbers": 4100, "constants_of_texts": 4100, "string_initializers": 520,
    "initializers": 520, "inputs": 520, "metadata": 520, "annotations": 520, "imports": 1030, "attributes": 520,
    "inputs_of_a_node": 520, "outputs_of_a_node": 520, "captured": 520, "states": 520, "items": 1030,
}
CONSTRUCTS = [name for name, made in vars(scaling_cases).items()
              if callable(made) and getattr(made, "__module__", "") == "scaling_cases"
              and made.__code__.co_varnames[:made.__code__.co_argcount] == ("size",)]
# What is allowed of constructs whose cost grows faster, and why.
FASTER = {
    # What a body captures is looked for through all bodies inside it; no file nests more than 33 (100 messages).
    "branches_in_branches": 4,
    # Plain evaluation asks each node for its types, which those of all items of a sequence decide.
    "sequences_that_grow": 4,
}
# Instructions and bytes below which growth is of no account.
FEW_INSTRUCTIONS, FEW_BYTES = 1_000_000, 200_000


def counted(program: pathlib.Path, paths, folder):
    """By path and command: instructions, and bytes at the peak."""
    command = ["valgrind", "--tool=callgrind", "--collect-atstart=no", "--toggle-collect=sardonyx_measured",
               "--dump-after=sardonyx_measured", f"--callgrind-out-file={folder}/out", program, *paths]
    done = subprocess.run(command, capture_output=True, text=True, env={**os.environ, "SARDONYX_CPU": "avx2"})
    assert done.returncode == 0, done.stderr[-2000:]
    counts = {}
    for index, line in enumerate(filter(None, done.stdout.splitlines()), 1):
        path, name, held = line.split("\t")
        text = (folder / f"out.{index}").read_text()
        counts[path, name] = int(re.search(r"^(?:totals|summary): (\d+)", text, re.MULTILINE)[1]), int(held)
    return counts


@pytest.mark.parametrize("name", CONSTRUCTS)
def test_twice_as_many_cost_twice(sardonyx, tmp_path, name):
    if not shutil.which("valgrind"):
        pytest.skip("valgrind is not installed")
    program = pathlib.Path(sardonyx.path).parent / "scaling_commands"
    size = SIZES.get(name, USUAL)
    # The first makes what the library makes once; of the second only what is there for any model is left.
    paths = [str(tmp_path / f"{i}.onnx") for i in range(4)]
    for path, count in zip(paths, (2, 2, size, 2 * size)):
        onnx.save(getattr(scaling_cases, name)(count), path)
    counts = counted(program, paths, tmp_path)
    most, wrong = FASTER.get(name, MOST), []
    for command in dict.fromkeys(command for _, command in counts):
        few, once, twice = (counts[path, command] for path in paths[1:])
        for what, none, one, two, least in zip(("instructions", "bytes"), few, once, twice, (FEW_INSTRUCTIONS, FEW_BYTES)):
            if two - none > least and two - none > most * (one - none):
                wrong.append(f"{command}: {none:,}, {one:,}, {two:,} {what}, {(two - none) / max(one - none, 1):.2f} times")
    assert not wrong, f"{name}: " + "; ".join(wrong)
