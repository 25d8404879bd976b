#include "ops/shared/conv_params.h"

#include <algorithm>

#include "base/checked.h"

namespace sardonyx::ops {

using kernels::ConvParams;

void check_group(const NodeView& node, int64_t group) {
  if (group < 1) node.fail("group must be at least 1; got {}", group);
}

int64_t read_group(const NodeView& node) {
  const int64_t group = node.attr_int("group", 1);
  check_group(node, group);
  return group;
}

namespace {

void check_channels(InferContext& ctx, const Dims& x, const Dims& w, int64_t group, int bias) {
  ctx.require_equal(x[1], w[1] * Dim(group), "the channels of X must be those of W times group");
  if (const auto m = w[0].value(); m && *m % group != 0) {
    ctx.fail("the {} output channels must be divisible by group {}", *m, group);
  }
  if (bias >= 0 && ctx.has_input(bias) && ctx.shape(bias)) {
    if (*ctx.rank(bias) != 1)
      ctx.fail("the bias must have one dimension; its shape is {}",
               ir::to_string(*ctx.shape(bias)));
    ctx.require_equal((*ctx.shape(bias))[0], w[0],
                      "the bias must have one value for each output channel");
  }
}

}  // namespace

std::optional<Dims> conv_output(InferContext& ctx, const Window& window, int64_t group,
                                ConvInputs inputs, ConvLayout layout) {
  const auto x = channels_first(ctx.shape(inputs.x), layout.nhwc_input);
  const auto& w = ctx.shape(inputs.w);
  const auto rank = ctx.rank(x ? inputs.x : inputs.w);
  if (!rank) return std::nullopt;
  if (*rank < 3)
    ctx.fail(
        "X and W must have a batch (or output channel), a channel and at least one spatial "
        "dimension; the rank is {}",
        *rank);
  if (x && w && x->size() != w->size())
    ctx.fail("X and W must have the same rank; got {} and {}", ir::to_string(*x),
             ir::to_string(*w));
  check_window_rank(ctx, window, *rank - 2);
  object_to_window(ctx, window, w ? &*w : nullptr);
  Dims y{x ? (*x)[0] : ctx.unknown(), w ? (*w)[0] : ctx.unknown()};
  if (x && w) check_channels(ctx, *x, *w, group, inputs.bias);
  for (size_t i = 0; i + 2 < static_cast<size_t>(*rank); ++i) {
    if (w && !window.kernel.empty())
      ctx.require_equal(Dim(window.kernel[i]), (*w)[i + 2], "kernel_shape must be that of W");
    if (!x || (!w && window.kernel.empty())) {
      y.push_back(ctx.unknown());
    } else {
      y.push_back(window_output(window, i, (*x)[i + 2], w ? (*w)[i + 2] : Dim(window.kernel[i])));
    }
  }
  return in_layout(std::move(y), layout.nhwc_output);
}

void set_weights(ConvParams& shape, std::span<const int64_t> w, int64_t group) {
  const auto in_channels = checked_mul(w[1], group);
  if (!in_channels) {
    throw Error(
        ErrorCode::run_failed,
        fmt::format("weights of shape {} in {} groups read more channels than can be counted",
                    to_string(w), group));
  }
  shape.group = group;
  shape.out_channels = w[0];
  shape.in_channels = *in_channels;
  shape.rank = static_cast<int>(w.size()) - 2;
  std::copy(w.begin() + 2, w.end(), shape.kernel.begin());
}

ConvParams conv_shape_at_bind(const BindContext& bind, const Window& window, const ConvParams& pack,
                              int images, int weights) {
  const auto x = bind.in_shape(images), w = bind.in_shape(weights), y = bind.out_shape(0);
  if (x.size() > ConvParams::max_rank + 2) {
    throw Error(
        ErrorCode::unsupported,
        fmt::format("a convolution over {} spatial axes; at most 3 are supported", x.size() - 2));
  }
  const int64_t group = pack.group;
  ConvParams shape;
  set_weights(shape, w, group);
  shape.winograd = pack.winograd;
  shape.nhwc = pack.nhwc;
  shape.coarse = pack.coarse;
  shape.nchw_input = pack.nchw_input;
  shape.shuffle = pack.shuffle;
  shape.shuffles_output = pack.shuffles_output;
  shape.batch = x[0];
  const bool last = shape.nhwc && !shape.nchw_input;                   // of x
  const size_t first = last ? 1 : 2, first_of_y = shape.nhwc ? 1 : 2;  // spatial axes
  if (x[last ? x.size() - 1 : 1] != shape.in_channels || w[0] % group != 0) {
    throw Error(ErrorCode::run_failed,
                fmt::format("X of shape {} does not fit weights of shape {} in {} groups",
                            to_string(x), to_string(w), group));
  }
  for (size_t i = 0; i + 2 < x.size(); ++i) {
    const WindowAxis axis = window_axis(window, i, x[i + first], y[i + first_of_y], w[i + 2]);
    shape.in[i] = axis.in, shape.out[i] = axis.out;
    shape.stride[i] = axis.stride, shape.dilation[i] = axis.dilation;
    shape.pad_begin[i] = axis.pad_begin, shape.pad_end[i] = axis.pad_end;
  }
  return shape;
}

}  // namespace sardonyx::ops
