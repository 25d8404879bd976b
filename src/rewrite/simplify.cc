#include "rewrite/simplify.h"

#include <algorithm>
#include <unordered_map>
#include <unordered_set>

#include "base/fail.h"
#include "eval/eval.h"
#include "infer/infer.h"
#include "ir/tensor.h"
#include "ir/walk.h"
#include "rewrite/fuse.h"
#include "rewrite/layout.h"
#include "schema/schema.h"

namespace sardonyx::rewrite {
namespace {

using infer::Known;
using infer::Scope;

// Removes nodes and initializers whose values nobody uses.
void remove_unused(ir::Graph& graph);

class Simplifier {
 public:
  explicit Simplifier(const SimplifyOptions& options) : options_(options) {
    findings_.symbols = &symbols_;
  }

  // `scope` holds what is known of the graph's inputs and initializers, and of what it captures.
  void simplify(ir::Graph& graph, Scope& scope) {
    fold(graph, scope);
    remove_unused(graph);
    if (!options_.fuse) return;
    fuse(graph, scope);
    remove_unused(graph);
    lay_out(graph, scope);
  }

  infer::Findings& findings() { return findings_; }

 private:
  // What the last inference of each subgraph of a node gave it as inputs: for a loop's body, types
  // that hold in every iteration.
  using Given = std::unordered_map<const ir::Graph*, std::vector<Known>>;

  void fold(ir::Graph& graph, Scope& scope) {
    std::vector<ir::Node> kept;
    kept.reserve(graph.nodes.size());
    for (ir::Node& node : graph.nodes) {
      std::vector<const Known*> inputs;
      for (const std::string& name : node.inputs)
        inputs.push_back(name.empty() ? nullptr : known(node, name, scope));
      const infer::Binding binding = infer::bind_node(node);
      Given entering;
      const ops::InferSubgraph subgraph = [&](const ir::Graph& inner,
                                              std::span<const Known> given) {
        entering[&inner].assign(given.begin(), given.end());
        Scope inside(&scope);
        infer::enter(inner, inside, findings_, given);
        infer::infer_graph(inner, inside, findings_);
        return infer::outputs_of(inner, inside, findings_);
      };
      std::vector<Known> made = infer::infer_node(node, binding, inputs, findings_, &subgraph);
      const bool has_graph = simplify_subgraphs(node, scope, entering);
      const bool folds = !has_graph && fold_node(node, binding, inputs, made);
      for (size_t i = 0; i < node.outputs.size(); ++i) {
        if (node.outputs[i].empty()) continue;
        if (folds) graph.initializers.push_back(ir::to_proto(*made[i].constant, node.outputs[i]));
        scope.set(node.outputs[i], std::move(made[i]));
      }
      if (!folds) kept.push_back(std::move(node));
    }
    graph.nodes = std::move(kept);
  }

  static const Known* known(const ir::Node& node, const std::string& name, const Scope& scope) {
    const Known* found = scope.find(name);
    if (found == nullptr) {
      fail_at(ir::place_of(node), ErrorCode::invalid_model,
              "input '{}' is not defined before the node: it is neither a graph input, an "
              "initializer nor an output of "
              "an earlier node",
              name);
    }
    return found;
  }

  // Bodies keep their inputs and outputs; those that no inference reached stay as they are.
  bool simplify_subgraphs(ir::Node& node, const Scope& scope, const Given& entering) {
    const auto inner = [&](std::shared_ptr<const ir::Graph>& graph) {
      const auto given = entering.find(graph.get());
      if (given == entering.end()) return;
      auto copy = std::make_shared<ir::Graph>(*graph);
      Scope inside(&scope);
      try {
        infer::enter(*copy, inside, findings_, given->second);
        simplify(*copy, inside);
        graph = std::move(copy);
      } catch (const Error& error) {
        // A branch that these inputs make impossible is an error only if it is taken.
        if (error.code() == ErrorCode::unsupported) throw;
      }
    };
    bool any = false;
    for (ir::Attribute& attribute : node.attributes) {
      any |= attribute.g != nullptr || !attribute.graphs.empty();
      if (attribute.g) inner(attribute.g);
      for (auto& graph : attribute.graphs) inner(graph);
    }
    return any;
  }

