// TensorProto <-> Tensor.
#pragma once

#include <string>

#include "ir/model.h"
#include "sardonyx/value.h"

namespace sardonyx::wire {

class ExternalData;

// The elements of a TensorProto, whatever field or file holds them. A view of the proto's bytes
// (or of the mapped external file) where they are stored raw and aligned for the element type;
// a copy otherwise. Booleans come out as 0 or 1. `external` may be null: external data is then an
// error. Throws Error (invalid_model) where sizes, fields and element type do not fit together,
// (unsupported) for segments, and what ExternalData throws.
Tensor to_tensor(const ir::TensorProto& proto, ExternalData* external = nullptr);

// The elements in raw_data (strings in string_data), sharing the tensor's memory.
ir::TensorProto to_proto(const Tensor& tensor, std::string name = {});

SparseTensor to_sparse_tensor(const ir::SparseTensorProto& proto, ExternalData* external = nullptr);
ir::SparseTensorProto to_proto(const SparseTensor& sparse, std::string name = {});

}  // namespace sardonyx::wire
