// Sequences of different lengths that lie one behind the other.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "ops/step.h"

namespace sardonyx::ops {

struct TokenRange {
  int64_t first, count;
};

// Throws Error (run_failed) where `holds` is false.
void require_of_run(bool holds, std::string_view what);

// The tokens of sequence b of `batch`, by the sums of the lengths that input i holds, which must be
// at least 1 each and reach to `tokens`; of one length where the input is absent.
TokenRange tokens_of(const RunContext& run, int i, int64_t tokens, int64_t batch, int64_t b);

}  // namespace sardonyx::ops
