"""onnxruntime's interface in Python, on Sardonyx: docs/python.md says what differs.

    import sardonyx.compat.onnxruntime as onnxruntime

or, for a whole process, `sardonyx.compat.install()`.
"""

from __future__ import annotations

from typing import Any

from ... import _core
from ._adapters import AdapterFormat, LoraAdapter
from ._assignment import OrtEpAssignedNode, OrtEpAssignedSubgraph
from ._binding import IOBinding, SessionIOBinding
from ._compiler import ModelCompiler, OrtCompileApiFlags, OrtExternalInitializerInfo
from ._metadata import ModelMetadata, NodeArg
from ._options import ExecutionMode, ExecutionOrder, GraphOptimizationLevel, RunOptions, SessionOptions
from ._session import InferenceSession
from ._state import (OrtEpDevice, OrtExecutionProviderDevicePolicy, OrtHardwareDevice, OrtHardwareDeviceType,
                     create_and_register_allocator, create_and_register_allocator_v2, disable_telemetry_events,
                     enable_telemetry_events, get_all_providers, get_available_providers, get_device, get_ep_devices,
                     has_collective_ops, register_execution_provider_library, set_default_logger_callback,
                     set_default_logger_severity, set_default_logger_verbosity, set_global_thread_pool_sizes, set_seed,
                     unregister_execution_provider_library)
from ._values import (OrtAllocatorType, OrtArenaCfg, OrtDevice, OrtDeviceMemoryType, OrtDeviceVendorId, OrtMemoryInfo,
                      OrtMemoryInfoDeviceType, OrtMemType, OrtSparseFormat, OrtValue, SparseTensor, copy_tensors)

# The release of onnxruntime whose interface this is, and whose engine it is not.
_RELEASE = "1.31.1"
__version__ = f"{_RELEASE}+sardonyx.{_core.version()}"
__author__ = "Sardonyx"
package_name = "sardonyx"
version: str = __version__
cuda_version = ""


def get_version_string() -> str:
    return __version__


def get_build_info() -> str:
    return f"Sardonyx Build Info: version {_core.version()}, with the Python interface of onnxruntime {_RELEASE}"


def preload_dlls(*arguments: Any, **options: Any) -> None:
    """There is nothing to load."""


def print_debug_info() -> None:
    print(get_build_info())


from . import capi  # noqa: E402: which takes its names from here

__all__ = [
    "AdapterFormat", "capi", "copy_tensors", "create_and_register_allocator", "create_and_register_allocator_v2", "cuda_version",
    "disable_telemetry_events", "enable_telemetry_events", "ExecutionMode", "ExecutionOrder", "get_all_providers",
    "get_available_providers", "get_build_info", "get_device", "get_ep_devices", "get_version_string", "GraphOptimizationLevel",
    "has_collective_ops", "InferenceSession", "IOBinding", "LoraAdapter", "ModelCompiler", "ModelMetadata", "NodeArg",
    "OrtAllocatorType", "OrtArenaCfg", "OrtCompileApiFlags", "OrtDevice", "OrtDeviceMemoryType", "OrtDeviceVendorId",
    "OrtEpAssignedNode", "OrtEpAssignedSubgraph", "OrtEpDevice", "OrtExecutionProviderDevicePolicy", "OrtExternalInitializerInfo",
    "OrtHardwareDevice", "OrtHardwareDeviceType", "OrtMemoryInfo", "OrtMemoryInfoDeviceType", "OrtMemType", "OrtSparseFormat",
    "OrtValue", "package_name", "preload_dlls", "print_debug_info", "register_execution_provider_library", "RunOptions",
    "SessionIOBinding", "SessionOptions", "set_default_logger_callback", "set_default_logger_severity",
    "set_default_logger_verbosity", "set_global_thread_pool_sizes", "set_seed", "SparseTensor",
    "unregister_execution_provider_library", "version"]
