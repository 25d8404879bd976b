#include "kernels/move/strided.h"

#include <algorithm>
#include <array>
#include <optional>
#include <string>
#include <type_traits>
#include <vector>

#include "base/checked.h"
#include "base/fail.h"
#include "kernels/elementwise/walk.h"
#include "kernels/move/by_cell.h"
#include "kernels/move/transpose_block.h"
#include "kernels/shape_text.h"

namespace sardonyx::kernels {
namespace {

// The two dimensions a block spans: `columns` is the one y is contiguous along where there is one,
// `rows` another one, for Transpose the one x is contiguous along.
struct Blocks {
  int rows_dim = -1, columns_dim = -1;
  int64_t rows = 1, columns = 1;
  int64_t x_row = 0, y_row = 0, x_column = 0, y_column = 0;
  int64_t block_rows = 1, block_columns = 1;
  int64_t row_blocks = 1, column_blocks = 1;
  int64_t outer = 1;
};

constexpr int64_t row_block_elements = 16384;
constexpr int64_t transpose_side = 32;

Blocks choose_blocks(const StridedCopy& plan) {
  Blocks b;
  const int last = plan.rank - 1;
  b.columns_dim = last;
  b.columns = plan.dims[last];
  b.x_column = plan.x_strides[last];
  b.y_column = plan.y_strides[last];
  const bool across = b.x_column != 1 && b.x_column != 0;
  b.rows_dim = last - 1;
  for (int d = 0; across && d < last; ++d) {
    if (plan.x_strides[d] == 1) b.rows_dim = d;
  }
  if (b.rows_dim >= 0) {
    b.rows = plan.dims[b.rows_dim];
    b.x_row = plan.x_strides[b.rows_dim];
    b.y_row = plan.y_strides[b.rows_dim];
  }
  if (across && b.x_row == 1) {
    const auto other_side = [](int64_t side) { return std::max(transpose_side, 4096 / side); };
    const bool flat = b.rows < b.columns;
    b.block_rows =
        std::min(b.rows, flat ? transpose_side : other_side(std::min(b.columns, transpose_side)));
    b.block_columns = std::min(b.columns, flat ? other_side(b.block_rows) : transpose_side);
  } else {
    b.block_columns = std::min(b.columns, row_block_elements);
    b.block_rows = std::min(b.rows, std::max<int64_t>(1, row_block_elements / b.block_columns));
  }
  b.row_blocks = (b.rows + b.block_rows - 1) / b.block_rows;
  b.column_blocks = (b.columns + b.block_columns - 1) / b.block_columns;
  b.outer = plan.count / (b.rows * b.columns);
  return b;
}

template <class T>
void copy_rows(const Blocks& b, const T* x, T* y, int64_t rows, int64_t columns) {
  for (int64_t r = 0; r < rows; ++r, x += b.x_row, y += b.y_row) {
    if (columns >= 16) {
      std::copy_n(x, columns, y);
    } else {
      for (int64_t c = 0; c < columns; ++c) y[c] = x[c];
    }
  }
}

template <class T>
void copy_block(const Blocks& b, const T* x, T* y, int64_t rows, int64_t columns) {
  if (b.y_column == 1 && b.x_column == 1) return copy_rows(b, x, y, rows, columns);
  if (b.y_column == 1 && b.x_column == 0) {
    for (int64_t r = 0; r < rows; ++r) std::fill_n(y + r * b.y_row, columns, x[r * b.x_row]);
    return;
  }
  if constexpr (std::is_trivially_copyable_v<T> && sizeof(T) <= 8) {
    if (b.y_column == 1 && b.x_row == 1)
      return transpose_block(sizeof(T), x, b.x_column, y, b.y_row, rows, columns);
    constexpr int64_t long_row = 16;
    if (b.y_column == 1 && b.x_column == 2 && columns >= long_row) {
      for (int64_t r = 0; r < rows; ++r)
        every_second(sizeof(T), x + r * b.x_row, y + r * b.y_row, columns);
      return;
    }
  }
  for (int64_t r = 0; r < rows; ++r) {
    const T* from = x + r * b.x_row;
    T* to = y + r * b.y_row;
    for (int64_t c = 0; c < columns; ++c) to[c * b.y_column] = from[c * b.x_column];
  }
}

// Where the dimensions outside the block stand.
struct Odometer {
  const StridedCopy& plan;
  const Blocks& blocks;
  int64_t index[StridedCopy::max_rank] = {};
  int64_t x = 0, y = 0;

  bool outside(int d) const { return d != blocks.rows_dim && d != blocks.columns_dim; }

  void seek(int64_t position) {
    x = plan.x_offset;
    y = plan.y_offset;
    for (int d = plan.rank; d-- > 0;) {
      if (!outside(d)) continue;
      index[d] = position % plan.dims[d];
      position /= plan.dims[d];
      x += index[d] * plan.x_strides[d];
      y += index[d] * plan.y_strides[d];
    }
  }

