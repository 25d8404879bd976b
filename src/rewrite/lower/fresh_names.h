// Names for the values that lowering makes.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <unordered_set>

#include "ir/model.h"
#include "ir/node_source.h"

namespace sardonyx::rewrite {

// Makes names that no value of the model's main graph and its subgraphs has: "hint__7". The model
// is searched when the first name is asked for.
class FreshNames {
 public:
  // `nodes`: null, or where the main graph's nodes come from instead. Both are borrowed.
  FreshNames(const ir::Model& model, ir::NodeSource* nodes) : model_(model), nodes_(nodes) {}

  std::string make(std::string_view hint);

 private:
  void collect();
  void collect(const ir::Graph& graph);
  void collect(const ir::Node& node);
  void collect(std::string_view name);

  const ir::Model& model_;
  ir::NodeSource* const nodes_;
  uint64_t counter_ = 0;
  std::unordered_set<std::string> taken_;  // the model's, as far as make() could make them, too
};

}  // namespace sardonyx::rewrite
