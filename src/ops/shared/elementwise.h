// Operators that fusions of element-wise operators are made of.
#pragma once

#include <optional>

#include "kernels/elementwise/fused_elementwise.h"
#include "ops/node_view.h"

namespace sardonyx::ops {

// The arithmetic of a float32 node with one or two inputs (operands are left to the caller);
// nullopt for other nodes.
std::optional<kernels::ElementwiseStep> elementwise_step(const NodeView& node);

// The same by kind: what the files of unary and binary operators know.
std::optional<kernels::ElementwiseStep> unary_elementwise_step(const NodeView& node);
std::optional<kernels::ElementwiseStep> binary_elementwise_step(const NodeView& node);

// What Max, Min and Sum do with two inputs; nullopt for other names.
std::optional<kernels::BinaryOp> variadic_op(std::string_view name);

}  // namespace sardonyx::ops
