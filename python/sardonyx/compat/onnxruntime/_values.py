"""OrtValue and what goes with it."""

from __future__ import annotations

import enum
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

from ... import _core
from ..._errors import BadInputError
from ..._sparse import SparseTensor as _Coordinates
from ._exceptions import invalid_arguments
from ._state import Enumeration


class OrtDeviceVendorId(enum.IntEnum):
    NONE = 0x0000
    AMD = 0x1002
    NVIDIA = 0x10DE
    ARM = 0x13B5
    MICROSOFT = 0x1414
    HUAWEI = 0x19E5
    QUALCOMM = 0x5143
    INTEL = 0x8086


class OrtAllocatorType(Enumeration):
    INVALID = -1
    ORT_DEVICE_ALLOCATOR = 0
    ORT_ARENA_ALLOCATOR = 1


class OrtMemType(Enumeration):
    CPU_INPUT = -2
    CPU_OUTPUT = -1
    CPU = -1
    DEFAULT = 0


class OrtDeviceMemoryType(Enumeration):
    DEFAULT = 0
    HOST_ACCESSIBLE = 5


class OrtMemoryInfoDeviceType(Enumeration):
    CPU = 0
    GPU = 1
    FPGA = 2
    NPU = 3


class OrtSparseFormat(Enumeration):
    ORT_SPARSE_UNDEFINED = 0
    ORT_SPARSE_COO = 1
    ORT_SPARSE_CSRC = 2
    ORT_SPARSE_BLOCK_SPARSE = 4


class ArenaExtendStrategy(Enumeration):
    kNextPowerOfTwo = 0
    kSameAsRequested = 1


class OrtMemoryInfo:
    def __init__(self, name: str, allocator_type: OrtAllocatorType = OrtAllocatorType.ORT_ARENA_ALLOCATOR, device_id: int = 0,
                 mem_type: OrtMemType = OrtMemType.DEFAULT):
        self.name = name
        self.allocator_type = allocator_type
        self.device_id = device_id
        self.mem_type = mem_type
        self.device_mem_type = OrtDeviceMemoryType.DEFAULT
        self.device_vendor_id = 0

    @staticmethod
    def create_v2(name: str, device_type: Any, vendor_id: int, device_id: int, mem_type: OrtDeviceMemoryType, alignment: int,
                  allocator_type: OrtAllocatorType) -> OrtMemoryInfo:
        info = OrtMemoryInfo(name, allocator_type, device_id)
        info.device_mem_type, info.device_vendor_id = mem_type, vendor_id
        return info


class OrtArenaCfg:
    """Sardonyx has no arena to configure; the numbers are kept."""

    def __init__(self, *arguments: Any):
        options: dict[str, Any] = dict(arguments[0]) if len(arguments) == 1 else dict(zip(
            ("max_mem", "arena_extend_strategy", "initial_chunk_size_bytes", "max_dead_bytes_per_chunk"), arguments))
        self.max_mem: int = options.get("max_mem", 0)
        self.arena_extend_strategy: int = options.get("arena_extend_strategy", -1)
        self.initial_chunk_size_bytes: int = options.get("initial_chunk_size_bytes", -1)
        self.max_dead_bytes_per_chunk: int = options.get("max_dead_bytes_per_chunk", -1)
        self.initial_growth_chunk_size_bytes: int = options.get("initial_growth_chunk_size_bytes", -1)
        self.max_power_of_two_extend_bytes: int = options.get("max_power_of_two_extend_bytes", -1)


# Kind and vendor of the devices that onnxruntime has names for.
_DEVICES = {
    "cpu": (0, OrtDeviceVendorId.NONE), "cuda": (1, OrtDeviceVendorId.NVIDIA), "gpu": (1, OrtDeviceVendorId.NONE),
    "dml": (1, OrtDeviceVendorId.MICROSOFT), "webgpu": (1, OrtDeviceVendorId.NONE), "npu": (3, OrtDeviceVendorId.NONE),
    "cann": (3, OrtDeviceVendorId.HUAWEI)}


