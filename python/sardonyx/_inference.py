"""Types and shapes of a model's values, without running it."""

from __future__ import annotations

import dataclasses
import os
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any, NamedTuple

from . import _core
from ._errors import in_python
from ._model import Model, ModelSource

if TYPE_CHECKING:
    from ._operators import Operator


class InferredValue(NamedTuple):
    """`graph` is "" for the main graph. `state`: known, bounded, open, partial or unknown."""

    graph: str
    name: str
    type: str
    element_type: str | None
    shape: tuple[int | str, ...] | None
    state: str


class InferredUnknown(NamedTuple):
    """A size that only a run decides."""

    name: str
    bound: str
    node: str
    reason: str


class InferredName(NamedTuple):
    """A name that the model declares, explained by others."""

    name: str
    expression: str


class Finding(NamedTuple):
    is_error: bool
    place: str
    message: str


def _finding(is_error: bool, place: str, message: str) -> Finding:
    return Finding(is_error, place, in_python(message))


@dataclasses.dataclass(frozen=True)
class Inference:
    """What inference found; `findings` are nodes that can't run, and declarations that contradict."""

    values: list[InferredValue]
    unknowns: list[InferredUnknown]
    names: list[InferredName]
    findings: list[Finding]

    def __getitem__(self, name: str) -> InferredValue:
        """The value of this name in the main graph."""
        for value in self.values:
            if value.graph == "" and value.name == name:
                return value
        raise KeyError(name)


def _inference(described: Any) -> Inference:
    values, unknowns, names, findings = described
    return Inference([InferredValue(*one) for one in values], [InferredUnknown(*one) for one in unknowns],
                     [InferredName(*one) for one in names], [_finding(*one) for one in findings])


def infer_types(model: ModelSource, *, sizes: Mapping[str, int] | None = None, strict: bool = False,
                operators: Sequence[Operator] = ()) -> Inference:
    """Types and shapes of all values. `sizes` are to be numbers: of names of the model ("batch"), and of places that its
    inputs leave open ("image.2"). `strict`: declarations that contradict are
    errors, and so is what the standard forbids though a run does it. `operators` in Python that the model calls."""
    chosen = dict(sizes or {})
    if operators:
        model = Model(model, operators=operators)
    if isinstance(model, (str, os.PathLike)):
        return _inference(_core.infer_path(os.fsdecode(model), chosen, strict))
    held = model if isinstance(model, Model) else Model(model)
    return _inference(_core.infer_model(held._held, chosen, strict))


def infer_shapes(model: Any, output: str | os.PathLike[str] | None = None, *, sizes: Mapping[str, int] | None = None,
                 strict: bool = False) -> Any:
    """The model with all that inference learned as value_info.

    A path needs `output`, which may be the same path; weights are copied from file to file without being held in memory.
    A message gives back a message of the same class, bytes give bytes, all else a Model. Raises `InvalidModelError` for nodes
    that can't run where `strict`.
    """
    chosen = dict(sizes or {})
    if isinstance(model, (str, os.PathLike)):
        if output is None:
            raise TypeError("infer_shapes() of a path writes a file: give output=, which may be the same path")
        _refuse_errors(_core.infer_file(os.fsdecode(model), os.fsdecode(output), chosen, strict), strict)
        return os.fsdecode(output)
    from ._tools import _made, _opened, given_back

    opened = _opened(model)
    _refuse_errors(_core.infer_model(opened._held, chosen, strict), strict)
    made = _made(_core.typed_model(opened._held, chosen), opened)
    if output is not None:
        made.save(output)
    return given_back(model, made)


def _refuse_errors(described: Any, strict: bool) -> None:
    from ._errors import InvalidModelError

    errors = [_finding(*one) for one in described[3] if one[0]]
    if strict and errors:
        raise InvalidModelError(errors[0].message, errors[0].place)
