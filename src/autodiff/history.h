// What the gradients of If, Loop and Scan need of the forward run: the states that entered each
// iteration, and numbers that were drawn. Internal to the gradients.
#pragma once

#include <string>
#include <vector>

#include "autodiff/bodies.h"

namespace sardonyx::autodiff {

// Whether two evaluations of the node on the same inputs may differ: with a seed they do not.
bool draws_anew(const ir::Node& node);

// Makes a graph hand out, as further outputs of float64, what its nodes draw; the names of the
// outputs come back. Nodes with graphs hand on what those draw.
Names keep_draws(ir::Graph& graph, const ir::Node& holder, const GradientServices& services);

// The same graph with `kept` in place of what its nodes draw, in the order of keep_draws.
void replay_draws(ir::Graph& graph, const Names& kept, const GradientServices& services);

// Gives every output a name, up to `count` of them.
void name_outputs(ir::Node& node, size_t count, const GradientServices& services);

}  // namespace sardonyx::autodiff
