"""make-trainable and train, held against the same training written by hand in NumPy."""

from __future__ import annotations

import json
import os
import signal
import subprocess

import numpy as np
import onnx
import pytest
from conftest import BAD_INPUT, DIGITS, INVALID_MODEL, RUN_FAILED, UNREADABLE, USAGE
from onnx import TensorProto, helper, numpy_helper

STEPS, BATCH, BATCHES = 50, 16, 5


def model_of(nodes, inputs, outputs, weights, opset=17, ir_version=8):
    graph = helper.make_graph(
        nodes, "net", [helper.make_tensor_value_info(name, TensorProto.FLOAT, shape) for name, shape in inputs],
        [helper.make_tensor_value_info(name, TensorProto.FLOAT, shape) for name, shape in outputs],
        [numpy_helper.from_array(np.asarray(value), name) for name, value in weights.items()])
    return helper.make_model(graph, opset_imports=[helper.make_opsetid("", opset)], ir_version=ir_version)


def mlp(seed=0, inputs=8, hidden=16, classes=3):
    rng = np.random.default_rng(seed)
    weights = {"W1": rng.normal(0, 0.4, (inputs, hidden)), "b1": rng.normal(0, 0.1, hidden),
               "W2": rng.normal(0, 0.4, (hidden, classes)), "b2": rng.normal(0, 0.1, classes)}
    weights = {name: value.astype(np.float32) for name, value in weights.items()}
    nodes = [helper.make_node("MatMul", ["x", "W1"], ["a"]), helper.make_node("Add", ["a", "b1"], ["c"]),
             helper.make_node("Relu", ["c"], ["d"]), helper.make_node("Gemm", ["d", "W2", "b2"], ["y"])]
    return model_of(nodes, [("x", ["N", inputs])], [("y", ["N", classes])], weights), weights


def examples(seed=1, inputs=8, classes=3, count=BATCH * BATCHES):
    rng = np.random.default_rng(seed)
    x = rng.normal(size=(count, inputs)).astype(np.float32)
    target = np.argmax(x @ rng.normal(size=(inputs, classes)), axis=1).astype(np.int64)
    return x, target


def save_data(folder, name="data.npz", **arrays):
    np.savez(folder / name, **arrays)
    return folder / name


def losses_of(run):
    lines = [json.loads(line) for line in run.stdout.splitlines()]
    return [line["loss"] for line in lines if line["event"] == "step"]


def make(sardonyx, folder, model, *options):
    onnx.save(model, folder / "model.onnx")
    sardonyx("make-trainable", folder / "model.onnx", "-o", folder / "trainable.onnx", *options)
    onnx.checker.check_model(folder / "trainable.onnx")
    sardonyx("check", folder / "trainable.onnx")
    return folder / "trainable.onnx"


