#include "kernels/move/gather.h"

#include <algorithm>
#include <cstring>
#include <optional>
#include <string>
#include <type_traits>
#include <vector>

#include "base/checked.h"
#include "base/fail.h"
#include "kernels/elementwise/walk.h"
#include "kernels/move/by_cell.h"
#include "kernels/move/index.h"
#include "kernels/shape_text.h"

namespace sardonyx::kernels {

Indices::Indices(ElementType type, const void* values, int64_t n)
    : data(values), count(n), wide(type == ElementType::int64) {
  if (type != ElementType::int64 && type != ElementType::int32) {
    fail(ErrorCode::unsupported, "indices must be int32 or int64, not {}", name_of(type));
  }
}

void bad_index(int64_t index, int64_t dim, int64_t position) {
  if (dim == 0) {
    fail(ErrorCode::run_failed, "index {} (element {} of the indices) into an empty axis", index,
         position);
  }
  fail(ErrorCode::run_failed,
       "index {} (element {} of the indices) is out of range: the axis has {} elements, so it must "
       "be in [{}, {}]",
       index, position, dim, -dim, dim - 1);
}

void check_index_count(const Indices& indices, int64_t expected) {
  if (indices.count != expected) {
    fail(ErrorCode::internal, "{} indices where their shape says {}", indices.count, expected);
  }
}

int64_t checked_elements(std::span<const int64_t> shape) {
  const auto count = checked_count(shape);
  if (!count) fail(ErrorCode::bad_input, "{} is no shape", shape_text(shape));
  return *count;
}

AxisWalk walk_axis(std::span<const int64_t> shape, int64_t axis,
                   std::span<const int64_t> index_shape) {
  AxisWalk walk;
  const size_t rank = shape.size();
  if (index_shape.size() != rank || rank > AxisWalk::max_rank || axis < 0 ||
      static_cast<size_t>(axis) >= rank) {
    fail(rank > AxisWalk::max_rank ? ErrorCode::unsupported : ErrorCode::bad_input,
         "indices of shape {} along axis {} do not fit data of shape {}", shape_text(index_shape),
         axis, shape_text(shape));
  }
  walk.count = checked_elements(index_shape);
  checked_elements(shape);
  int64_t strides[AxisWalk::max_rank];
  int64_t stride = 1;
  for (size_t d = rank; d-- > 0; stride *= shape[d]) {
    strides[d] = stride;
    const bool along = d == static_cast<size_t>(axis);
    if (!along && index_shape[d] > shape[d]) {
      fail(ErrorCode::bad_input, "indices of shape {} are larger than the data of shape {}",
           shape_text(index_shape), shape_text(shape));
    }
    if (along) {
      walk.axis_dim = shape[d];
      walk.axis_stride = stride;
      strides[d] = 0;
    }
  }
  for (size_t d = 0; d < rank; ++d) {
    const int32_t before = walk.rank - 1;
    if (index_shape[d] == 1) continue;
    if (before >= 0 && walk.strides[before] == index_shape[d] * strides[d]) {
      walk.dims[before] *= index_shape[d];
      walk.strides[before] = strides[d];
      continue;
    }
    walk.dims[walk.rank] = index_shape[d];
    walk.strides[walk.rank++] = strides[d];
  }
  if (walk.rank == 0) {
    walk.dims[0] = 1;
    walk.rank = 1;
  }
  return walk;
}

TupleWalk walk_tuples(std::span<const int64_t> shape, int64_t batch_dims,
                      std::span<const int64_t> index_shape) {
  TupleWalk walk;
  const auto rank = static_cast<int64_t>(shape.size());
  const int64_t depth = index_shape.empty() ? 0 : index_shape.back();
  const auto leading = static_cast<int64_t>(index_shape.size()) - 1;
  if (index_shape.empty() || batch_dims < 0 || batch_dims > leading || depth < 0 ||
      depth > rank - batch_dims || depth > TupleWalk::max_depth) {
    fail(ErrorCode::bad_input, "indices of shape {} with {} batch dimensions do not fit data of {}",
         shape_text(index_shape), batch_dims, shape_text(shape));
  }
  checked_elements(shape);
  checked_elements(index_shape);
  for (int64_t d = 0; d < batch_dims; ++d) {
    const auto at = static_cast<size_t>(d);
    if (shape[at] != index_shape[at]) {
      fail(ErrorCode::bad_input, "batch dimension {} of the indices {} differs from the data's {}",
           d, shape_text(index_shape), shape_text(shape));
    }
  }
  walk.depth = static_cast<int32_t>(depth);
  const auto split = static_cast<size_t>(batch_dims + depth);
  walk.inner = count_of(shape.subspan(split));
  int64_t stride = walk.inner;
  for (int64_t k = depth; k-- > 0;) {
    const auto at = static_cast<size_t>(batch_dims + k);
    walk.dims[k] = shape[at];
    walk.strides[k] = stride;
    stride *= shape[at];
  }
  walk.batch_stride = stride;
  const auto batches = index_shape.first(static_cast<size_t>(batch_dims));
  walk.tuples = count_of(index_shape.first(static_cast<size_t>(leading)));
  walk.tuples_per_batch =
      count_of(index_shape.subspan(batches.size(), static_cast<size_t>(leading - batch_dims)));
  return walk;
}

int64_t TupleWalk::offset(const Indices& indices, int64_t tuple) const {
  int64_t at = tuple < tuples_per_batch ? 0 : tuple / tuples_per_batch * batch_stride;
  for (int32_t k = 0; k < depth; ++k) {
    const int64_t position = tuple * depth + k;
    at += wrapped(indices[position], dims[k], position) * strides[k];
  }
  return at;
}

namespace {

constexpr int64_t few_columns = 64;

// Rows [begin, end) of the result. x may lie at any address, unless it holds strings.
template <class T>
void gather_rows(int64_t dim, int64_t inner, const void* data, const Indices& indices, T* y,
                 int64_t begin, int64_t end) {
  const int64_t count = indices.count, size = int64_t{sizeof(T)};
  const auto* x = static_cast<const char*>(data) + begin / count * dim * inner * size;
  int64_t j = begin % count;
  for (y += begin * inner; begin < end; j = 0, x += dim * inner * size) {
    const int64_t stop = std::min(count, j + end - begin);
    begin += stop - j;
    for (; j < stop; ++j, y += inner) {
      const char* row = x + wrapped(indices[j], dim, j) * inner * size;
      if constexpr (!std::is_trivially_copyable_v<T>) {
        std::copy_n(reinterpret_cast<const T*>(row), inner, y);
      } else if (inner == 1) {
        std::memcpy(y, row, sizeof(T));
      } else {
        std::memcpy(y, row, static_cast<size_t>(inner) * sizeof(T));
      }
    }
  }
}

// Elements [begin, end) of the result where each row of x gives a few elements, the same of each:
// the indices are looked at once.
template <class T>
void gather_columns(int64_t dim, const void* data, const Indices& indices, T* y, int64_t begin,
                    int64_t end) {
  const int64_t count = indices.count, size = int64_t{sizeof(T)};
  int64_t offsets[few_columns];
  for (int64_t j = 0; j < count; ++j) offsets[j] = wrapped(indices[j], dim, j) * size;
  const auto* x = static_cast<const char*>(data) + begin / count * dim * size;
  y += begin;
  // Elements [from, to) of `rows` rows.
  const auto take = [&](int64_t rows, int64_t from, int64_t to) {
    for (int64_t r = 0; r < rows; ++r, x += dim * size) {
      for (int64_t j = from; j < to; ++j, ++y) std::memcpy(y, x + offsets[j], sizeof(T));
    }
  };
  if (const int64_t from = begin % count; from != 0) {
    const int64_t to = std::min(count, from + end - begin);
    take(1, from, to);
    begin += to - from;
  }
  const int64_t rows = (end - begin) / count;
  if (count == 1)
    take(rows, 0, 1);
  else
    take(rows, 0, count);
  take(1, 0, (end - begin) % count);
}

// Chunks of rows of `inner` elements; long rows are still whole.
template <class Body>
void for_rows(int64_t rows, int64_t inner, ThreadPool& pool, Body&& body) {
  if (rows == 0 || inner == 0) return;
  const int64_t grain = std::max<int64_t>(1, element_grain / std::max<int64_t>(inner, 4));
  if (rows <= grain) return body(int64_t{0}, rows);
  pool.parallel_for(rows, grain, [&](int64_t begin, int64_t end, int) { body(begin, end); });
}

template <class T>
void gather_along(const AxisWalk& walk, const T* x, const Indices& indices, T* y, int64_t begin,
                  int64_t end) {
  visit_places(walk, indices, begin, end,
               [=](int64_t from, int64_t i, int64_t n) { std::copy_n(x + from, n, y + i); });
}

}  // namespace

void gather(Cell cell, int64_t outer, int64_t dim, int64_t inner, const void* x,
            const Indices& indices, void* y, ThreadPool& pool) {
  // Also where nothing is copied an index must be one.
  if (inner == 0 && outer != 0) {
    for (int64_t i = 0; i < indices.count; ++i) wrapped(indices[i], dim, i);
  }
  by_cell(cell, [&](const auto& zero) {
    using T = std::remove_cvref_t<decltype(zero)>;
    for_rows(outer * indices.count, inner, pool, [&](int64_t begin, int64_t end) {
      if constexpr (std::is_trivially_copyable_v<T>) {
        if (inner == 1 && indices.count <= few_columns && outer > 1)
          return gather_columns(dim, x, indices, static_cast<T*>(y), begin, end);
      }
      gather_rows(dim, inner, x, indices, static_cast<T*>(y), begin, end);
    });
  });
}

void gather_elements(Cell cell, std::span<const int64_t> shape, int64_t axis, const void* x,
                     std::span<const int64_t> index_shape, const Indices& indices, void* y,
                     ThreadPool& pool) {
  const AxisWalk walk = walk_axis(shape, axis, index_shape);
  check_index_count(indices, walk.count);
  by_cell(cell, [&](const auto& zero) {
    using T = std::remove_cvref_t<decltype(zero)>;
    for_chunks(walk.count, pool, [&](int64_t begin, int64_t end) {
      gather_along(walk, static_cast<const T*>(x), indices, static_cast<T*>(y), begin, end);
    });
  });
}

void gather_nd(Cell cell, std::span<const int64_t> shape, int64_t batch_dims, const void* x,
               std::span<const int64_t> index_shape, const Indices& indices, void* y,
               ThreadPool& pool) {
  const TupleWalk walk = walk_tuples(shape, batch_dims, index_shape);
  check_index_count(indices, walk.tuples * walk.depth);
  by_cell(cell, [&](const auto& zero) {
    using T = std::remove_cvref_t<decltype(zero)>;
    for_rows(walk.tuples, walk.inner, pool, [&](int64_t begin, int64_t end) {
      for (int64_t i = begin; i < end; ++i) {
        std::copy_n(static_cast<const T*>(x) + walk.offset(indices, i), walk.inner,
                    static_cast<T*>(y) + i * walk.inner);
      }
    });
  });
}

}  // namespace sardonyx::kernels
