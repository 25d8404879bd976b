#include "sardonyx/compare.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <cstdint>
#include <optional>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "sardonyx/text.h"
#include "tools/numbers.h"

namespace sardonyx {
namespace {

constexpr int max_depth = 32;
constexpr int64_t chunk = 4096;

double default_relative(ElementType type) {
  switch (type) {
    case ElementType::float16: return 4.0 / (1 << 10);
    case ElementType::bfloat16: return 4.0 / (1 << 7);
    case ElementType::float8e4m3fn:
    case ElementType::float8e4m3fnuz: return 4.0 / (1 << 3);
    case ElementType::float8e5m2:
    case ElementType::float8e5m2fnuz: return 4.0 / (1 << 2);
    case ElementType::float6e2m3: return 4.0 / (1 << 3);
    case ElementType::float6e3m2: return 4.0 / (1 << 2);
    case ElementType::float4e2m1:
    case ElementType::float8e8m0: return 1.0;
    default: return 1e-3;
  }
}

bool is_exact(ElementType type) {
  return !is_floating(type) && type != ElementType::complex64 && type != ElementType::complex128;
}

template <class F>
void for_each_chunk(int64_t count, F&& f) {
  for (int64_t begin = 0; begin < count; begin += chunk) f(begin, std::min(chunk, count - begin));
}

// `scale` keeps squares within double's range.
double rms_of(const Tensor& tensor, double scale = 1) {
  std::array<double, chunk> numbers;
  double sum = 0;
  int64_t finite = 0;
  for_each_chunk(number_count(tensor), [&](int64_t begin, int64_t count) {
    const std::span<double> part(numbers.data(), static_cast<size_t>(count));
    read_numbers(tensor, begin, part);
    for (const double number : part) {
      if (!std::isfinite(number)) continue;
      sum += number * scale * (number * scale);
      ++finite;
    }
  });
  if (!std::isfinite(sum)) return rms_of(tensor, 0x1p-600);
  return finite == 0 ? 0 : std::sqrt(sum / static_cast<double>(finite)) / scale;
}

void compare_strings(const Tensor& actual, const Tensor& expected, Difference& difference) {
  const auto ours = actual.elements<std::string>(), theirs = expected.elements<std::string>();
  for (size_t i = 0; i < ours.size(); ++i) {
    if (ours[i] == theirs[i]) continue;
    if (difference.differing++ == 0) {
      difference.reason = fmt::format("element {} is \"{}\", expected \"{}\"", i,
                                      printable(ours[i]), printable(theirs[i]));
    }
  }
}

// What differs between two texts of numbers is told, however many digits that takes.
std::string beside(double actual, double expected, bool is_whole) {
  if (is_whole) return fmt::format("{:.0f}, expected {:.0f}", actual, expected);
  const std::string ours = fmt::format("{:.9g}", actual), theirs = fmt::format("{:.9g}", expected);
  if (ours != theirs) return fmt::format("{}, expected {}", ours, theirs);
  return fmt::format("{:.17g}, expected {:.17g}", actual, expected);
}

void compare_numbers(const Tensor& actual, const Tensor& expected, const Tolerance& tolerance,
                     Difference& difference) {
  const ElementType type = actual.element_type();
  const bool exact = is_exact(type);
  const double rms = rms_of(expected);
  const double relative = exact ? 0 : tolerance.relative.value_or(default_relative(type));
  const double absolute = exact ? 0 : tolerance.absolute.value_or(1e-4 * rms);
  const int64_t parts = actual.size() == 0 ? 1 : number_count(actual) / actual.size();
  int64_t last = -1;
  double worst = -1;
  std::array<double, chunk> ours, theirs;
  for_each_chunk(number_count(actual), [&](int64_t begin, int64_t count) {
    const auto length = static_cast<size_t>(count);
    read_numbers(actual, begin, std::span(ours.data(), length));
    read_numbers(expected, begin, std::span(theirs.data(), length));
    for (size_t i = 0; i < length; ++i) {
      const double a = ours[i], b = theirs[i];
      if (a == b || (std::isnan(a) && std::isnan(b))) continue;
      const double distance = std::abs(a - b);
      const bool finite = std::isfinite(distance);
      if (finite) difference.largest = std::max(difference.largest, distance);
      if (finite && distance <= relative * std::abs(b) + absolute) continue;
      const int64_t at = begin + static_cast<int64_t>(i), element = at / parts;
      if (element != last) ++difference.differing;
      last = element;
      const double rank = finite ? distance : INFINITY;
      if (rank > worst) {
        worst = rank;
        const char* part = parts == 1 ? "" : at % 2 == 0 ? "'s real part" : "'s imaginary part";
        difference.reason = fmt::format("element {}{} is {}", element, part, beside(a, b, exact));
      }
    }
  });
  difference.share_of_rms = rms > 0 ? difference.largest / rms : difference.largest;
}

// 64-bit integers beyond 2^53 look alike as doubles.
template <class T>
void compare_whole(const Tensor& actual, const Tensor& expected, Difference& difference) {
  const auto ours = actual.elements<T>(), theirs = expected.elements<T>();
  uint64_t worst = 0;
  for (size_t i = 0; i < ours.size(); ++i) {
    if (ours[i] == theirs[i]) continue;
    const auto a = static_cast<uint64_t>(ours[i]), b = static_cast<uint64_t>(theirs[i]);
    const uint64_t distance = ours[i] > theirs[i] ? a - b : b - a;
    ++difference.differing;
    if (distance <= worst) continue;
    worst = distance;
    difference.reason = fmt::format("element {} is {}, expected {}", i, ours[i], theirs[i]);
  }
  const double rms = rms_of(expected);
  difference.largest = static_cast<double>(worst);
  difference.share_of_rms = rms > 0 ? difference.largest / rms : difference.largest;
}

Difference compare_tensors(const Tensor& actual, const Tensor& expected,
                           const Tolerance& tolerance) {
  Difference difference;
  if (actual.element_type() != expected.element_type() || actual.shape() != expected.shape()) {
    difference.agree = false;
    difference.reason = fmt::format("is {}, expected {}", type_text(actual), type_text(expected));
    return difference;
  }
  difference.elements = actual.size();
  switch (actual.element_type()) {
    case ElementType::string: compare_strings(actual, expected, difference); break;
    case ElementType::int64: compare_whole<int64_t>(actual, expected, difference); break;
    case ElementType::uint64: compare_whole<uint64_t>(actual, expected, difference); break;
    default: compare_numbers(actual, expected, tolerance, difference);
  }
  difference.agree = difference.differing == 0;
  if (!difference.agree) {
    difference.reason = fmt::format("{} of {} elements differ; {}", difference.differing,
                                    difference.elements, difference.reason);
  }
  return difference;
}

void merge(Difference& sum, const Difference& part, const std::string& where) {
  if (sum.agree && !part.agree) sum.reason = fmt::format("{}: {}", where, part.reason);
  sum.agree = sum.agree && part.agree;
  sum.largest = std::max(sum.largest, part.largest);
  sum.share_of_rms = std::max(sum.share_of_rms, part.share_of_rms);
  sum.differing += part.differing;
  sum.elements += part.elements;
}

Difference refusal(std::string reason) {
  Difference difference;
  difference.agree = false;
  difference.reason = std::move(reason);
  return difference;
}

Difference compare_at(const Value& actual, const Value& expected, const Tolerance& tolerance,
                      int depth);

// The bytes that tell a key of a map from others.
std::string_view key_at(const Tensor& keys, size_t i) {
  if (keys.element_type() == ElementType::string) return keys.elements<std::string>()[i];
  const size_t width = bit_width(keys.element_type()) / 8;
  return {static_cast<const char*>(keys.data()) + i * width, width};
}

// Where each of the keys `wanted` stands among `keys`, which may have another order; nothing where
// they are others.
std::optional<std::vector<size_t>> places_of(const Tensor& wanted, const Tensor& keys) {
  const auto count = static_cast<size_t>(wanted.size());
  std::unordered_map<std::string_view, size_t> found;
  if (wanted.element_type() != keys.element_type() || wanted.shape() != keys.shape())
    return std::nullopt;
  for (size_t i = 0; i < count; ++i) found.try_emplace(key_at(keys, i), i);
  std::vector<size_t> places;
  for (size_t i = 0; i < count; ++i) {
    const auto at = found.find(key_at(wanted, i));
    if (at == found.end()) return std::nullopt;
    places.push_back(at->second);
    found.erase(at);
  }
  return places;
}

Difference compare_maps(const Map& actual, const Map& expected, const Tolerance& tolerance,
                        int depth) {
  Difference sum;
  const Difference keys = compare_tensors(actual.keys, expected.keys, {});
  const auto places = keys.agree ? std::nullopt : places_of(expected.keys, actual.keys);
  if (!keys.agree && !places) {
    merge(sum, keys, "keys");
    return sum;
  }
  if (actual.values.size() != expected.values.size())
    return refusal(
        fmt::format("has {} values, expected {}", actual.values.size(), expected.values.size()));
  for (size_t i = 0; i < expected.values.size(); ++i) {
    const size_t place = places && i < places->size() ? (*places)[i] : i;
    if (place >= actual.values.size()) continue;  // no key of the map
    merge(sum, compare_at(actual.values[place], expected.values[i], tolerance, depth + 1),
          fmt::format("value {}", i));
  }
  return sum;
}

Difference compare_at(const Value& actual, const Value& expected, const Tolerance& tolerance,
                      int depth) {
  if (depth > max_depth) return refusal("values nest too deep to be compared");
  if (actual.kind() == Value::Kind::optional && expected.kind() != Value::Kind::optional) {
    return compare_at(actual.optional().held ? *actual.optional().held : Value(), expected,
                      tolerance, depth + 1);
  }
  if (actual.kind() != expected.kind()) {
    return refusal(fmt::format("is {}, expected {}", type_text(actual), type_text(expected)));
  }
  Difference sum;
  switch (actual.kind()) {
    case Value::Kind::none: return sum;
    case Value::Kind::tensor: return compare_tensors(actual.tensor(), expected.tensor(), tolerance);
    case Value::Kind::sparse_tensor:
      if (actual.sparse_tensor().shape != expected.sparse_tensor().shape)
        return refusal(fmt::format("is {}, expected {}", type_text(actual), type_text(expected)));
      merge(sum,
            compare_tensors(actual.sparse_tensor().indices, expected.sparse_tensor().indices, {}),
            "indices");
      merge(sum,
            compare_tensors(actual.sparse_tensor().values, expected.sparse_tensor().values,
                            tolerance),
            "values");
      return sum;
    case Value::Kind::optional: {
      const auto &ours = actual.optional().held, &theirs = expected.optional().held;
      return compare_at(ours ? *ours : Value(), theirs ? *theirs : Value(), tolerance, depth + 1);
    }
    case Value::Kind::sequence: {
      const auto &ours = actual.sequence().items, &theirs = expected.sequence().items;
      if (ours.size() != theirs.size())
        return refusal(fmt::format("has {} items, expected {}", ours.size(), theirs.size()));
      for (size_t i = 0; i < ours.size(); ++i) {
        merge(sum, compare_at(ours[i], theirs[i], tolerance, depth + 1), fmt::format("item {}", i));
      }
      return sum;
    }
    case Value::Kind::map: return compare_maps(actual.map(), expected.map(), tolerance, depth);
  }
  return sum;
}

}  // namespace

Difference compare(const Value& actual, const Value& expected, const Tolerance& tolerance) {
  return compare_at(actual, expected, tolerance, 0);
}

}  // namespace sardonyx
