// Convolution with channels last as matrix multiplication: pixels are the rows of tiles, output
// channels their columns, so that tiles are stored as they are.
#include <algorithm>

#include "kernels/conv/live_taps.h"
#include "kernels/conv/panel_tasks.h"
#include "kernels/conv/path.h"
#include "kernels/conv/windows.h"
#include "kernels/gemm/bf16x3_block.h"
#include "kernels/gemm/block.h"
#include "kernels/gemm/gemm.h"

namespace sardonyx::kernels {
namespace {

struct WindowRows {
  WindowRows(const TileKernels& kernels, const ConvGeometry& all, int threads)
      : kernels(kernels),
        // Groups have few columns for the rows that are split for each.
        splits(all.group == 1 &&
               bf16x3_pays(kernels.lanes, all.batch * all.out_pixels, all.group_out, all.terms)),
        all_terms(all.terms),
        live(splits ? LiveTaps(all) : LiveTaps(all).of_all()),
        g(live.g),
        // Rows an odd number of cache lines apart never fall into the same sets.
        row_stride((divide_up(g.terms, 16) | 1) * 16),
        tile_rows(splits ? bf16x3_size : kernels.tile_rows),
        strips(g.batch * g.out_pixels, tile_rows, splits ? bf16x3_thin : tile_rows),
        panels{g.group_out, kernels.panel_columns, kernels.lanes},
        chunks(splits ? split_chunks(g.terms) : Chunks{g.terms}),
        blocks(splits ? bf16x3_blocks(strips.count(), chunks, threads)
                      : strip_blocks(strips.count(), tile_rows, g.terms, g.group_out)),
        block(divide_up(strips.count(), blocks)),
        max_pixels(std::min(g.batch * g.out_pixels, block * tile_rows)),
        tasks(panels, g.terms, g.group * blocks,
              splits ? bf16x3_panels_per_task()
                     : panels_per_task(panels.count(), blocks * g.group, max_pixels, g.terms,
                                       panels.width)) {}

  const TileKernels& kernels;
  bool splits;  // the products go through matrix tiles
  int64_t all_terms;
  LiveTaps live;  // matrix tiles take all
  const ConvGeometry& g;
  int64_t row_stride;
  int64_t tile_rows;
  Strips strips;
  Panels panels;
  Chunks chunks;
  int64_t blocks;      // of a group
  int64_t block;       // most strips in one
  int64_t max_pixels;  // in one
  PanelTasks tasks;

