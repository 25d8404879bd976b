#include "kernels/sample/deform.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <type_traits>

#include "kernels/sample/plane_points.h"

namespace sardonyx::kernels {
namespace {

// x at a position between its elements; what is outside counts as 0.
template <class T>
T sample(const ConvParams& s, const T* plane, const T* position) {
  int64_t offset[8] = {0};
  T weight[8] = {1};
  int count = 1;
  for (int d = 0; d < s.rank; ++d) {
    const int64_t size = s.in[static_cast<size_t>(d)];
    if (!(position[d] > T(-1) && position[d] < static_cast<T>(size))) return 0;
    const T whole = std::floor(position[d]), part = position[d] - whole;
    const auto low = static_cast<int64_t>(whole);
    int64_t next_offset[8];
    T next_weight[8];
    int next = 0;
    for (int i = 0; i < count; ++i) {
      if (low >= 0)
        next_offset[next] = offset[i] * size + low, next_weight[next++] = weight[i] * (1 - part);
      if (low + 1 < size)
        next_offset[next] = offset[i] * size + low + 1, next_weight[next++] = weight[i] * part;
    }
    std::copy_n(next_offset, next, offset), std::copy_n(next_weight, next, weight);
    count = next;
  }
  T sum = 0;
  for (int i = 0; i < count; ++i) sum += weight[i] * plane[offset[i]];
  return sum;
}

// Output position `o`'s source of kernel position `tap`, before the offset, along each dimension.
template <class T>
void undeformed(const ConvParams& s, int64_t o, int64_t tap, T* position) {
  for (int d = s.rank - 1; d >= 0; --d) {
    const auto k = static_cast<size_t>(d);
    position[d] = static_cast<T>(o % s.out[k] * s.stride[k] + tap % s.kernel[k] * s.dilation[k] -
                                 s.pad_begin[k]);
    o /= s.out[k], tap /= s.kernel[k];
  }
}

bool is_plane(const ConvParams& s) {
  constexpr int64_t most = std::numeric_limits<int32_t>::max(), longest = 1 << 23;
  return s.rank == 2 && s.in[0] > 0 && s.in[1] > 0 && s.in[0] < longest && s.in[1] < longest &&
         s.in[0] <= most / s.in[1];
}

// The positions of one tap are those of all channels of an offset group.
void deform_planes(const ConvParams& s, int64_t offset_groups, const float* x, const float* offset,
                   const float* mask, float* columns, ThreadPool& pool) {
  const int64_t taps = s.kernel[0] * s.kernel[1], positions = s.out[0] * s.out[1],
                pixels = s.in[0] * s.in[1], each = s.in_channels / offset_groups;
  constexpr int64_t most = PlanePoints::most;
  const int64_t blocks = (positions + most - 1) / most;
  const int64_t grain = std::max<int64_t>(1, 4096 / (most * std::max<int64_t>(1, each)));
  pool.parallel_for(offset_groups * taps * blocks, grain, [&](int64_t begin, int64_t end, int) {
    PlanePoints points;
    float down[most] = {}, across[most] = {};
    for (int64_t i = begin; i < end; ++i) {
      const int64_t at = i / blocks, group = at / taps, tap = at % taps;
      const int64_t first = i % blocks * most, count = std::min(most, positions - first);
      const float *offsets = offset + at * 2 * positions + first,
                  *factors = mask == nullptr ? nullptr : mask + at * positions + first;
      for (int64_t k = 0; k < count; ++k) {
        float position[2];
        undeformed(s, first + k, tap, position);
        down[k] = position[0] + offsets[k], across[k] = position[1] + offsets[positions + k];
      }
      place_points_at(s.in[0], s.in[1], down, across, count, points);
      const float* planes = x + group * each * pixels;
      float* to = columns + (group * each * taps + tap) * positions + first;
      sample_points(points, planes, pixels, to, taps * positions, each);
      if (factors == nullptr) continue;
      for (int64_t c = 0; c < each; ++c)
        for (int64_t k = 0; k < count; ++k) to[c * taps * positions + k] *= factors[k];
    }
  });
}

}  // namespace

template <class T>
void deform_columns(const ConvParams& s, int64_t offset_groups, const T* x, const T* offset,
                    const T* mask, T* columns, ThreadPool& pool) {
  if constexpr (std::is_same_v<T, float>) {
    if (is_plane(s)) return deform_planes(s, offset_groups, x, offset, mask, columns, pool);
  }
  int64_t taps = 1, positions = 1, pixels = 1;
  for (int d = 0; d < s.rank; ++d) {
    const auto i = static_cast<size_t>(d);
    taps *= s.kernel[i], positions *= s.out[i], pixels *= s.in[i];
  }
  const int64_t each = s.in_channels / offset_groups;
  pool.parallel_for(
      s.in_channels * taps, std::max<int64_t>(1, 4096 / std::max<int64_t>(1, positions)),
      [&](int64_t begin, int64_t end, int) {
        for (int64_t i = begin; i < end; ++i) {
          const int64_t c = i / taps, t = i % taps, shift = (c / each * taps + t) * positions;
          for (int64_t o = 0; o < positions; ++o) {
            T position[ConvParams::max_rank];
            undeformed(s, o, t, position);
            for (int d = 0; d < s.rank; ++d)
              position[d] += offset[shift * s.rank + d * positions + o];
            const T value = sample(s, x + c * pixels, position);
            columns[i * positions + o] = mask ? value * mask[shift + o] : value;
          }
        }
      });
}

template void deform_columns<float>(const ConvParams&, int64_t, const float*, const float*,
                                    const float*, float*, ThreadPool&);
template void deform_columns<double>(const ConvParams&, int64_t, const double*, const double*,
                                     const double*, double*, ThreadPool&);

}  // namespace sardonyx::kernels
