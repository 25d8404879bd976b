"""Every block of docs/install.md works, in order: files are written, commands run on an installed tree."""

from __future__ import annotations

import os
import pathlib
import re
import shutil
import subprocess

import pytest
from conftest import ROOT

PAGE = (ROOT / "docs" / "install.md").read_text()
BLOCKS = re.findall(r"^```(\w+)\n(.*?)^```", PAGE, re.S | re.M)
FILE_NAME = re.compile(r"^(?://|#|/\*) ([\w/.]+\.\w+)(?: \*/)?\n")


@pytest.fixture(scope="module")
def build(sardonyx) -> pathlib.Path:
    build = pathlib.Path(sardonyx.path).resolve().parents[1]
    if not (build / "libsardonyx.a").exists() or not (build / "shared" / "libsardonyx.so").exists():
        pytest.skip("the libraries are not built")
    return build


def test_the_page_works(build, tmp_path):
    work = tmp_path / "work"
    work.mkdir()
    shutil.copy(ROOT / "examples" / "digits" / "digits.onnx", work)
    (work / "build").mkdir()
    (work / "build" / "release").symlink_to(build)  # what the page installs from
    environment = dict(os.environ, PREFIX=str(tmp_path / "prefix"), SARDONYX=str(ROOT))
    environment.pop("PKG_CONFIG_PATH", None)
    script = ["set -euxo pipefail"]
    for language, text in BLOCKS:
        if language == "sh":
            script.append(text)
            continue
        named = FILE_NAME.match(text)
        assert named, f"a block of {language} does not begin with its file's name: {text[:60]}"
        file = work / named[1]
        file.parent.mkdir(exist_ok=True)
        file.write_text(text)
        assert any(file.name in other or file.name == "CMakeLists.txt" for other in script + [t for k, t in BLOCKS if k == "sh"])
    made = subprocess.run(["bash", "-c", "\n".join(script)], cwd=work, env=environment, stdout=subprocess.PIPE,
                          stderr=subprocess.STDOUT, text=True)
    assert made.returncode == 0, made.stdout
    assert "interface " in made.stdout and "7bff" in made.stdout


def test_every_language_of_the_page_is_run():
    assert {language for language, _ in BLOCKS} == {"sh", "cpp", "c", "cmake"}


def test_packages_that_another_machine_needs_are_those_that_the_build_is_linked_to(build):
    """The row of the table against what the shared library names."""
    if shutil.which("dpkg-query") is None:
        pytest.skip("dpkg-query is not installed")
    row = re.search(r"^\| run a program with .*? \| `(.*?)` \|$", PAGE, re.M)[1].split()
    library = build / "shared" / "libsardonyx.so"
    needed = re.findall(r"\(NEEDED\).*\[(.*?)\]", subprocess.run(["readelf", "--dynamic", "--wide", library], check=True,
                                                                capture_output=True, text=True).stdout)
    owners = set()
    for name in needed:
        found = subprocess.run(["dpkg-query", "--search", name], capture_output=True, text=True).stdout
        owners |= {line.split(":")[0] for line in found.splitlines() if f"/{name}" in line and "-linux-gnu/" in line}
    owners = {name for name in owners if not name.endswith(("-dev", "-dbg", "-cross"))} - {"libc6", "libgcc-s1"}
    if "libfmt9" not in owners:
        pytest.skip("another release of Debian")
    assert owners == set(row)
