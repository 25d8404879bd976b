// The tools that make one model of others, tried on a model: what they make can be written and read
// in every form, or they refuse it.
#pragma once

#include <random>
#include <string>

#include "ir/model.h"

namespace sardonyx::fuzzing {

using Random = std::mt19937_64;

inline size_t below(Random& random, size_t limit) { return limit == 0 ? 0 : random() % limit; }

// A name that some node, input or initializer of the graph makes; sometimes none.
std::string any_value(const ir::Graph& graph, Random& random);

// Extract, merge and rename, diff, drawings, the forms of files, and all of that from file to file.
// The model must have a graph.
void try_tools(const ir::Model& model, Random& random);

}  // namespace sardonyx::fuzzing
