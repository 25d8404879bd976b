"""Options of sessions and runs, as onnxruntime has them."""

from __future__ import annotations

import json
import operator
import os
import re
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any

from ... import _core
from ..._errors import Error
from ..._model import Model
from ._exceptions import Fail, error
from ._state import Enumeration, global_threads

if TYPE_CHECKING:
    from ._adapters import LoraAdapter


class GraphOptimizationLevel(Enumeration):
    ORT_DISABLE_ALL = 0
    ORT_ENABLE_BASIC = 1
    ORT_ENABLE_EXTENDED = 2
    ORT_ENABLE_LAYOUT = 3
    ORT_ENABLE_ALL = 99


class ExecutionMode(Enumeration):
    ORT_SEQUENTIAL = 0
    ORT_PARALLEL = 1


class ExecutionOrder(Enumeration):
    DEFAULT = 0
    PRIORITY_BASED = 1
    MEMORY_EFFICIENT = 2


def _truth(name: str, value: Any) -> bool:
    """Numbers and None stand for truth values, and so does all else that says itself which it is; texts and lists do not."""
    if value is not None and not hasattr(type(value), "__bool__"):
        raise TypeError(f"{name} is of type bool, and {value!r} was given")
    return bool(value)


def _text(name: str, value: Any) -> str:
    if not isinstance(value, (str, bytes)):
        raise TypeError(f"{name} is of type str, and {value!r} was given")
    return value.decode() if isinstance(value, bytes) else value


def _size(name: str, value: Any) -> int:
    if not hasattr(value, "__index__"):
        raise TypeError(f"the size of '{name}' is of type int, and {value!r} was given")
    return operator.index(value)


def _typed(name: str, kind: type, default: Any, doc: str = "") -> Any:
    """An attribute that takes values of one type alone, as those of an extension do."""
    attribute = "_" + name

    def get(self: Any) -> Any:
        return getattr(self, attribute, default)

    def put(self: Any, value: Any) -> None:
        if kind is int and hasattr(value, "__index__"):
            value = value.__index__()
            if not -2**31 <= value < 2**31:
                raise TypeError(f"{name} is a number of 32 bits, and {value} was given")
        elif kind is bool:
            value = _truth(name, value)
        elif kind is str and isinstance(value, (bytes, os.PathLike)):
            value = os.fsdecode(value)
        elif not isinstance(value, kind):
            raise TypeError(f"{name} is of type {kind.__name__}, and {value!r} was given")
        object.__setattr__(self, attribute, value)

    return property(get, put, doc=doc)


class _Options:
    """Knows its attributes: a name that is not one of them is a mistake."""

    def __setattr__(self, name: str, value: Any) -> None:
        if not name.startswith("_") and not hasattr(type(self), name):
            raise AttributeError(f"'{type(self).__name__}' object has no attribute '{name}'")
        object.__setattr__(self, name, value)


def _processors(text: str) -> list[int]:
    """Of "1,2;3-4": for each thread but the caller's the processors that it may run on, counted from 1. Here all threads may run
    on all of them."""
    found: set[int] = set()
    for one in re.split("[,;]", text.removesuffix(";")):
        first, _, last = one.partition("-")
        if not first.isdecimal() or not (last or first).isdecimal() or not 0 < int(first) <= int(last or first) <= 65536:
            raise RuntimeError(f"{text!r} is no list of processors as session.intra_op_thread_affinities has them: '1,2;3-4'")
        found.update(range(int(first) - 1, int(last or first)))
    return sorted(found)


