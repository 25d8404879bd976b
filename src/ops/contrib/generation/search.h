// From the logits of a decoding to the outputs of the operator.
#pragma once

#include "ops/contrib/generation/decoding.h"

namespace sardonyx::ops::generation {

// Where a run without a seed of its own takes its numbers from.
struct SearchOptions {
  uint64_t stream = 0;          // the step's number (RandomStreams)
  int64_t declared_vocab = -1;  // what the decoder says, for runs that never ask it
};

// Runs the search and sets the outputs.
void run_greedily(RunContext& run, Decoding& decoding, const Settings& settings,
                  const Request& request, const SearchOptions& options);
void run_beams(RunContext& run, Decoding& decoding, const Settings& settings,
               const Request& request, const SearchOptions& options);

}  // namespace sardonyx::ops::generation
