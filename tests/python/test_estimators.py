"""What skl2onnx makes of scikit-learn's estimators: against ONNX Runtime on few samples and on many, and on two threads."""

from __future__ import annotations

import estimators
import numpy as np
import onnx
import onnxruntime
import pytest
import run
import values
from conftest import ROOT

FOLDER = ROOT / "build" / "estimators"
ROWS = (3, 1500)


@pytest.fixture(scope="module")
def engine(sardonyx):
    with run.Engine([sardonyx.path, "bench", "--serve"]) as child:
        yield child


@pytest.fixture(scope="module", params=estimators.NAMES)
def name(request) -> str:
    return request.param


def answers(engine, model, feeds: dict[str, np.ndarray], threads: int, folder) -> list[np.ndarray]:
    np.savez(folder / "inputs.npz", **feeds)
    engine.ask("load", model, threads)
    engine.ask("inputs", folder / "inputs.npz")
    engine.ask("run", 1)
    engine.ask("outputs", folder / str(threads))
    return values.read(folder / str(threads), len(onnx.load(model).graph.output))


def test_it_agrees(engine, name, tmp_path):
    FOLDER.mkdir(parents=True, exist_ok=True)
    options = onnxruntime.SessionOptions()
    options.log_severity_level, options.intra_op_num_threads = 3, 1
    for rows in ROWS:
        estimators.prepare(name, rows, FOLDER)
        model = FOLDER / f"{name}-{rows}.onnx"
        session = onnxruntime.InferenceSession(model, options)
        feeds = {session.get_inputs()[0].name: estimators.inputs(name, rows)}
        theirs = [values.plain(value) for value in session.run(None, feeds)]
        one, two = (answers(engine, model, feeds, threads, tmp_path) for threads in (1, 2))
        for output, mine, yours, other in zip(session.get_outputs(), one, theirs, two):
            assert mine.tobytes() == other.tobytes(), f"{output.name}: two threads give other bits"
            found = values.difference(mine, yours)
            assert found <= estimators.TOLERANCES.get(name, values.TOLERANCE), \
                f"{output.name} of {rows} samples differs by {found:.2g} of its RMS"
