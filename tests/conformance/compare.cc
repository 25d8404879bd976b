#include "compare.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <vector>

#include "kernels/convert/cast.h"

namespace sardonyx::conformance {
std::vector<double> numbers(const Tensor& tensor) {
  const int64_t count = tensor.size();
  std::vector<double> out(static_cast<size_t>(count));
  const auto read = [&](const auto* data, int64_t n) {
    out.resize(static_cast<size_t>(n));
    for (int64_t i = 0; i < n; ++i) out[static_cast<size_t>(i)] = static_cast<double>(data[i]);
  };
  const void* data = tensor.data();
  switch (tensor.element_type()) {
    case ElementType::float32: read(static_cast<const float*>(data), count); break;
    case ElementType::float64: read(static_cast<const double*>(data), count); break;
    case ElementType::complex64: read(static_cast<const float*>(data), 2 * count); break;
    case ElementType::complex128: read(static_cast<const double*>(data), 2 * count); break;
    case ElementType::int64: read(static_cast<const int64_t*>(data), count); break;
    case ElementType::int32: read(static_cast<const int32_t*>(data), count); break;
    case ElementType::int16: read(static_cast<const int16_t*>(data), count); break;
    case ElementType::int8: read(static_cast<const int8_t*>(data), count); break;
    case ElementType::uint64: read(static_cast<const uint64_t*>(data), count); break;
    case ElementType::uint32: read(static_cast<const uint32_t*>(data), count); break;
    case ElementType::uint16: read(static_cast<const uint16_t*>(data), count); break;
    case ElementType::uint8:
    case ElementType::boolean: read(static_cast<const uint8_t*>(data), count); break;
    default: {  // the small types, through float
      std::vector<float> floats(static_cast<size_t>(count));
      ThreadPool pool(1);
      kernels::cast(tensor.element_type(), ElementType::float32, data, floats.data(), count, {},
                    pool);
      read(floats.data(), count);
    }
  }
  return out;
}

namespace {

std::optional<std::string> tensor_difference(const Tensor& actual, const Tensor& expected,
                                             const Tolerance& tolerance) {
  if (actual.element_type() != expected.element_type()) {
    return fmt::format("element type {} instead of {}", name_of(actual.element_type()),
                       name_of(expected.element_type()));
  }
  if (actual.shape() != expected.shape()) {
    return fmt::format("shape {} instead of {}", to_string(actual.shape()),
                       to_string(expected.shape()));
  }
  if (actual.element_type() == ElementType::string) {
    const auto a = actual.elements<std::string>(), e = expected.elements<std::string>();
    for (size_t i = 0; i < a.size(); ++i) {
      if (a[i] != e[i]) return fmt::format("element {}: '{}' instead of '{}'", i, a[i], e[i]);
    }
    return std::nullopt;
  }
  const std::vector<double> a = numbers(actual), e = numbers(expected);
  // Expected values carry rounding of their own: a few units in the last place of the largest of
  // them, and for the 16-bit types, which the reference rounds after every operator, two of their
  // own.
  double largest = 0;
  for (const double x : e) {
    if (std::isfinite(x)) largest = std::max(largest, std::abs(x));
  }
  const double noise = actual.element_type() == ElementType::float32 ? 4 * 0x1p-23 * largest : 0;
  const double unit = actual.element_type() == ElementType::bfloat16  ? 0x1p-6
                      : actual.element_type() == ElementType::float16 ? 0x1p-9
                                                                      : 0;
  size_t wrong = 0, worst = 0;
  double worst_by = -1;
  for (size_t i = 0; i < a.size(); ++i) {
    if (a[i] == e[i] || (std::isnan(a[i]) && std::isnan(e[i]))) continue;
    const double by = std::abs(a[i] - e[i]);
    if (by <=
        std::max(tolerance.absolute, noise) + std::max(tolerance.relative, unit) * std::abs(e[i]))
      continue;
    ++wrong;
    if (!(by <= worst_by)) worst = i, worst_by = by;
  }
  if (wrong == 0) return std::nullopt;
  return fmt::format("{} of {} elements differ, element {} the most: {} instead of {}", wrong,
                     a.size(), worst, a[worst], e[worst]);
}

std::optional<std::string> list_difference(const std::vector<Value>& actual,
                                           const std::vector<Value>& expected,
                                           const Tolerance& tolerance) {
  if (actual.size() != expected.size())
    return fmt::format("{} items instead of {}", actual.size(), expected.size());
  for (size_t i = 0; i < actual.size(); ++i) {
    if (auto found = difference(actual[i], expected[i], tolerance))
      return fmt::format("item {}: {}", i, *found);
  }
  return std::nullopt;
}

// The places of the keys in ascending order: a map has no order of its own.
std::vector<size_t> order_of(const Tensor& keys) {
  std::vector<size_t> order(static_cast<size_t>(keys.size()));
  for (size_t i = 0; i < order.size(); ++i) order[i] = i;
  const auto sort = [&](auto elements) {
    std::sort(order.begin(), order.end(),
              [&](size_t a, size_t b) { return elements[a] < elements[b]; });
  };
  if (keys.element_type() == ElementType::string) sort(keys.elements<std::string>());
  if (keys.element_type() == ElementType::int64) sort(keys.elements<int64_t>());
  return order;
}

std::optional<std::string> map_difference(const Map& actual, const Map& expected,
                                          const Tolerance& tolerance) {
  if (actual.keys.element_type() != expected.keys.element_type() ||
      actual.values.size() != expected.values.size())
    return fmt::format("{} keys of type {} instead of {} of type {}", actual.values.size(),
                       name_of(actual.keys.element_type()), expected.values.size(),
                       name_of(expected.keys.element_type()));
  const std::vector<size_t> found = order_of(actual.keys), wanted = order_of(expected.keys);
  for (size_t i = 0; i < wanted.size(); ++i) {
    const auto same = [&](auto tag) {
      using T = decltype(tag);
      return actual.keys.elements<T>()[found[i]] == expected.keys.elements<T>()[wanted[i]];
    };
    const bool text = actual.keys.element_type() == ElementType::string;
    if (!(text ? same(std::string()) : same(int64_t{}))) return "it has other keys";
    if (auto one = difference(actual.values[found[i]], expected.values[wanted[i]], tolerance))
      return fmt::format("the value of key {}: {}", wanted[i], *one);
  }
  return std::nullopt;
}

}  // namespace

std::optional<std::string> difference(const Value& actual, const Value& expected,
                                      const Tolerance& tolerance) {
  if (actual.kind() != expected.kind()) {
    // A present optional and what it holds are written the same way.
    if (actual.kind() == Value::Kind::optional && actual.optional().held) {
      return difference(*actual.optional().held, expected, tolerance);
    }
    return fmt::format("a {} instead of a {}", name_of(actual.kind()), name_of(expected.kind()));
  }
  switch (actual.kind()) {
    case Value::Kind::tensor:
      return tensor_difference(actual.tensor(), expected.tensor(), tolerance);
    case Value::Kind::sequence:
      return list_difference(actual.sequence().items, expected.sequence().items, tolerance);
    case Value::Kind::map: return map_difference(actual.map(), expected.map(), tolerance);
    case Value::Kind::optional: {
      const auto& a = actual.optional().held;
      const auto& e = expected.optional().held;
      if (!a || !e)
        return !a == !e ? std::nullopt
                        : std::optional<std::string>(a ? "something instead of nothing"
                                                       : "nothing instead of something");
      return difference(*a, *e, tolerance);
    }
    case Value::Kind::sparse_tensor:
      if (auto found = tensor_difference(actual.sparse_tensor().values,
                                         expected.sparse_tensor().values, tolerance))
        return found;
      return tensor_difference(actual.sparse_tensor().indices, expected.sparse_tensor().indices,
                               tolerance);
    case Value::Kind::none: return std::nullopt;
  }
  return std::nullopt;
}

std::optional<std::string> difference_in_form(const Value& actual, const Value& expected) {
  if (actual.kind() != expected.kind())
    return fmt::format("a {} instead of a {}", name_of(actual.kind()), name_of(expected.kind()));
  if (!actual.is_tensor()) return std::nullopt;
  const Tensor &a = actual.tensor(), &e = expected.tensor();
  if (a.element_type() == e.element_type() && a.shape() == e.shape()) return std::nullopt;
  return fmt::format("{} of {} instead of {} of {}", name_of(a.element_type()),
                     to_string(a.shape()), name_of(e.element_type()), to_string(e.shape()));
}

}  // namespace sardonyx::conformance
