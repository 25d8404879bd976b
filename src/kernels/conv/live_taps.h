// Kernel positions that read anything. Internal to kernels/conv.
#pragma once

#include <algorithm>
#include <cstdint>

#include "kernels/conv/geometry.h"
#include "kernels/gemm/blocking.h"

namespace sardonyx::kernels {

// Taps [first, end) along an axis that outputs [begin, end) of it need, one at least: others read
// only what is outside the image.
struct TapRange {
  TapRange(const ConvGeometry& g, size_t axis, int64_t begin_output, int64_t end_output) {
    const int64_t step = g.dilation[axis], last = g.in[axis] - 1 + g.pad[axis];
    const int64_t before = std::max<int64_t>(0, g.pad[axis] - (end_output - 1) * g.stride[axis]);
    const int64_t room = last - begin_output * g.stride[axis];
    first = std::min(divide_up(before, step), g.kernel[axis] - 1);
    end = std::clamp(room < 0 ? 0 : room / step + 1, first + 1, g.kernel[axis]);
  }
  int64_t first, end;
};

// A convolution without the kernel positions that read nothing but what is outside the image:
// kernels of many dilations reach far beyond small images. Those that are left stand in a box.
struct LiveTaps {
  ConvGeometry g;             // of those alone
  ConvParams::Dims first{};   // the first of them along each axis
  ConvParams::Dims kernel{};  // all of them, as the weights are packed

  explicit LiveTaps(const ConvGeometry& all) : g(all), kernel(all.kernel) {}

  // Leaves out what all outputs do not need.
  LiveTaps& of_all() {
    for (size_t axis = 0; axis < 3 && g.out_pixels > 0; ++axis) keep(axis, 0, g.out[axis]);
    return *this;
  }

  // What `count` output pixels from `pixel` on need, counted through the whole batch.
  LiveTaps of_pixels(int64_t pixel, int64_t count) const {
    LiveTaps live = *this;
    int64_t begin = pixel, end = pixel + count - 1;
    const int64_t left = begin % g.out[2], right = end % g.out[2];
    begin /= g.out[2], end /= g.out[2];
    const int64_t top = begin % g.out[1], bottom = end % g.out[1];
    const bool one_line = begin == end;
    begin /= g.out[1], end /= g.out[1];
    const bool one_plane = begin == end;
    if (begin / g.out[0] == end / g.out[0]) live.keep(0, begin % g.out[0], end % g.out[0] + 1);
    if (one_plane) live.keep(1, top, bottom + 1);
    if (one_line) live.keep(2, left, right + 1);
    return live;
  }

  // run(begin, weight, size) for terms [begin, begin + size) of the windows' sums, at most `most`
  // at once, whose weights follow each other from term `weight` of all on.
  template <class Run>
  void for_runs(int64_t most, Run&& run) const {
    const auto weight = [&](int64_t d, int64_t h) {
      return (((first[0] + d) * kernel[1] + first[1] + h) * kernel[2] + first[2]) * g.group_in;
    };
    const int64_t line = g.kernel[2] * g.group_in;
    int64_t begin = 0, from = weight(0, 0), size = 0;
    const auto give = [&] {
      const Chunks chunks{size, most};
      int64_t done = 0;  // sums without terms are made, too
      do {
        run(begin + done, from + done, std::min(chunks.size(), size - done));
        done += chunks.size();
      } while (done < size);
    };
    for (int64_t d = 0; d < g.kernel[0]; ++d) {
      for (int64_t h = 0; h < g.kernel[1]; ++h) {
        if (weight(d, h) != from + size) {
          give();
          begin += size, from = weight(d, h), size = 0;
        }
        size += line;
      }
    }
    give();
  }

 private:
  // For outputs [begin, end) along the axis.
  void keep(size_t axis, int64_t begin, int64_t end) {
    const TapRange taps(g, axis, begin, end);
    g.kernel[axis] = taps.end - taps.first;
    g.pad[axis] -= taps.first * g.dilation[axis];
    first[axis] += taps.first;
    g.taps = g.kernel[0] * g.kernel[1] * g.kernel[2];
    g.terms = g.group_in * g.taps;
  }
};

}  // namespace sardonyx::kernels
