"""onnx.version_converter."""

from __future__ import annotations

from typing import Any

import onnx
import onnx.version_converter

from ... import _tools
from ..._errors import Error

ConvertError = onnx.version_converter.ConvertError


def convert_version(model: Any, target_version: int) -> Any:
    """With every node in the form of version `target_version` of ai.onnx. ConvertError where some node has none there."""
    if not isinstance(model, onnx.ModelProto):
        raise TypeError(f"VersionConverter only accepts ModelProto as model, incorrect type: {type(model)}")
    if not isinstance(target_version, int):
        raise TypeError(f"VersionConverter only accepts int as target_version, incorrect type: {type(target_version)}")
    try:
        return _tools.convert_version(model, target_version)
    except Error as found:
        raise ConvertError(str(found)) from found


__all__ = ["convert_version"]
