// What the attributes and shapes of RNN, GRU and LSTM say.
#pragma once

#include "kernels/recurrent/recurrent.h"
#include "ops/infer_context.h"
#include "ops/node_view.h"

namespace sardonyx::ops {

// Without sizes. Throws Error (invalid_model) where an attribute is not one of the standard's.
kernels::RecurrentShape read_recurrent_shape(const NodeView& node);

// Inputs 0 to 7 and the outputs. Weights are [directions, gates * hidden, K], or, where
// `rows_first`, [directions, K, gates * hidden].
void infer_recurrent(InferContext& ctx, bool rows_first);

}  // namespace sardonyx::ops
