// The products of one plane of x with one plane of dy: a sum for each tap.
#include "kernels/conv/weight_gradient.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "kernels/conv/plane_gradient.cc"
#include <hwy/foreach_target.h>
#include <hwy/highway.h>

#include "kernels/conv/geometry.h"
#include "kernels/conv/lanes-inl.h"

HWY_BEFORE_NAMESPACE();
namespace sardonyx::kernels {
namespace HWY_NAMESPACE {
namespace {
namespace hn = hwy::HWY_NAMESPACE;

constexpr int max_taps = 8;  // of a line, at a time

double LaneSum(TileVec v) {
  float lanes[tile_lanes];
  TileStoreVec(v, lanes);
  for (int half = tile_lanes / 2; half > 0; half /= 2) {
    for (int i = 0; i < half; ++i) lanes[i] += lanes[i + half];
  }
  return static_cast<double>(lanes[0]);
}

// `taps` neighbouring taps of the kernel's line (d, h), from tap `first` on.
template <int taps>
void AddTaps(const PlaneGradient& job, int64_t d, int64_t h, int64_t first) {
  const ConvGeometry& g = job.geometry;
  const float* offsets[taps];  // of each tap from the beginning of a line
  for (int t = 0; t < taps; ++t) {
    const int64_t at = (first + t) * g.dilation[2];
    offsets[t] = job.lines + at % g.stride[2] * job.phase_floats + at / g.stride[2];
  }
  const int64_t width = g.out[2], whole = width / tile_lanes * tile_lanes;
  const LaneRange rest(0, width - whole);
  TileVec sums[taps];
  for (int t = 0; t < taps; ++t) sums[t] = TileZero();
  for (int64_t od = 0; od < g.out[0]; ++od) {
    const int64_t in_d = od * g.stride[0] + d * g.dilation[0] - g.pad[0];
    if (in_d < 0 || in_d >= g.in[0]) continue;
    for (int64_t oh = 0; oh < g.out[1]; ++oh) {
      const int64_t in_h = oh * g.stride[1] + h * g.dilation[1] - g.pad[1];
      if (in_h < 0 || in_h >= g.in[1]) continue;
      const float* dy = job.dy + (od * g.out[1] + oh) * width;
      const int64_t line = (in_d * g.in[1] + in_h) * job.line_floats;
      for (int64_t i = 0; i < whole; i += tile_lanes) {
        const TileVec flow = TileLoad(dy + i);
        for (int t = 0; t < taps; ++t)
          sums[t] = TileMulAdd(flow, TileLoad(offsets[t] + line + i), sums[t]);
      }
      if (whole == width) continue;
      // What stands behind the line may be infinite: it is not multiplied by 0.
      const TileVec flow = LoadLanes(rest, dy + whole);
      for (int t = 0; t < taps; ++t)
        sums[t] = TileMulAdd(flow, LoadLanes(rest, offsets[t] + line + whole), sums[t]);
    }
  }
  double* to = job.sums + (d * g.kernel[1] + h) * g.kernel[2] + first;
  for (int t = 0; t < taps; ++t) to[t] += LaneSum(sums[t]);
}

void AddPlaneGradient(const PlaneGradient& job) {
  const ConvGeometry& g = job.geometry;
  for (int64_t d = 0; d < g.kernel[0]; ++d) {
    for (int64_t h = 0; h < g.kernel[1]; ++h) {
      int64_t first = 0;
      for (; first + max_taps <= g.kernel[2]; first += max_taps)
        AddTaps<max_taps>(job, d, h, first);
      switch (g.kernel[2] - first) {
        case 1: AddTaps<1>(job, d, h, first); break;
        case 2: AddTaps<2>(job, d, h, first); break;
        case 3: AddTaps<3>(job, d, h, first); break;
        case 4: AddTaps<4>(job, d, h, first); break;
        case 5: AddTaps<5>(job, d, h, first); break;
        case 6: AddTaps<6>(job, d, h, first); break;
        case 7: AddTaps<7>(job, d, h, first); break;
        default: break;
      }
    }
  }
}

}  // namespace
}  // namespace HWY_NAMESPACE
}  // namespace sardonyx::kernels
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace sardonyx::kernels {

HWY_EXPORT(AddPlaneGradient);
void add_plane_gradient(const PlaneGradient& job) { HWY_DYNAMIC_DISPATCH(AddPlaneGradient)(job); }

}  // namespace sardonyx::kernels
#endif
