// Convolution with channels last as matrix multiplication: pixels are the rows of tiles, output
// channels their columns, so that tiles are stored as they are.
#include <algorithm>
#include <cstring>

#include "kernels/conv/path.h"
#include "kernels/gemm/block.h"
#include "kernels/gemm/gemm.h"

namespace sardonyx::kernels {
namespace {

// Short lines are copied in one piece of this size.
constexpr int64_t short_floats = 16;

struct WindowRows {
  WindowRows(const TileKernels& kernels, const ConvGeometry& g)
      : kernels(kernels),
        g(g),
        // Rows an odd number of cache lines apart never fall into the same sets.
        row_stride((divide_up(g.terms, 16) | 1) * 16),
        strips(g.batch * g.out_pixels, kernels.tile_rows),
        panels{g.group_out, kernels.panel_columns, kernels.lanes},
        chunks{g.terms},
        block(strips_per_block(strips.count(), kernels.tile_rows, g.terms, g.group_out)),
        blocks(divide_up(strips.count(), block)),
        per_task(panels_per_task(panels.count(), blocks * g.group,
                                 std::min(g.batch * g.out_pixels, block * kernels.tile_rows),
                                 g.terms, panels.width)),
        panel_groups(divide_up(panels.count(), per_task)) {}

  const TileKernels& kernels;
  const ConvGeometry& g;
  int64_t row_stride;
  Strips strips;
  Panels panels;
  Chunks chunks;
  int64_t block;  // strips in one
  int64_t blocks;
  int64_t per_task;  // panels
  int64_t panel_groups;

