// Between the specification's TensorProto and tensors.
#pragma once

#include <cstdint>
#include <functional>
#include <string>

#include "ir/model.h"
#include "sardonyx/value.h"

namespace sardonyx::ir {

// The bytes of a tensor whose data_location is external: at least `needed` of them.
using ExternalBytes = std::function<Bytes(const TensorProto& proto, uint64_t needed)>;

// The elements of a TensorProto, whatever field or file holds them. A view of the proto's bytes
// (or of the external file) where they are stored raw and either aligned for the element type or
// larger than 64 KiB; a copy otherwise. So a large tensor from a file may lie unaligned: whoever
// packs it reads with unaligned loads, and what runs on it copies it first (aligned). Booleans
// come out as 0 or 1. Without `external`, external data is an error. Throws Error (invalid_model)
// where sizes, fields and element type do not fit together, (unsupported) for segments, and what
// `external` throws.
Tensor to_tensor(const TensorProto& proto, const ExternalBytes& external = {});

// Whether to_tensor views such bytes where they lie. Booleans can be copied all the same.
bool is_viewed(ElementType type, const Bytes& bytes);

// The same elements at an address that fits their type: the tensor itself, or a copy.
Tensor aligned(const Tensor& tensor);
// The same of all tensors that a value holds, at any depth.
Value aligned(const Value& value);
// The same with copies of tensors whose memory nobody owns.
Value owned(const Value& value);
// The same with copies of tensors whose elements lie in the memory of `tensor`.
Value apart_from(const Tensor& tensor, const Value& value);

// Whether elements of the one, or of any tensor that the value holds, lie in memory of the other.
bool overlap(const Tensor& a, const Tensor& b);
bool overlap(const Tensor& tensor, const Value& value);

// The elements in raw_data (strings in string_data), sharing the tensor's memory.
TensorProto to_proto(const Tensor& tensor, std::string name = {});

SparseTensor to_sparse_tensor(const SparseTensorProto& proto, const ExternalBytes& external = {});
SparseTensorProto to_proto(const SparseTensor& sparse, std::string name = {});

}  // namespace sardonyx::ir
