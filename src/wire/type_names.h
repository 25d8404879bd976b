// Element types by the names that other languages and libraries have for them.
#pragma once

#include <string_view>

namespace sardonyx::wire {

// The standard's name of a type that is called so elsewhere: "float" for "float32", "int64" for
// "int". Empty for the standard's own names, and for what is no type anywhere.
std::string_view type_meant_by(std::string_view name);

}  // namespace sardonyx::wire
