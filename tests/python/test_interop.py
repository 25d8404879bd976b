"""What the onnx package writes we read equal; what we write it loads, and its checker accepts."""

from __future__ import annotations

import functools
import pathlib

import onnx
import pytest

DATA = pathlib.Path(onnx.__file__).parent / "backend" / "test" / "data"


@functools.cache
def models():
    """Every seventh of the models that the package carries."""
    return sorted(DATA.rglob("*.onnx"))[3::7]


def accepted(path):
    try:
        onnx.checker.check_model(str(path))
        return True
    except onnx.checker.ValidationError:
        return False


@pytest.mark.parametrize("path", models(), ids=lambda path: path.parent.name + "/" + path.name)
def test_models_pass_through_us_unchanged(sardonyx, tmp_path, path):
    for form in ("onnx", "json", "textproto"):
        sardonyx("convert", path, tmp_path / f"m.{form}")
        sardonyx("convert", tmp_path / f"m.{form}", tmp_path / "again.onnx")
        assert (tmp_path / "again.onnx").read_bytes() == path.read_bytes()
    sardonyx("convert", path, tmp_path / "split.onnx", "--external-data", "w.bin", "--threshold", "0")
    if accepted(path):
        assert accepted(tmp_path / "split.onnx")
    sardonyx("diff", path, tmp_path / "split.onnx")
