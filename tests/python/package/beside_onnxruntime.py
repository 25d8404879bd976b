"""The same calls to onnxruntime and to Sardonyx in its place, and the same answers: types of what is returned, classes of exceptions,
attributes. Each case is a function of the module, the model's bytes and a folder; what it returns is compared, and what it raises."""

from __future__ import annotations

import pathlib
import warnings
from collections.abc import Callable
from typing import Any

import numpy as np
import onnx
import onnxruntime as theirs
from onnx import numpy_helper

import sardonyx.compat.onnxruntime as ours

CPU = ["CPUExecutionProvider"]
HEADER = '<ir_version: 10, opset_import: ["" : 21]> '
X = np.arange(6, dtype=np.float32).reshape(2, 3)
Case = Callable[[Any, bytes, pathlib.Path], Any]


class Cases(dict[str, Case]):
    """Those of a file, by name; `different` says where the two differ, and why."""

    def __init__(self, different: dict[str, str]) -> None:
        super().__init__()
        self.different = different

    def __call__(self, function: Case) -> Case:
        self[function.__name__] = function
        return function

    def compare(self, name: str, folder: pathlib.Path) -> None:
        folders = [folder / "ours", folder / "theirs"]
        for one in folders:
            one.mkdir()
        mine, other = (outcome(self[name], ort, affine(), one) for ort, one in zip((ours, theirs), folders))
        if name in self.different:
            assert mine != other, f"{name} is alike by now"
        else:
            assert mine == other


def affine() -> bytes:
    proto = onnx.parser.parse_model('<ir_version: 10, opset_import: ["" : 21], producer_name: "us", model_version: 3> '
                                    "affine (float[rows,3] x) => (float[rows,3] y, float[rows,3] twice) "
                                    "{ twice = Add(x, x) y = Add(twice, b) }")
    proto.graph.initializer.append(numpy_helper.from_array(np.array([10, 20, 30], np.float32), "b"))
    proto.metadata_props.add(key="who", value="us")
    return proto.SerializeToString()


def described(value: Any) -> Any:
    """What is comparable of a value of either module."""
    if isinstance(value, np.ndarray):
        return "array", str(value.dtype), value.shape, value.flags.c_contiguous, value.tolist()
    if hasattr(value, "name") and hasattr(value, "value"):
        return "enumeration", value.name, int(value)
    if isinstance(value, (str, int, float, bool, bytes, type(None))):
        return type(value).__name__, value
    if isinstance(value, (list, tuple)):
        return type(value).__name__, [described(one) for one in value]
    if isinstance(value, dict):
        return "dict", [(key, described(one)) for key, one in value.items()]
    if isinstance(value, type):
        return "class", value.__name__
    if type(value).__name__ == "OrtValue":
        return "OrtValue", value.data_type(), list(value.shape()) if value.is_tensor() else None, described(value.numpy())
    return "object", type(value).__name__


def outcome(function: Case, ort: Any, model: bytes, folder: pathlib.Path) -> Any:
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        try:
            made = "returned", described(function(ort, model, folder))
        except Exception as error:
            assert str(error), f"{type(error).__name__} without a message"
            made = "raised", type(error).__name__, isinstance(error, (ValueError, TypeError, RuntimeError))
    return made, sorted({one.category.__name__ for one in caught if "Specified provider" in str(one.message)})


def session(ort: Any, model: bytes, options: Any = None, **more: Any) -> Any:
    return ort.InferenceSession(model, options, providers=CPU, **more)
