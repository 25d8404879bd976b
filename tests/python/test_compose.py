"""`diff`, `extract`, `merge`, `rename`, `edit`."""

from __future__ import annotations

import numpy as np
import onnx
import pytest
from conftest import BAD_INPUT, FINDINGS, USAGE, parse_json
from onnx import parser

CHAIN = """<ir_version: 8, opset_import: ["" : 17], producer_name: "p">
  chain (float[N,4] x, bool c) => (float[N,4] z)
  <float[4] b = {1, 2, 3, 4}, float[4] unused = {0, 0, 0, 0}> {
    [first] a = Add (x, b)
    [middle] m = If (c) <then_branch = yes () => (float[N,4] p) { p = Mul (a, b) },
                         else_branch = no () => (float[N,4] q) { q = Neg (a) }>
    [last] z = Relu (m)
  }"""


@pytest.fixture
def chain(save):
    return save(CHAIN, "chain.onnx")


def names(values):
    return [value.name for value in values]


# ---- diff


def test_a_model_is_no_different_from_itself(sardonyx, chain):
    assert "no differences" in sardonyx("diff", chain, chain).stdout


@pytest.mark.parametrize("old, new, place", [
    ("Relu", "Tanh", "op_type"),
    ("{1, 2, 3, 4}", "{1, 2, 3, 5}", "initializer 'b'"),
    ("float[N,4] x", "float[N,5] x", "input 'x'"),
    ("Mul (a, b)", "Mul (b, a)", "then_branch"),
    ('"" : 17', '"" : 16', "import 'ai.onnx'"),
    ("[last]", "[end]", "name"),
    ('"p"', '"q"', "producer_name"),
    ("x, bool c", "x, bool d", "'d'"),
    ("z = Relu (m)", "z = Relu (m)  k = Abs (m)", "node 'k' (Abs)"),
])
def test_differences_are_told_with_their_place(sardonyx, save, chain, old, new, place):
    assert old in CHAIN
    other = save(CHAIN.replace(old, new), "other.onnx")
    assert place in sardonyx("diff", chain, other, expect=FINDINGS).stdout
    report = parse_json(sardonyx("diff", chain, other, "--json", expect=FINDINGS))
    assert not report["same"] and any(place in item["place"] for item in report["differences"])


def test_a_weight_that_is_no_number_is_named(sardonyx, save):
    text = """<ir_version: 8, opset_import: ["" : 17]> g () => (float[2] y) { y = Identity (w) }"""
    one = save(text, "one.onnx", w=np.array([1, 2], np.float32))
    two = save(text, "two.onnx", w=np.array([1.5, np.nan], np.float32))
    assert "2 of 2 elements differ; element 1 is 2, expected nan" in sardonyx("diff", one, two, expect=FINDINGS).stdout


def test_order_and_storage_make_no_difference(sardonyx, save, chain, tmp_path):
    other = CHAIN.replace("b = {1, 2, 3, 4}, float[4] unused = {0, 0, 0, 0}", "unused = {0, 0, 0, 0}, float[4] b = {1, 2, 3, 4}")
    model = parser.parse_model(other)
    tensor = next(t for t in model.graph.initializer if t.name == "b")
    raw = np.array(tensor.float_data, np.float32).tobytes()
    tensor.ClearField("float_data")
    tensor.raw_data = raw
    onnx.save(model, tmp_path / "other.onnx")
    sardonyx("diff", chain, tmp_path / "other.onnx")


def test_tolerance_and_what_to_leave_out(sardonyx, save, chain):
    near = save(CHAIN.replace("3, 4}", "3, 4.001}", 1), "near.onnx")
    sardonyx("diff", chain, near, expect=FINDINGS)
    sardonyx("diff", chain, near, "--rtol", "0.01")
    sardonyx("diff", chain, near, "--no-weights")
    other = save(CHAIN.replace('"p"', '"q"').replace("[first]", "[start]"), "other.onnx")
    sardonyx("diff", chain, other, "--no-annotations")


# ---- extract


