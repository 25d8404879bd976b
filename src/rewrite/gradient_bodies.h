// Operators without a gradient of their own, said with operators that have one. Internal to the
// gradients.
#pragma once

#include <string_view>
#include <vector>

#include "rewrite/gradient_rules.h"

namespace sardonyx::rewrite {

// Nodes of the newest versions that give the node's outputs, not yet lowered. They depend on what
// is known of its inputs; throws Error (unsupported) where that is too little.
using GradientBody = std::vector<ir::Node> (*)(const ir::Node& node, GradientEmitter& emitter);

// Null where the operator has none here.
GradientBody gradient_body(std::string_view domain, std::string_view op);
std::vector<std::string_view> gradient_body_names();

// gradient_recurrent.cc: RNN, GRU and LSTM as a Scan for each direction.
std::vector<ir::Node> recurrent_body(const ir::Node& node, GradientEmitter& e);

}  // namespace sardonyx::rewrite
