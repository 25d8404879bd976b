"""Products with weights of few bits that ONNX Runtime fuses for GPUs: against its MatMulNBits and NumPy. And SparseToDenseMatMul,
against NumPy: ONNX Runtime's Python package makes no sparse tensor that its kernel takes."""

from __future__ import annotations

import ml_dtypes
import numpy as np
import onnx
import pytest
from conftest import BAD_INPUT, RUN_FAILED
from contrib_support import Case, agree, drawing, refusal
from onnx import TensorProto, helper, numpy_helper

RANDOM = np.random.default_rng(53)
F32, F16, F8 = np.float32, np.float16, ml_dtypes.float8_e4m3fn
numbers, integers = drawing(RANDOM)


# --- MatMulNBits with what stands around it ---

K, BLOCK = 64, 32


def weights(columns, dtype, bits=4):
    return [integers(0, 256, columns, K // BLOCK, BLOCK * bits // 8, dtype=np.uint8), np.abs(numbers(columns, K // BLOCK, dtype=dtype, scale=0.1)) + dtype(0.02)]


def product(x, parts, bias, bits=4):
    columns = len(parts[0])
    case = Case("MatMulNBits", [x.astype(F32), parts[0], parts[1].astype(F32), None, None, None if bias is None else bias.astype(F32)],
                constant=(1, 2), K=K, N=columns, bits=bits, block_size=BLOCK)
    return case.expected()[0]


def normal(x, scale, epsilon):
    x = x.astype(F32)
    return x / np.sqrt((x**2).mean(-1, keepdims=True) + epsilon) * scale.astype(F32)


@pytest.mark.parametrize("dtype", [F32, F16])
@pytest.mark.parametrize("skip", [False, True])
@pytest.mark.parametrize("bias", [False, True])
@pytest.mark.parametrize("bits", [4, 8])
@pytest.mark.parametrize("epsilon", [None, 0.5])
@pytest.mark.parametrize("free", [False, True])
def test_projections_of_queries_keys_and_values(engine, dtype, skip, bias, bits, epsilon, free):
    a, scale = numbers(2, 3, K, dtype=dtype, scale=0.001 if epsilon is None else 1), numbers(K, dtype=dtype)
    other = numbers(2, 3, K, dtype=dtype, scale=0.001) if skip else None
    parts = [weights(n, dtype, bits) for n in (48, 16, 16)]
    biases = [numbers(n, dtype=dtype) if bias else None for n in (48, 16, 16)]
    inputs = [a, other, scale, *(x for part, b in zip(parts, biases) for x in (*part, b))]
    case = Case("MatMulNBitsQkv", inputs, (True, True, True, skip), constant=(3, 4, 6, 7, 9, 10), free=free, K=K, Nq=48, Nkv=16, bits=bits,
                block_size=BLOCK, epsilon=epsilon)
    total = a + other if skip else a
    x = normal(total, scale, epsilon or 1e-6).astype(dtype)
    expected = [product(x, part, b, bits).astype(dtype) for part, b in zip(parts, biases)] + ([total] if skip else [])
    agree(engine, case, reference=expected, tolerance=4e-3 if dtype == F16 else 1e-4)


@pytest.mark.parametrize("dtype", [F32, F16])
@pytest.mark.parametrize("norm, skip", [(False, False), (True, False), (True, True)])
@pytest.mark.parametrize("activation", ["silu", "gelu", "relu"])
@pytest.mark.parametrize("free", [False, True])
def test_gated_products(engine, dtype, norm, skip, activation, free):
    a, scale = numbers(2, 3, K, dtype=dtype), numbers(K, dtype=dtype) if norm else None
    other = numbers(2, 3, K, dtype=dtype) if skip else None
    gate, up, shift = weights(24, dtype), weights(24, dtype), numbers(24, dtype=dtype)
    case = Case("MatMulNBitsMlp", [a, other, scale, *gate, shift, *up, None], (True, skip), constant=(3, 4, 6, 7), free=free, K=K, N=24, bits=4,
                block_size=BLOCK, activation=activation)
    total = a + other if skip else a
    x = normal(total, scale, 1e-5).astype(dtype) if norm else total
    g, u = product(x, gate, shift).astype(dtype).astype(F32), product(x, up, None)
    open_ = {"silu": lambda x: x / (1 + np.exp(-x)), "relu": lambda x: np.maximum(x, 0),
             "gelu": lambda x: x * 0.5 * (1 + np.vectorize(__import__("math").erf)(x / np.sqrt(2)))}[activation]
    agree(engine, case, reference=[(open_(g) * u).astype(dtype)] + ([total] if skip else []), tolerance=8e-3 if dtype == F16 else 1e-4)


@pytest.mark.parametrize("change, says", [(dict(activation="tanh"), "activation must be silu"), (dict(skip=True), "skip needs the input norm_scale")])
def test_gated_products_that_are_not_known(engine, change, says):
    a = numbers(2, K)
    case = Case("MatMulNBitsMlp", [a, a if change.get("skip") else None, None, *weights(8, F32), None, *weights(8, F32), None], K=K, N=8, bits=4,
                block_size=BLOCK, activation=change.get("activation", "silu"))
    assert says in refusal(engine, case, [numbers(2, 8)])


# --- weights of float8 and of 4-bit floats ---


@pytest.mark.parametrize("columns, width, block", [(8, 256, 128), (5, 100, 32), (3, 40, 128)])
@pytest.mark.parametrize("quantised", [False, True])
@pytest.mark.parametrize("bias", [False, True])
@pytest.mark.parametrize("free", [False, True])
def test_float8_weights(engine, columns, width, block, quantised, bias, free):
    a, b = numbers(2, 3, width, dtype=F16), numbers(columns, width).astype(F8)
    scales = np.abs(numbers(columns, -(-width // block))) + F32(0.1)
    shift, scale = numbers(columns, dtype=F16) if bias else None, np.array(0.02, F32) if quantised else None
    case = Case("MatMulBlockQuantizedFp8Weight", [a, b, scales, scale, shift], constant=(1, 2), free=free, block_size=block)
    wide = a.astype(F32)
    if quantised:
        wide = np.clip(wide / scale, -448, 448).astype(F8).astype(F32) * scale
    whole = b.astype(F32) * np.repeat(scales, block, 1)[:, :width]
    expected = wide @ whole.T + (0 if shift is None else shift.astype(F32))
    agree(engine, case, reference=[expected.astype(F16)])


E2M1 = np.array([0, 0.5, 1, 1.5, 2, 3, 4, 6, -0.0, -0.5, -1, -1.5, -2, -3, -4, -6], F32)


@pytest.mark.parametrize("columns, width, block", [(8, 64, 16), (5, 40, 16), (3, 6, 4)])
@pytest.mark.parametrize("bias", [False, True])
@pytest.mark.parametrize("constant", [(1, 2, 3), ()])
@pytest.mark.parametrize("free", [False, True])
def test_four_bit_float_weights(engine, columns, width, block, bias, constant, free):
    a, b = numbers(2, width, dtype=F16), integers(0, 256, columns, width // 2, dtype=np.uint8)
    scales, all_ = integers(0, 0x60, columns, -(-width // block), dtype=np.uint8), np.array(0.5, F32)
    shift = numbers(columns, dtype=F16) if bias else None
    case = Case("MatMulBlockQuantizedFp4Weight", [a, b, scales, all_, np.array(3, F32), shift], constant=constant, free=free, block_size=block)
    numbers_ = E2M1[np.stack([b & 15, b >> 4], -1)].reshape(columns, -1)
    whole = (numbers_ * np.repeat(scales.view(F8).astype(F32), block, 1)[:, :width] * all_).astype(F16).astype(F32)
    expected = a.astype(F32) @ whole.T + (0 if shift is None else shift.astype(F32))
    agree(engine, case, reference=[expected.astype(F16)])


def test_every_byte_is_the_float8_that_it_is(engine):
    """Scales of all 256 bytes, against the type that ml_dtypes has."""
    scales = np.arange(256, dtype=np.uint8)[:, None]
    b = np.full((256, 1), 0x22, np.uint8)  # 1, 1
    case = Case("MatMulBlockQuantizedFp4Weight", [np.array([[1, 0]], F16), b, scales, np.array(1, F32)], block_size=2)
    y, = engine.run(case.typed([numbers(1, 256, dtype=F16)]), case.feeds)
    np.testing.assert_array_equal(y[0], scales[:, 0].view(F8).astype(F16))


@pytest.mark.parametrize("op", ["MatMulBlockQuantizedFp4Weight", "MatMulBlockQuantizedFp8Weight"])
@pytest.mark.parametrize("block", [0, -16])
def test_blocks_of_nothing(engine, op, block):
    b = np.zeros((4, 8), np.uint8) if "4" in op else np.zeros((4, 16), F8)
    scales = np.zeros((4, 1), np.uint8 if "4" in op else F32)
    case = Case(op, [numbers(2, 16, dtype=F16), b, scales, *([np.array(1, F32)] if "4" in op else [])], constant=(1,), block_size=block)
    assert "block_size must be at least 1" in refusal(engine, case, [numbers(2, 4, dtype=F16)])


@pytest.mark.parametrize("op", ["MatMulBlockQuantizedFp4Weight", "MatMulBlockQuantizedFp8Weight"])
def test_too_few_scales(engine, op):
    b = np.zeros((4, 32), np.uint8) if "4" in op else np.zeros((4, 64), F8)
    scales = np.zeros((4, 2), np.uint8 if "4" in op else F32)
    case = Case(op, [numbers(2, 64, dtype=F16), b, scales, *([np.array(1, F32)] if "4" in op else [])], constant=(1,), block_size=16)
    refusal(engine, case, [numbers(2, 4, dtype=F16)])


# --- SparseToDenseMatMul ---


def sparse_model(a_shape, dtype, **attributes):
    element = helper.np_dtype_to_tensor_dtype(np.dtype(dtype))
    node = helper.make_node("SparseToDenseMatMul", ["A", "B"], ["Y"], domain="com.microsoft", **attributes)
    graph = helper.make_graph([node], "g", [helper.make_sparse_tensor_value_info("A", element, a_shape),
                                            helper.make_tensor_value_info("B", element, ["k", "n"])],
                              [helper.make_tensor_value_info("Y", element, None)])
    return helper.make_model(graph, opset_imports=[helper.make_opsetid("", 21), helper.make_opsetid("com.microsoft", 1)], ir_version=10)


def sparse_file(path, values, indices, shape):
    proto = helper.make_sparse_tensor(numpy_helper.from_array(values, "A"), numpy_helper.from_array(indices, "A_indices"), shape)
    path.write_bytes(proto.SerializeToString())


def run_sparse(sardonyx, tmp_path, model, values, indices, shape, b, *more, **how):
    onnx.save(model, tmp_path / "m.onnx")
    sparse_file(tmp_path / "a.pb", values, indices, shape)
    np.save(tmp_path / "b.npy", b)
    result = sardonyx("run", tmp_path / "m.onnx", "--input", f"A={tmp_path / 'a.pb'}", "--input", f"B={tmp_path / 'b.npy'}", "--output",
                      tmp_path / "y.npz", *more, **how)
    return result if how else np.load(tmp_path / "y.npz")["Y"]


@pytest.mark.parametrize("dtype", [np.float32, np.float64, np.int32, np.int64, np.uint32, np.uint64])
@pytest.mark.parametrize("turned_a, turned_b", [(0, 0), (0, 1), (1, 0), (1, 1)])
@pytest.mark.parametrize("pairs", [False, True])
def test_sparse_products(sardonyx, tmp_path, dtype, turned_a, turned_b, pairs):
    dense = np.where(RANDOM.random((6, 4)) < 0.4, RANDOM.integers(1, 9, (6, 4)), 0).astype(dtype)
    b = RANDOM.integers(0, 9, (6, 5) if turned_a else (4, 5)).astype(dtype)
    places = np.flatnonzero(dense)
    indices = np.argwhere(dense) if pairs else places
    model = sparse_model(["m", "k2"] if pairs else [6, 4], dtype, transA=turned_a, transB=turned_b, alpha=2.0)
    expected = 2 * ((dense.T if turned_a else dense) @ b)
    for more in ([], ["--reference"]):
        ours = run_sparse(sardonyx, tmp_path, model, dense.reshape(-1)[places], indices.astype(np.int64), [6, 4], b.T if turned_b else b, *more)
        assert ours.dtype == dtype
        np.testing.assert_allclose(ours, expected, rtol=1e-6)


def test_an_empty_sparse_tensor(sardonyx, tmp_path):
    model = sparse_model(["m", "k"], F32)
    ours = run_sparse(sardonyx, tmp_path, model, np.zeros(0, F32), np.zeros(0, np.int64), [6, 4], numbers(4, 2))
    np.testing.assert_array_equal(ours, np.zeros((6, 2), F32))


@pytest.mark.parametrize("indices", [[24], [-1], [2**62], [[6, 0]], [[0, 4]], [[0, -1]], [[-2**63, 0]]])
@pytest.mark.parametrize("mode", [[], ["--reference"]])
def test_elements_outside_a_sparse_tensor(sardonyx, tmp_path, indices, mode):
    model = sparse_model(["m", "k"], F32)
    result = run_sparse(sardonyx, tmp_path, model, np.ones(1, F32), np.array(indices, np.int64), [6, 4], numbers(4, 2), *mode, expect=None)
    assert result.returncode in (BAD_INPUT, RUN_FAILED) and "must be in [0, " in result.stderr


def test_sizes_that_do_not_agree(sardonyx, tmp_path):
    model = sparse_model(["m", "j"], F32)
    result = run_sparse(sardonyx, tmp_path, model, np.ones(1, F32), np.zeros(1, np.int64), [6, 4], numbers(5, 2), expect=None)
    assert result.returncode in (BAD_INPUT, RUN_FAILED) and "inner dimensions" in result.stderr
    result = run_sparse(sardonyx, tmp_path, sparse_model([6, 4, 2], F32), np.ones(1, F32), np.zeros(1, np.int64), [6, 4, 2], numbers(4, 2), expect=None)
    assert result.returncode != 0 and "two dimensions" in result.stderr


@pytest.mark.parametrize("dtype", [np.int32, np.int64])
def test_sparse_products_of_integers_wrap_around(sardonyx, tmp_path, dtype):
    largest = np.iinfo(dtype).max
    values, b = np.array([largest, 3], dtype), np.array([[7, -2], [largest, 5]], dtype)
    indices = np.array([0, 1], np.int64)
    y = run_sparse(sardonyx, tmp_path, sparse_model([1, 2], dtype), values, indices, [1, 2], b)
    with np.errstate(over="ignore"):
        np.testing.assert_array_equal(y, values[None, :] @ b)
    # A factor takes the elements to the ends of the type at most.
    y = run_sparse(sardonyx, tmp_path, sparse_model([1, 2], dtype, alpha=-3.0), values, indices, [1, 2], np.array([[1], [0]], dtype))
    assert y[0, 0] == np.iinfo(dtype).min
