// Images with channels last that are joined along their channels, which are interleaved.
#pragma once

#include <cstdint>
#include <span>

namespace sardonyx {
class ThreadPool;
}

namespace sardonyx::kernels {

struct JoinedImage {
  const float* x;
  int64_t channels;
};

// Whether channels can be interleaved to so many groups.
bool can_interleave(int64_t groups);

// y[p][c * groups + g] = x[p][g * each + c], where x[p] are the channels of all images side by side
// and each is their number / groups; with `relu` max(x, 0) of it, where NaN stays. `scratch`:
// interleaved_concat_floats.
void interleaved_concat(std::span<const JoinedImage> images, int64_t pixels, int64_t groups,
                        bool relu, float* y, float* scratch, ThreadPool& pool);
int64_t interleaved_concat_floats(int64_t channels, int threads);

}  // namespace sardonyx::kernels
