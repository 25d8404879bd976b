"""What onnxruntime's own tests ask of its Python interface, asked of both: values, devices, bindings, options, adapters, the log."""

from __future__ import annotations

import json
import logging
import pathlib
import subprocess
import sys
import threading

import ml_dtypes
import numpy as np
import onnx
import onnxruntime as theirs
import pytest
from onnxruntime.capi import onnxruntime_pybind11_state as their_state

import sardonyx.compat.onnxruntime as ours
from sardonyx.compat.onnxruntime.capi import onnxruntime_pybind11_state as our_state

BOTH = pytest.mark.parametrize("ort", [ours, theirs], ids=["ours", "theirs"])
STATES = {ours: our_state, theirs: their_state}
X = np.arange(6, dtype=np.float32).reshape(2, 3)


@pytest.fixture
def square(model) -> bytes:
    return model("square (float[rows,3] x) => (float[rows,3] y, float[rows,3] twice) { twice = Add(x, x) y = Mul(x, x) }"
                 ).SerializeToString()


# --- values -----------------------------------------------------------------------------------


@BOTH
def test_a_vector_of_values(ort, square):
    state, session = STATES[ort], ort.InferenceSession(square)
    value = ort.OrtValue.ortvalue_from_numpy(X)
    made = session._sess.run_with_ort_values({"x": value._get_c_value()}, ["y", "twice"], state.RunOptions())
    assert isinstance(made, state.OrtValueVector) and len(made) == 2
    np.testing.assert_array_equal(made[0].numpy(), X * X)
    assert made.element_type_at(1) == onnx.TensorProto.FLOAT and made.bool_tensor_indices() == []
    assert len(made.to_dlpacks(None)) == 2
    taken = made.to_dlpacks(lambda capsule: state.OrtValue.from_dlpack(capsule, False).numpy())
    np.testing.assert_array_equal(taken[1], 2 * X)
    assert state.OrtValue.from_dlpack(made.dlpack_at(0), False).data_ptr() == made[0].data_ptr()
    made.reserve(4)
    made.push_back(ort.OrtValue.ortvalue_from_numpy(np.array([True]))._get_c_value())
    made.push_back(X.__dlpack__(), False)
    made.shrink_to_fit()
    assert len(list(made)) == 4 and made.bool_tensor_indices() == [2] and not state.OrtValueVector()


@BOTH
def test_memory_at_addresses_becomes_a_vector(ort):
    state = STATES[ort]
    made, arrays = state.OrtValueVector(), [X.copy(), np.arange(4, dtype=np.int64)]
    device = state.OrtDevice(state.OrtDevice.cpu(), state.OrtDevice.default_memory(), 0)
    made.push_back_batch(arrays, [one.ctypes.data for one in arrays], [np.float32, np.int64], [[2, 3], [4]], [device, device])
    for value, array in zip(made, arrays):
        np.testing.assert_array_equal(value.numpy(), array)
        assert value.data_ptr() == array.ctypes.data


@BOTH
def test_the_session_within(ort, square):
    """As programs that use onnxruntime's extension directly do."""
    state, session = STATES[ort], ort.InferenceSession(square)
    np.testing.assert_array_equal(session._sess.run(["y"], {"x": X}, None)[0], X * X)
    device = state.OrtDevice(state.OrtDevice.cpu(), state.OrtDevice.default_memory(), 0)
    binding = state.SessionIOBinding(session._sess)
    binding.bind_ortvalue_input("x", state.OrtValue.ortvalue_from_numpy(X, device))
    binding.bind_output("y", device)
    session._sess.run_with_iobinding(binding, None)
    np.testing.assert_array_equal(binding.get_outputs()[0].numpy(), X * X)
    out = np.zeros_like(X)
    binding.bind_input("x", device, np.float32, [2, 3], X.ctypes.data)
    binding.bind_output("twice", device, np.float32, [2, 3], out.ctypes.data)
    session._sess.run_with_iobinding(binding, None)
    np.testing.assert_array_equal(out, 2 * X)
    vector = session.io_binding().get_outputs_as_ortvaluevector()
    assert isinstance(vector, state.OrtValueVector) and not vector


@BOTH
@pytest.mark.parametrize("dtype", [np.float32, np.float64, np.int32, np.uint32, np.int64, np.uint64, np.int16, np.uint16, np.int8, np.uint8,
                                   np.float16, np.bool_])
def test_values_of_each_type_are_bound(ort, dtype, model):
    state, name = STATES[ort], onnx.TensorProto.DataType.Name(onnx.helper.np_dtype_to_tensor_dtype(np.dtype(dtype))).lower()
    session = ort.InferenceSession(model(f"g ({name}[n,2] x) => ({name}[n,2] y) {{ y = Identity(x) }}").SerializeToString())
    array = np.arange(8).reshape(-1, 2).astype(dtype)
    binding = session.io_binding()
    binding.bind_ortvalue_input("x", ort.OrtValue.ortvalue_from_numpy(array))
    binding.bind_output("y")
    session.run_with_iobinding(binding)
    made = binding.get_outputs()[0]
    np.testing.assert_array_equal(made.numpy(), array)
    # Truth values, too, go through DLPack and come back as what they were.
    again = state.OrtValue.from_dlpack(made._ortvalue.to_dlpack(), dtype is np.bool_)
    assert again.data_type() == made.data_type() and again.data_ptr() == made.data_ptr()


