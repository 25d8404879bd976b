// What the attributes and shapes of RNN, GRU and LSTM say.
#pragma once

#include "kernels/recurrent/recurrent.h"
#include "ops/infer_context.h"
#include "ops/node_view.h"
#include "ops/step.h"

namespace sardonyx::ops {

// Without sizes. Throws Error (invalid_model) where an attribute is not one of the standard's.
kernels::RecurrentShape read_recurrent_shape(const NodeView& node);

// Inputs 0 to 7 and the outputs. Weights are [directions, gates * hidden, K], or, where
// `rows_first`, [directions, K, gates * hidden].
void infer_recurrent(InferContext& ctx, bool rows_first);

// Input i, the length of each sequence of the batch; null where it is absent. Throws Error
// (run_failed) where one is not in [0, steps].
const int32_t* sequence_lengths(const RunContext& run, int i, const kernels::RecurrentShape& shape);

}  // namespace sardonyx::ops
