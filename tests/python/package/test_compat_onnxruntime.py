"""sardonyx.compat.onnxruntime beside onnxruntime: the same programs, the same answers."""

from __future__ import annotations

import copy
import json
import os
import pickle
import re
import subprocess
import sys
import threading
import time

import numpy as np
import onnx
import onnxruntime as theirs
import pytest
from onnxruntime.capi import onnxruntime_pybind11_state as their_state

import sardonyx
import sardonyx.compat.onnxruntime as ours
from sardonyx.compat.onnxruntime import _state
from sardonyx.compat.onnxruntime.capi import onnxruntime_pybind11_state as our_state

BOTH = pytest.mark.parametrize("ort", [ours, theirs], ids=["ours", "theirs"])
X = np.arange(6, dtype=np.float32).reshape(2, 3)
# Devices, compilers and adapters that Sardonyx has none of.
ABSENT = {"AdapterFormat", "LoraAdapter", "ModelCompiler", "OrtCompileApiFlags", "OrtEpAssignedNode", "OrtEpAssignedSubgraph",
          "OrtEpContextData", "OrtEpContextDataBuffer", "OrtExecutionProviderDevicePolicy", "OrtExternalInitializerInfo",
          "OrtHardwareDeviceType", "OrtSyncStream", "onnxruntime_validation", "import_capi_exception", "contextlib"}


@pytest.fixture
def affine(model) -> bytes:
    proto = model("affine (float[rows,3] x) => (float[rows,3] y, float[rows,3] twice) { twice = Add(x, x) y = Add(twice, b) }")
    proto.graph.initializer.append(onnx.numpy_helper.from_array(np.array([10, 20, 30], np.float32), "b"))
    return proto.SerializeToString()


def attributes(kind) -> set[str]:
    """The public names of a module or a type, without submodules: those appear once anybody imports them."""
    prefix = getattr(kind, "__name__", "") + "."
    return {name for name in dir(kind) if not name.startswith("_") and prefix + name not in sys.modules}


def test_the_names_are_there():
    assert attributes(theirs) - attributes(ours) <= ABSENT
    exceptions = [name for name in attributes(their_state) if isinstance(getattr(their_state, name), type)
                  and issubclass(getattr(their_state, name), BaseException)]
    assert len(exceptions) == 15
    for name in exceptions:
        kind = getattr(our_state, name)
        assert kind.__mro__[1] is Exception and kind.__name__ == name


@pytest.mark.parametrize("name", ["SessionOptions", "RunOptions", "OrtValue", "SparseTensor", "IOBinding", "InferenceSession",
                                  "ModelMetadata", "NodeArg", "OrtMemoryInfo", "OrtArenaCfg"])
def test_the_attributes_are_there(name):
    missing = {"OrtArenaCfg": set(), "SessionOptions": {"add_external_initializers_from_files_in_memory",
                                                        "clear_ep_context_data_read_func", "set_ep_context_data_read_func"}}
    made = {"ModelMetadata": lambda: ours.ModelMetadata(), "NodeArg": lambda: ours.NodeArg("x", "tensor(float)", []),
            "OrtMemoryInfo": lambda: ours.OrtMemoryInfo("Cpu"), "OrtArenaCfg": lambda: ours.OrtArenaCfg({})}
    had = set(dir(made.get(name, lambda: getattr(ours, name))()))
    assert attributes(getattr(theirs, name)) - had - {"create_v2"} <= missing.get(name, set())


@pytest.mark.parametrize("kind", ["SessionOptions", "RunOptions"])
def test_defaults_and_types_of_options(kind):
    mine, other = getattr(ours, kind)(), getattr(theirs, kind)()
    for name in attributes(type(other)):
        value = getattr(other, name)
        if callable(value):
            continue
        given = getattr(mine, name)
        assert int(given) == int(value) if not isinstance(value, str) else given == value, name
        setattr(mine, name, given)
        with pytest.raises(TypeError):
            setattr(mine, name, object())
    with pytest.raises(AttributeError):
        mine.no_such_option = 1


@BOTH
def test_entries_of_options(ort):
    for options, add, get in ((ort.SessionOptions(), "add_session_config_entry", "get_session_config_entry"),
                              (ort.RunOptions(), "add_run_config_entry", "get_run_config_entry")):
        getattr(options, add)("some.key", "7")
        assert getattr(options, get)("some.key") == "7"
        with pytest.raises(RuntimeError):
            getattr(options, get)("another.key")


@BOTH
def test_what_a_session_says_of_itself(ort, affine):
    session = ort.InferenceSession(affine, None, ["CPUExecutionProvider"])
    assert [(one.name, one.type, one.shape) for one in session.get_inputs()] == [("x", "tensor(float)", ["rows", 3])]
    assert [one.name for one in session.get_outputs()] == ["y", "twice"]
    assert session.get_providers() == ["CPUExecutionProvider"] == session._providers
    assert session.get_provider_options() == {"CPUExecutionProvider": {}}
    assert session._model_path is None and session.get_overridable_initializers() == []
    assert str(session.get_inputs()[0]) == "NodeArg(name='x', type='tensor(float)', shape=['rows', 3])"
    assert session.get_session_options().intra_op_num_threads == 0
    assert ort.get_device() == "CPU" and "CPUExecutionProvider" in ort.get_available_providers()


@BOTH
@pytest.mark.parametrize("text", ["float[n,3]", "int64[]", "string[n]", "bool[2]", "float16[n]", "bfloat16[n]", "double[n]",
                                  "seq(float[n])", "optional(float[n])"])
def test_types_are_written_alike(ort, text, model):
    data = model(f"g ({text} x) => ({text} y) {{ y = Identity(x) }}").SerializeToString()
    mine, other = (one.InferenceSession(data).get_inputs()[0] for one in (ort, theirs))
    assert mine.type == other.type
    assert mine.shape == other.shape or text.startswith("optional")


