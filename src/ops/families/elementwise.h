// Operators that regions of element-wise operators are made of.
#pragma once

#include <optional>

#include "kernels/elementwise/region.h"
#include "ops/node_view.h"

namespace sardonyx::ops {

// The arithmetic of a float32 node with one or two inputs (operands are left to the caller);
// nullopt for other nodes.
std::optional<kernels::RegionStep> region_step(const NodeView& node);

// The same by kind: what the files of unary and binary operators know.
std::optional<kernels::RegionStep> unary_region_step(const NodeView& node);
std::optional<kernels::RegionStep> binary_region_step(const NodeView& node);

// The program of an internal Region, its kernels found.
kernels::RegionProgram region_program(const NodeView& node);

// What Max, Min and Sum do with two inputs; nullopt for other names.
std::optional<kernels::BinaryOp> variadic_op(std::string_view name);

}  // namespace sardonyx::ops
