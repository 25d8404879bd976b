"""The names of onnxruntime's extension module."""

from .._binding import IOBinding as SessionIOBinding
from .._blocks import quantize_matmul_2bits, quantize_matmul_4bits, quantize_matmul_8bits, quantize_qdq_matmul_4bits
from .._exceptions import (DeviceReset, EngineError, EPFail, Fail, InvalidArgument, InvalidGraph, InvalidProtobuf, ModelLoadCanceled,
                           ModelLoaded, ModelRequiresCompilation, NoModel, NoSuchFile, NotFound, NotImplemented, RuntimeException)
from .._metadata import ModelMetadata, NodeArg
from .._options import ExecutionMode, ExecutionOrder, GraphOptimizationLevel, RunOptions, SessionOptions
from .._session import InferenceSession
from .._state import (OrtEpDevice, OrtHardwareDevice, create_and_register_allocator, create_and_register_allocator_v2,
                      disable_telemetry_events, enable_telemetry_events, get_all_providers, get_available_providers, get_device,
                      get_ep_devices, has_collective_ops, register_execution_provider_library, set_default_logger_severity,
                      set_default_logger_verbosity, set_global_thread_pool_sizes, set_seed,
                      unregister_execution_provider_library)
from .._values import (OrtAllocatorType, OrtArenaCfg, OrtDevice, OrtDeviceMemoryType, OrtMemoryInfo, OrtMemoryInfoDeviceType,
                       OrtMemType, OrtSparseFormat, OrtValue, SparseTensor, copy_tensors)

OrtValueVector = list


def get_default_session_options() -> SessionOptions:
    return SessionOptions()


def get_version_string() -> str:
    from .. import __version__

    return __version__


def get_build_info() -> str:
    from .. import get_build_info as build_info

    return build_info()