@BOTH
@pytest.mark.parametrize("shape", [(1, 8, 0, 128), (0,), (0, 4), (4, 0)])
def test_empty_values_go_through_dlpack(ort, shape):
    state, array = STATES[ort], np.zeros(shape, np.float32)
    value = state.OrtValue.from_dlpack(array.__dlpack__(), False)
    assert list(value.shape()) == list(shape)
    again = state.OrtValue.from_dlpack(ort.OrtValue.ortvalue_from_numpy(array)._ortvalue.to_dlpack(), False)
    assert list(again.shape()) == list(shape)


@BOTH
def test_what_a_capsule_has(ort):
    state = STATES[ort]
    assert state.is_dlpack_uint8_tensor(ort.OrtValue.ortvalue_from_numpy(np.arange(3, dtype=np.uint8))._ortvalue.to_dlpack())
    assert not state.is_dlpack_uint8_tensor(ort.OrtValue.ortvalue_from_numpy(X)._ortvalue.to_dlpack())
    bytes_of_truth = np.array([1, 0, 1], np.uint8)
    assert state.OrtValue.from_dlpack(bytes_of_truth.__dlpack__(), True).data_type() == "tensor(bool)"
    assert ort.OrtValue.from_dlpack(bytes_of_truth).data_type() == "tensor(uint8)"


@BOTH
def test_values_are_arrays(ort):
    value = ort.OrtValue.ortvalue_from_numpy(X)
    assert np.asarray(value).ctypes.data == np.asarray(value, dtype=np.float32).ctypes.data == value.data_ptr()
    np.testing.assert_array_equal(np.array(value), X)
    assert np.asarray(value, dtype=np.float64).dtype == np.float64
    assert ort.OrtValue.from_dlpack(value).data_ptr() == value.data_ptr() and value.__dlpack_device__() == (1, 0)


def test_bfloat16_is_a_type_of_values(model):
    """Theirs knows it from its next release on."""
    array = np.array([1.0, -2.5, 0.0, 42.0]).astype(ml_dtypes.bfloat16)
    value = ours.OrtValue.ortvalue_from_numpy(array)
    assert value.element_type() == onnx.TensorProto.BFLOAT16 and value.numpy().dtype == ml_dtypes.bfloat16
    empty = ours.OrtValue.ortvalue_from_shape_and_type([2, 3], ml_dtypes.bfloat16)
    assert empty.shape() == [2, 3] and empty.numpy().dtype == ml_dtypes.bfloat16
    session = ours.InferenceSession(model("g (bfloat16[n] x) => (bfloat16[n] y) { y = Add(x, x) }").SerializeToString())
    (made,) = session.run(None, {"x": array})
    assert made.dtype.type is ml_dtypes.bfloat16
    np.testing.assert_array_equal(made, array + array)


@BOTH
def test_outputs_that_are_inputs_are_values_of_their_own(ort, model):
    graph = onnx.helper.make_graph(
        [onnx.helper.make_node("Add", ["x", "ten"], ["y"])], "g", [onnx.helper.make_tensor_value_info("x", 1, [2, 2])],
        [onnx.helper.make_tensor_value_info("y", 1, [2, 2]), onnx.helper.make_tensor_value_info("x", 1, [2, 2])],
        [onnx.numpy_helper.from_array(np.array(10, np.float32), "ten")])
    proto = onnx.helper.make_model(graph, ir_version=10, opset_imports=[onnx.helper.make_opsetid("", 21)])
    session, kept = ort.InferenceSession(proto.SerializeToString()), []
    for number in range(5):
        given = np.full((2, 2), number, np.float32)
        made = session.run(None, {"x": given})
        assert not np.shares_memory(made[1], given)
        kept.append(made)
        given[:] = -1
    for number, (sum_, same) in enumerate(kept):
        assert (sum_ == number + 10).all() and (same == number).all()


@BOTH
def test_values_that_a_run_made_are_not_the_weights(ort, model):
    proto = model("g (float[n] x) => (float[n] y, float[3] w) { y = Identity(x) }")
    proto.graph.initializer.append(onnx.numpy_helper.from_array(np.array([1, 2, 3], np.float32), "w"))
    session, x = ort.InferenceSession(proto.SerializeToString()), np.ones(2, np.float32)
    feeds = {"x": ort.OrtValue.ortvalue_from_numpy(x)}
    for value in session.run_with_ort_values(None, feeds):
        value.update_inplace(np.zeros(value.shape(), np.float32))
    assert [value.numpy().tolist() for value in session.run_with_ort_values(None, feeds)] == [[1, 1], [1, 2, 3]]


@BOTH
def test_texts_in_every_form(ort, model):
    session = ort.InferenceSession(model("g (string[a,b] x) => (string[a,b] y) { y = Identity(x) }").SerializeToString())

    def run(given):
        return session.run(None, {"x": given})[0].tolist()

    assert run([["this", "is"], ["a", "test"]]) == [["this", "is"], ["a", "test"]]
    assert run(np.array([["Olá", "你好"], ["여보세요", "hello"]])) == [["Olá", "你好"], ["여보세요", "hello"]]
    assert run(np.array([["x", 3]], object)) == [["x", "3"]]
    # Bytes of one length each: nothing is cut from their ends.
    assert run(np.array([b"must", b"have"], np.void).reshape(1, 2)) == [["must", "have"]]
    assert run(np.array([b"A\0A\0", b"B\0\0\0"], np.void).reshape(1, 2)) == [["A\0A\0", "B\0\0\0"]]


