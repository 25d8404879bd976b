// Products that take in what stands around them.
#pragma once

#include "ops/internal/products.h"
#include "ops/shared/conv_transpose.h"
#include "passes/graph_index.h"

namespace sardonyx::passes {

// Whether a product has nothing behind it but a bias: it is of the standard, or differs from it in
// the type of its weights alone (precision/promote_half.h).
inline bool is_plain(const ir::Node& node, const ops::internal::Product& product) {
  return node.inputs.size() <= 3 && ops::internal::activation_of(product).is_none();
}

// The constant weights of a convolution that has an internal form; null: it has none.
inline const Tensor* conv_weights(const GraphIndex& index, const ir::Node& node,
                                  const ops::internal::Conv&) {
  return index.constant(node.inputs[ops::internal::Conv::w]);
}
inline const Tensor* conv_weights(const GraphIndex& index, const ir::Node& node,
                                  const ops::internal::ConvTranspose& conv) {
  const Tensor* w = index.constant(node.inputs[ops::internal::ConvTranspose::w]);
  return ops::refuses_phases(conv, w).empty() ? w : nullptr;
}

}  // namespace sardonyx::passes
