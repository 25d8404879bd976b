#include "rewrite/simplify.h"

#include <algorithm>
#include <unordered_map>
#include <unordered_set>

#include "base/fail.h"
#include "eval/eval.h"
#include "infer/infer.h"
#include "ir/tensor.h"
#include "rewrite/fuse.h"
#include "rewrite/layout.h"
#include "rewrite/quantize.h"
#include "rewrite/widen.h"

namespace sardonyx::rewrite {
namespace {

using infer::Known;
using infer::Scope;

class Folder {
 public:
  explicit Folder(const SimplifyOptions& options)
      : options_(options), environment_(*options.pool), keeps_quantised_(options.fuse) {
    findings_.symbols = &symbols_;
    environment_.memory_limit = int64_t{4} << 30;
  }

  void fold(ir::Graph& graph, Scope& scope) {
    std::unordered_set<std::string_view> outputs;
    for (const auto& output : graph.outputs) outputs.insert(output.name);
    std::vector<ir::Node> kept;
    kept.reserve(graph.nodes.size());
    for (ir::Node& node : graph.nodes) {
      const bool has_graph = fold_subgraphs(node, scope);
      std::vector<const Known*> inputs;
      for (const std::string& name : node.inputs)
        inputs.push_back(name.empty() ? nullptr : known(node, name, scope));
      const infer::Binding binding = infer::bind_node(node);
      const ops::InferSubgraph subgraph = infer::subgraphs_of(scope, findings_);
      std::vector<Known> made = infer::infer_node(node, binding, inputs, findings_, &subgraph);
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

  infer::Findings& findings() { return findings_; }

  // Leaves DequantizeLinear in place: its weights are worth more as bytes.
  bool keeps_bytes = false;

 private:
  static const Known* known(const ir::Node& node, const std::string& name, const Scope& scope) {
    const Known* found = scope.find(name);
    if (found == nullptr) {
      fail_at(ir::describe(node), ErrorCode::invalid_model,
              "input '{}' is not defined before the node: it is neither a graph input, an "
              "initializer nor an output of "
              "an earlier node",
              name);
    }
    return found;
  }

  bool fold_subgraphs(ir::Node& node, const Scope& scope) {
    bool any = false;
    const auto inner = [&](std::shared_ptr<const ir::Graph>& graph) {
      any = true;
      auto copy = std::make_shared<ir::Graph>(*graph);
      Scope inside(&scope);
      infer::enter(*copy, inside, findings_);
      // Types of a body's inputs may be undeclared: what cannot be inferred here stays as it is.
      infer::Findings lenient = findings_;
      try {
        fold(*copy, inside);
        graph = std::move(copy);
      } catch (const Error& error) {
        if (error.code() == ErrorCode::unsupported) throw;
      }
    };
    for (ir::Attribute& attribute : node.attributes) {
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
    if (keeps_bytes && node.domain.empty() && node.op_type == "DequantizeLinear") return false;
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
      // Weights in a few bits are unpacked once, not in every run.
      const int64_t growth = node.op_type == "DequantizeLinear"
                                 ? std::max(options_.max_growth, 8 * input_bytes)
                                 : options_.max_growth;
      if (byte_size(made[i].type.element, count) > input_bytes + growth) return false;
    }
    std::vector<Value> values;
    for (const Known* input : inputs)
      values.push_back(input ? Value(ir::aligned(*input->constant)) : Value());
    std::vector<Value> results;
    try {
      results = eval::run_node(node, values, eval::Frame(), environment_);
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
  eval::Environment environment_;
  bool keeps_quantised_;
};

// Removes nodes and initializers whose values nobody uses.
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
    while (node->outputs.size() > 1 && node->outputs.back().empty()) node->outputs.pop_back();
    for (const std::string& name : node->inputs) used.insert(name);
    for (const ir::Attribute& attribute : node->attributes) {
      if (attribute.g)
        for (const std::string& name : infer::captured_names(*attribute.g)) used.insert(name);
      for (const auto& inner : attribute.graphs)
        for (const std::string& name : infer::captured_names(*inner)) used.insert(name);
    }
    kept.push_back(std::move(*node));
  }
  std::reverse(kept.begin(), kept.end());
  graph.nodes = std::move(kept);
  std::erase_if(graph.initializers,
                [&](const ir::TensorProto& t) { return !used.contains(t.name); });
}

}  // namespace

void simplify(ir::Graph& graph, const SimplifyOptions& options) {
  if (options.fuse && has_quantized_nodes(graph)) {
    Folder folder(options);
    folder.keeps_bytes = true;
    Scope scope;
    infer::enter(graph, scope, folder.findings());
    folder.fold(graph, scope);
    remove_unused(graph);
    quantize(graph, scope);
    remove_unused(graph);
  }
  Folder folder(options);
  Scope scope;
  infer::enter(graph, scope, folder.findings());
  folder.fold(graph, scope);
  remove_unused(graph);
  if (!options.fuse) return;
  Scope changed;
  const Scope* known = &scope;
  if (widen(graph, scope)) {
    remove_unused(graph);
    infer::enter(graph, changed, folder.findings());
    folder.fold(graph, changed);
    known = &changed;
  }
  fuse(graph, *known);
  remove_unused(graph);
  lay_out(graph, *known);
}

}  // namespace sardonyx::rewrite
