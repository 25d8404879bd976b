// How a session's inputs and outputs are described to callers.
#pragma once

#include <cstddef>

#include "ort_api/handles.h"

namespace sardonyx::ort_api {

// Fills the lists of inputs, defaults and outputs, and the indices by name.
void describe(OrtSession& session);

// The type of an output; the first call may infer those of all. Any number of threads may ask.
const OrtTypeInfo& output_type(const OrtSession& session, size_t index);

}  // namespace sardonyx::ort_api