def test_open_sizes_read_alike():
    helper = onnx.helper
    graph = helper.make_graph([helper.make_node("Identity", ["x"], ["y"])], "g", [helper.make_tensor_value_info("x", 1, [None, 2])],
                              [helper.make_tensor_value_info("y", 1, None)])
    data = helper.make_model(graph, ir_version=8, opset_imports=[helper.make_opsetid("", 17)]).SerializeToString()
    for part in ("get_inputs", "get_outputs"):
        assert [getattr(ort.InferenceSession(data), part)()[0].shape for ort in (ours, theirs)] == [[None, 2], [None, 2]]


@BOTH
def test_metadata(ort, affine, tmp_path):
    proto = onnx.load_model_from_string(affine)
    proto.producer_name, proto.domain, proto.model_version, proto.doc_string = "maker", "com.example", 3, "says"
    proto.graph.doc_string = "graph says"
    onnx.helper.set_model_props(proto, {"character": "a\nb\nü", "empty": ""})
    onnx.save(proto, tmp_path / "m.onnx")
    for source in (str(tmp_path / "m.onnx"), proto.SerializeToString()):
        meta = ort.InferenceSession(source).get_modelmeta()
        assert meta.custom_metadata_map == {"character": "a\nb\nü", "empty": ""}
        assert (meta.producer_name, meta.graph_name, meta.domain, meta.version) == ("maker", "affine", "com.example", 3)
        assert (meta.description, meta.graph_description) == ("says", "graph says")
    assert ort.InferenceSession(affine).get_modelmeta().version == 2**63 - 1


@BOTH
@pytest.mark.parametrize(("names", "count"), [(None, 2), ([], 2), (["twice"], 1), (["twice", "y", "twice"], 3), (("y",), 1)])
def test_outputs_by_name(ort, names, count, affine):
    made = ort.InferenceSession(affine).run(names, {"x": X})
    assert isinstance(made, list) and len(made) == count
    expected = {"y": 2 * X + [10, 20, 30], "twice": 2 * X}
    for name, one in zip(names or ["y", "twice"], made):
        np.testing.assert_array_equal(one, expected[name])


def test_outputs_by_name_are_not_copied(affine):
    session, x = ours.InferenceSession(affine), np.ones((1000, 3), np.float32)
    for names in (None, ["y", "twice"], ["twice"]):
        assert all(one.base is not None and one.flags.writeable for one in session.run(names, {"x": x}))
    first, second = session.run(["twice", "twice"], {"x": x})
    assert not np.shares_memory(first, second)
    np.testing.assert_array_equal(first, second)


@BOTH
@pytest.mark.parametrize("feed", [{"x": X.tolist()}, {"x": X[:, ::-1]}, {"x": np.asfortranarray(X)}])
def test_what_inputs_may_be(ort, feed, affine):
    np.testing.assert_array_equal(ort.InferenceSession(affine).run(["twice"], feed)[0], 2 * np.asarray(feed["x"], np.float32))


@BOTH
def test_values_of_every_kind(ort, model):
    def session(text):
        return ort.InferenceSession(model(text).SerializeToString())

    made = session("g (string[n] x) => (string[n] y) { y = Identity(x) }").run(None, {"x": np.array(["a", "ü"])})[0]
    assert made.dtype == object and list(made) == ["a", "ü"]
    made = session("g (float[n] a) => (seq(float[n]) y) { y = SequenceConstruct(a, a) }").run(None, {"a": X[0]})[0]
    assert isinstance(made, list) and len(made) == 2
    zipped = session('g (float[n,2] x) => (seq(map(string, float)) y) { y = ai.onnx.ml.ZipMap <classlabels_strings = ["no", "yes"]> (x) }')
    assert zipped.run(None, {"x": np.array([[0.25, 0.75]], np.float32)}) == [[{"no": 0.25, "yes": 0.75}]]
    assert session("g (optional(float[n]) x) => (optional(float[n]) y) { y = Identity(x) }").run(None, {"x": None}) == [None]


# --- errors -----------------------------------------------------------------------------------


def raised(call) -> tuple[str, str]:
    with pytest.raises(Exception) as error:  # noqa: PT011: which class is what is compared
        call()
    return type(error.value).__name__, str(error.value)


CALLS = {
    "missing": lambda session: session.run(None, {}),
    "unknown input": lambda session: session.run(None, {"x": X, "z": X}),
    "unknown output": lambda session: session.run(["q"], {"x": X}),
    "element type": lambda session: session.run(None, {"x": X.astype(np.float64)}),
    "rank": lambda session: session.run(None, {"x": X[0]}),
    "dimension": lambda session: session.run(None, {"x": X.reshape(3, 2)}),
    "bound name": lambda session: session.io_binding().bind_cpu_input("z", X),
}


@pytest.mark.parametrize("name", CALLS)
def test_errors_of_runs_have_their_classes(name, affine):
    mine, other = (raised(lambda ort=ort: CALLS[name](ort.InferenceSession(affine))) for ort in (ours, theirs))
    assert mine[0] == other[0]
    if name in ("missing", "unknown input", "unknown output", "bound name"):
        assert mine[1] == other[1]
    else:
        assert mine[1].startswith("[ONNXRuntimeError] : 2 : INVALID_ARGUMENT : ") and "'x'" in mine[1]


@pytest.mark.parametrize(("source", "kind"), [("/no/such.onnx", "NoSuchFile"), (b"garbage garbage", "InvalidProtobuf"), (3, "TypeError"),
                                              ("operator", "InvalidGraph")])
def test_errors_of_loading_have_their_classes(source, kind, model):
    if source == "operator":
        source = model("g (float[n] x) => (float[n] y) { y = NoSuchOperator(x) }").SerializeToString()
    for ort in (ours, theirs):
        assert raised(lambda ort=ort: ort.InferenceSession(source))[0] == kind


