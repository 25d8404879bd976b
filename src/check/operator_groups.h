// Operators that rules treat alike.
#pragma once

#include <algorithm>
#include <array>
#include <string_view>

namespace sardonyx::check {

template <size_t N>
bool is_one_of(std::string_view text, const std::array<std::string_view, N>& choices) {
  return std::ranges::find(choices, text) != choices.end();
}

// The output has the axes of all inputs, aligned from the last one.
inline constexpr auto broadcasting = std::to_array<std::string_view>(
    {"Add",        "And",         "BitShift", "BitwiseAnd", "BitwiseOr",
     "BitwiseXor", "Div",         "Equal",    "Greater",    "GreaterOrEqual",
     "Less",       "LessOrEqual", "Max",      "Mean",       "Min",
     "Mod",        "Mul",         "Or",       "Pow",        "PRelu",
     "Sub",        "Sum",         "Where",    "Xor"});

}  // namespace sardonyx::check
