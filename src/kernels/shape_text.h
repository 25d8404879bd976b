// A shape in an error message.
#pragma once

#include <cstdint>
#include <span>
#include <string>

namespace sardonyx::kernels {

// "[2, 3, 4]".
std::string shape_text(std::span<const int64_t> shape);

}  // namespace sardonyx::kernels
