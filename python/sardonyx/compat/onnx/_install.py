"""Puts Sardonyx's functions in the place of onnx's."""

from __future__ import annotations

import importlib
import threading
from typing import Any

_MODULES = ("checker", "compose", "external_data_helper", "inliner", "parser", "printer", "shape_inference", "utils",
            "version_converter")
_theirs: dict[tuple[str, str], Any] = {}
_lock = threading.Lock()


def theirs(module: str, name: str) -> Any:
    """onnx's own function, whatever is installed."""
    return _theirs.get((module, name)) or getattr(importlib.import_module(f"onnx.{module}"), name)


def is_installed() -> bool:
    return bool(_theirs)


def install() -> None:
    """From here on onnx.checker.check_model, onnx.shape_inference.infer_shapes and their like are Sardonyx's, in the whole process.

    Messages, helpers, schemas and all else stay onnx's. What a module has taken out of onnx by name before keeps what it has.
    """
    with _lock:
        if _theirs:
            return
        whole = importlib.import_module("onnx")
        for module in _MODULES:
            ours, other = (importlib.import_module(f"{package}.{module}") for package in (__package__, "onnx"))
            for name in ours.__all__:
                before = getattr(other, name)
                _theirs[module, name] = before
                setattr(other, name, getattr(ours, name))
                if getattr(whole, name, None) is before:
                    setattr(whole, name, getattr(ours, name))


def uninstall() -> None:
    """Undoes install()."""
    with _lock:
        whole = importlib.import_module("onnx")
        for (module, name), before in _theirs.items():
            other = importlib.import_module(f"onnx.{module}")
            if getattr(whole, name, None) is getattr(other, name):
                setattr(whole, name, before)
            setattr(other, name, before)
        _theirs.clear()
