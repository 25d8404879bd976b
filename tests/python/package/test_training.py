"""sardonyx.make_trainable, TrainingSession and fit, held against each other, NumPy and the program."""

from __future__ import annotations

import copy
import gc
import math
import os
import pathlib
import pickle
import subprocess
import sys
import threading
import weakref

import numpy as np
import onnx
import pytest
from onnx import numpy_helper, parser

import sardonyx

from .conftest import HEADER, PACKAGE, resident_bytes

PROGRAM = pathlib.Path(os.environ.get("SARDONYX_PROGRAM", PACKAGE.parent / "bin" / "sardonyx"))
BATCH, COUNT = 16, 80


def mlp(seed: int = 0) -> onnx.ModelProto:
    model = parser.parse_model(HEADER + "mlp (float[N,8] x) => (float[N,3] y) { a = Gemm(x, W1, b1) c = Relu(a) y = Gemm(c, W2, b2) }")
    rng = np.random.default_rng(seed)
    for name, shape in {"W1": (8, 16), "b1": (16,), "W2": (16, 3), "b2": (3,)}.items():
        model.graph.initializer.append(numpy_helper.from_array(rng.normal(0, 0.4, shape).astype(np.float32), name))
    return model


def examples(seed: int = 1, count: int = COUNT) -> dict[str, np.ndarray]:
    rng = np.random.default_rng(seed)
    x = rng.normal(size=(count, 8)).astype(np.float32)
    return {"x": x, "target": np.argmax(x @ np.random.default_rng(9).normal(size=(8, 3)), axis=1)}


def batches(data: dict[str, np.ndarray], kind: type = dict) -> list:
    parts = [{name: array[i:i + BATCH] for name, array in data.items()} for i in range(0, len(data["x"]), BATCH)]
    return parts if kind is dict else [kind(one.values()) for one in parts]


def trainable(**options) -> sardonyx.Model:
    return sardonyx.make_trainable(mlp(), **{"learning_rate": 0.01, **options})


def session(threads: int = 1, seed: int | None = None, **options) -> sardonyx.TrainingSession:
    return sardonyx.TrainingSession(trainable(**options), threads=threads, seed=seed)


def same(one: sardonyx.TrainingSession, other: sardonyx.TrainingSession) -> bool:
    first, second = one.state(), other.state()
    return one.turn == other.turn and first.keys() == second.keys() and all(
        np.array_equal(value, second[name]) for name, value in first.items())


class Losses(list):
    def on_step(self, progress: sardonyx.FitProgress) -> None:
        self.append(progress.loss)


# --- the loop, in all its forms ---------------------------------------------------------------


def test_a_loop_by_hand_and_fit_give_the_same_bits():
    data, by_hand = examples(), session()
    losses = [float(by_hand.step(batch)["loss"]) for _ in range(3) for batch in batches(data)]
    assert losses[-1] < losses[0] and by_hand.turn == len(losses) == 15

    def generated():
        yield from batches(data)

    class Loader:  # as DataLoader: sized, and iterated anew
        def __len__(self):
            return len(batches(data))

        def __iter__(self):
            return iter(batches(data, list))

    for loader in (data, batches(data), batches(data, tuple), generated, Loader()):
        trained, told = session(), Losses()
        options = {"batch": BATCH, "shuffle": False} if isinstance(loader, dict) else {}
        result = trained.fit(loader, 3, callbacks=told, **options)
        assert told == losses and same(trained, by_hand)
        assert result.step == 15 and len(result.epochs) == 3 and not result.stopped and result.checkpoint == ""
        assert result.epochs[0].training["loss"] == pytest.approx(np.mean(losses[:5]), rel=1e-6)


def test_losses_are_those_of_numpy():
    """SGD of a linear model, mean of squares."""
    model = parser.parse_model(HEADER + "g (float[N,8] x) => (float[N,3] y) { y = MatMul(x, W) }")
    rng = np.random.default_rng(0)
    weights = rng.normal(size=(8, 3))
    model.graph.initializer.append(numpy_helper.from_array(weights.astype(np.float32), "W"))
    trained = sardonyx.TrainingSession(sardonyx.make_trainable(model, loss="mse", optimizer="sgd", learning_rate=0.1))
    x = rng.normal(size=(BATCH, 8)).astype(np.float32)
    target = rng.normal(size=(BATCH, 3)).astype(np.float32)
    for _ in range(20):
        error = x @ weights - target
        assert float(trained.step({"x": x, "target": target})["loss"]) == pytest.approx((error**2).mean(), rel=1e-4)
        weights = weights - 0.1 * 2 / error.size * x.T @ error
    np.testing.assert_allclose(trained.state()["W"], weights, rtol=1e-3, atol=1e-5)
    np.testing.assert_allclose(trained.infer({"x": x})["y"], x @ weights, rtol=1e-3, atol=1e-4)


