#include "kernels/conv/interleave.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "kernels/conv/interleave.cc"
#include <hwy/foreach_target.h>
#include <hwy/highway.h>

HWY_BEFORE_NAMESPACE();
namespace sardonyx::kernels {
namespace HWY_NAMESPACE {
namespace {
namespace hn = hwy::HWY_NAMESPACE;

template <int groups>
void DealOne(const float* from, int64_t each, int64_t first, float* to) {
  for (int64_t c = first; c < each; ++c) {
    for (int g = 0; g < groups; ++g) to[c * groups + g] = from[g * each + c];
  }
}

#if HWY_TARGET == HWY_AVX3 || HWY_TARGET == HWY_AVX2
// Vectors of as many floats as there may be groups, at least.
using Tag = hn::ScalableTag<float>;
constexpr int lanes = HWY_TARGET == HWY_AVX3 ? 16 : 8;

// `pieces` pieces, `distance` floats apart, side by side.
template <int pieces, class D>
HWY_INLINE hn::Vec<D> LoadPieces(D d, const float* p, int64_t distance) {
  if constexpr (pieces == 1) {
    return hn::LoadU(d, p);
  } else {
    const hn::Half<D> half;
    return hn::Combine(d, LoadPieces<pieces / 2>(half, p + pieces / 2 * distance, distance),
                       LoadPieces<pieces / 2>(half, p, distance));
  }
}

template <int groups>
void Deal(const float* from, int64_t from_stride, int64_t rows, int64_t each, float* to,
          int64_t to_stride) {
  constexpr int piece = lanes / groups;
  const Tag d;
  alignas(64) int32_t order[lanes];
  for (int i = 0; i < lanes; ++i) order[i] = i % groups * piece + i / groups;
  const auto interleaved = hn::SetTableIndices(d, order);
  for (; rows > 0; --rows, from += from_stride, to += to_stride) {
    if (each < piece) {
      DealOne<groups>(from, each, 0, to);
      continue;
    }
    // The last ones again, rather than fewer.
    for (int64_t c = 0; c < each; c += piece) {
      const int64_t at = HWY_MIN(c, each - piece);
      hn::StoreU(hn::TableLookupLanes(LoadPieces<groups>(d, from + at, each), interleaved), d,
                 to + at * groups);
    }
  }
}

#else
template <int groups>
void Deal(const float* from, int64_t from_stride, int64_t rows, int64_t each, float* to,
          int64_t to_stride) {
  for (; rows > 0; --rows, from += from_stride, to += to_stride) DealOne<groups>(from, each, 0, to);
}
#endif

void DealRows(const float* from, int64_t from_stride, int64_t rows, int64_t groups, int64_t each,
              float* to, int64_t to_stride) {
  switch (groups) {
    case 2: return Deal<2>(from, from_stride, rows, each, to, to_stride);
    case 4: return Deal<4>(from, from_stride, rows, each, to, to_stride);
    default: return Deal<8>(from, from_stride, rows, each, to, to_stride);
  }
}

}  // namespace
}  // namespace HWY_NAMESPACE
}  // namespace sardonyx::kernels
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace sardonyx::kernels {

HWY_EXPORT(DealRows);

void interleave_rows(const float* from, int64_t from_stride, int64_t rows, int64_t groups,
                     int64_t each, float* to, int64_t to_stride) {
  HWY_DYNAMIC_DISPATCH(DealRows)(from, from_stride, rows, groups, each, to, to_stride);
}
}  // namespace sardonyx::kernels
#endif
