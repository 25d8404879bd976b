// Internal operators that bodies of functions and gradients are made with.
#pragma once

#include "ops/internal/fields.h"
#include "ops/internal/takes.h"

namespace sardonyx::ops::internal {

using namespace std::string_view_literals;

// X, whose integers must all be at least `low` and at most the number of `high`. Bodies of
// functions put it where sizes and places come from values, which a file may choose freely.
struct InRange {
  static constexpr std::string_view name = "InRange";
  static constexpr std::array inputs = {"X"sv, "high"sv};
  static constexpr std::array takes = {Takes::int32_or_64, Takes::int64};
  static constexpr std::array outputs = {"Y"sv};
  enum Input { x, high };

  int64_t low = 0;
  std::string what = "numbers";  // what the numbers are, for messages

  template <class Visit, class... Self>
  static void fields(Visit&& visit, Self&... self) {
    visit("low", self.low...);
    visit("what", self.what...);
  }
  bool operator==(const InRange&) const = default;
};

// A gradient, summed over what its value was broadcast along: X with the shape of `like`. Both have
// one type, unless `like` is of whole numbers: of quantised values, whose gradients are floats.
struct SumLike {
  static constexpr std::string_view name = "SumLike";
  static constexpr std::array inputs = {"X"sv, "like"sv};
  static constexpr std::array takes = {Takes::anything, Takes::anything};
  static constexpr std::array outputs = {"Y"sv};
  enum Input { x, like };

  template <class Visit, class... Self>
  static void fields(Visit&&, Self&...) {}
  bool operator==(const SumLike&) const = default;
};

}  // namespace sardonyx::ops::internal
