"""What else the program promises in docs/cli.md: forms of input, comparing, the server, truncation."""

from __future__ import annotations

import json
import os
import subprocess

import numpy as np
import onnx
import pytest
from conftest import BAD_INPUT, DIGITS, FINDINGS, INVALID_MODEL, OK, UNREADABLE, USAGE, parse_json
from onnx import helper, numpy_helper

HEAD = '<ir_version: 8, opset_import: ["" : 17]>'
X = np.arange(6, dtype=np.float32).reshape(2, 3)


class Server:
    def __init__(self, sardonyx):
        self.process = subprocess.Popen([sardonyx.path, "bench", "--serve"], stdin=subprocess.PIPE,
                                        stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)

    def send(self, line: str) -> None:
        self.process.stdin.write(line + "\n")
        self.process.stdin.flush()

    def ask(self, line: str) -> dict:
        self.send(line)
        return json.loads(self.process.stdout.readline())


@pytest.fixture
def server(sardonyx):
    server = Server(sardonyx)
    yield server
    server.process.kill()
    server.process.communicate()


def test_folder_of_test_data(sardonyx, affine, tmp_path):
    data = tmp_path / "data"
    data.mkdir()
    (data / "input_0.pb").write_bytes(numpy_helper.from_array(X, "x").SerializeToString())
    for index, array in enumerate((2 * X + [10, 20, 30], 2 * X)):
        np.save(data / f"output_{index}.npy", array.astype(np.float32))
    result = sardonyx("run", affine, "--inputs", data, "--expect", data)
    assert result.stdout.count("as expected") == 2
    sardonyx("run", affine, "--inputs", data, "--input", "x=random", "--set", "rows=2", "--expect", data, expect=FINDINGS)


def test_all_inputs_of_an_npz(sardonyx, affine, tmp_path):
    np.savez(tmp_path / "in.npz", x=X, bias=np.zeros(3, np.float32))
    found = parse_json(sardonyx("run", affine, "--inputs", tmp_path / "in.npz", "--json"))
    assert found["outputs"][0]["value"] == (2 * X).tolist()
    np.savez(tmp_path / "odd.npz", y=X)
    sardonyx.fails(BAD_INPUT, "run", affine, "--inputs", tmp_path / "odd.npz", mentions=["y", "x"])


def test_values_typed_in(sardonyx, affine):
    found = parse_json(sardonyx("run", affine, "--input", "x=[[1, 2, 3]]", "--input", "bias=1 1 1", "--json"))
    assert found["outputs"][0]["value"] == [[3, 5, 7]]
    sardonyx.fails(BAD_INPUT, "run", affine, "--input", "x=[[1, 2", mentions=["x"])
    sardonyx.fails(BAD_INPUT, "run", affine, "--input", "x=hello", mentions=["x"])


def test_random_in_a_range(sardonyx, save):
    model = save(f"{HEAD} g (int64[n] x) => (int64[n] y) {{ y = Identity (x) }}")
    found = parse_json(sardonyx("run", model, "--input", "x=random:100:103", "--set", "n=200", "--json"))
    assert set(found["outputs"][0]["value"]) == {100, 101, 102}
    other = parse_json(sardonyx("run", model, "--input", "x=random:100:103", "--set", "n=200", "--seed", "1", "--json"))
    assert other["outputs"][0]["value"] != found["outputs"][0]["value"]


def test_a_size_known_from_another_input(sardonyx, save, tmp_path):
    model = save(f"{HEAD} g (float[n] a, float[n] b) => (float[n] y) {{ y = Add (a, b) }}")
    found = parse_json(sardonyx("run", model, "--input", "a=1 2 3 4", "--input", "b=ones", "--json"))
    assert found["outputs"][0]["value"] == [2, 3, 4, 5]
    sardonyx.fails(BAD_INPUT, "run", model, "--random-inputs", "--set", "m=3", mentions=["m", "n"])


def test_what_is_missing_is_listed(sardonyx, save):
    model = save(f"{HEAD} g (float[n] first, int64[2] second) => (float[n] y) {{ y = Neg (first) }}")
    sardonyx.fails(BAD_INPUT, "run", model, mentions=["first", "float[n]", "second", "int64[2]", "--input"])
    sardonyx("run", model, "--random-inputs")


