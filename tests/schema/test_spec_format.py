"""The grammar of spec/ (docs/spec_format.md), and spec/ against the package it was generated from."""

import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT / "tools"))
import spec_format as spec  # noqa: E402
import spec_to_cc  # noqa: E402

SETS = spec.TypeSets(ROOT / "spec/type_sets.txt")


def read(tmp_path, text):
    path = tmp_path / "Op.txt"
    path.write_text(text, encoding="utf-8")
    return spec.Reader(SETS).read_file(path)[1]


def test_spec_is_what_the_package_says():
    pytest.importorskip("onnx")
    done = subprocess.run([sys.executable, ROOT / "tools/generate_spec.py", "--verify"], capture_output=True, text=True)
    assert done.returncode == 0, done.stdout + done.stderr
    assert "659 signatures of 227 operators compared, 0 differences" in done.stdout


def test_a_version_like_another(tmp_path):
    newest, middle, oldest = read(
        tmp_path,
        """Op
        since 9
          in a: T
          in b: int64 optional
          out c: T
          attr axes: ints = [0, -1]     # a comment
          attr mode: string = "a, b#c"
          attr e: float = 1e-5
          where T in float_ieee seq(index)
          differentiable a -> c
          not differentiable b ->
          builder 9 12
        since 7 like 9, no in b, attr axes: ints = [2, 3], where T in float, body 8, deprecated
        since 1 like 7, no differentiable, no body, no deprecated, in a: T variadic(2) mixed
        """,
    )
    assert newest.attributes["axes"].default == [0, -1]
    assert newest.attributes["mode"].default == "a, b#c"
    assert newest.attributes["e"].default == spec.float32(1e-5) != 1e-5
    assert newest.constraints["T"] == {
        "tensor(float16)", "tensor(float)", "tensor(double)", "seq(tensor(int32))", "seq(tensor(int64))"
    }  # fmt: skip
    assert (newest.builder, newest.body) == ((9, 12), ())
    assert spec.arity(newest.inputs) == (1, 2)
    assert [formal.name for formal in middle.inputs] == ["a"]
    assert middle.not_differentiable == ((), ())
    assert (middle.builder, middle.body, middle.deprecated) == ((), (8,), True)
    assert middle.attributes["axes"].default == [2, 3]
    assert (oldest.body, oldest.deprecated, oldest.differentiable) == ((), False, ((), ()))
    assert spec.arity(oldest.inputs) == (2, spec.UNLIMITED)
    assert oldest.inputs[0].mixed


@pytest.mark.parametrize(
    "statement, complaint",
    [
        ("in a T", "expected 'name: type'"),
        ("in a: U", "which no 'where' defines"),
        ("in a: float_ieee seq(float)", "more than one type"),
        ("in a: seq(quux)", "'quux' is no element type"),
        ("in a: seq(float", "expected types and ')'"),
        ("where T in", "expected 'where T in types'"),
        ("attr a: integer", "expected 'name: kind"),
        ("attr a: int = x", "cannot read the default"),
        ("attr a: int = 1.5", "no default of kind int"),
        ("attr a: ints = 1", "is a list"),
        ("no attr a", "there is no 'attr a'"),
        ("no nonsense", "cannot remove"),
        ("inputs 2", "expected 'least..most'"),
        ("differentiable a", "expected 'inputs -> outputs'"),
        ("nonsense", "cannot read 'nonsense'"),
        ("since 2 like 3", "version 3 is not above"),
        ("since 1", "occurs twice"),
        ("since one", "expected 'since N'"),
    ],
)
def test_what_is_wrong_is_said_with_its_place(tmp_path, statement, complaint):
    with pytest.raises(spec.SpecError) as error:
        read(tmp_path, f"Op\nsince 1\n{statement}\n")
    assert complaint in str(error.value)
    assert "Op.txt:" in str(error.value)


def test_type_bits_follow_the_layers():
    float_tensor = spec_to_cc.type_bits("tensor(float)")
    assert spec_to_cc.type_bits("seq(tensor(float))") & 7 == 3
    assert spec_to_cc.type_bits("map(int64, float)") == spec_to_cc.type_bits("map(int64, tensor(float))")
    assert len({float_tensor, *map(spec_to_cc.type_bits, ("tensor(uint8)", "sparse_tensor(float)"))}) == 3
