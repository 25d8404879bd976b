// Convolution as matrix multiplication: windows of pixels gathered strip by strip, times the
// weights.
#include <algorithm>

#include "kernels/conv/im2col.h"
#include "kernels/conv/panel_tasks.h"
#include "kernels/conv/path.h"
#include "kernels/gemm/block.h"

namespace sardonyx::kernels {
namespace {

// --- Output channels along the vectors ----------------------------------------------------------

// Pixels are the rows of tiles, so that any number of them fills strips; tiles are transposed when
// they are stored.
struct ChannelTiles {
  ChannelTiles(const TileKernels& kernels, const ConvGeometry& g)
      : kernels(kernels),
        g(g),
        strips(g.out_pixels, kernels.tile_rows),
        panels{g.group_out, kernels.panel_columns, kernels.lanes},
        chunks{g.terms},
        blocks(strip_blocks(strips.count(), kernels.strip_width, g.terms, g.group_out)),
        block(divide_up(strips.count(), blocks)),
        max_pixels(std::min(g.out_pixels, block * kernels.tile_rows)),
        tasks(panels, g.terms, g.batch * g.group * blocks,
              panels_per_task(panels.count(), blocks * g.batch * g.group, max_pixels, g.terms,
                              panels.width)) {}

  const TileKernels& kernels;
  const ConvGeometry& g;
  Strips strips;
  Panels panels;
  Chunks chunks;
  int64_t blocks;      // of an image and a group
  int64_t block;       // most strips in one
  int64_t max_pixels;  // in one
  PanelTasks tasks;

  int64_t packed_floats() const { return block * g.terms * kernels.strip_width; }
  int64_t group_weights() const { return g.terms * panels.stored_columns(); }
  int64_t worker_floats() const {
    return round_up(packed_floats() + partial_floats(chunks, block, kernels), 16);
  }
};

// Gathers the windows of strips [first, last), each term after term.
void gather_block(const ChannelTiles& t, const float* image, int64_t first, int64_t last,
                  float* space) {
  constexpr int64_t most = 64, max_pieces = 4;
  PixelSpan spans[most + max_pieces];
  const int64_t lanes = t.kernels.lanes, strip_floats = t.g.terms * t.kernels.strip_width;
  for (int64_t strip = first; strip < last;) {
    int64_t count = 0;
    for (; strip < last && count < most; ++strip) {
      const int64_t pixels = t.strips.height(strip);
      float* const to = space + (strip - first) * strip_floats;
      for (int64_t at = 0; at < pixels; at += lanes)
        spans[count++] = {t.strips.begin(strip) + at, std::min(lanes, pixels - at), to + at};
    }
    gather_windows(t.g, image, spans, count, t.kernels.strip_width);
  }
}

// What the next block will be gathered from, as far as it is not there already.
Ahead next_pixels(const ConvGeometry& g, const float* image, int64_t first_pixel, int64_t pixels) {
  if (g.stride[1] != 1 || g.stride[2] != 1) return {};
  const int64_t below = (g.kernel[1] - 1) * g.dilation[1] - g.pad[1];
  const int64_t at = first_pixel + std::max<int64_t>(below, 0) * g.in[2];
  return {image + std::min(at, g.in_pixels), g.in_pixels, g.group_in, divide_up(pixels, 16)};
}

void run_channel_task(const ChannelTiles& t, const Call& call, int64_t task,
                      const PackedBlocks& spaces, int worker) {
  const ConvGeometry& g = t.g;
  const int64_t where = t.tasks.block(task);  // image, group and block
  const int64_t first = part_begin(t.strips.count(), t.blocks, where % t.blocks);
  const int64_t last = part_begin(t.strips.count(), t.blocks, where % t.blocks + 1);
  const int64_t group = where / t.blocks % g.group;
  const int64_t n = where / t.blocks / g.group;
  float* space = spaces.space(worker);
  const int64_t strip_floats = g.terms * t.kernels.strip_width;
  if (spaces.changes(worker, where)) gather_block(t, call.image(n, group), first, last, space);
  const StripOperand pixels{space, t.kernels.strip_width, strip_floats, true};
  const float* weights = call.weights + group * t.group_weights();
  const int64_t begin = t.tasks.begin(task), end = t.tasks.end(task);
  for (int64_t p = begin; p < end; ++p) {
    const int64_t width = t.panels.stored(p);
    for (int64_t i = 0; i < t.chunks.count(); ++i) {
      const Terms terms = chunk_terms(t.chunks, i);
      const PanelOperand panel{weights + p * t.panels.width * g.terms + terms.begin * width, width,
                               t.panels.vectors(p)};
      const Ahead ahead = weights_stay_near(g)
                              ? p == begin && i == 0
                                    ? next_pixels(g, call.image(n, group), t.strips.begin(last),
                                                  t.strips.begin(last) - t.strips.begin(first))
                                    : Ahead()
                              : Ahead::piece(panel.data + terms.size * width, terms.size * width);
      multiply_panel<true>(t.kernels, t.strips, first, last, pixels, panel, terms, ahead,
                           space + t.packed_floats(), [&](int64_t strip) {
                             return call.place(n, group, p * t.panels.width, t.panels.used(p),
                                               t.strips.begin(strip), t.strips.height(strip));
                           });
    }
  }
}

// --- Pixels along the vectors -------------------------------------------------------------------

// Output channels are the rows of tiles, pixels their columns, so that tiles are stored as they
// are.
struct PixelTiles {
  PixelTiles(const TileKernels& kernels, const ConvGeometry& g)
      : kernels(kernels),
        g(g),
        weights{g.group_out, kernels.panel_columns, kernels.lanes},
        panels{g.out_pixels, vectors(kernels, g) * kernels.lanes, kernels.lanes},
        chunks{g.terms} {}

