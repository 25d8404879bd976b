// Depthwise convolution, and that of small groups, with channels last: a line of pixels at a time.
#include <algorithm>
#include <limits>

#include "kernels/conv/depthwise_last.h"
#include "kernels/conv/path.h"
#include "kernels/gemm/blocking.h"

namespace sardonyx::kernels {
namespace {

int64_t channels_of(const ConvGeometry& g) { return g.group * g.group_out; }
int64_t line_floats(const ConvGeometry& g) { return g.out[2] * channels_of(g); }

}  // namespace

int64_t depthwise_last_worker_floats(const ConvGeometry& g) { return round_up(line_floats(g), 16); }

void run_depthwise_last(const Call& call, void (*line_kernel)(const DepthwiseLastJob&),
                        const PackedBlocks& spaces, ThreadPool& pool) {
  const ConvGeometry& g = call.g;
  const int64_t lines = g.batch * g.out[0] * g.out[1];
  const int64_t work = std::max<int64_t>(1, line_floats(g) * g.terms);
  // Its multiply-adds take longer than those of products.
  for_tasks(pool, lines, divide_up(task_work / 4, work), [&](int64_t line, int worker) {
    DepthwiseLastJob job;
    job.geometry = &g;
    job.image = call.image_last(line / g.out[1] / g.out[0], 0);
    job.weights = call.weights;
    job.depth = line / g.out[1] % g.out[0];
    job.row = line % g.out[1];
    if (clips_only(call.epilogue, job.low, job.high)) {
      job.out = call.y + line * line_floats(g);
      job.bias = call.epilogue.bias;
      job.alpha = call.epilogue.alpha;
      job.beta = call.epilogue.beta;
      return line_kernel(job);
    }
    job.low = -std::numeric_limits<float>::infinity();
    job.high = std::numeric_limits<float>::infinity();
    job.out = spaces.space(worker);
    line_kernel(job);
    // Channels are the columns of the whole line.
    TileStore store = call.place_last(0, 0, channels_of(g), line * g.out[2], g.out[2]);
    store.sums = job.out;
    store.sums_stride = channels_of(g);
    tile_kernels().store(store);
  });
}

}  // namespace sardonyx::kernels
