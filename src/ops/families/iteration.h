// What Loop and Scan share: carried values, slices of inputs, stacked outputs.
#pragma once

#include <span>
#include <vector>

#include "ops/operator.h"

namespace sardonyx::ops {

// The types that carried values have in every iteration: where a body changes a size, that size is
// unknown; where it changes the rank, the rank is. `infer_body` infers the body with the carried
// types it is given and returns its outputs; the carried ones begin at `first`.
std::vector<Known> settle_carried(
    InferContext& ctx, std::vector<Known>& carried, size_t first,
    const std::function<std::vector<Known>(std::span<const Known> carried)>& infer_body);

// Element `index` along `axis`, that axis removed. Axis 0 is a view of the tensor.
Tensor slice_at(const Tensor& tensor, int64_t axis, int64_t index);

// The run is charged for the values that an iteration hands to the next ones, for as long as this
// lives: what a body charged is given back when it ends.
class HeldValues {
 public:
  HeldValues(RunEnvironment& environment, size_t carried)
      : scope_(environment), environment_(environment), carried_(carried, 0) {}
  // The value that now stands for carried value `i`.
  void carry(size_t i, const Value& value);
  // A scan output of one more iteration.
  void add(const Value& value) { environment_.charge(owned_bytes(value)); }

 private:
  RunEnvironment::Scope scope_;
  RunEnvironment& environment_;
  std::vector<int64_t> carried_;
};

// Makes a value that a body gave an output of the step: the run is charged for it.
void set_made_output(RunContext& run, int i, Value value);

// Tensors of one shape and type side by side along a new axis, in reverse order if asked. `type`
// and `shape` say what an item would look like where there is none.
Tensor stacked(const RunEnvironment& environment, std::span<const Value> items, int64_t axis,
               bool reverse, const ValueType& item_type);

}  // namespace sardonyx::ops
