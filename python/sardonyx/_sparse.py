"""Sparse tensors in coordinate form."""

from __future__ import annotations

import dataclasses
from typing import Any

import numpy as np
import numpy.typing as npt


@dataclasses.dataclass(frozen=True, eq=False)
class SparseTensor:
    """`values` [nnz]; `indices` int64, [nnz] (linear, row-major) or [nnz, rank]; `shape` of the dense tensor."""

    values: npt.NDArray[Any]
    indices: npt.NDArray[np.int64]
    shape: tuple[int, ...]

    def to_dense(self) -> npt.NDArray[Any]:
        dense = np.zeros(self.shape, self.values.dtype)
        if self.indices.ndim == 1:
            dense.reshape(-1)[self.indices] = self.values
        else:
            dense[tuple(self.indices.T)] = self.values
        return dense

    def to_scipy(self) -> Any:
        """scipy's coo_array of it; two dimensions, or one with a newer scipy."""
        import scipy.sparse  # type: ignore[import-untyped,import-not-found,unused-ignore]

        at = np.unravel_index(self.indices, self.shape) if self.indices.ndim == 1 else tuple(self.indices.T)
        return scipy.sparse.coo_array((self.values, at), shape=self.shape)


def parts(value: Any) -> tuple[npt.NDArray[Any], npt.NDArray[np.int64], tuple[int, ...]]:
    """Values, indices and shape of a sparse tensor, ours or scipy's; the standard wants their indices in order."""
    if hasattr(value, "tocoo"):
        matrix = value.tocoo()
        at = [np.asarray(axis, np.int64) for axis in getattr(matrix, "coords", None) or (matrix.row, matrix.col)]
        order = np.lexsort(tuple(reversed(at)))
        indices = np.stack([axis[order] for axis in at], axis=1)
        return np.asarray(matrix.data)[order], indices, tuple(int(size) for size in matrix.shape)
    if isinstance(value, SparseTensor):
        return np.asarray(value.values), np.asarray(value.indices, np.int64), tuple(value.shape)
    raise TypeError(f"a sparse tensor is a sardonyx.SparseTensor or one of scipy.sparse, and not a {type(value).__name__}")