class SessionOptions(_Options):
    """What Sardonyx makes of each attribute: docs/python.md. Those that decide nothing here are kept as they were set."""

    enable_cpu_mem_arena: bool = _typed("enable_cpu_mem_arena", bool, True)
    enable_mem_pattern: bool = _typed("enable_mem_pattern", bool, True)
    enable_mem_reuse: bool = _typed("enable_mem_reuse", bool, True)
    enable_profiling: bool = _typed("enable_profiling", bool, False, "Runs are timed; end_profiling() writes the trace.")
    execution_mode: ExecutionMode = _typed("execution_mode", ExecutionMode, ExecutionMode.ORT_SEQUENTIAL)
    execution_order: ExecutionOrder = _typed("execution_order", ExecutionOrder, ExecutionOrder.DEFAULT)
    graph_optimization_level: GraphOptimizationLevel = _typed(
        "graph_optimization_level", GraphOptimizationLevel, GraphOptimizationLevel.ORT_ENABLE_ALL,
        "ORT_DISABLE_ALL: operators are not combined.")
    inter_op_num_threads: int = _typed("inter_op_num_threads", int, 0)
    intra_op_num_threads: int = _typed("intra_op_num_threads", int, 0,
                                       "Threads of a session, the caller included; 0: all it may use.")
    log_severity_level: int = _typed(
        "log_severity_level", int, -1,
        "0 verbose … 4 fatal: what of its session the logger \"sardonyx\" is given; -1: what it is enabled for.")
    log_verbosity_level: int = _typed("log_verbosity_level", int, 0)
    logid: str = _typed("logid", str, "")
    optimized_model_filepath: str = _typed(
        "optimized_model_filepath", str, "",
        "A file that the model is written to, as it is; one that ends in .sdx gets its packed weights.")
    profile_file_prefix: str = _typed("profile_file_prefix", str, "onnxruntime_profile_")
    use_deterministic_compute: bool = _typed("use_deterministic_compute", bool, False)
    use_per_session_threads: bool = _typed("use_per_session_threads", bool, True)

    def __init__(self) -> None:
        self._config: dict[str, str] = {}
        self._sizes: dict[str, int] = {}
        self._denoted_sizes: dict[str, int] = {}
        self._initializers: dict[str, Any] = {}
        self._files: dict[str, bytes] = {}
        self._libraries: list[str] = []
        self._provider_list: list[tuple[str, dict[str, str]]] = []

    def add_session_config_entry(self, key: str, value: str) -> None:
        """Any key is taken; those that Sardonyx knows nothing of decide nothing."""
        self._config[_text("the key of a config entry", key)] = _text(f"the config entry {key}", value)

    def get_session_config_entry(self, key: str) -> str:
        key = _text("the key of a config entry", key)
        if key not in self._config:
            raise RuntimeError(f"SessionOptions does not have configuration with key: {key}")
        return self._config[key]

    def add_free_dimension_override_by_name(self, name: str, size: int) -> None:
        """Inputs and outputs show the size; runs with another one are refused."""
        self._sizes[_text("the name of a dimension", name)] = _size(name, size)

    def add_free_dimension_override_by_denotation(self, denotation: str, size: int) -> None:
        """As by name, for sizes that the model gives this denotation ("DATA_BATCH")."""
        self._denoted_sizes[_text("the denotation of a dimension", denotation)] = _size(denotation, size)

    def add_initializer(self, name: str, value: Any) -> None:
        """Stands for the model's initializer of this name."""
        self._initializers[name] = value

    def add_external_initializers(self, names: Sequence[str], values: Sequence[Any]) -> None:
        if len(names) != len(values):
            raise RuntimeError("add_external_initializers() takes as many values as names")
        self._initializers.update(zip(names, values))

    def add_external_initializers_from_files_in_memory(self, file_names: Sequence[str], file_buffer_bytes: Sequence[bytes],
                                                       file_lengths: Sequence[int]) -> None:
        """Files of external data that a model given as bytes names, and what is in them."""
        if not len(file_names) == len(file_buffer_bytes) == len(file_lengths):
            raise RuntimeError("Expecting same size for names, buffers and lengths")
        for name, data, length in zip(file_names, file_buffer_bytes, file_lengths):
            self._files[str(name)] = bytes(data[:length])

    def register_custom_ops_library(self, path: Any) -> None:
        """A library of operators for Sardonyx (docs/custom_operators.md). Raises Fail where it can't be loaded."""
        name = os.fspath(path)
        try:
            Model.from_text("<ir_version: 10> g () => () {}", libraries=[name])
        except Error as found:
            raise error(Fail, f"Failed to load library {found}") from found
        self._libraries.append(name)

    def add_provider(self, name: str, options: dict[str, str]) -> None:
        self._provider_list.append((name, dict(options)))

    def add_provider_for_devices(self, devices: Sequence[Any], options: dict[str, str]) -> None:
        for device in devices:
            self._provider_list.append((device.ep_name, dict(options)))

    def has_providers(self) -> bool:
        return bool(self._provider_list)

    def set_provider_selection_policy(self, policy: Any) -> None:
        """There is one device to choose from."""

    def set_provider_selection_policy_delegate(self, delegate: Callable[..., Any]) -> None:
        """There is one device to choose from."""

    def set_load_cancellation_flag(self, cancel: bool) -> None:
        self._load_cancelled = bool(cancel)

    def _engine_options(self) -> dict[str, Any]:
        """What a sardonyx.Session is to be made with."""
        values = {name: getattr(value, "_value", value) for name, value in self._initializers.items()}
        shared = None if self.use_per_session_threads else global_threads()
        affinities = self._config.get("session.intra_op_thread_affinities")
        return {"threads": shared or max(0, self.intra_op_num_threads), "initializers": values,
                "flush_denormals": self._config.get("session.set_denormal_as_zero") == "1",
                "processors": [] if shared or affinities is None else _processors(affinities),
                "fuse": self.graph_optimization_level != GraphOptimizationLevel.ORT_DISABLE_ALL,
                "libraries": list(self._libraries)}


