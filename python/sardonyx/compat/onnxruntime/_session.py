"""InferenceSession."""

from __future__ import annotations

import collections.abc
import datetime
import functools
import json
import logging
import numbers
import os
import pathlib
import time
import warnings
import weakref
from collections.abc import Callable, Mapping, Sequence
from typing import Any, NoReturn

import numpy as np

from ... import _core, _errors
from ..._inference import infer_types
from ..._model import Model, _Source
from ..._profile import Profile
from ..._session import LogMessage, ValueInfo, pack
from ..._session import Session as _Session
from . import _state
from ._assignment import OrtEpAssignedSubgraph, assigned
from ._binding import IOBinding
from ._exceptions import Fail, InvalidArgument, NotImplemented, error, raise_running, while_loading, while_running
from ._metadata import ModelMetadata, NodeArg, node_arg, read_metadata
from ._options import RunOptions, SessionOptions, read_options
from ._values import OrtMemoryInfo, OrtValue, OrtValueVector, values_of, written

_log = logging.getLogger("sardonyx")
_LOG_LEVELS = {"debug": logging.DEBUG, "info": logging.INFO, "warning": logging.WARNING}


def check_and_normalize_provider_args(providers: Any, provider_options: Any, available_provider_names: Sequence[str]
                                      ) -> tuple[list[str], list[dict[str, str]]]:
    """Names and options of providers; a name that is not available is warned of."""
    if providers is None:
        return [], []
    if not isinstance(providers, collections.abc.Sequence):
        raise ValueError("'providers' should be a sequence.")
    if provider_options is not None:
        if not isinstance(provider_options, collections.abc.Sequence):
            raise ValueError("'provider_options' should be a sequence.")
        if len(providers) != len(provider_options):
            raise ValueError("'providers' and 'provider_options' should be the same length if both are given.")
        if not all(isinstance(one, str) for one in providers):
            raise ValueError("Only string values for 'providers' are supported if 'provider_options' is given.")
        if not all(isinstance(one, dict) for one in provider_options):
            raise ValueError("'provider_options' values must be dicts.")
        providers = list(zip(providers, provider_options))
    made: dict[str, dict[str, str]] = {}
    for one in providers:
        name, options = (one, {}) if isinstance(one, str) else _provider_pair(one)
        if name not in available_provider_names:
            warnings.warn(f"Specified provider '{name}' is not in available provider names. Available providers: "
                          f"'{', '.join(available_provider_names)}'", stacklevel=4)
        if name in made:
            warnings.warn(f"Duplicate provider '{name}' encountered, ignoring.", stacklevel=4)
            continue
        made[name] = {str(key): str(value) for key, value in options.items()}
    return list(made), list(made.values())


def _provider_pair(one: Any) -> tuple[str, dict[Any, Any]]:
    if isinstance(one, tuple) and len(one) == 2 and isinstance(one[0], str) and isinstance(one[1], dict):
        return one
    raise ValueError("'providers' values must be either strings or (string, dict) tuples.")


def _log_warning(rule: str, place: str, message: str, advice: str) -> None:
    _log.info("%s: %s; %s [%s]", place, message, advice, rule)


class Engine(_Session):
    """An InferenceSession's `_sess`, with what programs call of the class that onnxruntime has there."""

    def run(self, *arguments: Any, **options: Any) -> Any:
        """sardonyx.Session.run, or (output names, inputs by name, run options)."""
        if len(arguments) < 2:
            return super().run(*arguments, **options)
        names, feeds, *rest = arguments
        cancel, added = _of_run(rest[0] if rest else None)
        try:
            return self.run_list(_listed(names), {**_fed(self, feeds), **added}, cancel)
        except _errors.Error as found:
            raise_running(found)

    def run_with_ort_values(self, feeds: dict[str, OrtValue], output_names: Sequence[str], run_options: RunOptions | None = None
                            ) -> OrtValueVector:
        given = values_of("run_with_ort_values", feeds, RuntimeError)
        names = _listed(output_names) or ()
        cancel, added = _of_run(run_options)
        try:
            values = self.run_values({**given, **added}, {}, cancel, None)
        except _errors.Error as found:
            raise_running(found)
        made = {one.name: value for one, value in zip(self.outputs, values)}
        for name in names:
            if name not in made:
                raise error(InvalidArgument, f"Invalid output name:{name}")
        return OrtValueVector(OrtValue(made[name]) for name in names)

    def run_with_iobinding(self, iobinding: IOBinding, run_options: RunOptions | None = None) -> None:
        _run_bound(self, iobinding, run_options, None)


