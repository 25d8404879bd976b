// Operators that only ONNX Runtime's training models have, in the standard's form.
#pragma once

#include <string>
#include <vector>

#include "ir/model.h"

namespace sardonyx::train {

// A state that a node updates beside what it computes: running statistics.
struct NodeUpdate {
  std::string state, updated;
};

// The forward part of a training model, whose outputs are those that are wanted: internal operators
// become the standard's, outputs that only a backward part reads go, what Dropout kept stays.
// Batch normalisations that train tell which statistics they update. Throws Error (unsupported)
// with the node for what can't be said so.
std::vector<NodeUpdate> standardize_forward(ir::Graph& forward);

}  // namespace sardonyx::train