@BOTH
def test_maps_with_keys_of_another_type(ort, model):
    proto = model("g (map(int64,float) x) => (float[1,n] y) { y = ai.onnx.ml.DictVectorizer<int64_vocabulary=[1,2]>(x) }")
    session = ort.InferenceSession(proto.SerializeToString())
    with pytest.raises(RuntimeError, match="Unexpected key type  <class 'str'>, it cannot be linked to C type int64_t"):
        session.run(None, {"x": {1: 2.0, "a": 3.0}})


@BOTH
def test_keys_that_the_vocabulary_does_not_have(ort, model):
    proto = model("g (map(int64,float) x) => (float[1,n] y) { y = ai.onnx.ml.DictVectorizer<int64_vocabulary=[1,2]>(x) }")
    session = ort.InferenceSession(proto.SerializeToString())
    assert session.run(None, {"x": {2: 3.0, 5: 4.0}})[0].ravel().tolist() == [0, 3]
    assert session.run(None, {"x": {5: 4.0}})[0].ravel().tolist() == [0, 0]


@BOTH
def test_maps_with_keys_and_values_of_numpy(ort, model):
    proto = model("g (map(int64,float) x) => (float[1,n] y) { y = ai.onnx.ml.DictVectorizer<int64_vocabulary=[1,2]>(x) }")
    session = ort.InferenceSession(proto.SerializeToString())
    assert (session.get_inputs()[0].type, session.get_inputs()[0].shape) == ("map(int64,tensor(float))", [])
    for key, kind in ((int, float), (np.int64, np.float32), (np.int64, np.float64), (np.int32, np.float64)):
        assert session.run(None, {"x": {key(1): kind(2.0), key(2): kind(3.0)}})[0].ravel().tolist() == [2.0, 3.0]
    with pytest.raises((RuntimeError, STATES[ort].InvalidArgument)):
        session.run(None, {"x": {1: 2.0, "a": 5.0}})


@BOTH
def test_vectors_go_in_and_out(ort, square):
    state, session = STATES[ort], ort.InferenceSession(square)
    device = state.OrtDevice(state.OrtDevice.cpu(), state.OrtDevice.default_memory(), 0)
    feeds, fetches, target = state.OrtValueVector(), state.OrtValueVector(), np.zeros_like(X)
    feeds.push_back(ort.OrtValue.ortvalue_from_numpy(X)._get_c_value())
    session.run_with_ortvaluevector(state.RunOptions(), ["x"], feeds, ["twice", "y"], fetches, [device, device])
    assert [value.numpy().tolist() for value in fetches] == [(2 * X).tolist(), (X * X).tolist()]
    written = state.OrtValueVector()
    written.push_back_batch([target], [target.ctypes.data], [np.float32], [[2, 3]], [device])
    session.run_with_ortvaluevector(state.RunOptions(), ["x"], feeds, ["y"], written, [device])
    np.testing.assert_array_equal(target, X * X)


@BOTH
def test_bindings_that_cannot_run(ort, square):
    session, other = ort.InferenceSession(square), ort.InferenceSession(square)
    binding = session.io_binding()
    binding.bind_cpu_input("x", X)
    with pytest.raises(RuntimeError, match="At least one output should be requested"):
        session.run_with_iobinding(binding)
    binding.bind_output("y")
    with pytest.raises(ValueError, match="must be used with the session that created it"):
        other.run_with_iobinding(binding)
    session.run_with_iobinding(binding)
    np.testing.assert_array_equal(binding.copy_outputs_to_cpu()[0], X * X)


# --- sparse tensors and devices ---------------------------------------------------------------


@BOTH
@pytest.mark.parametrize("values", [np.array([1, 2, 3], np.float32), np.array(["xyz", "yxz", "zyx"])])
def test_sparse_tensors_in_coordinates(ort, values):
    indices = np.array([3, 5, 15], np.int64)
    tensor = ort.SparseTensor.sparse_coo_from_numpy([9, 9], values, indices, ort.OrtDevice.make("cpu", 0))
    assert tensor.dense_shape() == [9, 9] and tensor.format() == ort.OrtSparseFormat.ORT_SPARSE_COO
    assert tensor.data_type() == f"sparse_tensor({'float' if values.dtype == np.float32 else 'string'})"
    assert tensor.device_name() == "cpu" and list(tensor.values()) == list(values)
    assert list(tensor.as_coo_view().indices()) == list(indices) and not tensor.as_coo_view().indices().flags.writeable
    with pytest.raises(RuntimeError):
        tensor.as_csrc_view()
    with pytest.raises(RuntimeError):
        tensor.to_cuda(ort.OrtDevice.make("cuda", 0))
    if values.dtype == np.float32:
        assert not tensor.values().flags.writeable
        again = ort.OrtValue.ort_value_from_sparse_tensor(tensor).as_sparse_tensor()
        assert list(again.values()) == [1, 2, 3] and list(again.as_coo_view().indices()) == list(indices)


