"""What somebody types who does not know the program yet: messages say where, what was found, and what to do."""

from __future__ import annotations

import gzip

import numpy as np
import pytest
from conftest import BAD_INPUT, DIGITS, INVALID_MODEL, OK, UNREADABLE, USAGE

MODEL = DIGITS / "digits.onnx"
COMMANDS = ("run", "check", "infer", "info", "show", "explain", "profile", "bench")


@pytest.fixture
def small(save):
    return save("""<ir_version: 8, opset_import: ["" : 17]>
                g (float[2] x, float s) => (float[2] z) { z = Mul (x, s) }""")


# --- values ---


@pytest.mark.parametrize("text, says", [
    ("float32:[1,2]", ["the model says the type, float[2]", "--input x=[1,2]"]),
    ("int64:[1,2]", ["the model says the type", "--input x=[1,2]"]),
    ("float32[2]", ["the model says the type"]),
    ("f32", ["the model says the type"]),
    ("rand", ["did you mean --input x=random?"]),
    ("ones(2)", ["did you mean --input x=ones?"]),
    ("Random", ["did you mean --input x=random?"]),
    ("(1,2)", ["brackets", "[[1,2],[3,4]]"]),
    ("[1,2", ["not sound JSON", "x=[[1,2],[3,4]]"]),
    ('[1,"a"]', ['"a" is no float', "the model takes float[2]"]),
    ("np.zeros", ["is no float", "a file, random or ones"])])
def test_texts_that_are_no_values(sardonyx, small, text, says):
    sardonyx.fails(BAD_INPUT, "run", small, "--input", f"x={text}", "--input", "s=2", mentions=["input 'x'", *says])


def test_advice_that_is_followed_works(sardonyx, small):
    for text in ("[1,2]", "1,2", "random", "ones", "random:0:1"):
        sardonyx("run", small, "--input", f"x={text}", "--input", "s=2")


def test_a_file_of_another_kind_as_a_value(sardonyx, small):
    sardonyx.fails(BAD_INPUT, "run", small.name, "--input", f"x={small.name}", "--input", "s=2", cwd=small.parent,
                   mentions=["a file of that name is there", ".npy", "--input x=@FILE"])


@pytest.mark.parametrize("name, data, says", [
    ("x.png", None, "is a NumPy array, whose file is named .npy"), ("x.pb", None, "is a NumPy array"),
    ("x.npy", b"PK\3\4abc", "arrays of NumPy in one are named .npz"), ("x.npy", gzip.compress(b"array", mtime=0), "unpack it first")])
def test_values_in_files_of_another_name(sardonyx, small, name, data, says, tmp_path):
    with open(tmp_path / name, "wb") as file:
        file.write(data) if data else np.save(file, np.ones(2, np.float32))
    sardonyx.fails(BAD_INPUT, "run", small, "--input", f"x={tmp_path / name}", "--input", "s=2", mentions=["input 'x'", name, says])


def test_misspelt_values(sardonyx, small, tmp_path):
    sardonyx.fails(BAD_INPUT, "extract", DIGITS / "digits.onnx", tmp_path / "o.onnx", "--output", "scorse",
                   mentions=["no value of this name"])
    path = tmp_path / "m.onnxtxt"
    path.write_text("""<ir_version: 10, opset_import: ["" : 21]>
                    g (float[2] x) => (float[2] z) { hidden = Neg(x) z = Relu(hidden) }""")
    sardonyx.fails(BAD_INPUT, "extract", path, tmp_path / "o.onnx", "--output", "hiden", mentions=["did you mean 'hidden'?"])


def test_all_inputs_at_once(sardonyx, small, tmp_path):
    np.savez(tmp_path / "in.npz", x=np.ones(2, np.float32), s=np.float32(2))
    sardonyx.fails(USAGE, "run", small, "--input", "in.npz", mentions=["NAME=WHAT", "--inputs in.npz"])
    sardonyx.fails(USAGE, "run", small, "--input", tmp_path, mentions=["--inputs"])
    sardonyx.fails(BAD_INPUT, "run", small, "--inputs", small, mentions=["is a file and no .npz", "input_0.pb", "--input NAME=FILE"])
    sardonyx.fails(BAD_INPUT, "run", small, "--inputs", tmp_path, mentions=["has no input_0.pb", "'x' (float[2])"])
    sardonyx("run", small, "--inputs", tmp_path / "in.npz")


