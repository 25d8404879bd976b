"""The exceptions of onnxruntime, and which of ours becomes which."""

from __future__ import annotations

import contextlib
import copyreg
import os
from collections.abc import Iterator
from typing import Any, NoReturn

from ... import _errors

_MODULE = "onnxruntime.capi.onnxruntime_pybind11_state"


class Fail(Exception):
    __module__ = _MODULE


class InvalidArgument(Exception):
    __module__ = _MODULE


class NoSuchFile(Exception):
    __module__ = _MODULE


class NoModel(Exception):
    __module__ = _MODULE


class EngineError(Exception):
    __module__ = _MODULE


class RuntimeException(Exception):
    __module__ = _MODULE


class InvalidProtobuf(Exception):
    __module__ = _MODULE


class ModelLoaded(Exception):
    __module__ = _MODULE


class NotImplemented(Exception):  # noqa: A001: their name
    __module__ = _MODULE


class InvalidGraph(Exception):
    __module__ = _MODULE


class EPFail(Exception):
    __module__ = _MODULE


class NotFound(Exception):
    __module__ = _MODULE


class ModelLoadCanceled(Exception):
    __module__ = _MODULE


class ModelRequiresCompilation(Exception):
    __module__ = _MODULE


class DeviceReset(Exception):
    __module__ = _MODULE


# Number and name in the texts of onnxruntime, which some programs look into.
_NUMBERS: dict[type[Exception], tuple[int, str]] = {
    Fail: (1, "FAIL"), InvalidArgument: (2, "INVALID_ARGUMENT"), NoSuchFile: (3, "NO_SUCHFILE"), NoModel: (4, "NO_MODEL"),
    EngineError: (5, "ENGINE_ERROR"), RuntimeException: (6, "RUNTIME_EXCEPTION"), InvalidProtobuf: (7, "INVALID_PROTOBUF"),
    ModelLoaded: (8, "MODEL_LOADED"), NotImplemented: (9, "NOT_IMPLEMENTED"), InvalidGraph: (10, "INVALID_GRAPH"),
    EPFail: (11, "EP_FAIL"), ModelLoadCanceled: (12, "MODEL_LOAD_CANCELED"),
    ModelRequiresCompilation: (13, "MODEL_REQUIRES_COMPILATION"), NotFound: (14, "NOT_FOUND")}


def _reduced(exception: Exception) -> tuple[Any, ...]:
    return _made, (type(exception).__name__, exception.args), exception.__dict__ or None


def _made(name: str, arguments: tuple[Any, ...]) -> Exception:
    made: Exception = globals()[name](*arguments)
    return made


for _kind in (*_NUMBERS, DeviceReset):
    copyreg.pickle(_kind, _reduced)  # their module's name leads to onnxruntime's own classes, or nowhere


def error(kind: type[Exception], message: str) -> Exception:
    number, name = _NUMBERS[kind]
    return kind(f"[ONNXRuntimeError] : {number} : {name} : {message}")


def while_loading(found: _errors.Error, path: str | None, was_read: bool) -> Exception:
    text = str(found).replace(_errors.OPERATORS_IN_PYTHON, "SessionOptions.register_custom_ops_library()")
    if "give the folder its files are in" in text:
        text += ", in the config entry session.model_external_initializers_file_folder_path"
    if isinstance(found, _errors.UnreadableError):
        if path is not None and not os.path.exists(path):
            return error(NoSuchFile, f"Load model from {path} failed: {text}")
        return error(InvalidProtobuf, text)
    if isinstance(found, _errors.InvalidModelError):
        return error(InvalidGraph if was_read else InvalidProtobuf, text)
    if isinstance(found, _errors.UnsupportedError):
        return error(NotImplemented, text)
    if isinstance(found, _errors.BadInputError):
        return error(InvalidArgument, text)
    if isinstance(found, _errors.OutOfMemoryError):
        return error(RuntimeException, text)
    return error(Fail, text)


def while_running(found: _errors.Error) -> Exception:
    if isinstance(found, _errors.BadInputError):
        return error(InvalidArgument, str(found))
    if isinstance(found, _errors.CancelledError):
        return error(Fail, f"Exiting due to terminate flag being set to true: {found}")
    if isinstance(found, _errors.UnsupportedError):
        return error(NotImplemented, str(found))
    if isinstance(found, (_errors.RunFailedError, _errors.OutOfMemoryError)):
        return error(RuntimeException, f"Non-zero status code returned while running {found}")
    return error(Fail, str(found))


def raise_running(found: _errors.Error) -> NoReturn:
    raise while_running(found) from found


@contextlib.contextmanager
def invalid_arguments() -> Iterator[None]:
    """What is said of a value outside of a run is a RuntimeError, as there."""
    try:
        yield
    except _errors.Error as found:
        raise RuntimeError(str(found)) from found
