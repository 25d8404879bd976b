#include "passes/canonicalize/no_ops.h"

#include <algorithm>
#include <optional>
#include <string>
#include <string_view>
#include <unordered_map>
#include <unordered_set>
#include <vector>

#include "ir/node_values.h"
#include "ir/origin.h"
#include "ops/internal/checks.h"
#include "ops/internal/node.h"
#include "passes/graph_index.h"
#include "passes/value_names.h"

namespace sardonyx::passes {
namespace {

using ops::internal::SumLike;

class NoOps {
 public:
  NoOps(ir::Graph& graph, const infer::Scope& scope) : graph_(graph), scope_(scope) {}

  bool run() {
    if (std::ranges::none_of(graph_.nodes, [&](const auto& node) { return is_no_op(node); }))
      return false;
    for (const ir::ValueInfo& output : graph_.outputs) kept_.insert(output.name);
    name_at_once();
    NewNames names;
    std::vector<ir::Node> nodes;
    nodes.reserve(graph_.nodes.size());
    for (ir::Node& node : graph_.nodes) {
      if (!names.empty()) rename_uses(node, names);
      if (is_no_op(node) && !kept_.contains(node.outputs[0]) && !is_hidden(node.inputs[0]))
        names[node.outputs[0]] = node.inputs[0];
      else
        nodes.push_back(std::move(node));
    }
    graph_.nodes = std::move(nodes);
    return true;
  }

 private:
  bool is_no_op(const ir::Node& node) const {
    if (node.inputs.empty() || node.inputs[0].empty() || node.outputs.empty() ||
        node.outputs[0].empty())
      return false;
    if (is_op(&node, "Identity")) return true;
    if (is_op(&node, "Dropout"))
      return !ir::has_output(node, 1) && !may_train(node) && holds_one(node, 1) &&
             holds_one(node, 2);
    if (ops::internal::is<SumLike>(node)) return sums_nothing(node);
    return is_op(&node, "Cast") && keeps_type(node);
  }

  // Whether input i is absent or surely a single value: otherwise a run may have to refuse it.
  bool holds_one(const ir::Node& node, size_t i) const {
    if (!ir::has_input(node, i)) return true;
    const infer::ValueFacts* known = scope_.find(node.inputs[i]);
    const auto count = known != nullptr ? known->type.element_count() : std::nullopt;
    return count && *count == 1;
  }

  // What an Identity makes an output of is called so at once where its rank is open: such a node
  // would be evaluated plainly, and copy it.
  void name_at_once() {
    std::unordered_map<std::string_view, ir::Node*> makers;
    NewNames names;
    for (ir::Node& node : graph_.nodes) {
      const auto maker = is_op(&node, "Identity") && is_no_op(node) &&
                                 kept_.contains(node.outputs[0]) && has_open_rank(node.inputs[0])
                             ? makers.find(node.inputs[0])
                             : makers.end();
      if (maker != makers.end() && !kept_.contains(node.inputs[0]) &&
          !names.contains(node.inputs[0]) && !is_hidden(node.inputs[0]) &&
          !is_hidden(node.outputs[0]) && !is_known_by_outputs(*maker->second)) {
        ir::keep_source(*maker->second);
        names[node.inputs[0]] = node.outputs[0];
      }
      for (const std::string& output : node.outputs) makers.emplace(output, &node);
    }
    if (names.empty()) return;
    std::erase_if(graph_.nodes, [&](const ir::Node& node) {
      if (!is_op(&node, "Identity") || !is_no_op(node)) return false;
      const auto found = names.find(node.inputs[0]);
      return found != names.end() && found->second == node.outputs[0];
    });
    for (ir::Node& node : graph_.nodes) {
      rename_uses(node, names);
      for (std::string& output : node.outputs) {
        if (const auto found = names.find(output); found != names.end()) output = found->second;
      }
    }
  }

  bool has_open_rank(const std::string& name) const {
    const infer::ValueFacts* known = scope_.find(name);
    return known != nullptr &&
           (!known->type.is_known() || (known->type.is_tensor() && !known->type.shape));
  }

  bool may_train(const ir::Node& dropout) const {
    if (!ir::has_input(dropout, 2)) return false;
    const infer::ValueFacts* mode = scope_.find(dropout.inputs[2]);
    if (mode == nullptr || !mode->constant) return true;
    const Tensor& value = *mode->constant;
    return value.element_type() != ElementType::boolean || value.size() != 1 ||
           value.elements<bool>()[0];
  }

  bool keeps_type(const ir::Node& cast) const {
    const infer::ValueFacts *from = scope_.find(cast.inputs[0]), *to = scope_.find(cast.outputs[0]);
    return from != nullptr && to != nullptr && from->type.is_tensor() && to->type.is_tensor() &&
           from->type.element != ElementType::undefined && from->type.element == to->type.element;
  }

  // What flows back through an operator that had nothing to broadcast.
  bool sums_nothing(const ir::Node& node) const {
    const infer::ValueFacts *from = scope_.find(node.inputs[SumLike::x]),
                            *to = scope_.find(node.inputs[SumLike::like]);
    return from != nullptr && to != nullptr && from->type.shape && to->type.shape &&
           *from->type.shape == *to->type.shape;
  }

  // Whether a graph inside a node has another value of that name.
  bool is_hidden(const std::string& name) {
    if (!inside_) inside_ = defined_inside(graph_);
    return inside_->contains(name);
  }

  ir::Graph& graph_;
  const infer::Scope& scope_;
  std::unordered_set<std::string> kept_;
  std::optional<std::unordered_set<std::string>> inside_;
};

}  // namespace

bool remove_no_ops(ir::Graph& graph, const infer::Scope& scope) {
  return NoOps(graph, scope).run();
}

}  // namespace sardonyx::passes