@pytest.mark.starts_the_program
@pytest.mark.parametrize("threads", [1, 2])
def test_the_program_gives_the_same_bits(tmp_path, threads):
    """make-trainable and train, shuffled, with validation."""
    data, validation = examples(), examples(2, 32)
    onnx.save(mlp(), tmp_path / "m.onnx")
    np.savez(tmp_path / "train.npz", **data)
    np.savez(tmp_path / "test.npz", **validation)

    def run(*arguments):
        subprocess.run([PROGRAM, *map(str, arguments)], check=True, capture_output=True, cwd=tmp_path)

    run("make-trainable", "m.onnx", "-o", "t.onnx", "--optimizer", "adamw", "--weight-decay", 0.1, "--schedule", "cosine:20", "--warmup", 3)
    run("train", "t.onnx", "--data", "train.npz", "--validation", "test.npz", "-o", "out.onnx", "--epochs", 4, "--batch", BATCH, "--seed", 7)
    expected = sardonyx.TrainingSession(tmp_path / "out.onnx")
    made = sardonyx.make_trainable(mlp(), optimizer="adamw", weight_decay=0.1, schedule="cosine:20", warmup=3)
    for given in (data, str(tmp_path / "train.npz")):
        trained = sardonyx.TrainingSession(made, threads=threads, seed=7)
        trained.initialize()
        trained.fit(given, 4, batch=BATCH, validation=validation)
        assert same(trained, expected)


def test_what_has_dlpack_or_is_a_list_is_a_batch():
    class Exported:
        def __init__(self, array):
            self._array, self.shape = array, array.shape

        def __dlpack__(self, **options):
            return self._array.__dlpack__(**options)

        def __dlpack_device__(self):
            return self._array.__dlpack_device__()

    data = examples()
    plain, exported, listed = session(), session(), session()
    plain.fit(batches(data))
    exported.fit([{name: Exported(array) for name, array in batch.items()} for batch in batches(data)])
    listed.fit([{name: array.tolist() for name, array in batch.items()} for batch in batches(data)])
    assert same(plain, exported) and same(plain, listed)


def test_epochs_are_means_over_examples():
    """The last batch is smaller, and counts less."""
    data = examples(count=40)
    seen, results = [], []
    result = session().fit(batches(data), 2, callbacks=[seen.append, results.append], validation=data)
    steps = [one for one in seen if isinstance(one, sardonyx.FitProgress)]
    assert [one.step for one in steps] == [1, 2, 3, 4, 5, 6] and {one.steps for one in steps} == {6} and steps[-1].examples == 80
    expected = np.average([one.metrics["accuracy"] for one in steps[:3]], weights=[16, 16, 8])
    assert result.epochs[0].training["accuracy"] == pytest.approx(expected)
    assert [one for one in results if isinstance(one, sardonyx.EpochResult)] == result.epochs
    assert result.epochs[1].validation["loss"] < result.epochs[0].validation["loss"]
    assert "accuracy" in result._repr_html_()


def test_measuring_changes_nothing():
    data, one, other = examples(), session(), session()
    for which in (0, 1):
        whole, parts = one.measure(data, which, batch=BATCH), one.measure(batches(data), which)
        assert whole == pytest.approx(parts) and same(one, other)
    assert set(one.measure(data)) == {"loss", "accuracy"}


# --- ending -----------------------------------------------------------------------------------


@pytest.mark.parametrize("whole", [True, False])
def test_callbacks_end_the_training(whole, tmp_path):
    data = examples()
    given, options = (data, {"batch": BATCH}) if whole else (batches(data), {})
    stopped = session()
    result = stopped.fit(given, 3, callbacks=lambda one: one.step < 4 if isinstance(one, sardonyx.FitProgress) else None, **options)
    assert result.stopped and result.step == stopped.turn == 4 and len(result.epochs) == 0

    class OfEpochs:
        def on_epoch(self, result):
            return result.epoch < 1

    result = stopped.fit(given, 9, callbacks=[OfEpochs()], **options)
    assert result.stopped and len(result.epochs) == 2 and stopped.turn == 14
    result = session().fit(given, 3, callbacks=lambda one: np.float32(one.step) < 4 if isinstance(one, sardonyx.FitProgress) else None, **options)
    assert result.stopped and result.step == 4

    def raises(one):
        if one.step == 2:
            raise ZeroDivisionError("of the callback's")

    with pytest.raises(ZeroDivisionError, match="of the callback's"):
        stopped.fit(given, 3, callbacks=raises, **options)
    assert stopped.turn == 16
    result = stopped.fit(given, 50, validation={**data, "target": (data["target"] + 1) % 3}, patience=2, **options)
    assert result.stopped_early and not result.stopped and len(result.epochs) < 50
    losses = [one.validation["loss"] for one in result.epochs]
    assert min(losses[:-2]) <= min(losses[-2:])
    for given_patience, more in ((2, {}), (-1, {"validation": data})):
        with pytest.raises(sardonyx.BadInputError, match=f"patience .*got {given_patience}"):
            stopped.fit(given, 3, patience=given_patience, **more, **options)


