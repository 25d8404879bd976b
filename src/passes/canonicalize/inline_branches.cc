#include "passes/canonicalize/inline_branches.h"

#include <fmt/format.h>

#include <utility>
#include <vector>

#include "ir/walk.h"
#include "passes/value_names.h"

namespace sardonyx::passes {
namespace {

template <class Visit>
void for_each_defined(const ir::Graph& graph, const Visit& visit) {
  for (const ir::ValueInfo& input : graph.inputs) visit(input.name);
  for (const ir::TensorProto& tensor : graph.initializers) visit(tensor.name);
  for (const ir::SparseTensorProto& tensor : graph.sparse_initializers) visit(tensor.values.name);
  for (const ir::Node& node : graph.nodes) {
    for (const std::string& name : node.outputs) {
      if (!name.empty()) visit(name);
    }
  }
}

void rename(std::string& name, const NewNames& names) {
  if (const auto found = names.find(name); found != names.end()) name = found->second;
}

ir::Node copy_of(const std::string& from, const std::string& to, const ir::Node& of) {
  ir::Node node;
  node.op_type = "Identity";
  node.inputs = {from};
  node.outputs = {to};
  node.origin = of.origin;
  node.is_helper = true;
  return node;
}

}  // namespace

Branches::Branches(const ir::Graph& graph, const infer::Scope& scope) : scope_(scope) {
  const auto enter = [&](const ir::WalkPlace& place) {
    for_each_defined(*place.graph, [&](const std::string& name) { ++makers_[name]; });
    return true;
  };
  ir::walk(graph, {.enter = enter});
}

bool Branches::is_taken(const std::string& name) const {
  const auto found = makers_.find(name);
  return (found != makers_.end() && found->second > 1) || scope_.find(name) != nullptr;
}

std::string Branches::fresh_name(const std::string& hint) {
  std::string name;
  do name = fmt::format("{}~{}", hint, ++made_);
  while (makers_.contains(name) || scope_.find(name) != nullptr);
  makers_[name] = 1;
  return name;
}

std::optional<ir::Graph> Branches::opened(const ir::Node& node, const ir::Graph& branch) {
  const auto inside = defined_inside(branch);
  NewNames names;
  bool clear = true;
  for_each_defined(branch, [&](const std::string& name) {
    clear &= !inside.contains(name);
    if (is_taken(name)) names.emplace(name, fresh_name(name));
  });
  std::unordered_map<std::string, bool> is_made;  // by a node, and may have another name
  for (const ir::Node& inner : branch.nodes) {
    const bool keeps = is_known_by_outputs(inner);
    for (const std::string& name : inner.outputs) {
      is_made[name] = !keeps;
      clear &= !keeps || !names.contains(name);
    }
  }
  if (!clear) return std::nullopt;
  ir::Graph opened;
  opened.initializers = branch.initializers;
  opened.sparse_initializers = branch.sparse_initializers;
  opened.nodes = branch.nodes;
  std::vector<ir::Node> copies;
  for (size_t i = 0; i < node.outputs.size(); ++i) {
    const std::string &from = branch.outputs[i].name, &to = node.outputs[i];
    if (to.empty()) continue;
    const auto made = is_made.find(from);
    if (made != is_made.end() && made->second && makers_[to] == 1) {
      made->second = false;  // only one output can be the value itself
      names[from] = to;
    } else {
      copies.push_back(copy_of(from, to, node));
    }
  }
  for (ir::TensorProto& tensor : opened.initializers) rename(tensor.name, names);
  for (ir::SparseTensorProto& tensor : opened.sparse_initializers)
    rename(tensor.values.name, names);
  for (ir::Node& inner : opened.nodes) {
    rename_uses(inner, names);
    for (std::string& name : inner.outputs) rename(name, names);
  }
  for (ir::Node& copy : copies) {
    rename(copy.inputs[0], names);
    opened.nodes.push_back(std::move(copy));
  }
  return opened;
}

}  // namespace sardonyx::passes
