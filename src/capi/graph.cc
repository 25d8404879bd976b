// Looking at models: graphs, nodes, attributes, tensors, types and functions.
#include "sardonyx/graph.h"

#include "capi/views.h"

namespace sardonyx::capi {

void refuse_index(size_t index, size_t count, const char* what) {
  fail(ErrorCode::bad_input, "there is no {} {} of {}", what, index, count);
}

}  // namespace sardonyx::capi

using namespace sardonyx;
using namespace sardonyx::capi;

namespace {

GraphView of(sardonyx_graph given) { return viewed<GraphView>(given, "graph"); }
NodeView of(sardonyx_node given) { return viewed<NodeView>(given, "node"); }
AttributeView of(sardonyx_attribute given) { return viewed<AttributeView>(given, "attribute"); }
TensorView of(sardonyx_stored_tensor given) { return viewed<TensorView>(given, "tensor"); }
SparseTensorView of(sardonyx_stored_sparse given) {
  return viewed<SparseTensorView>(given, "tensor");
}
ValueInfoView of(sardonyx_declared_value given) { return viewed<ValueInfoView>(given, "value"); }
TypeView of(sardonyx_declared_type given) { return viewed<TypeView>(given, "type"); }
FunctionView of(sardonyx_function given) { return viewed<FunctionView>(given, "function"); }

// Writes item `index` of a list of views.
template <class Borrowed, class List>
void give_item(const List& list, size_t index, const char* what, Borrowed* to,
               const char* argument) {
  required(to, argument) = borrowed<Borrowed>(item_of(list, index, what));
}

// Writes what was found by name.
template <class Borrowed, class View>
void give_found(const std::optional<View>& found, const char* name, const char* what, Borrowed* to,
                const char* argument) {
  required(to, argument);
  if (!found) fail(ErrorCode::bad_input, "there is no {} '{}'", what, name);
  *to = borrowed<Borrowed>(*found);
}

template <class View>
void give_text(const View& view, sardonyx_bytes** to) {
  give_bytes(to, [&] { return view.to_string(); });
}

// Of a list, or with index 0 what is no list.
template <class Item, class List>
auto single_or_item(const AttributeView& attribute, AttributeType single, size_t index,
                    const Item& item, const List& list) {
  if (attribute.type() == single) {
    if (index > 0) refuse_index(index, 1, "item");
    return item();
  }
  return item_of(list(), index, "item");
}

// Strings as views of them, none of which is copied.
struct StringList {
  std::span<const std::string> strings;
  size_t size() const { return strings.size(); }
  std::string_view operator[](size_t i) const { return strings[i]; }
};

size_t count_of(const AttributeView& attribute) {
  switch (attribute.type()) {
    case AttributeType::floats: return attribute.floats().size();
    case AttributeType::ints: return attribute.ints().size();
    case AttributeType::strings: return attribute.strings().size();
    case AttributeType::tensors: return attribute.tensors().size();
    case AttributeType::graphs: return attribute.graphs().size();
    case AttributeType::sparse_tensors: return attribute.sparse_tensors().size();
    case AttributeType::type_protos: return attribute.type_protos().size();
    default: return 1;
  }
}

sardonyx_kind kind_of(TypeView::Kind kind) {
  switch (kind) {
    case TypeView::Kind::none: return SARDONYX_NONE;
    case TypeView::Kind::tensor: return SARDONYX_TENSOR;
    case TypeView::Kind::sequence: return SARDONYX_SEQUENCE;
    case TypeView::Kind::map: return SARDONYX_MAP;
    case TypeView::Kind::sparse_tensor: return SARDONYX_SPARSE_TENSOR;
    case TypeView::Kind::optional: return SARDONYX_OPTIONAL;
    case TypeView::Kind::opaque: return SARDONYX_OPAQUE;
  }
  return SARDONYX_NONE;
}

}  // namespace

sardonyx_status* sardonyx_model_graph(const sardonyx_model* model, sardonyx_graph* graph) {
  return guarded([&] {
    const Model& given = required(model, "model").model;
    required(graph, "graph") = borrowed<sardonyx_graph>(given.graph());
  });
}

sardonyx_status* sardonyx_model_function(const sardonyx_model* model, size_t index,
                                         sardonyx_function* function) {
  return guarded([&] {
    const Model& given = required(model, "model").model;
    give_item(given.functions(), index, "function", function, "function");
  });
}

