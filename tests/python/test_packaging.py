"""The recipes under packaging/ name all that a build of the libraries and the program reads."""

from __future__ import annotations

import ast
import pathlib
import re
import shutil
import subprocess

import pytest
from conftest import ROOT


def exported_patterns() -> list[str]:
    """What the recipe of Conan copies into its package of sources."""
    tree = ast.parse((ROOT / "packaging" / "conan" / "conanfile.py").read_text())
    exporting = next(node for node in ast.walk(tree) if isinstance(node, ast.FunctionDef) and node.name == "export_sources")
    loop = next(node for node in exporting.body if isinstance(node, ast.For))
    return ast.literal_eval(loop.iter)


@pytest.mark.skipif(shutil.which("ninja") is None, reason="ninja is not installed")
def test_the_sources_that_conan_exports_are_all_that_a_build_reads(tmp_path):
    """Nothing is compiled: Ninja finds out that a file is missing before it begins."""
    sources = tmp_path / "sources"
    for pattern in exported_patterns():
        for found in ROOT.glob(pattern):
            place = sources / found.relative_to(ROOT)
            place.parent.mkdir(parents=True, exist_ok=True)
            shutil.copytree(found, place) if found.is_dir() else shutil.copy(found, place)
    configure = ["cmake", "-S", sources, "-B", tmp_path / "build", "-G", "Ninja", "-DCMAKE_BUILD_TYPE=Release",
                 "-DSARDONYX_BUILD_TESTS=OFF", "-DSARDONYX_BUILD_CLI=ON"]
    for command in (configure, ["ninja", "-C", tmp_path / "build", "-n"]):
        made = subprocess.run(command, capture_output=True, text=True)
        assert made.returncode == 0, made.stdout[-2000:] + made.stderr


def test_both_recipes_build_the_same_version_from_the_same_libraries():
    recipe = (ROOT / "packaging" / "conan" / "conanfile.py").read_text()
    port = (ROOT / "packaging" / "vcpkg" / "sardonyx" / "vcpkg.json").read_text()
    version = re.search(r"project\(sardonyx VERSION ([0-9.]+)", (ROOT / "CMakeLists.txt").read_text())[1]
    assert f'"{version}"' in port
    names = {"libjpeg-turbo": "libjpeg-turbo", "nlohmann_json": "nlohmann-json"}
    for name in re.findall(r'self\.requires\("([\w-]+)/', recipe):
        assert f'"{names.get(name, name)}"' in port, name
    for file in re.findall(r'"\$\{SOURCE_PATH\}/([\w./]+)"', (ROOT / "packaging/vcpkg/sardonyx/portfile.cmake").read_text()):
        assert pathlib.Path(ROOT / file).exists(), file