  int64_t tasks() const { return g.group * blocks * panel_groups; }
  int64_t grain() const {
    const int64_t work = std::min(g.batch * g.out_pixels, block * kernels.tile_rows) * per_task *
                         panels.width * g.terms;
    return divide_up(task_work, std::max<int64_t>(1, work));
  }
  // Windows of one pixel each, one after the other: tiles read x itself.
  bool reads_images() const {
    return g.taps == 1 && g.stride == ConvShape::Dims{1, 1, 1} && g.pad == ConvShape::Dims{} &&
           g.in == g.out && !rows_collide(g.group * g.group_in, kernels.tile_rows);
  }
  // They stay in the second-level cache.
  bool small_weights() const { return g.terms * g.group_out * 4 <= small_b_bytes; }
  // With room for the whole piece that the last short copy writes.
  int64_t window_floats() const { return block * kernels.tile_rows * row_stride + short_floats; }
  int64_t group_weights() const { return g.terms * panels.stored_columns(); }
  int64_t worker_floats() const {
    return round_up(window_floats() + partial_floats(chunks, block, kernels), 16);
  }
};

void copy_floats(const float* from, int64_t count, float* to) {
  if (count > 0) std::memcpy(to, from, static_cast<size_t>(count) * sizeof(float));
}
void zero_floats(int64_t count, float* to) {
  if (count > 0) std::memset(to, 0, static_cast<size_t>(count) * sizeof(float));
}

// One line of a window: kernel[2] pixels from column `left` of an input line on; `end` is that of
// all images. What follows the line in `to` may be overwritten, up to short_floats from its begin.
void copy_line(const ConvGeometry& g, const float* line, const float* end, int64_t left,
               float* to) {
  const int64_t channels = g.group * g.group_in;
  if (g.dilation[2] == 1 && g.group == 1) {
    const float* from = line + left * channels;
    if (g.kernel[2] * channels <= short_floats && left >= 0 && left + g.kernel[2] <= g.in[2] &&
        end - from >= short_floats) {
      std::memcpy(to, from, short_floats * sizeof(float));
      return;
    }
    const int64_t first = std::clamp<int64_t>(-left, 0, g.kernel[2]);
    const int64_t last = std::clamp<int64_t>(g.in[2] - left, first, g.kernel[2]);
    zero_floats(first * channels, to);
    copy_floats(line + (left + first) * channels, (last - first) * channels, to + first * channels);
    zero_floats((g.kernel[2] - last) * channels, to + last * channels);
    return;
  }
  for (int64_t w = 0; w < g.kernel[2]; ++w, to += g.group_in) {
    const int64_t column = left + w * g.dilation[2];
    if (column < 0 || column >= g.in[2]) {
      zero_floats(g.group_in, to);
    } else {
      copy_floats(line + column * channels, g.group_in, to);
    }
  }
}

// The window of one output pixel: its taps one after the other, of each the group's channels.
void copy_window(const ConvGeometry& g, const float* image, const float* end,
                 const OutputPixel& pixel, float* to) {
  const int64_t left = pixel.left(), top = pixel.top(), front = pixel.front();
  const int64_t line_terms = g.kernel[2] * g.group_in;
  for (int64_t d = 0; d < g.kernel[0]; ++d) {
    const int64_t depth = front + d * g.dilation[0];
    for (int64_t h = 0; h < g.kernel[1]; ++h, to += line_terms) {
      const int64_t row = top + h * g.dilation[1];
      if (depth < 0 || depth >= g.in[0] || row < 0 || row >= g.in[1]) {
        zero_floats(line_terms, to);
      } else {
        copy_line(g, image + (depth * g.in[1] + row) * g.in[2] * g.group * g.group_in, end, left,
                  to);
      }
    }
  }
}

void run_window_task(const WindowRows& t, const Call& call, int64_t task,
                     const PackedBlocks& spaces, int worker) {
  const ConvGeometry& g = t.g;
  const int64_t where = task / t.panel_groups;  // block and group
  const int64_t first = where / g.group * t.block;
  const int64_t last = std::min(first + t.block, t.strips.count());
  const int64_t group = where % g.group;
  float* space = spaces.space(worker);
  const bool in_place = t.reads_images();
  if (!in_place && spaces.changes(worker, where)) {
    float* to = space;
    const float* end = call.image_last(g.batch, 0);
    OutputPixel pixel(g, t.strips.begin(first));
    for (int64_t i = t.strips.begin(first); i < t.strips.begin(last); ++i, to += t.row_stride) {
      copy_window(g, call.image_last(pixel.image(), group), end, pixel, to);
      pixel.next();
    }
  }
  const int64_t pixel = g.group * g.group_in;  // floats
  const StripOperand windows =
      in_place
          ? StripOperand{call.image_last(0, group) + t.strips.begin(first) * pixel, pixel, 0, false}
          : StripOperand{space, t.row_stride, 0, false};
  const float* weights = call.weights + group * t.group_weights();
  const int64_t begin = task % t.panel_groups * t.per_task;
  const int64_t end = std::min(begin + t.per_task, t.panels.count());
  for (int64_t p = begin; p < end; ++p) {
    const int64_t width = t.panels.stored(p);
    for (int64_t i = 0; i < t.chunks.count(); ++i) {
      const Terms terms = chunk_terms(t.chunks, i);
      const PanelOperand panel{weights + p * t.panels.width * g.terms + terms.begin * width, width,
                               t.panels.vectors(p)};
      const Ahead ahead = t.small_weights()
                              ? Ahead()
                              : Ahead::piece(panel.data + terms.size * width, terms.size * width);
      multiply_panel<false>(t.kernels, t.strips, first, last, windows, panel, terms, ahead,
                            space + t.window_floats(), [&](int64_t strip) {
                              return call.place_last(group, p * t.panels.width, t.panels.used(p),
                                                     t.strips.begin(strip), t.strips.height(strip));
                            });
    }
  }
}

}  // namespace

int64_t windows_last_worker_floats(const ConvGeometry& g) {
  return WindowRows(tile_kernels(), g).worker_floats();
}

void run_windows_last(const Call& call, const PackedBlocks& spaces, ThreadPool& pool) {
  const WindowRows t(tile_kernels(), call.g);
  for_tasks(pool, t.tasks(), t.grain(),
            [&](int64_t task, int worker) { run_window_task(t, call, task, spaces, worker); });
}

int64_t pointwise_last_scratch_bytes(const ConvGeometry& g, int threads) {
  return gemm_packed_b_scratch_bytes(g.batch * g.out_pixels, g.group_out, g.group_in, g.group_in,
                                     threads);
}

void run_pointwise_last(const Call& call, void* scratch, ThreadPool& pool) {
  const ConvGeometry& g = call.g;
  Epilogue epilogue = call.epilogue;
  epilogue.residual_stride = g.group_out;
  gemm_packed_b(g.batch * g.out_pixels, g.group_out, g.group_in, call.x, g.group_in, call.weights,
                call.y, g.group_out, epilogue, scratch, pool);
}

}  // namespace sardonyx::kernels
