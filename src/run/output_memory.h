// Memory of the caller's for the outputs of one run.
#pragma once

#include <algorithm>
#include <memory>
#include <span>
#include <vector>

#include "ops/environment.h"
#include "sardonyx/allocator.h"
#include "sardonyx/value.h"

namespace sardonyx::run {

class OutputMemory {
 public:
  explicit OutputMemory(std::shared_ptr<Allocator> allocator) : allocator_(std::move(allocator)) {}

  // A tensor of numbers in memory of the allocator's, charged to the run. Throws Error
  // (out_of_memory), (bad_input) as Allocator says.
  Tensor make(ops::RunEnvironment& environment, ElementType type, Shape shape);
  // Copies outputs that lie elsewhere, but for those that lay there before the run: `before` has
  // their elements, or null.
  void bring(ops::RunEnvironment& environment, std::span<Value> outputs,
             std::span<const void* const> before);

 private:
  std::shared_ptr<Allocator> allocator_;
  std::vector<const void*> made_;
};

}  // namespace sardonyx::run
