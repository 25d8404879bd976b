// What a node reads.
#pragma once

#include <string>

#include "autodiff/walk.h"
#include "ir/model.h"

namespace sardonyx::train {

// Visits the names of a node's inputs that are there, and of what its graphs read of the graph
// around them. Names of the latter do not outlive the visit.
template <class Visit>
void for_each_read(const ir::Node& node, Visit&& visit) {
  for (const std::string& input : node.inputs) {
    if (!input.empty()) visit(input);
  }
  for (const std::string& name : autodiff::captured_by(node)) visit(name);
}

}  // namespace sardonyx::train
