"""onnx.backend.test through sardonyx.compat.onnx's Backend: every case that the installed onnx has, with the outcome of the engine's own
runner (tests/conformance/runner.cc), whose list of exceptions and whose tolerances hold here too."""

from __future__ import annotations

import importlib.metadata
import importlib.util
import sys
import unittest
import warnings

import numpy as np
import onnx.backend.test
import pytest

from sardonyx.compat.onnx import backend

from .conftest import ROOT

spec = importlib.util.spec_from_file_location("conformance_exceptions", ROOT / "tools" / "conformance_exceptions.py")
conformance_exceptions = sys.modules["conformance_exceptions"] = importlib.util.module_from_spec(spec)
spec.loader.exec_module(conformance_exceptions)

# What the reference rounds by itself, as tests/conformance/compare.h says: units in the last place.
UNITS = {"float16": 2.0**-9, "bfloat16": 2.0**-6}


def check(made, wanted, rtol: float, atol: float, place: str) -> None:
    """Raises AssertionError where the values are not of one kind, type and shape, or not as close as the runner asks."""
    if isinstance(wanted, (list, tuple)):
        assert isinstance(made, (list, tuple)) and len(made) == len(wanted), f"{place}: {made!r}, not {wanted!r}"
        for i, (one, other) in enumerate(zip(made, wanted)):
            check(one, other, rtol, atol, f"{place}[{i}]")
        return
    if isinstance(wanted, dict):
        assert isinstance(made, dict) and made.keys() == wanted.keys(), f"{place}: {made!r}, not {wanted!r}"
        for key, other in wanted.items():
            check(made[key], other, rtol, atol, f"{place}[{key!r}]")
        return
    if wanted is None:
        assert made is None, f"{place}: {made!r}, not None"
        return
    made, wanted = np.asarray(made), np.asarray(wanted)
    assert made.shape == wanted.shape, f"{place}: shape {made.shape}, not {wanted.shape}"
    if wanted.dtype.kind in "OUS":
        assert made.tolist() == wanted.tolist(), f"{place}: {made.tolist()}, not {wanted.tolist()}"
        return
    assert made.dtype == wanted.dtype, f"{place}: {made.dtype}, not {wanted.dtype}"
    if wanted.dtype.kind in "iub":
        np.testing.assert_array_equal(made, wanted, place)
        return
    rtol = max(rtol, UNITS.get(wanted.dtype.name, 0))
    if wanted.dtype.kind == "V" or wanted.dtype == np.float16:
        made, wanted = made.astype(np.float64), wanted.astype(np.float64)
    elif wanted.dtype == np.float32 and wanted.size:
        finite = wanted[np.isfinite(wanted)]
        atol = max(atol, 4 * 2.0**-23 * float(np.abs(finite).max(initial=0)))
    np.testing.assert_allclose(made, wanted, rtol, atol, err_msg=place)


class Cases(onnx.backend.test.BackendTest):
    """onnx's harness; its own comparison can't tell sequences of scalars apart and knows no tolerance for float16."""

    @classmethod
    def assert_similar_outputs(cls, ref_outputs, outputs, rtol, atol, model_dir=None):
        check(list(outputs), list(ref_outputs), rtol, atol, model_dir or "outputs")


@pytest.mark.parametrize("options", [{}, {"exact": True}], ids=["planned", "plain"])
def test_every_case_has_the_outcome_of_the_runner(options):
    class Backend(backend.SardonyxBackend):
        @classmethod
        def prepare(cls, model, device="CPU", **more):
            return super().prepare(model, device, **options, **more)

    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # what onnx's cases warn of while they are made
        cases = Cases(Backend, __name__)
        result = unittest.TestResult()
        unittest.TestSuite(unittest.defaultTestLoader.loadTestsFromTestCase(one) for one in cases.test_cases.values()).run(result)
    assert {reason for _, reason in result.skipped} == {"Backend doesn't support device CUDA"}
    ran = result.testsRun - len(result.skipped)
    assert ran == len(result.skipped) and ran > 2000, f"{ran} cases ran, and {len(result.skipped)} of another device did not"
    failed = {test.id().split(".")[-1].removesuffix("_cpu"): text.strip().splitlines()[-1] for test, text in [*result.failures,
                                                                                                            *result.errors]}
    entries, release = conformance_exceptions.read(), importlib.metadata.version("onnx")
    unexpected = {name: text for name, text in failed.items() if not conformance_exceptions.find(entries, release, name)}
    assert unexpected == {}
    names = {name.removesuffix("_cpu") for one in cases.test_cases.values() for name in dir(one) if name.endswith("_cpu")}
    listed = {name for name in names if (entry := conformance_exceptions.find(entries, release, name)) and entry.kind != "random"}
    assert listed <= failed.keys(), "listed as exceptions, and pass"


@pytest.mark.parametrize(("made", "wanted"), [
    (np.float32([1, 2]), np.float32([1, 2.01])), (np.float32([1]), np.float64([1])), (np.float32([1]), np.float32([[1]])),
    ([np.int64(1)], [np.int64(2)]), ([], [np.int64(2)]), (None, np.float32(1)), (np.float32(1), None), ({1: 2.0}, {2: 2.0}),
    (np.array(["a"]), np.array(["b"])), (np.float16([1]), np.float16([1.01])), (np.float32([np.nan]), np.float32([1]))])
def test_differences_are_seen(made, wanted):
    with pytest.raises(AssertionError):
        check(made, wanted, 1e-3, 1e-7, "here")
    check(wanted, wanted, 1e-3, 1e-7, "here")