@pytest.mark.parametrize("whole", [True, False])
def test_a_loss_that_is_no_number(whole):
    data = examples()
    data["x"][20] = np.nan
    given, options = (data, {"batch": BATCH, "shuffle": False}) if whole else (batches(data), {})
    trained, skipped, told = session(), session(), []
    with pytest.raises(sardonyx.RunFailedError, match=r"epoch 1, step 2: the loss is -?nan"):
        trained.fit(given, **options)
    assert trained.turn == 1 and all(np.isfinite(value).all() for value in trained.state().values())
    result = skipped.fit(given, bad_loss="skip", callbacks=told.append, **options)
    assert result.skipped == 1 and result.step == 5 and skipped.turn == 4
    assert [one.skipped for one in told[:-1]] == [False, True, False, False, False] and math.isnan(told[1].loss)
    assert math.isfinite(result.epochs[0].training["loss"])
    trained.fit([batches(data)[i] for i in (2, 3, 4)])
    assert same(trained, skipped)
    data["x"][:] = np.nan
    (epoch,) = session().fit(data if whole else batches(data), bad_loss="skip", **options).epochs
    assert epoch.training.keys() == result.epochs[0].training.keys() and math.isnan(epoch.training["loss"])


def test_accept_decides_about_a_step():
    data, one, other = examples(), session(), session()
    told = one.step(data, accept=lambda outputs: outputs["loss"] < 0)
    assert told["loss"] > 0 and same(one, other)
    with pytest.raises(ZeroDivisionError):
        one.step(data, accept=lambda outputs: 1 / 0)
    for change in (lambda: one.step(data), one.initialize, lambda: one.set_state({}), lambda: one.fit(data)):
        with pytest.raises(sardonyx.RunFailedError, match="not over"):
            one.step(data, accept=lambda outputs: change())
    assert same(one, other)
    one.step(data, accept=lambda outputs: one.infer({"x": data["x"]})["y"].shape == (COUNT, 3))
    other.step(data)
    assert same(one, other)


INTERRUPTED = """
import os, signal, sys, threading, numpy as np, sardonyx
kind, handling = sys.argv[2:4]
session = sardonyx.TrainingSession(sys.argv[1], threads=1)
data = dict(np.load(sys.argv[4]))
calls, turns = [], []
def handler(*_):
    calls.append(session.turn)
    if len(calls) == 3:
        raise KeyboardInterrupt
# Said in any case: whoever started this may have it ignored.
signal.signal(signal.SIGINT, handler if handling == "returns" else signal.default_int_handler)
ended = threading.Event()
def poke():
    while session.turn < 3 and not ended.wait(0.001):
        pass
    while not ended.wait(0.05):
        os.kill(os.getpid(), signal.SIGINT)
        if handling == "default":
            return
threading.Thread(target=poke, daemon=True).start()
def endless():
    while True:
        yield data
try:
    if kind == "arrays":
        session.fit(data, 10**12, batch=16, shuffle=False, checkpoints=sys.argv[5])
    elif kind == "loader":
        session.fit(endless)
    else:
        while True:
            session.step(data)
except KeyboardInterrupt:
    ended.set()
    print("interrupted", len(calls))
np.savez(sys.argv[6], turn=session.turn, **session.state())
"""


@pytest.mark.parametrize("handling", ["default", "returns"])
@pytest.mark.parametrize("kind", ["arrays", "loader", "steps"])
def test_control_c_ends_between_steps(kind, handling, tmp_path, environment):
    """The state is that of as many whole steps as have been counted; a handler that returns lets it go on."""
    data = examples(count=BATCH)
    trainable().save(tmp_path / "t.onnx")
    np.savez(tmp_path / "data.npz", **data)
    made = subprocess.run([sys.executable, "-c", INTERRUPTED, tmp_path / "t.onnx", kind, handling, tmp_path / "data.npz",
                           tmp_path / "checkpoints", tmp_path / "state.npz"], env=environment, text=True, capture_output=True)
    assert made.stdout.split() == ["interrupted", "0" if handling == "default" else "3"], made.stderr
    state = dict(np.load(tmp_path / "state.npz"))
    turn = int(state.pop("turn"))
    assert turn >= 3
    again = session()
    for _ in range(turn):
        again.step(data)
    for name, value in again.state().items():
        np.testing.assert_array_equal(value, state[name])
    if kind == "arrays":
        found = sardonyx.last_checkpoint(tmp_path / "checkpoints")
        assert found.step == turn and same(sardonyx.TrainingSession(found.path), again)


