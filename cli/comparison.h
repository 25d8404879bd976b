// How a comparison of two runs is told.
#pragma once

#include <nlohmann/json.hpp>
#include <string>

#include "sardonyx/compare_runs.h"

namespace sardonyx::cli {

// "120 values, 2 differ; the first that does: 'conv1'", and a few lines for each of the first
// `most` that differ.
std::string comparison_text(const RunComparison& comparison, size_t most);

nlohmann::ordered_json to_json(const RunComparison& comparison);

}  // namespace sardonyx::cli
