// What outputs are called in an .npz file.
#pragma once

#include <span>
#include <string>
#include <vector>

#include "sardonyx/session.h"

namespace sardonyx {

// The names of the outputs' arrays, as write_output_npz describes them.
std::vector<std::string> npz_names(std::span<const ValueDescription> outputs);

}  // namespace sardonyx
