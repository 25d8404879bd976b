// Comparing what a run gave with what a test case expects.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "sardonyx/value.h"

namespace sardonyx::conformance {

struct Tolerance {
  double relative = 1e-3;
  double absolute = 1e-7;
};

// nullopt where the values agree: same kinds, types and shapes; elements with
// |actual - expected| <= absolute + relative * |expected|, NaN equal to NaN, strings and integers
// exactly. absolute is at least 4 float32 epsilons of the tensor's largest expected magnitude, and
// relative at least two units in the last place of float16 and bfloat16 (docs/conformance.md).
// Otherwise says where and how they differ.
std::optional<std::string> difference(const Value& actual, const Value& expected,
                                      const Tolerance& tolerance);

// The elements as doubles; complex numbers as pairs. Not of strings.
std::vector<double> numbers(const Tensor& tensor);

// The same kinds, and of tensors the same types and shapes, whatever the elements.
std::optional<std::string> difference_in_form(const Value& actual, const Value& expected);

}  // namespace sardonyx::conformance
