// The shapes of Conv and its integer forms.
#pragma once

#include <optional>
#include <span>
#include <vector>

#include "kernels/conv/conv.h"
#include "ops/families/window.h"
#include "ops/step.h"

namespace sardonyx::ops {

int64_t read_group(const NodeView& node);

// The output shape of images (input `x`), weights `w` and a bias (input `bias`, may be absent);
// nullopt where both ranks are unknown.
std::optional<Dims> conv_output(InferContext& ctx, int x, int w, int bias);

// Channels, group and kernel: all that packed weights depend on.
void set_weights(kernels::ConvParams& shape, std::span<const int64_t> w, int64_t group);

// The whole geometry of a step whose inputs `x` and `w` are images and weights; `pack` says group,
// layout and algorithm.
kernels::ConvParams conv_shape_at_bind(const BindContext& bind, const Window& window,
                                       const kernels::ConvParams& pack, int x, int w);
inline kernels::ConvParams conv_shape_at_bind(const BindContext& bind, const Window& window,
                                              int64_t group, int x, int w) {
  kernels::ConvParams pack;
  pack.group = group;
  return conv_shape_at_bind(bind, window, pack, x, w);
}

}  // namespace sardonyx::ops
