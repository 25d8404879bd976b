// Values and names as text for people and for JSON. All functions may be called from any thread.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>

#include "sardonyx/value.h"

#pragma GCC visibility push(default)  // what a shared library gives to others

namespace sardonyx {

// The text with control characters and broken UTF-8 escaped: names come from files of strangers.
std::string printable(std::string_view text);
// The same for a message: lines that begin with four blanks, as excerpts of a text do, stay lines.
std::string printable_message(std::string_view text);

// "float[1,10]", "seq(float[2])"; "none" for an absent value.
std::string type_text(const Value& value);

// The first elements: "1, 2.5, 3, …"; of sequences and maps their first items.
std::string preview(const Value& value, size_t count);

// The whole value as JSON: nested lists of a tensor, a list of a sequence, an object of a map. NaN
// and the infinities are the strings "NaN", "Infinity" and "-Infinity"; complex numbers are pairs.
// What nests deeper than 32 is null.
std::string to_json(const Value& value);

// The elements of a tensor, or the items at the top of other kinds.
int64_t element_count(const Value& value);

}  // namespace sardonyx

#pragma GCC visibility pop
