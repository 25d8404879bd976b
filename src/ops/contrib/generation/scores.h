// What changes the scores of next tokens before one is chosen.
#pragma once

#include <span>

#include "ops/contrib/generation/sequences.h"
#include "ops/contrib/generation/settings.h"

namespace sardonyx::ops::generation {

// `scores` has a row of `vocab` for each sequence; `step` is 1 for the first tokens that are made.
// In ONNX Runtime's order: repetition, n-grams, masks, the least length, temperature, presence,
// timestamps.
void process_scores(const Settings& settings, const Request& request, const Sequences& sequences,
                    int64_t vocab, int64_t step, std::span<float> scores);

// The scores become logarithms of probabilities, row by row.
void log_softmax(std::span<float> scores, int64_t vocab);

// Sets to `filter_value` whatever is not among the likeliest tokens that make up top_p together.
void keep_likeliest(const Settings& settings, int64_t vocab, std::span<float> scores);

}  // namespace sardonyx::ops::generation
