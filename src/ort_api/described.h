// How a session's inputs and outputs are described to callers.
#pragma once

#include <vector>

#include "ort_api/handles.h"

namespace sardonyx::ort_api {

// Fills the lists of inputs, defaults and outputs, and the indices by name.
void describe(OrtSession& session, const std::map<std::string, int64_t, std::less<>>& sizes);

}  // namespace sardonyx::ort_api