@BOTH
@pytest.mark.parametrize("values", [np.array([1, 2, 3], np.float32), np.array(["xyz", "yxz", "zyx"])])
def test_sparse_tensors_in_compressed_rows(ort, values):
    inner, outer = np.array([1, 1, 1], np.int64), np.array([0, 1, 2, 3, 3, 3, 3, 3, 3, 3], np.int64)
    tensor = ort.SparseTensor.sparse_csr_from_numpy([9, 9], values, inner, outer, ort.OrtDevice.make("cpu", 0))
    assert tensor.dense_shape() == [9, 9] and tensor.format() == ort.OrtSparseFormat.ORT_SPARSE_CSRC
    view = tensor.as_csrc_view()
    assert list(view.inner()) == list(inner) and list(view.outer()) == list(outer) and list(tensor.values()) == list(values)
    assert not view.inner().flags.writeable and not view.outer().flags.writeable
    if values.dtype == np.float32:
        value = ort.OrtValue.ort_value_from_sparse_tensor(tensor)
        assert value.is_sparse_tensor() and value.shape() == [9, 9]
        assert value.as_sparse_tensor().format() == ort.OrtSparseFormat.ORT_SPARSE_CSRC


@BOTH
def test_a_sparse_matrix_times_a_dense_one(ort):
    given = [onnx.helper.make_sparse_tensor_value_info("a", 1, [9, 9]), onnx.helper.make_tensor_value_info("b", 1, [9, 9])]
    node = onnx.helper.make_node("SparseToDenseMatMul", ["a", "b"], ["y"], domain="com.microsoft")
    graph = onnx.helper.make_graph([node], "g", given, [onnx.helper.make_tensor_value_info("y", 1, [9, 9])])
    proto = onnx.helper.make_model(graph, ir_version=10, opset_imports=[onnx.helper.make_opsetid("", 21),
                                                                       onnx.helper.make_opsetid("com.microsoft", 1)])
    session = ort.InferenceSession(proto.SerializeToString())
    draws = np.random.default_rng(0)
    dense = draws.standard_normal((9, 9)).astype(np.float32) * (draws.random((9, 9)) < 0.3)
    b = draws.standard_normal((9, 9)).astype(np.float32)
    rows, columns = np.nonzero(dense)
    pairs = np.stack([rows, columns], 1)
    for indices in (pairs, rows * 9 + columns) if ort is ours else (pairs,):
        tensor = ort.SparseTensor.sparse_coo_from_numpy([9, 9], dense[rows, columns], indices.astype(np.int64), ort.OrtDevice.make("cpu", 0))
        (made,) = session.run_with_ort_values(
            ["y"], {"a": ort.OrtValue.ort_value_from_sparse_tensor(tensor), "b": ort.OrtValue.ortvalue_from_numpy(b)})
        assert made.is_tensor() and made.data_type() == "tensor(float)" and made.shape() == [9, 9]
        np.testing.assert_allclose(made.numpy(), dense @ b, rtol=1e-4, atol=1e-5)


@BOTH
def test_devices_and_memory(ort):
    device = ort.OrtDevice.make("cpu", 0)
    assert (device.device_id(), device.device_type(), device.device_mem_type()) == (0, 0, 0)
    assert device.device_vendor_id() == ort.OrtDeviceVendorId.NONE
    cuda = ort.OrtDevice.make("cuda", 1)
    assert cuda.device_vendor_id() == ort.OrtDeviceVendorId.NVIDIA == 0x10DE and cuda.device_id() == 1
    assert ort.OrtDevice.make("gpu", 0, ort.OrtDeviceVendorId.AMD).device_vendor_id() == ort.OrtDeviceVendorId.AMD
    with pytest.raises(Exception, match="Unsupported device type: nonsense"):
        ort.OrtDevice.make("nonsense", 0)
    info = ort.OrtMemoryInfo.create_v2("Test", ort.OrtMemoryInfoDeviceType.CPU, 0, 0, ort.OrtDeviceMemoryType.DEFAULT, 128,
                                       ort.OrtAllocatorType.ORT_ARENA_ALLOCATOR)
    assert (info.name, info.device_id, info.device_vendor_id) == ("Test", 0, 0)
    assert (info.mem_type, info.allocator_type) == (ort.OrtMemType.DEFAULT, ort.OrtAllocatorType.ORT_ARENA_ALLOCATOR)
    assert info.device_mem_type == ort.OrtDeviceMemoryType.DEFAULT


@pytest.mark.parametrize("device", ["cuda", "dml", ours.OrtDevice.make("cuda", 0)])
def test_values_are_on_the_processor_alone(device, square):
    session = ours.InferenceSession(square)
    for call in (lambda: ours.OrtValue.ortvalue_from_numpy(X, device), lambda: session.io_binding().bind_output("y", device),
                 lambda: ours.OrtValue.ortvalue_from_shape_and_type([2], np.float32, device)):
        with pytest.raises(RuntimeError, match="on the processor"):
            call()


