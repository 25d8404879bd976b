// What the kinds of decoding share.
#pragma once

#include "ops/contrib/generation/decoding.h"

namespace sardonyx::ops::generation {

// The beams of a sequence are the same until the first token is chosen: the graphs run once for
// all of them, unless they are made for all rows or see values from outside that may be.
bool starts_with_all_rows(const RunContext& run, const Request& request, int own_inputs,
                          bool fixed_rows);

// The logits that a graph gave: `[rows, tokens, any]` of float or float16, with any number of
// tokens from 1 to `tokens`.
Tensor logits_of(const Value& value, int64_t rows, int64_t tokens);

// What `buffers` says that a graph takes: `past` tokens of each of `rows` rows are there.
void add_buffer_inputs(RunEnvironment& environment, const Buffers& buffers, const Request& request,
                       int64_t rows, int64_t past, std::vector<Value>& values);

// Each row's last token, `[rows, 1]`.
Tensor last_tokens(const Sequences& sequences);

}  // namespace sardonyx::ops::generation
