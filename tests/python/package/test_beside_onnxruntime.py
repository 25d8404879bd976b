"""The same calls to onnxruntime and to Sardonyx in its place, and the same answers: types of what is returned, classes of exceptions,
attributes. Each case is a function of the module, the model's bytes and a folder; what it returns is compared, and what it raises."""

from __future__ import annotations

import gc
import pathlib
import threading
import warnings
from collections.abc import Callable
from typing import Any

import numpy as np
import onnx
import onnxruntime as theirs
import pytest
from onnx import helper, numpy_helper

import sardonyx.compat.onnxruntime as ours

CPU = ["CPUExecutionProvider"]
HEADER = '<ir_version: 10, opset_import: ["" : 21]> '
X = np.arange(6, dtype=np.float32).reshape(2, 3)
Case = Callable[[Any, bytes, pathlib.Path], Any]
CASES: dict[str, Case] = {}


def case(function: Case) -> Case:
    CASES[function.__name__] = function
    return function


def described(value: Any) -> Any:
    """What is comparable of a value of either module."""
    if isinstance(value, np.ndarray):
        return "array", str(value.dtype), value.shape, value.flags.c_contiguous, value.tolist()
    if hasattr(value, "name") and hasattr(value, "value"):
        return "enumeration", value.name, int(value)
    if isinstance(value, (str, int, float, bool, bytes, type(None))):
        return type(value).__name__, value
    if isinstance(value, (list, tuple)):
        return type(value).__name__, [described(one) for one in value]
    if isinstance(value, dict):
        return "dict", [(key, described(one)) for key, one in value.items()]
    if isinstance(value, type):
        return "class", value.__name__
    if type(value).__name__ == "OrtValue":
        return "OrtValue", value.data_type(), list(value.shape()) if value.is_tensor() else None, described(value.numpy())
    return "object", type(value).__name__


def outcome(function: Case, ort: Any, model: bytes, folder: pathlib.Path) -> Any:
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        try:
            made = "returned", described(function(ort, model, folder))
        except Exception as error:
            assert str(error), f"{type(error).__name__} without a message"
            made = "raised", type(error).__name__, isinstance(error, (ValueError, TypeError, RuntimeError))
    return made, sorted({one.category.__name__ for one in caught if "Specified provider" in str(one.message)})


def session(ort: Any, model: bytes, options: Any = None, **more: Any) -> Any:
    return ort.InferenceSession(model, options, providers=CPU, **more)


# --- making sessions -------------------------------------------------------------------------------


@case
def maps_of_a_classifier(ort, model, folder):
    made = []
    for labels in ('classlabels_strings = ["no", "yes"]', "classlabels_int64s = [3, 5]"):
        proto = onnx.parser.parse_model('<ir_version: 10, opset_import: ["" : 21, "ai.onnx.ml" : 3]> g (float[n,2] x) => (seq(map('
                                        + ("string" if "strings" in labels else "int64") + f', float)) y) {{ y = ai.onnx.ml.ZipMap <{labels}> (x) }}')
        one = ort.InferenceSession(proto.SerializeToString(), providers=CPU)
        x = np.array([[0.25, 0.75], [1, 0]], np.float32)
        value = one.run_with_ort_values(None, {"x": ort.OrtValue.ortvalue_from_numpy(x)})[0]
        made += [one.run(None, {"x": x})[0], value.data_type(), value.is_tensor_sequence()]
    return made


@case
def from_bytes(ort, model, folder):
    return session(ort, model).run(None, {"x": X})


@case
def from_a_path(ort, model, folder):
    (folder / "m.onnx").write_bytes(model)
    one = ort.InferenceSession(str(folder / "m.onnx"), providers=CPU)
    return one.run(None, {"x": X}), one._model_path == str(folder / "m.onnx")


@case
def from_a_pathlib_path(ort, model, folder):
    (folder / "m.onnx").write_bytes(model)
    return ort.InferenceSession(folder / "m.onnx", providers=CPU).run(None, {"x": X})


