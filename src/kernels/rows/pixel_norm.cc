#include "kernels/rows/pixel_norm.h"

#include <algorithm>
#include <cmath>

#include "kernels/rows/grain.h"
#include "kernels/rows/scale_shift.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "kernels/rows/pixel_norm.cc"
#include <hwy/foreach_target.h>
#include <hwy/highway.h>

#include "kernels/gemm/epilogue-inl.h"

HWY_BEFORE_NAMESPACE();
namespace sardonyx::kernels {
namespace HWY_NAMESPACE {
namespace {
namespace hn = hwy::HWY_NAMESPACE;

// The sums of x over some pixels, or those of the squares of x - mean where `mean` is given; for
// channels [first, first + vectors * lanes).
template <int vectors, bool squares>
HWY_INLINE void Channels(const float* x, int64_t pixels, int64_t channels, const float* mean,
                         float* sums) {
  const hn::ScalableTag<float> d;
  using V = hn::Vec<decltype(d)>;
  const auto lanes = static_cast<int64_t>(hn::Lanes(d));
  V sum[vectors], center[vectors];
  for (int v = 0; v < vectors; ++v) {
    sum[v] = hn::Zero(d);
    center[v] = squares ? hn::LoadU(d, mean + v * lanes) : hn::Zero(d);
  }
  for (int64_t i = 0; i < pixels; ++i, x += channels) {
    for (int v = 0; v < vectors; ++v) {
      const V value = hn::LoadU(d, x + v * lanes);
      if constexpr (squares) {
        const V off = hn::Sub(value, center[v]);
        sum[v] = hn::MulAdd(off, off, sum[v]);
      } else {
        sum[v] = hn::Add(sum[v], value);
      }
    }
  }
  for (int v = 0; v < vectors; ++v) hn::StoreU(sum[v], d, sums + v * lanes);
}

template <bool squares>
void Sums(const float* x, int64_t pixels, int64_t channels, const float* mean, float* sums) {
  const hn::ScalableTag<float> d;
  const auto lanes = static_cast<int64_t>(hn::Lanes(d));
  int64_t c = 0;
  for (; c + 4 * lanes <= channels; c += 4 * lanes)
    Channels<4, squares>(x + c, pixels, channels, mean + c, sums + c);
  for (; c + lanes <= channels; c += lanes)
    Channels<1, squares>(x + c, pixels, channels, mean + c, sums + c);
  for (; c < channels; ++c) {
    float sum = 0;
    for (int64_t i = 0; i < pixels; ++i) {
      const float value = squares ? x[i * channels + c] - mean[c] : x[i * channels + c];
      sum += squares ? value * value : value;
    }
    sums[c] = sum;
  }
}

void PixelSums(const float* x, int64_t pixels, int64_t channels, const float* mean, bool squares,
               float* sums) {
  squares ? Sums<true>(x, pixels, channels, mean, sums)
          : Sums<false>(x, pixels, channels, mean, sums);
}

}  // namespace
}  // namespace HWY_NAMESPACE
}  // namespace sardonyx::kernels
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace sardonyx::kernels {
namespace {

constexpr int64_t block = 128;  // pixels that are summed by themselves

int64_t blocks_of(int64_t pixels) { return (pixels + block - 1) / block; }

}  // namespace

HWY_EXPORT(PixelSums);

int64_t pixel_norm_floats(int64_t pixels, int64_t channels) {
  return (blocks_of(pixels) + 3) * channels;
}

void pixel_norm(const float* x, const float* scale, const float* bias, float* y, int64_t n,
                int64_t pixels, int64_t channels, int64_t groups, double epsilon,
                const Epilogue& activation, float* scratch, ThreadPool& pool) {
  if (pixels == 0 || channels == 0) return;
  const int64_t width = channels / groups, blocks = blocks_of(pixels), image = pixels * channels;
  float *mean = scratch, *factor = mean + channels, *term = factor + channels,
        *sums = term + channels;
  const auto count = static_cast<double>(width * pixels);
  for (int64_t i = 0; i < n; ++i, x += image, y += image) {
    const auto sum_up = [&](bool squares) {
      for_rows_of(blocks, block * channels, pool, [&](int64_t begin, int64_t end) {
        for (int64_t b = begin; b < end; ++b) {
          HWY_DYNAMIC_DISPATCH(PixelSums)
          (x + b * block * channels, std::min(block, pixels - b * block), channels, mean, squares,
           sums + b * channels);
        }
      });
    };
    // The mean over a group of what was summed up.
    const auto group_mean = [&](int64_t group) {
      double total = 0;
      for (int64_t b = 0; b < blocks; ++b) {
        for (int64_t c = group * width; c < (group + 1) * width; ++c)
          total += static_cast<double>(sums[b * channels + c]);
      }
      return total / count;
    };
    sum_up(false);
    for (int64_t g = 0; g < groups; ++g)
      std::fill_n(mean + g * width, width, static_cast<float>(group_mean(g)));
    sum_up(true);
    for (int64_t g = 0; g < groups; ++g) {
      const double deviation = std::sqrt(group_mean(g) + epsilon);
      for (int64_t c = g * width; c < (g + 1) * width; ++c) {
        factor[c] = static_cast<float>(static_cast<double>(scale[c]) / deviation);
        term[c] = bias[c] - mean[c] * factor[c];
      }
    }
    scale_shift(x, factor, term, y, pixels, channels, activation, pool);
  }
}

}  // namespace sardonyx::kernels
#endif
