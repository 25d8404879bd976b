// What stands behind objects of the public interface that can be moved.
#pragma once

#include <string_view>

#include "base/fail.h"

namespace sardonyx {

// Throws Error (bad_input) where nothing does: the object, a `what`, has been moved from.
template <class Pointer>
auto& behind(const Pointer& held, std::string_view what) {
  if (!held) [[unlikely]]
    fail(ErrorCode::bad_input, "this {} has been moved from; use the one it went to", what);
  return *held;
}

}  // namespace sardonyx
