"""sardonyx.Session: where models come from, what goes in and comes out, and what a process does with sessions."""

from __future__ import annotations

import asyncio
import copy
import gc
import io
import logging
import os
import pickle
import signal
import subprocess
import sys
import threading
import time
import weakref

import ml_dtypes
import numpy as np
import onnx
import pytest

import sardonyx

from .conftest import resident_bytes

ONE = np.arange(4, dtype=np.float32)


def identity(model, type_name: str) -> sardonyx.Session:
    return sardonyx.Session(model(f"g ({type_name} x) => ({type_name} y) {{ y = Identity(x) }}"))


# --- sources ----------------------------------------------------------------------------------


@pytest.mark.parametrize("kind", ["path", "pathlib", "bytes", "bytearray", "memoryview", "file", "stream", "text", "proto", "model"])
def test_every_source_of_a_model(kind, double, tmp_path):
    path = tmp_path / "double.onnx"
    data = double.SerializeToString()
    path.write_bytes(data)
    with open(path, "rb") as file:
        source = {"path": str(path), "pathlib": path, "bytes": data, "bytearray": bytearray(data), "memoryview": memoryview(data),
                  "file": file, "stream": io.BytesIO(data), "text": io.StringIO(onnx.printer.to_text(double)),
                  "proto": double, "model": sardonyx.Model(data)}[kind]
        session = sardonyx.Session(source)
    np.testing.assert_array_equal(session.run({"x": ONE})["y"], 2 * ONE)


def test_a_file_object_brings_its_folder(model, tmp_path):
    """External data lies beside the file that was opened."""
    proto = model("g (float[4] x) => (float[4] y) { y = Mul(x, w) }")
    proto.graph.initializer.append(onnx.numpy_helper.from_array(np.array([1, 2, 3, 4], np.float32), "w"))
    onnx.save(proto, tmp_path / "m.onnx", save_as_external_data=True, location="w.bin", size_threshold=0)
    with open(tmp_path / "m.onnx", "rb") as file:
        session = sardonyx.Session(file)
    np.testing.assert_array_equal(session.run({"x": ONE})["y"], ONE * [1, 2, 3, 4])
    with pytest.raises(sardonyx.Error):
        sardonyx.Session((tmp_path / "m.onnx").read_bytes())
    data = (tmp_path / "m.onnx").read_bytes()
    np.testing.assert_array_equal(sardonyx.Session(data, folder=tmp_path).run({"x": ONE})["y"], ONE * [1, 2, 3, 4])


@pytest.mark.parametrize("place", ["GIVEN", "MADE_", "NODE_", "SIZE_"])
def test_names_that_are_no_utf8(place, model):
    """As exporters on systems with other encodings have written them."""
    data = model("g (float[SIZE_] GIVEN) => (float[SIZE_] MADE_) { [NODE_] MADE_ = Softmax(GIVEN) }").SerializeToString()
    data, name = data.replace(place.encode(), b"caf\xe9_"), "caf\udce9_"
    given, made = (name if place == one else one for one in ("GIVEN", "MADE_"))
    session = sardonyx.Session(data, warn=lambda *told: None)
    assert [one.name for one in (*session.inputs, *session.outputs)] == [given, made]
    np.testing.assert_array_equal(session.run({given: ONE})[made], session([*ONE]))
    assert (name if place == "SIZE_" else "SIZE_") in sardonyx.infer_types(sardonyx.Model(data, warn=lambda *told: None))[made].shape[0]
    texts = f"{session.inputs} {session.outputs} {session.steps} {session.profile([ONE]).steps}"
    assert repr(name)[1:-1] in texts
    renamed = sardonyx.rename(data, values={given: "x"}, dimensions={name: "n"} if place == "SIZE_" else {})
    assert sardonyx.Session(renamed, warn=lambda *told: None).inputs[0].name == "x"
    with pytest.raises(sardonyx.BadInputError):
        session.run({given: np.zeros((2, 2), np.float32)})


def test_files_whose_names_are_no_utf8(model, double, tmp_path):
    folder = tmp_path / os.fsdecode(b"caf\xe9")
    folder.mkdir()
    path, other = folder / os.fsdecode(b"\xff.onnx"), folder / os.fsdecode(b"\xfe.onnx")
    sardonyx.save(double, path)
    np.testing.assert_array_equal(sardonyx.Session(path, cache_folder=folder / "cache").run([ONE])[0], 2 * ONE)
    assert sardonyx.check(path).ok and sardonyx.infer_types(str(path))["y"].shape == ("n",)
    sardonyx.infer_shapes(path, other)
    assert other.exists() and (folder / "cache").is_dir()
    with pytest.raises(sardonyx.UnreadableError):
        sardonyx.Model(folder / os.fsdecode(b"\xfd.onnx"))


def test_small_numbers_are_zeros_where_that_is_asked(model):
    half = model("g (float[n] x) => (float[n] y) { h = Constant<value_float = 0.5>() y = Mul(x, h) }")
    least = np.full(100000, np.finfo(np.float32).tiny, np.float32)
    assert (sardonyx.Session(half, threads=2).run([least])[0] > 0).all()
    assert not sardonyx.Session(half, threads=2, flush_denormals=True).run([least])[0].any()
    assert np.float32(np.finfo(np.float32).tiny) / np.float32(2) > 0


def test_what_is_no_model(tmp_path):
    with pytest.raises(TypeError, match="a model is a path, bytes"):
        sardonyx.Session(3)
    with pytest.raises(sardonyx.UnreadableError) as error:
        sardonyx.Session(tmp_path / "none.onnx")
    assert error.value.code == "unreadable"
    with pytest.raises(sardonyx.Error):
        sardonyx.Session(b"no model at all")


# --- values -----------------------------------------------------------------------------------

PLAIN = {"bool": np.bool_, "int8": np.int8, "int16": np.int16, "int32": np.int32, "int64": np.int64, "uint8": np.uint8,
         "uint16": np.uint16, "uint32": np.uint32, "uint64": np.uint64, "float16": np.float16, "float": np.float32,
         "double": np.float64, "complex64": np.complex64, "complex128": np.complex128}
