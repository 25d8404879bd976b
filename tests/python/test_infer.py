"""sardonyx infer: what it says, what it writes, and the architectures of the bench zoo with free sizes."""

from __future__ import annotations

import json
import subprocess
import sys

import numpy as np
import onnx
import pytest
import test_convert
import test_zoo
import zoo
from conftest import BAD_INPUT, FINDINGS, INVALID_MODEL, ROOT, UNSUPPORTED, USAGE
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
    assert by_node["NonZero making 'hits'"]["bound"] == "n"
    assert "'target'" in by_node["Reshape making 'y'"]["reason"]
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


def contradictory(name: str) -> onnx.ModelProto:
    """A model that declares something that can't be, in the place of this name."""
    models = {
        "output": "g (float[n, 4] x) => (int64[n, 4] y) { y = Relu(x) }",
        "value_info": "g (float[n, 4] x) => (float[n, 4] y) <float[4] h> { h = Relu(x)  y = Neg(h) }",
        "sequence": "g (float[4] x) => (seq(int64[3]) y) { y = SequenceConstruct(x) }",
        "branch": """g (float[n, 4] x, bool c) => (float[n, 4] y) {
            y = If(c)<then_branch = yes () => (float[n, 4] a) <float[n, 4, 1] h> { h = Relu(x)  a = Neg(h) },
                      else_branch = no () => (float[n, 4] b) { b = Abs(x) }> }""",
        "branch output": """g (float[n, 4] x, bool c) => (float[n, 4] y) {
            y = If(c)<then_branch = yes () => (float[n, 7] a) { a = Relu(x) },
                      else_branch = no () => (float[n, 4] b) { b = Abs(x) }> }""",
        "body input": """g (float[n, 4] x, int64 k) => (float[n, 4] y) {
            y = Loop(k, , x)<body = turn (int64 i, bool go, float[n, 5] v) => (bool on, float[n, 4] q) {
                on = Identity(go)  q = Neg(v) }> }""",
        "initializer": "g (float[n, 4] x, float[2, 3] w) => (float[2, 3] y) { y = Neg(w) }",
    }
    if name != "function":
        model = model_of(models[name])
        if name == "initializer":
            model.graph.initializer.append(numpy_helper.from_array(np.ones(5, np.float32), "w"))
            model.graph.output[0].type.tensor_type.ClearField("shape")
        return model
    model = parser.parse_model(CALLS.replace("float[a, b] y", "float[n, 4] y"))
    model.functions[0].value_info.append(helper.make_tensor_value_info("product", TensorProto.FLOAT, [9]))
    return model


@pytest.mark.parametrize("place, mentions", [
    ("output", ["the list of outputs declares 'y' as int64[n,4]", "the node makes float[n,4]", "Relu"]),
    ("value_info", ["value_info declares 'h' as float[4]", "the node makes float[n,4]", "Relu"]),
    ("sequence", ["the list of outputs declares 'y' as seq(int64[3])", "seq(float[4])", "SequenceConstruct"]),
    ("branch", ["value_info of graph 'yes' declares 'h' as float[n,4,1]", "the node makes float[n,4]", "Relu"]),
    ("branch output", ["the list of outputs of graph 'yes' declares 'a' as float[n,7]", "makes float[n,4]", "Relu"]),
    ("body input", ["the list of inputs of graph 'turn' declares 'v' as float[n,5]", "it is given float[n,4]", "'v'"]),
    ("initializer", ["the list of inputs declares 'w' as float[2,3]", "its initializer is float[5]", "'w'"]),
    ("function", ["value_info of function own.Twice declares 'product' as float[9]", "makes float[n,4]", "Mul"]),
])
def test_every_contradiction_names_both_sources(sardonyx, tmp_path, place, mentions):
    """A warning, an error with --strict; what was inferred counts either way, in the written file, too."""
    path = save(contradictory(place), tmp_path)
    for strict, severity in ([], "warning"), (["--strict"], "error"):
        report = infer(sardonyx, path, *strict, expect=FINDINGS if strict else 0)
        found = [finding for finding in report["findings"] if "declares" in finding["message"]]
        assert found and {finding["severity"] for finding in found} == {severity}
        text = found[0]["place"] + ": " + found[0]["message"]
        assert all(word in text for word in mentions), text
        assert "correct or remove the declaration" in text
        assert len({json.dumps(finding) for finding in found}) == len(found)  # each once, whatever is inferred twice
    text = sardonyx("infer", path, "--strict", expect=FINDINGS).stdout
    assert f"error: {found[0]['place']}: " in text
    lenient = types(infer(sardonyx, path))
    assert lenient == types(infer(sardonyx, path, "--strict", expect=FINDINGS))
    sardonyx("infer", path, "-o", tmp_path / "typed.onnx")
    if place not in ("body input", "initializer"):  # declarations of inputs are the caller's
        corrected = infer(sardonyx, tmp_path / "typed.onnx", "--strict")
        assert corrected["findings"] == [] and types(corrected) == lenient


