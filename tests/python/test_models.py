"""Models that strain the engine, in small configurations, against ONNX Runtime."""

from __future__ import annotations

import numpy as np
import onnx
import onnxruntime
import pytest
import zoo
from onnx import helper


def close(ours: list[np.ndarray], theirs: list[np.ndarray]) -> None:
    assert len(ours) == len(theirs)
    for mine, yours in zip(ours, theirs):
        assert mine.dtype == yours.dtype
        assert mine.shape == yours.shape
        if np.issubdtype(yours.dtype, np.floating):
            np.testing.assert_allclose(mine, yours, rtol=0, atol=1e-4 * max(zoo.rms(yours), 1e-6))
        else:
            np.testing.assert_array_equal(mine, yours)


class Pair:
    """One model in both engines."""

    def __init__(self, sardonyx, built: zoo.Built, folder):
        self.sardonyx, self.folder = sardonyx, folder
        self.path = folder / "model.onnx"
        onnx.save(built.model, self.path)
        options = onnxruntime.SessionOptions()
        options.log_severity_level = 3
        self.session = onnxruntime.InferenceSession(str(self.path), options)

    def agree(self, feeds: dict[str, np.ndarray]) -> list[np.ndarray]:
        theirs = self.session.run(None, feeds)
        close(self.sardonyx.outputs(self.path, feeds, self.folder), theirs)
        return theirs


def test_bert_with_free_batch_and_length(sardonyx, tmp_path):
    built = zoo.transformers.bert(layers=2, hidden=32, heads=4, vocabulary=100, positions=64, length=16)
    pair = Pair(sardonyx, built, tmp_path)
    random = np.random.default_rng(5)
    for batch, length in ((1, 16), (3, 7), (2, 64), (1, 1)):
        mask = np.ones((batch, length), np.int64)
        mask[-1, max(1, length - 3):] = 0
        pair.agree({"input_ids": random.integers(0, 100, (batch, length)), "attention_mask": mask,
                    "token_type_ids": random.integers(0, 2, (batch, length))})


def test_gpt2_takes_64_steps_with_its_growing_past(sardonyx, tmp_path):
    built = zoo.transformers.gpt2(layers=2, hidden=32, heads=4, vocabulary=90, positions=80, past=4)
    pair = Pair(sardonyx, built, tmp_path)
    names = [info.name for info in built.model.graph.input[2:]]
    past = [np.zeros((1, 4, 0, 8), np.float32) for _ in names]
    ids = np.array([[1, 2, 3]])  # the prompt; after it one token a step
    for step in range(64):
        mask = np.ones((1, past[0].shape[2] + ids.shape[1]), np.int64)
        logits, *past = pair.agree({"input_ids": ids, "attention_mask": mask, **dict(zip(names, past))})
        ids = logits[:, -1:].argmax(-1)
    assert past[0].shape[2] == 66


@pytest.mark.parametrize("scale", [0.0, 1.0, 2.0])
def test_detector_finds_what_it_finds(sardonyx, tmp_path, scale):
    built = zoo.small.detector()
    found = Pair(sardonyx, built, tmp_path).agree({"features": built.inputs["features"] * np.float32(scale)})
    assert (len(found[0]) == 0) == (scale == 0.0)


@pytest.mark.parametrize("trips, limit", [(0, 1e6), (1, 1e6), (40, 1e6), (40, 3.9), (40, 0.0)])
def test_loop(sardonyx, tmp_path, trips, limit):
    built = zoo.small.loop()
    feeds = dict(built.inputs, trips=np.array(trips), limit=np.array(limit, np.float32))
    Pair(sardonyx, built, tmp_path).agree(feeds)


@pytest.mark.parametrize("sharp", [False, True])
def test_functions_of_the_model(sardonyx, tmp_path, sharp):
    built = zoo.small.functions()
    Pair(sardonyx, built, tmp_path).agree(dict(built.inputs, sharp=np.array(sharp)))


def test_overloads_of_a_function(sardonyx, tmp_path):
    opset = [helper.make_opsetid("", 17)]

    def function(overload: str, kind: str) -> onnx.FunctionProto:
        return helper.make_function("own", "Apply", ["a"], ["b"], [helper.make_node(kind, ["a"], ["b"])], opset,
                                    overload=overload)

    nodes = [helper.make_node("Apply", ["x"], [f"y{overload}"], domain="own", overload=overload)
             for overload in ("", "negated")]
    graph = helper.make_graph(nodes, "g", [helper.make_tensor_value_info("x", 1, ["n"])],
                              [helper.make_tensor_value_info(node.output[0], 1, ["n"]) for node in nodes])
    model = helper.make_model(graph, opset_imports=[*opset, helper.make_opsetid("own", 1)], ir_version=10,
                              functions=[function("", "Abs"), function("negated", "Neg")])
    onnx.save(model, tmp_path / "m.onnx")
    x = np.array([-1, 2, -3], np.float32)
    plain, negated = sardonyx.outputs(tmp_path / "m.onnx", {"x": x}, tmp_path)
    np.testing.assert_array_equal(plain, np.abs(x))
    np.testing.assert_array_equal(negated, -x)


def test_lstm(sardonyx, tmp_path):
    built = zoo.small.lstm(hidden=24, inputs=10, steps=7)
    pair = Pair(sardonyx, built, tmp_path)
    random = np.random.default_rng(8)
    for steps, batch in ((7, 1), (1, 3), (20, 2)):
        pair.agree({"x": random.standard_normal((steps, batch, 10)).astype(np.float32)})


def test_vit_with_free_batch(sardonyx, tmp_path):
    built = zoo.transformers.vit(layers=2, hidden=32, heads=4, side=32, patch=8)
    pair = Pair(sardonyx, built, tmp_path)
    for batch in (1, 2):
        pair.agree({"image": np.random.default_rng(batch).standard_normal((batch, 3, 32, 32)).astype(np.float32)})


@pytest.mark.parametrize("name", ["squeezenet", "shufflenet", "mobilenet_v2", "efficientnet_b0", "chain20", "tiny200",
                                  "mlp"])
def test_networks(sardonyx, tmp_path, name):
    built = zoo.MODELS[name]()
    Pair(sardonyx, built, tmp_path).agree(built.inputs)


def test_residual_network(sardonyx, tmp_path):
    built = zoo.vision.resnet50(blocks=(2, 2), width=16, side=64)
    Pair(sardonyx, built, tmp_path).agree(built.inputs)


def test_dense_network(sardonyx, tmp_path):
    built = zoo.vision.densenet121(blocks=(2, 3), growth=8, side=64)
    Pair(sardonyx, built, tmp_path).agree(built.inputs)