sardonyx_status* sardonyx_model_visit_nodes(const sardonyx_model* model,
                                            sardonyx_visit_function visit, void* user) {
  return guarded([&] {
    const Model& given = required(model, "model").model;
    if (visit == nullptr) refuse_null("visit");
    given.for_each_node([&](const NodePlace& place, const NodeView& node) {
      const sardonyx_node_place told{sizeof(sardonyx_node_place), place.graph.c_str(), place.index,
                                     place.depth};
      return visit(&told, borrowed<sardonyx_node>(node), user) != 0;
    });
  });
}

sardonyx_status* sardonyx_graph_describe(sardonyx_graph graph, sardonyx_graph_info* info) {
  return guarded([&] {
    const GraphView given = of(graph);
    sardonyx_graph_info made{};
    made.name = text(given.name());
    made.doc_string = text(given.doc_string());
    made.node_count = given.nodes().size();
    made.input_count = given.inputs().size();
    made.output_count = given.outputs().size();
    made.value_info_count = given.value_info().size();
    made.initializer_count = given.initializers().size();
    made.sparse_initializer_count = given.sparse_initializers().size();
    made.annotation_count = given.quantization_annotations().size();
    made.metadata_count = given.metadata().size();
    fill(info, "info", made);
  });
}

sardonyx_status* sardonyx_graph_node(sardonyx_graph graph, size_t index, sardonyx_node* node) {
  return guarded([&] { give_item(of(graph).nodes(), index, "node", node, "node"); });
}

sardonyx_status* sardonyx_graph_input(sardonyx_graph graph, size_t index,
                                      sardonyx_declared_value* input) {
  return guarded([&] { give_item(of(graph).inputs(), index, "input", input, "input"); });
}

sardonyx_status* sardonyx_graph_output(sardonyx_graph graph, size_t index,
                                       sardonyx_declared_value* output) {
  return guarded([&] { give_item(of(graph).outputs(), index, "output", output, "output"); });
}

sardonyx_status* sardonyx_graph_value_info(sardonyx_graph graph, size_t index,
                                           sardonyx_declared_value* value) {
  return guarded([&] { give_item(of(graph).value_info(), index, "value_info", value, "value"); });
}

sardonyx_status* sardonyx_graph_initializer(sardonyx_graph graph, size_t index,
                                            sardonyx_stored_tensor* tensor) {
  return guarded(
      [&] { give_item(of(graph).initializers(), index, "initializer", tensor, "tensor"); });
}

sardonyx_status* sardonyx_graph_sparse_initializer(sardonyx_graph graph, size_t index,
                                                   sardonyx_stored_sparse* tensor) {
  return guarded([&] {
    give_item(of(graph).sparse_initializers(), index, "sparse initializer", tensor, "tensor");
  });
}

sardonyx_status* sardonyx_graph_find_input(sardonyx_graph graph, const char* name,
                                           sardonyx_declared_value* input) {
  return guarded(
      [&] { give_found(of(graph).input(&required(name, "name")), name, "input", input, "input"); });
}

sardonyx_status* sardonyx_graph_find_output(sardonyx_graph graph, const char* name,
                                            sardonyx_declared_value* output) {
  return guarded([&] {
    give_found(of(graph).output(&required(name, "name")), name, "output", output, "output");
  });
}

sardonyx_status* sardonyx_graph_find_initializer(sardonyx_graph graph, const char* name,
                                                 sardonyx_stored_tensor* tensor) {
  return guarded([&] {
    give_found(of(graph).initializer(&required(name, "name")), name, "initializer", tensor,
               "tensor");
  });
}

sardonyx_status* sardonyx_graph_metadata(sardonyx_graph graph, size_t index, const char** key,
                                         const char** value) {
  return guarded([&] { give_entry(of(graph).metadata(), index, "metadata", key, value); });
}

sardonyx_status* sardonyx_graph_annotation(sardonyx_graph graph, size_t index,
                                           const char** tensor_name, size_t* parameter_count) {
  return guarded([&] {
    const TensorAnnotationView found =
        item_of(of(graph).quantization_annotations(), index, "annotation");
    if (tensor_name != nullptr) *tensor_name = text(found.tensor_name());
    if (parameter_count != nullptr) *parameter_count = found.quantization_parameters().size();
  });
}

sardonyx_status* sardonyx_graph_annotation_parameter(sardonyx_graph graph, size_t index,
                                                     size_t parameter, const char** key,
                                                     const char** value) {
  return guarded([&] {
    give_entry(item_of(of(graph).quantization_annotations(), index, "annotation")
                   .quantization_parameters(),
               parameter, "parameter", key, value);
  });
}

