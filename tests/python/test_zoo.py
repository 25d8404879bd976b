"""Every family of the zoo, small: against ONNX Runtime, against the library that trained it, and against itself."""

from __future__ import annotations

import hashlib
import os
import pickle

import build_models
import numpy as np
import onnxruntime
import pytest
import run
import values
import zoo
from conftest import ROOT


@pytest.fixture(scope="module")
def engine(sardonyx):
    with run.Engine([sardonyx.path, "bench", "--serve"]) as child:
        yield child


CACHE = ROOT / "build" / "zoo-small" / build_models.sources_stamp()


def small(name: str) -> zoo.Built:
    """Built once for each state of the builders."""
    arguments = hashlib.sha256(repr(zoo.ENTRIES[name].small).encode()).hexdigest()[:8]
    file = CACHE / f"{name}-{arguments}.pickle"
    if file.exists():
        return pickle.loads(file.read_bytes())
    built = zoo.ENTRIES[name].build(**zoo.ENTRIES[name].small)
    CACHE.mkdir(parents=True, exist_ok=True)
    part = file.with_suffix(f".{os.getpid()}")
    part.write_bytes(pickle.dumps(built))
    part.replace(file)
    return built


@pytest.fixture(scope="module", params=zoo.ENTRIES)
def case(request, tmp_path_factory):
    built = small(request.param)
    folder = tmp_path_factory.mktemp(request.param)
    built.save(folder / "model.onnx")
    return Case(zoo.ENTRIES[request.param], built, folder)


def session_of(model, unfused: bool) -> onnxruntime.InferenceSession:
    options = onnxruntime.SessionOptions()
    options.log_severity_level = 3
    options.intra_op_num_threads = 1
    if unfused:
        options.graph_optimization_level = onnxruntime.GraphOptimizationLevel.ORT_DISABLE_ALL
    return onnxruntime.InferenceSession(model, options)


class Case:
    def __init__(self, entry: zoo.Entry, built: zoo.Built, folder):
        self.entry, self.built, self.folder = entry, built, folder
        self.reference = built.counterpart if entry.baseline else built
        self.session = session_of(self.reference.model.SerializeToString(), entry.unfused)
        self.feeds = [built.inputs, *(resized(built, sizes) for sizes in entry.sizes)]
        self.theirs: list[list[np.ndarray]] = []

    def expect(self, feeds: dict[str, np.ndarray]) -> list[np.ndarray]:
        fitting = {name: array.astype(object) if array.dtype.kind == "U" else
                   array.astype(self.reference.inputs[name].dtype) for name, array in feeds.items()}
        return [values.plain(value) for value in self.session.run(None, fitting)]

    def outputs(self, engine, feeds: dict[str, np.ndarray], place: str) -> list[np.ndarray]:
        """Of the model that the engine holds."""
        np.savez(self.folder / "inputs.npz", **feeds)
        engine.ask("inputs", self.folder / "inputs.npz")
        engine.ask("run", 1)
        engine.ask("outputs", self.folder / place)
        return values.read(self.folder / place, len(self.built.model.graph.output))


def resized(built: zoo.Built, sizes: dict[str, int]) -> dict[str, np.ndarray]:
    """The model's own inputs repeated or cut along named dimensions, no row like another."""
    random, feeds = np.random.default_rng(0), {}
    for info in built.model.graph.input:
        if info.name not in built.inputs:
            continue
        array = built.inputs[info.name]
        for axis, dim in enumerate(info.type.tensor_type.shape.dim):
            size = sizes.get(dim.dim_param or ("rows" if axis == 0 and not dim.dim_value else ""), array.shape[axis])
            array = np.take(array, np.arange(size) % max(1, array.shape[axis]), axis) if size else array.take([], axis)
        if values.is_float(array):
            array = (array * (1 + 0.1 * random.standard_normal(array.shape))).astype(array.dtype)
        elif array.dtype == np.int64 and array.ndim > 1:
            array = np.stack([np.roll(row, index, -1) for index, row in enumerate(array)]) if array.size else array
        feeds[info.name] = array
    return feeds


def same_bits(one: np.ndarray, other: np.ndarray) -> bool:
    return one.dtype == other.dtype and one.shape == other.shape and one.tobytes() == other.tobytes()


def agree(case: Case, ours: list[np.ndarray], theirs: list[np.ndarray], what: str) -> None:
    assert len(ours) == len(theirs)
    for info, mine, yours in zip(case.built.model.graph.output, ours, theirs):
        found = values.difference(mine, yours, bool(case.entry.baseline))
        assert found <= case.entry.tolerance, f"{what}: {info.name} differs by {found:.2g} of its RMS"


def agrees_with_who_trained_it(engine, case):
    """Trained models also against what the trainer itself predicts."""
    engine.ask("load", case.folder / "model.onnx", 1)
    ours = case.outputs(engine, case.built.inputs, "trained")
    for mine, (name, wanted) in zip(ours, case.built.expected.items()):
        if wanted.dtype.kind == "f":
            np.testing.assert_allclose(mine, wanted, rtol=1e-4, atol=1e-5 * np.abs(wanted).max(), err_msg=name)
        else:
            np.testing.assert_array_equal(mine.reshape(-1).astype(str), np.asarray(wanted).reshape(-1).astype(str))


def test_it_agrees(engine, case):
    """With ONNX Runtime at all sizes, planned on one thread and two, and plain."""
    wanted = [case.expect(feeds) for feeds in case.feeds]
    engine.ask("load", case.folder / "model.onnx", 1)
    planned = [case.outputs(engine, feeds, "one") for feeds in case.feeds]
    for index, (ours, theirs) in enumerate(zip(planned, wanted)):
        agree(case, ours, theirs, f"planned, sizes {index}")
    engine.ask("load", case.folder / "model.onnx", 2)
    for feeds, one in zip(case.feeds, planned):
        assert all(map(same_bits, case.outputs(engine, feeds, "two"), one)), "two threads give other bits"
    engine.ask("load-plain", case.folder / "model.onnx", 1)
    for index, (feeds, theirs) in enumerate(zip(case.feeds, wanted)):
        agree(case, case.outputs(engine, feeds, "plain"), theirs, f"plain, sizes {index}")
    if case.built.expected:
        agrees_with_who_trained_it(engine, case)


def test_layers_keep_their_scale(case):
    assert all(0.1 <= value <= 10 for value in case.built.rms.values())
