// Convolution by Winograd's transforms: blocks of tiles through all steps while they are near. With
// dilation (channels last only) the pixels of each phase, a dilation apart, are an image of their
// own.
#include <algorithm>

#include "kernels/conv/path.h"
#include "kernels/conv/winograd.h"
#include "kernels/gemm/block.h"

namespace sardonyx::kernels {
namespace {

// A block of transformed tiles when all weights together are larger than a second-level cache. Each
// block reads them again, so that blocks as large as that cache itself are better than two.
constexpr int64_t large_block_bytes = 1700 << 10;
constexpr int64_t many_weight_bytes = 4 << 20;

struct WinogradTiles {
  WinogradTiles(const TileKernels& kernels, const ConvGeometry& g)
      : kernels(kernels),
        g(g),
        side(g.winograd),
        planes(winograd_planes(side)),
        phase_rows(std::min(g.dilation[1], g.out[1])),
        phase_columns(std::min(g.dilation[2], g.out[2])),
        rows(divide_up(divide_up(g.out[1], g.dilation[1]), side)),
        columns(divide_up(divide_up(g.out[2], g.dilation[2]), side)),
        tiles(phase_rows * phase_columns * rows * columns),
        panels{g.group_out, kernels.panel_columns, kernels.lanes},
        tile_stride(round_up(g.group_in, kernels.lanes) + max_lanes) {
    const int64_t tile_bytes = planes * tile_stride * int64_t{sizeof(float)};
    const bool many = group_weights() * int64_t{sizeof(float)} > many_weight_bytes;
    const int64_t fit =
        std::max((many ? large_block_bytes : block_bytes) / tile_bytes, int64_t{16});
    const int64_t count = divide_up(tiles, fit);
    block = divide_up(tiles, count);
    blocks = divide_up(tiles, block);
    per_task = panels_per_task(panels.count(), blocks * g.batch * g.group, planes * block,
                               g.group_in, panels.width);
    panel_groups = divide_up(panels.count(), per_task);
    longest = std::min(block, columns);
  }

  const TileKernels& kernels;
  const ConvGeometry& g;
  int64_t side;  // of a tile, in output pixels
  int64_t planes;
  int64_t phase_rows, phase_columns;
  int64_t rows, columns;  // of tiles, in each phase
  int64_t tiles;          // of an image
  Panels panels;          // of output channels
  int64_t tile_stride;    // floats of one tile in one plane of the transformed input
  int64_t block = 1;      // tiles in one
  int64_t blocks = 1;
  int64_t per_task = 1;  // panels
  int64_t panel_groups = 1;
  int64_t longest = 1;  // most tiles in a row of a block

  int64_t tasks() const { return g.batch * g.group * blocks * panel_groups; }
  int64_t group_weights() const { return planes * g.group_in * panels.stored_columns(); }

