"""`show` asks before it floods a terminal, and only there."""

from __future__ import annotations

import os
import pty
import subprocess

import numpy as np
import onnx
import pytest
from conftest import OK, USAGE
from onnx import TensorProto, helper, numpy_helper


@pytest.fixture
def large(tmp_path):
    """A model whose text has about 10 MB."""
    weights = numpy_helper.from_array(np.linspace(0, 1, 1_000_000, dtype=np.float32), "w")
    graph = helper.make_graph([helper.make_node("Add", ["x", "w"], ["y"])], "g",
                              [helper.make_tensor_value_info("x", TensorProto.FLOAT, [1])],
                              [helper.make_tensor_value_info("y", TensorProto.FLOAT, None)], [weights])
    path = tmp_path / "large.onnx"
    onnx.save(helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8), path)
    return path


def on_terminal(sardonyx, *arguments, answer: str | None) -> tuple[int, int, str]:
    """Exit code, bytes on the terminal, and standard error; without an answer standard input is no terminal."""
    ours, theirs = pty.openpty()
    process = subprocess.Popen([sardonyx.path, *map(str, arguments)], stdout=theirs, stderr=subprocess.PIPE,
                               stdin=subprocess.DEVNULL if answer is None else theirs)
    os.close(theirs)
    if answer is not None:
        os.write(ours, (answer + "\n").encode())
    count = 0
    while True:
        try:
            piece = os.read(ours, 1 << 16)
        except OSError:  # the other end is closed
            break
        if not piece:
            break
        count += len(piece)
    error = process.stderr.read().decode()
    process.stderr.close()
    code = process.wait()
    os.close(ours)
    return code, count, error


def test_much_text_is_asked_for(sardonyx, large):
    code, count, error = on_terminal(sardonyx, "show", large, answer="n")
    assert code == OK and count < 1000 and "MB of text" in error and "[y/N]" in error
    code, count, error = on_terminal(sardonyx, "show", large, answer="y")
    assert code == OK and count > 4_000_000
    code, count, error = on_terminal(sardonyx, "show", large, answer=None)
    assert code == USAGE and count < 1000 and "--yes" in error


def test_nobody_is_asked_otherwise(sardonyx, large):
    code, count, error = on_terminal(sardonyx, "show", large, "--yes", answer=None)
    assert code == OK and count > 4_000_000 and error == ""
    code, count, error = on_terminal(sardonyx, "show", large, "--max-elements", "4", answer=None)
    assert code == OK and 0 < count < 1000 and error == ""
    assert len(sardonyx("show", large).stdout) > 4_000_000
