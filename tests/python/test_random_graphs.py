"""Random graphs by family: planned runs against plain evaluation and ONNX Runtime, on one thread and on two."""

from __future__ import annotations

import pathlib

import pytest
import random_graphs

GRAPHS = {"elements": 200, "convolutions": 120, "quantised": 150, "attention": 100, "products": 200, "mixed": 80, "sizes": 30, "mutants": 150,
          "limits": 100}


@pytest.mark.parametrize("family", random_graphs.FAMILIES)
def test_the_plan_gives_what_plain_evaluation_gives(sardonyx, family, tmp_path):
    runner = pathlib.Path(sardonyx.path).with_name("graph_runner")
    found = random_graphs.differences(str(runner), family, range(1, 1 + GRAPHS[family]), tmp_path)
    assert not found, "\n".join(found)