sardonyx_status* sardonyx_node_describe(sardonyx_node node, sardonyx_node_info* info) {
  return guarded([&] {
    const NodeView given = of(node);
    sardonyx_node_info made{};
    made.op_type = text(given.op_type());
    made.domain = text(given.domain());
    made.overload = text(given.overload());
    made.name = text(given.name());
    made.doc_string = text(given.doc_string());
    made.input_count = given.inputs().size();
    made.output_count = given.outputs().size();
    made.attribute_count = given.attributes().size();
    made.metadata_count = given.metadata().size();
    fill(info, "info", made);
  });
}

sardonyx_status* sardonyx_node_input(sardonyx_node node, size_t index, const char** name) {
  return guarded([&] { give_name(of(node).inputs(), index, "input", name); });
}

sardonyx_status* sardonyx_node_output(sardonyx_node node, size_t index, const char** name) {
  return guarded([&] { give_name(of(node).outputs(), index, "output", name); });
}

sardonyx_status* sardonyx_node_attribute(sardonyx_node node, size_t index,
                                         sardonyx_attribute* attribute) {
  return guarded(
      [&] { give_item(of(node).attributes(), index, "attribute", attribute, "attribute"); });
}

sardonyx_status* sardonyx_node_find_attribute(sardonyx_node node, const char* name,
                                              sardonyx_attribute* attribute) {
  return guarded([&] {
    give_found(of(node).attribute(&required(name, "name")), name, "attribute", attribute,
               "attribute");
  });
}

sardonyx_status* sardonyx_node_metadata(sardonyx_node node, size_t index, const char** key,
                                        const char** value) {
  return guarded([&] { give_entry(of(node).metadata(), index, "metadata", key, value); });
}

sardonyx_status* sardonyx_node_text(sardonyx_node node, sardonyx_bytes** text) {
  return guarded([&] { give_text(of(node), text); });
}

const char* sardonyx_attribute_type_name(sardonyx_attribute_type type) {
  return name_of(static_cast<AttributeType>(type)).data();
}

sardonyx_status* sardonyx_attribute_describe(sardonyx_attribute attribute,
                                             sardonyx_attribute_info* info) {
  return guarded([&] {
    const AttributeView given = of(attribute);
    sardonyx_attribute_info made{};
    made.name = text(given.name());
    made.type = static_cast<sardonyx_attribute_type>(given.type());
    made.count = given.reference().empty() ? count_of(given) : 0;
    made.doc_string = text(given.doc_string());
    made.reference = text(given.reference());
    fill(info, "info", made);
  });
}

sardonyx_status* sardonyx_attribute_float(sardonyx_attribute attribute, float* value) {
  return guarded([&] { required(value, "value") = of(attribute).float_value(); });
}

sardonyx_status* sardonyx_attribute_int(sardonyx_attribute attribute, int64_t* value) {
  return guarded([&] { required(value, "value") = of(attribute).int_value(); });
}

sardonyx_status* sardonyx_attribute_floats(sardonyx_attribute attribute, const float** values,
                                           size_t* count) {
  return guarded([&] {
    required(values, "values"), required(count, "count");
    const std::span<const float> found = of(attribute).floats();
    *values = found.data();
    *count = found.size();
  });
}

sardonyx_status* sardonyx_attribute_ints(sardonyx_attribute attribute, const int64_t** values,
                                         size_t* count) {
  return guarded([&] {
    required(values, "values"), required(count, "count");
    const std::span<const int64_t> found = of(attribute).ints();
    *values = found.data();
    *count = found.size();
  });
}

sardonyx_status* sardonyx_attribute_string(sardonyx_attribute attribute, size_t index,
                                           const char** text, size_t* length) {
  return guarded([&] {
    const AttributeView given = of(attribute);
    required(text, "text");
    const std::string_view found = single_or_item(
        given, AttributeType::string, index, [&] { return given.string_value(); },
        [&] { return StringList{given.strings()}; });
    *text = capi::text(found);
    if (length != nullptr) *length = found.size();
  });
}

sardonyx_status* sardonyx_attribute_tensor(sardonyx_attribute attribute, size_t index,
                                           sardonyx_stored_tensor* tensor) {
  return guarded([&] {
    const AttributeView given = of(attribute);
    required(tensor, "tensor") = borrowed<sardonyx_stored_tensor>(single_or_item(
        given, AttributeType::tensor, index, [&] { return given.tensor(); },
        [&] { return given.tensors(); }));
  });
}

