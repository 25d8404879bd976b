// Graphs inside nodes as nodes of the graph around them.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <unordered_map>

#include "infer/infer.h"
#include "ir/model.h"

namespace sardonyx::passes {

// Puts the branch that an If takes in the node's place. Borrows the scope of the graph's values.
class Branches {
 public:
  // Counts the names that the graph and those inside it give to values: before its nodes change.
  Branches(const ir::Graph& graph, const infer::Scope& scope);

  // The branch with the names that it has in the graph: what it makes for itself is renamed where
  // something else has that name, its outputs are called as the node's. nullopt where the names of
  // graphs within the branch forbid that, or a random node would lose its name.
  std::optional<ir::Graph> opened(const ir::Node& node, const ir::Graph& branch);

 private:
  bool is_taken(const std::string& name) const;
  std::string fresh_name(const std::string& hint);

  const infer::Scope& scope_;
  std::unordered_map<std::string, int> makers_;  // how many values have the name
  int made_ = 0;
};

}  // namespace sardonyx::passes
