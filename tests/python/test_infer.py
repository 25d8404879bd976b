"""sardonyx infer: what it says, what it writes, and the architectures of the bench zoo with free sizes."""

from __future__ import annotations

import json

import numpy as np
import onnx
import pytest
from conftest import BAD_INPUT, FINDINGS, INVALID_MODEL, USAGE
from onnx import TensorProto, helper, numpy_helper, parser


def model_of(text: str, opset: int = 21) -> onnx.ModelProto:
    return parser.parse_model(f'<ir_version: 10, opset_import: ["" : {opset}]>\n{text}')


def save(model: onnx.ModelProto, folder, name: str = "model.onnx"):
    path = folder / name
    onnx.save(model, path)
    return path


def infer(sardonyx, path, *arguments, expect: int = 0) -> dict:
    return json.loads(sardonyx("infer", path, "--json", *arguments, expect=expect).stdout)


def types(report: dict) -> dict[str, str]:
    return {value["name"]: value["type"] for value in report["values"]}


GROWING = """g (float[batch, seq, 8] x, float[batch, past, 8] old) => (float[batch, total, 8] y) {
    all = Concat<axis = 1>(old, x)
    y = Relu(all)
}"""


def test_sizes_are_expressions_and_names_are_explained(sardonyx, tmp_path):
    report = infer(sardonyx, save(model_of(GROWING), tmp_path))
    assert types(report)["all"] == "float[batch,past + seq,8]"
    assert report["names"] == {"total": "past + seq"}
    assert report["counts"]["known"] == 4 and report["findings"] == []
    text = sardonyx("infer", tmp_path / "model.onnx").stdout
    assert "4 known" in text and "total = past + seq" in text


def test_given_sizes_are_put_in(sardonyx, tmp_path):
    path = save(model_of(GROWING), tmp_path)
    report = infer(sardonyx, path, "--set", "batch=2,seq=1", "--set", "past=7")
    assert types(report)["y"] == "float[2,8,8]"
    written = tmp_path / "fixed.onnx"
    sardonyx("infer", path, "--set", "batch=2,seq=1", "-o", written)
    graph = onnx.load(written).graph
    assert [dim.dim_value for dim in graph.input[0].type.tensor_type.shape.dim] == [2, 1, 8]
    assert [dim.dim_param for dim in graph.value_info[0].type.tensor_type.shape.dim] == ["", "past + 1", ""]
    sardonyx.fails(USAGE, "infer", path, "--set", "batch")


def test_written_types_are_those_the_reference_infers(sardonyx, tmp_path):
    model = model_of("""g (float[2, 3, 8, 8] x, bool c) => (float[a, b] y) {
        p = MaxPool<kernel_shape = [2, 2], strides = [2, 2]>(x)
        f = Flatten(p)
        y = If(c)<then_branch = t () => (float[2, 48] a) { h = Relu(f)  a = Neg(h) },
                  else_branch = e () => (float[2, 48] b) { b = Identity(f) }>
    }""")
    path = save(model, tmp_path)
    sardonyx("infer", path, "-o", path)
    ours = onnx.load(path)
    onnx.checker.check_model(ours, full_check=True)
    theirs = onnx.shape_inference.infer_shapes(model)
    for reference in theirs.graph.value_info:
        mine = next(value for value in ours.graph.value_info if value.name == reference.name)
        assert mine.type == reference.type
    branch = next(attribute.g for attribute in ours.graph.node[2].attribute if attribute.name == "then_branch")
    assert branch.value_info[0].name == "h"
    assert [dim.dim_value for dim in ours.graph.output[0].type.tensor_type.shape.dim] == [2, 48]
    # A second time nothing changes.
    content = path.read_bytes()
    sardonyx("infer", path, "-o", path)
    assert path.read_bytes() == content


def test_what_stays_unknown_has_a_reason(sardonyx, tmp_path):
    model = model_of("""g (float[n] x, int64[2] target) => (float[a, b] y) {
        hits = NonZero(x)
        y = Reshape(x, target)
    }""")
    model.graph.output[0].type.tensor_type.ClearField("shape")  # or its names would be believed
    path = save(model, tmp_path)
    report = infer(sardonyx, path)
    states = {value["name"]: value["state"] for value in report["values"]}
    assert states["hits"] == "bounded" and states["y"] == "open"
    by_node = {unknown["node"]: unknown for unknown in report["unknowns"]}
    assert by_node["NonZero"]["bound"] == "n"
    assert "'target'" in by_node["Reshape"]["reason"]
    assert "decided by the run" in sardonyx("infer", path).stdout


def test_unknown_operators_are_findings_and_declarations_help(sardonyx, tmp_path):
    node = helper.make_node("Thing", ["x"], ["t"], domain="my.own", name="thing")
    graph = helper.make_graph(
        [node, helper.make_node("Relu", ["t"], ["y"])], "g",
        [helper.make_tensor_value_info("x", TensorProto.FLOAT, ["n"])],
        [helper.make_tensor_value_info("y", TensorProto.FLOAT, None)],
        value_info=[helper.make_tensor_value_info("t", TensorProto.FLOAT, ["n", 4])])
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 21), helper.make_opsetid("my.own", 1)],
                              ir_version=10)
    report = infer(sardonyx, save(model, tmp_path), expect=FINDINGS)
    assert types(report)["y"] == "float[n,4]"
    assert "Thing" in report["findings"][0]["place"] + report["findings"][0]["message"]


