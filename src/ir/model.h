// The specification's messages as structs: what a model file says, nothing added, nothing lost.
// Field names and numbers: docs/format.md; meaning: the standard's IR document.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/bytes.h"
#include "sardonyx/element_type.h"

namespace sardonyx::ir {

// What a message of a file says beyond its struct, so that it is written back as it was read.
struct UnknownFields {
  std::string bytes;              // fields a newer edition may have added; written at the end
  uint32_t written_defaults = 0;  // bit n: field n was written although it holds its default
  bool empty() const { return bytes.empty(); }
};

struct StringEntry {  // StringStringEntryProto
  std::string key;
  std::string value;
  UnknownFields unknown;
};

struct Segment {
  int64_t begin = 0;
  int64_t end = 0;
  UnknownFields unknown;
};

// TensorProto. Large payloads are views of the file (little-endian, as they were read); payloads
// that are varints on the wire are decoded. Which of the fields may be filled is the checker's
// business; wire/tensor.h turns a TensorProto into a Tensor.
struct TensorProto {
  TensorProto();  // not the compiler's, which clears all bytes before it makes the members

  std::string name;
  std::vector<int64_t> dims;
  int32_t data_type = 0;  // an ElementType number, possibly one this version does not know
  std::optional<Segment> segment;
  bool has_raw_data = false;
  Bytes raw_data;
  Bytes float_data;   // 4 bytes an element
  Bytes double_data;  // 8 bytes an element
  std::vector<int32_t> int32_data;
  std::vector<int64_t> int64_data;
  std::vector<uint64_t> uint64_data;
  std::vector<std::string> string_data;
  std::string doc_string;
  std::vector<StringEntry> external_data;
  int32_t data_location = 0;  // 0 default, 1 external
  std::vector<StringEntry> metadata_props;
  UnknownFields unknown;

  ElementType element_type() const { return static_cast<ElementType>(data_type); }
  bool is_external() const { return data_location == 1; }
};

struct SparseTensorProto {
  TensorProto values;
  TensorProto indices;
  std::vector<int64_t> dims;
  UnknownFields unknown;
};

struct Dimension {  // TensorShapeProto.Dimension: a number, a name, or neither
  std::optional<int64_t> value;
  std::optional<std::string> param;
  std::string denotation;
  UnknownFields unknown;
};

struct TensorShape {
  std::vector<Dimension> dims;
  UnknownFields unknown;
};

// TypeProto. `nested` is the element type of a sequence or optional and the value type of a map.
struct TypeProto {
  enum class Kind { none, tensor, sequence, map, sparse_tensor, optional, opaque };
  Kind kind = Kind::none;
  int32_t elem_type = 0;  // tensor, sparse tensor; key type of a map
  std::optional<TensorShape> shape;
  std::shared_ptr<const TypeProto> nested;
  std::string opaque_domain;
  std::string opaque_name;
  std::string denotation;
  UnknownFields unknown;        // of TypeProto
  UnknownFields inner_unknown;  // of the message inside it

  ElementType element_type() const { return static_cast<ElementType>(elem_type); }
};

struct ValueInfo {
  std::string name;
  std::optional<TypeProto> type;
  std::string doc_string;
  std::vector<StringEntry> metadata_props;
  UnknownFields unknown;
};

struct Graph;

// Numbered as AttributeProto.AttributeType.
enum class AttributeKind : int32_t {
  undefined = 0,
  float_ = 1,
  int_ = 2,
  string = 3,
  tensor = 4,
  graph = 5,
  floats = 6,
  ints = 7,
  strings = 8,
  tensors = 9,
  graphs = 10,
  sparse_tensor = 11,
  sparse_tensors = 12,
  type_proto = 13,
  type_protos = 14,
};

struct Attribute {
  Attribute();  // as TensorProto's

  std::string name;
  AttributeKind kind = AttributeKind::undefined;  // as the file says; undefined where it does not
  std::string ref_attr_name;                      // not empty: the value is the function caller's
  std::optional<float> f;
  std::optional<int64_t> i;
  std::optional<std::string> s;
  std::shared_ptr<const TensorProto> t;
  std::shared_ptr<const Graph> g;
  std::shared_ptr<const SparseTensorProto> sparse_tensor;
  std::shared_ptr<const TypeProto> tp;
  std::vector<float> floats;
  std::vector<int64_t> ints;
  std::vector<std::string> strings;
  std::vector<std::shared_ptr<const TensorProto>> tensors;
  std::vector<std::shared_ptr<const Graph>> graphs;
  std::vector<std::shared_ptr<const SparseTensorProto>> sparse_tensors;
  std::vector<std::shared_ptr<const TypeProto>> type_protos;
  std::string doc_string;
  UnknownFields unknown;

