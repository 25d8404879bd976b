"""The command line with odd names: nothing, folders, pipes, streams, names that files cannot have."""

from __future__ import annotations

import os
import pathlib
import stat
import subprocess

import numpy as np
import onnx
import pytest
from conftest import BAD_INPUT, DIGITS, FINDINGS, INVALID_MODEL, OK, UNREADABLE, USAGE

MODEL = DIGITS / "digits.onnx"


def program(sardonyx, *arguments, **options) -> subprocess.CompletedProcess:
    """With bytes, not text, as input and output."""
    return subprocess.run([sardonyx.path, *map(str, arguments)], capture_output=True, timeout=120, **options)


@pytest.mark.parametrize("target", ["-", "/dev/stdout", "/dev/fd/1"])
def test_a_model_goes_to_standard_output_and_nothing_else(sardonyx, target, tmp_path):
    for arguments in (["convert", MODEL, target], ["edit", MODEL, target, "--doc", "d"], ["infer", MODEL, "-o", target]):
        piped = program(sardonyx, *arguments, cwd=tmp_path)
        assert piped.returncode == OK, piped.stderr
        onnx.ModelProto.FromString(piped.stdout)
        with open(tmp_path / "out.onnx", "wb") as file:  # which is a regular file, unlike a pipe
            subprocess.run([sardonyx.path, *map(str, arguments)], stdout=file, stderr=subprocess.PIPE, check=True, timeout=120)
        assert (tmp_path / "out.onnx").read_bytes() == piped.stdout
    assert program(sardonyx, "convert", MODEL, target).stdout == MODEL.read_bytes()
    assert [entry.name for entry in tmp_path.iterdir()] == ["out.onnx"]
    assert stat.S_ISLNK(os.lstat("/dev/stdout").st_mode)


def test_standard_output_is_written_from_where_it_is(sardonyx, tmp_path):
    file = tmp_path / "log"
    file.write_bytes(b"before ")
    with open(file, "ab") as stream:
        subprocess.run([sardonyx.path, "convert", MODEL, "-"], stdout=stream, check=True, timeout=120)
        stream.write(b" after")
    assert file.read_bytes() == b"before " + MODEL.read_bytes() + b" after"


def test_operator_sets_go_to_standard_output(sardonyx):
    written = program(sardonyx, "opset", "-", "--export", "ai.onnx.ml")
    assert written.returncode == OK and written.stdout.startswith(b"\n\x09ONNXOPSET")
    assert b"wrote" in written.stderr
    shown = program(sardonyx, "opset", "-", input=written.stdout)  # through a pipe
    assert shown.returncode == OK and shown.stdout.startswith(b"ai.onnx.ml version"), shown.stderr


@pytest.mark.parametrize("name", ["-", "/dev/stdin", "/dev/fd/0"])
@pytest.mark.parametrize("command", [["check"], ["show"], ["info"], ["explain"]])
def test_models_come_from_standard_input(sardonyx, name, command):
    named = program(sardonyx, *command, MODEL)
    piped = program(sardonyx, *command, name, input=MODEL.read_bytes())
    with open(MODEL, "rb") as file:
        redirected = program(sardonyx, *command, name, stdin=file)
    for result in (piped, redirected):
        assert result.returncode == OK, result.stderr
        assert len(result.stdout.splitlines()) == len(named.stdout.splitlines())


def test_a_pipeline_of_tools(sardonyx, tmp_path):
    one = program(sardonyx, "rename", MODEL, "-", "--value", "image=x").stdout
    two = program(sardonyx, "edit", "-", "-", "--graph-name", "renamed", input=one).stdout
    model = onnx.ModelProto.FromString(two)
    assert model.graph.input[0].name == "x" and model.graph.name == "renamed"
    assert program(sardonyx, "diff", MODEL, "-", input=MODEL.read_bytes()).returncode == OK
    assert program(sardonyx, "diff", MODEL, "-", input=two).returncode == FINDINGS
    in_place = program(sardonyx, "infer", "-", "--in-place", input=one)  # which would be lost
    assert in_place.returncode == USAGE and b"--output" in in_place.stderr
    empty = program(sardonyx, "check", "-", input=b"")
    assert empty.returncode == INVALID_MODEL and b"empty" in empty.stderr


def test_weights_need_a_folder(sardonyx, tmp_path):
    for target in ("-", "/dev/fd/1", "/dev/null"):
        message = sardonyx.fails(BAD_INPUT, "convert", MODEL, target, "--external-data", "w.bin", mentions=["w.bin"])
        assert "put all data into the model" in message
    assert not pathlib.Path("/dev/w.bin").exists()
    sardonyx.fails(USAGE, "convert", MODEL, tmp_path / "m.onnx", "--external-data", "", mentions=["--external-data", "empty"])


