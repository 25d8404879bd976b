// The tools that make one model of others, tried on a model: what they make can be written and read
// in every form, or they refuse it.
#pragma once

#include "ir/model.h"
#include "model_changes.h"

namespace sardonyx::fuzzing {

// Extract, merge and rename, diff, drawings, the forms of files, and all of that from file to file.
// The model must have a graph.
void try_tools(const ir::Model& model, Random& random);

}  // namespace sardonyx::fuzzing
