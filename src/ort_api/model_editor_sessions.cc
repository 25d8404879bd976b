// Sessions of models that callers build of nodes, or add nodes to.
#include <algorithm>

#include "ort_api/built_model.h"
#include "ort_api/message_bytes.h"
#include "ort_api/run_values.h"
#include "sardonyx/edit.h"
#include "sardonyx/signatures.h"
#include "session/model.h"

namespace sardonyx::ort_api {

namespace {

// --- Models as bytes and tensors ------------------------------------------------------------

// TypeProto.
MessageBytes type_bytes(const OrtTypeInfo& type) {
  MessageBytes made, inner;
  const auto element = [](ONNXTensorElementDataType number) {
    return static_cast<int64_t>(element_type_of(number));
  };
  switch (type.kind) {
    case ONNX_TYPE_TENSOR:
    case ONNX_TYPE_SPARSETENSOR: {
      inner.number(1, element(type.tensor.type));
      MessageBytes shape;
      for (size_t i = 0; i < type.tensor.dims.size(); ++i) {
        const int64_t size = type.tensor.dims[i];
        const std::string& name = type.tensor.names[i];
        MessageBytes dimension;
        if (size >= 0) dimension.number(1, size);
        if (size < 0 && !name.empty()) dimension.text(2, name);
        shape.message(1, dimension);
      }
      // Without dimensions anything may come, as there.
      if (!type.tensor.dims.empty()) inner.message(2, shape);
      made.message(type.kind == ONNX_TYPE_TENSOR ? 1 : 8, inner);
      break;
    }
    case ONNX_TYPE_MAP:
      made.message(5, inner.number(1, element(type.key)).message(2, type_bytes(*type.of)));
      break;
    case ONNX_TYPE_SEQUENCE: made.message(4, inner.message(1, type_bytes(*type.of))); break;
    case ONNX_TYPE_OPTIONAL: made.message(9, inner.message(1, type_bytes(*type.of))); break;
    default: break;  // of unknown kind
  }
  if (!type.denotation.empty()) made.text(6, type.denotation);
  return made;
}

// ModelProto, without the initializers.
std::string built_model_bytes(const OrtModel& model) {
  MessageBytes graph;
  for (const auto& one : model.graph->nodes) {
    MessageBytes node;
    for (const std::string& name : one->inputs) node.text(1, name);
    for (const std::string& name : one->outputs) node.text(2, name);
    node.text(3, one->name).text(4, one->type).text(7, one->domain);
    for (const OrtOpAttr& attribute : one->attributes) node.message(5, attribute_bytes(attribute));
    graph.message(1, node);
  }
  graph.text(2, "built");
  const auto add_places = [&](int field, const std::optional<OrtGraph::Places>& places) {
    if (!places) return;
    for (const auto& one : *places)
      graph.message(field, MessageBytes().text(1, one->name).message(2, type_bytes(one->type)));
  };
  add_places(11, model.graph->inputs), add_places(12, model.graph->outputs);
  MessageBytes made;
  made.number(1, standard_releases().back().ir_version).message(7, graph);
  for (const auto& [domain, version] : model.opsets)
    made.message(8, MessageBytes().text(1, domain).number(2, version));
  return made.bytes();
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
