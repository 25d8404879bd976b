// What a model declares of its main graph's values (value_info), held against what inference says
// when a session is made.
#pragma once

#include <functional>
#include <string>
#include <string_view>
#include <unordered_map>

#include "ir/model.h"
#include "ir/value_type.h"
#include "sardonyx/session.h"

namespace sardonyx {

// Warns of each value once. What is computed is right: declarations are a hint to readers. Sizes
// with names are not looked at, since they may be anything. Not thread-safe.
class DeclaredValues {
 public:
  using Warn = std::function<void(const Warning&)>;

  // Borrows the graph. An empty `warn`: there is nothing to do.
  DeclaredValues(const ir::Graph& graph, Warn warn);

  // Judges the initializers, which inference need not be asked about.
  void hold_initializers();
  // What to tell of values as they are inferred; empty where nothing would come of it.
  std::function<void(const ir::Node&, std::string_view, const ir::ValueType&)> observer();

 private:
  void hold(std::string_view name, const ir::ValueType& type, std::string_view source,
            const std::function<std::string()>& place);

  const ir::Graph& graph_;
  Warn warn_;
  std::unordered_map<std::string_view, const ir::TypeProto*> open_;  // by name; those not told yet
};

}  // namespace sardonyx
