// Comparing what a run gave with what a test case expects.
#pragma once

#include <optional>
#include <string>

#include "sardonyx/value.h"

namespace sardonyx::conformance {

struct Tolerance {
  double relative = 1e-3;
  double absolute = 1e-7;
};

// nullopt where the values agree: same kinds, types and shapes; elements with
// |actual - expected| <= absolute + relative * |expected|, NaN equal to NaN, strings and integers
// exactly. Otherwise says where and how they differ.
std::optional<std::string> difference(const Value& actual, const Value& expected, const Tolerance& tolerance);

}  // namespace sardonyx::conformance