  // `kind`, or what the filled field implies for files of IR version 1, which do not say.
  AttributeKind effective_kind() const;
};

struct IntIntListEntry {
  int64_t key = 0;
  std::vector<int64_t> value;
  UnknownFields unknown;
};

struct SimpleShardedDim {
  std::optional<int64_t> dim_value;
  std::optional<std::string> dim_param;
  int64_t num_shards = 0;
  UnknownFields unknown;
};

struct ShardedDim {
  int64_t axis = 0;
  std::vector<SimpleShardedDim> simple_sharding;
  UnknownFields unknown;
};

struct ShardingSpec {
  std::string tensor_name;
  std::vector<int64_t> device;
  std::vector<IntIntListEntry> index_to_device_group_map;
  std::vector<ShardedDim> sharded_dim;
  UnknownFields unknown;
};

struct NodeDeviceConfiguration {
  std::string configuration_id;
  std::vector<ShardingSpec> sharding_spec;
  int32_t pipeline_stage = 0;
  bool has_pipeline_stage = false;
  UnknownFields unknown;
};

// What a node of an operator from outside is bound to; only ops/custom.h looks inside.
struct CustomBinding {
  CustomBinding() = default;
  CustomBinding(const CustomBinding&) = delete;
  CustomBinding& operator=(const CustomBinding&) = delete;
  virtual ~CustomBinding() = default;
};

struct Node {
  std::string op_type;
  std::string domain;  // "" and "ai.onnx" are the same
  std::string overload;
  std::string name;
  std::vector<std::string> inputs;   // "" = absent
  std::vector<std::string> outputs;  // "" = absent
  std::vector<Attribute> attributes;
  std::string doc_string;
  std::vector<StringEntry> metadata_props;
  std::vector<NodeDeviceConfiguration> device_configurations;
  UnknownFields unknown;

  // Set by rewrites, never written (ir/origin.h): where a node came from that is not in the file as
  // such, "in function 'f', called by …"; and the nodes of the model whose work it does where it is
  // not simply one of them, each as source_text() says it.
  std::string origin;
  std::vector<std::string> sources;
  bool is_helper = false;  // it serves a rewrite; no node of the model stands behind it
  // Set by lowering, never written; null for the operators that Sardonyx has itself.
  std::shared_ptr<const CustomBinding> custom;
  // Set by lenient reading, never written: the version of its operator set by which the node is
  // read. 0: the one that is imported.
  int64_t opset = 0;

  const Attribute* find(std::string_view attribute) const;
  Attribute* find(std::string_view attribute);
};

struct TensorAnnotation {
  std::string tensor_name;
  std::vector<StringEntry> quant_parameter_tensor_names;
  UnknownFields unknown;
};

struct Graph {
  std::string name;
  std::vector<Node> nodes;
  std::vector<ValueInfo> inputs;
  std::vector<ValueInfo> outputs;
  std::vector<ValueInfo> value_info;
  std::vector<TensorProto> initializers;
  std::vector<SparseTensorProto> sparse_initializers;
  std::string doc_string;
  std::vector<TensorAnnotation> quantization_annotation;
  std::vector<StringEntry> metadata_props;
  UnknownFields unknown;
};

struct OperatorSetId {
  std::string domain;
  int64_t version = 0;
  UnknownFields unknown;
};

struct Function {
  std::string name;
  std::string domain;
  std::string overload;
  std::vector<std::string> inputs;
  std::vector<std::string> outputs;
  std::vector<std::string> attributes;      // names of attributes without a default
  std::vector<Attribute> attribute_protos;  // attributes with a default
  std::vector<Node> nodes;
  std::vector<OperatorSetId> opset_imports;
  std::vector<ValueInfo> value_info;
  std::string doc_string;
  std::vector<StringEntry> metadata_props;
  std::optional<int64_t> since_version;  // removed in newer editions, kept for round trips
  std::optional<int32_t> status;
  UnknownFields unknown;
};

struct TrainingInfo {
  std::optional<Graph> initialization;
  std::optional<Graph> algorithm;
  std::vector<StringEntry> initialization_binding;
  std::vector<StringEntry> update_binding;
  UnknownFields unknown;
};

struct DeviceConfiguration {
  std::string name;
  int32_t num_devices = 0;
  std::vector<std::string> device;
  UnknownFields unknown;
};

struct Model {
  std::optional<int64_t> ir_version;
  std::vector<OperatorSetId> opset_imports;
  std::string producer_name;
  std::string producer_version;
  std::string domain;
  int64_t model_version = 0;
  std::string doc_string;
  std::optional<Graph> graph;
  std::vector<StringEntry> metadata_props;
  std::vector<TrainingInfo> training_info;
  std::vector<Function> functions;
  std::vector<DeviceConfiguration> configuration;
  UnknownFields unknown;

  // Set by the reader, never written: the file, and the folder external data is confined to.
  std::string path;
  std::string folder;
};

// The version a list of imports binds `domain` to ("" and "ai.onnx" are one); a domain imported
// twice binds to its highest version. 0 where it is not imported.
int64_t imported_version(const std::vector<OperatorSetId>& imports, std::string_view domain);
// The version of its operator set by which a node is read: its own, or else the imported one.
inline int64_t opset_of(const Node& node, const std::vector<OperatorSetId>& imports) {
  return node.opset != 0 ? node.opset : imported_version(imports, node.domain);
}

// "" for "ai.onnx", the domain itself otherwise.
inline std::string_view canonical_domain(std::string_view domain) {
  return domain == "ai.onnx" ? std::string_view() : domain;
}

// "Softmax 'attn/probs'", "Softmax" without a name; with its domain where that is not ai.onnx.
std::string describe(const Node& node);

std::string_view name_of(AttributeKind kind);

}  // namespace sardonyx::ir
