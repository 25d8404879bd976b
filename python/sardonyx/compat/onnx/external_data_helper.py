"""onnx.external_data_helper, and loading and saving that has no limit of 2 GB."""

from __future__ import annotations

import os
from typing import Any

import onnx
import onnx.checker
import onnx.external_data_helper

from ..._errors import Error
from ..._model import Model


def load_external_data_for_model(model: Any, base_dir: str | os.PathLike[str]) -> None:
    """Brings external data into the message itself, which protobuf lets grow to 2 GB. ValidationError where its file is not to be read:
    one that is not there, leads out of the folder, or is a link."""
    helper = onnx.external_data_helper
    outside = [helper.uses_external_data(tensor) for tensor in helper._get_all_tensors(model)]
    try:
        loaded = Model(model, folder=base_dir).to_bytes()
    except Error as found:
        raise onnx.checker.ValidationError(str(found)) from found
    model.ParseFromString(loaded)
    for tensor, was_outside in zip(helper._get_all_tensors(model), outside):
        if was_outside:
            tensor.data_location = onnx.TensorProto.DEFAULT


def save_model(model: Any, path: str | os.PathLike[str], *, location: str | None = None, size_threshold: int = 1024,
               base_dir: str | os.PathLike[str] = "", checksum: bool = False) -> None:
    """Writes a model, a message or a path, with tensors of `size_threshold` bytes and more in the file `location` beside it."""
    opened = Model(model) if isinstance(model, (str, os.PathLike)) else Model(model, folder=base_dir)
    opened.save(path, external_data=location or f"{os.path.basename(path)}.data", threshold=size_threshold, checksum=checksum)


__all__ = ["load_external_data_for_model"]
