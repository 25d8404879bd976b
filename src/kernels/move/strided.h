// Copies between two strided views: what Transpose, Slice, Expand, Tile, Concat, Split,
// DepthToSpace, SpaceToDepth and friends all are.
#pragma once

#include <cstdint>
#include <span>

#include "base/thread_pool.h"
#include "kernels/move/cell.h"

namespace sardonyx::kernels {

// For every index vector i below dims: y[y_offset + i·y_strides] = x[x_offset + i·x_strides].
// All in elements. Trivially copyable. Made by the plan_… functions, which check that it stays
// inside both arrays, drop dimensions of size 1, merge those that walk alike and put the
// dimensions in an order that is good to walk.
struct StridedCopy {
  static constexpr int max_rank = 16;
  int32_t rank = 0;
  int64_t count = 1;  // elements copied; 0 does nothing
  int64_t x_offset = 0;
  int64_t y_offset = 0;
  int64_t dims[max_rank] = {};
  int64_t x_strides[max_rank] = {};
  int64_t y_strides[max_rank] = {};

  // One run of memory, the same on both sides: a view would do.
  bool is_plain() const;
};

void copy_strided(Cell cell, const StridedCopy& plan, const void* x, void* y, ThreadPool& pool);

// All of these throw Error: bad_input where the arguments do not fit each other, unsupported where
// more than max_rank dimensions are left after merging.

// y's dimension i is x's dimension perm[i].
StridedCopy plan_transpose(std::span<const int64_t> shape, std::span<const int64_t> perm);
// y[i] = x[starts + i * steps], one start, step (any sign, not 0) and output size per axis of x.
StridedCopy plan_slice(std::span<const int64_t> shape, std::span<const int64_t> starts,
                       std::span<const int64_t> steps, std::span<const int64_t> output);
// The inverse: y[starts + i * steps] = x[i]; writes part of y.
StridedCopy plan_insert(std::span<const int64_t> shape, std::span<const int64_t> starts,
                        std::span<const int64_t> steps, std::span<const int64_t> output);
// x repeated along dimensions of size 1 (and new leading ones) to `output`.
StridedCopy plan_expand(std::span<const int64_t> shape, std::span<const int64_t> output);
// x laid out repeats[i] times along dimension i.
StridedCopy plan_tile(std::span<const int64_t> shape, std::span<const int64_t> repeats);
// x as the part of a Concat along `axis` that begins at `position`; `output` is the whole result.
StridedCopy plan_concat(std::span<const int64_t> shape, std::span<const int64_t> output,
                        int64_t axis, int64_t position);
// The part of x along `axis` that begins at `position` and has `size` slices (Split).
StridedCopy plan_split(std::span<const int64_t> shape, int64_t axis, int64_t position,
                       int64_t size);
// N x C x H x W. depth_column_row is mode DCR (the default), else CRD.
StridedCopy plan_depth_to_space(std::span<const int64_t> shape, int64_t block,
                                bool depth_column_row);
StridedCopy plan_space_to_depth(std::span<const int64_t> shape, int64_t block);
// Any walk: checked against the element counts of x and y, then simplified.
StridedCopy plan_strided(std::span<const int64_t> dims, std::span<const int64_t> x_strides,
                         std::span<const int64_t> y_strides, int64_t x_offset, int64_t y_offset,
                         int64_t x_count, int64_t y_count);

// y[i] = *value for i < n.
void fill(Cell cell, const void* value, void* y, int64_t n, ThreadPool& pool);

}  // namespace sardonyx::kernels
