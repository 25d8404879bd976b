// Products of 8-bit matrices whose sums leave as floats.
#pragma once

#include "ops/contrib/body.h"

namespace sardonyx::ops {

// A product of quantised matrices: names of values, "" where absent.
struct IntegerProduct {
  std::string a, b, a_zero, b_zero;
  std::string a_scale, b_scale;  // float32
  std::string bias;              // float32
};

// The nodes that compute (A - a_zero) (B - b_zero) a_scale b_scale + bias in float32.
std::string integer_product(Body& body, const IntegerProduct& product);

}  // namespace sardonyx::ops
