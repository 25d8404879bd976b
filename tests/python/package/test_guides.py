"""Every block of the README and of docs/guides/ runs, in order and in one folder; blocks in C++ are tests of their own."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
import textwrap

import pytest

from .conftest import ROOT

GUIDES = sorted((ROOT / "docs" / "guides").glob("*.md"))
BLOCK = re.compile(r"^```(\w*)( no-test)?\n(.*?)^```$", re.S | re.M)
# Blocks in other languages, and what runs them.
ELSEWHERE = {"cpp": "tests/CMakeLists.txt", "cmake": "tests/install/CMakeLists.txt"}
# Blocks for the shell that install or build: continuous integration runs these commands itself.
UNTESTED = {"README.md": 1, "get_started.md": 1, "images.md": 1}


def blocks(page) -> list[tuple[str, str]]:
    text = page.read_text()
    found = BLOCK.findall(text)
    assert len(found) * 2 == len(re.findall("^```", text, re.M)), "a block that is not closed"
    assert sum(bool(untested) for _, untested, _ in found) <= UNTESTED.get(page.name, 0)
    return [(language, code) for language, untested, code in found if not untested]


def script(page) -> str:
    """The page as one Python program, so that blocks in Python share their names."""
    parts = ["import subprocess as _subprocess", "def _shell(code):",
             "    _subprocess.run(['bash', '-euo', 'pipefail', '-c', code], check=True)"]
    for language, code in blocks(page):
        if language == "sh":
            parts.append(f"_shell({code!r})")
        elif language == "python":
            parts.append(code)
        else:
            assert language in ELSEWHERE, f"{page.name}: nothing runs blocks in '{language}'"
    return "\n".join(parts)


@pytest.fixture
def folder(tmp_path):
    for name in ("digits.onnx", "seven.png", "eight.png", "labels.txt"):
        shutil.copy(ROOT / "examples" / "digits" / name, tmp_path)
    (tmp_path / "bin").mkdir()
    program = os.environ.get("SARDONYX_PROGRAM", ROOT / "build" / "release" / "bin" / "sardonyx")
    (tmp_path / "bin" / "sardonyx").symlink_to(os.path.abspath(program))
    return tmp_path


def run(code, folder, environment) -> str:
    (folder / "page.py").write_text(code)
    path = f"{folder / 'bin'}:{environment['PATH']}"
    made = subprocess.run([sys.executable, "page.py"], cwd=folder, env=environment | {"PATH": path}, text=True, capture_output=True)
    assert made.returncode == 0, textwrap.dedent(f"{made.stdout}\n{made.stderr}")
    return made.stdout


@pytest.mark.parametrize("page", GUIDES, ids=lambda page: page.stem)
def test_a_guide_runs(page, folder, environment):
    run(script(page), folder, environment)


def test_the_readme_runs(folder, environment):
    (folder / "examples").symlink_to(ROOT / "examples")
    for name in ("model.onnx", "old.onnx", "new.onnx"):
        shutil.copy(ROOT / "tests" / "api" / "readme" / "model.onnx", folder / name)
    out = run("import numpy as np\nx = np.ones((1, 3), np.float32)\n" + script(ROOT / "README.md"), folder, environment)
    assert "seven" in out and (folder / "profile.html").exists()


def test_other_blocks_are_run_elsewhere():
    """Each page with blocks in C++ is named where their tests are made."""
    made = (ROOT / ELSEWHERE["cpp"]).read_text()
    for page in GUIDES:
        if any(language == "cpp" for language, _ in blocks(page)):
            assert re.search(rf"\b{page.stem}\b", made), page.name
    assert "README.md" in made
    for line in re.findall(r"^(find_package\(.*?)\)", (ROOT / "README.md").read_text(), re.M):
        assert line in (ROOT / ELSEWHERE["cmake"]).read_text()
