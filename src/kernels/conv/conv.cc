// Convolution as matrix multiplication: windows of pixels gathered strip by strip, times the weights.
//
// Packed weights are, group after group, panels of output channels as in gemm/packed_gemm.cc; for
// the depthwise paths they are as they came.
#include "kernels/conv/conv.h"

#include <algorithm>
#include <cstring>
#include <limits>

#include "base/thread_pool.h"
#include "kernels/conv/depthwise.h"
#include "kernels/conv/geometry.h"
#include "kernels/conv/im2col.h"
#include "kernels/gemm/block.h"
#include "kernels/gemm/pack.h"
#include "kernels/gemm/tiles.h"

namespace sardonyx::kernels {
namespace {

bool is_depthwise(ConvPath path) {
  return path == ConvPath::depthwise_rows || path == ConvPath::depthwise_any;
}

bool is_empty(const ConvGeometry& g) {
  return g.batch <= 0 || g.group_out <= 0 || g.out_pixels <= 0;
}

int64_t aligned_bytes(int64_t floats) { return round_up(floats * int64_t{sizeof(float)}, 64); }

// What all runs of one call share. In the matrices of a group, rows of C are output channels and
// columns are pixels.
struct Call {
  const ConvGeometry& g;
  const float* x;
  const float* weights;
  float* y;
  Epilogue epilogue;

  const float* image(int64_t n, int64_t group) const {
    return x + (n * g.group + group) * g.group_in * g.in_pixels;
  }
  // The store of `channels` output channels (of the group) from `m` on, `pixels` pixels from
  // `pixel` on.
  TileStore place(int64_t n, int64_t group, int64_t m, int64_t channels, int64_t pixel,
                  int64_t pixels) const {
    const int64_t row = (n * g.group + group) * g.group_out + m;
    TileStore store;
    store.rows = channels;
    store.columns = pixels;
    store.epilogue = &epilogue;
    store.c = y + row * g.out_pixels + pixel;
    store.c_stride = g.out_pixels;
    if (epilogue.bias != nullptr) store.bias = epilogue.bias + group * g.group_out + m;
    if (epilogue.residual != nullptr) {
      store.residual = epilogue.residual + row * g.out_pixels + pixel;
      store.residual_stride = g.out_pixels;
    }
    return store;
  }
};

// --- Output channels along the vectors ----------------------------------------------------------

// Pixels are the rows of tiles, so that any number of them fills strips; tiles are turned when they
// are stored.
struct ChannelTiles {
  ChannelTiles(const TileKernels& kernels, const ConvGeometry& g)
      : kernels(kernels), g(g), strips(g.out_pixels, kernels.tile_rows),
        panels{g.group_out, kernels.panel_columns, kernels.lanes}, chunks{g.terms},
        block(strips_per_block(strips.count(), kernels.lanes, g.terms, g.group_out)),
        blocks(divide_up(strips.count(), block)),
        per_task(panels_per_task(panels.count(), blocks * g.batch * g.group,
                                 std::min(g.out_pixels, block * kernels.tile_rows), g.terms,
                                 panels.width)),
        panel_groups(divide_up(panels.count(), per_task)) {}

  const TileKernels& kernels;
  const ConvGeometry& g;
  Strips strips;
  Panels panels;
  Chunks chunks;
  int64_t block;  // strips in one
  int64_t blocks;
  int64_t per_task;  // panels
  int64_t panel_groups;

