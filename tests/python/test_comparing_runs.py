"""`run --expect` by names, `diff --run`, and that runs with and without a plan fail alike."""

from __future__ import annotations

import json

import numpy as np
import pytest
from conftest import BAD_INPUT, FINDINGS, OK, USAGE, parse_json

HEAD = '<ir_version: 8, opset_import: ["" : 17]>'
CHAIN = f"""{HEAD} g (float[n] x) => (float[n] y) {{
  a = Add (x, x)
  b = Mul (a, x)
  c = Sqrt (b)
  y = Neg (c) }}"""
X = "x=1 2 3"


def chain(x):
    a = x + x
    b = a * x
    return {"x": x, "y": -np.sqrt(b), "c": np.sqrt(b), "b": b, "a": a}


@pytest.fixture
def values():
    return chain(np.array([1, 2, 3], np.float32))


def test_outputs_are_compared_by_name(sardonyx, save, values, tmp_path):
    model = save(CHAIN)
    np.savez(tmp_path / "e.npz", y=values["y"])
    assert "as expected" in sardonyx("run", model, "--input", X, "--expect", tmp_path / "e.npz").stdout
    np.savez(tmp_path / "e.npz", y=values["y"] + 1)
    assert "NOT as expected" in sardonyx("run", model, "--input", X, "--expect", tmp_path / "e.npz", expect=FINDINGS).stdout
    np.savez(tmp_path / "e.npz", z=values["y"])
    sardonyx.fails(BAD_INPUT, "run", model, "--input", X, "--expect", tmp_path / "e.npz", mentions=["no value", "y"])


def test_the_first_value_that_went_wrong_is_named(sardonyx, save, values, tmp_path):
    model = save(CHAIN)
    np.savez(tmp_path / "e.npz", **values)
    found = parse_json(sardonyx("run", model, "--input", X, "--expect", tmp_path / "e.npz", "--json"))
    assert found["comparison"]["compared"] == 4 and found["comparison"]["same"]
    assert [o["name"] for o in found["outputs"]] == ["y"]  # what is compared beside it is not told

    values["b"][1] = np.nan
    values["c"] = values["c"] * 2
    values["y"] = values["y"] * 2
    np.savez(tmp_path / "e.npz", **values)
    result = sardonyx("run", model, "--input", X, "--expect", tmp_path / "e.npz", expect=FINDINGS)
    assert "the first that does: 'b'" in result.stdout and "1 NaN" in result.stdout
    comparison = parse_json(sardonyx("run", model, "--input", X, "--expect", tmp_path / "e.npz", "--json",
                                     expect=FINDINGS))["comparison"]
    assert comparison["first_difference"] == "b" and comparison["differing"] == 3
    b = next(v for v in comparison["values"] if v["name"] == "b")
    assert b["expected"] == {"elements": 3, "min": 2, "max": 18, "nan": 1, "infinite": 0} and b["found"]["nan"] == 0


def test_what_the_run_does_not_make_differs(sardonyx, save, values, tmp_path):
    np.savez(tmp_path / "e.npz", y=values["y"], other=values["y"])
    result = sardonyx("run", save(CHAIN), "--input", X, "--expect", tmp_path / "e.npz", expect=FINDINGS)
    assert "other: is expected, but there is no such value" in result.stdout


def test_more_numbered_files_than_outputs_differ(sardonyx, save, values, tmp_path):
    folder = tmp_path / "data"
    folder.mkdir()
    np.save(folder / "output_0.npy", values["y"])
    run = ["run", save(CHAIN), "--input", X, "--expect", folder]
    sardonyx(*run)
    np.save(folder / "output_1.npy", values["y"])
    assert "output_1.npy: is expected, but there is no such value" in sardonyx(*run, expect=FINDINGS).stdout
    found = parse_json(sardonyx(*run, "--json", expect=FINDINGS))["comparison"]
    assert found["compared"] == 2 and found["differing"] == 1 and found["values"][1]["missing"]


def test_what_is_only_compared_does_not_decide_the_form(sardonyx, save, tmp_path):
    """A sequence between the nodes, which an .npz can't hold, and which is not written."""
    model = save(f"""{HEAD} g (float[n] x) => (float[n] y) {{
        a = Neg (x)
        s = SequenceConstruct (a)
        i = Constant <value = int64 {{0}}> ()
        b = SequenceAt (s, i)
        y = Neg (b) }}""")
    x = np.array([1, 2, 3], np.float32)
    np.savez(tmp_path / "e.npz", a=-x, y=x)
    sardonyx("run", model, "--input", X, "--expect", tmp_path / "e.npz", "--output", tmp_path / "o.npz")
    with np.load(tmp_path / "o.npz") as written:
        assert written.files == ["y"]
    sardonyx.fails(BAD_INPUT, "run", model, "--input", X, "--all-outputs", "--output", tmp_path / "o.npz", mentions=["'s'", "seq"])


