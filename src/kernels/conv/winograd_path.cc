// Convolution by Winograd's transforms: blocks of tiles through all steps while they are near. With
// dilation (channels last only) the pixels of each phase, a dilation apart, are an image of their
// own.
#include <algorithm>
#include <limits>

#include "kernels/conv/path.h"
#include "kernels/conv/winograd.h"
#include "kernels/gemm/block.h"

namespace sardonyx::kernels {
namespace {

// A block of transformed tiles when all weights together are larger than a second-level cache. Each
// block reads them again, so that blocks as large as that cache itself are better than two.
constexpr int64_t large_block_bytes = 1700 << 10;
constexpr int64_t many_weight_bytes = 4 << 20;

// A tile is loud where its pixels have this many times the energy of a block's quiet ones (their
// root mean square is 256 times as large): outputs nearby that do not see its largest pixel would
// otherwise lose a part in 10,000. Such tiles are computed directly, which takes them about three
// times as long.
constexpr float loud_energy = 1 << 16;

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
  // The energies of the block's tiles, what the quiet ones have, and scratch.
  int64_t energies_floats() const { return 2 * block + 1 + winograd_energy_floats(longest); }
  int64_t worker_floats() const {
    return input_floats() + sums_floats() + round_up(lines_floats(), 16) +
           round_up(energies_floats(), 16);
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

WinogradInput input_of(const WinogradTiles& t, const float* image, const Segment& s) {
  const ConvGeometry& g = t.g;
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
  return job;
}

// A worker's memory.
struct WinogradSpace {
  WinogradSpace(const WinogradTiles& t, float* space)
      : input(space),
        sums(input + t.input_floats()),
        lines(sums + t.sums_floats()),
        limit(lines + round_up(t.lines_floats(), 16)),
        energies(limit + 1),
        energy_lanes(energies + 2 * t.block) {}

  float* input;
  float* sums;
  float* lines;
  float* limit;     // of what a tile may have without being loud
  float* energies;  // of all pixels of each tile, then of the quiet ones
  float* energy_lanes;
  bool is_loud(int64_t tile) const { return !(energies[tile] <= *limit); }
};

// What most tiles have decides, of those that have anything beside a pixel for each channel.
void find_limit(int64_t tiles, const WinogradSpace& space, float* quiet) {
  constexpr float any = std::numeric_limits<float>::max();
  float* end = std::remove_if(quiet, quiet + tiles, [](float e) { return !(e > 0 && e <= any); });
  float* median = quiet + (end - quiet) / 2;
  std::nth_element(quiet, median, end);
  *space.limit = median < end ? std::min(*median * loud_energy, any) : 0;
}

void transform_block(const WinogradTiles& t, const float* image, int64_t block,
                     const WinogradSpace& space) {
  int64_t tiles = 0;
  for_segments(t, block, [&](const Segment& s) {
    WinogradInput job = input_of(t, image, s);
    job.lines = space.lines;
    job.out = space.input + s.first * t.tile_stride;
    job.plane_stride = t.input_plane();
    job.tile_stride = t.tile_stride;
    job.all_energy = space.energies + s.first;
    job.quiet_energy = job.all_energy + t.block;
    job.energy_lanes = space.energy_lanes;
    winograd_input(job);
    tiles += s.count;
  });
  find_limit(tiles, space, space.energies + t.block);
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
                 int64_t panel, const float* image, const float* weights,
                 const WinogradSpace& space) {
  const ConvGeometry& g = t.g;
  const int64_t width = t.panels.stored(panel);
  float* const lines = space.lines;
  for_segments(t, block, [&](const Segment& s) {
    WinogradOutput job;
    job.outputs = t.side;
    job.sums = space.sums + s.first * width;
    job.plane_stride = t.sums_plane();
    job.tiles = s.count;
    job.channels = width;
    job.out = lines;
    job.row_pixels = t.row_pixels();
    winograd_output(job);
    for (int64_t tile = 0; tile < s.count; ++tile) {
      if (!space.is_loud(s.first + tile)) continue;
      winograd_direct(input_of(t, image, s), tile, weights, width, lines + tile * t.side * width,
                      t.row_pixels() * width);
    }
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
  const WinogradSpace space(t, spaces.space(worker));
  const float* image = g.nhwc ? call.image_nhwc(n, group) : call.image(n, group);
  if (spaces.changes(worker, where)) transform_block(t, image, block, space);
  const int64_t tiles = std::min(t.block, t.tiles - block * t.block);
  const Strips strips(tiles, t.kernels.tile_rows);
  const float* group_weights = call.weights + group * t.group_weights();
  const int64_t begin = task % t.panel_groups * t.per_task;
  const int64_t end = std::min(begin + t.per_task, t.panels.count());
  for (int64_t p = begin; p < end; ++p) {
    const float* weights = group_weights + p * t.panels.width * t.planes * t.g.group_in;
    multiply_planes(t, strips, space.input, weights, p, space.sums);
    store_block(t, call, n, group, block, p, image, weights, space);
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
