"""Sessions, runs, values and bindings beside onnxruntime's (beside_onnxruntime.py)."""

from __future__ import annotations

import gc
import threading
from collections.abc import Callable
from typing import Any

import numpy as np
import onnx
import pytest
from onnx import helper, numpy_helper

from .beside_onnxruntime import CPU, HEADER, X, Case, Cases, session

case = Cases({
    "with_providers_that_are_no_list": "a ValueError that says what providers are, not what Python says of an integer",
    "with_options_of_another_kind": "a TypeError that says what options are, not which attribute another object lacks",
    "of_a_model_with_an_unknown_attribute": "what nobody reads is mended and logged (docs/lenient.md)",
    "of_a_model_without_versions": "the version is told from the operators and logged (docs/lenient.md)",
    "of_a_model_whose_names_lead_nowhere": "InvalidGraph, as other rules that a model breaks",
    "of_a_model_whose_types_contradict": "InvalidGraph, as other rules that a model breaks",
    "nothing_for_an_input": "InvalidArgument before anything runs, not a failure of the first node that reads it",
    "an_ort_value_of_strings": "strings are values like others",
})


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
def with_a_set_of_providers(ort, model, folder):
    return ort.InferenceSession(model, providers={"CPUExecutionProvider"}).get_providers()


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
def nothing_for_all_inputs(ort, model, folder):
    return session(ort, model).run(None, None)


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


case["names_from_a_tuple"] = names_from(lambda: ("twice", "y"))
case["names_from_a_generator"] = names_from(lambda: (name for name in ["twice", "y"]))
case["names_from_a_map"] = names_from(lambda: map(str, ["twice", "y"]))
case["names_from_keys_of_a_dict"] = names_from({"twice": 1, "y": 2}.keys)
case["names_from_a_set"] = names_from(lambda: {"y"})
case["names_from_a_generator_without_any"] = names_from(lambda: (name for name in []))
case["names_from_a_text"] = names_from(lambda: "y")
case["names_from_a_number"] = names_from(lambda: 3)


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
def options_of_a_run_that_are_a_dict(ort, model, folder):
    session(ort, model).run(None, {"x": X}, {"terminate": False})


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
def a_callback_that_is_no_function(ort, model, folder):
    session(ort, model, threads(ort)).run_async(None, {"x": X}, 3, None)


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
def an_ort_value_of_a_sequence(ort, model, folder):
    made = []
    for kind, array in (("float", X[0]), ("int64", np.arange(2))):
        proto = onnx.parser.parse_model(HEADER + f"g ({kind}[n] x) => (seq({kind}[n]) y) {{ y = SequenceConstruct(x) }}")
        one = session(ort, proto.SerializeToString())
        binding = one.io_binding()
        binding.bind_cpu_input("x", array)
        binding.bind_output("y")
        one.run_with_iobinding(binding)
        (value,) = binding.get_outputs()
        made.append((value.data_type(), value.element_type(), value.is_tensor_sequence(), value.has_value()))
    return made


@case
def sparse_tensors_whose_parts_do_not_fit(ort, model, folder):
    device, values, refused = ort.OrtDevice.make("cpu", 0), np.ones(2, np.float32), []
    coordinates, compressed = ort.SparseTensor.sparse_coo_from_numpy, ort.SparseTensor.sparse_csr_from_numpy
    for indices in ([0], [0, 0, 1], [[0, 0, 0], [1, 1, 1]], [0, 0, 1, 1], [[0, 0], [1, 1]], [0, 4]):
        try:
            coordinates([3, 3], values, np.array(indices), device)
            refused.append(False)
        except RuntimeError:
            refused.append(True)
    for inner, outer in (([0], [0, 1, 1, 2]), ([0, 1], [0, 1, 2]), ([0, 1], [0, 1, 1, 2])):
        try:
            compressed([3, 3], values, np.array(inner), np.array(outer), device)
            refused.append(False)
        except RuntimeError:
            refused.append(True)
    return refused


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
    case[f"an_output_bound_to_{_text}"] = bound_to(_shape, _dtype, False)
    case[f"an_output_bound_to_memory_of_{_text}"] = bound_to(_shape, _dtype, True)
    case[f"an_output_fetched_into_{_text}"] = fetched_into(_shape, _dtype)
case["two_outputs_fetched_into_one_value"] = fetched_into((2, 3), np.float32, ("y", "twice"))


@case
def a_binding_of_an_array_for_an_ort_value(ort, model, folder):
    session(ort, model).io_binding().bind_ortvalue_output("y", X)


@case
def a_binding_to_no_memory(ort, model, folder):
    session(ort, model).io_binding().bind_output("y", "cpu", 0, np.float32, (2, 3), 0)


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


@pytest.mark.parametrize("name", case)
def test_the_same_calls(name, tmp_path):
    case.compare(name, tmp_path)
