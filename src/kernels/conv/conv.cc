// Choosing among the ways to compute a convolution, and packing weights for them.
//
// Packed weights are, group after group, panels of output channels as in gemm/packed_gemm.cc; for
// Winograd each panel's values of each plane are such a panel; for the depthwise paths weights stay
// as they came. With channels last the terms of a sum run over the taps, and in each over the
// channels; depthwise weights are taps x channels.
#include "kernels/conv/conv.h"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <vector>

#include "base/thread_pool.h"
#include "kernels/conv/path.h"
#include "kernels/conv/winograd.h"
#include "kernels/gemm/blocking.h"

namespace sardonyx::kernels {
namespace {

bool is_depthwise(ConvPath path) {
  return path == ConvPath::depthwise_rows || path == ConvPath::depthwise_any ||
         path == ConvPath::depthwise_nhwc;
}

bool is_winograd(ConvPath path) {
  return path == ConvPath::winograd || path == ConvPath::winograd_nhwc;
}

bool is_empty(const ConvGeometry& g) {
  return g.batch <= 0 || g.group_out <= 0 || g.out_pixels <= 0;
}

// How the weights of one shape are stored.
struct WeightFormat {
  explicit WeightFormat(const ConvParams& shape)
      : g(shape),
        path(choose_conv(shape).path),
        kernels(tile_kernels()),
        panels{g.group_out, kernels.panel_columns, kernels.lanes},
        groups(g.group) {
    if (is_winograd(path)) {
      rows = winograd_planes(g.winograd) * g.group_in;
    } else {
      rows = g.terms;
    }
    const bool dense =
        is_depthwise(path) || path == ConvPath::grouped_nhwc || path == ConvPath::dots_nhwc;
    columns = dense ? g.group_out : panels.stored_columns();
    if (path == ConvPath::interleaved_nhwc) {
      groups = 1;
      panels.columns = g.group * g.group_out;
      columns = panels.stored_columns();
    }
  }

  // The weights of `count` output channels from `first` on, times their factors, to aligned memory.
  void fetch(const void* weights, const float* factors, int64_t first, int64_t count,
             float* to) const {
    const auto* from = static_cast<const char*>(weights) + first * g.terms * int64_t{sizeof(float)};
    std::memcpy(to, from, static_cast<size_t>(count * g.terms) * sizeof(float));
    for (int64_t m = 0; factors != nullptr && m < count; ++m) {
      const float factor = factors[first + m];
      for (int64_t k = 0; k < g.terms; ++k) to[m * g.terms + k] *= factor;
    }
  }

  int64_t used_bytes() const { return groups * rows * columns * int64_t{sizeof(float)}; }

  // `space` has room for two panels.
  void pack(int64_t group, int64_t panel, const void* weights, const float* factors, float* space,
            float* out) const {
    const int64_t first = panel * panels.width, used = panels.used(panel);
    const int64_t width = panels.stored(panel);
    float* to = out + (group * columns + first) * rows;
    if (path == ConvPath::interleaved_nhwc) {
      for (int64_t m = 0; m < used; ++m) {
        const int64_t interleaved = (first + m) % g.group * g.group_out + (first + m) / g.group;
        fetch(weights, factors, interleaved, 1, space + m * g.terms);
      }
    } else {
      fetch(weights, factors, group * g.group_out + first, used, space);
    }
    if (is_winograd(path)) {
      winograd_weights(g.winograd, space, g.group_in, used, width, to);
      return;
    }
    const bool by_tap = path == ConvPath::windows_nhwc || path == ConvPath::lines_nhwc;
    if (!by_tap || g.taps == 1) {
      pack_panel(kernels, space, 1, g.terms, g.terms, used, to, width);
      return;
    }
    float* by_channel = space + panels.width * g.terms;
    pack_panel(kernels, space, 1, g.terms, g.terms, used, by_channel, width);
    for (int64_t tap = 0; tap < g.taps; ++tap) {
      for (int64_t c = 0; c < g.group_in; ++c, to += width) {
        const float* row = by_channel + (c * g.taps + tap) * width;
        std::copy(row, row + width, to);
      }
    }
  }

