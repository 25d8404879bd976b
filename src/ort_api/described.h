// How a session's inputs and outputs are described to callers.
#pragma once

#include <map>
#include <string>
#include <vector>

#include "ort_api/handles.h"

namespace sardonyx::ort_api {

// Sizes that the model's inputs leave open and a session's options set, by name.
using OpenSizes = std::map<std::string, int64_t, std::less<>>;

// Fills the lists of inputs, defaults and outputs, and the indices by name.
void describe(OrtSession& session, const OpenSizes& sizes);

}  // namespace sardonyx::ort_api