def messages(affine):
    """By what was done wrong: what is done, and what the text says of it."""
    outside = onnx.load_model_from_string(affine)
    onnx.external_data_helper.set_external_data(outside.graph.initializer[0], "w.data")
    outside.graph.initializer[0].ClearField("raw_data")
    foreign = onnx.load_model_from_string(affine)
    foreign.graph.node[0].domain = "com.example"
    foreign.opset_import.add(domain="com.example", version=1)

    def bound(dtype, shape):
        session = ours.InferenceSession(affine)
        binding = session.io_binding()
        binding.bind_cpu_input("x", X)
        binding.bind_ortvalue_output("y", ours.OrtValue.ortvalue_from_shape_and_type(shape, dtype))
        session.run_with_iobinding(binding)

    return {
        "a bound shape": (lambda: bound(np.float32, [4, 3]), r"output 'y' is bound to float\[4,3\], and the run made float\[2,3\]"),
        "a bound type": (lambda: bound(np.int64, [2, 3]), r"output 'y' is bound to int64\[2,3\], and the run made float\[2,3\]"),
        "arrays": (lambda: ours.InferenceSession(affine).run_with_ort_values(None, {"x": X}),
                   "run_with_ort_values.* takes OrtValues, and 'x' is of type ndarray; OrtValue.ortvalue_from_numpy"),
        "external data": (lambda: ours.InferenceSession(outside.SerializeToString()),
                          "config entry session.model_external_initializers_file_folder_path"),
        "a foreign operator": (lambda: ours.InferenceSession(foreign.SerializeToString()),
                               "'com.example' .*SessionOptions.register_custom_ops_library"),
    }


@pytest.mark.parametrize("name", ["a bound shape", "a bound type", "arrays", "external data", "a foreign operator"])
def test_errors_say_what_to_do(name, affine):
    call, text = messages(affine)[name]
    assert re.search(text, raised(call)[1])


def test_an_error_has_ours_as_its_cause(affine):
    with pytest.raises(our_state.InvalidArgument) as error:
        ours.InferenceSession(affine).run(None, {"x": X[0]})
    assert isinstance(error.value.__cause__, sardonyx.BadInputError)


@BOTH
def test_errors_pickle(ort):
    """Pools of processes hand on what was raised in one of them."""
    state = ort.capi.onnxruntime_pybind11_state
    for kind in (state.Fail, state.InvalidArgument, state.DeviceReset):
        again = pickle.loads(pickle.dumps(kind("what was wrong")))
        assert type(again) is kind and again.args == ("what was wrong",)


@BOTH
def test_terminate(ort, affine):
    session, options = ort.InferenceSession(affine), ort.RunOptions()
    options.terminate = True
    name, text = raised(lambda: session.run(None, {"x": X}, options))
    assert name == "Fail" and "Exiting due to terminate flag being set to true" in text
    options.terminate = False
    assert len(session.run(None, {"x": X}, options)) == 2


# --- providers and options --------------------------------------------------------------------


@BOTH
@pytest.mark.parametrize("providers", [["CUDAExecutionProvider", "CPUExecutionProvider"],
                                       [("CUDAExecutionProvider", {"device_id": 0}), "CPUExecutionProvider"]])
def test_an_unavailable_provider_only_warns(ort, providers, affine):
    with pytest.warns(UserWarning, match="CUDAExecutionProvider"):
        session = ort.InferenceSession(affine, providers=providers)
    assert session.get_providers() == ["CPUExecutionProvider"]


def test_provider_options(affine):
    session = ours.InferenceSession(affine, providers=["CPUExecutionProvider"], provider_options=[{"a": 1}])
    assert session.get_provider_options() == {"CPUExecutionProvider": {"a": "1"}} == session._provider_options
    for providers, options in ((["CPUExecutionProvider"], []), ("CPUExecutionProvider", [{}]), ([3], None)):
        with pytest.raises(ValueError):
            session.set_providers(providers, options)
        with pytest.raises(ValueError):
            ours.InferenceSession(affine, providers=providers, provider_options=options, enable_fallback=0)
        with pytest.warns(UserWarning, match="falling back"):  # which onnxruntime prints
            made = ours.InferenceSession(affine, providers=providers, provider_options=options)
        assert made.get_providers() == ["CPUExecutionProvider"]
    session.set_providers([("CPUExecutionProvider", {"b": "2"})])
    assert session.get_provider_options() == {"CPUExecutionProvider": {"b": "2"}}


def test_sessions_share_the_threads_of_the_process(affine, monkeypatch):
    monkeypatch.setattr(_state, "_global_threads", None)
    options = ours.SessionOptions()
    options.use_per_session_threads = False
    ours.set_global_thread_pool_sizes(2, 1)
    sessions = [ours.InferenceSession(affine, options) for _ in range(2)]
    assert all(one._sess._options["shared_threads"] is _state.global_threads() for one in sessions)
    assert len(sessions[1].run(None, {"x": X})) == 2
    assert "shared_threads" not in ours.InferenceSession(affine)._sess._options
    with pytest.raises(our_state.Fail, match="already"):
        ours.set_global_thread_pool_sizes(2, 1)


@BOTH
def test_processors_of_threads(ort, affine):
    one = min(os.sched_getaffinity(0))

    def made(text: str):
        options = ort.SessionOptions()
        options.intra_op_num_threads = 2
        options.add_session_config_entry("session.intra_op_thread_affinities", text)
        known = set(os.listdir("/proc/self/task"))
        session = ort.InferenceSession(affine, options, providers=["CPUExecutionProvider"])
        session.run(None, {"x": X})
        (worker,) = set(os.listdir("/proc/self/task")) - known
        for _ in range(1000):  # it chooses its processors once it runs
            if os.sched_getaffinity(int(worker)) == {one}:
                break
            time.sleep(0.01)
        return os.sched_getaffinity(int(worker))

    assert made(f"{one + 1}") == {one}
    for wrong in ("", "0", "a", "2-1"):
        with pytest.raises(RuntimeError):
            made(wrong)


@BOTH
def test_processors_that_are_not_there(ort, affine):
    """An error in the log: the session runs on those that are."""
    options = ort.SessionOptions()
    options.intra_op_num_threads = 2
    options.log_severity_level = 4
    options.add_session_config_entry("session.intra_op_thread_affinities", "1000")
    assert len(ort.InferenceSession(affine, options, providers=["CPUExecutionProvider"]).run(None, {"x": X})) == 2


