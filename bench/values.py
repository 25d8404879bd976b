"""Outputs of both engines as arrays that can be compared."""

from __future__ import annotations

import pathlib

import ml_dtypes
import numpy as np
import onnx
from onnx import numpy_helper

TOLERANCE = 1e-3  # of the output's RMS


def plain(value) -> np.ndarray:
    """A list of maps becomes a matrix: the values of each, in order of its keys."""
    if isinstance(value, list) and value and isinstance(value[0], dict):
        return np.array([[entry[key] for key in sorted(entry)] for entry in value], np.float32)
    array = np.asarray(value)
    return array.astype(str) if array.dtype == object else array


def from_map(proto: onnx.MapProto) -> dict:
    keys = [key.decode() for key in proto.string_keys] or list(proto.keys)
    return dict(zip(keys, numpy_helper.to_array(proto.values.tensor_values[0]).reshape(-1)
                    if proto.values.tensor_values[0].dims else
                    [numpy_helper.to_array(tensor).item() for tensor in proto.values.tensor_values]))


def read(folder: pathlib.Path, count: int) -> list[np.ndarray]:
    """What `outputs DIR` wrote."""
    results = []
    for index in range(count):
        file = folder / f"output_{index}.npy"
        if file.exists():
            array = np.load(file)
            results.append(array.view(ml_dtypes.bfloat16) if array.dtype.kind == "V" else array)
            continue
        sequence = onnx.SequenceProto()
        sequence.ParseFromString(file.with_suffix(".pb").read_bytes())
        results.append(plain([from_map(entry) for entry in sequence.map_values]) if sequence.map_values
                       else np.stack(numpy_helper.to_list(sequence)))
    return results


def is_float(array: np.ndarray) -> bool:
    return array.dtype == ml_dtypes.bfloat16 or np.issubdtype(array.dtype, np.floating)


def rms(array: np.ndarray) -> float:
    return float(np.sqrt(np.mean(np.square(array, dtype=np.float64)))) if array.size else 0.0


def share_apart(ours: np.ndarray, theirs: np.ndarray, tolerance: float) -> float:
    """The share of elements that differ: integers at all, floats by more than the tolerance."""
    if ours.shape != theirs.shape or ours.dtype != theirs.dtype:
        return 1.0
    if not is_float(theirs):
        return float(np.mean(ours != theirs)) if theirs.size else 0.0
    return float(np.mean(np.abs(ours - theirs) > tolerance * rms(theirs))) if theirs.size else 0.0


def difference(ours: np.ndarray, theirs: np.ndarray, counterparts: bool = False) -> float:
    """The largest difference as a share of the RMS; infinite where type, shape or an integer differs. Of `counterparts` the
    float types may differ."""
    if ours.shape != theirs.shape:
        return float("inf")
    if not (is_float(theirs) and is_float(ours)):
        same = ours.dtype == theirs.dtype or {ours.dtype.kind, theirs.dtype.kind} == {"U"}
        return 0.0 if same and np.array_equal(ours, theirs) else float("inf")
    if ours.dtype != theirs.dtype and not counterparts:
        return float("inf")
    if not theirs.size:
        return 0.0
    wide = [array.astype(np.float64) for array in (ours, theirs)]
    if any(np.isnan(array).any() for array in wide):
        return float("inf")
    with np.errstate(invalid="ignore"):  # both may hold the same infinity
        largest = float(np.max(np.where(wide[0] == wide[1], 0.0, np.abs(wide[0] - wide[1]))))
    finite = wide[1][np.isfinite(wide[1])]
    return largest / max(rms(finite), 1e-30) if np.isfinite(largest) else float("inf")
