"""Makes `import onnxruntime` find sardonyx.compat.onnxruntime."""

from __future__ import annotations

import importlib
import importlib.machinery
import pathlib
import sys

THEIRS = "onnxruntime"
OURS = "sardonyx.compat.onnxruntime"
_ALIASED = ("", ".capi", ".capi._pybind_state", ".capi.onnxruntime_pybind11_state", ".capi.onnxruntime_inference_collection",
            ".capi.onnxruntime_validation")


def is_installed() -> bool:
    return OURS in sys.modules and sys.modules.get(THEIRS) is sys.modules[OURS]


def install() -> None:
    """From here on `import onnxruntime` finds sardonyx.compat.onnxruntime, in all modules of this process.

    Where the package onnxruntime is installed, its parts in Python (onnxruntime.quantization, onnxruntime.transformers) load
    as ever, and run on Sardonyx; its library is never loaded. Call it before anything imports onnxruntime: RuntimeError
    otherwise.
    """
    if is_installed():
        return
    if THEIRS in sys.modules:
        raise RuntimeError("onnxruntime is imported already, and modules that did so would go on with it: call "
                           "sardonyx.compat.install() first")
    found = importlib.machinery.PathFinder.find_spec(THEIRS)
    module = importlib.import_module(OURS)
    ours = str(pathlib.Path(__file__).parent / "onnxruntime")
    theirs = list(found.submodule_search_locations or [] if found is not None else [])
    module.__path__ = [ours, *theirs]
    module.capi.__path__ = [str(pathlib.Path(one) / "capi") for one in (ours, *theirs)]  # its library has our names in its place
    for name in _ALIASED:
        sys.modules[THEIRS + name] = importlib.import_module(OURS + name)
    if found is None:
        from ._distribution import Metadata

        sys.meta_path.append(Metadata(module.__version__))


def uninstall() -> None:
    """Undoes install() for imports to come; modules that have imported onnxruntime keep what they have."""
    if not is_installed():
        return
    for name in [name for name in sys.modules if name == THEIRS or name.startswith(THEIRS + ".")]:
        del sys.modules[name]
    module = sys.modules[OURS]
    module.__path__, module.capi.__path__ = list(module.__path__)[:1], list(module.capi.__path__)[:1]
    sys.meta_path[:] = [finder for finder in sys.meta_path if type(finder).__module__ != "sardonyx.compat._distribution"]
