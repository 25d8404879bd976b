"""Options of the extension's, with their names in what is raised for them."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, TypeVar

from ._errors import BadInputError

_Options = TypeVar("_Options")


def with_options(options: _Options, values: Mapping[str, Any]) -> _Options:
    """Sets them all. Raises TypeError for a value of another type, BadInputError for a number out of range."""
    for name, value in values.items():
        try:
            setattr(options, name, value)
        except (TypeError, OverflowError) as error:
            if isinstance(value, int) and not isinstance(value, bool) and isinstance(getattr(options, name), (int, type(None))):
                raise BadInputError(f"{name} is out of range; got {value}") from None
            wanted = type(getattr(options, name)).__name__
            raise TypeError(f"{name} takes a value of type {wanted}, and {value!r} was given") from error
    return options