@case
def with_positional_options(ort, model, folder):
    return ort.InferenceSession(model, None, CPU).run(None, {"x": X})


@case
def with_options_by_name(ort, model, folder):
    return ort.InferenceSession(path_or_bytes=model, sess_options=ort.SessionOptions(), providers=CPU).run(None, {"x": X})


@case
def without_providers(ort, model, folder):
    return ort.InferenceSession(model).get_providers()


@case
def with_an_empty_list_of_providers(ort, model, folder):
    return ort.InferenceSession(model, providers=[]).get_providers()


@case
def with_a_provider_that_is_not_there(ort, model, folder):
    return ort.InferenceSession(model, providers=["TensorrtExecutionProvider", "CPUExecutionProvider"]).get_providers()


@case
def with_options_of_a_provider(ort, model, folder):
    one = ort.InferenceSession(model, providers=[("CPUExecutionProvider", {"use_arena": "1"})])
    return one.get_providers(), list(one.get_provider_options())


@case
def with_options_beside_providers(ort, model, folder):
    return ort.InferenceSession(model, providers=CPU, provider_options=[{}]).get_providers()


@case
def with_too_many_provider_options(ort, model, folder):
    return ort.InferenceSession(model, providers=CPU, provider_options=[{}, {}])


@case
def with_provider_options_that_are_no_dict(ort, model, folder):
    return ort.InferenceSession(model, providers=CPU, provider_options=[1])


@case
def with_providers_that_are_no_list(ort, model, folder):
    return ort.InferenceSession(model, providers=7)


@case
def with_a_provider_that_is_a_number(ort, model, folder):
    return ort.InferenceSession(model, providers=[7])


@case
def set_providers(ort, model, folder):
    one = session(ort, model)
    one.set_providers(CPU)
    return one.get_providers(), one.run(None, {"x": X})


@case
def fallback(ort, model, folder):
    one = session(ort, model)
    one.disable_fallback()
    one.enable_fallback()
    return one.run(None, {"x": X})


@case
def without_a_file(ort, model, folder):
    return ort.InferenceSession(str(folder / "none.onnx"), providers=CPU)


@case
def of_a_folder(ort, model, folder):
    return ort.InferenceSession(str(folder), providers=CPU)


@case
def of_garbage(ort, model, folder):
    return session(ort, b"\x00\x01\x02garbage")


@case
def of_a_cut_model(ort, model, folder):
    return session(ort, model[:-20])


@case
def of_nothing(ort, model, folder):
    return session(ort, b"")


@case
def of_none(ort, model, folder):
    return session(ort, None)


@case
def of_a_number(ort, model, folder):
    return session(ort, 7)


@case
def with_options_of_another_kind(ort, model, folder):
    return ort.InferenceSession(model, {"threads": 1}, providers=CPU)


@case
def of_a_model_with_an_unknown_operator(ort, model, folder):
    proto = onnx.load_model_from_string(model)
    proto.graph.node[0].op_type = "Nothing"
    return session(ort, proto.SerializeToString())


@case
def of_a_model_with_an_unknown_attribute(ort, model, folder):
    proto = onnx.load_model_from_string(model)
    proto.graph.node[0].attribute.append(helper.make_attribute("colour", 3))
    return session(ort, proto.SerializeToString())


@case
def of_a_model_whose_names_lead_nowhere(ort, model, folder):
    proto = onnx.load_model_from_string(model)
    proto.graph.node[0].input[1] = "nowhere"
    return session(ort, proto.SerializeToString())


@case
def of_a_model_whose_types_contradict(ort, model, folder):
    proto = onnx.load_model_from_string(model)
    proto.graph.initializer[0].CopyFrom(numpy_helper.from_array(np.array([1, 2, 3]), "b"))
    return session(ort, proto.SerializeToString())


@case
def of_a_model_without_versions(ort, model, folder):
    proto = onnx.load_model_from_string(model)
    del proto.opset_import[:]
    return session(ort, proto.SerializeToString())


# --- what it says ----------------------------------------------------------------------------------