LOW = {"bfloat16": ml_dtypes.bfloat16, "float8e4m3fn": ml_dtypes.float8_e4m3fn, "float8e4m3fnuz": ml_dtypes.float8_e4m3fnuz,
       "float8e5m2": ml_dtypes.float8_e5m2, "float8e5m2fnuz": ml_dtypes.float8_e5m2fnuz, "int4": ml_dtypes.int4,
       "uint4": ml_dtypes.uint4, "float4e2m1": ml_dtypes.float4_e2m1fn, "int2": ml_dtypes.int2, "uint2": ml_dtypes.uint2,
       "float8e8m0": ml_dtypes.float8_e8m0fnu}
NEWEST = '<ir_version: 13, opset_import: ["" : 26]> '


def low_identity(name: str) -> sardonyx.Session:
    types = {"float4e2m1": 23, "int2": 26, "uint2": 25, "float8e8m0": 24}
    helper = onnx.helper
    element = types.get(name) or helper.np_dtype_to_tensor_dtype(np.dtype(LOW[name]))
    info = [helper.make_tensor_value_info(one, element, ["n"]) for one in "xy"]
    graph = helper.make_graph([helper.make_node("Identity", ["x"], ["y"])], "g", info[:1], info[1:])
    return sardonyx.Session(helper.make_model(graph, ir_version=13, opset_imports=[helper.make_opsetid("", 26)]))


@pytest.mark.parametrize("name", PLAIN)
def test_elements_that_numpy_has(name, model):
    session = identity(model, f"{name}[n,m]")
    x = (np.arange(-3, 3).reshape(2, 3) % 5).astype(PLAIN[name])
    y = session.run({"x": x})["y"]
    assert y.dtype == x.dtype and session.inputs[0].dtype == x.dtype
    np.testing.assert_array_equal(y, x)


@pytest.mark.parametrize("count", [0, 1, 7, 3000])
@pytest.mark.parametrize("name", LOW)
def test_elements_of_ml_dtypes(name, count):
    session = low_identity(name)
    x = np.tile(np.array([-2, 1, 0, -1, 1], np.float32), 600)[:count].astype(LOW[name])
    y = session.run({"x": x})["y"]
    assert y.dtype == x.dtype == session.inputs[0].dtype
    np.testing.assert_array_equal(y.astype(np.float32), x.astype(np.float32))


def test_int4_is_computed_with():
    helper, element = onnx.helper, onnx.TensorProto.INT4
    info = [helper.make_tensor_value_info("x", element, ["n"]), helper.make_tensor_value_info("y", onnx.TensorProto.FLOAT, ["n"])]
    graph = helper.make_graph([helper.make_node("Cast", ["x"], ["y"], to=1)], "g", info[:1], info[1:])
    session = sardonyx.Session(helper.make_model(graph, ir_version=10, opset_imports=[helper.make_opsetid("", 21)]))
    x = np.arange(-8, 7).astype(ml_dtypes.int4)
    np.testing.assert_array_equal(session.run({"x": x})["y"], np.arange(-8, 7))


@pytest.mark.parametrize("given", [np.array(["a", "ü", ""], object), np.array(["a", "ü", ""]), np.array(["a", "ü".encode(), b""], object),
                                   ["a", "ü", ""]])
def test_strings(given, model):
    y = identity(model, "string[n]").run({"x": given})["y"]
    assert y.dtype == object and list(y) == ["a", "ü", ""]


def test_bytes_that_are_no_text_survive(model):
    y = identity(model, "string[n]").run({"x": np.array([b"\xff\xfe"], object)})["y"]
    assert y[0].encode("utf-8", "surrogateescape") == b"\xff\xfe"
    again = identity(model, "string[n]").run({"x": y})["y"]
    assert list(again) == list(y)


@pytest.mark.parametrize("array", [np.arange(12, dtype=np.float32).reshape(3, 4).T, np.arange(24, dtype=np.float32)[::2].reshape(4, 3),
                                   np.arange(12, dtype=">f4").reshape(4, 3), np.frombuffer(b"\0" + bytes(48), np.float32, offset=1).reshape(4, 3),
                                   np.broadcast_to(np.float32(3), (4, 3)), np.zeros((0, 3), np.float32)])
def test_arrays_that_lie_differently(array, model):
    np.testing.assert_array_equal(identity(model, "float[n,m]").run({"x": array})["y"], array)


def test_scalars_and_lists_take_the_declared_type(model):
    session = identity(model, "float[]")
    y = session.run({"x": 3})["y"]
    assert y.shape == () and y.dtype == np.float32 and y == 3
    assert identity(model, "int64[n]").run([[1, 2]])[0].dtype == np.int64
    with pytest.raises(sardonyx.BadInputError):
        identity(model, "int64[n]").run([[1.5]])
    with pytest.raises(sardonyx.BadInputError):
        identity(model, "float[n]").run({"x": np.zeros(3)})  # an array's type is meant


@pytest.mark.parametrize("element", ["float", "int64", "uint8", "bool", "string"])
def test_a_list_without_elements_takes_the_declared_type(element, model):
    (y,) = identity(model, f"{element}[n]").run([[]])
    assert y.shape == (0,) and (element == "string" or y.dtype == np.zeros(0, element.replace("float", "float32")).dtype)


def test_lists_of_unequal_lengths(model):
    with pytest.raises(sardonyx.BadInputError, match="input 'x': .*inhomogeneous"):
        identity(model, "int64[n,m]").run([[[1], [2, 3]]])


@pytest.mark.parametrize("element, fits, too_small, too_large", [
    ("uint8", [0, 255], -1, 256), ("int32", [-2**31, 2**31 - 1], -2**31 - 1, 2**31), ("int64", [-2**63, 2**63 - 1], None, 2**63),
    ("uint64", [2**63, 2**64 - 1], -1, None)])
def test_integers_that_the_declared_type_has_no_room_for(element, fits, too_small, too_large, model):
    session = identity(model, f"{element}[n]")
    assert session.run([fits])[0].tolist() == fits
    for wrong in (too_small, too_large):
        if wrong is not None:
            with pytest.raises(sardonyx.BadInputError, match=f"{wrong} does not fit {element}"):
                session.run([[wrong]])


