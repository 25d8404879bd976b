"""Checking, converting, taking apart and joining models.

Each function takes what Model takes: a path, bytes, a file object, anything with `SerializeToString()`, or a Model. A function
that makes a model gives back what it was given: a message of the same class for a message, bytes for bytes, a Model otherwise.
External data stays where it is, and need not be there, unless a function says so.
"""

from __future__ import annotations

import dataclasses
import os
from collections.abc import Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any, NamedTuple

from . import _core
from ._model import Model, ModelSource
from ._options import list_of, path_of

if TYPE_CHECKING:
    from ._operators import Operator


class Diagnostic(NamedTuple):
    """`severity` is "error", "warning" or "info"; `rule` a number of docs/checker.md."""

    severity: str
    rule: str
    place: str
    message: str
    advice: str

    def __str__(self) -> str:
        place = f"{self.place}: " if self.place else ""
        advice = f"; {self.advice}" if self.advice else ""
        return f"{self.severity}: {place}{self.message}{advice} [{self.rule}]"


class CheckReport(tuple[Diagnostic, ...]):
    """What a check found, in the order of the model."""

    __slots__ = ()

    @property
    def errors(self) -> list[Diagnostic]:
        return [one for one in self if one.severity == "error"]

    @property
    def ok(self) -> bool:
        """There is no error; there may be warnings."""
        return not self.errors

    def __str__(self) -> str:
        return "\n".join(map(str, self)) or "nothing to report"

    def _repr_html_(self) -> str:
        from . import _html

        return _html.table(["", "rule", "place", "found", "advice"], self)


class Difference(NamedTuple):
    """`kind`: "changed", "only in first" or "only in second"."""

    kind: str
    place: str
    first: str
    second: str


@dataclasses.dataclass(frozen=True)
class Parameter:
    """A formal input or output; `option`: single, optional or variadic."""

    name: str
    type: str
    types: list[str]
    option: str


@dataclasses.dataclass(frozen=True)
class AttributeSignature:
    name: str
    type: str
    required: bool
    default: Any


@dataclasses.dataclass(frozen=True)
class OperatorSignature:
    """One version of one operator; `until`: the last version that has it, 0 where it was not removed."""

    domain: str
    name: str
    since: int
    until: int
    deprecated: bool
    inputs: list[Parameter]
    outputs: list[Parameter]
    attributes: dict[str, AttributeSignature]
    constraints: dict[str, list[str]]


def _opened(model: ModelSource) -> Model:
    if isinstance(model, Model):
        return model
    return Model(model, load_external_data=False, warn=_quiet)


def _quiet(rule: str, place: str, message: str, advice: str) -> None:
    """What a tool mends on the way is not what it was asked for; check() tells."""


def _made(held: _core.Model, *others: Model) -> Model:
    return Model._of(held, *others)


def given_back(given: Any, made: Model) -> Any:
    """In the form of what was given."""
    if isinstance(given, Model):
        return made
    if hasattr(given, "SerializeToString") and hasattr(type(given), "FromString"):
        return type(given).FromString(made.to_bytes())
    if isinstance(given, (bytes, bytearray, memoryview)):
        return made.to_bytes()
    return made


def check(model: ModelSource, *, profile: str = "standard", full: bool = False, data: bool = False,
          unknown_domains_are_errors: bool = False, operator_sets: Sequence[str | os.PathLike[str]] = (),
          libraries: Sequence[str | os.PathLike[str]] = (), operators: Sequence[Operator] = ()) -> CheckReport:
    """Holds a model against the rules of the standard; what is wrong is a finding, never an exception.

    `profile`: "runnable" (only what makes running impossible), "standard" or "strict". `full`: types and shapes are inferred
    too. `data`: external data is looked at. `operators` in Python, and those of `libraries`, are held against their signatures.
    """
    options = (profile, full, data, unknown_domains_are_errors, [path_of("operator_sets", one) for one in list_of("operator_sets", operator_sets)],
               [path_of("libraries", one) for one in list_of("libraries", libraries)])
    if operators:
        model = Model(model, load_external_data=False, warn=_quiet, operators=operators)
    if isinstance(model, (str, os.PathLike)):
        found = _core.check_path(os.fsdecode(model), *options)
    else:
        found = _core.check_model(_opened(model)._held, *options)
    return CheckReport(Diagnostic(*one) for one in found)