  // Computes the node's outputs into `made` where they never change and are worth keeping.
  bool fold_node(const ir::Node& node, const infer::Binding& binding,
                 std::span<const Known* const> inputs, std::vector<Known>& made) {
    const auto wanted = [&](size_t i) { return !node.outputs[i].empty(); };
    bool inferred = true;
    for (size_t i = 0; i < made.size(); ++i) inferred &= !wanted(i) || made[i].constant.has_value();
    if (binding.signature && binding.signature->nondeterministic) return false;
    if (inferred) return true;
    int64_t input_bytes = 0;
    for (const Known* input : inputs) {
      if (input == nullptr) continue;
      if (!input->constant) return false;
      input_bytes += static_cast<int64_t>(input->constant->byte_size());
    }
    for (size_t i = 0; i < made.size(); ++i) {
      if (!wanted(i)) continue;
      const auto shape = made[i].type.concrete_shape();
      if (!made[i].type.is_tensor() || !shape) return false;
      int64_t count = 1;
      for (const int64_t dim : *shape) {
        if (__builtin_mul_overflow(count, dim, &count)) return false;
      }
      if (byte_size(made[i].type.element, count) > input_bytes + options_.max_growth) return false;
    }
    std::vector<Value> values;
    for (const Known* input : inputs)
      values.push_back(input ? Value(ir::aligned(*input->constant)) : Value());
    std::vector<Value> results;
    try {
      eval::Environment environment(*options_.pool);
      environment.memory_limit = options_.folding_memory;
      results = eval::run_node(node, values, eval::Frame(), environment);
    } catch (const Error& error) {
      if (error.code() == ErrorCode::unsupported) throw;
      return false;  // fails again, with its place, when the run reaches it
    }
    for (size_t i = 0; i < made.size(); ++i) {
      if (!wanted(i)) continue;
      if (!results[i].is_tensor()) return false;
    }
    for (size_t i = 0; i < made.size(); ++i) {
      if (wanted(i)) made[i] = Known::of(results[i].tensor());
    }
    return true;
  }

  const SimplifyOptions& options_;
  ir::SymbolTable symbols_;
  infer::Findings findings_;
};

bool ends_in_list(const ir::Node& node) {
  const schema::Signature* signature = schema::newest(node.domain, node.op_type);
  return signature != nullptr && !signature->outputs.empty() &&
         signature->outputs.back().option == schema::FormalOption::variadic;
}

void remove_unused(ir::Graph& graph) {
  std::unordered_set<std::string> used;
  for (const auto& output : graph.outputs) used.insert(output.name);
  std::vector<ir::Node> kept;
  for (auto node = graph.nodes.rbegin(); node != graph.nodes.rend(); ++node) {
    const bool needed =
        std::any_of(node->outputs.begin(), node->outputs.end(),
                    [&](const std::string& name) { return !name.empty() && used.contains(name); });
    if (!needed) continue;
    for (std::string& name : node->outputs) {
      if (!used.contains(name) && &name != &node->outputs.front())
        name.clear();  // optional outputs nobody reads
    }
    // How many a list of outputs has may mean something: Split shares out by it.
    while (!ends_in_list(*node) && node->outputs.size() > 1 && node->outputs.back().empty())
      node->outputs.pop_back();
    for (const std::string& name : node->inputs) used.insert(name);
    ir::for_each_subgraph(*node, [&](const ir::Graph& inner, const ir::Attribute&, int) {
      for (const std::string& name : infer::captured_names(inner)) used.insert(name);
    });
    kept.push_back(std::move(*node));
  }
  std::reverse(kept.begin(), kept.end());
  graph.nodes = std::move(kept);
  std::erase_if(graph.initializers,
                [&](const ir::TensorProto& t) { return !used.contains(t.name); });
}

}  // namespace

void simplify(ir::Graph& graph, const SimplifyOptions& options) {
  Simplifier simplifier(options);
  Scope scope;
  infer::enter(graph, scope, simplifier.findings());
  simplifier.simplify(graph, scope);
}

}  // namespace sardonyx::rewrite