@case
def inputs_and_outputs(ort, model, folder):
    one = session(ort, model)
    return [(arg.name, arg.type, arg.shape, str(arg)) for arg in [*one.get_inputs(), *one.get_outputs()]]


@case
def overridable_initializers(ort, model, folder):
    proto = onnx.load_model_from_string(model)
    proto.graph.input.append(helper.make_tensor_value_info("b", 1, [3]))
    one = session(ort, proto.SerializeToString())
    return ([(arg.name, arg.type, arg.shape) for arg in one.get_overridable_initializers()], [arg.name for arg in one.get_inputs()],
            one.run(["y"], {"x": X}), one.run(["y"], {"x": X, "b": np.zeros(3, np.float32)}))


@case
def model_meta(ort, model, folder):
    meta = session(ort, model).get_modelmeta()
    return (meta.producer_name, meta.graph_name, meta.domain, meta.description, meta.graph_description, meta.version,
            meta.custom_metadata_map)


@case
def options_of_a_session(ort, model, folder):
    options = ort.SessionOptions()
    options.intra_op_num_threads = 1
    options.log_severity_level = 3
    one = session(ort, model, options)
    read = one.get_session_options()
    return read.intra_op_num_threads, read.inter_op_num_threads, read.log_severity_level, read.graph_optimization_level


@case
def names_of_profiles(ort, model, folder):
    return session(ort, model).end_profiling() if False else isinstance(session(ort, model).get_profiling_start_time_ns(), int)


@case
def memory_infos(ort, model, folder):
    one = session(ort, model)
    return [info.name for info in one.get_input_memory_infos()], [info.name for info in one.get_output_memory_infos()]


# --- running ---------------------------------------------------------------------------------------


@case
def all_outputs_for_none(ort, model, folder):
    return session(ort, model).run(None, {"x": X})


@case
def all_outputs_for_an_empty_list(ort, model, folder):
    return session(ort, model).run([], {"x": X})


@case
def one_output(ort, model, folder):
    return session(ort, model).run(["twice"], {"x": X})


@case
def an_output_twice(ort, model, folder):
    return session(ort, model).run(["y", "y"], {"x": X})


@case
def an_unknown_output(ort, model, folder):
    return session(ort, model).run(["z"], {"x": X})


@case
def an_unknown_input(ort, model, folder):
    return session(ort, model).run(None, {"x": X, "z": X})


@case
def no_input(ort, model, folder):
    return session(ort, model).run(None, {})


@case
def another_rank(ort, model, folder):
    return session(ort, model).run(None, {"x": X[0]})


@case
def another_size(ort, model, folder):
    return session(ort, model).run(None, {"x": X[:, :2]})


@case
def another_type(ort, model, folder):
    return session(ort, model).run(None, {"x": X.astype(np.float64)})


@case
def a_list(ort, model, folder):
    return session(ort, model).run(None, {"x": X.tolist()})


@case
def nothing_for_an_input(ort, model, folder):
    return session(ort, model).run(None, {"x": None})


@case
def an_array_the_other_way_round(ort, model, folder):
    return session(ort, model).run(None, {"x": np.asfortranarray(X)})


@case
def an_array_with_steps(ort, model, folder):
    return session(ort, model).run(None, {"x": np.repeat(X, 2, axis=1)[:, ::2]})


@case
def an_array_of_big_endian_numbers(ort, model, folder):
    return [type(one).__name__ for one in session(ort, model).run(None, {"x": X.astype(">f4").astype("=f4")})]


@case
def no_rows(ort, model, folder):
    return session(ort, model).run(None, {"x": np.zeros((0, 3), np.float32)})


def names_from(make: Callable[[], Any]) -> Case:
    def runs(ort, model, folder):
        one, value = session(ort, model), ort.OrtValue.ortvalue_from_numpy(X)
        made = one.run(make(), {"x": X}), one.run(make(), {"x": X}, ort.RunOptions()), one.run_with_ort_values(make(), {"x": value})
        told, ended = [], threading.Event()
        one = session(ort, model, threads(ort))
        one.run_async(make(), {"x": X}, lambda *answer: (told.append(answer), ended.set()), None)
        ended.wait()
        return made, told

    return runs


