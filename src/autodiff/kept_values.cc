#include "autodiff/kept_values.h"

#include <fmt/format.h>

#include <algorithm>
#include <unordered_map>
#include <unordered_set>

#include "autodiff/walk.h"
#include "ir/internal_domain.h"
#include "ops/internal/checks.h"
#include "ops/internal/node.h"
#include "ops/traits.h"

namespace sardonyx::autodiff {

namespace {

// Whether the node takes nothing from an input but its shape or its type.
bool reads_only_type(const ir::Node& node, size_t input) {
  if (ops::internal::is<ops::internal::SumLike>(node)) return input != ops::internal::SumLike::x;
  if (!node.domain.empty()) return false;
  return (node.op_type == "Shape" && input == 0) || (node.op_type == "CastLike" && input == 1);
}

bool is_costly(const ir::Node& node) {
  return !node.domain.empty() || has_graphs(node) || ops::has_trait(node, ops::costly);
}

class Keeping {
 public:
  Keeping(RepeatedIteration& iteration, const GradientServices& inside)
      : it_(iteration),
        inside_(inside),
        available_(it_.repeated, 0),
        changing_(it_.entering.begin(), it_.entering.end()) {
    for (size_t i = 0; i < it_.repeated; ++i) {
      for (const std::string& output : it_.nodes[i].outputs) made_by_.emplace(output, i);
    }
    for (const std::string& name : it_.same_shape) {
      if (const ir::ValueType* type = type_of(name); type != nullptr && type->shape) {
        std::vector<int> ids;
        for (const ir::Dim& dim : *type->shape) dim.collect_symbols(ids);
        symbols_.insert(ids.begin(), ids.end());
      }
    }
  }

  Names keep() {
    find_reads();
    for (size_t i = 0; i < it_.repeated; ++i) decide(i);
    if (kept_.empty()) return {};
    for (const TypeRead& read : type_reads_) read_elsewhere(read);
    std::vector<ir::Node> nodes = std::move(added_);
    std::move(it_.nodes.begin(), it_.nodes.end(), std::back_inserter(nodes));
    it_.nodes = pruned(std::move(nodes), {it_.outputs.begin(), it_.outputs.end()}, kept_set_);
    return std::move(kept_);
  }

 private:
  struct TypeRead {
    size_t node, input;
  };

  const ir::ValueType* type_of(const std::string& name) const {
    const infer::ValueFacts* known = inside_.known(name);
    return known == nullptr ? nullptr : &known->type;
  }

  void find_reads() {
    for (size_t i = it_.repeated; i < it_.nodes.size(); ++i) {
      const ir::Node& node = it_.nodes[i];
      for (size_t k = 0; k < node.inputs.size(); ++k) {
        if (!made_by_.contains(node.inputs[k])) continue;
        if (reads_only_type(node, k))
          type_reads_.push_back({i, k});
        else
          read_.insert(node.inputs[k]);
      }
      if (!has_graphs(node)) continue;
      for (std::string& name : captured_by(node)) read_.insert(std::move(name));
    }
    read_.insert(it_.outputs.begin(), it_.outputs.end());
  }

  // Whether it can be read, or computed with what can be read and nodes that are not costly.
  bool is_available(const std::string& name) const {
    const auto maker = made_by_.find(name);
    return maker == made_by_.end() || available_[maker->second] != 0 || kept_set_.contains(name);
  }

  void decide(size_t i) {
    const ir::Node& node = it_.nodes[i];
    const Names reads = reads_of(node);
    const auto is_there = [&](const std::string& name) { return is_available(name); };
    // What only depends on captured values is the same each time: a stack of it would be too.
    const bool varies = std::ranges::any_of(
        reads, [&](const std::string& name) { return changing_.contains(name); });
    if (varies) changing_.insert(node.outputs.begin(), node.outputs.end());
    if ((!varies || !is_costly(node)) && std::ranges::all_of(reads, is_there)) {
      available_[i] = 1;
      return;
    }
    for (const std::string& output : node.outputs) {
      if (!output.empty() && read_.contains(output)) provide(output);
    }
  }

  void provide(const std::string& name) {
    if (is_available(name)) return;
    if (can_keep(name)) {
      kept_.push_back(name);
      kept_set_.insert(name);
    } else {
      repeat(made_by_.at(name));
    }
  }

