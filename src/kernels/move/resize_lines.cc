#include "kernels/move/resize_lines.h"

#include <algorithm>

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "kernels/move/resize_lines.cc"
#include <hwy/foreach_target.h>
#include <hwy/highway.h>

#include "kernels/simd/masked-inl.h"

HWY_BEFORE_NAMESPACE();
namespace sardonyx::kernels {
namespace HWY_NAMESPACE {
namespace hn = hwy::HWY_NAMESPACE;

using Floats = hn::ScalableTag<float>;
using Vector = hn::Vec<Floats>;
using Places = hn::Vec<hn::RebindToSigned<Floats>>;

// Elements of a line that lie within some vectors: reading these and finding places among them is
// several times as fast as reading each element.
#if HWY_TARGET == HWY_AVX3
constexpr int64_t max_vectors = 4;
#elif HWY_TARGET == HWY_AVX2
constexpr int64_t max_vectors = 2;
#else
constexpr int64_t max_vectors = 0;
#endif

template <int vectors>
struct Near {
  explicit HWY_INLINE Near(const float* x) {
    const Floats d;
    for (int i = 0; i < vectors; ++i)
      part[i] = hn::LoadU(d, x + i * static_cast<int64_t>(hn::Lanes(d)));
  }
  // Places are below `vectors` times the lanes.
  HWY_INLINE Vector At(Places places) const {
#if HWY_TARGET == HWY_AVX3
    const Vector low{_mm512_permutex2var_ps(part[0].raw, places.raw, part[1].raw)};
    if constexpr (vectors == 2) {
      return low;
    } else {
      const Vector high{_mm512_permutex2var_ps(part[2].raw, places.raw, part[3].raw)};
      const Floats d;
      const hn::RebindToSigned<Floats> di;
      const auto far = hn::Gt(places, hn::Set(di, 2 * static_cast<int32_t>(hn::Lanes(d)) - 1));
      return hn::IfThenElse(hn::RebindMask(d, far), high, low);
    }
#elif HWY_TARGET == HWY_AVX2
    const Floats d;
    const hn::RebindToSigned<Floats> di;
    const Vector low{_mm256_permutevar8x32_ps(part[0].raw, places.raw)};
    const Vector high{_mm256_permutevar8x32_ps(part[1].raw, places.raw)};
    const auto far = hn::Gt(places, hn::Set(di, static_cast<int32_t>(hn::Lanes(d)) - 1));
    return hn::IfThenElse(hn::RebindMask(d, far), high, low);
#else
    (void)places;
    return part[0];
#endif
  }
  Vector part[vectors];
};

struct Far {
  HWY_INLINE Vector At(Places places) const { return hn::GatherIndex(Floats(), x, places); }
  const float* x;
};

// A vector of outputs from `at` on, whose elements are `source`'s from `base` on.
template <class Source>
HWY_INLINE Vector BlockSum(const LineSums& sums, int64_t at, const Source& source, int32_t base) {
  const Floats d;
  const hn::RebindToSigned<Floats> di;
  const auto from = hn::Set(di, base);
  auto y = hn::Zero(d);
  const int32_t* index = sums.index.data() + at;
  const float* weight = sums.weight.data() + at;
  for (int64_t t = 0; t < sums.taps; ++t, index += sums.stride, weight += sums.stride) {
    const auto v = source.At(hn::Sub(hn::LoadU(di, index), from));
    y = hn::MulAdd(hn::LoadU(d, weight), v, y);
  }
  return y;
}

void SumAlong(const LineSums& sums, const float* x, float* y) {
  const Floats d;
  constexpr int64_t half = LineSums::half;
  const auto lanes = static_cast<int64_t>(hn::Lanes(d));
  for (int64_t at = 0; at < sums.out; at += lanes) {
    const auto first = static_cast<size_t>(at / half);
    const size_t last = static_cast<size_t>((at + lanes - 1) / half);
    const int32_t base = HWY_MIN(sums.lowest[first], sums.lowest[last]);
    const int64_t span = HWY_MAX(sums.highest[first], sums.highest[last]) - base + 1;
    Vector v;
    if (max_vectors >= 2 && span <= 2 * lanes)
      v = BlockSum(sums, at, Near<2>(x + base), base);
    else if (max_vectors >= 4 && span <= 4 * lanes)
      v = BlockSum(sums, at, Near<4>(x + base), base);
    else
      v = BlockSum(sums, at, Far{x}, 0);
    if (at + lanes <= sums.out)
      hn::StoreU(v, d, y + at);
    else
      masked::Store(v, hn::FirstN(d, static_cast<size_t>(sums.out - at)), d, y + at);
  }
}

template <int V, class Mask>
HWY_INLINE void AcrossVectors(const float* x, int64_t step, const int32_t* index,
                              const double* weight, int64_t taps, Mask last, float* y) {
  const Floats d;
  const auto lanes = static_cast<int64_t>(hn::Lanes(d));
  Vector sum[V];
  for (int j = 0; j < V; ++j) sum[j] = hn::Zero(d);
  for (int64_t t = 0; t < taps; ++t) {
    const auto w = static_cast<float>(weight[t]);
    if (w == 0) continue;
    const auto factor = hn::Set(d, w);
    const float* from = x + index[t] * step;
    for (int j = 0; j < V - 1; ++j)
      sum[j] = hn::MulAdd(factor, hn::LoadU(d, from + j * lanes), sum[j]);
    sum[V - 1] = hn::MulAdd(factor, masked::Load(last, d, from + (V - 1) * lanes), sum[V - 1]);
  }
  for (int j = 0; j < V - 1; ++j) hn::StoreU(sum[j], d, y + j * lanes);
  masked::Store(sum[V - 1], last, d, y + (V - 1) * lanes);
}

void SumAcross(const float* x, int64_t step, const int32_t* index, const double* weight,
               int64_t taps, int64_t n, float* y) {
  const Floats d;
  const auto lanes = static_cast<int64_t>(hn::Lanes(d));
  const auto all = hn::FirstN(d, hn::Lanes(d));
  int64_t i = 0;
  for (; i + 4 * lanes <= n; i += 4 * lanes)
    AcrossVectors<4>(x + i, step, index, weight, taps, all, y + i);
  for (; i + lanes <= n; i += lanes) AcrossVectors<1>(x + i, step, index, weight, taps, all, y + i);
  const auto some = hn::FirstN(d, static_cast<size_t>(n - i));
  if (i < n) AcrossVectors<1>(x + i, step, index, weight, taps, some, y + i);
}

// One pixel as often as it is wanted.
void RepeatPixel(const uint32_t* x, int64_t words, int64_t times, uint32_t* y) {
  const hn::ScalableTag<uint32_t> d;
  const auto lanes = static_cast<int64_t>(hn::Lanes(d));
  int64_t i = 0;
  for (; i + 2 * lanes <= words; i += 2 * lanes) {
    const auto a = hn::LoadU(d, x + i), b = hn::LoadU(d, x + i + lanes);
    uint32_t* to = y + i;
    for (int64_t k = 0; k < times; ++k, to += words)
      hn::StoreU(a, d, to), hn::StoreU(b, d, to + lanes);
  }
  for (; i < words; i += lanes) {
    const int64_t rest = HWY_MIN(words - i, lanes);
    const auto some = hn::FirstN(d, static_cast<size_t>(rest));
    const auto a = masked::Load(some, d, x + i);
    uint32_t* to = y + i;
    for (int64_t k = 0; k < times; ++k, to += words) {
      if (rest == lanes)
        hn::StoreU(a, d, to);
      else
        masked::Store(a, some, d, to);
    }
  }
}

void PickPixels(const uint32_t* x, const int32_t* index, int64_t count, int64_t words,
                uint32_t* y) {
  for (int64_t o = 0; o < count;) {
    int64_t times = 1;
    while (o + times < count && index[o + times] == index[o]) ++times;
    RepeatPixel(x + index[o] * words, words, times, y + o * words);
    o += times;
  }
}

template <int V, class Mask>
HWY_INLINE void PixelVectors(const float* const* from, const float* weight, int64_t terms,
                             int64_t at, Mask last, float* y) {
  const Floats d;
  const auto lanes = static_cast<int64_t>(hn::Lanes(d));
  Vector sum[V];
  for (int j = 0; j < V; ++j) sum[j] = hn::Zero(d);
  for (int64_t t = 0; t < terms; ++t) {
    const auto factor = hn::Set(d, weight[t]);
    const float* x = from[t] + at;
    for (int j = 0; j < V - 1; ++j)
      sum[j] = hn::MulAdd(factor, hn::LoadU(d, x + j * lanes), sum[j]);
    sum[V - 1] = hn::MulAdd(factor, masked::Load(last, d, x + (V - 1) * lanes), sum[V - 1]);
  }
  for (int j = 0; j < V - 1; ++j) hn::StoreU(sum[j], d, y + at + j * lanes);
  masked::Store(sum[V - 1], last, d, y + at + (V - 1) * lanes);
}

void SumPixel(const float* const* from, const float* weight, int64_t terms, int64_t n, float* y) {
  const Floats d;
  const auto lanes = static_cast<int64_t>(hn::Lanes(d));
  const auto all = hn::FirstN(d, hn::Lanes(d));
  int64_t i = 0;
  for (; i + 4 * lanes <= n; i += 4 * lanes) PixelVectors<4>(from, weight, terms, i, all, y);
  for (; i + lanes <= n; i += lanes) PixelVectors<1>(from, weight, terms, i, all, y);
  const auto some = hn::FirstN(d, static_cast<size_t>(n - i));
  if (i < n) PixelVectors<1>(from, weight, terms, i, some, y);
}

void SumPixels(const float* x, const PixelTerm* across, int64_t lines, const int32_t* index,
               const double* along, int64_t count, int64_t taps, int64_t n, float* y) {
  const float* from[max_pixel_terms];
  float weight[max_pixel_terms];
  for (int64_t o = 0; o < count; ++o, index += taps, along += taps, y += n) {
    int64_t terms = 0;
    for (int64_t a = 0; a < lines; ++a) {
      for (int64_t t = 0; t < taps; ++t) {
        weight[terms] = static_cast<float>(across[a].weight * along[t]);
        from[terms] = x + across[a].at + index[t] * n;
        terms += weight[terms] != 0;
      }
    }
    SumPixel(from, weight, terms, n, y);
  }
}

}  // namespace HWY_NAMESPACE
}  // namespace sardonyx::kernels
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace sardonyx::kernels {

HWY_EXPORT(SumAlong);
HWY_EXPORT(SumAcross);
HWY_EXPORT(PickPixels);
HWY_EXPORT(SumPixels);

LineSums::LineSums(std::span<const int32_t> indices, std::span<const double> weights, int64_t out,
                   int64_t taps)
    : out(out), taps(taps), stride((out + lanes - 1) / lanes * lanes) {
  index.resize(static_cast<size_t>(taps * stride));
  weight.resize(static_cast<size_t>(taps * stride));
  lowest.assign(static_cast<size_t>(stride / half), INT32_MAX);
  highest.assign(static_cast<size_t>(stride / half), 0);
  for (int64_t o = 0; o < stride; ++o) {
    const auto part = static_cast<size_t>(o / half);
    for (int64_t t = 0; t < taps; ++t) {
      const auto from = static_cast<size_t>(std::min(o, out - 1) * taps + t);
      const auto to = static_cast<size_t>(t * stride + o);
      index[to] = indices[from];
      weight[to] = o < out ? static_cast<float>(weights[from]) : 0.0f;
      lowest[part] = std::min(lowest[part], indices[from]);
      highest[part] = std::max(highest[part], indices[from]);
    }
  }
}

void LineSums::run(const float* x, float* y) const { HWY_DYNAMIC_DISPATCH(SumAlong)(*this, x, y); }

void sum_lines(const float* x, int64_t step, const int32_t* index, const double* weight,
               int64_t taps, int64_t n, float* y) {
  HWY_DYNAMIC_DISPATCH(SumAcross)(x, step, index, weight, taps, n, y);
}

void pick_pixels(const void* x, std::span<const int32_t> index, int64_t bytes, void* y) {
  constexpr auto word = static_cast<int64_t>(sizeof(uint32_t));
  if (bytes % word == 0) {
    HWY_DYNAMIC_DISPATCH(PickPixels)
    (static_cast<const uint32_t*>(x), index.data(), static_cast<int64_t>(index.size()),
     bytes / word, static_cast<uint32_t*>(y));
    return;
  }
  auto* to = static_cast<std::byte*>(y);
  for (const int32_t from : index)
    to = std::copy_n(static_cast<const std::byte*>(x) + from * bytes, bytes, to);
}

void sum_pixels(const float* x, std::span<const PixelTerm> across, std::span<const int32_t> index,
                const double* weight, int64_t taps, int64_t n, float* y) {
  HWY_DYNAMIC_DISPATCH(SumPixels)
  (x, across.data(), static_cast<int64_t>(across.size()), index.data(), weight,
   static_cast<int64_t>(index.size()) / taps, taps, n, y);
}

}  // namespace sardonyx::kernels
#endif
