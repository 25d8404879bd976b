// Values for people: their type, their first elements, their text.
#pragma once

#include <cstddef>
#include <nlohmann/json.hpp>
#include <string>
#include <string_view>

#include "sardonyx/value.h"

namespace sardonyx {

// The text with control characters and broken UTF-8 escaped: names come from files of strangers.
std::string printable(std::string_view text);
// The same for a message: lines that begin with four blanks, as excerpts of a text do, stay lines.
std::string printable_message(std::string_view text);

// "float[1,10]", "seq(float[2])"; "none" for an absent value.
std::string type_text(const Value& value);

// The first elements: "1, 2.5, 3, …"; of sequences and maps their first items.
std::string preview(const Value& value, size_t count);

// The whole value: nested lists of a tensor, a list of a sequence, an object of a map.
nlohmann::json json_from_value(const Value& value);
// The elements of a tensor, or the items at the top of other kinds.
int64_t element_count(const Value& value);

}  // namespace sardonyx
