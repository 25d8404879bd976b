// Random shapes, values and attributes for tests of gradients: the same ones in every run.
#pragma once

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cstdint>
#include <numeric>
#include <string>
#include <string_view>
#include <vector>

#include "gradient_cases.h"

namespace sardonyx::test {

class Draw {
 public:
  explicit Draw(uint64_t seed) : state_(seed * 0x9e3779b97f4a7c15u + 0x2545f4914f6cdd1du) {}

  // In [0, count).
  int64_t below(int64_t count) {
    state_ += 0x9e3779b97f4a7c15u;
    uint64_t mixed = state_;
    mixed = (mixed ^ (mixed >> 30)) * 0xbf58476d1ce4e5b9u;
    mixed = (mixed ^ (mixed >> 27)) * 0x94d049bb133111ebu;
    return static_cast<int64_t>((mixed ^ (mixed >> 31)) % static_cast<uint64_t>(count));
  }
  int64_t between(int64_t low, int64_t high) { return low + below(high - low + 1); }
  bool one_in(int64_t count) { return below(count) == 0; }
  double real(double low, double high) {
    return low + (high - low) * static_cast<double>(below(1 << 20)) / (1 << 20);
  }
  template <class T>
  T any_of(const std::vector<T>& list) {
    return list[static_cast<size_t>(below(static_cast<int64_t>(list.size())))];
  }
  std::string word(const std::vector<std::string>& list) { return any_of(list); }

  // Now and then one of the sizes is 0 where that is allowed.
  Shape shape(int64_t min_rank, int64_t max_rank, bool empty = true) {
    Shape sizes(static_cast<size_t>(between(min_rank, max_rank)));
    for (int64_t& size : sizes) size = empty && one_in(14) ? 0 : between(1, 3);
    return sizes;
  }
  // A shape that broadcasts to `whole`.
  Shape narrower(Shape whole) {
    whole.erase(whole.begin(), whole.begin() + below(static_cast<int64_t>(whole.size()) + 1));
    for (int64_t& size : whole) size = one_in(3) ? 1 : size;
    return whole;
  }
  // Values spread evenly over the interval, in random order: no two are the same.
  Tensor values(Shape shape, double low, double high) {
    Tensor tensor(ElementType::float64, std::move(shape));
    const auto all = tensor.mutable_elements<double>();
    const double step = (high - low) / static_cast<double>(std::max<size_t>(all.size(), 1));
    const double offset = real(0.1, 0.9);
    for (size_t i = 0; i < all.size(); ++i) all[i] = low + step * (static_cast<double>(i) + offset);
    for (size_t i = all.size(); i > 1; --i)
      std::swap(all[i - 1], all[static_cast<size_t>(below(static_cast<int64_t>(i)))]);
    return tensor;
  }
  Input input(std::string name, Shape shape, double low = -1, double high = 1) {
    return {std::move(name), values(std::move(shape), low, high)};
  }
  std::vector<int64_t> order(size_t count) {
    std::vector<int64_t> axes(count);
    std::iota(axes.begin(), axes.end(), int64_t{0});
    for (size_t i = count; i > 1; --i)
      std::swap(axes[i - 1], axes[static_cast<size_t>(below(static_cast<int64_t>(i)))]);
    return axes;
  }
  // An axis of `rank`, from the front or from the end.
  int64_t axis(int64_t rank) { return between(-rank, rank - 1); }
  // Some of the axes, at least `least`, as a list in any order and from both ends.
  std::vector<int64_t> axes(size_t rank, int64_t least) {
    std::vector<int64_t> some = order(rank);
    some.resize(static_cast<size_t>(between(least, static_cast<int64_t>(rank))));
    for (int64_t& a : some) a -= one_in(2) ? static_cast<int64_t>(rank) : 0;
    return some;
  }
  std::vector<int64_t> integers(size_t count, int64_t low, int64_t high) {
    std::vector<int64_t> list(count);
    for (int64_t& value : list) value = between(low, high);
    return list;
  }

 private:
  uint64_t state_;
};

inline std::string listed(const std::vector<int64_t>& values) {
  return fmt::format("[{}]", fmt::join(values, ", "));
}

// A line of the body that makes a tensor of integers, of any number of dimensions.
inline std::string integers(std::string_view name, const Shape& shape,
                            const std::vector<int64_t>& values, std::string_view type = "int64") {
  if (shape.empty())
    return fmt::format("{} = Constant<value = {} {{{}}}>()\n ", name, type, values[0]);
  return fmt::format("{} = Constant<value = {}[{}] {{{}}}>()\n ", name, type,
                     fmt::join(shape, ", "), fmt::join(values, ", "));
}
inline std::string integers(std::string_view name, const std::vector<int64_t>& values) {
  return integers(name, {static_cast<int64_t>(values.size())}, values);
}

inline int64_t elements_of(const Shape& shape) {
  return std::accumulate(shape.begin(), shape.end(), int64_t{1}, std::multiplies<>());
}

// The groups of the files gradient_*_cases.cc and gradient_random_layers.cc.
std::span<const GradientCases> random_element_cases();
std::span<const GradientCases> random_layer_cases();
std::span<const GradientCases> contrib_cases();
std::span<const GradientCases> collection_cases();
std::span<const GradientCases> second_order_cases();

}  // namespace sardonyx::test
