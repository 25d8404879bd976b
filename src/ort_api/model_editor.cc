// Models that callers build of nodes: types, nodes, graphs.
#include <algorithm>

#include "ort_api/built_model.h"

namespace sardonyx::ort_api {

namespace {

// --- Types ----------------------------------------------------------------------------------

OrtTypeInfo edited_tensor_type(ONNXType kind, const OrtTensorTypeAndShapeInfo* tensor) {
  OrtTypeInfo info;
  info.kind = kind;
  info.tensor = required(tensor, "tensor_info");
  if (info.tensor.type == ONNX_TENSOR_ELEMENT_DATA_TYPE_UNDEFINED)
    refuse(ORT_INVALID_ARGUMENT, "'tensor_info' has no element type");
  return info;
}

OrtTypeInfo edited_type_of(ONNXType kind, const OrtTypeInfo* of, const char* name) {
  constexpr int most = 32;  // types are written and released by functions that call themselves
  int depth = 0;
  for (const OrtTypeInfo* inner = &required(of, name); inner != nullptr; inner = inner->of.get())
    if (++depth > most) refuse(ORT_INVALID_ARGUMENT, "types nest {} levels deep at most", most);
  OrtTypeInfo info;
  info.kind = kind;
  info.of = std::make_shared<const OrtTypeInfo>(*of);
  return info;
}

OrtStatus* CreateTensorTypeInfo(const OrtTensorTypeAndShapeInfo* tensor, OrtTypeInfo** out) {
  return guarded([&] {
    give(out, "type_info", new OrtTypeInfo(edited_tensor_type(ONNX_TYPE_TENSOR, tensor)));
  });
}
OrtStatus* CreateSparseTensorTypeInfo(const OrtTensorTypeAndShapeInfo* tensor, OrtTypeInfo** out) {
  return guarded([&] {
    give(out, "type_info", new OrtTypeInfo(edited_tensor_type(ONNX_TYPE_SPARSETENSOR, tensor)));
  });
}
OrtStatus* CreateMapTypeInfo(ONNXTensorElementDataType key, const OrtTypeInfo* value,
                             OrtTypeInfo** out) {
  return guarded([&] {
    OrtTypeInfo info = edited_type_of(ONNX_TYPE_MAP, value, "map_value_type");
    element_type_of(key);  // is one
    info.key = key;
    give(out, "type_info", new OrtTypeInfo(std::move(info)));
  });
}
OrtStatus* CreateSequenceTypeInfo(const OrtTypeInfo* item, OrtTypeInfo** out) {
  return guarded([&] {
    give(out, "type_info",
         new OrtTypeInfo(edited_type_of(ONNX_TYPE_SEQUENCE, item, "sequence_type")));
  });
}
OrtStatus* CreateOptionalTypeInfo(const OrtTypeInfo* held, OrtTypeInfo** out) {
  return guarded([&] {
    give(out, "type_info",
         new OrtTypeInfo(edited_type_of(ONNX_TYPE_OPTIONAL, held, "contained_type")));
  });
}

std::string given_name(const char* name) {
  std::string text = text_of(name, "name");
  if (text.empty()) refuse(ORT_INVALID_ARGUMENT, "'name' is empty");
  return text;
}

OrtStatus* CreateValueInfo(const char* name, const OrtTypeInfo* type, OrtValueInfo** out) {
  return guarded([&] {
    give(out, "value_info", new OrtValueInfo{given_name(name), required(type, "type_info")});
  });
}
OrtStatus* GetValueInfoName(const OrtValueInfo* info, const char** out) {
  return guarded([&] { required(out, "name") = required(info, "value_info").name.c_str(); });
}
OrtStatus* GetValueInfoTypeInfo(const OrtValueInfo* info, const OrtTypeInfo** out) {
  return guarded([&] { required(out, "type_info") = &required(info, "value_info").type; });
}

// --- Nodes, graphs, models ------------------------------------------------------------------

std::vector<std::string> given_names(const char* const* names, size_t count, const char* what) {
  items(names, count, what);
  std::vector<std::string> texts;
  for (size_t i = 0; i < count; ++i) texts.push_back(text_of(names[i], what));
  return texts;
}

// Attributes belong to the node from then on, as there: the caller's places become null.
OrtStatus* CreateNode(const char* type, const char* domain, const char* name,
                      const char* const* inputs, size_t input_count, const char* const* outputs,
                      size_t output_count, OrtOpAttr** attributes, size_t attribute_count,
                      OrtNode** out) {
  return guarded([&] {
    required(out, "node");
    auto node = std::make_unique<OrtNode>();
    node->type = text_of(type, "operator_name");
    node->domain = text_of(domain, "domain_name");
    node->name = text_of(name, "node_name");
    node->inputs = given_names(inputs, input_count, "input_names");
    node->outputs = given_names(outputs, output_count, "output_names");
    OrtOpAttr** const given = items(attributes, attribute_count, "attributes");
    for (size_t i = 0; i < attribute_count; ++i) {
      if (std::find(given, given + i, &required(given[i], "attributes")) != given + i)
        refuse(ORT_INVALID_ARGUMENT, "attribute '{}' is given twice", given[i]->name);
      node->attributes.push_back(*given[i]);
    }
    for (size_t i = 0; i < attribute_count; ++i) delete std::exchange(given[i], nullptr);
    *out = node.release();
  });
}

OrtStatus* CreateGraph(OrtGraph** out) {
  return guarded([&] { give(out, "graph", new OrtGraph); });
}

// All or none of the infos become the graph's.
void set_places(OrtGraph& graph, std::optional<OrtGraph::Places>& places, OrtValueInfo** given,
                size_t count, const char* what) {
  items(given, count, what);
  for (size_t i = 0; i < count; ++i) {
    const OrtValueInfo* const info = &required(given[i], what);
    const auto is_it = [&](const auto& one) { return one.get() == info; };
    const bool is_taken = std::find(given, given + i, info) != given + i ||
                          (graph.inputs && std::ranges::any_of(*graph.inputs, is_it)) ||
                          (graph.outputs && std::ranges::any_of(*graph.outputs, is_it));
    if (is_taken)
      refuse(ORT_INVALID_ARGUMENT, "'{}': the graph has the value info of '{}' already", what,
             info->name);
  }
  OrtGraph::Places taken(count);
  for (size_t i = 0; i < count; ++i) taken[i].reset(std::exchange(given[i], nullptr));
  places = std::move(taken);
}
OrtStatus* SetGraphInputs(OrtGraph* graph, OrtValueInfo** inputs, size_t count) {
  return guarded(
      [&] { set_places(required(graph, "graph"), graph->inputs, inputs, count, "inputs"); });
}
OrtStatus* SetGraphOutputs(OrtGraph* graph, OrtValueInfo** outputs, size_t count) {
  return guarded(
      [&] { set_places(required(graph, "graph"), graph->outputs, outputs, count, "outputs"); });
}

OrtStatus* AddInitializerToGraph(OrtGraph* graph, const char* name, OrtValue* value,
                                 bool is_external) {
  return guarded([&] {
    constexpr size_t least = 128;  // bytes of external ones, as there
    OrtGraph& to = required(graph, "graph");
    std::string text = given_name(name);
    const Tensor& tensor = tensor_of(value, "tensor");
    if (to.initializer_names.contains(text))
      refuse(ORT_INVALID_ARGUMENT, "the graph has an initializer '{}' already", text);
    if (const auto found = to.members.find(value); found != to.members.end())
      refuse(ORT_INVALID_ARGUMENT, "the graph has this value as '{}' already", found->second);
    if (is_external && tensor.element_type() != ElementType::string && tensor.byte_size() < least)
      refuse(ORT_INVALID_ARGUMENT,
             "initializer '{}' has {} bytes; below {} it can't be external: set data_is_external "
             "to false, and let CreateTensorAsOrtValue() make the tensor",
             name, tensor.byte_size(), least);
    // Where memory ends, the graph stays as it was, and the value the caller's.
    const auto member = to.members.emplace(value, text).first;
    try {
      to.initializers.push_back({text, nullptr, is_external});
      try {
        to.initializer_names.insert(std::move(text));
      } catch (...) {
        to.initializers.pop_back();
        throw;
      }
    } catch (...) {
      to.members.erase(member);
      throw;
    }
    to.initializers.back().value.reset(value);
  });
}

OrtStatus* AddNodeToGraph(OrtGraph* graph, OrtNode* node) {
  return guarded([&] {
    auto& nodes = required(graph, "graph").nodes;
    required(node, "node");
    if (graph->members.contains(node))
      refuse(ORT_INVALID_ARGUMENT, "the graph has node '{}' already", node->name);
    const auto member = graph->members.emplace(node, node->name).first;
    try {
      nodes.emplace_back(node);
    } catch (...) {  // where memory ends, the graph stays as it was, and the node the caller's
      graph->members.erase(member);
      throw;
    }
  });
}

OrtStatus* CreateModel(const char* const* domains, const int* versions, size_t count,
                       OrtModel** out) {
  return guarded([&] {
    items(versions, count, "opset_versions");
    auto model = std::make_unique<OrtModel>();
    const std::vector<std::string> names = given_names(domains, count, "domain_names");
    for (size_t i = 0; i < count; ++i)
      model->opsets[names[i] == "ai.onnx" ? "" : names[i]] = versions[i];
    give(out, "model", model.release());
  });
}

OrtStatus* AddGraphToModel(OrtModel* model, OrtGraph* graph) {
  return guarded([&] {
    auto& place = required(model, "model").graph;
    required(graph, "graph");
    if (place != nullptr) refuse(ORT_INVALID_ARGUMENT, "the model has a graph already");
    place.reset(graph);
  });
}

void ReleaseValueInfo(OrtValueInfo* info) { delete info; }
void ReleaseNode(OrtNode* node) { delete node; }
void ReleaseGraph(OrtGraph* graph) { delete graph; }
void ReleaseModel(OrtModel* model) { delete model; }

OrtModelEditorApi made_model_editor_table() {
  OrtModelEditorApi table{};
  table.CreateTensorTypeInfo = CreateTensorTypeInfo;
  table.CreateSparseTensorTypeInfo = CreateSparseTensorTypeInfo;
  table.CreateMapTypeInfo = CreateMapTypeInfo;
  table.CreateSequenceTypeInfo = CreateSequenceTypeInfo;
  table.CreateOptionalTypeInfo = CreateOptionalTypeInfo;
  table.CreateValueInfo = CreateValueInfo;
  table.CreateNode = CreateNode;
  table.CreateGraph = CreateGraph;
  table.SetGraphInputs = SetGraphInputs;
  table.SetGraphOutputs = SetGraphOutputs;
  table.AddInitializerToGraph = AddInitializerToGraph;
  table.AddNodeToGraph = AddNodeToGraph;
  table.CreateModel = CreateModel;
  table.AddGraphToModel = AddGraphToModel;
  add_model_editor_sessions(table);
  return table;
}

const OrtModelEditorApi* GetModelEditorApi() {
  static const OrtModelEditorApi table = made_model_editor_table();
  return &table;
}

}  // namespace

void add_model_editor(OrtApi& table) {
  table.GetModelEditorApi = GetModelEditorApi;
  table.ReleaseValueInfo = ReleaseValueInfo;
  table.ReleaseNode = ReleaseNode;
  table.ReleaseGraph = ReleaseGraph;
  table.ReleaseModel = ReleaseModel;
  table.GetValueInfoName = GetValueInfoName;
  table.GetValueInfoTypeInfo = GetValueInfoTypeInfo;
}

}  // namespace sardonyx::ort_api
