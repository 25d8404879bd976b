"""Functions of the package onnx, on Sardonyx: they take and give onnx's own messages.

    from sardonyx.compat.onnx import backend, reference, shape_inference

Needs the package onnx, for its messages alone.
"""

from . import backend, reference, shape_inference

__all__ = ["backend", "reference", "shape_inference"]