def train(sardonyx, trainable, data, output, *options, epochs=STEPS // BATCHES, **more):
    return sardonyx("train", trainable, "--data", data, "-o", output, "--epochs", epochs, "--batch", BATCH, "--json",
                   "--log-every", 1, "--threads", 2, *options, **more)


def weights_of(path, inference=True):
    model = onnx.load(path)
    found = {tensor.name: numpy_helper.to_array(tensor) for tensor in model.graph.initializer}
    if not inference:
        for info in model.training_info:
            found.update({tensor.name: numpy_helper.to_array(tensor) for tensor in info.algorithm.initializer})
    return found


# --- By hand -----------------------------------------------------------------------------------


class Net:
    """x W1 + b1, ReLU, W2 + b2 in float64."""

    def __init__(self, weights):
        self.weights = {name: value.astype(np.float64) for name, value in weights.items()}

    def forward(self, x):
        w = self.weights
        hidden = x @ w["W1"] + w["b1"]
        active = np.maximum(hidden, 0)
        return active @ w["W2"] + w["b2"], (x, hidden, active)

    def backward(self, cache, d):
        x, hidden, active = cache
        w = self.weights
        d_active = (d @ w["W2"].T) * (hidden > 0)
        return {"W1": x.T @ d_active, "b1": d_active.sum(0), "W2": active.T @ d, "b2": d.sum(0)}


def cross_entropy(scores, target):
    shifted = scores - scores.max(1, keepdims=True)
    probabilities = np.exp(shifted) / np.exp(shifted).sum(1, keepdims=True)
    rows = np.arange(len(target))
    slope = probabilities.copy()
    slope[rows, target] -= 1
    return -np.log(probabilities[rows, target]).mean(), slope / len(target)


def mean_of(each, slope):
    return each.mean(), slope / each.size


def mse(y, t):
    return mean_of((y - t) ** 2, 2 * (y - t))


def l1(y, t):
    return mean_of(np.abs(y - t), np.sign(y - t))


def huber(y, t):
    error = y - t
    inside = np.abs(error) <= 1
    return mean_of(np.where(inside, error**2 / 2, np.abs(error) - 0.5), np.where(inside, error, np.sign(error)))


def bce(z, t):
    return mean_of(np.log1p(np.exp(-np.abs(z))) + np.maximum(z, 0) - z * t, 1 / (1 + np.exp(-z)) - t)


class Optimizer:
    def __init__(self, kind, rate, **options):
        self.kind, self.rate, self.options, self.state, self.count = kind, rate, options, {}, 0

    def update(self, weights, slopes, factor=1.0):
        self.count += 1
        for name, slope in slopes.items():
            state = self.state.setdefault(name, [np.zeros_like(slope), np.zeros_like(slope)])
            weights[name] = getattr(self, self.kind)(weights[name], slope, state, self.rate * factor)

    def sgd(self, x, g, _, rate):
        return x - rate * (g + self.options.get("decay", 0) * x)

    def momentum(self, x, g, state, rate):
        state[0] = 0.9 * state[0] + g
        return x - rate * (g + 0.9 * state[0] if self.options.get("nesterov") else state[0])

    def moments(self, g, state):
        state[0] = 0.9 * state[0] + 0.1 * g
        state[1] = 0.999 * state[1] + 0.001 * g * g
        return state[0] / (1 - 0.9**self.count), state[1] / (1 - 0.999**self.count)

    def adam(self, x, g, state, rate):
        """As the standard has it: epsilon is added before the bias is taken out."""
        self.moments(g, state)
        rate *= np.sqrt(1 - 0.999**self.count) / (1 - 0.9**self.count)
        return x - rate * state[0] / (np.sqrt(state[1]) + 1e-8)

    def adamw(self, x, g, state, rate):
        mean, spread = self.moments(g, state)
        return x - rate * self.options["decay"] * x - rate * mean / (np.sqrt(spread) + 1e-8)

    def lamb(self, x, g, state, rate):
        mean, spread = self.moments(g, state)
        way = mean / (np.sqrt(spread) + 1e-8) + self.options["decay"] * x
        return x - rate * np.linalg.norm(x) / np.linalg.norm(way) * way

    def adagrad(self, x, g, state, rate):
        state[0] = state[0] + g * g
        return x - rate * g / (np.sqrt(state[0]) + 1e-8)

    def rmsprop(self, x, g, state, rate):
        state[0] = 0.99 * state[0] + 0.01 * g * g
        return x - rate * g / (np.sqrt(state[0]) + 1e-8)


def by_hand(net, loss, optimizer, x, target, factor=lambda step: 1.0, clip=None, accumulate=1):
    losses, sums = [], {}
    for step in range(STEPS):
        rows = slice((step % BATCHES) * BATCH, (step % BATCHES + 1) * BATCH)
        scores, cache = net.forward(x[rows].astype(np.float64))
        value, slope = loss(scores, target[rows])
        losses.append(value)
        slopes = net.backward(cache, slope)
        sums = {name: sums.get(name, 0) + slope / accumulate for name, slope in slopes.items()}
        if (step + 1) % accumulate:
            continue
        slopes, sums = sums, {}
        if clip:
            norm = np.sqrt(sum((slope**2).sum() for slope in slopes.values()))
            slopes = {name: slope * min(1, clip / (norm + 1e-6)) for name, slope in slopes.items()}
        optimizer.update(net.weights, slopes, factor(optimizer.count))
    return np.array(losses)


OPTIMIZERS = {
    "sgd": (["--learning-rate", "0.2", "--weight-decay", "0.01"], 0.2, {"decay": 0.01}),
    "momentum": (["--learning-rate", "0.05"], 0.05, {}),
    "nesterov": (["--learning-rate", "0.05", "--nesterov"], 0.05, {"nesterov": True}),
    "adam": (["--learning-rate", "0.01"], 0.01, {}),
    "adamw": (["--learning-rate", "0.01", "--weight-decay", "0.1"], 0.01, {"decay": 0.1}),
    "adagrad": (["--learning-rate", "0.1"], 0.1, {}),
    "rmsprop": (["--learning-rate", "0.01"], 0.01, {}),
    "lamb": (["--learning-rate", "0.02", "--weight-decay", "0.1"], 0.02, {"decay": 0.1}),
}


@pytest.mark.parametrize("name", OPTIMIZERS)
def test_optimizers_by_hand(sardonyx, tmp_path, name):
    options, rate, more = OPTIMIZERS[name]
    kind = "momentum" if name == "nesterov" else name
    model, weights = mlp()
    x, target = examples()
    trainable = make(sardonyx, tmp_path, model, "--optimizer", kind, *options)
    run = train(sardonyx, trainable, save_data(tmp_path, x=x, target=target), tmp_path / "out.onnx", "--no-shuffle")
    net = Net(weights)
    expected = by_hand(net, cross_entropy, Optimizer(kind, rate, **more), x, target)
    np.testing.assert_allclose(losses_of(run), expected, rtol=1e-4)
    assert expected[-1] < expected[0]
    for key, value in net.weights.items():
        np.testing.assert_allclose(weights_of(tmp_path / "out.onnx")[key], value, rtol=1e-3, atol=1e-4)


@pytest.mark.parametrize("name, loss", [("mse", mse), ("l1", l1), ("huber", huber), ("bce-with-logits", bce)])
def test_losses_by_hand(sardonyx, tmp_path, name, loss):
    model, weights = mlp()
    x, _ = examples()
    target = np.random.default_rng(3).normal(0, 2, (len(x), 3)).astype(np.float32)
    if name.startswith("bce"):
        target = (target > 0).astype(np.float32)
    trainable = make(sardonyx, tmp_path, model, "--loss", name, "--optimizer", "sgd", "--learning-rate", "0.05")
    run = train(sardonyx, trainable, save_data(tmp_path, x=x, target=target), tmp_path / "out.onnx", "--no-shuffle")
    expected = by_hand(Net(weights), loss, Optimizer("sgd", 0.05), x, target)
    np.testing.assert_allclose(losses_of(run), expected, rtol=1e-4)


def with_end(model, op, **attributes):
    """The model with one more node before its output."""
    made = onnx.ModelProto()
    made.CopyFrom(model)
    made.graph.node[-1].output[0] = "scores"
    made.graph.node.append(helper.make_node(op, ["scores"], ["y"], **attributes))
    return made


def test_losses_see_through_the_end(sardonyx, tmp_path):
    """A Softmax before a cross-entropy, and a Sigmoid before bce, are a part of the loss."""
    model, weights = mlp()
    x, target = examples()
    trainable = make(sardonyx, tmp_path, with_end(model, "Softmax", axis=-1), "--optimizer", "sgd")
    data = save_data(tmp_path, x=x, target=target)
    run = train(sardonyx, trainable, data, tmp_path / "out.onnx", "--no-shuffle")
    expected = by_hand(Net(weights), cross_entropy, Optimizer("sgd", 0.01), x, target)
    np.testing.assert_allclose(losses_of(run), expected, rtol=1e-4)
    marks = np.eye(3, dtype=np.float32)[target]
    trainable = make(sardonyx, tmp_path, with_end(model, "Sigmoid"), "--optimizer", "sgd", "--loss", "bce")
    data = save_data(tmp_path, x=x, target=marks)
    run = train(sardonyx, trainable, data, tmp_path / "out.onnx", "--no-shuffle")
    np.testing.assert_allclose(losses_of(run), by_hand(Net(weights), bce, Optimizer("sgd", 0.01), x, marks), rtol=1e-4)


@pytest.mark.parametrize("ending", ["softmax", "scores"])
def test_sequences_of_classes(sardonyx, tmp_path, ending):
    """A class for each place of a sequence: classes stand last, and some targets do not count."""
    rng = np.random.default_rng(0)
    weights = {"W": rng.normal(0, 1, (5, 4)).astype(np.float32)}
    nodes = [helper.make_node("MatMul", ["x", "W"], ["scores" if ending == "softmax" else "y"])]
    if ending == "softmax":
        nodes.append(helper.make_node("Softmax", ["scores"], ["y"], axis=-1))
    model = model_of(nodes, [("x", ["N", "T", 5])], [("y", ["N", "T", 4])], weights)
    x = rng.normal(size=(BATCH, 6, 5)).astype(np.float32)
    target = rng.integers(0, 4, (BATCH, 6))
    target[:, 4:] = -100
    trainable = make(sardonyx, tmp_path, model, "--class-axis", -1, "--ignore-index", -100, "--optimizer", "sgd")
    run = train(sardonyx, trainable, save_data(tmp_path, x=x, target=target), tmp_path / "out.onnx", epochs=1)
    counted = target >= 0
    loss, _ = cross_entropy((x @ weights["W"])[counted].astype(np.float64), target[counted])
    assert losses_of(run)[0] == pytest.approx(loss, rel=1e-5)
    right = np.argmax(x @ weights["W"], -1)[counted] == target[counted]
    assert json.loads(run.stdout.splitlines()[0])["metrics"]["accuracy"] == pytest.approx(right.mean(), rel=1e-5)


def test_large_tensors_beside_the_model(sardonyx, tmp_path):
    model, _ = mlp(inputs=8, hidden=256)
    x, target = examples()
    data = save_data(tmp_path, x=x, target=target)
    onnx.save(model, tmp_path / "model.onnx")
    sardonyx("make-trainable", tmp_path / "model.onnx", "-o", tmp_path / "t.onnx", "--external-data", "t.data")
    train(sardonyx, tmp_path / "t.onnx", data, tmp_path / "o.onnx", "--external-data", "o.data", "--seed", 1, epochs=2)
    train(sardonyx, make(sardonyx, tmp_path, model), data, tmp_path / "p.onnx", "--seed", 1, epochs=2)
    assert (tmp_path / "t.data").stat().st_size > 0 and (tmp_path / "o.data").stat().st_size > 0
    outside, inside = weights_of(tmp_path / "o.onnx"), weights_of(tmp_path / "p.onnx")
    for name, value in inside.items():
        assert np.array_equal(outside[name], value), name


SCHEDULES = {
    "linear:40": lambda t: max(0, 1 - t / 40),
    "cosine:40": lambda t: 0.5 * (1 + np.cos(np.pi * min(1, t / 40))),
    "step:10:0.5": lambda t: 0.5 ** (t // 10),
    "exponential:0.95": lambda t: 0.95**t,
}


@pytest.mark.parametrize("schedule", SCHEDULES)
def test_schedules_warmup_and_clipping(sardonyx, tmp_path, schedule):
    model, weights = mlp()
    x, target = examples()
    trainable = make(sardonyx, tmp_path, model, "--optimizer", "sgd", "--learning-rate", "0.3", "--schedule", schedule,
                     "--warmup", 5, "--clip-norm", "0.4")
    run = train(sardonyx, trainable, save_data(tmp_path, x=x, target=target), tmp_path / "out.onnx", "--no-shuffle")

    def factor(t):
        return min(1, (t + 1) / 5) * SCHEDULES[schedule](max(0, t - 5))

    expected = by_hand(Net(weights), cross_entropy, Optimizer("sgd", 0.3), x, target, factor, clip=0.4)
    np.testing.assert_allclose(losses_of(run), expected, rtol=1e-4)
    rates = [json.loads(line)["metrics"]["rate"] for line in run.stdout.splitlines() if '"step"' in line[:20]]
    np.testing.assert_allclose(rates, [0.3 * factor(t) for t in range(STEPS)], rtol=1e-4, atol=1e-7)


def test_accumulates_gradients(sardonyx, tmp_path):
    model, weights = mlp()
    x, target = examples()
    trainable = make(sardonyx, tmp_path, model, "--optimizer", "adam", "--learning-rate", "0.02", "--accumulate", 3)
    run = train(sardonyx, trainable, save_data(tmp_path, x=x, target=target), tmp_path / "out.onnx", "--no-shuffle")
    expected = by_hand(Net(weights), cross_entropy, Optimizer("adam", 0.02), x, target, accumulate=3)
    np.testing.assert_allclose(losses_of(run), expected, rtol=1e-4)


# --- A convolutional network with BatchNormalization -------------------------------------------


def cnn(batch="N", seed=0):
    rng = np.random.default_rng(seed)
    weights = {"w": rng.normal(0, 0.3, (4, 2, 3, 3)), "scale": rng.normal(1, 0.1, 4), "shift": rng.normal(0, 0.1, 4),
               "mean": np.zeros(4), "var": np.ones(4), "W2": rng.normal(0, 0.3, (4 * 9, 3)), "b2": np.zeros(3)}
    weights = {name: value.astype(np.float32) for name, value in weights.items()}
    nodes = [helper.make_node("Conv", ["x", "w"], ["a"], pads=[1, 1, 1, 1]),
             helper.make_node("BatchNormalization", ["a", "scale", "shift", "mean", "var"], ["b"], momentum=0.9),
             helper.make_node("Relu", ["b"], ["c"]),
             helper.make_node("AveragePool", ["c"], ["p"], kernel_shape=[2, 2], strides=[2, 2]),
             helper.make_node("Flatten", ["p"], ["f"]), helper.make_node("Gemm", ["f", "W2", "b2"], ["y"])]
    return model_of(nodes, [("x", [batch, 2, 6, 6])], [("y", [batch, 3])], weights), weights


class ConvNet:
    def __init__(self, weights):
        self.weights = {name: value.astype(np.float64) for name, value in weights.items()}

    def forward(self, x):
        w = self.weights
        padded = np.pad(x, ((0, 0), (0, 0), (1, 1), (1, 1)))
        windows = np.lib.stride_tricks.sliding_window_view(padded, (3, 3), (2, 3))  # N C H W 3 3
        a = np.einsum("nchwij,mcij->nmhw", windows, w["w"])
        mean, var = a.mean((0, 2, 3)), a.var((0, 2, 3))
        for name, value in (("mean", mean), ("var", var)):
            w[name] = 0.9 * w[name] + 0.1 * value
        deviation = np.sqrt(var + 1e-5)[:, None, None]
        normal = (a - mean[:, None, None]) / deviation
        b = normal * w["scale"][:, None, None] + w["shift"][:, None, None]
        pooled = np.maximum(b, 0).reshape(len(x), 4, 3, 2, 3, 2).mean((3, 5))
        flat = pooled.reshape(len(x), -1)
        return flat @ w["W2"] + w["b2"], (windows, normal, deviation, b, flat)

    def backward(self, cache, d):
        windows, normal, deviation, b, flat = cache
        w = self.weights
        d_pooled = (d @ w["W2"].T).reshape(len(d), 4, 3, 3)
        d_b = np.repeat(np.repeat(d_pooled, 2, 2), 2, 3) / 4 * (b > 0)
        d_normal = d_b * w["scale"][:, None, None]
        means = d_normal.mean((0, 2, 3), keepdims=True), (d_normal * normal).mean((0, 2, 3), keepdims=True)
        d_a = (d_normal - means[0] - normal * means[1]) / deviation
        return {"w": np.einsum("nmhw,nchwij->mcij", d_a, windows), "scale": (d_b * normal).sum((0, 2, 3)),
                "shift": d_b.sum((0, 2, 3)), "W2": flat.T @ d, "b2": d.sum(0)}


def images(count=BATCH * BATCHES):
    rng = np.random.default_rng(5)
    x = rng.normal(size=(count, 2, 6, 6)).astype(np.float32)
    return x, np.argmax(x.reshape(count, -1)[:, :3], axis=1).astype(np.int64)


@pytest.mark.parametrize("batch", ["N", BATCH])
def test_convolution_and_batch_normalization_by_hand(sardonyx, tmp_path, batch):
    model, weights = cnn(batch)
    x, target = images()
    trainable = make(sardonyx, tmp_path, model, "--optimizer", "momentum", "--learning-rate", "0.02")
    run = train(sardonyx, trainable, save_data(tmp_path, x=x, target=target), tmp_path / "out.onnx", "--no-shuffle")
    net = ConvNet(weights)
    expected = by_hand(net, cross_entropy, Optimizer("momentum", 0.02), x, target)
    np.testing.assert_allclose(losses_of(run), expected, rtol=1e-4)
    for key, value in net.weights.items():  # running statistics, too
        np.testing.assert_allclose(weights_of(tmp_path / "out.onnx")[key], value, rtol=1e-3, atol=1e-4, err_msg=key)


def test_frozen_normalization_keeps_its_statistics(sardonyx, tmp_path):
    model, weights = cnn()
    x, target = images()
    trainable = make(sardonyx, tmp_path, model, "--freeze", "s*", "--freeze", "w")
    train(sardonyx, trainable, save_data(tmp_path, x=x, target=target), tmp_path / "out.onnx", epochs=1)
    trained = weights_of(tmp_path / "out.onnx")
    for name, value in weights.items():
        assert np.array_equal(trained[name], value) == (name not in ("W2", "b2")), name


# --- The same bits ------------------------------------------------------------------------------


def dropping():
    model, _ = mlp()
    model.graph.node[3].input[0] = "kept"
    model.graph.node.insert(3, helper.make_node("Dropout", ["d", "ratio"], ["kept"]))
    model.graph.initializer.append(numpy_helper.from_array(np.float32(0.3), "ratio"))
    return model


def test_bits_do_not_depend_on_threads(sardonyx, tmp_path):
    x, target = images()
    trainable = make(sardonyx, tmp_path, cnn()[0])
    data = save_data(tmp_path, x=x, target=target)
    for threads in (1, 2):
        sardonyx("train", trainable, "--data", data, "-o", tmp_path / f"{threads}.onnx", "--threads", threads, "--seed", 4,
                "--epochs", 3, "--batch", 24)
    assert (tmp_path / "1.onnx").read_bytes() == (tmp_path / "2.onnx").read_bytes()


def test_resumes_with_the_same_bits(sardonyx, tmp_path):
    """A training that ends in the middle of an epoch, with Dropout, and goes on in another process."""
    x, target = examples()
    trainable = make(sardonyx, tmp_path, dropping(), "--optimizer", "adam", "--random-weights")
    data = save_data(tmp_path, x=x, target=target)
    whole, parts = tmp_path / "whole.onnx", tmp_path / "parts.onnx"
    train(sardonyx, trainable, data, whole, "--seed", 9, epochs=4)
    folder = tmp_path / "checkpoints"
    train(sardonyx, trainable, data, parts, "--seed", 9, "--checkpoint", folder, "--every", 7, epochs=2)
    (folder / "checkpoint-000000000010.onnx").unlink()  # the last of them: the one before is in the second epoch
    run = train(sardonyx, trainable, data, parts, "--checkpoint", folder, "--resume", epochs=4)
    assert len(losses_of(run)) == 13
    assert whole.read_bytes() == parts.read_bytes()
    assert len(list(folder.glob("checkpoint-*.onnx"))) == 2
    again = train(sardonyx, trainable, data, parts, "--checkpoint", folder, "--resume", epochs=2)
    assert not losses_of(again) and "nothing was trained: the checkpoint has 20 steps behind it" in again.stderr
    other = tmp_path / "other.onnx"
    train(sardonyx, trainable, data, other, "--seed", 10, epochs=4)
    assert whole.read_bytes() != other.read_bytes()


def test_what_a_killed_process_left_goes(sardonyx, tmp_path):
    x, target = examples()
    trainable = make(sardonyx, tmp_path, mlp()[0])
    folder = tmp_path / "checkpoints"
    folder.mkdir()
    left = folder / "checkpoint-000000000003.onnx.49683ae4.tmp"
    others = [folder / name for name in ("mine.onnx.49683ae4.tmp", "checkpoint-3.onnx.tmp", "checkpoint-000000000003.onnx.txt")]
    for file in (left, *others):
        file.write_bytes(b"half")
    train(sardonyx, trainable, save_data(tmp_path, x=x, target=target), tmp_path / "out.onnx", "--checkpoint", folder, epochs=1)
    assert not left.exists() and all(file.exists() for file in others)


def test_an_interrupt_saves_a_checkpoint(sardonyx, tmp_path):
    x, target = examples(count=4000)
    trainable = make(sardonyx, tmp_path, dropping())
    data = save_data(tmp_path, x=x, target=target)
    command = ["train", trainable, "--data", data, "--seed", 2, "--batch", 8, "--json", "--log-every", 1]
    folder, output = tmp_path / "checkpoints", tmp_path / "parts.onnx"
    running = subprocess.Popen([sardonyx.path, *map(str, command), "--epochs", "1000", "-o", str(output), "--checkpoint",
                                str(folder), "--every", "100000000"], stdout=subprocess.PIPE, text=True)
    for _ in range(3):
        running.stdout.readline()
    running.send_signal(signal.SIGINT)
    out = running.communicate()[0]
    assert running.returncode == 130
    end = json.loads(out.splitlines()[-1])
    assert end["stopped"] and end["steps"] < 500_000 and not output.exists()
    # The same number of steps, and then as many epochs as it takes to pass them, without a break.
    epochs = end["steps"] // 500 + 1
    sardonyx(*command, "--epochs", epochs, "-o", output, "--checkpoint", folder, "--resume")
    sardonyx(*command, "--epochs", epochs, "-o", tmp_path / "whole.onnx")
    assert output.read_bytes() == (tmp_path / "whole.onnx").read_bytes()


# --- What learns ----------------------------------------------------------------------------------


def test_lora_learns_beside_frozen_weights(sardonyx, tmp_path):
    model, weights = mlp()
    x, target = examples()
    trainable = make(sardonyx, tmp_path, model, "--lora", "2:W*", "--learning-rate", "0.05")
    data = save_data(tmp_path, x=x, target=target)
    run = train(sardonyx, trainable, data, tmp_path / "out.onnx", "--inference-only")
    losses = losses_of(run)
    scores, _ = Net(weights).forward(x[:BATCH].astype(np.float64))
    first = make(sardonyx, tmp_path, model)
    unchanged = train(sardonyx, first, data, tmp_path / "plain.onnx", "--no-shuffle", epochs=1)
    assert losses_of(unchanged)[0] == pytest.approx(cross_entropy(scores, target[:BATCH])[0], rel=1e-5)
    assert np.mean(losses[-BATCHES:]) < 0.5 * np.mean(losses[:BATCHES])
    trained = weights_of(tmp_path / "out.onnx")
    for name, value in weights.items():
        assert np.array_equal(trained[name], value)
    assert trained["W1_lora_A"].shape == (8, 2) and np.abs(trained["W1_lora_B"]).max() > 0
    # What is left is a model for inference that any reader can run.
    left = onnx.load(tmp_path / "out.onnx")
    assert not left.training_info and not left.functions and [set.domain for set in left.opset_import] == [""]
    onnx.checker.check_model(left, full_check=True)


def test_lora_is_merged(sardonyx, tmp_path):
    model, weights = mlp()
    x, target = examples()
    trainable = make(sardonyx, tmp_path, model, "--lora", "2:W*", "--learning-rate", "0.05")
    data = save_data(tmp_path, x=x, target=target)
    train(sardonyx, trainable, data, tmp_path / "whole.onnx", "--inference-only")
    train(sardonyx, trainable, data, tmp_path / "merged.onnx", "--merge-lora")
    merged = onnx.load(tmp_path / "merged.onnx")
    onnx.checker.check_model(merged, full_check=True)
    assert [node.op_type for node in merged.graph.node] == [node.op_type for node in model.graph.node]
    assert not merged.training_info and len(merged.graph.initializer) == len(weights)
    whole, trained = weights_of(tmp_path / "whole.onnx"), weights_of(tmp_path / "merged.onnx")
    for name in ("W1", "W2"):
        product = whole[f"{name}_lora_A"].astype(np.float64) @ whole[f"{name}_lora_B"]
        assert np.allclose(trained[name], weights[name] + product, atol=1e-6) and np.abs(product).max() > 0.01
    plain = make(sardonyx, tmp_path, model)
    assert "no low-rank products" in refused(
        sardonyx, BAD_INPUT, "train", plain, "--data", data, "-o", tmp_path / "none.onnx", "--merge-lora")


@pytest.mark.parametrize("precision", ["bf16", "fp16"])
def test_half_precision(sardonyx, tmp_path, precision):
    """Losses stay near those of float32, weights float32; the model conforms, and other options go with it."""
    model, _ = mlp()
    x, target = examples()
    options = ["--accumulate", "2", "--clip-norm", "1", "--optimizer", "momentum", "--learning-rate", "0.05"]
    data = save_data(tmp_path, x=x, target=target)
    exact = losses_of(train(sardonyx, make(sardonyx, tmp_path, model, *options), data, tmp_path / "a.onnx", "--no-shuffle"))
    trainable = make(sardonyx, tmp_path, model, *options, "--precision", precision)
    half = losses_of(train(sardonyx, trainable, data, tmp_path / "b.onnx", "--no-shuffle"))
    assert not np.array_equal(exact, half) and np.allclose(exact, half, rtol=0.03)
    trained = weights_of(tmp_path / "b.onnx", inference=False)
    assert all(trained[name].dtype == np.float32 for name in ("W1", "b1", "W2", "b2"))
    assert ("loss_scale" in trained) == (precision == "fp16")
    again = train(sardonyx, trainable, data, tmp_path / "c.onnx", "--no-shuffle", "--recompute")
    assert np.allclose(losses_of(again), half, rtol=0.03)


def test_a_trained_model_infers_what_it_learned(sardonyx, tmp_path):
    model, _ = mlp()
    x, target = examples()
    trainable = make(sardonyx, tmp_path, model, "--learning-rate", "0.05")
    data = save_data(tmp_path, x=x, target=target)
    run = sardonyx("train", trainable, "--data", data, "--validation", data, "-o", tmp_path / "out.onnx", "--epochs", 40,
                  "--json", "--plot", tmp_path / "curve.svg")
    last = [json.loads(line) for line in run.stdout.splitlines() if '"epoch"' in line[:20]][-1]
    assert last["validation"]["accuracy"] > 0.9
    # Other engines run the main graph, whatever training_info says.
    session = pytest.importorskip("onnxruntime").InferenceSession(tmp_path / "out.onnx")
    scores = session.run(None, {"x": x})[0]
    assert np.mean(np.argmax(scores, 1) == target) == pytest.approx(last["validation"]["accuracy"])
    assert "<polyline" in (tmp_path / "curve.svg").read_text()


def test_a_page_has_the_curve_and_the_numbers_of_each_epoch(sardonyx, tmp_path):
    model, _ = mlp()
    x, target = examples()
    data = save_data(tmp_path, x=x, target=target)
    trainable = make(sardonyx, tmp_path, model)
    page = tmp_path / "curve.html"
    run = sardonyx("train", trainable, "--data", data, "--validation", data, "-o", tmp_path / "out.onnx", "--epochs", 3, "--json",
                   "--plot", page)
    text = page.read_text()
    assert text.startswith("<!doctype html>") and text.count("<polyline") == 2 and text.count("<tr>") == 4
    assert "<th>validation accuracy" in text
    last = [told for told in map(json.loads, run.stdout.splitlines()) if told["event"] == "epoch"][-1]
    assert f"<td>{last['training']['loss']:.6g}" in text
    sardonyx.fails(USAGE, "train", trainable, "--data", data, "-o", tmp_path / "out.onnx", "--plot", tmp_path / "curve.png",
                   mentions=[".svg", "curve.png"])


@pytest.mark.parametrize("option", [["--train", "W*"], ["--freeze", "b*"], ["--lora", "2:W*"]])
def test_a_pattern_before_the_model(sardonyx, tmp_path, option):
    onnx.save(mlp()[0], tmp_path / "model.onnx")
    sardonyx("make-trainable", *option, tmp_path / "model.onnx", "-o", tmp_path / "t.onnx")


def test_what_cannot_be_written_is_said_before_the_training(sardonyx, tmp_path):
    x, target = examples()
    trainable = make(sardonyx, tmp_path, mlp()[0])
    (tmp_path / "folder").mkdir()
    start = ["train", trainable, "--data", save_data(tmp_path, x=x, target=target), "-o"]
    sardonyx.fails(UNREADABLE, *start, tmp_path / "absent" / "o.onnx", mentions=["there is no folder", "absent'"])
    sardonyx.fails(UNREADABLE, *start, tmp_path / "folder", mentions=["is a folder"])
    sardonyx.fails(UNREADABLE, *start, tmp_path / "o.onnx", "--plot", tmp_path / "absent" / "p.svg", mentions=["there is no folder"])
    sardonyx.fails(USAGE, *start, tmp_path / "o.tflite", mentions=["'.tflite'"])
    sardonyx.fails(USAGE, *start, tmp_path / "o.svg", mentions=["a drawing holds no weights"])
    sardonyx.fails(BAD_INPUT, *start, tmp_path / "o.onnx", "--merge-lora", mentions=["no low-rank products"])
    for output, name in (("o.onnx", "../w.bin"), ("o.onnx", "o.onnx"), ("-", "w.bin")):
        sardonyx.fails(USAGE, *start, tmp_path / output if output != "-" else "-", "--external-data", name, mentions=[name])
    assert not (tmp_path / "o.onnx").exists()
    # A disk that is full when the curve is drawn: the weights are there.
    (tmp_path / "full.svg").symlink_to("/dev/full")
    sardonyx(*start, tmp_path / "o.onnx", "--plot", tmp_path / "full.svg", expect=UNREADABLE)
    onnx.load(tmp_path / "o.onnx")


def test_a_log_that_is_full_costs_no_training(sardonyx, tmp_path):
    x, target = examples()
    trainable = make(sardonyx, tmp_path, mlp()[0])
    command = ["train", trainable, "--data", save_data(tmp_path, x=x, target=target), "-o", tmp_path / "o.onnx", "--epochs", 3]
    with open("/dev/full", "wb") as full:
        run = subprocess.run([sardonyx.path, *map(str, command)], stdout=full, stderr=subprocess.PIPE, timeout=120)
    assert run.returncode == UNREADABLE and b"standard output: cannot write" in run.stderr
    onnx.load(tmp_path / "o.onnx")


def test_a_log_that_nobody_reads_costs_no_training(sardonyx, tmp_path):
    """As where a pipe leads to head, which has seen enough."""
    x, target = examples()
    trainable = make(sardonyx, tmp_path, mlp()[0])
    command = ["train", trainable, "--data", save_data(tmp_path, x=x, target=target), "-o", tmp_path / "o.onnx", "--epochs", 3]
    read, written = os.pipe()
    os.close(read)
    with open(written, "wb") as pipe:
        run = subprocess.run([sardonyx.path, *map(str, command)], stdout=pipe, stderr=subprocess.PIPE, timeout=120)
    assert run.returncode == UNREADABLE and b"standard output: cannot write" in run.stderr
    onnx.load(tmp_path / "o.onnx")


def test_a_trained_model_goes_to_standard_output(sardonyx, tmp_path):
    x, target = examples()
    onnx.save(mlp()[0], tmp_path / "model.onnx")
    made = subprocess.run([sardonyx.path, "make-trainable", "model.onnx", "-o", "-"], capture_output=True,
                          check=True, cwd=tmp_path, timeout=120)
    assert onnx.ModelProto.FromString(made.stdout).training_info and b"learn" in made.stderr
    (tmp_path / "t.onnx").write_bytes(made.stdout)
    data = save_data(tmp_path, x=x, target=target)
    trained = subprocess.run([sardonyx.path, "train", "t.onnx", "--data", data, "-o", "-"], capture_output=True, check=True,
                             cwd=tmp_path, timeout=120)
    assert onnx.ModelProto.FromString(trained.stdout).training_info and b"epoch 1/1" in trained.stderr
    assert not (tmp_path / "-").exists()


def test_old_models_are_carried_up(sardonyx, tmp_path):
    """Opset 7 and IR version 3, whose initializers are inputs."""
    model, _ = cnn()
    for tensor in model.graph.initializer:
        model.graph.input.append(helper.make_tensor_value_info(tensor.name, TensorProto.FLOAT, list(tensor.dims)))
    model.ir_version = 3
    model.opset_import[0].version = 7
    x, target = images()
    trainable = make(sardonyx, tmp_path, model, "--learning-rate", "0.01")
    run = train(sardonyx, trainable, save_data(tmp_path, x=x, target=target), tmp_path / "out.onnx")
    losses = losses_of(run)
    assert np.mean(losses[-BATCHES:]) < np.mean(losses[:BATCHES])


def test_random_weights_are_the_initialization(sardonyx, tmp_path):
    model, weights = mlp()
    trainable = make(sardonyx, tmp_path, model, "--random-weights", "--seed", 3)
    x, target = examples()
    data = save_data(tmp_path, x=x, target=target)
    for name in ("a", "b"):
        train(sardonyx, trainable, data, tmp_path / f"{name}.onnx", epochs=0)
    a, b = weights_of(tmp_path / "a.onnx"), weights_of(tmp_path / "b.onnx")
    assert np.array_equal(a["W1"], b["W1"]) and not np.array_equal(a["W1"], weights["W1"])
    assert np.abs(a["W1"]).max() <= 1 / np.sqrt(8) and np.abs(a["W1"]).std() > 0.05
    assert not a["b1"].any()
    train(sardonyx, trainable, data, tmp_path / "c.onnx", "--no-initialize", epochs=0)
    assert np.array_equal(weights_of(tmp_path / "c.onnx")["W1"], weights["W1"])


# --- What is refused ------------------------------------------------------------------------------


def refused(sardonyx, code, *arguments):
    run = sardonyx(*arguments, expect=code)
    return run.stderr


def test_make_trainable_says_what_is_wrong(sardonyx, tmp_path):
    model, _ = mlp()
    onnx.save(model, tmp_path / "model.onnx")

    def message(code, *options):
        return refused(sardonyx, code, "make-trainable", tmp_path / "model.onnx", "-o", tmp_path / "t.onnx", *options)

    assert "there are softmax-cross-entropy, mse" in message(BAD_INPUT, "--loss", "hinge")
    assert "there are sgd, momentum" in message(BAD_INPUT, "--optimizer", "lbfgs")
    assert "constant, linear:STEPS" in message(BAD_INPUT, "--schedule", "sawtooth:3")
    assert "no initializer fits 'V*' of freeze" in message(BAD_INPUT, "--freeze", "V*")
    assert "nothing would learn" in message(BAD_INPUT, "--freeze", "*")
    assert "no MatMul or Gemm" in message(BAD_INPUT, "--lora", "4:b*")
    assert "RANK:PATTERN" in message(BAD_INPUT, "--lora", "4")
    assert "it has 'y'" in message(BAD_INPUT, "--output-name", "z")
    assert "beta1 must be in [0, 1)" in message(BAD_INPUT, "--beta1", "1.5")
    assert "--learning-rate: must be positive" in message(USAGE, "--learning-rate", "0")
    for option, number in (("learning_rate", "inf"), ("weight_decay", "inf"), ("epsilon", "inf"), ("learning_rate", "nan")):
        assert f"{option} must be" in message(BAD_INPUT, "--" + option.replace("_", "-"), number)
    assert "factor of a schedule must be positive and finite" in message(BAD_INPUT, "--schedule", "exponential:inf")
    assert "there are float32, bf16, fp16" in message(BAD_INPUT, "--precision", "fp8")
    assert "loss_scale must be positive" in message(BAD_INPUT, "--precision", "fp16", "--loss-scale", "-1")
    for option, number, other in (
            ("--class-axis", 1, "--loss mse"), ("--ignore-index", 0, "--loss mse"), ("--huber-delta", 2, "--loss l1"),
            ("--momentum", 0.5, "--optimizer sgd"), ("--beta2", 0.9, "--optimizer rmsprop"), ("--smoothing", 0.9, ""),
            ("--epsilon", 1e-6, "--optimizer momentum"), ("--seed", 1, ""), ("--loss-scale", 8, "--precision bf16"),
            ("--scale-growth", 8, "")):
        assert f"{option} is of" in message(USAGE, option, number, *other.split())
    assert "--nesterov is of --optimizer momentum" in message(USAGE, "--nesterov")
    assert not (tmp_path / "t.onnx").exists()
    make(sardonyx, tmp_path, model, "--lora", "2:W1", "--seed", 1)
    make(sardonyx, tmp_path, model)
    assert "training information already" in refused(
        sardonyx, BAD_INPUT, "make-trainable", tmp_path / "trainable.onnx", "-o", tmp_path / "t.onnx")


def test_outputs_that_no_loss_is_of(sardonyx, save, tmp_path):
    """A classifier's labels, and an output without an axis of classes."""
    path = save("""<ir_version: 8, opset_import: ["" : 17]> g (float[n,4] x) => (int64[n] label, float[n,3] scores, float[n] one) {
        scores = MatMul(x, w) label = ArgMax<axis = 1, keepdims = 0>(scores) one = ReduceMax<axes = [1], keepdims = 0>(scores) }""",
                w=np.ones((4, 3), np.float32))
    start = ["make-trainable", path, "-o", tmp_path / "t.onnx"]
    sardonyx.fails(BAD_INPUT, *start, mentions=["output 'label'", "this is int64[n]; name another output", "'scores', 'one'"])
    sardonyx.fails(BAD_INPUT, *start, "--output-name", "one", mentions=["the output has one axis"])
    sardonyx(*start, "--output-name", "scores")
    sardonyx(*start, "--output-name", "one", "--loss", "mse")


def test_train_says_what_is_wrong(sardonyx, tmp_path):
    model, _ = mlp()
    x, target = examples()
    trainable = make(sardonyx, tmp_path, model)
    good = save_data(tmp_path, x=x, target=target)

    def message(code, data, *options, file=trainable):
        return refused(sardonyx, code, "train", file, "--data", data, "-o", tmp_path / "out.onnx", *options)

    assert "[TR-03]" in message(INVALID_MODEL, good, file=tmp_path / "model.onnx")
    assert "no array 'target'" in message(BAD_INPUT, save_data(tmp_path, "a.npz", x=x))
    assert "holds int32; the step takes int64[N]" in message(
        BAD_INPUT, save_data(tmp_path, "b.npz", x=x, target=target.astype(np.int32)))
    assert "has 79 examples; 'x' has 80" in message(BAD_INPUT, save_data(tmp_path, "c.npz", x=x, target=target[1:]))
    assert "float[N,8]" in message(BAD_INPUT, save_data(tmp_path, "d.npz", x=x[:, :7], target=target))
    assert "hold no example" in message(BAD_INPUT, save_data(tmp_path, "e.npz", x=x[:0], target=target[:0]))
    message(UNREADABLE, tmp_path / "missing.npz")
    assert "--checkpoint DIR" in message(USAGE, good, "--resume")
    assert "--measure requires --validation" in message(USAGE, good, "--measure", "0")
    assert "no images to augment" in message(BAD_INPUT, good, "--augment", "flip")
    assert "flip, crop:PIXELS" in message(BAD_INPUT, good, "--augment", "turn")
    wrong = save_data(tmp_path, "f.npz", x=x, target=target + 7)
    assert message(None, wrong) != ""
    assert not (tmp_path / "out.onnx").exists()


def test_a_loss_that_is_no_number(sardonyx, tmp_path):
    model, weights = mlp()
    x, target = examples()
    x[BATCH + 3, 2] = np.nan
    trainable = make(sardonyx, tmp_path, model)
    data = save_data(tmp_path, x=x, target=target)
    folder = tmp_path / "checkpoints"
    stopped = train(sardonyx, trainable, data, tmp_path / "out.onnx", "--no-shuffle", "--checkpoint", folder, "--every", 1,
                    epochs=1, expect=RUN_FAILED)
    assert "epoch 1, step 2" in stopped.stderr and "the loss is nan" in stopped.stderr
    assert [file.name for file in folder.glob("*.onnx")] == ["checkpoint-000000000001.onnx"]
    skipped = train(sardonyx, trainable, data, tmp_path / "out.onnx", "--no-shuffle", "--bad-loss", "skip", epochs=1)
    losses = losses_of(skipped)
    assert losses[1] is None and None not in losses[2:]
    assert json.loads(skipped.stdout.splitlines()[-1])["skipped"] == 1
    assert all(np.isfinite(value).all() for value in weights_of(tmp_path / "out.onnx", False).values())


def test_an_epoch_without_a_loss_has_its_metrics(sardonyx, tmp_path):
    x, target = examples()
    trainable = make(sardonyx, tmp_path, mlp()[0])
    data = save_data(tmp_path, x=np.full_like(x, np.nan), target=target)
    skipped = train(sardonyx, trainable, data, tmp_path / "out.onnx", "--bad-loss", "skip", epochs=1)
    (epoch,) = [one for one in map(json.loads, skipped.stdout.splitlines()) if one["event"] == "epoch"]
    assert epoch["training"] == {"loss": None, "accuracy": None, "rate": None}
    text = sardonyx("train", trainable, "--data", data, "-o", tmp_path / "out.onnx", "--bad-loss", "skip")
    assert "epoch 1/1: loss nan, accuracy nan" in text.stdout


def test_one_process_a_checkpoint_folder(sardonyx, tmp_path):
    x, target = examples(count=4000)
    trainable = make(sardonyx, tmp_path, mlp()[0])
    data, folder = save_data(tmp_path, x=x, target=target), tmp_path / "checkpoints"
    command = ["train", trainable, "--data", data, "-o", tmp_path / "out.onnx", "--epochs", 100000, "--json",
               "--log-every", 1, "--checkpoint", folder]
    running = subprocess.Popen([sardonyx.path, *map(str, command)], stdout=subprocess.PIPE, text=True)
    try:
        running.stdout.readline()
        assert "another process trains into this folder" in refused(sardonyx, UNREADABLE, *command)
    finally:
        running.send_signal(signal.SIGINT)
        running.communicate()


def test_a_checkpoint_that_cannot_be_written(sardonyx, tmp_path):
    """The error names it, and what was there stays."""
    x, target = examples()
    trainable = make(sardonyx, tmp_path, mlp()[0])
    data, folder = save_data(tmp_path, x=x, target=target), tmp_path / "checkpoints"
    train(sardonyx, trainable, data, tmp_path / "out.onnx", "--checkpoint", folder, epochs=1)
    before = (folder / "checkpoint-000000000005.onnx").read_bytes()
    (folder / "checkpoint-000000000010.onnx").mkdir()
    (folder / "checkpoint-000000000010.onnx" / "in the way").write_text("")
    run = train(sardonyx, trainable, data, tmp_path / "out.onnx", "--checkpoint", folder, epochs=2, expect=UNREADABLE)
    assert "checkpoint-000000000010.onnx" in run.stderr
    assert (folder / "checkpoint-000000000005.onnx").read_bytes() == before


def test_folders_of_arrays(sardonyx, tmp_path):
    x, target = examples()
    trainable = make(sardonyx, tmp_path, mlp()[0])
    folder = tmp_path / "data"
    folder.mkdir()
    np.save(folder / "x.npy", x)
    np.save(folder / "target.npy", target)
    one = train(sardonyx, trainable, folder, tmp_path / "a.onnx", "--seed", 1)
    two = train(sardonyx, trainable, save_data(tmp_path, x=x, target=target, more=x), tmp_path / "b.onnx", "--seed", 1)
    assert losses_of(one) == losses_of(two)
    (folder / "target.npy").unlink()
    assert "no array 'target'" in refused(sardonyx, BAD_INPUT, "train", trainable, "--data", folder, "-o",
                                          tmp_path / "out.onnx")


def test_patience_ends_early(sardonyx, tmp_path):
    x, target = examples()
    trainable = make(sardonyx, tmp_path, mlp()[0], "--optimizer", "sgd", "--learning-rate", "1e-30")
    data = save_data(tmp_path, x=x, target=target)
    run = train(sardonyx, trainable, data, tmp_path / "out.onnx", "--validation", data, "--patience", 2)
    assert json.loads(run.stdout.splitlines()[-1])["stopped_early"]
    assert len(losses_of(run)) == 3 * BATCHES
    sardonyx.fails(BAD_INPUT, "train", trainable, "--data", data, "-o", tmp_path / "out.onnx", "--patience", 2,
                   mentions=["patience", "validation"])


def test_the_digits_from_nothing(sardonyx, tmp_path):
    """What `./dev demo` does: the digit recogniser learns again, from the same data in the same form."""
    trainable, trained = tmp_path / "trainable.onnx", tmp_path / "trained.onnx"
    sardonyx("make-trainable", DIGITS / "digits.onnx", "--random-weights", "-o", trainable)
    run = sardonyx("train", trainable, "--data", DIGITS / "train.npz", "--validation", DIGITS / "test.npz", "--epochs", 8,
                   "-o", trained, "--json")
    last = [json.loads(line) for line in run.stdout.splitlines() if '"epoch"' in line[:20]][-1]
    assert last["validation"]["accuracy"] > 0.9
    run = sardonyx("run", trained, "--input", f"image={DIGITS / 'seven.png'}", "--labels", DIGITS / "labels.txt", "--json")
    assert "seven" in run.stdout
