// The domain of operators that Sardonyx makes for itself.
#pragma once

#include <string_view>

#include "ir/model.h"

namespace sardonyx::ir {

// Nodes of this domain are never read from a file nor written to one.
inline constexpr std::string_view internal_domain = "sardonyx";

inline bool is_internal(const Node& node) { return node.domain == internal_domain; }

}  // namespace sardonyx::ir