# --- state ------------------------------------------------------------------------------------


def test_a_saved_session_goes_on_with_the_same_bits(tmp_path):
    data, whole = examples(), session(seed=3)
    whole.fit(batches(data), 2)
    first = session(seed=3)
    first.fit(batches(data), 1)
    first.save(tmp_path / "half.onnx", metadata={"half": "yes"})
    onnx.checker.check_model(tmp_path / "half.onnx")
    others = [sardonyx.TrainingSession(tmp_path / "half.onnx"), sardonyx.TrainingSession((tmp_path / "half.onnx").read_bytes()),
              sardonyx.TrainingSession(first.to_bytes()), pickle.loads(pickle.dumps(first)), copy.copy(first), first]
    assert others[0].metadata("half") == "yes" and others[0].metadata("none") == ""
    for other in others:
        assert other.turn == 5 and other.seed == 3
        other.fit(batches(data), 1)
        assert same(other, whole)
    whole.save(tmp_path / "plain.onnx", inference_only=True)
    assert not onnx.load(tmp_path / "plain.onnx").training_info
    plain = sardonyx.Session(tmp_path / "plain.onnx")
    np.testing.assert_allclose(plain(data["x"]), whole.infer([data["x"]])["y"], rtol=1e-5, atol=1e-6)


def test_checkpoints_and_going_on_from_them(tmp_path):
    data, whole = examples(), session(seed=5)
    whole.fit(data, 4, batch=BATCH)
    folder = tmp_path / "checkpoints"
    assert session().fit(data, 0, batch=BATCH).step == 0
    half = session(seed=5).fit(data, 4, batch=BATCH, checkpoints=folder, every=3, keep=3,
                               callbacks=lambda one: not isinstance(one, sardonyx.FitProgress) or one.step < 7)
    assert half.stopped and half.step == 7 and sorted(os.listdir(folder))[-1] == "lock" and len(os.listdir(folder)) == 4
    found = sardonyx.last_checkpoint(folder)
    assert found == (half.checkpoint, 7)
    again = sardonyx.TrainingSession(found.path)
    again.fit(data, 4, batch=BATCH, first_step=found.step)
    assert same(again, whole)
    other = session(seed=6).fit(data, 1, batch=BATCH, checkpoints=folder, keep=2)  # a new training, of fewer steps
    assert other.step < found.step and sardonyx.last_checkpoint(folder) == (other.checkpoint, other.step)
    assert sorted(os.listdir(folder)) == sorted([os.path.basename(other.checkpoint), os.path.basename(found.path), "lock"])
    (tmp_path / "empty").mkdir()
    assert sardonyx.last_checkpoint(tmp_path / "empty") is None
    assert sardonyx.last_checkpoint(tmp_path / "none") is None
    with pytest.raises(sardonyx.UnreadableError):
        sardonyx.last_checkpoint(found.path)


def test_the_state_is_read_and_written():
    one = session()
    assert {variable.name: variable.shape for variable in one.state_variables}["W1"] == (8, 16)
    before = one.state()
    assert {"W1", "b1", "W2", "b2", "learning_rate", "updates"} <= set(before)
    one.step(examples())
    np.testing.assert_array_equal(before["W1"], numpy_helper.to_array(mlp().graph.initializer[0]))  # a moment of its own
    before["W1"][:] = 5  # writing into what was given changes nothing
    assert not (one.state()["W1"] == 5).any()
    given = np.ones((8, 16), np.float32)
    for value in (given, sardonyx.Value.of(given), given.T.copy().T):
        given[:] = 1
        one.set_state({"W1": value, "learning_rate": 0.5})
        given[:] = 2  # nor does writing into what was taken
        assert (one.state()["W1"] == 1).all()
    assert one.step(examples())["rate"] == 0.5


