// A model of one node, with inputs for it, drawn from bytes: any operator of any version, whatever
// attributes, types, shapes and values, mostly such that the node could be right.
#pragma once

#include <cstddef>
#include <cstdint>
#include <utility>
#include <vector>

#include "ir/model.h"
#include "sardonyx/session.h"
#include "schema/schema.h"

namespace sardonyx::fuzzing {

struct SingleNode {
  const schema::Signature* signature = nullptr;
  ir::Model model;
  std::vector<NamedValue> inputs;  // of the graph; initializers are in the model
};

// The same bytes make the same node.
SingleNode draw_single_node(const uint8_t* data, size_t size);

}  // namespace sardonyx::fuzzing
