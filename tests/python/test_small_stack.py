"""What nests in a file costs an error or an answer, never the stack: 512 KiB are enough (docs/fuzzing.md)."""

from __future__ import annotations

import resource

import pytest
from conftest import BAD_INPUT, INVALID_MODEL, OK, UNSUPPORTED

STACK = 512 << 10
HEADER = '<ir_version: 10, opset_import: ["" : 21, "f" : 1]>\n'


def graphs(depth):
    """Ifs in the branches of Ifs."""
    begin = "r = If(c) <then_branch = a () => (float r) {\n" * depth
    end = "}, else_branch = e () => (float r) { r = Identity(x) }>\n" * depth
    return HEADER + "g (bool c, float x) => (float r) {\n" + begin + "r = Identity(x)\n" + end + "}"


def types(depth):
    return HEADER + "g (" + "seq(" * depth + "float" + ")" * depth + " x) => (y) { y = Identity(x) }"


def functions(depth):
    calls = [f"f.f{i + 1}" for i in range(depth - 1)] + ["Identity"]
    bodies = [f'<domain: "f", opset_import: ["" : 21, "f" : 1]> f{i} (x) => (y) {{ y = {call}(x) }}\n'
              for i, call in enumerate(calls)]
    return HEADER + "g (float x) => (y) { y = f.f0(x) }\n" + "".join(bodies)


def nodes(depth):
    chain = "".join(f"x{i} = Neg(x{i - 1})\n" for i in reversed(range(1, depth + 1)))
    return HEADER + f"g (float x0) => (x{depth}) {{\n{chain}}}"


def small_stack():
    resource.setrlimit(resource.RLIMIT_STACK, (STACK, STACK))


@pytest.mark.parametrize("depth", [30, 60, 150, 199, 5000])
@pytest.mark.parametrize("make", [graphs, types, functions, nodes])
def test_models_that_nest(sardonyx, tmp_path, make, depth):
    path = tmp_path / "model.onnxtxt"
    path.write_text(make(depth))
    for command in ("check", "infer", "show", "info", "explain"):
        result = sardonyx(command, path, expect=None, preexec_fn=small_stack)
        assert 0 <= result.returncode < 8, f"{command}: {result.returncode}\n{result.stderr[:500]}"
    for ending in ("onnx", "json", "textproto", "svg"):
        result = sardonyx("convert", path, tmp_path / f"to.{ending}", expect=None, preexec_fn=small_stack)
        assert 0 <= result.returncode < 8, f"{ending}: {result.returncode}\n{result.stderr[:500]}"


@pytest.mark.parametrize("begin, end", [('{"a":', "}"), ("[", "]")])
def test_values_that_nest(sardonyx, affine, tmp_path, begin, end):
    """The library that reads JSON prints and copies by recursion."""
    path = tmp_path / "x.json"
    path.write_text(begin * 200_000 + "1" + end * 200_000)
    message = sardonyx.fails(BAD_INPUT, "run", affine, "--input", f"x={path}", mentions=["nested more than 64 deep"],
                             preexec_fn=small_stack)
    assert len(message) < 1000


@pytest.mark.parametrize("ending, begin, end", [("json", '{"graph":', "}"), ("json", '{"graph":{"node":[', "]}}"),
                                                ("textproto", "graph{node{attribute{g{", "}}}}")])
def test_messages_that_nest(sardonyx, tmp_path, ending, begin, end):
    path = tmp_path / f"model.{ending}"
    path.write_text(begin * 100_000 + end * 100_000)
    result = sardonyx("check", path, expect=None, preexec_fn=small_stack)
    assert result.returncode in (INVALID_MODEL, UNSUPPORTED), result.stderr[:500]


def test_shallow_ones_are_taken(sardonyx, tmp_path):
    path = tmp_path / "model.onnxtxt"
    path.write_text(graphs(30))
    sardonyx("run", path, "--random-inputs", expect=OK, preexec_fn=small_stack)
