"""Running models."""

from __future__ import annotations

import copyreg
import dataclasses
import os
from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, NamedTuple, Union, overload

import numpy as np

from . import _core
from ._model import Model, ModelSource
from ._options import dict_of, list_of, path_of, with_options
from ._profile import Profile

if TYPE_CHECKING:
    import logging

Cancel = _core.Cancel
Threads = _core.Threads


def _reduced_value(value: _core.Value) -> tuple[Any, ...]:
    if value.kind != "tensor":
        raise TypeError(f"a Value that is a {value.kind} can't be pickled; to_python() gives what can")
    return _restored_value, (value.to_python() if value.element_type == "string" else value.to_bytes(), value.element_type, value.shape)


def _restored_value(elements: Any, element_type: str, shape: Sequence[int]) -> _core.Value:
    if element_type == "string":
        return _core.Value.of(elements)
    return _core.Value.reinterpreted(np.frombuffer(bytearray(elements), np.uint8), element_type, shape)


copyreg.pickle(_core.Value, _reduced_value)


class ValueInfo(NamedTuple):
    """An input or output of a model."""

    name: str
    kind: str  # "tensor", "sequence", "map", "optional", "sparse tensor"
    element_type: str | None  # of tensors: "float", "int64", "bfloat16"
    shape: tuple[int | str | None, ...] | None  # numbers, names, None where open; None: even the rank is open
    type: str  # in full: "float[batch,3,224,224]"
    optional: bool  # an input with a default

    @property
    def dtype(self) -> np.dtype[Any]:
        """numpy's type of its elements."""
        if self.element_type is None:
            raise TypeError(f"'{self.name}' is {self.type}, which is no tensor")
        return _core.dtype_of(self.element_type)


@dataclasses.dataclass(frozen=True)
class Step:
    """A step of a plan. `sources` are the model's nodes whose work it does, if it is not one itself; `refused` are kernels
    that were not taken, each with its reason."""

    node: str
    origin: str
    sources: list[str]
    kernel: str
    refused: list[str]
    bodies: list[Body]


@dataclasses.dataclass(frozen=True)
class Body:
    """A body of If, Loop or Scan. Not `is_planned`: how its nodes are computed is decided when it runs."""

    name: str
    is_planned: bool
    steps: list[Step]


def _steps(described: list[Any]) -> list[Step]:
    return [Step(node, origin, sources, kernel, refused, [Body(name, planned, _steps(inner)) for name, planned, inner in bodies])
            for node, origin, sources, kernel, refused, bodies in described]


class LogMessage(NamedTuple):
    """What a session tells besides results and errors."""

    level: str  # "debug", "info", "warning", "error"
    rule: str  # of the checker: "G-20"; mostly empty
    place: str  # "session", "input 'x'", the path of a file
    message: str  # what was found or done
    advice: str  # what was made of it, or what to do; may be empty

    def __str__(self) -> str:
        text = f"{self.place}: {self.message}" if self.place else self.message
        text += f"; {self.advice}" if self.advice else ""
        return text + (f" [{self.rule}]" if self.rule else "")


LogListener = Union[Callable[[LogMessage], Any], "logging.Logger"]
_LEVELS = {"debug": 1, "info": 2, "warning": 3, "error": 4}
_LEVEL_NAMES = {number: name for name, number in _LEVELS.items()}


@dataclasses.dataclass(frozen=True)
class _Log:
    """Hands what the engine tells to a function or a logger."""

    listener: LogListener

    def __call__(self, level: int, rule: str, place: str, message: str, advice: str) -> None:
        told = LogMessage(_LEVEL_NAMES[level], rule, place, message, advice)
        if callable(self.listener):
            self.listener(told)
        else:
            self.listener.log(level * 10, "%s", told)

    def warn(self, rule: str, place: str, message: str, advice: str) -> None:
        self(_LEVELS["warning"], rule, place, message, advice)


def _log_level(log: LogListener | None, level: str | None) -> int:
    if level is not None:
        if level not in _LEVELS:
            raise ValueError(f"log_level is one of {', '.join(_LEVELS)}; got {level!r}")
        return _LEVELS[level]
    if log is not None and not callable(log):  # a level above all of ours tells errors, which are few
        return next((number for number in _LEVELS.values() if log.isEnabledFor(number * 10)), _LEVELS["error"])
    return _LEVELS["warning"]


_LOAD = ("folder", "strict", "trusted_folder", "read_into_memory", "operator_sets", "libraries", "operators", "warn")


def _packing(threads: int, exact: bool, fuse: bool, assume_inference: bool, dimensions: Mapping[str, int] | None,
             extra_outputs: Sequence[str]) -> _core.SessionOptions:
    return with_options(_core.SessionOptions(), {
        "threads": threads, "exact": exact, "fuse": fuse, "assume_inference": assume_inference,
        "dimensions": dict_of("dimensions", dimensions), "extra_outputs": list_of("extra_outputs", extra_outputs)})