class OrtDevice:
    """Any device has a description; values are on the processor alone."""

    def __init__(self, device_type: int = 0, mem_type: int = 0, *ids: int):
        """`ids`: the vendor's number and the device's, or the device's alone."""
        self._device_type, self._mem_type = int(device_type), int(mem_type)
        self._vendor_id = int(ids[0]) if len(ids) > 1 else 0
        self._device_id = int(ids[-1]) if ids else 0

    @staticmethod
    def make(ort_device_name: str, device_id: int, vendor_id: int = -1) -> OrtDevice:
        found = _DEVICES.get(ort_device_name.lower())
        if found is None:
            raise RuntimeError(f"Unsupported device type: {ort_device_name}; known are {', '.join(_DEVICES)}")
        return OrtDevice(found[0], 0, found[1] if vendor_id < 0 else vendor_id, device_id)

    @staticmethod
    def cpu() -> int:
        return 0

    @staticmethod
    def cuda() -> int:
        return 1

    @staticmethod
    def gpu() -> int:
        return 1

    @staticmethod
    def webgpu() -> int:
        return 1

    @staticmethod
    def fpga() -> int:
        return 2

    @staticmethod
    def npu() -> int:
        return 3

    @staticmethod
    def cann() -> int:
        return 3

    @staticmethod
    def dml() -> int:
        return 4

    @staticmethod
    def default_memory() -> int:
        return 0

    def device_id(self) -> int:
        return self._device_id

    def device_type(self) -> int:
        return self._device_type

    def device_vendor_id(self) -> int:
        return self._vendor_id

    def device_mem_type(self) -> int:
        return self._mem_type

    vendor_id = device_vendor_id
    mem_type = device_mem_type

    def _get_c_device(self) -> OrtDevice:
        return self


def require_cpu(device: Any) -> None:
    """`device`: a name, an OrtDevice or an OrtMemoryInfo."""
    if isinstance(device, OrtMemoryInfo):
        device = device.name
    if isinstance(device, OrtDevice):
        device = next((name for name, (kind, _) in _DEVICES.items() if kind == device.device_type()), "an unknown device")
    if str(device).lower() not in ("cpu", "cpu_pinned"):
        raise RuntimeError(f"Sardonyx computes on the processor, and a value on '{device}' was asked for")


def element_name(element_type: Any) -> str:
    """Of what onnxruntime takes for one: a type of numpy, or a number of TensorProto.DataType."""
    if isinstance(element_type, (int, np.integer)) and not isinstance(element_type, bool):
        return _core.element_type_name(int(element_type))
    dtype: Any = element_type
    return _core.element_type_of(np.dtype(dtype))


class _Capsule:
    """Memory that something has handed out by DLPack already."""

    def __init__(self, capsule: Any):
        self._capsule = capsule

    def __dlpack__(self, **options: Any) -> Any:
        return self._capsule

    def __dlpack_device__(self) -> tuple[int, int]:
        return 1, 0


def is_dlpack_uint8_tensor(capsule: Any) -> bool:
    """Whether a capsule of DLPack has bytes, which may stand for truth values."""
    import ctypes

    pointer = ctypes.pythonapi.PyCapsule_GetPointer
    pointer.restype, pointer.argtypes = ctypes.c_void_p, [ctypes.py_object, ctypes.c_char_p]
    tensor = pointer(capsule, b"dltensor")  # data, device (two int32), rank (int32), code and bits of the type
    code, bits = ctypes.string_at(tensor + 20, 2)
    return (code, bits) == (1, 8)


