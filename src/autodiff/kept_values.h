// Which values of an iteration its gradient reads as they were, instead of computing them again.
// Internal to the gradients.
#pragma once

#include <string>
#include <unordered_set>
#include <vector>

#include "autodiff/bodies.h"

namespace sardonyx::autodiff {

// The graph of a loop's gradient: an iteration computed again, and what flows back through it.
struct RepeatedIteration {
  std::vector<ir::Node> nodes;
  size_t repeated = 0;  // as many of the first nodes are the iteration's
  Names entering;       // what each iteration gets anew
  Names outputs;
  Names same_shape;  // the values that enter or are captured and that have one shape in all
                     // iterations
};

// Names what the flow reads and a costly node is needed for, provided that it has the same shape in
// all iterations, and drops the nodes that computed it. Where the flow reads nothing but the shape
// or the type of a value, it reads them off another one. `inside` knows the nodes' values.
Names keep_values(RepeatedIteration& iteration, const GradientServices& inside);

// Drops the nodes that nothing in `wanted` depends on. `given`: values that come from elsewhere.
std::vector<ir::Node> pruned(std::vector<ir::Node> nodes, std::unordered_set<std::string> wanted,
                             const std::unordered_set<std::string>& given = {});

}  // namespace sardonyx::autodiff
