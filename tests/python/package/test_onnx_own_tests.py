"""tools/onnx_own_tests.py: onnx's own tests on sardonyx.compat.onnx, and each deviation as it is listed."""

from __future__ import annotations

import importlib.util
import os
import subprocess
import sys

from .conftest import PACKAGE, ROOT

TOOL = ROOT / "tools" / "onnx_own_tests.py"
spec = importlib.util.spec_from_file_location("onnx_own_tests", TOOL)
tool = importlib.util.module_from_spec(spec)
spec.loader.exec_module(tool)


def test_all_is_as_the_list_of_deviations_says():
    made = subprocess.run([sys.executable, TOOL], capture_output=True, text=True, env=dict(os.environ, SARDONYX_PACKAGE=str(PACKAGE)))
    assert made.returncode == 0, made.stdout + made.stderr


def test_every_deviation_has_a_reason():
    listed = tool.DEVIATIONS.listed
    assert listed and all(reason.startswith("[") and len(reason) > 20 for _, reason in listed)


def test_what_is_not_listed_is_seen():
    (listed, _), *_ = tool.DEVIATIONS.listed
    assert tool.DEVIATIONS.judged({"no_test::test_a": ("failed", "because")}, False) == ["no_test::test_a fails: because"]
    assert tool.DEVIATIONS.judged({listed: ("passed", "")}, False) == [f"{listed} passes, and is listed as a deviation"]
    assert tool.DEVIATIONS.judged({listed: ("failed", "")}, False) == []
    assert "no such test" in tool.DEVIATIONS.judged({}, True)[0]


def test_functions_are_put_into_onnx_and_taken_out_again():
    import onnx
    import onnx.checker

    import sardonyx.compat.onnx

    before = onnx.checker.check_model
    sardonyx.compat.onnx.install()
    try:
        assert sardonyx.compat.onnx.is_installed() and onnx.checker.check_model is sardonyx.compat.onnx.checker.check_model
        sardonyx.compat.onnx.install()
    finally:
        sardonyx.compat.onnx.uninstall()
    assert onnx.checker.check_model is before and not sardonyx.compat.onnx.is_installed()
