"""What goes wrong, as exceptions: one class for each code of the engine."""

from __future__ import annotations


class Error(Exception):
    """The base of all errors of Sardonyx.

    `code` is the engine's name of the kind ("bad input"), `message` says what was found and what to do, `location` where
    in the model or file ("graph 'main', node 3 Softmax 'probs'"; "" where there is none).
    """

    code: str = "internal error"

    def __init__(self, message: str, location: str = "", code: str | None = None):
        super().__init__(f"{location}: {message}" if location else message)
        self.message = message
        self.location = location
        if code is not None:
            self.code = code

    def __reduce__(self) -> tuple[type[Error], tuple[str, str, str]]:
        return type(self), (self.message, self.location, self.code)


class UnreadableError(Error):
    """A file is missing, can't be read, or is not what its name says."""


class InvalidModelError(Error, ValueError):
    """The model breaks a rule that reading or running needs."""


class UnsupportedError(Error, NotImplementedError):
    """The model is legal and asks for something that Sardonyx does not do."""


class BadInputError(Error, ValueError):
    """A name, shape, type or value that was given is wrong."""


class RunFailedError(Error, RuntimeError):
    """A node could not be computed with the values that it met."""


class CancelledError(Error):
    """The caller stopped the run, or its time was over."""


class OutOfMemoryError(Error, MemoryError):
    """A memory limit was reached."""


class InternalError(Error, RuntimeError):
    """A defect of Sardonyx itself: please report it."""


class ModelWarning(UserWarning):
    """What was found in a model that does not keep it from being used."""


_BY_CODE: dict[str, type[Error]] = {
    "unreadable": UnreadableError,
    "invalid model": InvalidModelError,
    "unsupported": UnsupportedError,
    "bad input": BadInputError,
    "run failed": RunFailedError,
    "cancelled": CancelledError,
    "out of memory": OutOfMemoryError,
    "internal error": InternalError,
}
for _code, _class in _BY_CODE.items():
    _class.code = _code


OPERATORS_IN_PYTHON = "operators= or libraries="


def in_python(message: str) -> str:
    """With the options of this package where the engine advises the program's."""
    return message.replace("--library FILE", OPERATORS_IN_PYTHON)


def make(code: str, message: str, location: str) -> Error:
    """What the extension raises."""
    return _BY_CODE.get(code, Error)(in_python(message), location, code)
