// Which way a convolution is computed.
#include <algorithm>

#include "base/cpu.h"
#include "kernels/conv/conv.h"
#include "kernels/conv/geometry.h"
#include "kernels/conv/path.h"
#include "kernels/gemm/bf16x3.h"
#include "kernels/gemm/tiles.h"

namespace sardonyx::kernels {
namespace {

constexpr std::string_view applies = {};

// Each function says why its path refuses, or `applies`. The depthwise ones decide how weights are
// packed, so refuses_depthwise_any may look at channels only.
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
  const int64_t size = g.kernel[1];
  if (g.kernel[2] != size || (size != 3 && size != 5 && size != 7)) {
    return "kernel is neither 3x3 nor 5x5 nor 7x7";
  }
  if (g.stride[1] != g.stride[2] || g.stride[1] > 2) return "strides are neither 1x1 nor 2x2";
  if (g.dilation[1] != 1 || g.dilation[2] != 1) return "dilated kernel";
  return applies;
}

// Decides how weights are packed, so it may not look at sizes of images.
std::string_view refuses_winograd(const ConvGeometry& g) {
  using Dims = ConvParams::Dims;
  if (g.kernel != Dims{1, 3, 3}) return "kernel is not 3x3";
  if (g.stride != Dims{1, 1, 1}) return "strides";
  if (!g.nhwc && (g.dilation[1] != 1 || g.dilation[2] != 1)) return "dilation, with channels first";
  return applies;
}

std::string_view refuses_depthwise_nhwc(const ConvGeometry& g) {
  if (g.shuffle != 1) return "channels come shuffled";
  return g.group_in == 1 && g.group_out == 1 ? applies : "several channels in a group";
}

std::string_view refuses_grouped_nhwc(const ConvGeometry& g) {
  if (g.shuffle != 1) return "channels come shuffled";
  const int64_t lanes = tile_kernels().lanes;
  if (tile_kernels().portable) return "no vectors";
  if (g.group == 1 || g.group_in != g.group_out) return "groups change their number of channels";
  constexpr int64_t most = 8;  // of more, one product for each group is faster
  if (g.group_in > most) return "more than 8 channels in a group";
  if (g.group_in < 2 || lanes % g.group_in != 0 || g.group * g.group_in % lanes != 0)
    return "groups do not fill vectors";
  return applies;
}

std::string_view refuses_pointwise_nhwc(const ConvGeometry& g) {
  if (g.group != 1) return "several groups";
  if (g.shuffle != 1) return "channels come shuffled";
  if (g.taps != 1) return "the kernel has several taps";
  if (g.stride != ConvParams::Dims{1, 1, 1}) return "strides";
  if (g.pad != ConvParams::Dims{} || g.in != g.out) return "pads";
  return applies;
}

std::string_view refuses_unasked(const ConvGeometry& g) {
  const auto reason = refuses_winograd(g);
  return reason == applies ? "the session is exact, or it would not pay" : reason;
}

// Both ways of multiplying cost about as many units as they do multiply-adds, in vectors that need
// not be full; storing a tile costs as much as some terms of its sums; and the windows must be
// gathered, which is slow where the pixels of a vector or strip are in several rows.
std::string_view refuses_pixel_vectors(const ConvGeometry& g) {
  const TileKernels& kernels = tile_kernels();
  const int64_t lanes = kernels.lanes;
  const auto up = [&](int64_t n) { return (n + lanes - 1) / lanes * lanes; };
  const auto product = [](int64_t a, int64_t b) {
    return static_cast<double>(a) * static_cast<double>(b);
  };
  const bool flat = g.taps == 1 && g.in == g.out && g.stride == ConvParams::Dims{1, 1, 1};
  const auto gathering = [&](int64_t pixels) {
    const int64_t cycles = flat ? 3 : g.out[2] % pixels == 0 ? 4 : 10;
    return 2 * cycles * (g.stride[2] == 1 ? 1 : 2);
  };
  constexpr int64_t straight = 2, transposed = 12;  // terms that storing is worth
  const double pixels = product(g.group_out * up(g.out_pixels), g.terms + straight) +
                        product(up(g.out_pixels) * gathering(lanes), g.terms);
  const double channels = product(g.out_pixels * up(g.group_out), g.terms + transposed) +
                          product(g.out_pixels * gathering(kernels.tile_rows), g.terms);
  constexpr int64_t near_terms = 320;  // panels of more do not stay in the first-level cache
  if (g.terms > near_terms && pixels > 0.85 * channels) return "long sums";
  if (pixels > channels) return "output channels fill vectors better than pixels do";
  return applies;
}

}  // namespace

std::string_view name_of(ConvPath path) {
  switch (path) {
    case ConvPath::depthwise_rows: return "depthwise_rows";
    case ConvPath::depthwise_any: return "depthwise_any";
    case ConvPath::winograd: return "winograd";
    case ConvPath::pixel_vectors: return "pixel_vectors";
    case ConvPath::channel_vectors: return "channel_vectors";
    case ConvPath::depthwise_nhwc: return "depthwise_nhwc";
    case ConvPath::grouped_nhwc: return "grouped_nhwc";
    case ConvPath::dots_nhwc: return "dots_nhwc";
    case ConvPath::winograd_nhwc: return "winograd_nhwc";
    case ConvPath::pointwise_nhwc: return "pointwise_nhwc";
    case ConvPath::interleaved_nhwc: return "interleaved_nhwc";
    case ConvPath::lines_nhwc: return "lines_nhwc";
    case ConvPath::windows_nhwc: return "windows_nhwc";
  }
  return "unknown";
}

