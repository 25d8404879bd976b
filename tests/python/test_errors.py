"""Bad input costs one clear message and the exit code that the docs promise."""

from __future__ import annotations

import numpy as np
import onnx
import pytest
from conftest import BAD_INPUT, DIGITS, INVALID_MODEL, RUN_FAILED, UNREADABLE, UNSUPPORTED, USAGE

HEAD = '<ir_version: 8, opset_import: ["" : 17]>'


@pytest.mark.parametrize("arguments", [
    ["frobnicate"],
    ["run"],
    ["run", DIGITS / "digits.onnx", "--no-such-option"],
    ["run", DIGITS / "digits.onnx", "--threads", "many"],
    ["run", DIGITS / "digits.onnx", "--input", "no-equals-sign"],
    ["run", DIGITS / "digits.onnx", "--set", "N"],
])
def test_usage(sardonyx, arguments):
    sardonyx.fails(USAGE, *arguments)


@pytest.mark.parametrize(("arguments", "mentions"), [
    (["rnu", "model.onnx"], ["no command 'rnu'", "did you mean 'run'", "see 'sardonyx --help'"]),
    ([], ["a command is needed", "sardonyx run MODEL"]),
    (["run", "model.onnx", "--treads", "2"], ["no option '--treads'", "did you mean '--threads'", "see 'sardonyx run --help'"]),
    (["run", "model.onnx", "--rep", "2"], ["no option '--rep'", "did you mean '--repeat'"]),
    (["prof", "model.onnx"], ["no command 'prof'", "did you mean 'profile'"]),
    (["check", "model.onnx", "--stict=1"], ["no option '--stict'", "did you mean '--strict'"]),
    (["--vesion"], ["did you mean '--version'"]),
    (["info", "model.onnx", "more"], ["'more' is one argument too many", "see 'sardonyx info --help'"]),
    (["info"], ["MODEL is required", "see 'sardonyx info --help'"]),
], ids=lambda value: " ".join(value) if isinstance(value, list) else None)
def test_what_may_have_been_meant(sardonyx, arguments, mentions):
    sardonyx.fails(USAGE, *arguments, mentions=mentions)


def test_help_names_the_program(sardonyx):
    assert "Usage: sardonyx convert [OPTIONS] MODEL OUTPUT" in sardonyx("convert", "--help").stdout
    assert "Usage: sardonyx [OPTIONS] SUBCOMMAND" in sardonyx("--help").stdout


def test_outputs_go_into_a_folder_or_an_archive(sardonyx, affine, tmp_path):
    message = sardonyx.fails(USAGE, "run", affine, "--random-inputs", "--output", tmp_path / "y.npy",
                             mentions=["FILE.npz or a folder"])
    assert "y.npy" in message and not (tmp_path / "y.npy").exists()


def test_what_is_no_value_is_told_before_its_shape(sardonyx, affine):
    sardonyx.fails(BAD_INPUT, "run", affine, "--input", "x=weights.bin", mentions=["input 'x'", '"weights.bin" is no float'])
    message = sardonyx.fails(BAD_INPUT, "run", affine, "--input", "x=[[[1]]]", mentions=["[1,1,1]", "any size"])
    assert "(-1: any size)" in message


@pytest.mark.parametrize("command", ["run", "check", "info", "show"])
def test_unreadable(sardonyx, tmp_path, command):
    sardonyx.fails(UNREADABLE, command, tmp_path / "absent.onnx", mentions=["absent.onnx"])
    sardonyx.fails(UNREADABLE, command, tmp_path, mentions=[tmp_path.name])


@pytest.mark.parametrize("command", ["run", "info", "show"])
def test_no_model(sardonyx, tmp_path, command):
    file = tmp_path / "noise.onnx"
    file.write_bytes(np.random.default_rng(1).bytes(5000))
    sardonyx.fails(INVALID_MODEL, command, file, mentions=["noise.onnx"])


def test_a_syntax_error_shows_the_place(sardonyx, tmp_path):
    file = tmp_path / "bad.onnxtxt"
    file.write_text(HEAD + "\ng (float[1] x) => (float[1] y) {\n  y = Relu x)\n}\n")
    error = sardonyx.fails(INVALID_MODEL, "show", file, mentions=["line 3, column 12"])
    lines = error.splitlines()
    assert lines[-2:] == ["      y = Relu x)", "               ^"]


@pytest.mark.parametrize("share", [0.02, 0.3, 0.7, 0.999])
def test_truncated_model(sardonyx, tmp_path, share):
    whole = (DIGITS / "digits.onnx").read_bytes()
    file = tmp_path / "part.onnx"
    file.write_bytes(whole[:int(len(whole) * share)])
    sardonyx.fails(INVALID_MODEL, "run", file, "--input", "image=ones", mentions=["part.onnx"])


@pytest.mark.parametrize("body, mentions", [
    ("{ y = Softmax <axis = 5> (x) }", ["Softmax", "axis", "5"]),
    ("{ y = Add (x, absent) }", ["Add", "absent"]),
    ("{ y = Relu (x, x) }", ["Relu"]),
])
def test_wrong_model(sardonyx, save, body, mentions):
    model = save(f"{HEAD} g (float[2,3] x) => (float[2,3] y) {body}")
    sardonyx.fails(INVALID_MODEL, "run", model, "--input", "x=ones", mentions=mentions)


