// Broadcasting worked out once: how up to three inputs are walked to fill one output.
#pragma once

#include <cstdint>
#include <initializer_list>
#include <span>

namespace sardonyx::kernels {

// The loops of an element-wise operator after neighbouring dimensions that every input walks
// alike have been merged and dimensions of size 1 dropped. Trivially copyable.
struct BroadcastPlan {
  static constexpr int max_rank = 12;
  static constexpr int max_inputs = 3;

  int32_t rank = 0;  // 0 for a single element
  int32_t inputs = 0;
  int64_t count = 0;                           // elements of the output
  int64_t dims[max_rank] = {};                 // outermost first
  int64_t strides[max_inputs][max_rank] = {};  // in elements; 0 where the input repeats

  // The input is one element, repeated (or the whole output is one element).
  bool is_scalar(int input) const;
  // The input has the output's elements in the output's order.
  bool is_same(int input) const;
};

// `output` and each of `inputs` (1 to 3) are shapes; an input is aligned to the output's last
// dimensions. Throws Error: bad_input where an input does not broadcast to `output`, unsupported
// beyond max_rank merged dimensions.
BroadcastPlan plan_broadcast(std::span<const int64_t> output,
                             std::initializer_list<std::span<const int64_t>> inputs);

// The shape that `a` and `b` broadcast to is left to the caller: src/ops has it for symbolic sizes.

}  // namespace sardonyx::kernels
