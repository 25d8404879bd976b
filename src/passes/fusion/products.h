// Products that take in what stands around them.
#pragma once

#include <string_view>

#include "ops/families/conv_transpose.h"
#include "ops/node_view.h"
#include "passes/graph_index.h"

namespace sardonyx::passes {

// Of the standard, or the same with weights of another float type (precision/promote_half.h).
inline bool is_product(const ir::Node& node, std::string_view op) {
  return node.op_type == op && (node.domain.empty() || node.domain == "sardonyx") &&
         node.inputs.size() <= 3 && node.find("activation") == nullptr;
}

// The constant weights of a convolution that has a fused form; null: it has none.
inline const Tensor* conv_weights(const GraphIndex& index, const ir::Node& conv) {
  const Tensor* w = index.constant(conv.inputs[1]);
  const bool any = conv.op_type != "ConvTranspose" ||
                   ops::refuses_phases(ops::NodeView(conv, nullptr), w).empty();
  return any ? w : nullptr;
}

}  // namespace sardonyx::passes
