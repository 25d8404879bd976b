"""What onnxruntime keeps for the process."""

from __future__ import annotations

from typing import Any

PROVIDER = "CPUExecutionProvider"
_seed = 0


class OrtHardwareDevice:
    def __init__(self) -> None:
        self.type = 0
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
        self.device = OrtHardwareDevice()


EP_DEVICE = OrtEpDevice()


def get_available_providers() -> list[str]:
    return [PROVIDER]


def get_all_providers() -> list[str]:
    return [PROVIDER]


def get_ep_devices() -> list[OrtEpDevice]:
    return [EP_DEVICE]


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
    import logging

    if not 0 <= severity <= 4:
        raise RuntimeError(f"Invalid logging severity. Must be in range [0, 4] but {severity} was given")
    logging.getLogger("sardonyx").setLevel((severity + 1) * 10)


def set_default_logger_verbosity(verbosity: int) -> None:
    """There is no verbosity below a severity."""


def disable_telemetry_events() -> None:
    """Nothing is ever sent."""


def enable_telemetry_events() -> None:
    """Nothing is ever sent."""


def set_global_thread_pool_sizes(intra_op: int, inter_op: int) -> None:
    """Sessions have threads of their own."""


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
