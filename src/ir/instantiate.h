// A function body as nodes of the calling graph.
#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/name_map.h"
#include "ir/model.h"

namespace sardonyx::ir {

// How deep calls of a model's functions may nest.
inline constexpr int max_call_depth = 64;

// What the values of a function's body are called in an instance, by their own names, which belong
// to the function and are not copied.
class Renamed {
 public:
  void reserve(size_t count);
  // Null where the function has no such value.
  const std::string* find(std::string_view own) const;
  // The name, and whether it is new; an old one stays as it is.
  std::pair<std::string*, bool> add(std::string_view own, std::string_view name);

  // A value of a subgraph has the name, whatever it stood for, until that is restored.
  struct Value {
    std::string name;
    bool hidden = false;  // as if there were no such value
  };
  struct Before {
    uint32_t place;
    Value value;
  };
  Before shadow(std::string_view own, std::string name);
  void restore(Before before) { values_[before.place] = std::move(before.value); }

 private:
  NameMap<uint32_t> at_;
  std::vector<Value> values_;
};

// Copies of the function's nodes with the caller's values and attributes put in: formal inputs and
// outputs take the caller's names, all other values fresh ones, attribute references the caller's
// attribute, the function's default, or nothing. Absent inputs become "". `renamed` gets the names;
// where it is asked for, values of subgraphs keep theirs, by which they are reported, but for names
// that the call gives to other values. Nodes keep the versions of the function's own opset imports.
// Throws Error (invalid_model) where the call does not fit. `nodes`: what it holds is lost, and its
// memory used.
void instantiate(const ir::Function& function, const ir::Node& call,
                 const std::function<std::string(std::string_view hint)>& fresh_name,
                 Renamed* renamed, std::vector<ir::Node>& nodes);
inline std::vector<ir::Node> instantiate(
    const ir::Function& function, const ir::Node& call,
    const std::function<std::string(std::string_view hint)>& fresh_name) {
  std::vector<ir::Node> nodes;
  instantiate(function, call, fresh_name, nullptr, nodes);
  return nodes;
}

// Everything of a graph but its nodes.
Graph interface_of(const Graph& graph);

}  // namespace sardonyx::ir
