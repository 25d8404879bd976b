// The checker on a model file.
#pragma once

#include <string>
#include <vector>

#include "check/check.h"

namespace sardonyx {

// Throws Error as read_model_file does. External data is not read.
std::vector<check::Diagnostic> check_model_file(const std::string& path,
                                                const check::Options& options);

}  // namespace sardonyx