@pytest.mark.parametrize("arguments", [
    ["--input", "image=ones", "--input", "image=random"], ["--input", "=3"], ["--set", "N=-1"], ["--set", "N=x"],
    ["--input", "image=random:1"], ["--image-layout", "sideways"], ["--repeat", "0"], ["--mean", "1,2"],
])
def test_usage_of_run(sardonyx, arguments):
    sardonyx.fails(USAGE, "run", DIGITS / "digits.onnx", *arguments)


def test_files_that_are_absent(sardonyx, affine, tmp_path):
    for option in (["--input", f"x={tmp_path}/absent.npy"], ["--inputs", f"{tmp_path}/absent.npz"],
                   ["--inputs", f"{tmp_path}/absent"], ["--input", "x=ones", "--expect", f"{tmp_path}/absent"],
                   ["--input", "x=ones", "--labels", f"{tmp_path}/absent"]):
        sardonyx.fails(UNREADABLE, "run", affine, *option, mentions=["absent"])


def test_npz_does_not_hold_sequences(sardonyx, save, tmp_path):
    model = save(f"{HEAD} g (float[2] x) => (seq(float[2]) s) {{ s = SequenceConstruct (x) }}")
    sardonyx.fails(BAD_INPUT, "run", model, "--input", "x=ones", "--output", tmp_path / "s.npz", mentions=["s", "folder"])
    assert not list(tmp_path.glob("*.npz"))


def test_a_sequence_in_and_out(sardonyx, save, tmp_path):
    model = save(f"{HEAD} g (seq(float[n]) s) => (float[n] y, seq(float[n]) t) "
                 "{ zero = Constant <value_int = 0> ()  y = SequenceAt (s, zero)  t = Identity (s) }")
    sequence = numpy_helper.from_list([np.ones(2, np.float32), np.zeros(3, np.float32)], "s")
    (tmp_path / "s.pb").write_bytes(sequence.SerializeToString())
    sardonyx("run", model, "--input", f"s={tmp_path}/s.pb", "--output", tmp_path / "out")
    (tmp_path / "out" / "output_0.npy").rename(tmp_path / "y.npy")
    np.testing.assert_array_equal(np.load(tmp_path / "y.npy"), [1, 1])
    sardonyx("run", model, "--input", f"s={tmp_path}/s.pb", "--expect", tmp_path / "out")


def test_names_of_strangers_are_printed_harmlessly(sardonyx, affine):
    proto = onnx.load(affine)
    proto.graph.name = proto.producer_name = "\x1b[31mred\x1b]0;title\x07"
    proto.graph.node[0].name = "\u202eesrever\n"
    onnx.save(proto, affine)
    for command in ("info", "check"):
        text = sardonyx(command, affine, expect=None).stdout
        assert not any(c in text for c in "\x1b\x07\u202e")


@pytest.mark.parametrize("name, elements", [("FLOAT16", [1.5, -2]), ("BFLOAT16", [1.5, -2]), ("FLOAT8E5M2", [1.5, -2]),
                                            ("INT4", [-8, 7]), ("BOOL", [True, False]), ("UINT8", [200, 3]),
                                            ("UINT64", [2**64 - 1, 0]), ("STRING", ["a\u00e9", ""])])
def test_json_values_of_many_types(sardonyx, tmp_path, name, elements):
    kind = onnx.TensorProto.DataType.Value(name)
    tensor = helper.make_tensor("t", kind, [2], [e.encode() for e in elements] if name == "STRING" else elements)
    graph = helper.make_graph([helper.make_node("Constant", [], ["y"], value=tensor)], "g", [],
                              [helper.make_tensor_value_info("y", kind, [2])])
    path = tmp_path / "m.onnx"
    onnx.save(helper.make_model(graph, opset_imports=[helper.make_opsetid("", 21)], ir_version=10), path)
    found = parse_json(sardonyx("run", path, "--json", "--output", tmp_path / "out"))
    assert found["outputs"][0]["value"] == elements
    sardonyx("run", path, "--expect", tmp_path / "out")


def test_labels_that_fit_nothing(sardonyx, tmp_path):
    (tmp_path / "labels.txt").write_text("one\ntwo\n")
    sardonyx.fails(BAD_INPUT, "run", DIGITS / "digits.onnx", "--input", "image=ones", "--labels", tmp_path / "labels.txt",
                   mentions=["2 labels", "float[1,10]"])


