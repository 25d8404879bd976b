"""ONNX models: read, check, infer, convert, run.

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
from ._model import DeclaredValue, Model, Node
from ._profile import Profile, ProfiledStep
from ._session import Body, Cancel, Session, Step, ValueInfo
from ._sparse import SparseTensor
from ._tools import (AttributeSignature, CheckReport, Diagnostic, Difference, OperatorSignature, Parameter, check, convert_version,
                     diff, extract, inline, merge, operator_signature, operator_versions, operators, parse, rename, save, to_text)

__version__: str = _core.version()


def optimizer_passes() -> list[tuple[str, str]]:
    """Name and summary of each pass of the optimiser, in the order in which they first run."""
    return _core.optimizer_passes()


__all__ = [
    "AttributeSignature", "BadInputError", "Body", "Cancel", "CancelledError", "CheckReport", "DeclaredValue", "Diagnostic",
    "Difference", "Error", "Finding", "Inference", "InferredName", "InferredUnknown", "InferredValue", "InternalError",
    "InvalidModelError", "Model", "ModelWarning", "Node", "OperatorSignature", "OutOfMemoryError", "Parameter", "Profile",
    "ProfiledStep", "RunFailedError", "Session", "SparseTensor", "Step", "UnreadableError", "UnsupportedError", "Value",
    "ValueInfo", "check", "convert_version", "diff", "extract", "infer_shapes", "infer_types", "inline", "merge",
    "operator_signature", "operator_versions", "operators", "optimizer_passes", "parse", "rename", "save", "to_text",
]