def test_a_scalar_in_brackets(sardonyx, small):
    made = sardonyx("run", small, "--input", "x=1,2", "--input", "s=[2]")
    assert "2, 4" in made.stdout
    assert made.stderr.count("the model takes a scalar, and is given one element of shape [1]") <= 1
    np.save(small.parent / "s.npy", np.full(1, 2, np.float32))
    made = sardonyx("run", small, "--input", "x=1,2", "--input", f"s={small.parent / 's.npy'}")
    assert "2, 4" in made.stdout and "warning" in made.stderr and "input 's'" in made.stderr
    assert sardonyx("run", small, "--input", "x=1,2", "--input", f"s={small.parent / 's.npy'}", "--strict-model",
                    expect=BAD_INPUT).stdout == ""


# --- options ---


@pytest.mark.parametrize("command, option, holders", [
    ("info", "--threads", ["run", "bench", "profile"]), ("check", "--random-inputs", ["run", "bench"]),
    ("run", "--in-place", ["infer"]), ("convert", "--expect", ["run"])])
def test_an_option_of_another_command(sardonyx, command, option, holders):
    said = sardonyx.fails(USAGE, command, MODEL, option, mentions=[f"there is no option '{option}'", "it is an option of"])
    assert all(holder in said for holder in holders)


@pytest.mark.parametrize("option", [["--memory-limit", "1G"], ["-t", "2"]])
def test_an_option_before_the_command(sardonyx, option):
    message = sardonyx.fails(USAGE, *option, "run", DIGITS / "digits.onnx", mentions=[f"'sardonyx run {option[0]}'"])
    assert "there is no option" not in message


def test_an_option_of_no_command(sardonyx):
    assert "option of" not in sardonyx.fails(USAGE, "run", MODEL, "--nonsense", mentions=["there is no option '--nonsense'"])
    sardonyx.fails(USAGE, "run", MODEL, "--inptu", "x=1", mentions=["did you mean '--input'?"])


def test_a_file_without_an_option(sardonyx):
    sardonyx.fails(USAGE, "run", MODEL, "seven.npy", mentions=["'seven.npy' is one argument too many", "--input NAME=FILE", "--output FILE"])
    assert "--input" not in sardonyx.fails(USAGE, "info", MODEL, "more", mentions=["one argument too many"])


@pytest.mark.parametrize("command", ["rename", "edit"])
def test_nothing_to_do(sardonyx, command, tmp_path):
    sardonyx.fails(USAGE, command, MODEL, tmp_path / "out.onnx", mentions=["nothing to", f"sardonyx {command} --help"])
    assert not (tmp_path / "out.onnx").exists()


# --- files ---


def varint(n):
    low = bytes([n & 0x7F | 0x80]) if n >= 0x80 else bytes([n])
    return low + (varint(n >> 7) if n >= 0x80 else b"")


def field(number, data):
    return bytes([number << 3 | 2]) + varint(len(data)) + data


NODE = field(1, b"input") + field(2, b"Placeholder")
SAVED = b"\x08\x01" + field(2, field(1, field(2, b"\x0a\x05" + b"AddV2" * 40) + field(4, b"serve") + field(5, b"2.15.0")) + field(2, field(1, NODE)))
OTHERS = {
    "model.pth": (b"PK\3\4" + bytes(30) + b"archive/data.pkl", ["zip archive", "torch.onnx.export"]),
    "old.pt": (b"\x80\x02}q\x00.", ["PyTorch", "torch.onnx.export"]),
    "model.h5": (b"\x89HDF\r\n\x1a\n" + bytes(40), ["Keras", "tf2onnx"]),
    "model.tflite": (b"\x1c\0\0\0TFL3" + bytes(40), ["TensorFlow Lite", "tf2onnx"]),
    "saved_model.pb": (SAVED, ["TensorFlow SavedModel", "tf2onnx"]),
    "frozen.pb": (field(1, NODE) + field(1, NODE), ["TensorFlow graph", "tf2onnx"]),
    "model.gguf": (b"GGUF" + bytes(40), ["GGUF", "without a graph"]),
    "model.onnx.gz": (gzip.compress(b"model", mtime=0), ["gzip", "unpack it first"]),
    "empty.onnx": (b"", ["seems to be empty"]),
    "page.onnx": (b"<!DOCTYPE html><html></html>", ["HTML page"]),
    "cut.onnx": (MODEL.read_bytes()[:1000], ["the file is cut off, damaged"]),
}


@pytest.mark.parametrize("name", OTHERS)
def test_files_of_other_kinds(sardonyx, name, tmp_path):
    data, says = OTHERS[name]
    (tmp_path / name).write_bytes(data)
    for command in COMMANDS:
        assert name in sardonyx.fails(INVALID_MODEL, command, tmp_path / name, mentions=says)


