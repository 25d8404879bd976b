#include "kernels/sample/deform.h"

#include <algorithm>
#include <cmath>

namespace sardonyx::kernels {
namespace {

// x at a position between its elements; what is outside counts as 0.
template <class T>
T sample(const ConvShape& s, const T* plane, const T* position) {
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

}  // namespace

template <class T>
void deform_columns(const ConvShape& s, int64_t offset_groups, const T* x, const T* offset,
                    const T* mask, T* columns, ThreadPool& pool) {
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
            T position[ConvShape::max_rank];
            int64_t at = o, tap = t;
            for (int d = s.rank - 1; d >= 0; --d) {
              const auto k = static_cast<size_t>(d);
              position[d] = static_cast<T>(at % s.out[k] * s.stride[k] +
                                           tap % s.kernel[k] * s.dilation[k] - s.pad_begin[k]) +
                            offset[shift * s.rank + d * positions + o];
              at /= s.out[k], tap /= s.kernel[k];
            }
            const T value = sample(s, x + c * pixels, position);
            columns[i * positions + o] = mask ? value * mask[shift + o] : value;
          }
        }
      });
}

template void deform_columns<float>(const ConvShape&, int64_t, const float*, const float*,
                                    const float*, float*, ThreadPool&);
template void deform_columns<double>(const ConvShape&, int64_t, const double*, const double*,
                                     const double*, double*, ThreadPool&);

}  // namespace sardonyx::kernels
