// Convolution one plane at a time.
#include <algorithm>
#include <limits>

#include "kernels/conv/depthwise.h"
#include "kernels/conv/path.h"
#include "kernels/gemm/blocking.h"

namespace sardonyx::kernels {
namespace {

struct DepthwiseTiles {
  explicit DepthwiseTiles(const ConvGeometry& g) : g(g), rows(g.out[0] * g.out[1]) {
    const int64_t row_work = std::max<int64_t>(1, g.out[2] * g.taps);
    per_task = std::min(rows, round_up(divide_up(task_work, row_work), depthwise_row_step));
    row_groups = divide_up(rows, per_task);
    grain = divide_up(task_work / 2, row_work * per_task);
  }

  const ConvGeometry& g;
  int64_t rows;  // of one output plane, over all depths
  int64_t per_task;
  int64_t row_groups;
  int64_t grain;

  int64_t tasks() const { return g.batch * g.group * g.group_out * row_groups; }
  // A few rows, for the epilogues that the kernels do not know.
  int64_t line_floats() const { return round_up(g.out[2], max_lanes); }
  int64_t worker_floats() const {
    return depthwise_row_step * line_floats() + (PhaseBlock::pays(g) ? PhaseBlock(g).floats() : 0);
  }
};

void run_depthwise_task(const DepthwiseTiles& t, const Call& call, ConvPath path, int64_t task,
                        float* lines) {
  const ConvGeometry& g = t.g;
  const int64_t channels = g.group * g.group_out;
  const int64_t row = task / t.row_groups;  // output plane
  const int64_t channel = row % channels;
  const int64_t n = row / channels;
  const auto compute = path == ConvPath::depthwise_rows ? depthwise_rows : depthwise_any;
  DepthwiseJob job;
  job.geometry = &g;
  job.phases = lines + depthwise_row_step * t.line_floats();
  job.plane = call.image(n, channel / g.group_out);
  job.weights = call.weights + channel * g.taps;
  job.begin = task % t.row_groups * t.per_task;
  job.end = std::min(job.begin + t.per_task, t.rows);
  if (clips_only(call.epilogue, job.low, job.high)) {
    job.out = call.y + row * g.out_pixels + job.begin * g.out[2];
    job.out_stride = g.out[2];
    job.alpha = call.epilogue.alpha;
    if (call.epilogue.bias != nullptr) job.bias = call.epilogue.beta * call.epilogue.bias[channel];
    return compute(job);
  }
  job.low = -std::numeric_limits<float>::infinity();
  job.high = std::numeric_limits<float>::infinity();
  job.out = lines;
  job.out_stride = t.line_floats();
  const int64_t end = job.end;
  for (; job.begin < end; job.begin = job.end) {
    job.end = std::min(job.begin + depthwise_row_step, end);
    compute(job);
    for (int64_t line = job.begin; line < job.end; ++line) {
      TileStore store =
          call.place(n, channel / g.group_out, channel % g.group_out, 1, line * g.out[2], g.out[2]);
      store.sums = lines + (line - job.begin) * t.line_floats();
      store.sums_stride = t.line_floats();
      tile_kernels().store(store);
    }
  }
}

}  // namespace

PhaseBlock::PhaseBlock(const ConvGeometry& g) {
  constexpr int64_t near_floats = 4 << 10;  // of a line, which stay in the first-level cache
  const int64_t stride = g.stride[2], extent = (g.kernel[2] - 1) * g.dilation[2];
  phases = std::min(stride, extent + 1);
  columns = std::min(round_up(g.out[2], max_lanes),
                     round_up(std::max<int64_t>(near_floats / stride, 1), 8 * max_lanes));
  reach = extent / stride + 1;
  phase_floats = round_up(columns + reach, max_lanes);
}

bool PhaseBlock::pays(const ConvGeometry& g) {
  constexpr int64_t longest_stride = 16, longest_kernel = 1 << 14;
  const int64_t stride = g.stride[2], taps = g.kernel[2];
  if (stride > longest_stride || taps > longest_kernel / g.dilation[2]) return false;
  // Vectors of pixels 1 or 2 apart are loaded at once, those of larger strides are gathered.
  return taps >= (stride <= 2 ? 6 : 3);
}

bool clips_only(const Epilogue& e, float& low, float& high) {
  low = -std::numeric_limits<float>::infinity();
  high = std::numeric_limits<float>::infinity();
  if (e.activation == Activation::relu) low = 0;
  if (e.activation == Activation::clip) {
    low = e.p0;
    high = e.p1;
  }
  return e.residual == nullptr &&
         (e.activation == Activation::none || e.activation == Activation::relu ||
          e.activation == Activation::clip);
}

int64_t depthwise_worker_floats(const ConvGeometry& g) { return DepthwiseTiles(g).worker_floats(); }

void run_depthwise(const Call& call, ConvPath path, const PackedBlocks& spaces, ThreadPool& pool) {
  const DepthwiseTiles t(call.g);
  for_tasks(pool, t.tasks(), t.grain, [&](int64_t task, int worker) {
    run_depthwise_task(t, call, path, task, spaces.space(worker));
  });
}

}  // namespace sardonyx::kernels
