"""Small files that ask inference for much get no more memory than a bound and their size allow."""

from __future__ import annotations

import hostile
import pytest

# What inference may keep of values beyond what most have is 256 MB; the report of it takes as much, messages of the file
# and what each node has are multiples of the file.
MEGABYTES, PER_MEGABYTE_OF_FILE = 450, 40


@pytest.mark.parametrize("name", hostile.HOSTILE)
def test_memory_is_bounded(sardonyx, tmp_path, name):
    make, size = hostile.HOSTILE[name]
    path = tmp_path / "model.onnx"
    path.write_bytes(make(size).SerializeToString())
    status, memory, _ = hostile.measure(sardonyx.path, path)
    assert status >= 0, "ended by a signal"
    assert memory < MEGABYTES + PER_MEGABYTE_OF_FILE * path.stat().st_size / 1e6
