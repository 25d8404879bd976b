"""Models in half precision, made from their float counterparts as conversion tools make them: everything, not the edges only."""

from __future__ import annotations

import ml_dtypes
import numpy as np
import onnx
from onnx import TensorProto, helper, numpy_helper

from . import decoders, transformers, vision
from .net import Built, ir_version

DTYPES = {TensorProto.FLOAT16: np.float16, TensorProto.BFLOAT16: ml_dtypes.bfloat16}


def narrow(array: np.ndarray, kind: int) -> np.ndarray:
    """Rounded; what is beyond the range (masks' large numbers) becomes the largest."""
    most = float(ml_dtypes.finfo(DTYPES[kind]).max)
    return np.where(np.isfinite(array), np.clip(array, -most, most), array).astype(DTYPES[kind])


def in_half(built: Built, kind: int, opset: int = 0) -> Built:
    """`opset`: another one for the model, where operators learnt the type later (their meaning being the same)."""
    model = onnx.ModelProto()
    model.CopyFrom(built.model)
    graph = model.graph
    for tensor in graph.initializer:
        if tensor.data_type == TensorProto.FLOAT:
            tensor.CopyFrom(numpy_helper.from_array(narrow(numpy_helper.to_array(tensor), kind), tensor.name))
    for node in graph.node:
        for attribute in node.attribute:
            if node.op_type == "Cast" and attribute.name == "to" and attribute.i == TensorProto.FLOAT:
                attribute.i = kind
            elif attribute.HasField("t") and attribute.t.data_type == TensorProto.FLOAT:
                attribute.t.CopyFrom(numpy_helper.from_array(narrow(numpy_helper.to_array(attribute.t), kind)))
    for info in [*graph.input, *graph.output]:
        if info.type.tensor_type.elem_type == TensorProto.FLOAT:
            info.type.tensor_type.elem_type = kind
    if opset:
        model.opset_import[0].version = opset
        model.ir_version = ir_version(model.opset_import)
    inputs = {name: narrow(array, kind) if array.dtype == np.float32 else array
              for name, array in built.inputs.items()}
    return Built(model, inputs, built.gflop, built.rms, built.external, counterpart=built)


def counterpart(kind: int, build, opset: int = 0):
    return lambda **sizes: in_half(build(**sizes), kind, opset)


MODELS = {
    "resnet50_f16": counterpart(TensorProto.FLOAT16, vision.resnet50),
    "resnet50_bf16": counterpart(TensorProto.BFLOAT16, vision.resnet50, 22),
    "bert_f16": counterpart(TensorProto.FLOAT16, transformers.bert),
    "bert_bf16": counterpart(TensorProto.BFLOAT16, transformers.bert, 16),
    "gpt2_f16": counterpart(TensorProto.FLOAT16, transformers.gpt2),
    "gpt2_bf16": counterpart(TensorProto.BFLOAT16, transformers.gpt2, 16),
    "llama_f16": counterpart(TensorProto.FLOAT16, decoders.llama),
    "llama_bf16": counterpart(TensorProto.BFLOAT16, decoders.llama),
}
