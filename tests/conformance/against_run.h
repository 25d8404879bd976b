// What inference says of a model, held against what a plain run of it makes.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>

#include "sardonyx/value.h"
#include "tools/inferred_model.h"

namespace sardonyx::conformance {

struct Checked {
  int64_t sizes = 0, elements = 0, unevaluable = 0;
};

// Runs the lowered graph on these inputs (of kind none: none is given) and checks every value of
// the main graph as it is made. What is wrong with the first that is. Throws Error where the run
// does.
std::optional<std::string> check_run(std::span<const Value> inputs, const InferredModel& made,
                                     Checked& totals, int64_t memory_limit = int64_t{1} << 32);

}  // namespace sardonyx::conformance