sardonyx_status* sardonyx_attribute_sparse(sardonyx_attribute attribute, size_t index,
                                           sardonyx_stored_sparse* tensor) {
  return guarded([&] {
    const AttributeView given = of(attribute);
    required(tensor, "tensor") = borrowed<sardonyx_stored_sparse>(single_or_item(
        given, AttributeType::sparse_tensor, index, [&] { return given.sparse_tensor(); },
        [&] { return given.sparse_tensors(); }));
  });
}

sardonyx_status* sardonyx_attribute_graph(sardonyx_attribute attribute, size_t index,
                                          sardonyx_graph* graph) {
  return guarded([&] {
    const AttributeView given = of(attribute);
    required(graph, "graph") = borrowed<sardonyx_graph>(single_or_item(
        given, AttributeType::graph, index, [&] { return given.graph(); },
        [&] { return given.graphs(); }));
  });
}

sardonyx_status* sardonyx_attribute_type_proto(sardonyx_attribute attribute, size_t index,
                                               sardonyx_declared_type* type) {
  return guarded([&] {
    const AttributeView given = of(attribute);
    required(type, "type") = borrowed<sardonyx_declared_type>(single_or_item(
        given, AttributeType::type_proto, index, [&] { return given.type_proto(); },
        [&] { return given.type_protos(); }));
  });
}

sardonyx_status* sardonyx_attribute_text(sardonyx_attribute attribute, sardonyx_bytes** text) {
  return guarded([&] { give_text(of(attribute), text); });
}

sardonyx_status* sardonyx_declared_value_describe(sardonyx_declared_value value,
                                                  sardonyx_declared_value_info* info) {
  return guarded([&] {
    const ValueInfoView given = of(value);
    sardonyx_declared_value_info made{};
    made.name = text(given.name());
    made.doc_string = text(given.doc_string());
    if (const auto type = given.type()) made.type = borrowed<sardonyx_declared_type>(*type);
    made.metadata_count = given.metadata().size();
    fill(info, "info", made);
  });
}

sardonyx_status* sardonyx_declared_value_metadata(sardonyx_declared_value value, size_t index,
                                                  const char** key, const char** text) {
  return guarded([&] { give_entry(of(value).metadata(), index, "metadata", key, text); });
}

sardonyx_status* sardonyx_declared_type_describe(sardonyx_declared_type type,
                                                 sardonyx_declared_type_info* info) {
  return guarded([&] {
    const TypeView given = of(type);
    sardonyx_declared_type_info made{};
    made.kind = kind_of(given.kind());
    made.element_type = static_cast<sardonyx_element_type>(given.element_type());
    made.has_shape = given.has_shape() ? 1 : 0;
    made.rank = given.has_shape() ? given.shape().size() : 0;
    made.denotation = text(given.denotation());
    if (const auto nested = given.nested()) made.nested = borrowed<sardonyx_declared_type>(*nested);
    fill(info, "info", made);
  });
}

sardonyx_status* sardonyx_declared_type_dimension(sardonyx_declared_type type, size_t axis,
                                                  int64_t* number, const char** name,
                                                  const char** denotation) {
  return guarded([&] {
    const TypeView given = of(type);
    const DimensionView found =
        item_of(given.has_shape() ? given.shape() : ViewList<DimensionView>(), axis, "dimension");
    if (number != nullptr) *number = found.size().value_or(-1);
    if (name != nullptr) *name = text(found.name());
    if (denotation != nullptr) *denotation = text(found.denotation());
  });
}

sardonyx_status* sardonyx_declared_type_text(sardonyx_declared_type type, sardonyx_bytes** text) {
  return guarded([&] { give_text(of(type), text); });
}

sardonyx_status* sardonyx_stored_tensor_describe(sardonyx_stored_tensor tensor,
                                                 sardonyx_stored_tensor_info* info) {
  return guarded([&] {
    const TensorView given = of(tensor);
    sardonyx_stored_tensor_info made{};
    made.name = text(given.name());
    made.element_type = static_cast<sardonyx_element_type>(given.element_type());
    made.rank = given.shape().size();
    made.dims = given.shape().data();
    made.doc_string = text(given.doc_string());
    made.is_external = given.is_external() ? 1 : 0;
    made.external_count = given.external_data().size();
    made.metadata_count = given.metadata().size();
    fill(info, "info", made);
  });
}