def test_unknown_operator(sardonyx, save):
    model = save(f"{HEAD} g (float[2,3] x) => (float[2,3] y) {{ y = Relu (x) }}")
    proto = onnx.load(model)
    proto.graph.node[0].op_type = "Frobnicate"
    proto.graph.node[0].domain = "com.example"
    proto.opset_import.append(onnx.helper.make_opsetid("com.example", 1))
    onnx.save(proto, model)
    sardonyx.fails(UNSUPPORTED, "run", model, "--input", "x=ones", mentions=["Frobnicate", "com.example"])


def test_opset_of_the_future(sardonyx, save):
    model = save(f"{HEAD} g (float[2,3] x) => (float[2,3] y) {{ y = Relu (x) }}")
    proto = onnx.load(model)
    proto.opset_import[0].version = 999
    onnx.save(proto, model)
    sardonyx.fails(UNSUPPORTED, "run", model, "--input", "x=ones", mentions=["999"])


@pytest.mark.parametrize("array, mentions", [
    (np.zeros((2, 4), np.float32), ["x", "3", "4"]),
    (np.zeros(3, np.float32), ["x"]),
    (np.zeros((2, 3), np.float64), ["x", "float64", "float32"]),
    (np.zeros((2, 3), np.int64), ["x", "int64"]),
])
def test_wrong_input(sardonyx, affine, tmp_path, array, mentions):
    np.save(tmp_path / "x.npy", array)
    # Names of element types may be spelled as the standard does.
    message = sardonyx.fails(BAD_INPUT, "run", affine, "--input", f"x={tmp_path}/x.npy", mentions=mentions[:1])
    spelled = message.replace("double", "float64").replace("float ", "float32 ").replace("float[", "float32[")
    assert all(word in spelled for word in mentions if not word.startswith("float32")), message


def test_wrong_name_lists_the_right_ones(sardonyx, affine):
    sardonyx.fails(BAD_INPUT, "run", affine, "--input", "z=ones", "--set", "rows=1", mentions=["z", "x"])


def test_missing_input(sardonyx, affine, tmp_path):
    np.save(tmp_path / "bias.npy", np.zeros(3, np.float32))
    sardonyx.fails(BAD_INPUT, "run", affine, "--input", f"bias={tmp_path}/bias.npy", mentions=["x"])


def test_input_file_that_is_none(sardonyx, affine, tmp_path):
    (tmp_path / "x.npy").write_bytes(b"\x93NUMPY\x01\x00\xff\xff")
    sardonyx.fails(BAD_INPUT, "run", affine, "--input", f"x={tmp_path}/x.npy", mentions=["x.npy"])
    (tmp_path / "x.png").write_bytes((DIGITS / "two.png").read_bytes()[:100])
    sardonyx.fails(BAD_INPUT, "run", DIGITS / "digits.onnx", "--input", f"image={tmp_path}/x.png", mentions=["x.png"])


def test_failure_during_the_run_names_the_node(sardonyx, save, tmp_path):
    model = save(f"{HEAD} g (float[4] x, int64[n] i) => (float[n] y) {{ [picking] y = Gather (x, i) }}")
    np.save(tmp_path / "i.npy", np.array([0, 9], np.int64))
    sardonyx.fails(RUN_FAILED, "run", model, "--input", "x=ones", "--input", f"i={tmp_path}/i.npy",
                   "--output", tmp_path / "out", mentions=["Gather", "9"])
    assert not (tmp_path / "out").exists() or not list((tmp_path / "out").iterdir())


def test_nothing_half_is_written(sardonyx, affine, tmp_path):
    sardonyx.fails(BAD_INPUT, "run", affine, "--input", "z=ones", "--output", tmp_path / "out.npz")
    assert not (tmp_path / "out.npz").exists()


def external(folder, location: str):
    """A model whose weight claims to lie in the file `location`."""
    tensor = onnx.TensorProto(name="w", data_type=1, dims=[2], data_location=onnx.TensorProto.EXTERNAL)
    tensor.external_data.add(key="location", value=location)
    graph = onnx.helper.make_graph(
        [onnx.helper.make_node("Add", ["x", "w"], ["y"])], "g",
        [onnx.helper.make_tensor_value_info("x", 1, [2])], [onnx.helper.make_tensor_value_info("y", 1, [2])], [tensor])
    model = onnx.helper.make_model(graph, opset_imports=[onnx.helper.make_opsetid("", 17)], ir_version=8)
    (folder / "m.onnx").write_bytes(model.SerializeToString())
    return folder / "m.onnx"


@pytest.mark.parametrize("location", ["../secret.bin", "/etc/passwd", "sub/../../secret.bin", "link.bin"])
def test_external_data_stays_in_the_folder_of_the_model(sardonyx, tmp_path, location):
    folder = tmp_path / "models"
    folder.mkdir()
    (tmp_path / "secret.bin").write_bytes(np.ones(2, np.float32).tobytes())
    (folder / "link.bin").symlink_to(tmp_path / "secret.bin")
    model = external(folder, location)
    result = sardonyx("run", model, "--input", "x=ones", expect=None)
    assert result.returncode in (UNREADABLE, INVALID_MODEL)
    assert location in result.stderr and result.stdout == ""


def test_external_data_that_is_absent(sardonyx, tmp_path):
    model = external(tmp_path, "absent.bin")
    sardonyx.fails(UNREADABLE, "run", model, "--input", "x=ones", mentions=["absent.bin"])
    sardonyx("info", model)