def test_extract_keeps_what_subgraphs_capture(sardonyx, chain, tmp_path):
    part = tmp_path / "part.onnx"
    sardonyx("extract", chain, part, "--input", "a", "--input", "c", "--output", "m")
    model = onnx.load(part)
    onnx.checker.check_model(model, full_check=True)
    assert [node.op_type for node in model.graph.node] == ["If"]
    assert names(model.graph.input) == ["a", "c"] and names(model.graph.output) == ["m"]
    assert names(model.graph.initializer) == ["b"]  # captured by a branch
    assert model.graph.input[0].type.tensor_type.elem_type == onnx.TensorProto.FLOAT  # inferred


def test_extracted_parts_compute_what_the_whole_does(sardonyx, chain, tmp_path):
    x = np.array([[1, -2, 3, -9]], np.float32)
    c = np.array(False)
    whole = sardonyx.outputs(chain, {"x": x, "c": c}, tmp_path)[0]
    sardonyx("extract", chain, tmp_path / "a.onnx", "--input", "x", "--output", "a")
    sardonyx("extract", chain, tmp_path / "b.onnx", "--input", "a", "--input", "c", "--output", "z")
    a = sardonyx.outputs(tmp_path / "a.onnx", {"x": x}, tmp_path)[0]
    np.testing.assert_array_equal(sardonyx.outputs(tmp_path / "b.onnx", {"a": a, "c": c}, tmp_path)[0], whole)
    sardonyx("merge", tmp_path / "a.onnx", tmp_path / "b.onnx", tmp_path / "ab.onnx", "--map", "a=a",
             "--prefix1", "one_", "--prefix2", "two_")
    merged = sardonyx.outputs(tmp_path / "ab.onnx", {"one_x": x, "two_c": c}, tmp_path)[0]
    np.testing.assert_array_equal(merged, whole)


def test_extract_names_what_is_missing(sardonyx, chain, tmp_path):
    sardonyx.fails(BAD_INPUT, "extract", chain, tmp_path / "p.onnx", "--input", "a", "--output", "z", mentions=["'c'"])
    sardonyx.fails(BAD_INPUT, "extract", chain, tmp_path / "p.onnx", "--output", "nobody", mentions=["'nobody'"])
    assert not (tmp_path / "p.onnx").exists()


def test_extract_drops_functions_nobody_calls(sardonyx, save, tmp_path):
    model = save("""<ir_version: 8, opset_import: ["" : 17, "f": 1]>
      g (float[2] x) => (float[2] y, float[2] z) { y = f.one (x)  z = f.two (x) }
      <domain: "f", opset_import: ["" : 17, "f": 1]> one (a) => (b) { b = f.inner (a) }
      <domain: "f", opset_import: ["" : 17]> inner (a) => (b) { b = Relu (a) }
      <domain: "f", opset_import: ["" : 17]> two (a) => (b) { b = Abs (a) }""")
    sardonyx("extract", model, tmp_path / "p.onnx", "--input", "x", "--output", "y")
    assert sorted(f.name for f in onnx.load(tmp_path / "p.onnx").functions) == ["inner", "one"]


def test_one_output_of_a_node_may_be_given_and_another_needed(sardonyx, save, tmp_path):
    model = save("""<ir_version: 8, opset_import: ["" : 17]>
      g (float[4] x) => (float[2] c, float[2] d) { a, b = Split (x)  c = Neg (a)  d = Abs (b) }""")
    sardonyx("extract", model, tmp_path / "p.onnx", "--input", "x", "--input", "a", "--output", "c", "--output", "d")
    onnx.checker.check_model(onnx.load(tmp_path / "p.onnx"), full_check=True)
    feeds = {"x": np.array([1, 2, -3, -4], np.float32), "a": np.array([7, 8], np.float32)}
    np.testing.assert_array_equal(sardonyx.outputs(tmp_path / "p.onnx", feeds, tmp_path), [[-7, -8], [3, 4]])