  int64_t tasks() const { return g.batch * g.group * blocks * panel_groups; }
  int64_t grain() const {
    const int64_t work = std::min(g.out_pixels, block * kernels.tile_rows) * per_task *
                         panels.width * g.terms;
    return divide_up(task_work, std::max<int64_t>(1, work));
  }
  int64_t packed_floats() const { return block * g.terms * kernels.lanes; }
  int64_t group_weights() const { return g.terms * panels.stored_columns(); }
  int64_t worker_floats() const {
    return round_up(packed_floats() + partial_floats(chunks, block, kernels), 16);
  }
};

// Gathers the windows of strips [first, last), each term after term.
void gather_block(const ChannelTiles& t, const float* image, int64_t first, int64_t last,
                  float* space) {
  constexpr int64_t most = 64;
  PixelSpan spans[most];
  const int64_t strip_floats = t.g.terms * t.kernels.lanes;
  for (int64_t begin = first; begin < last; begin += most) {
    const int64_t count = std::min(most, last - begin);
    for (int64_t i = 0; i < count; ++i) {
      spans[i] = {t.strips.begin(begin + i), t.strips.height(begin + i),
                  space + (begin + i - first) * strip_floats};
    }
    gather_windows(t.g, image, spans, count, t.kernels.lanes);
  }
}

void run_channel_task(const ChannelTiles& t, const Call& call, int64_t task,
                      const PackedBlocks& spaces, int worker) {
  const ConvGeometry& g = t.g;
  const int64_t where = task / t.panel_groups;  // image, group and block
  const int64_t first = where % t.blocks * t.block;
  const int64_t last = std::min(first + t.block, t.strips.count());
  const int64_t group = where / t.blocks % g.group;
  const int64_t n = where / t.blocks / g.group;
  float* space = spaces.space(worker);
  const int64_t strip_floats = g.terms * t.kernels.lanes;
  if (spaces.changes(worker, where)) gather_block(t, call.image(n, group), first, last, space);
  const StripOperand pixels{space, t.kernels.lanes, strip_floats, true};
  const float* weights = call.weights + group * t.group_weights();
  const int64_t begin = task % t.panel_groups * t.per_task;
  const int64_t end = std::min(begin + t.per_task, t.panels.count());
  for (int64_t p = begin; p < end; ++p) {
    const int64_t width = t.panels.stored(p);
    for (int64_t i = 0; i < t.chunks.count(); ++i) {
      const Terms terms = chunk_terms(t.chunks, i);
      const PanelOperand panel{weights + p * t.panels.width * g.terms + terms.begin * width, width,
                               t.panels.vectors(p)};
      const Ahead ahead = Ahead::piece(panel.data + terms.size * width, terms.size * width);
      multiply_panel<true>(t.kernels, t.strips, first, last, pixels, panel, terms, ahead,
                           space + t.packed_floats(), [&](int64_t strip) {
                             return call.place(n, group, p * t.panels.width, t.panels.used(p),
                                               t.strips.begin(strip), t.strips.height(strip));
                           });
    }
  }
}

// --- Pixels along the vectors -------------------------------------------------------------------

// Output channels are the rows of tiles, pixels their columns, so that tiles are stored as they are.
struct PixelTiles {
  PixelTiles(const TileKernels& kernels, const ConvGeometry& g)
      : kernels(kernels), g(g), weights{g.group_out, kernels.panel_columns, kernels.lanes},
        panels{g.out_pixels, max_tile_vectors * kernels.lanes, kernels.lanes}, chunks{g.terms} {}

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

// What the next panel of pixels will be gathered from, as far as it is not there already.
Ahead next_pixels(const PixelTiles& t, const float* image, int64_t panel) {
  const ConvGeometry& g = t.g;
  if (g.stride[1] != 1 || g.stride[2] != 1) return {};
  const int64_t below = (g.kernel[1] - 1) * g.dilation[1] - g.pad[1];
  const int64_t at = (panel + 1) * t.panels.width + std::max<int64_t>(below, 0) * g.in[2];
  return {image + std::min(at, g.in_pixels), g.in_pixels, g.group_in, t.panels.width / 16};
}

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
      const Ahead ahead = m == 0 && i == 0 ? next_pixels(t, image, p) : Ahead();
      multiply_panel<false>(t.kernels, strips, 0, strips.count(), left, panel, terms, ahead,
                            space + t.packed_floats(), [&](int64_t strip) {
                              return call.place(n, group, channel + strips.begin(strip),
                                                strips.height(strip), first_pixel,
                                                t.panels.used(p));
                            });
    }
  }
}

// --- One plane at a time ------------------------------------------------------------------------

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
  int64_t worker_floats() const { return depthwise_row_step * line_floats(); }
};

// Whether the kernels can finish the rows themselves: scale, bias, and clipping to [low, high].
bool clips_only(const Epilogue& e, float& low, float& high) {
  low = -std::numeric_limits<float>::infinity();
  high = std::numeric_limits<float>::infinity();
  if (e.activation == Activation::relu) low = 0;
  if (e.activation == Activation::clip) {
    low = e.p0;
    high = e.p1;
  }
  return e.residual == nullptr && (e.activation == Activation::none ||
                                   e.activation == Activation::relu ||
                                   e.activation == Activation::clip);
}

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
      TileStore store = call.place(n, channel / g.group_out, channel % g.group_out, 1,
                                   line * g.out[2], g.out[2]);
      store.sums = lines + (line - job.begin) * t.line_floats();
      store.sums_stride = t.line_floats();
      tile_kernels().store(store);
    }
  }
}