def test_steps_assign_copies_of_what_they_are_given():
    """An update that is an input as it is."""
    model = parser.parse_model(HEADER + "g (float[2] a) => (float[2] y) <float[2] s = {1, 2}> { y = Add(a, s) }")
    info = model.training_info.add()
    info.algorithm.CopyFrom(parser.parse_graph("alg (float[2] b) => (float[2] n, float[2] o) { n = Identity(b) o = Identity(b) }"))
    info.update_binding.add(key="s", value="n")
    for reference in (False, True):
        one, given = sardonyx.TrainingSession(model, reference=reference), np.array([5, 6], np.float32)
        told = one.step([given])["o"]
        given[:] = 9
        assert told.tolist() == [5, 6] and one.state()["s"].tolist() == [5, 6]
        assert one.infer([[1, 1]])["y"].tolist() == [6, 7]


def test_initialize(tmp_path):
    one = session(initial_weights="random", seed=None)
    before = one.state()
    one.initialize()
    drawn = one.state()
    assert not np.array_equal(drawn["W1"], before["W1"]) and (drawn["b1"] == 0).all() and abs(drawn["W1"]).max() <= 8**-0.5
    kept = session()
    kept.step(examples())
    kept.initialize()
    state = kept.state()
    assert state["updates"] == 0 and not np.array_equal(state["W1"], before["W1"])  # the optimizer's alone


@pytest.mark.memory
def test_thousands_of_steps_leak_nothing(tmp_path):
    data, training = examples(), session(threads=2, optimizer="adamw", clip_norm=1.0)

    def work(steps: int) -> None:
        for i in range(steps):
            size = 1 + i // 20 % 12  # more sizes of batches than plans are kept for
            training.step({name: array[:size] for name, array in data.items()})
            if i % 10 == 0:
                training.set_state(training.state())
                training.infer({"x": data["x"][:size]})
            if i % 50 == 0:
                training.save(tmp_path / "saved.onnx")
                with pytest.raises(sardonyx.Error):
                    training.step({"x": data["x"][:, :5], "target": data["target"]})

    work(1500)
    before = resident_bytes()
    work(6000)
    assert resident_bytes() - before < 2_000_000


# --- make_trainable ---------------------------------------------------------------------------


def test_options_of_make_trainable():
    reports = []
    frozen = session(freeze=["W1", "b?"], report=reports.append)
    assert reports[0].trained == ["W2"] and sorted(reports[0].frozen) == ["W1", "b1", "b2"] and reports[0].target == "target"
    before = numpy_helper.to_array(mlp().graph.initializer[0])
    frozen.fit(batches(examples()), 3)
    trained = onnx.load_model_from_string(frozen.to_bytes())
    values = {one.name: numpy_helper.to_array(one) for one in trained.graph.initializer}
    np.testing.assert_array_equal(values["W1"], before)
    assert not np.array_equal(values["W2"], numpy_helper.to_array(mlp().graph.initializer[2]))
    for same_thing in ({"freeze": "W1"}, {"train": ["b1", "W2", "b2"]}):
        trainable(**same_thing, report=reports.append)
        assert sorted(reports[-1].trained) == ["W2", "b1", "b2"]
    for lora in ("2:W1", (2, "W1"), sardonyx.Lora(2, "W1"), ["2:W1"], [(2, "W1", 4.0)]):
        trainable(lora=lora, report=reports.append)
        assert reports[-1].trained_elements == 2 * (8 + 16)


def test_what_make_trainable_makes(tmp_path):
    made = trainable(optimizer="lamb", clip_norm=1, accumulate=2)
    onnx.checker.check_model(onnx.load_model_from_string(made.to_bytes()))
    made.save(tmp_path / "t.onnx")
    onnx.save(mlp(), tmp_path / "m.onnx")
    assert sardonyx.make_trainable(tmp_path / "m.onnx").to_bytes() == sardonyx.make_trainable(mlp().SerializeToString()).to_bytes()
    one = sardonyx.TrainingSession(tmp_path / "t.onnx")
    assert [info.name for info in one.step_inputs()] == ["x", "target"] and one.algorithm_count == 2
    assert [info.name for info in one.step_outputs(1)] == ["loss", "accuracy"]
    assert [info.name for info in one.inputs + one.outputs] == ["x", "y"] and "target: int64[N]" in repr(one)
    assert sardonyx.make_trainable(mlp(), loss="bce_with_logits").to_bytes() == sardonyx.make_trainable(mlp(), loss="bce-with-logits").to_bytes()