def test_options_reach_the_engine(affine, tmp_path):
    options = ours.SessionOptions()
    options.intra_op_num_threads = 1
    options.graph_optimization_level = ours.GraphOptimizationLevel.ORT_DISABLE_ALL
    options.optimized_model_filepath = str(tmp_path / "copy.onnx")
    session = ours.InferenceSession(affine, options)
    assert session._sess._options["threads"] == 1 and session._sess._options["fuse"] is False
    assert session._sess_options is options
    assert len(ours.InferenceSession(tmp_path / "copy.onnx").run(None, {"x": X})) == 2


@pytest.mark.parametrize(("form", "name"), [("", "m.ort"), ("", "m.ORT"), ("ORT", "m.onnx"), ("ORT", "m.ort"), ("ONNX", "m.ort"),
                                            ("ort", "m.ort"), ("", "m.onnx")])
def test_the_ort_format_is_refused_where_onnxruntime_writes_it(form, name, affine, tmp_path):
    made = []
    for ort in (ours, theirs):
        path, options = tmp_path / ort.__name__ / name, ort.SessionOptions()
        path.parent.mkdir()
        options.optimized_model_filepath = str(path)
        if form:
            options.add_session_config_entry("session.save_model_format", form)
        if ort is theirs:
            ort.InferenceSession(affine, options)
            made.append(path.read_bytes()[4:8] == b"ORTM")
            continue
        try:
            ort.InferenceSession(affine, options)
            made.append(False)
        except our_state.NotImplemented as error:
            assert ".ort format" in str(error) and name in str(error)
            made.append(True)
        assert path.exists() != made[0]
    assert made[0] == made[1]


def test_an_output_of_texts_is_bound(model):
    """Which onnxruntime does not do."""
    session = ours.InferenceSession(model("g (string[n] x) => (string[n] y) { y = Identity(x) }").SerializeToString())
    binding, value = session.io_binding(), ours.OrtValue.ortvalue_from_shape_and_type([2], onnx.TensorProto.STRING)
    binding.bind_cpu_input("x", np.array(["a", "b"]))
    binding.bind_ortvalue_output("y", value)
    session.run_with_iobinding(binding)
    assert list(value.numpy()) == ["a", "b"] == list(binding.copy_outputs_to_cpu()[0])


@BOTH
def test_sizes_by_name(ort, affine):
    options = ort.SessionOptions()
    options.add_free_dimension_override_by_name("rows", 2)
    options.add_free_dimension_override_by_name("nobody", 3)
    session = ort.InferenceSession(affine, options)
    assert session.get_inputs()[0].shape == [2, 3]
    assert len(session.run(None, {"x": X})) == 2
    assert raised(lambda: session.run(None, {"x": X[:1]}))[0] == "InvalidArgument"


@BOTH
def test_a_negative_override_leaves_a_size_open(ort, model):
    proto = model("g (float[rows,2] x) => (float[rows,2] y) { y = Relu(x) }")
    proto.graph.input[0].type.tensor_type.shape.dim[0].denotation = "DATA_BATCH"
    options = ort.SessionOptions()
    options.add_free_dimension_override_by_name("rows", -1)
    options.add_free_dimension_override_by_denotation("DATA_BATCH", -1)
    session = ort.InferenceSession(proto.SerializeToString(), options)
    assert len(session.run(None, {"x": X[:2, :2]})[0]) == 2


@BOTH
@pytest.mark.parametrize("name", ["?", "unk__12", "None", "-1", " ", "x.0"])
def test_names_of_sizes_that_say_nothing(ort, name, model):
    proto = model("g (float[n,2] x, float[m] z) => (float[n,2] y) { y = Relu(x) }")
    for one in (proto.graph.input[0], proto.graph.output[0]):
        one.type.tensor_type.shape.dim[0].dim_param = name
    session = ort.InferenceSession(proto.SerializeToString())
    assert session.get_inputs()[0].shape == [name, 2] == session.get_outputs()[0].shape
    options = ort.SessionOptions()
    options.add_free_dimension_override_by_name(name, 5)
    session = ort.InferenceSession(proto.SerializeToString(), options)
    assert session.get_inputs()[0].shape == [5, 2] == session.get_outputs()[0].shape
    assert session.get_inputs()[1].shape == ["m"]


@BOTH
def test_sizes_of_what_may_be_absent(ort, model):
    session = ort.InferenceSession(model("""g (optional(float[n,3]) x) => (bool[] there, optional(float[n,3]) y) {
      there = OptionalHasElement(x) y = Identity(x) }""").SerializeToString())
    assert session.get_inputs()[0].shape == ["n", 3] == session.get_outputs()[1].shape


@BOTH
def test_an_override_without_a_name_is_of_no_size(ort, model):
    proto = model("g (float[n] x) => (float[n] y) { y = Relu(x) }")
    proto.graph.input[0].type.tensor_type.shape.dim[0].Clear()
    options = ort.SessionOptions()
    options.add_free_dimension_override_by_name("", 5)
    options.add_free_dimension_override_by_denotation("", 5)
    assert ort.InferenceSession(proto.SerializeToString(), options).get_inputs()[0].shape == [None]


@BOTH
def test_outputs_have_the_sizes_that_inference_finds(ort, model):
    session = ort.InferenceSession(model("""g (float[n,2] x) => (float[m,2] y, int64[k] shape, int64[q,r] places, float[] any) {
      y = Relu(x) shape = Shape(x) places = NonZero(x) any = Relu(x) }""").SerializeToString())
    assert [one.shape for one in session.get_outputs()] == [["m", 2], [2], [2, "r"], ["n", 2]]


@BOTH
def test_shapes_are_the_callers_own(ort, affine):
    argument = ort.InferenceSession(affine).get_inputs()[0]
    argument.shape[0] = 1
    assert argument.shape == ["rows", 3]


