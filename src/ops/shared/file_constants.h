// Constants of a file: initializers and those of nodes.
#pragma once

#include <optional>

#include "ops/infer_context.h"

namespace sardonyx::ops {

// What inference of symbolic values knows of a tensor of the file without making one. Of a number
// or a list of int64 with up to max_known_elements: type and elements. Of weights, whose elements
// decide no shape, the type: reading them would touch the file and, where they lie unaligned, copy
// them. Nullopt for others, sound or not; Error (invalid_model) where the dims of weights are
// negative.
std::optional<ValueFacts> known_of_file(const ir::TensorProto& tensor);

// The type that a tensor says it has; Error (invalid_model) where its dims are negative.
ValueType declared_type(const ir::TensorProto& tensor);

}  // namespace sardonyx::ops
