"""Every family of the zoo, small, made trainable: the reference checker takes the model, and a small step against the gradient
makes the loss as much smaller as the gradient says."""

from __future__ import annotations

import numpy as np
import onnx
import pytest
import zoo

import sardonyx

# Why a family does not train: part of the error.
REFUSED = {
    "resnet50_qdq": "weights are quantised", "mobilenet_v3_qdq": "weights are quantised",
    "resnet50_qlinear": "QLinearConv", "mobilenet_v3_qlinear": "QLinearConv", "support_regression": "SVMRegressor",
    **dict.fromkeys(("mel_front_end", "pieces", "forest_v5", "boosting", "boosted_classes", "logistic",
                     "ridge", "support_vectors", "lightgbm", "xgboost", "classic"), "nothing would learn")}
# The loss does not follow the gradient: drawn anew in each step, rounded on the way, or flat.
NOT_SMOOTH = {"alexnet": "Dropout draws", "detector": "other boxes are chosen", "bert_qdq": "rounds", "bert_dynamic": "rounds",
              "dft_filter": "the gradient is 0", "neighbours": "the gradient is 0"}


def float_output(model):
    return next((one.name for one in model.graph.output if one.type.tensor_type.elem_type == onnx.TensorProto.FLOAT), None)


HALF = [name for name in zoo.ENTRIES if name.endswith(("_f16", "_bf16"))]


@pytest.mark.parametrize("name", HALF)
def test_half_precision_learns_in_float32(name, tmp_path):
    """And is of half precision again where it is saved for inference."""
    built = zoo.ENTRIES[name].build(**zoo.ENTRIES[name].small)
    reports = []
    model = sardonyx.make_trainable(built.model, loss="mse", optimizer="adam", learning_rate=1e-4, report=reports.append)
    onnx.checker.check_model(onnx.load_from_string(model.to_bytes()))
    session = sardonyx.TrainingSession(model)
    output = built.model.graph.output[0].name
    y = np.asarray(session.infer(dict(built.inputs))[output]).astype(np.float32)
    feeds = {one.name: built.inputs[one.name] for one in session.step_inputs() if one.name in built.inputs}
    feeds[reports[0].target] = y + 0.1 * np.random.default_rng(0).standard_normal(y.shape).astype(np.float32)
    losses = [float(session.step(feeds)["loss"]) for _ in range(16)]
    assert losses[-1] < 0.8 * losses[0]
    assert all(name.endswith("_master") for name in reports[0].trained)
    assert all(session.state()[name].dtype == np.float32 for name in reports[0].trained)
    session.save(tmp_path / "trained.onnx", inference_only=True)
    saved, first = onnx.load(tmp_path / "trained.onnx"), built.model
    assert len(saved.graph.node) <= len(first.graph.node) and not any("_master" in one.name for one in saved.graph.initializer)
    kind = onnx.TensorProto.BFLOAT16 if name.endswith("_bf16") else onnx.TensorProto.FLOAT16
    assert sum(one.data_type == kind for one in saved.graph.initializer) >= len(reports[0].trained)
    ours, theirs = session.infer(dict(built.inputs)), sardonyx.Session(tmp_path / "trained.onnx").run(dict(built.inputs))
    ours, theirs = np.asarray(ours[output]).astype(np.float32), np.asarray(theirs[output]).astype(np.float32)
    np.testing.assert_allclose(ours, theirs, rtol=0.02, atol=0.02 * np.sqrt(np.mean(np.square(theirs))))


@pytest.mark.parametrize("name", [name for name in zoo.ENTRIES if name not in HALF])
def test_it_trains(name):
    built = zoo.ENTRIES[name].build(**zoo.ENTRIES[name].small)
    output = float_output(built.model)
    if output is None:
        with pytest.raises(sardonyx.Error, match="a loss is of float16, bfloat16, float or double|nothing would learn"):
            sardonyx.make_trainable(built.model, loss="mse")
        return
    if name in REFUSED:
        with pytest.raises(sardonyx.Error, match=REFUSED[name]):
            sardonyx.make_trainable(built.model, loss="mse", output=output)
        return
    reports = []
    model = sardonyx.make_trainable(built.model, loss="mse", output=output, optimizer="sgd", learning_rate=1, report=reports.append)
    onnx.checker.check_model(onnx.load_from_string(model.to_bytes()))
    session = sardonyx.TrainingSession(model)
    y = np.asarray(session.infer(dict(built.inputs))[output])
    feeds = {one.name: built.inputs[one.name] for one in session.step_inputs() if one.name in built.inputs}
    noise = np.random.default_rng(0).standard_normal(y.shape) * 0.1 * max(np.sqrt(np.mean(np.square(y, dtype=np.float64))), 1e-3)
    feeds[reports[0].target] = (y + noise).astype(y.dtype)
    before = {key: np.array(value) for key, value in session.state().items()}
    loss = float(session.step(feeds)["loss"])
    assert np.isfinite(loss)
    after = session.state()
    length = sum(np.sum(np.square(before[key] - after[key], dtype=np.float64)) for key in reports[0].trained)
    if name in NOT_SMOOTH:
        return
    share = 3e-3
    session.set_state(before)
    session.set_state({"learning_rate": np.float32(share * loss / length)})
    session.step(feeds)
    fallen = loss - float(session.step(feeds)["loss"])
    assert 0.5 < fallen / (share * loss) < 1.2
