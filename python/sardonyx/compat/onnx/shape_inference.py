"""onnx.shape_inference."""

from __future__ import annotations

import os
import re
from collections.abc import Mapping, Sequence
from typing import Any

import onnx
import onnx.checker
import onnx.shape_inference

from ... import _inference, _tools
from ..._errors import Error
from ._install import theirs
from ._messages import IR_VERSION, is_path, model_of_graph

InferenceError = onnx.shape_inference.InferenceError


def infer_shapes(model: Any, check_type: bool = False, strict_mode: bool = False, data_prop: bool = False) -> Any:
    """The model with types and shapes of its values, as a message.

    `strict_mode` and `check_type`: InferenceError where a node can't run or a declaration contradicts. Known elements of
    values are always followed, so that `data_prop` changes nothing.
    """
    if is_path(model):
        raise TypeError("infer_shapes only accepts ModelProto or bytes, For Model paths (str or os.PathLike), use infer_shapes_path().")
    if not isinstance(model, bytes) and not hasattr(model, "SerializeToString"):
        raise TypeError(f"infer_shapes only accepts ModelProto or bytes, incorrect type: {type(model)}")
    made = _inferred(model, strict_mode or check_type)
    return onnx.load_model_from_string(made) if isinstance(made, bytes) else made


def _is_of_an_unknown_operator(finding: _inference.Finding) -> bool:
    """Which onnx passes over: what it makes stays unknown."""
    return "neither of the standard nor of a function" in finding.message


def _inferred(model: Any, strict: bool) -> Any:
    try:
        opened = _tools._opened(model)
        if strict:
            findings = _inference.infer_types(opened, strict=True).findings
            for one in findings:
                if one.is_error and not _is_of_an_unknown_operator(one):
                    raise InferenceError(f"{one.place}: {one.message}" if one.place else one.message)
        made = _inference.infer_shapes(opened)
    except Error as found:
        raise InferenceError(str(found)) from found
    return _tools.given_back(model, made)


def infer_shapes_path(model_path: str | os.PathLike[str], output_path: str | os.PathLike[str] = "", check_type: bool = False,
                      strict_mode: bool = False, data_prop: bool = False) -> None:
    """From file to file, the same where no other is given; weights are never held in memory."""
    for what, path in (("model path", model_path), ("output path", output_path)):
        if not is_path(path):
            raise TypeError(f"infer_shapes_path only accepts {what} as a string or PathLike, incorrect type: {type(path)}")
    try:
        _inference.infer_shapes(model_path, output_path or model_path, strict=strict_mode or check_type)
    except Error as found:
        raise InferenceError(str(found)) from found


def _declared(graph: Any, name: str, type_proto: Any) -> None:
    declared = graph.input.add(name=name)
    if type_proto is not None:
        declared.type.CopyFrom(type_proto)


def _output_types(model: Any, strict: bool) -> dict[str, Any]:
    """Types of the outputs of the main graph, those that inference knows."""
    made = infer_shapes(model, strict_mode=strict)
    places = re.compile("|".join(rf"\b{re.escape(one.name)}\.\d+\b" for one in model.graph.input) or "(?!)")
    types = {one.name: one.type for one in made.graph.output if one.type.WhichOneof("value") is not None}
    for one in types.values():
        for dim in one.tensor_type.shape.dim:
            if places.search(dim.dim_param):  # a name that Sardonyx gives to a place that has none
                dim.Clear()
    return types


def infer_node_outputs(schema: Any, node: Any, input_types: Mapping[str, Any], input_data: Mapping[str, Any] | None = None,
                       input_sparse_data: Mapping[str, Any] | None = None, opset_imports: Sequence[Any] | None = None,
                       ir_version: int = IR_VERSION) -> dict[str, Any]:
    """Types of a node's outputs by their names. ValidationError: the node breaks a rule; InferenceError: its inputs do. A schema that
    Sardonyx does not know, one registered in Python, is inferred by onnx."""
    known = [one.since for one in _tools.operator_versions(schema.name, schema.domain)]
    if schema.since_version not in known:
        infer = theirs("shape_inference", "infer_node_outputs")
        return dict(infer(schema, node, dict(input_types), dict(input_data or {}), dict(input_sparse_data or {}),
                          list(opset_imports) if opset_imports is not None else None, ir_version))
    imports = {one.domain: one.version for one in opset_imports or ()}
    imports.setdefault(schema.domain, schema.since_version)
    imports.setdefault("", int(onnx.defs.onnx_opset_version()))
    graph = onnx.GraphProto(name="node")
    for name in dict.fromkeys(node.input):
        if name:
            _declared(graph, name, input_types[name])
    for name, type_proto in input_types.items():
        if name not in node.input:
            _declared(graph, name, type_proto)
    for name, tensor in (input_data or {}).items():
        if name in node.input:
            graph.initializer.add().CopyFrom(tensor)
            graph.initializer[-1].name = name
    for name, tensor in (input_sparse_data or {}).items():
        if name in node.input:
            graph.sparse_initializer.add().CopyFrom(tensor)
            graph.sparse_initializer[-1].values.name = name
    given = {one.name for one in graph.initializer} | {one.values.name for one in graph.sparse_initializer}
    kept = [one for one in graph.input if one.name not in given]  # what has a value is no input: it can't be another's
    del graph.input[:]
    graph.input.extend(kept)
    graph.node.append(node)
    graph.output.extend(onnx.ValueInfoProto(name=name) for name in node.output if name)
    model = model_of_graph(graph, imports=imports, ir_version=ir_version)
    broken = [one for one in _tools.check(model).errors if "node 0" in one.place]
    if broken:
        raise onnx.checker.ValidationError("\n".join(map(str, broken)))
    return _output_types(model, strict=True)


def infer_function_output_types(function: Any, input_types: Sequence[Any], attributes: Sequence[Any]) -> list[Any]:
    """Types of a function's outputs for inputs of these types, an empty one for an absent input, and these attributes."""
    graph = onnx.GraphProto(name="call")
    call = graph.node.add(op_type=function.name, domain=function.domain or "sardonyx.local", name="call")
    for i, type_proto in enumerate(input_types):
        name = f"input_{i}" if type_proto.WhichOneof("value") is not None else ""
        call.input.append(name)
        if name:
            _declared(graph, name, type_proto)
    call.output.extend(f"output_{i}" for i in range(len(function.output)))
    graph.output.extend(onnx.ValueInfoProto(name=name) for name in call.output)
    call.attribute.extend(attributes)
    called = onnx.FunctionProto()
    called.CopyFrom(function)
    called.domain = call.domain
    imports = {one.domain: one.version for one in function.opset_import}
    imports.setdefault(call.domain, 1)
    found = _output_types(model_of_graph(graph, imports=imports, functions=[called]), strict=True)
    return [found.get(name, onnx.TypeProto()) for name in call.output]


__all__ = ["infer_function_output_types", "infer_node_outputs", "infer_shapes", "infer_shapes_path"]
