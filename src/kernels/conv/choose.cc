// Which way a convolution is computed.
#include <algorithm>

#include "kernels/conv/conv.h"
#include "kernels/conv/geometry.h"
#include "kernels/gemm/tiles.h"

namespace sardonyx::kernels {
namespace {

constexpr std::string_view applies = {};

// Each function says why its path refuses, or `applies`. Those that decide how weights are packed
// (few_channels or not) may look at channels and kernel only.
std::string_view refuses_depthwise_any(const ConvGeometry& g) {
  if (g.group_in != 1) return "several input channels in a group";
  if (g.group_out > 4) return "more than 4 output channels for each input channel";
  return applies;
}

std::string_view refuses_depthwise_rows(const ConvGeometry& g) {
  if (const auto reason = refuses_depthwise_any(g); reason != applies) return reason;
  if (g.in[0] != 1 || g.out[0] != 1 || g.kernel[0] != 1 || g.pad[0] != 0) {
    return "three spatial dimensions";
  }
  if (g.kernel[1] != g.kernel[2] || (g.kernel[1] != 3 && g.kernel[1] != 5)) {
    return "kernel is neither 3x3 nor 5x5";
  }
  if (g.stride[1] != g.stride[2] || g.stride[1] > 2) return "strides are neither 1x1 nor 2x2";
  if (g.dilation[1] != 1 || g.dilation[2] != 1) return "dilated kernel";
  return applies;
}

std::string_view refuses_few_channels(const ConvGeometry& g) {
  // Vectors of output channels would be less than two thirds full.
  const int64_t lanes = tile_kernels().lanes;
  const int64_t stored = (g.group_out + lanes - 1) / lanes * lanes;
  if (g.group_out * 3 > stored * 2) return "output channels fill vectors";
  return applies;
}

std::string_view refuses_pointwise(const ConvGeometry& g) {
  if (g.taps != 1) return "kernel has more than one position";
  return applies;
}

}  // namespace

std::string_view name_of(ConvPath path) {
  switch (path) {
    case ConvPath::depthwise_rows: return "depthwise_rows";
    case ConvPath::depthwise_any: return "depthwise_any";
    case ConvPath::few_channels: return "few_channels";
    case ConvPath::pointwise: return "pointwise";
    case ConvPath::implicit_gemm: return "implicit_gemm";
  }
  return "unknown";
}

ConvChoice choose_conv(const ConvShape& shape) {
  using Refuses = std::string_view (*)(const ConvGeometry&);
  constexpr std::array<std::pair<ConvPath, Refuses>, 4> list{{
      {ConvPath::depthwise_rows, refuses_depthwise_rows},
      {ConvPath::depthwise_any, refuses_depthwise_any},
      {ConvPath::few_channels, refuses_few_channels},
      {ConvPath::pointwise, refuses_pointwise},
  }};
  const ConvGeometry geometry(shape);
  ConvChoice choice;
  for (const auto& [path, refuses] : list) {
    const std::string_view reason = refuses(geometry);
    if (reason == applies) {
      choice.path = path;
      return choice;
    }
    choice.refusal[static_cast<size_t>(choice.refusal_count++)] = {path, reason};
  }
  return choice;
}

int64_t conv_out_size(int64_t in, int64_t kernel, int64_t stride, int64_t dilation,
                      int64_t pad_begin, int64_t pad_end) {
  const int64_t room = in + pad_begin + pad_end - (dilation * (kernel - 1) + 1);
  return room < 0 ? 0 : room / stride + 1;
}

}  // namespace sardonyx::kernels
