// Grouped pointwise convolution with channels last whose output channels are interleaved (the first
// of each group, the second of each group, and so on): groups stand side by side in vectors, so
// that one product of all output channels has no empty lanes. A term of it is one channel of each
// group, for which pixels are interleaved, too, unless they come so.
#include <algorithm>
#include <bit>

#include "kernels/conv/interleave.h"
#include "kernels/conv/interleaved_concat.h"
#include "kernels/conv/path.h"
#include "kernels/gemm/block.h"

namespace sardonyx::kernels {
namespace {

// Where in an image the output's first pixel is, whose pixels are as many neighbours from there on
// as the output has; -1: they are not neighbours. It may be some lines of a single image.
int64_t first_pixel(const ConvGeometry& g) {
  size_t axis = 0;
  const auto plain = [&] { return g.in[axis] == g.out[axis] && g.pad[axis] == 0; };
  while (axis < ConvParams::max_rank && plain()) ++axis;
  if (axis == ConvParams::max_rank) return 0;
  const int64_t first = -g.pad[axis];
  if (g.batch != 1 || first < 0 || first > g.in[axis] - g.out[axis]) return -1;
  for (size_t outer = 0; outer < axis; ++outer) {
    if (g.in[outer] != 1) return -1;
  }
  int64_t pixels = 1;  // for each step along the axis
  for (++axis; axis < ConvParams::max_rank; ++axis) {
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
        form(g.group == 2   ? TileForm::by_twos
             : g.group == 4 ? TileForm::by_fours
                            : TileForm::by_eights),
        full_vectors(static_cast<int>(kernels.panel_columns / kernels.lanes)),
        last_vectors(static_cast<int>(last_width / kernels.lanes)),
        first_input(first_pixel(g) * inputs),
        come_interleaved(g.shuffle == g.group_in || g.group_in == 1),
        in_place(come_interleaved && !rows_collide(inputs, kernels.tile_rows)) {}

  const TileKernels& kernels;
  const ConvGeometry& g;
  int64_t outputs, inputs;  // channels
  Strips strips;
  Panels panels;
  // Short sums take no longer than some divisions do.
  int64_t last_panel, last_width;  // floats of it
  TileForm form;
  int full_vectors, last_vectors;
  int64_t first_input;  // floats before it
  bool come_interleaved;
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

// The strip's pixels with their channels interleaved, from `x` on; `interleaved`: space for them.
void set_pixels(const DealtRows& t, const float* x, int64_t rows, float* interleaved,
                TileJob& job) {
  job.a = t.in_place ? x : interleaved;
  job.a_stride = t.in_place ? t.inputs : t.input_stride();
  if (t.in_place) return;
  if (!t.come_interleaved)
    return interleave_rows(x, t.inputs, rows, t.g.group, t.g.group_in, interleaved,
                           t.input_stride());
  for (int64_t r = 0; r < rows; ++r, x += t.inputs, interleaved += t.input_stride())
    std::copy_n(x, t.inputs, interleaved);
}

// `interleaved`: space for the strip's pixels. The epilogue's bias is interleaved. The first strip
// of a worker brings the weights near.
void run_strip(const DealtRows& t, const Call& call, const Epilogue& epilogue, int64_t strip,
               bool is_first, float* interleaved) {
  const ConvGeometry& g = t.g;
  const int64_t first = t.strips.begin(strip), rows = t.strips.height(strip);
  alignas(64) float near_sums[max_lanes * max_tile_columns];
  const bool finishes = t.kernels.finishes(epilogue);
  TileJob job;
  job.k = g.group_in;
  job.form = t.form;
  job.sums = near_sums;
  set_pixels(t, call.x + t.first_input + first * t.inputs, rows, interleaved, job);
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
    t.kernels.tiles[rows][is_last ? t.last_vectors : t.full_vectors](job);
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

std::string_view refuses_interleaved_nhwc(const ConvGeometry& g) {
  if (!g.shuffles_output) return "channels are not interleaved out";
  if (!can_interleave(g.group)) return "not 2, 4 or 8 groups";
  if (g.group > tile_kernels().lanes) return "more groups than lanes";
  if (g.shuffle != 1 && g.shuffle != g.group_in) return "channels come shuffled";
  if (g.taps != 1 || g.stride != ConvParams::Dims{1, 1, 1} || first_pixel(g) < 0)
    return "not pointwise";
  return {};
}

int64_t interleaved_nhwc_worker_floats(const ConvGeometry& g) {
  return round_up(DealtRows(tile_kernels(), g).worker_floats(), 16);
}

void run_interleaved_nhwc(const Call& call, const PackedBlocks& spaces, ThreadPool& pool) {
  const DealtRows t(tile_kernels(), call.g);
  for_tasks(pool, t.strips.count(), t.grain(), [&](int64_t strip, int worker) {
    float* bias = spaces.space(worker);
    const bool is_first = spaces.changes(worker, 0);
    Epilogue interleaved = call.epilogue;
    if (interleaved.bias != nullptr) {
      if (is_first)
        interleave_rows(interleaved.bias, 0, 1, call.g.group, call.g.group_out, bias, 0);
      interleaved.bias = bias;
    }
    if (interleaved.residual != nullptr) interleaved.residual_stride = t.outputs;
    run_strip(t, call, interleaved, strip, is_first, bias + t.bias_floats());
  });
}

}  // namespace sardonyx::kernels
