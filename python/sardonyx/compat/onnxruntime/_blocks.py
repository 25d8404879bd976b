"""Weights in blocks of a few bits, as onnxruntime.quantization makes them for MatMulNBits and DequantizeLinear.

The functions write into arrays of the caller. A block is `block_size` consecutive rows of one column; its scale has the type of the
weights, and zero points are written where blocks are not symmetric.
"""

from __future__ import annotations

from typing import Any

import numpy as np

Array = np.ndarray[Any, Any]


def _quantized(weights: Array, block_size: int, rows: int, bits: int, symmetric: bool) -> tuple[Array, Array, Array]:
    """Unsigned numbers (blocks, rows of a block, columns), and the scales and zero points of (blocks, columns)."""
    blocks = -(-rows // block_size)
    padded = np.zeros((blocks * block_size, weights.shape[1]), np.float32)
    padded[:rows] = weights[:rows]
    padded = padded.reshape(blocks, block_size, -1)
    most = 2**bits - 1
    if symmetric:
        # The number of the largest magnitude becomes the lowest, which has no positive counterpart.
        largest = np.take_along_axis(padded, np.abs(padded).argmax(1)[:, None], 1)[:, 0]
        scales = largest / np.float32(-(2 ** (bits - 1)))
        zeros = np.full(scales.shape, 2 ** (bits - 1), np.float32)
    else:
        low, high = np.minimum(padded.min(1), 0), np.maximum(padded.max(1), 0)
        scales = (high - low) / np.float32(most)
        zeros = np.round(np.divide(-low, scales, out=np.zeros_like(low), where=scales != 0)).clip(0, most)
    kept = scales.astype(weights.dtype)
    used = kept.astype(np.float32)
    inverse = np.divide(np.float32(1), used, out=np.zeros_like(used), where=used != 0)
    numbers = np.round(padded * inverse[:, None] + zeros[:, None]).clip(0, most).astype(np.uint8)
    return numbers, kept, zeros.astype(np.uint8)


def _packed(numbers: Array, bits: int) -> Array:
    """The last dimension, several numbers a byte, the first in the lowest bits."""
    each = 8 // bits
    padded = np.zeros((*numbers.shape[:-1], -(-numbers.shape[-1] // each) * each), np.uint8)
    padded[..., : numbers.shape[-1]] = numbers
    parts = padded.reshape(*padded.shape[:-1], -1, each)
    made: Array = np.bitwise_or.reduce(parts << (bits * np.arange(each, dtype=np.uint8)), -1).astype(np.uint8)
    return made


def _by_column(bits: int, packed: Array, weights: Array, scales: Array, zero_points: Array, block_size: int, columns: int, rows: int,
               symmetric: bool) -> None:
    numbers, found, zeros = _quantized(weights, block_size, rows, bits, symmetric)
    numbers.reshape(-1, columns)[rows:] = 0
    packed.reshape(-1)[:] = _packed(numbers.transpose(2, 0, 1), bits).reshape(-1)
    scales.reshape(-1)[:] = found.T.reshape(-1)
    if not symmetric and zero_points.size:
        zero_points.reshape(-1)[:] = _packed(zeros.T, bits).reshape(-1)


def quantize_matmul_2bits(packed: Array, weights: Array, scales: Array, zero_points: Array, block_size: int, columns: int, rows: int,
                          symmetric: bool) -> None:
    """Of weights (rows, columns) fills `packed` (columns, blocks, bytes of a block), `scales` and `zero_points` (columns, blocks)."""
    _by_column(2, packed, weights, scales, zero_points, block_size, columns, rows, symmetric)


def quantize_matmul_4bits(packed: Array, weights: Array, scales: Array, zero_points: Array, block_size: int, columns: int, rows: int,
                          symmetric: bool) -> None:
    """Of weights (rows, columns) fills `packed` (columns, blocks, bytes of a block), `scales` and `zero_points` (columns, blocks)."""
    _by_column(4, packed, weights, scales, zero_points, block_size, columns, rows, symmetric)


def quantize_matmul_8bits(packed: Array, weights: Array, scales: Array, zero_points: Array, block_size: int, columns: int, rows: int,
                          symmetric: bool) -> None:
    """Of weights (rows, columns) fills `packed` (columns, blocks, bytes of a block), `scales` and `zero_points` (columns, blocks)."""
    _by_column(8, packed, weights, scales, zero_points, block_size, columns, rows, symmetric)


def quantize_qdq_matmul_4bits(packed: Array, weights: Array, scales: Array, zero_points: Array, block_size: int, columns: int, rows: int,
                              symmetric: bool) -> bool:
    """For DequantizeLinear: `packed` in the order of the weights, `scales` and `zero_points` (blocks, columns). True: the numbers are
    int4, their zero points 0; False: uint4."""
    numbers, found, zeros = _quantized(weights, block_size, rows, 4, symmetric)
    numbers = numbers.reshape(-1, columns)[:rows].reshape(-1)
    packed.reshape(-1)[:] = _packed(numbers ^ 8 if symmetric else numbers, 4)
    scales.reshape(-1)[:] = found.reshape(-1)
    if not symmetric and zero_points.size:
        zero_points.reshape(-1)[:] = _packed(zeros.reshape(-1), 4)
    return symmetric


__all__ = ["quantize_matmul_2bits", "quantize_matmul_4bits", "quantize_matmul_8bits", "quantize_qdq_matmul_4bits"]