@BOTH
def test_an_initializer_that_is_an_input(ort, model):
    proto = model("g (float[3] x, float[3] b) => (float[3] y) { y = Add(x, b) }")
    proto.graph.initializer.append(onnx.numpy_helper.from_array(np.ones(3, np.float32), "b"))
    session = ort.InferenceSession(proto.SerializeToString())
    assert [one.name for one in session.get_inputs()] == ["x"]
    assert [one.name for one in session.get_overridable_initializers()] == ["b"]
    np.testing.assert_array_equal(session.run(None, {"x": X[0]})[0], X[0] + 1)
    np.testing.assert_array_equal(session.run(None, {"x": X[0], "b": X[1]})[0], X[0] + X[1])


def test_a_given_initializer(affine):
    options = ours.SessionOptions()
    options.add_initializer("b", ours.OrtValue.ortvalue_from_numpy(X[1]))
    np.testing.assert_array_equal(ours.InferenceSession(affine, options).run(["y"], {"x": X})[0], 2 * X + X[1])
    options.add_initializer("nobody", ours.OrtValue.ortvalue_from_numpy(X[1]))
    assert raised(lambda: ours.InferenceSession(affine, options))[0] == "InvalidArgument"


@BOTH
def test_profiling_writes_a_trace(ort, affine, tmp_path):
    options = ort.SessionOptions()
    options.enable_profiling = True
    options.profile_file_prefix = str(tmp_path / "trace")
    session = ort.InferenceSession(affine, options)
    assert session.get_profiling_start_time_ns() > 0
    session.run(None, {"x": X})
    path = session.end_profiling()
    assert path.startswith(str(tmp_path / "trace"))
    with open(path) as file:
        events = json.load(file)
    assert {"session_initialization", "model_run"} <= {event["name"] for event in events}
    nodes = [event for event in events if event["cat"] == "Node"]
    assert nodes and all(event["args"]["provider"] == "CPUExecutionProvider" and event["name"].endswith("_kernel_time") for event in nodes)
    assert all(isinstance(event["dur"], int) and isinstance(event["ts"], int) for event in events)
    assert all("'" not in event["name"] and int(event["args"]["node_index"]) >= 0 for event in nodes)
    assert ort.InferenceSession(affine).end_profiling() == ""


def test_seeds(model):
    data = model("g (float[n] x) => (float[n] y) { y = RandomNormalLike(x) }").SerializeToString()

    def drawn(seed):
        ours.set_seed(seed)
        return ours.InferenceSession(data).run(None, {"x": np.zeros(4, np.float32)})[0].tolist()

    assert drawn(7) == drawn(7) != drawn(8)
    ours.set_seed(0)


def test_loggers():
    ours.set_default_logger_severity(np.int64(3))
    ours.set_default_logger_verbosity(0)
    with pytest.raises(RuntimeError):
        ours.set_default_logger_severity(9)
    ours.disable_telemetry_events()
    ours.set_default_logger_severity(2)


def test_the_severity_of_a_session(caplog, tmp_path):
    """The logger is given what the session's options ask for, or what it is enabled for."""
    import logging

    import onnx

    data = onnx.parser.parse_model(
        '<ir_version: 10, opset_import: ["" : 21]> g (float[n, 2] x) => (float[n, 2] y) <float[2, 2] w = {1, 2, 3, 4}>'
        " { y = MatMul(x, w) }").SerializeToString()
    for severity, level, wanted in ((0, 10, ["DEBUG", "INFO", "DEBUG"]), (1, 10, ["INFO"]), (2, 10, []), (-1, 10, ["DEBUG", "INFO", "DEBUG"]),
                                    (-1, 20, ["INFO"]), (4, 10, [])):
        caplog.clear()
        logging.getLogger("sardonyx").setLevel(level)
        options = ours.SessionOptions()
        options.log_severity_level = severity
        options.add_session_config_entry("sardonyx.cache_folder", str(tmp_path / f"{severity}-{level}"))
        ours.InferenceSession(data, options)
        assert [one.levelname for one in caplog.records] == wanted, (severity, level)
    ours.set_default_logger_severity(2)


# --- values and bindings ----------------------------------------------------------------------


@BOTH
def test_ort_values(ort):
    x = X.copy()
    value = ort.OrtValue.ortvalue_from_numpy(x)
    assert value.shape() == [2, 3] and value.data_type() == "tensor(float)" and value.element_type() == 1
    assert value.device_name() == "cpu" and value.has_value() and value.is_tensor() and not value.is_tensor_sequence()
    assert value.tensor_size_in_bytes() == 24 and value.data_ptr() == x.ctypes.data
    value.numpy()[0, 0] = 9  # the array's own memory
    assert x[0, 0] == 9
    value.update_inplace(X)
    np.testing.assert_array_equal(x, X)
    np.testing.assert_array_equal(np.from_dlpack(value), X)
    np.testing.assert_array_equal(ort.OrtValue.from_dlpack(x).numpy(), X)
    made = ort.OrtValue.ortvalue_from_shape_and_type([2, 3], np.float32)
    made.update_inplace(X)
    np.testing.assert_array_equal(made.numpy(), X)
    bits = ort.OrtValue.ortvalue_from_numpy_with_onnx_type(np.array([0x3F80], np.uint16), onnx.TensorProto.BFLOAT16)
    assert bits.data_type() == "tensor(bfloat16)" and bits.shape() == [1]


@BOTH
def test_run_with_ort_values(ort, affine):
    session = ort.InferenceSession(affine)
    made = session.run_with_ort_values(["twice"], {"x": ort.OrtValue.ortvalue_from_numpy(X)})
    assert len(made) == 1 and isinstance(made[0], ort.OrtValue)
    np.testing.assert_array_equal(made[0].numpy(), 2 * X)
    np.testing.assert_array_equal(session.run(["twice"], {"x": ort.OrtValue.ortvalue_from_numpy(X)})[0], 2 * X)


