"""What the reference evaluator and ONNX Runtime say of a model of one node."""

from __future__ import annotations

import warnings

import numpy as np
import onnx

NATIVE = {np.dtype(t) for t in ("f4", "f8", "f2", "i1", "i2", "i4", "i8", "u1", "u2", "u4", "u8", "?", "O")}
RELATIVE = {"float16": 2e-2, "bfloat16": 8e-2, "float32": 1e-4, "float64": 2e-5, "complex64": 1e-4, "complex128": 2e-5}


class Refused(Exception):
    """An evaluator gives no outputs: it does not know the operator, the types, or finds the model wrong."""


def by_reference(model: onnx.ModelProto, feeds: dict) -> list:
    from onnx.reference import ReferenceEvaluator

    try:
        with warnings.catch_warnings(), np.errstate(all="ignore"):
            warnings.simplefilter("ignore")
            outputs = ReferenceEvaluator(model).run(None, feeds)
    except Exception as error:  # it raises whatever numpy raises
        raise Refused(f"{type(error).__name__}: {error}") from error
    return [normal(value) for value in outputs]


def by_runtime(model: onnx.ModelProto, feeds: dict) -> list:
    import onnxruntime

    onnxruntime.set_default_logger_severity(4)
    for value in feeds.values():
        if isinstance(value, np.ndarray) and value.dtype not in NATIVE:
            raise Refused("an element type that numpy can't hand over")
    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads = 1
    options.log_severity_level = 4
    try:
        session = onnxruntime.InferenceSession(model.SerializeToString(), options, providers=["CPUExecutionProvider"])
        outputs = session.run(None, feeds)
    except Exception as error:
        raise Refused(f"{type(error).__name__}: {error}") from error
    return [normal(value) for value in outputs]


def normal(value):
    if isinstance(value, (list, tuple)):
        return [normal(item) for item in value]
    if isinstance(value, dict) or value is None:
        return value
    array = np.asarray(value)
    return array.astype(object) if array.dtype.kind in "SU" else array


def differ(a, b) -> str | None:
    """How two outputs differ, beyond what rounding explains."""
    if isinstance(a, list) or isinstance(b, list):
        if not (isinstance(a, list) and isinstance(b, list)) or len(a) != len(b):
            return "not sequences of one length"
        return next((found for x, y in zip(a, b) if (found := differ(x, y))), None)
    if isinstance(a, dict) or isinstance(b, dict):
        if not (isinstance(a, dict) and isinstance(b, dict)) or set(a) != set(b):
            return "not maps of the same keys"
        return next((f"key {key}" for key in a if differ(normal(a[key]), normal(b[key]))), None)
    if (a is None) != (b is None):
        return "one is absent"
    if a is None:
        return None
    if a.dtype != b.dtype or a.shape != b.shape:
        return f"{a.dtype.name}{list(a.shape)} and {b.dtype.name}{list(b.shape)}"
    if a.dtype == object or a.dtype.kind in "biu" or "int" in a.dtype.name:
        same = a == b
        return None if np.all(same) else f"{np.sum(~np.asarray(same, bool))} of {a.size} elements differ"
    relative, absolute = tolerance(b)
    wide = np.complex128 if a.dtype.kind == "c" else np.float64
    with np.errstate(all="ignore"):
        x, y = a.astype(wide), b.astype(wide)
        same = (x == y) | (np.isnan(x) & np.isnan(y)) | (np.isfinite(x) & np.isfinite(y) & (
            np.abs(x - y) <= absolute + relative * np.abs(y)))
    return None if np.all(same) else f"{np.sum(~same)} of {a.size} elements differ"


def tolerance(expected: np.ndarray) -> tuple[float, float]:
    """(relative, absolute): sums of a few hundred terms, whose terms may cancel."""
    relative = RELATIVE.get(expected.dtype.name, 0.0)
    with np.errstate(all="ignore"):
        finite = expected.astype(np.complex128 if expected.dtype.kind == "c" else np.float64)
        finite = np.abs(finite[np.isfinite(finite)])
    largest = min(float(finite.max()), 1e6) if finite.size else 0.0
    return relative, relative * max(1e-2, min(largest, 10.0)) * 0.1 if relative else 0.0


def widest_tolerance(outputs: list) -> tuple[float, float]:
    found = [(0.0, 0.0)]
    for output in outputs:
        if isinstance(output, list):
            found.append(widest_tolerance(output))
        elif isinstance(output, dict):
            found.append((1e-4, 1e-5))
        elif output is not None and (output.dtype.kind in "fc" or output.dtype.name.startswith(("bfloat", "float"))):
            found.append(tolerance(output))
    return max(r for r, _ in found), max(a for _, a in found)


__all__ = ["Refused", "by_reference", "by_runtime", "differ", "widest_tolerance"]
