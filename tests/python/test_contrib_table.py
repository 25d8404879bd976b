"""docs/contrib.md names every operator that ONNX Runtime registers in its own domains, once, and says truly which run."""

from __future__ import annotations

import collections
import os
import re

os.environ.setdefault("ORT_DISABLE_TELEMETRY", "1")

import onnxruntime.capi.onnxruntime_pybind11_state as runtime  # noqa: E402
from conftest import ROOT  # noqa: E402

PAGE = (ROOT / "docs" / "contrib.md").read_text()
DOMAINS = {"com.microsoft": "", "com.microsoft.nchwc": "nchwc."}


def named(header):
    """The operators of the table with this header."""
    table = PAGE.partition(header + "\n")[2].partition("\n\n")[0]
    cells = [line.split("|")[1] for line in table.splitlines()[1:]]
    return [name.strip() for cell in cells for name in cell.split(",")]


RUN = named("| operator | how it runs | what is refused |")
DO_NOT = named("| operator | why it does not run |")


def registered():
    return {DOMAINS[schema.domain] + schema.name for schema in runtime.get_all_operator_schema() if schema.domain in DOMAINS}


def signatures():
    return {prefix + file.stem for domain, prefix in DOMAINS.items() for file in (ROOT / "spec" / "extra" / domain).glob("*.txt")}


def test_each_operator_stands_once():
    twice = [name for name, count in collections.Counter(RUN + DO_NOT).items() if count > 1]
    assert twice == []
    assert len(RUN) > 60 and all(re.fullmatch(r"(nchwc\.)?\w+", name) for name in RUN + DO_NOT)


def test_every_operator_that_onnxruntime_registers_is_named():
    here = set(RUN) | set(DO_NOT)
    assert sorted(registered() - here) == []
    # What it has in ai.onnx.
    assert sorted(here - registered()) == ["SimplifiedLayerNormalization"]


def test_those_that_run_are_the_known_ones():
    assert sorted(set(RUN) - {"SimplifiedLayerNormalization"}) == sorted(signatures())


def test_what_the_default_domain_of_onnxruntime_holds_beyond_the_standard_is_known():
    """Kernels of its CPU provider for operators that no release of the standard has, or has no more."""
    kernels = {k.op_name for k in runtime.get_all_opkernel_def() if k.domain == "" and k.provider == "CPUExecutionProvider"}
    known = {file.stem for folder in ("ops", "extra") for file in (ROOT / "spec" / folder).glob("*.txt")}
    assert sorted(kernels - known) == ["MemcpyFromHost", "MemcpyToHost"]  # which it puts in itself, between devices
