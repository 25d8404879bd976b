"""ONNX models: read, infer, run.

    import sardonyx

    session = sardonyx.Session("model.onnx")
    outputs = session.run({"image": image})
"""

from __future__ import annotations

from . import _core
from ._core import Value
from ._errors import (BadInputError, CancelledError, Error, InternalError, InvalidModelError, ModelWarning, OutOfMemoryError,
                      RunFailedError, UnreadableError, UnsupportedError)
from ._inference import Finding, Inference, InferredName, InferredUnknown, InferredValue, infer_shapes, infer_types
from ._model import Model
from ._profile import Profile, ProfiledStep
from ._session import Body, Cancel, Session, Step, ValueInfo
from ._sparse import SparseTensor

__version__: str = _core.version()


def optimizer_passes() -> list[tuple[str, str]]:
    """Name and summary of each pass of the optimiser, in the order in which they first run."""
    return _core.optimizer_passes()


__all__ = [
    "BadInputError", "Body", "Cancel", "CancelledError", "Error", "Finding", "Inference", "InferredName", "InferredUnknown",
    "InferredValue", "InternalError", "InvalidModelError", "Model", "ModelWarning", "OutOfMemoryError", "Profile",
    "ProfiledStep", "RunFailedError", "Session", "SparseTensor", "Step", "UnreadableError", "UnsupportedError", "Value",
    "ValueInfo", "infer_shapes", "infer_types", "optimizer_passes",
]