  // Tensors of the same shape each time, of numbers.
  bool can_keep(const std::string& name) const {
    const ir::ValueType* type = type_of(name);
    if (type == nullptr || !type->is_tensor() || !type->shape ||
        type->element == ElementType::undefined || type->element == ElementType::string)
      return false;
    std::vector<int> ids;
    for (const ir::Dim& dim : *type->shape) {
      if (dim.is_indefinite()) return false;
      dim.collect_symbols(ids);
    }
    return std::ranges::all_of(ids, [&](int id) { return symbols_.contains(id); });
  }

  void repeat(size_t first) {
    std::vector<size_t> waiting{first};
    while (!waiting.empty()) {
      const size_t i = waiting.back();
      waiting.pop_back();
      if (available_[i] != 0) continue;
      available_[i] = 1;
      for (const std::string& name : reads_of(it_.nodes[i]))
        if (!is_available(name)) waiting.push_back(made_by_.at(name));
    }
  }

  void read_elsewhere(const TypeRead& read) {
    const std::string name = it_.nodes[read.node].inputs[read.input];
    if (is_available(name)) return;
    const std::string other = of_same_type(name);
    if (other.empty())
      provide(name);
    else
      it_.nodes[read.node].inputs[read.input] = other;
  }

  static std::string key_of(const ir::ValueType& type) {
    std::string key = fmt::format("{}", static_cast<int>(type.element));
    for (const ir::Dim& dim : *type.shape) key += "," + dim.to_string();
    return key;
  }

  // A value of the same shape and type that enters, is captured or kept; or zeros.
  std::string of_same_type(const std::string& name) {
    const ir::ValueType* type = type_of(name);
    if (type == nullptr || !type->is_tensor() || !type->shape) return "";
    if (by_type_.empty()) {
      for (const Names* names : {&it_.same_shape, &kept_}) {
        for (const std::string& each : *names) {
          const ir::ValueType* known = type_of(each);
          if (known != nullptr && known->is_tensor() && known->shape)
            by_type_.emplace(key_of(*known), each);
        }
      }
    }
    std::string& found = by_type_[key_of(*type)];
    const auto sizes = type->concrete_shape();
    if (!found.empty() || !sizes) return found;
    GradientEmitter e(inside_, "");
    const std::string shape = e.ints({sizes->begin(), sizes->end()});
    const std::string zero =
        e.emit("Cast",
               {e.emit("Constant", {}, {ops::tensor_attribute("value", Tensor::scalar<float>(0))})},
               {ops::int_attribute("to", static_cast<int64_t>(type->element))});
    found = e.emit("Expand", {zero, shape});
    for (ir::Node& node : e.take()) added_.push_back(std::move(node));
    return found;
  }

  RepeatedIteration& it_;
  const GradientServices& inside_;
  std::unordered_map<std::string, size_t> made_by_;  // of the iteration's values
  std::vector<char> available_;                      // by node of the iteration
  std::unordered_set<int> symbols_;                  // sizes that no iteration changes
  std::unordered_set<std::string> changing_;         // from iteration to iteration
  std::unordered_set<std::string> read_, kept_set_;
  std::vector<TypeRead> type_reads_;
  std::unordered_map<std::string, std::string> by_type_;
  std::vector<ir::Node> added_;
  Names kept_;
};

}  // namespace

Names keep_values(RepeatedIteration& iteration, const GradientServices& inside) {
  return Keeping(iteration, inside).keep();
}

std::vector<ir::Node> pruned(std::vector<ir::Node> nodes, std::unordered_set<std::string> wanted,
                             const std::unordered_set<std::string>& given) {
  std::vector<ir::Node> kept;
  for (size_t i = nodes.size(); i-- > 0;) {
    if (std::ranges::none_of(nodes[i].outputs, [&](const std::string& name) {
          return wanted.contains(name) && !given.contains(name);
        }))
      continue;
    for_each_read(nodes[i], [&](const std::string& name) { wanted.insert(name); });
    kept.push_back(std::move(nodes[i]));
  }
  std::ranges::reverse(kept);
  return kept;
}

}  // namespace sardonyx::autodiff
