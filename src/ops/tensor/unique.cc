// Unique: each different element, or slice along an axis, once.
#include <algorithm>
#include <bit>
#include <cstring>
#include <numeric>
#include <optional>
#include <string>
#include <type_traits>
#include <utility>

#include "base/checked.h"
#include "base/counted.h"
#include "kernels/convert/cast.h"
#include "ops/shared/moving.h"

namespace sardonyx::ops {
namespace unique_unit {
namespace {

void infer(InferContext& ctx) {
  const auto& in = ctx.shape(0);
  const auto count = ctx.type(0).element_count();
  const bool by_axis = ctx.has_attribute("axis");
  if (by_axis && !in) {
    ctx.set(0, ValueType::tensor(ctx.element(0)));
    for (int i = 1; i < 4; ++i) ctx.set(i, ElementType::int64, {ctx.unknown()});
    return;
  }
  const auto axis = by_axis ? static_cast<size_t>(ctx.normalized_axis(
                                  ctx.attr_int("axis"), static_cast<int64_t>(in->size())))
                            : 0;
  const auto items = by_axis ? std::optional((*in)[axis]) : count;
  const Dim found = ctx.unknown(items);
  Dims out{found};
  if (by_axis) {
    out = *in;
    out[axis] = found;
  }
  ctx.set(0, ctx.element(0), std::move(out));
  ctx.set(1, ElementType::int64, {found});
  ctx.set(2, ElementType::int64, {items ? *items : ctx.unknown()});
  ctx.set(3, ElementType::int64, {found});
}

// The input as `items` slices, slice i being x[(o * items + i) * inner + k] for all o and k.
struct Slices {
  int64_t outer = 1, items = 0, inner = 1;
};

// Orders elements, NaN last and equal to itself.
template <class T>
int compared(const T& a, const T& b) {
  if constexpr (std::is_floating_point_v<T>) {
    const bool a_nan = a != a, b_nan = b != b;
    if (a_nan || b_nan) return a_nan == b_nan ? 0 : a_nan ? 1 : -1;
  }
  return a < b ? -1 : b < a ? 1 : 0;
}

// Complex numbers compare by their real part, then by the other: two elements each.
template <class T>
class Order {
 public:
  Order(const T* x, Slices s, int64_t parts) : x_(x), s_(s), parts_(parts) {}
  int operator()(int64_t a, int64_t b) const {
    const int64_t run = s_.inner * parts_;
    for (int64_t o = 0; o < s_.outer; ++o) {
      const T* left = x_ + (o * s_.items + a) * run;
      const T* right = x_ + (o * s_.items + b) * run;
      for (int64_t k = 0; k < run; ++k) {
        if (const int order = compared(left[k], right[k])) return order;
      }
    }
    return 0;
  }