ConvChoice choose_conv(const ConvParams& shape) {
  using Refuses = std::string_view (*)(const ConvGeometry&);
  const Refuses refuses_if_wanted = shape.winograd != 0 ? refuses_winograd : refuses_unasked;
  using Entry = std::pair<ConvPath, Refuses>;
  const std::array<Entry, 4> first{{
      {ConvPath::depthwise_rows, refuses_depthwise_rows},
      {ConvPath::depthwise_any, refuses_depthwise_any},
      {ConvPath::winograd, refuses_if_wanted},
      {ConvPath::pixel_vectors, refuses_pixel_vectors},
  }};
  const std::array<Entry, 7> last{{
      {ConvPath::depthwise_nhwc, refuses_depthwise_nhwc},
      {ConvPath::grouped_nhwc, refuses_grouped_nhwc},
      {ConvPath::dots_nhwc, refuses_dots_nhwc},
      {ConvPath::winograd_nhwc, refuses_if_wanted},
      {ConvPath::pointwise_nhwc, refuses_pointwise_nhwc},
      {ConvPath::interleaved_nhwc, refuses_interleaved_nhwc},
      {ConvPath::lines_nhwc, refuses_lines_nhwc},
  }};
  const auto list = shape.nhwc ? std::span<const Entry>(last) : std::span<const Entry>(first);
  const ConvGeometry geometry(shape);
  ConvChoice choice;
  choice.path = shape.nhwc ? ConvPath::windows_nhwc : ConvPath::channel_vectors;
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

bool same_way(const ConvParams& a, const ConvParams& b) {
  const auto splits = [](const ConvParams& shape) {
    const ConvGeometry g(shape);
    return g.group == 1 &&
           bf16x3_pays(tile_kernels().lanes, g.batch * g.out_pixels, g.group_out, g.terms);
  };
  return choose_conv(a).path == choose_conv(b).path && splits(a) == splits(b);
}

namespace {

// Of the products of a dilated 3x3 kernel those with pixels inside the image: others are left out.
double live_share(const ConvGeometry& g) {
  double share = 1;
  for (const size_t axis : {size_t{1}, size_t{2}}) {
    if (g.dilation[axis] == 1) continue;  // few
    int64_t live = 0;
    for (int64_t tap = 0; tap < 3; ++tap) {
      const int64_t at = tap * g.dilation[axis] - g.pad[axis];  // below the first output
      const int64_t first = std::clamp<int64_t>(-at, 0, g.out[axis]);
      live += std::clamp<int64_t>(g.in[axis] - at, first, g.out[axis]) - first;
    }
    share *= static_cast<double>(live) / static_cast<double>(3 * g.out[axis]);
  }
  return share;
}

}  // namespace

int winograd_tile(const ConvParams& shape) {
  const ConvGeometry g(shape);
  const auto depthwise = shape.nhwc ? refuses_depthwise_nhwc : refuses_depthwise_any;
  if (depthwise(g) == applies || refuses_winograd(g) != applies ||
      (shape.nhwc && (refuses_grouped_nhwc(g) == applies || refuses_dots_nhwc(g) == applies)))
    return 0;
  if (g.out_pixels <= 0) return 0;
  const TileKernels& kernels = tile_kernels();
  const auto up = [](int64_t n, int64_t to) { return (n + to - 1) / to; };
  constexpr double few_weight_bytes = 1 << 20;
  // Arithmetic that takes twice as long hides as much more of a wait; the caches are nearer, too.
  const double waits = halves_wide_vectors() ? 0.37 : 1;
  // In multiply-adds of full vectors, as measured: what a product of so many rows takes beyond them
  // (`slow`), or the wait for weights to come from memory, or from the third-level cache where they
  // are few, which some of the arithmetic hides.
  const auto product = [&](double rows, double values, double slow) {
    const double weights = values * static_cast<double>(g.group_in) *
                           static_cast<double>(up(g.group_out, kernels.lanes) * kernels.lanes);
    const double wait =
        waits * (weights * sizeof(float) > few_weight_bytes ? 1.9 : 0.8) * kernels.lanes;
    return weights * std::max(slow * rows, wait + 0.9 * rows);
  };
  // Pixels of one phase of a dilated kernel make tiles.
  const auto along = [&](size_t axis, int64_t side) {
    const int64_t apart = g.dilation[axis];
    return std::min(apart, g.out[axis]) * up(up(g.out[axis], apart), side);
  };
  const auto with_tiles = [&](int64_t side) {
    const auto tiles = static_cast<double>(g.batch * along(1, side) * along(2, side));
    const auto values = static_cast<double>((side + 2) * (side + 2));
    // Each transform of a tile costs as much as that many multiply-adds for each channel.
    const double transforms =
        tiles * values * 12 * static_cast<double>(g.group_in + 2 * g.group_out);
    return product(tiles, values, 1.6) + transforms;
  };
  const double straight =
      live_share(g) * product(static_cast<double>(g.batch * g.out_pixels), 9, 1.3);
  const double two = with_tiles(2), four = with_tiles(4);
  constexpr double worth = 0.9;  // of the time, for what is less exact
  // The weights of the larger tiles take more than twice the memory: many have to be worth it.
  constexpr double many_weight_bytes = 16 << 20;
  const double bytes = 36.0 * sizeof(float) * static_cast<double>(g.group_in * g.group_out);
  const double memory_worth = bytes > many_weight_bytes ? 0.7 : 1;
  if (four < std::min(worth * straight, memory_worth * two)) return 4;
  return two < worth * straight ? 2 : 0;
}

int64_t conv_out_size(int64_t in, int64_t kernel, int64_t stride, int64_t dilation,
                      int64_t pad_begin, int64_t pad_end) {
  const int64_t room = in + pad_begin + pad_end - (dilation * (kernel - 1) + 1);
  return room < 0 ? 0 : room / stride + 1;
}

}  // namespace sardonyx::kernels
