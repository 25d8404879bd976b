// Numbers as strings and back, as Cast has them.
#pragma once

#include <optional>
#include <string>
#include <string_view>

#include "sardonyx/element_type.h"

namespace sardonyx::ops {

// The shortest text that reads back as the same number of its own type: "0.1", "3.0", "1e+20",
// "nan", "-inf". Scientific from 1e16 on and below 1e-4.
std::string text_of(float value);
std::string text_of(double value);
// The same for a number that has so many significant bits (11 for float16, 8 for bfloat16).
std::string text_of_narrow(float value, int significant_bits);

// Decimal or scientific notation, surrounding blanks allowed; inf, +inf, -inf and nan in any letter
// case. nullopt for anything else.
std::optional<double> parse_double(std::string_view text);
std::optional<float> parse_float(std::string_view text);
// A whole number exactly, else a decimal one cut off towards zero and held to the range.
std::optional<int64_t> parse_int64(std::string_view text);
std::optional<uint64_t> parse_uint64(std::string_view text);

}  // namespace sardonyx::ops