 private:
  const T* x_;
  Slices s_;
  int64_t parts_;
};

struct Groups {
  CountedVector<int64_t> first;    // of each group, the first slice
  CountedVector<int64_t> inverse;  // of each slice, its group
  CountedVector<int64_t> counts;
};

template <class T>
Groups grouped(const T* x, Slices s, bool sorted, int64_t parts = 1) {
  const Order<T> order(x, s, parts);
  CountedVector<int64_t> items(static_cast<size_t>(s.items));
  std::iota(items.begin(), items.end(), 0);
  // Equal slices keep the order of their places, so each group begins with its first one.
  std::sort(items.begin(), items.end(), [&](int64_t a, int64_t b) {
    const int found = order(a, b);
    return found != 0 ? found < 0 : a < b;
  });
  Groups g;
  g.inverse.resize(items.size());
  for (size_t i = 0; i < items.size(); ++i) {
    if (i == 0 || order(items[i - 1], items[i]) != 0) {
      g.first.push_back(items[i]);
      g.counts.push_back(0);
    }
    ++g.counts.back();
    g.inverse[static_cast<size_t>(items[i])] = static_cast<int64_t>(g.first.size()) - 1;
  }
  if (sorted) return g;
  CountedVector<int64_t> by_place(g.first.size()), rank(g.first.size());
  std::iota(by_place.begin(), by_place.end(), 0);
  std::sort(by_place.begin(), by_place.end(), [&](int64_t a, int64_t b) {
    return g.first[static_cast<size_t>(a)] < g.first[static_cast<size_t>(b)];
  });
  Groups placed;
  for (size_t i = 0; i < by_place.size(); ++i) {
    const auto from = static_cast<size_t>(by_place[i]);
    rank[from] = static_cast<int64_t>(i);
    placed.first.push_back(g.first[from]);
    placed.counts.push_back(g.counts[from]);
  }
  for (const int64_t group : g.inverse) placed.inverse.push_back(rank[static_cast<size_t>(group)]);
  return placed;
}

// Equal values have one key; others, now and then, too.
template <class T>
uint64_t key_of(T value) {
  if constexpr (std::is_floating_point_v<T>) {
    if (value == 0) return 0;
    if (value != value) return ~uint64_t{0};
    return std::bit_cast<std::conditional_t<sizeof(T) == 4, uint32_t, uint64_t>>(value);
  } else {
    return static_cast<uint64_t>(value);
  }
}

// Single numbers: a table by hashes finds their groups in the order of their first places. None
// where so many values meet in the table that sorting is the better way.
template <class T>
std::optional<Groups> looked_up(const T* x, int64_t n) {
  Groups g;
  g.inverse.resize(static_cast<size_t>(n));
  CountedVector<int64_t> table(1024, -1);
  int bits = 10;
  const auto place_of = [&](T value) {
    return static_cast<size_t>(key_of(value) * 0x9e3779b97f4a7c15u >> (64 - bits));
  };
  int64_t steps = 0;
  const auto free_or_same = [&](T value) {
    size_t at = place_of(value);
    while (table[at] >= 0 && compared(x[g.first[static_cast<size_t>(table[at])]], value) != 0) {
      at = (at + 1) & (table.size() - 1);
      ++steps;
    }
    return at;
  };
  for (int64_t i = 0; i < n; ++i) {
    const size_t at = free_or_same(x[i]);
    if (steps > 16 * n) return std::nullopt;
    if (table[at] < 0) {
      table[at] = static_cast<int64_t>(g.first.size());
      g.first.push_back(i);
      g.counts.push_back(0);
    }
    g.inverse[static_cast<size_t>(i)] = table[at];
    ++g.counts[static_cast<size_t>(table[at])];
    if (2 * g.first.size() < table.size()) continue;
    table.assign(table.size() * 2, -1);
    ++bits;
    for (size_t k = 0; k < g.first.size(); ++k)
      table[free_or_same(x[g.first[k]])] = static_cast<int64_t>(k);
  }
  return g;
}

template <class T>
Groups by_value(const T* x, const Groups& found) {
  struct One {
    T value;
    int64_t group;
  };
  CountedVector<One> order;
  for (size_t k = 0; k < found.first.size(); ++k)
    order.push_back({x[found.first[k]], static_cast<int64_t>(k)});
  std::sort(order.begin(), order.end(),
            [](const One& a, const One& b) { return compared(a.value, b.value) < 0; });
  Groups g;
  CountedVector<int64_t> rank(order.size());
  for (const One& one : order) {
    const auto from = static_cast<size_t>(one.group);
    rank[from] = static_cast<int64_t>(g.first.size());
    g.first.push_back(found.first[from]);
    g.counts.push_back(found.counts[from]);
  }
  g.inverse.reserve(found.inverse.size());
  for (const int64_t group : found.inverse) g.inverse.push_back(rank[static_cast<size_t>(group)]);
  return g;
}

Groups grouped(ElementType type, const void* x, Slices s, bool sorted) {
  const auto as = [&](const auto* typed, int64_t parts = 1) {
    using T = std::remove_cvref_t<decltype(*typed)>;
    if constexpr (std::is_arithmetic_v<T>) {
      if (s.outer * s.inner * parts == 1) {
        if (auto found = looked_up(typed, s.items))
          return sorted ? by_value(typed, *found) : std::move(*found);
      }
    }
    return grouped(typed, s, sorted, parts);
  };
  switch (type) {
    case ElementType::float32: return as(static_cast<const float*>(x));
    case ElementType::float64: return as(static_cast<const double*>(x));
    case ElementType::complex64: return as(static_cast<const float*>(x), 2);
    case ElementType::complex128: return as(static_cast<const double*>(x), 2);
    case ElementType::int8: return as(static_cast<const int8_t*>(x));
    case ElementType::int16: return as(static_cast<const int16_t*>(x));
    case ElementType::int32: return as(static_cast<const int32_t*>(x));
    case ElementType::int64: return as(static_cast<const int64_t*>(x));
    case ElementType::boolean:
    case ElementType::uint8: return as(static_cast<const uint8_t*>(x));
    case ElementType::uint16: return as(static_cast<const uint16_t*>(x));
    case ElementType::uint32: return as(static_cast<const uint32_t*>(x));
    case ElementType::uint64: return as(static_cast<const uint64_t*>(x));
    case ElementType::string: return as(static_cast<const std::string*>(x));
    default: break;
  }
  CountedVector<float> widened(static_cast<size_t>(s.outer * s.items * s.inner));
  kernels::to_floats(type, x, widened.data(), static_cast<int64_t>(widened.size()));
  return as(widened.data());
}

void write(RunContext& run, int output, const CountedVector<int64_t>& values) {
  if (!run.has_output(output)) return;
  auto* y =
      static_cast<int64_t*>(run.allocate_output(output, {static_cast<int64_t>(values.size())}));
  std::copy(values.begin(), values.end(), y);
}

void pick(RunContext& run, ElementType type, Slices s, const Groups& groups, void* y) {
  const auto found = static_cast<int64_t>(groups.first.size());
  const bool text = type == ElementType::string;
  const int64_t bytes = text ? 0 : byte_size(type, s.inner);
  for (int64_t o = 0; o < s.outer; ++o) {
    for (int64_t i = 0; i < found; ++i) {
      const int64_t from = o * s.items + groups.first[static_cast<size_t>(i)], to = o * found + i;
      if (text) {
        std::copy_n(run.in<std::string>(0) + from * s.inner, s.inner,
                    static_cast<std::string*>(y) + to * s.inner);
      } else if (bytes > 0) {
        std::memcpy(static_cast<std::byte*>(y) + to * bytes, run.in<std::byte>(0) + from * bytes,
                    static_cast<size_t>(bytes));
      }
    }
  }
}

std::unique_ptr<Step> prepare(PrepareContext& ctx) {
  const auto given_axis =
      ctx.has_attribute("axis") ? std::optional(ctx.attr_int("axis")) : std::nullopt;
  const bool sorted = ctx.attr_int("sorted", 1) != 0;
  const ElementType type = ctx.in_element(0);
  return make_allocating_step("unique.sort", [=](RunContext& run) {
    const auto shape = run.in_shape(0);
    Slices s{.items = run.in_size(0)};
    Shape out{0};
    size_t axis = 0;
    if (given_axis) {
      axis = static_cast<size_t>(*given_axis < 0 ? *given_axis + static_cast<int64_t>(shape.size())
                                                 : *given_axis);
      s = {count_of(shape.first(axis)), shape[axis], count_of(shape.subspan(axis + 1))};
      out.assign(shape.begin(), shape.end());
    }
    const Groups groups = grouped(type, run.data(0), s, sorted);
    out[axis] = static_cast<int64_t>(groups.first.size());
    pick(run, type, s, groups, run.allocate_output(0, std::move(out)));
    write(run, 1, groups.first);
    write(run, 2, groups.inverse);
    write(run, 3, groups.counts);
  });
}

constexpr Operator operators[] = {{.name = "Unique", .infer = infer, .prepare = prepare}};

}  // namespace
}  // namespace unique_unit

std::span<const Operator> unique_operators() { return unique_unit::operators; }

}  // namespace sardonyx::ops
