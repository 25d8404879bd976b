"""onnx.checker."""

from __future__ import annotations

from typing import Any

import onnx
import onnx.checker

from ... import _tools
from ..._errors import Error
from ._messages import is_path, model_of_graph

ValidationError = onnx.checker.ValidationError
MAXIMUM_PROTOBUF = 2 * 1024**3


def check_model(model: Any, full_check: bool = False, skip_opset_compatibility_check: bool = False,
                check_custom_domain: bool = False) -> None:
    """Raises ValidationError where the model, a message, its bytes or a path, breaks a rule; the text names every rule.

    `full_check` also infers types and shapes. Opset versions are judged by what Sardonyx knows, so that
    `skip_opset_compatibility_check` changes nothing.
    """
    try:
        report = _tools.check(model, full=full_check, data=is_path(model), unknown_domains_are_errors=check_custom_domain)
    except Error as found:
        raise ValidationError(str(found)) from found
    if report.errors:
        raise ValidationError("\n".join(map(str, report.errors)))


def check_graph(graph: Any, ctx: Any = None) -> None:
    check_model(model_of_graph(graph))


def check_tensor(tensor: Any, ctx: Any = None) -> None:
    named = onnx.TensorProto()
    named.CopyFrom(tensor)
    named.name = named.name or "tensor"
    check_graph(onnx.helper.make_graph([], "graph", [], [], initializer=[named]))


def check_node(node: Any, ctx: Any = None) -> None:
    """The node by itself: its operator, attributes and number of inputs and outputs."""
    inputs = [onnx.ValueInfoProto(name=name) for name in dict.fromkeys(node.input) if name]
    graph = onnx.helper.make_graph([node], "graph", inputs, [])
    found = [one for one in _tools.check(model_of_graph(graph)).errors if "node 0" in one.place]
    if found:
        raise ValidationError("\n".join(map(str, found)))


def is_proper_onnx_domain(domain: str) -> bool:
    return domain in ("", "ai.onnx", "ai.onnx.ml", "ai.onnx.training", "ai.onnx.preview", "ai.onnx.preview.training")