  // As many as leave a panel in the first-level cache.
  static int64_t vectors(const TileKernels& kernels, const ConvGeometry& g) {
    constexpr int64_t near_bytes = 36 << 10;
    return g.terms * max_tile_vectors * kernels.lanes * 4 <= near_bytes ? max_tile_vectors : 2;
  }

  const TileKernels& kernels;
  const ConvGeometry& g;
  Panels weights;  // panels of output channels
  Panels panels;   // of pixels
  Chunks chunks;

  int64_t tasks() const { return g.batch * g.group * panels.count(); }
  int64_t grain() const {
    const int64_t work = g.group_out * panels.width * g.terms;
    return divide_up(task_work, std::max<int64_t>(1, work));
  }
  int64_t packed_floats() const { return panels.width * g.terms; }
  int64_t group_weights() const { return g.terms * weights.stored_columns(); }
  int64_t worker_floats() const {
    const int64_t strips = divide_up(kernels.panel_columns, kernels.flat_rows) + 1;
    return round_up(packed_floats() + partial_floats(chunks, strips, kernels), 16);
  }
};

void run_pixel_task(const PixelTiles& t, const Call& call, int64_t task, float* space) {
  const ConvGeometry& g = t.g;
  const int64_t p = task % t.panels.count();
  const int64_t group = task / t.panels.count() % g.group;
  const int64_t n = task / t.panels.count() / g.group;
  const int64_t width = t.panels.stored(p);
  const int64_t first_pixel = p * t.panels.width;
  const float* image = call.image(n, group);
  PixelSpan spans[max_tile_vectors];
  for (int64_t i = 0; i * t.kernels.lanes < width; ++i) {
    const int64_t at = i * t.kernels.lanes;
    spans[i] = {first_pixel + at, std::min<int64_t>(t.kernels.lanes, t.panels.used(p) - at),
                space + at};
  }
  gather_windows(g, image, spans, width / t.kernels.lanes, width);
  const float* weights = call.weights + group * t.group_weights();
  for (int64_t m = 0; m < t.weights.count(); ++m) {
    const int64_t channel = m * t.weights.width;
    const Strips strips(t.weights.used(m), t.kernels.flat_rows);
    const StripOperand left{weights + channel * g.terms, t.weights.stored(m), 0, true};
    for (int64_t i = 0; i < t.chunks.count(); ++i) {
      const Terms terms = chunk_terms(t.chunks, i);
      const PanelOperand panel{space + terms.begin * width, width, t.panels.vectors(p)};
      const Ahead ahead = m == 0 && i == 0
                              ? next_pixels(g, image, first_pixel + t.panels.width, t.panels.width)
                              : Ahead();
      multiply_panel<false>(t.kernels, strips, 0, strips.count(), left, panel, terms, ahead,
                            space + t.packed_floats(), [&](int64_t strip) {
                              return call.place(n, group, channel + strips.begin(strip),
                                                strips.height(strip), first_pixel,
                                                t.panels.used(p));
                            });
    }
  }
}

}  // namespace

int64_t channel_worker_floats(const ConvGeometry& g) {
  return ChannelTiles(tile_kernels(), g).worker_floats();
}

void run_channel_vectors(const Call& call, const PackedBlocks& spaces, ThreadPool& pool) {
  const ChannelTiles t(tile_kernels(), call.g);
  for_tasks(pool, t.tasks.count(), t.tasks.grain(t.max_pixels),
            [&](int64_t task, int worker) { run_channel_task(t, call, task, spaces, worker); });
}

int64_t pixel_worker_floats(const ConvGeometry& g) {
  return PixelTiles(tile_kernels(), g).worker_floats();
}

void run_pixel_vectors(const Call& call, const PackedBlocks& spaces, ThreadPool& pool) {
  const PixelTiles t(tile_kernels(), call.g);
  for_tasks(pool, t.tasks(), t.grain(),
            [&](int64_t task, int worker) { run_pixel_task(t, call, task, spaces.space(worker)); });
}

}  // namespace sardonyx::kernels
