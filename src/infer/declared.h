// What a graph declares of its values (value_info, outputs), held against what is inferred.
#pragma once

#include <string_view>
#include <unordered_map>

#include "infer/infer.h"

namespace sardonyx::infer {

// Does nothing unless the inference is thorough. Borrows both.
class Declared {
 public:
  Declared(const ir::Graph& graph, const Findings& findings);

  // One more declaration, which must outlive this.
  void add(const ir::ValueInfo& info);

  // Completes what is known of a node's output by its declaration; a declaration that can't be
  // confirmed is reported, and what was inferred stays.
  void merge(const ir::Node& node, std::string_view name, Known& known) const;

 private:
  const Findings& findings_;
  std::unordered_map<std::string_view, const ir::TypeProto*> types_;
};

}  // namespace sardonyx::infer
