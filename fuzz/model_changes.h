// Changes to a model where models have structure, and values for its inputs.
#pragma once

#include <cstddef>
#include <random>
#include <string>

#include "ir/model.h"
#include "sardonyx/session.h"

namespace sardonyx::fuzzing {

using Random = std::mt19937_64;

inline size_t below(Random& random, size_t limit) { return limit == 0 ? 0 : random() % limit; }

// A name that some node, input or initializer of the graph makes; sometimes none.
std::string any_value(const ir::Graph& graph, Random& random);

// Inputs and outputs are left out, values exchanged and retyped, nodes doubled, moved, renamed and
// cut to pieces, attributes changed: up to three such things. The model must have a graph.
void change_graph(ir::Graph& graph, Random& random);

// Numbers around zero, in every type; its bits are no promise of a fresh tensor.
Tensor small_tensor(ElementType type, const Shape& shape, Random& random);

// A value for an input of whatever kind; now and then of another one than the model takes.
Value value_for(const ValueDescription& input, Random& random);

}  // namespace sardonyx::fuzzing