class OrtValue:
    """A value that runs take and give without going through numpy."""

    def __init__(self, value: Any, numpy_obj: Any = None):
        self._value: _core.Value = value._value if isinstance(value, OrtValue) else value
        self._numpy_obj = numpy_obj

    def _get_c_value(self) -> OrtValue:
        return self

    @property
    def _ortvalue(self) -> OrtValue:
        """onnxruntime has a second class of this name, in its extension, that programs reach so."""
        return self

    @classmethod
    def ortvalue_from_numpy(cls, numpy_obj: npt.NDArray[Any], device_type: Any = "cpu", device_id: int = 0,
                            vendor_id: int = -1) -> OrtValue:
        """The array's own memory, where it lies as a tensor does."""
        require_cpu(device_type)
        array = np.asarray(numpy_obj)
        with invalid_arguments():
            return cls(_core.Value.of(array), array)

    @classmethod
    def ortvalue_from_numpy_with_onnx_type(cls, data: npt.NDArray[Any], /, onnx_element_type: int) -> OrtValue:
        """The array's bytes as elements of another type of the same size: uint16 as bfloat16."""
        with invalid_arguments():
            return cls(_core.Value.reinterpreted(data, _core.element_type_name(onnx_element_type), list(data.shape)), data)

    @classmethod
    def ortvalue_from_shape_and_type(cls, shape: Sequence[int], element_type: Any, device_type: Any = "cpu", device_id: int = 0,
                                     vendor_id: int = -1) -> OrtValue:
        require_cpu(device_type)
        with invalid_arguments():
            return cls(_core.Value.zeros(element_name(element_type), [int(size) for size in shape]))

    @classmethod
    def ortvalue_from_shape_and_onnx_type(cls, shape: Sequence[int], onnx_element_type: int, device: Any = "cpu") -> OrtValue:
        return cls.ortvalue_from_shape_and_type(shape, int(onnx_element_type), device)

    @classmethod
    def ort_value_from_sparse_tensor(cls, sparse_tensor: SparseTensor) -> OrtValue:
        with invalid_arguments():
            return cls(_core.Value.of(sparse_tensor._coordinates), sparse_tensor)

    def as_sparse_tensor(self) -> SparseTensor:
        if isinstance(self._numpy_obj, SparseTensor):
            return self._numpy_obj
        if not self.is_sparse_tensor():
            raise RuntimeError(f"the value is {self.data_type()}, and no sparse tensor")
        return SparseTensor(self._value.to_python())

    def data_ptr(self) -> int:
        with invalid_arguments():
            return self._value.address

    def device_name(self) -> str:
        return "cpu"

    def shape(self) -> list[int]:
        with invalid_arguments():
            return list(self._value.shape)

    def data_type(self) -> str:
        kind = self._value.kind
        if kind == "sequence":
            items = self._value.to_python()
            if items and isinstance(items[0], dict):
                return f"seq({_map_type(items[0])})"
            inner = _core.element_type_of(items[0].dtype) if items and hasattr(items[0], "dtype") else "float"
            return f"seq(tensor({inner}))"
        if kind == "map":
            return "map(,)"
        return f"{'sparse_tensor' if kind.startswith('sparse') else 'tensor'}({self._value.element_type})"

    def element_type(self) -> int:
        """A number of TensorProto.DataType; of a sequence of tensors that of its items."""
        text = self.data_type()
        if text.startswith("seq(tensor("):
            return _core.element_type_number(text[len("seq(tensor("):-len("))")])
        with invalid_arguments():
            return _core.element_type_number(self._value.element_type)

    def tensor_size_in_bytes(self) -> int:
        with invalid_arguments():
            return self._value.byte_size

    def has_value(self) -> bool:
        kind = self._value.kind
        return kind != "none" and not (kind == "optional" and self._value.to_python() is None)

    def is_tensor(self) -> bool:
        return self._value.kind == "tensor"

    def is_sparse_tensor(self) -> bool:
        return self._value.kind.startswith("sparse")

    def is_tensor_sequence(self) -> bool:
        return self._value.kind == "sequence" and not self.data_type().startswith("seq(map")

    def numpy(self) -> Any:
        """The elements where they lie, a copy of those that nobody may write to; a list of a sequence, a dict of a map."""
        return self._value.view() if self._value.writable else self._value.to_python()

    def __array__(self, dtype: Any = None, copy: bool | None = None) -> npt.NDArray[Any]:
        array = self._value.view()
        if copy or (dtype is not None and array.dtype != np.dtype(dtype)):
            return array.astype(dtype or array.dtype, copy=True)
        return array

    def __dlpack__(self, *, stream: Any = None, **options: Any) -> Any:
        array = self._value.view()
        if not array.flags.writeable:  # numpy hands out writable memory alone
            array = array.copy()
        return array.__dlpack__(**options)

    def __dlpack_device__(self) -> tuple[int, int]:
        return 1, 0

    def to_dlpack(self) -> Any:
        return self.__dlpack__()

    @classmethod
    def from_dlpack(cls, data: Any, is_bool_tensor: bool = False, /) -> OrtValue:
        """The memory of whatever has `__dlpack__`, or of a capsule of it; `is_bool_tensor`: its bytes are truth values."""
        array = np.from_dlpack(data if hasattr(data, "__dlpack__") else _Capsule(data))
        return cls.ortvalue_from_numpy(array.view(np.bool_) if is_bool_tensor and array.dtype == np.uint8 else array)

    def update_inplace(self, data: Any) -> None:
        """Writes into the memory that the value has, also where that is an array of numpy's."""
        with invalid_arguments():
            self._value.fill(np.asarray(data))


def _read_only(array: npt.NDArray[Any]) -> npt.NDArray[Any]:
    view = array.view()
    view.flags.writeable = False
    return view


class SparseCooView:
    def __init__(self, indices: npt.NDArray[np.int64]):
        self._indices = _read_only(indices)

    def indices(self) -> npt.NDArray[np.int64]:
        return self._indices


