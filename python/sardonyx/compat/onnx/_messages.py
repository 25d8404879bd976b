"""Parts of models as whole ones, and back."""

from __future__ import annotations

import os
from collections.abc import Iterable, Sequence
from typing import Any

import onnx
from onnx import helper

IR_VERSION = 13


def newest_opset() -> int:
    return int(onnx.defs.onnx_opset_version())


def model_of_graph(graph: Any, opset: int | None = None) -> Any:
    return helper.make_model(graph, ir_version=IR_VERSION, opset_imports=[helper.make_opsetid("", opset or newest_opset())])


def model_of_node(node: Any, inputs: Sequence[Any], opset: int | None = None, outputs: Iterable[Any] | None = None) -> Any:
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
    return model_of_graph(helper.make_graph([node], "node", declared, made), opset)


def is_path(model: Any) -> bool:
    return isinstance(model, (str, os.PathLike))
