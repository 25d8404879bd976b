"""tools/differential.py where an evaluator misbehaves."""

from __future__ import annotations

import os
import signal
import sys

from conftest import ROOT

sys.path.insert(0, str(ROOT / "tools"))
import differential  # noqa: E402


def test_an_evaluator_that_ends_its_process_costs_one_case(tmp_path, monkeypatch):
    """As ONNX Runtime does on some nodes: the case is made without it, or by nobody, and all others are made."""
    def make(task, without=()):
        number = task[3]
        if number == 5 and "runtime" not in without or number == 17:
            os.kill(os.getpid(), signal.SIGKILL)
        return differential.case_name(task), "reference" if without else "both", ""

    monkeypatch.setattr(differential, "make_case", make)
    made = differential.make_all([("", "Op", 1, number, "1", str(tmp_path)) for number in range(40)])
    states = {name: state for name, state, _ in made}
    assert states == {f"Op-1-{n}": {5: "reference", 17: "nobody"}.get(n, "both") for n in range(40)}


def test_a_process_ended_while_it_wrote_its_mark_had_begun_nothing(tmp_path):
    """When one process ends, the others are ended too, wherever they are."""
    (tmp_path / "1").write_text('["", "Op", 1, 7, "1", "out"]')
    (tmp_path / ("2" + differential.UNFINISHED)).write_text("")
    (tmp_path / ("3" + differential.UNFINISHED)).write_text('["", "Op", 1')
    assert differential.take_marks(tmp_path) == [("", "Op", 1, 7, "1", "out")]
    assert not list(tmp_path.iterdir())


def test_errors_of_the_tool_are_not_swallowed(tmp_path, monkeypatch):
    def make(task, without=()):
        raise KeyError("of our own")

    monkeypatch.setattr(differential, "make_case", make)
    try:
        differential.make_all([("", "Op", 1, 0, "1", str(tmp_path))])
    except KeyError:
        return
    raise AssertionError("the error was lost")
