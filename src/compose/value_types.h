// Types of all values of a model's main graph.
#pragma once

#include <string>
#include <unordered_map>

#include "ir/model.h"

namespace sardonyx::compose {

// What the model declares, and for the rest what inference finds out. Values of which nothing is
// known are left out; what is wrong with the model is not reported here.
std::unordered_map<std::string, ir::TypeProto> value_types(const ir::Model& model);

}  // namespace sardonyx::compose
