"""onnxruntime.backend beside ours, which is there without the package onnxruntime, too."""

from __future__ import annotations

import subprocess
import sys
import unittest

import numpy as np
import onnx
import onnxruntime.backend as theirs
import pytest
from onnxruntime.backend.backend import OnnxRuntimeBackend as their_class

import sardonyx.compat.onnxruntime as ort
import sardonyx.compat.onnxruntime.backend as ours
from sardonyx.compat.onnxruntime.backend.backend import OnnxRuntimeBackend as our_class

BOTH = pytest.mark.parametrize(("backend", "kind"), [(ours, our_class), (theirs, their_class)], ids=["ours", "theirs"])
X = np.arange(6, dtype=np.float32).reshape(2, 3)


@pytest.fixture
def sums(model) -> onnx.ModelProto:
    return model("g (float[n,3] a, float[n,3] b) => (float[n,3] s, float[n,3] d) { s = Add(a, b) d = Sub(a, b) }")


@BOTH
def test_models_in_every_form(backend, kind, sums, tmp_path):
    onnx.save(sums, tmp_path / "m.onnx")
    for source in (sums, sums.SerializeToString(), str(tmp_path / "m.onnx")):
        prepared = backend.prepare(source, "CPU", intra_op_num_threads=1, no_such_option=3)
        assert backend.prepare(prepared) is prepared
        s, d = prepared.run([X, 2 * X], logid="mine")
        np.testing.assert_array_equal(s, 3 * X)
        np.testing.assert_array_equal(d, -X)
    np.testing.assert_array_equal(backend.run(sums, [X, X])[0], 2 * X)
    np.testing.assert_array_equal(kind.run_model(sums, [X, X], "CPU")[0], 2 * X)


@BOTH
def test_one_input_needs_no_list(backend, kind, double, sums):
    np.testing.assert_array_equal(backend.prepare(double).run(X[0])[0], 2 * X[0])
    with pytest.raises(RuntimeError, match="Model expect 2 inputs"):
        backend.prepare(sums).run(X)


@BOTH
def test_devices_and_what_is_refused(backend, kind, double):
    assert backend.supports_device("CPU") and backend.is_compatible(double) and not backend.is_compatible(double, "GPU")
    with pytest.raises(RuntimeError, match="Incompatible device"):
        backend.prepare(double, "CUDA")
    with pytest.raises(RuntimeError, match="'enable_profiling' is not permitted"):
        backend.prepare(double, enable_profiling=True)
    with pytest.raises(RuntimeError, match="'terminate' is not permitted"):
        backend.prepare(double).run(X[0], terminate=True)
    with pytest.raises(NotImplementedError):
        kind.run_node(double.graph.node[0], [X])
    double.opset_import[0].version = 1000
    assert kind.is_opset_supported(double)[0] is False
    with pytest.raises((unittest.SkipTest, onnx.checker.ValidationError)):
        backend.prepare(double)


def test_a_session_is_prepared_already(double):
    session = ort.InferenceSession(double.SerializeToString())
    np.testing.assert_array_equal(ours.prepare(session).run([X[0]])[0], 2 * X[0])
    with pytest.raises(RuntimeError, match="1 inputs, and 0 were given"):
        ours.prepare(session).run([])


def test_under_the_alias(environment, double, tmp_path):
    onnx.save(double, tmp_path / "m.onnx")
    code = ("import sys, numpy as np, sardonyx.compat; sardonyx.compat.install()\n"
            "import onnxruntime, onnxruntime.backend as backend\nfrom onnxruntime.backend.backend import OnnxRuntimeBackend\n"
            "assert 'sardonyx' in backend.__file__\n"
            "assert isinstance(backend.prepare(sys.argv[1])._session, onnxruntime.InferenceSession)\n"
            "print(OnnxRuntimeBackend.run_model(sys.argv[1], np.ones(2, np.float32))[0])")
    made = subprocess.run([sys.executable, "-c", code, tmp_path / "m.onnx"], env=environment, text=True, capture_output=True)
    assert made.stdout == "[2. 2.]\n", made.stderr
