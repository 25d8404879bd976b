"""onnx.shape_inference."""

from __future__ import annotations

import os
from typing import Any

import onnx.shape_inference

from ... import _inference
from ..._errors import Error
from ._messages import is_path

InferenceError = onnx.shape_inference.InferenceError


def infer_shapes(model: Any, check_type: bool = False, strict_mode: bool = False, data_prop: bool = False) -> Any:
    """The model with types and shapes of its values, in a message of the same class, or bytes for bytes.

    `strict_mode` and `check_type`: InferenceError where a node can't run or a declaration contradicts. Known elements of
    values are always followed, so that `data_prop` changes nothing.
    """
    if is_path(model):
        raise TypeError("infer_shapes only accepts ModelProto or bytes, you can use infer_shapes_path for the model path (String).")
    try:
        return _inference.infer_shapes(model, strict=strict_mode or check_type)
    except Error as found:
        raise InferenceError(str(found)) from found


def infer_shapes_path(model_path: str | os.PathLike[str], output_path: str | os.PathLike[str] = "", check_type: bool = False,
                      strict_mode: bool = False, data_prop: bool = False) -> None:
    """From file to file, the same where no other is given; weights are never held in memory."""
    try:
        _inference.infer_shapes(model_path, output_path or model_path, strict=strict_mode or check_type)
    except Error as found:
        raise InferenceError(str(found)) from found
