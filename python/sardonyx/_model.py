"""Where models come from: paths, bytes, file objects, protos."""

from __future__ import annotations

import dataclasses
import os
import warnings
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import IO, TYPE_CHECKING, Any, NamedTuple, Protocol, Union, cast

import numpy.typing as npt

from . import _core
from ._errors import ModelWarning
from ._options import list_of, path_of, with_options

if TYPE_CHECKING:
    from typing_extensions import Self

    from ._operators import Operator


_UNBOUNDED = 2**62


class Serializable(Protocol):
    """What a message of protobuf offers: onnx.ModelProto."""

    def SerializeToString(self) -> bytes: ...


ModelSource = Union[str, "os.PathLike[str]", bytes, bytearray, memoryview, IO[bytes], IO[str], Serializable, "Model"]
WarningListener = Callable[[str, str, str, str], Any]


def _warn(rule: str, place: str, message: str, advice: str) -> None:
    text = f"{place}: {message}" if place else message
    text += f"; {advice}" if advice else ""
    text += f" [{rule}]" if rule else ""
    warnings.warn(text, ModelWarning, stacklevel=4)


@dataclasses.dataclass(frozen=True)
class _Source:
    """What a model can be read from once more."""

    path: str | None = None
    data: bytes | None = None
    text: str | None = None
    folder: str = ""


def _bytes_of(message: Any) -> bytes:
    data = message.SerializeToString()
    if not isinstance(data, bytes):
        raise TypeError(f"SerializeToString() of {type(message).__name__} gave {type(data).__name__}, not bytes")
    return data


def _folder_of(file: Any) -> str:
    name = getattr(file, "name", None)
    return os.path.dirname(os.path.abspath(name)) if isinstance(name, str) and os.path.exists(name) else ""


def _source_of(model: Any, folder: str) -> _Source:
    if isinstance(model, (str, os.PathLike)):
        return _Source(path=os.fsdecode(model))
    if isinstance(model, bytes):
        return _Source(data=model, folder=folder)
    if isinstance(model, (bytearray, memoryview)):
        return _Source(data=bytes(model), folder=folder)
    if hasattr(model, "SerializeToString"):
        return _Source(data=_bytes_of(model), folder=folder)
    if hasattr(model, "read"):
        content = model.read()
        if isinstance(content, str):
            return _Source(text=content)
        return _Source(data=bytes(content), folder=folder or _folder_of(model))
    if type(model).__module__.split(".")[0] == "onnx_ir":
        import onnx_ir  # type: ignore[import-not-found,import-untyped,unused-ignore]

        return _Source(data=_bytes_of(onnx_ir.to_proto(model)), folder=folder)
    raise TypeError(
        "a model is a path, bytes, a file object, or a message with SerializeToString() such as onnx.ModelProto, "
        f"and not a {type(model).__name__}")


class DeclaredValue(NamedTuple):
    """An input or output; `type` in full: "float[batch,3]"."""

    name: str
    type: str


class Node(NamedTuple):
    """A node; `attributes` as the textual syntax writes them: "axis = 1"."""

    domain: str
    op_type: str
    name: str
    inputs: list[str]
    outputs: list[str]
    attributes: list[str]


class _Initializers(Mapping[str, "npt.NDArray[Any]"]):
    def __init__(self, held: _core.Model):
        self._held = held

    def __getitem__(self, name: str) -> npt.NDArray[Any]:
        found = _core.initializer(self._held, name)
        if found is None:
            raise KeyError(name)
        return found

    def __iter__(self) -> Iterator[str]:
        return iter(_core.initializer_names(self._held))

    def __len__(self) -> int:
        return len(_core.initializer_names(self._held))


