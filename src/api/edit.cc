#include "sardonyx/edit.h"

#include <algorithm>
#include <cstring>

#include "base/fail.h"
#include "base/memory_account.h"
#include "base/moved_from.h"
#include "compose/value_types.h"
#include "ir/walk.h"
#include "session/model.h"
#include "wire/footprint.h"
#include "wire/tensor.h"
#include "wire/text_parse.h"

namespace sardonyx {

struct ModelEditor::State {
  Model source;
  ir::Model model;
  MemoryCharge memory;

  ir::Graph& graph() {
    if (!model.graph) fail_at(model.path, ErrorCode::invalid_model, "the model has no graph");
    return *model.graph;
  }
};

namespace {

template <class Items>
auto* named(Items& items, std::string_view name) {
  const auto found =
      std::ranges::find_if(items, [&](const auto& item) { return item.name == name; });
  return found == items.end() ? nullptr : &*found;
}

ir::SparseTensorProto* named_sparse(ir::Graph& graph, std::string_view name) {
  const auto found = std::ranges::find_if(
      graph.sparse_initializers, [&](const auto& tensor) { return tensor.values.name == name; });
  return found == graph.sparse_initializers.end() ? nullptr : &*found;
}

bool is_initializer(ir::Graph& graph, std::string_view name) {
  return named(graph.initializers, name) != nullptr || named_sparse(graph, name) != nullptr;
}

bool is_made(const ir::Graph& graph, std::string_view name) {
  return std::ranges::any_of(graph.nodes, [&](const ir::Node& node) {
    return std::ranges::find(node.outputs, name) != node.outputs.end();
  });
}

// Whether a node of the graph, or of one inside it, or an output reads a value of this name. A
// subgraph that has a value of its own of this name counts, too.
bool is_read(const ir::Graph& graph, std::string_view name) {
  if (named(graph.outputs, name) != nullptr) return true;
  bool found = false;
  const auto enter = [&](const ir::WalkPlace& place) {
    found |= place.graph != nullptr && named(place.graph->outputs, name) != nullptr;
    return !found;
  };
  const auto node = [&](const ir::WalkPlace&, const ir::Node& one, size_t) {
    found |= std::ranges::find(one.inputs, name) != one.inputs.end();
  };
  ir::walk(graph, {.enter = enter, .node = node});
  return found;
}

void require_name(std::string_view name, std::string_view what) {
  if (name.empty()) fail(ErrorCode::bad_input, "the name of {} is empty", what);
}

ir::TypeProto parsed_type(std::string_view text) {
  try {
    return wire::parse_type(text);
  } catch (const Error& error) {
    fail(ErrorCode::bad_input, "'{}' is no type: {}; types are written as in \"float[batch,3]\"",
         text, error.what());
  }
}

ir::Dimension& dimension_of(ir::ValueInfo& info, int64_t axis) {
  if (!info.type || !info.type->shape)
    fail(ErrorCode::bad_input, "'{}' declares no shape; set_type gives it one", info.name);
  std::vector<ir::Dimension>& dims = info.type->shape->dims;
  if (axis < 0 || axis >= static_cast<int64_t>(dims.size()))
    fail(ErrorCode::bad_input, "'{}' has {} dimensions and no dimension {}", info.name, dims.size(),
         axis);
  return dims[static_cast<size_t>(axis)];
}

// Calls `change` for the input and for the output of this name; a value may be both.
template <class Change>
void change_declared(ir::Graph& graph, std::string_view value, const Change& change) {
  ir::ValueInfo* const found[] = {named(graph.inputs, value), named(graph.outputs, value)};
  if (found[0] == nullptr && found[1] == nullptr)
    fail(ErrorCode::bad_input, "the model has no input or output '{}'", value);
  for (ir::ValueInfo* info : found) {
    if (info != nullptr) change(*info);
  }
}

ir::TensorProto proto_of(const Tensor& tensor, std::string_view name) {
  if (tensor.empty()) fail(ErrorCode::bad_input, "initializer '{}' is given no tensor", name);
  if (tensor.owner() != nullptr) return wire::to_proto(tensor, std::string(name));
  // The caller's memory may be gone before the model is.
  Tensor copy(tensor.element_type(), tensor.shape());
  std::memcpy(copy.mutable_data(), tensor.data(), tensor.byte_size());
  return wire::to_proto(copy, std::string(name));
}

}  // namespace

ModelEditor::ModelEditor(const Model& model) {
  const Model::Implementation& given = model.implementation();
  state_ = within_limit(given.memory, [&] {
    MemoryCharge copied(wire::memory_of(given.model));
    return std::make_unique<State>(State{model, given.model, std::move(copied)});
  });
}
ModelEditor::~ModelEditor() = default;
ModelEditor::ModelEditor(ModelEditor&&) noexcept = default;
ModelEditor& ModelEditor::operator=(ModelEditor&&) noexcept = default;

Model ModelEditor::finish() const {
  return ModelMaker::derive(behind(state_, "editor").source, behind(state_, "editor").model);
}

ModelEditor& ModelEditor::set_ir_version(int64_t version) {
  behind(state_, "editor").model.ir_version = version;
  return *this;
}

ModelEditor& ModelEditor::set_producer_name(std::string name) {
  behind(state_, "editor").model.producer_name = std::move(name);
  return *this;
}

ModelEditor& ModelEditor::set_producer_version(std::string version) {
  behind(state_, "editor").model.producer_version = std::move(version);
  return *this;
}

ModelEditor& ModelEditor::set_domain(std::string domain) {
  behind(state_, "editor").model.domain = std::move(domain);
  return *this;
}

ModelEditor& ModelEditor::set_model_version(int64_t version) {
  behind(state_, "editor").model.model_version = version;
  return *this;
}

ModelEditor& ModelEditor::set_doc_string(std::string text) {
  behind(state_, "editor").model.doc_string = std::move(text);
  return *this;
}

ModelEditor& ModelEditor::set_metadata(std::string_view key, std::string value) {
  require_name(key, "the metadata");
  auto& entries = behind(state_, "editor").model.metadata_props;
  const auto found = std::ranges::find(entries, key, &ir::StringEntry::key);
  if (found != entries.end()) {
    found->value = std::move(value);
  } else {
    entries.push_back({std::string(key), std::move(value), {}});
  }
  return *this;
}

ModelEditor& ModelEditor::remove_metadata(std::string_view key) {
  const auto is_it = [&](const ir::StringEntry& entry) { return entry.key == key; };
  if (std::erase_if(behind(state_, "editor").model.metadata_props, is_it) == 0)
    fail_at(behind(state_, "editor").model.path, ErrorCode::bad_input,
            "the model has no metadata '{}' to remove", key);
  return *this;
}

ModelEditor& ModelEditor::set_opset_import(std::string_view domain, int64_t version) {
  if (version < 1)
    fail(ErrorCode::bad_input, "versions of operator sets begin at 1; found {}", version);
  auto& imports = behind(state_, "editor").model.opset_imports;
  const auto is_it = [&](const ir::OperatorSetId& import) {
    return ir::canonical_domain(import.domain) == ir::canonical_domain(domain);
  };
  if (const auto found = std::ranges::find_if(imports, is_it); found != imports.end()) {
    found->version = version;
    imports.erase(std::remove_if(found + 1, imports.end(), is_it), imports.end());
  } else {
    imports.push_back({std::string(domain), version, {}});
  }
  return *this;
}

ModelEditor& ModelEditor::set_graph_name(std::string name) {
  if (!behind(state_, "editor").model.graph)
    fail_at(behind(state_, "editor").model.path, ErrorCode::invalid_model,
            "the model has no graph to name");
  behind(state_, "editor").model.graph->name = std::move(name);
  return *this;
}

ModelEditor& ModelEditor::set_type(std::string_view value, std::string_view type) {
  ir::Graph& graph = behind(state_, "editor").graph();
  ir::TypeProto parsed = parsed_type(type);
  ir::ValueInfo *input = named(graph.inputs, value), *output = named(graph.outputs, value);
  if (input != nullptr) input->type = parsed;
  if (output != nullptr) output->type = parsed;
  if (input != nullptr || output != nullptr) return *this;
  if (ir::ValueInfo* info = named(graph.value_info, value)) {
    info->type = std::move(parsed);
  } else if (is_made(graph, value) || is_initializer(graph, value)) {
    graph.value_info.push_back({std::string(value), std::move(parsed), {}, {}, {}});
  } else {
    fail(ErrorCode::bad_input, "the main graph has no value '{}'", value);
  }
  return *this;
}

ModelEditor& ModelEditor::set_dimension(std::string_view value, int64_t axis, int64_t size) {
  if (size < 0)
    fail(ErrorCode::bad_input, "a dimension of '{}' can't have the size {}", value, size);
  ir::Graph& graph = behind(state_, "editor").graph();
  change_declared(graph, value, [&](ir::ValueInfo& info) { dimension_of(info, axis); });
  change_declared(graph, value, [&](ir::ValueInfo& info) {
    ir::Dimension& dimension = dimension_of(info, axis);
    dimension.value = size;
    dimension.param.reset();
  });
  return *this;
}

ModelEditor& ModelEditor::set_dimension(std::string_view value, int64_t axis,
                                        std::string_view name) {
  ir::Graph& graph = behind(state_, "editor").graph();
  change_declared(graph, value, [&](ir::ValueInfo& info) { dimension_of(info, axis); });
  change_declared(graph, value, [&](ir::ValueInfo& info) {
    ir::Dimension& dimension = dimension_of(info, axis);
    dimension.value.reset();
    dimension.param.reset();
    if (!name.empty()) dimension.param = std::string(name);
  });
  return *this;
}

ModelEditor& ModelEditor::set_denotation(std::string_view value, std::string denotation) {
  ir::Graph& graph = behind(state_, "editor").graph();
  change_declared(graph, value, [&](const ir::ValueInfo& info) {
    if (!info.type)
      fail(ErrorCode::bad_input, "'{}' declares no type; set_type gives it one", value);
  });
  change_declared(graph, value, [&](ir::ValueInfo& info) { info.type->denotation = denotation; });
  return *this;
}

ModelEditor& ModelEditor::set_denotation(std::string_view value, int64_t axis,
                                         std::string denotation) {
  ir::Graph& graph = behind(state_, "editor").graph();
  change_declared(graph, value, [&](ir::ValueInfo& info) { dimension_of(info, axis); });
  change_declared(graph, value,
                  [&](ir::ValueInfo& info) { dimension_of(info, axis).denotation = denotation; });
  return *this;
}

ModelEditor& ModelEditor::add_input(std::string_view name, std::string_view type) {
  require_name(name, "an input");
  ir::Graph& graph = behind(state_, "editor").graph();
  if (named(graph.inputs, name) != nullptr)
    fail(ErrorCode::bad_input, "the model has an input '{}' already", name);
  if (is_made(graph, name))
    fail(ErrorCode::bad_input,
         "a node makes '{}', so that it can't be an input; extract() cuts a model at a value",
         name);
  graph.inputs.push_back({std::string(name), parsed_type(type), {}, {}, {}});
  return *this;
}

ModelEditor& ModelEditor::remove_input(std::string_view name) {
  ir::Graph& graph = behind(state_, "editor").graph();
  if (named(graph.inputs, name) == nullptr)
    fail(ErrorCode::bad_input, "the model has no input '{}'", name);
  if (!is_initializer(graph, name) && is_read(graph, name))
    fail(ErrorCode::bad_input, "input '{}' is read; add_initializer gives it a value first", name);
  std::erase_if(graph.inputs, [&](const ir::ValueInfo& input) { return input.name == name; });
  return *this;
}

ModelEditor& ModelEditor::add_output(std::string_view name, std::string_view type) {
  require_name(name, "an output");
  ir::Graph& graph = behind(state_, "editor").graph();
  if (named(graph.outputs, name) != nullptr)
    fail(ErrorCode::bad_input, "the model has an output '{}' already", name);
  if (!is_made(graph, name) && named(graph.inputs, name) == nullptr && !is_initializer(graph, name))
    fail(ErrorCode::bad_input, "the main graph has no value '{}'", name);
  ir::ValueInfo output;
  output.name = name;
  if (!type.empty()) {
    output.type = parsed_type(type);
  } else {
    const auto types = compose::value_types(behind(state_, "editor").model);
    if (const auto found = types.find(output.name); found != types.end())
      output.type = found->second;
  }
  std::erase_if(graph.value_info, [&](const ir::ValueInfo& info) { return info.name == name; });
  graph.outputs.push_back(std::move(output));
  return *this;
}

ModelEditor& ModelEditor::remove_output(std::string_view name) {
  ir::Graph& graph = behind(state_, "editor").graph();
  const auto is_it = [&](const ir::ValueInfo& output) { return output.name == name; };
  if (std::erase_if(graph.outputs, is_it) == 0)
    fail(ErrorCode::bad_input, "the model has no output '{}'", name);
  return *this;
}

bool ModelEditor::has_initializer(std::string_view name) const {
  return behind(state_, "editor").model.graph &&
         named(behind(state_, "editor").model.graph->initializers, name) != nullptr;
}

ModelEditor& ModelEditor::add_initializer(std::string_view name, const Tensor& tensor) {
  require_name(name, "an initializer");
  ir::Graph& graph = behind(state_, "editor").graph();
  if (is_initializer(graph, name) || is_made(graph, name))
    fail(ErrorCode::bad_input, "the main graph has a value '{}' already", name);
  graph.initializers.push_back(proto_of(tensor, name));
  return *this;
}

ModelEditor& ModelEditor::replace_initializer(std::string_view name, const Tensor& tensor) {
  ir::Graph& graph = behind(state_, "editor").graph();
  ir::TensorProto* old = named(graph.initializers, name);
  if (old == nullptr) {
    fail(ErrorCode::bad_input, "the model has no {}initializer '{}'",
         named_sparse(graph, name) != nullptr ? "dense " : "", name);
  }
  ir::TensorProto made = proto_of(tensor, name);
  made.doc_string = old->doc_string;
  made.metadata_props = old->metadata_props;
  *old = std::move(made);
  return *this;
}

ModelEditor& ModelEditor::remove_initializer(std::string_view name) {
  ir::Graph& graph = behind(state_, "editor").graph();
  if (!is_initializer(graph, name))
    fail(ErrorCode::bad_input, "the model has no initializer '{}'", name);
  if (named(graph.inputs, name) == nullptr && is_read(graph, name))
    fail(ErrorCode::bad_input, "initializer '{}' is read; add_input makes it an input first", name);
  std::erase_if(graph.initializers, [&](const auto& tensor) { return tensor.name == name; });
  std::erase_if(graph.sparse_initializers,
                [&](const auto& tensor) { return tensor.values.name == name; });
  return *this;
}

}  // namespace sardonyx
