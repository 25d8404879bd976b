#include "train/state.h"

#include <algorithm>
#include <unordered_set>

#include "base/fail.h"
#include "base/listed.h"
#include "base/value_kind.h"
#include "ir/tensor.h"

namespace sardonyx::train {
namespace {

void add_states(const ir::Graph& graph, const std::unordered_set<std::string_view>& keys, int entry,
                std::vector<StateVariable>& to) {
  for (const ir::TensorProto& tensor : graph.initializers) {
    if (keys.contains(tensor.name))
      to.push_back({tensor.name, tensor.name, entry, tensor.element_type(), tensor.dims});
  }
}

// Names that several algorithms have are distinguished.
void name_apart(std::vector<StateVariable>& variables) {
  std::unordered_set<std::string_view> seen, twice;
  for (const StateVariable& one : variables) {
    if (!seen.insert(one.key).second) twice.insert(one.key);
  }
  for (StateVariable& one : variables) {
    if (one.entry != main_graph && twice.contains(one.key))
      one.name = fmt::format("training_info[{}].{}", one.entry, one.key);
  }
}

ir::TensorProto* find_initializer(ir::Graph& graph, std::string_view name) {
  const auto found = std::ranges::find(graph.initializers, name, &ir::TensorProto::name);
  return found == graph.initializers.end() ? nullptr : &*found;
}

ir::Graph& graph_of(ir::Model& model, int entry) {
  return entry == main_graph ? *model.graph
                             : *model.training_info[static_cast<size_t>(entry)].algorithm;
}

}  // namespace

StateTable::StateTable(const ir::Model& model) {
  std::unordered_set<std::string_view> main_keys;
  std::vector<std::unordered_set<std::string_view>> keys(model.training_info.size());
  for (size_t i = 0; i < keys.size(); ++i) {
    const ir::TrainingInfo& info = model.training_info[i];
    for (const auto* bindings : {&info.initialization_binding, &info.update_binding}) {
      for (const ir::StringEntry& binding : *bindings) keys[i].insert(binding.key);
    }
    main_keys.insert(keys[i].begin(), keys[i].end());
  }
  add_states(*model.graph, main_keys, main_graph, all_);
  for (size_t i = 0; i < keys.size(); ++i) {
    const auto& algorithm = model.training_info[i].algorithm;
    if (algorithm) add_states(*algorithm, keys[i], static_cast<int>(i), all_);
  }
  name_apart(all_);
}

std::optional<size_t> StateTable::find(std::string_view key, int entry) const {
  for (size_t i = 0; i < all_.size(); ++i) {
    if (all_[i].key == key && (all_[i].entry == main_graph || all_[i].entry == entry)) return i;
  }
  return std::nullopt;
}

std::optional<size_t> StateTable::find_named(std::string_view name) const {
  const auto found = std::ranges::find(all_, name, &StateVariable::name);
  if (found == all_.end()) return std::nullopt;
  return static_cast<size_t>(found - all_.begin());
}

std::string StateTable::names() const {
  std::vector<std::string> quoted;
  for (const StateVariable& one : all_) quoted.push_back("'" + one.name + "'");
  return quoted.empty() ? "none" : listed(quoted, 8);
}

std::vector<Tensor> initial_values(const ir::Model& model, const StateTable& table) {
  std::vector<Tensor> values;
  for (const StateVariable& variable : table.all()) {
    const ir::Graph& graph = graph_of(const_cast<ir::Model&>(model), variable.entry);
    const auto found = std::ranges::find(graph.initializers, variable.key, &ir::TensorProto::name);
    values.push_back(ir::aligned(ir::to_tensor(*found)));
  }
  return values;
}

void store_values(ir::Model& model, const StateTable& table, const std::vector<Tensor>& values) {
  for (size_t i = 0; i < values.size(); ++i) {
    const StateVariable& variable = table.all()[i];
    ir::TensorProto* tensor = find_initializer(graph_of(model, variable.entry), variable.key);
    ir::TensorProto stored = ir::to_proto(values[i], variable.key);
    stored.doc_string = std::move(tensor->doc_string);
    stored.metadata_props = std::move(tensor->metadata_props);
    *tensor = std::move(stored);
  }
}

void require_fits(const StateVariable& variable, const Value& value, std::string_view what) {
  const auto refuse = [&](const std::string& found) {
    fail_at(fmt::format("state variable '{}'", variable.name), ErrorCode::bad_input,
            "{} it must be {}{}, as its initializer is; it is {} [TR-21]", what,
            name_of(variable.element), to_string(variable.shape), found);
  };
  if (!value.is_tensor()) refuse(with_article(value.kind()));
  const Tensor& tensor = value.tensor();
  if (tensor.element_type() != variable.element || tensor.shape() != variable.shape)
    refuse(fmt::format("{}{}", name_of(tensor.element_type()), to_string(tensor.shape())));
}

}  // namespace sardonyx::train