def test_dumps_of_sequences_are_compared(sardonyx, save, tmp_path):
    model = save(f"{HEAD} g (float[n] x) => (seq(float[n]) y) {{ y = SequenceConstruct (x, x) }}")
    for name, value in (("a", "1 2"), ("b", "1 2"), ("c", "1 3")):
        sardonyx("run", model, "--input", f"x={value}", "--output", tmp_path / name)
    sardonyx("diff", "--run", tmp_path / "a", tmp_path / "b")
    assert "item 0: 1 of 2 elements differ" in sardonyx("diff", "--run", tmp_path / "a", tmp_path / "c", expect=FINDINGS).stdout


def test_what_is_expected_and_can_not_be_read_is_an_output(sardonyx, save, tmp_path):
    (tmp_path / "output_0.npy").write_text("text")
    sardonyx.fails(BAD_INPUT, "run", save(CHAIN), "--input", X, "--expect", tmp_path, mentions=["output 'y'", "output_0.npy"])


def test_two_dumps_are_compared(sardonyx, save, values, tmp_path):
    sardonyx("run", save(CHAIN), "--input", X, "--all-outputs", "--output", tmp_path / "ours.npz")
    folder = tmp_path / "theirs"
    folder.mkdir()
    for name in ("a", "b", "c", "y"):
        np.save(folder / f"{name}.npy", values[name])
    assert "0 differ" in sardonyx("diff", "--run", tmp_path / "ours.npz", folder).stdout
    np.save(folder / "b.npy", values["b"] + 1)
    np.save(folder / "more.npy", values["b"])
    result = sardonyx("diff", "--run", tmp_path / "ours.npz", folder, expect=FINDINGS)
    assert "2 differ" in result.stdout
    found = parse_json(sardonyx("diff", "--run", "--common", tmp_path / "ours.npz", folder, "--json", expect=FINDINGS))
    assert found["first_difference"] == "b" and found["differing"] == 1
    sardonyx("diff", "--run", "--common", tmp_path / "ours.npz", folder, "--atol", "1")
    sardonyx.fails(USAGE, "diff", "--common", tmp_path / "ours.npz", folder)
    for option in (["--no-weights"], ["--no-annotations"], ["--trust-folder", tmp_path]):
        sardonyx.fails(USAGE, "diff", "--run", tmp_path / "ours.npz", folder, *option, mentions=[option[0], "--run"])
    for option, number in (("--rtol", "-1"), ("--atol", "nan")):
        sardonyx.fails(BAD_INPUT, "diff", "--run", tmp_path / "ours.npz", folder, option, number, mentions=["negative", number])


BAD = {
    "broadcast": ("g (float[n] a, float[m] b) => (float[k] y) { t = Relu (a)  y = Add (t, b) }", ["a=1 2 3", "b=1 2 3 4"],
                  ["[3]", "[4]"]),
    "gelu": ("g (float[n,h] x, float[g] bias) => (float[n,h] y) { a = Add (x, bias)  s = Constant <value = float {1.4142135}> () "
             "d = Div (a, s)  e = Erf (d)  one = Constant <value = float {1.0}> ()  p = Add (e, one)  q = Mul (a, p) "
             "half = Constant <value = float {0.5}> ()  y = Mul (q, half) }", ["x=[[1,2]]", "bias=1 2 3"], ["[1,2]", "[3]"]),
    "matmul": ("g (float[a,b] x, float[c,d] w) => (float[a,d] y) { m = MatMul (x, w)  y = Relu (m) }",
               ["x=[[1,2,3]]", "w=[[1,2],[3,4]]"], ["MatMul", "3", "2"]),
    "gather": ("g (float[n,2] x, int64[k] i) => (float[k,2] y) { c = Gather (x, i)  y = Relu (c) }", ["x=[[1,2]]", "i=5"],
               ["Gather", "5"]),
    "reshape": ("g (float[n] x, int64[2] s) => (float[a,b] y) { r = Reshape (x, s)  y = Neg (r) }",
                ["x=1 2 3 4 5", "s=2 2"], ["Reshape", "5", "4"]),
    "concat": ("g (float[n,a] x, float[m,b] z) => (float[k,l] y) { c = Concat <axis=0> (x, z)  y = Relu (c) }",
               ["x=[[1,2]]", "z=[[1,2,3]]"], ["Concat", "2", "3"]),
    "conv": ("g (float[n,c,w] x, float[o,i,k] f) => (float[n,o,l] y) { t = Conv (x, f)  y = Relu (t) }",
             ["x=[[[1,2,3]]]", "f=[[[1],[1]]]"], ["channels", "1", "2"]),
    "gemm": ("g (float[a,b] x, float[c,d] w, float[e] bias) => (float[f,h] y) { t = Gemm <transB=1> (x, w, bias)  y = Relu (t) }",
             ["x=[[1,2]]", "w=[[1,2]]", "bias=1 2"], ["2"]),
    "names": ("g (float[n] x, float[n] z) => (float[n] y) { y = Add (x, z) }", ["x=1 2", "z=1 2 3"], ["'z'", "[3]", "'n' is 2"]),
    "loop": ("g (int64 n, float[k] x, float[m] z) => (float[l] y) { y = Loop (n, , x) < body = b (int64 i, bool c, float[p] v) "
             "=> (bool co, float[q] w) { co = Identity (c)  w = Add (v, z) } > }", ["n=2", "x=1 2", "z=1 2 3"], ["[2]", "[3]"]),
}


