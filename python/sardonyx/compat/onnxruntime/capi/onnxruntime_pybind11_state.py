"""The names of onnxruntime's extension module."""

from .._adapters import AdapterFormat, LoraAdapter
from .._assignment import OrtEpAssignedNode, OrtEpAssignedSubgraph
from .._binding import SessionIOBinding
from .._blocks import (quantize_matmul_2bits, quantize_matmul_4bits, quantize_matmul_8bits, quantize_matmul_bnb4,
                       quantize_qdq_matmul_2bits, quantize_qdq_matmul_4bits)
from .._compiler import ModelCompiler, OrtCompileApiFlags, OrtExternalInitializerInfo
from .._exceptions import (DeviceReset, EngineError, EPFail, Fail, InvalidArgument, InvalidGraph, InvalidProtobuf, ModelLoadCanceled,
                           ModelLoaded, ModelRequiresCompilation, NoModel, NoSuchFile, NotFound, NotImplemented, RuntimeException)
from .._metadata import ModelMetadata, NodeArg
from .._options import ExecutionMode, ExecutionOrder, GraphOptimizationLevel, RunOptions, SessionOptions
from .._session import InferenceSession
from .._state import (OrtEpDevice, OrtExecutionProviderDevicePolicy, OrtHardwareDevice, OrtHardwareDeviceType,
                      create_and_register_allocator, create_and_register_allocator_v2, disable_telemetry_events,
                      enable_telemetry_events, get_all_providers, get_available_providers, get_device, get_ep_devices,
                      get_hardware_devices, has_collective_ops, register_execution_provider_library, set_default_logger_callback,
                      set_default_logger_severity, set_default_logger_verbosity, set_global_thread_pool_sizes, set_seed,
                      unregister_execution_provider_library)
from .._values import (ArenaExtendStrategy, OrtAllocatorType, OrtArenaCfg, OrtDevice, OrtDeviceMemoryType, OrtMemoryInfo,
                       OrtMemoryInfoDeviceType, OrtMemType, OrtSparseFormat, OrtValue, OrtValueVector, SparseCooView,
                       SparseCsrView, SparseTensor, copy_tensors, is_dlpack_uint8_tensor)

kNextPowerOfTwo: ArenaExtendStrategy = ArenaExtendStrategy.kNextPowerOfTwo
kSameAsRequested: ArenaExtendStrategy = ArenaExtendStrategy.kSameAsRequested


def get_default_session_options() -> SessionOptions:
    return SessionOptions()


def get_version_string() -> str:
    from .. import __version__

    return __version__


def get_build_info() -> str:
    from .. import get_build_info as build_info

    return build_info()

__all__ = [
    "AdapterFormat", "ArenaExtendStrategy", "copy_tensors", "create_and_register_allocator", "create_and_register_allocator_v2",
    "DeviceReset", "disable_telemetry_events", "enable_telemetry_events", "EngineError", "EPFail", "ExecutionMode",
    "ExecutionOrder", "Fail", "get_all_providers", "get_available_providers", "get_build_info", "get_default_session_options",
    "get_device", "get_ep_devices", "get_hardware_devices", "get_version_string", "GraphOptimizationLevel", "has_collective_ops",
    "InferenceSession", "InvalidArgument", "InvalidGraph", "InvalidProtobuf", "is_dlpack_uint8_tensor", "kNextPowerOfTwo",
    "kSameAsRequested", "LoraAdapter", "ModelCompiler", "ModelLoadCanceled", "ModelLoaded", "ModelMetadata",
    "ModelRequiresCompilation", "NodeArg", "NoModel", "NoSuchFile", "NotFound", "NotImplemented", "OrtAllocatorType", "OrtArenaCfg",
    "OrtCompileApiFlags", "OrtDevice", "OrtDeviceMemoryType", "OrtEpAssignedNode", "OrtEpAssignedSubgraph", "OrtEpDevice",
    "OrtExecutionProviderDevicePolicy", "OrtExternalInitializerInfo", "OrtHardwareDevice", "OrtHardwareDeviceType", "OrtMemoryInfo",
    "OrtMemoryInfoDeviceType", "OrtMemType", "OrtSparseFormat", "OrtValue", "OrtValueVector", "quantize_matmul_2bits",
    "quantize_matmul_4bits", "quantize_matmul_8bits", "quantize_matmul_bnb4", "quantize_qdq_matmul_2bits",
    "quantize_qdq_matmul_4bits", "register_execution_provider_library", "RunOptions", "RuntimeException", "SessionIOBinding",
    "SessionOptions", "set_default_logger_callback", "set_default_logger_severity", "set_default_logger_verbosity",
    "set_global_thread_pool_sizes", "set_seed", "SparseCooView", "SparseCsrView", "SparseTensor",
    "unregister_execution_provider_library"]
