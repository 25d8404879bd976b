// The trees of a node: its attributes as the parts of a forest.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "kernels/trees/forest.h"
#include "ops/node_view.h"

namespace sardonyx::ops::ml {

// All fail where lists do not fit each other, naming them.

// Of TreeEnsemble: nodes and leaves are numbered apart, by their places in the lists.
kernels::ForestParts forest_of_places(const NodeView& node, int64_t targets);

// Of TreeEnsembleRegressor and TreeEnsembleClassifier: nodes, leaves among them, have numbers of
// their own in each tree. `weights`: what the names of the lists of weights begin with ("target",
// "class").
kernels::ForestParts forest_of_numbers(const NodeView& node, const std::string& weights);

// Empty where the node has no such list.
std::vector<int64_t> ints_of(const NodeView& node, std::string_view name);
// A list of numbers: attribute `name` as floats, or `name`_as_tensor.
std::vector<double> numbers_of_attribute(const NodeView& node, const std::string& name);

}  // namespace sardonyx::ops::ml
