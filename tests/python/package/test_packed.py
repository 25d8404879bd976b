"""sardonyx.pack, and sessions that take packed weights from files."""

from __future__ import annotations

import pickle

import numpy as np
import pytest

import sardonyx
from sardonyx.compat import onnxruntime as ours


@pytest.fixture
def path(model, tmp_path):
    weights = ", ".join(str(i % 7) for i in range(64 * 32))
    made = model(f"g (float[n,64] x) => (float[n,32] y) <float[64,32] w = {{{weights}}}> {{ y = MatMul(x, w) }}")
    (tmp_path / "model.onnx").write_bytes(made.SerializeToString())
    return tmp_path / "model.onnx"


X = np.arange(64, dtype=np.float32)[None]


def test_results_are_the_same(path, tmp_path):
    expected = sardonyx.Session(path)(X)
    file = tmp_path / "model.sdx"
    assert sardonyx.pack(path, file) == file.stat().st_size
    assert sardonyx.compare_packed(path, file) == []
    session = sardonyx.Session(path, packed=file)
    assert session.packed_bytes == 0
    np.testing.assert_array_equal(session(X), expected)
    np.testing.assert_array_equal(pickle.loads(pickle.dumps(session))(X), expected)
    data = path.read_bytes()
    assert sardonyx.Session(data, packed=str(file)).packed_bytes == 0
    # Of a model in memory there is no optimised graph.
    assert sardonyx.pack(sardonyx.Model(data), tmp_path / "memory.sdx") < file.stat().st_size


def test_options_of_the_sessions(model, tmp_path):
    """The optimised graph is that of sessions with the same sizes and outputs."""
    weights = ", ".join(str(i % 7) for i in range(64 * 32))
    made = model(f"g (float[n,64] x) => (float[n,32] y) <float[64,32] w = {{{weights}}}> {{ h = MatMul(x, w)  y = Relu(h) }}")
    path, file = tmp_path / "model.onnx", tmp_path / "sized.sdx"
    path.write_bytes(made.SerializeToString())
    options = {"dimensions": {"n": 2}, "extra_outputs": ["h"], "assume_inference": True}
    sardonyx.pack(path, file, **options)
    assert sardonyx.compare_packed(path, file, **options) == []
    assert sardonyx.compare_packed(path, file) != []
    session = sardonyx.Session(path, packed=file, **options)
    assert session.packed_bytes == 0 and session.inputs[0].shape == (2, 64)
    with pytest.raises(sardonyx.BadInputError, match="'m'"):
        sardonyx.pack(path, file, dimensions={"m": 2})
    with pytest.raises(TypeError, match="extra_outputs takes a list"):
        sardonyx.compare_packed(path, file, extra_outputs="w")


def test_a_cache_folder_fills_itself(path, tmp_path):
    first = sardonyx.Session(path, cache_folder=tmp_path / "cache")
    second = sardonyx.Session(path, cache_folder=str(tmp_path / "cache"))
    assert first.packed_bytes > 0 and second.packed_bytes == 0
    np.testing.assert_array_equal(first(X), second(X))
    assert len(list((tmp_path / "cache").iterdir())) == 1


def test_what_is_wrong_is_said(path, tmp_path, double):
    file = tmp_path / "model.sdx"
    sardonyx.pack(path, file)
    with pytest.raises(sardonyx.BadInputError, match="another model"):
        sardonyx.Session(double, packed=file)
    with pytest.raises(sardonyx.UnreadableError, match="cannot open"):
        sardonyx.Session(path, packed=tmp_path / "none.sdx")
    with pytest.raises(sardonyx.UnreadableError, match="no folder"):
        sardonyx.pack(path, tmp_path / "none" / "model.sdx")
    data = bytearray(file.read_bytes())
    data[300] ^= 1
    file.write_bytes(data)
    with pytest.raises(sardonyx.UnreadableError, match="checksum"):
        sardonyx.compare_packed(path, file)


def test_onnxruntimes_options(path, tmp_path):
    options = ours.SessionOptions()
    options.optimized_model_filepath = str(tmp_path / "model.sdx")
    expected = ours.InferenceSession(path, options).run(None, {"x": X})[0]
    assert sardonyx.compare_packed(path, tmp_path / "model.sdx") == []
    for key, value in (("sardonyx.packed", "model.sdx"), ("sardonyx.cache_folder", "cache"), ("sardonyx.cache_folder", "cache")):
        options = ours.SessionOptions()
        options.add_session_config_entry(key, str(tmp_path / value))
        session = ours.InferenceSession(path, options)
        np.testing.assert_array_equal(session.run(None, {"x": X})[0], expected)
    assert session._sess.packed_bytes == 0
