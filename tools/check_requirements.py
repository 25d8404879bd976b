"""Exits 0 when the running Python already has what tools/requirements.txt pins."""

import importlib.metadata
import pathlib
import sys

for line in (pathlib.Path(__file__).parent / "requirements.txt").read_text().split():
    name, _, version = line.partition("==")
    try:
        if importlib.metadata.version(name) != version:
            sys.exit(1)
    except importlib.metadata.PackageNotFoundError:
        sys.exit(1)
