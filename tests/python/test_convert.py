"""`convert`: forms of a model file, and where its weights lie."""

from __future__ import annotations

import hashlib
import os
import resource
import subprocess

import numpy as np
import onnx
import pytest
from conftest import BAD_INPUT, INVALID_MODEL, UNREADABLE, USAGE
from google.protobuf import json_format, text_format
from onnx import TensorProto, helper, numpy_helper, parser

FORMS = ("onnx", "onnxtxt", "json", "textproto")


@pytest.fixture
def weights(save):
    rng = np.random.default_rng(1)
    return save(
        """<ir_version: 8, opset_import: ["" : 17]>
        g (float[N,64] x) => (float[N,32] y) { h = MatMul (x, w)  y = Add (h, b) }""",
        w=rng.standard_normal((64, 32), np.float32), b=np.arange(32, dtype=np.float32))


def arrays(path):
    return {tensor.name: numpy_helper.to_array(tensor, str(path.parent)) for tensor in onnx.load(path, load_external_data=False).graph.initializer}


@pytest.mark.parametrize("form", FORMS)
def test_forms_and_back(sardonyx, weights, tmp_path, form):
    sardonyx("convert", weights, tmp_path / f"m.{form}")
    sardonyx("convert", tmp_path / f"m.{form}", tmp_path / "again.onnx")
    sardonyx("diff", weights, tmp_path / "again.onnx")
    if form != "onnxtxt":  # which does not say what field the elements are in
        assert (tmp_path / "again.onnx").read_bytes() == weights.read_bytes()


def test_protobuf_reads_our_json_and_text_format(sardonyx, weights, tmp_path):
    sardonyx("convert", weights, tmp_path / "m.json")
    sardonyx("convert", weights, tmp_path / "m.textproto")
    model = onnx.load(weights)
    assert json_format.Parse((tmp_path / "m.json").read_text(), onnx.ModelProto()) == model
    assert text_format.Parse((tmp_path / "m.textproto").read_text(), onnx.ModelProto()) == model


def test_we_read_protobufs_json_and_text_format(sardonyx, weights, tmp_path):
    model = onnx.load(weights)
    (tmp_path / "m.json").write_text(json_format.MessageToJson(model))
    (tmp_path / "m.textproto").write_text(text_format.MessageToString(model))
    for name in ("m.json", "m.textproto"):
        sardonyx("convert", tmp_path / name, tmp_path / "m.onnx")
        assert onnx.load(tmp_path / "m.onnx") == model


@pytest.mark.parametrize("form", ["onnxtxt", "json", "textproto"])
def test_a_byte_order_mark_is_passed_over(sardonyx, weights, tmp_path, form):
    sardonyx("convert", weights, tmp_path / f"m.{form}")
    text = (tmp_path / f"m.{form}").read_bytes()
    (tmp_path / f"m.{form}").write_bytes(b"\xef\xbb\xbf" + text)
    sardonyx("convert", tmp_path / f"m.{form}", tmp_path / "again.onnx")
    sardonyx("diff", weights, tmp_path / "again.onnx")


@pytest.mark.parametrize("name, text", [("m.textproto", ""), ("m.json", "{}"), ("m.onnxtxt", "<model_version: 1>")])
def test_a_text_without_a_model_is_refused(sardonyx, tmp_path, name, text):
    (tmp_path / name).write_text(text)
    sardonyx.fails(INVALID_MODEL, "convert", tmp_path / name, tmp_path / "m.onnx", mentions=[name, "is not an ONNX model"])
    assert not (tmp_path / "m.onnx").exists()


def test_weights_go_out_and_come_back(sardonyx, weights, tmp_path):
    sardonyx("convert", weights, tmp_path / "out.onnx", "--external-data", "w.bin", "--checksum")
    model = onnx.load(tmp_path / "out.onnx", load_external_data=False)
    by_name = {tensor.name: tensor for tensor in model.graph.initializer}
    assert by_name["w"].data_location == TensorProto.EXTERNAL
    assert by_name["b"].data_location == TensorProto.DEFAULT  # below the threshold
    entries = {entry.key: entry.value for entry in by_name["w"].external_data}
    assert entries["location"] == "w.bin" and int(entries["length"]) == 64 * 32 * 4
    assert entries["checksum"] == hashlib.sha1((tmp_path / "w.bin").read_bytes()).hexdigest()
    onnx.checker.check_model(str(tmp_path / "out.onnx"))
    for name, array in arrays(weights).items():
        np.testing.assert_array_equal(arrays(tmp_path / "out.onnx")[name], array)
    sardonyx("convert", tmp_path / "out.onnx", tmp_path / "back.onnx", "--embed", "--verify-checksums")
    assert (tmp_path / "back.onnx").read_bytes() == weights.read_bytes()


