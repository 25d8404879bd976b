// Depthwise convolution, and that of small groups, with channels last: lines of pixels at a time.
#include <algorithm>
#include <limits>

#include "kernels/conv/depthwise_nhwc.h"
#include "kernels/conv/grouped_nhwc.h"
#include "kernels/conv/path.h"
#include "kernels/gemm/blocking.h"

namespace sardonyx::kernels {
namespace {

constexpr int64_t near_floats = 8 << 10;  // two thirds of a first-level cache of 48 KiB

int64_t channels_of(const ConvGeometry& g) { return g.group * g.group_out; }
int64_t line_floats(const ConvGeometry& g) { return g.out[2] * channels_of(g); }
int64_t window_lines(const ConvGeometry& g) { return g.kernel[0] * g.kernel[1]; }
// Columns of the input under so many neighbouring windows.
int64_t reach(const ConvGeometry& g, int64_t windows) {
  return (windows - 1) * g.stride[2] + (g.kernel[2] - 1) * g.dilation[2] + 1;
}

// How the lines of all images are shared out.
struct DepthwiseTasks {
  explicit DepthwiseTasks(const ConvGeometry& g)
      : g(g),
        at_once(depthwise_channels_at_once(g)),
        parts(divide_up(channels_of(g), at_once)),
        // Enough tiles of rows for several threads to have the same share.
        // Two lines at least: they are computed together where strides allow it.
        row_tiles(even_parts(g.out[1], std::max<int64_t>(g.stride[1] == 1 ? 2 : 1,
                                                         divide_up(g.out[1] * parts, 16)))) {}

  int64_t count() const { return g.batch * g.out[0] * row_tiles * parts; }
  int64_t grain() const {
    const int64_t work =
        divide_up(g.out[1], row_tiles) * g.out[2] * std::min(at_once, channels_of(g)) * g.terms;
    // Its multiply-adds take longer than those of products.
    return divide_up(task_work / 4, std::max<int64_t>(1, work));
  }

  const ConvGeometry& g;
  int64_t at_once;
  int64_t parts;      // of the channels
  int64_t row_tiles;  // of each plane

