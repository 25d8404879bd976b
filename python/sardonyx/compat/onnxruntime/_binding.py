"""Inputs and outputs that stay bound from run to run."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

from ... import _core
from ._exceptions import invalid_arguments
from ._values import OrtDevice, OrtValue, element_name, require_cpu

if TYPE_CHECKING:
    from ._session import Session


class IOBinding:
    """What a session's run_with_iobinding() reads and writes."""

    def __init__(self, session: Session):
        self._session = session
        self._inputs: dict[str, OrtValue] = {}
        self._outputs: dict[str, OrtValue | None] = {}  # None: made by each run
        self._made: dict[str, OrtValue] = {}

    def _require_input(self, name: str) -> None:
        if name not in self._session._input_names:
            raise RuntimeError(f"Failed to find NodeArg with name: {name} in the def list")

    def bind_cpu_input(self, name: str, arr_on_cpu: npt.NDArray[Any]) -> None:
        """The array's memory is read by each run, where it lies as a tensor does."""
        self._require_input(name)
        with invalid_arguments():
            self._inputs[name] = OrtValue(self._session._bound_value(name, arr_on_cpu), arr_on_cpu)

    def bind_input(self, name: str, device_type: Any, device_id: int, element_type: Any, shape: Sequence[int],
                   buffer_ptr: int) -> None:
        """Memory at an address, which the caller keeps valid."""
        self._require_input(name)
        require_cpu(device_type)
        self._inputs[name] = _at_address(element_type, shape, buffer_ptr)

    def bind_ortvalue_input(self, name: str, ortvalue: OrtValue) -> None:
        self._require_input(name)
        self._inputs[name] = ortvalue

    def bind_output(self, name: str, device_type: Any = "cpu", device_id: int = 0, element_type: Any = None,
                    shape: Sequence[int] | None = None, buffer_ptr: int | None = None) -> None:
        """Without an address each run makes the output."""
        require_cpu("cpu" if isinstance(device_type, OrtDevice) else device_type)
        if buffer_ptr is None:
            self._outputs[name] = None
        else:
            if element_type is None or shape is None:
                raise ValueError("`element_type` and `shape` are to be provided if pre-allocated memory is provided")
            self._outputs[name] = _at_address(element_type, shape, buffer_ptr)

    def bind_ortvalue_output(self, name: str, ortvalue: OrtValue) -> None:
        """Each run writes into the value's memory."""
        self._outputs[name] = ortvalue

    def synchronize_inputs(self) -> None:
        """Nothing is under way outside of a run."""

    def synchronize_outputs(self) -> None:
        """Nothing is under way outside of a run."""

    def get_outputs(self) -> list[OrtValue]:
        return [self._made[name] for name in self._outputs if name in self._made]

    def get_outputs_as_ortvaluevector(self) -> list[OrtValue]:
        return self.get_outputs()

    def copy_outputs_to_cpu(self) -> list[Any]:
        return [value.numpy() for value in self.get_outputs()]

    def clear_binding_inputs(self) -> None:
        self._inputs.clear()

    def clear_binding_outputs(self) -> None:
        self._outputs.clear()
        self._made.clear()

    @property
    def _iobinding(self) -> IOBinding:
        return self

    def _run(self, engine: Any, cancel: Any, profile: Any) -> None:
        inputs = {name: value._value for name, value in self._inputs.items()}
        targets = {name: value._value for name, value in self._outputs.items() if value is not None}
        values = engine.run_values(inputs, targets, cancel, profile)
        self._made = {}
        for name, value in zip(self._session._output_names, values):
            if name in self._outputs:
                self._made[name] = self._outputs[name] or OrtValue(value)


def _at_address(element_type: Any, shape: Sequence[int], address: int) -> OrtValue:
    import ctypes

    name = element_name(element_type)
    if name == "string":
        raise RuntimeError("strings are not bound by address")
    sizes = [int(size) for size in shape]
    count = int(np.prod(sizes, dtype=np.int64))
    bits = _core.element_bits(name)
    array = np.ctypeslib.as_array((ctypes.c_uint8 * ((count * bits + 7) // 8)).from_address(int(address)))
    return OrtValue(_core.Value.reinterpreted(array, name, sizes), array)