def _listed(names: Any) -> list[str] | None:
    """Names of outputs from whatever gives them one after the other; None: all. A text is no list of names."""
    if names is None or type(names) is list:
        return names
    if isinstance(names, (str, bytes)) and names or not hasattr(names, "__iter__"):
        raise TypeError(f"names of outputs are given as a list, and {names!r} was given")
    made = list(names)
    if not made and hasattr(names, "__next__"):  # an empty list stands for all, a generator that ends at once for none
        raise error(InvalidArgument, "At least one output should be requested.")
    return made


def _fed(engine: _Session, feeds: Mapping[str, Any]) -> dict[str, Any]:
    """Inputs as the engine takes them."""
    types = {one.name: one.type for one in engine.inputs if "string" in one.type}
    return {name: value._value if isinstance(value, OrtValue) else _texts(value, types[name]) if name in types else value
            for name, value in feeds.items()}


def _texts(value: Any, type_text: str) -> Any:
    """In arrays of strings None is the text "None", as there."""
    if type_text.startswith("seq(") and isinstance(value, (list, tuple)):
        return [_texts(one, type_text[len("seq("):-1]) for one in value]
    if not type_text.startswith("string") or not isinstance(value, (list, tuple, np.ndarray)):
        return value
    array = np.asarray(value)
    nothing = [i for i, one in enumerate(array.flat) if one is None] if array.dtype == object else []
    if not nothing:
        return value
    texts = array.flatten()
    texts[nothing] = "None"
    return texts.reshape(array.shape)


def _of_run(options: RunOptions | None) -> tuple[Any, dict[str, Any]]:
    """What stops the run, and the inputs that adapters bring."""
    if options is None:
        return None, {}
    if not isinstance(options, RunOptions):
        raise TypeError(f"run_options is a RunOptions, and {type(options).__name__} was given")
    return options._cancel, {name: value._value for one in options._adapters for name, value in one._parameters.items()}


def _run_bound(engine: Engine, iobinding: IOBinding, options: RunOptions | None, profile: Profile | None) -> None:
    names = [one.name for one in engine.outputs]
    if not iobinding._outputs:
        raise RuntimeError("Error in execution: At least one output should be requested.")
    for name in iobinding._outputs:
        if name not in names:
            raise RuntimeError(f"Error in execution: Invalid output name: {name}")
    cancel, added = _of_run(options)
    try:
        iobinding._run(engine, cancel, profile, added)
    except _errors.Error as found:
        raise RuntimeError(f"Error in execution: {found}") from found


def _log_message(least: int, told: LogMessage) -> None:
    # What is wrong with models is worth less there: exporters write it.
    level = logging.INFO if told.rule else getattr(logging, told.level.upper())
    if level >= least:
        _log.log(level, "%s", told)


