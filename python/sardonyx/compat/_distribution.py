"""What importlib.metadata.version("onnxruntime") finds where the package is not installed."""

from __future__ import annotations

import importlib.metadata
import pathlib
from collections.abc import Iterable
from typing import Any


class _Distribution(importlib.metadata.Distribution):
    def __init__(self, version: str):
        self._text = f"Metadata-Version: 2.1\nName: onnxruntime\nVersion: {version}\n"

    def read_text(self, filename: str) -> str | None:
        return self._text if filename == "METADATA" else None

    def locate_file(self, path: Any) -> pathlib.Path:
        return pathlib.Path(__file__).parent / str(path)


class Metadata(importlib.metadata.DistributionFinder):
    def __init__(self, version: str):
        self._version = version

    def find_spec(self, name: str, path: Any = None, target: Any = None) -> None:
        return None

    def find_distributions(self, context: Any = importlib.metadata.DistributionFinder.Context()) -> Iterable[Any]:
        if context.name is not None and context.name.replace("-", "_").lower() == "onnxruntime":
            yield _Distribution(self._version)