def test_alignment_and_threshold(sardonyx, weights, tmp_path):
    sardonyx("convert", weights, tmp_path / "out.onnx", "--external-data", "w.bin", "--threshold", "0", "--align", "64")
    model = onnx.load(tmp_path / "out.onnx", load_external_data=False)
    assert all(tensor.data_location == TensorProto.EXTERNAL for tensor in model.graph.initializer)
    for tensor in model.graph.initializer:
        offset = next(int(entry.value) for entry in tensor.external_data if entry.key == "offset")
        assert offset % 64 == 0
    assert sardonyx("convert", weights, tmp_path / "o.onnx", "--external-data", "w.bin", "--threshold", "many", expect=USAGE)


def test_external_data_stays_in_its_folder(sardonyx, weights, tmp_path):
    sardonyx("convert", weights, tmp_path / "out.onnx", "--external-data", "w.bin")
    (tmp_path / "other").mkdir()
    sardonyx("convert", tmp_path / "out.onnx", tmp_path / "same.json")  # beside it: still found
    sardonyx.fails(BAD_INPUT, "convert", tmp_path / "out.onnx", tmp_path / "other" / "out.onnx", mentions=["--embed"])
    sardonyx("convert", tmp_path / "out.onnx", tmp_path / "other" / "out.onnx", "--external-data", "v.bin")
    sardonyx("diff", weights, tmp_path / "other" / "out.onnx")


def test_a_wrong_checksum_is_found(sardonyx, weights, tmp_path):
    sardonyx("convert", weights, tmp_path / "out.onnx", "--external-data", "w.bin", "--checksum")
    data = bytearray((tmp_path / "w.bin").read_bytes())
    data[10] ^= 1
    (tmp_path / "w.bin").write_bytes(data)
    sardonyx("convert", tmp_path / "out.onnx", tmp_path / "a.onnx", "--embed")
    sardonyx.fails(INVALID_MODEL, "convert", tmp_path / "out.onnx", tmp_path / "b.onnx", "--embed", "--verify-checksums",
                   mentions=["SHA-1"])
    assert "XD-13" in sardonyx("check", "--data", tmp_path / "out.onnx", expect=1).stdout


def test_check_looks_at_external_data(sardonyx, weights, tmp_path):
    sardonyx("convert", weights, tmp_path / "out.onnx", "--external-data", "w.bin")
    sardonyx("check", "--data", tmp_path / "out.onnx")
    os.truncate(tmp_path / "w.bin", 100)
    sardonyx("check", tmp_path / "out.onnx")
    assert "XD-11" in sardonyx("check", "--data", tmp_path / "out.onnx", expect=1).stdout
    (tmp_path / "w.bin").unlink()
    assert "XD-06" in sardonyx("check", "--data", tmp_path / "out.onnx", expect=1).stdout


def test_conversion_in_place(sardonyx, weights):
    before = weights.read_bytes()
    sardonyx("convert", weights, weights, "--external-data", "w.bin")
    assert len(weights.read_bytes()) < len(before)
    sardonyx("convert", weights, weights, "--external-data", "w.bin", "--align", "1")  # out of the file it replaces
    sardonyx("convert", weights, weights, "--embed")
    assert weights.read_bytes() == before


def test_nothing_is_left_behind_where_writing_fails(sardonyx, weights, tmp_path):
    folder = tmp_path / "target"
    folder.mkdir()
    sardonyx.fails(UNREADABLE, "convert", weights, tmp_path / "absent" / "m.onnx")
    (folder / "m.onnx").mkdir()
    sardonyx.fails(UNREADABLE, "convert", weights, folder / "m.onnx", "--external-data", "w.bin")
    assert [entry.name for entry in folder.iterdir()] == ["m.onnx"]