def test_sequences(model):
    session = sardonyx.Session(model("g (float[n] a, float[n] b) => (seq(float[m]) s) { s = SequenceConstruct(a, b) }"))
    made = session.run({"a": ONE, "b": ONE + 1})["s"]
    assert isinstance(made, list)
    np.testing.assert_array_equal(made, [ONE, ONE + 1])
    session = sardonyx.Session(model("g (seq(float[m]) s) => (float[n] y) { y = ConcatFromSequence <axis = 0> (s) }"))
    np.testing.assert_array_equal(session.run({"s": [ONE, [9, 8]]})["y"], [0, 1, 2, 3, 9, 8])
    with pytest.raises(sardonyx.BadInputError, match="a sequence is a list"):
        session.run({"s": ONE})


def test_optionals(model):
    session = sardonyx.Session(model("g (optional(float[n]) o) => (bool[] has) { has = OptionalHasElement(o) }"))
    assert session.run({"o": None})["has"] == False  # noqa: E712
    assert session.run({"o": ONE})["has"] == True  # noqa: E712
    text = "g (optional(float[n]) o) => (optional(float[n]) p) { p = Identity(o) }"
    session = sardonyx.Session(model(text))
    assert session.run({"o": None})["p"] is None
    np.testing.assert_array_equal(session.run({"o": ONE})["p"], ONE)


def test_maps(model):
    session = sardonyx.Session(model(
        'g (map(string, float[]) m) => (float[b] y) { y = ai.onnx.ml.DictVectorizer <string_vocabulary = ["b", "a"]> (m) }'))
    np.testing.assert_array_equal(session.run({"m": {"a": 1.0, "b": 2.0}})["y"], [2, 1])
    np.testing.assert_array_equal(session.run({"m": {}})["y"], [0, 0])
    np.testing.assert_array_equal(session.run({"m": {"a": 1.0, "unseen": 7.0}})["y"], [0, 1])
    session = sardonyx.Session(model(
        'g (float[n,2] x) => (seq(map(string, float)) y) { y = ai.onnx.ml.ZipMap <classlabels_strings = ["no", "yes"]> (x) }'))
    made = session.run({"x": np.array([[0.25, 0.75]], np.float32)})["y"]
    assert made == [{"no": 0.25, "yes": 0.75}] and type(made[0]["no"]) is float


def test_sparse():
    scipy_sparse = pytest.importorskip("scipy.sparse")
    info = onnx.helper.make_sparse_tensor_value_info("x", onnx.TensorProto.FLOAT, [2, 3])
    graph = onnx.helper.make_graph([], "g", [info], [info])  # no operator of the standard takes one
    proto = onnx.helper.make_model(graph, ir_version=10, opset_imports=[onnx.helper.make_opsetid("", 21)])
    session = sardonyx.Session(proto)
    matrix = scipy_sparse.coo_array((np.array([4, 3], np.float32), ([1, 0], [2, 1])), shape=(2, 3))
    for given in (matrix, matrix.tocsr(), sardonyx.SparseTensor(np.array([3, 4], np.float32), np.array([1, 5]), (2, 3))):
        made = session.run({"x": given})["x"]
        assert isinstance(made, sardonyx.SparseTensor)
        np.testing.assert_array_equal(made.to_dense(), matrix.toarray())
        np.testing.assert_array_equal(made.to_scipy().toarray(), matrix.toarray())


def test_dlpack_without_a_copy(model):
    class Foreign:  # another library's tensor
        def __init__(self, array):
            self.array = array

        def __dlpack__(self, **options):
            return self.array.__dlpack__(**options)

        def __dlpack_device__(self):
            return self.array.__dlpack_device__()

    np.testing.assert_array_equal(identity(model, "float[n]").run({"x": Foreign(ONE)})["y"], ONE)


def test_outputs_are_the_callers(model):
    """Writing into an output changes no weight and no later run."""
    big = np.arange(1000, dtype=np.float32)
    proto = model("g (float[1000] x) => (float[1000] y, float[1000] w2, float[1000] w3) { w2 = Identity(w) w3 = Identity(w) y = Add(x, w) }")
    proto.graph.initializer.append(onnx.numpy_helper.from_array(big, "w"))
    session = sardonyx.Session(proto)
    for _ in range(3):
        made = session.run({"x": big})
        assert all(one.flags.writeable for one in made.values())
        assert not np.shares_memory(made["w2"], made["w3"]) and not np.shares_memory(made["y"], made["w2"])
        np.testing.assert_array_equal(made["y"], 2 * big)
        np.testing.assert_array_equal(made["w2"], big)
        for one in made.values():
            one[:] = -1


@pytest.mark.parametrize(("kind", "text"), [
    ("seq(float[n])", "t = Relu(x) y = SequenceConstruct(t, t, x, w)"), ("optional(float[n])", "t = Relu(x) y = Optional(t)"),
    ("optional(seq(float[n]))", "t = Relu(x) s = SequenceConstruct(t, t, x, w) y = Optional(s)")])
def test_items_are_the_callers(kind, text, model):
    proto, x, weights = model(f"g (float[n] x) => ({kind} y) {{ {text} }}"), np.arange(1000, dtype=np.float32), np.full(1000, 7, np.float32)
    proto.graph.initializer.append(onnx.numpy_helper.from_array(weights, "w"))
    session = sardonyx.Session(proto)
    for _ in range(2):
        made = session.run({"x": x})["y"]
        items = made if isinstance(made, list) else [made]
        for item, expected in zip(items, (x, x, x, weights)):
            np.testing.assert_array_equal(item, expected)
        for item in items:  # of which none shares its memory with another one, the input or the weights
            item[:] = -1
            assert [(other == -1).all() for other in items].count(True) == 1 and x[1] == 1
            item[:] = 0


def test_an_input_handed_on_is_not_shared(model):
    x = np.arange(1000, dtype=np.float32)
    y = identity(model, "float[n]").run({"x": x})["y"]
    assert not np.shares_memory(x, y)


def test_an_output_outlives_its_session(double):
    x = np.ones(100_000, np.float32)
    session = sardonyx.Session(double)
    y = session.run({"x": x})["y"]
    del session
    assert y.sum() == 200_000


# --- names and errors -------------------------------------------------------------------------


def test_dict_gives_dict_and_list_gives_list(double):
    session = sardonyx.Session(double)
    assert isinstance(session.run({"x": ONE}), dict)
    assert isinstance(session.run([ONE]), list)
    np.testing.assert_array_equal(session(ONE), 2 * ONE)
    np.testing.assert_array_equal(session(x=ONE), 2 * ONE)