def pack(model: ModelSource, path: str | os.PathLike[str], *, threads: int = 0, exact: bool = False, fuse: bool = True,
         assume_inference: bool = False, dimensions: Mapping[str, int] | None = None, extra_outputs: Sequence[str] = ()) -> int:
    """Writes the weights of a model as the kernels of this processor read them to a file, and returns its size in bytes.

    `Session(model, packed=path)` then maps them instead of packing them in its first run, and shares them with other
    processes. The options are those of the sessions that it is for. The file appears whole or not at all. Raises
    `UnreadableError` where it can't be written, and what `Session` raises.
    """
    options = _packing(threads, exact, fuse, assume_inference, dimensions, extra_outputs)
    return _core.pack(_model(model)._held, path_of("path", path), options)[1]


def compare_packed(model: ModelSource, path: str | os.PathLike[str], *, threads: int = 0, exact: bool = False,
                   fuse: bool = True, assume_inference: bool = False, dimensions: Mapping[str, int] | None = None,
                   extra_outputs: Sequence[str] = ()) -> list[str]:
    """Packs anew and compares all bytes with those of a file that `pack` has made: a line for each packed weight that differs.

    Raises `UnreadableError` where the file is broken, `BadInputError` where it is for another model, processor or version.
    """
    options = _packing(threads, exact, fuse, assume_inference, dimensions, extra_outputs)
    return _core.compare_packed(_model(model)._held, path_of("path", path), options)


def _model(model: ModelSource) -> Model:
    return model if isinstance(model, Model) else Model(model)


