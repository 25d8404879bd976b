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
  hn::Mask<I> inside[2];
};

// The elements beside each position along an axis of `size` elements, which outside are those at
// its ends.
template <class D>
HWY_INLINE Axis<D> PlaceOnAxis(D d, int64_t size, hn::Vec<D> x) {
  const hn::RebindToSigned<D> di;
  // Far outside is as far as this; so is what is no number.
  const auto far = hn::Set(d, -4.f);
  x = hn::IfThenElse(hn::Eq(x, x), x, far);
  x = hn::Min(hn::Max(x, far), hn::Set(d, static_cast<float>(size + 4)));
  const auto whole = hn::Floor(x), part = hn::Sub(x, whole);
  const auto first = hn::ConvertTo(di, whole), second = hn::Add(first, hn::Set(di, 1));
  const auto last = hn::Set(di, static_cast<int32_t>(size - 1));
  Axis<D> axis;
  axis.weight[0] = hn::Sub(hn::Set(d, 1.f), part), axis.weight[1] = part;
  axis.index[0] = hn::Min(hn::Max(first, hn::Zero(di)), last);
  axis.index[1] = hn::Min(hn::Max(second, hn::Zero(di)), last);
  axis.inside[0] = hn::Eq(axis.index[0], first), axis.inside[1] = hn::Eq(axis.index[1], second);
  return axis;
}

// Lanes(d) points from `from` on.
template <class D>
HWY_INLINE void PlaceVector(D d, int64_t height, int64_t width, hn::Vec<D> down, hn::Vec<D> across,
                            int64_t from, PlanePoints& points) {
  const hn::RebindToSigned<D> di;
  const auto row = PlaceOnAxis(d, height, down), column = PlaceOnAxis(d, width, across);
  const auto pitch = hn::Set(di, static_cast<int32_t>(width));
  auto bits = hn::Zero(di);
  for (int i = 0; i < 2; ++i) {
    const auto line = hn::Mul(row.index[i], pitch);
    for (int j = 0; j < 2; ++j) {
      const int tap = 2 * i + j;
      hn::StoreU(hn::Add(line, column.index[j]), di, points.offset[tap] + from);
      hn::StoreU(hn::Mul(row.weight[i], column.weight[j]), d, points.weight[tap] + from);
      const auto inside = hn::And(row.inside[i], column.inside[j]);
      bits = hn::Or(bits, hn::IfThenElseZero(inside, hn::Set(di, 1 << tap)));
    }
  }
  HWY_ALIGN int32_t inside[HWY_LANES(int32_t)];
  hn::Store(bits, di, inside);
  for (size_t i = 0; i < hn::Lanes(d); ++i)
    points.inside[from + static_cast<int64_t>(i)] = static_cast<uint8_t>(inside[i]);
}

// GridSample's coordinates, -1 to 1 across an axis, in elements.
template <class D>
HWY_INLINE hn::Vec<D> InElements(D d, const GridShape& s, int64_t size, hn::Vec<D> position) {
  const auto set = [d](double v) HWY_ATTR { return hn::Set(d, static_cast<float>(v)); };
  const auto one = set(1), half = set(0.5), last = set(static_cast<double>(size - 1));
  position = hn::Add(position, one);
  auto x = s.align_corners
               ? hn::Mul(hn::Mul(position, half), last)
               : hn::Mul(hn::Sub(hn::Mul(position, set(static_cast<double>(size))), one), half);
  x = hn::IfThenElseZero(hn::Eq(x, x), x);
  return s.padding == SamplePadding::border ? hn::Min(hn::Max(x, hn::Zero(d)), last) : x;
}

void PlacePoints(const GridShape& s, const float* grid, int64_t count, PlanePoints& points) {
  const hn::ScalableTag<float> d;
  const auto lanes = static_cast<int64_t>(hn::Lanes(d));
  static_assert(PlanePoints::most % HWY_LANES(float) == 0);
  points.count = count;
  for (int64_t i = 0; i < count; i += lanes) {
    HWY_ALIGN float rest[2 * HWY_LANES(float)] = {};
    const float* from = grid + 2 * i;
    if (i + lanes > count) {
      std::copy(from, grid + 2 * count, rest);
      from = rest;
    }
    hn::Vec<decltype(d)> across, down;
    hn::LoadInterleaved2(d, from, across, down);
    PlaceVector(d, s.in[0], s.in[1], InElements(d, s, s.in[0], down),
                InElements(d, s, s.in[1], across), i, points);
  }
  // At a border the elements beside a position are inside, or have no weight.
  if (s.padding == SamplePadding::border) std::fill_n(points.inside, count, PlanePoints::all);
}

void PlacePointsAt(int64_t height, int64_t width, const float* down, const float* across,
                   int64_t count, PlanePoints& points) {
  const hn::ScalableTag<float> d;
  const auto lanes = static_cast<int64_t>(hn::Lanes(d));
  points.count = count;
  for (int64_t i = 0; i < count; i += lanes) {
    PlaceVector(d, height, width, hn::LoadU(d, down + i), hn::LoadU(d, across + i), i, points);
  }
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

// Point i, of which not all elements are inside.
void SampleEdge(const PlanePoints& p, int64_t i, const float* x, int64_t x_plane, float* y,
                int64_t y_plane, int64_t channels) {
  int count = 0;
  int64_t at[4];
  float weight[4];
  for (int tap = 0; tap < 4; ++tap) {
    if ((p.inside[i] >> tap & 1) == 0) continue;
    at[count] = p.offset[tap][i], weight[count++] = p.weight[tap][i];
  }
  for (int64_t c = 0; c < channels; ++c) {
    float sum = 0;
    for (int k = 0; k < count; ++k) sum += weight[k] * x[c * x_plane + at[k]];
    y[c * y_plane + i] = sum;
  }
}

void SamplePoints(const PlanePoints& points, const float* x, int64_t x_plane, float* y,
                  int64_t y_plane, int64_t channels) {
  int64_t c = 0;
  for (; c + 4 <= channels; c += 4)
    SamplePlanes<4>(points, x + c * x_plane, x_plane, y + c * y_plane, y_plane);
  for (; c < channels; ++c)
    SamplePlanes<1>(points, x + c * x_plane, x_plane, y + c * y_plane, y_plane);
  for (int64_t i = 0; i < points.count; ++i)
    if (points.inside[i] != PlanePoints::all)
      SampleEdge(points, i, x, x_plane, y, y_plane, channels);
}

}  // namespace HWY_NAMESPACE
}  // namespace sardonyx::kernels
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace sardonyx::kernels {

HWY_EXPORT(PlacePoints);
HWY_EXPORT(PlacePointsAt);
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

void place_points_at(int64_t height, int64_t width, const float* down, const float* across,
                     int64_t count, PlanePoints& points) {
  HWY_DYNAMIC_DISPATCH(PlacePointsAt)(height, width, down, across, count, points);
}

void sample_points(const PlanePoints& points, const float* x, int64_t x_plane, float* y,
                   int64_t y_plane, int64_t channels) {
  HWY_DYNAMIC_DISPATCH(SamplePoints)(points, x, x_plane, y, y_plane, channels);
}

}  // namespace sardonyx::kernels
#endif
