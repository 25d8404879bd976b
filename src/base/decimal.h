// Numbers as decimal text.
#pragma once

#include <cstddef>

namespace sardonyx {

// The most characters that one number of write_floats takes with what stands before it, and how
// far behind its end the memory may be written to.
constexpr size_t float_room = 40;

// Writes `count` floats, which need not be aligned, as text: each has ", " before it, but for the
// very first where `first` is set. A number is the shortest text that reads back as the same value,
// as std::to_chars writes it; NaNs are "nan" and "-nan". There must be room for `count` times
// float_room characters. Returns the end of the text.
char* write_floats(char* to, const void* floats, size_t count, bool first);

}  // namespace sardonyx
