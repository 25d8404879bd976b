#include "lenient/scopes.h"

#include <fmt/format.h>

#include <algorithm>

#include "ir/named_values.h"
#include "ir/walk.h"

namespace sardonyx::lenient {
namespace {

constexpr size_t max_depth = 64;  // as the checker's

std::shared_ptr<const Names> names_of(const Scope& scope) {
  auto names = std::make_shared<Names>();
  for (const ir::Node& node : *scope.nodes) names->insert(node.outputs.begin(), node.outputs.end());
  if (scope.graph == nullptr) {
    names->insert(scope.function->inputs.begin(), scope.function->inputs.end());
    return names;
  }
  for (const ir::ValueInfo& input : scope.graph->inputs) names->insert(input.name);
  for (const ir::TensorProto& tensor : scope.graph->initializers) names->insert(tensor.name);
  for (const ir::SparseTensorProto& tensor : scope.graph->sparse_initializers)
    names->insert(tensor.values.name);
  return names;
}

// The graph of an attribute, which from now on is the attribute's alone.
ir::Graph& own(std::shared_ptr<const ir::Graph>& graph) {
  auto copy = std::make_shared<ir::Graph>(*graph);
  ir::Graph& result = *copy;
  graph = std::move(copy);
  return result;
}

class Visits {
 public:
  explicit Visits(const std::function<void(Scope&)>& visit) : visit_(visit) {}

  void run(Scope outermost) {
    stack_.push_back(std::move(outermost));
    while (!stack_.empty()) {
      Scope scope = std::move(stack_.back());
      stack_.pop_back();
      visit_(scope);
      if (scope.outer.size() < max_depth) push_nested(scope);
    }
  }

 private:
  void push_nested(const Scope& scope) {
    std::shared_ptr<const Names> names;
    for (size_t i = 0; i < scope.nodes->size(); ++i) {
      ir::Node& node = (*scope.nodes)[i];
      if (!ir::has_graphs(node)) continue;
      if (!names) names = names_of(scope);
      for (ir::Attribute& attribute : node.attributes) {
        if (attribute.g) push(scope, names, i, attribute.name, own(attribute.g));
        for (size_t k = 0; k < attribute.graphs.size(); ++k) {
          if (!attribute.graphs[k]) continue;
          push(scope, names, i, fmt::format("{}[{}]", attribute.name, k), own(attribute.graphs[k]));
        }
      }
    }
  }

  void push(const Scope& outer, const std::shared_ptr<const Names>& names, size_t index,
            std::string_view attribute, ir::Graph& graph) {
    const ir::Node& holder = (*outer.nodes)[index];
    Scope scope;
    scope.path = fmt::format("{}, node {} {}, {} '{}'", outer.path, index, ir::describe(holder),
                             attribute, graph.name);
    scope.nodes = &graph.nodes;
    scope.graph = &graph;
    scope.function = outer.function;
    scope.holder = &holder;
    scope.outer.push_back(names);
    scope.outer.insert(scope.outer.end(), outer.outer.begin(), outer.outer.end());
    stack_.push_back(std::move(scope));
  }

  const std::function<void(Scope&)>& visit_;
  std::vector<Scope> stack_;
};

}  // namespace

void for_each_scope(ir::Model& model, const std::function<void(Scope&)>& visit) {
  Visits visits(visit);
  if (model.graph) {
    Scope scope;
    scope.path = fmt::format("graph '{}'", model.graph->name);
    scope.nodes = &model.graph->nodes;
    scope.graph = &*model.graph;
    visits.run(std::move(scope));
  }
  for (ir::Function& function : model.functions) {
    const std::string_view domain = ir::canonical_domain(function.domain);
    Scope scope;
    scope.path = fmt::format("function '{}{}{}'", domain, domain.empty() ? "" : ".", function.name);
    scope.nodes = &function.nodes;
    scope.function = &function;
    visits.run(std::move(scope));
  }
}

void for_each_use(const ir::Node& node, const std::function<void(const std::string&)>& use) {
  for (const std::string& name : node.inputs) {
    if (!name.empty()) use(name);
  }
  ir::for_each_named_value(node, use);
  if (!ir::has_graphs(node)) return;
  std::unordered_set<const ir::Graph*> seen;  // of graphs that attributes share
  ir::WalkCallbacks callbacks;
  callbacks.enter = [&](const ir::WalkPlace& place) {
    if (!seen.insert(place.graph).second) return false;
    for (const ir::ValueInfo& output : place.graph->outputs) use(output.name);
    return true;
  };
  callbacks.node = [&](const ir::WalkPlace&, const ir::Node& inner, size_t) {
    for (const std::string& name : inner.inputs) {
      if (!name.empty()) use(name);
    }
  };
  ir::for_each_subgraph(
      node, [&](const ir::Graph& graph, const ir::Attribute&, int) { ir::walk(graph, callbacks); });
}

bool fits(const ir::Node& node, const schema::Signature& signature) {
  const auto in_range = [](size_t count, int32_t least, int32_t most) {
    return count >= static_cast<size_t>(least) && count <= static_cast<size_t>(most);
  };
  if (!in_range(node.inputs.size(), signature.min_inputs, signature.max_inputs) ||
      !in_range(node.outputs.size(), signature.min_outputs, signature.max_outputs))
    return false;
  const auto is_of_some_version = [&](const std::string& name) {
    return std::ranges::any_of(schema::versions(node.domain, node.op_type),
                               [&](const auto& one) { return one.attribute(name) != nullptr; });
  };
  const bool known = std::ranges::all_of(node.attributes, [&](const ir::Attribute& attribute) {
    const schema::Attribute* formal = signature.attribute(attribute.name);
    if (formal == nullptr) return !is_of_some_version(attribute.name);
    const ir::AttributeKind kind = attribute.effective_kind();
    return kind == ir::AttributeKind::undefined || kind == formal->kind;
  });
  return known && std::ranges::all_of(signature.attributes, [&](const schema::Attribute& formal) {
           return !formal.required || node.find(formal.name) != nullptr;
         });
}

check::Diagnostic repaired(std::string_view rule, check::Place place, std::string found,
                           std::string made) {
  return {check::Severity::warning, rule, std::move(place), std::move(found), std::move(made)};
}

check::Place place_of(const Scope& scope, size_t node_index, std::string detail) {
  const ir::Node& node = (*scope.nodes)[node_index];
  check::Place place;
  place.graph = scope.path;
  place.node_index = static_cast<int64_t>(node_index);
  place.node_name = node.name;
  if (node.name.empty() && !node.outputs.empty()) place.node_output = node.outputs[0];
  const std::string_view domain = ir::canonical_domain(node.domain);
  place.op = fmt::format("{}{}{}", domain, domain.empty() ? "" : ".", node.op_type);
  place.detail = std::move(detail);
  return place;
}

}  // namespace sardonyx::lenient
