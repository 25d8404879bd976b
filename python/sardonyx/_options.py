"""Options of the extension's, with their names in what is raised for them."""

from __future__ import annotations

import os
from collections.abc import Mapping
from typing import Any, TypeVar

from ._errors import BadInputError

_Options = TypeVar("_Options")


def path_of(name: str, value: Any) -> str:
    """Of an option that is a path."""
    if not isinstance(value, (str, bytes, os.PathLike)):
        raise TypeError(f"{name} takes a path, and {value!r} was given")
    return os.fsdecode(value)


def list_of(name: str, value: Any) -> list[Any]:
    """Of an option that is a list; a text is none."""
    if isinstance(value, (str, bytes)) or not hasattr(value, "__iter__"):
        raise TypeError(f"{name} takes a list, and {value!r} was given")
    return list(value)


def dict_of(name: str, value: Any) -> dict[str, Any]:
    """Of an option that is given by name, or None."""
    if value is not None and not hasattr(value, "keys"):
        raise TypeError(f"{name} takes a dict, and {value!r} was given")
    made = dict(value or {})
    for key in made:
        if not isinstance(key, str):
            raise TypeError(f"{name} takes a dict with names as keys, and {key!r} is one of them")
    return made


def with_options(options: _Options, values: Mapping[str, Any]) -> _Options:
    """Sets them all. Raises TypeError for a value of another type, BadInputError for a number out of range."""
    for name, value in values.items():
        try:
            setattr(options, name, value)
        except (TypeError, OverflowError) as error:
            now = getattr(options, name)
            if isinstance(value, int) and not isinstance(value, bool) and isinstance(now, (int, type(None))) and not isinstance(now, bool):
                raise BadInputError(f"{name} is out of range; got {value}") from None
            wanted = type(now).__name__
            raise TypeError(f"{name} takes a value of type {wanted}, and {value!r} was given") from error
    return options
