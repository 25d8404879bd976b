// The messages of the standard's data files (onnx-data.proto), which hold values, not models.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "ir/model.h"

namespace sardonyx::wire {

// Numbered as SequenceProto.DataType and OptionalProto.DataType, which agree.
enum class DataKind : int32_t {
  undefined = 0,
  tensor = 1,
  sparse_tensor = 2,
  sequence = 3,
  map = 4,
  optional = 5
};

struct MapProto;
struct OptionalProto;

struct SequenceProto {
  std::string name;
  int32_t elem_type = 0;  // a DataKind number
  std::vector<ir::TensorProto> tensor_values;
  std::vector<ir::SparseTensorProto> sparse_tensor_values;
  std::vector<SequenceProto> sequence_values;
  std::vector<MapProto> map_values;
  std::vector<OptionalProto> optional_values;
  ir::UnknownFields unknown;
};

struct MapProto {
  std::string name;
  int32_t key_type = 0;  // an ElementType number
  std::vector<int64_t> keys;
  std::vector<std::string> string_keys;
  std::shared_ptr<const SequenceProto> values;
  ir::UnknownFields unknown;
};

struct OptionalProto {
  std::string name;
  int32_t elem_type = 0;  // a DataKind number
  std::shared_ptr<const ir::TensorProto> tensor_value;
  std::shared_ptr<const ir::SparseTensorProto> sparse_tensor_value;
  std::shared_ptr<const SequenceProto> sequence_value;
  std::shared_ptr<const MapProto> map_value;
  std::shared_ptr<const OptionalProto> optional_value;
  ir::UnknownFields unknown;
};

}  // namespace sardonyx::wire
