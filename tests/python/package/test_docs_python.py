"""Every block of docs/python.md in Python runs, in order; those for the shell name what is there."""

from __future__ import annotations

import re
import shutil
import subprocess
import sys

import pytest

from .conftest import ROOT

PAGE = (ROOT / "docs" / "python.md").read_text()


def blocks(text: str, language: str) -> list[str]:
    return re.findall(rf"^```{language}\n(.*?)^```", text, re.S | re.M)


def test_the_page_runs(tmp_path, environment):
    """In a process of its own, since it installs the alias; shown line by line where something fails."""
    shutil.copy(ROOT / "examples" / "digits" / "digits.onnx", tmp_path / "digits.onnx")
    (tmp_path / "page.py").write_text("\n".join(blocks(PAGE, "python")))
    made = subprocess.run([sys.executable, "page.py"], cwd=tmp_path, env=environment, text=True, capture_output=True)
    assert made.returncode == 0, made.stderr
    assert "image float[N,1,16,16] ('N', 1, 16, 16) float32" in made.stdout and "(4, 10)" in made.stdout
    assert (tmp_path / "typed.onnx").exists()


def test_programs_that_the_page_names_are_there(environment):
    for name in re.findall(r"`python (\S+\.py)", PAGE):
        assert (ROOT / name).exists()
    made = subprocess.run([sys.executable, "-m", "sardonyx.compat", "--help"], env=environment, text=True, capture_output=True)
    assert "PROGRAM.py" in made.stderr


@pytest.mark.parametrize("name", re.findall(r"^\| `(\w+Error)`", PAGE, re.M))
def test_classes_of_errors_are_those_of_the_table(name):
    import sardonyx

    kind = getattr(sardonyx, name)
    assert issubclass(kind, sardonyx.Error)
    row = re.search(rf"^\| `{name}` \| (.*?) \|", PAGE, re.M).group(1)
    for base in re.findall(r"`(\w+)`", row):
        assert base in [one.__name__ for one in kind.__mro__]
