"""The package of the build tree, and small models."""

from __future__ import annotations

import ctypes
import gc
import os
import pathlib
import sys

import onnx
import pytest
from onnx import parser

ROOT = pathlib.Path(__file__).resolve().parents[3]
PACKAGE = pathlib.Path(os.environ.get("SARDONYX_PACKAGE", ROOT / "build" / "release" / "python"))
os.environ.setdefault("ORT_DISABLE_TELEMETRY", "1")
sys.path.insert(0, str(PACKAGE))
HEADER = '<ir_version: 10, opset_import: ["" : 21, "ai.onnx.ml" : 4]> '


def resident_bytes() -> int:
    """Of this process, without what the allocator holds back."""
    gc.collect()
    ctypes.CDLL("libc.so.6").malloc_trim(0)
    return int(pathlib.Path("/proc/self/statm").read_text().split()[1]) * os.sysconf("SC_PAGESIZE")


@pytest.fixture(scope="session")
def environment() -> dict[str, str]:
    """For a Python of its own that imports the package."""
    return dict(os.environ, PYTHONPATH=str(PACKAGE), ORT_DISABLE_TELEMETRY="1")


@pytest.fixture
def model():
    """A model given in textual syntax, with the usual imports."""

    def parse(text: str) -> onnx.ModelProto:
        return parser.parse_model(HEADER + text)

    return parse


@pytest.fixture
def double(model) -> onnx.ModelProto:
    return model("double (float[n] x) => (float[n] y) { y = Add(x, x) }")
