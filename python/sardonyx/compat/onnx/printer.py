"""onnx.printer."""

from __future__ import annotations

from typing import Any

import onnx

from ... import _tools
from ._messages import model_of_graph


def to_text(proto: Any) -> str:
    """A model or a graph in ONNX's textual syntax."""
    if isinstance(proto, onnx.GraphProto):
        whole = _tools.to_text(model_of_graph(proto), annotations=False)
        return whole[whole.index(">") + 1:].lstrip()
    if isinstance(proto, onnx.FunctionProto):
        raise TypeError("a function is printed with its model: to_text(model)")
    return _tools.to_text(proto)
