// The walk over a graph's nodes, and over those of its subgraphs.
#include <list>
#include <unordered_set>

#include "base/fail.h"
#include "infer/declared.h"
#include "infer/infer.h"
#include "ir/origin.h"

namespace sardonyx::infer {

ops::InferSubgraph subgraphs_of(const Scope& scope, const InferenceContext& inference) {
  return [&scope, &inference](const ir::Graph& graph, std::span<const ValueFacts> inputs) {
    InferenceContext inner = inference;
    inner.constraints = nullptr;  // a branch may not run, a body's sizes are its own
    // What can't be in a branch is an error only where that branch is taken: If decides.
    if (inference.problem) {
      inner.problem = [&inference](const ir::Node& node, const Error& error) {
        if (error.code() != ErrorCode::unsupported) throw error;
        inference.problem(node, error);
      };
    }
    const size_t declared = graph.value_info.size() + graph.initializers.size();
    inference.budget->nodes -= static_cast<int64_t>(graph.nodes.size() + declared / 8) + 1;
    auto inside = std::make_unique<Scope>(&scope);
    inside->reserve(graph.initializers.size() + graph.inputs.size() + graph.nodes.size());
    enter(graph, *inside, inner, inputs);
    infer_graph(graph, *inside, inner);
    std::vector<ValueFacts> outputs = outputs_of(graph, *inside, inner);
    if (!inner.inferred) return outputs;
    inside->forget_outer();
    inner.inferred(graph, std::move(inside));
    return outputs;
  };
}

namespace {

// A declaration of a function, by the name that its value has in a call.
struct Added {
  ir::ValueInfo info;
  std::string of, own_name;
};

}  // namespace

struct Walk::State {
  State(const ir::Graph& graph, Scope& scope, const InferenceContext& inference)
      : scope(scope),
        inference(inference),
        subgraph(subgraphs_of(scope, inference)),
        declared(graph, inference) {}

  void gather(const ir::Node& node) {
    inputs.clear();
    for (const std::string& name : node.inputs) {
      const ValueFacts* known = name.empty() ? nullptr : scope.find(name);
      if (!name.empty() && known == nullptr) {
        fail_at(ir::identify(node), ErrorCode::invalid_model,
                "input '{}' {}: it is neither a graph input, an initializer nor an output of an "
                "earlier node",
                name, undefined_input);
      }
      inputs.push_back(known);
    }
  }

  template <class Bind>
  void step(const ir::Node& node, const Bind& bind) {
    try {
      take_step(node, bind);
    } catch (MemoryLimitReached& reached) {
      reached.locate(ir::identify(node));
      throw;
    }
  }

  template <class Bind>
  void take_step(const ir::Node& node, const Bind& bind) {
    try {
      gather(node);
      infer_node(node, bind(), inputs, inference, &subgraph, outputs);
    } catch (const Error& error) {
      if (!inference.problem) throw;
      inference.problem(node, error);
      outputs.assign(node.outputs.size(), ValueFacts());
    }
    for (size_t i = 0; i < node.outputs.size(); ++i) {
      if (node.outputs[i].empty()) continue;
      const HashedName name(node.outputs[i]);
      declared.merge(node, name, outputs[i]);
      scope.set(name, std::move(outputs[i]));
    }
  }

  Scope& scope;
  const InferenceContext& inference;
  const ops::InferSubgraph subgraph;
  Declared declared;
  std::list<Added> added;                 // to what is declared
  std::vector<const ValueFacts*> inputs;  // of the node at hand
  std::vector<ValueFacts> outputs;
};

Walk::Walk(const ir::Graph& graph, Scope& scope, const InferenceContext& inference)
    : state_(std::make_unique<State>(graph, scope, inference)) {}
Walk::~Walk() = default;

void Walk::declare(ir::ValueInfo info, std::string function, std::string own_name) {
  auto& added = state_->added.emplace_back(
      Added{std::move(info), "function " + std::move(function), std::move(own_name)});
  state_->declared.add(added.info, "value_info", added.of, added.own_name);
}

void Walk::step(const ir::Node& node) {
  state_->step(node, [&] { return bind_node(node); });
}

void Walk::step(const ir::Node& node, const Binding& binding) {
  state_->step(node, [&] { return binding; });
}

void Walk::complete(std::string_view name, ir::Dims shape) {
  const ValueFacts* known = state_->scope.find(name);
  if (!state_->inference.symbolic_values || known == nullptr || !known->type.is_tensor() ||
      known->type.shape)
    return;
  ValueFacts completed = *known;
  completed.type.shape = std::move(shape);
  state_->scope.set(name, std::move(completed));
}

void infer_graph(const ir::Graph& graph, Scope& scope, const InferenceContext& inference) {
  Walk walk(graph, scope, inference);
  for (const ir::Node& node : graph.nodes) walk.step(node);
}

std::vector<ValueFacts> outputs_of(const ir::Graph& graph, const Scope& scope,
                                   const InferenceContext& inference) {
  std::vector<ValueFacts> outputs;
  outputs.reserve(graph.outputs.size());
  for (const ir::ValueInfo& output : graph.outputs) {
    const ValueFacts* known = scope.find(output.name);
    if (known == nullptr) {
      fail_at(fmt::format("graph '{}'", graph.name), ErrorCode::invalid_model,
              "output '{}' is not made by any node, input or initializer", output.name);
    }
    outputs.push_back(*known);
    if (!outputs.back().type.is_known() && output.type) {
      outputs.back().type = ir::value_type(*output.type, *inference.symbols);
    }
  }
  return outputs;
}

std::vector<std::string> captured_names(const ir::Graph& graph) {
  std::unordered_set<std::string_view> defined;
  std::unordered_set<std::string> seen;
  std::vector<std::string> captured;
  for (const auto& input : graph.inputs) defined.insert(input.name);
  for (const auto& initializer : graph.initializers) defined.insert(initializer.name);
  for (const auto& sparse : graph.sparse_initializers) defined.insert(sparse.values.name);
  const auto use = [&](const std::string& name) {
    if (!name.empty() && !defined.contains(name) && seen.insert(name).second)
      captured.push_back(name);
  };
  for (const ir::Node& node : graph.nodes) {
    for (const std::string& name : node.inputs) use(name);
    for (const ir::Attribute& attribute : node.attributes) {
      if (attribute.g)
        for (const auto& name : captured_names(*attribute.g)) use(name);
      for (const auto& inner : attribute.graphs)
        for (const auto& name : captured_names(*inner)) use(name);
    }
    for (const std::string& name : node.outputs) defined.insert(name);
  }
  for (const auto& output : graph.outputs) use(output.name);
  return captured;
}

}  // namespace sardonyx::infer