  void step() {
    for (int d = plan.rank; d-- > 0;) {
      if (!outside(d)) continue;
      x += plan.x_strides[d];
      y += plan.y_strides[d];
      if (++index[d] < plan.dims[d]) return;
      index[d] = 0;
      x -= plan.dims[d] * plan.x_strides[d];
      y -= plan.dims[d] * plan.y_strides[d];
    }
  }
};

// Units are blocks: column blocks fastest, then row blocks, then the dimensions outside.
template <class T>
void copy_units(const StridedCopy& plan, const Blocks& b, const T* x, T* y, int64_t begin,
                int64_t end) {
  int64_t column = begin % b.column_blocks;
  int64_t row = begin / b.column_blocks % b.row_blocks;
  Odometer at{plan, b};
  at.seek(begin / b.column_blocks / b.row_blocks);
  for (int64_t unit = begin; unit < end; ++unit) {
    const int64_t r = row * b.block_rows;
    const int64_t c = column * b.block_columns;
    copy_block(b, x + at.x + r * b.x_row + c * b.x_column, y + at.y + r * b.y_row + c * b.y_column,
               std::min(b.block_rows, b.rows - r), std::min(b.block_columns, b.columns - c));
    if (++column < b.column_blocks) continue;
    column = 0;
    if (++row < b.row_blocks) continue;
    row = 0;
    at.step();
  }
}

template <class T>
void copy_all(const StridedCopy& plan, const T* x, T* y, ThreadPool& pool) {
  if (plan.rank == 0) {
    y[plan.y_offset] = x[plan.x_offset];
    return;
  }
  const Blocks b = choose_blocks(plan);
  const int64_t units = b.outer * b.row_blocks * b.column_blocks;
  if (stays_alone(plan.count, pool)) return copy_units(plan, b, x, y, 0, units);
  const int64_t grain = std::max<int64_t>(1, element_grain / (b.block_rows * b.block_columns));
  pool.parallel_for(units, grain, [&](int64_t begin, int64_t end, int) {
    copy_units(plan, b, x, y, begin, end);
  });
}

std::vector<int64_t> strides_of(std::span<const int64_t> shape) {
  std::vector<int64_t> strides(shape.size());
  int64_t stride = 1;
  for (size_t d = shape.size(); d-- > 0; stride *= shape[d]) strides[d] = stride;
  return strides;
}

int64_t count_or_fail(std::span<const int64_t> shape) {
  const auto count = checked_count(shape);
  if (!count) fail(ErrorCode::bad_input, "{} is no shape", shape_text(shape));
  return *count;
}

[[noreturn]] void misfit(const char* what, std::span<const int64_t> shape,
                         std::span<const int64_t> other) {
  fail(ErrorCode::bad_input, "{} {} does not fit a tensor of shape {}", what, shape_text(other),
       shape_text(shape));
}

// The first and last element that a walk touches, nullopt where it cannot be told in 63 bits.
struct Extent {
  int64_t low, high;
};
std::optional<Extent> extent_of(std::span<const int64_t> dims, std::span<const int64_t> strides,
                                int64_t offset) {
  Extent e{offset, offset};
  for (size_t d = 0; d < dims.size(); ++d) {
    const auto reach = checked_mul(dims[d] - 1, strides[d]);
    if (!reach) return std::nullopt;
    int64_t& end = *reach < 0 ? e.low : e.high;
    if (__builtin_add_overflow(end, *reach, &end)) return std::nullopt;
  }
  return e;
}

void check_inside(std::span<const int64_t> dims, std::span<const int64_t> strides, int64_t offset,
                  int64_t count) {
  const auto extent = extent_of(dims, strides, offset);
  if (!extent || extent->low < 0 || extent->high >= count) {
    fail(ErrorCode::bad_input, "a copy of {} elements from position {} leaves its tensor of {}",
         shape_text(dims), offset, count);
  }
}

struct Dimension {
  int64_t size, x, y;
};

int64_t magnitude(int64_t v) { return v < 0 ? -v : v; }

// Drops dimensions of size 1, orders by y's stride and merges what walks alike.
StridedCopy simplified(std::span<const int64_t> dims, std::span<const int64_t> x_strides,
                       std::span<const int64_t> y_strides) {
  std::vector<Dimension> list;
  for (size_t d = 0; d < dims.size(); ++d) {
    if (dims[d] != 1) list.push_back({dims[d], x_strides[d], y_strides[d]});
  }
  std::stable_sort(list.begin(), list.end(), [](const Dimension& a, const Dimension& b) {
    return magnitude(a.y) > magnitude(b.y);
  });
  StridedCopy plan;
  plan.count = 1;
  for (const Dimension& dim : list) {
    plan.count *= dim.size;
    if (plan.rank > 0) {
      const int at = plan.rank - 1;
      if (plan.x_strides[at] == dim.x * dim.size && plan.y_strides[at] == dim.y * dim.size) {
        plan.dims[at] *= dim.size;
        plan.x_strides[at] = dim.x;
        plan.y_strides[at] = dim.y;
        continue;
      }
    }
    if (plan.rank == StridedCopy::max_rank) {
      fail(ErrorCode::unsupported, "a copy over {} needs more than {} nested loops",
           shape_text(dims), StridedCopy::max_rank);
    }
    plan.dims[plan.rank] = dim.size;
    plan.x_strides[plan.rank] = dim.x;
    plan.y_strides[plan.rank] = dim.y;
    ++plan.rank;
  }
  return plan;
}

StridedCopy slice_or_insert(std::span<const int64_t> shape, std::span<const int64_t> starts,
                            std::span<const int64_t> steps, std::span<const int64_t> part,
                            bool insert) {
  if (starts.size() != shape.size()) misfit("starts", shape, starts);
  if (steps.size() != shape.size()) misfit("steps", shape, steps);
  if (part.size() != shape.size()) misfit("a slice of shape", shape, part);
  const int64_t whole_count = count_or_fail(shape);
  const int64_t part_count = count_or_fail(part);
  if (part_count == 0) {
    StridedCopy nothing;
    nothing.count = 0;
    return nothing;
  }
  const auto whole = strides_of(shape);
  std::vector<int64_t> walked(shape.size());
  int64_t offset = 0;
  for (size_t d = 0; d < shape.size(); ++d) {
    const auto reach = checked_mul(part[d] - 1, steps[d]);
    const auto last = reach ? checked_add(starts[d], *reach) : std::nullopt;
    const bool inside = last && starts[d] >= 0 && starts[d] < shape[d] && *last >= 0 &&
                        *last < shape[d] && (steps[d] != 0 || part[d] == 1);
    if (!inside) misfit("a slice that starts at", shape, starts);
    walked[d] = part[d] == 1 ? 0 : whole[d] * steps[d];
    offset += starts[d] * whole[d];
  }
  const auto dense = strides_of(part);
  if (insert) return plan_strided(part, dense, walked, 0, offset, part_count, whole_count);
  return plan_strided(part, walked, dense, offset, 0, whole_count, part_count);
}

}  // namespace

bool StridedCopy::is_plain() const {
  return rank == 0 || count == 0 || (rank == 1 && x_strides[0] == 1 && y_strides[0] == 1);
}

StridedCopy plan_strided(std::span<const int64_t> dims, std::span<const int64_t> x_strides,
                         std::span<const int64_t> y_strides, int64_t x_offset, int64_t y_offset,
                         int64_t x_count, int64_t y_count) {
  if (x_strides.size() != dims.size() || y_strides.size() != dims.size()) {
    fail(ErrorCode::internal, "a strided copy has {} sizes but {} and {} strides", dims.size(),
         x_strides.size(), y_strides.size());
  }
  StridedCopy plan;
  if (count_or_fail(dims) == 0) {
    plan.count = 0;
    return plan;
  }
  check_inside(dims, x_strides, x_offset, x_count);
  check_inside(dims, y_strides, y_offset, y_count);
  plan = simplified(dims, x_strides, y_strides);
  plan.x_offset = x_offset;
  plan.y_offset = y_offset;
  return plan;
}

StridedCopy plan_transpose(std::span<const int64_t> shape, std::span<const int64_t> perm) {
  const size_t rank = shape.size();
  const int64_t count = count_or_fail(shape);
  std::vector<int64_t> output(rank), walked(rank);
  std::vector<bool> seen(rank);
  const auto strides = strides_of(shape);
  if (perm.size() != rank) misfit("perm", shape, perm);
  for (size_t d = 0; d < rank; ++d) {
    const auto from = static_cast<size_t>(perm[d]);
    if (perm[d] < 0 || from >= rank || seen[from]) misfit("perm", shape, perm);
    seen[from] = true;
    output[d] = shape[from];
    walked[d] = strides[from];
  }
  return plan_strided(output, walked, strides_of(output), 0, 0, count, count);
}

StridedCopy plan_slice(std::span<const int64_t> shape, std::span<const int64_t> starts,
                       std::span<const int64_t> steps, std::span<const int64_t> output) {
  return slice_or_insert(shape, starts, steps, output, false);
}

StridedCopy plan_insert(std::span<const int64_t> shape, std::span<const int64_t> starts,
                        std::span<const int64_t> steps, std::span<const int64_t> output) {
  return slice_or_insert(output, starts, steps, shape, true);
}

StridedCopy plan_expand(std::span<const int64_t> shape, std::span<const int64_t> output) {
  if (shape.size() > output.size()) misfit("Expand to", shape, output);
  const size_t missing = output.size() - shape.size();
  const auto strides = strides_of(shape);
  std::vector<int64_t> walked(output.size());
  for (size_t d = 0; d < shape.size(); ++d) {
    if (shape[d] != 1 && shape[d] != output[d + missing]) misfit("Expand to", shape, output);
    walked[d + missing] = shape[d] == 1 ? 0 : strides[d];
  }
  const int64_t y_count = count_or_fail(output);
  return plan_strided(output, walked, strides_of(output), 0, 0, count_or_fail(shape), y_count);
}

StridedCopy plan_tile(std::span<const int64_t> shape, std::span<const int64_t> repeats) {
  if (repeats.size() != shape.size()) misfit("repeats", shape, repeats);
  const int64_t x_count = count_or_fail(shape);
  const auto strides = strides_of(shape);
  std::vector<int64_t> dims, walked;
  for (size_t d = 0; d < shape.size(); ++d) {
    if (repeats[d] < 0) misfit("repeats", shape, repeats);
    dims.insert(dims.end(), {repeats[d], shape[d]});
    walked.insert(walked.end(), {0, strides[d]});
  }
  const int64_t y_count = count_or_fail(dims);
  return plan_strided(dims, walked, strides_of(dims), 0, 0, x_count, y_count);
}

StridedCopy plan_concat(std::span<const int64_t> shape, std::span<const int64_t> output,
                        int64_t axis, int64_t position) {
  std::vector<int64_t> starts(output.size()), steps(output.size(), 1);
  if (axis < 0 || static_cast<size_t>(axis) >= starts.size()) misfit("Concat to", shape, output);
  starts[static_cast<size_t>(axis)] = position;
  return plan_insert(shape, starts, steps, output);
}

StridedCopy plan_split(std::span<const int64_t> shape, int64_t axis, int64_t position,
                       int64_t size) {
  std::vector<int64_t> starts(shape.size()), steps(shape.size(), 1);
  std::vector<int64_t> part(shape.begin(), shape.end());
  if (axis < 0 || static_cast<size_t>(axis) >= starts.size()) {
    fail(ErrorCode::bad_input, "axis {} does not fit shape {}", axis, shape_text(shape));
  }
  starts[static_cast<size_t>(axis)] = position;
  part[static_cast<size_t>(axis)] = size;
  return plan_slice(shape, starts, steps, part);
}

StridedCopy plan_depth_to_space(std::span<const int64_t> shape, int64_t block,
                                bool depth_column_row) {
  if (shape.size() != 4 || block < 1 || shape[1] % block != 0 || shape[1] / block % block != 0) {
    fail(ErrorCode::bad_input, "blocks of {} do not divide the channels of shape {}", block,
         shape_text(shape));
  }
  const int64_t depth = shape[1] / block / block;
  const int64_t n = shape[0], h = shape[2], w = shape[3];
  if (depth_column_row) {
    return plan_transpose(std::array{n, block, block, depth, h, w},
                          std::array<int64_t, 6>{0, 3, 4, 1, 5, 2});
  }
  return plan_transpose(std::array{n, depth, block, block, h, w},
                        std::array<int64_t, 6>{0, 1, 4, 2, 5, 3});
}

StridedCopy plan_space_to_depth(std::span<const int64_t> shape, int64_t block) {
  if (shape.size() != 4 || block < 1 || shape[2] % block != 0 || shape[3] % block != 0) {
    fail(ErrorCode::bad_input, "blocks of {} do not divide height and width of shape {}", block,
         shape_text(shape));
  }
  return plan_transpose(
      std::array{shape[0], shape[1], shape[2] / block, block, shape[3] / block, block},
      std::array<int64_t, 6>{0, 3, 5, 1, 2, 4});
}

void copy_strided(Cell cell, const StridedCopy& plan, const void* x, void* y, ThreadPool& pool) {
  if (plan.count == 0) return;
  by_cell(cell, [&](const auto& zero) {
    using T = std::remove_cvref_t<decltype(zero)>;
    copy_all(plan, static_cast<const T*>(x), static_cast<T*>(y), pool);
  });
}

void fill(Cell cell, const void* value, void* y, int64_t n, ThreadPool& pool) {
  by_cell(cell, [&](const auto& zero) {
    using T = std::remove_cvref_t<decltype(zero)>;
    const T& v = *static_cast<const T*>(value);
    for_chunks(n, pool, [&](int64_t begin, int64_t end) {
      std::fill(static_cast<T*>(y) + begin, static_cast<T*>(y) + end, v);
    });
  });
}

}  // namespace sardonyx::kernels
