// The windows of internal convolutions and pools.
#pragma once

#include "ops/internal/fields.h"
#include "ops/shared/window.h"

namespace sardonyx::ops::internal {

template <>
struct EnumNames<Window::AutoPad> {
  using enum Window::AutoPad;
  static constexpr std::pair<std::string_view, Window::AutoPad> list[] = {
      {"NOTSET", none},
      {"SAME_UPPER", same_upper},
      {"SAME_LOWER", same_lower},
      {"VALID", valid},
  };
};

inline Window pool_window() {
  Window window;
  window.kind = WindowKind::pool;
  return window;
}

// The fields of `window`, named as the standard names them.
template <class Visit, class... Windows>
void window_fields(Visit&& visit, Windows&... window) {
  visit("auto_pad", window.auto_pad...);
  visit("kernel_shape", window.kernel...);
  visit("strides", window.strides...);
  visit("dilations", window.dilations...);
  visit("pads", window.pads...);
}

}  // namespace sardonyx::ops::internal