@BOTH
def test_binding(ort, affine):
    session = ort.InferenceSession(affine)
    binding = session.io_binding()
    x, y = X.copy(), np.zeros_like(X)
    binding.bind_cpu_input("x", x)
    binding.bind_output("twice")
    binding.bind_ortvalue_output("y", ort.OrtValue.ortvalue_from_numpy(y))
    for _ in range(2):
        binding.synchronize_inputs()
        session.run_with_iobinding(binding)
        binding.synchronize_outputs()
        np.testing.assert_array_equal(y, 2 * X + [10, 20, 30])
        np.testing.assert_array_equal(binding.copy_outputs_to_cpu()[0], 2 * X)
        assert [value.shape() for value in binding.get_outputs()] == [[2, 3], [2, 3]]
        y[:] = 0
    binding.clear_binding_outputs()
    binding.bind_output("twice")
    session.run_with_iobinding(binding)
    assert len(binding.get_outputs()) == 1


@BOTH
def test_outputs_that_were_copied_stay_as_they_are(ort, affine):
    session, y = ort.InferenceSession(affine), np.zeros_like(X)
    binding = session.io_binding()
    binding.bind_output("y", "cpu", 0, np.float32, y.shape, y.ctypes.data)
    binding.bind_ortvalue_output("twice", ort.OrtValue.ortvalue_from_shape_and_type(X.shape, np.float32))
    copied = []
    for x in (X, X + 1):
        binding.bind_cpu_input("x", x)
        session.run_with_iobinding(binding)
        copied.append(binding.copy_outputs_to_cpu())
    for x, (y, twice) in zip((X, X + 1), copied):
        np.testing.assert_array_equal(y, 2 * x + [10, 20, 30])
        np.testing.assert_array_equal(twice, 2 * x)


@BOTH
def test_binding_by_address(ort, affine):
    session = ort.InferenceSession(affine)
    binding, x, y = ort.IOBinding(session), X.copy(), np.zeros_like(X)
    binding.bind_input("x", "cpu", 0, np.float32, x.shape, x.ctypes.data)
    binding.bind_output("twice", "cpu", 0, np.float32, y.shape, y.ctypes.data)
    binding.bind_output("y")
    session.run_with_iobinding(binding)
    np.testing.assert_array_equal(y, 2 * X)


@BOTH
def test_sparse_tensors(ort):
    values, indices = np.array([1, 2], np.float32), np.array([1, 5], np.int64)
    tensor = ort.SparseTensor.sparse_coo_from_numpy(np.array([2, 3], np.int64), values, indices, ort.OrtDevice.make("cpu", 0))
    assert list(tensor.dense_shape()) == [2, 3] and list(tensor.values()) == [1, 2] and tensor.data_type() == "sparse_tensor(float)"
    assert list(tensor.as_coo_view().indices()) == [1, 5] and tensor.format() == ort.OrtSparseFormat.ORT_SPARSE_COO
    value = ort.OrtValue.ort_value_from_sparse_tensor(tensor)
    assert value.is_sparse_tensor() and list(value.as_sparse_tensor().values()) == [1, 2]


@BOTH
def test_run_async(ort, affine):
    options = ort.SessionOptions()
    options.intra_op_num_threads = 2
    session, ended, told = ort.InferenceSession(affine, options), threading.Event(), []

    def callback(results, user_data, failure):
        told.append((results, user_data, failure))
        ended.set()

    session.run_async(["twice"], {"x": X}, callback, "mine")
    assert ended.wait(60)
    results, user_data, failure = told[0]
    assert user_data == "mine" and not failure
    np.testing.assert_array_equal(results[0], 2 * X)


def test_run_async_tells_what_failed(affine):
    ended, told = threading.Event(), []
    ours.InferenceSession(affine).run_async(None, {"x": X[0]}, lambda *one: (told.append(one), ended.set()), 5)
    assert ended.wait(60) and told[0][:2] == ([], 5) and "INVALID_ARGUMENT" in told[0][2]


def test_a_profile_has_a_run_that_outlives_its_session(affine, tmp_path):
    options = ours.SessionOptions()
    options.enable_profiling = True
    options.profile_file_prefix = str(tmp_path / "trace")
    rows = np.zeros((500_000, 3), np.float32)
    ours.InferenceSession(affine, options).run_async(None, {"x": rows}, lambda *_: None, None)
    for _ in range(1000):
        written = [path.read_text() for path in tmp_path.glob("trace*.json")]
        if written and written[0].endswith("]\n"):
            break
        time.sleep(0.02)
    assert "model_run" in {event["name"] for event in json.loads(written[0])}


# --- classes ----------------------------------------------------------------------------------


class Pickled(ours.InferenceSession):
    """As insightface has it."""

    def __init__(self, model_path, **options):
        super().__init__(model_path, **options)
        self.model_path = model_path

    def __getstate__(self):
        return {"model_path": self.model_path}

    def __setstate__(self, values):
        self.__init__(values["model_path"])


def test_subclasses_and_sessions_pickle(affine, tmp_path):
    (tmp_path / "m.onnx").write_bytes(affine)
    for session in (Pickled(str(tmp_path / "m.onnx"), providers=None), ours.InferenceSession(affine)):
        again = pickle.loads(pickle.dumps(session))
        assert type(again) is type(session) and isinstance(again, ours.InferenceSession)
        np.testing.assert_array_equal(again.run(["twice"], {"x": X})[0], 2 * X)


def test_sessions_pickle_with_what_they_were_given(affine, tmp_path):
    options = ours.SessionOptions()
    options.add_initializer("b", ours.OrtValue.ortvalue_from_numpy(np.array([1, 2, 3], np.float32)))
    given = ours.InferenceSession(affine, options)
    for again in (pickle.loads(pickle.dumps(given)), copy.deepcopy(given)):
        np.testing.assert_array_equal(again.run(["y"], {"x": X})[0], 2 * X + [1, 2, 3])
    weight, options = weights_beside(tmp_path), ours.SessionOptions()
    data = (tmp_path / "m.data").read_bytes()
    options.add_external_initializers_from_files_in_memory(["m.data"], [data], [len(data)])
    again = pickle.loads(pickle.dumps(ours.InferenceSession((tmp_path / "m.onnx").read_bytes(), options)))
    np.testing.assert_allclose(again.run(None, {"x": np.eye(16, dtype=np.float32)})[0], weight, rtol=1e-6)


# --- the alias --------------------------------------------------------------------------------


