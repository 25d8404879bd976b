// Between the specification's TensorProto and tensors.
#pragma once

#include <string>

#include "ir/model.h"
#include "sardonyx/value.h"

namespace sardonyx::ir {

// The elements a TensorProto holds itself (not external: wire/external.h resolves those first).
// Data that lies aligned in a mapped file is not copied: the tensor keeps the file mapped. Throws
// Error (invalid_model) where shape, element type and stored data disagree.
Tensor to_tensor(const TensorProto& proto);

// With raw_data (strings: string_data); shares the tensor's memory.
TensorProto to_proto(const Tensor& tensor, std::string name = {});

}  // namespace sardonyx::ir
