#include "kernels/move/arrange.h"

#include <algorithm>
#include <cmath>
#include <complex>
#include <cstring>
#include <limits>
#include <string>
#include <type_traits>

#include "base/checked.h"
#include "base/fail.h"
#include "kernels/convert/cast.h"
#include "kernels/convert/low_precision.h"
#include "kernels/elementwise/walk.h"
#include "kernels/move/by_cell.h"
#include "kernels/move/index.h"

namespace sardonyx::kernels {
namespace {

template <class Body>
void for_groups(int64_t groups, int64_t elements, ThreadPool& pool, Body&& body) {
  const int64_t grain = std::max<int64_t>(1, element_grain / std::max<int64_t>(elements, 1));
  if (groups <= grain) {
    if (groups > 0) body(int64_t{0}, groups);
    return;
  }
  pool.parallel_for(groups, grain, [&](int64_t begin, int64_t end, int) { body(begin, end); });
}

template <class T>
void trilu_row(int64_t row, int64_t columns, int64_t k, bool upper, const T* x, T* y) {
  // Saturated, since k is any number.
  int64_t diagonal;
  if (__builtin_add_overflow(row, k, &diagonal)) diagonal = columns;
  const int64_t split = std::clamp<int64_t>(upper                ? diagonal
                                            : diagonal < columns ? diagonal + 1
                                                                 : columns,
                                            0, columns);
  const int64_t keep_begin = upper ? split : 0;
  const int64_t keep_end = upper ? columns : split;
  if (x != y) std::copy(x + keep_begin, x + keep_end, y + keep_begin);
  std::fill(y, y + keep_begin, T{});
  std::fill(y + keep_end, y + columns, T{});
}

// Any bytes that are not all zero, but for -0.
template <class T>
bool is_nonzero(T v) {
  return v != T{};
}

template <class Visit>
void visit_nonzero(ElementType type, const void* x, int64_t n, Visit&& visit) {
  const auto each = [&](auto zero, auto test) {
    using T = decltype(zero);
    const auto* v = static_cast<const T*>(x);
    for (int64_t i = 0; i < n; ++i) {
      if (test(v[i])) visit(i);
    }
  };
  switch (type) {
    case ElementType::float32: return each(float{}, is_nonzero<float>);
    case ElementType::float64: return each(double{}, is_nonzero<double>);
    case ElementType::float16:
    case ElementType::bfloat16:
      return each(uint16_t{}, [](uint16_t v) { return (v & 0x7fff) != 0; });
    case ElementType::string:
      for (int64_t i = 0; i < n; ++i) {
        if (!static_cast<const std::string*>(x)[i].empty()) visit(i);
      }
      return;
    case ElementType::boolean:
    case ElementType::int8:
    case ElementType::uint8: return each(uint8_t{}, is_nonzero<uint8_t>);
    case ElementType::int16:
    case ElementType::uint16: return each(uint16_t{}, is_nonzero<uint16_t>);
    case ElementType::int32:
    case ElementType::uint32: return each(uint32_t{}, is_nonzero<uint32_t>);
    case ElementType::int64:
    case ElementType::uint64: return each(uint64_t{}, is_nonzero<uint64_t>);
    case ElementType::complex64:
      return each(std::complex<float>{}, is_nonzero<std::complex<float>>);
    case ElementType::complex128:
      return each(std::complex<double>{}, is_nonzero<std::complex<double>>);
    default: fail(ErrorCode::unsupported, "NonZero does not take {}", name_of(type));
  }
}

constexpr int64_t largest_range = int64_t{1} << 48;

[[noreturn]] void endless_range() {
  fail(ErrorCode::run_failed,
       "Range: delta is 0 or not a number, or there are more than 2^48 elements");
}

int64_t float_range_count(double start, double limit, double delta) {
  const double count = std::ceil((limit - start) / delta);
  if (delta == 0 || std::isnan(count) || count > static_cast<double>(largest_range))
    endless_range();
  return count > 0 ? static_cast<int64_t>(count) : 0;
}

int64_t integer_range_count(int64_t start, int64_t limit, int64_t delta) {
  if (delta == 0) endless_range();
  if (delta > 0 ? limit <= start : limit >= start) return 0;
  // The distance always fits in 64 unsigned bits.
  const uint64_t distance = delta > 0 ? static_cast<uint64_t>(limit) - static_cast<uint64_t>(start)
                                      : static_cast<uint64_t>(start) - static_cast<uint64_t>(limit);
  const uint64_t step =
      delta > 0 ? static_cast<uint64_t>(delta) : uint64_t{0} - static_cast<uint64_t>(delta);
  const uint64_t count = (distance - 1) / step + 1;
  if (count > static_cast<uint64_t>(largest_range)) endless_range();
  return static_cast<int64_t>(count);
}

int64_t integer_at(ElementType type, const void* x) {
  switch (type) {
    case ElementType::int16: return *static_cast<const int16_t*>(x);
    case ElementType::int32: return *static_cast<const int32_t*>(x);
    case ElementType::int64: return *static_cast<const int64_t*>(x);
    default: fail(ErrorCode::unsupported, "Range does not take {}", name_of(type));
  }
}

double number_at(ElementType type, const void* x) {
  if (type == ElementType::float64) return *static_cast<const double*>(x);
  float v;
  to_floats(type, x, &v, 1);
  return v;
}

template <class T>
void integer_sequence(const void* start, const void* delta, void* y, int64_t n) {
  using U = std::make_unsigned_t<T>;
  auto* out = static_cast<T*>(y);
  const auto step = static_cast<U>(*static_cast<const T*>(delta));
  // Each from one so far back that vectors of them need not wait for each other.
  constexpr int64_t back = 16;
  const auto stride = static_cast<U>(step * back);
  auto value = static_cast<U>(*static_cast<const T*>(start));
  for (int64_t i = 0; i < std::min(n, back); ++i, value = static_cast<U>(value + step))
    out[i] = static_cast<T>(value);
  for (int64_t i = back; i < n; ++i)
    out[i] = static_cast<T>(static_cast<U>(static_cast<U>(out[i - back]) + stride));
}

template <class T>
void float_sequence(T start, T delta, T* y, int64_t n) {
  // Places of 32 bits are converted by vectors.
  constexpr int64_t narrow = std::numeric_limits<int32_t>::max();
  const auto near = static_cast<int32_t>(std::min(n, narrow));
  for (int32_t i = 0; i < near; ++i) y[i] = start + static_cast<T>(i) * delta;
  for (int64_t i = near; i < n; ++i) y[i] = start + static_cast<T>(i) * delta;
}

// An index as OneHot takes it: any number type, truncated; -1 where it is outside.
int64_t hot_position(ElementType type, const void* x, int64_t i, int64_t depth) {
  double number = 0;
  int64_t v;
  switch (type) {
    case ElementType::int64: v = static_cast<const int64_t*>(x)[i]; break;
    case ElementType::int32: v = static_cast<const int32_t*>(x)[i]; break;
    case ElementType::int16: v = static_cast<const int16_t*>(x)[i]; break;
    case ElementType::int8: v = static_cast<const int8_t*>(x)[i]; break;
    case ElementType::uint8: v = static_cast<const uint8_t*>(x)[i]; break;
    case ElementType::uint16: v = static_cast<const uint16_t*>(x)[i]; break;
    case ElementType::uint32: v = static_cast<const uint32_t*>(x)[i]; break;
    case ElementType::uint64: {
      const uint64_t u = static_cast<const uint64_t*>(x)[i];
      return u < static_cast<uint64_t>(depth) ? static_cast<int64_t>(u) : -1;
    }
    default: {
      number = number_at(type, static_cast<const char*>(x) + i * (bit_width(type) / 8));
      const auto bound = static_cast<double>(depth);
      if (!(number > -bound - 1 && number < bound)) return -1;
      v = static_cast<int64_t>(number);
    }
  }
  if (v < 0) v = v < -depth ? -1 : v + depth;
  return v < depth ? v : -1;
}

}  // namespace

void trilu(Cell cell, int64_t matrices, int64_t rows, int64_t columns, int64_t k, bool upper,
           const void* x, void* y, ThreadPool& pool) {
  by_cell(cell, [&](const auto& zero) {
    using T = std::remove_cvref_t<decltype(zero)>;
    for_groups(matrices * rows, columns, pool, [&](int64_t begin, int64_t end) {
      for (int64_t r = begin; r < end; ++r) {
        trilu_row(r % rows, columns, k, upper, static_cast<const T*>(x) + r * columns,
                  static_cast<T*>(y) + r * columns);
      }
    });
  });
}

void eye(ElementType type, int64_t rows, int64_t columns, int64_t k, void* y, ThreadPool&) {
  const uint8_t one = 1;
  alignas(16) uint8_t value[16] = {};
  cast_row(ElementType::uint8, type, &one, value, 1);
  by_cell(cell_of(type), [&](const auto& zero) {
    using T = std::remove_cvref_t<decltype(zero)>;
    auto* out = static_cast<T*>(y);
    std::fill_n(out, rows * columns, T{});
    const int64_t first = k < 0 ? (k < -rows ? rows : -k) : 0;
    for (int64_t r = first; r < rows; ++r) {
      const auto column = checked_add(r, k);
      if (!column || *column >= columns) break;
      if constexpr (!std::is_same_v<T, std::string>) {
        std::memcpy(&out[r * columns + *column], value, sizeof(T));
      }
    }
  });
}

void reverse_sequence(Cell cell, int64_t a, int64_t b, int64_t inner, int batch_axis,
                      const int64_t* lengths, const void* x, void* y, ThreadPool& pool) {
  const int64_t batches = batch_axis == 0 ? a : b;
  const int64_t time = batch_axis == 0 ? b : a;
  for (int64_t i = 0; i < batches; ++i) {
    if (lengths[i] < 0 || lengths[i] > time) {
      fail(ErrorCode::run_failed, "sequence length {} (element {}) is not in [0, {}]", lengths[i],
           i, time);
    }
  }
  by_cell(cell, [&](const auto& zero) {
    using T = std::remove_cvref_t<decltype(zero)>;
    for_groups(a * b, inner, pool, [&](int64_t begin, int64_t end) {
      for (int64_t row = begin; row < end; ++row) {
        const int64_t i = row / b, j = row % b;
        const int64_t length = lengths[batch_axis == 0 ? i : j];
        const int64_t t = batch_axis == 0 ? j : i;
        const int64_t from = t < length ? length - 1 - t : t;
        const int64_t source = batch_axis == 0 ? i * b + from : from * b + j;
        std::copy_n(static_cast<const T*>(x) + source * inner, inner,
                    static_cast<T*>(y) + row * inner);
      }
    });
  });
}

int64_t count_nonzero(ElementType type, const void* x, int64_t n) {
  int64_t found = 0;
  visit_nonzero(type, x, n, [&](int64_t) { ++found; });
  return found;
}

void nonzero(ElementType type, std::span<const int64_t> shape, const void* x, int64_t found,
             int64_t* y) {
  int64_t column = 0;
  visit_nonzero(type, x, count_of(shape), [&](int64_t position) {
    if (column >= found) return;
    for (size_t d = shape.size(); d-- > 0;) {
      y[static_cast<int64_t>(d) * found + column] = position % shape[d];
      position /= shape[d];
    }
    ++column;
  });
}

void compress(Cell cell, int64_t outer, int64_t dim, int64_t inner, const bool* condition,
              int64_t condition_size, const void* x, void* y, ThreadPool&) {
  const auto* chosen = reinterpret_cast<const uint8_t*>(condition);
  for (int64_t i = dim; i < condition_size; ++i) {
    if (chosen[i] != 0) bad_index(i, dim, i);
  }
  const int64_t looked = std::min(dim, condition_size);
  by_cell(cell, [&](const auto& zero) {
    using T = std::remove_cvref_t<decltype(zero)>;
    const auto* from = static_cast<const T*>(x);
    auto* to = static_cast<T*>(y);
    for (int64_t o = 0; o < outer; ++o) {
      for (int64_t i = 0; i < looked; ++i) {
        if (chosen[i] == 0) continue;
        const int64_t begin = i;
        while (i + 1 < looked && chosen[i + 1] != 0) ++i;
        to = std::copy_n(from + (o * dim + begin) * inner, (i + 1 - begin) * inner, to);
      }
    }
  });
}

int64_t range_count(ElementType type, const void* start, const void* limit, const void* delta) {
  if (is_floating(type)) {
    return float_range_count(number_at(type, start), number_at(type, limit),
                             number_at(type, delta));
  }
  return integer_range_count(integer_at(type, start), integer_at(type, limit),
                             integer_at(type, delta));
}

void range(ElementType type, const void* start, const void* delta, void* y, int64_t n) {
  switch (type) {
    case ElementType::int16: return integer_sequence<int16_t>(start, delta, y, n);
    case ElementType::int32: return integer_sequence<int32_t>(start, delta, y, n);
    case ElementType::int64: return integer_sequence<int64_t>(start, delta, y, n);
    case ElementType::float64:
      return float_sequence(number_at(type, start), number_at(type, delta), static_cast<double*>(y),
                            n);
    case ElementType::float32:
      return float_sequence(*static_cast<const float*>(start), *static_cast<const float*>(delta),
                            static_cast<float*>(y), n);
    default: {
      const auto first = static_cast<float>(number_at(type, start));
      const auto step = static_cast<float>(number_at(type, delta));
      for (int64_t i = 0; i < n; ++i) {
        const float v = first + static_cast<float>(i) * step;
        to_float16(type, &v, static_cast<uint16_t*>(y) + i, 1);
      }
    }
  }
}

void one_hot(Cell cell, ElementType index_type, int64_t outer, int64_t depth, int64_t inner,
             const void* indices, const void* values, void* y, ThreadPool& pool) {
  by_cell(cell, [&](const auto& zero) {
    using T = std::remove_cvref_t<decltype(zero)>;
    const auto* v = static_cast<const T*>(values);
    auto* to = static_cast<T*>(y);
    for_groups(outer, depth * inner, pool, [&](int64_t begin, int64_t end) {
      for (int64_t o = begin; o < end; ++o) {
        std::fill_n(to + o * depth * inner, depth * inner, v[0]);
        for (int64_t i = 0; i < inner; ++i) {
          const int64_t hot = hot_position(index_type, indices, o * inner + i, depth);
          if (hot >= 0) to[(o * depth + hot) * inner + i] = v[1];
        }
      }
    });
  });
}

}  // namespace sardonyx::kernels