def test_what_holds_for_some_inputs_is_no_contradiction(sardonyx, tmp_path):
    path = save(model_of("g (float[n, m] x) => (float[3, m] y) { y = Relu(x) }"), tmp_path)
    report = infer(sardonyx, path, "--strict")
    assert report["findings"][0]["severity"] == "warning"
    assert "holds for some inputs only" in report["findings"][0]["message"]
    assert infer(sardonyx, path, "--strict", "--set", "n=3")["findings"] == []
    wrong = infer(sardonyx, path, "--strict", "--set", "n=4", expect=FINDINGS)
    assert "float[3,m]" in wrong["findings"][0]["message"] and "float[4,m]" in wrong["findings"][0]["message"]


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


def test_in_place_adds_and_touches_nothing_else(sardonyx, tmp_path):
    nodes = "\n".join(f"v{i + 1} = Relu(v{i})" for i in range(300))
    path = save(model_of(f"g (float[n, 3] v0) => (float[n, 3] v300) {{ {nodes} }}"), tmp_path)
    before = path.read_bytes()
    sardonyx("infer", path, "--in-place")
    after = path.read_bytes()
    assert after.startswith(before) and len(after) > len(before) + 4096
    graph = onnx.load(path).graph
    assert len(graph.node) == 300 and [value.name for value in graph.value_info] == [f"v{i}" for i in range(1, 300)]
    assert types(infer(sardonyx, path))["v299"] == "float[n,3]"
    sardonyx("check", path)
    # Wherever the disk stopped, the file is sound.
    for end in range(-(-len(before) // 4096) * 4096, len(after), 4096):
        onnx.load_model_from_string(after[:end])
    sardonyx("infer", path, "--in-place")
    assert path.read_bytes() == after


def test_in_place_beyond_four_gigabytes(sardonyx, tmp_path):
    """A hole stands for the weights: it stays one, and nothing of that size is read."""
    path = tmp_path / "large.onnx"
    test_convert.sparse_model(path, 5 << 30)
    size, blocks = path.stat().st_size, path.stat().st_blocks
    idle = test_convert.memory_of([sardonyx.path, "--version"])
    assert test_convert.memory_of([sardonyx.path, "infer", path, "--in-place"]) < idle + 50
    after = path.stat()
    assert size < after.st_size < size + (1 << 16) and after.st_blocks < blocks + 256
    assert types(infer(sardonyx, path))["h"] == f"float[{(5 << 30) // 4}]"


def test_in_place_where_a_block_lacks_one_byte(sardonyx, tmp_path):
    model = model_of("g (float[n, 3] x) => (float[n, 3] y) { h = Relu(x)  y = Relu(h) }")
    model.doc_string = "x" * 2000
    model.doc_string += "x" * ((4095 - len(model.SerializeToString())) % 4096)
    path = save(model, tmp_path)
    assert path.stat().st_size % 4096 == 4095
    sardonyx("infer", path, "--in-place")
    assert [value.name for value in onnx.load(path).graph.value_info] == ["h"]


def test_in_place_says_what_it_cannot(sardonyx, tmp_path):
    model = model_of("g (float[n, 3] x) => (float[a, b] y) { h = Relu(x)  y = Relu(h) }")
    model.graph.value_info.append(helper.make_tensor_value_info("h", TensorProto.FLOAT, None))
    path = save(model, tmp_path)
    before = path.read_bytes()
    report = infer(sardonyx, path, "--in-place")
    assert path.read_bytes() == before and "2 values are declared already" in report["findings"][0]["message"]
    sardonyx.fails(BAD_INPUT, "infer", path, "--in-place", "--set", "n=2", mentions=["n"])
    sardonyx.fails(USAGE, "infer", path, "--in-place", "-o", tmp_path / "other.onnx")
    (tmp_path / "model.onnxtxt").write_text("x")
    sardonyx.fails(UNSUPPORTED, "infer", tmp_path / "model.onnxtxt", "--in-place", mentions=["binary"])


CALLS = """<ir_version: 10, opset_import: ["" : 21, "own" : 1]>
g (float[n, 4] x, float[n, 4] x2, double[7] z, float[3] unused) => (float[a, b] y, float[c, d] y2, double[e] w) {
    y = own.Twice(x)
    y2 = own.Twice(x2)
    w = own.Other(z)
}
<domain: "own", opset_import: ["" : 21]>
Twice (a) => (b) { two = Constant<value_float = 2.0>()  product = Mul(a, two)  b = Identity(product) }
<domain: "own", opset_import: ["" : 21, "own" : 1]>
Other (a) => (b) { size = Shape(a)  b = Neg(a) }
"""


def test_functions_get_the_types_that_all_their_calls_share(sardonyx, tmp_path):
    path = save(parser.parse_model(CALLS), tmp_path)
    sardonyx("infer", path, "-o", path)
    written = onnx.load(path)
    twice, other = ({value.name: value.type.tensor_type for value in function.value_info}
                    for function in written.functions)
    assert [dim.dim_param or dim.dim_value for dim in twice["product"].shape.dim] == ["n", 4]
    assert twice["two"].elem_type == TensorProto.FLOAT and len(twice["two"].shape.dim) == 0
    assert [dim.dim_value for dim in other["size"].shape.dim] == [1]
    onnx.checker.check_model(written)
    sardonyx("check", path, "--strict")


def test_functions_called_with_several_types(sardonyx, tmp_path):
    text = CALLS.replace("w = own.Other(z)", "h = own.Twice(unused)  w = Cast<to = 11>(h)")
    path = save(parser.parse_model(text), tmp_path)
    assert types(infer(sardonyx, path))["h"] == "float[3]"
    sardonyx("infer", path, "-o", path)
    twice = {value.name: value.type.tensor_type for value in onnx.load(path).functions[0].value_info}
    assert twice["product"].elem_type == TensorProto.FLOAT and not twice["product"].HasField("shape")


def test_declarations_in_functions_help_where_inference_cannot_tell(sardonyx, tmp_path):
    model = parser.parse_model("""<ir_version: 10, opset_import: ["" : 21, "own" : 1, "else" : 1]>
    g (float[n, 4] x) => (float y) { y = own.Calls(x) }
    <domain: "own", opset_import: ["" : 21, "else" : 1]>
    Calls (a) => (b) { made = else.Unknown(a)  b = Relu(made) }""")
    model.functions[0].value_info.append(helper.make_tensor_value_info("made", TensorProto.FLOAT, ["m", 5]))
    del model.graph.output[0].type.tensor_type.shape.dim[:]
    model.graph.output[0].type.tensor_type.ClearField("shape")
    report = infer(sardonyx, save(model, tmp_path), expect=FINDINGS)
    assert types(report)["y"].startswith("float[u") and types(report)["y"].endswith(",5]")


def test_sizes_left_open_in_inputs_have_the_name_of_their_place(sardonyx, tmp_path):
    model = model_of("g (float[n, 4] x) => (float[a, b] y) { y = Transpose<perm = [1, 0]>(x) }")
    model.graph.input[0].type.tensor_type.shape.dim[0].ClearField("dim_param")
    path = save(model, tmp_path)
    report = infer(sardonyx, path)
    assert types(report)["y"] == "float[4,x.0]" and report["unknowns"] == [] and report["counts"]["known"] == 2
    sardonyx("infer", path, "-o", path)
    assert onnx.load(path).graph.input[0].type.tensor_type.shape.dim[0].dim_param == "x.0"


def test_items_of_a_sequence_keep_the_sizes_that_all_share(sardonyx, tmp_path):
    model = model_of("""g (float[n, rows, 3] x, int64 at) => (float[a, b] y, float[c, d] z) {
        parts = SplitToSequence<axis = 0, keepdims = 0>(x)
        y = SequenceAt(parts, at)
        uneven = SplitToSequence<axis = 1>(x)
        z = SequenceAt(uneven, at)
    }""")
    report = types(infer(sardonyx, save(model, tmp_path)))
    assert report["y"] == "float[rows,3]"


def test_declarations_in_functions_help_inside_subgraphs_too(sardonyx, tmp_path):
    model = parser.parse_model("""<ir_version: 10, opset_import: ["" : 21, "own" : 1, "else" : 1]>
    g (float[n, 4] x, bool c) => (float y) {
        y = If (c) <then_branch = t () => (float a) { held = own.Calls(x)  a = Neg(held) },
                    else_branch = e () => (float b) { b = Abs(x) }>
    }
    <domain: "own", opset_import: ["" : 21, "else" : 1]>
    Calls (a) => (b) { made = else.Unknown(a)  b = Relu(made) }""")
    model.functions[0].value_info.append(helper.make_tensor_value_info("made", TensorProto.FLOAT, ["m", 5]))
    model.graph.output[0].type.tensor_type.ClearField("shape")
    for attribute in model.graph.node[0].attribute:
        attribute.g.output[0].type.tensor_type.ClearField("shape")
    report = infer(sardonyx, save(model, tmp_path), expect=FINDINGS)
    held = types(report)["held"]
    assert held.startswith("float[") and held.endswith(",5]"), held


def test_sparse_initializers_are_tensors(sardonyx, tmp_path):
    model = model_of("g (float[n, 2] x) => (float[a, b] y) { h = MatMul(x, w)  y = Add(h, h) }")
    model.graph.sparse_initializer.append(helper.make_sparse_tensor(
        numpy_helper.from_array(np.array([1, 2], np.float32), "w"),
        numpy_helper.from_array(np.array([1, 5], np.int64), "w_places"), [2, 3]))
    path = save(model, tmp_path)
    assert types(infer(sardonyx, path))["h"] == "float[n,3]"
    np.savez(tmp_path / "inputs.npz", x=np.array([[1, 10]], np.float32))
    sardonyx("run", path, "--inputs", tmp_path / "inputs.npz", "-o", tmp_path / "out.npz")
    assert np.load(tmp_path / "out.npz")["y"].tolist() == [[0, 2, 40]]
    sardonyx("infer", path, "-o", tmp_path / "typed.onnx")
    assert onnx.load(tmp_path / "typed.onnx").graph.sparse_initializer == model.graph.sparse_initializer


def test_inputs_of_all_kinds_have_types(sardonyx, tmp_path):
    scalar = helper.make_tensor_type_proto(TensorProto.FLOAT, [])
    graph = helper.make_graph(
        [helper.make_node("DictVectorizer", ["counts"], ["row"], domain="ai.onnx.ml", string_vocabulary=["a", "b"]),
         helper.make_node("CastMap", ["places"], ["line"], domain="ai.onnx.ml", cast_to="TO_FLOAT", map_form="SPARSE",
                          max_map=7),
         helper.make_node("ZipMap", ["scores"], ["named"], domain="ai.onnx.ml", classlabels_strings=["a", "b", "c"])],
        "g",
        [helper.make_value_info("counts", helper.make_map_type_proto(TensorProto.STRING, scalar)),
         helper.make_value_info("places", helper.make_map_type_proto(TensorProto.INT64, scalar)),
         helper.make_tensor_value_info("scores", TensorProto.FLOAT, ["n", 3]),
         helper.make_sparse_tensor_value_info("sparse", TensorProto.FLOAT, ["r", "c"])],
        [helper.make_tensor_value_info("row", TensorProto.FLOAT, None)])
    model = helper.make_model(graph, ir_version=10,
                              opset_imports=[helper.make_opsetid("", 21), helper.make_opsetid("ai.onnx.ml", 3)])
    report = infer(sardonyx, save(model, tmp_path))
    assert types(report) == {"counts": "map(string,float[])", "places": "map(int64,float[])", "scores": "float[n,3]",
                             "sparse": "sparse_tensor(float[r,c])", "row": "float[2]", "line": "float[1,7]",
                             "named": "seq(map(string,float[]))"}
    assert report["counts"]["known"] == 7 and report["findings"] == []


def test_names_of_what_the_run_decides_keep_their_bounds(sardonyx, tmp_path):
    model = model_of("""g (float[b, n, 4] boxes, float[b, c, n] scores, int64 end) => (int64[found, 3] picked, int64[left] line) {
        ten = Constant<value = int64 {10}>()
        picked = NonMaxSuppression(boxes, scores, ten)
        zero = Constant<value = int64 {0}>()
        one = Constant<value = int64 {1}>()
        line = Range(zero, end, one)
    }""")
    report = infer(sardonyx, save(model, tmp_path))
    states = {value["name"]: value["state"] for value in report["values"]}
    assert types(report)["picked"] == "int64[found,3]" and states["picked"] == "bounded"
    unknown, = report["unknowns"]
    assert unknown["name"] == "found" and unknown["bound"] == "b*c*min(n, 10)"
    assert unknown["node"] == "NonMaxSuppression making 'picked'"
    # What the caller decides is known, by the element that does.
    assert states["line"] == "known" and types(report)["line"] == "int64[max(v0, 0)]"
    assert report["names"]["v0"] == "value of 'end'"


def test_a_growing_cache_is_an_expression_of_the_trips(sardonyx, tmp_path):
    model = model_of("""g (float[past, d] cache, float[n, d] x, float[m] times) => (float[total, d] grown, float[rows, d] y) {
        yes = Constant<value = bool {1}>()
        shape = Shape(times)
        trips = Squeeze(shape)
        empty = SequenceEmpty()
        grown, parts = Loop(trips, yes, cache, empty)<body = b (int64 i, bool c, float[p, d] now, seq(float[]) s)
          => (bool go, float[q, d] next, seq(float[]) s2) {
            go = Identity(c)
            next = Concat<axis = 0>(now, x)
            s2 = SequenceInsert(s, x)
        }>
        y = ConcatFromSequence<axis = 0>(parts)
    }""")
    report = infer(sardonyx, save(model, tmp_path))
    assert report["names"]["total"] == "m*n + past" and types(report)["y"] == "float[m*n,d]"
    bounds = {unknown["name"]: unknown["bound"] for unknown in report["unknowns"]}
    inside = types(report)["now"].removeprefix("float[").removesuffix(",d]")
    assert bounds[inside] == "m*n + past"


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


# The longest text decides how many words there are, which no size bounds.
WITHOUT_BOUND = {"texts": {"words"}, "strings": {"words", "ids"}}


@pytest.mark.parametrize("name", zoo.ENTRIES)
def test_every_family_of_the_zoo_is_known(sardonyx, tmp_path, name):
    model = test_zoo.small(name).model
    for value in model.graph.input:
        tensor = value.type.tensor_type
        if tensor.shape.dim:
            tensor.shape.dim[0].dim_param = tensor.shape.dim[0].dim_param or "batch"
    report = infer(sardonyx, save(model, tmp_path))
    left = {value["name"] for value in report["values"] if value["state"] not in ("known", "bounded")}
    assert left == WITHOUT_BOUND.get(name, set())
    assert [finding for finding in report["findings"] if finding["severity"] == "error"] == []


def test_the_zoo_with_free_sizes_is_known_and_better_than_by_the_reference(sardonyx):
    """What tools/zoo_inference.py counts, for docs/inference.md."""
    counted = subprocess.run([sys.executable, ROOT / "tools" / "zoo_inference.py", "--program", sardonyx.path],
                             capture_output=True, text=True)
    assert counted.returncode == 0, counted.stderr
    models, total, known, bounded, left, theirs, _ = (
        int(word) for word in counted.stdout.splitlines()[-1].strip("| ").split(" | "))
    assert models == len(zoo.ENTRIES) and known + bounded + left == total
    assert left == 3 and known > 1.5 * theirs  # the words of the longest text
