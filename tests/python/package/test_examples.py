"""The programs of examples/training, as a reader runs them."""

from __future__ import annotations

import re
import subprocess
import sys

import pytest

from .conftest import ROOT

FOLDER = ROOT / "examples" / "training"


def run(environment: dict[str, str], folder, name: str, *options: str) -> str:
    done = subprocess.run([sys.executable, FOLDER / name, *options], capture_output=True, text=True, cwd=folder, env=environment)
    assert done.returncode == 0, done.stderr
    return done.stdout


def numbers(text: str, pattern: str) -> list[float]:
    found = re.search(pattern, text)
    assert found, text
    return [float(group) for group in found.groups()]


def test_fine_tuning(environment, tmp_path):
    out = run(environment, tmp_path, "fine_tune.py")
    assert "4 of 10 initializers learn" in out
    before, = numbers(out, r"accuracy before: ([\d.]+)")
    after, = numbers(out, r"accuracy after: ([\d.]+)")
    assert before < 0.4 and after > 0.9
    assert (tmp_path / "tuned.onnx").exists()


def test_lora(environment, tmp_path):
    out = run(environment, tmp_path, "lora.py", "--steps", "200")
    before, after = numbers(out, r"the other text: loss ([\d.]+) before, ([\d.]+) after")
    assert after < 0.6 * before
    difference, = numbers(out, r"scores differ by ([\d.e+-]+)")
    assert difference < 1e-2


def test_recommender(environment, tmp_path):
    out = run(environment, tmp_path, "recommender.py")
    guessed, plain = numbers(out, r"what nobody has rated: ([\d.]+); always guessing the mean: ([\d.]+)")
    assert guessed < 0.7 * plain


def test_training_while_inferring(environment, tmp_path):
    out = run(environment, tmp_path, "train_while_inferring.py")
    asked, = numbers(out, r"(\d+) times asked")
    right = [float(share) for share in re.findall(r"after step \d+: ([\d.]+)", out)]
    assert asked > 1 and right[-1] > 0.9


@pytest.mark.parametrize("name", [path.name for path in sorted(FOLDER.glob("*.py"))])
def test_each_says_what_it_does(environment, tmp_path, name):
    assert name in run(environment, tmp_path, name, "--help")
