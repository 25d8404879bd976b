"""onnxruntime.capi."""

from . import _pybind_state, onnxruntime_inference_collection, onnxruntime_pybind11_state, onnxruntime_validation

__all__ = [
    "_pybind_state", "onnxruntime_inference_collection", "onnxruntime_pybind11_state", "onnxruntime_validation"]