class Model:
    """A model, read and ready to make sessions of.

    `model` is a path (the file is mapped, its weights are never copied into Python), bytes, a file object, or anything with
    `SerializeToString()`, which it has too. `folder` is where external data of a model from memory lies. Files may be binary, JSON, text
    format or ONNX's textual syntax, by their ending.

    A rule of the standard that the model breaks without leaving a doubt is mended in memory, with a `ModelWarning`, unless
    `strict`. `warn` is called instead with the rule, the place, the message and the advice of each warning.
    `operators` are operators in Python (`sardonyx.Operator`) that the model may call, `libraries` files with more of them in C++.
    With `load_external_data=False` tensors keep saying where their data is, which need not be there: for looking and changing.
    """

    _source: _Source
    _options: dict[str, Any]
    _warn: WarningListener | None
    _held: _core.Model

    def __init__(self, model: ModelSource, *, folder: str | os.PathLike[str] = "", strict: bool = False,
                 trusted_folder: str | os.PathLike[str] = "", read_into_memory: bool = False,
                 operator_sets: Sequence[str | os.PathLike[str]] = (), libraries: Sequence[str | os.PathLike[str]] = (),
                 operators: Sequence[Operator] = (), memory_limit: int = 0, load_external_data: bool = True,
                 warn: WarningListener | None = None):
        if isinstance(model, Model):
            self._source = model._source if model._source != _Source() else _Source(data=model.to_bytes())
            operators = list_of("operators", operators) or model._options.get("operators", ())
        else:
            self._source = _source_of(model, path_of("folder", folder))
        self._options = {
            "strict": strict, "trusted_folder": path_of("trusted_folder", trusted_folder), "read_into_memory": read_into_memory,
            "operator_sets": [path_of("operator_sets", one) for one in list_of("operator_sets", operator_sets)],
            "libraries": [path_of("libraries", one) for one in list_of("libraries", libraries)],
            "operators": tuple(list_of("operators", operators)), "memory_limit": memory_limit,
            "load_external_data": load_external_data}
        self._warn = warn
        self._load()

    @classmethod
    def from_text(cls, text: str, **options: Any) -> Self:
        """Parses ONNX's textual syntax."""
        if not isinstance(text, str):
            raise TypeError(f"the text of a model is a str, and a {type(text).__name__} was given")
        model = cls.__new__(cls)  # what __init__ sets is set here
        model._source = _Source(text=text)
        model._options = dict(options)
        model._warn = model._options.pop("warn", None)
        model._load()
        return model

    @classmethod
    def _of(cls, held: _core.Model, *others: Model) -> Model:
        """One that was made of others; it is pickled by its bytes. It holds their operators, which the engine alone does not."""
        model = cls.__new__(cls)
        operators = tuple({id(one): one for other in others for one in other._options.get("operators", ())}.values())
        model._source, model._options, model._warn, model._held = _Source(), {"operators": operators}, None, held
        return model

    def _load(self) -> None:
        options = with_options(_core.LoadOptions(), {name: value for name, value in self._options.items() if name != "operators"})
        if self._warn is not None and not callable(self._warn):
            raise TypeError(f"warn takes a function, and {self._warn!r} was given")
        for one in self._options.get("operators", ()):
            if not hasattr(one, "signature"):
                raise TypeError(f"operators takes a list of sardonyx.Operator, and {one!r} is in it")
            options.add_operator(one.domain, one.signature, one)
        options.listener = self._warn or _warn
        source = self._source
        if source.path is not None:
            self._held = _core.Model.from_file(source.path, options)
        elif source.data is not None:
            self._held = _core.Model.from_bytes(source.data, source.folder, options)
        else:
            # What is not UTF-8 is as to_text() gives it.
            self._held = _core.Model.from_text((source.text or "").encode("utf-8", "surrogateescape"), options)

    @property
    def path(self) -> str | None:
        """The file it was read from; None for a model from memory."""
        return self._source.path

    # --- what it says -------------------------------------------------------------------------

    @property
    def _header(self) -> dict[str, Any]:
        return _core.model_header(self._held)

    @property
    def ir_version(self) -> int | None:
        return cast("int | None", self._header["ir_version"])

    @property
    def producer_name(self) -> str:
        return str(self._header["producer_name"])

    @property
    def producer_version(self) -> str:
        return str(self._header["producer_version"])

    @property
    def domain(self) -> str:
        return str(self._header["domain"])

    @property
    def model_version(self) -> int:
        return int(self._header["model_version"])

    @property
    def doc_string(self) -> str:
        return str(self._header["doc_string"])

    @property
    def graph_name(self) -> str:
        return str(self._header.get("graph_name", ""))

    @property
    def graph_doc_string(self) -> str:
        return str(self._header.get("graph_doc_string", ""))

    @property
    def metadata(self) -> dict[str, str]:
        return cast("dict[str, str]", self._header["metadata"])

    @property
    def opset_imports(self) -> dict[str, int]:
        """Versions by domain."""
        return cast("dict[str, int]", self._header["opset_imports"])

    @property
    def inputs(self) -> list[DeclaredValue]:
        """As declared, with those that initializers give a default to."""
        return [DeclaredValue(*one) for one in _core.declared_inputs(self._held)]

    @property
    def outputs(self) -> list[DeclaredValue]:
        return [DeclaredValue(*one) for one in _core.declared_outputs(self._held)]

    @property
    def nodes(self) -> list[Node]:
        """Those of the main graph."""
        return [Node(*one) for one in _core.model_nodes(self._held)]

    @property
    def initializers(self) -> Mapping[str, npt.NDArray[Any]]:
        """Arrays by name, not to be written to: views of the model's own memory where the elements lie aligned there, as those
        of external data do. External data that was not loaded is mapped when it is asked for."""
        return _Initializers(self._held)

    # --- in other forms -----------------------------------------------------------------------

    def to_bytes(self, form: str = "binary") -> bytes:
        """`form`: binary, text, json or textproto."""
        return _core.model_bytes(self._held, form)

    def SerializeToString(self) -> bytes:
        """For what takes messages of protobuf."""
        return self.to_bytes()

    def to_text(self, *, max_elements: int | None = None, annotations: bool = True) -> str:
        """ONNX's textual syntax; tensors with more than `max_elements` are cut, which no parser reads back."""
        return _core.model_text(self._held, max_elements, annotations)

    def save(self, path: str | os.PathLike[str], *, external_data: str = "", threshold: int = 1024, embed: bool = False,
             checksum: bool = False, trusted_folder: str | os.PathLike[str] = "", form: str | None = None) -> list[str]:
        """Writes a file that appears whole or not at all, in the form of its ending unless `form` says another.

        `external_data` is the file beside it that takes tensors of `threshold` bytes and more; `embed` puts external data
        into the model file. Returns notes of what a reader may stumble over.
        """
        return _core.save_model(self._held, os.fsdecode(path), external_data, threshold, embed, checksum,
                                os.fsdecode(trusted_folder), form)[2]

    def optimized_text(self, max_elements: int = 16) -> str:
        """The graph that a session would run, in ONNX's textual syntax; tensors are cut after `max_elements`."""
        return _core.optimized_text(self._held, max_elements)

    def to_svg(self) -> str:
        """A drawing of the graph, with functions and the bodies of its nodes."""
        return _core.model_drawing(self._held, "svg", _UNBOUNDED) or ""

    def to_dot(self) -> str:
        """The same for Graphviz."""
        return _core.model_drawing(self._held, "dot", _UNBOUNDED) or ""

    def _repr_html_(self) -> str:
        from . import _html

        return _html.of_model(self)

    def __getstate__(self) -> dict[str, Any]:
        if self._source == _Source():
            return {"source": _Source(data=self.to_bytes()), "options": dict(self._options), "warn": None}
        return {"source": self._source, "options": self._options, "warn": self._warn}

    def __setstate__(self, state: dict[str, Any]) -> None:
        self._source, self._options, self._warn = state["source"], state["options"], state["warn"]
        self._load()

    def __copy__(self) -> Model:
        return self  # nothing of it changes

    def __deepcopy__(self, memo: dict[int, Any]) -> Model:
        return self

    def __repr__(self) -> str:
        source = self._source
        if source == _Source():
            return f"<sardonyx.Model '{self.graph_name}' of {len(self.nodes)} nodes>"
        if source.path is not None:
            return f"sardonyx.Model({source.path!r})"
        size = len(source.data) if source.data is not None else len(source.text or "")
        return f"<sardonyx.Model of {size} {'bytes' if source.data is not None else 'characters'}>"
