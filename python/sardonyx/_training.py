"""Training models: a stateful object with three methods, and the loop over data."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, Union

import numpy as np
import numpy.typing as npt

from . import _core
from ._model import Model, ModelSource
from ._options import with_options
from ._session import Cancel, ValueInfo

if TYPE_CHECKING:
    from ._fit import Callback, Data, FitResult

Inputs = Union[Mapping[str, Any], Sequence[Any]]
Accept = Callable[["dict[str, npt.NDArray[Any]]"], Any]
_OPTIONS = ("threads", "reference", "fuse", "exact", "seed", "recompute")


class TrainingSession(_core.TrainingSession):
    """A model with training_info (IR, "Training Related Information"), and its state: the initializers that its bindings name.

    `model` is what `Model` takes, or a Model, such as `make_trainable` gives. `threads`: how many compute, the caller among
    them; 0: as many as the process may use; results do not depend on it. `reference`: node after node, without plan and fusion.
    `fuse`: combine operators where that is exact enough. `exact`: no algorithm that trades accuracy for speed. `seed`: with the
    number of steps before, decides what random operators without a seed draw, and the order of examples in `fit`; None: that of
    the session which saved the model, or 0. `recompute`: compute parts of the network again instead of keeping them, for less
    memory; None: as `make_trainable` was told. Further options are those of `Model`.

    A step sees the state of its beginning and assigns all updates together at its end; where it fails or is stopped, nothing
    has changed. Any number of threads may infer while one trains: each sees the state before or after a step. The interpreter's
    lock is released. Sessions pickle with their state; one that came through a fork refuses to work.

    Raises UnreadableError, InvalidModelError (also for a model without training_info), UnsupportedError.
    """

    def __init__(self, model: ModelSource, *, threads: int = 0, reference: bool = False, fuse: bool = True, exact: bool = False,
                 seed: int | None = None, recompute: bool | None = None, **load_options: Any):
        if load_options or not isinstance(model, Model):
            model = Model(model, **load_options)
        self._options: dict[str, Any] = dict(zip(_OPTIONS, (threads, reference, fuse, exact, seed, recompute)))
        self._operators = model._options.get("operators", ())  # which the engine alone does not keep
        super().__init__(model._held, with_options(_core.TrainingOptions(), self._options))

    # --- what it is ---------------------------------------------------------------------------

    @property
    def inputs(self) -> list[ValueInfo]:
        """What `infer` takes: the model's inputs that are no state."""
        return [ValueInfo(*one) for one in self._inputs]

    @property
    def outputs(self) -> list[ValueInfo]:
        """What `infer` gives."""
        return [ValueInfo(*one) for one in self._outputs]

    def step_inputs(self, which: int = 0) -> list[ValueInfo]:
        """What a step of this algorithm takes, in the order for tuples: the model's inputs that it needs, then its own."""
        return [ValueInfo(*one) for one in self._step_inputs(which)]

    def step_outputs(self, which: int = 0) -> list[ValueInfo]:
        """What a step gives: the algorithm's outputs that it does not assign."""
        return [ValueInfo(*one) for one in self._step_outputs(which)]

    @property
    def state_variables(self) -> list[ValueInfo]:
        """The main graph's, then each algorithm's. A name that several have is distinguished: "training_info[1].rate"."""
        return [ValueInfo(*one) for one in self._state_variables]

    def metadata(self, key: str) -> str:
        """Of the model that was loaded; "" where it has no such key."""
        return self._metadata(key)

    # --- the three methods --------------------------------------------------------------------

    def initialize(self, *, cancel: Cancel | None = None, timeout: float | None = None) -> None:
        """Runs the initialization of each entry in order and assigns what it makes; all or nothing.

        Raises RunFailedError, CancelledError, OutOfMemoryError.
        """
        self._initialize(cancel, timeout)

    def step(self, inputs: Inputs, which: int = 0, *, accept: Accept | None = None, cancel: Cancel | None = None,
             timeout: float | None = None) -> dict[str, npt.NDArray[Any]]:
        """One step of an algorithm. Returns its outputs by name: after `make_trainable`, scalars `loss`, `accuracy`, `rate`.

        `inputs` by name, or in the order of `step_inputs(which)`: arrays of the declared types and shapes, examples along the first
        axis; numpy's are read where they lie, others come through `__dlpack__` or `__array__`, lists take the declared type.
        `accept` is called with the outputs before anything is assigned; where its answer is false, or it raises, nothing is.
        Ctrl-C, `cancel` and `timeout` (seconds) stop the step, and the state is that before it.

        Raises BadInputError for names, types and shapes that do not fit, and for an update that has not the shape of its state
        variable; RunFailedError, CancelledError, OutOfMemoryError. The state is untouched by a step that raises.
        """
        return self._step(inputs, which, accept, cancel, timeout)

    def infer(self, inputs: Inputs, *, cancel: Cancel | None = None, timeout: float | None = None) -> dict[str, Any]:
        """The main graph with the current state: outputs by name. Changes nothing, and may run while another thread trains.

        `inputs` by name, or in the order of `inputs`. Raises as `step` does.
        """
        return self._infer(inputs, cancel, timeout)

    # --- the state ----------------------------------------------------------------------------

    def state(self) -> dict[str, npt.NDArray[Any]]:
        """All state variables, of one moment; the arrays are copies."""
        return self._state()

    def set_state(self, values: Mapping[str, Any]) -> None:
        """Assigns these state variables together, copying; the others keep their values.

        Arrays of the variable's own type and shape. Raises BadInputError for others, and for names that are none; nothing is
        assigned then.
        """
        self._set_state(values)

    def save(self, path: str | os.PathLike[str], *, external_data: str = "", inference_only: bool = False,
             merge_lora: bool = False, metadata: Mapping[str, str] | None = None) -> None:
        """Writes a model whose initializers hold the state, the optimizer's too. A session made of it goes on with the same bits.

        The file appears whole or not at all. `external_data`: the file beside it that takes the larger tensors. `inference_only`
        leaves training_info out; `merge_lora` also adds the products of LoRA to the weights beside which they stand. `metadata`
        is added to the model's. Raises UnreadableError where it can't be written.
        """
        self._save(os.fsdecode(path), external_data, inference_only, merge_lora, dict(metadata or {}))

    def to_bytes(self, *, inference_only: bool = False) -> bytes:
        """What `save` writes."""
        import tempfile

        with tempfile.TemporaryDirectory(prefix="sardonyx-") as folder:
            path = os.path.join(folder, "model.onnx")
            self.save(path, inference_only=inference_only)
            with open(path, "rb") as file:
                return file.read()

    def __reduce__(self) -> Any:
        options = {**self._options, "seed": None}  # which the model holds
        extra = {key: value for key, value in self.__dict__.items() if key != "_options"}
        return _restored, (type(self), self.to_bytes(), options, extra)

    # --- data ---------------------------------------------------------------------------------

    def fit(self, data: Data, epochs: int = 1, *, batch: int | None = None, shuffle: bool | None = None,
            drop_last: bool | None = None, which: int = 0, validation: Data | None = None, measure: int = 1,
            callbacks: Callback | Sequence[Callback] = (), bad_loss: str = "stop", patience: int = 0,
            checkpoints: str | os.PathLike[str] | None = None, every: int | None = None, keep: int | None = None,
            first_step: int | None = None, augment: str | None = None) -> FitResult:
        """Trains with algorithm `which` on data, epoch after epoch.

        `data` is one of
        - an iterable of batches, asked for an iterator anew in each epoch (a list, a DataLoader), or a function that makes one
          (a generator function). A batch is what `step` takes: a dict by name, or a tuple in the order of `step_inputs`;
        - a dict of whole arrays by name, examples along the first axis; scalars are given to each step as they are;
        - the path of an .npz file, or of a folder of NAME.npy: arrays are mapped, and may be larger than the memory.
        Of arrays and paths alone: `batch` examples make a step (32), `shuffle` (True) orders each epoch anew as the session's
        seed decides, `drop_last` (False) leaves out a smaller last batch; `checkpoints` is a folder that takes a model every
        `every` steps (0: after each epoch), when the training is stopped, and at the end, the last `keep` (2) of which stay;
        `first_step` (0) is where to go on, as `last_checkpoint` tells; `augment` changes images (arrays [examples, channels,
        height, width]) anew in each epoch, as seed, epoch and place decide: "flip" mirrors half of them, "crop:4" cuts them out of
        images with 4 zeros on each side, "flip,crop:4" does both.

        `validation` (either form) is measured after each epoch by algorithm `measure`; `patience` epochs in a row without a
        smaller first metric of it, which must be there then, end the training (0: never).
        A callback is a function that gets a `FitProgress` after each step and an `EpochResult` after each epoch, or an object with
        `on_step` or `on_epoch` or both. The answer False ends the training after that step or epoch; an exception does, too, and
        is raised. Ctrl-C ends it between or, for a loader, in steps, with the state of the last whole step.
        `bad_loss`: where the loss (the first of what a step gives) is NaN or infinite, nothing of the step is assigned, and
        "stop" raises RunFailedError, "skip" goes on.

        Raises as `step` does; BadInputError for options and arrays that do not fit, before anything is trained; UnreadableError
        where data or checkpoints can't be read or written. The state is that of the last whole step.
        """
        from ._fit import fit

        return fit(self, data, epochs, batch=batch, shuffle=shuffle, drop_last=drop_last, which=which, validation=validation,
                   measure=measure, callbacks=callbacks, bad_loss=bad_loss, patience=patience, checkpoints=checkpoints,
                   every=every, keep=keep, first_step=first_step, augment=augment)

    def measure(self, data: Data, which: int = 1, *, batch: int | None = None) -> dict[str, float]:
        """Means over all examples of what algorithm `which` gives, whose updates, if it has any, are not assigned.

        `data` and `batch` as for `fit`. Raises as `step` does.
        """
        from ._fit import measure

        return measure(self, data, which, batch)

    def __repr__(self) -> str:
        def listed(values: Iterable[ValueInfo]) -> str:
            return ", ".join(f"{one.name}: {one.type}" for one in values)

        return (f"<sardonyx.TrainingSession step({listed(self.step_inputs())}) -> ({listed(self.step_outputs())}), "
                f"{len(self._state_variables)} state variables, turn {self.turn}>")


def _restored(kind: type[TrainingSession], data: bytes, options: dict[str, Any], extra: dict[str, Any]) -> TrainingSession:
    session = kind.__new__(kind)
    TrainingSession.__init__(session, data, **options)
    session.__dict__.update(extra)
    return session


def number_of(value: Any) -> float | None:
    """A scalar of a step as the loop counts it; None for others."""
    if isinstance(value, np.ndarray) and value.size == 1 and value.dtype in (np.float32, np.float64, np.int64):
        return float(value.reshape(()))
    return None
