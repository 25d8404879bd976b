// The geometry that convolutions and poolings share: kernel, strides, dilations, pads, auto_pad.
#pragma once

#include <optional>
#include <span>
#include <vector>

#include "ops/infer_context.h"
#include "ops/node_view.h"

namespace sardonyx::ops {

enum class WindowKind { convolution, pool };

// What a node says of its windows. Lists the node leaves out are empty: strides and dilations are
// then 1, pads 0, and the kernel is the weights'.
struct Window {
  enum class AutoPad { none, same_upper, same_lower, valid };
  WindowKind kind = WindowKind::convolution;
  AutoPad auto_pad = AutoPad::none;
  bool ceil_mode = false;
  std::vector<int64_t> kernel;
  std::vector<int64_t> strides;
  std::vector<int64_t> dilations;
  std::vector<int64_t> pads;  // all begins, then all ends

  bool operator==(const Window&) const = default;

  int64_t stride(size_t axis) const { return strides.empty() ? 1 : strides[axis]; }
  int64_t dilation(size_t axis) const { return dilations.empty() ? 1 : dilations[axis]; }
  int64_t pad_begin(size_t axis) const { return pads.empty() ? 0 : pads[axis]; }
  int64_t pad_end(size_t axis) const { return pads.empty() ? 0 : pads[axis + pads.size() / 2]; }
};

// Reads and checks the attributes (kernel_shape, strides, dilations, pads, auto_pad, ceil_mode).
// Negative pads crop; only convolutions allow them. Where strides beyond the kernel make those of
// SAME_UPPER and SAME_LOWER negative, it is pools that crop, by the standard's formula for them;
// convolutions begin at the first element, as its evaluator has it.
Window read_window(const NodeView& node, WindowKind kind);
// Fails where a list has entries that no window may have; what an internal operator says of its
// window is held against it.
void check_window(const NodeView& node, const Window& window);

// The shape of images as N x C x spatial, where it is N x spatial x C if `nhwc`; and the other way.
std::optional<Dims> channels_first(std::optional<Dims> shape, bool nhwc);
Dims in_layout(Dims shape, bool nhwc);

// Fails where a list has not one entry (pads: two) for each of `rank` spatial axes.
void check_window_rank(const NodeView& node, const Window& window, int64_t rank);

// Output size along one axis.
// Objects to what convolutions can do and the standard forbids: pads below 0, windows of no size.
void object_to_window(const InferContext& ctx, const Window& window, const Dims* weights);

Dim window_output(const Window& window, size_t axis, const Dim& in, const Dim& kernel);

// One axis with its pads worked out; `out` is the output size that inference gave.
struct WindowAxis {
  int64_t in, out, kernel, stride, dilation, pad_begin, pad_end;
};
WindowAxis window_axis(const Window& window, size_t axis, int64_t in, int64_t out, int64_t kernel);

}  // namespace sardonyx::ops
