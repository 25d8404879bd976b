"""docs/gradients.md says where operators have their gradients from."""

import pathlib
import subprocess
import sys

ROOT = pathlib.Path(__file__).resolve().parents[2]


def test_the_table_of_gradients_is_up_to_date():
    script = ROOT / "tools" / "generate_gradient_table.py"
    result = subprocess.run([sys.executable, script, "--check"], capture_output=True, text=True)
    assert result.returncode == 0, result.stdout + result.stderr
