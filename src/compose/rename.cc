#include "compose/rename.h"

#include <functional>
#include <memory>
#include <utility>

#include "base/fail.h"
#include "ir/dimension.h"
#include "ir/named_values.h"

namespace sardonyx::compose {
namespace {

enum class NameKind { value, node, dimension, function };

// Shows every name of a model to `change`, which may write another one. The reader of the model has
// bounded how deep graphs and types nest.
class Names {
 public:
  using Change = std::function<void(NameKind, std::string&)>;
  // `functions`: those whose calls are shown, as (domain, name).
  explicit Names(Change change, std::set<std::pair<std::string, std::string>> functions = {})
      : change_(std::move(change)), functions_(std::move(functions)) {}

  void model(ir::Model& model) {
    if (model.graph) graph(*model.graph);
    for (ir::TrainingInfo& info : model.training_info) {
      if (info.initialization) graph(*info.initialization);
      if (info.algorithm) graph(*info.algorithm);
      for (auto* bindings : {&info.initialization_binding, &info.update_binding}) {
        for (ir::StringEntry& binding : *bindings) value(binding.key), value(binding.value);
      }
    }
    for (ir::Function& function : model.functions) {
      called(function.domain, function.name);
      in_function_ = true;
      for (ir::Node& one : function.nodes) node(one);
      for (ir::ValueInfo& info : function.value_info) value_info(info);
      in_function_ = false;
    }
  }

 private:
  // Functions have values and nodes of their own; only what they call is the model's.
  void value(std::string& name) {
    if (!in_function_ && !name.empty()) change_(NameKind::value, name);
  }

  void called(const std::string& domain, std::string& name) {
    if (functions_.contains({std::string(ir::canonical_domain(domain)), name}))
      change_(NameKind::function, name);
  }

  void graph(ir::Graph& graph) {
    for (auto* infos : {&graph.inputs, &graph.outputs, &graph.value_info}) {
      for (ir::ValueInfo& info : *infos) value_info(info);
    }
    for (ir::TensorProto& tensor : graph.initializers) value(tensor.name);
    for (ir::SparseTensorProto& tensor : graph.sparse_initializers) value(tensor.values.name);
    for (ir::TensorAnnotation& annotation : graph.quantization_annotation) {
      value(annotation.tensor_name);
      for (ir::StringEntry& entry : annotation.quant_parameter_tensor_names) value(entry.value);
    }
    for (ir::Node& one : graph.nodes) node(one);
  }

  void node(ir::Node& node) {
    if (!in_function_ && !node.name.empty()) change_(NameKind::node, node.name);
    called(node.domain, node.op_type);
    for (std::string& name : node.inputs) value(name);
    for (std::string& name : node.outputs) value(name);
    ir::for_each_named_value(node, [&](std::string& name) { value(name); });
    for (ir::NodeDeviceConfiguration& device : node.device_configurations) {
      for (ir::ShardingSpec& spec : device.sharding_spec) value(spec.tensor_name);
    }
    for (ir::Attribute& attribute : node.attributes) {
      shared(attribute.g);
      for (auto& inner : attribute.graphs) shared(inner);
    }
  }

  void shared(std::shared_ptr<const ir::Graph>& inner) {
    if (!inner) return;
    auto copy = std::make_shared<ir::Graph>(*inner);
    graph(*copy);
    inner = std::move(copy);
  }

  void value_info(ir::ValueInfo& info) {
    value(info.name);
    if (info.type) type(*info.type);
  }

  void type(ir::TypeProto& type) {
    if (type.shape) {
      for (ir::Dimension& dim : type.shape->dims) {
        if (dim.param && !dim.param->empty()) change_(NameKind::dimension, *dim.param);
      }
    }
    if (!type.nested) return;
    auto copy = std::make_shared<ir::TypeProto>(*type.nested);
    this->type(*copy);
    type.nested = std::move(copy);
  }

