"""What onnxruntime keeps for the process."""

from __future__ import annotations

import enum
import logging
import operator
from collections.abc import Callable
from typing import Any

from ..._session import Threads
from ._exceptions import Fail

PROVIDER = "CPUExecutionProvider"
# Those that builds of onnxruntime know, in its order; only the last is here.
_KNOWN_PROVIDERS = [f"{name}ExecutionProvider" for name in (
    "NvTensorRTRTX", "Tensorrt", "CUDA", "MIGraphX", "OpenVINO", "Dnnl", "VitisAI", "QNN", "Nnapi", "VSINPU", "Js", "CoreML", "ACL",
    "Dml", "Rknpu", "WebNN", "WebGpu", "Xnnpack", "CANN", "Azure", "CPU")]
_seed = 0
_global_threads: Threads | None = None


class Enumeration(enum.IntEnum):
    """Its members' texts have their names, as those of an extension do."""

    __str__ = enum.Enum.__str__


class OrtHardwareDeviceType(Enumeration):
    CPU = 0
    GPU = 1
    NPU = 2


class OrtExecutionProviderDevicePolicy(Enumeration):
    DEFAULT = 0
    PREFER_CPU = 1
    PREFER_NPU = 2
    PREFER_GPU = 3
    MAX_PERFORMANCE = 4
    MAX_EFFICIENCY = 5
    MIN_OVERALL_POWER = 6


class OrtHardwareDevice:
    def __init__(self) -> None:
        self.type = OrtHardwareDeviceType.CPU
        self.vendor_id = 0
        self.vendor = ""
        self.device_id = 0
        self.metadata: dict[str, str] = {}


class OrtEpDevice:
    def __init__(self) -> None:
        self.ep_name = PROVIDER
        self.ep_vendor = "Sardonyx"
        self.ep_metadata: dict[str, str] = {}
        self.ep_options: dict[str, str] = {}
        self.device: OrtHardwareDevice = OrtHardwareDevice()


EP_DEVICE = OrtEpDevice()


def get_available_providers() -> list[str]:
    return [PROVIDER]


def get_all_providers() -> list[str]:
    """All that onnxruntime has a name for; get_available_providers() has the one that is here."""
    return list(_KNOWN_PROVIDERS)


def get_ep_devices() -> list[OrtEpDevice]:
    return [EP_DEVICE]


def get_hardware_devices() -> list[OrtHardwareDevice]:
    return [EP_DEVICE.device]


def get_device() -> str:
    return "CPU"


def seed() -> int:
    return _seed


def set_seed(value: int) -> None:
    """Of random operators without a seed of their own, in sessions made from here on."""
    global _seed
    _seed = int(value) % 2**64


def set_default_logger_severity(severity: int) -> None:
    """0 verbose … 4 fatal: the level of the logger "sardonyx" of Python's logging."""
    _logger.setLevel(_level(severity))


def _level(severity: int) -> int:
    severity = operator.index(severity)  # also one of numpy's
    if not 0 <= severity <= 4:
        raise RuntimeError(f"Invalid logging severity. Must be in range [0, 4] but {severity} was given")
    return (severity + 1) * 10


class _CallbackHandler(logging.Handler):
    """Records for a function of the caller's."""

    def __init__(self, callback: Callable[[int, str, str, str, str], Any]):
        super().__init__()
        self._callback = callback

    def emit(self, record: logging.LogRecord) -> None:
        severity = min(max(record.levelno // 10 - 1, 0), 4)
        try:
            self._callback(severity, "sardonyx", record.name, f"{record.filename}:{record.lineno} {record.funcName}", record.getMessage())
        except Exception:
            self.handleError(record)


_logger = logging.getLogger("sardonyx")
_handler: _CallbackHandler | None = None


def set_default_logger_callback(callback: Callable[[int, str, str, str, str], Any] | None, severity: int = 2) -> None:
    """What the logger "sardonyx" has to say goes to `callback(severity, category, logid, code_location, message)` alone, from
    `severity` on; None: to Python's logging, as before. What the callback raises is printed and goes no further."""
    global _handler
    if callback is not None and not callable(callback):
        raise RuntimeError(f"the callback is a function or None, and {callback!r} was given")
    level = _level(severity)
    if _handler is not None:
        _logger.removeHandler(_handler)
    _handler = None if callback is None else _CallbackHandler(callback)
    _logger.propagate = _handler is None
    if _handler is not None:
        _logger.addHandler(_handler)
        _logger.setLevel(level)


def set_default_logger_verbosity(verbosity: int) -> None:
    """There is no verbosity below a severity."""


def disable_telemetry_events() -> None:
    """Nothing is ever sent."""


def enable_telemetry_events() -> None:
    """Nothing is ever sent."""


def set_global_thread_pool_sizes(intra_op: int, inter_op: int) -> None:
    """Sessions whose options have `use_per_session_threads` = False share `intra_op` threads; 0: all."""
    global _global_threads
    if _global_threads is not None:
        raise Fail("Global thread pools have already been created, cannot replace them")
    _global_threads = Threads(max(0, intra_op))


def global_threads() -> Threads | None:
    return _global_threads


def create_and_register_allocator(memory_info: Any, arena: Any) -> None:
    """Memory is the engine's affair."""


def create_and_register_allocator_v2(provider: str, memory_info: Any, options: Any, arena: Any) -> None:
    """Memory is the engine's affair."""


def register_execution_provider_library(name: str, path: Any) -> None:
    raise RuntimeError(f"libraries of execution providers are not supported: '{name}' of {path}")


def unregister_execution_provider_library(name: str) -> None:
    raise RuntimeError(f"there is no library of execution providers of the name '{name}'")


def has_collective_ops() -> bool:
    return False