CASES["names_from_a_tuple"] = names_from(lambda: ("twice", "y"))
CASES["names_from_a_generator"] = names_from(lambda: (name for name in ["twice", "y"]))
CASES["names_from_a_map"] = names_from(lambda: map(str, ["twice", "y"]))
CASES["names_from_keys_of_a_dict"] = names_from({"twice": 1, "y": 2}.keys)
CASES["names_from_a_set"] = names_from(lambda: {"y"})
CASES["names_from_a_generator_without_any"] = names_from(lambda: (name for name in []))
CASES["names_from_a_text"] = names_from(lambda: "y")
CASES["names_from_a_number"] = names_from(lambda: 3)


@case
def nothing_in_arrays_of_texts(ort, model, folder):
    texts = onnx.parser.parse_model(HEADER + "g (string[n] x) => (string[n] y) { y = Identity(x) }").SerializeToString()
    lists = onnx.parser.parse_model(HEADER + "g (seq(string[n]) x) => (seq(string[n]) y) { y = Identity(x) }").SerializeToString()
    array, one = np.array(["a", None, 3, 2.5], object), session(ort, texts)
    return (one.run(None, {"x": array}), one.run(None, {"x": ["a", None]}), one.run(["y"], {"x": array}, ort.RunOptions()),
            session(ort, lists).run(None, {"x": [array, array[:2]]}))


@case
def options_of_a_run(ort, model, folder):
    options = ort.RunOptions()
    options.log_severity_level = 4
    options.logid = "run"
    options.add_run_config_entry("memory.enable_memory_arena_shrinkage", "cpu:0")
    return session(ort, model).run(None, {"x": X}, options), session(ort, model).run(None, {"x": X}, run_options=options)


@case
def a_terminated_run(ort, model, folder):
    options = ort.RunOptions()
    options.terminate = True
    return session(ort, model).run(None, {"x": X}, options)


@case
def a_run_after_a_terminated_one(ort, model, folder):
    options, one = ort.RunOptions(), session(ort, model)
    options.terminate = True
    try:
        one.run(None, {"x": X}, options)
    except Exception:
        pass
    options.terminate = False
    return one.run(None, {"x": X}, options)


