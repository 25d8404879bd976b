// The walk over a graph that gives fusions of it channels last; see layout/layout.h.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "kernels/conv/conv.h"
#include "ops/internal/products.h"
#include "passes/layout/two_layouts.h"

namespace sardonyx::passes {

// Methods that take a node return whether they have placed its form with channels last; the others
// leave it as it was.
class LayoutWalk : TwoLayouts {
 public:
  using TwoLayouts::TwoLayouts;

  // Whether any node has changed.
  bool run();

 private:
  // Whether a node takes images with channels last, or hands on those that something wants so.
  bool wants_nhwc(const ir::Node& node) const;
  // From the end on.
  void find_wanted();
  // By its operator, with one of those below.
  bool convert(ir::Node& node);

  // --- Convolutions and pools: layout/convolutions.cc

  bool conv(ir::Node& node);
  // The constant weights of a ConvTranspose that has a form with channels last.
  const Tensor* transposed_weights(const ir::Node& node,
                                   const ops::internal::ConvTranspose& conv) const;
  bool conv_transpose(ir::Node& node);
  // A border costs two passes over the images: few output channels would not pay for it.
  bool pays(const std::string& x, int64_t channels) const;
  // Whether it becomes dot products with channels last.
  static bool dots(const ops::internal::Conv& conv, const Tensor& weights);
  // Channels, group, kernel, strides and dilations.
  static kernels::ConvParams shape_of_weights(const ops::internal::Conv& conv,
                                              const Tensor& weights);
  // Whether nobody wants its output with channels last, and it is one that planes are as good for
  // (a depthwise one, or one of few products for each result): then transposing takes longer.
  bool stays_alone(const ir::Node& node, const ops::internal::Conv& conv,
                   const Tensor& weights) const;
  // Of bytes: one group, or one input channel for each output channel.
  bool conv_int8(ir::Node& node);
  bool quantized_conv(ir::Node& node);
  // Places such a convolution with channels last.
  void take_bytes_last(ir::Node& node);
  // Whether it has that form.
  bool takes_bytes_last(const std::string& x, const std::string& w, int64_t group) const;
  // The internal form of a node whose first input is an image.
  bool nhwc_form(ir::Node& node);
  bool pool(ir::Node& node);
  bool global_pool(ir::Node& node, std::string_view reduce);

  // --- Arithmetic, element by element or with a factor for each channel: layout/arithmetic.cc

  bool unary(ir::Node& node);
  // Quantised or back, by one scale.
  bool scaling(ir::Node& node);
  bool dynamic_quantization(ir::Node& node);
  // Inputs of one shape, or of one element.
  bool fusion(ir::Node& node);
  // An operand of a broadcast against images of that rank, with channels last, and whether it is
  // had without turning too much.
  bool can_broadcast(const std::string& value, int64_t rank) const;
  std::string broadcast_operand(const std::string& value, int64_t rank);
  // Whether only values of one pixel have channels last, which are transposed for nothing, and an
  // image would have to be transposed for them.
  bool transposes_for_pixels(const ir::Node& node) const;
  bool broadcasting(ir::Node& node);
  // Normalisation by running statistics is a factor and a term for each channel.
  bool batch_normalization(ir::Node& node);
  // An activation right after what scales channels, of which nothing else reads the output.
  bool joins_scale_shift(ir::Node& node);

  // --- What moves elements, or takes axes together: layout/moving.cc

  bool concat(ir::Node& node);
  bool rename_axis(ir::Node& node, int64_t rank);
  bool along_axis(ir::Node& node);
  // The list of axes in an input, moved; nullopt where it is no constant.
  std::optional<std::vector<int64_t>> moved_axes(const ir::Node& node, size_t input, int64_t rank,
                                                 size_t all) const;
  bool slice(ir::Node& node);
  bool pad(ir::Node& node);
  bool depth_to_space(ir::Node& node);
  // Reorders the output channels of the convolution right before, of which nothing else reads the
  // output, from [channel, block, block] to [block, block, channel]: pixels then move as a whole.
  bool puts_blocks_first(const ir::Node& node, int64_t block);
  // Rows [n, blocks] as [blocks, n].
  static Tensor blocks_first(const Tensor& rows, int64_t blocks);
  bool reduction(ir::Node& node);
  // A Transpose of what is in the other layout anyway, or one that makes it.
  bool transposed(ir::Node& node);
  // Channels interleaved anew: Reshape to groups, Transpose of the two, Reshape back. Returns how
  // many nodes it took.
  size_t shuffle(std::vector<ir::Node>& nodes, size_t i);

  // --- Resize, and convolutions that go before it: layout/resizing.cc

  // Of an image that goes on with channels last; another is mostly smaller before it than behind.
  // Its other inputs speak of the axes in the order of the attribute.
  bool resize(ir::Node& node);
  // Whether constant scales make planes larger, and each pixel of them a mean of pixels. Scales of
  // batches and channels are left out then.
  bool enlarges_planes(ir::Node& node, std::vector<int64_t>& axes);
  // A pointwise convolution right behind what enlarges planes goes before it, where there are fewer
  // pixels: nearest pixels stay what they are, and means of pixels as long as nothing but the
  // convolution is taken of them.
  bool goes_before_resize(ir::Node& node, const ops::internal::Conv& conv, const Tensor& weights);
  // One tap, no strides or pads, and no other image is added.
  static bool keeps_pixels(const ir::Node& node, const ops::internal::Conv& conv,
                           const Tensor& weights);

  std::set<std::string> wanted_nhwc_;  // what something after it takes with channels last
  std::set<std::string> enlarged_;     // by constant scales of their planes
  // Constants as operands of broadcasts against images of a rank.
  std::map<std::pair<std::string, int64_t>, std::string> operands_;
};

}  // namespace sardonyx::passes
