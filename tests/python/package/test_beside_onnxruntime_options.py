"""Options and what is the process's beside onnxruntime's (beside_onnxruntime.py)."""

from __future__ import annotations

import gc
import json
import pathlib
from collections.abc import Callable
from typing import Any

import numpy as np
import onnx
import pytest
from onnx import numpy_helper

from .beside_onnxruntime import CPU, HEADER, X, Cases, session

case = Cases(different={})


@case
def defaults_of_options(ort, model, folder):
    options = ort.SessionOptions()
    return [(name, getattr(options, name)) for name in (
        "enable_cpu_mem_arena", "enable_mem_pattern", "enable_mem_reuse", "enable_profiling", "execution_mode", "execution_order",
        "graph_optimization_level", "inter_op_num_threads", "intra_op_num_threads", "log_severity_level", "log_verbosity_level", "logid",
        "optimized_model_filepath", "use_deterministic_compute")]


@case
def an_unknown_option(ort, model, folder):
    ort.SessionOptions().number_of_cats = 9


@case
def an_option_of_another_type(ort, model, folder):
    ort.SessionOptions().intra_op_num_threads = "many"


class Yes:
    def __bool__(self) -> bool:
        return True


class Long:
    def __len__(self) -> int:
        return 1


@case
def truth_values_of_options(ort, model, folder):
    made = []
    for options, name in ((ort.SessionOptions(), "enable_profiling"), (ort.RunOptions(), "terminate"),
                          (ort.RunOptions(), "only_execute_path_to_fetches")):
        for value in (0, 1, 2, None, True, np.True_, 0.0, 1.5, np.int64(1), np.array(True), Yes(), "", "yes", b"", [], [1], {}, Long()):
            try:
                setattr(options, name, value)
                made.append(getattr(options, name))
            except TypeError:
                made.append("TypeError")
    return made


def taken(call: Callable[[Any], Any], *values: Any) -> list[str]:
    """For each value "" or the class of what `call` raises for it."""
    made = []
    for value in values:
        try:
            call(value)
            made.append("")
        except Exception as error:
            made.append(type(error).__name__)
    return made


@case
def texts_and_numbers_of_options(ort, model, folder):
    options = ort.SessionOptions()
    options.logid, options.profile_file_prefix, options.optimized_model_filepath = b"mine", b"trace", b"other.onnx"
    return (options.logid, options.profile_file_prefix, options.optimized_model_filepath,
            [taken(lambda value, name=name: setattr(options, name, value), 1, -1, np.int64(2), 2**31, -2**31 - 1, 2**40, 1.0, None)
             for name in ("intra_op_num_threads", "inter_op_num_threads", "log_severity_level")])


@case
def config_entries_of_other_types(ort, model, folder):
    options, run_options = ort.SessionOptions(), ort.RunOptions()
    options.add_session_config_entry("bytes", b"text")
    return (options.get_session_config_entry("bytes"), taken(options.get_session_config_entry, 1),
            taken(lambda value: options.add_session_config_entry("key", value), "text", b"bytes", 1, True, 1.5, folder),
            taken(lambda key: options.add_session_config_entry(key, "value"), "text", b"bytes", 1),
            taken(lambda value: run_options.add_run_config_entry("key", value), "text", b"bytes", 1, True, 1.5, folder),
            taken(lambda key: run_options.add_run_config_entry(key, "value"), "text", b"bytes", 1))


@case
def sizes_of_other_types(ort, model, folder):
    options = ort.SessionOptions()
    return [(taken(lambda size: override("a", size), 1, np.int64(2), True, "1", 1.0, None), taken(lambda name: override(name, 1), "a", 3))
            for override in (options.add_free_dimension_override_by_name, options.add_free_dimension_override_by_denotation)]


@case
def config_entries(ort, model, folder):
    options = ort.SessionOptions()
    options.add_session_config_entry("session.set_denormal_as_zero", "1")
    return options.get_session_config_entry("session.set_denormal_as_zero"), session(ort, model, options).run(None, {"x": X})


@case
def a_config_entry_that_is_not_there(ort, model, folder):
    return ort.SessionOptions().get_session_config_entry("no.such.entry")


@case
def every_optimization_level(ort, model, folder):
    made = []
    for level in ("ORT_DISABLE_ALL", "ORT_ENABLE_BASIC", "ORT_ENABLE_EXTENDED", "ORT_ENABLE_ALL"):
        options = ort.SessionOptions()
        options.graph_optimization_level = getattr(ort.GraphOptimizationLevel, level)
        made.append((options.graph_optimization_level, session(ort, model, options).run(None, {"x": X})))
    return made


@case
def both_execution_modes(ort, model, folder):
    made = []
    for mode in ("ORT_SEQUENTIAL", "ORT_PARALLEL"):
        options = ort.SessionOptions()
        options.execution_mode = getattr(ort.ExecutionMode, mode)
        made.append(session(ort, model, options).run(None, {"x": X}))
    return made


