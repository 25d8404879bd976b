"""onnxruntime.quantization on Sardonyx: the weights in blocks that its extension makes, and its quantisers beside theirs."""

from __future__ import annotations

import subprocess
import sys

import numpy as np
import onnx
import pytest
from onnxruntime.capi import onnxruntime_pybind11_state as theirs

import sardonyx.compat.onnxruntime as ort
from sardonyx.compat.onnxruntime.capi import onnxruntime_pybind11_state as ours

DRAWS = np.random.default_rng(0)
WEIGHTS = {"drawn": lambda shape: DRAWS.standard_normal(shape), "in the middle": lambda shape: DRAWS.integers(-12, 13, shape) / 12,
           "with blocks of nothing": lambda shape: DRAWS.standard_normal(shape) * (np.arange(shape[0])[:, None] > 40)}


@pytest.mark.parametrize("weights", WEIGHTS)
@pytest.mark.parametrize("dtype", [np.float32, np.float16])
@pytest.mark.parametrize("quant_type", [0, 1], ids=["FP4", "NF4"])
@pytest.mark.parametrize(("rows", "columns", "block_size"), [(16, 8, 16), (33, 7, 16), (128, 64, 64), (5, 3, 32), (1, 1, 16), (257, 33, 128)])
def test_weights_for_matmul_bnb4(rows, columns, block_size, quant_type, dtype, weights):
    """Bit for bit, where a number lies in the middle between two, too."""
    transposed, count = WEIGHTS[weights]((rows, columns)).astype(dtype).T.copy(), rows * columns
    made = []
    for state in (ours, theirs):
        packed, absmax = np.zeros((count + 1) // 2, np.uint8), np.zeros(-(-count // block_size), dtype)
        state.quantize_matmul_bnb4(packed, transposed, absmax, block_size, quant_type, columns, rows)
        made.append((packed, absmax))
    for mine, other in zip(*made):
        np.testing.assert_array_equal(mine, other)


def test_there_are_two_codes_of_bnb4():
    with pytest.raises(ValueError, match="0 .FP4. or 1 .NF4."):
        ours.quantize_matmul_bnb4(np.zeros(8, np.uint8), np.zeros((4, 4), np.float32), np.zeros(1, np.float32), 16, 2, 4, 4)


@pytest.mark.parametrize("symmetric", [True, False])
@pytest.mark.parametrize("bits", [2, 4])
def test_weights_for_dequantize_linear(bits, symmetric):
    """What the engine makes of them is as near as the scale allows."""
    rows, columns, block = 64, 32, 16
    weights = DRAWS.standard_normal((rows, columns)).astype(np.float32)
    packed, scales = np.zeros(rows * columns * bits // 8, np.uint8), np.zeros((rows // block, columns), np.float32)
    zeros = np.zeros(scales.size * bits // 8, np.uint8)
    is_signed = getattr(ours, f"quantize_qdq_matmul_{bits}bits")(packed, weights, scales, zeros, block, columns, rows, symmetric)
    assert is_signed == symmetric
    element = getattr(onnx.TensorProto, f"{'INT' if is_signed else 'UINT'}{bits}")
    node = onnx.helper.make_node("DequantizeLinear", ["w", "s", "z"], ["y"], axis=0, block_size=block)
    given = [onnx.helper.make_tensor("w", element, [rows, columns], packed.tobytes(), raw=True), onnx.numpy_helper.from_array(scales, "s"),
             onnx.helper.make_tensor("z", element, list(scales.shape), zeros.tobytes(), raw=True)]
    graph = onnx.helper.make_graph([node], "g", [], [onnx.helper.make_tensor_value_info("y", 1, [rows, columns])], given)
    proto = onnx.helper.make_model(graph, ir_version=11, opset_imports=[onnx.helper.make_opsetid("", 25)])
    made = ort.InferenceSession(proto.SerializeToString()).run(None, {})[0]
    # The largest magnitude of a symmetric block is met exactly, and its opposite missed by one step at most.
    allowed = np.repeat(np.abs(scales), block, 0) * (1.01 if symmetric else 0.51)
    assert (np.abs(made - weights) <= allowed + 1e-6).all()


QUANTISED = """
import pathlib, sys
folder, who = pathlib.Path(sys.argv[1]), sys.argv[2]
if who == "ours":
    import sardonyx.compat; sardonyx.compat.install()
import numpy as np, onnx, onnxruntime
from onnxruntime.quantization import (CalibrationDataReader, CalibrationMethod, QuantFormat, QuantType, quantize_dynamic,
                                      quantize_static)
from onnxruntime.quantization.matmul_bnb4_quantizer import MatMulBnb4Quantizer
from onnxruntime.quantization.shape_inference import quant_pre_process
assert ("sardonyx" in onnxruntime.__version__) == (who == "ours")
made = {}
for source in sorted(folder.glob("*.onnx")):
    draws = np.random.default_rng(1)
    shape = [one.dim_value or 5 for one in onnx.load(source).graph.input[0].type.tensor_type.shape.dim]
    x, batches = draws.standard_normal(shape).astype(np.float32), [draws.standard_normal(shape).astype(np.float32) for _ in range(6)]

    class Reader(CalibrationDataReader):
        def __init__(self):
            self.left = iter(batches)
        def get_next(self):
            batch = next(self.left, None)
            return None if batch is None else {"x": batch}

    def run(name, path):
        session = onnxruntime.InferenceSession(path, providers=["CPUExecutionProvider"])
        made[f"{source.stem}.{name}"] = session.run(None, {"x": x})[0]

    prepared, target = folder / who / f"{source.stem}.prepared.onnx", folder / who / f"{source.stem}.target.onnx"
    quant_pre_process(source, prepared, skip_symbolic_shape=True)
    run("prepared", prepared)
    quantize_dynamic(source, target, per_channel=True, weight_type=QuantType.QInt8)
    run("dynamic", target)
    for form in QuantFormat:
        for kind in (QuantType.QUInt8, QuantType.QInt8):
            quantize_static(prepared, target, Reader(), quant_format=form, activation_type=kind, weight_type=QuantType.QInt8,
                            per_channel=True)
            run(f"{form}.{kind}", target)
    for method in (CalibrationMethod.Entropy, CalibrationMethod.Percentile):
        quantize_static(prepared, target, Reader(), calibrate_method=method)
        run(str(method), target)
    quantize_static(prepared, target, Reader(), activation_type=QuantType.QInt16, weight_type=QuantType.QInt8,
                    extra_options={"UseQDQContribOps": True})
    run("16 bits", target)
    if source.stem == "products":
        for number, name in enumerate(("FP4", "NF4")):
            quantizer = MatMulBnb4Quantizer(onnx.load(source), number, 16)
            quantizer.process()
            quantizer.model.save_model_to_file(str(target), False)
            assert [node.op_type for node in onnx.load(target).graph.node].count("MatMulBnb4") == 2
            run(name, target)
np.savez(folder / who / "made.npz", **made)
"""
MODELS = {
    "products": ("g (float[n,16] x) => (float[n,8] y) { t = MatMul(x, w) u = Relu(t) y = MatMul(u, v) }", {"w": (16, 32), "v": (32, 8)}),
    "convolutions": ("g (float[n,3,16,16] x) => (float[n,4,1,1] y) { c = Conv<pads = [1,1,1,1]>(x, w, b) r = Relu(c) "
                     "m = MaxPool<kernel_shape = [2,2], strides = [2,2]>(r) d = Conv(m, v) y = GlobalAveragePool(d) }",
                     {"w": (8, 3, 3, 3), "b": (8,), "v": (4, 8, 3, 3)}),
    "others": ("g (float[n,16] x) => (float[n,4] y) { a, b = Split<axis = 1, num_outputs = 2>(x) c = Mul(a, b) h = Gemm(c, w, d) "
               "s = Sigmoid(h) j = Concat<axis = 1>(s, a) y = Gemm<transB = 1>(j, v) }", {"w": (8, 8), "d": (8,), "v": (4, 16)}),
}


def test_quantised_models(environment, model, tmp_path):
    """Quantised and calibrated on Sardonyx and on onnxruntime, they give the same."""
    draws = np.random.default_rng(0)
    for name, (text, weights) in MODELS.items():
        proto = model(text)
        for weight, shape in weights.items():
            proto.graph.initializer.append(onnx.numpy_helper.from_array((0.3 * draws.standard_normal(shape)).astype(np.float32), weight))
        proto.opset_import.add(domain="com.microsoft", version=1)
        onnx.save(proto, tmp_path / f"{name}.onnx")
    made = []
    for who in ("ours", "theirs"):
        (tmp_path / who).mkdir()
        ran = subprocess.run([sys.executable, "-c", QUANTISED, tmp_path, who], env=environment, text=True, capture_output=True)
        assert ran.returncode == 0, ran.stderr
        with np.load(tmp_path / who / "made.npz") as arrays:
            made.append({name: arrays[name] for name in arrays.files})
    assert made[0].keys() == made[1].keys() and len(made[0]) == 9 * len(MODELS) + 2
    for name, mine in made[0].items():
        np.testing.assert_allclose(mine, made[1][name], atol=0.01 * np.abs(made[1][name]).max(), err_msg=name)


def numbers_of(packed: np.ndarray, bits: int) -> np.ndarray:
    parts = packed[..., None] >> (bits * np.arange(8 // bits, dtype=np.uint8)) & (2**bits - 1)
    return parts.reshape(*packed.shape[:-1], -1).astype(int)


@pytest.mark.parametrize("symmetric", [True, False])
@pytest.mark.parametrize("kind", [np.float32, np.float16])
@pytest.mark.parametrize(("rows", "columns", "block"), [(64, 5, 32), (50, 7, 16), (33, 3, 64), (96, 4, 32)])
@pytest.mark.parametrize("bits", [2, 4, 8])
def test_blocks_by_column(bits, rows, columns, block, kind, symmetric):
    draws = np.random.default_rng(bits * rows)
    blocks = -(-rows // block)
    weights = np.zeros((blocks * block, columns), kind)
    weights[:rows] = draws.standard_normal((rows, columns))
    weights[:, -1] = abs(weights[:, -1])
    weights[:block, 0] = 0
    made = []
    for state in (ours, theirs):
        packed = np.zeros((columns, blocks, block * bits // 8), np.uint8)
        zeros = np.zeros((columns, -(-blocks // (8 // bits))), np.uint8)
        scales = np.zeros((columns, blocks), kind)
        getattr(state, f"quantize_matmul_{bits}bits")(packed, weights, scales, zeros, block, columns, rows, symmetric)
        # What lies behind the last row is anything there.
        made.append((numbers_of(packed, bits).reshape(columns, -1)[:, :rows], scales, numbers_of(zeros, bits)[:, :blocks]))
    (mine, my_scales, my_zeros), (other, their_scales, their_zeros) = made
    np.testing.assert_array_equal(my_scales, their_scales)
    np.testing.assert_array_equal(my_zeros, their_zeros)
    # Of halves, numbers in the middle between two may go either way.
    assert abs(mine - other).max() <= (kind == np.float16) and (mine != other).mean() < 0.02
    assert len(np.unique(other)) > 2


@pytest.mark.parametrize("symmetric", [True, False])
@pytest.mark.parametrize(("rows", "columns", "block"), [(64, 5, 32), (33, 3, 64), (64, 4, 64)])
def test_blocks_for_dequantize_linear(rows, columns, block, symmetric):
    weights = np.random.default_rng(rows).standard_normal((rows, columns)).astype(np.float32)
    blocks = -(-rows // block)
    made = []
    for state in (ours, theirs):
        packed, zeros = np.zeros((rows * columns + 1) // 2, np.uint8), np.zeros((columns * blocks + 1) // 2, np.uint8)
        scales = np.zeros((blocks, columns), np.float32)
        signed = state.quantize_qdq_matmul_4bits(packed, weights, scales, zeros, block, columns, rows, symmetric)
        made.append((packed.tolist(), zeros.tolist(), scales.tolist(), signed))
    assert made[0] == made[1] and any(made[0][0])
