"""Operators in Python, for models that call what neither the standard nor Sardonyx defines."""

from __future__ import annotations

import inspect
import sys
from collections.abc import Callable, Mapping, Sequence
from typing import Any, NamedTuple, Union, get_args, get_origin, get_type_hints

import numpy as np

from . import _core

InferContext = _core.InferContext
Size = _core.Size


class OperatorNode(NamedTuple):
    """A node that calls an operator in Python. `since`: the version of the signature that the model's import chooses;
    `attributes`: those of the node, then the signature's defaults."""

    since: int
    attributes: dict[str, Any]
    input_count: int
    output_count: int


class Operator:
    """An operator in Python: slow, for prototypes and tests; docs/custom_operators.md has the one in C++.

        class Leaky(sardonyx.Operator):
            domain = "com.example"
            signature = '''
                Leaky
                  since 1
                    in x: T
                    out y: T
                    attr slope: float = 0.01
                    where T in float double'''

            def run(self, node, x):
                return np.where(x < 0, x * x.dtype.type(node.attributes["slope"]), x)

            def infer(self, context):
                context.set_output_like(0, 0)

        session = sardonyx.Session("model.onnx", operators=[Leaky()])

    `signature` is the text of a signature file (docs/spec_format.md) with all versions of the operator. `run` gets the inputs as
    arrays of its own, None for absent ones, and returns an array, or a tuple with one for each output; numbers and lists take the
    declared type. `infer` is optional, an `InferContext` its argument: without it types follow the signature, and shapes are known
    when `run` has returned. Both are called with the interpreter's lock held, by whichever thread runs, and by several at a time
    in a Python without that lock. What `run` raises ends the run as a `RunFailedError` with the exception as its cause.
    """

    domain: str
    signature: str
    infer: Callable[[InferContext], Any] | None = None

    @property
    def name(self) -> str:
        """The first word of the signature."""
        words = self.signature.split(None, 1)
        return words[0] if words else ""

    def run(self, node: OperatorNode, *inputs: Any) -> Any:
        raise NotImplementedError(f"{type(self).__name__}.run() is what computes the operator")

    def __repr__(self) -> str:
        return f"<sardonyx.Operator {self.domain}.{self.name}>"


class FunctionOperator(Operator):
    """What `operator` makes of a function, and calls like that function."""

    def __init__(self, function: Callable[..., Any], domain: str, signature: str):
        self._function = function
        self.domain = domain
        self.signature = signature
        self.__doc__ = function.__doc__
        self.__name__: str = function.__name__
        self.__module__ = function.__module__
        self.__qualname__ = function.__qualname__

    def run(self, node: OperatorNode, *inputs: Any) -> Any:
        return self._function(*inputs, **node.attributes)

    def __call__(self, *inputs: Any, **attributes: Any) -> Any:
        return self._function(*inputs, **attributes)

    def inference(self, infer: Callable[[InferContext], Any]) -> Callable[[InferContext], Any]:
        """Decorates the function that infers types and shapes."""
        self.infer = infer
        return infer

    def __reduce__(self) -> Any:
        found: Any = sys.modules.get(self.__module__)
        for name in self.__qualname__.split("."):
            found = getattr(found, name, None)
        if found is not self:
            raise TypeError(f"{self!r} can't be pickled: it is not what {self.__module__}.{self.__qualname__} names")
        return _found_again, (self.__module__, self.__qualname__)

    def __copy__(self) -> FunctionOperator:
        return self

    def __deepcopy__(self, memo: dict[int, Any]) -> FunctionOperator:
        return self


def _found_again(module: str, name: str) -> Any:
    import importlib

    found: Any = importlib.import_module(module)
    for part in name.split("."):
        found = getattr(found, part)
    return found


_ANY = "any_ir13"
_KINDS: list[tuple[type, str]] = [(bool, "int"), (int, "int"), (float, "float"), (str, "string"), (np.ndarray, "tensor")]


def _annotated(annotation: Any) -> str | None:
    """The kind of attribute that an annotation says."""
    origin, parts = get_origin(annotation), get_args(annotation)
    if origin is Union or (origin is not None and type(None) in parts):
        (annotation, *_) = [one for one in parts if one is not type(None)]
        origin, parts = get_origin(annotation), get_args(annotation)
    if origin in (list, tuple, Sequence) and parts:
        of = _annotated(parts[0])
        return None if of is None else of + "s"
    return next((kind for known, kind in _KINDS if annotation is known or origin is known), None)


def _kind(annotation: Any, default: Any, place: str) -> str:
    """Of an attribute, by its default, else by its annotation. Whole numbers may be floats: a list's other items say so, or the annotation."""
    said, shown = _annotated(annotation), None
    if default is not inspect.Parameter.empty and default is not None:
        is_list = isinstance(default, (list, tuple))
        items = [one for one in default if isinstance(one, float)] or list(default) if is_list else [default]
        if items:
            shown = next((kind + "s" * is_list for known, kind in _KINDS if isinstance(items[0], known)), None)
    if shown in ("int", "ints") and said == shown.replace("int", "float"):
        return said
    if shown or said:
        return shown or said or ""
    raise TypeError(f"{place} is an attribute, whose kind its default or its annotation has to say: int, float, str, list[int], "
                    "list[float], list[str] or numpy.ndarray")