  int64_t row(int64_t row_tile) const { return g.out[1] * row_tile / row_tiles; }
};

}  // namespace

int64_t depthwise_channels_at_once(const ConvGeometry& g) {
  const int64_t all = channels_of(g);
  const int64_t each = g.taps + window_lines(g) * reach(g, depthwise_step);
  const int64_t most = std::max<int64_t>(max_lanes, near_floats / each / max_lanes * max_lanes);
  if (all <= most) return all;
  return round_up(divide_up(all, divide_up(all, most)), max_lanes);
}

int64_t depthwise_columns_at_once(const ConvGeometry& g, int64_t channels) {
  const int64_t each = round_up(channels, max_lanes);
  const int64_t room = near_floats / each - g.taps;  // pixels of the input
  const int64_t columns = (room / window_lines(g) - reach(g, 1)) / g.stride[2] + 1;
  return std::max<int64_t>(depthwise_step, columns / depthwise_step * depthwise_step);
}

int64_t depthwise_piece_floats(const ConvGeometry& g) {
  return std::max(near_floats,
                  2 * depthwise_step * round_up(depthwise_channels_at_once(g), max_lanes));
}

int64_t depthwise_nhwc_worker_floats(const ConvGeometry& g) { return depthwise_piece_floats(g); }

int64_t depthwise_sums_floats(const ConvGeometry& g) {
  return g.batch * g.out[0] * DepthwiseTasks(g).row_tiles * channels_of(g);
}

void means_of_bands(const ConvGeometry& g, int64_t row_tiles, const float* sums, float* means) {
  const int64_t channels = channels_of(g);
  const float share = 1.0f / static_cast<float>(g.out_pixels);
  for (int64_t n = 0; n < g.batch; ++n, means += channels) {
    std::fill_n(means, channels, 0.0f);
    for (int64_t row_tile = 0; row_tile < row_tiles; ++row_tile, sums += channels) {
      for (int64_t c = 0; c < channels; ++c) means[c] += sums[c];
    }
    for (int64_t c = 0; c < channels; ++c) means[c] *= share;
  }
}

void run_depthwise_nhwc(const Call& call, const PackedBlocks& spaces, ThreadPool& pool) {
  const ConvGeometry& g = call.g;
  const DepthwiseTasks tasks(g);
  const bool means = call.extras.means != nullptr;
  float* sums = spaces.space(pool.threads());  // behind the last worker's
  for_tasks(pool, tasks.count(), tasks.grain(), [&](int64_t task, int worker) {
    const int64_t plane = task / tasks.parts / tasks.row_tiles;
    DepthwiseNhwcJob job;
    job.geometry = &g;
    job.image = call.image_nhwc(plane / g.out[0], 0);
    job.weights = call.weights;
    job.depth = plane % g.out[0];
    const int64_t row_tile = task / tasks.parts % tasks.row_tiles;
    job.row = tasks.row(row_tile);
    job.lines = tasks.row(row_tile + 1) - job.row;
    job.first_channel = task % tasks.parts * tasks.at_once;
    job.end_channel = std::min(job.first_channel + tasks.at_once, channels_of(g));
    if (means) {
      job.sums = sums + task / tasks.parts * channels_of(g);
      std::fill(job.sums + job.first_channel, job.sums + job.end_channel, 0.0f);
    }
    depthwise_lines_to(call, (plane * g.out[1] + job.row) * g.out[2], job, spaces.space(worker));
  });
  if (means) means_of_bands(g, g.out[0] * tasks.row_tiles, sums, call.extras.means);
}

void depthwise_lines_to(const Call& call, int64_t pixel, DepthwiseNhwcJob& job, float* space) {
  TileStore store;
  if (clips_only(call.epilogue, job.low, job.high)) {
    job.out = call.y + pixel * channels_of(call.g);
    job.bias = call.epilogue.bias;
    job.alpha = call.epilogue.alpha;
    job.beta = call.epilogue.beta;
  } else {
    job.low = -std::numeric_limits<float>::infinity();
    job.high = std::numeric_limits<float>::infinity();
    job.space = space;
    store = call.place_nhwc(0, 0, 0, pixel, 0);
    job.store = &store;
  }
  depthwise_nhwc_lines(job);
}

int64_t grouped_nhwc_worker_floats(const ConvGeometry& g) { return round_up(line_floats(g), 16); }

void run_grouped_nhwc(const Call& call, const PackedBlocks& spaces, ThreadPool& pool) {
  const ConvGeometry& g = call.g;
  const int64_t lines = g.batch * g.out[0] * g.out[1];
  const int64_t work = std::max<int64_t>(1, line_floats(g) * g.terms);
  for_tasks(pool, lines, divide_up(task_work / 4, work), [&](int64_t line, int worker) {
    DepthwiseNhwcJob job;
    job.geometry = &g;
    job.image = call.image_nhwc(line / g.out[1] / g.out[0], 0);
    job.weights = call.weights;
    job.depth = line / g.out[1] % g.out[0];
    job.row = line % g.out[1];
    if (clips_only(call.epilogue, job.low, job.high)) {
      job.out = call.y + line * line_floats(g);
      job.bias = call.epilogue.bias;
      job.alpha = call.epilogue.alpha;
      job.beta = call.epilogue.beta;
      return grouped_nhwc_line(job);
    }
    job.low = -std::numeric_limits<float>::infinity();
    job.high = std::numeric_limits<float>::infinity();
    job.out = spaces.space(worker);
    grouped_nhwc_line(job);
    // Channels are the columns of the whole line.
    TileStore store = call.place_nhwc(0, 0, channels_of(g), line * g.out[2], g.out[2]);
    store.sums = job.out;
    store.sums_stride = channels_of(g);
    tile_kernels().store(store);
  });
}

}  // namespace sardonyx::kernels
