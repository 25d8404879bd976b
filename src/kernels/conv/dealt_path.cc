// Grouped pointwise convolution with channels last whose output channels are dealt out (the first
// of each group, the second of each group, and so on): groups stand side by side in vectors, so
// that one product of all output channels has no empty lanes. A term of it is one channel of each
// group, for which pixels are dealt out, too, unless they come so.
#include <algorithm>
#include <bit>

#include "kernels/conv/deal.h"
#include "kernels/conv/dealt_join.h"
#include "kernels/conv/path.h"
#include "kernels/gemm/block.h"

namespace sardonyx::kernels {
namespace {

struct DealtRows {
  DealtRows(const TileKernels& kernels, const ConvGeometry& g)
      : kernels(kernels),
        g(g),
        outputs(g.group * g.group_out),
        inputs(g.group * g.group_in),
        strips(g.batch * g.out_pixels, kernels.tile_rows),
        panels{outputs, kernels.panel_columns, kernels.lanes},
        come_dealt(g.shuffle == g.group_in || g.group_in == 1),
        in_place(come_dealt && !rows_collide(inputs, kernels.tile_rows)) {}

  const TileKernels& kernels;
  const ConvGeometry& g;
  int64_t outputs, inputs;
  Strips strips;
  Panels panels;
  bool come_dealt;
  bool in_place;  // tiles read pixels where they are

  const TileKernels::Table& table() const {
    return kernels.by_groups[std::countr_zero(static_cast<uint64_t>(g.group)) - 1];
  }
  int64_t grain() const {
    return divide_up(task_work, std::max<int64_t>(1, kernels.tile_rows * outputs * g.group_in));
  }
  // Rows an odd number of cache lines long never fall into the same sets.
  int64_t input_stride() const { return (divide_up(inputs, 16) | 1) * 16; }
  int64_t bias_floats() const { return round_up(outputs, 16) + max_lanes; }
  int64_t input_floats() const { return kernels.tile_rows * input_stride() + max_lanes; }
  int64_t worker_floats() const { return bias_floats() + input_floats(); }
};

// The strip's pixels with their channels dealt out, from `x` on; `dealt`: space for them.
void set_pixels(const DealtRows& t, const float* x, int64_t rows, float* dealt, TileJob& job) {
  job.a = t.in_place ? x : dealt;
  job.a_stride = t.in_place ? t.inputs : t.input_stride();
  if (t.in_place) return;
  if (!t.come_dealt)
    return deal_rows(x, t.inputs, rows, t.g.group, t.g.group_in, dealt, t.input_stride());
  for (int64_t r = 0; r < rows; ++r, x += t.inputs, dealt += t.input_stride())
    std::copy_n(x, t.inputs, dealt);
}

// `dealt`: space for the strip's pixels. The epilogue's bias is dealt out. The first strip of a
// worker brings the weights near.
void run_strip(const DealtRows& t, const Call& call, const Epilogue& epilogue, int64_t strip,
               bool is_first, float* dealt) {
  const ConvGeometry& g = t.g;
  const int64_t first = t.strips.begin(strip), rows = t.strips.height(strip);
  alignas(64) float near_sums[max_lanes * max_tile_columns];
  const bool finishes = t.kernels.finishes(epilogue);
  TileJob job;
  job.k = g.group_in;
  job.sums = near_sums;
  set_pixels(t, call.x + first * t.inputs, rows, dealt, job);
  for (int64_t p = 0; p < t.panels.count(); ++p) {
    const int64_t column = p * t.panels.width, width = t.panels.stored(p);
    TileStore store = store_at(epilogue, call.y, t.outputs, first, column, rows, t.panels.used(p));
    job.b = call.weights + column * g.group_in;
    job.b_stride = width;
    job.store = finishes ? &store : nullptr;
    const Ahead ahead =
        Ahead::piece(call.weights + (column + width) * g.group_in, g.group_in * width);
    if (is_first) PrefetchPlan(ahead, 1, job.k).apply(job, 0);
    t.table()[rows][t.panels.vectors(p)](job);
    job.prefetch_lines = 0;
    if (finishes) continue;
    store.sums = near_sums;
    store.sums_stride = width;
    t.kernels.store(store);
  }
}

}  // namespace

std::string_view refuses_dealt_last(const ConvGeometry& g) {
  if (!g.deals_out) return "channels are not dealt out";
  if (!deals_to(g.group)) return "not 2, 4 or 8 groups";
  if (g.group > tile_kernels().lanes) return "more groups than lanes";
  if (g.shuffle != 1 && g.shuffle != g.group_in) return "channels come shuffled";
  if (g.taps != 1 || g.stride != ConvShape::Dims{1, 1, 1} || g.pad != ConvShape::Dims{} ||
      g.in != g.out)
    return "not pointwise";
  return {};
}

int64_t dealt_last_worker_floats(const ConvGeometry& g) {
  return round_up(DealtRows(tile_kernels(), g).worker_floats(), 16);
}

void run_dealt_last(const Call& call, const PackedBlocks& spaces, ThreadPool& pool) {
  const DealtRows t(tile_kernels(), call.g);
  for_tasks(pool, t.strips.count(), t.grain(), [&](int64_t strip, int worker) {
    float* bias = spaces.space(worker);
    const bool is_first = spaces.changes(worker, 0);
    Epilogue dealt = call.epilogue;
    if (dealt.bias != nullptr) {
      if (is_first) deal_rows(dealt.bias, 0, 1, call.g.group, call.g.group_out, bias, 0);
      dealt.bias = bias;
    }
    if (dealt.residual != nullptr) dealt.residual_stride = t.outputs;
    run_strip(t, call, dealt, strip, is_first, bias + t.bias_floats());
  });
}

}  // namespace sardonyx::kernels
