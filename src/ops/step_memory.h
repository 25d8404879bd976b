// What a step takes of memory beside the elements of its outputs: the texts of strings.
#pragma once

#include <span>

#include "ir/model.h"
#include "ops/step.h"

namespace sardonyx::ops {

// Bytes of the texts that strings hold apart from themselves; short ones lie inside a string.
int64_t text_bytes(std::span<const std::string> strings);
int64_t text_bytes(const Value& value);

// The texts that a step gives its outputs, which the run is charged for. Made before the step runs:
// throws Error (out_of_memory) where the texts could pass the run's memory limit. Costs nothing for
// steps without strings and for runs without a limit.
class TextCharge {
 public:
  TextCharge(const ir::Node& node, bool allocates, std::span<Slot* const> inputs,
             std::span<Slot* const> outputs, RunEnvironment& environment);
  // After the step: charges what was made in fact.
  void made(std::span<Slot* const> inputs, std::span<Slot* const> outputs) const;

 private:
  bool counts_ = false;
  RunEnvironment& environment_;
};

// Throws Error (out_of_memory) with the node's place: in the place of an exception that only says
// that memory could not be had.
[[noreturn]] void fail_for_memory(const ir::Node& node);

}  // namespace sardonyx::ops