def test_a_model_that_begins_as_a_saved_model_does(sardonyx, save):
    """IR version 1 and a long name of what made it."""
    path = save("""<ir_version: 1, producer_name: "a tool with a name of more than one line">
                g (float[2] x) => (float[2] z) { z = Relu (x) }""")
    assert path.read_bytes().startswith(b"\x08\x01\x12")
    assert sardonyx("info", path, expect=None).returncode == OK


@pytest.mark.parametrize("command", COMMANDS)
def test_a_folder_and_a_name_that_is_not_there(sardonyx, command, tmp_path):
    sardonyx.fails(UNREADABLE, command, tmp_path, mentions=["is a folder, not a file"])
    sardonyx.fails(UNREADABLE, command, tmp_path / "none.onnx", mentions=["none.onnx", "No such file"])


def test_where_nothing_can_be_written(sardonyx, tmp_path):
    sardonyx.fails(UNREADABLE, "convert", MODEL, tmp_path / "no" / "m.onnx", mentions=["there is no folder"])
    assert "there is no folder" not in sardonyx.fails(UNREADABLE, "convert", MODEL, "/proc/m.onnx", mentions=["cannot write into the folder '/proc'"])


# --- inference ---


def test_infer_says_that_a_graph_is_cyclic(sardonyx, tmp_path):
    path = tmp_path / "m.onnxtxt"
    path.write_text("""<ir_version: 10, opset_import: ["" : 21]>
                    g (float[2] x) => (float[2] z) { a = Add(x, b) b = Neg(a) z = Relu(b) }""")
    for file in (path, tmp_path / "m.onnx"):
        sardonyx("convert", path, tmp_path / "m.onnx")
        said = sardonyx("infer", file, expect=1).stdout
        assert "found node 0 Add making 'a' -> node 1 Neg making 'b' -> node 0" in said and "[G-02]" in said
        assert "is not defined before" not in said


def test_infer_says_which_nodes_are_out_of_order_and_what_nobody_makes(sardonyx, tmp_path):
    path = tmp_path / "m.onnxtxt"
    path.write_text("""<ir_version: 10, opset_import: ["" : 21]>
                    g (float[2] x) => (float[2] z) { a = Add(x, b) b = Neg(x) c = Neg(nowhere) z = Relu(b) }""")
    said = sardonyx("infer", path, expect=1).stdout
    assert "node 1 Neg making 'b' computes it later" in said and "'nowhere'" in said and "[D-08]" in said


def infer(sardonyx, tmp_path, graph, functions=""):
    path = tmp_path / "m.onnxtxt"
    path.write_text(f"""<ir_version: 10, opset_import: ["" : 21, "own" : 1, "com.microsoft" : 1]> {graph} {functions}""")
    return sardonyx("infer", "--all", path, expect=None).stdout


def test_outputs_do_not_make_names_of_two_inputs_one(sardonyx, tmp_path):
    said = infer(sardonyx, tmp_path, "g (float[n,3] x, float[batch,2] w) => (float[batch,3] z) { z = Relu(x) }")
    assert "w  float[batch,2]" in said and "holds for some inputs only" in said
    # A name that only outputs have is learned, and so is what the model says of its own expressions.
    said = infer(sardonyx, tmp_path, "g (float[n,3] x) => (float[batch,3] z) { z = Relu(x) }")
    assert "batch = n" in said and "warning" not in said
    said = infer(sardonyx, tmp_path, "g (float[a,3] x, float[b,3] y, float[total,1] m) => (float[total,3] z) { z = Concat <axis = 0> (x, y) }")
    assert "total = a + b" in said


@pytest.mark.parametrize("functions, graph", [
    ("<domain: \"own\", opset_import: [\"\" : 21]> F (a, b) => (c) { t = MatMul(a, b) c = Neg(t) }",
     "g (float[2,3] x, float[4,5] w) => (z) { z = own.F(x, w) }"),
    ("", "g (float[2,3] x, float[4,5] w) => (z) { z = com.microsoft.GemmFastGelu(x, w) }")])
def test_errors_name_no_values_that_only_the_planner_knows(sardonyx, tmp_path, functions, graph):
    said = infer(sardonyx, tmp_path, graph, functions)
    assert "MatMul" in said and "making 'z'" in said and "3 and 4 differ" in said
    assert "__" not in said.split("error:")[1]
