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

// Where in an image the output's first pixel is, whose pixels are as many neighbours from there on
// as the output has; -1: they are not neighbours. It may be some lines of a single image.
int64_t first_pixel(const ConvGeometry& g) {
  size_t axis = 0;
  const auto plain = [&] { return g.in[axis] == g.out[axis] && g.pad[axis] == 0; };
  while (axis < ConvShape::max_rank && plain()) ++axis;
  if (axis == ConvShape::max_rank) return 0;
  const int64_t first = -g.pad[axis];
  if (g.batch != 1 || first < 0 || first > g.in[axis] - g.out[axis]) return -1;
  for (size_t outer = 0; outer < axis; ++outer) {
    if (g.in[outer] != 1) return -1;
  }
  int64_t pixels = 1;  // for each step along the axis
  for (++axis; axis < ConvShape::max_rank; ++axis) {
    if (!plain()) return -1;
    pixels *= g.in[axis];
  }
  return first * pixels;
}

struct DealtRows {
  DealtRows(const TileKernels& kernels, const ConvGeometry& g)
      : kernels(kernels),
        g(g),
        outputs(g.group * g.group_out),
        inputs(g.group * g.group_in),
        strips(g.batch * g.out_pixels, kernels.tile_rows),
        panels{outputs, kernels.panel_columns, kernels.lanes},
        last_panel(panels.count() - 1),
        last_width(panels.stored(last_panel)),
        table(kernels.by_groups[std::countr_zero(static_cast<uint64_t>(g.group)) - 1]),
        full_vectors(static_cast<int>(kernels.panel_columns / kernels.lanes)),
        last_vectors(static_cast<int>(last_width / kernels.lanes)),
        first_input(first_pixel(g) * inputs),
        come_dealt(g.shuffle == g.group_in || g.group_in == 1),
        in_place(come_dealt && !rows_collide(inputs, kernels.tile_rows)) {}

  const TileKernels& kernels;
  const ConvGeometry& g;
  int64_t outputs, inputs;  // channels
  Strips strips;
  Panels panels;
  // Short sums take no longer than some divisions do.
  int64_t last_panel, last_width;  // floats of it
  const TileKernels::Table& table;
  int full_vectors, last_vectors;
  int64_t first_input;  // floats before it
  bool come_dealt;
  bool in_place;  // tiles read pixels where they are

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
  set_pixels(t, call.x + t.first_input + first * t.inputs, rows, dealt, job);
  job.b = call.weights;
  TileStore store = store_at(epilogue, call.y, t.outputs, first, 0, rows, t.panels.width);
  if (finishes) job.store = &store;
  for (int64_t p = 0; p <= t.last_panel; ++p) {
    const bool is_last = p == t.last_panel;
    const int64_t width = is_last ? t.last_width : t.panels.width;
    if (is_last) store.columns = t.outputs - p * t.panels.width;
    job.b_stride = width;
    if (finishes) job.start = bias_to_start(store);
    const float* next = static_cast<const float*>(job.b) + g.group_in * width;
    if (is_first) {
      const Ahead ahead = Ahead::piece(next, g.group_in * width);
      PrefetchPlan(ahead, 1, job.k).apply(job, 0);
    }
    t.table[rows][is_last ? t.last_vectors : t.full_vectors](job);
    job.prefetch_lines = 0;
    if (!finishes) {
      store.sums = near_sums;
      store.sums_stride = width;
      t.kernels.store(store);
    }
    job.b = next;
    store.c += width;
    if (store.bias != nullptr) store.bias += width;
    if (store.residual != nullptr) store.residual += width;
  }
}

}  // namespace

std::string_view refuses_dealt_last(const ConvGeometry& g) {
  if (!g.deals_out) return "channels are not dealt out";
  if (!deals_to(g.group)) return "not 2, 4 or 8 groups";
  if (g.group > tile_kernels().lanes) return "more groups than lanes";
  if (g.shuffle != 1 && g.shuffle != g.group_in) return "channels come shuffled";
  if (g.taps != 1 || g.stride != ConvShape::Dims{1, 1, 1} || first_pixel(g) < 0)
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
