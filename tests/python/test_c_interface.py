"""The C interface of the shared library through ctypes, as other languages use it."""

from __future__ import annotations

import ctypes
import pathlib
import subprocess
import sys
import threading

import numpy as np
import pytest
from conftest import DIGITS, ROOT

sys.path.insert(0, str(ROOT / "tools"))
import c_interface  # noqa: E402


class ValueInfo(ctypes.Structure):
    _fields_ = [("size", ctypes.c_size_t), ("name", ctypes.c_char_p), ("graph", ctypes.c_char_p),
                ("type", ctypes.c_char_p), ("kind", ctypes.c_int), ("element_type", ctypes.c_int),
                ("has_rank", ctypes.c_int), ("rank", ctypes.c_size_t), ("dims", ctypes.POINTER(ctypes.c_int64)),
                ("dim_names", ctypes.POINTER(ctypes.c_char_p)), ("optional", ctypes.c_int)]


@pytest.fixture(scope="module")
def library(sardonyx):
    path = pathlib.Path(sardonyx.path).parents[1] / "shared" / "libsardonyx.so"
    assert path.exists(), f"the shared library is built with the tests: {path}"
    loaded = ctypes.CDLL(str(path))
    for name in functions():
        getattr(loaded, name).restype = ctypes.c_void_p
    for name in ("sardonyx_status_message", "sardonyx_version", "sardonyx_element_name"):
        getattr(loaded, name).restype = ctypes.c_char_p
    for name in ("input_count", "output_count"):
        getattr(loaded, f"sardonyx_session_{name}").restype = ctypes.c_size_t
    return loaded


def functions() -> list[str]:
    return sorted(one.name for one in c_interface.declarations())


def ok(library, status) -> None:
    if status is not None:
        raise RuntimeError(library.sardonyx_status_message(ctypes.c_void_p(status)).decode())


def session_of(library, path) -> ctypes.c_void_p:
    session = ctypes.c_void_p()
    ok(library, library.sardonyx_session_load(str(path).encode(), None, None, ctypes.byref(session)))
    return session


def wrapped(library, array: np.ndarray) -> ctypes.c_void_p:
    value, dims = ctypes.c_void_p(), (ctypes.c_int64 * array.ndim)(*array.shape)
    ok(library, library.sardonyx_tensor_wrap(1, ctypes.c_size_t(array.ndim), dims, array.ctypes.data_as(ctypes.c_void_p),
                                             ctypes.c_size_t(array.nbytes), None, None, ctypes.byref(value)))
    return value


def run(library, session, array: np.ndarray) -> np.ndarray:
    given, made = (ctypes.c_void_p * 1)(wrapped(library, array)), (ctypes.c_void_p * 1)()
    ok(library, library.sardonyx_session_run_in_order(session, None, given, ctypes.c_size_t(1), made, ctypes.c_size_t(1)))
    data, size = ctypes.c_void_p(), ctypes.c_size_t()
    value = ctypes.c_void_p(made[0])
    ok(library, library.sardonyx_tensor_data(value, ctypes.byref(data), ctypes.byref(size)))
    result = np.frombuffer(ctypes.string_at(data, size.value), np.float32).copy()
    library.sardonyx_value_release(value)
    library.sardonyx_value_release(ctypes.c_void_p(given[0]))
    return result


def test_every_function_is_exported_and_no_other(library):
    names = functions()
    assert len(names) > 250 and len(set(names)) == len(names)
    listed = subprocess.run(["nm", "-D", "--defined-only", library._name], check=True, capture_output=True, text=True)
    exported = {line.split()[-1].split("@")[0] for line in listed.stdout.splitlines()}
    assert {name for name in exported if name.startswith("sardonyx_")} == set(names)


def test_the_digits(library, sardonyx, tmp_path):
    model = DIGITS / "digits.onnx"
    session, info = session_of(library, model), ValueInfo(size=ctypes.sizeof(ValueInfo))
    ok(library, library.sardonyx_session_input(session, ctypes.c_size_t(0), ctypes.byref(info)))
    shape = [max(info.dims[i], 1) for i in range(info.rank)]
    image = np.random.default_rng(3).random(shape, np.float32)
    expected = list(sardonyx.outputs(model, {info.name.decode(): image}, tmp_path))[0]
    assert np.array_equal(run(library, session, image), expected.ravel())
    library.sardonyx_session_release(session)


