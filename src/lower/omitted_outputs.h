// Outputs that a node must have and leaves out.
#pragma once

#include <functional>
#include <string>
#include <string_view>

#include "ir/model.h"

namespace sardonyx::lower {

// Whether a node of the newest version leaves out an output that its operator requires. The checker
// refuses such nodes where it knows the rules that hold for the model.
bool omits_outputs(const ir::Node& node);

// Gives these outputs names, so that every kernel has memory for what it must make.
void name_outputs(ir::Node& node, const std::function<std::string(std::string_view)>& fresh_name);

}  // namespace sardonyx::lower
