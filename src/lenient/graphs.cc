// Branches that list inputs, and nodes that nobody needs.
#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <set>

#include "lenient/repairs.h"
#include "lenient/scopes.h"

namespace sardonyx::lenient {

void drop_branch_inputs(ir::Model& model, Repairs& repairs) {
  for_each_scope(model, [&](Scope& scope) {
    if (scope.holder == nullptr || scope.graph->inputs.empty()) return;
    if (scope.holder->op_type != "If" || !ir::canonical_domain(scope.holder->domain).empty())
      return;
    ir::Graph& graph = *scope.graph;
    Names read;
    for (const ir::Node& node : graph.nodes) {
      for_each_use(node, [&](const std::string& name) { read.insert(name); });
    }
    for (const ir::ValueInfo& output : graph.outputs) read.insert(output.name);
    const bool constants = std::ranges::any_of(graph.inputs, [&](const ir::ValueInfo& input) {
      return std::ranges::find(graph.initializers, input.name, &ir::TensorProto::name) !=
             graph.initializers.end();
    });
    const bool seen = std::ranges::all_of(graph.inputs, [&](const ir::ValueInfo& input) {
      return scope.sees_outside(input.name) || !read.contains(input.name);
    });
    if (constants || !seen) return;
    check::Place place;
    place.graph = scope.path;
    repairs.push_back(repaired(
        "S-11", std::move(place),
        fmt::format("If gives its branches no inputs; this one lists {}", graph.inputs.size()),
        "the values of these names around the If are read"));
    graph.inputs.clear();
  });
}

namespace {

// Whether an output of each node is needed, if indirectly, for an output of the scope.
std::vector<bool> needed_nodes(const Scope& scope) {
  std::map<std::string_view, std::vector<size_t>> makers;
  for (size_t i = 0; i < scope.nodes->size(); ++i) {
    for (const std::string& output : (*scope.nodes)[i].outputs) makers[output].push_back(i);
  }
  std::vector<bool> needed(scope.nodes->size());
  std::vector<size_t> open;
  const auto need = [&](const std::string& name) {
    const auto found = makers.find(name);
    if (found == makers.end()) return;
    for (const size_t index : found->second) {
      if (!needed[index]) open.push_back(index);
      needed[index] = true;
    }
  };
  if (scope.graph != nullptr) {
    for (const ir::ValueInfo& output : scope.graph->outputs) need(output.name);
  } else {
    for (const std::string& output : scope.function->outputs) need(output);
  }
  while (!open.empty()) {
    const size_t index = open.back();
    open.pop_back();
    for_each_use((*scope.nodes)[index], need);
  }
  return needed;
}

}  // namespace

void drop_dead_nodes(ir::Model& model, std::span<const check::Diagnostic> findings,
                     Repairs& repairs) {
  std::map<std::string, std::map<size_t, const check::Diagnostic*>> broken;  // by graph and node
  for (const check::Diagnostic& finding : findings) {
    if (finding.severity != check::Severity::error || finding.place.node_index < 0) continue;
    broken[finding.place.graph].emplace(static_cast<size_t>(finding.place.node_index), &finding);
  }
  if (broken.empty()) return;
  for_each_scope(model, [&](Scope& scope) {
    const auto found = broken.find(scope.path);
    if (found == broken.end()) return;
    const std::vector<bool> needed = needed_nodes(scope);
    std::vector<bool> dropped(scope.nodes->size());
    for (const auto& [index, finding] : found->second) {
      if (index >= needed.size() || needed[index]) continue;
      dropped[index] = true;
      repairs.push_back(repaired(finding->rule, place_of(scope, index), finding->message,
                                 "the node is left out, since no output of its graph needs it"));
    }
    // What only dropped nodes read may stay; what reads their outputs is as dead as they are.
    for (bool more = true; more;) {
      more = false;
      Names gone;
      for (size_t i = 0; i < dropped.size(); ++i) {
        const ir::Node& node = (*scope.nodes)[i];
        if (dropped[i]) gone.insert(node.outputs.begin(), node.outputs.end());
      }
      for (size_t i = 0; i < dropped.size(); ++i) {
        if (dropped[i] || needed[i]) continue;
        bool reads_gone = false;
        for_each_use((*scope.nodes)[i], [&](const std::string& name) {
          reads_gone = reads_gone || gone.contains(name);
        });
        if (reads_gone) dropped[i] = more = true;
      }
    }
    size_t index = 0;
    std::erase_if(*scope.nodes, [&](const ir::Node&) { return dropped[index++]; });
  });
}

}  // namespace sardonyx::lenient
