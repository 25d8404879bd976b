// How much arithmetic a node does, and what it reads and writes, by the shapes of its values.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "ir/model.h"
#include "sardonyx/element_type.h"

namespace sardonyx {

// An input or output of a node.
struct OperandShape {
  enum class State {
    absent,
    open,  // no tensor, or one whose shape is not known
    known,
  };
  State state = State::absent;
  ElementType element = ElementType::undefined;
  std::span<const int64_t> shape;
};

// Floating-point operations, two for each multiply-add: products, convolutions, recurrent layers
// and attention exactly; of reductions one for each element they read, of normalisations five and
// of other computing operators one for each they make, of fused fusions as many as they have
// operators; those that only move data do none. NaN where the shapes do not tell. Bodies of control
// flow are not counted.
double node_operations(const ir::Node& node, std::span<const OperandShape> inputs,
                       std::span<const OperandShape> outputs);

// Whether the operator is a sum of products, which reads its constant weights in a form of its own.
bool is_product(const ir::Node& node);

// Bytes of the tensors that the node reads and makes; of those it reads a part of, as much as it
// makes. `is_read[i]` says of input i whether it is read at all.
double node_bytes(const ir::Node& node, std::span<const OperandShape> inputs,
                  std::span<const OperandShape> outputs, const std::vector<bool>& is_read);

}  // namespace sardonyx