@BOTH
def test_arenas_and_memory_are_described(ort, square):
    assert [getattr(ort.OrtArenaCfg(8, 0, 4, 2), name) for name in ("max_mem", "arena_extend_strategy", "initial_chunk_size_bytes",
                                                                   "max_dead_bytes_per_chunk")] == [8, 0, 4, 2]
    options = {"max_mem": 32, "arena_extend_strategy": 1, "initial_chunk_size_bytes": 18, "max_dead_bytes_per_chunk": 14,
               "initial_growth_chunk_size_bytes": 12, "max_power_of_two_extend_bytes": 17}
    arena = ort.OrtArenaCfg(options)
    assert {name: getattr(arena, name) for name in options} == options
    session = ort.InferenceSession(square)
    assert len(session.get_input_memory_infos()) == 1 == len(session.get_input_epdevices())
    assert len(session.get_output_memory_infos()) == 2 and session.get_output_memory_infos()[0].name == "Cpu"
    run_options = ort.RunOptions()
    run_options.add_run_config_entry("memory.enable_memory_arena_shrinkage", "cpu:0")
    assert len(session.run([], {"x": X}, run_options)) == 2


# --- sessions ---------------------------------------------------------------------------------


@BOTH
def test_a_provider_that_nobody_knows(ort, square):
    session = ort.InferenceSession(square)
    with pytest.raises(RuntimeError, match="Unknown Provider Type: InvalidProvider"), pytest.warns(UserWarning):
        session.set_providers(["InvalidProvider"])
    with pytest.warns(UserWarning):
        ort.InferenceSession(square).set_providers(["CUDAExecutionProvider"])
    with pytest.raises(RuntimeError, match="Unknown Provider Type"), pytest.warns(UserWarning):
        ort.InferenceSession(square, providers=["InvalidProvider"], enable_fallback=0)
    with pytest.warns(UserWarning):
        assert ort.InferenceSession(square, providers=["InvalidProvider"]).get_providers() == ["CPUExecutionProvider"]


CASES_OF_PROVIDERS = [
    ((None, None), ([], [])), ((["a"], None), (["a"], [{}])), ((["a", "b"], None), (["a", "b"], [{}, {}])),
    (([("a", {1: 2}), "b"], None), (["a", "b"], [{"1": "2"}, {}])), ((["a", "b"], [{1: 2}, {}]), (["a", "b"], [{"1": "2"}, {}])),
    ((["a", "b", "a"], [{"x": 1}, {}, {"y": 2}]), (["a", "b"], [{"x": "1"}, {}])),
    ((3, None), None), (([3], None), None), ((["a"], 3), None), ((["a"], ["no dict"]), None), ((["a", "b"], [{1: 2}]), None),
    (([("a", {1: 2})], [{3: 4}]), None)]


@pytest.mark.filterwarnings("ignore:Duplicate")
@BOTH
@pytest.mark.parametrize(("given", "expected"), CASES_OF_PROVIDERS)
def test_names_and_options_of_providers(ort, given, expected):
    if ort is ours:
        from sardonyx.compat.onnxruntime.capi.onnxruntime_inference_collection import check_and_normalize_provider_args
    else:
        from onnxruntime.capi.onnxruntime_inference_collection import check_and_normalize_provider_args
    if expected is None:
        with pytest.raises(ValueError):
            check_and_normalize_provider_args(*given, ["a", "b", "c"])
    else:
        assert check_and_normalize_provider_args(*given, ["a", "b", "c"]) == expected


@BOTH
def test_which_provider_has_which_node(ort, model):
    data = model("g (float[n] x) => (float[n] y) { [one] a = Add(x, x) [two] b = Mul(a, x) [three] y = Add(b, a) }").SerializeToString()
    with pytest.raises(STATES[ort].Fail, match="session.record_ep_graph_assignment_info' must be set to \"1\""):
        ort.InferenceSession(data).get_provider_graph_assignment_info()
    options = ort.SessionOptions()
    options.add_session_config_entry("session.record_ep_graph_assignment_info", "1")
    parts = ort.InferenceSession(data, options).get_provider_graph_assignment_info()
    assert [part.ep_name for part in parts] == ["CPUExecutionProvider"] * 3
    nodes = sorted((node.domain, node.op_type, node.name) for part in parts for node in part.get_nodes())
    assert nodes == [("", "Add", "one"), ("", "Add", "three"), ("", "Mul", "two")]


@BOTH
def test_sizes_by_denotation(ort, model):
    proto = model("g (float[b,c,5] x, float[n] z) => (float[b,c,5] y) { y = Abs(x) }")
    for dimension, denotation in zip(proto.graph.input[0].type.tensor_type.shape.dim, ("DATA_BATCH", "DATA_CHANNEL")):
        dimension.denotation = denotation
    options = ort.SessionOptions()
    options.add_free_dimension_override_by_denotation("DATA_BATCH", 3)
    options.add_free_dimension_override_by_denotation("DATA_CHANNEL", 5)
    options.add_free_dimension_override_by_denotation("DATA_TIME", 7)
    session = ort.InferenceSession(proto.SerializeToString(), options)
    assert [one.shape for one in session.get_inputs()] == [[3, 5, 5], ["n"]]
    z = np.zeros(1, np.float32)
    assert session.run(None, {"x": np.ones((3, 5, 5), np.float32), "z": z})[0].shape == (3, 5, 5)
    with pytest.raises(STATES[ort].InvalidArgument):
        session.run(None, {"x": np.ones((2, 5, 5), np.float32), "z": z})