@pytest.mark.parametrize(("options", "kind", "words"), [
    ({"loss": "none"}, sardonyx.BadInputError, "softmax-cross-entropy, mse"),
    ({"optimizer": "none"}, sardonyx.BadInputError, "adamw"),
    ({"schedule": "linear"}, sardonyx.BadInputError, "linear"),
    ({"initial_weights": "zero"}, sardonyx.BadInputError, "keep and random"),
    ({"freeze": "nothing*"}, sardonyx.BadInputError, "nothing"),
    ({"output": "z"}, sardonyx.BadInputError, "z"),
    ({"lora": 3}, sardonyx.BadInputError, "RANK:PATTERN"),
    ({"lora": "x"}, sardonyx.BadInputError, "x"),
    ({"learning_rate": -1.0}, sardonyx.BadInputError, "learning"),
    ({"learning_rate": "fast"}, TypeError, "learning_rate takes a value of type float"),
    ({"seed": -1}, sardonyx.BadInputError, "seed is out of range"),
    ({"nothing": 1}, TypeError, "nothing")])
def test_options_that_do_not_fit(options, kind, words):
    with pytest.raises(kind, match=words):
        sardonyx.make_trainable(mlp(), **options)


# --- errors -----------------------------------------------------------------------------------

DATA = examples()
X, TARGET = DATA["x"], DATA["target"]
ERRORS = {
    "a name": (lambda s: s.step({"z": X, "target": TARGET}), "input 'z': is not taken; what is: 'x', 'target'"),
    "no str": (lambda s: s.step({3: X}), "names are str, and int was given: 3"),
    "state as an input": (lambda s: s.step({**DATA, "W1": X}), "is a state variable"),
    "missing": (lambda s: s.step([X]), "'target': is missing"),
    "too many": (lambda s: s.step([X, TARGET, X]), "3 values were given; those taken are, in order: 'x', 'target'"),
    "a type": (lambda s: s.step([X.astype(np.float64), TARGET]), "input 'x': holds double"),
    "a shape": (lambda s: s.step([X[:, 1:], TARGET]), "input 'x'"),
    "sizes that differ": (lambda s: s.step([X, TARGET[1:]]), "N"),
    "an algorithm": (lambda s: s.step(DATA, 2), "2 algorithms; there is no number 2"),
    "a negative algorithm": (lambda s: s.step(DATA, -1), "counted from 0"),
    "no inputs": (lambda s: s.step(3), "a dict by name or a list in order is taken, and int was given"),
    "nothing": (lambda s: s.step(None), "a dict by name or a list in order is taken, and NoneType was given"),
    "inference": (lambda s: s.infer({"x": X[0]}), "input 'x'"),
    "a state variable": (lambda s: s.set_state({"W2": np.zeros((16, 3), np.float32), "W": X}), "state variable 'W': is none"),
    "its shape": (lambda s: s.set_state({"b1": np.zeros(16, np.float32), "W1": X}), r"'W1': given a value, it must be float\[8,16\]"),
    "its type": (lambda s: s.set_state({"W1": np.zeros((8, 16))}), "it must be float"),
    "no dict": (lambda s: s.set_state([X]), "as a dict by name, and list was given"),
    "array missing": (lambda s: s.fit({"x": X}), "array 'target': is missing"),
    "array unknown": (lambda s: s.fit({**DATA, "y": X}), "array 'y': a step takes no array of this name; it takes 'x', 'target'"),
    "array's type": (lambda s: s.fit({**DATA, "x": X.astype(np.float64)}), r"array 'x': holds double; a step takes float\[N,8\]"),
    "array's shape": (lambda s: s.fit({**DATA, "x": X[:, 1:]}), r"array 'x': has shape \[80,7\]; a step takes float\[N,8\]"),
    "lengths": (lambda s: s.fit({"x": X, "target": TARGET[1:]}), "has 79 examples; 'x' has 80"),
    "no batches": (lambda s: s.fit(3), "an iterable of batches"),
    "no batch": (lambda s: s.fit([]), "epoch 1 has no batch"),
    "a bad batch": (lambda s: s.fit([[X[:, 1:], TARGET]]), "epoch 1, step 1: input 'x'"),
    "options of arrays": (lambda s: s.fit(batches(DATA), shuffle=True), "shuffle is an option of whole arrays"),
    "checkpoints of loaders": (lambda s: s.fit(batches(DATA), checkpoints="c"), "save()"),
    "batch": (lambda s: s.fit(DATA, batch=0), "batch must be at least 1"),
    "epochs": (lambda s: s.fit(batches(DATA), -1), "epochs must not be negative"),
    "bad_loss": (lambda s: s.fit(DATA, bad_loss="no"), "'stop' or 'skip'"),
    "callback": (lambda s: s.fit(DATA, callbacks=[3]), "a callback is a function"),
    "validation": (lambda s: s.fit(DATA, validation={"x": X}), "'target' is missing in the validation"),
}


def test_a_learning_rate_of_0_is_not_the_optimizers_own():
    with pytest.raises(sardonyx.BadInputError, match="learning_rate must be positive"):
        trainable(learning_rate=0)