def test_output_replaces_what_was_there(sardonyx, affine, tmp_path):
    out = tmp_path / "out"
    out.mkdir()
    (out / "output_0.npy").write_text("old")
    (out / "mine.txt").write_text("kept")
    sardonyx("run", affine, "--input", "x=ones", "--output", out)
    assert np.load(out / "output_0.npy").shape == (1, 3)
    assert sorted(file.name for file in out.iterdir()) == ["mine.txt", "output_0.npy", "output_1.npy"]
    (tmp_path / "file").write_text("")
    sardonyx.fails(UNREADABLE, "run", affine, "--input", "x=ones", "--output", tmp_path / "file", mentions=["file"])


def test_full_disk(sardonyx, affine):
    with open("/dev/full", "w") as full:
        result = subprocess.run([sardonyx.path, "info", str(affine)], stdout=full, stderr=subprocess.PIPE, text=True)
    assert result.returncode == UNREADABLE and "standard output" in result.stderr


def test_textual_model(sardonyx, tmp_path):
    (tmp_path / "m.onnxtxt").write_text(f"{HEAD} g (float[2] x) => (float[2] y) {{ y = Neg (x) }}")
    assert "-1, -1" in sardonyx("run", tmp_path / "m.onnxtxt", "--input", "x=ones").stdout
    sardonyx("check", tmp_path / "m.onnxtxt")
    (tmp_path / "bad.onnxtxt").write_text("<ir_version")
    sardonyx.fails(INVALID_MODEL, "check", tmp_path / "bad.onnxtxt", mentions=["bad.onnxtxt", "line 1"])


@pytest.mark.parametrize("model", ["digits", "lstm"])
def test_cost_is_what_the_arithmetic_says(sardonyx, tmp_path, model):
    if model == "digits":
        proto = onnx.shape_inference.infer_shapes(onnx.load(DIGITS / "digits.onnx"))
        shapes = {v.name: [d.dim_value or 1 for d in v.type.tensor_type.shape.dim] for v in proto.graph.value_info}
        weights = {t.name: list(t.dims) for t in proto.graph.initializer}
        products = 0
        for node in proto.graph.node:
            if node.op_type in ("Conv", "Gemm"):
                rows = np.prod(shapes[node.output[0]]) if node.op_type == "Conv" else 1
                size = np.prod(weights[node.input[1]][1:] if node.op_type == "Conv" else weights[node.input[1]])
                products += 2 * int(rows) * int(size)
        found = parse_json(sardonyx("info", DIGITS / "digits.onnx", "--json"))
    else:
        import zoo

        built = zoo.MODELS["lstm"]()
        onnx.save(built.model, tmp_path / "m.onnx")
        products = 2 * 100 * 4 * 512 * (256 + 512 + 512 + 512)
        found = parse_json(sardonyx("info", tmp_path / "m.onnx", "--set", "steps=100", "--json"))
    assert products <= found["cost"]["flops"] <= 1.1 * products


def test_cost_follows_the_sizes(sardonyx):
    costs = [parse_json(sardonyx("info", DIGITS / "digits.onnx", "--set", f"N={n}", "--json"))["cost"] for n in (1, 7)]
    assert costs[1]["flops"] == 7 * costs[0]["flops"]
    assert costs[1]["sizes"] == {"N": 7}


def test_small_numbers_are_zeros_where_that_is_asked(sardonyx, save):
    half = save('<ir_version: 8, opset_import: ["" : 17]> g (float[n] x) => (float[n] y) { h = Constant<value_float = 0.5>() y = Mul(x, h) }')
    given = ["run", half, "--input", "x=[1.2e-38, 1]", "--json"]
    values = [parse_json(sardonyx(*given, *more))["outputs"][0]["value"] for more in ([], ["--flush-denormals"])]
    assert values[0][0] > 0 and values[1] == [0, 0.5]


@pytest.mark.parametrize("old, new", [("--plain", "--reference"), ("--pack-early", "--prepack")])
def test_old_names_of_options_work_and_warn(sardonyx, affine, old, new):
    given = ["run", affine, "--input", "x=[[1,2,3]]"]
    was, now = sardonyx(*given, old), sardonyx(*given, new)
    assert f"warning: {old} is called {new} now" in was.stderr and now.stderr == ""
    assert was.stdout.splitlines()[1:] == now.stdout.splitlines()[1:]
    assert old not in sardonyx("run", "--help").stdout


