"""One process of the program runs many small models; ONNX Runtime says what they should give."""

from __future__ import annotations

import json
import os
import subprocess

import ml_dtypes
import numpy as np
import onnx
import onnxruntime
import pytest
from onnx import TensorProto, helper, numpy_helper

OPSET = 21


class Engine:
    """`sardonyx bench --serve`: a command a line in, a JSON object a line out."""

    def __init__(self, program: str, folder, instruction_set: str | None = None):
        self.folder = folder
        chosen = {"SARDONYX_CPU": instruction_set} if instruction_set else {}
        self.process = subprocess.Popen([program, "bench", "--serve"], stdin=subprocess.PIPE, stdout=subprocess.PIPE,
                                        text=True, env={**os.environ, **chosen})

    def ask(self, line: str) -> dict:
        self.process.stdin.write(line + "\n")
        self.process.stdin.flush()
        answer = json.loads(self.process.stdout.readline())
        if "error" in answer:
            raise RuntimeError(answer["error"])
        return answer

    def run(self, model: onnx.ModelProto, feeds: dict[str, np.ndarray], repeat: int = 1) -> list[np.ndarray]:
        path = self.folder / "model.onnx"
        onnx.save(model, path)
        self.ask(f"load {path} 2")
        np.savez(self.folder / "in.npz", **feeds)
        self.ask(f"inputs {self.folder / 'in.npz'}")
        self.times = self.ask(f"run {repeat}")["ms"]
        self.ask(f"outputs {self.folder / 'out.npz'}")
        with np.load(self.folder / "out.npz", allow_pickle=False) as arrays:
            return [arrays[name] for name in arrays.files]

    def close(self):
        self.process.stdin.close()
        self.process.wait(timeout=10)


def drawing(random: np.random.Generator):
    """numbers(*shape) and integers(low, high, *shape), drawn from one stream."""

    def numbers(*shape, scale=1.0, dtype=np.float32):
        return (random.standard_normal(shape) * scale).astype(dtype)

    def integers(low, high, *shape, dtype=np.int32):
        return random.integers(low, high, shape).astype(dtype)

    return numbers, integers


def element_type(array: np.ndarray) -> int:
    if array.dtype == ml_dtypes.bfloat16:
        return TensorProto.BFLOAT16
    return helper.np_dtype_to_tensor_dtype(array.dtype)


class Case:
    """One node. `inputs` are arrays, None where absent; those whose positions are in `constant` are
    initializers. `outputs` says which outputs are wanted."""

    def __init__(self, op, inputs, outputs=(True,), domain="com.microsoft", constant=(), free=False, types=None,
                 **attributes):
        names = [f"x{i}" if x is not None else "" for i, x in enumerate(inputs)]
        self.feeds = {f"x{i}": x for i, x in enumerate(inputs) if x is not None and i not in constant}
        types = types or {}
        made = [f"y{i}" if wanted else "" for i, wanted in enumerate(outputs)]
        node = helper.make_node(op, names, made, domain=domain, name="node",
                                **{k: v for k, v in attributes.items() if v is not None})
        # Dimensions of one size have one name where sizes are left open.
        shape = lambda x: [f"n{d}" for d in x.shape] if free else list(x.shape)
        infos = [helper.make_tensor_value_info(n, types.get(n, element_type(x)), shape(x)) for n, x in self.feeds.items()]
        weights = [numpy_helper.from_array(inputs[i], f"x{i}") for i in constant if inputs[i] is not None]
        ends = [onnx.ValueInfoProto(name=name) for name in made if name]
        graph = helper.make_graph([node], "case", infos, ends, weights)
        imports = [helper.make_opsetid("", OPSET), helper.make_opsetid("com.microsoft", 1)]
        self.model = helper.make_model(graph, opset_imports=imports, ir_version=10)

    def expected(self) -> list[np.ndarray]:
        return run_onnxruntime(self.model, self.feeds)

    def typed(self, results: list[np.ndarray]) -> onnx.ModelProto:
        for info, array in zip(self.model.graph.output, results):
            info.type.tensor_type.elem_type = element_type(array)
        return self.model


def run_onnxruntime(model: onnx.ModelProto, feeds) -> list[np.ndarray]:
    options = onnxruntime.SessionOptions()
    options.log_severity_level = 3
    options.intra_op_num_threads = 1
    options.graph_optimization_level = onnxruntime.GraphOptimizationLevel.ORT_DISABLE_ALL
    session = onnxruntime.InferenceSession(model.SerializeToString(), options)
    return session.run(None, feeds)


TOLERANCE = {np.dtype(np.float32): 2e-5, np.dtype(np.float16): 2e-3, np.dtype(np.float64): 1e-10}


def compare(ours, theirs, steps=0, tolerance=None, rows=None) -> None:
    """Floats within `tolerance` of the largest magnitude, quantised values within `steps` steps."""
    assert len(ours) == len(theirs)
    for mine, yours in zip(ours, theirs):
        assert mine.shape == yours.shape
        assert mine.dtype == yours.dtype
        if np.issubdtype(yours.dtype, np.integer) or yours.dtype == bool:
            difference = np.abs(mine.astype(np.int64) - yours.astype(np.int64))
            assert difference.size == 0 or difference.max() <= steps
            continue
        wide, other = mine.astype(np.float64), yours.astype(np.float64)
        allowed = tolerance or TOLERANCE[yours.dtype]
        finite = np.abs(other[np.isfinite(other)])
        scale = max(1.0, finite.max()) if finite.size else 1.0
        np.testing.assert_allclose(wide, other, rtol=0, atol=allowed * scale)


def agree(engine: Engine, case: Case, reference=None, **how) -> list[np.ndarray]:
    expected = case.expected() if reference is None else reference
    ours = engine.run(case.typed(expected), case.feeds)
    compare(ours, expected, **how)
    return expected


def plainly(sardonyx, case, like, folder) -> list[np.ndarray]:
    """What the evaluation of node after node gives for a case whose outputs are like these."""
    path = folder / "case.onnx"
    path.write_bytes(case.typed(like).SerializeToString())
    return sardonyx.outputs(path, case.feeds, folder, "--reference")


def refusal(engine, case, like) -> str:
    """The message with which a case is refused."""
    with pytest.raises(RuntimeError) as caught:
        engine.run(case.typed(like), case.feeds)
    return str(caught.value)
