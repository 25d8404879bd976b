// Findings in the static analysis results interchange format, for continuous integration.
#pragma once

#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "session/check_file.h"

namespace sardonyx::cli {

// A SARIF 2.1.0 log of one run on one file.
nlohmann::ordered_json sarif_log(const std::string& model,
                                 const std::vector<check::Diagnostic>& findings);

}  // namespace sardonyx::cli
