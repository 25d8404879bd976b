#include "rewrite/simplify.h"

#include <algorithm>
#include <functional>
#include <iterator>
#include <optional>
#include <unordered_map>
#include <unordered_set>

#include "base/checked.h"
#include "base/fail.h"
#include "eval/eval.h"
#include "infer/infer.h"
#include "ir/origin.h"
#include "ir/tensor.h"
#include "ir/walk.h"
#include "ops/custom.h"
#include "ops/families/memory.h"
#include "ops/step_memory.h"
#include "rewrite/bands.h"
#include "rewrite/branches.h"
#include "rewrite/byte_tables.h"
#include "rewrite/dealt_streams.h"
#include "rewrite/detours.h"
#include "rewrite/fuse.h"
#include "rewrite/graph_index.h"
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
  explicit Simplifier(const SimplifyOptions& options)
      : options_(options), assumptions_(options.assumptions) {
    findings_.symbols = assumptions_ != nullptr ? &assumptions_->symbols : &symbols_;
    findings_.truths = assumptions_ != nullptr;
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
    make_byte_tables(graph, *scope);
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

  void fold_constants(ir::Graph& graph, const Enter& enter) {
    free_loop_invariants(graph);
    const std::unique_ptr<Scope> scope = enter();
    fold(graph, *scope, {.keeps_bytes = true, .only = true});
    remove_unused(graph);
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
    bool only = false;  // subgraphs are folded, too, and nothing else
  };

  void fold(ir::Graph& graph, Scope& scope, const Folding& folding) {
    if (!counted_) {
      counted_ = true;
      for (const ir::TensorProto& given : graph.initializers) allow_for(bytes_of(given));
    }
    std::optional<Branches> branches;
    if (std::ranges::any_of(graph.nodes, [](const auto& node) { return is_op(&node, "If"); }))
      branches.emplace(graph, scope);
    Folded folded{graph, scope, folding, branches ? &*branches : nullptr, {}};
    folded.kept.reserve(graph.nodes.size());
    for (ir::Node& node : graph.nodes) fold_into(folded, std::move(node));
    graph.nodes = std::move(folded.kept);
  }

  // A graph whose nodes are being folded.
  struct Folded {
    ir::Graph& graph;
    Scope& scope;
    const Folding& folding;
    Branches* branches;  // null where there is no If
    std::vector<ir::Node> kept;
  };

  // Branches within branches: as deep as the reader lets graphs be.
  void fold_into(Folded& to, ir::Node node) {
    std::vector<const Known*> inputs;
    for (const std::string& name : node.inputs)
      inputs.push_back(name.empty() ? nullptr : known(node, name, to.scope));
    const infer::Binding binding = infer::bind_node(node);
    Given entering;
    const ops::InferSubgraph inferred = infer::subgraphs_of(to.scope, findings_);
    const ops::InferSubgraph subgraph = [&](const ir::Graph& inner, std::span<const Known> given) {
      std::vector<Known> outputs = inferred(inner, given);
      entering[&inner].assign(given.begin(), given.end());
      return outputs;
    };
    std::vector<Known> made = infer::infer_node(node, binding, inputs, findings_, &subgraph);
    if (const ir::Graph* branch = taken_branch(node, inputs, made, entering)) {
      if (auto opened = to.branches->opened(node, *branch)) {
        infer::enter_initializers(*opened, to.scope, findings_);
        std::ranges::move(opened->initializers, std::back_inserter(to.graph.initializers));
        std::ranges::move(opened->sparse_initializers,
                          std::back_inserter(to.graph.sparse_initializers));
        for (ir::Node& inner : opened->nodes) fold_into(to, std::move(inner));
        return;
      }
    }
    note_lengths(node, inputs, made);
    if (to.folding.bodies) simplify_subgraphs(node, to.scope, entering, to.folding.only);
    const bool folds = fold_node(node, binding, inputs, made, to.folding.keeps_bytes);
    for (size_t i = 0; i < node.outputs.size(); ++i) {
      if (node.outputs[i].empty()) continue;
      if (folds) to.graph.initializers.push_back(ir::to_proto(*made[i].constant, node.outputs[i]));
      to.scope.set(node.outputs[i], std::move(made[i]));
    }
    if (!folds) to.kept.push_back(std::move(node));
  }

  static bool is_open(const ir::ValueType& type) {
    return !type.is_known() || (type.is_tensor() && !type.shape);
  }

  // Whether the node makes a value of which not even the rank is known.
  static bool leaves_open(const ir::Node& node, std::span<const Known> made) {
    for (size_t i = 0; i < made.size(); ++i) {
      if (!node.outputs[i].empty() && is_open(made[i].type)) return true;
    }
    return false;
  }

  // The branch of an If that all its runs take, or those with the sizes that are assumed; null
  // where that can't be told, or the branch can't be: a run that takes it says why.
  const ir::Graph* taken_branch(const ir::Node& node, std::span<const Known* const> inputs,
                                std::span<const Known> made, const Given& entering) {
    if (!is_op(&node, "If") || inputs.size() != 1 || inputs[0] == nullptr) return nullptr;
    const auto& elements = inputs[0]->elements;
    if (!elements || elements->size() != 1) return nullptr;
    const ir::Dim& condition = elements->front();
    std::optional<int64_t> holds = condition.value();
    if (!holds && assumptions_ != nullptr && leaves_open(node, made)) {
      assumptions_->decides_branches |= assumptions_->is_decided(condition);
      holds = assumptions_->assume(condition, [&](int64_t value) {
        return fmt::format("{} takes its {}", ir::source_text(node),
                           value != 0 ? "then_branch" : "else_branch");
      });
    }
    if (!holds) return nullptr;
    const ir::Attribute* branch = node.find(*holds != 0 ? "then_branch" : "else_branch");
    if (branch == nullptr || !branch->g || !entering.contains(branch->g.get())) return nullptr;
    return branch->g->outputs.size() >= node.outputs.size() ? branch->g.get() : nullptr;
  }

  // Lists of whole numbers whose lengths leave the ranks of what a node makes of them open.
  void note_lengths(const ir::Node& node, std::span<const Known* const> inputs,
                    std::span<const Known> made) {
    if (assumptions_ == nullptr || ir::has_graphs(node) || !leaves_open(node, made)) return;
    for (const Known* input : inputs) {
      if (input == nullptr || !input->type.is_tensor() || !input->type.shape) continue;
      const auto& shape = *input->type.shape;
      if (is_integer(input->type.element) && shape.size() == 1 && !shape[0].is_constant() &&
          assumptions_->is_decided(shape[0]))
        assumptions_->lengths.push_back(shape[0]);
    }
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
  void simplify_subgraphs(ir::Node& node, const Scope& scope, const Given& entering,
                          bool only_fold) {
    const auto inner = [&](std::shared_ptr<const ir::Graph>& graph) {
      const auto given = entering.find(graph.get());
      if (given == entering.end()) return;
      auto copy = std::make_shared<ir::Graph>(*graph);
      try {
        const auto enter = [&] {
          auto inside = std::make_unique<Scope>(&scope);
          infer::enter(*copy, *inside, findings_, given->second);
          return inside;
        };
        only_fold ? fold_constants(*copy, enter) : simplify(*copy, enter);
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
    if (inferred) {
      if (is_op(&node, "Constant") && made[0].constant) allow_for(bytes_of(*made[0].constant));
      return true;
    }
    int64_t input_bytes = 0, output_bytes = 0;
    for (const Known* input : inputs) {
      if (input != nullptr && !input->constant) return false;
    }
    int64_t replaced = 0;  // bytes of the inputs whose place the outputs take
    std::unordered_set<std::string_view> seen;
    for (size_t i = 0; i < inputs.size(); ++i) {
      if (inputs[i] == nullptr || !seen.insert(node.inputs[i]).second) continue;
      const int64_t bytes = bytes_of(*inputs[i]->constant);
      input_bytes += bytes;
      if (!replaced_.contains(node.inputs[i])) replaced += bytes;
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
      const int64_t bytes = ops::memory_of(made[i].type.element, count);
      if (bytes > INT64_MAX / 16 - output_bytes) return false;
      output_bytes += bytes;
      const int64_t grown = bytes - input_bytes;
      if (grown <= growth) continue;
      if (grown > growth_left_) return false;
      growth_left_ -= grown;
    }
    if (output_bytes - replaced > all_growth_left_) return false;
    std::vector<Value> values;
    for (const Known* input : inputs)
      values.push_back(input ? Value(ir::aligned(*input->constant)) : Value());
    std::vector<Value> results;
    try {
      eval::Environment environment(*options_.pool);
      environment.memory_limit =
          std::min(options_.folding_memory, INT64_MAX / 2) + 8 * (input_bytes + output_bytes);
      results = eval::run_node(node, values, eval::Frame(), environment);
    } catch (const Error& error) {
      if (error.code() == ErrorCode::unsupported) throw;
      return false;  // fails again, with its place, when the run reaches it
    }
    for (size_t i = 0; i < made.size(); ++i) {
      if (!wanted(i)) continue;
      if (!results[i].is_tensor()) return false;
      if (made[i].type.element == ElementType::string) output_bytes += ops::text_bytes(results[i]);
    }
    const int64_t grown = std::max<int64_t>(output_bytes - replaced, 0);
    if (grown > all_growth_left_) return false;
    all_growth_left_ -= grown;
    for (const std::string& name : node.inputs) replaced_.insert(name);
    for (size_t i = 0; i < made.size(); ++i) {
      if (wanted(i)) made[i] = Known::of(results[i].tensor());
    }
    return true;
  }

  // Bytes of a constant, the texts of strings included.
  static int64_t bytes_of(const Tensor& tensor) {
    return ops::memory_of(tensor.element_type(), tensor.size()) +
           (tensor.element_type() == ElementType::string ? ops::text_bytes(Value(tensor)) : 0);
  }
  static int64_t bytes_of(const ir::TensorProto& tensor) {
    const auto type = static_cast<ElementType>(tensor.data_type);
    const auto count = checked_count(tensor.dims);
    if (!count || (!is_known(type) && type != ElementType::string)) return 0;
    return std::max<int64_t>(ops::memory_of(type, *count), 0) + ops::text_bytes(tensor.string_data);
  }
  void allow_for(int64_t bytes) {
    all_growth_left_ += 8 * std::min(bytes, (INT64_MAX / 2 - all_growth_left_) / 8);
  }

  const SimplifyOptions& options_;
  bool counted_ = false;  // the constants that the graph came with
  int64_t all_growth_left_ = options_.all_growth;
  // Constants that folded nodes read: each makes room once, however many read it.
  std::unordered_set<std::string> replaced_;
  int64_t growth_left_ = options_.total_growth;  // for constants beyond options_.max_growth
  Assumptions* assumptions_;
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

namespace {

Simplifier::Enter entrance(const ir::Graph& graph, const infer::Findings& findings) {
  return [&] {
    auto scope = std::make_unique<Scope>();
    infer::enter(graph, *scope, findings);
    return scope;
  };
}

}  // namespace

void simplify(ir::Graph& graph, const SimplifyOptions& options) {
  Simplifier simplifier(options);
  simplifier.simplify(graph, entrance(graph, simplifier.findings()));
}

void fold_constants(ir::Graph& graph, const SimplifyOptions& options) {
  Simplifier simplifier(options);
  simplifier.fold_constants(graph, entrance(graph, simplifier.findings()));
}

void require_sound(const ir::Graph& graph, const SimplifyOptions& options) {
  ir::Graph copy = graph;
  fold_constants(copy, options);
}

}  // namespace sardonyx::rewrite
