// Names for the values that lowering makes.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <unordered_set>
#include <vector>

#include "ir/model.h"

namespace sardonyx::lower {

// Makes names that no value of the model's main graph and its subgraphs has, and none of subgraphs
// in functions, which keep their names where they are inlined: "hint__7". The model is searched
// when the first name is asked for. Where the main graph's nodes come one after another instead,
// each is to be met when it comes.
class FreshNames {
 public:
  // `comes_in_parts`: the model's graph has no nodes yet. The model is borrowed.
  FreshNames(const ir::Model& model, bool comes_in_parts)
      : model_(model), comes_in_parts_(comes_in_parts) {}

  std::string make(std::string_view hint);
  // Throws Error (unsupported) where the node makes a value of a name that was made before; names
  // that are made later are none of its.
  void meet(const ir::Node& node);

 private:
  void collect(const ir::Graph& graph);
  void collect(const ir::Node& node);
  void collect_inside(const ir::Node& node);
  void collect(std::string_view name);

  const ir::Model& model_;
  const bool comes_in_parts_;
  uint64_t counter_ = 0;
  std::vector<std::string> made_;          // by their numbers, where nodes are still to come
  std::unordered_set<std::string> taken_;  // the model's, as far as make() could make them
};

}  // namespace sardonyx::lower
