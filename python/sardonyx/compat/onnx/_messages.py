"""Parts of models as whole ones, and back."""

from __future__ import annotations

import os
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import onnx
from onnx import helper

from ..._model import Model

IR_VERSION = int(onnx.IR_VERSION)


def newest_opset() -> int:
    return int(onnx.defs.onnx_opset_version())


def require_message(message: Any, kind: type[Any]) -> None:
    if not isinstance(message, kind):
        raise TypeError(f"The proto message needs to be of type '{kind.__name__}'")


def model_of_graph(graph: Any, opset: int | None = None, imports: Mapping[str, int] | None = None, ir_version: int = IR_VERSION,
                   functions: Sequence[Any] = ()) -> Any:
    """`imports`: versions by domain, in place of `opset` alone."""
    versions = dict(imports) if imports is not None else {"": opset or newest_opset()}
    model = onnx.ModelProto(ir_version=ir_version)
    model.graph.CopyFrom(graph)
    for domain, version in versions.items():
        model.opset_import.add(domain=domain, version=version)
    model.functions.extend(functions)
    return model


def model_of_node(node: Any, inputs: Sequence[Any], opset: int | None = None, outputs: Iterable[Any] | None = None,
                  imports: Mapping[str, int] | None = None, functions: Sequence[Any] = ()) -> Any:
    """A model of one node whose inputs have the types and ranks of these values; outputs without a type are inferred."""
    names = [name for name in node.input if name]
    declared = []
    for name, value in dict(zip(names, inputs)).items():  # one input may be given twice
        if isinstance(value, (list, tuple)):
            item = helper.make_tensor_type_proto(helper.np_dtype_to_tensor_dtype(value[0].dtype), None)
            declared.append(helper.make_value_info(name, helper.make_sequence_type_proto(item)))
        elif value.dtype.kind in "OUS":
            declared.append(helper.make_tensor_value_info(name, onnx.TensorProto.STRING, [None] * value.ndim))
        else:
            declared.append(helper.make_tensor_value_info(name, helper.np_dtype_to_tensor_dtype(value.dtype), [None] * value.ndim))
    types = list(outputs or ())
    made = [helper.make_tensor_value_info(name, helper.np_dtype_to_tensor_dtype(types[i][0]), types[i][1]) if i < len(types)
            else onnx.ValueInfoProto(name=name) for i, name in enumerate(node.output) if name]
    return model_of_graph(helper.make_graph([node], "node", declared, made), opset, imports, functions=functions)


def message_of(model: Model) -> Any:
    return onnx.ModelProto.FromString(model.to_bytes())


def is_path(model: Any) -> bool:
    return isinstance(model, (str, os.PathLike))