class Session(_core.Session):
    """A model prepared for running. Any number of threads may run one session at the same time.

    `model` is whatever `Model` takes, or a Model, whose sessions share its weights. `threads` counts the caller; 0: as
    many as the process may use; or `Threads` that other sessions have, too. `processors`: those that the session's own
    threads may run on, by the system's numbers; all that the process may use without it. `reference`: node after node,
    without plan and fusion. `exact`: no algorithm that trades accuracy for speed. `prepack`: bring weights into the form
    of their kernels now instead of in the first run. `flush_denormals`: numbers nearer to 0 than the least normal one
    count as 0, since processors are slow with them. `all_outputs`: all values that the graph makes become outputs.
    `memory_limit`: most bytes that making the session may take, 0 for any number. `dimensions`: sizes that inputs leave
    open and that are to be numbers, by their names ("batch") or places ("image.2"). `initializers`: arrays instead of the
    model's, by name; they are copied. `extra_outputs`: values of the graph that become outputs behind the model's own.
    `packed`: a file that `pack` has made of the model, to take its packed weights from; `BadInputError` where it is for
    another model, processor or version. `cache_folder`: a folder where such files are kept: the session takes its model's,
    and makes it where it is missing or of no use. `log`: a function that is called with a LogMessage, or a
    `logging.Logger`, for what making the session and its runs meet besides errors; they are called by the call that met
    it, at its end, and what they raise is raised there. `log_level`: the least level that is told ("debug", "info",
    "warning", "error"); without it "warning", or what the logger is enabled for when the session is made. With a log,
    warnings of the session go there instead of being a `ModelWarning`. Further options are those of `Model`.

    Raises `UnreadableError`, `InvalidModelError`, `UnsupportedError`.
    """

    def __init__(self, model: ModelSource, *, threads: int | Threads = 0, processors: Sequence[int] = (),
                 reference: bool = False, fuse: bool = True, exact: bool = False, assume_inference: bool = False,
                 prepack: bool = False, flush_denormals: bool = False, seed: int = 0, all_outputs: bool = False, memory_limit: int = 0,
                 dimensions: Mapping[str, int] | None = None, initializers: Mapping[str, Any] | None = None,
                 extra_outputs: Sequence[str] = (), packed: str | os.PathLike[str] | None = None,
                 cache_folder: str | os.PathLike[str] | None = None, log: LogListener | None = None,
                 log_level: str | None = None, **load_options: Any):
        unknown = [name for name in load_options if name not in _LOAD]
        if unknown:
            raise TypeError(f"Session() has no option {unknown[0]!r}")
        if log is not None and not callable(log) and not hasattr(log, "isEnabledFor"):
            raise TypeError(f"log is a function or a logging.Logger, and {type(log).__name__} was given")
        self._log = None if log is None else _Log(log)
        if isinstance(model, Model) and not load_options:
            self._model = model
        else:
            if self._log is not None:
                load_options.setdefault("warn", self._log.warn)
            self._model = Model(model, memory_limit=memory_limit, **load_options)
        self._options: dict[str, Any] = {
            **({"shared_threads": threads} if isinstance(threads, Threads) else {"threads": threads}),
            "processors": list_of("processors", processors),
            "reference": reference, "fuse": fuse, "exact": exact, "assume_inference": assume_inference,
            "prepack": prepack, "flush_denormals": flush_denormals, "seed": seed, "all_outputs": all_outputs, "memory_limit": memory_limit,
            "dimensions": dict_of("dimensions", dimensions), "extra_outputs": list_of("extra_outputs", extra_outputs),
            "packed": path_of("packed", packed or ""), "cache_folder": path_of("cache_folder", cache_folder or ""),
            "log_level": _log_level(log, log_level)}
        self._initializers = {name: value if isinstance(value, _core.Value) else np.array(value)
                              for name, value in dict_of("initializers", initializers).items()}
        self._prepare()

    def _prepare(self) -> None:
        options = with_options(_core.SessionOptions(), self._options)
        for name, value in self._initializers.items():
            options.add_initializer(name, value)
        options.log = self._log
        super().__init__(self._model._held, options)
        self._described = ([ValueInfo(*one) for one in self._inputs], [ValueInfo(*one) for one in self._outputs])

    @property
    def model(self) -> Model:
        return self._model

    @property
    def inputs(self) -> list[ValueInfo]:
        """Those with a default stand last."""
        return self._described[0]

    @property
    def outputs(self) -> list[ValueInfo]:
        return self._described[1]

    @property
    def steps(self) -> list[Step]:
        """What running consists of, whatever the sizes."""
        return _steps(self._steps())

    def __call__(self, *inputs: Any, **named: Any) -> Any:
        """Runs with inputs in order or by name. Returns the output, or a tuple where the model has several."""
        names = [one.name for one in self.inputs]
        feeds = dict(zip(names, inputs))
        if len(inputs) > len(names):
            raise TypeError(f"{len(inputs)} inputs were given, and the model has {len(names)}")
        for name in named:
            if name in feeds:
                raise TypeError(f"input '{name}' is given twice")
        made = tuple(self.run({**feeds, **named}).values())
        return made[0] if len(made) == 1 else made

    async def run_async(self, inputs: Mapping[str, Any] | Sequence[Any], **options: Any) -> Any:
        """As `run`, on a thread of the session's own, without keeping the event loop waiting. As many of these runs as the session
        has threads go on at a time, others wait for their turn. Cancelling the task stops the run."""
        import asyncio  # which takes as long to import as all the rest

        cancel = options.pop("cancel", None) or Cancel()
        loop = asyncio.get_running_loop()
        future: asyncio.Future[Any] = loop.create_future()

        def finish(outputs: Any, error: BaseException | None) -> None:
            if future.done():  # cancelled
                return
            if error is not None:
                future.set_exception(error)
            else:
                future.set_result(outputs)

        def done(outputs: Any, error: BaseException | None) -> None:
            try:
                loop.call_soon_threadsafe(finish, outputs, error)
            except RuntimeError:  # the loop was closed meanwhile
                pass

        self._run_async(inputs, done, cancel, **options)
        try:
            return await future
        except asyncio.CancelledError:
            cancel.set()
            raise

    def profile(self, inputs: Mapping[str, Any] | Sequence[Any], runs: int = 1) -> Profile:
        """What the steps of `runs` runs with these inputs cost."""
        profile = Profile()
        for _ in range(runs):
            self.run(inputs, profile=profile)
        return profile

    def __reduce__(self) -> Any:
        state = {key: value for key, value in self.__dict__.items() if key not in ("_model", "_options", "_described")}
        return _restored, (type(self), self._model, self._options, state)

    def __deepcopy__(self, memo: dict[int, Any]) -> Session:
        return _restored(type(self), self._model, self._options, {"_initializers": self._initializers, "_log": self._log})

    def __copy__(self) -> Session:
        return self.__deepcopy__({})

    def __repr__(self) -> str:
        if not hasattr(self, "_described"):
            return "<sardonyx.Session that could not be made>"

        def listed(values: list[ValueInfo]) -> str:
            return ", ".join(f"{one.name}: {one.type}" for one in values)

        return f"<sardonyx.Session ({listed(self.inputs)}) -> ({listed(self.outputs)})>"

    def _repr_html_(self) -> str:
        from . import _html

        if not hasattr(self, "_described"):
            return _html.table(["sardonyx.Session"], [["that could not be made"]])
        rows = [(kind, one.name, one.type) for kind, values in (("input", self.inputs), ("output", self.outputs)) for one in values]
        steps = [(step.node, step.kernel, step.origin) for step in self.steps]
        return (_html.table(["", "name", "type"], rows)
                + f"<details><summary>{len(steps)} steps</summary>" + _html.table(["node", "kernel", "origin"], steps) + "</details>"
                + "<details><summary>graph</summary>" + _html.drawing(self.model) + "</details>")


def _restored(kind: type[Session], model: Model, options: dict[str, Any], state: dict[str, Any]) -> Session:
    session = kind.__new__(kind)
    session._model = model
    session._options = options
    session.__dict__.update(state)
    Session._prepare(session)
    return session
