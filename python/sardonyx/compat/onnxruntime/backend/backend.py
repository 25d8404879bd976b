"""onnxruntime.backend.backend."""

from __future__ import annotations

import os
import unittest
from typing import Any, Final

from onnx import checker, helper
from onnx.backend.base import Backend

from .. import InferenceSession, SessionOptions, get_available_providers, get_device
from .backend_rep import OnnxRuntimeBackendRep, set_options

_SESSION_OPTIONS = (
    "enable_cpu_mem_arena", "enable_mem_pattern", "enable_mem_reuse", "execution_mode", "execution_order", "graph_optimization_level",
    "inter_op_num_threads", "intra_op_num_threads", "log_severity_level", "log_verbosity_level", "logid", "use_deterministic_compute",
    "use_per_session_threads")


class OnnxRuntimeBackend(Backend):
    """Models are paths, bytes, messages, sessions, or what prepare() has made. Further options are attributes of SessionOptions, and
    of RunOptions where something runs."""

    allowReleasedOpsetsOnly: bool = os.getenv("ALLOW_RELEASED_ONNX_OPSET_ONLY", "1") == "1"

    @classmethod
    def is_compatible(cls, model: Any, device: str | None = None, **kwargs: Any) -> bool:
        return cls.supports_device(get_device() if device is None else device)

    @classmethod
    def is_opset_supported(cls, model: Any) -> tuple[bool, str]:
        """Whether onnx has released the versions that the model imports, and what is said where it has not."""
        for one in model.opset_import if cls.allowReleasedOpsetsOnly else ():
            domain = one.domain or "ai.onnx"
            if (domain, one.version) not in helper.OP_SET_ID_VERSION_MAP:
                return False, ("Skipping this test as only released onnx opsets are supported. To run this test set env variable "
                               f"ALLOW_RELEASED_ONNX_OPSET_ONLY to 0. Got Domain '{domain}' version '{one.version}'.")
        return True, ""

    @classmethod
    def supports_device(cls, device: str) -> bool:
        return ("GPU" if device == "CUDA" else device) == get_device()

    @classmethod
    def prepare(cls, model: Any, device: str | None = None, **kwargs: Any) -> OnnxRuntimeBackendRep:
        if isinstance(model, OnnxRuntimeBackendRep):
            return model
        if isinstance(model, InferenceSession):
            return OnnxRuntimeBackendRep(model)
        if not isinstance(model, (str, bytes)):
            data: bytes = model.SerializeToString()
            checker.check_model(data)
            is_supported, reason = cls.is_opset_supported(model)
            if not is_supported:
                raise unittest.SkipTest(reason)
            model = data
        if device is not None and not cls.supports_device(device):
            raise RuntimeError(f"Incompatible device expected '{device}', got '{get_device()}'")
        options = set_options(SessionOptions(), _SESSION_OPTIONS, kwargs)
        return OnnxRuntimeBackendRep(InferenceSession(model, options, providers=get_available_providers()))

    @classmethod
    def run_model(cls, model: Any, inputs: Any, device: str | None = None, **kwargs: Any) -> Any:
        return cls.prepare(model, device, **kwargs).run(inputs, **kwargs)

    @classmethod
    def run_node(cls, node: Any, inputs: Any, device: str | None = None, outputs_info: Any = None, **kwargs: Any) -> Any:
        raise NotImplementedError("It is much more efficient to run a whole model than every node independently.")


is_compatible: Final = OnnxRuntimeBackend.is_compatible
prepare: Final = OnnxRuntimeBackend.prepare
run: Final = OnnxRuntimeBackend.run_model
supports_device: Final = OnnxRuntimeBackend.supports_device
