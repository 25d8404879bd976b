// A node's inputs held against its signature.
#pragma once

#include "ops/infer_context.h"

namespace sardonyx::infer {

// Throws Error (invalid_model) where the node has more or fewer inputs and outputs than the
// signature, or inputs of types that it does not allow: kernels read them as it says.
void check_signature(const ops::InferContext& context, const schema::Signature& signature);

}  // namespace sardonyx::infer
