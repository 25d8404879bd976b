"""Making training models of models for inference."""

from __future__ import annotations

import os
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple, Union

from . import _core
from ._errors import BadInputError
from ._model import Model, ModelSource
from ._options import with_options


class Lora(NamedTuple):
    """Low-rank products beside those with weights whose names fit `pattern`: x W + x A B * alpha / rank. `alpha` 0 is `rank`."""

    rank: int = 8
    pattern: str = "*"
    alpha: float = 0.0


class TrainableReport(NamedTuple):
    """What `make_trainable` made."""

    trained: list[str]  # initializers that learn, those of LoRA among them
    frozen: list[str]  # initializers that could and do not
    trained_elements: int
    statistics: list[str]  # running statistics that steps update
    functions: list[str]  # that were added to the model
    notes: list[str]
    target: str  # the input that takes what the output should be


Patterns = Union[str, Sequence[str]]
LoraLike = Union[str, Lora, "tuple[int, str]", "tuple[int, str, float]"]


def _patterns(given: Patterns) -> list[str]:
    return [given] if isinstance(given, str) else list(given)


def _rate(given: float | None) -> float:
    """0 is what the library takes for None."""
    if given == 0:
        raise BadInputError("learning_rate must be positive; got 0")
    return 0.0 if given is None else given


def _add_lora(options: _core.TrainableOptions, given: LoraLike | Sequence[LoraLike]) -> None:
    one = isinstance(given, (str, Lora)) or (isinstance(given, tuple) and given and isinstance(given[0], int))
    try:
        for lora in [given] if one else given:
            if isinstance(lora, str):
                options.add_lora_text(lora)
            else:
                options.add_lora(*Lora(*lora))  # type: ignore[misc]
    except TypeError as error:
        raise BadInputError(f"lora is \"RANK:PATTERN\", a sardonyx.Lora, or a list of them, not {given!r}") from error


def merge_lora(model: ModelSource) -> Model:
    """The model with the low-rank products that `make_trainable(lora=…)` has put beside weights added to these, for inference.

    Raises BadInputError where it has none, and what reading the model raises.
    """
    opened = model if isinstance(model, Model) else Model(model)
    return Model._of(_core.merge_lora(opened._held))


