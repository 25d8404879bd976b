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
        made, given = _packed(zeros.T, bits), zero_points.reshape(columns, -1)
        # What no block uses of a column's last byte stays.
        used = bits * len(zeros) % 8 or 8
        made[:, -1] |= given[:, -1] & np.uint8(0xFF << used & 0xFF)
        given[:] = made


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


def _in_order(bits: int, packed: Array, weights: Array, scales: Array, zero_points: Array, block_size: int, columns: int, rows: int,
              symmetric: bool) -> bool:
    numbers, found, zeros = _quantized(weights, block_size, rows, bits, symmetric)
    numbers = numbers.reshape(-1, columns)[:rows].reshape(-1)
    packed.reshape(-1)[:] = _packed(numbers ^ 2 ** (bits - 1) if symmetric else numbers, bits)
    scales.reshape(-1)[:] = found.reshape(-1)
    if not symmetric and zero_points.size:
        zero_points.reshape(-1)[:] = _packed(zeros.reshape(-1), bits)
    return symmetric


def quantize_qdq_matmul_2bits(packed: Array, weights: Array, scales: Array, zero_points: Array, block_size: int, columns: int, rows: int,
                              symmetric: bool) -> bool:
    """For DequantizeLinear: `packed` in the order of the weights, `scales` and `zero_points` (blocks, columns). True: the numbers are
    int2, their zero points 0; False: uint2."""
    return _in_order(2, packed, weights, scales, zero_points, block_size, columns, rows, symmetric)


def quantize_qdq_matmul_4bits(packed: Array, weights: Array, scales: Array, zero_points: Array, block_size: int, columns: int, rows: int,
                              symmetric: bool) -> bool:
    """For DequantizeLinear: `packed` in the order of the weights, `scales` and `zero_points` (blocks, columns). True: the numbers are
    int4, their zero points 0; False: uint4."""
    return _in_order(4, packed, weights, scales, zero_points, block_size, columns, rows, symmetric)


# Of MatMulBnb4: where the magnitudes of a block, the largest being 1, change from one number to the next, and these numbers in order.
# The places are in the middle of what the numbers stand for, in as many digits as bitsandbytes has.
_FP4 = ([0.00260417, 0.0859375, 0.20833333, 0.29166667, 0.4166667, 0.583333, 0.8333333], [0, 1, 6, 7, 4, 5, 2, 3])
_NF4 = [-1.0, -0.6961928009986877, -0.5250730514526367, -0.39491748809814453, -0.28444138169288635, -0.18477343022823334,
        -0.09105003625154495, 0.0, 0.07958029955625534, 0.16093020141124725, 0.24611230194568634, 0.33791524171829224,
        0.44070982933044434, 0.5626170039176941, 0.7229568362236023, 1.0]


def _fp4(scaled: Array) -> Array:
    """The highest bit is the sign."""
    places, numbers = _FP4
    found: Array = np.array(numbers, np.uint8)[np.searchsorted(np.array(places, np.float32), np.abs(scaled))]
    found |= (scaled < 0).astype(np.uint8) << 3
    return found


def _nf4(scaled: Array) -> Array:
    values = np.array(_NF4)
    found: Array = np.searchsorted(((values[1:] + values[:-1]) / 2).astype(np.float32), scaled).astype(np.uint8)
    return found


def quantize_matmul_bnb4(packed: Array, weights: Array, absmax: Array, block_size: int, quant_type: int, columns: int, rows: int) -> None:
    """For MatMulBnb4: of all elements of `weights` in a row, blocks of `block_size`; `packed` takes two elements a byte, the first in
    the high bits, `absmax` the largest magnitude of each block. `quant_type`: 0 for FP4, 1 for NF4."""
    if quant_type not in (0, 1):
        raise ValueError(f"quant_type is 0 (FP4) or 1 (NF4), and {quant_type} was given")
    count = columns * rows
    padded = np.zeros(-(-count // block_size) * block_size, np.float32)
    padded[:count] = weights.reshape(-1)[:count]
    blocks = padded.reshape(-1, block_size)
    largest = np.abs(blocks).max(1)
    scaled = blocks * np.divide(np.float32(1), largest, out=np.zeros_like(largest), where=largest != 0)[:, None]
    numbers = (_nf4(scaled) if quant_type == 1 else _fp4(scaled)).reshape(-1)[: -(-count // 2) * 2]
    packed.reshape(-1)[:] = numbers[::2] << 4 | numbers[1::2]
    absmax.reshape(-1)[:] = largest


__all__ = ["quantize_matmul_2bits", "quantize_matmul_4bits", "quantize_matmul_8bits", "quantize_matmul_bnb4",
           "quantize_qdq_matmul_2bits", "quantize_qdq_matmul_4bits"]