def test_a_limit_on_the_size_of_files_is_an_error(sardonyx, weights, tmp_path):
    folder = tmp_path / "target"
    folder.mkdir()
    before = resource.getrlimit(resource.RLIMIT_FSIZE)
    for more in ([], ["--external-data", "w.bin"]):
        sardonyx.fails(UNREADABLE, "convert", weights, folder / "m.onnx", *more, mentions=["File too large"],
                       preexec_fn=lambda: resource.setrlimit(resource.RLIMIT_FSIZE, (4096, before[1])))
        assert not list(folder.iterdir())


def test_links_at_the_target_are_replaced_not_followed(sardonyx, weights, tmp_path):  # GHSA-q56x-g2fj-4rj6
    (tmp_path / "victim").write_text("precious")
    for name in ("out.onnx", "w.bin"):
        (tmp_path / name).symlink_to(tmp_path / "victim")
    sardonyx("convert", weights, tmp_path / "out.onnx", "--external-data", "w.bin")
    assert (tmp_path / "victim").read_text() == "precious"
    assert not (tmp_path / "w.bin").is_symlink()
    sardonyx("diff", weights, tmp_path / "out.onnx")


@pytest.mark.parametrize("name", ["../w.bin", "a/b", "/tmp/w.bin", ".."])
def test_data_files_have_plain_names(sardonyx, weights, tmp_path, name):
    sardonyx("convert", weights, tmp_path / "out.onnx", "--external-data", name, expect=BAD_INPUT)


def test_strings_and_unknown_types_stay_inside(sardonyx, tmp_path):
    tensor = helper.make_tensor("s", TensorProto.STRING, [2000], [b"text"] * 2000)
    node = helper.make_node("Identity", ["s"], ["y"])
    graph = helper.make_graph([node], "g", [], [helper.make_tensor_value_info("y", TensorProto.STRING, [2000])], [tensor])
    onnx.save(helper.make_model(graph, ir_version=8, opset_imports=[helper.make_opsetid("", 17)]), tmp_path / "m.onnx")
    sardonyx("convert", tmp_path / "m.onnx", tmp_path / "out.onnx", "--external-data", "w.bin")
    assert onnx.load(tmp_path / "out.onnx") == onnx.load(tmp_path / "m.onnx")


def varint(number):
    out = bytearray()
    while number >= 0x80:
        out.append(number & 0x7f | 0x80)
        number >>= 7
    out.append(number)
    return bytes(out)


def field(number, size):
    return varint(number << 3 | 2) + varint(size)