def test_many_threads_run_one_session(library):
    session = session_of(library, DIGITS / "digits.onnx")
    info = ValueInfo(size=ctypes.sizeof(ValueInfo))
    ok(library, library.sardonyx_session_input(session, ctypes.c_size_t(0), ctypes.byref(info)))
    images = [np.random.default_rng(i).random([max(info.dims[k], 1) for k in range(info.rank)], np.float32)
              for i in range(8)]
    expected, wrong = [run(library, session, image) for image in images], []

    def many(i: int) -> None:
        for _ in range(50):
            if not np.array_equal(run(library, session, images[i]), expected[i]):
                wrong.append(i)

    threads = [threading.Thread(target=many, args=(i,)) for i in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    library.sardonyx_session_release(session)
    assert wrong == []


def test_errors_say_what_is_wrong(library, tmp_path):
    (tmp_path / "text.onnx").write_text("no model")
    with pytest.raises(RuntimeError, match="text.onnx"):
        session_of(library, tmp_path / "text.onnx")


def test_a_callback_is_told_of_the_end(library):
    session, info = session_of(library, DIGITS / "digits.onnx"), ValueInfo(size=ctypes.sizeof(ValueInfo))
    ok(library, library.sardonyx_session_input(session, ctypes.c_size_t(0), ctypes.byref(info)))
    image = np.random.default_rng(5).random([max(info.dims[i], 1) for i in range(info.rank)], np.float32)
    expected, told, ended = run(library, session, image), [], threading.Event()

    @ctypes.CFUNCTYPE(None, ctypes.c_void_p, ctypes.POINTER(ctypes.c_void_p), ctypes.c_size_t, ctypes.c_void_p)
    def done(status, outputs, count, user):
        data, size = ctypes.c_void_p(), ctypes.c_size_t()
        assert status is None and count == 1
        value = ctypes.c_void_p(outputs[0])
        ok(library, library.sardonyx_tensor_data(value, ctypes.byref(data), ctypes.byref(size)))
        told.append((user, np.frombuffer(ctypes.string_at(data, size.value), np.float32).copy()))
        library.sardonyx_value_release(value)
        ended.set()

    given = (ctypes.c_void_p * 1)(wrapped(library, image))
    ok(library, library.sardonyx_session_run_async(session, None, (ctypes.c_char_p * 1)(info.name), given,
                                                   ctypes.c_size_t(1), done, ctypes.c_void_p(77)))
    ended.wait()
    library.sardonyx_session_release(session)
    library.sardonyx_value_release(ctypes.c_void_p(given[0]))
    assert told[0][0] == 77 and np.array_equal(told[0][1], expected)


# numpy has an implementation of DLPack of its own.
@pytest.mark.parametrize("versioned", [0, 1])
@pytest.mark.parametrize("kind", ["f2", "f4", "f8", "i1", "i2", "i4", "i8", "u1", "u2", "u4", "u8", "?", "c8", "c16"])
def test_numpy_takes_and_gives_dlpack(library, kind, versioned):
    name = b"dltensor_versioned" if versioned else b"dltensor"
    pointer, new = ctypes.pythonapi.PyCapsule_GetPointer, ctypes.pythonapi.PyCapsule_New
    pointer.restype, pointer.argtypes = ctypes.c_void_p, [ctypes.py_object, ctypes.c_char_p]
    new.restype, new.argtypes = ctypes.py_object, [ctypes.c_void_p, ctypes.c_char_p, ctypes.c_void_p]
    rename = ctypes.pythonapi.PyCapsule_SetName
    rename.argtypes = [ctypes.py_object, ctypes.c_char_p]
    used = b"used_" + name

    class Exported:
        def __init__(self, managed):
            self.capsule = new(managed, name, None)

        def __dlpack__(self, **_):
            return self.capsule

        def __dlpack_device__(self):
            return (1, 0)

    for array in (np.arange(12).reshape(3, 4), np.arange(12).reshape(3, 4).T, np.arange(12)[::-2], np.array(5), np.zeros((2, 0))):
        array = array.astype(kind, order="K")
        capsule = array.__dlpack__(max_version=(1, 0)) if versioned else array.__dlpack__()
        value, managed = ctypes.c_void_p(), ctypes.c_void_p()
        ok(library, library.sardonyx_tensor_from_dlpack(ctypes.c_void_p(pointer(capsule, name)), versioned, ctypes.byref(value)))
        rename(capsule, used)  # its memory is the tensor's now
        ok(library, library.sardonyx_tensor_to_dlpack(value, versioned, 1, ctypes.byref(managed)))
        library.sardonyx_value_release(value)
        back = np.from_dlpack(Exported(managed))
        assert back.dtype == array.dtype and back.shape == array.shape
        assert np.array_equal(back, array)
        if array.flags.c_contiguous and array.size:
            assert np.shares_memory(back, array)
