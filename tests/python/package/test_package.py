"""The package as it is installed, its types, and the names of its extension."""

from __future__ import annotations

import ast
import json
import os
import pathlib
import shutil
import subprocess
import sys

import pytest

from .conftest import PACKAGE, ROOT

SOURCES = ROOT / "python" / "sardonyx"


@pytest.fixture(scope="module")
def installed(tmp_path_factory) -> pathlib.Path:
    """What `pip install` puts into a wheel, by the rule of installing that a wheel is made by."""
    folder = tmp_path_factory.mktemp("installed")
    subprocess.run([shutil.which("cmake"), "--install", PACKAGE.parent, "--component", "python", "--prefix", folder], check=True,
                   capture_output=True)
    return folder


def test_an_installed_package_is_complete(installed):
    names = {str(path.relative_to(SOURCES)) for path in SOURCES.rglob("*") if path.suffix in (".py", ".pyi") or path.name == "py.typed"}
    there = {str(path.relative_to(installed / "sardonyx")) for path in (installed / "sardonyx").rglob("*") if path.is_file()}
    assert names <= there
    assert [name for name in there - names if not name.startswith("_core")] == []
    assert not any(path.is_symlink() for path in installed.rglob("*"))


def test_an_installed_package_runs(installed, environment):
    code = ("import numpy as np, sardonyx; m = sardonyx.Model.from_text('<ir_version: 8, opset_import: [\"\" : 17]> "
            "g (float[n] x) => (float[n] y) { y = Add(x, x) }'); print(sardonyx.Session(m)([1, 2])[1], sardonyx.__version__, sardonyx.__file__)")
    made = subprocess.run([sys.executable, "-c", code], env=dict(environment, PYTHONPATH=str(installed)), text=True, capture_output=True)
    assert made.returncode == 0, made.stderr
    value, version, file = made.stdout.split()
    assert value == "4.0" and file.startswith(str(installed)) and version in (ROOT / "CMakeLists.txt").read_text()


def test_the_extension_shows_its_entry_alone():
    """Another copy of Sardonyx, or of what it is linked to, may be in the same process."""
    (extension,) = PACKAGE.glob("sardonyx/_core*.so")
    made = subprocess.run(["nm", "-D", "--defined-only", extension], capture_output=True, text=True, check=True)
    strong = [line.split()[-1] for line in made.stdout.splitlines() if line.split()[1] in "TDBR"]
    assert strong == ["PyInit__core"]


def test_types_hold():
    pytest.importorskip("mypy", reason="mypy is not installed")
    made = subprocess.run([sys.executable, "-m", "mypy", "--config-file", ROOT / "pyproject.toml"], cwd=ROOT, capture_output=True,
                          text=True, env=dict(os.environ, MYPY_CACHE_DIR=str(PACKAGE.parent / "mypy")))
    assert made.returncode == 0, made.stdout + made.stderr


STRICT = """
import onnxruntime
from onnxruntime import InferenceSession, OrtValue, SessionOptions
from onnxruntime.capi.onnxruntime_pybind11_state import InvalidArgument, OrtValueVector

session: InferenceSession = InferenceSession("digits.onnx", SessionOptions())
values: list[OrtValue] = session.run_with_ort_values(None, {})
print(session, values, InvalidArgument, OrtValueVector(values), onnxruntime.get_device())
"""


def test_types_hold_in_programs_of_onnxruntime(tmp_path):
    """Whose import is the one thing that is changed."""
    pytest.importorskip("mypy", reason="mypy is not installed")
    (tmp_path / "program.py").write_text(STRICT.replace("import onnxruntime\n", "import sardonyx.compat.onnxruntime as onnxruntime\n")
                                         .replace("from onnxruntime", "from sardonyx.compat.onnxruntime"))
    made = subprocess.run([sys.executable, "-m", "mypy", "--strict", "--config-file", "/dev/null", tmp_path / "program.py"],
                          capture_output=True, text=True,
                          env=dict(os.environ, MYPYPATH=str(PACKAGE), MYPY_CACHE_DIR=str(PACKAGE.parent / "mypy-programs")))
    assert made.returncode == 0, made.stdout + made.stderr


def pyright(*words, cwd) -> str:
    """Pyright's checker, in the package that brings it with all it needs."""
    pytest.importorskip("basedpyright", reason="basedpyright is not installed")
    folder = pathlib.Path(sys.executable).parent  # the first `python` on the path is asked for its packages
    made = subprocess.run([folder / "basedpyright", *words], cwd=cwd, capture_output=True, text=True,
                          env=dict(os.environ, PYTHONPATH=str(PACKAGE), PATH=f"{folder}{os.pathsep}{os.environ['PATH']}"))
    return made.stdout + made.stderr


def test_types_are_complete(tmp_path):
    """All that the package exports has a type that every checker sees alike."""
    found = pyright("--verifytypes", "sardonyx", "--ignoreexternal", cwd=tmp_path)
    assert "Type completeness score: 100%" in found, found


OWN = """
import asyncio

import numpy as np

import sardonyx

model = sardonyx.Model("digits.onnx")
session = sardonyx.Session(model, threads=2)
image = np.zeros((1, 1, 16, 16), np.float32)
print(session.run({"image": image})["probabilities"], sardonyx.check(model).ok, sardonyx.infer_shapes("digits.onnx"))
training = sardonyx.TrainingSession(sardonyx.make_trainable("digits.onnx", loss="softmax-cross-entropy"))
print(training.step({"image": image}))


async def main() -> None:
    print(await session.run_async({"image": image}))


asyncio.run(main())
"""


def test_strict_programs_hold(tmp_path):
    (tmp_path / "pyrightconfig.json").write_text(json.dumps({"typeCheckingMode": "strict", "extraPaths": [str(PACKAGE)]}))
    (tmp_path / "own.py").write_text(OWN)
    (tmp_path / "theirs.py").write_text(STRICT.replace("import onnxruntime\n", "import sardonyx.compat.onnxruntime as onnxruntime\n")
                                        .replace("from onnxruntime", "from sardonyx.compat.onnxruntime"))
    found = pyright("-p", ".", cwd=tmp_path)
    assert "0 errors" in found, found


def test_the_stub_names_what_the_extension_has():
    import sardonyx

    tree = ast.parse((SOURCES / "_core.pyi").read_text())
    stub = {node.name: node for node in tree.body if isinstance(node, (ast.ClassDef, ast.FunctionDef))}
    core = sardonyx._core
    assert set(stub) == {name for name in dir(core) if not name.startswith("__")}
    for name, node in stub.items():
        if isinstance(node, ast.ClassDef):
            said = {one.name for one in node.body if isinstance(one, ast.FunctionDef)}
            said |= {one.target.id for one in node.body if isinstance(one, ast.AnnAssign)}
            assert {one for one in said if not one.startswith("__")} == {one for one in vars(getattr(core, name)) if not one.startswith("__")}, name


def test_everything_public_is_explained():
    import sardonyx

    for name in sardonyx.__all__:
        assert getattr(sardonyx, name).__doc__, name
    assert sardonyx.Session.run.__doc__