  // As grouped_nhwc_line takes them.
  void pack_grouped(const void* weights, const float* factors, float* out, ThreadPool* pool) const {
    const auto pack = [&](int64_t begin, int64_t end, int) {
      pack_grouped(weights, factors, begin, end, out);
    };
    const int64_t count = g.group * g.group_out;
    constexpr int64_t task = 16384;  // elements; whole vectors, so that no two write to one
    const int64_t grain = round_up(std::max<int64_t>(1, task / g.terms), kernels.lanes);
    if (pool != nullptr) {
      pool->parallel_for(count, grain, pack);
    } else {
      pack(0, count, 0);
    }
  }
  void pack_grouped(const void* weights, const float* factors, int64_t begin, int64_t end,
                    float* out) const {
    std::vector<float> row(static_cast<size_t>(g.terms));
    for (int64_t m = begin; m < end; ++m) {
      fetch(weights, factors, m, 1, row.data());
      float* block = out + m / kernels.lanes * kernels.lanes * g.terms + m % kernels.lanes;
      for (int64_t c = 0; c < g.group_in; ++c) {
        for (int64_t t = 0; t < g.taps; ++t)
          block[(t * g.group_in + c) * kernels.lanes] = row[static_cast<size_t>(c * g.taps + t)];
      }
    }
  }

