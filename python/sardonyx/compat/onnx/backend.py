"""A Backend for onnx.backend.base, and so for onnx.backend.test."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Final

import numpy as np
from onnx.backend.base import Backend, BackendRep, Device, DeviceType

from ... import _errors
from ..._session import Session
from ._messages import model_of_node


class SardonyxRep(BackendRep):
    """A prepared model."""

    def __init__(self, session: Session):
        self.session = session

    def run(self, inputs: Any, **options: Any) -> tuple[Any, ...]:
        """Inputs in order, or by name; outputs in order."""
        if isinstance(inputs, dict):
            return tuple(self.session.run(inputs).values())
        if isinstance(inputs, np.ndarray):
            inputs = [inputs]
        return tuple(self.session.run(list(inputs)))


class SardonyxBackend(Backend):
    """`prepare`, `run_model` and `run_node` of onnx.backend.base.Backend; options are those of sardonyx.Session."""

    @classmethod
    def is_compatible(cls, model: Any, device: str = "CPU", **options: Any) -> bool:
        if not cls.supports_device(device):
            return False
        try:
            Session(model, **options)
        except _errors.Error:
            return False
        return True

    @classmethod
    def prepare(cls, model: Any, device: str = "CPU", **options: Any) -> SardonyxRep:
        if not cls.supports_device(device):
            raise ValueError(f"Sardonyx computes on the processor, and '{device}' was asked for")
        return SardonyxRep(Session(model, **options))

    @classmethod
    def run_model(cls, model: Any, inputs: Any, device: str = "CPU", **options: Any) -> tuple[Any, ...]:
        return cls.prepare(model, device, **options).run(inputs)

    @classmethod
    def run_node(cls, node: Any, inputs: Sequence[Any], device: str = "CPU", outputs_info: Sequence[Any] | None = None,
                 **options: Any) -> tuple[Any, ...]:
        opset = next((one.version for one in options.pop("opset_imports", ()) if one.domain in ("", "ai.onnx")), None)
        arrays = [one if isinstance(one, (list, np.ndarray)) else np.asarray(one) for one in inputs]
        feeds = dict(zip((name for name in node.input if name), arrays))
        return cls.run_model(model_of_node(node, arrays, opset, outputs_info), feeds, device, **options)

    @classmethod
    def supports_device(cls, device: str) -> bool:
        return bool(Device(device).type == DeviceType.CPU)


is_compatible: Final = SardonyxBackend.is_compatible
prepare: Final = SardonyxBackend.prepare
run_model: Final = SardonyxBackend.run_model
run: Final = run_model
run_node: Final = SardonyxBackend.run_node
supports_device: Final = SardonyxBackend.supports_device
