#include "kernels/elementwise/broadcast.h"

#include "base/checked.h"
#include "base/fail.h"
#include "kernels/shape_text.h"

namespace sardonyx::kernels {
namespace {

// The input's stride along output dimension `d`, 0 where it repeats.
struct Walk {
  std::span<const int64_t> shape;
  size_t missing;      // leading output dimensions the input does not have
  int64_t stride = 1;  // of the dimension to come, counting from the last

  int64_t take(size_t d) {
    if (d < missing) return 0;
    const int64_t dim = shape[d - missing];
    const int64_t mine = dim == 1 ? 0 : stride;
    stride *= dim;
    return mine;
  }
};

void check(std::span<const int64_t> output, std::span<const int64_t> input) {
  bool fits = input.size() <= output.size();
  for (size_t i = 0; fits && i < input.size(); ++i) {
    const int64_t dim = input[input.size() - 1 - i];
    fits = dim == 1 || dim == output[output.size() - 1 - i];
  }
  if (!fits) {
    fail(ErrorCode::bad_input, "an input of shape {} does not broadcast to {}", shape_text(input),
         shape_text(output));
  }
}

}  // namespace

bool BroadcastPlan::is_scalar(int input) const {
  for (int d = 0; d < rank; ++d) {
    if (strides[input][d] != 0) return false;
  }
  return true;
}

bool BroadcastPlan::is_same(int input) const {
  int64_t expected = 1;
  for (int d = rank; d-- > 0; expected *= dims[d]) {
    if (strides[input][d] != expected) return false;
  }
  return true;
}

BroadcastPlan plan_broadcast(std::span<const int64_t> output,
                             std::initializer_list<std::span<const int64_t>> inputs) {
  BroadcastPlan plan;
  if (inputs.size() < 1 || inputs.size() > BroadcastPlan::max_inputs) {
    fail(ErrorCode::internal, "a broadcast plan takes 1 to 3 inputs, not {}", inputs.size());
  }
  plan.inputs = static_cast<int32_t>(inputs.size());
  const auto count = checked_count(output);
  if (!count) {
    fail(ErrorCode::bad_input, "the shape {} has too many elements", shape_text(output));
  }
  plan.count = *count;
  Walk walks[BroadcastPlan::max_inputs];
  int n = 0;
  for (const auto& shape : inputs) {
    check(output, shape);
    walks[n++] = {shape, output.size() - shape.size()};
  }
  if (plan.count == 0) return plan;
  // From the last dimension on: kept in reverse, turned round at the end.
  int rank = 0;
  for (size_t d = output.size(); d-- > 0;) {
    int64_t strides[BroadcastPlan::max_inputs] = {};
    for (int i = 0; i < n; ++i) strides[i] = walks[i].take(d);
    if (output[d] == 1) continue;
    bool merges = rank > 0;
    for (int i = 0; merges && i < n; ++i) {
      merges = strides[i] == plan.strides[i][rank - 1] * plan.dims[rank - 1];
    }
    if (merges) {
      plan.dims[rank - 1] *= output[d];
      continue;
    }
    if (rank == BroadcastPlan::max_rank) {
      fail(ErrorCode::unsupported, "broadcasting to {} needs more than {} nested loops",
           shape_text(output), BroadcastPlan::max_rank);
    }
    plan.dims[rank] = output[d];
    for (int i = 0; i < n; ++i) plan.strides[i][rank] = strides[i];
    ++rank;
  }
  plan.rank = rank;
  for (int a = 0, b = rank - 1; a < b; ++a, --b) {
    std::swap(plan.dims[a], plan.dims[b]);
    for (int i = 0; i < n; ++i) std::swap(plan.strides[i][a], plan.strides[i][b]);
  }
  return plan;
}

}  // namespace sardonyx::kernels
