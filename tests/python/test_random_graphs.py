"""Random graphs: planned runs against plain evaluation, on one thread and on two."""

from __future__ import annotations

import pytest
import random_graphs

GRAPHS, TOGETHER = 240, 20


@pytest.mark.parametrize("first", range(1, GRAPHS + 1, TOGETHER))
def test_the_plan_gives_what_plain_evaluation_gives(sardonyx, first, tmp_path):
    found = [line for seed in range(first, first + TOGETHER) for line in random_graphs.differences(sardonyx, seed, tmp_path)]
    assert not found, "\n".join(found)