class RunOptions(_Options):
    log_severity_level: int = _typed("log_severity_level", int, -1)
    log_verbosity_level: int = _typed("log_verbosity_level", int, 0)
    logid: str = _typed("logid", str, "")
    only_execute_path_to_fetches: bool = _typed("only_execute_path_to_fetches", bool, False)

    def __init__(self) -> None:
        self._cancel = _core.Cancel()
        self._config: dict[str, str] = {}
        self._adapters: list[LoraAdapter] = []

    @property
    def terminate(self) -> bool:
        """Set it from any thread to stop the runs that have these options."""
        return self._cancel.is_set()

    @terminate.setter
    def terminate(self, value: bool) -> None:
        if _truth("terminate", value):
            self._cancel.set()
        else:
            self._cancel.clear()

    def add_run_config_entry(self, key: str, value: str) -> None:
        self._config[_text("the key of a config entry", key)] = _text(f"the config entry {key}", value)

    def get_run_config_entry(self, key: str) -> str:
        key = _text("the key of a config entry", key)
        if key not in self._config:
            raise RuntimeError(f"RunOptions does not have configuration with key: {key}")
        return self._config[key]

    def add_active_adapter(self, adapter: LoraAdapter) -> None:
        """Runs with these options take the adapter's parameters as inputs."""
        if not hasattr(adapter, "_parameters"):
            raise TypeError(f"adapter is a LoraAdapter, and {adapter!r} was given")
        self._adapters.append(adapter)


def read_options(model: Model) -> SessionOptions | None:
    """Those that a model brings in its metadata ("ort_config", JSON); None: it has none."""
    text = model.metadata.get("ort_config")
    if text is None:
        return None
    try:
        found = json.loads(text)["session_options"]
        options = SessionOptions()
        for name, kind in (("inter_op_num_threads", int), ("intra_op_num_threads", int), ("execution_mode", ExecutionMode),
                           ("graph_optimization_level", GraphOptimizationLevel), ("enable_profiling", bool)):
            if name in found:
                setattr(options, name, kind(found[name]))
        return options
    except (ValueError, KeyError, TypeError) as broken:
        raise error(Fail, f"the model's options of a session (metadata 'ort_config') cannot be read: {broken}") from broken
