#include "kernels/conv/im2col.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "kernels/conv/im2col.cc"
#include <hwy/foreach_target.h>
#include <hwy/highway.h>

#include <algorithm>

#include "kernels/conv/lanes-inl.h"

HWY_BEFORE_NAMESPACE();
namespace sardonyx::kernels {
namespace HWY_NAMESPACE {
namespace {
namespace hn = hwy::HWY_NAMESPACE;

// Output pixels that are neighbours in one row.
struct Run {
  int64_t begin, end;  // lanes
  int64_t d, h, w;     // input position of kernel position 0, at lane `begin`
};

constexpr int max_runs = 8;
constexpr int64_t tap_batch = 64;

// What one kernel position reads for one run: lane i is at offset + i * stride from its channel.
template <int stride>
struct Piece {
  int64_t offset;
  LanePair<stride> lanes;
};

// The runs of pixels [begin, begin + count); 0 if there are more than max_runs.
int FindRuns(const ConvGeometry& g, int64_t begin, int64_t count, Run (&runs)[max_runs]) {
  int found = 0;
  int64_t w = begin % g.out[2];
  int64_t h = begin / g.out[2] % g.out[1];
  int64_t d = begin / g.out[2] / g.out[1];
  for (int64_t lane = 0; lane < count; ++found) {
    if (found == max_runs) return 0;
    const int64_t end = std::min(count, lane + g.out[2] - w);
    runs[found] = {lane, end, d * g.stride[0] - g.pad[0], h * g.stride[1] - g.pad[1],
                   w * g.stride[2] - g.pad[2]};
    lane = end;
    w = 0;
    if (++h == g.out[1]) {
      h = 0;
      ++d;
    }
  }
  return found;
}

// The piece of `run` at kernel position (d, h, w); false if all of it is outside the image.
template <int known_stride>
HWY_INLINE bool PieceOf(const ConvGeometry& g, const Run& run, int64_t d, int64_t h, int64_t w,
                        Piece<known_stride>& piece) {
  const int64_t in_d = run.d + d * g.dilation[0];
  const int64_t in_h = run.h + h * g.dilation[1];
  if (in_d < 0 || in_d >= g.in[0] || in_h < 0 || in_h >= g.in[1]) return false;
  const int64_t in_w = run.w + w * g.dilation[2];
  const int64_t stride = known_stride == 0 ? g.stride[2] : known_stride;
  const int64_t room = g.in[2] - in_w;  // pixels from the run's first to the row's end
  if (room <= 0) return false;
  const int64_t begin = run.begin + (in_w < 0 ? (-in_w + stride - 1) / stride : 0);
  const int64_t end = std::min(run.end, run.begin + (room + stride - 1) / stride);
  if (begin >= end) return false;
  piece.offset = (in_d * g.in[1] + in_h) * g.in[2] + in_w - run.begin * stride;
  piece.lanes = LanePair<known_stride>(begin, end);
  return true;
}

// The pieces of a few taps: those of tap t are [first[t], first[t + 1]).
template <int stride>
struct Pieces {
  Piece<stride> pieces[tap_batch * max_runs];
  int first[tap_batch + 1];
  bool single = false;  // every tap has one piece
};

// Taps [done, done + taps).
template <int stride>
void FindPieces(const ConvGeometry& g, const Run* runs, int run_count, int64_t done, int64_t taps,
                Pieces<stride>& all) {
  int64_t w = done % g.kernel[2];
  int64_t h = done / g.kernel[2] % g.kernel[1];
  int64_t d = done / g.kernel[2] / g.kernel[1];
  int used = 0;
  all.single = true;
  for (int64_t t = 0; t < taps; ++t) {
    all.first[t] = used;
    for (int r = 0; r < run_count; ++r) {
      if (PieceOf<stride>(g, runs[r], d, h, w, all.pieces[used])) ++used;
    }
    all.single = all.single && used == all.first[t] + 1;
    if (++w < g.kernel[2]) continue;
    w = 0;
    if (++h < g.kernel[1]) continue;
    h = 0;
    ++d;
  }
  all.first[taps] = used;
}

// The taps of one channel.
template <int stride>
HWY_INLINE void CopyTaps(const Pieces<stride>& all, int64_t taps, const float* channel,
                         int64_t any_stride, float* to, int64_t out_stride) {
  if (all.single) {
    for (int64_t t = 0; t < taps; ++t, to += out_stride) {
      const Piece<stride>& piece = all.pieces[t];
      TileStoreVec(LoadEvery(piece.lanes, channel + piece.offset, any_stride), to);
    }
    return;
  }
  for (int64_t t = 0; t < taps; ++t, to += out_stride) {
    const Piece<stride>* piece = all.pieces + all.first[t];
    const Piece<stride>* end = all.pieces + all.first[t + 1];
    TileVec v = TileZero();
    if (piece < end) v = LoadEvery(piece->lanes, channel + piece->offset, any_stride);
    for (++piece; piece < end; ++piece) {
      v = Join(v, LoadEvery(piece->lanes, channel + piece->offset, any_stride));
    }
    TileStoreVec(v, to);
  }
}

// Whether everything that the run looks at is inside the image.
bool IsInside(const ConvGeometry& g, const Run& run) {
  const int64_t last = run.w + (run.end - run.begin - 1) * g.stride[2];
  return run.d >= 0 && run.h >= 0 && run.w >= 0 &&
         run.d + (g.kernel[0] - 1) * g.dilation[0] < g.in[0] &&
         run.h + (g.kernel[1] - 1) * g.dilation[1] < g.in[1] &&
         last + (g.kernel[2] - 1) * g.dilation[2] < g.in[2];
}

// Channels [begin, end) of a span that is one run inside the image.
template <int stride>
void GatherInside(const ConvGeometry& g, const Run& run, const float* image, int64_t begin,
                  int64_t end, float* out, int64_t out_stride) {
  const LanePair<stride> lanes(run.begin, run.end);
  const int64_t step = g.stride[2];
  const float* first = image + (run.d * g.in[1] + run.h) * g.in[2] + run.w - run.begin * step;
  float* to = out + begin * g.taps * out_stride;
  for (int64_t c = begin; c < end; ++c) {
    for (int64_t d = 0; d < g.kernel[0]; ++d) {
      for (int64_t h = 0; h < g.kernel[1]; ++h) {
        const float* from = first + c * g.in_pixels + g.tap_offset(d, h, 0);
        for (int64_t w = 0; w < g.kernel[2]; ++w, to += out_stride) {
          TileStoreVec(LoadEvery(lanes, from + w * g.dilation[2], step), to);
        }
      }
    }
  }
}

// Channels [begin, end) of one span.
template <int stride>
void GatherRuns(const ConvGeometry& g, const Run* runs, int run_count, const float* image,
                int64_t begin, int64_t end, float* out, int64_t out_stride) {
  if (run_count == 1 && IsInside(g, runs[0])) {
    return GatherInside<stride>(g, runs[0], image, begin, end, out, out_stride);
  }
  Pieces<stride> all;
  for (int64_t done = 0; done < g.taps; done += tap_batch) {
    const int64_t taps = std::min(tap_batch, g.taps - done);
    FindPieces<stride>(g, runs, run_count, done, taps, all);
    for (int64_t c = begin; c < end; ++c) {
      CopyTaps<stride>(all, taps, image + c * g.in_pixels, g.stride[2],
                       out + (c * g.taps + done) * out_stride, out_stride);
    }
  }
}

// Pixels scattered over many rows: one lane at a time.
void GatherEachLane(const ConvGeometry& g, const float* image, int64_t begin, int64_t count,
                    int64_t first_channel, int64_t end_channel, float* out, int64_t out_stride) {
  for (int64_t lane = 0; lane < tile_lanes; ++lane) {
    const int64_t pixel = begin + lane;
    const int64_t w0 = pixel % g.out[2] * g.stride[2] - g.pad[2];
    const int64_t h0 = pixel / g.out[2] % g.out[1] * g.stride[1] - g.pad[1];
    const int64_t d0 = pixel / g.out[2] / g.out[1] * g.stride[0] - g.pad[0];
    int64_t t = 0;
    for (int64_t i = 0; i < g.kernel[0]; ++i) {
      for (int64_t j = 0; j < g.kernel[1]; ++j) {
        for (int64_t k = 0; k < g.kernel[2]; ++k, ++t) {
          const int64_t d = d0 + i * g.dilation[0];
          const int64_t h = h0 + j * g.dilation[1];
          const int64_t w = w0 + k * g.dilation[2];
          const bool inside = lane < count && d >= 0 && d < g.in[0] && h >= 0 && h < g.in[1] &&
                              w >= 0 && w < g.in[2];
          const int64_t offset = (d * g.in[1] + h) * g.in[2] + w;
          float* to = out + t * out_stride + lane;
          for (int64_t c = first_channel; c < end_channel; ++c) {
            to[c * g.taps * out_stride] = inside ? image[c * g.in_pixels + offset] : 0.0f;
          }
        }
      }
    }
  }
}

void GatherSpan(const ConvGeometry& g, const float* image, const PixelSpan& span, int64_t begin,
                int64_t end, int64_t out_stride) {
  Run runs[max_runs];
  const int run_count = FindRuns(g, span.begin, span.count, runs);
  if (run_count == 0) {
    GatherEachLane(g, image, span.begin, span.count, begin, end, span.out, out_stride);
  } else if (g.stride[2] == 1) {
    GatherRuns<1>(g, runs, run_count, image, begin, end, span.out, out_stride);
  } else if (g.stride[2] == 2) {
    GatherRuns<2>(g, runs, run_count, image, begin, end, span.out, out_stride);
  } else {
    GatherRuns<0>(g, runs, run_count, image, begin, end, span.out, out_stride);
  }
}

// One tap that looks at the output pixel's own place.
void CopyPixels(const ConvGeometry& g, const float* image, const PixelSpan* spans,
                int64_t span_count, int64_t out_stride) {
  for (int64_t c = 0; c < g.group_in; ++c) {
    const float* channel = image + c * g.in_pixels;
    for (int64_t i = 0; i < span_count; ++i) {
      TileStoreVec(LoadLanes(LaneRange(0, spans[i].count), channel + spans[i].begin),
                   spans[i].out + c * out_stride);
    }
  }
}

void GatherWindows(const ConvGeometry& g, const float* image, const PixelSpan* spans,
                   int64_t span_count, int64_t out_stride) {
  if (g.taps == 1 && g.in == g.out && g.pad == ConvParams::Dims{} &&
      g.stride == ConvParams::Dims{1, 1, 1} && tile_lanes > 8) {
    return CopyPixels(g, image, spans, span_count, out_stride);
  }
  // All spans of a few channels at a time: the image is then read from front to back.
  constexpr int64_t near_bytes = 32 << 10;
  const int64_t channels =
      std::clamp<int64_t>(near_bytes / (4 * std::max<int64_t>(g.in_pixels, 1)), 8, 1024);
  const int64_t step = span_count == 1 ? g.group_in : channels;
  for (int64_t begin = 0; begin < g.group_in; begin += step) {
    const int64_t end = std::min(begin + step, g.group_in);
    for (int64_t i = 0; i < span_count; ++i) GatherSpan(g, image, spans[i], begin, end, out_stride);
  }
}

}  // namespace
}  // namespace HWY_NAMESPACE
}  // namespace sardonyx::kernels
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace sardonyx::kernels {

HWY_EXPORT(GatherWindows);
void gather_windows(const ConvGeometry& geometry, const float* image, const PixelSpan* spans,
                    int64_t span_count, int64_t out_stride) {
  HWY_DYNAMIC_DISPATCH(GatherWindows)(geometry, image, spans, span_count, out_stride);
}

}  // namespace sardonyx::kernels
#endif
