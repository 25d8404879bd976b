// The field table of every message: which number holds which member, in the order of the numbers.
// The one place that knows them; reading, measuring and writing are visitors of these functions.
//
// A visitor offers field(number, name, member) for what the member's C++ type says, and
//   packed   a list of numbers that is declared packed
//   fixed    packed 4- or 8-byte numbers kept as bytes
//   raw      bytes with a flag for their presence
//   flagged  a number with a flag for its presence
//   either   two members of which the last one read counts (a oneof)
//   choice   an embedded message whose members live in the enclosing struct (a oneof of messages)
//   unknown  comes last: what no other call took
// They are compiled into their callers: a reader that knows the number of its field goes to the one
// member that has it.
#pragma once

#include <concepts>
#include <type_traits>

#include "ir/model.h"
#include "ir/operator_set.h"
#include "wire/data_messages.h"

namespace sardonyx::wire {

template <class M, class Message>
concept Like = std::same_as<std::remove_const_t<M>, Message>;

template <class V, Like<ir::StringEntry> M>
[[gnu::always_inline]] inline void fields(V& v, M& m) {
  v.field(1, "key", m.key);
  v.field(2, "value", m.value);
  v.unknown(m.unknown);
}

template <class V, Like<ir::Segment> M>
[[gnu::always_inline]] inline void fields(V& v, M& m) {
  v.field(1, "begin", m.begin);
  v.field(2, "end", m.end);
  v.unknown(m.unknown);
}

template <class V, Like<ir::TensorProto> M>
[[gnu::always_inline]] inline void fields(V& v, M& m) {
  v.field(1, "dims", m.dims);
  v.field(2, "data_type", m.data_type);
  v.field(3, "segment", m.segment);
  v.fixed(4, "float_data", m.float_data, 4);
  v.packed(5, "int32_data", m.int32_data);
  v.field(6, "string_data", m.string_data);
  v.packed(7, "int64_data", m.int64_data);
  v.field(8, "name", m.name);
  v.raw(9, "raw_data", m.has_raw_data, m.raw_data);
  v.fixed(10, "double_data", m.double_data, 8);
  v.packed(11, "uint64_data", m.uint64_data);
  v.field(12, "doc_string", m.doc_string);
  v.field(13, "external_data", m.external_data);
  v.field(14, "data_location", m.data_location);
  v.field(16, "metadata_props", m.metadata_props);
  v.unknown(m.unknown);
}

template <class V, Like<ir::SparseTensorProto> M>
[[gnu::always_inline]] inline void fields(V& v, M& m) {
  v.field(1, "values", m.values);
  v.field(2, "indices", m.indices);
  v.field(3, "dims", m.dims);
  v.unknown(m.unknown);
}

template <class V, Like<ir::Dimension> M>
[[gnu::always_inline]] inline void fields(V& v, M& m) {
  v.either(1, "dim_value", m.value, 2, "dim_param", m.param);
  v.field(3, "denotation", m.denotation);
  v.unknown(m.unknown);
}

template <class V, Like<ir::TensorShape> M>
[[gnu::always_inline]] inline void fields(V& v, M& m) {
  v.field(1, "dim", m.dims);
  v.unknown(m.unknown);
}

template <class V, Like<ir::TypeProto> M>
[[gnu::always_inline]] inline void fields(V& v, M& m) {
  using Kind = ir::TypeProto::Kind;
  const auto tensor = [&m](auto& inner) {
    inner.field(1, "elem_type", m.elem_type);
    inner.field(2, "shape", m.shape);
    inner.unknown(m.inner_unknown);
  };
  const auto container = [&m](auto& inner) {
    inner.field(1, "elem_type", m.nested);
    inner.unknown(m.inner_unknown);
  };
  v.choice(1, "tensor_type", m, Kind::tensor, tensor);
  v.choice(4, "sequence_type", m, Kind::sequence, container);
  v.choice(5, "map_type", m, Kind::map, [&m](auto& inner) {
    inner.field(1, "key_type", m.elem_type);
    inner.field(2, "value_type", m.nested);
    inner.unknown(m.inner_unknown);
  });
  v.field(6, "denotation", m.denotation);
  v.choice(7, "opaque_type", m, Kind::opaque, [&m](auto& inner) {
    inner.field(1, "domain", m.opaque_domain);
    inner.field(2, "name", m.opaque_name);
    inner.unknown(m.inner_unknown);
  });
  v.choice(8, "sparse_tensor_type", m, Kind::sparse_tensor, tensor);
  v.choice(9, "optional_type", m, Kind::optional, container);
  v.unknown(m.unknown);
}

template <class V, Like<ir::ValueInfo> M>
[[gnu::always_inline]] inline void fields(V& v, M& m) {
  v.field(1, "name", m.name);
  v.field(2, "type", m.type);
  v.field(3, "doc_string", m.doc_string);
  v.field(4, "metadata_props", m.metadata_props);
  v.unknown(m.unknown);
}

template <class V, Like<ir::Attribute> M>
[[gnu::always_inline]] inline void fields(V& v, M& m) {
  v.field(1, "name", m.name);
  v.field(2, "f", m.f);
  v.field(3, "i", m.i);
  v.field(4, "s", m.s);
  v.field(5, "t", m.t);
  v.field(6, "g", m.g);
  v.field(7, "floats", m.floats);
  v.field(8, "ints", m.ints);
  v.field(9, "strings", m.strings);
  v.field(10, "tensors", m.tensors);
  v.field(11, "graphs", m.graphs);
  v.field(13, "doc_string", m.doc_string);
  v.field(14, "tp", m.tp);
  v.field(15, "type_protos", m.type_protos);
  v.field(20, "type", m.kind);
  v.field(21, "ref_attr_name", m.ref_attr_name);
  v.field(22, "sparse_tensor", m.sparse_tensor);
  v.field(23, "sparse_tensors", m.sparse_tensors);
  v.unknown(m.unknown);
}

template <class V, Like<ir::IntIntListEntry> M>
[[gnu::always_inline]] inline void fields(V& v, M& m) {
  v.field(1, "key", m.key);
  v.field(2, "value", m.value);
  v.unknown(m.unknown);
}

template <class V, Like<ir::SimpleShardedDim> M>
[[gnu::always_inline]] inline void fields(V& v, M& m) {
  v.either(1, "dim_value", m.dim_value, 2, "dim_param", m.dim_param);
  v.field(3, "num_shards", m.num_shards);
  v.unknown(m.unknown);
}

template <class V, Like<ir::ShardedDim> M>
[[gnu::always_inline]] inline void fields(V& v, M& m) {
  v.field(1, "axis", m.axis);
  v.field(2, "simple_sharding", m.simple_sharding);
  v.unknown(m.unknown);
}

template <class V, Like<ir::ShardingSpec> M>
[[gnu::always_inline]] inline void fields(V& v, M& m) {
  v.field(1, "tensor_name", m.tensor_name);
  v.field(2, "device", m.device);
  v.field(3, "index_to_device_group_map", m.index_to_device_group_map);
  v.field(4, "sharded_dim", m.sharded_dim);
  v.unknown(m.unknown);
}

template <class V, Like<ir::NodeDeviceConfiguration> M>
[[gnu::always_inline]] inline void fields(V& v, M& m) {
  v.field(1, "configuration_id", m.configuration_id);
  v.field(2, "sharding_spec", m.sharding_spec);
  v.flagged(3, "pipeline_stage", m.has_pipeline_stage, m.pipeline_stage);
  v.unknown(m.unknown);
}

template <class V, Like<ir::Node> M>
[[gnu::always_inline]] inline void fields(V& v, M& m) {
  v.field(1, "input", m.inputs);
  v.field(2, "output", m.outputs);
  v.field(3, "name", m.name);
  v.field(4, "op_type", m.op_type);
  v.field(5, "attribute", m.attributes);
  v.field(6, "doc_string", m.doc_string);
  v.field(7, "domain", m.domain);
  v.field(8, "overload", m.overload);
  v.field(9, "metadata_props", m.metadata_props);
  v.field(10, "device_configurations", m.device_configurations);
  v.unknown(m.unknown);
}

template <class V, Like<ir::TensorAnnotation> M>
[[gnu::always_inline]] inline void fields(V& v, M& m) {
  v.field(1, "tensor_name", m.tensor_name);
  v.field(2, "quant_parameter_tensor_names", m.quant_parameter_tensor_names);
  v.unknown(m.unknown);
}

template <class V, Like<ir::Graph> M>
[[gnu::always_inline]] inline void fields(V& v, M& m) {
  v.field(1, "node", m.nodes);
  v.field(2, "name", m.name);
  v.field(5, "initializer", m.initializers);
  v.field(10, "doc_string", m.doc_string);
  v.field(11, "input", m.inputs);
  v.field(12, "output", m.outputs);
  v.field(13, "value_info", m.value_info);
  v.field(14, "quantization_annotation", m.quantization_annotation);
  v.field(15, "sparse_initializer", m.sparse_initializers);
  v.field(16, "metadata_props", m.metadata_props);
  v.unknown(m.unknown);
}

template <class V, Like<ir::OperatorSetId> M>
[[gnu::always_inline]] inline void fields(V& v, M& m) {
  v.field(1, "domain", m.domain);
  v.field(2, "version", m.version);
  v.unknown(m.unknown);
}

template <class V, Like<ir::Function> M>
[[gnu::always_inline]] inline void fields(V& v, M& m) {
  v.field(1, "name", m.name);
  v.field(2, "since_version", m.since_version);
  v.field(3, "status", m.status);
  v.field(4, "input", m.inputs);
  v.field(5, "output", m.outputs);
  v.field(6, "attribute", m.attributes);
  v.field(7, "node", m.nodes);
  v.field(8, "doc_string", m.doc_string);
  v.field(9, "opset_import", m.opset_imports);
  v.field(10, "domain", m.domain);
  v.field(11, "attribute_proto", m.attribute_protos);
  v.field(12, "value_info", m.value_info);
  v.field(13, "overload", m.overload);
  v.field(14, "metadata_props", m.metadata_props);
  v.unknown(m.unknown);
}

template <class V, Like<ir::TrainingInfo> M>
[[gnu::always_inline]] inline void fields(V& v, M& m) {
  v.field(1, "initialization", m.initialization);
  v.field(2, "algorithm", m.algorithm);
  v.field(3, "initialization_binding", m.initialization_binding);
  v.field(4, "update_binding", m.update_binding);
  v.unknown(m.unknown);
}

template <class V, Like<ir::DeviceConfiguration> M>
[[gnu::always_inline]] inline void fields(V& v, M& m) {
  v.field(1, "name", m.name);
  v.field(2, "num_devices", m.num_devices);
  v.field(3, "device", m.device);
  v.unknown(m.unknown);
}

template <class V, Like<ir::Model> M>
[[gnu::always_inline]] inline void fields(V& v, M& m) {
  v.field(1, "ir_version", m.ir_version);
  v.field(2, "producer_name", m.producer_name);
  v.field(3, "producer_version", m.producer_version);
  v.field(4, "domain", m.domain);
  v.field(5, "model_version", m.model_version);
  v.field(6, "doc_string", m.doc_string);
  v.field(7, "graph", m.graph);
  v.field(8, "opset_import", m.opset_imports);
  v.field(14, "metadata_props", m.metadata_props);
  v.field(20, "training_info", m.training_info);
  v.field(25, "functions", m.functions);
  v.field(26, "configuration", m.configuration);
  v.unknown(m.unknown);
}

template <class V, Like<ir::OperatorDefinition> M>
[[gnu::always_inline]] inline void fields(V& v, M& m) {
  v.field(1, "op_type", m.op_type);
  v.field(2, "since_version", m.since_version);
  v.field(3, "status", m.status);
  v.field(10, "doc_string", m.doc_string);
  v.unknown(m.unknown);
}

template <class V, Like<ir::OperatorSet> M>
[[gnu::always_inline]] inline void fields(V& v, M& m) {
  v.field(1, "magic", m.magic);
  v.field(2, "ir_version", m.ir_version);
  v.field(3, "ir_version_prerelease", m.ir_version_prerelease);
  v.field(4, "domain", m.domain);
  v.field(5, "opset_version", m.opset_version);
  v.field(6, "doc_string", m.doc_string);
  v.field(7, "ir_build_metadata", m.ir_build_metadata);
  v.field(8, "operator", m.operators);
  v.field(9, "functions", m.functions);
  v.unknown(m.unknown);
}

template <class V, Like<SequenceProto> M>
[[gnu::always_inline]] inline void fields(V& v, M& m) {
  v.field(1, "name", m.name);
  v.field(2, "elem_type", m.elem_type);
  v.field(3, "tensor_values", m.tensor_values);
  v.field(4, "sparse_tensor_values", m.sparse_tensor_values);
  v.field(5, "sequence_values", m.sequence_values);
  v.field(6, "map_values", m.map_values);
  v.field(7, "optional_values", m.optional_values);
  v.unknown(m.unknown);
}

template <class V, Like<MapProto> M>
[[gnu::always_inline]] inline void fields(V& v, M& m) {
  v.field(1, "name", m.name);
  v.field(2, "key_type", m.key_type);
  v.field(3, "keys", m.keys);
  v.field(4, "string_keys", m.string_keys);
  v.field(5, "values", m.values);
  v.unknown(m.unknown);
}

template <class V, Like<OptionalProto> M>
[[gnu::always_inline]] inline void fields(V& v, M& m) {
  v.field(1, "name", m.name);
  v.field(2, "elem_type", m.elem_type);
  v.field(3, "tensor_value", m.tensor_value);
  v.field(4, "sparse_tensor_value", m.sparse_tensor_value);
  v.field(5, "sequence_value", m.sequence_value);
  v.field(6, "map_value", m.map_value);
  v.field(7, "optional_value", m.optional_value);
  v.unknown(m.unknown);
}

}  // namespace sardonyx::wire