@case
def a_run_from_many_threads(ort, model, folder):
    one, made = session(ort, model), []
    threads = [threading.Thread(target=lambda: made.append(one.run(["y"], {"x": X})[0].tolist())) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    return made


@case
def outputs_outlive_their_session(ort, model, folder):
    one = session(ort, model)
    made = one.run(None, {"x": X})
    del one
    gc.collect()
    return made


@case
def outputs_can_be_written_to(ort, model, folder):
    one = session(ort, model)
    (first,) = one.run(["y"], {"x": X})
    first[:] = 0
    return one.run(["y"], {"x": X}), first.flags.writeable, first.flags.owndata in (True, False)


@case
def a_callback(ort, model, folder):
    one, told, ended = session(ort, model, threads(ort)), [], threading.Event()

    def done(results, user_data, error):
        told.append((results, user_data, error))
        ended.set()

    answer = one.run_async(["y"], {"x": X}, done, {"mine": 1})
    ended.wait()
    return answer, told


@case
def a_callback_of_a_failing_run(ort, model, folder):
    one, told, ended = session(ort, model, threads(ort)), [], threading.Event()

    def done(results, user_data, error):
        told.append((len(results), user_data, bool(error)))
        ended.set()

    one.run_async(["y"], {"x": X[:, :2]}, done, None)
    ended.wait()
    return told


@case
def a_callback_without_inputs(ort, model, folder):
    return session(ort, model, threads(ort)).run_async(["y"], {}, lambda *told: None, None)


def threads(ort: Any) -> Any:
    options = ort.SessionOptions()
    options.intra_op_num_threads = 2
    return options


# --- values of the engine --------------------------------------------------------------------------


@case
def an_ort_value(ort, model, folder):
    value = ort.OrtValue.ortvalue_from_numpy(X)
    return (value, value.device_name(), value.shape(), value.data_type(), value.element_type(), value.has_value(), value.is_tensor(),
            value.is_sparse_tensor(), value.is_tensor_sequence(), value.tensor_size_in_bytes(), isinstance(value.data_ptr(), int))


@case
def an_ort_value_of_strings(ort, model, folder):
    value = ort.OrtValue.ortvalue_from_numpy(np.array(["a", "bc"], object))
    return value.data_type(), value.shape(), value.numpy()


@case
def an_ort_value_of_a_shape(ort, model, folder):
    value = ort.OrtValue.ortvalue_from_shape_and_type([2, 3], np.float32)
    value.update_inplace(X)
    return value.shape(), value.numpy()


@case
def an_ort_value_of_a_number_of_a_type(ort, model, folder):
    return ort.OrtValue.ortvalue_from_shape_and_type([2], onnx.TensorProto.INT64).data_type()


@case
def an_ort_value_on_another_device(ort, model, folder):
    return ort.OrtValue.ortvalue_from_numpy(X, "cuda", 0)


@case
def an_update_of_another_shape(ort, model, folder):
    ort.OrtValue.ortvalue_from_shape_and_type([2, 3], np.float32).update_inplace(X[0])


@case
def runs_with_ort_values(ort, model, folder):
    return session(ort, model).run_with_ort_values(["y"], {"x": ort.OrtValue.ortvalue_from_numpy(X)})


@case
def runs_take_ort_values(ort, model, folder):
    return session(ort, model).run(["y"], {"x": ort.OrtValue.ortvalue_from_numpy(X)})


@case
def runs_with_ort_values_without_one(ort, model, folder):
    return session(ort, model).run_with_ort_values(["y"], {})


@case
def runs_with_arrays_for_ort_values(ort, model, folder):
    return session(ort, model).run_with_ort_values(None, {"x": X})


@case
def runs_with_arrays_for_ort_values_below(ort, model, folder):
    return session(ort, model)._sess.run_with_ort_values({"x": X}, ["y"], None)


@case
def dlpack(ort, model, folder):
    value = ort.OrtValue.ortvalue_from_numpy(X.copy())
    return np.from_dlpack(value), value.__dlpack_device__()


@case
def bindings(ort, model, folder):
    one = session(ort, model)
    binding = one.io_binding()
    binding.bind_cpu_input("x", X)
    binding.bind_output("y")
    binding.bind_output("twice")
    one.run_with_iobinding(binding)
    return binding.copy_outputs_to_cpu(), binding.get_outputs(), binding.synchronize_inputs(), binding.synchronize_outputs()


@case
def bindings_to_memory(ort, model, folder):
    one = session(ort, model)
    into = np.zeros((2, 3), np.float32)
    binding = one.io_binding()
    binding.bind_input("x", "cpu", 0, np.float32, X.shape, X.ctypes.data)
    binding.bind_output("y", "cpu", 0, np.float32, into.shape, into.ctypes.data)
    one.run_with_iobinding(binding)
    return into


@case
def bindings_of_ort_values(ort, model, folder):
    one = session(ort, model)
    into = ort.OrtValue.ortvalue_from_shape_and_type([2, 3], np.float32)
    binding = one.io_binding()
    binding.bind_ortvalue_input("x", ort.OrtValue.ortvalue_from_numpy(X))
    binding.bind_ortvalue_output("y", into)
    one.run_with_iobinding(binding)
    return into, binding.get_outputs()


def bound_to(shape: tuple[int, ...], dtype: Any, by_address: bool) -> Case:
    def runs(ort, model, folder):
        one, into = session(ort, model), np.zeros(shape, dtype)
        binding = one.io_binding()
        binding.bind_cpu_input("x", X)
        if by_address:
            binding.bind_output("y", "cpu", 0, dtype, shape, into.ctypes.data)
        else:
            binding.bind_ortvalue_output("y", ort.OrtValue.ortvalue_from_numpy(into))
        one.run_with_iobinding(binding)
        return into, binding.copy_outputs_to_cpu()

    return runs


def fetched_into(shape: tuple[int, ...], dtype: Any, names: tuple[str, ...] = ("y",)) -> Case:
    def runs(ort, model, folder):
        vector, value = ort.capi.onnxruntime_pybind11_state.OrtValueVector, ort.OrtValue.ortvalue_from_numpy
        one, into, feeds, fetches = session(ort, model), np.zeros(shape, dtype), vector(), vector()
        feeds.push_back(value(X)._ortvalue)
        fetches.push_back(value(into)._ortvalue)
        one.run_with_ortvaluevector(ort.RunOptions(), ["x"], feeds, list(names), fetches, [ort.OrtDevice.make("cpu", 0)._get_c_device()] * 2)
        return into, len(fetches)

    return runs


for _shape, _dtype in [((2, 3), np.float32), ((4, 3), np.float32), ((1, 3), np.float32), ((0, 3), np.float32), ((3, 2), np.float32),
                       ((6,), np.float32), ((2, 3, 1), np.float32), ((2, 3), np.float64), ((2, 3), np.int32)]:
    _text = f"{np.dtype(_dtype).name}_{'x'.join(map(str, _shape))}"
    CASES[f"an_output_bound_to_{_text}"] = bound_to(_shape, _dtype, False)
    CASES[f"an_output_bound_to_memory_of_{_text}"] = bound_to(_shape, _dtype, True)
    CASES[f"an_output_fetched_into_{_text}"] = fetched_into(_shape, _dtype)
CASES["two_outputs_fetched_into_one_value"] = fetched_into((2, 3), np.float32, ("y", "twice"))


@case
def a_binding_of_an_array_for_an_ort_value(ort, model, folder):
    session(ort, model).io_binding().bind_ortvalue_output("y", X)


@case
def a_binding_of_an_unknown_input(ort, model, folder):
    session(ort, model).io_binding().bind_cpu_input("z", X)


@case
def a_binding_of_an_unknown_output(ort, model, folder):
    one = session(ort, model)
    binding = one.io_binding()
    binding.bind_cpu_input("x", X)
    binding.bind_output("z")
    one.run_with_iobinding(binding)


@case
def a_binding_without_inputs(ort, model, folder):
    one = session(ort, model)
    binding = one.io_binding()
    binding.bind_output("y")
    one.run_with_iobinding(binding)


@case
def a_binding_that_is_cleared(ort, model, folder):
    one = session(ort, model)
    binding = one.io_binding()
    binding.bind_cpu_input("x", X)
    binding.bind_output("y")
    one.run_with_iobinding(binding)
    binding.clear_binding_outputs()
    binding.bind_output("twice")
    binding.clear_binding_inputs()
    binding.bind_cpu_input("x", X + 1)
    one.run_with_iobinding(binding)
    return binding.copy_outputs_to_cpu()


# --- options and the process -----------------------------------------------------------------------


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


# Where the two differ, and why.
DIFFERENT = {
    "with_providers_that_are_no_list": "a ValueError that says what providers are, not what Python says of an integer",
    "with_options_of_another_kind": "a TypeError that says what options are, not which attribute another object lacks",
    "of_a_model_with_an_unknown_attribute": "what nobody reads is mended and logged (docs/lenient.md)",
    "of_a_model_without_versions": "the version is told from the operators and logged (docs/lenient.md)",
    "of_a_model_whose_names_lead_nowhere": "InvalidGraph, as other rules that a model breaks",
    "of_a_model_whose_types_contradict": "InvalidGraph, as other rules that a model breaks",
    "nothing_for_an_input": "InvalidArgument before anything runs, not a failure of the first node that reads it",
    "an_ort_value_of_strings": "strings are values like others",
}


@pytest.fixture(scope="module")
def affine() -> bytes:
    proto = onnx.parser.parse_model('<ir_version: 10, opset_import: ["" : 21], producer_name: "us", model_version: 3> '
                                    "affine (float[rows,3] x) => (float[rows,3] y, float[rows,3] twice) "
                                    "{ twice = Add(x, x) y = Add(twice, b) }")
    proto.graph.initializer.append(numpy_helper.from_array(np.array([10, 20, 30], np.float32), "b"))
    proto.metadata_props.add(key="who", value="us")
    return proto.SerializeToString()


@pytest.mark.parametrize("name", CASES)
def test_the_same_calls(name, affine, tmp_path):
    folders = [tmp_path / "ours", tmp_path / "theirs"]
    for folder in folders:
        folder.mkdir()
    mine, other = (outcome(CASES[name], ort, affine, folder) for ort, folder in zip((ours, theirs), folders))
    if name in DIFFERENT:
        assert mine != other, f"{name} is alike by now"
    else:
        assert mine == other


# --- weights in blocks, for onnxruntime.quantization ------------------------------------------------


def numbers_of(packed: np.ndarray, bits: int) -> np.ndarray:
    parts = packed[..., None] >> (bits * np.arange(8 // bits, dtype=np.uint8)) & (2**bits - 1)
    return parts.reshape(*packed.shape[:-1], -1).astype(int)


@pytest.mark.parametrize("symmetric", [True, False])
@pytest.mark.parametrize("kind", [np.float32, np.float16])
@pytest.mark.parametrize(("rows", "columns", "block"), [(64, 5, 32), (50, 7, 16), (33, 3, 64), (96, 4, 32)])
@pytest.mark.parametrize("bits", [2, 4, 8])
def test_blocks_by_column(bits, rows, columns, block, kind, symmetric):
    draws = np.random.default_rng(bits * rows)
    blocks = -(-rows // block)
    weights = np.zeros((blocks * block, columns), kind)
    weights[:rows] = draws.standard_normal((rows, columns))
    weights[:, -1] = abs(weights[:, -1])
    weights[:block, 0] = 0
    made = []
    for ort in (ours, theirs):
        packed = np.zeros((columns, blocks, block * bits // 8), np.uint8)
        zeros = np.zeros((columns, -(-blocks // (8 // bits))), np.uint8)
        scales = np.zeros((columns, blocks), kind)
        getattr(ort.capi._pybind_state, f"quantize_matmul_{bits}bits")(packed, weights, scales, zeros, block, columns, rows, symmetric)
        # What lies behind the last row is anything there.
        made.append((numbers_of(packed, bits).reshape(columns, -1)[:, :rows], scales, numbers_of(zeros, bits)[:, :blocks]))
    (mine, my_scales, my_zeros), (other, their_scales, their_zeros) = made
    np.testing.assert_array_equal(my_scales, their_scales)
    np.testing.assert_array_equal(my_zeros, their_zeros)
    # Of halves, numbers in the middle between two may go either way.
    assert abs(mine - other).max() <= (kind == np.float16) and (mine != other).mean() < 0.02
    assert len(np.unique(other)) > 2


@pytest.mark.parametrize("symmetric", [True, False])
@pytest.mark.parametrize(("rows", "columns", "block"), [(64, 5, 32), (33, 3, 64), (64, 4, 64)])
def test_blocks_for_dequantize_linear(rows, columns, block, symmetric):
    weights = np.random.default_rng(rows).standard_normal((rows, columns)).astype(np.float32)
    blocks = -(-rows // block)
    made = []
    for ort in (ours, theirs):
        packed, zeros = np.zeros((rows * columns + 1) // 2, np.uint8), np.zeros((columns * blocks + 1) // 2, np.uint8)
        scales = np.zeros((blocks, columns), np.float32)
        signed = ort.capi._pybind_state.quantize_qdq_matmul_4bits(packed, weights, scales, zeros, block, columns, rows, symmetric)
        made.append((packed.tolist(), zeros.tolist(), scales.tolist(), signed))
    assert made[0] == made[1] and any(made[0][0])
