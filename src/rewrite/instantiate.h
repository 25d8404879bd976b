// A function body as nodes of the calling graph.
#pragma once

#include <functional>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "ir/model.h"

namespace sardonyx::rewrite {

// What the values of a function's body are called in an instance, by their own names.
using Renamed = std::unordered_map<std::string, std::string>;

// Copies of the function's nodes with the caller's values and attributes put in: formal inputs and
// outputs take the caller's names, all other values fresh ones, attribute references the caller's
// attribute, the function's default, or nothing. Absent inputs become "". `renamed` gets the names.
// Nodes keep the versions of the function's own opset imports. Throws Error (invalid_model) where
// the call does not fit.
std::vector<ir::Node> instantiate(
    const ir::Function& function, const ir::Node& call,
    const std::function<std::string(std::string_view hint)>& fresh_name,
    Renamed* renamed = nullptr);

}  // namespace sardonyx::rewrite