def test_explain_names_kernels(sardonyx):
    found = parse_json(sardonyx("explain", DIGITS / "digits.onnx", "--json"))
    assert any("conv" in step["kernel"] for step in found["steps"])
    assert any("Softmax" in step["node"] for step in found["steps"])


def test_explain_shows_passes(sardonyx):
    model = DIGITS / "digits.onnx"
    found = parse_json(sardonyx("explain", model, "--passes", "--json"))
    fused = next(one for one in found["passes"] if one["name"] == "fuse-epilogues")
    assert fused["changed"] and fused["graph"] == "main graph" and fused["operators"]["Relu"] < 0
    assert fused["nodes_after"] < fused["nodes_before"] and fused["ms"] > 0
    assert "fuse-epilogues" in sardonyx("explain", model, "--passes").stdout
    stopped = parse_json(sardonyx("explain", model, "--stop-after", "fold-constants", "--json"))
    assert stopped["passes"][-1]["name"] == "fold-constants" and "Relu" in stopped["graphs"]
    printed = sardonyx("explain", model, "--print-after", "fuse-epilogues").stdout
    assert printed.startswith("# main graph, after fuse-epilogues") and "Relu" not in printed
    sardonyx.fails(BAD_INPUT, "explain", model, "--print-after", "fuse", mentions=["no pass 'fuse'", "fuse-epilogues"])


def test_bench(sardonyx):
    found = parse_json(sardonyx("bench", DIGITS / "digits.onnx", "--repeat", "7", "--threads", "1", "--json"))
    assert found["runs"] == 7 and found["threads"] == 1 and found["min_ms"] <= found["median_ms"] <= found["max_ms"]
    peak = parse_json(sardonyx("bench", "--probe", "--json"))
    assert peak["gflops_1"] > 0.1 and peak["gbps_1"] > 0.1
    sardonyx.fails(USAGE, "bench")


def test_server(server, affine, tmp_path):
    assert "error" in server.ask("run 1")
    assert server.ask(f"load {affine} 1")["create_ms"] > 0
    assert "error" in server.ask("run 1")  # no inputs yet
    assert "error" in server.ask(f"outputs {tmp_path}/y.npz")
    np.savez(tmp_path / "x.npz", x=X)
    assert server.ask(f"inputs {tmp_path}/x.npz") == {}
    assert len(server.ask("run 3")["ms"]) == 3
    assert server.ask("run 0") == {"ms": []}
    assert server.ask(f"outputs {tmp_path}/y.npz") == {}
    with np.load(tmp_path / "y.npz") as arrays:
        np.testing.assert_array_equal(arrays["twice"], 2 * X)
    memory = server.ask("memory")
    assert 0 < memory["base_mb"] < memory["peak_mb"]
    assert "error" in server.ask("dance")
    server.send("quit")
    assert server.process.wait(timeout=20) == OK


def test_an_instruction_set_that_is_none(sardonyx):
    told = sardonyx("--version", env={**os.environ, "SARDONYX_CPU": "avx3"})
    assert "SARDONYX_CPU=avx3 names no instruction set" in told.stderr and "avx512" in told.stderr
    for known in ("baseline", ""):
        assert sardonyx("--version", env={**os.environ, "SARDONYX_CPU": known}).stderr == ""


def test_file_truncated_while_it_is_mapped(server, tmp_path):
    size = 1 << 20
    (tmp_path / "w.bin").write_bytes(np.ones(size, np.float32).tobytes())
    weight = onnx.TensorProto(name="w", data_type=1, dims=[size], data_location=onnx.TensorProto.EXTERNAL)
    weight.external_data.add(key="location", value="w.bin")
    graph = helper.make_graph([helper.make_node("Add", ["x", "w"], ["y"])], "g",
                              [helper.make_tensor_value_info("x", 1, [1])], [helper.make_tensor_value_info("y", 1, [size])], [weight])
    path = tmp_path / "large.onnx"
    path.write_bytes(helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8).SerializeToString())
    np.savez(tmp_path / "x.npz", x=np.ones(1, np.float32))
    server.ask(f"load {path} 1")
    server.ask(f"inputs {tmp_path}/x.npz")
    os.truncate(tmp_path / "w.bin", 4096)
    server.send("run 1")
    output, message = server.process.communicate(timeout=30)
    assert server.process.returncode == UNREADABLE
    assert output == "" and "large.onnx" in message and "truncated" in message
    assert message.count("\n") == 1
