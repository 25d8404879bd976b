// Rules of training information.
#include <algorithm>

#include "check/context.h"

namespace sardonyx::check {
namespace {

const ir::TensorProto* find_initializer(const ir::Graph& graph, std::string_view name) {
  const auto found = std::ranges::find(graph.initializers, name, &ir::TensorProto::name);
  return found == graph.initializers.end() ? nullptr : &*found;
}

bool has_sparse_initializer(const ir::Graph& graph, std::string_view name) {
  return std::ranges::any_of(graph.sparse_initializers, [&](const ir::SparseTensorProto& tensor) {
    return tensor.values.name == name;
  });
}

const ir::ValueInfo* find_output(const ir::Graph& graph, std::string_view name) {
  const auto found = std::ranges::find(graph.outputs, name, &ir::ValueInfo::name);
  return found == graph.outputs.end() ? nullptr : &*found;
}

// One entry of training_info with the names of its place.
struct Entry {
  Context& context;
  const ir::TrainingInfo& info;
  Where where;

  // The initializer that a binding sets; reports where there is none.
  const ir::TensorProto* state(const Where& binding, const std::string& key) const {
    std::vector<const ir::Graph*> graphs;
    if (context.model.graph) graphs.push_back(&*context.model.graph);
    if (info.algorithm) graphs.push_back(&*info.algorithm);
    for (const ir::Graph* graph : graphs) {
      if (const ir::TensorProto* tensor = find_initializer(*graph, key)) return tensor;
    }
    for (const ir::Graph* graph : graphs) {
      if (!has_sparse_initializer(*graph, key)) continue;
      context.report("TR-23", binding, "",
                     "state variables are dense; '{}' is a sparse initializer", key);
      return nullptr;
    }
    context.report("TR-08", binding, "",
                   "neither the main graph nor the algorithm has an initializer '{}'", key);
    return nullptr;
  }

  // What is assigned has the type of the state, as far as it is declared.
  void check_assigned(const Where& binding, const ir::TensorProto& state,
                      const ir::ValueInfo& value) const {
    if (!value.type || value.type->kind != ir::TypeProto::Kind::tensor) return;
    bool agrees = value.type->elem_type == state.data_type;
    const std::optional<ir::TensorShape>& shape = value.type->shape;
    agrees = agrees && (!shape || shape->dims.size() == state.dims.size());
    for (size_t i = 0; agrees && shape && i < state.dims.size(); ++i) {
      const std::optional<int64_t>& size = shape->dims[i].value;
      agrees = !size || *size == state.dims[i];
    }
    if (!agrees) {
      context.report("TR-21", binding, "", "'{}' has not the type of '{}', which is {}{}",
                     value.name, state.name, name_of(state.element_type()), to_string(state.dims));
    }
  }
};

void check_initialization(const Entry& entry, size_t index) {
  Context& context = entry.context;
  const ir::TrainingInfo& info = entry.info;
  if (info.initialization) {
    const std::string root = fmt::format("training_info[{}].initialization", index);
    NameSet state;
    if (context.model.graph) {
      for (const ir::TensorProto& tensor : context.model.graph->initializers)
        state.insert(tensor.name);
    }
    check_graph(context, {context.model.opset_imports}, *info.initialization, root, {&state, true});
    for (const ir::ValueInfo& input : info.initialization->inputs) {
      if (find_initializer(*info.initialization, input.name)) continue;
      context.report("TR-05", entry.where.in("initialization"), "",
                     "an initialization has no inputs; found '{}'", input.name);
    }
  } else if (!info.initialization_binding.empty()) {
    context.report("TR-07", entry.where, "",
                   "initialization bindings need an initialization graph");
  }
  std::unordered_set<std::string_view> keys;
  for (const ir::StringEntry& binding : info.initialization_binding) {
    const Where where = entry.where.in(fmt::format("initialization binding '{}'", binding.key));
    if (!keys.insert(binding.key).second) {
      context.report("TR-10", where, "", "the binding occurs twice");
    }
    const ir::TensorProto* state = entry.state(where, binding.key);
    if (!info.initialization) continue;
    const ir::ValueInfo* value = find_output(*info.initialization, binding.value);
    if (!value) {
      context.report("TR-09", where, "", "the initialization has no output '{}'", binding.value);
    } else if (state) {
      entry.check_assigned(where, *state, *value);
    }
  }
}

void check_update(const Entry& entry, const NameSet& main_names, size_t index,
                  std::unordered_set<std::string_view>& all_keys) {
  Context& context = entry.context;
  const ir::TrainingInfo& info = entry.info;
  if (info.algorithm) {
    const std::string root = fmt::format("training_info[{}].algorithm", index);
    check_graph(context, {context.model.opset_imports}, *info.algorithm, root,
                {&main_names, false});
  }
  std::unordered_set<std::string_view> keys;
  for (const ir::StringEntry& binding : info.update_binding) {
    const Where where = entry.where.in(fmt::format("update binding '{}'", binding.key));
    if (!keys.insert(binding.key).second) {
      context.report("TR-11", where, "", "the binding occurs twice");
    } else if (!all_keys.insert(binding.key).second) {
      context.report.at_most_warning("TR-11", where, "", "another entry binds it, too");
    }
    const ir::TensorProto* state = entry.state(where, binding.key);
    const ir::ValueInfo* value =
        info.algorithm ? find_output(*info.algorithm, binding.value) : nullptr;
    if (value) {
      if (state) entry.check_assigned(where, *state, *value);
    } else if (context.model.graph && find_output(*context.model.graph, binding.value)) {
      context.report.at_most_warning("TR-12", where, "",
                                     "'{}' is an output of the main graph, not "
                                     "of the algorithm",
                                     binding.value);
    } else {
      context.report("TR-12", where, "", "the algorithm has no output '{}'", binding.value);
    }
  }
}

}  // namespace

void check_training(Context& context, const NameSet& main_names) {
  std::unordered_set<std::string_view> all_keys;
  for (size_t i = 0; i < context.model.training_info.size(); ++i) {
    const std::string root = fmt::format("training_info[{}]", i);
    const Entry entry{context, context.model.training_info[i], {.root = root}};
    check_initialization(entry, i);
    check_update(entry, main_names, i, all_keys);
  }
}

}  // namespace sardonyx::check
