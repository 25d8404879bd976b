"""Two builds in different folders give the same bytes: a sample of objects, the library, the program.

`./dev package --test` makes the packages twice. Objects are compiled twice, without a cache, from sources under two names; libraries and
programs are linked twice from objects under two names.
"""

from __future__ import annotations

import json
import os
import pathlib
import re
import shlex
import shutil
import subprocess

import pytest
from conftest import ROOT

MODULES = ("base", "kernels", "ops", "api", "capi")


@pytest.fixture(scope="module")
def build(sardonyx) -> pathlib.Path:
    build = pathlib.Path(sardonyx.path).resolve().parents[1]
    cache = (build / "CMakeCache.txt").read_text()
    if not re.search(r"^CMAKE_BUILD_TYPE:\w+=Release$", cache, re.M):
        pytest.skip("not a release")
    if "CMAKE_GENERATOR:INTERNAL=Ninja" not in cache or shutil.which("ninja") is None:
        pytest.skip("not built by Ninja")
    return build


@pytest.fixture(scope="module")
def folders(tmp_path_factory) -> list[pathlib.Path]:
    base = tmp_path_factory.mktemp("places")
    made = [base / "a", base / "some" / "other" / "and_longer_place"]
    for folder in made:
        folder.mkdir(parents=True)
    return made


def run(command: str | list[str], cwd: pathlib.Path) -> None:
    made = subprocess.run(command, cwd=cwd, shell=isinstance(command, str), stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True,
                          env=dict(os.environ, CCACHE_DISABLE="1"))
    assert made.returncode == 0, f"{command}\n{made.stdout}"


def commands(build: pathlib.Path) -> dict[str, list[str]]:
    """Source file: how it is compiled, without a cache."""
    found = {}
    for entry in json.loads((build / "compile_commands.json").read_text()):
        words = shlex.split(entry["command"])
        if pathlib.Path(words[0]).name == "ccache":
            words = words[1:]
        found[entry["file"]] = words
    return found


def compiled_with(source: str) -> list[str]:
    """The sources that CMake has put together in one, or the source itself."""
    return re.findall(r'^#include "(.*)"$', pathlib.Path(source).read_text(), re.M) if "/Unity/" in source else [source]


def smallest(build: pathlib.Path, module: str) -> str:
    sources = [file for file in commands(build) if file.startswith((f"{ROOT}/src/{module}/", f"{build}/src/{module}/"))]
    return min(sources, key=lambda file: (sum(map(os.path.getsize, compiled_with(file))), file))


@pytest.mark.parametrize("module", MODULES)
def test_objects_do_not_depend_on_the_folder(build, folders, module):
    source = smallest(build, module)
    objects = []
    for folder in folders:
        tree = folder / "tree"
        if not tree.exists():
            tree.symlink_to(ROOT)
        words = [word.replace(str(ROOT), str(tree)) for word in commands(build)[source]]
        if compiled_with(source) != [source]:  # CMake writes the names of the folder into it
            copy = folder / pathlib.Path(source).name
            copy.write_text(pathlib.Path(source).read_text().replace(str(ROOT), str(tree)))
            words[words.index(source.replace(str(ROOT), str(tree)))] = str(copy)
        made = folder / f"{module}.o"
        words[words.index("-o") + 1] = str(made)
        run(words, folder)
        objects.append(made.read_bytes())
        assert str(folder).encode() not in objects[-1]
    assert objects[0] == objects[1], f"{source} gives other bytes in another folder"


@pytest.mark.parametrize("file", ["libsardonyx.a", "shared/libsardonyx.so.0.*", "shared/sardonyx-shared"])
def test_links_do_not_depend_on_the_folder(build, folders, file):
    output = next(build.glob(file), None)
    if output is None:
        pytest.skip(f"{file} is not built")
    name = str(output.relative_to(build))
    listed = subprocess.run(["ninja", "-t", "commands", name], cwd=build, check=True, capture_output=True, text=True).stdout
    command = listed.splitlines()[-1]
    made = []
    for folder in folders:
        tree = folder / "build"
        tree.mkdir(exist_ok=True)
        (tree / "shared").mkdir(exist_ok=True)
        for entry in build.iterdir():
            if entry.name not in ("shared", output.name) and not os.path.lexists(tree / entry.name):
                (tree / entry.name).symlink_to(entry)
        for entry in (build / "shared").iterdir():
            if entry != output and not os.path.lexists(tree / "shared" / entry.name):
                (tree / "shared" / entry.name).symlink_to(entry)
        run(command, tree)
        made.append((tree / name).read_bytes())
        (tree / name).unlink()
    assert made[0] == made[1] == output.read_bytes()