GRADIENT = """<ir_version: 8, opset_import: ["" : 17, "ai.onnx.preview.training" : 1, "f" : 1]>
  g (float[2] x) => (float[2] d, float[2] e) {
    s = Mul (x, x)
    y = ReduceSum <keepdims = 0> (s)
    d = ai.onnx.preview.training.Gradient <xs = ["x"], y = "y"> (x)
    e = f.slope (x)
  }
  <domain: "f", opset_import: ["" : 17, "ai.onnx.preview.training" : 1]> slope (a) => (b) {
    y = ReduceSum <keepdims = 0> (a)
    b = ai.onnx.preview.training.Gradient <xs = ["a"], y = "y"> (a)
  }"""


def test_values_that_gradients_name_are_carried_along(sardonyx, save, tmp_path):
    x = np.array([1, 2], np.float32)
    model = save(GRADIENT)
    sardonyx("rename", model, tmp_path / "r.onnx", "--prefix", "p_")
    sardonyx("extract", model, tmp_path / "e.onnx", "--input", "x", "--output", "d", "--output", "e")
    for path, name in ((model, "x"), (tmp_path / "r.onnx", "p_x"), (tmp_path / "e.onnx", "x")):
        slopes = sardonyx.outputs(path, {name: x}, tmp_path)
        np.testing.assert_array_equal(slopes, [[2, 4], [1, 1]])


# ---- merge

FIRST = """<ir_version: 7, opset_import: ["" : 17, "f": 1]>
  one (float[N] x) => (float[N] y, float[N] k) { y = f.act (x)  k = Abs (x) }
  <domain: "f", opset_import: ["" : 17]> act (a) => (b) { b = Relu (a) }"""
SECOND = """<ir_version: 8, opset_import: ["" : 17, "f": 1]>
  two (float[N] u, float[N] v) => (float[N] w) { t = f.act (u)  w = Add (t, v) }
  <domain: "f", opset_import: ["" : 17]> act (a) => (b) { b = Neg (a) }"""


def test_merge_with_clashing_functions(sardonyx, save, tmp_path):
    first, second = save(FIRST, "first.onnx"), save(SECOND, "second.onnx")
    out = tmp_path / "m.onnx"
    sardonyx.fails(BAD_INPUT, "merge", first, second, out, "--map", "y=u", mentions=["'act'", "prefix"])
    sardonyx("merge", first, second, out, "--map", "y=u", "--map", "y=v", "--prefix2", "b_")
    model = onnx.load(out)
    onnx.checker.check_model(model, full_check=True)
    assert model.ir_version == 8
    assert names(model.graph.output) == ["k", "b_w"]
    x = np.array([1, -2, 3], np.float32)
    np.testing.assert_array_equal(sardonyx.outputs(out, {"x": x}, tmp_path)[1], np.zeros(3, np.float32))


def test_functions_that_differ_by_what_they_call_clash(sardonyx, save, tmp_path):
    calls = """<domain: "f", opset_import: ["" : 17, "f": 1]> act (a) => (b) { b = f.inner (a) }
      <domain: "f", opset_import: ["" : 17]> inner (a) => (b) { b = Neg (a) }"""
    first, second = (save(text[:text.index("<domain")] + calls.replace("Neg", op), f"{op}.onnx") for text, op in ((FIRST, "Relu"), (SECOND, "Neg")))
    sardonyx("merge", first, second, tmp_path / "m.onnx", "--map", "y=u", "--map", "y=v", "--prefix2", "b_")
    assert len(onnx.load(tmp_path / "m.onnx").functions) == 4
    x = np.array([1, -2, 3], np.float32)
    np.testing.assert_array_equal(sardonyx.outputs(tmp_path / "m.onnx", {"x": x}, tmp_path)[1], np.zeros(3, np.float32))