class Session:
    """What InferenceSession is made of; programs look at it for isinstance()."""

    # Programs read those with the names of onnxruntime's own.
    _sess: Engine
    _sess_options: SessionOptions
    _model_path: str | None
    _model_bytes: bytes | None
    _model_meta: ModelMetadata | None
    _providers: list[str]
    _provider_options: dict[str, dict[str, str]]
    _inputs_meta: list[NodeArg]
    _outputs_meta: list[NodeArg]
    _overridable_initializers: list[NodeArg]
    _profiling_start_time_ns: int
    _input_names: list[str]
    _output_names: list[str]
    _overridable_names: list[str]
    _profile: Profile | None
    _trace: weakref.finalize[..., Any] | None  # writes it
    _is_plain: bool  # nothing stands between a run and the engine
    _takes_texts: bool
    _made_in_us: int

    def __init__(self, enable_fallback: bool = True):
        self._enable_fallback = enable_fallback
        self._fallback_providers = [_state.PROVIDER]

    # --- what it says of itself ---------------------------------------------------------------

    def get_session_options(self) -> SessionOptions:
        return self._sess_options

    def get_inputs(self) -> list[NodeArg]:
        return self._inputs_meta

    def get_outputs(self) -> list[NodeArg]:
        return self._outputs_meta

    def get_overridable_initializers(self) -> list[NodeArg]:
        return self._overridable_initializers

    def get_modelmeta(self) -> ModelMetadata:
        if self._model_meta is None:
            self._model_meta = read_metadata(self._sess.model)
        return self._model_meta

    def get_input_memory_infos(self) -> list[OrtMemoryInfo]:
        return [OrtMemoryInfo("Cpu") for _ in self._inputs_meta]

    def get_output_memory_infos(self) -> list[OrtMemoryInfo]:
        return [OrtMemoryInfo("Cpu") for _ in self._outputs_meta]

    def get_input_epdevices(self) -> list[Any]:
        return [_state.EP_DEVICE for _ in self._inputs_meta]

    def get_providers(self) -> list[str]:
        return list(self._providers)

    def get_provider_options(self) -> dict[str, dict[str, str]]:
        return {name: dict(options) for name, options in self._provider_options.items()}

    def set_providers(self, providers: Any = None, provider_options: Any = None) -> None:
        """There is one provider: those that onnxruntime has besides are warned of, and the session stays as it is. RuntimeError
        for a name that nobody knows."""
        names, options = check_and_normalize_provider_args(providers, provider_options, _state.get_available_providers())
        for name in names:
            if name not in _state.get_all_providers():
                raise RuntimeError(f"Unknown Provider Type: {name}")
        self._providers = [_state.PROVIDER]
        self._provider_options = {_state.PROVIDER: dict(zip(names, options)).get(_state.PROVIDER, {})}

    def disable_fallback(self) -> None:
        self._enable_fallback = False

    def enable_fallback(self) -> None:
        self._enable_fallback = True

    # --- running ------------------------------------------------------------------------------

    def run(self, output_names: Sequence[str] | None, input_feed: dict[str, Any], run_options: RunOptions | None = None
            ) -> list[Any]:
        """The outputs that are named, all where none is, for inputs by name: arrays, lists, dicts or sparse tensors."""
        names = _listed(output_names)
        if self._is_plain and run_options is None:
            try:
                return self._sess.run_list(names, input_feed)
            except _errors.Error as found:
                may_be_taken = isinstance(found, _errors.BadInputError) and self._takes_texts
                if not may_be_taken and not any(isinstance(value, OrtValue) for value in input_feed.values()):
                    self._refuse(found, names, input_feed)
            except TypeError as found:
                raise RuntimeError(str(found)) from found
        return self._run_with_options(names, input_feed, run_options)

    def _run_with_options(self, names: list[str] | None, input_feed: dict[str, Any], run_options: RunOptions | None) -> list[Any]:
        feeds = _fed(self._sess, input_feed)
        cancel, added = _of_run(run_options)
        feeds.update(added)
        try:
            return self._sess.run_list(names, feeds, cancel, self._profile)
        except _errors.Error as found:
            self._refuse(found, names, feeds)

    def _refuse(self, found: _errors.Error, output_names: Sequence[str] | None, feeds: dict[str, Any]) -> NoReturn:
        """What onnxruntime says where names are wrong, else what the engine found."""
        if isinstance(found, _errors.BadInputError):
            self._require_inputs(list(feeds), found)
            for name in feeds:
                if name not in self._input_names:
                    raise error(InvalidArgument, f"Invalid input name: {name}") from found
            for name in output_names or ():
                if name not in self._output_names:
                    raise error(InvalidArgument, f"Invalid output name:{name}") from found
        for one in self._inputs_meta:
            _refuse_keys(one.type, feeds.get(one.name), found)
        raise_running(found)

    def _require_inputs(self, given: list[str], cause: Exception | None = None) -> None:
        missing = [one.name for one in self._inputs_meta if one.name not in given and not one.type.startswith("optional")]
        if missing:
            raise ValueError(f"Required inputs ({missing}) are missing from input feed ({given}).") from cause

    def run_async(self, output_names: Sequence[str] | None, input_feed: dict[str, Any],
                  callback: Callable[[list[Any], Any, str], Any], user_data: Any, run_options: RunOptions | None = None) -> None:
        """Returns at once; `callback` is called with the results, `user_data` and "", or with [], `user_data` and what went
        wrong, on a thread of the session."""
        if not callable(callback):
            raise TypeError(f"callback is a function, and {type(callback).__name__} was given")
        self._require_inputs(list(input_feed))
        names = _listed(output_names) or self._output_names
        feeds = _fed(self._sess, input_feed)
        cancel, added = _of_run(run_options)
        feeds.update(added)
        for name in names:
            if name not in self._output_names:
                raise error(InvalidArgument, f"Invalid output name:{name}")

        # Held until then: the end of a session with a profile reads what its runs write.
        def done(outputs: Any, found: BaseException | None, _session: Session = self) -> None:
            if found is None:
                callback([outputs[name] for name in names], user_data, "")
            else:
                callback([], user_data, str(while_running(found) if isinstance(found, _errors.Error) else found))

        try:
            self._sess._run_async(feeds, done, cancel, profile=self._profile)
        except _errors.Error as refused:
            self._refuse(refused, names, feeds)

    def run_with_ort_values(self, output_names: Sequence[str] | None, input_dict_ort_values: dict[str, OrtValue],
                            run_options: RunOptions | None = None) -> list[OrtValue]:
        names = _listed(output_names) or self._output_names
        feeds = values_of("run_with_ort_values", input_dict_ort_values, AttributeError)
        cancel, added = _of_run(run_options)
        feeds.update(added)
        try:
            values = self._sess.run_values(feeds, {}, cancel, self._profile)
        except _errors.Error as found:
            self._refuse(found, names, feeds)
        by_name = dict(zip(self._output_names, values))
        for name in names:
            if name not in by_name:
                raise error(InvalidArgument, f"Invalid output name:{name}")
        return [OrtValue(by_name[name]) for name in names]

    def run_with_ortvaluevector(self, run_options: RunOptions | None, feed_names: Sequence[str], feeds: Sequence[OrtValue],
                                fetch_names: Sequence[str], fetches: list[OrtValue], fetch_devices: Any) -> None:
        """Fills `fetches`; where it has values already, one for each name, these are written into."""
        given = {name: value._value for name, value in zip(feed_names, feeds)}
        if fetches and len(fetches) != len(fetch_names):
            raise error(InvalidArgument, f"fetch names has {len(fetch_names)} elements, but fetch has {len(fetches)} elements.")
        for name in fetch_names:
            if name not in self._output_names:
                raise error(InvalidArgument, f"Invalid output name:{name}")
        targets = {name: value._value for name, value in zip(fetch_names, fetches)}
        cancel, added = _of_run(run_options)
        try:
            by_name = dict(zip(self._output_names, self._sess.run_values({**given, **added}, targets, cancel, self._profile)))
            for name, value in zip(fetch_names, fetches):
                written(name, value, by_name[name])
        except _errors.Error as found:
            self._refuse(found, fetch_names, given)
        if not targets:
            fetches[:] = [OrtValue(by_name[name]) for name in fetch_names]

    def io_binding(self) -> IOBinding:
        return IOBinding(self)

    def run_with_iobinding(self, iobinding: IOBinding, run_options: RunOptions | None = None) -> None:
        if iobinding._session is not self._sess:
            raise ValueError("IOBinding must be used with the session that created it.")
        _run_bound(self._sess, iobinding, run_options, self._profile)

    # --- profiling and the rest ---------------------------------------------------------------

    def end_profiling(self) -> str:
        """Writes the trace of the runs so far and returns its path; "" where profiling is not enabled. A session that goes, or that
        is there when the interpreter ends, writes it by itself."""
        if self._trace is None:
            return ""
        path: str = self._trace() or ""
        self._trace = self._profile = None
        self._is_plain = True
        return path

    def get_profiling_start_time_ns(self) -> int:
        return self._profiling_start_time_ns

    def get_provider_graph_assignment_info(self) -> list[OrtEpAssignedSubgraph]:
        """Each node of the model, where the options have "session.record_ep_graph_assignment_info" as "1"."""
        if self._sess_options._config.get("session.record_ep_graph_assignment_info") != "1":
            raise error(Fail, "Session configuration entry 'session.record_ep_graph_assignment_info' must be set to \"1\" to retrieve "
                              "EP graph assignment information.")
        return assigned(self._sess.model)

    def get_tuning_results(self) -> list[Any]:
        return []

    def set_tuning_results(self, results: Any, *, error_on_invalid: bool = False) -> None:
        """Sardonyx has no results of tuning to set."""

    def set_ep_dynamic_options(self, options: dict[str, str]) -> None:
        """The provider has no options."""

    def release_captured_graph(self, graph_annotation_id: int = 0) -> None:
        """Nothing is captured."""

    def create_ortvalue_from_shape_and_type(self, shape: Sequence[int], element_type: Any, *_: Any) -> OrtValue:
        return OrtValue.ortvalue_from_shape_and_type(shape, element_type)