def sparse_model(path, size):
    """A model in one file whose last field is a tensor of `size` zero bytes that the disk does not hold."""
    tensor = TensorProto(name="w", dims=[size // 4], data_type=TensorProto.FLOAT).SerializeToString()
    tensor_size = len(tensor) + len(field(9, size)) + size
    nodes = [helper.make_node("Relu", ["w"], ["h"]), helper.make_node("Neg", ["h"], ["y"])]
    output = helper.make_tensor_value_info("y", TensorProto.FLOAT, [size // 4])
    graph = helper.make_graph(nodes, "g", [], [output]).SerializeToString()
    graph_size = len(graph) + len(field(5, tensor_size)) + tensor_size
    header = onnx.ModelProto(ir_version=8, opset_import=[helper.make_opsetid("", 17)]).SerializeToString()
    with open(path, "wb") as file:
        file.write(header + field(7, graph_size) + graph + field(5, tensor_size) + tensor + field(9, size))
        file.truncate(file.tell() + size)


def memory_of(command):
    """MB that a process had resident at most."""
    child = subprocess.Popen(list(map(str, command)), stdout=subprocess.DEVNULL)
    _, status, usage = os.wait4(child.pid, 0)
    assert status == 0
    return usage.ru_maxrss / 1024


def test_a_file_longer_than_32_bits_can_count(sardonyx, tmp_path):
    sparse_model(tmp_path / "m.onnx", 5 << 30)
    idle = memory_of([sardonyx.path, "--version"])  # what this process leaves to its children counts, too
    assert memory_of([sardonyx.path, "check", tmp_path / "m.onnx"]) < idle + 50
    assert memory_of([sardonyx.path, "show", "--max-elements", "4", tmp_path / "m.onnx"]) < idle + 50


def test_a_model_beyond_two_gigabytes(sardonyx, tmp_path):
    """A file with holes stands for the weights: nothing of that size is read or written twice."""
    count = (10 << 30) // 4
    tensor = TensorProto(name="w", dims=[count], data_type=TensorProto.FLOAT, data_location=TensorProto.EXTERNAL)
    for key, value in (("location", "w.bin"), ("offset", "4096"), ("length", str(4 * count))):
        tensor.external_data.add(key=key, value=value)
    node = helper.make_node("Relu", ["w"], ["y"])
    graph = helper.make_graph([node], "g", [], [helper.make_tensor_value_info("y", TensorProto.FLOAT, [count])], [tensor])
    onnx.save(helper.make_model(graph, ir_version=8, opset_imports=[helper.make_opsetid("", 17)]), tmp_path / "m.onnx")
    with open(tmp_path / "w.bin", "wb") as file:
        file.truncate(4096 + 4 * count)
    idle = memory_of([sardonyx.path, "--version"])
    for command in (["check", "--data"], ["info"], ["show"], ["infer"]):
        assert memory_of([sardonyx.path, *command, tmp_path / "m.onnx"]) < idle + 50, command
    sardonyx("rename", tmp_path / "m.onnx", tmp_path / "n.onnx", "--value", "w=weights")
    assert onnx.load(tmp_path / "n.onnx", load_external_data=False).graph.initializer[0].name == "weights"


BRANCHES = """<ir_version: 8, opset_import: ["" : 17]>
g (bool c, float[4] x) => (float[4] y, float[4] z) {
  k = Abs (x)
  y = If (c) <
    then_branch = t () => (float[4] v) { s = Add (w, k)  v = Neg (s) },
    else_branch = e () => (float[4] v) { v = Identity (w) }
  >
  z = Neg (x)
}"""


def with_large_weight(path, file, count):
    """A branch captures a weight of `count` floats, which lies in a file beside the model."""
    model = parser.parse_model(BRANCHES)
    weight = TensorProto(name="w", dims=[count], data_type=TensorProto.FLOAT, data_location=TensorProto.EXTERNAL)
    for key, value in (("location", file), ("offset", "0"), ("length", str(4 * count))):
        weight.external_data.add(key=key, value=value)
    model.graph.initializer.append(weight)
    onnx.save(model, path)
    with open(path.parent / file, "wb") as data:
        data.truncate(4 * count)


def test_tools_on_weights_beyond_two_gigabytes(sardonyx, tmp_path):
    first, second = tmp_path / "a.onnx", tmp_path / "b.onnx"
    for path, file in ((first, "a.bin"), (second, "b.bin")):
        with_large_weight(path, file, (5 << 29) // 4)
    idle = memory_of([sardonyx.path, "--version"])
    part, both, renamed = tmp_path / "part.onnx", tmp_path / "both.onnx", tmp_path / "renamed.onnx"
    for command in (["extract", first, part, "--input", "c", "--input", "x", "--output", "y"],
                    ["merge", first, second, both, "--map", "y=x", "--prefix1", "one_", "--prefix2", "two_"],
                    ["rename", first, renamed, "--value", "w=weight"],
                    ["edit", first, tmp_path / "edited.onnx", "--producer", "somebody"]):
        assert memory_of([sardonyx.path, *command]) < idle + 50, command[0]
    names = {path: [tensor.name for tensor in onnx.load(path, load_external_data=False).graph.initializer]
             for path in (part, both, renamed)}
    assert names == {part: ["w"], both: ["one_w", "two_w"], renamed: ["weight"]}
    branch = onnx.load(renamed, load_external_data=False).graph.node[1].attribute[0].g
    assert branch.node[0].input[0] == "weight"
    assert [node.op_type for node in onnx.load(part, load_external_data=False).graph.node] == ["Abs", "If"]
    changed = tmp_path / "changed.onnx"
    sardonyx("edit", first, changed, "--producer", "somebody")
    sardonyx("diff", "--no-annotations", first, changed)  # all weights are compared
