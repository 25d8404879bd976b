#include "passes/canonicalize/constant_folding.h"

#include <fmt/format.h>

#include <algorithm>
#include <iterator>
#include <optional>
#include <unordered_map>
#include <utility>

#include "base/checked.h"
#include "base/fail.h"
#include "base/memory_account.h"
#include "eval/eval.h"
#include "ir/origin.h"
#include "ir/tensor.h"
#include "ir/walk.h"
#include "ops/shared/memory.h"
#include "ops/step_memory.h"
#include "passes/canonicalize/inline_branches.h"
#include "passes/graph_index.h"
#include "schema/schema.h"

namespace sardonyx::passes {

using infer::Scope;
using infer::ValueFacts;

namespace {

// Bytes of a constant, the texts of strings included.
int64_t bytes_of(const Tensor& tensor) {
  return ops::memory_of(tensor.element_type(), tensor.size()) +
         (tensor.element_type() == ElementType::string ? ops::text_bytes(Value(tensor)) : 0);
}
int64_t bytes_of(const ir::TensorProto& tensor) {
  const auto type = static_cast<ElementType>(tensor.data_type);
  const auto count = checked_count(tensor.dims);
  if (!count || (!is_known(type) && type != ElementType::string)) return 0;
  return std::max<int64_t>(ops::memory_of(type, *count), 0) + ops::text_bytes(tensor.string_data);
}
bool is_open(const ir::ValueType& type) {
  return !type.is_known() || (type.is_tensor() && !type.shape);
}

// Whether the node makes a value of which not even the rank is known.
bool leaves_open(const ir::Node& node, std::span<const ValueFacts> made) {
  for (size_t i = 0; i < made.size(); ++i) {
    if (!node.outputs[i].empty() && is_open(made[i].type)) return true;
  }
  return false;
}

const ValueFacts* known(const ir::Node& node, const std::string& name, const Scope& scope) {
  const ValueFacts* found = scope.find(name);
  if (found == nullptr) {
    fail_at(ir::place_of(node), ErrorCode::invalid_model,
            "input '{}' is not defined before the node: it is neither a graph input, an "
            "initializer nor an output of "
            "an earlier node",
            name);
  }
  return found;
}

}  // namespace

ConstantFolder::ConstantFolder(const OptimizeOptions& options)
    : options_(options),
      all_growth_left_(options.all_growth),
      growth_left_(options.total_growth),
      assumptions_(options.assumptions) {
  inference_.symbols = assumptions_ != nullptr ? &assumptions_->symbols : &symbols_;
  inference_.fold_predicates = assumptions_ != nullptr;
}

// A graph whose nodes are being folded.
struct ConstantFolder::Folded {
  ir::Graph& graph;
  Scope& scope;
  const FoldingOptions& folding;
  Branches* branches;  // null where there is no If
  std::vector<ir::Node> kept;
  bool reports = false;  // to OptimizeOptions::inferred
  bool changed = false;
};

bool ConstantFolder::fold(ir::Graph& graph, Scope& scope, const FoldingOptions& folding) {
  if (!counted_) {
    counted_ = true;
    for (const ir::TensorProto& given : graph.initializers) allow_for(bytes_of(given));
  }
  std::optional<Branches> branches;
  if (std::ranges::any_of(graph.nodes, [](const auto& node) { return is_op(&node, "If"); }))
    branches.emplace(graph, scope);
  Folded folded{graph, scope, folding, branches ? &*branches : nullptr, {}};
  // The first walk is that of the model's own graph, and sees it as it came.
  folded.reports = std::exchange(unreported_, false) && options_.inferred;
  folded.kept.reserve(graph.nodes.size());
  for (ir::Node& node : graph.nodes) fold_into(folded, std::move(node));
  graph.nodes = std::move(folded.kept);
  return folded.changed;
}

// Branches within branches: as deep as the reader lets graphs be.
void ConstantFolder::fold_into(Folded& to, ir::Node node) {
  std::vector<const ValueFacts*> inputs;
  for (const std::string& name : node.inputs)
    inputs.push_back(name.empty() ? nullptr : known(node, name, to.scope));
  const infer::Binding binding = infer::bind_node(node);
  Given entering;
  const ops::InferSubgraph inferred = infer::subgraphs_of(to.scope, inference_);
  const ops::InferSubgraph subgraph = [&](const ir::Graph& inner,
                                          std::span<const ValueFacts> given) {
    std::vector<ValueFacts> outputs = inferred(inner, given);
    entering[&inner].assign(given.begin(), given.end());
    return outputs;
  };
  std::vector<ValueFacts> made = infer::infer_node(node, binding, inputs, inference_, &subgraph);
  if (const ir::Graph* branch = taken_branch(node, inputs, made, entering)) {
    if (auto opened = to.branches->opened(node, *branch)) {
      infer::enter_initializers(*opened, to.scope, inference_);
      std::ranges::move(opened->initializers, std::back_inserter(to.graph.initializers));
      std::ranges::move(opened->sparse_initializers,
                        std::back_inserter(to.graph.sparse_initializers));
      for (ir::Node& inner : opened->nodes) fold_into(to, std::move(inner));
      to.changed = true;
      return;
    }
  }
  note_lengths(node, inputs, made);
  if (to.folding.subgraph) visit_subgraphs(node, to.scope, entering, to.folding);
  const bool folds = fold_node(node, binding, inputs, made, to.folding.keep_dequantize) &&
                     !has_conditions(node, binding, inputs);
  for (size_t i = 0; i < node.outputs.size(); ++i) {
    if (node.outputs[i].empty()) continue;
    if (to.reports) options_.inferred(node, node.outputs[i], made[i].type);
    if (folds) to.graph.initializers.push_back(ir::to_proto(*made[i].constant, node.outputs[i]));
    to.scope.set(node.outputs[i], std::move(made[i]));
  }
  to.changed |= folds;
  if (!folds) to.kept.push_back(std::move(node));
}

// The branch of an If that all its runs take, or those with the sizes that are guards; null
// where that can't be told, or the branch can't be: a run that takes it says why.
const ir::Graph* ConstantFolder::taken_branch(const ir::Node& node,
                                              std::span<const ValueFacts* const> inputs,
                                              std::span<const ValueFacts> made,
                                              const Given& entering) {
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
void ConstantFolder::note_lengths(const ir::Node& node, std::span<const ValueFacts* const> inputs,
                                  std::span<const ValueFacts> made) {
  if (assumptions_ == nullptr || ir::has_graphs(node) || !leaves_open(node, made)) return;
  for (const ValueFacts* input : inputs) {
    if (input == nullptr || !input->type.is_tensor() || !input->type.shape) continue;
    const auto& shape = *input->type.shape;
    if (is_integer(input->type.element) && shape.size() == 1 && !shape[0].is_constant() &&
        assumptions_->is_decided(shape[0]))
      assumptions_->lengths.push_back(shape[0]);
  }
}

// Bodies keep their inputs and outputs; those that no inference reached stay as they are.
void ConstantFolder::visit_subgraphs(ir::Node& node, const Scope& scope, const Given& entering,
                                     const FoldingOptions& folding) {
  const auto visit = [&](std::shared_ptr<const ir::Graph>& graph, const std::string& name) {
    const auto given = entering.find(graph.get());
    if (given == entering.end()) return;
    auto copy = std::make_shared<ir::Graph>(*graph);
    try {
      const EnterGraph enter = [&] {
        auto inside = std::make_unique<Scope>(&scope);
        infer::enter(*copy, *inside, inference_, given->second);
        return inside;
      };
      folding.subgraph(*copy, enter, fmt::format("{} of {}", name, ir::source_text(node)));
      graph = std::move(copy);
    } catch (const Error& error) {
      // A branch that these inputs make impossible is an error only if it is taken.
      if (error.code() == ErrorCode::unsupported) throw;
    }
  };
  for (ir::Attribute& attribute : node.attributes) {
    if (attribute.g) visit(attribute.g, attribute.name);
    for (auto& graph : attribute.graphs) visit(graph, attribute.name);
  }
}

// Whether sizes that only a run knows may make the node impossible: a plan without it would not
// refuse them.
bool ConstantFolder::has_conditions(const ir::Node& node, const infer::Binding& binding,
                                    std::span<const ValueFacts* const> inputs) const {
  const auto changes = [](const ValueFacts* input) { return input != nullptr && !input->constant; };
  if (std::ranges::none_of(inputs, changes)) return false;
  std::vector<ops::Constraint> constraints;
  infer::InferenceContext inference = inference_;
  inference.constraints = &constraints;
  infer::infer_node(node, binding, inputs, inference, nullptr);
  return !constraints.empty();
}

// Computes the node's outputs into `made` where they never change and are worth keeping.
bool ConstantFolder::fold_node(const ir::Node& node, const infer::Binding& binding,
                               std::span<const ValueFacts* const> inputs,
                               std::vector<ValueFacts>& made, bool keep_dequantize) {
  if (ir::has_graphs(node)) return false;
  const auto wanted = [&](size_t i) { return !node.outputs[i].empty(); };
  bool inferred = true;
  for (size_t i = 0; i < made.size(); ++i) inferred &= !wanted(i) || made[i].constant != nullptr;
  if (binding.signature && binding.signature->nondeterministic) return false;
  if (keep_dequantize && node.domain.empty() && node.op_type == "DequantizeLinear") return false;
  if (inferred) {
    if (is_op(&node, "Constant") && made[0].constant) allow_for(bytes_of(*made[0].constant));
    return true;
  }
  int64_t input_bytes = 0, output_bytes = 0;
  for (const ValueFacts* input : inputs) {
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
  for (const ValueFacts* input : inputs)
    values.push_back(input ? Value(ir::aligned(*input->constant)) : Value());
  std::vector<Value> results;
  try {
    eval::Environment environment(*options_.pool);
    environment.memory_limit =
        std::min(options_.folding_memory, INT64_MAX / 2) + 8 * (input_bytes + output_bytes);
    if (const SharedAccount& account = current_account())
      environment.memory_limit = std::min(environment.memory_limit, account->left());
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
  charge_memory(output_bytes, [&] { return ir::place_of(node); });
  all_growth_left_ -= grown;
  for (const std::string& name : node.inputs) replaced_.insert(name);
  for (size_t i = 0; i < made.size(); ++i) {
    if (wanted(i)) made[i] = ValueFacts::of(results[i].tensor());
  }
  return true;
}

void ConstantFolder::allow_for(int64_t bytes) {
  all_growth_left_ += 8 * std::min(bytes, (INT64_MAX / 2 - all_growth_left_) / 8);
}

}  // namespace sardonyx::passes
