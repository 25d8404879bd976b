"""onnxruntime.capi.onnxruntime_inference_collection."""

from .._adapters import AdapterFormat
from .._binding import IOBinding
from .._compiler import ModelCompiler
from .._session import InferenceSession, Session, check_and_normalize_provider_args
from .._values import OrtDevice, OrtDeviceVendorId, OrtValue, SparseTensor, copy_tensors

__all__ = [
    "AdapterFormat", "check_and_normalize_provider_args", "copy_tensors", "InferenceSession", "IOBinding", "ModelCompiler",
    "OrtDevice", "OrtDeviceVendorId", "OrtValue", "Session", "SparseTensor"]
