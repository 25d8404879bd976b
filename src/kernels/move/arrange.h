// The rarer ways of making or picking elements.
#pragma once

#include <cstdint>
#include <span>

#include "base/thread_pool.h"
#include "kernels/move/cell.h"
#include "kernels/move/gather.h"
#include "sardonyx/element_type.h"

namespace sardonyx::kernels {

// The upper or lower triangle of each [rows, columns] matrix, the rest zero. Keeps j - i >= k
// (upper) or j - i <= k. y may be x.
void trilu(Cell cell, int64_t matrices, int64_t rows, int64_t columns, int64_t k, bool upper,
           const void* x, void* y, ThreadPool& pool);

// y is [rows, columns] with one on the k-th diagonal; every number type with a Cell.
void eye(ElementType type, int64_t rows, int64_t columns, int64_t k, void* y, ThreadPool& pool);

// x is [a, b, inner], `batch_axis` 0 or 1 and time the other; the first lengths[batch] time steps
// are reversed. Throws Error (run_failed) for a length outside [0, time].
void reverse_sequence(Cell cell, int64_t a, int64_t b, int64_t inner, int batch_axis,
                      const int64_t* lengths, const void* x, void* y, ThreadPool& pool);

// How many elements are not zero (strings: not empty).
int64_t count_nonzero(ElementType type, const void* x, int64_t n);
// y is [rank, found], where found is count_nonzero's answer.
void nonzero(ElementType type, std::span<const int64_t> shape, const void* x, int64_t found,
             int64_t* y);

// Compress along an axis: x is [outer, dim, inner]; condition may be shorter than dim (the rest is
// false); what it holds beyond dim must be false. y is [outer, count of true, inner].
void compress(Cell cell, int64_t outer, int64_t dim, int64_t inner, const bool* condition,
              int64_t condition_size, const void* x, void* y, ThreadPool& pool);

// Elements from start to limit by delta, for int16 to int64, float32, float64, float16, bfloat16;
// pointers to one element each. Throws Error (run_failed) for delta 0 or NaN or a size beyond 2^48.
int64_t range_count(ElementType type, const void* start, const void* limit, const void* delta);
void range(ElementType type, const void* start, const void* delta, void* y, int64_t n);

// OneHot: y is [outer, depth, inner], indices [outer, inner] of any number type; `values` points to
// the off and the on value. Indices outside [-depth, depth) leave all off.
void one_hot(Cell cell, ElementType index_type, int64_t outer, int64_t depth, int64_t inner,
             const void* indices, const void* values, void* y, ThreadPool& pool);

}  // namespace sardonyx::kernels
