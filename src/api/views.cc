#include <algorithm>

#include "api/view_maker.h"
#include "base/fail.h"
#include "ir/dimension.h"
#include "ir/tensor.h"
#include "wire/external.h"
#include "wire/tensor.h"
#include "wire/text_print.h"

namespace sardonyx {
namespace {

using Make = ViewMaker;

// The view of the first item of this name.
template <class Items>
auto named(const Items& items, std::string_view name, const std::string* folder)
    -> std::optional<decltype(Make::view(items[0], folder))> {
  for (const auto& item : items) {
    if (item.name == name) return Make::view(item, folder);
  }
  return std::nullopt;
}

}  // namespace

std::string_view EntryView::key() const { return entry_->key; }
std::string_view EntryView::value() const { return entry_->value; }

std::string_view OpsetImportView::domain() const { return import_->domain; }
int64_t OpsetImportView::version() const { return import_->version; }

std::optional<int64_t> DimensionView::size() const { return dimension_->value; }
std::string_view DimensionView::name() const {
  return dimension_->param ? std::string_view(*dimension_->param) : std::string_view();
}
std::string_view DimensionView::denotation() const { return dimension_->denotation; }

TypeView::Kind TypeView::kind() const { return static_cast<Kind>(type_->kind); }
ElementType TypeView::element_type() const { return type_->element_type(); }
bool TypeView::has_shape() const { return type_->shape.has_value(); }
ViewList<DimensionView> TypeView::shape() const {
  return type_->shape ? Make::list<DimensionView>(type_->shape->dims) : ViewList<DimensionView>();
}
std::optional<TypeView> TypeView::nested() const {
  if (!type_->nested) return std::nullopt;
  return Make::view(*type_->nested);
}
std::string_view TypeView::denotation() const { return type_->denotation; }
std::string TypeView::to_string() const { return ir::declared_text(*type_); }

std::string_view ValueInfoView::name() const { return info_->name; }
std::optional<TypeView> ValueInfoView::type() const {
  if (!info_->type) return std::nullopt;
  return Make::view(*info_->type);
}
std::string ValueInfoView::type_text() const {
  return info_->type ? ir::declared_text(*info_->type) : "?";
}
std::string_view ValueInfoView::doc_string() const { return info_->doc_string; }
ViewList<EntryView> ValueInfoView::metadata() const {
  return Make::list<EntryView>(info_->metadata_props);
}

std::string_view TensorView::name() const { return tensor_->name; }
ElementType TensorView::element_type() const { return tensor_->element_type(); }
std::span<const int64_t> TensorView::shape() const { return tensor_->dims; }
std::string_view TensorView::doc_string() const { return tensor_->doc_string; }
ViewList<EntryView> TensorView::metadata() const {
  return Make::list<EntryView>(tensor_->metadata_props);
}
bool TensorView::is_external() const { return tensor_->is_external(); }
ViewList<EntryView> TensorView::external_data() const {
  return Make::list<EntryView>(tensor_->external_data);
}
Tensor TensorView::tensor() const {
  if (!tensor_->is_external()) return ir::aligned(wire::to_tensor(*tensor_));
  wire::ExternalData external(*folder_);
  return ir::aligned(wire::to_tensor(*tensor_, &external));
}

std::string_view SparseTensorView::name() const { return tensor_->values.name; }
std::span<const int64_t> SparseTensorView::shape() const { return tensor_->dims; }
TensorView SparseTensorView::values() const { return Make::view(tensor_->values, folder_); }
TensorView SparseTensorView::indices() const { return Make::view(tensor_->indices, folder_); }
SparseTensor SparseTensorView::tensor() const {
  wire::ExternalData external(*folder_);
  SparseTensor made = wire::to_sparse_tensor(*tensor_, &external);
  made.values = ir::aligned(made.values);
  made.indices = ir::aligned(made.indices);
  return made;
}

std::string_view name_of(AttributeType type) {
  return ir::name_of(static_cast<ir::AttributeKind>(type));
}

std::string_view AttributeView::name() const { return attribute_->name; }
AttributeType AttributeView::type() const {
  return static_cast<AttributeType>(attribute_->effective_kind());
}
std::string_view AttributeView::doc_string() const { return attribute_->doc_string; }
std::string_view AttributeView::reference() const { return attribute_->ref_attr_name; }

// What the file says the type is may not be what it holds.
void AttributeView::require(AttributeType asked) const {
  if (type() == asked && attribute_->ref_attr_name.empty()) return;
  if (!attribute_->ref_attr_name.empty())
    fail(ErrorCode::bad_input, "attribute '{}' has the value of the call's attribute '{}'",
         attribute_->name, attribute_->ref_attr_name);
  fail(ErrorCode::bad_input, "attribute '{}' is of type {}, not {}", attribute_->name,
       name_of(type()), name_of(asked));
}

namespace {

template <class Field>
const auto& held(const Field& field, const ir::Attribute& attribute) {
  if (!field)
    fail(ErrorCode::bad_input, "attribute '{}' holds no value of its type", attribute.name);
  return *field;
}

}  // namespace

float AttributeView::float_value() const {
  require(AttributeType::float_);
  return attribute_->f.value_or(0);
}
int64_t AttributeView::int_value() const {
  require(AttributeType::int_);
  return attribute_->i.value_or(0);
}
std::string_view AttributeView::string_value() const {
  require(AttributeType::string);
  return attribute_->s ? std::string_view(*attribute_->s) : std::string_view();
}
TensorView AttributeView::tensor() const {
  require(AttributeType::tensor);
  return Make::view(held(attribute_->t, *attribute_), folder_);
}
SparseTensorView AttributeView::sparse_tensor() const {
  require(AttributeType::sparse_tensor);
  return Make::view(held(attribute_->sparse_tensor, *attribute_), folder_);
}
GraphView AttributeView::graph() const {
  require(AttributeType::graph);
  return Make::view(held(attribute_->g, *attribute_), folder_);
}
TypeView AttributeView::type_proto() const {
  require(AttributeType::type_proto);
  return Make::view(held(attribute_->tp, *attribute_));
}
std::span<const float> AttributeView::floats() const {
  require(AttributeType::floats);
  return attribute_->floats;
}
std::span<const int64_t> AttributeView::ints() const {
  require(AttributeType::ints);
  return attribute_->ints;
}
std::span<const std::string> AttributeView::strings() const {
  require(AttributeType::strings);
  return attribute_->strings;
}
ViewList<TensorView> AttributeView::tensors() const {
  require(AttributeType::tensors);
  return Make::list<TensorView>(attribute_->tensors, folder_);
}
ViewList<SparseTensorView> AttributeView::sparse_tensors() const {
  require(AttributeType::sparse_tensors);
  return Make::list<SparseTensorView>(attribute_->sparse_tensors, folder_);
}
ViewList<GraphView> AttributeView::graphs() const {
  require(AttributeType::graphs);
  return Make::list<GraphView>(attribute_->graphs, folder_);
}
ViewList<TypeView> AttributeView::type_protos() const {
  require(AttributeType::type_protos);
  return Make::list<TypeView>(attribute_->type_protos);
}
std::string AttributeView::to_string() const { return wire::print(*attribute_); }

std::string_view NodeView::op_type() const { return node_->op_type; }
std::string_view NodeView::domain() const { return node_->domain; }
std::string_view NodeView::overload() const { return node_->overload; }
std::string_view NodeView::name() const { return node_->name; }
std::span<const std::string> NodeView::inputs() const { return node_->inputs; }
std::span<const std::string> NodeView::outputs() const { return node_->outputs; }
ViewList<AttributeView> NodeView::attributes() const {
  return Make::list<AttributeView>(node_->attributes, folder_);
}
std::optional<AttributeView> NodeView::attribute(std::string_view name) const {
  return named(node_->attributes, name, folder_);
}
std::string_view NodeView::doc_string() const { return node_->doc_string; }
ViewList<EntryView> NodeView::metadata() const {
  return Make::list<EntryView>(node_->metadata_props);
}
std::string NodeView::to_string() const { return ir::describe(*node_); }

std::string_view TensorAnnotationView::tensor_name() const { return annotation_->tensor_name; }
ViewList<EntryView> TensorAnnotationView::quantization_parameters() const {
  return Make::list<EntryView>(annotation_->quant_parameter_tensor_names);
}

std::string_view GraphView::name() const { return graph_->name; }
std::string_view GraphView::doc_string() const { return graph_->doc_string; }
ViewList<NodeView> GraphView::nodes() const { return Make::list<NodeView>(graph_->nodes, folder_); }
ViewList<ValueInfoView> GraphView::inputs() const {
  return Make::list<ValueInfoView>(graph_->inputs);
}
ViewList<ValueInfoView> GraphView::outputs() const {
  return Make::list<ValueInfoView>(graph_->outputs);
}
ViewList<ValueInfoView> GraphView::value_info() const {
  return Make::list<ValueInfoView>(graph_->value_info);
}
ViewList<TensorView> GraphView::initializers() const {
  return Make::list<TensorView>(graph_->initializers, folder_);
}
ViewList<SparseTensorView> GraphView::sparse_initializers() const {
  return Make::list<SparseTensorView>(graph_->sparse_initializers, folder_);
}
ViewList<TensorAnnotationView> GraphView::quantization_annotations() const {
  return Make::list<TensorAnnotationView>(graph_->quantization_annotation);
}
ViewList<EntryView> GraphView::metadata() const {
  return Make::list<EntryView>(graph_->metadata_props);
}
std::optional<ValueInfoView> GraphView::input(std::string_view name) const {
  return named(graph_->inputs, name, folder_);
}
std::optional<ValueInfoView> GraphView::output(std::string_view name) const {
  return named(graph_->outputs, name, folder_);
}
std::optional<TensorView> GraphView::initializer(std::string_view name) const {
  return named(graph_->initializers, name, folder_);
}

std::string_view FunctionView::name() const { return function_->name; }
std::string_view FunctionView::domain() const { return function_->domain; }
std::string_view FunctionView::overload() const { return function_->overload; }
std::string_view FunctionView::doc_string() const { return function_->doc_string; }
std::span<const std::string> FunctionView::inputs() const { return function_->inputs; }
std::span<const std::string> FunctionView::outputs() const { return function_->outputs; }
std::span<const std::string> FunctionView::attributes() const { return function_->attributes; }
ViewList<AttributeView> FunctionView::attribute_defaults() const {
  return Make::list<AttributeView>(function_->attribute_protos, folder_);
}
ViewList<NodeView> FunctionView::nodes() const {
  return Make::list<NodeView>(function_->nodes, folder_);
}
ViewList<OpsetImportView> FunctionView::opset_imports() const {
  return Make::list<OpsetImportView>(function_->opset_imports);
}
ViewList<ValueInfoView> FunctionView::value_info() const {
  return Make::list<ValueInfoView>(function_->value_info);
}
ViewList<EntryView> FunctionView::metadata() const {
  return Make::list<EntryView>(function_->metadata_props);
}

}  // namespace sardonyx
