#include "rewrite/simplify.h"

#include <algorithm>
#include <functional>
#include <unordered_map>
#include <unordered_set>

#include "base/fail.h"
#include "eval/eval.h"
#include "infer/infer.h"
#include "ir/origin.h"
#include "ir/tensor.h"
#include "ir/walk.h"
#include "ops/custom.h"
#include "ops/families/memory.h"
#include "rewrite/bands.h"
#include "rewrite/dealt_streams.h"
#include "rewrite/detours.h"
#include "rewrite/fuse.h"
#include "rewrite/image_factors.h"
#include "rewrite/image_planes.h"
#include "rewrite/layout.h"
#include "rewrite/loop_invariants.h"
#include "rewrite/normalizations.h"
#include "rewrite/quantize.h"
#include "rewrite/quantized_sums.h"
#include "rewrite/shuffles.h"
#include "rewrite/widen.h"
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

  // Gives a scope that holds what is known of the graph's inputs and initializers, and of what it
  // captures.
  using Enter = std::function<std::unique_ptr<Scope>()>;

  void simplify(ir::Graph& graph, const Enter& enter) {
    free_loop_invariants(graph);
    if (options_.fuse && has_quantized_nodes(graph)) {
      const std::unique_ptr<Scope> bytes = enter();
      fold(graph, *bytes, {.bodies = false, .keeps_bytes = true});
      remove_unused(graph);
      quantize(graph, *bytes);
      remove_unused(graph);
    }
    std::unique_ptr<Scope> scope = enter();
    fold(graph, *scope, {});
    remove_unused(graph);
    if (!options_.fuse) return;
    remove_detours(graph, *scope);
    const bool normalized = fuse_half_rms_normalizations(graph, *scope);
    if (widen(graph, *scope) || normalized) {
      remove_unused(graph);
      scope = enter();
      fold(graph, *scope, {.bodies = false});
    }
    fuse(graph, *scope);
    remove_unused(graph);
    lay_out(graph, *scope);
    join_quantized_sums(graph, *scope);
    if (!has_mobile_blocks(graph)) return read_planes(graph, *scope);
    scope = enter();
    fold(graph, *scope, {.bodies = false});
    absorb_shuffles(graph, *scope);
    if (deal_streams(graph, *scope)) {
      scope = enter();
      fold(graph, *scope, {.bodies = false});
    }
    fuse_image_factors(graph, *scope);
    form_bands(graph, *scope);
    read_planes(graph, *scope);
  }

  infer::Findings& findings() { return findings_; }

  // Whether there is a convolution with channels last that the rewrites after the layout might
  // change: they need inference anew.
  static bool has_mobile_blocks(const ir::Graph& graph) {
    std::unordered_set<std::string_view> products;
    for (const ir::Node& node : graph.nodes) {
      if (node.op_type == "Mul" && !node.outputs.empty()) products.insert(node.outputs[0]);
    }
    return std::ranges::any_of(graph.nodes, [&](const ir::Node& node) {
      if (node.op_type != "Conv" || node.find("channels_last") == nullptr) return false;
      const ir::Attribute* group = node.find("group");
      return (group != nullptr && group->i.value_or(1) > 1) || products.contains(node.inputs[0]);
    });
  }

 private:
  // What the last inference of each subgraph of a node gave it as inputs: for a loop's body, types
  // that hold in every iteration.
  using Given = std::unordered_map<const ir::Graph*, std::vector<Known>>;

  struct Folding {
    bool bodies = true;  // simplify subgraphs; once is enough
    // Leave DequantizeLinear in place: its weights are worth more as bytes.
    bool keeps_bytes = false;
  };

  void fold(ir::Graph& graph, Scope& scope, const Folding& folding) {
    std::vector<ir::Node> kept;
    kept.reserve(graph.nodes.size());
    for (ir::Node& node : graph.nodes) {
      std::vector<const Known*> inputs;
      for (const std::string& name : node.inputs)
        inputs.push_back(name.empty() ? nullptr : known(node, name, scope));
      const infer::Binding binding = infer::bind_node(node);
      Given entering;
      const ops::InferSubgraph inferred = infer::subgraphs_of(scope, findings_);
      const ops::InferSubgraph subgraph = [&](const ir::Graph& inner,
                                              std::span<const Known> given) {
        entering[&inner].assign(given.begin(), given.end());
        return inferred(inner, given);
      };
      std::vector<Known> made = infer::infer_node(node, binding, inputs, findings_, &subgraph);
      if (folding.bodies) simplify_subgraphs(node, scope, entering);
      const bool folds = fold_node(node, binding, inputs, made, folding.keeps_bytes);
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
  void simplify_subgraphs(ir::Node& node, const Scope& scope, const Given& entering) {
    const auto inner = [&](std::shared_ptr<const ir::Graph>& graph) {
      const auto given = entering.find(graph.get());
      if (given == entering.end()) return;
      auto copy = std::make_shared<ir::Graph>(*graph);
      try {
        simplify(*copy, [&] {
          auto inside = std::make_unique<Scope>(&scope);
          infer::enter(*copy, *inside, findings_, given->second);
          return inside;
        });
        graph = std::move(copy);
      } catch (const Error& error) {
        // A branch that these inputs make impossible is an error only if it is taken.
        if (error.code() == ErrorCode::unsupported) throw;
      }
    };
    for (ir::Attribute& attribute : node.attributes) {
      if (attribute.g) inner(attribute.g);
      for (auto& graph : attribute.graphs) inner(graph);
    }
  }

  // Computes the node's outputs into `made` where they never change and are worth keeping.
  bool fold_node(const ir::Node& node, const infer::Binding& binding,
                 std::span<const Known* const> inputs, std::vector<Known>& made, bool keeps_bytes) {
    if (ir::has_graphs(node)) return false;
    const auto wanted = [&](size_t i) { return !node.outputs[i].empty(); };
    bool inferred = true;
    for (size_t i = 0; i < made.size(); ++i) inferred &= !wanted(i) || made[i].constant != nullptr;
    if (binding.signature && binding.signature->nondeterministic) return false;
    if (keeps_bytes && node.domain.empty() && node.op_type == "DequantizeLinear") return false;
    if (inferred) return true;
    int64_t input_bytes = 0;
    for (const Known* input : inputs) {
      if (input == nullptr) continue;
      if (!input->constant) return false;
      input_bytes += ops::memory_of(input->constant->element_type(), input->constant->size());
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
      const int64_t grown = ops::memory_of(made[i].type.element, count) - input_bytes;
      if (grown <= growth) continue;
      if (grown > growth_left_) return false;
      growth_left_ -= grown;
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
  int64_t growth_left_ = options_.total_growth;  // for constants beyond options_.max_growth
  ir::SymbolTable symbols_;
  infer::Findings findings_;
};

bool ends_in_list(const ir::Node& node) {
  const schema::Signature* signature =
      node.custom ? ops::custom_signature(node) : schema::newest(node.domain, node.op_type);
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
  simplifier.simplify(graph, [&] {
    auto scope = std::make_unique<Scope>();
    infer::enter(graph, *scope, simplifier.findings());
    return scope;
  });
}

}  // namespace sardonyx::rewrite