sardonyx_status* sardonyx_stored_tensor_metadata(sardonyx_stored_tensor tensor, size_t index,
                                                 const char** key, const char** value) {
  return guarded([&] { give_entry(of(tensor).metadata(), index, "metadata", key, value); });
}

sardonyx_status* sardonyx_stored_tensor_external(sardonyx_stored_tensor tensor, size_t index,
                                                 const char** key, const char** value) {
  return guarded([&] { give_entry(of(tensor).external_data(), index, "entry", key, value); });
}

sardonyx_status* sardonyx_stored_tensor_value(sardonyx_stored_tensor tensor,
                                              sardonyx_value** value) {
  return guarded([&] { required(value, "value"), *value = new_value(of(tensor).tensor()); });
}

sardonyx_status* sardonyx_stored_sparse_describe(sardonyx_stored_sparse tensor, const char** name,
                                                 size_t* rank, const int64_t** dims) {
  return guarded([&] {
    const SparseTensorView given = of(tensor);
    if (name != nullptr) *name = text(given.name());
    if (rank != nullptr) *rank = given.shape().size();
    if (dims != nullptr) *dims = given.shape().data();
  });
}

sardonyx_status* sardonyx_stored_sparse_parts(sardonyx_stored_sparse tensor,
                                              sardonyx_stored_tensor* values,
                                              sardonyx_stored_tensor* indices) {
  return guarded([&] {
    const SparseTensorView given = of(tensor);
    if (values != nullptr) *values = borrowed<sardonyx_stored_tensor>(given.values());
    if (indices != nullptr) *indices = borrowed<sardonyx_stored_tensor>(given.indices());
  });
}

sardonyx_status* sardonyx_stored_sparse_value(sardonyx_stored_sparse tensor,
                                              sardonyx_value** value) {
  return guarded([&] { required(value, "value"), *value = new_value(of(tensor).tensor()); });
}

sardonyx_status* sardonyx_function_describe(sardonyx_function function,
                                            sardonyx_function_info* info) {
  return guarded([&] {
    const FunctionView given = of(function);
    sardonyx_function_info made{};
    made.name = text(given.name());
    made.domain = text(given.domain());
    made.overload = text(given.overload());
    made.doc_string = text(given.doc_string());
    made.input_count = given.inputs().size();
    made.output_count = given.outputs().size();
    made.attribute_count = given.attributes().size();
    made.default_count = given.attribute_defaults().size();
    made.node_count = given.nodes().size();
    made.opset_count = given.opset_imports().size();
    made.value_info_count = given.value_info().size();
    made.metadata_count = given.metadata().size();
    fill(info, "info", made);
  });
}

sardonyx_status* sardonyx_function_input(sardonyx_function function, size_t index,
                                         const char** name) {
  return guarded([&] { give_name(of(function).inputs(), index, "input", name); });
}

sardonyx_status* sardonyx_function_output(sardonyx_function function, size_t index,
                                          const char** name) {
  return guarded([&] { give_name(of(function).outputs(), index, "output", name); });
}

sardonyx_status* sardonyx_function_attribute(sardonyx_function function, size_t index,
                                             const char** name) {
  return guarded([&] { give_name(of(function).attributes(), index, "attribute", name); });
}

sardonyx_status* sardonyx_function_default(sardonyx_function function, size_t index,
                                           sardonyx_attribute* attribute) {
  return guarded([&] {
    give_item(of(function).attribute_defaults(), index, "default", attribute, "attribute");
  });
}

sardonyx_status* sardonyx_function_node(sardonyx_function function, size_t index,
                                        sardonyx_node* node) {
  return guarded([&] { give_item(of(function).nodes(), index, "node", node, "node"); });
}

sardonyx_status* sardonyx_function_opset(sardonyx_function function, size_t index,
                                         const char** domain, int64_t* version) {
  return guarded([&] {
    required(domain, "domain"), required(version, "version");
    const OpsetImportView found = item_of(of(function).opset_imports(), index, "import");
    *domain = text(found.domain());
    *version = found.version();
  });
}

sardonyx_status* sardonyx_function_value_info(sardonyx_function function, size_t index,
                                              sardonyx_declared_value* value) {
  return guarded(
      [&] { give_item(of(function).value_info(), index, "value_info", value, "value"); });
}

sardonyx_status* sardonyx_function_metadata(sardonyx_function function, size_t index,
                                            const char** key, const char** value) {
  return guarded([&] { give_entry(of(function).metadata(), index, "metadata", key, value); });
}
