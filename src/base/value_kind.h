// Kinds of values in messages.
#pragma once

#include <fmt/format.h>

#include <string>

#include "sardonyx/value.h"

namespace sardonyx {

// "a sequence", "an optional".
inline std::string with_article(Value::Kind kind) {
  return fmt::format("{} {}", kind == Value::Kind::optional ? "an" : "a", name_of(kind));
}

}  // namespace sardonyx