@BOTH
def test_options_that_a_model_brings(ort, square, monkeypatch, tmp_path):
    monkeypatch.chdir(tmp_path)
    proto = onnx.load_model_from_string(square)
    onnx.helper.set_model_props(proto, {"ort_config": json.dumps({"session_options": {
        "inter_op_num_threads": 5, "intra_op_num_threads": 2, "graph_optimization_level": 99, "enable_profiling": 1}})})
    data = proto.SerializeToString()
    assert ort.InferenceSession(data).get_session_options().intra_op_num_threads == 0
    monkeypatch.setenv("ORT_LOAD_CONFIG_FROM_MODEL", "1")
    session = ort.InferenceSession(data)
    options = session.get_session_options()
    assert (options.inter_op_num_threads, options.intra_op_num_threads) == (5, 2)
    assert options.execution_mode == ort.ExecutionMode.ORT_SEQUENTIAL and options.enable_profiling
    assert options.graph_optimization_level == ort.GraphOptimizationLevel.ORT_ENABLE_ALL
    assert pathlib.Path(session.end_profiling()).exists()
    assert ort.InferenceSession(square).get_session_options().intra_op_num_threads == 0


def test_options_that_a_model_brings_reach_the_engine(square, tmp_path):
    proto = onnx.load_model_from_string(square)
    for text, threads in (('{"session_options": {"intra_op_num_threads": 1, "graph_optimization_level": 0}}', 1), ("{", None)):
        onnx.helper.set_model_props(proto, {"ort_config": text})
        if threads is None:
            with pytest.raises(our_state.Fail, match="ort_config"):
                ours.InferenceSession(proto.SerializeToString(), read_config_from_model=1)
        else:
            session = ours.InferenceSession(proto.SerializeToString(), read_config_from_model=1)
            assert session._sess._options["threads"] == threads and session._sess._options["fuse"] is False


@BOTH
def test_a_trace_has_a_line_for_each_event(ort, square, tmp_path):
    options = ort.SessionOptions()
    options.enable_profiling = True
    options.profile_file_prefix = str(tmp_path / "trace")
    session = ort.InferenceSession(square, options)
    session.run([], {"x": X})
    lines = pathlib.Path(session.end_profiling()).read_text().splitlines()
    assert "[" in lines[0] and "]" in lines[-1] and len(lines) > 3
    for line in lines[1:-1]:
        assert all(tag in line for tag in ("pid", "dur", "ts", "ph", "X", "name", "args")), line


@BOTH
def test_build_info(ort):
    assert "Build Info" in ort.get_build_info() and ort.get_version_string() == ort.__version__


@BOTH
def test_only_the_path_to_what_is_asked_for(ort, model):
    data = model("g (float[n] a, float[n] b) => (float[n] p, float[n] q) { s = Add(a, b) d = Sub(a, b) p = Neg(s) q = Neg(d) }"
                 ).SerializeToString()
    session, options = ort.InferenceSession(data), ort.RunOptions()
    options.only_execute_path_to_fetches = True
    one = np.ones(10, np.float32)
    for name, expected in (("p", -2 * one), ("q", 0 * one)):
        np.testing.assert_array_equal(session.run([name], {"a": one, "b": one}, options)[0], expected)


def hub(folder: pathlib.Path, data: pathlib.Path) -> pathlib.Path:
    """A model and its weights as the cache of a hub keeps them: links to files with other names."""
    blobs, snapshot = folder / "blobs", folder / "snapshots" / "version"
    for one in (blobs, snapshot, data.parent):
        one.mkdir(parents=True, exist_ok=True)
    proto = onnx.parser.parse_model('<ir_version: 10, opset_import: ["" : 21]> g (float[10] x) => (float[10] y) { y = Add(x, w) }')
    weight = onnx.numpy_helper.from_array(np.arange(10, dtype=np.float32), "w")
    data.write_bytes(weight.raw_data)
    onnx.external_data_helper.set_external_data(weight, "data.bin", 0, 40)
    weight.ClearField("raw_data")
    proto.graph.initializer.append(weight)
    (blobs / "guid1").write_bytes(proto.SerializeToString())
    (snapshot / "model.onnx").symlink_to(blobs / "guid1")
    (snapshot / "data.bin").symlink_to(data)
    return snapshot / "model.onnx"


@BOTH
@pytest.mark.parametrize("place", ["blobs/guid2", "blobs/data/guid2"])
def test_models_of_a_hub(ort, place, tmp_path):
    session = ort.InferenceSession(hub(tmp_path, tmp_path / place))
    assert session.run(None, {"x": np.zeros(10, np.float32)})[0].tolist() == list(range(10))


@BOTH
def test_weights_that_a_link_leads_elsewhere_for(ort, tmp_path):
    with pytest.raises(Exception, match="data"):
        ort.InferenceSession(hub(tmp_path, tmp_path / "elsewhere" / "guid2"))


# --- adapters ---------------------------------------------------------------------------------


def parameters(ort):
    return {"a": ort.OrtValue.ortvalue_from_numpy(np.arange(10, dtype=np.float32).reshape(5, 2)),
            "longer name": ort.OrtValue.ortvalue_from_numpy(np.arange(3, dtype=np.int64)),
            "half": ort.OrtValue.ortvalue_from_numpy(np.arange(5, dtype=np.float16)),
            "none": ort.OrtValue.ortvalue_from_numpy(np.zeros((0, 2), np.float32))}


