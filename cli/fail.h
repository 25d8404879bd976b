// Throwing an Error with a formatted message.
#pragma once

#include <fmt/format.h>

#include <utility>

#include "sardonyx/error.h"

namespace sardonyx::cli {

template <class... Args>
[[noreturn]] void fail(ErrorCode code, fmt::format_string<Args...> format, Args&&... args) {
  throw Error(code, fmt::format(format, std::forward<Args>(args)...));
}

template <class... Args>
[[noreturn]] void fail_at(std::string location, ErrorCode code, fmt::format_string<Args...> format,
                          Args&&... args) {
  throw Error(code, fmt::format(format, std::forward<Args>(args)...), std::move(location));
}

}  // namespace sardonyx::cli
