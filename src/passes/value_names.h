// Names of values in a graph and in those inside it.
#pragma once

#include <string>
#include <unordered_map>
#include <unordered_set>

#include "infer/infer.h"
#include "ir/model.h"
#include "ir/walk.h"

namespace sardonyx::passes {

using NewNames = std::unordered_map<std::string, std::string>;  // by the old ones

// The names that graphs inside a graph's nodes give to values.
std::unordered_set<std::string> defined_inside(const ir::Graph& graph);

// Whether what a node makes depends on what that is called: the numbers of random nodes do.
bool is_known_by_outputs(const ir::Node& node);

// Calls visit(name) for each value that a node reads, and that graphs inside it read of the graph
// around them; absent inputs too.
template <class Visit>
void for_each_read(const ir::Node& node, const Visit& visit) {
  for (const std::string& input : node.inputs) visit(input);
  ir::for_each_subgraph(node, [&](const ir::Graph& inner, const ir::Attribute&, int) {
    for (const std::string& name : infer::captured_names(inner)) visit(name);
  });
}

// Renames what a node, and the graphs inside it, read; none of these gives an old or a new name to
// a value. Graphs that something else shares are copied.
void rename_uses(ir::Node& node, const NewNames& names);
// What the nodes of a graph read, and what are its outputs.
void rename_uses(ir::Graph& graph, const NewNames& names);

}  // namespace sardonyx::passes
