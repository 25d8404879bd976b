"""Versions beyond the known ones, and advice that knows the other versions of an operator."""

import onnx
import pytest
from onnx import helper

from conftest import FINDINGS, INVALID_MODEL, OK, UNSUPPORTED

RELU = '<ir_version: 10, opset_import: ["": 21]> g (float[2] x) => (float[2] y) { y = Relu (x) }'


def errors(sardonyx, path, *options):
    result = sardonyx("check", path, *options, expect=None)
    return [line for line in result.stdout.splitlines() if line.startswith("error: ")]


def changed(path, **fields):
    model = onnx.load(path)
    for name, value in fields.items():
        if name == "imports":
            for domain, version in value:
                model.opset_import.append(helper.make_opsetid(domain, version))
        else:
            setattr(model, name, value)
    onnx.save(model, path)
    return path


@pytest.mark.parametrize("version", [15, 1001, 2**40, 2**62])
def test_unknown_ir_versions_are_judged_by_the_newest_rules(sardonyx, save, version):
    path = changed(save('<ir_version: 10, opset_import: ["": 21]> g (float[2] x) => (float[2] y) { y = Relu (z) }'), ir_version=version)
    found = errors(sardonyx, path)
    assert any(f"the newest known IR version is 14; found {version}" in line and "[M-03]" in line for line in found)
    assert any("[D-08]" in line for line in found), found


@pytest.mark.parametrize("fields, text", [
    ({"ir_version": 15}, "the newest known IR version is 14; found 15"),
    ({"ir_version": 2**40}, "the newest known IR version is 14; found"),
])
def test_check_and_run_agree_on_ir_versions(sardonyx, save, fields, text):
    path = changed(save(RELU), **fields)
    [line] = errors(sardonyx, path)
    message = sardonyx.fails(UNSUPPORTED, "run", path)
    assert text in line and text in message and "set" not in message.split(":")[0]
    assert line.removeprefix("error: ") in message


@pytest.mark.parametrize("text", [
    RELU.replace("21", "99"),
    '<ir_version: 10, opset_import: ["": 21, "ai.onnx.ml": 99]> g (float[2] x) => (float[2] y) '
    "{ y = ai.onnx.ml.Normalizer (x) }",
    '<ir_version: 10, opset_import: ["": 21, "own": 1]> g (float[2] x) => (float[2] y) { y = own.f (x) } '
    '<domain: "own", opset_import: ["": 99]> f (a) => (b) { b = Relu (a) }',
])
def test_check_and_run_agree_on_newer_opsets(sardonyx, save, text):
    path = save(text)
    found = [line for line in errors(sardonyx, path) if "[M-12]" in line]
    assert len(found) == 1
    assert "the newest known version of ai.onnx" in found[0] and "imports 99" in found[0]
    message = sardonyx.fails(UNSUPPORTED, "run", path)
    assert found[0].removeprefix("error: ").split(" [M-12]")[0] in message


@pytest.mark.parametrize("domain", ["ai.onnx.ml", "ai.onnx.preview.training", "com.microsoft", "com.example"])
def test_imports_that_no_node_needs(sardonyx, save, tmp_path, domain):
    path = changed(save(RELU), imports=[(domain, 99)])
    assert sardonyx("check", path).returncode == OK
    sardonyx("convert", path, tmp_path / "new.onnx", "--opset", 22)
    imports = {entry.domain: entry.version for entry in onnx.load(tmp_path / "new.onnx").opset_import}
    assert imports == {"": 22, domain: 99}


@pytest.mark.parametrize("target", [20, 21, 28])
def test_models_of_newer_opsets_are_not_converted(sardonyx, save, tmp_path, target):
    sardonyx.fails(UNSUPPORTED, "convert", save(RELU.replace("21", "99")), tmp_path / "new.onnx", "--opset", target,
                   mentions=["newest known version of ai.onnx"])
    empty = save('<ir_version: 10, opset_import: ["": 99]> g (float[2] x) => (float[2] x) { }', "empty.onnx")
    sardonyx.fails(UNSUPPORTED, "convert", empty, tmp_path / "new.onnx", "--opset", target, mentions=["imports 99"])


