// Gather, Scatter and their kin. Indices come from outside: negative ones count from the end, those
// out of range throw Error (run_failed) that names the index; nothing is read or written outside.
#pragma once

#include <cstdint>
#include <span>

#include "base/thread_pool.h"
#include "kernels/move/cell.h"
#include "sardonyx/element_type.h"

namespace sardonyx::kernels {

// A tensor of int32 or int64.
struct Indices {
  const void* data = nullptr;
  int64_t count = 0;
  bool wide = true;  // int64

  Indices() = default;
  Indices(const int64_t* values, int64_t n) : data(values), count(n), wide(true) {}
  Indices(const int32_t* values, int64_t n) : data(values), count(n), wide(false) {}
  // Throws Error (unsupported) for a type that is neither.
  Indices(ElementType type, const void* values, int64_t n);

  int64_t operator[](int64_t i) const {
    return wide ? static_cast<const int64_t*>(data)[i] : static_cast<const int32_t*>(data)[i];
  }
};

// x is [outer, dim, inner], y is [outer, indices.count, inner]. x may lie at any address, unless it
// holds strings.
void gather(Cell cell, int64_t outer, int64_t dim, int64_t inner, const void* x,
            const Indices& indices, void* y, ThreadPool& pool);

// y has the indices' shape; along `axis` each element says where to read.
void gather_elements(Cell cell, std::span<const int64_t> shape, int64_t axis, const void* x,
                     std::span<const int64_t> index_shape, const Indices& indices, void* y,
                     ThreadPool& pool);

// index_shape's last dimension holds the depth of each index; its first batch_dims are x's.
void gather_nd(Cell cell, std::span<const int64_t> shape, int64_t batch_dims, const void* x,
               std::span<const int64_t> index_shape, const Indices& indices, void* y,
               ThreadPool& pool);

enum class ScatterReduction : int32_t { none, add, mul, max, min };

// y holds the data and is changed. Reductions take the number types (boolean: add is or, mul is
// and); `none` takes all that have a Cell. Where indices repeat, updates apply in their order.
void scatter_elements(ElementType type, ScatterReduction reduction, std::span<const int64_t> shape,
                      int64_t axis, std::span<const int64_t> index_shape, const Indices& indices,
                      const void* updates, void* y, ThreadPool& pool);

void scatter_nd(ElementType type, ScatterReduction reduction, std::span<const int64_t> shape,
                std::span<const int64_t> index_shape, const Indices& indices, const void* updates,
                void* y, ThreadPool& pool);

}  // namespace sardonyx::kernels
