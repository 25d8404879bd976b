"""Small files that ask inference for much get no more memory than a bound and their size allow."""

from __future__ import annotations

import hostile
import pytest
from conftest import FINDINGS, INVALID_MODEL, OK

# What inference may keep of values beyond what most have is 256 MB; the report of it takes as much, messages of the file
# and what each node has are multiples of the file.
MEGABYTES, PER_MEGABYTE_OF_FILE = 450, 40
STATUS = {"2^24 calls of functions": INVALID_MODEL, "10,000 If": FINDINGS, "sizes of 2^62": FINDINGS}  # others: OK


@pytest.mark.parametrize("name", hostile.HOSTILE)
def test_memory_is_bounded(sardonyx, tmp_path, name):
    make, size = hostile.HOSTILE[name]
    path = tmp_path / "model.onnx"
    path.write_bytes(make(size).SerializeToString())
    status, memory, _ = hostile.measure(sardonyx.path, path)
    assert status == STATUS.get(name, OK)
    assert memory < MEGABYTES + PER_MEGABYTE_OF_FILE * path.stat().st_size / 1e6
