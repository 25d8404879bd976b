// The graphs of a model, each with what it sees, for repairs.
#pragma once

#include <functional>
#include <memory>
#include <string>
#include <string_view>
#include <unordered_set>
#include <utility>
#include <vector>

#include "check/check.h"
#include "ir/model.h"
#include "schema/schema.h"

namespace sardonyx::lenient {

using Names = std::unordered_set<std::string>;

// A graph or the body of a function, to be changed.
struct Scope {
  std::string path;  // as the checker calls it: "graph 'main', node 3 If, then_branch 'g'"
  std::vector<ir::Node>* nodes = nullptr;
  ir::Graph* graph = nullptr;  // null: the body of `function`
  ir::Function* function = nullptr;
  const ir::Node* holder = nullptr;  // of a nested graph; null for others
  // Values of the enclosing graphs, one set for each, innermost first.
  std::vector<std::shared_ptr<const Names>> outer;

  bool sees_outside(const std::string& name) const {
    for (const auto& names : outer) {
      if (names->contains(name)) return true;
    }
    return false;
  }
};

// Visits the model's graph and functions, each before the graphs nested in it. Nested graphs are
// copied where something else shares them. `visit` may change the scope's graph.
void for_each_scope(ir::Model& model, const std::function<void(Scope&)>& visit);

// Calls use(name) for each name that the node, and the graphs nested in it, read, which includes
// the outputs of nested graphs. Names that a nested graph defines for itself are among them.
void for_each_use(const ir::Node& node, const std::function<void(const std::string&)>& use);

// Whether a node has the inputs, outputs and attributes that a version of its operator asks for.
// Attributes that no version knows do not count.
bool fits(const ir::Node& node, const schema::Signature& signature);

// A warning of a repair.
check::Diagnostic repaired(std::string_view rule, check::Place place, std::string found,
                           std::string made);
// The place of a node.
check::Place place_of(const Scope& scope, size_t node_index, std::string detail = {});

}  // namespace sardonyx::lenient
