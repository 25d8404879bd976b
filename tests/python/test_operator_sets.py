"""Operator set documents: what they say, and models that use them."""

from __future__ import annotations

import numpy as np
import onnx
import pytest
from conftest import FINDINGS, INVALID_MODEL, UNSUPPORTED, USAGE, parse_json
from onnx import onnx_operators_pb as operators
from onnx import parser

DOMAIN = "com.example"


def document(**fields):
    made = operators.OperatorSetProto(magic="ONNXOPSET", ir_version=10, domain=DOMAIN, opset_version=3)
    for name, value in fields.items():
        setattr(made, name, value)
    return made


def body(text, since):
    function = parser.parse_function(text)
    made = operators.FunctionProto() if hasattr(operators, "FunctionProto") else onnx.FunctionProto()
    made.ParseFromString(function.SerializeToString())
    # since_version is field 2, which newer editions of the message no longer name.
    return made.SerializeToString() + bytes([0x10, since])


@pytest.fixture
def twice(tmp_path):
    """Twice has a body that calls Half, which has one too; Opaque has none."""
    made = document()
    made.operator.add(op_type="Opaque", since_version=2, status=operators.OperatorProto.DESCRIPTOR.fields_by_name["status"].enum_type.values_by_name["STABLE"].number)
    content = made.SerializeToString()
    for text, since in ((f'<domain: "{DOMAIN}", opset_import: ["" : 17, "{DOMAIN}": 3]> Twice (a) => (b) {{ h = {DOMAIN}.Half (a)  q = Add (h, h)  b = Add (q, q) }}', 3),
                        (f'<domain: "{DOMAIN}", opset_import: ["" : 17]> Half (a) => (b) {{ c = Constant <value = float {{0.5}}> ()  b = Mul (a, c) }}', 1)):
        function = body(text, since)
        content += bytes([9 << 3 | 2, len(function) & 0x7f | 0x80, len(function) >> 7]) + function
    path = tmp_path / "example.opset"
    path.write_bytes(content)
    return path


@pytest.fixture
def model(save):
    return save(f"""<ir_version: 8, opset_import: ["" : 17, "{DOMAIN}": 3]>
        g (float[2] x) => (float[2] y) {{ y = {DOMAIN}.Twice (x) }}""")


def test_shown_and_checked(sardonyx, twice):
    text = sardonyx("opset", twice).stdout
    assert f"{DOMAIN} version 3" in text and "Twice-3" in text and "Half-1" in text and "Opaque-2" in text and "O-22" in text
    report = parse_json(sardonyx("opset", twice, "--json"))
    assert [op["body"] for op in report["operators"]] == [False, True, True]


def test_a_model_runs_through_the_bodies(sardonyx, twice, model, tmp_path):
    x = np.array([1, -3], np.float32)
    outputs = sardonyx.outputs(model, {"x": x}, tmp_path, "--operator-set", twice)
    np.testing.assert_array_equal(outputs[0], 2 * x)
    sardonyx.fails(UNSUPPORTED, "run", model, "--input", "x=1 2")


def test_a_model_is_checked_through_them(sardonyx, save, twice, model):
    assert "D-25" in sardonyx("check", model).stdout
    assert "D-25" not in sardonyx("check", model, "--operator-set", twice).stdout
    bad = save(f"""<ir_version: 8, opset_import: ["" : 17, "{DOMAIN}": 3]>
        g (float[2] x) => (float[2] y) {{ y = {DOMAIN}.Twice (x, x, x) }}""", "bad.onnx")
    assert "F-24" in sardonyx("check", bad, "--operator-set", twice, expect=FINDINGS).stdout
    unknown = save(f"""<ir_version: 8, opset_import: ["" : 17, "{DOMAIN}": 3]>
        g (float[2] x) => (float[2] y) {{ y = {DOMAIN}.Thrice (x) }}""", "unknown.onnx")
    assert "no operator Thrice" in sardonyx("check", unknown, "--operator-set", twice, expect=FINDINGS).stdout
    opaque = save(f"""<ir_version: 8, opset_import: ["" : 17, "{DOMAIN}": 3]>
        g (float[2] x) => (float[2] y) {{ y = {DOMAIN}.Opaque (x) }}""", "opaque.onnx")
    assert "O-22" in sardonyx("check", opaque, "--operator-set", twice).stdout
    mixed = save(f"""<ir_version: 8, opset_import: ["" : 17, "{DOMAIN}": 3]>
        g (float[2] x) => (float[2] y) {{ t = {DOMAIN}.Opaque (x)  y = {DOMAIN}.Twice (t) }}""", "mixed.onnx")
    report = sardonyx("check", mixed, "--operator-set", twice).stdout
    assert "O-22" in report and "O-04" not in report and "D-25" not in report
    both = save(f"""<ir_version: 8, opset_import: ["" : 17, "{DOMAIN}": 3]>
        g (float[2] x) => (float[2] y) {{ t = {DOMAIN}.Thrice (x)  y = {DOMAIN}.Twice (t) }}""", "both.onnx")
    assert sardonyx("check", both, "--operator-set", twice, expect=FINDINGS).stdout.count("O-04") == 1
    absent = save(f"""<ir_version: 8, opset_import: ["" : 17]>
        g (float[2] x) => (float[2] y) {{ y = {DOMAIN}.Twice (x) }}""", "absent.onnx")
    assert "is not imported" in sardonyx("check", absent, "--operator-set", twice, expect=FINDINGS).stdout
    other = save(f"""<ir_version: 8, opset_import: ["" : 17, "{DOMAIN}": 2]>
        g (float[2] x) => (float[2] y) {{ y = {DOMAIN}.Twice (x) }}""", "other.onnx")
    assert "version 2" in sardonyx("check", other, "--operator-set", twice, expect=FINDINGS).stdout