@pytest.mark.parametrize(("feeds", "words"), [({}, ["x"]), ({"z": ONE}, ["'z'"]), ({"x": ONE, "z": ONE}, ["'z'", "x"]),
                                              ({"x": ONE.reshape(2, 2)}, ["x"]), ([ONE, ONE], ["2", "1"]), (ONE, ["dict"]),
                                              ({"x": np.zeros(2, "M8[s]")}, ["datetime64", "x"]), ({"x": object()}, ["x"])])
def test_wrong_inputs_are_named(feeds, words, double):
    with pytest.raises(sardonyx.BadInputError) as error:
        sardonyx.Session(double).run(feeds)
    assert all(word in str(error.value) for word in words), str(error.value)
    assert isinstance(error.value, ValueError) and error.value.code == "bad input"


def test_no_inputs_and_a_limit_below_0(double):
    session = sardonyx.Session(double)
    with pytest.raises(sardonyx.BadInputError, match="a dict by name or a list .* NoneType was given"):
        session.run(None)
    with pytest.raises(sardonyx.BadInputError, match="memory_limit must not be negative"):
        session.run({"x": ONE}, memory_limit=-1)


def test_errors_name_their_node_and_pickle(model):
    session = sardonyx.Session(model("g (float[n] x, int64[k] i) => (float[m] y) { [pick] y = Gather(x, i) }"))
    with pytest.raises(sardonyx.Error) as error:
        session.run({"x": ONE, "i": np.array([99])})
    assert "pick" in error.value.location and error.value.message
    again = pickle.loads(pickle.dumps(error.value))
    assert type(again) is type(error.value) and str(again) == str(error.value) and again.location == error.value.location


def test_an_invalid_model(model):
    with pytest.raises(sardonyx.InvalidModelError, match="NoSuchOperator"):
        sardonyx.Session(model("g (float[n] x) => (float[n] y) { y = NoSuchOperator(x) }"))


def test_a_mended_model_warns(model):
    proto = model("g (float[n] x) => (float[n] y) { y = Add(t, t) t = Add(x, x) }")
    with pytest.warns(sardonyx.ModelWarning):
        session = sardonyx.Session(proto)
    np.testing.assert_array_equal(session(ONE), 4 * ONE)
    told = []
    sardonyx.Session(proto, warn=lambda *one: told.append(one))
    assert told and all(isinstance(text, str) for text in told[0])
    with pytest.raises(sardonyx.InvalidModelError):
        sardonyx.Session(proto, strict=True)


# --- descriptions -----------------------------------------------------------------------------


# The output is declared with 5 places; only a run finds out how many there are.
WRONGLY_DECLARED = "g (float[n] x) => (int64[1, 5] y) { y = NonZero(x) }"


def test_log_functions(model, tmp_path):
    told = []
    path = tmp_path / "m.onnx"
    onnx.save(model(WRONGLY_DECLARED), path)
    session = sardonyx.Session(path, threads=1, log=told.append)
    assert not told
    for _ in range(2):
        session.run({"x": ONE})
    assert [(one.level, one.place) for one in told] == [("warning", "output 'y'")]
    assert told[0].rule and str(told[0]).endswith(f"[{told[0].rule}]") and str(told[0]).startswith("output 'y': ")
    asyncio.run(sardonyx.Session(path, threads=1, log=told.append).run_async({"x": ONE}))
    assert len(told) == 2
    sardonyx.Session(path, threads=1, log=told.append, log_level="error").run({"x": ONE})
    assert len(told) == 2
    # Pickled with what it tells, if that can be.
    other = pickle.loads(pickle.dumps(sardonyx.Session(path, threads=1, log=logging.getLogger("told"))))
    assert other._log.listener is logging.getLogger("told")
    copy.deepcopy(session).run({"x": ONE})
    assert len(told) == 3
    for wrong in (3, "x"):
        with pytest.raises(TypeError, match="a function or a logging.Logger"):
            sardonyx.Session(path, log=wrong)
    with pytest.raises(ValueError, match="log_level is one of debug, info, warning, error; got 'loud'"):
        sardonyx.Session(path, log=told.append, log_level="loud")

    def raises(message):
        raise KeyError(message.place)

    with pytest.raises(KeyError, match="output 'y'"):
        sardonyx.Session(path, threads=1, log=raises).run({"x": ONE})


def test_loggers_are_told_what_they_are_enabled_for(model, caplog, tmp_path):
    logger = logging.getLogger("test_loggers")
    two = model("g (float[n, 2] x) => (float[n, 2] y) <float[2, 2] w = {1, 2, 3, 4}> { y = MatMul(x, w) }")
    for level, wanted in ((logging.DEBUG, ["DEBUG", "INFO"]), (logging.INFO, ["INFO"]), (logging.WARNING, []), (60, [])):
        caplog.clear()
        logger.setLevel(level)
        sardonyx.Session(two, cache_folder=tmp_path / str(level), log=logger)
        assert [one.levelname for one in caplog.records] == wanted
    # What is mended is told, too, where the session reads the model.
    caplog.clear()
    logger.setLevel(logging.WARNING)
    sardonyx.Session(model("g (float[2] x) => (float[2] y) { y = Exp(a) a = Neg(x) }"), log=logger)
    assert [one.levelname for one in caplog.records] == ["WARNING"]


@pytest.mark.parametrize("option", ["log", "warn"])
def test_listeners_that_have_the_session_are_collected(model, option):
    """Such a cycle goes through the engine, where a collector of garbage sees nothing by itself."""

    class Owner:
        def __init__(self) -> None:
            self.told: list[object] = []
            self.session = sardonyx.Session(model(WRONGLY_DECLARED), threads=1, **{option: self.listen})

        def listen(self, *told: object) -> None:
            self.told.append(told)

    owner = Owner()
    owner.session.run({"x": ONE})
    assert len(owner.told) == 1
    gone = weakref.ref(owner)
    del owner
    gc.collect()
    assert gone() is None


def test_descriptions(model):
    session = sardonyx.Session(model("g (float[batch,3] x) => (float[batch,3] y, float[k,3] z) { y = Relu(x) z = Compress <axis=0> (x, c) }"
                                     .replace("(float[batch,3] x)", "(float[batch,3] x, bool[batch] c)")))
    x, c = session.inputs
    assert x == ("x", "tensor", "float", ("batch", 3), "float[batch,3]", False)
    assert c.dtype == np.bool_
    assert [one.name for one in session.outputs] == ["y", "z"]
    assert {step.node.split()[0] for step in session.steps} == {"Relu", "Compress"}
    assert "batch" in repr(session) and "<table>" in session._repr_html_()


