// A graph around one internal operator, with inputs for it, drawn from bytes: its attributes, the
// types, shapes, kinds and values of its inputs, mostly such that the node could be right.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "ir/model.h"
#include "sardonyx/value.h"

namespace sardonyx::fuzzing {

struct InternalNode {
  ir::Node node;              // in the graph, too, perhaps behind others that make its inputs
  ir::Graph graph;            // no file holds one: its nodes are those that a plan takes
  std::vector<Value> inputs;  // of the graph, in order; initializers are in it
};

// The same bytes make the same node.
InternalNode draw_internal_node(const uint8_t* data, size_t size);

}  // namespace sardonyx::fuzzing
