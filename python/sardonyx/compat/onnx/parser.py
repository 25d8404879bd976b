"""onnx.parser."""

from __future__ import annotations

from typing import Any

import onnx
import onnx.parser

from ..._errors import Error
from ..._model import Model
from ._messages import IR_VERSION, message_of, newest_opset

ParseError = onnx.parser.ParseError


def _header() -> str:
    return f'<ir_version: {IR_VERSION}, opset_import: ["" : {newest_opset()}]> '


def parse_model(model_text: str) -> Any:
    """ParseError with line and column."""
    try:
        return message_of(Model.from_text(model_text, load_external_data=False))
    except Error as found:
        raise ParseError(str(found)) from found


def parse_graph(graph_text: str) -> Any:
    return parse_model(_header() + graph_text).graph


def parse_function(function_text: str) -> Any:
    functions = parse_model(f"{_header()} graph () => () {{ }} {function_text}").functions
    if len(functions) != 1:
        raise ParseError(f"the text holds {len(functions)} functions, and not one")
    return functions[0]


def parse_node(node_text: str) -> Any:
    nodes = parse_graph(f"graph () => () {{ {node_text}\n }}").node
    if len(nodes) != 1:
        raise ParseError(f"the text holds {len(nodes)} nodes, and not one")
    return nodes[0]


__all__ = ["parse_function", "parse_graph", "parse_model", "parse_node"]