def test_weights_do_not_replace_the_model_they_come_from(sardonyx, tmp_path):
    model = tmp_path / "m.onnx"
    model.write_bytes(MODEL.read_bytes())
    sardonyx.fails(BAD_INPUT, "convert", model, tmp_path / "out.onnx", "--external-data", "m.onnx", mentions=["overwritten"])
    assert model.read_bytes() == MODEL.read_bytes()
    sardonyx("convert", model, model, "--external-data", "w.bin")  # in place


@pytest.mark.parametrize("command", [["check"], ["show"], ["run"], ["convert", "out.onnx"], ["diff", MODEL]])
def test_names_that_are_no_models(sardonyx, command, tmp_path):
    os.mkfifo(tmp_path / "pipe")  # nobody writes to it, and nobody waits
    (tmp_path / "folder").mkdir()
    (tmp_path / "empty.onnx").touch()
    (tmp_path / "loop.onnx").symlink_to("loop.onnx")
    first, *rest = command

    def fails(code, name, *words):
        sardonyx.fails(code, first, name, *rest, mentions=words, cwd=tmp_path)

    fails(UNREADABLE, "missing.onnx", "missing.onnx", "No such file")
    fails(UNREADABLE, "folder", "folder", "is a folder")
    fails(UNREADABLE, "pipe", "pipe", "not a regular file")
    fails(UNREADABLE, "/dev/zero", "not a regular file")
    fails(UNREADABLE, "loop.onnx", "symbolic links")
    fails(INVALID_MODEL, "empty.onnx", "empty.onnx", "empty")
    fails(USAGE, "", "name of a file is empty")
    fails(UNREADABLE, "new\nline", "new\\x0aline")
    fails(UNREADABLE, "x" * 300, "too long")


def test_targets_that_cannot_be_written(sardonyx, tmp_path):
    (tmp_path / "folder").mkdir()
    (tmp_path / "file").touch()

    def fails(code, target, *words):
        sardonyx.fails(code, "convert", MODEL, target, mentions=words)

    fails(UNREADABLE, tmp_path / "folder", "is a folder")
    fails(UNREADABLE, tmp_path / "absent" / "m.onnx", "there is no folder", "absent'")
    fails(UNREADABLE, tmp_path / "file" / "m.onnx", "there is no folder", "file'")
    fails(UNREADABLE, "/dev/full", "No space left")
    fails(UNREADABLE, "/dev/fd/99", "Bad file descriptor")
    fails(UNREADABLE, tmp_path / ("x" * 300), "too long")
    fails(USAGE, "", "name of a file is empty")
    if os.geteuid() != 0:
        (tmp_path / "folder").chmod(0o555)
        fails(UNREADABLE, tmp_path / "folder" / "m.onnx", "cannot write into the folder", "Permission denied")


@pytest.mark.parametrize("name", ["mod\u00e8le \u6570\u5b57.onnx", "x" * 250 + ".onnx", "a b'c\"d.onnx", "-.onnx", "new\nline.onnx"])
def test_names_that_files_can_have(sardonyx, name, tmp_path):
    sardonyx("convert", MODEL, tmp_path / name)
    assert (tmp_path / name).read_bytes() == MODEL.read_bytes()
    sardonyx("check", tmp_path / name)
    assert [entry.name for entry in tmp_path.iterdir()] == [name]


