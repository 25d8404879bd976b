// Constants of a file that shapes are made of.
#pragma once

#include <optional>

#include "ops/infer_context.h"

namespace sardonyx::ops {

// Whether a tensor is nothing but the bytes that its type and dims take.
bool is_plain(const ir::TensorProto& tensor);

// Type and elements of a number or a list of int64 with up to max_known_elements, read from the
// file's bytes without a tensor of their own; nullopt for other tensors, sound or not.
std::optional<Known> small_integers(const ir::TensorProto& tensor);

}  // namespace sardonyx::ops