def alone(environment, code: str, *arguments) -> str:
    made = subprocess.run([sys.executable, "-c", code, *map(str, arguments)], env=environment, text=True, capture_output=True)
    assert made.returncode == 0, made.stderr
    return made.stdout


ALIAS = """
import sardonyx.compat; sardonyx.compat.install(); sardonyx.compat.install()
import importlib, importlib.metadata, importlib.util, sys
import onnxruntime, onnxruntime as ort
from onnxruntime import InferenceSession
from onnxruntime.capi.onnxruntime_pybind11_state import InvalidArgument, Fail
import onnxruntime.capi._pybind_state as C
import sardonyx.compat.onnxruntime as ours
assert ort is ours and importlib.import_module("onnxruntime") is ours
assert C.InferenceSession is InferenceSession is ours.InferenceSession and C.Fail is Fail
assert importlib.util.find_spec("onnxruntime") is not None and ort.__path__
assert importlib.metadata.version("onnxruntime")
version = tuple(int(part) for part in ort.__version__.split("+")[0].split("."))
assert version >= (1, 23) and "sardonyx" in ort.__version__ and "sardonyx" in ort.get_version_string()
try:
    InferenceSession("/no/such.onnx")
except C.NoSuchFile:
    print("aliased")
assert not any("onnxruntime_pybind11_state" in (getattr(m, "__file__", "") or "") and m.__file__.endswith(".so") for m in sys.modules.values())
sardonyx.compat.uninstall()
assert "onnxruntime" not in sys.modules
"""


def test_the_alias(environment):
    assert alone(environment, ALIAS) == "aliased\n"


def test_the_alias_comes_first(environment):
    code = ("import onnxruntime, sardonyx.compat\ntry: sardonyx.compat.install()\n"
            "except RuntimeError as e: print('install' in str(e))")
    assert alone(environment, code) == "True\n"


def test_a_program_runs_unchanged(environment, affine, tmp_path):
    (tmp_path / "m.onnx").write_bytes(affine)
    (tmp_path / "beside.py").write_text("import onnxruntime as ort\n")
    (tmp_path / "program.py").write_text(
        "import sys, numpy as np\nfrom beside import ort\n"
        "print(ort.get_build_info().split()[0], ort.InferenceSession(sys.argv[1]).run(['twice'], {'x': np.ones((1, 3), np.float32)})[0])\n")
    made = subprocess.run([sys.executable, "-m", "sardonyx.compat", tmp_path / "program.py", tmp_path / "m.onnx"], env=environment,
                          text=True, capture_output=True)
    assert made.stdout == "Sardonyx [[2. 2. 2.]]\n", made.stderr


QUANTISED = """
import pathlib, sys
if sys.argv[2] == "ours":
    import sardonyx.compat; sardonyx.compat.install()
import numpy as np, onnxruntime
from onnxruntime.quantization import CalibrationDataReader, QuantFormat, quantize_dynamic, quantize_static
from onnxruntime.quantization.shape_inference import quant_pre_process
assert ("sardonyx" in onnxruntime.__version__) == (sys.argv[2] == "ours")
model, folder = sys.argv[1], pathlib.Path(sys.argv[1]).parent / sys.argv[2]
folder.mkdir()
draws = np.random.default_rng(0)
class Reader(CalibrationDataReader):
    left = 8
    def get_next(self):
        self.left -= 1
        return {"x": draws.standard_normal((32, 16)).astype(np.float32)} if self.left >= 0 else None
quantize_dynamic(model, folder / "dynamic.onnx")
quant_pre_process(model, folder / "prepared.onnx", skip_symbolic_shape=True)
quantize_static(folder / "prepared.onnx", folder / "static.onnx", Reader(), quant_format=QuantFormat.QDQ)
x = draws.standard_normal((4, 16)).astype(np.float32)
np.savez(folder / "made.npz", *(onnxruntime.InferenceSession(path).run(None, {"x": x})[0]
                                for path in (model, folder / "dynamic.onnx", folder / "static.onnx")))
"""


def test_their_quantisation_runs_on_ours(environment, model, tmp_path):
    """Calibrated by our runs and by theirs, the models give the same."""
    proto = model("g (float[n,16] x) => (float[n,8] y) { t = MatMul(x, w) u = Relu(t) y = MatMul(u, v) }")
    draws = np.random.default_rng(1)
    for name, shape in (("w", (16, 32)), ("v", (32, 8))):
        proto.graph.initializer.append(onnx.numpy_helper.from_array(draws.standard_normal(shape).astype(np.float32), name))
    onnx.save(proto, tmp_path / "m.onnx")
    made = []
    for who in ("ours", "theirs"):
        alone(environment, QUANTISED, tmp_path / "m.onnx", who)
        with np.load(tmp_path / who / "made.npz") as arrays:
            made.append([arrays[name] for name in arrays.files])
    for mine, other in zip(*made):
        np.testing.assert_allclose(mine, other, atol=0.01 * np.abs(other).max())
    scales = [{one.name: onnx.numpy_helper.to_array(one) for one in onnx.load(tmp_path / who / "static.onnx").graph.initializer
               if one.name.endswith("_scale")} for who in ("ours", "theirs")]
    assert len(scales[0]) >= 5 and scales[0].keys() == scales[1].keys()
    for name, value in scales[0].items():
        np.testing.assert_allclose(value, scales[1][name], rtol=1e-5)


def test_threads_share_a_session(affine):
    session, wrong = ours.InferenceSession(affine), []

    def work(seed):
        x = np.full((64, 3), seed, np.float32)
        for _ in range(100):
            if not (session.run(["twice"], {"x": x})[0] == 2 * seed).all():
                wrong.append(seed)

    threads = [threading.Thread(target=work, args=(seed,)) for seed in range(8)]
    for one in threads:
        one.start()
    for one in threads:
        one.join()
    assert not wrong