def test_contradictions_name_both_sources(sardonyx, tmp_path):
    text = "g (float[n, 4] x) => (float[n, 5] y) { y = Relu(x) }"
    path = save(model_of(text), tmp_path)
    report = infer(sardonyx, path)
    assert [finding["severity"] for finding in report["findings"]] == ["warning"]
    assert "float[n,5]" in report["findings"][0]["message"] and "float[n,4]" in report["findings"][0]["message"]
    assert infer(sardonyx, path, "--strict", expect=FINDINGS)["findings"][0]["severity"] == "error"


def test_external_data_is_neither_needed_nor_touched(sardonyx, tmp_path):
    weights = numpy_helper.from_array(np.ones((4096, 64), np.float32), "w")
    model = model_of("g (float[n, 4096] x) => (float[a, b] y) { y = MatMul(x, w) }")
    model.graph.initializer.append(weights)
    onnx.save(model, tmp_path / "model.onnx", save_as_external_data=True, location="weights.bin", size_threshold=0)
    (tmp_path / "weights.bin").unlink()
    assert types(infer(sardonyx, tmp_path / "model.onnx"))["y"] == "float[n,64]"
    sardonyx("infer", tmp_path / "model.onnx", "-o", tmp_path / "typed.onnx")
    typed = onnx.load(tmp_path / "typed.onnx", load_external_data=False)
    assert typed.graph.initializer[0].external_data[0].value == "weights.bin"
    (tmp_path / "other").mkdir()
    sardonyx.fails(BAD_INPUT, "infer", tmp_path / "model.onnx", "-o", tmp_path / "other" / "typed.onnx",
                   mentions=["external data"])


def test_weights_stay_as_they_were(sardonyx, tmp_path):
    model = model_of("g (float[n, 3] x) => (float[n, 2] y) { h = MatMul(x, w)  y = Relu(h) }")
    model.graph.initializer.append(numpy_helper.from_array(np.arange(6, dtype=np.float32).reshape(3, 2), "w"))
    path = save(model, tmp_path)
    sardonyx("infer", path, "-o", path)
    written = onnx.load(path)
    assert written.graph.initializer[0] == model.graph.initializer[0]
    assert [value.name for value in written.graph.value_info] == ["h"]


def test_no_model_is_an_error(sardonyx, tmp_path):
    (tmp_path / "empty.onnx").write_bytes(b"\x42\x01\x61")
    sardonyx.fails(INVALID_MODEL, "infer", tmp_path / "empty.onnx")


def small_zoo():
    from zoo import small, transformers, vision

    return {
        "resnet": lambda: vision.resnet50(blocks=(1, 1, 1, 1), width=4, side=64),
        "vgg": lambda: vision.vgg19(width=4, dense=16, side=32),
        "densenet": lambda: vision.densenet121(blocks=(1, 1, 1, 1), growth=4, side=64),
        "bert": lambda: transformers.bert(layers=2, hidden=32, heads=4, vocabulary=50),
        "gpt2": lambda: transformers.gpt2(layers=2, hidden=32, heads=4, vocabulary=50),
        "vit": lambda: transformers.vit(layers=1, hidden=32, heads=4, side=64),
        "mlp": small.mlp,
        "lstm": lambda: small.lstm(hidden=8, inputs=4, steps=5),
        "chain": lambda: small.chain(side=8),
        "tiny": lambda: small.tiny_nodes(count=60),
        "detector": lambda: small.detector(side=8, channels=8),
        "loop": lambda: small.loop(size=8, trips=3),
        "functions": lambda: small.functions(size=8),
    }


# Where a model itself fixes a size (a classifier's weights, a Reshape to numbers) it stays fixed.
FREE = {
    "resnet": {0: "batch", 2: "height", 3: "width"},
    "densenet": {0: "batch", 2: "height", 3: "width"},
    "vgg": {0: "batch"},
    "vit": {0: "batch"},
    "detector": {},
}


@pytest.mark.parametrize("name", ["resnet", "vgg", "densenet", "bert", "gpt2", "vit", "mlp", "lstm", "chain", "tiny",
                                  "detector", "loop", "functions"])
def test_every_size_of_the_zoo_is_an_expression_or_has_a_bound(sardonyx, tmp_path, name):
    model = small_zoo()[name]().model
    for value in model.graph.input:
        for axis, dim_name in FREE.get(name, {}).items():
            value.type.tensor_type.shape.dim[axis].dim_param = dim_name
    if name in FREE:
        for value in model.graph.output:
            value.type.tensor_type.ClearField("shape")
    report = infer(sardonyx, save(model, tmp_path))
    left = [value for value in report["values"] if value["state"] not in ("known", "bounded")]
    assert left == [] and report["findings"] == []