def _usable(processors: list[int]) -> list[int]:
    """Options may have been written for a larger machine: as there, an error is logged, and threads without a processor run anywhere."""
    mine = os.sched_getaffinity(0) if hasattr(os, "sched_getaffinity") else set(processors)
    others = [one + 1 for one in processors if one not in mine]
    if others:
        _log.error("session.intra_op_thread_affinities: processors %s are none that this process may use", others)
    return [one for one in processors if one in mine]


def _write_trace(profile: Profile, prefix: str, made_in_us: int, process: int) -> str:
    if os.getpid() != process:  # a fork's: the trace is its parent's
        return ""
    stamp = datetime.datetime.now().strftime("%Y-%m-%d_%H-%M-%S_%f")[:-3]
    path = f"{prefix}_{stamp}.json"
    events = [{"cat": "Session", "pid": process, "tid": 0, "dur": made_in_us, "ts": 0, "ph": "X", "name": "session_initialization",
               "args": {}}]
    places = {step.node: i for i, step in enumerate(profile.steps)}
    for event in profile.trace_events():
        # Whole microseconds, and the names of nodes, as readers of such files want them.
        event["ts"], event["dur"] = int(event["ts"]) + made_in_us, round(event["dur"])
        if event["cat"] == "Node":
            about = event["args"]
            place = places.get(event["name"], 0)
            event["name"] = _name_of_node(event["name"], about["op_name"], place) + "_kernel_time"
            about |= {"provider": _state.PROVIDER, "node_index": str(place)}
        events.append(event)
    pathlib.Path(path).write_text("[\n" + ",\n".join(map(json.dumps, events)) + "\n]\n")
    return path