  Change change_;
  std::set<std::pair<std::string, std::string>> functions_;
  bool in_function_ = false;
};

std::set<std::string> names_of(ir::Model model, NameKind kind) {
  std::set<std::string> names;
  Names([&](NameKind found, std::string& name) {
    if (found == kind) names.insert(name);
  }).model(model);
  return names;
}

void require_possible(const std::set<std::string>& existing,
                      const std::map<std::string, std::string>& renames, std::string_view what) {
  std::set<std::string> taken = existing;
  for (const auto& [from, to] : renames) {
    if (!existing.contains(from))
      fail(ErrorCode::bad_input, "the model has no {} '{}' to rename", what, from);
    if (to.empty()) fail(ErrorCode::bad_input, "the new name of {} '{}' is empty", what, from);
    taken.erase(from);
  }
  for (const auto& [from, to] : renames) {
    if (!taken.insert(to).second)
      fail(ErrorCode::bad_input, "{} '{}' cannot become '{}', which is the name of another", what,
           from, to);
  }
}

// The dimension of an input that a place names ("image.2") and that is no number; null: none.
ir::Dimension* open_dimension(ir::Model& model, std::string_view place) {
  if (!model.graph) return nullptr;
  for (ir::ValueInfo& input : model.graph->inputs) {
    if (!input.type || !input.type->shape || !place.starts_with(input.name)) continue;
    size_t d = 0;
    for (ir::Dimension& dim : input.type->shape->dims) {
      if (place.substr(input.name.size()) == fmt::format(".{}", d++))
        return ir::declared_number(dim) ? nullptr : &dim;
    }
  }
  return nullptr;
}

// Those of `dimensions` that are places, which are taken out of it.
std::map<ir::Dimension*, std::string> take_places(ir::Model& model,
                                                  std::map<std::string, std::string>& dimensions) {
  std::map<ir::Dimension*, std::string> places;
  if (dimensions.empty()) return places;
  const std::set<std::string> names = names_of(model, NameKind::dimension);
  for (auto at = dimensions.begin(); at != dimensions.end();) {
    ir::Dimension* dim = names.contains(at->first) ? nullptr : open_dimension(model, at->first);
    if (dim == nullptr) {
      ++at;
      continue;
    }
    if (at->second.empty())
      fail(ErrorCode::bad_input, "the new name of dimension '{}' is empty", at->first);
    places.emplace(dim, at->second);
    at = dimensions.erase(at);
  }
  return places;
}

std::set<std::string> function_names(const ir::Model& model) {
  std::set<std::string> names;
  for (const ir::Function& function : model.functions) names.insert(function.name);
  return names;
}

}  // namespace

std::set<std::string> value_names(const ir::Model& model) {
  return names_of(model, NameKind::value);
}

void rename(ir::Model& model, const Renaming& given) {
  Renaming renaming = given;
  for (const auto& [from, to] : given.dimensions) {
    if (!to.empty() && to.find_first_not_of("0123456789") == to.npos)
      fail(ErrorCode::bad_input,
           "'{0}' is a size, and no name that dimension '{1}' could have; a size is given by "
           "sardonyx infer MODEL -o OUTPUT --dim {1}={0}",
           to, from);
  }
  const auto places = take_places(model, renaming.dimensions);
  if (!renaming.values.empty()) require_possible(value_names(model), renaming.values, "value");
  if (!renaming.dimensions.empty())
    require_possible(names_of(model, NameKind::dimension), renaming.dimensions, "dimension");
  require_possible(function_names(model), renaming.functions, "function");
  if (!renaming.nodes.empty()) {
    const std::set<std::string> existing = names_of(model, NameKind::node);
    for (const auto& [from, to] : renaming.nodes) {
      if (!existing.contains(from))
        fail(ErrorCode::bad_input, "the model has no node '{}' to rename", from);
    }
  }
  std::set<std::pair<std::string, std::string>> functions;
  for (const ir::Function& function : model.functions)
    functions.emplace(ir::canonical_domain(function.domain), function.name);
  const auto apply = [](const std::map<std::string, std::string>& renames, std::string& name) {
    const auto found = renames.find(name);
    if (found != renames.end()) name = found->second;
  };
  Names(
      [&](NameKind kind, std::string& name) {
        switch (kind) {
          case NameKind::value: return apply(renaming.values, name);
          case NameKind::node: return apply(renaming.nodes, name);
          case NameKind::dimension: return apply(renaming.dimensions, name);
          case NameKind::function: return apply(renaming.functions, name);
        }
      },
      std::move(functions))
      .model(model);
  for (const auto& [dim, name] : places) {
    dim->value.reset();
    dim->param = name;
  }
}

Renaming prefixed(const ir::Model& model, std::string_view prefix,
                  const std::set<std::string>& functions) {
  Renaming renaming;
  const auto add = [&](std::map<std::string, std::string>& to, const std::string& name) {
    to[name] = std::string(prefix) + name;
  };
  for (const std::string& name : value_names(model)) add(renaming.values, name);
  for (const std::string& name : names_of(model, NameKind::node)) add(renaming.nodes, name);
  for (const std::string& name : functions) add(renaming.functions, name);
  return renaming;
}

}  // namespace sardonyx::compose
