"""onnxruntime.capi.onnxruntime_inference_collection."""

from .._binding import IOBinding
from .._session import InferenceSession, Session, check_and_normalize_provider_args
from .._values import OrtDevice, OrtDeviceVendorId, OrtValue, SparseTensor, copy_tensors
