"""Training artifacts of ONNX Runtime: what its training API computed of them (tools/make_artifacts.py) is what a training model
made of them computes."""

from __future__ import annotations

import json
import pathlib
import shutil

import numpy as np
import onnx
import pytest
from conftest import BAD_INPUT, UNREADABLE, UNSUPPORTED, USAGE
from onnx import numpy_helper

FOLDER = pathlib.Path(__file__).resolve().parent / "artifacts"
CASES = sorted(one.name for one in FOLDER.iterdir() if one.is_dir())


def expected_of(case):
    with np.load(FOLDER / case / "expected.npz") as archive:
        return dict(archive)


def trained(sardonyx, tmp_path, case, expected, *, folder=None, start=0):
    """The losses of the steps from `start` on, and the parameters after them."""
    batch = int(expected["batch"])
    made, data, out = tmp_path / "trainable.onnx", tmp_path / "data.npz", tmp_path / "trained.onnx"
    report = json.loads(sardonyx("make-trainable", folder or FOLDER / case, "-o", made, "--json").stdout)
    assert report["target"] == str(expected["target_name"])
    np.savez(data, **{"x": expected["x"][start * batch:], report["target"]: expected["target"][start * batch:]})
    lines = sardonyx("train", made, "--data", data, "--batch", batch, "--no-shuffle", "--json", "--log-every", 1, "-o",
                     out).stdout.splitlines()
    losses = [told["loss"] for told in map(json.loads, lines) if told["event"] == "step"]
    model = onnx.load(out)
    return losses, {one.name: numpy_helper.to_array(one) for one in model.graph.initializer}, report, model


def require_same(expected, parameters):
    for name, values in expected.items():
        if name.startswith("parameter "):
            np.testing.assert_allclose(parameters[name[len("parameter "):]], values, rtol=2e-5, atol=2e-6, err_msg=name)


@pytest.mark.parametrize("case", CASES)
def test_a_training_is_that_of_onnxruntime(sardonyx, tmp_path, case):
    expected = expected_of(case)
    losses, parameters, report, model = trained(sardonyx, tmp_path, case, expected)
    np.testing.assert_allclose(losses[:len(expected["losses"])], expected["losses"], rtol=1e-5)
    require_same(expected, parameters)
    onnx.checker.check_model(model)
    kept = [name for name in report["frozen"] + report["statistics"]]
    assert len(report["trained"]) + len(kept) == sum(name.startswith("parameter ") for name in expected)


@pytest.mark.parametrize("case", CASES)
def test_a_checkpoint_with_the_optimizer_goes_on(sardonyx, tmp_path, case):
    expected = expected_of(case)
    start = int(expected["resumed_at"])
    folder = tmp_path / "artifacts"
    shutil.copytree(FOLDER / case, folder)
    shutil.move(folder / "checkpoint.resumed", folder / "checkpoint")
    losses, parameters, _, _ = trained(sardonyx, tmp_path, case, expected, folder=folder, start=start)
    np.testing.assert_allclose(losses[:len(expected["losses"]) - start], expected["losses"][start:], rtol=1e-5)
    require_same(expected, parameters)


def test_outputs_and_rate_are_chosen(sardonyx, tmp_path):
    made = tmp_path / "made.onnx"
    sardonyx("make-trainable", FOLDER / "classes", "-o", made, "--output-name", "b", "--output-name", "scores", "--learning-rate", "0.5")
    model = onnx.load(made)
    assert [one.name for one in model.graph.output] == ["b", "scores"]
    rate = {one.name: one for one in model.training_info[0].algorithm.initializer}["learning_rate"]
    assert numpy_helper.to_array(rate) == 0.5


def test_what_artifacts_say_is_no_option(sardonyx, tmp_path):
    sardonyx.fails(USAGE, "make-trainable", FOLDER / "classes", "-o", tmp_path / "x.onnx", "--optimizer", "sgd",
                   mentions=["--optimizer", "artifacts"])


def broken(tmp_path, case="classes"):
    folder = tmp_path / "broken"
    shutil.copytree(FOLDER / case, folder)
    return folder


def refused(sardonyx, folder, code, *mentions):
    out = folder / "x.onnx"
    sardonyx.fails(code, "make-trainable", folder, "-o", out, mentions=mentions)
    assert not out.exists()


def test_a_missing_file_is_named(sardonyx, tmp_path):
    folder = broken(tmp_path)
    (folder / "optimizer_model.onnx").unlink()
    refused(sardonyx, folder, UNREADABLE, "optimizer_model.onnx")


def test_another_optimizer_is_refused(sardonyx, tmp_path):
    folder = broken(tmp_path)
    model = onnx.load(folder / "optimizer_model.onnx")
    model.graph.node[0].op_type = "LambOptimizer"
    onnx.save(model, folder / "optimizer_model.onnx")
    refused(sardonyx, folder, UNSUPPORTED, "LambOptimizer", "AdamWOptimizer")


def test_models_of_two_networks_are_refused(sardonyx, tmp_path):
    folder = broken(tmp_path)
    shutil.copy(FOLDER / "attention" / "eval_model.onnx", folder / "eval_model.onnx")
    refused(sardonyx, folder, BAD_INPUT, "one model")


def test_a_checkpoint_of_another_network_is_refused(sardonyx, tmp_path):
    folder = broken(tmp_path)
    shutil.copy(FOLDER / "images" / "checkpoint", folder / "checkpoint")
    refused(sardonyx, folder, BAD_INPUT, "parameter")


def test_a_folder_as_a_checkpoint_is_told_apart(sardonyx, tmp_path):
    folder = broken(tmp_path)
    (folder / "checkpoint").unlink()
    (folder / "checkpoint").mkdir()
    refused(sardonyx, folder, UNSUPPORTED, "before 1.16")
