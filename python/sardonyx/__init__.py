"""ONNX models: read, check, infer, convert, run, train.

    import sardonyx

    session = sardonyx.Session("model.onnx")
    outputs = session.run({"image": image})
"""

from __future__ import annotations

from . import _core
from ._core import Value
from ._curve import TrainingCurve
from ._editor import ModelEditor
from ._errors import (BadInputError, CancelledError, Error, InternalError, InvalidModelError, ModelWarning, OutOfMemoryError,
                      RunFailedError, UnreadableError, UnsupportedError)
from ._fit import Checkpoint, EpochResult, FitProgress, FitResult, last_checkpoint
from ._inference import Finding, Inference, InferredName, InferredUnknown, InferredValue, infer_shapes, infer_types
from ._model import DeclaredValue, Model, Node
from ._operators import InferContext, Operator, OperatorNode, operator
from ._profile import Profile, ProfiledStep
from ._session import Body, Cancel, LogMessage, Session, Step, Threads, ValueInfo, compare_packed, pack
from ._sparse import SparseTensor
from ._tools import (AttributeSignature, CheckReport, Diagnostic, Difference, OperatorSignature, Parameter, check, convert_version,
                     diff, extract, inline, merge, operator_signature, operator_versions, operators, parse, rename, save, to_text)
from ._trainable import Lora, TrainableReport, make_trainable, make_trainable_of_artifacts, merge_lora
from ._training import TrainingSession

__version__: str = _core.version()


def optimizer_passes() -> list[tuple[str, str]]:
    """Name and summary of each pass of the optimiser, in the order in which they first run."""
    return _core.optimizer_passes()


__all__ = [
    "AttributeSignature", "BadInputError", "Body", "Cancel", "CancelledError", "CheckReport", "Checkpoint", "DeclaredValue",
    "Diagnostic", "Difference", "EpochResult", "Error", "Finding", "FitProgress", "FitResult", "InferContext", "Inference", "InferredName",
    "InferredUnknown", "InferredValue", "InternalError", "InvalidModelError", "LogMessage", "Lora", "Model", "ModelEditor", "ModelWarning", "Node", "Operator",
    "OperatorNode", "OperatorSignature", "OutOfMemoryError", "Parameter", "Profile", "ProfiledStep", "RunFailedError", "Session",
    "SparseTensor", "Step", "Threads", "TrainableReport", "TrainingCurve", "TrainingSession", "UnreadableError", "UnsupportedError", "Value",
    "ValueInfo", "check", "compare_packed", "convert_version", "diff", "extract", "infer_shapes", "infer_types", "inline",
    "last_checkpoint", "make_trainable", "make_trainable_of_artifacts", "merge", "merge_lora", "operator", "operator_signature", "operator_versions",
    "operators", "optimizer_passes", "pack", "parse",
    "rename", "save", "to_text",
]