  ConvGeometry g;
  ConvPath path;
  const TileKernels& kernels;
  Panels panels;
  int64_t groups;  // that have a packed matrix each
  int64_t rows;    // of each group's packed matrix
  int64_t columns;
};

int64_t worker_floats(ConvPath path, const ConvGeometry& g, int threads) {
  switch (path) {
    case ConvPath::depthwise_rows:
    case ConvPath::depthwise_any: return depthwise_worker_floats(g);
    case ConvPath::winograd:
    case ConvPath::winograd_nhwc: return winograd_worker_floats(g);
    case ConvPath::pixel_vectors: return pixel_worker_floats(g);
    case ConvPath::channel_vectors: return channel_worker_floats(g);
    case ConvPath::depthwise_nhwc: return depthwise_nhwc_worker_floats(g);
    case ConvPath::grouped_nhwc: return grouped_nhwc_worker_floats(g);
    case ConvPath::dots_nhwc: return dots_nhwc_worker_floats(g);
    case ConvPath::interleaved_nhwc: return interleaved_nhwc_worker_floats(g);
    case ConvPath::lines_nhwc: return lines_nhwc_worker_floats(g);
    case ConvPath::windows_nhwc: return windows_nhwc_worker_floats(g, threads);
    case ConvPath::pointwise_nhwc: return 0;
  }
  return 0;
}

}  // namespace

int64_t conv_packed_size(const ConvParams& shape) {
  const WeightFormat format(shape);
  if (format.g.group_out <= 0) return 0;
  return round_up(format.used_bytes(), 64);
}

void pack_conv_weights(const ConvParams& shape, const void* weights, const float* factors,
                       void* packed, ThreadPool* pool) {
  const WeightFormat format(shape);
  const ConvGeometry& g = format.g;
  if (g.group_out <= 0 || g.terms <= 0) return;
  auto* out = static_cast<float*>(packed);
  // Files of packed weights hold the end of the last line of the cache, too.
  const int64_t used = format.used_bytes();
  std::memset(static_cast<std::byte*>(packed) + used, 0,
              static_cast<size_t>(round_up(used, 64) - used));
  if (format.path == ConvPath::depthwise_nhwc) {
    std::vector<float> values(static_cast<size_t>(g.group * g.taps));
    format.fetch(weights, factors, 0, g.group, values.data());
    for (int64_t c = 0; c < g.group; ++c) {
      for (int64_t t = 0; t < g.taps; ++t) {
        out[t * g.group + c] = values[static_cast<size_t>(c * g.taps + t)];
      }
    }
    return;
  }
  if (format.path == ConvPath::grouped_nhwc)
    return format.pack_grouped(weights, factors, out, pool);
  if (format.path == ConvPath::dots_nhwc) {
    std::vector<float> values(static_cast<size_t>(g.group_out * g.terms));
    format.fetch(weights, factors, 0, g.group_out, values.data());
    return pack_dots(g, values.data(), out);
  }
  if (is_depthwise(format.path)) {
    format.fetch(weights, factors, 0, g.group * g.group_out, out);
    return;
  }
  const int64_t count = format.panels.count();
  const auto pack = [&](int64_t begin, int64_t end, int) {
    std::vector<float> space(static_cast<size_t>(2 * format.panels.width * g.terms));
    for (int64_t i = begin; i < end; ++i) {
      format.pack(i / count, i % count, weights, factors, space.data(), out);
    }
  };
  const int64_t grain =
      std::max<int64_t>(1, (int64_t{64} << 10) / (format.rows * format.panels.width));
  if (pool != nullptr) {
    pool->parallel_for(format.groups * count, grain, pack);
  } else {
    pack(0, format.groups * count, 0);
  }
}

int64_t conv_scratch_bytes(const ConvParams& shape, int threads) {
  const ConvGeometry g(shape);
  if (is_empty(g)) return 0;
  const ConvPath path = choose_conv(shape).path;
  if (path == ConvPath::pointwise_nhwc)
    return pointwise_nhwc_scratch_bytes(g, shape.input_factors, threads);
  const int64_t sums = shape.means ? depthwise_sums_floats(g) : 0;
  return max_scratch(threads, [&](int count) {
    return count * (scratch_alignment + worker_floats(path, g, count) * int64_t{sizeof(float)}) +
           sums * int64_t{sizeof(float)};
  });
}

bool takes_input_factors(const ConvParams& shape) {
  return shape.nhwc && choose_conv(shape).path == ConvPath::pointwise_nhwc;
}

bool takes_nchw_input(const ConvParams& shape) {
  return shape.nhwc && shape.group == 1 && shape.shuffle == 1 && shape.in_channels >= 2 &&
         shape.in_channels <= 4 && choose_conv(shape).path == ConvPath::lines_nhwc;
}

bool can_shuffle_output(const ConvParams& shape) {
  ConvParams interleaved = shape;
  interleaved.shuffles_output = true;
  return shape.nhwc && choose_conv(interleaved).path == ConvPath::interleaved_nhwc;
}

bool has_weights(const ConvParams& shape) {
  const ConvGeometry g(shape);
  return g.group_out > 0 && g.terms > 0;
}

bool takes_shuffles(const ConvParams& shape) {
  if (shape.shuffle == 1 && !shape.shuffles_output) return true;
  if (!shape.nhwc || shape.nchw_input || shape.shuffle < 1 ||
      shape.in_channels % shape.shuffle != 0)
    return false;
  for (size_t i = 0; i < static_cast<size_t>(shape.rank); ++i) {
    if (shape.kernel[i] != 1 || shape.stride[i] != 1 || shape.pad_begin[i] != 0 ||
        shape.in[i] != shape.out[i])
      return false;
  }
  const ConvPath path = choose_conv(shape).path;
  return path == (shape.shuffles_output ? ConvPath::interleaved_nhwc : ConvPath::lines_nhwc);
}

bool gives_means(const ConvParams& shape) {
  return shape.nhwc && choose_conv(shape).path == ConvPath::depthwise_nhwc;
}

void conv_run(const ConvParams& shape, const float* x, const void* packed, float* y,
              const Epilogue& epilogue, void* scratch, ThreadPool& pool, const ConvExtras& extras) {
  const ConvGeometry g(shape);
  if (is_empty(g)) {
    // The mean of nothing is no number.
    if (extras.means != nullptr)
      std::fill_n(extras.means, std::max<int64_t>(0, g.batch * g.group * g.group_out), NAN);
    return;
  }
  const ConvPath path = choose_conv(shape).path;
  Call call{g, x, static_cast<const float*>(packed), y, epilogue, shape.coarse, extras};
  const BiasAxis channels = shape.nhwc ? BiasAxis::column : BiasAxis::row;
  call.epilogue.bias_axis = epilogue.bias != nullptr ? channels : BiasAxis::none;
  if (path == ConvPath::pointwise_nhwc) return run_pointwise_nhwc(call, scratch, pool);
  const PackedBlocks spaces(scratch, pool.threads(), worker_floats(path, g, pool.threads()));
  switch (path) {
    case ConvPath::depthwise_rows:
    case ConvPath::depthwise_any: return run_depthwise(call, path, spaces, pool);
    case ConvPath::winograd:
    case ConvPath::winograd_nhwc: return run_winograd(call, spaces, pool);
    case ConvPath::pixel_vectors: return run_pixel_vectors(call, spaces, pool);
    case ConvPath::channel_vectors: return run_channel_vectors(call, spaces, pool);
    case ConvPath::depthwise_nhwc: return run_depthwise_nhwc(call, spaces, pool);
    case ConvPath::grouped_nhwc: return run_grouped_nhwc(call, spaces, pool);
    case ConvPath::dots_nhwc: return run_dots_nhwc(call, spaces, pool);
    case ConvPath::interleaved_nhwc: return run_interleaved_nhwc(call, spaces, pool);
    case ConvPath::lines_nhwc: return run_lines_nhwc(call, spaces, pool);
    case ConvPath::windows_nhwc: return run_windows_nhwc(call, spaces, pool);
    case ConvPath::pointwise_nhwc: return;  // done above
  }
}

}  // namespace sardonyx::kernels
