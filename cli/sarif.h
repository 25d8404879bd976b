// Findings in the static analysis results interchange format, for continuous integration.
#pragma once

#include <nlohmann/json.hpp>
#include <vector>

#include "checked_file.h"
#include "failure.h"

namespace sardonyx::cli {

// A SARIF 2.1.0 log of one run on these files. Those that could not be checked are told by
// notifications of its invocation.
nlohmann::ordered_json sarif_log(const std::vector<CheckedFile>& files, int exit_code);

// The log of a run that failed before it looked at any file.
nlohmann::ordered_json sarif_log(const Failure& failure);

}  // namespace sardonyx::cli
