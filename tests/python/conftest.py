"""What the tests of the command line share: the program, and small models to run it on."""

from __future__ import annotations

import json
import os
import pathlib
import re
import signal
import subprocess
import sys

import numpy as np
import onnx
import pytest
from onnx import numpy_helper, parser

ROOT = pathlib.Path(__file__).resolve().parents[2]
DIGITS = ROOT / "examples" / "digits"
# A shell starts what runs behind it with Ctrl-C ignored, which the processes of tests would inherit.
signal.signal(signal.SIGINT, signal.default_int_handler)
sys.path.insert(0, str(ROOT / "bench"))
sys.path.insert(0, str(ROOT / "tools" / "differential"))

# Tests that hold products of bytes against ONNX Runtime's.
OF_BYTES = re.compile(r"test_(it_agrees\[.*_(dynamic|qdq|qlinear)\]|a_mask_of_.*qattention\]"
                      r"|(a_sequence_that_has_ended_counts_once_more|attention_with_weights_that_come_as_inputs|dynamic|static"
                      r"|dynamic_quantize_(lstm|lstm_attributes|lstm_sizes|matmul)|matmul_integer_to_float|qattention|qgemm"
                      r"|qlinear_conv|quantised_models|rows_of_one_number)(\[.*\])?)")

OK, FINDINGS, USAGE, UNREADABLE, INVALID_MODEL, UNSUPPORTED, BAD_INPUT, RUN_FAILED = range(8)


class Program:
    def __init__(self, path: str):
        self.path = path

    def __call__(self, *arguments, expect: int | None = OK, **options) -> subprocess.CompletedProcess:
        command = [self.path, *map(str, arguments)]
        result = subprocess.run(command, capture_output=True, text=True, timeout=120, **options)
        if expect is not None:
            assert result.returncode == expect, f"{command}\nexit {result.returncode}\n{result.stdout}\n{result.stderr}"
        return result

    @property
    def instruction_set(self) -> str:
        """What its kernels take on this machine."""
        return re.search(r"kernels for (\w+)", self("--version").stdout)[1]

    def outputs(self, model, feeds: dict[str, np.ndarray], folder: pathlib.Path, *more) -> list[np.ndarray]:
        """Runs a model on arrays; the outputs come in graph order."""
        arguments = []
        for index, (name, array) in enumerate(feeds.items()):
            file = folder / f"in{index}.npy"
            np.save(file, array)
            arguments += ["--input", f"{name}={file}"]
        self("run", model, *arguments, "--output", folder / "out.npz", *more)
        with np.load(folder / "out.npz", allow_pickle=False) as arrays:
            return [arrays[name] for name in arrays.files]

    def fails(self, expect: int, *arguments, mentions=(), **options) -> str:
        """Expects the exit code, one message on stderr that mentions all of `mentions`, and no output."""
        result = self(*arguments, expect=expect, **options)
        assert result.stdout == ""
        message = result.stderr.strip()
        assert message, "an error without a message"
        for word in mentions:
            assert word in message, f"{word!r} is not in: {message}"
        return message


@pytest.hookimpl(hookwrapper=True)
def pytest_runtest_makereport(item, call):
    """Where ONNX Runtime's products of bytes are wrong, tests that differ from them tell nothing."""
    report = (yield).get_result()
    differs = report.when == "call" and report.failed and call.excinfo.errisinstance(AssertionError)
    if differs and OF_BYTES.fullmatch(item.name):
        import saturation  # which imports ONNX Runtime
        if saturation.runtime_saturates():
            report.outcome = "skipped"
            report.longrepr = (str(item.path), item.location[1], f"Skipped: {saturation.REASON}")


@pytest.fixture(scope="session")
def sardonyx() -> Program:
    path = os.environ.get("SARDONYX_PROGRAM", str(ROOT / "build" / "release" / "bin" / "sardonyx"))
    assert os.access(path, os.X_OK), f"{path} is not built"
    return Program(path)


@pytest.fixture(scope="module")
def engine(sardonyx, tmp_path_factory):
    """One process of the program for all tests of a file."""
    from contrib_support import Engine  # which imports ONNX Runtime

    engine = Engine(sardonyx.path, tmp_path_factory.mktemp("engine"))
    yield engine
    engine.close()


@pytest.fixture
def save(tmp_path):
    """Saves a model given in textual syntax, with initializers as arrays; returns its path."""

    def save_model(text: str, name: str = "model.onnx", **weights: np.ndarray) -> pathlib.Path:
        model = parser.parse_model(text)
        for key, array in weights.items():
            model.graph.initializer.append(numpy_helper.from_array(array, key))
        path = tmp_path / name
        onnx.save(model, path)
        return path

    return save_model


@pytest.fixture
def affine(save) -> pathlib.Path:
    """y = 2 x + bias, where a caller may give another bias, and rows is free."""
    return save(
        """<ir_version: 8, opset_import: ["" : 17]>
        affine (float[rows,3] x, float[3] bias) => (float[rows,3] y, float[rows,3] twice)
        { two = Constant <value = float {2.0}> ()
          twice = Mul (x, two)
          y = Add (twice, bias) }""",
        bias=np.array([10, 20, 30], np.float32))


def parse_json(result: subprocess.CompletedProcess) -> dict:
    return json.loads(result.stdout)
