"""onnx.utils."""

from __future__ import annotations

import os
from collections.abc import Sequence
from typing import Any

from ... import _tools
from ..._model import Model


def extract_model(input_path: str | os.PathLike[str], output_path: str | os.PathLike[str], input_names: Sequence[str],
                  output_names: Sequence[str], check_model: bool = True, infer_shapes: bool = True, **_: Any) -> None:
    """From file to file: the part that makes these outputs of these inputs. Weights never pass through Python."""
    if not os.path.exists(input_path):
        raise ValueError(f"Invalid input model path: {input_path}")
    if not output_path:
        raise ValueError("Output model path shall not be empty!")
    for names, which in ((input_names, "input"), (output_names, "output")):
        if not names:
            raise ValueError(f"{which.capitalize()} tensor names shall not be empty!")
        if len(names) != len(set(names)):
            raise ValueError(f"Duplicate names found in the {which} tensor names.")
    model: Any = Model(input_path, load_external_data=False)
    if infer_shapes:
        from ..._inference import infer_shapes as infer

        model = infer(model)
    _tools.extract(model, list(input_names), list(output_names)).save(output_path)
    if check_model:
        from .checker import check_model as check

        check(output_path)


__all__ = ["extract_model"]
