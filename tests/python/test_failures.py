"""What programs are told when a command fails, many files of `check`, and threads that can't be started."""

from __future__ import annotations

import json
import resource

import pytest
from conftest import BAD_INPUT, FINDINGS, INVALID_MODEL, OK, RUN_FAILED, UNREADABLE, USAGE

HEAD = '<ir_version: 8, opset_import: ["" : 17]>'
WRONG = f"{HEAD} g (float[2] x) => (float[2] y) {{ y = Relu (absent) }}"


@pytest.mark.parametrize("command", ["run", "check", "info", "infer", "explain", "profile", "bench"])
def test_failures_are_told_as_json(sardonyx, tmp_path, command):
    path = tmp_path / "absent.onnx"
    result = sardonyx(command, path, "--json", expect=UNREADABLE)
    error = json.loads(result.stdout)["error"]
    assert error["kind"] == "unreadable" and error["exit_code"] == UNREADABLE
    assert str(path) in error["place"] + error["message"] and str(path) in result.stderr
    (tmp_path / "no.onnx").write_bytes(b"\xff" * 20)
    error = json.loads(sardonyx(command, tmp_path / "no.onnx", "--json", expect=INVALID_MODEL).stdout)["error"]
    assert error["kind"] == "invalid_model"
    error = json.loads(sardonyx(command, path, "--json", "--bogus", expect=USAGE).stdout)["error"]
    assert error["kind"] == "usage" and "--bogus" in error["message"] and error["place"] == ""


def test_other_kinds_of_failure(sardonyx, affine, tmp_path):
    error = json.loads(sardonyx("run", affine, "--json", expect=BAD_INPUT).stdout)["error"]
    assert error["kind"] == "bad_input" and "missing inputs: 'x'" in error["message"]
    for command in (["diff", affine, tmp_path / "absent.onnx"], ["opset", tmp_path / "absent.opset"]):
        assert json.loads(sardonyx(*command, "--json", expect=UNREADABLE).stdout)["error"]["exit_code"] == UNREADABLE
    assert sardonyx("run", affine, expect=BAD_INPUT).stdout == ""


def sarif(result) -> dict:
    log = json.loads(result.stdout)
    assert log["version"] == "2.1.0" and len(log["runs"]) == 1
    return log["runs"][0]


def test_failures_are_told_as_sarif(sardonyx, tmp_path):
    run = sarif(sardonyx("check", tmp_path / "absent.onnx", "--sarif", expect=UNREADABLE))
    invocation = run["invocations"][0]
    assert not invocation["executionSuccessful"] and invocation["exitCode"] == UNREADABLE and run["results"] == []
    notice = invocation["toolExecutionNotifications"][0]
    assert notice["level"] == "error" and notice["descriptor"]["id"] == "unreadable"
    assert notice["locations"][0]["physicalLocation"]["artifactLocation"]["uri"].endswith("absent.onnx")
    run = sarif(sardonyx("check", "--sarif", "--bogus", expect=USAGE))
    assert run["invocations"][0]["toolExecutionNotifications"][0]["descriptor"]["id"] == "usage"


def test_many_files_are_checked(sardonyx, affine, save, tmp_path):
    wrong, absent = save(WRONG, "wrong.onnx"), tmp_path / "absent.onnx"
    result = sardonyx("check", absent, wrong, affine, expect=UNREADABLE)
    assert f"{affine}: 0 errors" in result.stdout and "wrong.onnx: 1 error" in result.stdout
    assert result.stderr.startswith("sardonyx: ") and "absent.onnx" in result.stderr
    assert sardonyx("check", affine, wrong, expect=FINDINGS)
    assert sardonyx("check", affine, affine, expect=OK).stdout.count("0 errors") == 2

    report = json.loads(sardonyx("check", absent, wrong, affine, "--json", expect=UNREADABLE).stdout)
    assert report["exit_code"] == UNREADABLE
    assert [m["model"] for m in report["models"]] == [str(absent), str(wrong), str(affine)]
    assert report["models"][0]["error"]["kind"] == "unreadable"
    assert report["models"][1]["errors"] == 1 and report["models"][2]["errors"] == 0
    one = json.loads(sardonyx("check", wrong, "--json", expect=FINDINGS).stdout)
    assert one == report["models"][1]

    run = sarif(sardonyx("check", absent, wrong, affine, "--sarif", expect=UNREADABLE))
    assert len(run["artifacts"]) == 3 and len(run["invocations"][0]["toolExecutionNotifications"]) == 1
    (found,) = [r for r in run["results"] if r["level"] == "error"]
    assert found["locations"][0]["physicalLocation"]["artifactLocation"]["uri"].endswith("wrong.onnx")
    assert run["tool"]["driver"]["rules"][found["ruleIndex"]]["id"] == found["ruleId"]
    run = sarif(sardonyx("check", affine, "--sarif"))
    assert run["invocations"] == [{"executionSuccessful": True, "exitCode": 0}]


def test_threads_that_cannot_be_started(sardonyx, affine):
    """Address space for some stacks only: fewer threads and a warning, or an error; never an abort."""
    def limit():
        resource.setrlimit(resource.RLIMIT_AS, (700 << 20, 700 << 20))
    result = sardonyx("run", affine, "--input", "x=[[1, 2, 3]]", "--threads", "4096", preexec_fn=limit, expect=None)
    assert result.returncode in (OK, RUN_FAILED), result.stderr
    assert "warning: the system started" in result.stderr and "of 4096 threads" in result.stderr
    sardonyx.fails(USAGE, "run", affine, "--threads", "100000", mentions=["0 to 4096"])
    sardonyx.fails(USAGE, "run", affine, "--threads", "-1", mentions=["0 to 4096"])
