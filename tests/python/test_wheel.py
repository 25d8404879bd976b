"""What pip builds from: the source archive is whole, and pyproject.toml says what the build does. ./dev wheel tries wheels."""

from __future__ import annotations

import importlib.util
import pathlib
import re
import subprocess
import sys
import tarfile

import pytest
from conftest import ROOT

PROJECT = (ROOT / "pyproject.toml").read_text()


@pytest.fixture(scope="module")
def archive(tmp_path_factory) -> pathlib.Path:
    pytest.importorskip("scikit_build_core")
    folder = tmp_path_factory.mktemp("sdist")
    script = f"import scikit_build_core.build as build; print(build.build_sdist({str(folder)!r}))"
    made = subprocess.run([sys.executable, "-c", script], cwd=ROOT, capture_output=True, text=True)
    assert made.returncode == 0, made.stderr
    return next(folder.glob("*.tar.gz"))


def names_in(archive: pathlib.Path) -> set[str]:
    with tarfile.open(archive) as tar:
        return {member.name.partition("/")[2] for member in tar if member.isfile()}


def test_the_source_archive_is_whole(archive):
    """Every file of the repository that the build or a reader wants, and nothing that was built."""
    names = names_in(archive)
    tracked = subprocess.run(["git", "ls-files"], cwd=ROOT, capture_output=True, text=True)
    if tracked.returncode:
        pytest.skip("not a clone")
    left_out = tuple(f"{name}/" for name in re.findall(r'"([^"]+)"', re.search(r"^sdist\.exclude = \[(.*?)\]", PROJECT, re.M)[1]))
    wanted = {name for name in tracked.stdout.splitlines() if not name.startswith(left_out) and (ROOT / name).exists()}
    assert wanted - names == set()
    assert not any(name.startswith(("build/", ".venv/", ".git/")) or name.endswith(".pyc") for name in names)
    assert {"PKG-INFO", "LICENSE", "licenses/nanobind.txt", "python/sardonyx/py.typed"} <= names


def test_the_source_archive_configures(archive, tmp_path):
    """As pip does it, as far as the compiler."""
    cmake = re.findall(r'^(SARDONYX_\w+) = "(\w+)"', PROJECT, re.M)
    assert dict(cmake)["SARDONYX_LINK_IMAGES"] == "ON" and dict(cmake)["SARDONYX_PYTHON"] == "ON"
    if importlib.util.find_spec("nanobind") is None:
        pytest.skip("nanobind is not installed")
    with tarfile.open(archive) as tar:
        tar.extractall(tmp_path, filter="data") if hasattr(tarfile, "data_filter") else tar.extractall(tmp_path)
    source = next(path for path in tmp_path.iterdir() if path.is_dir())
    made = subprocess.run(["cmake", "-S", source, "-B", tmp_path / "build", "-DCMAKE_BUILD_TYPE=Release", f"-DPython_EXECUTABLE={sys.executable}",
                           *(f"-D{name}={value}" for name, value in cmake)], capture_output=True, text=True)
    assert made.returncode == 0, made.stderr
    script = (tmp_path / "build" / "cmake_install.cmake").read_text()
    assert "libsardonyx" not in script, "a wheel has no library beside the module"


def test_one_version_everywhere(archive):
    version = re.search(r"project\(sardonyx VERSION ([0-9.]+)", (ROOT / "CMakeLists.txt").read_text())[1]
    assert archive.name == f"sardonyx-{version}.tar.gz"
    assert f'"version": "{version}"' in (ROOT / "packaging" / "vcpkg" / "sardonyx" / "vcpkg.json").read_text()
    assert (ROOT / "packaging" / "debian" / "changelog").read_text().startswith(f"sardonyx ({version}-")
