"""onnx.inliner."""

from __future__ import annotations

from typing import Any

from ... import _tools


def inline_local_functions(model: Any, convert_version: bool = False) -> Any:
    """With calls of the model's functions replaced by their bodies. `convert_version`: nodes of functions that import another
    version of a domain are brought to the newest, with all others."""
    return _tools.convert_version(model) if convert_version else _tools.inline(model)
