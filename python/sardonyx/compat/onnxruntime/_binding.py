"""Inputs and outputs that stay bound from run to run."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy.typing as npt

from ... import _core
from ._exceptions import invalid_arguments
from ._values import OrtDevice, OrtValue, OrtValueVector, at_address, require_cpu, values_of, written

if TYPE_CHECKING:
    from ._session import Engine


class IOBinding:
    """What a session's run_with_iobinding() reads and writes."""

    def __init__(self, session: Any):
        """`session`: an InferenceSession, or its `_sess`."""
        self._session: Engine = getattr(session, "_sess", session)
        self._input_names = [one.name for one in self._session.inputs]
        self._output_names = [one.name for one in self._session.outputs]
        self._inputs: dict[str, OrtValue] = {}
        self._outputs: dict[str, OrtValue | None] = {}  # None: made by each run
        self._made: dict[str, OrtValue] = {}

    def _require_input(self, name: str) -> None:
        if name not in self._input_names:
            raise RuntimeError(f"Failed to find NodeArg with name: {name} in the def list")

    def bind_cpu_input(self, name: str, arr_on_cpu: npt.NDArray[Any]) -> None:
        """The array's memory is read by each run, where it lies as a tensor does."""
        self._require_input(name)
        declared = self._session.inputs[self._input_names.index(name)]
        with invalid_arguments():
            self._inputs[name] = OrtValue(_core.Value.of(arr_on_cpu, declared.element_type or declared.type), arr_on_cpu)

    def bind_input(self, name: str, device_type: Any, *place: Any, **named: Any) -> None:
        """Memory at an address, which the caller keeps valid: `device_type`, `device_id`, `element_type`, `shape`, `buffer_ptr`.

        As in onnxruntime's extension, an OrtDevice stands for the first two, an array for all of them.
        """
        self._require_input(name)
        if not place and not named:
            return self.bind_cpu_input(name, device_type)
        require_cpu(device_type)
        names = ("element_type", "shape", "buffer_ptr") if isinstance(device_type, OrtDevice) else (
            "device_id", "element_type", "shape", "buffer_ptr")
        given = {**dict(zip(names, place)), **named}
        missing = [one for one in ("element_type", "shape", "buffer_ptr") if one not in given]
        if missing:
            raise TypeError(f"bind_input() needs {', '.join(missing)}")
        self._inputs[name] = at_address(given["element_type"], given["shape"], given["buffer_ptr"])

    def bind_ortvalue_input(self, name: str, ortvalue: OrtValue) -> None:
        self._require_input(name)
        values_of("bind_ortvalue_input", {name: ortvalue}, AttributeError)
        self._inputs[name] = ortvalue

    def bind_output(self, name: str, device_type: Any = "cpu", device_id: int = 0, element_type: Any = None,
                    shape: Sequence[int] | None = None, buffer_ptr: int | None = None) -> None:
        """Without an address each run makes the output. As in onnxruntime's extension, an OrtDevice stands for type and number of
        the device."""
        require_cpu(device_type)
        if isinstance(device_type, OrtDevice) and shape is not None and buffer_ptr is None:
            element_type, shape, buffer_ptr = device_id, element_type, shape  # type: ignore[assignment]
        if buffer_ptr is None:
            self._outputs[name] = None
        else:
            if element_type is None or shape is None:
                raise ValueError("`element_type` and `shape` are to be provided if pre-allocated memory is provided")
            self._outputs[name] = at_address(element_type, shape, buffer_ptr)

    def bind_ortvalue_output(self, name: str, ortvalue: OrtValue) -> None:
        """Each run writes into the value's memory; RuntimeError where what it makes has another type or shape."""
        values_of("bind_ortvalue_output", {name: ortvalue}, AttributeError)
        self._outputs[name] = ortvalue

    def synchronize_inputs(self) -> None:
        """Nothing is under way outside of a run."""

    def synchronize_outputs(self) -> None:
        """Nothing is under way outside of a run."""

    def get_outputs(self) -> list[OrtValue]:
        return list(self.get_outputs_as_ortvaluevector())

    def get_outputs_as_ortvaluevector(self) -> OrtValueVector:
        return OrtValueVector(self._made[name] for name in self._outputs if name in self._made)

    def copy_outputs_to_cpu(self) -> list[Any]:
        """What is bound is copied, since the next run writes there."""
        return [self._made[name].numpy() if bound is None else self._made[name]._value.to_python()
                for name, bound in self._outputs.items() if name in self._made]

    def clear_binding_inputs(self) -> None:
        self._inputs.clear()

    def clear_binding_outputs(self) -> None:
        self._outputs.clear()
        self._made.clear()

    @property
    def _iobinding(self) -> IOBinding:
        return self

    def _run(self, engine: Any, cancel: Any, profile: Any, added: dict[str, Any]) -> None:
        inputs = {**{name: value._value for name, value in self._inputs.items()}, **added}
        targets = {name: value._value for name, value in self._outputs.items() if value is not None}
        values = engine.run_values(inputs, targets, cancel, profile)
        made = dict(zip(self._output_names, values))
        self._made = {name: OrtValue(made[name]) if bound is None else written(name, bound, made[name])
                      for name, bound in self._outputs.items()}


class SessionIOBinding(IOBinding):
    """The class of onnxruntime's extension."""

    def get_outputs(self) -> OrtValueVector:
        return self.get_outputs_as_ortvaluevector()
