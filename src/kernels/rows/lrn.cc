// LocalResponseNormalization.
#include <algorithm>
#include <cmath>
#include <cstdint>
#include <vector>

#include "base/fail.h"
#include "base/memory_account.h"
#include "kernels/rows/grain.h"
#include "kernels/rows/lrn_tile.h"
#include "kernels/rows/normalize.h"
#include "kernels/rows/values.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "kernels/rows/lrn.cc"
#include <hwy/foreach_target.h>
#include <hwy/highway.h>

#include "kernels/simd/masked-inl.h"
#include "kernels/simd/math-inl.h"

HWY_BEFORE_NAMESPACE();
namespace sardonyx::kernels {
namespace HWY_NAMESPACE {
namespace hn = hwy::HWY_NAMESPACE;
namespace sm = sardonyx::HWY_NAMESPACE;

// 1 / sqrt(v) for ordinary positive v.
template <class D, class V>
HWY_INLINE V InverseRoot(D d, V v) {
#if HWY_TARGET == HWY_AVX3
  const V y = hn::ApproximateReciprocalSqrt(v);
  const V half = hn::Mul(hn::Mul(v, y), hn::Mul(y, hn::Set(d, 0.5f)));
  return hn::Mul(y, hn::Sub(hn::Set(d, 1.5f), half));
#else
  return hn::Div(hn::Set(d, 1.0f), hn::Sqrt(v));
#endif
}

// v^-beta.
template <class D, class V>
HWY_INLINE V NegativePower(D d, V v, float beta) {
  // What the shortcuts do not hold for: not positive, very large or small, NaN.
  const auto ordinary = hn::And(hn::Gt(v, hn::Set(d, 1e-30f)), hn::Lt(v, hn::Set(d, 1e30f)));
  if (HWY_UNLIKELY(!hn::AllTrue(d, ordinary))) {
    return sm::math::EachLane(d, v, [beta](float x) { return std::pow(x, -beta); });
  }
  if (beta == 0.75f) {
    const V root = InverseRoot(d, v);
    return hn::Mul(hn::Mul(root, root), InverseRoot(d, root));
  }
  if (beta == 0.5f) return InverseRoot(d, v);
  if (beta == 1.0f) return hn::Div(hn::Set(d, 1.0f), v);
  return sm::Exp(d, hn::Mul(sm::Log(d, v), hn::Set(d, -beta)));
}

template <class D>
HWY_INLINE void LrnVector(D d, const LrnTile& t, const float* x, hn::Mask<D> some, float* y) {
  auto sum = hn::Zero(d);
  for (int64_t c = -t.below; c <= t.above; ++c) {
    const auto v = masked::Load(some, d, x + c * t.inner);
    sum = hn::MulAdd(v, v, sum);
  }
  const auto v = masked::Load(some, d, x);
  const auto base = hn::MulAdd(sum, hn::Set(d, t.scale), hn::Set(d, t.bias));
  masked::Store(hn::Mul(v, NegativePower(d, base, t.beta)), some, d, y);
}

void LrnRow(const LrnTile& t, const float* x, float* y, int64_t n) {
  const hn::ScalableTag<float> d;
  const auto lanes = static_cast<int64_t>(hn::Lanes(d));
  for (int64_t i = 0; i < n; i += lanes) {
    const auto left = static_cast<size_t>(std::min(lanes, n - i));
    LrnVector(d, t, x + i, hn::FirstN(d, left), y + i);
  }
}

}  // namespace HWY_NAMESPACE
}  // namespace sardonyx::kernels
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace sardonyx::kernels {
namespace {

HWY_EXPORT(LrnRow);

// Columns whose window of channels stays in the innermost cache.
constexpr int64_t column_block = 512;

struct Window {
  int64_t below, above;
};

Window window_of(int64_t size, int64_t channel, int64_t channels) {
  const int64_t below = (size - 1) / 2;
  const int64_t above = size - 1 - below;
  return {std::min(below, channel), std::min(above, channels - 1 - channel)};
}

void lrn_float(const float* x, float* y, int64_t n, int64_t channels, int64_t inner, int64_t size,
               float alpha, float beta, float bias, ThreadPool& pool) {
  const int64_t blocks = (inner + column_block - 1) / column_block;
  for_rows_of(n * blocks, 4 * channels * std::min(inner, column_block), pool,
              [&](int64_t begin, int64_t end) {
                for (int64_t i = begin; i < end; ++i) {
                  const int64_t column = i % blocks * column_block;
                  const int64_t width = std::min(column_block, inner - column);
                  for (int64_t c = 0; c < channels; ++c) {
                    const Window w = window_of(size, c, channels);
                    const int64_t at = (i / blocks * channels + c) * inner + column;
                    const LrnTile tile{inner, w.below, w.above, alpha / static_cast<float>(size),
                                       beta,  bias};
                    HWY_DYNAMIC_DISPATCH(LrnRow)(tile, x + at, y + at, width);
                  }
                }
              });
}

// One channel next to the other: each pixel is copied between zeros, so that every channel has the
// same window.
void lrn_float_nhwc(const float* x, float* y, int64_t pixels, int64_t channels, int64_t size,
                    float alpha, float beta, float bias, ThreadPool& pool) {
  const int64_t below = std::min((size - 1) / 2, channels);
  const int64_t above = std::min(size - 1 - (size - 1) / 2, channels);
  const MemoryCharge padded_rows(std::min<int64_t>(pixels, pool.threads()) *
                                 (below + channels + above) * static_cast<int64_t>(sizeof(float)));
  const LrnTile tile{1, below, above, alpha / static_cast<float>(size), beta, bias};
  for_rows_of(pixels, 4 * channels, pool, [&](int64_t begin, int64_t end) {
    std::vector<float> padded(static_cast<size_t>(below + channels + above));
    for (int64_t p = begin; p < end; ++p) {
      std::copy_n(x + p * channels, channels, padded.data() + below);
      HWY_DYNAMIC_DISPATCH(LrnRow)(tile, padded.data() + below, y + p * channels, channels);
    }
  });
}

// The other types, element by element.
template <class C>
void lrn_plain(ElementType type, const void* x, void* y, int64_t n, int64_t channels, int64_t inner,
               int64_t size, float alpha, float beta, float bias, ThreadPool& pool) {
  const C scale = static_cast<C>(alpha) / static_cast<C>(size);
  for_rows_of(n * channels, 8 * inner, pool, [&](int64_t begin, int64_t end) {
    for (int64_t r = begin; r < end; ++r) {
      const Window w = window_of(size, r % channels, channels);
      for (int64_t i = 0; i < inner; ++i) {
        C sum = 0;
        for (int64_t c = -w.below; c <= w.above; ++c) {
          const C v = value_at<C>(type, x, (r + c) * inner + i);
          sum += v * v;
        }
        const C v = value_at<C>(type, x, r * inner + i);
        put_value<C>(type, y, r * inner + i, v * std::pow(bias + scale * sum, -C(beta)));
      }
    }
  });
}

}  // namespace

void lrn(ElementType type, const void* x, void* y, int64_t n, int64_t channels, int64_t inner,
         int64_t size, float alpha, float beta, float bias, ThreadPool& pool) {
  if (size < 1) fail(ErrorCode::bad_input, "LRN: size must be at least 1, not {}", size);
  switch (type) {
    case ElementType::float32:
      if (inner == 1 && channels > 1) {
        return lrn_float_nhwc(static_cast<const float*>(x), static_cast<float*>(y), n, channels,
                              size, alpha, beta, bias, pool);
      }
      return lrn_float(static_cast<const float*>(x), static_cast<float*>(y), n, channels, inner,
                       size, alpha, beta, bias, pool);
    case ElementType::float16:
    case ElementType::bfloat16:
      return lrn_plain<float>(type, x, y, n, channels, inner, size, alpha, beta, bias, pool);
    case ElementType::float64:
      return lrn_plain<double>(type, x, y, n, channels, inner, size, alpha, beta, bias, pool);
    default: fail(ErrorCode::unsupported, "LRN does not take {}", name_of(type));
  }
}

}  // namespace sardonyx::kernels
#endif