def test_the_alias_without_the_package(environment, tmp_path):
    """Where onnxruntime is not installed, programs that ask for its version find one."""
    code = ("import sys; sys.path[:] = [one for one in sys.path if 'site-packages' not in one] + [sys.argv[1]]\n"
            "import sardonyx.compat; sardonyx.compat.install(); import importlib.metadata as m, onnxruntime\n"
            "assert len(onnxruntime.__path__) == 1 and m.version('onnxruntime') == onnxruntime.__version__\n"
            "sardonyx.compat.uninstall()\n"
            "try: m.version('onnxruntime')\nexcept m.PackageNotFoundError: print('gone')")
    import numpy

    (tmp_path / "numpy").symlink_to(numpy.__path__[0])
    (tmp_path / "numpy.libs").symlink_to(numpy.__path__[0] + ".libs")
    assert alone(environment, code, tmp_path) == "gone\n"


def weights_beside(folder):
    """A model whose weight lies in a file beside it."""
    proto = onnx.parser.parse_model('<ir_version: 10, opset_import: ["" : 21]> g (float[n,16] x) => (float[n,16] y) { y = MatMul (x, w) }')
    weight = np.random.default_rng(0).standard_normal((16, 16)).astype(np.float32)
    proto.graph.initializer.append(onnx.numpy_helper.from_array(weight, "w"))
    onnx.save(proto, folder / "m.onnx", save_as_external_data=True, location="m.data", size_threshold=0)
    return weight


@pytest.mark.parametrize("body, x, ours_gives, theirs_gives", [
    ("(float[1,1,1] x) => (float[a,b,c] y) { y = MaxPool<kernel_shape = [2], strides = [2]>(x) }", [[[3]]], [[[]]], [[[3]]]),
    ("(float[1,2,3] x) => (float[a,b,c,d] y) { s = Constant<value_ints = [1, 1, 1, 2]>() y = AffineGrid<align_corners = 1>(x, s) }",
     [[[1, 0, 0], [0, 1, 0]]], [[[[-1, 0], [1, 0]]]], [[[[-1, 1], [1, 1]]]]),
    ("(float[n] x) => (float[m] y) { y = ReduceMean(x) }", [], [np.nan], [0]),
    ("(float[n] x) => (string[n] y) { y = Cast<to = 8>(x) }", [1, 1e10, np.nan, np.inf], ["1.0", "10000000000.0", "nan", "inf"],
     ["1", "1e+10", "NaN", "INF"])])
def test_results_that_differ(body, x, ours_gives, theirs_gives):
    """docs/onnxruntime.md lists them."""
    data = onnx.parser.parse_model(f'<ir_version: 10, opset_import: ["" : 21]> g {body}').SerializeToString()
    for ort, expected in ((ours, ours_gives), (theirs, theirs_gives)):
        made = ort.InferenceSession(data, providers=["CPUExecutionProvider"]).run(None, {"x": np.array(x, np.float32)})[0]
        np.testing.assert_array_equal(made, np.array(expected, made.dtype))


def test_small_numbers_are_zeros_where_that_is_asked(tmp_path):
    """Not on both: onnxruntime changes the thread that makes its first session, for good."""
    half = onnx.parser.parse_model(
        '<ir_version: 10, opset_import: ["" : 21]> g (float[n] x) => (float[n] y) { h = Constant<value_float = 0.5>() y = Mul(x, h) }')
    options = ours.SessionOptions()
    least = np.full(3, np.finfo(np.float32).tiny, np.float32)
    for value, zero in (("0", False), ("1", True)):
        options.add_session_config_entry("session.set_denormal_as_zero", value)
        made = ours.InferenceSession(half.SerializeToString(), options).run(None, {"x": least})[0]
        assert (made == 0).tolist() == [zero] * 3


@pytest.mark.parametrize("ort", [ours, theirs])
def test_files_of_weights_in_memory(ort, tmp_path):
    weight = weights_beside(tmp_path)
    data, model = (tmp_path / "m.data").read_bytes(), (tmp_path / "m.onnx").read_bytes()
    (tmp_path / "m.data").unlink()
    options = ort.SessionOptions()
    options.add_external_initializers_from_files_in_memory(["m.data"], [data], [len(data)])
    session = ort.InferenceSession(model, options, providers=["CPUExecutionProvider"])
    np.testing.assert_allclose(session.run(None, {"x": np.eye(16, dtype=np.float32)})[0], weight, rtol=1e-6)
    with pytest.raises(RuntimeError):
        options.add_external_initializers_from_files_in_memory(["m.data"], [data], [])


def test_files_in_memory_stay_beside_the_model(tmp_path):
    weights_beside(tmp_path)
    options = ours.SessionOptions()
    options.add_external_initializers_from_files_in_memory(["../m.data"], [b"1234"], [4])
    with pytest.raises(ours.capi.onnxruntime_pybind11_state.InvalidArgument, match="beside a model"):
        ours.InferenceSession((tmp_path / "m.onnx").read_bytes(), options)


# Theirs names the old file where no other is asked for.
@pytest.mark.parametrize(("ort", "beside"), [(ours, ""), (ours, "kept.data"), (theirs, "kept.data")])
def test_a_model_that_is_written_finds_its_weights(ort, beside, tmp_path):
    (tmp_path / "other").mkdir()
    weight = weights_beside(tmp_path)
    options = ort.SessionOptions()
    options.optimized_model_filepath = str(tmp_path / "other" / "optimized.onnx")
    if beside:
        options.add_session_config_entry("session.optimized_model_external_initializers_file_name", beside)
        options.add_session_config_entry("session.optimized_model_external_initializers_min_size_in_bytes", "100")
    ort.InferenceSession(tmp_path / "m.onnx", options, providers=["CPUExecutionProvider"])
    (tmp_path / "m.data").unlink()
    (tmp_path / "m.onnx").unlink()
    assert sorted(one.name for one in (tmp_path / "other").iterdir()) == sorted(["optimized.onnx", *([beside] if beside else [])])
    again = ours.InferenceSession(tmp_path / "other" / "optimized.onnx", providers=["CPUExecutionProvider"])
    np.testing.assert_allclose(again.run(None, {"x": np.eye(16, dtype=np.float32)})[0], weight, rtol=1e-6)
