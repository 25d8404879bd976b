// What the readable forms know of fields beyond their names and C++ types. Internal to wire.
#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>

namespace sardonyx::wire {

// Strings that are declared as bytes; they need not be UTF-8.
constexpr bool holds_bytes(std::string_view field) {
  return field == "s" || field == "strings" || field == "string_data" || field == "raw_data";
}

// The words of a field that is an enumeration, by number; empty for plain numbers.
inline std::span<const std::string_view> words_of(std::string_view field) {
  static constexpr std::array<std::string_view, 15> kinds = {
      "UNDEFINED",      "FLOAT",      "INT",        "STRING",  "TENSOR", "GRAPH",
      "FLOATS",         "INTS",       "STRINGS",    "TENSORS", "GRAPHS", "SPARSE_TENSOR",
      "SPARSE_TENSORS", "TYPE_PROTO", "TYPE_PROTOS"};
  static constexpr std::array<std::string_view, 2> locations = {"DEFAULT", "EXTERNAL"};
  static constexpr std::array<std::string_view, 2> statuses = {"EXPERIMENTAL", "STABLE"};
  if (field == "type") return kinds;
  if (field == "data_location") return locations;
  if (field == "status") return statuses;
  return {};
}

inline std::optional<int64_t> number_of_word(std::string_view field, std::string_view word) {
  const auto words = words_of(field);
  for (size_t i = 0; i < words.size(); ++i) {
    if (words[i] == word) return static_cast<int64_t>(i);
  }
  return std::nullopt;
}

// "opset_import" -> "opsetImport".
inline std::string camel_case(std::string_view name) {
  std::string camel;
  bool raise = false;
  for (const char c : name) {
    if (c == '_') {
      raise = true;
    } else {
      camel += raise && c >= 'a' && c <= 'z' ? static_cast<char>(c - 32) : c;
      raise = false;
    }
  }
  return camel;
}

}  // namespace sardonyx::wire
