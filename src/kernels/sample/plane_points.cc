#include "kernels/sample/plane_points.h"

#include <algorithm>
#include <limits>

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "kernels/sample/plane_points.cc"
#include <hwy/foreach_target.h>
#include <hwy/highway.h>

HWY_BEFORE_NAMESPACE();
namespace sardonyx::kernels {
namespace HWY_NAMESPACE {
namespace hn = hwy::HWY_NAMESPACE;

template <class D, class I = hn::RebindToSigned<D>>
struct Axis {
  hn::Vec<I> index[2];
  hn::Vec<D> weight[2];
  hn::Mask<I> inside;
};

// The elements beside each position along an axis of `size` elements, which outside are those at
// its ends.
template <class D>
HWY_INLINE Axis<D> PlaceOnAxis(D d, const GridShape& s, int64_t size, hn::Vec<D> position) {
  const hn::RebindToSigned<D> di;
  const auto set = [d](double v) HWY_ATTR { return hn::Set(d, static_cast<float>(v)); };
  const auto one = set(1), half = set(0.5), extent = set(static_cast<double>(size));
  position = hn::Add(position, one);
  auto x = s.align_corners ? hn::Mul(hn::Mul(position, half), set(static_cast<double>(size - 1)))
                           : hn::Mul(hn::Sub(hn::Mul(position, extent), one), half);
  x = hn::IfThenElseZero(hn::Eq(x, x), x);
  if (s.padding == SamplePadding::border)
    x = hn::Min(hn::Max(x, hn::Zero(d)), set(static_cast<double>(size - 1)));
  x = hn::Min(hn::Max(x, set(-4)), set(static_cast<double>(size + 4)));
  const auto whole = hn::Floor(x), part = hn::Sub(x, whole);
  const auto first = hn::ConvertTo(di, whole), second = hn::Add(first, hn::Set(di, 1));
  const auto last = hn::Set(di, static_cast<int32_t>(size - 1));
  Axis<D> axis;
  axis.weight[0] = hn::Sub(one, part), axis.weight[1] = part;
  axis.index[0] = hn::Min(hn::Max(first, hn::Zero(di)), last);
  axis.index[1] = hn::Min(hn::Max(second, hn::Zero(di)), last);
  axis.inside = hn::And(hn::Eq(axis.index[0], first), hn::Eq(axis.index[1], second));
  return axis;
}

// Lanes(d) points from `from` on.
template <class D>
HWY_INLINE void PlaceVector(D d, const GridShape& s, hn::Vec<D> across, hn::Vec<D> down,
                            int64_t from, PlanePoints& points) {
  const hn::RebindToSigned<D> di;
  const auto row = PlaceOnAxis(d, s, s.in[0], down), column = PlaceOnAxis(d, s, s.in[1], across);
  const auto width = hn::Set(di, static_cast<int32_t>(s.in[1]));
  for (int i = 0; i < 2; ++i) {
    const auto line = hn::Mul(row.index[i], width);
    for (int j = 0; j < 2; ++j) {
      hn::StoreU(hn::Add(line, column.index[j]), di, points.offset[2 * i + j] + from);
      hn::StoreU(hn::Mul(row.weight[i], column.weight[j]), d, points.weight[2 * i + j] + from);
    }
  }
  const bool clamped = s.padding == SamplePadding::border;
  HWY_ALIGN int32_t inside[HWY_LANES(int32_t)];
  hn::Store(hn::VecFromMask(di, hn::And(row.inside, column.inside)), di, inside);
  for (size_t i = 0; i < hn::Lanes(d); ++i)
    points.inside[from + static_cast<int64_t>(i)] = clamped || inside[i] != 0;
}

void PlacePoints(const GridShape& s, const float* grid, int64_t count, PlanePoints& points) {
  const hn::ScalableTag<float> d;
  const auto lanes = static_cast<int64_t>(hn::Lanes(d));
  static_assert(PlanePoints::most % HWY_LANES(float) == 0);
  points.count = count;
  int64_t i = 0;
  for (; i + lanes <= count; i += lanes) {
    hn::Vec<decltype(d)> across, down;
    hn::LoadInterleaved2(d, grid + 2 * i, across, down);
    PlaceVector(d, s, across, down, i, points);
  }
  if (i == count) return;
  HWY_ALIGN float rest[2 * HWY_LANES(float)] = {};
  std::copy(grid + 2 * i, grid + 2 * count, rest);
  hn::Vec<decltype(d)> across, down;
  hn::LoadInterleaved2(d, rest, across, down);
  PlaceVector(d, s, across, down, i, points);
}

// `channels` planes at once: a point's offsets and weights are read once for all of them.
template <int channels>
HWY_INLINE void SamplePlanes(const PlanePoints& p, const float* x, int64_t x_plane, float* y,
                             int64_t y_plane) {
  for (int64_t i = 0; i < p.count; ++i) {
    const int64_t at[4] = {p.offset[0][i], p.offset[1][i], p.offset[2][i], p.offset[3][i]};
    const float w[4] = {p.weight[0][i], p.weight[1][i], p.weight[2][i], p.weight[3][i]};
    for (int c = 0; c < channels; ++c) {
      const float* plane = x + c * x_plane;
      y[c * y_plane + i] =
          w[0] * plane[at[0]] + w[1] * plane[at[1]] + w[2] * plane[at[2]] + w[3] * plane[at[3]];
    }
  }
}

void SamplePoints(const PlanePoints& points, const float* x, int64_t x_plane, float* y,
                  int64_t y_plane, int64_t channels) {
  int64_t c = 0;
  for (; c + 4 <= channels; c += 4)
    SamplePlanes<4>(points, x + c * x_plane, x_plane, y + c * y_plane, y_plane);
  for (; c < channels; ++c)
    SamplePlanes<1>(points, x + c * x_plane, x_plane, y + c * y_plane, y_plane);
}

}  // namespace HWY_NAMESPACE
}  // namespace sardonyx::kernels
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace sardonyx::kernels {

HWY_EXPORT(PlacePoints);
HWY_EXPORT(SamplePoints);

bool places_points(const GridShape& s) {
  constexpr int64_t most = std::numeric_limits<int32_t>::max();
  return s.mode == SampleMode::linear && s.rank == 2 && s.padding != SamplePadding::reflection &&
         s.in[0] > 0 && s.in[1] > 0 && s.in[0] < (1 << 23) && s.in[1] < (1 << 23) &&
         s.in[0] <= most / s.in[1];
}

void place_points(const GridShape& shape, const float* grid, int64_t count, PlanePoints& points) {
  HWY_DYNAMIC_DISPATCH(PlacePoints)(shape, grid, count, points);
}

void sample_points(const PlanePoints& points, const float* x, int64_t x_plane, float* y,
                   int64_t y_plane, int64_t channels) {
  HWY_DYNAMIC_DISPATCH(SamplePoints)(points, x, x_plane, y, y_plane, channels);
}

}  // namespace sardonyx::kernels
#endif
