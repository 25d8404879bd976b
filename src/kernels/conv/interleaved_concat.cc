#include "kernels/conv/interleaved_concat.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "kernels/conv/interleaved_concat.cc"
#include <hwy/foreach_target.h>
#include <hwy/highway.h>

#include <algorithm>

#include "base/thread_pool.h"
#include "kernels/conv/interleave.h"
#include "kernels/gemm/blocking.h"
#include "kernels/simd/math-inl.h"

HWY_BEFORE_NAMESPACE();
namespace sardonyx::kernels {
namespace HWY_NAMESPACE {
namespace {
namespace hn = hwy::HWY_NAMESPACE;
namespace math = sardonyx::HWY_NAMESPACE::math;

template <bool relu, class D>
HWY_INLINE void Pass(D d, const float* from, float* to) {
  const auto v = hn::LoadU(d, from);
  if constexpr (relu) {
    hn::StoreU(math::RaiseTo(d, v, 0.0f), d, to);
  } else {
    hn::StoreU(v, d, to);
  }
}

template <bool relu>
HWY_INLINE void CopyRow(const float* from, int64_t n, float* to) {
  const hn::ScalableTag<float> d;
  const auto lanes = static_cast<int64_t>(hn::Lanes(d));
  if (n < lanes) {
    const hn::CappedTag<float, 1> one;
    for (int64_t i = 0; i < n; ++i) Pass<relu>(one, from + i, to + i);
    return;
  }
  // The last ones again, rather than fewer.
  for (int64_t i = 0; i < n; i += lanes) {
    const int64_t at = HWY_MIN(i, n - lanes);
    Pass<relu>(d, from + at, to + at);
  }
}

void JoinRow(const JoinedImage* images, int64_t count, int64_t pixel, bool relu, float* row) {
  for (int64_t i = 0; i < count; ++i, ++images) {
    const float* from = images->x + pixel * images->channels;
    relu ? CopyRow<true>(from, images->channels, row) : CopyRow<false>(from, images->channels, row);
    row += images->channels;
  }
}

}  // namespace
}  // namespace HWY_NAMESPACE
}  // namespace sardonyx::kernels
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace sardonyx::kernels {
namespace {

constexpr int64_t pixels_at_once = 8;
constexpr int64_t floats_of_a_task = 8192;

int64_t worker_floats(int64_t channels) { return round_up(pixels_at_once * channels, 16); }

}  // namespace

HWY_EXPORT(JoinRow);

bool can_interleave(int64_t groups) { return groups == 2 || groups == 4 || groups == 8; }

int64_t interleaved_concat_floats(int64_t channels, int threads) {
  return threads * worker_floats(channels);
}

void interleaved_concat(std::span<const JoinedImage> images, int64_t pixels, int64_t groups,
                        bool relu, float* y, float* scratch, ThreadPool& pool) {
  int64_t channels = 0;
  for (const JoinedImage& image : images) channels += image.channels;
  if (channels <= 0 || pixels <= 0) return;
  const int64_t blocks = divide_up(pixels, pixels_at_once);
  const int64_t grain = divide_up(floats_of_a_task, pixels_at_once * channels);
  pool.parallel_for(blocks, grain, [&](int64_t begin, int64_t end, int worker) {
    float* rows = scratch + worker * worker_floats(channels);
    for (int64_t b = begin; b < end; ++b) {
      const int64_t first = b * pixels_at_once, last = std::min(first + pixels_at_once, pixels);
      for (int64_t p = first; p < last; ++p) {
        HWY_DYNAMIC_DISPATCH(JoinRow)
        (images.data(), static_cast<int64_t>(images.size()), p, relu,
         rows + (p - first) * channels);
      }
      interleave_rows(rows, channels, last - first, groups, channels / groups, y + first * channels,
                      channels);
    }
  });
}

}  // namespace sardonyx::kernels
#endif
