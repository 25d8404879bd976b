#include "ops/shared/window.h"
#include "ops/objections.h"

#include <algorithm>
#include <limits>
#include <string>
#include <string_view>

namespace sardonyx::ops {
namespace {

constexpr int64_t largest = std::numeric_limits<int32_t>::max();

void check_list(const NodeView& node, std::string_view name, std::span<const int64_t> list,
                int64_t least) {
  for (const int64_t value : list) {
    if (value < least || value > largest) {
      node.fail("every entry of '{}' must be in [{}, {}]; got {}", name, least, largest, value);
    }
  }
}

std::vector<int64_t> read_list(const NodeView& node, std::string_view name) {
  return node.attr_ints(name).value_or(std::vector<int64_t>());
}

Window::AutoPad read_auto_pad(const NodeView& node) {
  const std::string word = node.attr_string("auto_pad", "NOTSET");
  if (word == "NOTSET" || word.empty()) return Window::AutoPad::none;
  if (word == "SAME_UPPER") return Window::AutoPad::same_upper;
  if (word == "SAME_LOWER") return Window::AutoPad::same_lower;
  if (word == "VALID") return Window::AutoPad::valid;
  node.fail("auto_pad must be NOTSET, SAME_UPPER, SAME_LOWER or VALID; got '{}'", word);
}

bool is_same(Window::AutoPad pad) {
  return pad == Window::AutoPad::same_upper || pad == Window::AutoPad::same_lower;
}

}  // namespace

Window read_window(const NodeView& node, WindowKind kind) {
  Window window;
  window.kind = kind;
  window.auto_pad = read_auto_pad(node);
  window.ceil_mode = node.attr_int("ceil_mode", 0) != 0;
  window.kernel = read_list(node, "kernel_shape");
  window.strides = read_list(node, "strides");
  window.dilations = read_list(node, "dilations");
  window.pads = read_list(node, "pads");
  check_window(node, window);
  if (window.auto_pad != Window::AutoPad::none) window.pads.clear();
  return window;
}

void check_window(const NodeView& node, const Window& window) {
  check_list(node, "kernel_shape", window.kernel, 1);
  check_list(node, "strides", window.strides, 1);
  check_list(node, "dilations", window.dilations, 1);
  check_list(node, "pads", window.pads, window.kind == WindowKind::convolution ? -largest : 0);
  if (window.pads.size() % 2 != 0) {
    node.fail("'pads' must have an even number of entries; got {}", window.pads.size());
  }
}

std::optional<Dims> channels_first(std::optional<Dims> shape, bool nhwc) {
  if (shape && shape->size() > 2 && nhwc) {
    std::rotate(shape->begin() + 1, shape->end() - 1, shape->end());
  }
  return shape;
}

Dims in_layout(Dims shape, bool nhwc) {
  if (shape.size() > 2 && nhwc) {
    std::rotate(shape.begin() + 1, shape.begin() + 2, shape.end());
  }
  return shape;
}

void check_window_rank(const NodeView& node, const Window& window, int64_t rank) {
  const auto check = [&](const std::vector<int64_t>& list, std::string_view name, int64_t each) {
    if (!list.empty() && static_cast<int64_t>(list.size()) != each * rank) {
      node.fail("'{}' must have {} entries for {} spatial axes; got {}", name, each * rank, rank,
                list.size());
    }
  };
  check(window.kernel, "kernel_shape", 1);
  check(window.strides, "strides", 1);
  check(window.dilations, "dilations", 1);
  check(window.pads, "pads", 2);
}

void object_to_window(const InferContext& ctx, const Window& window, const Dims* weights) {
  if (!wants_objections()) return;
  for (size_t i = 2; weights != nullptr && i < weights->size(); ++i) {
    if ((*weights)[i] == 0) return object(ctx, "the sizes of a kernel must be positive; got 0");
  }
  for (const int64_t pad : read_list(ctx, "pads")) {
    if (pad < 0) return object(ctx, "pads must not be negative; got {}", pad);
    if (pad > 0 && window.auto_pad != Window::AutoPad::none)
      return object(ctx, "auto_pad and pads exclude each other; keep one");
  }
}

Dim window_output(const Window& window, size_t axis, const Dim& in, const Dim& kernel) {
  const Dim stride = window.stride(axis);
  if (is_same(window.auto_pad)) return ceil_div(in, stride);
  const Dim extent = (kernel - 1) * Dim(window.dilation(axis)) + 1;
  const Dim span = in + Dim(window.pad_begin(axis)) + Dim(window.pad_end(axis)) - extent;
  Dim out = (window.ceil_mode ? ceil_div(span, stride) : floor_div(span, stride)) + 1;
  // No window begins in the padding at the end.
  if (window.ceil_mode) out = min(out, ceil_div(in + Dim(window.pad_begin(axis)), stride));
  const auto low = span.lower();
  if (low && *low >= (window.ceil_mode ? 1 - 2 * window.stride(axis) : -window.stride(axis))) {
    return out;
  }
  return max(out, 0);
}

WindowAxis window_axis(const Window& window, size_t axis, int64_t in, int64_t out, int64_t kernel) {
  WindowAxis result{in,
                    out,
                    kernel,
                    window.stride(axis),
                    window.dilation(axis),
                    window.pad_begin(axis),
                    window.pad_end(axis)};
  if (is_same(window.auto_pad)) {
    const int64_t extent = (kernel - 1) * result.dilation + 1;
    // Below zero where windows leave gaps: pools crop on both sides, less at the begin.
    int64_t total = (out - 1) * result.stride + extent - in;
    if (window.kind == WindowKind::convolution) total = std::max<int64_t>(0, total);
    const int64_t less = total / 2;
    const bool begin_less = total < 0 || window.auto_pad == Window::AutoPad::same_upper;
    result.pad_begin = begin_less ? less : total - less;
    result.pad_end = begin_less ? total - less : less;
  }
  return result;
}

}  // namespace sardonyx::ops
