"""onnx.printer."""

from __future__ import annotations

from typing import Any

import onnx

from ... import _tools
from ._messages import model_of_graph


def to_text(proto: Any) -> str:
    """A model, a graph, a function or a node in ONNX's textual syntax."""
    if isinstance(proto, onnx.ModelProto):
        return _tools.to_text(proto)
    empty = onnx.GraphProto(name="graph")
    if isinstance(proto, onnx.GraphProto):
        whole = _tools.to_text(model_of_graph(proto), annotations=False)
        return whole[_end_of_header(whole):].lstrip()
    if isinstance(proto, onnx.FunctionProto):
        without = _tools.to_text(model_of_graph(empty), annotations=False)
        return _tools.to_text(model_of_graph(empty, functions=[proto]), annotations=False)[len(without):].lstrip()
    if isinstance(proto, onnx.NodeProto):
        empty.node.append(proto)
        whole = _tools.to_text(model_of_graph(empty), annotations=False)
        inside = whole[whole.index("{", _end_of_header(whole)) + 1:whole.rindex("}")]
        return "\n".join(line[2:] if line.startswith("  ") else line for line in inside.strip("\n").splitlines()).rstrip()
    raise TypeError("Unsupported argument type.")


def _end_of_header(text: str) -> int:
    return text.index(">") + 1


__all__ = ["to_text"]
