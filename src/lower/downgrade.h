// Carrying nodes of the newest versions down to an older one.
#pragma once

#include <cstdint>
#include <string>

#include "ir/model.h"

namespace sardonyx::lower {

// Why a node of the newest form cannot stand in a model that imports `version` of its domain;
// empty where it can. Knows no types of values.
std::string obstacle(const ir::Node& node, int64_t version);

// Gives every node of ai.onnx of a lowered graph, subgraphs included, a form that `opset` has and
// that means the same: the node as it is, without attributes that say what is meant anyway, as its
// older version says it (downgrade_rules.h), or as the body of its function. Sizes that a run
// decides are taken not to be 0. Constants that became attributes are left out; those that are
// inputs, too, are taken to keep their values, and are no inputs any more. Throws Error (bad_input)
// with the node's place where there is no such form, naming the least opset that can say the node.
void downgrade(ir::Model& model, int64_t opset);

}  // namespace sardonyx::lower