def test_a_model_is_inferred_through_them(sardonyx, save, twice, tmp_path):
    model = save(f"""<ir_version: 10, opset_import: ["" : 17, "{DOMAIN}": 3]>
        g (float[N] x) => (y) {{ y = {DOMAIN}.Twice (x) }}""")
    report = parse_json(sardonyx("infer", model, "--operator-set", twice, "--json"))
    assert {value["name"]: value["type"] for value in report["values"]}["y"] == "float[N]"
    written = tmp_path / "typed.onnx"
    sardonyx("infer", model, "--operator-set", twice, "-o", written)
    typed = onnx.load(written)
    assert not typed.functions and typed.graph.output[0].type.tensor_type.shape.dim[0].dim_param == "N"
    sardonyx("infer", model, "--operator-set", twice, "--in-place")
    assert not onnx.load(model).functions


def test_functions_of_the_model_come_first(sardonyx, save, twice, tmp_path):
    model = save(f"""<ir_version: 8, opset_import: ["" : 17, "{DOMAIN}": 3]>
        g (float[2] x) => (float[2] y) {{ y = {DOMAIN}.Twice (x) }}
        <domain: "{DOMAIN}", opset_import: ["" : 17]> Twice (a) => (b) {{ b = Neg (a) }}""")
    outputs = sardonyx.outputs(model, {"x": np.ones(2, np.float32)}, tmp_path, "--operator-set", twice)
    np.testing.assert_array_equal(outputs[0], [-1, -1])


@pytest.mark.parametrize("fields, rule", [
    (dict(ir_version=99), "O-17"),
    (dict(opset_version=0), "O-01"),
    (dict(opset_version=1), "O-08"),
])
def test_broken_headers(sardonyx, tmp_path, fields, rule):
    made = document(**fields)
    made.operator.add(op_type="Op", since_version=2)
    path = tmp_path / "broken.opset"
    path.write_bytes(made.SerializeToString())
    assert f"[{rule}]" in sardonyx("opset", path, expect=FINDINGS).stdout


@pytest.mark.parametrize("operators_, rule", [
    ([("", 1)], "O-20"), ([("Op", 0)], "O-20"), ([("Op", 4)], "O-08"), ([("Op", 1), ("Op", 1)], "O-21")])
def test_broken_operators(sardonyx, tmp_path, operators_, rule):
    made = document()
    for name, since in operators_:
        made.operator.add(op_type=name, since_version=since)
    path = tmp_path / "broken.opset"
    path.write_bytes(made.SerializeToString())
    assert f"[{rule}]" in sardonyx("opset", path, expect=FINDINGS).stdout


def test_what_is_no_document(sardonyx, model, twice, tmp_path):
    sardonyx.fails(INVALID_MODEL, "opset", model, mentions=["ONNXOPSET"])
    made = document(doc_string="another")
    (tmp_path / "other.opset").write_bytes(made.SerializeToString())
    sardonyx.fails(INVALID_MODEL, "run", model, "--operator-set", twice, "--operator-set", tmp_path / "other.opset", "--input", "x=1 2",
                   mentions=["O-02"])
    assert "operator set document" in sardonyx.fails(INVALID_MODEL, "check", twice)


@pytest.mark.parametrize("domain, version", [("ai.onnx", 0), ("ai.onnx", 13), ("ai.onnx", 17), ("ai.onnx.ml", 0)])
def test_our_operator_sets_as_documents(sardonyx, tmp_path, domain, version):
    path = tmp_path / "set.onnx"
    sardonyx("opset", path, "--export", domain, *(["--version", version] if version else []))
    made = operators.OperatorSetProto()
    made.ParseFromString(path.read_bytes())
    assert made.magic == "ONNXOPSET" and made.domain == ("" if domain == "ai.onnx" else domain)
    expected = {}
    for schema in onnx.defs.get_all_schemas_with_history():
        if schema.domain != made.domain or schema.since_version > made.opset_version:
            continue
        if schema.since_version >= expected.get(schema.name, (0, False))[0]:
            expected[schema.name] = schema.since_version, schema.deprecated
    expected = {name: since for name, (since, deprecated) in expected.items() if not deprecated}
    found = {op.op_type: op.since_version for op in made.operator}
    report = parse_json(sardonyx("opset", path, "--json"))
    assert {finding["severity"] for finding in report["findings"]} <= {"info"}
    found = {op["name"]: op["since"] for op in report["operators"]}
    missing = {name for name in expected if name not in found}
    assert not missing and {name: found[name] for name in expected} == expected
    for name in ("set.json", "set.textproto"):
        sardonyx("opset", path, "--convert", tmp_path / name)
        sardonyx("opset", tmp_path / name, "--convert", tmp_path / "again.onnx")
        assert (tmp_path / "again.onnx").read_bytes() == path.read_bytes()
    sardonyx.fails(USAGE, "opset", path, "--version", "3")