def test_profile(double):
    profile = sardonyx.Session(double).profile({"x": ONE}, runs=3)
    assert len(profile.seconds) == 3
    (step,) = profile.steps
    assert step.operator == "Add" and step.calls == 3 and step.seconds > 0
    assert {event["name"] for event in profile.trace_events()} == {"model_run", step.node}
    assert "Add" in str(profile) and "Add" in profile._repr_html_()


def test_profile_of_runs_at_the_same_time():
    text = """<ir_version: 10, opset_import: ["" : 21]> g (float[n] x, int64 trips) => (float[n] y) <bool go = {1}> {
        y = Loop(trips, go, x) <body = b (int64 i, bool c, float[n] v) => (bool d, float[n] w) { d = Identity(c) w = Softmax(v) }> }"""
    session, profile = sardonyx.Session(sardonyx.Model.from_text(text), threads=2), sardonyx.Profile()
    runs = [threading.Thread(target=lambda: session.run({"x": ONE, "trips": 20000}, profile=profile)) for _ in range(4)]
    for run in runs:
        run.start()
    for run in runs:
        run.join()
    lanes = {}
    for event in profile.trace_events():
        if event["name"] == "model_run":
            lanes.setdefault(event["tid"], []).append((event["ts"], event["ts"] + event["dur"]))
    for spans in lanes.values():  # a span within another one would be a call of that
        spans.sort()
        assert all(one[1] <= next[0] + 1e-3 for one, next in zip(spans, spans[1:]))


def test_options_reach_the_engine(double):
    assert sardonyx.Session(double, threads=1)(ONE)[3] == 6
    with pytest.raises(sardonyx.BadInputError):
        sardonyx.Session(double, threads=-2)
    with pytest.raises(TypeError, match="no option 'thread'"):
        sardonyx.Session(double, thread=1)
    with pytest.raises(sardonyx.OutOfMemoryError) as error:
        sardonyx.Session(double, memory_limit=10)
    assert isinstance(error.value, MemoryError)
    names = [one.name for one in sardonyx.Session(double, reference=True, all_outputs=True).outputs]
    assert names == ["y"]


@pytest.mark.parametrize(("name", "values"), [
    ("threads", ["2", 1.5, None]), ("fuse", [1, None]), ("dimensions", [3, {"n": "a"}, {3: 3}]), ("extra_outputs", ["y", 3]), ("packed", [3]),
    ("cache_folder", [3]), ("memory_limit", ["1", 1.5]), ("seed", ["a"]), ("initializers", [3, {3: 3}]), ("strict", [1]), ("folder", [3]),
    ("trusted_folder", [3]), ("read_into_memory", [3]), ("operator_sets", ["file", 3, [3]]), ("libraries", ["file", 3, [3]]),
    ("operators", [3, [3]]), ("warn", [3])])
def test_options_of_a_wrong_type_are_named(name, values, double):
    for value in values:
        with pytest.raises(TypeError, match=name):
            sardonyx.Session(double.SerializeToString(), **{name: value})
    for number in ("threads", "seed"):
        with pytest.raises(sardonyx.BadInputError, match=number):
            sardonyx.Session(double, **{number: -2**70})


def test_operators_that_nobody_knows_are_to_be_given_in_python(model):
    proto = model("g (float[n] x) => (float[n] y) { y = com.example.Nothing(x) }")
    proto.opset_import.add(domain="com.example", version=1)
    texts = [sardonyx.infer_types(proto).findings[0].message]
    with pytest.raises(sardonyx.UnsupportedError) as error:
        sardonyx.Session(proto)
    for text in [*texts, str(error.value)]:
        assert "operators= or libraries=" in text and "--" not in text


def test_sizes_weights_and_values_in_between(model):
    proto = model("g (float[n] x) => (float[n] y) { t = Mul(x, w) y = Relu(t) }")
    proto.graph.initializer.append(onnx.numpy_helper.from_array(np.float32(2), "w"))
    session = sardonyx.Session(proto, dimensions={"n": 4}, initializers={"w": np.float32(-1)}, extra_outputs=["t"])
    assert session.inputs[0].shape == (4,) and [one.name for one in session.outputs] == ["y", "t"]
    for one in (session, pickle.loads(pickle.dumps(session)), copy.deepcopy(session)):
        made = one.run({"x": ONE})
        np.testing.assert_array_equal(made["t"], -ONE)
        np.testing.assert_array_equal(made["y"], 0 * ONE)
    with pytest.raises(sardonyx.BadInputError):
        session.run({"x": ONE[:2]})
    held = sardonyx.Session(proto, initializers={"w": sardonyx.Value.of(np.array(-1, np.float32))})
    for one in (held, pickle.loads(pickle.dumps(held)), copy.deepcopy(held)):
        np.testing.assert_array_equal(one.run({"x": -ONE})["y"], ONE)
    for wrong in ({"dimensions": {"m": 1}}, {"initializers": {"v": ONE}}, {"extra_outputs": ["nobody"]}):
        with pytest.raises(sardonyx.BadInputError):
            sardonyx.Session(proto, **wrong)


# --- stopping ---------------------------------------------------------------------------------

ENDLESS = """g (int64[] trips, float[8] x) => (float[8] y) {
  t = Constant <value = bool {1}> ()
  y = Loop (trips, t, x) <body = b (int64[] i, bool[] c, float[8] s) => (bool[] c2, float[8] s2) { c2 = Identity(c) s2 = Cos(s) }>
}"""
FOREVER = {"trips": np.array(2**60), "x": np.zeros(8, np.float32)}


def test_cancel_from_another_thread(model):
    session, cancel = sardonyx.Session(model(ENDLESS)), sardonyx.Cancel()
    timer = threading.Timer(0.1, cancel.set)
    timer.start()
    with pytest.raises(sardonyx.CancelledError):
        session.run(FOREVER, cancel=cancel)
    timer.join()


def test_timeout(model):
    with pytest.raises(sardonyx.CancelledError):
        sardonyx.Session(model(ENDLESS)).run(FOREVER, timeout=0.05)


