# The extension's own functions, for the files beside it.
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

class LoadOptions:
    strict: bool
    trusted_folder: str
    read_into_memory: bool
    operator_sets: Sequence[str]
    libraries: Sequence[str]
    memory_limit: int
    listener: Callable[[str, str, str, str], Any] | None
    def __init__(self) -> None: ...

class Model:
    @staticmethod
    def from_file(path: str, options: LoadOptions) -> Model: ...
    @staticmethod
    def from_bytes(data: bytes, folder: str, options: LoadOptions) -> Model: ...
    @staticmethod
    def from_text(text: str, options: LoadOptions) -> Model: ...

class Value:
    """A value that stays with the engine: runs take and give it without going through numpy."""

    @staticmethod
    def of(object: Any, type: str = "") -> Value:
        """Of what a run takes as an input; an array's own memory, where it lies as a tensor does."""

    @staticmethod
    def reinterpreted(array: npt.NDArray[Any], type: str, shape: Sequence[int]) -> Value:
        """An array's bytes as elements of another type."""

    @staticmethod
    def zeros(type: str, shape: Sequence[int]) -> Value: ...
    @property
    def kind(self) -> str: ...
    @property
    def element_type(self) -> str: ...
    @property
    def shape(self) -> list[int]: ...
    @property
    def address(self) -> int: ...
    @property
    def byte_size(self) -> int: ...
    @property
    def writable(self) -> bool: ...
    def fill(self, array: npt.ArrayLike) -> None:
        """Writes elements over those of the tensor."""

    def view(self) -> npt.NDArray[Any]:
        """The tensor's elements where they lie, to be written to where `writable`."""

    def to_python(self) -> Any:
        """What a run would give for it."""

class Cancel:
    """Stops the runs that have it, from any thread."""

    def __init__(self) -> None: ...
    def set(self) -> None: ...
    def clear(self) -> None: ...
    def is_set(self) -> bool: ...

class Profile:
    def __init__(self) -> None: ...
    def _steps(self) -> list[tuple[str, str, str, list[str], str, str, int]]: ...
    def _runs(self) -> list[tuple[int, int, list[tuple[int, int, int, int, float, float]]]]: ...
    def _events(self) -> list[tuple[int, int, int, int, int]]: ...
    @property
    def dropped_events(self) -> int: ...
    @property
    def threads(self) -> int: ...

class SessionOptions:
    threads: int
    reference: bool
    fuse: bool
    exact: bool
    assume_inference: bool
    prepack: bool
    seed: int
    all_outputs: bool
    memory_limit: int
    def __init__(self) -> None: ...

class Session:
    def __init__(self, model: Model, options: SessionOptions) -> None: ...
    def run(self, inputs: Mapping[str, Any] | Sequence[Any], *, cancel: Cancel | None = None, timeout: float | None = None,
            memory_limit: int = 0, profile: Profile | None = None) -> Any:
        """Outputs as a dict for inputs by name, as a list for inputs in the model's order.

        Arrays are read where they lie, for the time of the call; lists and numbers take the declared element type. Outputs
        are numpy arrays that nothing else uses, lists of sequences, dicts of maps, SparseTensors, None for an optional that
        holds nothing. `timeout` in seconds; `memory_limit`: most bytes that the run may have in use, 0 for any number.

        Raises BadInputError, RunFailedError, CancelledError, OutOfMemoryError; KeyboardInterrupt stops the run.
        """

    def run_list(self, names: Sequence[str] | None, inputs: Mapping[str, Any], cancel: Cancel | None = None,
                 profile: Profile | None = None) -> list[Any]:
        """Outputs as a list: those named, all for None and none."""

    def run_values(self, inputs: Mapping[str, Any] | Sequence[Any], outputs: Mapping[str, Value], cancel: Cancel | None = None,
                   profile: Profile | None = None) -> list[Value]:
        """All outputs as Values; those given are written to where they lie."""

    @property
    def _inputs(self) -> list[Any]: ...
    @property
    def _outputs(self) -> list[Any]: ...
    def _steps(self) -> list[Any]: ...
    @property
    def packed_bytes(self) -> int:
        """Bytes of weights in the form of their kernels."""

    @property
    def arena_bytes(self) -> int:
        """Bytes of working memory that runs have left for later ones."""

def optimized_text(model: Model, max_elements: int) -> str: ...
def optimizer_passes() -> list[tuple[str, str]]: ...
def element_type_of(dtype: npt.DTypeLike) -> str: ...
def dtype_of(name: str) -> np.dtype[Any]: ...
def element_bits(name: str) -> int: ...
def element_type_number(name: str) -> int: ...
def element_type_name(number: int) -> str: ...
def infer_model(model: Model, sizes: Mapping[str, int], strict: bool) -> Any: ...
def infer_path(path: str, sizes: Mapping[str, int], strict: bool) -> Any: ...
def infer_file(path: str, output: str, sizes: Mapping[str, int], strict: bool) -> Any: ...
def version() -> str: ...
