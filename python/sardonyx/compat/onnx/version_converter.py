"""onnx.version_converter."""

from __future__ import annotations

from typing import Any

import onnx
import onnx.version_converter

from ... import _core, _tools
from ..._errors import Error


class ConvertError(onnx.version_converter.ConvertError, RuntimeError):
    """A RuntimeError, too, as onnx raises one for most of what it can't convert."""


def convert_version(model: Any, target_version: int) -> Any:
    """With every node in the form of version `target_version` of ai.onnx. ConvertError where some node has none there."""
    if not isinstance(model, onnx.ModelProto):
        raise TypeError(f"VersionConverter only accepts ModelProto as model, incorrect type: {type(model)}")
    if not isinstance(target_version, int):
        raise TypeError(f"VersionConverter only accepts int as target_version, incorrect type: {type(target_version)}")
    if target_version == 0:  # which is the newest elsewhere
        raise ConvertError(f"the opset to convert to must be in [1, {_core.operator_domains()['']}]; got 0")
    try:
        return _tools.convert_version(model, target_version)
    except Error as found:
        raise ConvertError(str(found)) from found


__all__ = ["convert_version"]