@case
def an_initializer_instead(ort, model, folder):
    options, value = ort.SessionOptions(), ort.OrtValue.ortvalue_from_numpy(np.ones(3, np.float32))
    options.add_initializer("b", value)
    return session(ort, model, options).run(["y"], {"x": X})


@case
def a_size_by_name(ort, model, folder):
    options = ort.SessionOptions()
    options.add_free_dimension_override_by_name("rows", 2)
    return [arg.shape for arg in session(ort, model, options).get_inputs()]


@case
def a_library_that_is_not_there(ort, model, folder):
    options = ort.SessionOptions()
    options.register_custom_ops_library(str(folder / "none.so"))
    return session(ort, model, options)


@case
def a_library_that_is_registered_and_not_there(ort, model, folder):
    ort.SessionOptions().register_custom_ops_library(str(folder / "none.so"))


@case
def a_library_that_is_registered_and_is_none(ort, model, folder):
    (folder / "text.so").write_text("no library")
    ort.SessionOptions().register_custom_ops_library(str(folder / "text.so"))


@case
def a_library_that_is_a_number(ort, model, folder):
    ort.SessionOptions().register_custom_ops_library(3)


def weighty(value: float, size: int) -> onnx.ModelProto:
    proto = onnx.parser.parse_model(HEADER + f"g (float[{size}] x) => (float[{size}] y) {{ y = Add(x, w) }}")
    proto.graph.initializer.append(numpy_helper.from_array(np.full(size, value, np.float32), "w"))
    return proto


@case
def another_model_over_the_file_of_a_session(ort, model, folder):
    onnx.save(weighty(1, 200_000), folder / "m.onnx")
    one = ort.InferenceSession(folder / "m.onnx", providers=CPU)
    onnx.save(weighty(2, 200_000), folder / "m.onnx")
    return [set(made.tolist()) for made in one.run(None, {"x": np.zeros(200_000, np.float32)})] == [{1.0}]


@case
def another_model_over_a_file_that_is_read_into_memory(ort, model, folder):
    onnx.save(weighty(1, 500_000), folder / "m.onnx")
    options = ort.SessionOptions()
    options.add_session_config_entry("sardonyx.read_into_memory", "1")
    one = ort.InferenceSession(folder / "m.onnx", options, providers=CPU)
    onnx.save(weighty(2, 500_000), folder / "m.onnx")
    return [set(made.tolist()) for made in one.run(None, {"x": np.zeros(500_000, np.float32)})] == [{1.0}]


@case
def the_optimized_model(ort, model, folder):
    options = ort.SessionOptions()
    options.optimized_model_filepath = str(folder / "optimized.onnx")
    session(ort, model, options)
    return ort.InferenceSession(str(folder / "optimized.onnx"), providers=CPU).run(["y"], {"x": X})


@case
def profiles(ort, model, folder):
    options = ort.SessionOptions()
    options.enable_profiling = True
    options.profile_file_prefix = str(folder / "profile")
    one = session(ort, model, options)
    one.run(None, {"x": X})
    path = one.end_profiling()
    return pathlib.Path(path).exists(), pathlib.Path(path).name.startswith("profile"), path.endswith(".json")


@case
def profiles_that_nobody_ends(ort, model, folder):
    for end in (False, True):
        options = ort.SessionOptions()
        options.enable_profiling = True
        options.profile_file_prefix = str(folder / "profile")
        one = session(ort, model, options)
        one.run(None, {"x": X})
        if end:
            one.end_profiling()
        del one
        gc.collect()
    return [any(event["cat"] == "Node" for event in json.loads(path.read_text())) for path in folder.glob("profile*.json")]


@case
def the_process(ort, model, folder):
    return (ort.get_available_providers()[-1:], "CPUExecutionProvider" in ort.get_all_providers(), ort.get_device(), type(ort.__version__),
            ort.set_default_logger_severity(3), ort.set_seed(7), ort.disable_telemetry_events())


@case
def a_severity_that_there_is_not(ort, model, folder):
    return ort.set_default_logger_severity(9)


@case
def attributes_that_are_not_there(ort, model, folder):
    return session(ort, model).nothing


@case
def two_sessions_of_one_model(ort, model, folder):
    one, other = session(ort, model), session(ort, model)
    del one
    return other.run(None, {"x": X})


@case
def a_subclass(ort, model, folder):
    class Mine(ort.InferenceSession):
        def run(self, names, feeds, options=None):
            return ["mine", *super().run(names, feeds, options)]

    one = Mine(model, providers=CPU)
    return isinstance(one, ort.InferenceSession), one.run(["y"], {"x": X})


@pytest.mark.parametrize("name", case)
def test_the_same_calls(name, tmp_path):
    case.compare(name, tmp_path)