@pytest.mark.parametrize("name", ERRORS)
def test_errors_leave_the_state(name):
    act, words = ERRORS[name]
    one, other = session(), session()
    with pytest.raises(sardonyx.BadInputError, match=words):
        act(one)
    assert same(one, other)


def test_further_errors(tmp_path):
    with pytest.raises(sardonyx.InvalidModelError, match="no training information"):
        sardonyx.TrainingSession(mlp())
    with pytest.raises(sardonyx.UnreadableError):
        sardonyx.TrainingSession(tmp_path / "none.onnx")
    with pytest.raises(sardonyx.UnreadableError):
        session().fit(tmp_path / "none.npz")
    with pytest.raises(TypeError, match="threads takes a value of type int"):
        sardonyx.TrainingSession(trainable(), threads="two")
    with pytest.raises(sardonyx.BadInputError, match="seed is out of range"):
        sardonyx.TrainingSession(trainable(), seed=-1)
    with pytest.raises(sardonyx.UnreadableError):
        session().save(tmp_path / "none" / "m.onnx")
    with pytest.raises(sardonyx.UnreadableError, match="file"):
        (tmp_path / "file").write_text("")
        session().fit(DATA, checkpoints=tmp_path / "file")
    one, runs_out = session(), iter(batches(DATA))
    with pytest.raises(sardonyx.BadInputError, match="epoch 2 has no batch: an iterator runs out"):
        one.fit(runs_out, 2)
    assert one.turn == 5


# --- threads and processes --------------------------------------------------------------------


def test_inference_while_a_thread_trains():
    """What is inferred is what the state before or after some step gives: every answer is of one of the turns."""
    data, one = examples(), session(threads=2)
    answers, done = [[] for _ in range(3)], threading.Event()

    def infer(mine):
        while not done.is_set() or not mine:
            mine.append(one.infer({"x": data["x"][:4]})["y"].tobytes())

    threads = [threading.Thread(target=infer, args=(mine,)) for mine in answers]
    for thread in threads:
        thread.start()
    one.fit(data, 20, batch=BATCH, shuffle=False)
    for batch in batches(data) * 20:
        one.step(batch)
    done.set()
    for thread in threads:
        thread.join()
    again = session()
    known = {again.infer({"x": data["x"][:4]})["y"].tobytes()}
    for batch in batches(data) * 40:
        again.step(batch)
        known.add(again.infer({"x": data["x"][:4]})["y"].tobytes())
    assert same(one, again) and all(set(mine) <= known for mine in answers)


