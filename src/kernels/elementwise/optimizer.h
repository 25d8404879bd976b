// The update rules of gradient descent: what one step makes of a parameter and of what it
// remembers.
#pragma once

#include <cstdint>
#include <variant>

#include "base/thread_pool.h"

namespace sardonyx::kernels {

// x: the parameter, g: its gradient, v and h: running averages of g and of its square. Results may
// lie where the inputs do; null where not wanted. T is float or double.
template <class T>
struct OptimizerData {
  const T* x = nullptr;
  const T* g = nullptr;
  const T* v = nullptr;
  const T* h = nullptr;
  T* new_x = nullptr;
  T* new_v = nullptr;
  T* new_h = nullptr;
};

struct MomentumRule {
  double rate = 0;
  double norm = 0;   // of the quadratic penalty on x, added to the gradient
  double alpha = 0;  // how much of the old average stays
  double beta = 1;   // how much of the gradient comes in
  bool nesterov = false;
};

struct AdagradRule {
  double rate = 0, norm = 0, epsilon = 0;
};

struct AdamRule {
  double rate = 0;  // corrected for the averages' start at zero
  double norm = 0;
  double norm_post = 0;  // taken from the result
  double alpha = 0, beta = 0, epsilon = 0;
};

// Adam whose weights decay by themselves: the decay is no part of the averages.
struct AdamWRule {
  double rate = 0;
  double share = 1, spread = 1;      // what v, and the root of h, are divided by
  double alpha = 0, alpha_rest = 0;  // of v, and of the gradient in it
  double beta = 0, beta_rest = 0;    // of h, and of the gradient's square in it
  double epsilon = 0, decay = 0;
};

using OptimizerRule = std::variant<MomentumRule, AdagradRule, AdamRule, AdamWRule>;

// The arithmetic is fused (a product and a sum are rounded once) where the processor can.
void optimize(const OptimizerRule& rule, const OptimizerData<float>& data, int64_t n,
              ThreadPool& pool);
void optimize(const OptimizerRule& rule, const OptimizerData<double>& data, int64_t n,
              ThreadPool& pool);

}  // namespace sardonyx::kernels
