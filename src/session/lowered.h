// The graph of a model that a session begins with.
#pragma once

#include <memory>
#include <set>
#include <string>
#include <vector>

#include "ir/model.h"
#include "sardonyx/inputs.h"
#include "session/model.h"

namespace sardonyx {

// Initializers that inputs of the same name give a default to.
std::set<std::string> defaults_of(const ir::Graph& graph);

// The model's main graph lowered: all operators in their newest version, functions inlined. Inputs
// with a default are constants, but those of `overridden`. All sizes that the inputs leave open
// have a name, or the number that the options give them, and with `separate_sizes` each a name of
// its own; initializers and outputs are those of the model with what the options say of them.
// Throws Error with the node's place.
ir::Graph lowered_graph(const Model::Implementation& model, const SessionOptions& options,
                        const std::set<std::string>& overridden, bool separate_sizes = false);

// The model, or one that has these values for those of its initializers whose data it has not
// brought in: they need not be where the model says. Throws Error (bad_input) as lowered_graph().
std::shared_ptr<const Model::Implementation> with_given(const Model& model,
                                                        const std::vector<NamedValue>& values);

// Throws Error (bad_input) for sizes that are negative and for names that no size of the inputs
// has.
void refuse_wrong_sizes(const DimSizes& sizes, const std::vector<ir::ValueInfo>& inputs);
// Makes numbers of the sizes that are named.
void fix_sizes(const DimSizes& sizes, std::vector<ir::ValueInfo>& values);

// Throws the first error of the checker's that keeps the model from running, and where it has no
// graph.
void refuse_broken(const Model::Implementation& model);

}  // namespace sardonyx
