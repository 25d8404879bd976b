// The shapes of Conv and its integer forms.
#pragma once

#include <optional>
#include <span>
#include <vector>

#include "kernels/conv/conv.h"
#include "ops/shared/window.h"
#include "ops/step.h"

namespace sardonyx::ops {

int64_t read_group(const NodeView& node);
void check_group(const NodeView& node, int64_t group);  // as that does

// The inputs of a convolution, by position; a bias below 0: it has none.
struct ConvInputs {
  int x = 0, w = 1, bias = 2;
};
// Whether images have their channels last.
struct ConvLayout {
  bool nhwc_input = false, nhwc_output = false;
};

// The output's shape; nullopt where the ranks of images and weights are unknown.
std::optional<Dims> conv_output(InferContext& ctx, const Window& window, int64_t group,
                                ConvInputs inputs, ConvLayout layout = {});

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
