// A part of a model as a model of its own.
#pragma once

#include <string>
#include <vector>

#include "ir/model.h"

namespace sardonyx::compose {

// The nodes that `outputs` need when `inputs` are given, with the initializers, types, annotations
// and functions that belong to them. Names stay. Training information is left out. Throws Error
// (bad_input) where a name is unknown or an output depends on an input of the model that is not
// among `inputs`, naming it.
ir::Model extract(const ir::Model& model, const std::vector<std::string>& inputs,
                  const std::vector<std::string>& outputs);

// Removes functions that nothing calls.
void drop_unused_functions(ir::Model& model);

}  // namespace sardonyx::compose
