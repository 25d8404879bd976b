"""onnx.utils."""

from __future__ import annotations

import os
from collections.abc import Sequence
from typing import Any

from ... import _tools
from ..._model import Model


def extract_model(input_path: str | os.PathLike[str], output_path: str | os.PathLike[str], input_names: Sequence[str],
                  output_names: Sequence[str], check_model: bool = True, **_: Any) -> None:
    """From file to file: the part that makes these outputs of these inputs. Weights never pass through Python."""
    if not output_names:
        raise ValueError("Output tensor names shall not be empty!")
    made = _tools.extract(Model(input_path, load_external_data=False), list(input_names), list(output_names))
    made.save(output_path)
    if check_model:
        from .checker import check_model as check

        check(output_path)
