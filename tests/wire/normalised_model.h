// What the text says of a model, as bytes: all but what docs/text_syntax.md lists as not said.
#pragma once

#include <cmath>
#include <cstring>
#include <limits>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "base/checked.h"
#include "ir/model.h"
#include "sardonyx/error.h"
#include "wire/tensor.h"
#include "wire/write.h"

namespace sardonyx::wire_test {

// NaNs keep their sign in text, and no more.
template <class T>
void quieten(Bytes& bytes) {
  if (bytes.size() == 0) return;
  Bytes copy = Bytes::copy_of(bytes.span());
  for (size_t at = 0; at + sizeof(T) <= copy.size(); at += sizeof(T)) {
    T value;
    std::memcpy(&value, copy.data() + at, sizeof value);
    if (!std::isnan(value)) continue;
    value = std::copysign(std::numeric_limits<T>::quiet_NaN(), value);
    std::memcpy(copy.mutable_data() + at, &value, sizeof value);
  }
  bytes = std::move(copy);
}

inline void quieten(std::vector<float>& values) {
  for (float& value : values) {
    if (std::isnan(value)) value = std::copysign(std::numeric_limits<float>::quiet_NaN(), value);
  }
}

// Moves what one field has from a tensor to another.
template <class T>
void move_field(T ir::TensorProto::*field, ir::TensorProto& from, ir::TensorProto& to) {
  to.*field = std::exchange(from.*field, {});
}

// Moves to `to` the field that counts: raw_data where there is some, else that of the type.
inline void move_elements(ir::TensorProto& from, ir::TensorProto& to) {
  using T = ir::TensorProto;
  to.data_type = from.data_type;
  to.has_raw_data = !from.raw_data.empty();
  from.has_raw_data = false;
  if (to.has_raw_data) return move_field(&T::raw_data, from, to);
  switch (from.element_type()) {
    case ElementType::float32:
    case ElementType::complex64: return move_field(&T::float_data, from, to);
    case ElementType::float64:
    case ElementType::complex128: return move_field(&T::double_data, from, to);
    case ElementType::int64: return move_field(&T::int64_data, from, to);
    case ElementType::uint32:
    case ElementType::uint64: return move_field(&T::uint64_data, from, to);
    case ElementType::string: return move_field(&T::string_data, from, to);
    default: return move_field(&T::int32_data, from, to);
  }
}

inline bool is_complex(ElementType type) {
  return type == ElementType::complex64 || type == ElementType::complex128;
}

// How many elements the tensor has, whatever its shape says; for those of whole bytes.
inline int64_t held_elements(const ir::TensorProto& tensor, int bits) {
  if (tensor.has_raw_data) {
    const auto width = static_cast<size_t>(bits / 8);
    return tensor.raw_data.size() % width == 0
               ? static_cast<int64_t>(tensor.raw_data.size() / width)
               : -1;
  }
  const bool complex = is_complex(tensor.element_type());
  const size_t numbers = tensor.float_data.size() / 4 + tensor.double_data.size() / 8 +
                         tensor.int32_data.size() + tensor.int64_data.size() +
                         tensor.uint64_data.size();
  return complex && numbers % 2 != 0 ? -1 : static_cast<int64_t>(numbers / (complex ? 2 : 1));
}

// Brings the elements to raw_data, where they are elements of the type. What other fields hold
// stays as it is.
inline void normalise(ir::TensorProto& tensor) {
  tensor.unknown = {};
  if (tensor.segment) tensor.segment->unknown = {};
  for (ir::StringEntry& entry : tensor.external_data) entry.unknown = {};
  for (ir::StringEntry& entry : tensor.metadata_props) entry.unknown = {};
  quieten<float>(tensor.float_data);
  quieten<double>(tensor.double_data);
  if (tensor.raw_data.empty()) tensor.has_raw_data = false;
  const ElementType type = tensor.element_type();
  const int bits = is_known(type) ? bit_width(type) : 0;
  if (bits == 0) return;
  ir::TensorProto rest = tensor, elements;
  move_elements(rest, elements);
  elements.dims = tensor.dims;
  if (bits >= 8) elements.dims = {held_elements(elements, bits)};
  if (elements.dims == std::vector<int64_t>{0}) return;
  try {
    elements = wire::to_proto(wire::to_tensor(elements));
  } catch (const Error&) {
    return;
  }
  if (type == ElementType::float32 || type == ElementType::complex64)
    quieten<float>(elements.raw_data);
  if (type == ElementType::float64 || type == ElementType::complex128)
    quieten<double>(elements.raw_data);
  const size_t used =
      bits < 8 ? static_cast<size_t>(checked_count(tensor.dims).value() * bits % 8) : 0;
  if (used != 0) {  // the bits behind the last element say nothing
    Bytes masked = Bytes::copy_of(elements.raw_data.span());
    masked.mutable_data()[masked.size() - 1] &= static_cast<std::byte>((1 << used) - 1);
    elements.raw_data = std::move(masked);
  }
  rest.has_raw_data = true;
  rest.raw_data = elements.raw_data;
  tensor = std::move(rest);
}

inline void normalise(ir::SparseTensorProto& sparse) {
  sparse.unknown = {};
  normalise(sparse.values);
  normalise(sparse.indices);
}

inline void normalise(ir::TypeProto& type);
inline void normalise(ir::Graph& graph);

template <class T>
void normalise_shared(std::shared_ptr<const T>& shared) {
  if (!shared) return;
  auto copy = std::make_shared<T>(*shared);
  normalise(*copy);
  shared = std::move(copy);
}

inline void normalise(std::vector<ir::StringEntry>& entries) {
  for (ir::StringEntry& entry : entries) entry.unknown = {};
}

inline void normalise(ir::TypeProto& type) {
  type.unknown = {};
  type.inner_unknown = {};
  if (type.shape) {
    type.shape->unknown = {};
    for (ir::Dimension& dim : type.shape->dims) dim.unknown = {};
  }
  normalise_shared(type.nested);
}

inline void normalise(ir::ValueInfo& info) {
  info.unknown = {};
  normalise(info.metadata_props);
  if (info.type) normalise(*info.type);
}

// Of an attribute the text says the value of its kind.
inline void normalise(ir::Attribute& attribute) {
  ir::Attribute one;
  one.name = attribute.name;
  one.doc_string = attribute.doc_string;
  one.kind = attribute.kind;
  one.ref_attr_name = attribute.ref_attr_name;
  const auto keep = [&](auto field) { one.*field = attribute.*field; };
  using A = ir::Attribute;
  if (one.ref_attr_name.empty()) {
    switch (attribute.effective_kind()) {
      case ir::AttributeKind::float_: one.f = attribute.f.value_or(0); break;
      case ir::AttributeKind::int_: one.i = attribute.i.value_or(0); break;
      case ir::AttributeKind::string: one.s = attribute.s.value_or(""); break;
      case ir::AttributeKind::tensor: keep(&A::t); break;
      case ir::AttributeKind::graph: keep(&A::g); break;
      case ir::AttributeKind::floats: keep(&A::floats); break;
      case ir::AttributeKind::ints: keep(&A::ints); break;
      case ir::AttributeKind::strings: keep(&A::strings); break;
      case ir::AttributeKind::tensors: keep(&A::tensors); break;
      case ir::AttributeKind::graphs: keep(&A::graphs); break;
      case ir::AttributeKind::sparse_tensor: keep(&A::sparse_tensor); break;
      case ir::AttributeKind::sparse_tensors: keep(&A::sparse_tensors); break;
      case ir::AttributeKind::type_proto: keep(&A::tp); break;
      case ir::AttributeKind::type_protos: keep(&A::type_protos); break;
      default: break;
    }
  }
  if (one.f && std::isnan(*one.f))
    one.f = std::copysign(std::numeric_limits<float>::quiet_NaN(), *one.f);
  quieten(one.floats);
  normalise_shared(one.t);
  normalise_shared(one.sparse_tensor);
  normalise_shared(one.tp);
  normalise_shared(one.g);
  for (auto& graph : one.graphs) normalise_shared(graph);
  for (auto& tensor : one.tensors) normalise_shared(tensor);
  for (auto& tensor : one.sparse_tensors) normalise_shared(tensor);
  for (auto& type : one.type_protos) normalise_shared(type);
  attribute = std::move(one);
}

inline void normalise(std::vector<ir::Node>& nodes) {
  for (ir::Node& node : nodes) {
    node.unknown = {};
    normalise(node.metadata_props);
    for (ir::NodeDeviceConfiguration& configuration : node.device_configurations) {
      configuration.unknown = {};
      for (ir::ShardingSpec& spec : configuration.sharding_spec) {
        spec.unknown = {};
        for (ir::IntIntListEntry& entry : spec.index_to_device_group_map) entry.unknown = {};
        for (ir::ShardedDim& dim : spec.sharded_dim) {
          dim.unknown = {};
          for (ir::SimpleShardedDim& simple : dim.simple_sharding) simple.unknown = {};
        }
      }
    }
    for (ir::Attribute& attribute : node.attributes) normalise(attribute);
  }
}

inline void normalise(ir::Graph& graph) {
  graph.unknown = {};
  normalise(graph.metadata_props);
  normalise(graph.nodes);
  for (ir::ValueInfo& info : graph.inputs) normalise(info);
  for (ir::ValueInfo& info : graph.outputs) normalise(info);
  for (ir::ValueInfo& info : graph.value_info) normalise(info);
  for (ir::TensorProto& tensor : graph.initializers) normalise(tensor);
  for (ir::SparseTensorProto& tensor : graph.sparse_initializers) normalise(tensor);
  for (ir::TensorAnnotation& annotation : graph.quantization_annotation) {
    annotation.unknown = {};
    normalise(annotation.quant_parameter_tensor_names);
  }
}

inline std::string normalised_bytes(ir::Model model) {
  model.unknown = {};
  normalise(model.metadata_props);
  for (ir::OperatorSetId& import : model.opset_imports) import.unknown = {};
  if (model.graph) normalise(*model.graph);
  for (ir::Function& function : model.functions) {
    function.unknown = {};
    normalise(function.metadata_props);
    for (ir::OperatorSetId& import : function.opset_imports) import.unknown = {};
    for (ir::Attribute& attribute : function.attribute_protos) normalise(attribute);
    for (ir::ValueInfo& info : function.value_info) normalise(info);
    normalise(function.nodes);
  }
  for (ir::TrainingInfo& info : model.training_info) {
    info.unknown = {};
    if (info.initialization) normalise(*info.initialization);
    if (info.algorithm) normalise(*info.algorithm);
    normalise(info.initialization_binding);
    normalise(info.update_binding);
  }
  for (ir::DeviceConfiguration& configuration : model.configuration) configuration.unknown = {};
  return wire::write_model(model);
}

}  // namespace sardonyx::wire_test