def test_threads_that_step_wait_for_each_other():
    one = session(optimizer="sgd")
    threads = [threading.Thread(target=lambda: [one.step(examples(), accept=lambda outputs: True) for _ in range(50)]) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert one.turn == 200
    again = session(optimizer="sgd")
    for _ in range(200):
        again.step(examples())
    assert same(one, again)


ENDLESS = """g (float[2] a) => (float[2] y) <float[2] s = {1, 2}> { y = Add(a, s) }"""
LOOP = """alg (int64 trips, float[2] b) => (float[2] n, float[2] o) {
    more = Constant <value = bool {1}> ()
    n = Loop (trips, more, b) <body = body (int64 i, bool c, float[2] v) => (bool k, float[2] w) { k = Identity(c) w = Cos(v) }>
    o = Identity(n)
}"""


def test_the_lock_is_released_while_a_step_goes_on():
    """This thread runs on while another is in a step without end, which it then stops; nothing is assigned."""
    model = parser.parse_model(HEADER + ENDLESS)
    info = model.training_info.add()
    info.algorithm.CopyFrom(parser.parse_graph(LOOP))
    info.update_binding.add(key="s", value="n")
    one, cancel, ended = sardonyx.TrainingSession(model, threads=1), sardonyx.Cancel(), []
    feeds = {"trips": np.array(2**60), "b": np.zeros(2, np.float32)}

    def step():
        with pytest.raises(sardonyx.CancelledError):
            one.step(feeds, cancel=cancel)
        ended.append(1)

    thread = threading.Thread(target=step)
    thread.start()
    assert one.infer([[0, 0]])["y"].tolist() == [1, 2]
    cancel.set()
    thread.join()
    assert ended and one.turn == 0 and one.state()["s"].tolist() == [1, 2]
    with pytest.raises(sardonyx.CancelledError):
        one.step(feeds, timeout=0.01)
    one.step({**feeds, "trips": np.array(1)}, timeout=float("inf"))
    assert one.state()["s"].tolist() == [1, 1] and one.turn == 1


FORKED = """
import os, sys, numpy as np, sardonyx
session = sardonyx.TrainingSession(sys.argv[1], threads=2)
data = dict(np.load(sys.argv[2]))
session.step(data)
kept = session.to_bytes()
child = os.fork()
if child == 0:
    try:
        session.step(data)
    except sardonyx.RunFailedError as error:
        refused = "forked off" in str(error)
    del session
    again = sardonyx.TrainingSession(kept)
    again.step(data)
    os._exit(0 if refused and again.turn == 2 else 1)
print(os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]), session.step(data)["loss"] > 0)
"""


def test_a_fork_is_told_of(tmp_path, environment):
    trainable().save(tmp_path / "t.onnx")
    np.savez(tmp_path / "data.npz", **examples())
    made = subprocess.run([sys.executable, "-c", FORKED, tmp_path / "t.onnx", tmp_path / "data.npz"], env=environment, text=True,
                          capture_output=True)
    assert made.stdout.split() == ["0", "True"], made.stderr


def test_nothing_is_kept_alive():
    """Neither batches nor callbacks, nor what a callback raised."""

    class Watched(np.ndarray):
        pass

    one, gone = session(), []
    x = X[:BATCH].view(Watched)
    weakref.finalize(x, gone.append, 1)
    one.step({"x": x, "target": TARGET[:BATCH]})

    def callback(progress):
        raise ZeroDivisionError

    weakref.finalize(callback, gone.append, 2)
    with pytest.raises(ZeroDivisionError):
        one.fit({"x": x, "target": TARGET[:BATCH]}, callbacks=callback)
    del x, callback
    gc.collect()
    assert sorted(gone) == [1, 2]


WINDOWS = {
    "strides": ("y = Conv<strides = [2], pads = [1, 1]>(a, w)", (4, 3, 3)),
    "left_over": ("y = Conv<strides = [3]>(a, w)", (4, 3, 2)),
    "dilations": ("y = Conv<dilations = [2], pads = [2, 0]>(a, w)", (4, 3, 3)),
    "same": ("y = Conv<auto_pad = \"SAME_UPPER\">(a, w)", (4, 3, 4)),
    "groups": ("y = Conv<group = 3, strides = [2], auto_pad = \"VALID\">(a, w)", (3, 1, 3)),
    "transposed": ("y = ConvTranspose<strides = [2], pads = [1, 0], output_padding = [1]>(a, w)", (3, 4, 3)),
    "transposed_padded": ("y = ConvTranspose<strides = [3], output_padding = [2]>(a, w)", (3, 4, 2)),
    "averages": ("b = Mul(a, w) y = AveragePool<kernel_shape = [3], strides = [2]>(b)", (3, 1)),
    "padded_averages": ("b = Mul(a, w) y = AveragePool<kernel_shape = [3], strides = [2], pads = [1, 1], count_include_pad = 1>(b)",
                        (3, 1)),
}


@pytest.mark.parametrize("case", WINDOWS)
def test_windows_over_sizes_that_only_data_decide(case):
    """The length comes out of a Compress; beside it the same network whose sizes are all known."""
    text, shape = WINDOWS[case]
    rng = np.random.default_rng(3)
    x, weights = rng.standard_normal((2, 3, 11)).astype(np.float32), rng.standard_normal(shape).astype(np.float32)
    states = []
    for first in ("a0 = Compress<axis = 2>(x, keep)", "a0 = Identity(x)"):
        model = onnx.parser.parse_model(
            f'<ir_version: 10, opset_import: ["" : 21]> g (float[2, 3, 11] x, bool[11] keep) => (float[2, K] z) '
            f"{{ {first} s = Constant<value = float {{0.5}}>() t = Tanh(a0) a = Mul(t, v) {text} "
            "axes = Constant<value = int64[1] {2}>() z = ReduceMean<keepdims = 0>(y, axes) }")
        model.graph.initializer.extend([numpy_helper.from_array(weights, "w"),
                                        numpy_helper.from_array(np.array([[0.5], [1.5], [-1.0]], np.float32), "v")])
        session = sardonyx.TrainingSession(sardonyx.make_trainable(model, loss="mse", optimizer="sgd", learning_rate=0.1))
        channels = session.infer({"x": x, "keep": np.ones(11, bool)})["z"].shape[1]
        feeds = {"x": x, "keep": np.ones(11, bool), "target": np.ones((2, channels), np.float32)}
        wanted = {one.name for one in session.step_inputs()}
        for _ in range(3):
            session.step({name: array for name, array in feeds.items() if name in wanted})
        states.append(session.state())
    for name in ("w", "v"):
        np.testing.assert_allclose(states[0][name], states[1][name], rtol=1e-5, atol=1e-6, err_msg=name)
        assert not np.array_equal(states[0][name], weights)
