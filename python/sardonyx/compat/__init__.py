"""Sardonyx under the names of other packages.

    import sardonyx.compat
    sardonyx.compat.install()

    import onnxruntime  # is sardonyx.compat.onnxruntime, in every module of the process
"""

from __future__ import annotations

from ._install import install, is_installed, uninstall

__all__ = ["install", "is_installed", "uninstall"]
