// What the attributes of RNN, GRU and LSTM say.
#pragma once

#include "kernels/recurrent/recurrent.h"
#include "ops/node_view.h"

namespace sardonyx::ops {

// Without sizes. Throws Error (invalid_model) where an attribute is not one of the standard's.
kernels::RecurrentShape read_recurrent_shape(const NodeView& node);

}  // namespace sardonyx::ops
