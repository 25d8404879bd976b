// A model's own functions put where they are called, nothing else changed.
#pragma once

#include "ir/model.h"

namespace sardonyx::lower {

// The model without functions of its own: each call is replaced by the body, in all graphs. Nodes
// keep their versions. Throws Error (invalid_model) where calls don't fit, go in circles, nest too
// deep or become too many, (unsupported) where a body's node means something else by the model's
// imports, and for training information.
ir::Model inline_functions(const ir::Model& model);

}  // namespace sardonyx::lower