  // Planes are a cache line longer than they need be, so that they do not all fall into the
  // same sets of the caches.
  int64_t input_plane() const { return block * tile_stride + 16; }
  int64_t sums_plane() const { return block * panels.width + 16; }
  int64_t row_pixels() const { return longest * side; }
  int64_t input_floats() const { return planes * input_plane(); }
  int64_t sums_floats() const { return planes * sums_plane(); }
  int64_t lines_floats() const {
    return std::max(winograd_line_floats(side, longest),
                    (side * row_pixels() + kernels.lanes) * panels.width);
  }
  int64_t worker_floats() const {
    return input_floats() + sums_floats() + round_up(lines_floats(), 16);
  }
};

// Neighbouring tiles in one row of tiles of a phase; `first` is their place in the block.
struct Segment {
  int64_t phase_row, phase_column;
  int64_t row, column, count, first;
};

// Calls f for the segments of a block.
template <class F>
void for_segments(const WinogradTiles& t, int64_t block, F&& f) {
  const int64_t begin = block * t.block;
  const int64_t end = std::min(begin + t.block, t.tiles);
  for (int64_t tile = begin; tile < end;) {
    const int64_t column = tile % t.columns, phase = tile / t.columns / t.rows;
    const int64_t count = std::min(end - tile, t.columns - column);
    f(Segment{phase / t.phase_columns, phase % t.phase_columns, tile / t.columns % t.rows, column,
              count, tile - begin});
    tile += count;
  }
}

// Where the pixels that a phase of outputs reads lie along an axis.
struct PhasePixels {
  PhasePixels(const ConvGeometry& g, size_t axis, int64_t phase) {
    const int64_t from = phase - g.pad[axis], apart = g.dilation[axis];
    first = (from % apart + apart) % apart;
    begin = (from - first) / apart;
    count = std::max<int64_t>(0, divide_up(g.in[axis] - first, apart));
  }
  int64_t first;  // of them in the image
  int64_t begin;  // which of them the first output begins with; may be negative
  int64_t count;
};

void transform_block(const WinogradTiles& t, const float* image, int64_t block, float* out,
                     float* lines) {
  const ConvGeometry& g = t.g;
  for_segments(t, block, [&](const Segment& s) {
    const PhasePixels down(g, 1, s.phase_row), along(g, 2, s.phase_column);
    const int64_t pixel = g.nhwc ? g.group * g.group_in : 0;
    WinogradInput job;
    job.outputs = t.side;
    job.image = image + (down.first * g.in[2] + along.first) * pixel;
    job.channels = g.group_in;
    job.height = down.count;
    job.width = along.count;
    job.pixel_stride = g.dilation[2] * pixel;
    job.line_stride = g.dilation[1] * g.in[2] * pixel;
    job.top = s.row * t.side + down.begin;
    job.left = s.column * t.side + along.begin;
    job.tiles = s.count;
    job.lines = lines;
    job.out = out + s.first * t.tile_stride;
    job.plane_stride = t.input_plane();
    job.tile_stride = t.tile_stride;
    winograd_input(job);
  });
}

// The products of one block and one panel.
void multiply_planes(const WinogradTiles& t, const Strips& strips, const float* input,
                     const float* weights, int64_t panel, float* sums) {
  const int64_t width = t.panels.stored(panel);
  const int64_t plane_weights = t.g.group_in * width;
  TileJob job;
  job.k = t.g.group_in;
  job.a_stride = t.tile_stride;
  job.b_stride = width;
  for (int64_t plane = 0; plane < t.planes; ++plane) {
    const float* b = weights + plane * plane_weights;
    job.b = b;
    const Ahead ahead = Ahead::piece(b + plane_weights, plane_weights);
    const PrefetchPlan prefetch(ahead, strips.count(), job.k);
    for (int64_t s = 0; s < strips.count(); ++s) {
      prefetch.apply(job, s);
      job.a = input + plane * t.input_plane() + strips.begin(s) * t.tile_stride;
      job.sums = sums + plane * t.sums_plane() + strips.begin(s) * width;
      t.kernels.tiles[strips.height(s)][t.panels.vectors(panel)](job);
    }
  }
}

void store_block(const WinogradTiles& t, const Call& call, int64_t n, int64_t group, int64_t block,
                 int64_t panel, const float* sums, float* lines) {
  const ConvGeometry& g = t.g;
  const int64_t width = t.panels.stored(panel);
  for_segments(t, block, [&](const Segment& s) {
    WinogradOutput job;
    job.outputs = t.side;
    job.sums = sums + s.first * width;
    job.plane_stride = t.sums_plane();
    job.tiles = s.count;
    job.channels = width;
    job.out = lines;
    job.row_pixels = t.row_pixels();
    winograd_output(job);
    const int64_t left = s.phase_column + s.column * t.side * g.dilation[2];
    const int64_t pixels = std::min(s.count * t.side, divide_up(g.out[2] - left, g.dilation[2]));
    if (pixels <= 0) return;  // phases need not be equally long
    for (int64_t y = 0; y < t.side; ++y) {
      const int64_t row = s.phase_row + (s.row * t.side + y) * g.dilation[1];
      if (row >= g.out[1]) break;
      if (g.nhwc) {
        TileStore store = call.place_nhwc(group, panel * t.panels.width, t.panels.used(panel),
                                          n * g.out_pixels + row * g.out[2] + left, pixels);
        store.sums = lines + y * t.row_pixels() * width;
        store.sums_stride = width;
        store.c_stride *= g.dilation[2];
        store.residual_stride *= g.dilation[2];
        t.kernels.store(store);
        continue;
      }
      for (int64_t x = 0; x < pixels; x += t.kernels.lanes) {
        TileStore store =
            call.place(n, group, panel * t.panels.width, t.panels.used(panel),
                       row * g.out[2] + left + x, std::min<int64_t>(t.kernels.lanes, pixels - x));
        store.sums = lines + (y * t.row_pixels() + x) * width;
        store.sums_stride = width;
        t.kernels.store_transposed(store);
      }
    }
  });
}

void run_task(const WinogradTiles& t, const Call& call, int64_t task, const PackedBlocks& spaces,
              int worker) {
  const int64_t where = task / t.panel_groups;  // image, group and block
  const int64_t block = where % t.blocks;
  const int64_t group = where / t.blocks % t.g.group;
  const int64_t n = where / t.blocks / t.g.group;
  const ConvGeometry& g = t.g;
  float* input = spaces.space(worker);
  float* sums = input + t.input_floats();
  float* lines = sums + t.sums_floats();
  if (spaces.changes(worker, where)) {
    const float* image = g.nhwc ? call.image_nhwc(n, group) : call.image(n, group);
    transform_block(t, image, block, input, lines);
  }
  const int64_t tiles = std::min(t.block, t.tiles - block * t.block);
  const Strips strips(tiles, t.kernels.tile_rows);
  const float* weights = call.weights + group * t.group_weights();
  const int64_t begin = task % t.panel_groups * t.per_task;
  const int64_t end = std::min(begin + t.per_task, t.panels.count());
  for (int64_t p = begin; p < end; ++p) {
    multiply_planes(t, strips, input, weights + p * t.panels.width * t.planes * t.g.group_in, p,
                    sums);
    store_block(t, call, n, group, block, p, sums, lines);
  }
}

}  // namespace

int64_t winograd_worker_floats(const ConvGeometry& g) {
  return WinogradTiles(tile_kernels(), g).worker_floats();
}

void run_winograd(const Call& call, const PackedBlocks& spaces, ThreadPool& pool) {
  const WinogradTiles t(tile_kernels(), call.g);
  for_tasks(pool, t.tasks(), 1,
            [&](int64_t task, int worker) { run_task(t, call, task, spaces, worker); });
}

}  // namespace sardonyx::kernels