def test_a_function_is_no_operator_of_the_other_model(sardonyx, save, tmp_path):
    head = '<ir_version: 8, opset_import: ["" : 17, "com.microsoft" : 1]> g (float[2] x) => (float[2] y) { y = com.microsoft.QuickGelu (x) }'
    operator = save(head, "operator.onnx")
    function = save(head + '<domain: "com.microsoft", opset_import: ["" : 17]> QuickGelu (a) => (b) { b = Neg (a) }', "function.onnx")
    out, x = tmp_path / "m.onnx", np.array([1, -2], np.float32)
    sardonyx.fails(BAD_INPUT, "merge", function, operator, out, "--map", "y=x", "--prefix2", "b_", mentions=["first", "QuickGelu", "prefix"])
    sardonyx("merge", operator, function, out, "--map", "y=x", "--prefix2", "b_")
    np.testing.assert_array_equal(sardonyx.outputs(out, {"x": x}, tmp_path)[0], -sardonyx.outputs(operator, {"x": x}, tmp_path)[0])


def test_models_without_imports_are_of_opset_1(sardonyx, save, tmp_path):
    model = parser.parse_model(FIRST[:FIRST.index("<domain")].replace("f.act", "Selu"))
    model.ir_version = 2
    del model.opset_import[:]
    onnx.save(model, tmp_path / "first.onnx")
    second = save(SECOND.replace("Neg", "Relu"), "second.onnx")
    sardonyx.fails(BAD_INPUT, "merge", tmp_path / "first.onnx", second, tmp_path / "m.onnx", "--map", "y=u", mentions=["version 1 ", "17"])


@pytest.mark.parametrize("connections, made", [(("a=b", "b=a"), [2, 4]), (("a=a", "b=b"), [-2, -4])])
def test_names_may_cross_when_models_are_joined(sardonyx, save, tmp_path, connections, made):
    first = save('<ir_version: 8, opset_import: ["" : 17]> g (float[2] x) => (float[2] a, float[2] b) { a = Neg (x)  b = Abs (x) }', "1.onnx")
    second = save('<ir_version: 8, opset_import: ["" : 17]> g (float[2] a, float[2] b) => (float[2] w) { w = Sub (a, b) }', "2.onnx")
    sardonyx("merge", first, second, tmp_path / "m.onnx", *(word for one in connections for word in ("--map", one)))
    onnx.checker.check_model(onnx.load(tmp_path / "m.onnx"), full_check=True)
    outputs = sardonyx.outputs(tmp_path / "m.onnx", {"x": np.array([1, 2], np.float32)}, tmp_path)
    np.testing.assert_array_equal(outputs[-1], made)


def test_merge_can_choose_outputs(sardonyx, save, tmp_path):
    first, second = save(FIRST, "first.onnx"), save(SECOND.replace("Neg", "Relu"), "second.onnx")
    sardonyx("merge", first, second, tmp_path / "m.onnx", "--map", "y=u", "--map", "k=v", "--output", "y", "--output", "w")
    model = onnx.load(tmp_path / "m.onnx")
    onnx.checker.check_model(model, full_check=True)
    assert names(model.graph.output) == ["y", "w"] and len(model.functions) == 1


def test_chosen_outputs_keep_inputs_with_a_default(sardonyx, save, tmp_path):
    """Up to IR version 3 all initializers are inputs, too."""
    first, second = (save(f"""<ir_version: 3, opset_import: ["" : 8]>
      g (float[2] x, float[2] w) => (float[2] y) <float[2] w = {{{value}, {value}}}> {{ y = Add (x, w) }}""", f"{value}.onnx") for value in (1, 2))
    sardonyx("merge", first, second, tmp_path / "m.onnx", "--map", "y=x", "--prefix1", "a_", "--prefix2", "b_", "--output", "b_y")
    model = onnx.load(tmp_path / "m.onnx")
    assert sorted(names(model.graph.initializer)) == ["a_w", "b_w"] and names(model.graph.input) == ["a_x", "a_w", "b_w"]
    x = np.array([1, -2], np.float32)
    np.testing.assert_array_equal(sardonyx.outputs(tmp_path / "m.onnx", {"a_x": x}, tmp_path)[0], x + 3)


