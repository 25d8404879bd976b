// Convolution as it is defined, for comparison.
#include <algorithm>
#include <cmath>
#include <numbers>

#include "kernels/conv/conv.h"

namespace sardonyx::kernels {
namespace {

double activated(const Epilogue& e, double x) {
  if (std::isnan(x)) return x;
  const double gate = 1 / (1 + std::exp(-x));
  switch (e.activation) {
    case Activation::none: return x;
    case Activation::relu: return std::max(x, 0.0);
    case Activation::clip: return std::min<double>(std::max<double>(x, e.p0), e.p1);
    case Activation::leaky_relu: return x < 0 ? x * e.p0 : x;
    case Activation::hard_sigmoid: return std::clamp(x * e.p0 + e.p1, 0.0, 1.0);
    case Activation::hard_swish: return x * std::clamp(x / 6 + 0.5, 0.0, 1.0);
    case Activation::sigmoid: return gate;
    case Activation::silu: return x * gate;
    case Activation::tanh: return std::tanh(x);
    case Activation::gelu_erf: return x / 2 * (1 + std::erf(x / std::sqrt(2.0)));
    case Activation::gelu_tanh:
      return x / 2 * (1 + std::tanh(std::sqrt(2 / std::numbers::pi) * (x + 0.044715 * x * x * x)));
  }
  return x;
}

struct Position {
  int64_t at[ConvParams::max_rank] = {};
};

// The index-th position of a grid.
Position position_of(int64_t index, const ConvParams::Dims& size, int rank) {
  Position p;
  for (int i = rank - 1; i >= 0; --i) {
    p.at[i] = index % size[static_cast<size_t>(i)];
    index /= size[static_cast<size_t>(i)];
  }
  return p;
}

int64_t count_of_grid(const ConvParams::Dims& size, int rank) {
  int64_t count = 1;
  for (int i = 0; i < rank; ++i) count *= size[static_cast<size_t>(i)];
  return count;
}

// The input pixel that kernel position `tap` of output pixel `o` looks at, or -1 outside.
int64_t input_of(const ConvParams& s, const Position& o, const Position& tap) {
  int64_t pixel = 0;
  for (int i = 0; i < s.rank; ++i) {
    const auto d = static_cast<size_t>(i);
    const int64_t at = o.at[i] * s.stride[d] + tap.at[i] * s.dilation[d] - s.pad_begin[d];
    if (at < 0 || at >= s.in[d]) return -1;
    pixel = pixel * s.in[d] + at;
  }
  return pixel;
}

}  // namespace

void conv_reference(const ConvParams& s, const float* x, const float* weights, float* y,
                    const Epilogue& e) {
  const int64_t in_pixels = count_of_grid(s.in, s.rank);
  const int64_t out_pixels = count_of_grid(s.out, s.rank);
  const int64_t taps = count_of_grid(s.kernel, s.rank);
  const int64_t group_in = s.in_channels / s.group;
  const int64_t group_out = s.out_channels / s.group;
  for (int64_t row = 0; row < s.batch * s.out_channels; ++row) {
    const int64_t n = row / s.out_channels;
    const int64_t m = row % s.out_channels;
    const int64_t to =
        s.shuffles_output ? n * s.out_channels + m % group_out * s.group + m / group_out : row;
    const float* image = x + n * s.in_channels * in_pixels;
    const auto channel = [&](int64_t c) {
      const int64_t of_all = m / group_out * group_in + c, interleaved = s.in_channels / s.shuffle;
      return of_all % s.shuffle * interleaved + of_all / s.shuffle;
    };
    for (int64_t o = 0; o < out_pixels; ++o) {
      const Position at = position_of(o, s.out, s.rank);
      double sum = 0;
      for (int64_t t = 0; t < taps; ++t) {
        const int64_t pixel = input_of(s, at, position_of(t, s.kernel, s.rank));
        if (pixel < 0) continue;
        for (int64_t c = 0; c < group_in; ++c) {
          sum += double{image[channel(c) * in_pixels + pixel]} *
                 weights[(m * group_in + c) * taps + t];
        }
      }
      double v = e.alpha * sum;
      if (e.bias != nullptr) v += double{e.beta} * e.bias[m];
      const double added =
          e.residual == nullptr ? 0 : double{e.beta} * e.residual[to * out_pixels + o];
      v = e.residual_last ? activated(e, v) + added : activated(e, v + added);
      y[to * out_pixels + o] = static_cast<float>(v);
    }
  }
}

}  // namespace sardonyx::kernels