def convert_version(model: ModelSource, opset: int = 0, *, assume_inference: bool = False) -> Any:
    """With every node in the form of version `opset` of ai.onnx, newer or older; 0 for the newest. Functions are inlined; external data is
    loaded and becomes data of the model. Raises BadInputError where `opset` cannot say what some node means; it names the least that can."""
    opened = model if isinstance(model, Model) else Model(model, warn=_quiet)
    return given_back(model, _made(_core.convert_version(opened._held, opset, assume_inference), opened))


def inline(model: ModelSource) -> Any:
    """With calls of the model's own functions replaced by their bodies."""
    opened = _opened(model)
    return given_back(model, _made(_core.inline_functions(opened._held), opened))


def extract(model: ModelSource, inputs: Sequence[str], outputs: Sequence[str]) -> Any:
    """The part that makes `outputs` of `inputs`. Raises BadInputError for unknown names, and inputs that are missing."""
    opened = _opened(model)
    return given_back(model, _made(_core.extract(opened._held, list_of("inputs", inputs), list_of("outputs", outputs)), opened))


def merge(first: ModelSource, second: ModelSource, connections: Mapping[str, str] | Sequence[tuple[str, str]], *,
          first_prefix: str = "", second_prefix: str = "", outputs: Sequence[str] = ()) -> Any:
    """Two models as one: outputs of the first feed inputs of the second, by their names."""
    pairs = [(left, right) for left, right in (connections.items() if isinstance(connections, Mapping) else connections)]
    one, other = _opened(first), _opened(second)
    held = _core.merge(one._held, other._held, pairs, first_prefix, second_prefix, list_of("outputs", outputs))
    return given_back(first, _made(held, one, other))


def rename(model: ModelSource, *, values: Mapping[str, str] | None = None, nodes: Mapping[str, str] | None = None,
           dimensions: Mapping[str, str] | None = None, functions: Mapping[str, str] | None = None, prefix: str = "") -> Any:
    """With other names, wherever they occur; then `prefix` before those of all values and nodes."""
    opened = _opened(model)
    held = _core.rename(opened._held, dict(values or {}), dict(nodes or {}), dict(dimensions or {}), dict(functions or {}),
                        prefix)
    return given_back(model, _made(held, opened))


def diff(first: ModelSource, second: ModelSource, *, relative: float = 0.0, absolute: float = 0.0, weights: bool = True,
         annotations: bool = True) -> list[Difference]:
    """What distinguishes two models, none for models that are the same. Floating-point weights are equal within
    `relative * |b| + absolute`."""
    found, _ = _core.diff(_opened(first)._held, _opened(second)._held, relative, absolute, weights, annotations)
    return [Difference(*one) for one in found]


def parse(text: str) -> Model:
    """A model in ONNX's textual syntax. Raises InvalidModelError with line and column."""
    return Model.from_text(text)


def to_text(model: ModelSource, *, max_elements: int | None = None, annotations: bool = True) -> str:
    """ONNX's textual syntax; tensors with more than `max_elements` are cut, which no parser reads back."""
    return _opened(model).to_text(max_elements=max_elements, annotations=annotations)


def save(model: ModelSource, path: str | os.PathLike[str], **options: Any) -> None:
    """Writes a model file, in the form of its ending (.onnx, .json, .textproto, .onnxtxt); options as for Model.save()."""
    _opened(model).save(path, **options)


def operator_versions(name: str, domain: str = "") -> list[OperatorSignature]:
    """All versions of an operator, oldest first; none for an unknown one."""
    return [_signature(one) for one in _core.operator_versions(domain, name)]


def operator_signature(name: str, domain: str = "", opset: int | None = None) -> OperatorSignature:
    """The definition that a node binds to where version `opset` is imported, the newest by default. KeyError: there is none."""
    found = [one for one in operator_versions(name, domain) if opset is None or one.since <= opset]
    if not found or (found[-1].until and opset is not None and opset > found[-1].until):
        raise KeyError(f"{domain or 'ai.onnx'} has no operator {name}" + (f" in version {opset}" if opset is not None else ""))
    return found[-1]


def operators(domain: str = "") -> Iterator[str]:
    """The names of a domain's operators, in alphabetical order."""
    return iter(_core.operator_names(domain))


def _signature(described: Any) -> OperatorSignature:
    domain, name, since, until, deprecated, inputs, outputs, attributes, constraints = described
    return OperatorSignature(domain, name, since, until, deprecated, [Parameter(*one) for one in inputs],
                             [Parameter(*one) for one in outputs], {one[0]: AttributeSignature(*one) for one in attributes},
                             constraints)
