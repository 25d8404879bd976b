// How far two values are from each other.
#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "sardonyx/value.h"

#pragma GCC visibility push(default)  // what a shared library gives to others

namespace sardonyx {

// An element agrees where |actual - expected| <= relative * |expected| + absolute; NaN agrees with
// NaN. Integers, truth values and strings have to be equal.
struct Tolerance {
  std::optional<double> relative =
      {};  // unset: 1e-3, or 4 units of rounding of coarser float types
  std::optional<double> absolute = {};  // unset: 1e-4 of the RMS of what is expected
};

struct Difference {
  bool agree = true;
  double largest = 0;       // of |actual - expected|
  double share_of_rms = 0;  // the same as a share of the RMS of what is expected
  int64_t differing = 0;    // elements that do not agree
  int64_t elements = 0;
  std::string reason = {};  // why they don't agree; empty where they do
};

// Values of any kind, part by part, those of maps by their keys; those of different kinds, types or
// shapes differ, and `reason` says how. Never throws for what the values are.
Difference compare(const Value& actual, const Value& expected, const Tolerance& tolerance = {});

}  // namespace sardonyx

#pragma GCC visibility pop