class SparseCsrView:
    def __init__(self, inner: npt.NDArray[np.int64], outer: npt.NDArray[np.int64]):
        self._inner, self._outer = _read_only(inner), _read_only(outer)

    def inner(self) -> npt.NDArray[np.int64]:
        return self._inner

    def outer(self) -> npt.NDArray[np.int64]:
        return self._outer


class SparseTensor:
    """In coordinate or compressed form; the engine has the coordinates."""

    def __init__(self, sparse_tensor: Any, form: OrtSparseFormat = OrtSparseFormat.ORT_SPARSE_COO):
        self._coordinates: _Coordinates = sparse_tensor._coordinates if isinstance(sparse_tensor, SparseTensor) else sparse_tensor
        self._format = form

    def _get_c_tensor(self) -> SparseTensor:
        return self

    @classmethod
    def sparse_coo_from_numpy(cls, dense_shape: npt.ArrayLike, values: npt.NDArray[Any], coo_indices: npt.NDArray[np.int64],
                              ort_device: Any = None) -> SparseTensor:
        """`coo_indices`: one number for each value, in row-major order, or one for each dimension."""
        shape = tuple(int(size) for size in np.asarray(dense_shape))
        numbers, indices = np.asarray(values), np.asarray(coo_indices, np.int64)
        if indices.shape == (numbers.size * len(shape),):
            indices = indices.reshape(numbers.size, len(shape)) if len(shape) > 1 else indices
        elif indices.shape not in ((numbers.size,), (numbers.size, len(shape))):
            raise RuntimeError(f"{numbers.size} values of a tensor with {len(shape)} dimensions have {numbers.size} indices or as many "
                               f"for each dimension, and indices of shape {list(indices.shape)} were given")
        return cls(_Coordinates(numbers, indices, shape))

    @classmethod
    def sparse_csr_from_numpy(cls, dense_shape: npt.ArrayLike, values: npt.NDArray[Any], inner_indices: npt.NDArray[np.int64],
                              outer_indices: npt.NDArray[np.int64], ort_device: Any = None) -> SparseTensor:
        shape = tuple(int(size) for size in np.asarray(dense_shape))
        if len(shape) != 2 or len(inner_indices) != len(values) or len(outer_indices) not in (0, shape[0] + 1):
            raise RuntimeError(f"a compressed matrix has two dimensions, an inner index for each value and one outer index more than rows; "
                               f"{len(values)} values of shape {list(shape)}, {len(inner_indices)} inner and {len(outer_indices)} outer "
                               "indices were given")
        if len(outer_indices) and (np.any(np.diff(outer_indices) < 0) or outer_indices[0] != 0 or outer_indices[-1] != len(values)):
            raise RuntimeError("outer indices of a compressed matrix begin with 0, never fall, and end with the number of values")
        rows = np.repeat(np.arange(len(outer_indices) - 1), np.diff(outer_indices))
        indices = np.stack([rows, np.asarray(inner_indices)], axis=1).astype(np.int64)
        return cls(_Coordinates(np.asarray(values), indices, shape), OrtSparseFormat.ORT_SPARSE_CSRC)

    def values(self) -> npt.NDArray[Any]:
        """Not to be written to; texts as objects."""
        values = self._coordinates.values
        return values.astype(object) if values.dtype.kind in "US" else _read_only(values)

    def dense_shape(self) -> list[int]:
        return list(self._coordinates.shape)

    def _pairs(self) -> npt.NDArray[np.int64]:
        indices = self._coordinates.indices
        return np.stack(np.unravel_index(indices, self._coordinates.shape), axis=1) if indices.ndim == 1 else indices

    def as_coo_view(self) -> SparseCooView:
        if self._format != OrtSparseFormat.ORT_SPARSE_COO:
            raise RuntimeError("the tensor is not in coordinate form")
        return SparseCooView(self._coordinates.indices)

    def as_csrc_view(self) -> SparseCsrView:
        if self._format != OrtSparseFormat.ORT_SPARSE_CSRC:
            raise RuntimeError("the tensor is not in compressed form")
        pairs = self._pairs()
        counts = np.bincount(pairs[:, 0], minlength=self._coordinates.shape[0])
        return SparseCsrView(pairs[:, 1].copy(), np.concatenate([[0], np.cumsum(counts)]).astype(np.int64))

    get_coo_data = as_coo_view
    get_csrc_data = as_csrc_view

    def as_blocksparse_view(self) -> Any:
        raise RuntimeError("the tensor is not in block form")

    def to_cuda(self, ort_device: Any) -> Any:
        raise RuntimeError("Sardonyx computes on the processor")

    def format(self) -> OrtSparseFormat:
        return self._format

    def data_type(self) -> str:
        return f"sparse_tensor({_core.element_type_of(self._coordinates.values.dtype)})"

    def device_name(self) -> str:
        return "cpu"


