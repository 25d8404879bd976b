// What is done with a training model when it is put together.
#pragma once

#include "ir/model.h"
#include "sardonyx/model.h"

namespace sardonyx::train {

// Expands the gradients of the first algorithm, as a session will: what has none is told now.
// Throws Error (unsupported).
void require_gradients(const ir::Model& model);

Model model_of(const ir::Model& made);

}  // namespace sardonyx::train
