"""The loop over data. That over whole arrays is the engine's own; that over batches of Python's making is here."""

from __future__ import annotations

import math
import os
import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import Any, NamedTuple, Protocol, Union, cast

import numpy as np

from . import _core
from ._errors import BadInputError, Error, RunFailedError
from ._options import with_options
from ._training import Inputs, TrainingSession, number_of


class FitProgress(NamedTuple):
    """After a step."""

    epoch: int  # that runs, from 0
    step: int  # steps done in all, those before a resumption among them
    steps: int | None  # in all epochs; None where the loader has no length
    examples: int  # done by this call
    seconds: float  # since it began
    loss: float  # the first of what the step gave
    skipped: bool  # the loss was no finite number, and nothing was assigned
    metrics: dict[str, float]  # scalars that the step gave


class EpochResult(NamedTuple):
    """After an epoch: means over its examples of what the steps gave (NaN where all were left out), and over the validation data."""

    epoch: int
    training: dict[str, float]
    validation: dict[str, float]
    seconds: float


class FitResult(NamedTuple):
    """After the training."""

    step: int  # steps done in all
    epochs: list[EpochResult]
    stopped: bool  # by a callback
    stopped_early: bool  # by `patience`
    skipped: int  # steps that were left out for their loss
    checkpoint: str  # the last one that was written, or ""

    def _repr_html_(self) -> str:
        import html

        def shown(values: Mapping[str, float]) -> str:
            return html.escape(", ".join(f"{name} {value:.6g}" for name, value in values.items()))

        rows = "".join(f"<tr><td>{one.epoch + 1}</td><td>{shown(one.training)}</td><td>{shown(one.validation)}</td></tr>"
                       for one in self.epochs)
        return f"<table><tr><th>epoch</th><th>training</th><th>validation</th></tr>{rows}</table>"


class Checkpoint(NamedTuple):
    """A model that `fit` wrote, and the steps it had done: `fit(…, first_step=step)` goes on."""

    path: str
    step: int


class StepListener(Protocol):
    """A callback that steps alone, or epochs too, are told to."""

    def on_step(self, progress: FitProgress, /) -> Any: ...


class EpochListener(Protocol):
    """A callback that epochs alone, or steps too, are told to."""

    def on_epoch(self, result: EpochResult, /) -> Any: ...


Callback = Union[Callable[[Any], Any], StepListener, EpochListener]
Loader = Union[Iterable[Inputs], Callable[[], Iterable[Inputs]]]
Data = Union[Mapping[str, Any], str, "os.PathLike[str]", Loader]


def last_checkpoint(folder: str | os.PathLike[str]) -> Checkpoint | None:
    """The newest checkpoint of a folder, None where it has none or is not there. Raises UnreadableError where it can't
    be read."""
    path, step = _core.last_checkpoint(os.fsdecode(folder))
    return Checkpoint(path, step) if path else None


def _is_whole(data: Any) -> bool:
    return isinstance(data, (Mapping, str, os.PathLike))


def _whole(data: Any) -> Any:
    return dict(data) if isinstance(data, Mapping) else os.fsdecode(data)


def _batches(loader: Any, epoch: int) -> Iterator[Inputs]:
    batches: Any = loader() if callable(loader) and not hasattr(loader, "__iter__") else loader
    if not hasattr(batches, "__iter__") and not hasattr(batches, "__getitem__"):
        raise BadInputError("data are a dict of arrays, a path, an iterable of batches or a function that makes one, and "
                            f"{type(batches).__name__} was given")
    count = 0
    for count, batch in enumerate(batches, 1):
        yield batch
    if count == 0:
        raise BadInputError(f"epoch {epoch + 1} has no batch" + (
            ": an iterator runs out in the first one; give a list, a DataLoader, or the generator function itself" if epoch else ""))


def _examples(batch: Inputs) -> int:
    """The first size of the first array that is no scalar."""
    for value in batch.values() if isinstance(batch, Mapping) else batch:
        shape: Any = value.shape if hasattr(value, "shape") else np.shape(value)
        if callable(shape):  # as of sparse tensors of some libraries
            shape = shape()
        if len(shape) > 0:
            return int(shape[0])
    return 1


def _metrics(outputs: Mapping[str, Any]) -> dict[str, float]:
    numbers = {name: number_of(value) for name, value in outputs.items()}
    return {name: number for name, number in numbers.items() if number is not None}