  int64_t bf16x3_panels_per_task() const {
    const int64_t enough = chunks.count() > 1 ? 4 : 12;  // each splits chunks of windows anew
    const int64_t wanted = divide_up(panels.count(), divide_up(enough, blocks * g.group));
    return std::min(wanted, bf16x3_panels_at_once(block, chunks, panels));
  }
  // Windows of one pixel each, one after the other: tiles read x itself.
  bool reads_images() const {
    return g.taps == 1 && g.stride == ConvParams::Dims{1, 1, 1} && g.pad == ConvParams::Dims{} &&
           g.in == g.out && (splits || !rows_collide(g.group * g.group_in, tile_rows));
  }
  // Strips whose windows are copied once and kept. Others are copied when they are split.
  int64_t kept_windows() const { return splits && chunks.count() == 1 ? 1 : block; }
  // With room for the whole piece that the copy of the last line writes.
  int64_t window_floats() const {
    return round_up(kept_windows() * tile_rows * row_stride + line_piece_bytes / 4, 16);
  }
  int64_t group_weights() const { return all_terms * panels.stored_columns(); }
  int64_t worker_floats() const {
    // Where taps are left out, the sums of those that are not come in parts.
    const Chunks parts{g.terms, g.taps > 1 ? std::max<int64_t>(1, g.group_in) : chunks.most};
    return window_floats() + (splits ? SplitSpace::floats(block, chunks, panels)
                                     : round_up(partial_floats(parts, block, kernels), 16));
  }
};

// Of `g`, which is t's or what some of its pixels need.
void copy_windows(const WindowRows& t, const ConvGeometry& g, const Call& call, int64_t group,
                  int64_t first, int64_t last, float* to) {
  const int64_t begin = t.strips.begin(first);
  Windows<float>(g, call.image_nhwc(g.batch, 0), 0.0f)
      .copy([&](int64_t n) { return call.image_nhwc(n, group); }, OutputPixel(g, begin),
            t.strips.begin(last) - begin, to, t.row_stride);
}

void run_window_task(const WindowRows& t, const Call& call, int64_t task,
                     const PackedBlocks& spaces, int worker) {
  const ConvGeometry& g = t.g;
  const int64_t where = t.tasks.block(task);  // block and group
  const int64_t first = part_begin(t.strips.count(), t.blocks, where / g.group);
  const int64_t last = part_begin(t.strips.count(), t.blocks, where / g.group + 1);
  const int64_t group = where % g.group;
  float* space = spaces.space(worker);
  const bool in_place = t.reads_images();
  const bool fresh = (!in_place || t.splits) && spaces.changes(worker, where);
  const bool keeps = !in_place && t.kept_windows() == t.block;
  const bool omits = !t.splits && !in_place && g.taps > 1;
  const int64_t start = t.strips.begin(first);
  const LiveTaps live = omits ? t.live.of_pixels(start, t.strips.begin(last) - start) : t.live;
  if (keeps && fresh) copy_windows(t, live.g, call, group, first, last, space);
  const int64_t pixel = g.group * g.group_in;  // floats
  StripOperand windows{space, t.row_stride, 0, false};
  if (in_place) {
    windows.data = call.image_nhwc(0, group) + t.strips.begin(first) * pixel;
    windows.stride = pixel;
  }
  const float* weights = call.weights + group * t.group_weights();
  const int64_t begin = t.tasks.begin(task), end = t.tasks.end(task);
  const auto place = [&](int64_t panel, int64_t strip) {
    return call.place_nhwc(group, panel * t.panels.width, t.panels.used(panel),
                           t.strips.begin(strip), t.strips.height(strip));
  };
  if (t.splits) {
    const SplitSpace split(space + t.window_floats(), t.block, t.chunks);
    const auto rows = [&](int64_t strip) -> const float* {
      if (in_place || keeps)
        return windows.data + (t.strips.begin(strip) - t.strips.begin(first)) * windows.stride;
      copy_windows(t, g, call, group, strip, strip + 1, space);
      return space;
    };
    return multiply_bf16x3(t.kernels, SplitRows{t.strips, first, last, rows, windows.stride, split},
                           {t.panels, begin, end, {weights, ElementType::float32, call.coarse}},
                           t.chunks, !fresh, place);
  }
  for (int64_t p = begin; p < end; ++p) {
    const int64_t width = t.panels.stored(p);
    live.for_runs(t.chunks.most, [&](int64_t from, int64_t weight, int64_t size) {
      const Terms terms{from, size, from == 0, from + size == live.g.terms};
      const PanelOperand panel{weights + p * t.panels.width * t.all_terms + weight * width, width,
                               t.panels.vectors(p), t.panels.ends_half(p)};
      const bool brings_rows = p == begin && in_place && windows.stride == size;
      const Ahead ahead = !weights_stay_near(g)
                              ? Ahead::piece(panel.data + size * width, size * width)
                          : brings_rows ? Ahead::next_rows()
                                        : Ahead();
      multiply_panel<false>(t.kernels, t.strips, first, last, windows, panel, terms, ahead,
                            space + t.window_floats(),
                            [&](int64_t strip) { return place(p, strip); });
    });
  }
}

}  // namespace

int64_t windows_nhwc_worker_floats(const ConvGeometry& g, int threads) {
  return WindowRows(tile_kernels(), g, threads).worker_floats();
}

void run_windows_nhwc(const Call& call, const PackedBlocks& spaces, ThreadPool& pool) {
  const WindowRows t(tile_kernels(), call.g, pool.threads());
  for_tasks(pool, t.tasks.count(), t.tasks.grain(t.max_pixels),
            [&](int64_t task, int worker) { run_window_task(t, call, task, spaces, worker); });
}

namespace {

// Factors of input channels are multiplied into the packed weights, anew for each image: panels of
// terms, each term of all panels a row of the matrix.
Panels panels_of(const ConvGeometry& g) {
  return {g.group_out, tile_kernels().panel_columns, tile_kernels().lanes};
}

int64_t multiplied_floats(const ConvGeometry& g) {
  return round_up(g.group_in * panels_of(g).stored_columns(), 16);
}

void multiply_weights(const ConvGeometry& g, const float* from, const float* factors, float* to,
                      ThreadPool& pool) {
  constexpr int64_t piece = 64;  // terms
  const Panels panels = panels_of(g);
  const int64_t pieces = divide_up(g.group_in, piece);
  const int64_t grain = divide_up(task_work / 4, piece * panels.width);
  for_tasks(pool, panels.count() * pieces, grain, [&](int64_t task, int) {
    const int64_t panel = task / pieces, width = panels.stored(panel);
    const int64_t begin = task % pieces * piece, end = std::min(begin + piece, g.group_in);
    const int64_t at = panel * panels.width * g.group_in;
    for (int64_t k = begin; k < end; ++k) {
      const float factor = factors[k];
      const float* row = from + at + k * width;
      float* row_to = to + at + k * width;
      for (int64_t j = 0; j < width; ++j) row_to[j] = row[j] * factor;
    }
  });
}

}  // namespace

int64_t pointwise_nhwc_scratch_bytes(const ConvGeometry& g, bool factors, int threads) {
  const int64_t images = factors ? 1 : g.batch;  // in one product
  return gemm_packed_b_scratch_bytes(images * g.out_pixels, g.group_out, g.group_in, g.group_in,
                                     threads) +
         (factors ? multiplied_floats(g) * int64_t{sizeof(float)} : 0);
}

void run_pointwise_nhwc(const Call& call, void* scratch, ThreadPool& pool) {
  const ConvGeometry& g = call.g;
  const auto multiply = [&](int64_t first, int64_t images, const float* weights, void* space) {
    Epilogue epilogue = call.epilogue;
    const int64_t at = first * g.out_pixels * g.group_out;
    epilogue.residual_stride = g.group_out;
    if (epilogue.residual != nullptr) epilogue.residual += at;
    gemm_packed_b(images * g.out_pixels, g.group_out, g.group_in,
                  call.x + first * g.out_pixels * g.group_in, g.group_in,
                  {weights, ElementType::float32, call.coarse}, call.y + at, g.group_out, epilogue,
                  space, pool);
  };
  const float* factors = call.extras.input_factors;
  if (factors == nullptr) return multiply(0, g.batch, call.weights, scratch);
  auto* weights = static_cast<float*>(scratch);
  for (int64_t n = 0; n < g.batch; ++n) {
    multiply_weights(g, call.weights, factors + n * g.group_in, weights, pool);
    multiply(n, 1, weights, weights + multiplied_floats(g));
  }
}

}  // namespace sardonyx::kernels