def _names_of_sizes(dimensions: list[tuple[str, list[tuple[str, str]]]]) -> dict[str, list[str]]:
    return {name: [declared for declared, _ in one] for name, one in dimensions}


def _is_open(one: ValueInfo) -> bool:
    return one.kind == "tensor" and (one.shape is None or not all(isinstance(size, int) for size in one.shape))


# Config entries of the session's options that name files of packed weights.
_PACKED_FILES = {"packed": "sardonyx.packed", "cache_folder": "sardonyx.cache_folder"}


def _opened(source: str | bytes, files: dict[str, bytes], **options: Any) -> Model:
    """`files`: those of external data that `source`, a model's bytes, names."""
    if not files:
        return Model(source, **options)
    import tempfile

    with tempfile.TemporaryDirectory() as name:
        folder = pathlib.Path(name)
        for one, data in files.items():
            path = folder / one
            if not path.resolve().is_relative_to(folder.resolve()):
                raise error(InvalidArgument, f"'{one}' is no name of a file beside a model")
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_bytes(data)
        # What is mapped stays, although the files go: who pickles the model takes its elements along.
        made = Model(source, **{**options, "folder": name})
        made._source = _Source()
        return made


def _name_of_node(node: str, operator: str, place: int) -> str:
    """The own name of a node that steps call "Relu 'r'"; of one that has none the operator and its place, as there."""
    before = f"{operator} '"
    return node[len(before):-1] if node.startswith(before) and node.endswith("'") else f"{operator}_{place}"


