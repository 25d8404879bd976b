// Functions to differentiate: what the operator Gradient is tested with.
#pragma once

#include <functional>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "sardonyx/value.h"

namespace sardonyx::test {

struct Input {
  std::string name;
  Tensor value;  // of float64
  bool differentiated = true;
};

// Of operators that take no float64 the differences are those of float32.
enum class Precision { float64, float32 };

// What groups hand their cases to: to be held against differences, or to be counted. `body`
// computes y from the inputs.
class Check {
 public:
  using Case = void(const std::string& body, const std::vector<Input>& inputs, Precision precision);
  explicit Check(std::function<Case> each) : each_(std::move(each)) {}
  void operator()(const std::string& body, const std::vector<Input>& inputs,
                  Precision precision = Precision::float64) const {
    each_(body, inputs, precision);
  }

 private:
  std::function<Case> each_;
};

struct GradientCases {
  const char* name;
  void (*hand_to)(const Check& check);
};
std::span<const GradientCases> gradient_cases();

}  // namespace sardonyx::test