@pytest.mark.parametrize("change, arguments, words", [
    (("\"\" : 17, \"f\": 1]>\n  two", "\"\" : 16, \"f\": 1]>\n  two"), ["--map", "y=u"], ["16", "17"]),
    (("float[N] u", "int64[N] u"), ["--map", "y=u"], ["int64"]),
    (("float[N] u", "float[N,2] u"), ["--map", "y=u"], ["'u'"]),
    (("t = f.act (u)", "x = f.act (u)"), ["--map", "y=u"], ["'x'", "--prefix"]),
    (("", ""), ["--map", "q=u"], ["no output 'q'", "'y'"]),
    (("", ""), ["--map", "y=q"], ["no input 'q'"]),
])
def test_what_cannot_be_merged(sardonyx, save, tmp_path, change, arguments, words):
    text = SECOND.replace("Neg", "Relu").replace(*change).replace("Add (t, v)", "Add (x, v)" if "x = f.act" in change[1] else "Add (t, v)")
    first, second = save(FIRST, "first.onnx"), save(text, "second.onnx")
    sardonyx.fails(BAD_INPUT, "merge", first, second, tmp_path / "m.onnx", *arguments, mentions=words)
    assert not (tmp_path / "m.onnx").exists()


# ---- rename and edit


def test_rename_reaches_subgraphs(sardonyx, chain, tmp_path):
    out = tmp_path / "r.onnx"
    sardonyx("rename", chain, out, "--value", "a=sum", "--value", "b=bias", "--node", "first=1st", "--dim", "N=batch")
    model = onnx.load(out)
    onnx.checker.check_model(model, full_check=True)
    assert model.graph.node[0].name == "1st" and list(model.graph.node[0].output) == ["sum"]
    branch = model.graph.node[1].attribute[0].g
    assert "sum" in branch.node[0].input
    assert model.graph.input[0].type.tensor_type.shape.dim[0].dim_param == "batch"
    x, c = np.ones((2, 4), np.float32), np.array(True)
    for a, b in zip(sardonyx.outputs(chain, {"x": x, "c": c}, tmp_path), sardonyx.outputs(out, {"x": x, "c": c}, tmp_path)):
        np.testing.assert_array_equal(a, b)


def test_names_can_be_swapped_but_not_joined(sardonyx, chain, tmp_path):
    sardonyx("rename", chain, tmp_path / "r.onnx", "--value", "x=z", "--value", "z=x")
    assert names(onnx.load(tmp_path / "r.onnx").graph.input)[0] == "z"
    sardonyx.fails(BAD_INPUT, "rename", chain, tmp_path / "s.onnx", "--value", "x=a", mentions=["'a'"])
    sardonyx.fails(BAD_INPUT, "rename", chain, tmp_path / "s.onnx", "--value", "absent=k", mentions=["'absent'"])
    sardonyx.fails(USAGE, "rename", chain, tmp_path / "s.onnx", "--value", "x", mentions=["OLD=NEW"])


def test_rename_functions_with_their_calls(sardonyx, save, tmp_path):
    sardonyx("rename", save(FIRST), tmp_path / "r.onnx", "--function", "act=relu")
    model = onnx.load(tmp_path / "r.onnx")
    onnx.checker.check_model(model)
    assert model.functions[0].name == "relu" and model.graph.node[0].op_type == "relu"


def test_edit(sardonyx, chain, tmp_path):
    out = tmp_path / "e.onnx"
    sardonyx("edit", chain, out, "--producer", "me", "--model-version", "3", "--doc", "two words", "--graph-name", "net",
             "--set-metadata", "com.example.key=a=b", "--domain", "com.example")
    model = onnx.load(out)
    assert (model.producer_name, model.model_version, model.doc_string, model.graph.name) == ("me", 3, "two words", "net")
    assert [(entry.key, entry.value) for entry in model.metadata_props] == [("com.example.key", "a=b")]
    sardonyx("edit", out, out, "--remove-metadata", "com.example.key")
    assert not onnx.load(out).metadata_props
    sardonyx.fails(BAD_INPUT, "edit", out, out, "--remove-metadata", "com.example.key", mentions=["com.example.key"])