class _Mean:
    def __init__(self) -> None:
        self._sums: dict[str, float] = {}
        self._examples = 0

    def add(self, metrics: Mapping[str, float], examples: int) -> None:
        for name, value in metrics.items():  # NaN times 0 examples is no number
            self._sums[name] = self._sums.get(name, 0.0) + (value * examples if examples else 0.0)
        self._examples += examples

    def take(self) -> dict[str, float]:
        return {name: value / self._examples if self._examples else math.nan for name, value in self._sums.items()}


def measure(session: TrainingSession, data: Data, which: int, batch: int | None) -> dict[str, float]:
    if _is_whole(data):
        return _core.measure(session, _whole(data), 32 if batch is None else batch, which)
    _refuse_given({"batch": batch})
    mean = _Mean()
    for one in _batches(data, 0):
        mean.add(_metrics(session.step(one, which, accept=lambda outputs: False)), _examples(one))
    return mean.take()


def _refuse_given(options: Mapping[str, Any]) -> None:
    for name, value in options.items():
        if value is not None:
            advice = "save() in a callback does" if name in ("checkpoints", "every", "keep", "first_step") else "a loader makes its own batches"
            raise BadInputError(f"{name} is an option of whole arrays and of paths; {advice}")


def _is_false(answer: Any) -> bool:
    """Comparisons of what numpy has computed give its own False. None and the like are no answer."""
    return isinstance(answer, (bool, np.bool_)) and not answer


class _Listeners:
    """The callbacks, and what follows from their answers."""

    def __init__(self, callbacks: Callback | Sequence[Callback]):
        self._step: list[Callable[[FitProgress], Any]] = []
        self._epoch: list[Callable[[EpochResult], Any]] = []
        several = isinstance(callbacks, Sequence) and not hasattr(callbacks, "on_step") and not hasattr(callbacks, "on_epoch")
        for one in cast("Sequence[Callback]", callbacks if several else [callbacks]):
            on_step, on_epoch = getattr(one, "on_step", None), getattr(one, "on_epoch", None)
            if on_step is None and on_epoch is None:
                if not callable(one):
                    raise BadInputError(f"a callback is a function, or has on_step or on_epoch; {type(one).__name__} has neither")
                on_step = on_epoch = one
            self._step += [on_step] if on_step is not None else []
            self._epoch += [on_epoch] if on_epoch is not None else []
        self.stopped = False

    def wants_steps(self) -> bool:
        return bool(self._step)

    def on_step(self, progress: FitProgress) -> None:
        for one in self._step:
            self.stopped |= _is_false(one(progress))

    def on_epoch(self, result: EpochResult) -> None:
        for one in self._epoch:
            self.stopped |= _is_false(one(result))


