"""onnx.parser."""

from __future__ import annotations

from typing import Any

import onnx
import onnx.parser

from ..._errors import Error
from ..._model import Model
from ._messages import IR_VERSION, newest_opset

ParseError = onnx.parser.ParseError


def parse_model(model_text: str) -> Any:
    """ParseError with line and column."""
    try:
        return onnx.ModelProto.FromString(Model.from_text(model_text).to_bytes())
    except Error as found:
        raise ParseError(str(found)) from found


def parse_graph(graph_text: str) -> Any:
    return parse_model(f'<ir_version: {IR_VERSION}, opset_import: ["" : {newest_opset()}]> {graph_text}').graph


def parse_node(node_text: str) -> Any:
    return parse_graph(f"graph () => () {{ {node_text} }}").node[0]