@pytest.mark.parametrize("name", BAD)
def test_plain_and_planned_runs_fail_alike(sardonyx, save, name):
    text, given, mentions = BAD[name]
    model = save(f"{HEAD} {text}")
    inputs = [word for one in given for word in ("--input", one)]
    planned, plain = (sardonyx("run", model, *inputs, *more, expect=None) for more in ([], ["--reference"]))
    assert planned.returncode == plain.returncode and planned.returncode in (BAD_INPUT, 7)
    for result in (planned, plain):
        assert result.stdout == "" and all(word in result.stderr for word in mentions), result.stderr


def test_types_that_do_not_fit_advise(sardonyx, save, tmp_path):
    model = save(f"{HEAD} g (float[2] x) => (float[2] y) {{ y = Relu (x) }}")
    np.save(tmp_path / "x.npy", np.zeros(2))
    for more in ([], ["--reference"]):
        sardonyx.fails(BAD_INPUT, "run", model, "--input", f"x={tmp_path}/x.npy", *more,
                       mentions=["holds double", "float[2]", "astype(np.float32)"])


@pytest.mark.parametrize("text, wrong, right", [
    ("g (float32[2] x) => (float[2] y) { y = Relu (x) }", "float32", "float"),
    ("g (float[2] x) => (float64[2] y) { y = Relu (x) }", "float64", "double"),
    ("g (float[2] x) => (float[2] y) { c = Constant <value = half[1] {1}> ()  y = Relu (x) }", "half", "float16"),
    ("g (float[2] x) => (float[2] y) <int w = {1}> { y = Relu (x) }", "int", "int64"),
    ("g (seq(str) x) => (float[2] y) { y = Relu (x) }", "str", "string"),
    ("g (F16[2] x) => (float[2] y) { y = Relu (x) }", "F16", "float16"),
])
def test_types_by_other_names(sardonyx, tmp_path, text, wrong, right):
    (tmp_path / "m.onnxtxt").write_text(f"{HEAD} {text}")
    message = sardonyx("info", tmp_path / "m.onnxtxt", expect=None).stderr
    assert f"the type '{wrong}' is written '{right}' here" in message


def test_bodies_are_explained(sardonyx, save):
    model = save(f"{HEAD} g (bool c, float[n] x) => (float[n] y) {{ y = If (c) < then_branch = t () => (float[n] a) "
                 "{ s = Relu (x)  a = Sqrt (s) }, else_branch = e () => (float[n] b) { b = Neg (x) } > }")
    text = sardonyx("explain", model).stdout
    assert "then_branch:" in text and "else_branch:" in text and "Neg" in text
    (step,) = parse_json(sardonyx("explain", model, "--json"))["steps"]
    assert [body["name"] for body in step["bodies"]] == ["then_branch", "else_branch"]
    assert step["bodies"][1]["steps"][0]["node"].startswith("Neg")


def test_long_metadata_is_cut(sardonyx, affine, tmp_path):
    sardonyx("edit", affine, tmp_path / "m.onnx", "--set-metadata", "words=" + "ä" * 5000, "--doc", "d" * 9000)
    text = sardonyx("info", tmp_path / "m.onnx").stdout
    assert len(text) < 2000 and "10,000 bytes; --full" in text
    assert "ä" * 5000 in sardonyx("info", tmp_path / "m.onnx", "--full").stdout
    assert parse_json(sardonyx("info", tmp_path / "m.onnx", "--json"))["metadata"][0]["value"] == "ä" * 5000


@pytest.mark.parametrize("command", ["run", "check", "infer", "explain"])
def test_a_version_where_a_document_is_wanted(sardonyx, affine, command):
    sardonyx.fails(USAGE, command, affine, "--opset", "17", mentions=["--opset", "document", "convert MODEL OUTPUT --opset 17"])
