// A function body as nodes of the calling graph.
#pragma once

#include <functional>
#include <string>
#include <string_view>
#include <vector>

#include "ir/model.h"

namespace sardonyx::rewrite {

// Copies of the function's nodes with the caller's values and attributes put in: formal inputs and
// outputs take the caller's names, all other values fresh ones, attribute references the caller's
// attribute, the function's default, or nothing. Absent inputs become "". Nodes keep the versions
// of the function's own opset imports. Throws Error (invalid_model) where the call does not fit.
std::vector<ir::Node> instantiate(
    const ir::Function& function, const ir::Node& call,
    const std::function<std::string(std::string_view hint)>& fresh_name);

}  // namespace sardonyx::rewrite