@pytest.mark.parametrize("timeout", [float("inf"), 1e300, 1e12, 3600])
def test_a_timeout_that_is_never_over(timeout, double):
    session = sardonyx.Session(double)
    np.testing.assert_array_equal(session.run({"x": ONE}, timeout=timeout)["y"], 2 * ONE)
    np.testing.assert_array_equal(asyncio.run(session.run_async({"x": ONE}, timeout=timeout))["y"], 2 * ONE)


def test_timeouts_that_are_over_and_that_are_no_numbers(double):
    session = sardonyx.Session(double)
    for timeout in (0, -1, -1e300, float("-inf")):
        with pytest.raises(sardonyx.CancelledError):
            session.run({"x": ONE}, timeout=timeout)
    with pytest.raises(sardonyx.BadInputError, match="timeout"):
        session.run({"x": ONE}, timeout=float("nan"))


def test_asyncio(double, model):
    async def both():
        session = sardonyx.Session(double)
        return await asyncio.gather(*(session.run_async({"x": ONE + i}) for i in range(8)))

    for i, made in enumerate(asyncio.run(both())):
        np.testing.assert_array_equal(made["y"], 2 * (ONE + i))

    async def stopped():
        task = asyncio.ensure_future(sardonyx.Session(model(ENDLESS)).run_async(FOREVER))
        await asyncio.sleep(0.1)
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task

    asyncio.run(stopped())


INTERRUPTED = """
import os, signal, sys, threading, numpy as np, sardonyx
session = sardonyx.Session(sys.argv[1])
feeds = {"trips": np.array(2**60), "x": np.zeros(8, np.float32)}
calls = []
def handler(*_):
    calls.append(1)
    if sys.argv[2] == "default" or len(calls) == 3:
        raise KeyboardInterrupt
# Said in any case: whoever started this may have it ignored.
signal.signal(signal.SIGINT, signal.default_int_handler if sys.argv[2] == "default" else handler)
ended = threading.Event()
def poke():
    while not ended.wait(0.2):
        os.kill(os.getpid(), signal.SIGINT)
        if sys.argv[2] == "default":
            return
threading.Thread(target=poke, daemon=True).start()
try:
    session.run(feeds)
except KeyboardInterrupt:
    ended.set()
    print("interrupted", len(calls))
print(session.run({"trips": np.array(2), "x": np.zeros(8, np.float32)})["y"][0] > 0)
"""


@pytest.mark.parametrize(("kind", "calls"), [("default", 0), ("returns", 3)])
def test_control_c_stops_a_run(kind, calls, model, tmp_path, environment):
    """Also where a handler of the program's own returns at first: the run goes on."""
    onnx.save(model(ENDLESS), tmp_path / "endless.onnx")
    made = subprocess.run([sys.executable, "-c", INTERRUPTED, tmp_path / "endless.onnx", kind], env=environment, text=True,
                          capture_output=True)
    assert made.stdout.split() == ["interrupted", str(calls), "True"], made.stderr


WHILE_SMALL = """g (float[m,n] x, float[m,n] limit) => (float[m,n] y) {
  t = Constant <value = bool {1}> ()
  y = Loop (, t, x) <body = b (int64[] i, bool[] c, float[m,n] s) => (bool[] c2, float[m,n] s2) {
    one = Constant <value = float {1}> ()
    s2 = Add(s, one)
    below = Less(s2, limit)
    least = Cast <to = 6> (below)
    all = ReduceMin <keepdims = 0> (least)
    c2 = Cast <to = 9> (all) }>
}"""
AFTER_BRIEF_RUNS = """
import os, signal, sys, threading, numpy as np, sardonyx
session = sardonyx.Session(sys.argv[1], threads=1)
x = np.zeros((1, 1), np.float32)
for _ in range(3):
    session.run({"x": x, "limit": np.ones((1, 1), np.float32)})
threading.Timer(0.1, os.kill, [os.getpid(), signal.SIGINT]).start()
try:
    session.run({"x": x, "limit": np.full((1, 1), np.inf, np.float32)})
except KeyboardInterrupt:
    print("interrupted")
"""


def test_control_c_stops_a_long_run_after_brief_ones(model, tmp_path, environment):
    onnx.save(model(WHILE_SMALL), tmp_path / "m.onnx")
    made = subprocess.run([sys.executable, "-c", AFTER_BRIEF_RUNS, tmp_path / "m.onnx"], env=environment, text=True,
                          capture_output=True)
    assert made.stdout == "interrupted\n", made.stderr


# --- processes and threads --------------------------------------------------------------------


class Named(sardonyx.Session):
    pass


@pytest.mark.parametrize("kind", [sardonyx.Session, Named])
def test_pickle_and_copies(kind, double, tmp_path):
    onnx.save(double, tmp_path / "m.onnx")
    for source in (tmp_path / "m.onnx", double):
        session = kind(source, threads=1)
        session.note = "mine"
        for again in (pickle.loads(pickle.dumps(session)), copy.deepcopy(session), copy.copy(session)):
            assert type(again) is kind
            np.testing.assert_array_equal(again(ONE), 2 * ONE)
        assert pickle.loads(pickle.dumps(session)).note == "mine"


@pytest.mark.parametrize("array", [ONE, ONE[:0], np.array(3), np.array(["a", ""], object), ONE.astype(ml_dtypes.bfloat16),
                                   np.array([1, -2, 3], ml_dtypes.int4)])
def test_values_pickle(array):
    value = sardonyx.Value.of(array)
    for again in (pickle.loads(pickle.dumps(value)), copy.deepcopy(value)):
        assert (again.element_type, again.shape) == (value.element_type, value.shape)
        again.fill(np.zeros_like(array))
        np.testing.assert_array_equal(value.to_python(), array)
    with pytest.raises(TypeError, match="sequence"):
        pickle.dumps(sardonyx.Value.of([array, array]))


def test_threads_share_a_session(double):
    session = sardonyx.Session(double)
    wrong = []

    def work(seed: int):
        x = np.full(5000, seed, np.float32)
        for _ in range(200):
            if not (session.run({"x": x})["y"] == 2 * seed).all():
                wrong.append(seed)

    threads = [threading.Thread(target=work, args=(i,)) for i in range(8)]
    for one in threads:
        one.start()
    for one in threads:
        one.join()
    assert not wrong


