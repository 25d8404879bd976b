// Sessions of models that callers build of nodes, or add nodes to.
#include <algorithm>

#include "ort_api/built_model.h"
#include "ort_api/run_values.h"
#include "sardonyx/edit.h"
#include "sardonyx/signatures.h"
#include "session/model.h"
#include "wire/write.h"

namespace sardonyx::ort_api {

namespace {

// --- Models as messages and tensors ---------------------------------------------------------

ir::TypeProto to_proto(const OrtTypeInfo& type) {
  using Kind = ir::TypeProto::Kind;
  ir::TypeProto made;
  made.denotation = type.denotation;
  switch (type.kind) {
    case ONNX_TYPE_TENSOR:
    case ONNX_TYPE_SPARSETENSOR:
      made.kind = type.kind == ONNX_TYPE_TENSOR ? Kind::tensor : Kind::sparse_tensor;
      made.elem_type = static_cast<int32_t>(element_type_of(type.tensor.type));
      // Without dimensions anything may come, as there.
      if (type.tensor.dims.empty()) break;
      made.shape.emplace();
      for (size_t i = 0; i < type.tensor.dims.size(); ++i) {
        ir::Dimension& dimension = made.shape->dims.emplace_back();
        const int64_t size = type.tensor.dims[i];
        const std::string& name = type.tensor.names[i];
        if (size >= 0) dimension.value = size;
        if (size < 0 && !name.empty()) dimension.param = name;
      }
      break;
    case ONNX_TYPE_MAP:
      made.kind = Kind::map;
      made.elem_type = static_cast<int32_t>(element_type_of(type.key));
      break;
    case ONNX_TYPE_SEQUENCE: made.kind = Kind::sequence; break;
    case ONNX_TYPE_OPTIONAL: made.kind = Kind::optional; break;
    default: break;  // of unknown kind
  }
  if (type.of != nullptr) made.nested = std::make_shared<ir::TypeProto>(to_proto(*type.of));
  return made;
}

std::vector<ir::ValueInfo> to_proto(const std::optional<OrtGraph::Places>& places) {
  std::vector<ir::ValueInfo> made;
  if (!places) return made;
  for (const auto& one : *places) {
    ir::ValueInfo& info = made.emplace_back();
    info.name = one->name, info.type = to_proto(one->type);
  }
  return made;
}

// ModelProto, without the initializers.
std::string built_model_bytes(const OrtModel& model) {
  ir::Model made;
  made.ir_version = standard_releases().back().ir_version;
  for (const auto& [domain, version] : model.opsets) {
    ir::OperatorSetId& import = made.opset_imports.emplace_back();
    import.domain = domain, import.version = version;
  }
  ir::Graph& graph = made.graph.emplace();
  graph.name = "built";
  for (const auto& one : model.graph->nodes) {
    ir::Node& node = graph.nodes.emplace_back();
    node.name = one->name, node.op_type = one->type, node.domain = one->domain;
    node.inputs = one->inputs, node.outputs = one->outputs;
    for (const OrtOpAttr& attribute : one->attributes)
      node.attributes.push_back(to_proto(attribute));
  }
  graph.inputs = to_proto(model.graph->inputs), graph.outputs = to_proto(model.graph->outputs);
  return wire::write_model(made);
}

using BuiltInitializers = std::vector<std::pair<std::string, Tensor>>;

// What sessions take from the graph's: the memory of external ones, which is the caller's, stays.
BuiltInitializers initializers_of(const OrtGraph& graph) {
  static const auto nobody = std::make_shared<const int>(0);
  BuiltInitializers found;
  for (const OrtGraph::Initializer& one : graph.initializers) {
    Tensor tensor = one.value->value.tensor();
    if (one.is_external && tensor.owner() == nullptr)
      tensor = Tensor::view(tensor.element_type(), tensor.shape(), tensor.data(),
                            tensor.byte_size(), nobody);
    found.emplace_back(one.name, std::move(tensor));
  }
  return found;
}

// Tensors without an owner are copied.
Model with_initializers(const Model& model, const BuiltInitializers& initializers) {
  if (initializers.empty()) return model;
  ModelEditor editor(model);
  for (const auto& [name, tensor] : initializers) editor.add_initializer(name, tensor);
  return editor.finish();
}

const OrtModel& whole_model(const OrtModel* model) {
  if (required(model, "model").graph == nullptr)
    refuse(ORT_INVALID_ARGUMENT, "the model has no graph; AddGraphToModel() gives it one");
  return *model;
}

OrtStatus* CreateSessionFromModel(const OrtEnv* env, const OrtModel* model,
                                  const OrtSessionOptions* options, OrtSession** out) {
  return guarded([&] {
    required(env, "env"), required(out, "out");
    const auto bytes = std::make_shared<const std::string>(built_model_bytes(whole_model(model)));
    ModelSource source{.data = bytes->data(), .bytes = bytes->size(), .owner = bytes};
    source.edit = [initializers = initializers_of(*model->graph)](const Model& read) {
      return with_initializers(read, initializers);
    };
    *out = made_session(env, source, options).release();
  });
}

}  // namespace

// --- Models that nodes are added to ---------------------------------------------------------

struct EditedModel {
  struct Change {
    Model model;  // nodes, inputs, outputs and operator sets
    bool sets_inputs, sets_outputs;
    BuiltInitializers initializers;
  };
  const OrtEnv* env;
  ModelSource source;         // that is read anew for each change
  OrtSessionOptions options;  // what they name of the caller's stays until the session is finalized
  std::vector<Change> changes;
};

namespace {

void add_opsets(ir::Model& to, const ir::Model& from) {
  for (const auto& added : from.opset_imports) {
    const int64_t there = ir::imported_version(to.opset_imports, added.domain);
    if (there == 0) to.opset_imports.push_back(added);
    if (there != 0 && there != added.version)
      refuse(ORT_INVALID_ARGUMENT,
             "the model has version {} of domain '{}', and nodes of version {} can't be added",
             there, added.domain, added.version);
  }
}

// Nodes may stand in any order: the session sorts them.
Model changed_model(const Model& model, const EditedModel::Change& change) {
  ir::Model changed = model.implementation().model;
  const ir::Model& added = change.model.implementation().model;
  if (!changed.graph) refuse(ORT_INVALID_GRAPH, "the model that is to be changed has no graph");
  add_opsets(changed, added);
  auto& nodes = changed.graph->nodes;
  nodes.insert(nodes.end(), added.graph->nodes.begin(), added.graph->nodes.end());
  if (change.sets_inputs) changed.graph->inputs = added.graph->inputs;
  if (change.sets_outputs) changed.graph->outputs = added.graph->outputs;
  return with_initializers(ModelMaker::derive(model, std::move(changed)), change.initializers);
}

// A session of the model with all changes, prepared as for running.
std::unique_ptr<OrtSession> session_of_changed(const EditedModel& edited, bool is_final) {
  ModelSource source = edited.source;
  source.edit = [&edited](const Model& read) {
    Model model = read;
    for (const EditedModel::Change& change : edited.changes) model = changed_model(model, change);
    return model;
  };
  if (is_final) return made_session(edited.env, source, &edited.options);
  OrtSessionOptions options = edited.options;
  options.profile_prefix.reset();
  options.optimized_model_path.clear();
  return made_session(edited.env, source, &options);
}

void create_edited(const OrtEnv* env, ModelSource source, const OrtSessionOptions* options,
                   OrtSession** out) {
  required(env, "env"), required(out, "out");
  const auto edited = std::make_shared<EditedModel>(
      EditedModel{env, std::move(source), options == nullptr ? OrtSessionOptions() : *options, {}});
  auto made = session_of_changed(*edited, false);
  made->edited = edited;
  *out = made.release();
}

OrtStatus* CreateModelEditorSession(const OrtEnv* env, const PathChar* path,
                                    const OrtSessionOptions* options, OrtSession** out) {
  return guarded([&] {
    ModelSource source{.path = path_of(path, "model_path")};
    if (source.path.empty()) refuse(ORT_NO_SUCHFILE, "the path of the model is empty");
    create_edited(env, std::move(source), options, out);
  });
}

OrtStatus* CreateModelEditorSessionFromArray(const OrtEnv* env, const void* data, size_t bytes,
                                             const OrtSessionOptions* options, OrtSession** out) {
  return guarded([&] {
    if (data == nullptr || bytes == 0) refuse(ORT_INVALID_ARGUMENT, "the model's bytes are none");
    const auto copy = std::make_shared<const std::string>(static_cast<const char*>(data), bytes);
    create_edited(env, {.data = copy->data(), .bytes = bytes, .owner = copy}, options, out);
  });
}

OrtStatus* ApplyModelToModelEditorSession(OrtSession* session, OrtModel* model) {
  return guarded([&] {
    OrtSession& to = required(session, "session");
    const OrtGraph& graph = *whole_model(model).graph;
    if (to.edited == nullptr)
      refuse(ORT_MODEL_LOADED,
             "This session has already been initialized: nodes are added to one "
             "of CreateModelEditorSession() before it is finalized");
    const std::string bytes = built_model_bytes(*model);
    auto edited = std::make_shared<EditedModel>(*to.edited);
    edited->changes.push_back({Model(bytes.data(), bytes.size()), graph.inputs.has_value(),
                               graph.outputs.has_value(), initializers_of(graph)});
    to.become(std::move(*session_of_changed(*edited, false)));
    to.edited = std::move(edited);
  });
}

// The options are those of the session's beginning, as there: what is given here can only name
// providers. Weights are shared with nobody, whose model was changed.
OrtStatus* FinalizeModelEditorSession(OrtSession* session, const OrtSessionOptions*,
                                      OrtPrepackedWeightsContainer*) {
  return guarded([&] {
    OrtSession& to = required(session, "session");
    if (to.edited == nullptr) return;
    const OrtSessionOptions& options = to.edited->options;
    if (options.profile_prefix || !options.optimized_model_path.empty())
      to.become(std::move(*session_of_changed(*to.edited, true)));
    to.edited = nullptr;
  });
}

OrtStatus* SessionGetOpsetForDomain(const OrtSession* session, const char* domain, int* out) {
  return guarded([&] {
    const int64_t version = required(session, "session").model.opset(text_of(domain, "domain"));
    if (version == 0) refuse(ORT_FAIL, "the model has no operators of domain '{}'", domain);
    required(out, "opset") = static_cast<int>(version);
  });
}

}  // namespace

void require_finished(const OrtSession& session) {
  if (session.edited != nullptr)
    refuse(ORT_FAIL, "Session not initialized: FinalizeModelEditorSession() was not called");
}

void add_model_editor_sessions(OrtModelEditorApi& table) {
  table.CreateSessionFromModel = CreateSessionFromModel;
  table.CreateModelEditorSession = CreateModelEditorSession;
  table.CreateModelEditorSessionFromArray = CreateModelEditorSessionFromArray;
  table.SessionGetOpsetForDomain = SessionGetOpsetForDomain;
  table.ApplyModelToModelEditorSession = ApplyModelToModelEditorSession;
  table.FinalizeModelEditorSession = FinalizeModelEditorSession;
}

}  // namespace sardonyx::ort_api
