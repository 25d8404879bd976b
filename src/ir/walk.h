// Visits every graph and node of a model: sub-graphs in attributes, function bodies and training
// graphs included. The walk keeps its own stack, so no depth of nesting can exhaust the program's.
#pragma once

#include <cstddef>
#include <functional>
#include <string>
#include <string_view>
#include <vector>

#include "ir/model.h"

namespace sardonyx::ir {

// Where a walk is. A link of the chain from a model's main graph (or function, or training graph)
// down to a graph; valid during the callback only.
struct WalkPlace {
  const WalkPlace* outer = nullptr;    // null: this is the outermost graph
  const Graph* graph = nullptr;        // null: the nodes of `function`
  const Function* function = nullptr;  // the function whose body this is or lies in, or null
  // How the outermost graph is reached: "graph", "function", "training_info[0].algorithm" …
  std::string root;
  // How `outer` holds this graph: its node, that node's index, the attribute, and the index
  // within a list of graphs (-1: the attribute is one graph).
  const Node* holder = nullptr;
  size_t holder_index = 0;
  const Attribute* attribute = nullptr;
  int list_index = -1;
  int depth = 0;  // 0 for the outermost graph

  // "graph 'main', node 3 If 'choice', then_branch 'g1'".
  std::string path() const;
};

struct WalkCallbacks {
  // Before the nodes of a graph (or function body). Return false to skip what is inside.
  std::function<bool(const WalkPlace&)> enter = {};
  // After the nodes of a graph and all that is inside them.
  std::function<void(const WalkPlace&)> leave = {};
  // Each node, in the order of the file, before the sub-graphs it holds.
  std::function<void(const WalkPlace&, const Node&, size_t index)> node = {};
};

// A sub-graph shared by several attributes is visited once for each.
void walk(const Model& model, const WalkCallbacks& callbacks);
void walk(const Graph& graph, const WalkCallbacks& callbacks);
// `root` is how messages call the graph: "training_info[0].algorithm".
void walk(const Graph& graph, std::string_view root, const WalkCallbacks& callbacks);
void walk(const Function& function, const WalkCallbacks& callbacks);

// Whether an attribute is a graph or a list of graphs; whether one of a node's is.
inline bool has_graphs(const Attribute& attribute) {
  return attribute.g != nullptr || !attribute.graphs.empty();
}
bool has_graphs(const Node& node);

// Calls `visit` for every graph that an attribute of `node` holds directly, in order;
// `list_index` is -1 for an attribute that is one graph.
void for_each_subgraph(
    const Node& node,
    const std::function<void(const Graph&, const Attribute&, int list_index)>& visit);

// Lets `change` rewrite every node list of a model or graph: the outer ones first, then those of
// the sub-graphs it left. Sub-graphs are copied where something else shares them.
void walk_mutable(Model& model, const std::function<void(std::vector<Node>&)>& change);
void walk_mutable(Graph& graph, const std::function<void(std::vector<Node>&)>& change);

}  // namespace sardonyx::ir
