"""What a session says of its model."""

from __future__ import annotations

import dataclasses
import re
from collections.abc import Sequence
from typing import Any

from ..._model import Model
from ..._session import ValueInfo


class NodeArg:
    """An input or output: `name`, `type` ("tensor(float)") and `shape` (numbers, names, None where open)."""

    def __init__(self, name: str, type: str, shape: list[Any]):  # noqa: A002: their name
        self.name = name
        self.type = type
        self._shape = tuple(shape)

    @property
    def shape(self) -> list[Any]:
        """A list of the caller's own: programs fill in sizes that are open."""
        return list(self._shape)

    def __str__(self) -> str:
        return f"NodeArg(name='{self.name}', type='{self.type}', shape={self.shape})"


_OPTIONAL_TENSOR = re.compile(r"optional\(\w+\[([^\]]*)\]\)")
_KEY = re.compile(r"map\((\w+),")


def onnxruntime_type(info: ValueInfo) -> str:
    """ "float[n,3]" -> "tensor(float)", "seq(map(int64,float[]))" -> "seq(map(int64,tensor(float)))"."""
    text = re.sub(r"\[[^\]]*\]", "", info.type).replace(" ", "")
    if info.kind == "tensor":
        return f"tensor({info.element_type})"
    if text.startswith("sparse"):
        return text if "(" in text else text.replace("sparse_", "sparse_tensor(") + ")"
    keys = _KEY.findall(text)
    text = re.sub(r"\b(\w+)(?=[,)]|$)", lambda one: f"tensor({one.group(1)})", text)
    for key in keys:
        text = text.replace(f"map(tensor({key}),", f"map({key},")
    return text


def node_arg(info: ValueInfo, names: Sequence[str] = ()) -> NodeArg:
    """`names`: those that the model has for the sizes, also where Sardonyx takes one for none ("?", "unk__12")."""
    shape: list[Any] = []
    held = _OPTIONAL_TENSOR.fullmatch(info.type)
    if held is not None:
        info = info._replace(shape=tuple(int(one) if one.isdigit() else None if one == "?" else one for one in held.group(1).split(",") if one))
    for i, size in enumerate(info.shape or ()):
        if isinstance(size, str) and size == f"{info.name}.{i}":
            size = None  # a name that Sardonyx gives a place that has none
        if not isinstance(size, int) and i < len(names):
            size = names[i] or size
        shape.append(size)
    return NodeArg(info.name, onnxruntime_type(info), shape)


@dataclasses.dataclass
class ModelMetadata:
    producer_name: str = ""
    graph_name: str = ""
    domain: str = ""
    description: str = ""
    graph_description: str = ""
    version: int = 2**63 - 1  # what onnxruntime says of a model without one
    custom_metadata_map: dict[str, str] = dataclasses.field(default_factory=dict)


def read_metadata(model: Model) -> ModelMetadata:
    return ModelMetadata(model.producer_name, model.graph_name, model.domain, model.doc_string, model.graph_doc_string,
                         model.model_version or 2**63 - 1, model.metadata)