def make_trainable(model: ModelSource, *, loss: str = "softmax-cross-entropy", output: str = "", class_axis: int = 1,
                   ignore_index: int | None = None, huber_delta: float = 1.0, optimizer: str = "adam",
                   learning_rate: float | None = None, momentum: float = 0.9, nesterov: bool = False, smoothing: float = 0.99,
                   beta1: float = 0.9, beta2: float = 0.999, epsilon: float = 1e-8, weight_decay: float = 0.0,
                   schedule: str = "constant", warmup: int = 0, clip_norm: float = 0.0, clip_value: float = 0.0,
                   accumulate: int = 1, train: Patterns = (), freeze: Patterns = (), lora: LoraLike | Sequence[LoraLike] = (),
                   initial_weights: str = "keep", seed: int = 0, precision: str = "float32", loss_scale: float = 65536.0,
                   scale_growth: int = 2000, recompute: bool = False,
                   report: Callable[[TrainableReport], Any] | None = None) -> Model:
    """A training model of a model for inference, for `TrainingSession` or any reader that knows the standard's operators.

    Its first algorithm takes the model's inputs and the target (of the output's shape; class numbers int64 without the class
    axis for softmax-cross-entropy), and gives the loss, accuracy where there are classes, and the learning rate that was used.
    The second measures loss and accuracy, and changes nothing.

    `loss`: softmax-cross-entropy, mse, l1, bce, bce-with-logits, huber (linear beyond `huber_delta`), of `output`, by default
    the first. `class_axis` and `ignore_index` (a target that does not count) are of softmax-cross-entropy.
    `optimizer`: adam, sgd, momentum, adamw, adagrad, rmsprop, lamb. `learning_rate` None: 0.001 for adam, adamw and lamb, 0.01
    for the others. `schedule`: constant, linear:STEPS, cosine:STEPS, step:STEPS:FACTOR, exponential:FACTOR, after `warmup`
    updates in which the rate rises. `clip_norm` bounds the norm of all gradients, `clip_value` each element; 0: no bound.
    `accumulate`: steps whose gradients are averaged into one update.
    `train`, `freeze`: a pattern of initializers or several, `*` for any text, `?` for one character; only those learn, those do
    not. `lora`: "RANK:PATTERN", a `Lora`, or several; what they add learns instead.
    `initial_weights` "random": `initialize()` draws the weights, with `seed`; "keep": it leaves them.
    `precision`: float32, bfloat16 (bf16) or float16 (fp16), what products are computed in; weights stay float32. With float16 the
    loss is multiplied with the state variable `loss_scale`, which begins with `loss_scale`, is halved by a step with a gradient
    that is not finite, which updates nothing, and doubled after `scale_growth` steps without one.
    `recompute`: sessions compute parts of the network again instead of keeping them, for less memory.
    `report` is called with what was made.

    Raises BadInputError for options that do not fit the model, UnsupportedError where something before the loss has no gradient,
    and what reading the model raises.
    """
    options = with_options(_core.TrainableOptions(), {
        "loss": loss.replace("_", "-"), "output": output, "class_axis": class_axis, "ignore_index": ignore_index,
        "huber_delta": huber_delta, "optimizer": optimizer, "learning_rate": _rate(learning_rate),
        "momentum": momentum, "nesterov": nesterov, "smoothing": smoothing, "beta1": beta1, "beta2": beta2, "epsilon": epsilon,
        "weight_decay": weight_decay, "schedule": schedule, "warmup": warmup, "clip_norm": clip_norm, "clip_value": clip_value,
        "accumulate": accumulate, "train": _patterns(train), "freeze": _patterns(freeze), "initial_weights": initial_weights,
        "seed": seed, "precision": precision, "loss_scale": loss_scale, "scale_growth": scale_growth, "recompute": recompute})
    _add_lora(options, lora)
    opened = model if isinstance(model, Model) else Model(model)
    made, told = _core.make_trainable(opened._held, options)
    if report is not None:
        report(TrainableReport(*told))
    return Model._of(made, opened)


def make_trainable_of_artifacts(folder: str | os.PathLike[str] = ".", *, training_model: str | os.PathLike[str] | None = None,
                                eval_model: str | os.PathLike[str] | None = None,
                                optimizer_model: str | os.PathLike[str] | None = None,
                                checkpoint: str | os.PathLike[str] | None = None, outputs: str | Sequence[str] = (),
                                learning_rate: float | None = None,
                                report: Callable[[TrainableReport], Any] | None = None) -> Model:
    """A training model of what ONNX Runtime's training API (`onnxruntime.training.artifacts`, until 1.19) works with.

    `folder` has training_model.onnx, eval_model.onnx, optimizer_model.onnx and checkpoint; the four arguments of these names say
    where one of them is elsewhere. The main graph infers as the eval model does, without the loss: `outputs` are values of it, by
    default its outputs beside the loss, or where it has none what the loss compares with the target. The first algorithm does what
    the training model and the optimizer model do in one step, the second measures the loss as the eval model does. Parameters
    begin with the checkpoint's values, the optimizer with its averages and, unless `learning_rate` says another one, its rate
    (0.001 without). `report` is called with what was made.

    Raises BadInputError where the files or options do not fit each other, UnsupportedError for optimizers other than
    AdamWOptimizer and SGDOptimizerV2 (after InplaceClipGradNorm), and what reading the files raises.
    """
    base = os.fspath(folder)
    files = {"training_model.onnx": training_model, "eval_model.onnx": eval_model, "optimizer_model.onnx": optimizer_model,
             "checkpoint": checkpoint}
    training, evaluation, optimizer, state = (os.path.join(base, name) if given is None else os.fspath(given)
                                              for name, given in files.items())
    made, told = _core.make_trainable_of_artifacts(training, evaluation, optimizer, state, _patterns(outputs),
                                                   _rate(learning_rate))
    if report is not None:
        report(TrainableReport(*told))
    return Model._of(made)
