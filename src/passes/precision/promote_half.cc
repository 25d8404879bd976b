#include "passes/precision/promote_half.h"

#include <algorithm>
#include <string>
#include <string_view>
#include <unordered_map>
#include <unordered_set>
#include <vector>

#include "base/thread_pool.h"
#include "ir/node_values.h"
#include "ir/origin.h"
#include "ir/tensor.h"
#include "kernels/convert/cast.h"
#include "ops/internal/products.h"
#include "ops/traits.h"
#include "ops/upgrade_context.h"
#include "passes/fresh_names.h"
#include "passes/value_names.h"

namespace sardonyx::passes {
namespace {

bool is_half(ElementType type) {
  return type == ElementType::float16 || type == ElementType::bfloat16;
}

class Promotion {
 public:
  Promotion(ir::Graph& graph, const infer::Scope& scope)
      : graph_(graph), scope_(scope), names_(scope) {}

  bool run() {
    const auto worth = std::count_if(graph_.nodes.begin(), graph_.nodes.end(),
                                     [&](const ir::Node& node) { return computes_in_half(node); });
    if (worth < 2) return false;
    std::vector<ir::Node> nodes = std::move(graph_.nodes);
    graph_.nodes.clear();
    for (ir::Node& node : nodes) {
      if (computes_in_half(node) || (ops::has_trait(node, ops::hands_on) && all_wide(node))) {
        rewrite(node);
      } else {
        for_each_read(node, [&](const std::string& name) { narrow(name); });
        graph_.nodes.push_back(std::move(node));
      }
    }
    for (const ir::ValueInfo& output : graph_.outputs) narrow(output.name);
    return true;
  }

 private:
  bool half(const std::string& name) const {
    const infer::ValueFacts* known = name.empty() ? nullptr : scope_.find(name);
    return known && known->type.is_tensor() && is_half(known->type.element);
  }
  const Tensor* constant(const std::string& name) const {
    const infer::ValueFacts* known = scope_.find(name);
    return known ? known->constant.get() : nullptr;
  }

  bool computes_in_half(const ir::Node& node) const {
    return ops::has_trait(node, ops::half_through_float32) &&
           std::any_of(node.inputs.begin(), node.inputs.end(),
                       [&](const std::string& name) { return half(name); });
  }

  // Every half input is there as float32 already or is a constant, and one at least is no constant.
  bool all_wide(const ir::Node& node) const {
    bool any = false;
    for (const std::string& name : node.inputs) {
      if (!half(name)) continue;
      const bool is_wide = made_wide_.contains(name);
      if (!is_wide && constant(name) == nullptr) return false;
      any |= is_wide;
    }
    return any;
  }

  std::string fresh(const std::string& name) { return names_.make(name, "wide"); }

  void rewrite(ir::Node& node) {
    if (node.name.empty()) ir::keep_source(node);
    const bool keeps_weights = ops::has_trait(node, ops::packs_weights) &&
                               half(ir::input(node, 1)) && constant(node.inputs[1]) != nullptr;
    for (size_t i = 0; i < node.inputs.size(); ++i) {
      if (half(node.inputs[i]) && !(keeps_weights && i == 1)) node.inputs[i] = wide(node.inputs[i]);
    }
    // In the internal form the types of inputs may differ.
    if (keeps_weights) ops::internal::write(ops::internal::product_of(node).value(), node);
    std::vector<std::pair<std::string, std::string>> changed;
    for (std::string& output : node.outputs) {
      if (!half(output)) continue;
      changed.emplace_back(output, fresh(output));
      output = changed.back().second;
    }
    graph_.nodes.push_back(std::move(node));
    for (auto& [old, now] : changed) {
      made_wide_.insert(old);
      wide_.emplace(old, std::move(now));
    }
  }

  // The name of a half value's float32 twin, made here where there is none.
  std::string wide(const std::string& name) {
    if (const auto found = wide_.find(name); found != wide_.end()) return found->second;
    const std::string now = fresh(name);
    if (const Tensor* value = constant(name)) {
      const Tensor held = ir::aligned(*value);
      Tensor floats(ElementType::float32, held.shape());
      ThreadPool alone(1);
      kernels::cast(held.element_type(), ElementType::float32, held.data(), floats.mutable_data(),
                    held.size(), {}, alone);
      graph_.initializers.push_back(ir::to_proto(floats, now));
    } else {
      graph_.nodes.push_back(cast(name, now, ElementType::float32));
    }
    wide_.emplace(name, now);
    return now;
  }

  // Makes the half value itself, where only its twin was made so far.
  void narrow(const std::string& name) {
    if (!made_wide_.contains(name) || !narrowed_.insert(name).second) return;
    graph_.nodes.push_back(cast(wide_.at(name), name, scope_.find(name)->type.element));
  }

  static ir::Node cast(const std::string& from, const std::string& to, ElementType type) {
    ir::Node node;
    node.op_type = "Cast";
    node.name = to;
    node.origin = "from half precision through float32", node.is_helper = true;
    node.inputs = {from};
    node.outputs = {to};
    node.attributes = {ops::int_attribute("to", static_cast<int64_t>(type))};
    return node;
  }

  ir::Graph& graph_;
  const infer::Scope& scope_;
  std::unordered_map<std::string, std::string> wide_;
  std::unordered_set<std::string> made_wide_;  // values that nodes now make as float32 only
  std::unordered_set<std::string> narrowed_;
  FreshNames names_;
};

}  // namespace

bool promote_half(ir::Graph& graph, const infer::Scope& scope) {
  return Promotion(graph, scope).run();
}

}  // namespace sardonyx::passes