def exported(ort, path, given):
    adapter = ort.AdapterFormat()
    adapter.set_adapter_version(5)
    adapter.set_model_version(7)
    adapter.set_parameters(given)
    adapter.export_adapter(str(path))


@pytest.mark.parametrize("reads", [ours, theirs], ids=["read by ours", "read by theirs"])
@pytest.mark.parametrize("writes", [ours, theirs], ids=["written by ours", "written by theirs"])
def test_files_of_adapters(reads, writes, tmp_path):
    given = parameters(writes)
    exported(writes, tmp_path / "a.onnx_adapter", given)
    adapter = reads.AdapterFormat.read_adapter(str(tmp_path / "a.onnx_adapter"))
    assert (adapter.get_adapter_version(), adapter.get_model_version(), adapter.get_format_version()) == (5, 7, 1)
    found = adapter.get_parameters()
    assert found.keys() == given.keys()
    for name, value in found.items():
        assert value.element_type() == given[name].element_type() and value.shape() == given[name].shape()
        np.testing.assert_array_equal(value.numpy(), given[name].numpy())


@BOTH
@pytest.mark.parametrize("written", [ours, theirs], ids=["written by ours", "written by theirs"])
def test_runs_with_an_adapter(ort, written, model, tmp_path):
    proto = model("g (float[4,4] x, float[4,n] a, float[n,4] b) => (float[4,4] y) { w = MatMul(x, ones) l = MatMul(x, a) m = MatMul(l, b) y = Add(w, m) }")
    for name, shape in (("ones", (4, 4)), ("a", (4, 0)), ("b", (0, 4))):
        proto.graph.initializer.append(onnx.numpy_helper.from_array(np.ones(shape, np.float32), name))
    session, x = ort.InferenceSession(proto.SerializeToString()), np.ones((4, 4), np.float32)
    assert (session.run(None, {"x": x})[0] == 4).all()
    exported(written, tmp_path / "a.onnx_adapter", {name: written.OrtValue.ortvalue_from_numpy(np.full(shape, 2, np.float32))
                                                    for name, shape in (("a", (4, 2)), ("b", (2, 4)))})
    adapter, options = ort.LoraAdapter(), ort.RunOptions()
    adapter.Load(str(tmp_path / "a.onnx_adapter"))
    options.add_active_adapter(adapter)
    assert (session.run(None, {"x": x}, options)[0] == 4 + 4 * 2 * 2 * 2).all()
    (value,) = session.run_with_ort_values(["y"], {"x": ort.OrtValue.ortvalue_from_numpy(x)}, options)
    assert (value.numpy() == 36).all()
    assert (session.run(None, {"x": x})[0] == 4).all()


def test_files_that_are_no_adapters(tmp_path):
    path = tmp_path / "a.onnx_adapter"
    exported(ours, path, parameters(ours))
    whole = path.read_bytes()
    for data in (b"", b"12345678", b"\xff\xff\xff\xffTORT", whole[:40], whole[:4] + b"NOPE" + whole[8:]):
        path.write_bytes(data)
        with pytest.raises(RuntimeError, match="is no file of an adapter"):
            ours.LoraAdapter().Load(path)
    # Whatever byte is wrong, the file is read as something else or refused in the same words.
    for at in range(0, len(whole)):
        path.write_bytes(whole[:at] + bytes([whole[at] ^ 0x81]) + whole[at + 1 :])
        try:
            ours.AdapterFormat.read_adapter(path)
        except RuntimeError:
            pass
    with pytest.raises(TypeError):
        ours.RunOptions().add_active_adapter("adapter")


SCRIPT = """
import sys, sardonyx.compat; sardonyx.compat.install()
import numpy as np
from onnxruntime.capi import convert_npz_to_onnx_adapter as script
import onnxruntime.capi.onnxruntime_pybind11_state as state
np.savez(sys.argv[1] + "/a.npz", a=np.arange(6, dtype=np.float32).reshape(2, 3))
script.export_lora_parameters(sys.argv[1] + "/a.npz", 1, 2, sys.argv[1] + "/a.onnx_adapter")
assert "site-packages" in script.__file__ and "sardonyx" in state.__file__
sardonyx.compat.uninstall()
"""


def test_their_script_makes_adapters_on_ours(environment, tmp_path):
    made = subprocess.run([sys.executable, "-c", SCRIPT, tmp_path], env=environment, text=True, capture_output=True)
    assert made.returncode == 0, made.stderr
    adapter = theirs.AdapterFormat.read_adapter(str(tmp_path / "a.onnx_adapter"))
    assert adapter.get_model_version() == 2 and (adapter.get_parameters()["a"].numpy() == X).all()


# --- models that are compiled -----------------------------------------------------------------