def _map_type(items: Mapping[Any, Any]) -> str:
    """Of a map as dicts have it; one without entries is taken for what classifiers make."""
    names = {int: "int64", str: "string", float: "float"}
    key, value = next(iter(items.items()), (0, 0.0))
    return f"map({names.get(type(key), 'int64')},tensor({names.get(type(value), 'float')}))"


def values_of(caller: str, feeds: Mapping[str, Any], kind: type[Exception]) -> dict[str, _core.Value]:
    """What `feeds`, OrtValues by name, hold. `kind` is raised for anything else."""
    for name, value in feeds.items():
        if not isinstance(value, OrtValue):
            raise kind(f"{caller}() takes OrtValues, and '{name}' is of type {type(value).__name__}; "
                       "OrtValue.ortvalue_from_numpy() makes one of an array")
    return {name: value._value for name, value in feeds.items()}


def written(name: str, bound: OrtValue, made: _core.Value) -> OrtValue:
    """`bound`, which a run was to write the output `name` into. Raises BadInputError where `made` does not fit into it."""
    value = bound._value
    if value.has_memory_of(made):
        return bound
    if made.kind != "tensor" or value.kind != "tensor" or made.element_type == "string":
        bound._value = made  # there is no memory to write into
    elif (made.element_type, made.shape) != (value.element_type, value.shape):
        raise BadInputError(f"output '{name}' is bound to {_described(value)}, and the run made {_described(made)}; "
                            "bind a value of that type and shape, or leave the output to the run")
    return bound


def _described(value: _core.Value) -> str:
    return f"{value.element_type}[{','.join(map(str, value.shape))}]"


class OrtValueVector(list["OrtValue"]):
    """Values in order, as the extension of onnxruntime hands them out."""

    def push_back(self, value: Any, is_bool_tensor: bool = False) -> None:
        """A value, or memory that DLPack hands out."""
        self.append(value if isinstance(value, OrtValue) else OrtValue.from_dlpack(value, is_bool_tensor))

    def push_back_batch(self, tensors: Sequence[Any], addresses: Sequence[int], element_types: Sequence[Any],
                        shapes: Sequence[Sequence[int]], devices: Sequence[Any]) -> None:
        """Memory at addresses, which lives as long as `tensors` do."""
        for tensor, address, element_type, shape, device in zip(tensors, addresses, element_types, shapes, devices):
            require_cpu(device)
            value = at_address(element_type, shape, address)
            value._numpy_obj = tensor
            self.append(value)

    def reserve(self, count: int) -> None:
        """A list grows by itself."""

    def shrink_to_fit(self) -> None:
        """A list shrinks by itself."""

    def element_type_at(self, i: int) -> int:
        return self[i].element_type()

    def bool_tensor_indices(self) -> list[int]:
        return [i for i, value in enumerate(self) if value.data_type() == "tensor(bool)"]

    def dlpack_at(self, i: int) -> Any:
        return self[i].to_dlpack()

    def to_dlpacks(self, to_tensor: Any = None) -> list[Any]:
        """Capsules, or what `to_tensor` makes of each."""
        return [value.to_dlpack() if to_tensor is None else to_tensor(value.to_dlpack()) for value in self]


def at_address(element_type: Any, shape: Sequence[int], address: int) -> OrtValue:
    """A tensor at an address, which the caller keeps valid."""
    import ctypes

    name = element_name(element_type)
    if name == "string":
        raise RuntimeError("strings are not bound by address")
    sizes = [int(size) for size in shape]
    count = int(np.prod(sizes, dtype=np.int64))
    if count and not address:
        raise RuntimeError("the address of the memory is 0")
    bits = _core.element_bits(name)
    array = np.ctypeslib.as_array((ctypes.c_uint8 * ((count * bits + 7) // 8)).from_address(int(address)))
    return OrtValue(_core.Value.reinterpreted(array, name, sizes), array)


def copy_tensors(src: Sequence[OrtValue], dst: Sequence[OrtValue], stream: Any = None) -> None:
    for one, other in zip(src, dst):
        other.update_inplace(one._value.view())