class _Fitting:
    def __init__(self, session: TrainingSession, which: int, validation: Data | None, measure: int, batch: int | None,
                 listeners: _Listeners, patience: int, skips: bool):
        self.session, self.which, self.listeners, self.skips = session, which, listeners, skips
        self._validation, self._measure, self._batch, self._patience = validation, measure, batch, patience
        self._best, self._worse = math.inf, 0
        self.epochs: list[EpochResult] = []
        self.early = False

    def end_epoch(self, epoch: int, training: dict[str, float], seconds: float) -> bool:
        """True: the training ends."""
        validation = {} if self._validation is None else measure(
            self.session, self._validation, self._measure, self._batch if _is_whole(self._validation) else None)
        result = EpochResult(epoch, training, validation, seconds)
        self.epochs.append(result)
        if self._patience > 0 and validation:
            loss = next(iter(validation.values()))
            if loss < self._best:
                self._best, self._worse = loss, 0
            else:
                self._worse += 1
            self.early = self._worse >= self._patience
        self.listeners.on_epoch(result)
        return self.early or self.listeners.stopped

    # --- whole arrays -------------------------------------------------------------------------

    def over_arrays(self, data: Any, options: _core.FitOptions) -> FitResult:
        def on_step(*progress: Any) -> bool:
            self.listeners.on_step(FitProgress(*progress))
            return self.listeners.stopped

        step, _, skipped, checkpoint = _core.fit(self.session, data, options, on_step if self.listeners.wants_steps() else None,
                                                 self.end_epoch)
        return FitResult(step, self.epochs, self.listeners.stopped, self.early, skipped, checkpoint)

    # --- batches ------------------------------------------------------------------------------

    def over_batches(self, loader: Any, epochs: int) -> FitResult:
        begin = time.perf_counter()
        step = examples = skipped = 0
        steps = len(loader) * epochs if hasattr(loader, "__len__") else None
        for epoch in range(epochs):
            begin_epoch, mean = time.perf_counter(), _Mean()
            for batch in _batches(loader, epoch):
                outputs, loss = self.stepped(batch, epoch, step)
                is_bad, count, metrics = not math.isfinite(loss), _examples(batch), _metrics(outputs)
                step, examples, skipped = step + 1, examples + count, skipped + is_bad
                mean.add(metrics, 0 if is_bad else count)
                self.listeners.on_step(FitProgress(epoch, step, steps, examples, time.perf_counter() - begin, loss, is_bad, metrics))
                if self.listeners.stopped:
                    return FitResult(step, self.epochs, True, False, skipped, "")
            if self.end_epoch(epoch, mean.take(), time.perf_counter() - begin_epoch):
                break
        return FitResult(step, self.epochs, self.listeners.stopped, self.early, skipped, "")

    def stepped(self, batch: Inputs, epoch: int, step: int) -> tuple[dict[str, Any], float]:
        loss = 0.0

        def accept(outputs: Mapping[str, Any]) -> bool:
            nonlocal loss
            loss = number_of(next(iter(outputs.values()))) or 0.0
            return math.isfinite(loss)

        place = f"epoch {epoch + 1}, step {step + 1}"
        try:
            outputs = self.session.step(batch, self.which, accept=accept)
        except Error as error:
            raise type(error)(error.message, f"{place}: {error.location}" if error.location else place, error.code) from error
        if not math.isfinite(loss) and not self.skips:
            raise RunFailedError(f"the loss is {loss}; nothing of this step was assigned: a smaller learning rate or clipped "
                                 "gradients may help, and such steps can be left out (bad_loss=\"skip\")", place)
        return outputs, loss


def _check_names(session: TrainingSession, data: Any, which: int) -> None:
    """Of validation data, before the first epoch rather than after it."""
    if not isinstance(data, Mapping):
        return
    names = [one.name for one in session.step_inputs(which)]
    for name in [*data, *names]:
        if name not in names or name not in data:
            found = "is missing in" if name in names else "is no input of"
            raise BadInputError(f"'{name}' {found} the validation; algorithm {which} takes {', '.join(map(repr, names))}")


def fit(session: TrainingSession, data: Data, epochs: int, *, batch: int | None, shuffle: bool | None, drop_last: bool | None,
        which: int, validation: Data | None, measure: int, callbacks: Callback | Sequence[Callback], bad_loss: str, patience: int,
        checkpoints: str | os.PathLike[str] | None, every: int | None, keep: int | None, first_step: int | None,
        augment: str | None) -> FitResult:
    if bad_loss not in ("stop", "skip"):
        raise BadInputError(f"bad_loss is 'stop' or 'skip', not {bad_loss!r}")
    if epochs < 0:
        raise BadInputError(f"epochs must not be negative; got {epochs}")
    if patience < 0:
        raise BadInputError(f"patience must not be negative; got {patience}")
    if patience > 0 and validation is None:
        raise BadInputError(f"patience waits for a smaller loss of validation data, and there are none; got {patience}")
    if not session.step_outputs(which):
        raise BadInputError(f"algorithm {which} gives no loss: all its outputs are updates")
    _check_names(session, validation, measure)
    fitting = _Fitting(session, which, validation, measure, batch, _Listeners(callbacks), patience, bad_loss == "skip")
    of_arrays = {"batch": batch, "shuffle": shuffle, "drop_last": drop_last, "every": every, "keep": keep, "first_step": first_step,
                 "augment": augment, "checkpoints": None if checkpoints is None else os.fsdecode(checkpoints)}
    if not _is_whole(data):
        # The batch of validation data that are whole is no option of the loader.
        _refuse_given({**of_arrays, "batch": None if _is_whole(validation) else batch})
        return fitting.over_batches(data, epochs)
    given = {name: value for name, value in of_arrays.items() if value is not None}
    options = with_options(_core.FitOptions(), {"epochs": epochs, "which": which, "skips_bad_losses": bad_loss == "skip", **given})
    return fitting.over_arrays(_whole(data), options)