@BOTH
def test_a_compiled_model_is_the_model(ort, square, tmp_path):
    written: list[bytes] = []
    ort.ModelCompiler(ort.SessionOptions(), square).compile_to_stream(written.append)
    (tmp_path / "model.onnx").write_bytes(square)
    ort.ModelCompiler(ort.SessionOptions(), tmp_path / "model.onnx").compile_to_file(str(tmp_path / "other.onnx"))
    for source in (ort.ModelCompiler(ort.SessionOptions(), square).compile_to_bytes(), b"".join(written), str(tmp_path / "other.onnx")):
        np.testing.assert_array_equal(ort.InferenceSession(source).run(["y"], {"x": X})[0], X * X)


    def raising(data):
        assert data
        raise ValueError("My Python Error")

    with pytest.raises(STATES[ort].Fail, match="My Python Error"):
        ort.ModelCompiler(ort.SessionOptions(), square).compile_to_stream(raising)
    for given, kind in ((b"", ValueError), ("", ValueError), (3, TypeError)):
        with pytest.raises(kind):
            ort.ModelCompiler(ort.SessionOptions(), given)


@BOTH
def test_flags_of_compiling(ort, square, tmp_path):
    flags, fail = ort.OrtCompileApiFlags, STATES[ort].Fail
    with pytest.raises(fail, match="Unable to compile any nodes"):
        ort.ModelCompiler(ort.SessionOptions(), square, flags=flags.ERROR_IF_NO_NODES_COMPILED).compile_to_file(str(tmp_path / "a.onnx"))
    assert not (tmp_path / "a.onnx").exists()
    compiler = ort.ModelCompiler(ort.SessionOptions(), square, flags=flags.ERROR_IF_OUTPUT_FILE_EXISTS)
    compiler.compile_to_file(str(tmp_path / "a.onnx"))
    with pytest.raises(fail, match="exists already"):
        compiler.compile_to_file(str(tmp_path / "a.onnx"))


@BOTH
def test_compiling_puts_weights_beside(ort, model, tmp_path, monkeypatch):
    proto = model("g (float[n,64] x) => (float[n,64] y) { y = MatMul(x, w) }")
    weight = np.random.default_rng(0).standard_normal((64, 64)).astype(np.float32)
    proto.graph.initializer.append(onnx.numpy_helper.from_array(weight, "w"))
    (tmp_path / "model.onnx").write_bytes(proto.SerializeToString())
    monkeypatch.chdir(tmp_path)
    (tmp_path / "out").mkdir()
    for path in ("weights.bin", *([tmp_path / "out" / "weights.bin"] if ort is ours else [])):
        ort.ModelCompiler(ort.SessionOptions(), "model.onnx", external_initializers_file_path=path,
                          external_initializers_size_threshold=64).compile_to_file("out/out.onnx")
        assert (tmp_path / "out" / "weights.bin").stat().st_size >= weight.nbytes > (tmp_path / "out" / "out.onnx").stat().st_size
        made = ort.InferenceSession("out/out.onnx").run(None, {"x": np.eye(64, dtype=np.float32)})[0]
        np.testing.assert_allclose(made, weight, rtol=1e-6)
        (tmp_path / "out" / "weights.bin").unlink()


def test_a_compiled_model_gets_a_name(square, tmp_path):
    (tmp_path / "model.onnx").write_bytes(square)
    ours.ModelCompiler(ours.SessionOptions(), tmp_path / "model.onnx").compile_to_file()
    assert (tmp_path / "model_ctx.onnx").exists()
    with pytest.raises(our_state.InvalidProtobuf):
        ours.ModelCompiler(ours.SessionOptions(), b"garbage garbage").compile_to_bytes()
    with pytest.raises(NotImplementedError, match="external_initializers_file_path"):
        ours.ModelCompiler(ours.SessionOptions(), square, get_initializer_location_func=lambda *_: None)


# --- the log ----------------------------------------------------------------------------------


@pytest.fixture
def logger():
    logger = logging.getLogger("sardonyx")
    level = logger.level
    yield logger
    ours.set_default_logger_callback(None)
    logger.setLevel(level)


def test_the_log_goes_to_a_callback(square, logger, capfd):
    """onnxruntime has it from its next release on."""
    told = []
    ours.set_default_logger_callback(lambda *record: told.append(record), severity=0)
    session = ours.InferenceSession(square)
    assert told
    for severity, category, logid, place, message in told:
        assert severity == 0 and category and logid == "sardonyx" and "_session.py" in place and "was made" in message
    ours.set_default_logger_callback(lambda *record: told.append(record), severity=2)
    count = len(told)
    ours.InferenceSession(square)
    assert len(told) == count

    def raising(*record):
        raise ValueError("intentional")

    ours.set_default_logger_callback(raising, severity=0)
    ours.InferenceSession(square)
    assert "intentional" in capfd.readouterr().err
    ours.set_default_logger_callback(None)
    assert len(session.run(None, {"x": X})) == 2 and not logger.handlers and logger.propagate
    for callback, severity in ((raising, 5), (raising, -1), ("no function", 2)):
        with pytest.raises(RuntimeError):
            ours.set_default_logger_callback(callback, severity)


def test_callbacks_of_the_log_in_many_threads(square, logger):
    told: list[str] = []
    ours.set_default_logger_callback(lambda *record: told.append(record[-1]), severity=0)
    threads = [threading.Thread(target=lambda: [ours.InferenceSession(square) for _ in range(10)]) for _ in range(4)]
    for one in threads:
        one.start()
    for one in threads:
        one.join()
    assert len(told) == 40