def test_the_lock_is_released_while_a_run_goes_on(model):
    session, cancel = sardonyx.Session(model(ENDLESS)), sardonyx.Cancel()
    ended = []

    def run():
        with pytest.raises(sardonyx.CancelledError):
            session.run(FOREVER, cancel=cancel)
        ended.append(1)

    thread = threading.Thread(target=run)
    thread.start()
    while not thread.is_alive():
        time.sleep(0.001)
    cancel.set()  # this thread runs on although that one is in the engine
    thread.join()
    assert ended


def workers() -> int:
    return len(os.listdir("/proc/self/task"))


def test_sessions_share_threads(model):
    product = model("g (float[256,256] x) => (float[256,256] y) { y = MatMul(x, x) }")
    x = np.ones((256, 256), np.float32)
    gc.collect()
    before = workers()
    shared = sardonyx.Threads(3)
    sessions = [sardonyx.Session(product, threads=shared) for _ in range(4)]
    sessions += [copy.copy(sessions[0]), copy.deepcopy(sessions[0])]
    for session in sessions:
        np.testing.assert_array_equal(session(x), 256)
    assert 1 <= workers() - before <= shared.count - 1  # they start when there is work
    del shared
    np.testing.assert_array_equal(sessions[0](x), 256)
    first, second = pickle.loads(pickle.dumps(sessions[:2]))
    np.testing.assert_array_equal(first(x), second(x))
    assert workers() - before <= 4  # those two share others
    del sessions, session, first, second
    gc.collect()
    assert workers() == before


def test_what_threads_and_processors_refuse(double):
    for count in (-1, 5000):
        with pytest.raises(sardonyx.BadInputError):
            sardonyx.Threads(count)
    for wrong in ([-1], [100_000]):
        with pytest.raises(sardonyx.BadInputError, match="processor"):
            sardonyx.Session(double, processors=wrong)
    with pytest.raises(sardonyx.BadInputError, match="shared threads"):
        sardonyx.Session(double, threads=sardonyx.Threads(1), processors=[min(os.sched_getaffinity(0))])
    with pytest.raises(TypeError, match="processors"):
        sardonyx.Session(double, processors="01")
    with pytest.raises(TypeError, match="threads"):
        sardonyx.Session(double, threads=1.5)


def test_processors(model):
    product = model("g (float[256,256] x) => (float[256,256] y) { y = MatMul(x, x) }")
    one = min(os.sched_getaffinity(0))
    known = set(os.listdir("/proc/self/task"))
    session = sardonyx.Session(product, threads=3, processors=[one])
    np.testing.assert_array_equal(session(np.ones((256, 256), np.float32)), 256)
    made = set(os.listdir("/proc/self/task")) - known
    assert made
    for _ in range(1000):  # they choose their processors once they run
        if all(os.sched_getaffinity(int(task)) == {one} for task in made):
            break
        time.sleep(0.01)
    assert all(os.sched_getaffinity(int(task)) == {one} for task in made)


FORKED = """
import os, sys, numpy as np, sardonyx
x = np.ones((64, 64), np.float32)
session = sardonyx.Session(sys.argv[1], threads=sardonyx.Threads(2) if sys.argv[2] == "shared" else 2)
before = session.run({"x": x})["y"]
for _ in range(20):
    child = os.fork()
    if child == 0:
        same = (session.run({"x": x})["y"] == before).all()
        del session
        os._exit(0 if same else 1)
    assert os.waitpid(child, 0)[1] == 0
assert (session.run({"x": x})["y"] == before).all()
print("forked")
"""


@pytest.mark.parametrize("threads", ["own", "shared"])
def test_fork(threads, model, tmp_path, environment):
    onnx.save(model("g (float[64,64] x) => (float[64,64] y) { t = MatMul(x, x) y = MatMul(t, x) }"), tmp_path / "m.onnx")
    made = subprocess.run([sys.executable, "-W", "error", "-c", FORKED, tmp_path / "m.onnx", threads], env=environment, text=True,
                          capture_output=True)
    assert made.stdout == "forked\n", made.stderr


def test_import_is_quiet_and_light(environment):
    """No threads, no handlers, no modules that a program may not have."""
    code = ("import signal, sys, threading; before = signal.getsignal(signal.SIGINT); import sardonyx; "
            "assert threading.active_count() == 1 and signal.getsignal(signal.SIGINT) is before; "
            "print([name for name in ('onnx', 'ml_dtypes', 'scipy', 'asyncio', 'onnxruntime') if name in sys.modules])")
    made = subprocess.run([sys.executable, "-c", code], env=environment, text=True, capture_output=True)
    assert made.stdout == "[]\n", made.stderr


# --- inference --------------------------------------------------------------------------------


def test_infer(model, tmp_path):
    proto = model("g (float[batch,3] x) => (float[m,n] y) { t = Concat <axis = 1> (x, x) y = Relu(t) }")
    found = sardonyx.infer_types(proto)
    assert found["t"].shape == ("batch", 6) and found["t"].type == "float[batch,6]" and found["t"].state == "known"
    assert sardonyx.infer_types(proto, sizes={"batch": 2})["y"].shape == (2, 6)
    with pytest.raises(KeyError):
        found["nobody"]
    made = sardonyx.infer_shapes(proto)
    assert isinstance(made, onnx.ModelProto) and made.graph.value_info[0].name == "t"
    data = sardonyx.infer_shapes(proto.SerializeToString())
    assert onnx.load_model_from_string(data).graph.value_info[0].name == "t"
    onnx.save(proto, tmp_path / "m.onnx")
    assert sardonyx.infer_shapes(tmp_path / "m.onnx", tmp_path / "out.onnx") == str(tmp_path / "out.onnx")
    assert onnx.load(tmp_path / "out.onnx").graph.value_info[0].name == "t"
    with pytest.raises(TypeError, match="output="):
        sardonyx.infer_shapes(tmp_path / "m.onnx")


def test_model_basics(double):
    held = sardonyx.Model(double)
    assert "Add" in held.optimized_text() and held.path is None and "bytes" in repr(held)
    assert copy.deepcopy(held) is held and pickle.loads(pickle.dumps(held)).optimized_text() == held.optimized_text()
    assert sardonyx.Model.from_text(onnx.printer.to_text(double)).optimized_text() == held.optimized_text()
    assert any(name == "fuse-attention" for name, _ in sardonyx.optimizer_passes())


