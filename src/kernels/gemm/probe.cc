#include "kernels/gemm/probe.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "kernels/gemm/probe.cc"
#include <hwy/foreach_target.h>
#include <hwy/highway.h>

#include <algorithm>
#include <chrono>
#include <vector>

#include "kernels/gemm/microkernel-inl.h"

HWY_BEFORE_NAMESPACE();
namespace sardonyx::kernels {
namespace HWY_NAMESPACE {
namespace {
namespace hn = hwy::HWY_NAMESPACE;

constexpr int probe_sums = 12;

// Returns the operations done. `sink` keeps the compiler from leaving them out.
double MultiplyAdds(int64_t rounds, float* sink) {
  TileVec sums[probe_sums];
  const float start[2] = {0.5f, 0.25f};
  for (int i = 0; i < probe_sums; ++i) sums[i] = TileBroadcast(start);
  const TileVec a = TileBroadcast(sink), b = TileBroadcast(start + 1);
  for (int64_t round = 0; round < rounds; ++round) {
#pragma GCC unroll 16
    for (int i = 0; i < probe_sums; ++i) sums[i] = TileMulAdd(a, sums[i], b);
  }
  for (int i = 0; i < probe_sums; ++i) TileStoreVec(sums[i], sink + i * tile_lanes);
  return 2.0 * static_cast<double>(rounds) * probe_sums * tile_lanes;
}

void ReadAll(const float* data, int64_t count, float* sink) {
  constexpr int streams = 8;
  TileVec sums[streams];
  for (TileVec& sum : sums) sum = TileZero();
  const TileVec one = TileBroadcast(sink);
  for (int64_t i = 0; i + streams * tile_lanes <= count; i += streams * tile_lanes) {
#pragma GCC unroll 16
    for (int s = 0; s < streams; ++s) {
      sums[s] = TileMulAdd(TileLoad(data + i + s * tile_lanes), one, sums[s]);
    }
  }
  for (int s = 0; s < streams; ++s) TileStoreVec(sums[s], sink + s * tile_lanes);
}

}  // namespace
}  // namespace HWY_NAMESPACE
}  // namespace sardonyx::kernels
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace sardonyx::kernels {
namespace {

// The shortest time of one call of f, tried again and again for that long.
template <class F>
double shortest(double seconds, F&& f) {
  using Clock = std::chrono::steady_clock;
  const auto begin = Clock::now();
  double best = 1e30;
  for (auto start = begin; std::chrono::duration<double>(start - begin).count() < seconds;) {
    f();
    const auto end = Clock::now();
    best = std::min(best, std::chrono::duration<double>(end - start).count());
    start = end;
  }
  return best;
}

}  // namespace

HWY_EXPORT(MultiplyAdds);
HWY_EXPORT(ReadAll);

double probe_peak_flops(double seconds) {
  float sink[256] = {};
  double operations = 0;
  const double time =
      shortest(seconds, [&] { operations = HWY_DYNAMIC_DISPATCH(MultiplyAdds)(20000, sink); });
  return operations / time;
}

double probe_read_bandwidth(int64_t bytes, double seconds) {
  std::vector<float> data(static_cast<size_t>(std::max<int64_t>(bytes, 4096)) / sizeof(float),
                          1.0f);
  float sink[256] = {};
  const auto count = static_cast<int64_t>(data.size());
  // Small buffers are read several times, so that the clock's own time does not count.
  const int64_t repeats = std::max<int64_t>(1, (int64_t{1} << 18) / count);
  const double time = shortest(seconds, [&] {
    for (int64_t i = 0; i < repeats; ++i) {
      HWY_DYNAMIC_DISPATCH(ReadAll)(data.data(), count, sink);
    }
  });
  return static_cast<double>(repeats * count) * sizeof(float) / time;
}

}  // namespace sardonyx::kernels
#endif
