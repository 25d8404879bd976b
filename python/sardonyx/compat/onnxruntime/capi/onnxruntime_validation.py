"""onnxruntime.capi.onnxruntime_validation."""

from __future__ import annotations


def check_distro_info() -> None:
    """Any system is as good as another."""


def get_package_name_and_version_info() -> tuple[str, str, str]:
    from .. import __version__

    return "sardonyx", __version__, ""

__all__ = [
    "check_distro_info", "get_package_name_and_version_info"]