def _can_be_written(default: Any) -> bool:
    """Whether a signature can say the default; what it does not say is the function's."""
    if isinstance(default, (list, tuple)):
        return len(default) > 0 and all(map(_can_be_written, default))
    return default is not None and not isinstance(default, np.ndarray) and (not isinstance(default, str) or default.isprintable())


def _written(value: Any) -> str:
    if isinstance(value, (list, tuple)):
        return "[" + ", ".join(map(_written, value)) + "]"
    if isinstance(value, (int, np.integer, np.bool_)):
        return repr(int(value))
    if isinstance(value, str):
        return '"' + value.replace("\\", "\\\\").replace('"', '\\"') + '"'
    return repr(float(value))


def _signature_of(function: Callable[..., Any], name: str, since: int, outputs: Sequence[str], types: Mapping[str, str],
                  nondeterministic: bool) -> str:
    """The text of a signature file."""
    try:
        hints = get_type_hints(function)
    except Exception:  # annotations that name what is not there
        hints = {}
    common = types.get("T", _ANY)
    lines, constraints = [name, f"  since {since}"], {"T": common}
    unknown = set(types) - {"T"}

    def formal(word: str, given: str, more: str = "") -> None:
        kind = "T"
        if given in types:
            kind = "T_" + given
            constraints[kind] = types[given]
            unknown.discard(given)
        lines.append(f"    {word} {given}: {kind}{more}")

    attributes, has_inputs = [], False
    for one in inspect.signature(function).parameters.values():
        place = f"parameter '{one.name}' of {function.__name__}()"
        if one.kind is inspect.Parameter.VAR_KEYWORD:
            raise TypeError(f"{place} takes any attribute, and a signature names each")
        if one.kind is inspect.Parameter.KEYWORD_ONLY:
            default = one.default
            line = f"    attr {one.name}: {_kind(hints.get(one.name), default, place)}"
            if default is inspect.Parameter.empty:
                line += " required"
            elif _can_be_written(default):
                line += f" = {_written(default)}"
            attributes.append(line)
        elif one.kind is inspect.Parameter.VAR_POSITIONAL:
            formal("in", one.name, " variadic(0) mixed" if one.name in types else " variadic(0)")
            has_inputs = True
        else:
            formal("in", one.name, "" if one.default is inspect.Parameter.empty else " optional")
            has_inputs = True
    for i, output in enumerate(outputs):
        formal("out", output, " optional" if i > 0 else "")
    if unknown:
        raise ValueError(f"types= names {sorted(unknown)[0]!r}, which is neither an input nor an output of {name}")
    if not has_inputs and any(line.endswith(": T") for line in lines):
        raise ValueError(f"{name} has no input that could decide the type of its output: say it with types=")
    lines += attributes
    used = {line.split(": ", 1)[1].split()[0] for line in lines if line.lstrip().startswith(("in ", "out "))}
    lines += [f"    where {constraint} in {allowed}" for constraint, allowed in constraints.items() if constraint in used]
    if nondeterministic:
        lines.append("    nondeterministic")
    return "\n".join(lines) + "\n"


def operator(domain: str, *, name: str | None = None, since: int = 1, outputs: Sequence[str] = ("y",),
             types: Mapping[str, str] | None = None, signature: str | None = None, like: str | None = None,
             infer: Callable[[InferContext], Any] | None = None, nondeterministic: bool = False
             ) -> Callable[[Callable[..., Any]], FunctionOperator]:
    """Decorates a function that is to be an operator: its positional parameters are the inputs (those with a default may be
    absent, `*more` takes any number), its keyword-only ones the attributes.

        @sardonyx.operator("com.example", like="x")
        def Leaky(x, *, slope: float = 0.01):
            return np.where(x < 0, x * x.dtype.type(slope), x)

        session = sardonyx.Session("model.onnx", operators=[Leaky])

    `types` says what inputs and outputs may be, by their names, in the words of docs/spec_format.md ("float double", "int64");
    `outputs` are the names of the outputs, of which a node may leave out all but the first. "T" is the type that all others have in common, any tensor unless it is said. `like` names the input whose type and shape all
    outputs have; `infer` is a function of an `InferContext` instead. `signature` is a whole signature in place of the one that
    is made of the function. `nondeterministic`: not computed before the first run, whatever the inputs.
    """

    def made(function: Callable[..., Any]) -> FunctionOperator:
        text = signature
        if text is None:
            text = _signature_of(function, name or function.__name__, since, list(outputs), dict(types or {}), nondeterministic)
        operator_object = FunctionOperator(function, domain, text)
        if infer is not None:
            operator_object.infer = infer
        elif like is not None:
            operator_object.infer = _like(function, like)
        return operator_object

    return made


def _like(function: Callable[..., Any], like: str) -> Callable[[InferContext], Any]:
    names = [one.name for one in inspect.signature(function).parameters.values() if one.kind is not inspect.Parameter.KEYWORD_ONLY]
    if like not in names:
        raise ValueError(f"like= names {like!r}, and the inputs of {function.__name__}() are {', '.join(names)}")
    index = names.index(like)

    def infer(context: InferContext) -> None:
        for output in range(context.output_count):
            context.set_output_like(output, index)

    return infer
