"""onnxruntime.backend: a model for the interface of onnx.backend.base. It needs the package onnx."""

from .backend import is_compatible, prepare, run, supports_device

__all__ = [
    "is_compatible", "prepare", "run", "supports_device"]