def _is_small(path: str | None) -> bool:
    """Programs write one model after the other to the same file while sessions of earlier ones run: what costs nothing to be
    read is not mapped. As in src/ort_api/session.cc."""
    try:
        return path is not None and os.path.getsize(path) < 1 << 20
    except OSError:
        return False


def _saves_as_ort(options: SessionOptions) -> bool:
    """Whether the optimised model is asked for in the .ort format, decided as there: by the config entry, else by the path."""
    form = options._config.get("session.save_model_format", "")
    path = options.optimized_model_filepath
    return bool(path) and (form == "ORT" or not form and path.lower().endswith(".ort"))


def _refuse_keys(type_text: str, value: Any, cause: Exception) -> None:
    """What onnxruntime raises for a map with keys of another type than the input's."""
    if not isinstance(value, dict) or not type_text.startswith("map(int64,"):
        return
    for key in value:
        if not isinstance(key, numbers.Integral):
            raise RuntimeError(f"Unexpected key type  {type(key)}, it cannot be linked to C type int64_t") from cause


def _real_folder(path: str | None) -> str:
    """Where a model lies that a link leads to, as in the cache of a model hub, whose links for weights lead there, too."""
    return os.path.dirname(os.path.realpath(path)) if path is not None and os.path.islink(path) else ""


