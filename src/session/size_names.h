// Sizes that a user gives by name: of the model's names, "batch", and of places that the model
// leaves open, "image.2" for dimension 2 of input 'image'.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <span>
#include <string>

namespace sardonyx {

using DimSizes = std::map<std::string, int64_t, std::less<>>;

// Throws Error (bad_input) where a name is none of these: with the names there are, and what may
// have been meant.
void refuse_unknown_sizes(const DimSizes& sizes, std::span<const std::string> names);

}  // namespace sardonyx
