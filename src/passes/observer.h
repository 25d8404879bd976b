// What somebody is told who watches the passes.
#pragma once

#include <cstddef>
#include <functional>
#include <map>
#include <string>
#include <string_view>

#include "ir/model.h"

namespace sardonyx::passes {

struct PassEvent {
  std::string_view pass;
  std::string_view place;  // "main graph", or "body of Loop making 'y'" for a graph inside a node
  bool changed = false;
  const ir::Graph& graph;  // as the pass left it
  size_t nodes_before = 0;
  // By operator: how many nodes there are more than before, or fewer where negative.
  std::map<std::string, int> operators;
  double seconds = 0;  // without the passes over graphs inside
};

using PassObserver = std::function<void(const PassEvent&)>;

}  // namespace sardonyx::passes