class InferenceSession(Session):
    """A model to be run, from a path or bytes.

    `providers` are names or (name, options) pairs, `provider_options` the options of names; there is one provider, that of
    the processor, and others are warned of. Raises the exceptions of onnxruntime.capi.onnxruntime_pybind11_state.
    """

    def __init__(self, path_or_bytes: str | bytes | os.PathLike[str], sess_options: SessionOptions | None = None,
                 providers: Sequence[Any] | None = None, provider_options: Sequence[dict[Any, Any]] | None = None, **kwargs: Any):
        super().__init__(enable_fallback=int(kwargs.get("enable_fallback", 1)) == 1)
        self._model_path: str | None = None
        self._model_bytes: bytes | None = None
        if isinstance(path_or_bytes, (str, os.PathLike)):
            self._model_path = os.fspath(path_or_bytes)
        elif isinstance(path_or_bytes, (bytes, bytearray, memoryview)):
            self._model_bytes = bytes(path_or_bytes)
        elif hasattr(path_or_bytes, "SerializeToString"):
            self._model_bytes = path_or_bytes.SerializeToString()
        else:
            raise TypeError(f"Unable to load from type '{type(path_or_bytes)}'")
        if sess_options is not None and not isinstance(sess_options, SessionOptions):
            raise TypeError(f"sess_options is a SessionOptions, and {type(sess_options).__name__} was given")
        self._sess_options = self._sess_options_initial = sess_options if sess_options is not None else SessionOptions()
        try:
            self.set_providers(providers, provider_options)
        except (ValueError, RuntimeError) as found:
            if not self._enable_fallback or not isinstance(providers, collections.abc.Iterable):
                raise
            warnings.warn(f"{found}; falling back to {self._fallback_providers}", stacklevel=2)
            self.set_providers(self._fallback_providers)
        from_model = kwargs.get("read_config_from_model", os.environ.get("ORT_LOAD_CONFIG_FROM_MODEL") == "1")
        self._make(bool(int(from_model)))

    def _make(self, options_from_model: bool) -> None:
        begin = time.monotonic_ns()
        options = self._sess_options
        if getattr(options, "_load_cancelled", False):
            from ._exceptions import ModelLoadCanceled

            raise error(ModelLoadCanceled, "Session initialization canceled due to user request.")
        if _saves_as_ort(options):
            raise error(NotImplemented, f"'{options.optimized_model_filepath}' is asked for in the .ort format, which Sardonyx reads and "
                                        "does not write; give optimized_model_filepath another ending, or the config entry "
                                        "session.save_model_format the value ONNX")
        chosen = options._engine_options()
        libraries = chosen.pop("libraries")
        chosen["processors"] = _usable(chosen["processors"])
        reads = _is_small(self._model_path) or options._config.get("sardonyx.read_into_memory") == "1"
        folder = options._config.get("session.model_external_initializers_file_folder_path", "")
        model = None
        if self._model_path is None and not self._model_bytes:
            raise error(InvalidArgument, "No graph was found in the protobuf.")
        try:
            files: dict[str, Any] = {name: options._config[key] for name, key in _PACKED_FILES.items() if options._config.get(key)}
            model = _opened(self._model_path if self._model_path is not None else self._model_bytes or b"", options._files,
                            folder=folder, libraries=libraries, warn=_log_warning, trusted_folder=_real_folder(self._model_path),
                            read_into_memory=reads, load_external_data=not options._initializers)
            if options_from_model:
                self._sess_options = options = read_options(model) or options
                chosen = {**chosen, **{name: value for name, value in options._engine_options().items() if name in ("threads", "fuse")}}
            severity = options.log_severity_level
            least = (severity + 1) * 10 if severity >= 0 else _log.getEffectiveLevel()
            chosen["log"] = functools.partial(_log_message, least)
            chosen["log_level"] = next((name for name, number in _LOG_LEVELS.items() if number >= least), "error")
            self._sess = Engine(model, seed=_state.seed(), **files, **chosen)
            sizes = self._open_sizes(model)
            if sizes:
                self._sess = Engine(model, seed=_state.seed(), dimensions=sizes, **files, **chosen)
        except _errors.Error as found:
            if any(found.location.startswith(one) for one in libraries):
                raise error(Fail, f"Failed to load library {found}") from found
            raise while_loading(found, self._model_path, was_read=model is not None) from found
        self._describe()
        self._save_optimized()
        self._made_in_us = (time.monotonic_ns() - begin) // 1000
        self._trace = None if self._profile is None else weakref.finalize(
            self, _write_trace, self._profile, options.profile_file_prefix, self._made_in_us, os.getpid())
        if least <= logging.DEBUG:
            _log.debug("a session of %s was made in %.3f ms", self._model_path or "a model from memory", self._made_in_us / 1000)
        self._profiling_start_time_ns = time.monotonic_ns()

    def _open_sizes(self, model: Model) -> dict[str, int]:
        """What the options say of sizes that are open; what fits no input is ignored, as there, and negative ones leave it open."""
        named, denoted = ({name: size for name, size in given.items() if name and size >= 0}
                          for given in (self._sess_options._sizes, self._sess_options._denoted_sizes))
        shapes = {one.name: one.shape or () for one in self._sess.inputs}
        names = {size for shape in shapes.values() for size in shape}
        sizes = {name: size for name, size in named.items() if name in names}
        if not named and not denoted:
            return sizes
        for name, dimensions in _core.input_dimensions(model._held):
            for axis, (size, (declared, denotation)) in enumerate(zip(shapes.get(name, ()), dimensions)):
                if isinstance(size, int):
                    continue
                if declared in named:  # also a name that Sardonyx takes for none: "?", "unk__12"
                    sizes[size or f"{name}.{axis}"] = named[declared]
                if denotation in denoted:
                    sizes[size or f"{name}.{axis}"] = denoted[denotation]
        return sizes

    def _describe(self) -> None:
        given = [one for one in self._sess.inputs if not one.optional]
        optional = [one for one in self._sess.inputs if one.optional]
        names = _names_of_sizes(_core.input_dimensions(self._sess.model._held))
        self._inputs_meta = [node_arg(one, names.get(one.name, ())) for one in given]
        self._overridable_initializers = [node_arg(one, names.get(one.name, ())) for one in optional]
        self._input_names = [one.name for one in self._sess.inputs]  # with those that have a default
        self._overridable_names = [one.name for one in optional]
        self._output_names = [one.name for one in self._sess.outputs]
        self._model_meta = None
        self._profile = Profile() if self._sess_options.enable_profiling else None
        self._is_plain = self._profile is None
        self._takes_texts = any("string" in one.type for one in self._sess.inputs)

    @functools.cached_property
    def _outputs_meta(self) -> list[NodeArg]:  # type: ignore[override]
        names = _names_of_sizes(_core.output_dimensions(self._sess.model._held))
        return [node_arg(one, names.get(one.name, ())) for one in self._known_outputs()]

    def _known_outputs(self) -> list[ValueInfo]:
        """With what inference says of sizes that the model leaves open."""
        outputs = self._sess.outputs
        if not any(_is_open(one) for one in outputs):
            return outputs
        names = {size for one in self._sess.inputs for size in one.shape or () if isinstance(size, str)}
        names -= {f"{one.name}.{i}" for one in self._sess.inputs for i in range(len(one.shape or ()))}
        inferred = {one.name: one.shape for one in infer_types(self._sess.model, sizes=self._sess._options["dimensions"]).values
                    if one.graph == ""}

        def known(one: ValueInfo) -> ValueInfo:
            found = inferred.get(one.name)
            if found is None or (one.shape is not None and len(one.shape) != len(found)):
                return one
            sizes = tuple(size if isinstance(size, int) or size in names else None for size in found)
            if one.shape is not None:
                sizes = tuple(size if isinstance(size, int) or not isinstance(other, int) else other
                              for size, other in zip(one.shape, sizes))
            return one._replace(shape=sizes)

        return [known(one) if _is_open(one) else one for one in outputs]

    def _save_optimized(self) -> None:
        path = self._sess_options.optimized_model_filepath
        if not path:
            return
        if str(path).endswith(".sdx"):
            options = self._sess_options
            pack(self._sess.model, path, threads=max(0, options.intra_op_num_threads), fuse=options._engine_options()["fuse"],
                 dimensions=self._sess._options["dimensions"])
            return
        # Weights beside the model are found from where it is written, too.
        config = self._sess_options._config
        beside = config.get("session.optimized_model_external_initializers_file_name", "")
        least = int(config.get("session.optimized_model_external_initializers_min_size_in_bytes", "1024"))
        try:
            self._sess.model.save(path, external_data=beside, threshold=least, embed=not beside, form="binary")
        except _errors.Error as found:
            raise error(Fail, str(found)) from found

    def __getstate__(self) -> dict[str, Any]:
        state = dict(self.__dict__)
        state["_profile"] = state["_trace"] = None
        return state