ADVICE = {
    "an input since": (21, "ReduceSum <axes = [1]> (x)", "'axes' is an input since version 13: give it as input 1"),
    "an input of another name": (21, "Pad <value = 1.0> (x, k)", "'constant_value' is an input since version 11"),
    "not yet an attribute": (21, 'Cast <to = 1, round_mode = "up"> (x)', "it is an attribute since version 24"),
    "removed": (9, "BatchNormalization <spatial = 1> (x, v, v, v, v)", "it was removed in version 9"),
    "renamed": (9, "Pad <paddings = [0, 0, 1, 1], pads = [0, 0, 1, 1]> (x)", "which has 'pads' instead"),
    "misspelt": (21, "Softmax <axes = 1> (x)", "did you mean 'axis'?"),
    "not yet an input": (9, "Clip (x, x)", "'min' is an input since version 11; here it is the attribute 'min'"),
    "no longer an attribute": (21, "Unsqueeze (x)", "the attribute 'axes' is this input since version 13"),
    "another kind": (9, 'Cast <to = "FLOAT"> (x)', "it was of type string before version 6"),
}


@pytest.mark.parametrize("name", ADVICE)
def test_advice_knows_other_versions(sardonyx, save, name):
    opset, node, advice = ADVICE[name]
    path = save(f'<ir_version: 10, opset_import: ["": {opset}]> g (float[2, 3] x, float[2] v, int64[4] k) => (float[a, b] y) '
                f"{{ y = {node} }}")
    text = "\n".join(errors(sardonyx, path))
    assert advice in text and "node 0 " in text and "making 'y'" in text, text


def test_outputs_that_came_later(sardonyx, save):
    path = save('<ir_version: 10, opset_import: ["": 7]> g (float[1, 1, 4] x) => (float[1, 1, 4] y) '
                "{ y, at = MaxPool <kernel_shape = [1]> (x) }")
    assert "output 1 ('Indices') came with version 8" in errors(sardonyx, path)[0]


def test_cycles_are_said_to_be_cycles(sardonyx, save, tmp_path):
    path = save('<ir_version: 10, opset_import: ["": 21]> g (float[2] x) => (float[2] y) '
                "{ a = Add (x, c)  b = Relu (a)  c = Neg (b)  y = Abs (c) }")
    cycle = "found node 0 Add making 'a' -> node 1 Relu making 'b' -> node 2 Neg making 'c' -> node 0"
    [line] = errors(sardonyx, path)
    assert cycle in line and "[G-02]" in line
    assert cycle in sardonyx.fails(INVALID_MODEL, "run", path)
    assert cycle in sardonyx.fails(INVALID_MODEL, "convert", path, tmp_path / "new.onnx", "--opset", 22)


def test_unnamed_nodes_are_named_by_index_and_output(sardonyx, save):
    path = save('<ir_version: 10, opset_import: ["": 21]> g (float[2, 3] x) => (float[a, b] y) '
                "{ z = Relu (x)  y = Concat <axis = 7> (z, z) }")
    result = sardonyx("check", path, "--full", expect=FINDINGS)
    assert "graph 'g', node 1 Concat making 'y'" in result.stdout
    assert "Concat making 'y'" in sardonyx("infer", path, expect=FINDINGS).stdout


def test_strict_looks_at_types_and_external_data(sardonyx, save):
    path = save('<ir_version: 10, opset_import: ["": 21]> g (float[2] x) => (float[3] y) { y = Relu (x) }')
    assert not errors(sardonyx, path)
    assert ["[G-20]" in line for line in errors(sardonyx, path, "--strict")] == [True]
    model = onnx.load(path)
    model.graph.output[0].type.tensor_type.shape.dim[0].dim_value = 2
    far = model.graph.initializer.add(name="far", data_type=1, dims=[2], data_location=onnx.TensorProto.EXTERNAL)
    far.external_data.add(key="location", value="nowhere.bin")
    onnx.save_model(model, path)
    assert not errors(sardonyx, path)
    assert ["[XD-06]" in line for line in errors(sardonyx, path, "--strict")] == [True]