int64_t worker_floats(ConvPath path, const ConvGeometry& g) {
  if (is_depthwise(path)) return DepthwiseTiles(g).worker_floats();
  if (path == ConvPath::pixel_vectors) return PixelTiles(tile_kernels(), g).worker_floats();
  return ChannelTiles(tile_kernels(), g).worker_floats();
}

}  // namespace

int64_t conv_packed_size(const ConvShape& shape) {
  const ConvGeometry g(shape);
  if (g.group_out <= 0) return 0;
  if (is_depthwise(choose_conv(shape).path)) {
    return aligned_bytes(g.group * g.group_out * g.terms);
  }
  return aligned_bytes(g.group * ChannelTiles(tile_kernels(), g).group_weights());
}

void pack_conv_weights(const ConvShape& shape, const float* weights, void* packed,
                       ThreadPool* pool) {
  const ConvGeometry g(shape);
  if (g.group_out <= 0 || g.terms <= 0) return;
  auto* out = static_cast<float*>(packed);
  if (is_depthwise(choose_conv(shape).path)) {
    std::memcpy(out, weights,
                static_cast<size_t>(g.group * g.group_out * g.terms) * sizeof(float));
    return;
  }
  const ChannelTiles t(tile_kernels(), g);
  const int64_t count = t.panels.count();
  const auto pack = [&](int64_t begin, int64_t end, int) {
    for (int64_t i = begin; i < end; ++i) {
      const int64_t group = i / count;
      const int64_t p = i % count;
      const float* from = weights + (group * g.group_out + p * t.panels.width) * g.terms;
      pack_panel(t.kernels, from, 1, g.terms, g.terms, t.panels.used(p),
                 out + group * t.group_weights() + p * t.panels.width * g.terms,
                 t.panels.stored(p));
    }
  };
  const int64_t grain = std::max<int64_t>(1, (int64_t{64} << 10) / (g.terms * t.panels.width));
  if (pool != nullptr) {
    pool->parallel_for(g.group * count, grain, pack);
  } else {
    pack(0, g.group * count, 0);
  }
}

int64_t conv_scratch_bytes(const ConvShape& shape, int threads) {
  const ConvGeometry g(shape);
  if (is_empty(g)) return 0;
  return threads * (scratch_alignment + worker_floats(choose_conv(shape).path, g) *
                                            int64_t{sizeof(float)});
}

void conv_run(const ConvShape& shape, const float* x, const void* packed, float* y,
              const Epilogue& epilogue, void* scratch, ThreadPool& pool) {
  const ConvGeometry g(shape);
  if (is_empty(g)) return;
  const ConvPath path = choose_conv(shape).path;
  Call call{g, x, static_cast<const float*>(packed), y, epilogue};
  call.epilogue.bias_axis = epilogue.bias != nullptr ? BiasAxis::row : BiasAxis::none;
  const PackedBlocks spaces(scratch, pool.threads(), worker_floats(path, g));
  const auto for_tasks = [&](int64_t tasks, int64_t grain, auto&& run) {
    pool.parallel_for(tasks, grain, [&](int64_t begin, int64_t end, int worker) {
      for (int64_t task = begin; task < end; ++task) run(task, worker);
    });
  };
  if (is_depthwise(path)) {
    const DepthwiseTiles t(g);
    for_tasks(t.tasks(), t.grain, [&](int64_t task, int worker) {
      run_depthwise_task(t, call, path, task, spaces.space(worker));
    });
  } else if (path == ConvPath::pixel_vectors) {
    const PixelTiles t(tile_kernels(), g);
    for_tasks(t.tasks(), t.grain(), [&](int64_t task, int worker) {
      run_pixel_task(t, call, task, spaces.space(worker));
    });
  } else {
    const ChannelTiles t(tile_kernels(), g);
    for_tasks(t.tasks(), t.grain(), [&](int64_t task, int worker) {
      run_channel_task(t, call, task, spaces, worker);
    });
  }
}

}  // namespace sardonyx::kernels
