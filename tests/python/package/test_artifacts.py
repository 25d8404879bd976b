"""Training artifacts of ONNX Runtime from Python (tools/make_artifacts.py); the program's tests are in test_artifacts.py."""

from __future__ import annotations

import pathlib
import shutil

import numpy as np
import pytest

import sardonyx

FOLDER = pathlib.Path(__file__).resolve().parent.parent / "artifacts"
CASES = sorted(one.name for one in FOLDER.iterdir() if one.is_dir())


@pytest.mark.parametrize("case", CASES)
def test_inference_has_scores_and_the_second_entry_the_loss(case):
    with np.load(FOLDER / case / "expected.npz") as archive:
        expected = dict(archive)
    session = sardonyx.TrainingSession(sardonyx.make_trainable_of_artifacts(FOLDER / case))
    state = session.state()
    session.set_state({name: expected["parameter " + name] for name in state if "parameter " + name in expected})
    batch = int(expected["batch"])
    x = expected["x"][:batch]
    told = session.step({"x": x, str(expected["target_name"]): expected["target"][:batch]}, which=1)
    np.testing.assert_allclose(told["loss"], expected["eval_loss"], rtol=1e-5)
    (scores,) = session.infer({"x": x}).values()
    assert scores.shape == (batch, 3)


def test_broken_checkpoints_give_errors(tmp_path):
    """Every cut, and every byte of the first tables changed."""
    folder = tmp_path / "broken"
    shutil.copytree(FOLDER / "classes", folder)
    whole = (FOLDER / "classes" / "checkpoint.resumed").read_bytes()
    at = folder / "checkpoint"

    def outcome(data):
        at.write_bytes(data)
        try:
            sardonyx.make_trainable_of_artifacts(folder)
        except sardonyx.Error as error:
            assert str(error)
            return False
        return True

    assert outcome(whole)
    assert not any(outcome(whole[:length]) for length in range(0, len(whole) // 2, 7))
    for place in range(0, len(whole), 3):
        for to in (0, 0x7F, 0xFF):
            outcome(whole[:place] + bytes([to]) + whole[place + 1:])