@pytest.mark.parametrize("arguments, words", [
    (["convert", MODEL, "o.onnx", "--opset", "x"], ["--opset", "whole number", "'x'"]),
    (["convert", MODEL, "o.onnx", "--opset", "0"], ["--opset", "from 1 on"]),
    (["convert", MODEL, "o.onnx", "--external-data", "d", "--align", "0"], ["--align", "from 1 to 1048576"]),
    (["edit", MODEL, "o.onnx", "--model-version", "99999999999999999999"], ["--model-version", "64 bits"]),
    (["edit", MODEL, "o.onnx", "--ir-version", "eight"], ["--ir-version", "'eight'"]),
    (["check", MODEL, "--max", "-1"], ["--max", "from 0 on"]),
    (["show", MODEL, "--max-elements", "1.5"], ["--max-elements", "'1.5'"]),
    (["opset", "o.onnx", "--export", "ai.onnx", "--version", "0"], ["--version", "from 1 on"]),
    (["run", MODEL, "--threads", "5000"], ["--threads", "from 0 to 4096"]),
    (["merge", MODEL, MODEL, "o.onnx", "--map", "=x"], ["--map", "OUT=IN"]),
    *((["run", MODEL, "--random-inputs", option, ""], [option, "empty"])
      for option in ("--expect", "--output", "--labels", "--inputs", "--packed", "--trust-folder", "--library")),
    (["profile", MODEL, "--runs", "1", "--html", ""], ["--html", "empty"]),
    (["profile", MODEL, "--runs", "1", "--trace", ""], ["--trace", "empty"]),
    (["explain", MODEL, "--passes", "--stop-after", ""], ["--stop-after", "empty"]),
    *((["train", MODEL, "--data", "d.npz", "-o", "o.onnx", option, ""], [option, "empty"])
      for option in ("--validation", "--plot", "--checkpoint", "--external-data")),
    (["run", MODEL, "--random-inputs", "--rtol", "1"], ["--rtol", "--expect"]),
    (["run", MODEL, "--random-inputs", "--atol", "1"], ["--atol", "--expect"]),
    (["run", MODEL, "--random-inputs", "--top", "1"], ["--top", "--labels"]),
    (["train", MODEL, "--data", "d.npz", "-o", "o.onnx", "--log-every", "1"], ["--log-every", "--json"]),
    (["check", MODEL, "--opset", "17"], ["sardonyx: --opset names a document", "--opset 17"]),
    (["bench", "--serve", MODEL], ["takes no MODEL"]),
    (["bench", "--probe", MODEL], ["takes no MODEL"]),
    (["explain", MODEL, "--reference"], ["--reference", "no steps"]),
    (["show", MODEL, "--svg", "-o", "x.dot"], ["x.dot", "--svg"]),
    (["show", MODEL, "--dot", "-o", "x.svg"], ["x.svg", "--dot"]),
    (["profile", MODEL, "--random-inputs", "--html", "-", "--trace", "-"], ["--html", "--trace", "standard output"]),
    (["explain", MODEL, "--passes", "--dim", "N=2"], ["--passes", "--dim"]),
])
def test_arguments_that_make_no_sense(sardonyx, arguments, words, tmp_path):
    sardonyx.fails(USAGE, *arguments, mentions=words, cwd=tmp_path)
    assert not list(tmp_path.iterdir())


@pytest.mark.skipif(not os.path.exists("/dev/full"), reason="needs /dev/full")
def test_a_standard_error_that_is_full_or_closed(sardonyx, save, tmp_path):
    """Messages are lost, and nothing else is: no answer, no exit code."""
    disordered = save("""<ir_version: 8, opset_import: ["" : 17]>
        g (float[2] x) => (float[2] y) { y = Neg (m)  m = Relu (x) }""")
    with open("/dev/full", "wb") as full:
        for code, arguments in ((OK, ["run", disordered, "--random-inputs"]), (OK, ["convert", MODEL, "-"]),
                                (UNREADABLE, ["run", "absent.onnx"]), (UNREADABLE, ["check", "absent.onnx", MODEL])):
            result = subprocess.run([sardonyx.path, *map(str, arguments)], stdout=subprocess.PIPE, stderr=full, cwd=tmp_path, timeout=120)
            assert result.returncode == code and bool(result.stdout) == (arguments[1] != "absent.onnx" or arguments[0] == "check")
    closed = subprocess.run(["sh", "-c", '"$0" run absent.onnx 2>&-', sardonyx.path], timeout=120)
    assert closed.returncode == UNREADABLE


def test_the_standards_own_sets_change_nothing(sardonyx, tmp_path):
    """They define what is known: a model says the same with the document as without it."""
    for version in ("17", "28"):
        document = tmp_path / f"{version}.opset"
        sardonyx("opset", document, "--export", "ai.onnx", "--version", version)
        model = tmp_path / f"{version}.onnx"
        if version == "17":
            model.write_bytes(MODEL.read_bytes())
        else:
            sardonyx("convert", MODEL, model, "--opset", version)
        assert "nothing to report" in sardonyx("check", "--full", model, "--operator-set", document).stdout
        image = {"image": np.ones((1, 1, 16, 16), np.float32)}
        plain = sardonyx.outputs(model, image, tmp_path)
        again = sardonyx.outputs(model, image, tmp_path, "--operator-set", document)
        np.testing.assert_array_equal(plain[0], again[0])


def test_external_data_that_was_moved_is_named(sardonyx, tmp_path):
    sardonyx("convert", MODEL, tmp_path / "m.onnx", "--external-data", "w.bin", "--threshold", "0")
    (tmp_path / "w.bin").rename(tmp_path / "elsewhere.bin")
    assert "XD-06" in sardonyx("check", "--data", tmp_path / "m.onnx", expect=FINDINGS).stdout
    for command in (["run", tmp_path / "m.onnx"], ["convert", tmp_path / "m.onnx", tmp_path / "o.onnx", "--embed"],
                    ["diff", MODEL, tmp_path / "m.onnx"]):
        sardonyx.fails(UNREADABLE, *command, mentions=["w.bin", "layer0.weight", "No such file"])
    sardonyx("show", tmp_path / "m.onnx")  # needs none of it
