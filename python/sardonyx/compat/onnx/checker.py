"""onnx.checker."""

from __future__ import annotations

from typing import Any

import onnx
import onnx.checker
import onnx.shape_inference

from ... import _tools
from ..._errors import Error
from ._messages import IR_VERSION, is_path, model_of_graph, newest_opset, require_message

ValidationError = onnx.checker.ValidationError
DEFAULT_CONTEXT = onnx.checker.DEFAULT_CONTEXT
LEXICAL_SCOPE_CONTEXT = onnx.checker.LEXICAL_SCOPE_CONTEXT
C = onnx.checker.C
MAXIMUM_PROTOBUF = onnx.checker.MAXIMUM_PROTOBUF
_INFERRED = ("D-13", "G-20", "SH-17")  # the rules that inference judges by


def _refuse(found: list[_tools.Diagnostic]) -> None:
    if found:
        raise ValidationError("\n".join(map(str, found)))


def _report(model: Any, **options: Any) -> _tools.CheckReport:
    try:
        return _tools.check(model, **options)
    except Error as found:
        raise ValidationError(str(found)) from found


def check_model(model: Any, full_check: bool = False, skip_opset_compatibility_check: bool = False,
                check_custom_domain: bool = False) -> None:
    """Raises ValidationError where the model, a message, its bytes or a path, breaks a rule; the text names every rule.

    `full_check` also infers types and shapes: InferenceError for what is wrong with them, and for declarations that contradict
    them. Opset versions are judged by what Sardonyx knows, so that
    `skip_opset_compatibility_check` changes nothing.
    """
    if not is_path(model) and not isinstance(model, bytes):
        model = model.SerializeToString()
    if isinstance(model, bytes) and len(model) > onnx.checker.MAXIMUM_PROTOBUF:
        raise ValueError("This protobuf of onnx model is too large (>2GiB). Call check_model with model path instead.")
    _refuse(_report(model, data=is_path(model), unknown_domains_are_errors=check_custom_domain).errors)
    if full_check:
        found = [one for one in _report(model, profile="strict", full=True).errors if one.rule in _INFERRED]
        if found:
            raise onnx.shape_inference.InferenceError("\n".join(map(str, found)))


def _imports(ctx: Any) -> tuple[dict[str, int], int]:
    """Versions by domain and the IR version of a CheckerContext."""
    if ctx is None:
        return {"": newest_opset()}, IR_VERSION
    return dict(ctx.opset_imports) or {"": newest_opset()}, ctx.ir_version or IR_VERSION


def check_graph(graph: Any, ctx: Any = DEFAULT_CONTEXT, lexical_scope_ctx: Any = LEXICAL_SCOPE_CONTEXT) -> None:
    """The graph in a model of the versions of `ctx`. Names of an outer graph are not there: a graph is checked by itself."""
    require_message(graph, onnx.GraphProto)
    imports, ir_version = _imports(ctx)
    _refuse(_report(model_of_graph(graph, imports=imports, ir_version=ir_version)).errors)


def check_tensor(tensor: Any, ctx: Any = DEFAULT_CONTEXT) -> None:
    require_message(tensor, onnx.TensorProto)
    named = onnx.TensorProto()
    named.CopyFrom(tensor)
    named.name = named.name or "tensor"
    graph = onnx.GraphProto(name="graph")
    graph.initializer.append(named)
    check_graph(graph, ctx)


def check_sparse_tensor(sparse: Any, ctx: Any = DEFAULT_CONTEXT) -> None:
    require_message(sparse, onnx.SparseTensorProto)
    named = onnx.SparseTensorProto()
    named.CopyFrom(sparse)
    named.values.name = named.values.name or "tensor"
    graph = onnx.GraphProto(name="graph")
    graph.sparse_initializer.append(named)
    check_graph(graph, ctx)


def check_value_info(value_info: Any, ctx: Any = DEFAULT_CONTEXT) -> None:
    require_message(value_info, onnx.ValueInfoProto)
    graph = onnx.GraphProto(name="graph")
    graph.input.append(value_info)
    check_graph(graph, ctx)


def check_attribute(attr: Any, ctx: Any = DEFAULT_CONTEXT, lexical_scope_ctx: Any = LEXICAL_SCOPE_CONTEXT) -> None:
    """By itself: whether an operator has it is a matter of nodes."""
    require_message(attr, onnx.AttributeProto)
    imports, ir_version = _imports(ctx)
    graph = onnx.GraphProto(name="graph")
    graph.node.add(op_type="Any", domain="sardonyx.any", output=["y"]).attribute.append(attr)
    report = _report(model_of_graph(graph, imports={**imports, "sardonyx.any": 1}, ir_version=ir_version))
    _refuse([one for one in report.errors if "attribute" in f"{one.place} {one.message}"])


def check_node(node: Any, ctx: Any = DEFAULT_CONTEXT, lexical_scope_ctx: Any = LEXICAL_SCOPE_CONTEXT) -> None:
    """The node by itself: its operator, attributes and number of inputs and outputs."""
    require_message(node, onnx.NodeProto)
    imports, ir_version = _imports(ctx)
    graph = onnx.GraphProto(name="graph")
    graph.input.extend(onnx.ValueInfoProto(name=name) for name in dict.fromkeys(node.input) if name)
    graph.node.append(node)
    report = _report(model_of_graph(graph, imports=imports, ir_version=ir_version))
    _refuse([one for one in report.errors if "node 0" in one.place])


def check_function(function: Any, ctx: Any = None, lexical_scope_ctx: Any = LEXICAL_SCOPE_CONTEXT) -> None:
    require_message(function, onnx.FunctionProto)
    imports = {one.domain: one.version for one in function.opset_import}
    ir_version = IR_VERSION
    if ctx is not None:
        imports, ir_version = _imports(ctx)
    imports.setdefault(function.domain, 1)
    report = _report(model_of_graph(onnx.GraphProto(name="graph"), imports=imports, ir_version=max(ir_version, 8), functions=[function]))
    _refuse([one for one in report.errors if "function" in f"{one.place} {one.message}"])


def is_proper_onnx_domain(domain: str) -> bool:
    return domain in ("", "ai.onnx", "ai.onnx.ml", "ai.onnx.training", "ai.onnx.preview", "ai.onnx.preview.training")


__all__ = ["check_attribute", "check_function", "check_graph", "check_model", "check_node", "check_sparse_tensor", "check_tensor",
           "check_value_info"]