# --- what lasts -------------------------------------------------------------------------------


@pytest.mark.memory
@pytest.mark.parametrize("kind", ["float", "string", "sequence", "refused"])
def test_nothing_grows(kind, double, model):
    """Twenty bytes a run would be found."""
    text = {"string": "g (string[n] x) => (string[n] y) { y = Identity(x) }",
            "sequence": "g (float[n] x) => (seq(float[n]) y) { y = SequenceConstruct(x, x) }"}.get(kind)
    session = sardonyx.Session(model(text) if text else double)
    x = np.array(["a longer text than fits into a pointer"], object) if kind == "string" else np.ones(2000, np.float32)
    feeds = {"x": x} if kind != "refused" else {"x": x.reshape(2, 1000)}

    def runs(count: int) -> None:
        for _ in range(count):
            try:
                session.run(feeds)
            except sardonyx.BadInputError:
                assert kind == "refused"

    runs(1000)
    before, references = resident_bytes(), sys.getrefcount(x)
    count = 20_000 if kind == "refused" else 200_000
    runs(count)
    assert sys.getrefcount(x) == references
    assert resident_bytes() - before < 20 * count


# --- hostile values ---------------------------------------------------------------------------


def test_a_ring_of_lists(model):
    session = sardonyx.Session(model("g (seq(float[n]) x) => (seq(float[n]) y) { y = Identity(x) }"))
    ring: list = []
    ring.append(ring)
    with pytest.raises((sardonyx.Error, ValueError)):
        session.run({"x": ring})
    deep: list = [ONE]
    for _ in range(10_000):
        deep = [deep]
    with pytest.raises((sardonyx.Error, ValueError)):
        session.run({"x": deep})


class Lies:
    """Says that it is an array, and is none."""

    def __array__(self, *_, **__):
        raise RuntimeError("no")


class Mapping:
    def keys(self):
        return ["x"]

    def __getitem__(self, name):
        raise KeyError(name)


@pytest.mark.parametrize("feeds", [{"x": Lies()}, {"x": np.array([None, 1], object)}, {"x": [[1, 2], [3]]}, {"x": {1: 2}}, {1: ONE},
                                   {None: ONE}, Mapping(), {"x": b"abc"}, {"x": "abc"}, {"x": np.array([1j])}, {"x": np.ma.masked}, None, 7,
                                   "abc", {"x": [10**400]}, {"x": np.empty(2, [("a", "f4")])}])
def test_values_that_are_none(feeds, double):
    session = sardonyx.Session(double)
    with pytest.raises((sardonyx.Error, TypeError, ValueError, RuntimeError, KeyError, OverflowError)):
        session.run(feeds)
    np.testing.assert_array_equal(session(ONE), 2 * ONE)


def test_a_session_that_was_not_made():
    session = sardonyx.Session.__new__(sardonyx.Session)
    assert "could not be made" in repr(session)
    with pytest.raises(TypeError), pytest.warns(RuntimeWarning):
        session.run({})


def test_values_held_by_the_engine(double):
    session, x = sardonyx.Session(double), ONE.copy()
    value = sardonyx.Value.of(x)
    assert (value.kind, value.element_type, value.shape, value.byte_size, value.writable) == ("tensor", "float", [4], 16, True)
    assert value.address == x.ctypes.data
    value.fill(ONE + 1)
    np.testing.assert_array_equal(x, ONE + 1)
    np.testing.assert_array_equal(session.run({"x": value})["y"], 2 * x)
    for wrong in (np.zeros(3, np.float32), np.zeros(4)):
        with pytest.raises(sardonyx.BadInputError):
            value.fill(wrong)
    with pytest.raises(sardonyx.BadInputError):
        sardonyx.Value.zeros("float", [-1])
    with pytest.raises(sardonyx.BadInputError):
        sardonyx.Value.reinterpreted(x, "double", [4])
    with pytest.raises(sardonyx.BadInputError):
        sardonyx.Value.zeros("colour", [1])
    made = sardonyx.Value.zeros("float", [4])
    session.run_values({"x": x}, {"y": made})
    np.testing.assert_array_equal(made.view(), 2 * x)
    frozen = ONE.copy()
    frozen.flags.writeable = False
    value = sardonyx.Value.of(frozen)
    assert not value.writable
    for write in (lambda: value.fill(ONE + 1), lambda: session.run_values({"x": x}, {"y": value}),
                  lambda: sardonyx.Value.reinterpreted(frozen, "int32", [4]).fill(np.zeros(4, np.int32))):
        with pytest.raises(sardonyx.BadInputError, match="must not be written to"):
            write()
    np.testing.assert_array_equal(frozen, ONE)
    lent = ONE.copy()
    session.run_values({"x": x}, {"y": sardonyx.Value.of(np.from_dlpack(Unversioned(lent)))})
    np.testing.assert_array_equal(lent, 2 * x)


class Unversioned:
    """A tensor of a library whose DLPack does not say whether memory may be written to."""

    def __init__(self, array):
        self.array = array

    def __dlpack__(self, **options):
        return self.array.__dlpack__()

    def __dlpack_device__(self):
        return self.array.__dlpack_device__()


@pytest.mark.parametrize("count", [4, 500_000])
def test_values_that_a_run_made_are_their_own(count, model, tmp_path):
    """Not the weights, which are mapped in a large file, and not the input."""
    proto = model("g (float[n] x) => (float[n] y, float[m] w, string[k] s) { y = Identity(x) }")
    weights, texts, x = np.arange(count, dtype=np.float32), np.array(["a", "b"], object), ONE.copy()
    proto.graph.initializer.extend([onnx.numpy_helper.from_array(weights, "w"), onnx.numpy_helper.from_array(texts, "s")])
    onnx.save(proto, tmp_path / "m.onnx")
    session = sardonyx.Session(tmp_path / "m.onnx")
    for value in session.run_values({"x": sardonyx.Value.of(x)}, {}):
        value.fill(np.array(["c", "d"], object) if value.element_type == "string" else np.zeros(value.shape, np.float32))
    made = session.run({"x": x})
    np.testing.assert_array_equal(x, ONE)
    np.testing.assert_array_equal(made["w"], weights)
    assert made["s"].tolist() == ["a", "b"]
