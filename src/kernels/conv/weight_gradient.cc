#include "kernels/conv/weight_gradient.h"

#include <algorithm>
#include <cstring>

#include "base/thread_pool.h"
#include "kernels/conv/geometry.h"
#include "kernels/conv/im2col.h"
#include "kernels/gemm/block.h"
#include "kernels/gemm/gemm.h"
#include "kernels/gemm/pack.h"
#include "kernels/gemm/tiles.h"
#include "kernels/move/transpose_block.h"

namespace sardonyx::kernels {
namespace {

constexpr int64_t aligned_floats = 16;

// Groups of so few channels leave vectors of a product empty.
constexpr int64_t few_channels = 4;
bool is_by_planes(const ConvGeometry& g) {
  return g.group > 1 && g.group_in <= few_channels && g.group_out <= few_channels;
}

// From the first to the last element that the windows of a line look at.
int64_t line_reach(const ConvGeometry& g) {
  return std::max<int64_t>(1, (g.out[2] - 1) * g.stride[2] + (g.kernel[2] - 1) * g.dilation[2] + 1);
}

// --- Products of padded images
// ---------------------------------------------------------------------

// The rows of a product are channels of x, its columns channels of dy, its terms output pixels: for
// each tap of the kernel one, whose terms lie at the same distances from each other in an image
// with its padding. Units are images; small ones come several at a time, large ones are cut into
// chunks, whose sums are added up one after the other. Tasks are blocks of channels of x times
// parts of the units; the sums of parts are added at the end.
struct Images {
  static constexpr int64_t min_channels = 3;
  static constexpr int64_t chunk_pixels = 128;
  static constexpr int64_t max_floats = int64_t{1} << 16;  // of a padded plane
  static constexpr int64_t near_floats = int64_t{1}
                                         << 17;  // of the planes of a block, and of its sums
  static constexpr int64_t wanted_tasks = 32;
  static constexpr int64_t max_sums = int64_t{2} << 20;  // floats, of all parts

  explicit Images(const ConvGeometry& geometry) : g(geometry), kernels(tile_kernels()) {
    bool inside = true;  // no window looks beyond the image
    for (size_t i = 0; i < 3; ++i) {
      reach[i] = (g.out[i] - 1) * g.stride[i] + (g.kernel[i] - 1) * g.dilation[i] + 1;
      inside = inside && g.pad[i] == 0 && reach[i] <= g.in[i];
    }
    const int64_t pixels = std::max<int64_t>(g.out_pixels, 1);
    images = std::clamp<int64_t>(chunk_pixels / pixels, 1, std::max<int64_t>(g.batch, 1));
    units = divide_up(g.batch, images);
    const int64_t channels = g.group * g.group_in;
    copies = !inside || rows_collide(g.in_pixels, kernels.tile_rows) ||
             images * channels * g.in_pixels > INT32_MAX;
    size = copies ? reach : g.in;
    image = copies ? size[0] * size[1] * size[2] : channels * g.in_pixels;
    plane = g.in_pixels;
    if (copies) {
      plane = round_up(images * image, aligned_floats);
      if (plane / aligned_floats % 2 == 0) plane += aligned_floats;
    }
    // Planes and sums of a block stay near.
    const int64_t rows = kernels.tile_rows, all = std::max<int64_t>(g.group_in, 1);
    const int64_t floats = std::max(copies ? plane : 1, g.taps * g.group_out);
    block = near_floats / std::max<int64_t>(floats, 1) / rows * rows;
    block = std::clamp<int64_t>(block, std::min(rows, all), all);
    blocks = divide_up(g.group_in, block);
    const int64_t tasks = std::max<int64_t>(1, g.group * blocks),
                  fit = max_sums / std::max<int64_t>(1, weights());
    parts = std::clamp<int64_t>(std::min(divide_up(wanted_tasks, tasks), fit), 1,
                                std::max<int64_t>(units, 1));
    chunks = divide_up(images * pixels, chunk_pixels);
  }

  // Whether planes are small enough, and channels fill tiles.
  static bool applies(const ConvGeometry& g) {
    if (g.group_in < min_channels) return false;
    int64_t floats = 1;
    for (size_t i = 0; i < 3; ++i) {
      const int64_t reach = (g.out[i] - 1) * g.stride[i] + (g.kernel[i] - 1) * g.dilation[i] + 1;
      if (reach > max_floats) return false;
      floats *= std::max<int64_t>(reach, 1);
    }
    return floats <= max_floats;
  }

  int64_t weights() const { return g.group * g.group_out * g.terms; }
  int64_t sums_floats() const { return round_up(parts * weights(), aligned_floats); }
  int64_t chunk_begin(int64_t pixels, int64_t chunk) const {
    return part_begin(pixels, chunks, chunk);
  }
  int64_t max_terms() const { return images * g.out_pixels; }

  // Floats of a worker: planes, a panel of dy, where pixels lie in a plane.
  int64_t planes_floats() const { return copies ? round_up(block * plane, aligned_floats) : 0; }
  int64_t panel_floats() const {
    return round_up((divide_up(max_terms(), chunks) + 1) * kernels.panel_columns, aligned_floats);
  }
  int64_t offsets_floats() const { return round_up(max_terms(), aligned_floats); }
  int64_t worker_floats() const { return planes_floats() + panel_floats() + offsets_floats(); }

  const ConvGeometry& g;
  const TileKernels& kernels;
  ConvParams::Dims reach{}, size{};  // size: of the planes that are read
  bool copies = false;               // planes with padding are made
  int64_t images = 1, units = 0;     // images in a unit
  int64_t image = 0, plane = 0;      // floats between images of a channel, and channels
  int64_t block = 1, blocks = 1;     // channels of x in a task
  int64_t parts = 1, chunks = 1;
};

// Where the pixels of a unit lie, from what the first tap reads of the first one.
void find_pixels(const Images& p, int32_t* offsets) {
  const ConvGeometry& g = p.g;
  for (int64_t i = 0; i < p.images; ++i) {
    for (int64_t d = 0; d < g.out[0]; ++d) {
      for (int64_t h = 0; h < g.out[1]; ++h) {
        const int64_t line =
            i * p.image + (d * g.stride[0] * p.size[1] + h * g.stride[1]) * p.size[2];
        for (int64_t w = 0; w < g.out[2]; ++w)
          *offsets++ = static_cast<int32_t>(line + w * g.stride[2]);
      }
    }
  }
}

// Copies what windows see of channels into planes whose padding is 0 already.
void copy_planes(const Images& p, const float* x, int64_t image, int64_t images, int64_t channel,
                 int64_t channels, float* planes) {
  const ConvGeometry& g = p.g;
  int64_t first[3], last[3];
  for (size_t i = 0; i < 3; ++i) {
    first[i] = std::max<int64_t>(0, -g.pad[i]);
    last[i] = std::min(g.in[i], p.size[i] - g.pad[i]);
  }
  if (first[2] >= last[2]) return;
  for (int64_t c = 0; c < channels; ++c) {
    for (int64_t i = 0; i < images; ++i) {
      const float* from = x + ((image + i) * g.group * g.group_in + channel + c) * g.in_pixels;
      float* to = planes + c * p.plane + i * p.image;
      for (int64_t d = first[0]; d < last[0]; ++d) {
        for (int64_t h = first[1]; h < last[1]; ++h) {
          std::copy_n(
              from + (d * g.in[1] + h) * g.in[2] + first[2], last[2] - first[2],
              to + ((d + g.pad[0]) * p.size[1] + h + g.pad[1]) * p.size[2] + first[2] + g.pad[2]);
        }
      }
    }
  }
}

// Terms [begin, begin + count) of a unit, of the channels of a panel from `m` on.
void pack_flows(const Images& p, const float* dy, int64_t image, int64_t m, int64_t columns,
                int64_t begin, int64_t count, float* to, int64_t width) {
  const ConvGeometry& g = p.g;
  while (count > 0) {
    const int64_t pixel = begin % g.out_pixels, some = std::min(count, g.out_pixels - pixel);
    const float* from =
        dy + ((image + begin / g.out_pixels) * g.group * g.group_out + m) * g.out_pixels + pixel;
    pack_panel(p.kernels, from, 1, g.out_pixels, some, columns, to, width);
    begin += some, count -= some, to += some * width;
  }
}

// Adds the products of some terms with a panel of channels from `m` on to `sums`, [channel, tap,
// m].
void add_products(const Images& p, const Strips& strips, const float* planes,
                  const int32_t* offsets, int64_t terms, const float* panel, const Panels& panels,
                  int64_t index, float* sums) {
  const ConvGeometry& g = p.g;
  alignas(64) float near_sums[max_lanes * max_tile_columns];
  const int64_t row = g.taps * g.group_out, m = index * panels.width;
  Epilogue add;
  add.residual_stride = row;
  TileJob job;
  job.k = terms;
  job.a_stride = p.plane;
  job.b = panel;
  job.b_stride = panels.stored(index);
  job.offsets = offsets;
  job.form = TileForm::by_offsets;
  job.half_empty = p.kernels.halves && panels.ends_half(index);
  job.sums = near_sums;
  for (int64_t s = 0; s < strips.count(); ++s) {
    const TileKernel kernel = p.kernels.tiles[strips.height(s)][panels.vectors(index)];
    const float* const first = planes + strips.begin(s) * p.plane;
    float* to = sums + strips.begin(s) * row + m;
    for (int64_t d = 0; d < g.kernel[0]; ++d) {
      for (int64_t h = 0; h < g.kernel[1]; ++h) {
        const float* const line =
            first + (d * g.dilation[0] * p.size[1] + h * g.dilation[1]) * p.size[2];
        for (int64_t w = 0; w < g.kernel[2]; ++w, to += g.group_out) {
          job.a = line + w * g.dilation[2];
          job.a_high = job.a + low_tile_rows * p.plane;
          add.residual = to;
          TileStore store = store_at(add, to, row, 0, 0, strips.height(s), panels.used(index));
          job.store = p.kernels.finishes(add) ? &store : nullptr;
          kernel(job);
          if (job.store != nullptr) continue;
          store.sums = near_sums;
          store.sums_stride = panels.stored(index);
          p.kernels.store(store);
        }
      }
    }
  }
}

void run_task(const Images& p, const float* x, const float* dy, int64_t task, float* sums,
              float* space) {
  const ConvGeometry& g = p.g;
  const int64_t part = task % p.parts, block = task / p.parts % p.blocks,
                group = task / p.parts / p.blocks;
  const int64_t first = block * p.block, channels = std::min(p.block, g.group_in - first);
  float* const to = sums + part * p.weights() + (group * g.group_in + first) * g.taps * g.group_out;
  std::fill_n(to, channels * g.taps * g.group_out, 0.0f);
  float* const planes = space;
  float* const panel = planes + p.planes_floats();
  auto* const offsets = reinterpret_cast<int32_t*>(panel + p.panel_floats());
  find_pixels(p, offsets);
  if (p.copies) std::fill_n(planes, p.planes_floats(), 0.0f);
  const Strips strips(channels, p.kernels.tile_rows, low_tile_rows);
  const Panels panels{g.group_out, p.kernels.panel_columns, p.kernels.lanes};
  const int64_t end = part_begin(p.units, p.parts, part + 1);
  for (int64_t unit = part_begin(p.units, p.parts, part); unit < end; ++unit) {
    const int64_t image = unit * p.images, images = std::min(p.images, g.batch - image);
    const int64_t channel = group * g.group_in + first;
    const float* from = x + (image * g.group * g.group_in + channel) * g.in_pixels;
    if (p.copies) {
      copy_planes(p, x, image, images, channel, channels, planes);
      from = planes;
    }
    const int64_t pixels = images * g.out_pixels;
    for (int64_t chunk = 0; chunk < p.chunks; ++chunk) {
      const int64_t begin = p.chunk_begin(pixels, chunk),
                    terms = p.chunk_begin(pixels, chunk + 1) - begin;
      if (terms == 0) continue;
      for (int64_t i = 0; i < panels.count(); ++i) {
        pack_flows(p, dy, image, group * g.group_out + i * panels.width, panels.used(i), begin,
                   terms, panel, panels.stored(i));
        add_products(p, strips, from, offsets + begin, terms, panel, panels, i, to);
      }
    }
  }
}

// --- Products of gathered windows ----------------------------------------------------------------

// Output pixels of one image, or of several whole ones: the terms of one product.
struct Unit {
  int64_t image, images;
  int64_t begin, count;  // pixels of each image
};

// dw of a group, transposed, is a product: its rows are the windows' elements [channel, tap], whose
// pixels gather_windows puts side by side, its columns the channels of dy. Units of about
// `unit_pixels` terms are added up one after the other. Tasks are blocks of channels of x times
// parts of the units; the sums of parts are added at the end.
struct Windows {
  static constexpr int64_t unit_pixels = 128;
  static constexpr int64_t block_rows = 288;
  static constexpr int64_t wanted_tasks = 32;
  static constexpr int64_t min_work = int64_t{1} << 17;    // multiply-adds of a task
  static constexpr int64_t max_floats = int64_t{2} << 20;  // of the sums of all parts

  explicit Windows(const ConvGeometry& geometry) : g(geometry) {
    const int64_t pixels = std::max<int64_t>(g.out_pixels, 1), taps = std::max<int64_t>(g.taps, 1);
    if (pixels >= unit_pixels) {
      units_per_image = divide_up(pixels, unit_pixels);
      unit = round_up(divide_up(pixels, units_per_image), aligned_floats);
      units_per_image = divide_up(pixels, unit);
    } else {
      unit = pixels;
      images_per_unit = std::min(std::max<int64_t>(g.batch, 1), unit_pixels / pixels);
    }
    units = images_per_unit > 1 ? divide_up(g.batch, images_per_unit) : g.batch * units_per_image;
    // Rows an odd number of lines apart do not meet in the cache.
    stride = round_up(images_per_unit * unit, aligned_floats) + aligned_floats;
    if (stride / aligned_floats % 2 == 0) stride += aligned_floats;
    const int64_t most =
        std::clamp<int64_t>(block_rows / taps, 1, std::max<int64_t>(g.group_in, 1));
    blocks = divide_up(std::max<int64_t>(g.group_in, 1), most);
    block = divide_up(std::max<int64_t>(g.group_in, 1), blocks);
    blocks = divide_up(g.group_in, block);
    const int64_t each = std::max<int64_t>(g.group * blocks, 1);
    const int64_t unit_work =
        std::max<int64_t>(1, block * taps * g.group_out * images_per_unit * unit);
    parts = std::min({divide_up(wanted_tasks, each), units / divide_up(min_work, unit_work),
                      max_floats / std::max<int64_t>(1, weights())});
    parts = std::max<int64_t>(parts, 1);
  }

  int64_t rows() const { return block * g.taps; }
  int64_t weights() const { return g.group * g.group_out * g.terms; }
  bool several_images() const { return images_per_unit > 1; }

  Unit at(int64_t index) const {
    if (several_images()) {
      const int64_t image = index * images_per_unit;
      return {image, std::min(images_per_unit, g.batch - image), 0, g.out_pixels};
    }
    const int64_t begin = index % units_per_image * unit;
    return {index / units_per_image, 1, begin, std::min(unit, g.out_pixels - begin)};
  }

  // The operands of a unit's product with so many terms.
  StridedMatrix windows(const float* data) const { return {data, stride, 1}; }
  StridedMatrix flows(const float* data) const {
    return {data, 1, several_images() ? stride : g.out_pixels};
  }

  // Floats of a worker: windows, dy of several images, the product's own.
  int64_t windows_floats() const { return rows() * stride + aligned_floats; }
  int64_t flows_floats() const { return several_images() ? g.group_out * stride : 0; }
  int64_t product_floats() const {
    int64_t most = 0;
    const auto count = [&](int64_t channels, int64_t terms) {
      const int64_t bytes = gemm_scratch_bytes(channels * g.taps, g.group_out, terms,
                                               windows(nullptr), flows(nullptr), 1);
      most = std::max(most, divide_up(bytes, int64_t{sizeof(float)}));
    };
    const int64_t last_block = g.group_in - (blocks - 1) * block;
    const int64_t last_image = units > 0 ? at(units - 1).count * at(units - 1).images : 0;
    for (const int64_t channels : {block, last_block}) {
      for (const int64_t terms : {images_per_unit * unit, last_image}) count(channels, terms);
    }
    return most;
  }
  int64_t worker_floats() const {
    return round_up(windows_floats(), aligned_floats) + round_up(flows_floats(), aligned_floats) +
           round_up(product_floats(), aligned_floats);
  }
  int64_t sums_floats() const { return round_up(parts * weights(), aligned_floats); }

  const ConvGeometry& g;
  int64_t unit = 1, units_per_image = 1, images_per_unit = 1, units = 0;
  int64_t stride = 0;
  int64_t block = 1, blocks = 1;  // channels of x in a task
  int64_t parts = 1;
};

// Adds the windows of the channels [channel, channel + channels) of all groups, of one unit.
void gather_unit(const Windows& p, const Unit& unit, const ConvGeometry& some, const float* x,
                 int64_t channel, float* windows) {
  const ConvGeometry& g = p.g;
  const int64_t lanes = tile_kernels().lanes;
  constexpr int64_t most = 64;
  PixelSpan spans[most];
  for (int64_t i = 0; i < unit.images; ++i) {
    const float* image = x + ((unit.image + i) * g.group * g.group_in + channel) * g.in_pixels;
    float* to = windows + i * unit.count;
    for (int64_t done = 0; done < unit.count;) {
      int64_t count = 0;
      for (; count < most && done < unit.count; ++count, done += lanes)
        spans[count] = {unit.begin + done, std::min(lanes, unit.count - done), to + done};
      gather_windows(some, image, spans, count, p.stride);
    }
  }
}

const float* gather_flows(const Windows& p, const Unit& unit, const float* dy, int64_t group,
                          float* flows) {
  const ConvGeometry& g = p.g;
  const int64_t first = group * g.group_out;
  const auto plane = [&](int64_t image, int64_t m) {
    return dy + (image * g.group * g.group_out + first + m) * g.out_pixels;
  };
  if (!p.several_images()) return plane(unit.image, 0) + unit.begin;
  for (int64_t m = 0; m < g.group_out; ++m) {
    for (int64_t i = 0; i < unit.images; ++i)
      std::copy_n(plane(unit.image + i, m), unit.count, flows + m * p.stride + i * unit.count);
  }
  return flows;
}

// The sums of one block of channels over one part of the units, as [channel, tap, m].
void run_task(const Windows& p, const float* x, const float* dy, int64_t task, float* sums,
              float* space) {
  const ConvGeometry& g = p.g;
  const int64_t part = task % p.parts, block = task / p.parts % p.blocks,
                group = task / p.parts / p.blocks;
  const int64_t first = block * p.block, channels = std::min(p.block, g.group_in - first);
  ConvGeometry some = g;
  some.group_in = channels;
  float* const to = sums + part * p.weights() + (group * g.group_in + first) * g.taps * g.group_out;
  float* const windows = space;
  float* const flows = windows + round_up(p.windows_floats(), aligned_floats);
  float* const scratch = flows + round_up(p.flows_floats(), aligned_floats);
  Epilogue add;
  add.residual_stride = g.group_out;
  const int64_t end = part_begin(p.units, p.parts, part + 1);
  for (int64_t i = part_begin(p.units, p.parts, part); i < end; ++i) {
    const Unit unit = p.at(i);
    gather_unit(p, unit, some, x, group * g.group_in + first, windows);
    const float* right = gather_flows(p, unit, dy, group, flows);
    gemm(channels * g.taps, g.group_out, unit.images * unit.count, p.windows(windows),
         p.flows(right), to, g.group_out, add, scratch, ThreadPool::single());
    add.residual = to;
  }
}

// --- Parts of sums -------------------------------------------------------------------------------

// Adds the parts and transposes: [part, group, terms, m] to [group, m, terms].
void add_parts(const ConvGeometry& g, int64_t parts, float* sums, float* dw, ThreadPool& pool) {
  constexpr int64_t side = 16;
  const int64_t per_group = divide_up(g.terms, side), part_floats = g.group * g.group_out * g.terms;
  const int64_t grain =
      std::max<int64_t>(1, 16384 / std::max<int64_t>(1, side * g.group_out * parts));
  pool.parallel_for(g.group * per_group, grain, [&](int64_t begin, int64_t end, int) {
    for (int64_t i = begin; i < end; ++i) {
      const int64_t group = i / per_group, row = i % per_group * side,
                    rows = std::min(side, g.terms - row);
      float* const at = sums + (group * g.terms + row) * g.group_out;
      const int64_t count = rows * g.group_out;
      // In pairs of parts, pairs of pairs and so on.
      for (int64_t step = 1; step < parts; step *= 2) {
        for (int64_t part = 0; part + step < parts; part += 2 * step) {
          float* const to = at + part * part_floats;
          const float* const from = to + step * part_floats;
          for (int64_t k = 0; k < count; ++k) to[k] += from[k];
        }
      }
      for (int64_t m = 0; m < g.group_out; m += side) {
        transpose_block(sizeof(float), at + m, g.group_out,
                        dw + (group * g.group_out + m) * g.terms + row, g.terms,
                        std::min(side, g.group_out - m), rows);
      }
    }
  });
}

template <class Way>
int64_t scratch_floats(const Way& p, int threads) {
  return p.sums_floats() + threads * p.worker_floats();
}

template <class Way>
void run_products(const Way& p, const float* x, const float* dy, float* dw, float* scratch,
                  ThreadPool& pool) {
  float* const spaces = scratch + p.sums_floats();
  const int64_t floats = p.worker_floats();
  pool.parallel_for(p.g.group * p.blocks * p.parts, 1, [&](int64_t begin, int64_t end, int worker) {
    for (int64_t task = begin; task < end; ++task)
      run_task(p, x, dy, task, scratch, spaces + worker * floats);
  });
  add_parts(p.g, p.parts, scratch, dw, pool);
}

// --- Plane by plane ------------------------------------------------------------------------------

// Lines of x with their padding, cut into the phases of the stride: what a tap reads for
// neighbouring outputs lies side by side.
struct Planes {
  explicit Planes(const ConvGeometry& geometry) : g(geometry) {
    phase = divide_up(line_reach(g), g.stride[2]);
    line = phase * g.stride[2];
    constexpr int64_t wanted_tasks = 32;
    parts = std::clamp<int64_t>(divide_up(wanted_tasks, std::max<int64_t>(g.group, 1)), 1,
                                std::max<int64_t>(g.batch, 1));
  }
  int64_t sums() const { return g.group_in * g.group_out * g.taps; }  // of a group
  int64_t plane_floats() const { return round_up(g.in[0] * g.in[1] * line, aligned_floats); }
  int64_t sums_bytes() const {
    return round_up(g.group * parts * sums() * int64_t{sizeof(double)}, 64);
  }

  const ConvGeometry& g;
  int64_t phase = 0, line = 0, parts = 1;
};

void cut_plane(const Planes& p, const float* plane, float* to) {
  const ConvGeometry& g = p.g;
  const int64_t stride = g.stride[2], pad = g.pad[2];
  std::fill_n(to, g.in[0] * g.in[1] * p.line, 0.0f);
  // Position i of a padded line is x[i - pad].
  const int64_t first = std::max<int64_t>(0, pad), last = std::min(p.line, g.in[2] + pad);
  for (int64_t l = 0; l < g.in[0] * g.in[1]; ++l, plane += g.in[2], to += p.line) {
    if (stride == 1) {
      if (first < last) std::copy_n(plane + first - pad, last - first, to + first);
      continue;
    }
    for (int64_t i = first; i < last; ++i) to[i % stride * p.phase + i / stride] = plane[i - pad];
  }
}

void run_planes(const ConvGeometry& g, const float* x, const float* dy, float* dw, void* scratch,
                ThreadPool& pool) {
  const Planes p(g);
  auto* const sums = static_cast<double*>(scratch);
  auto* const planes = reinterpret_cast<float*>(static_cast<char*>(scratch) + p.sums_bytes());
  const int64_t work = std::max<int64_t>(1, p.sums() * g.out_pixels * divide_up(g.batch, p.parts));
  pool.parallel_for(
      g.group * p.parts, divide_up(task_work, work), [&](int64_t begin, int64_t end, int worker) {
        float* const plane = planes + worker * p.plane_floats();
        for (int64_t task = begin; task < end; ++task) {
          const int64_t group = task / p.parts, part = task % p.parts;
          double* const to = sums + task * p.sums();
          std::fill_n(to, p.sums(), 0.0);
          const int64_t last = part_begin(g.batch, p.parts, part + 1);
          for (int64_t n = part_begin(g.batch, p.parts, part); n < last; ++n) {
            for (int64_t c = 0; c < g.group_in; ++c) {
              cut_plane(p, x + ((n * g.group + group) * g.group_in + c) * g.in_pixels, plane);
              for (int64_t m = 0; m < g.group_out; ++m) {
                add_plane_gradient({g, plane, p.line, p.phase,
                                    dy + ((n * g.group + group) * g.group_out + m) * g.out_pixels,
                                    to + (m * g.group_in + c) * g.taps});
              }
            }
          }
        }
      });
  for (int64_t group = 0; group < g.group; ++group) {
    for (int64_t i = 0; i < p.sums(); ++i) {
      double sum = 0;
      for (int64_t part = 0; part < p.parts; ++part)
        sum += sums[(group * p.parts + part) * p.sums() + i];
      dw[group * p.sums() + i] = static_cast<float>(sum);
    }
  }
}

bool is_empty(const ConvGeometry& g) {
  return g.group <= 0 || g.group_in <= 0 || g.group_out <= 0 || g.taps <= 0;
}
// Lines that are nearly all padding are not written out.
bool takes_planes(const ConvGeometry& g) {
  return is_by_planes(g) && line_reach(g) <= 2 * g.in[2] + 1024;
}
bool has_no_terms(const ConvGeometry& g) {
  return g.batch <= 0 || g.out_pixels <= 0 || g.in_pixels <= 0;
}

}  // namespace

const char* conv_weight_gradient_path(const ConvParams& shape) {
  return is_by_planes(ConvGeometry(shape)) ? "planes" : "products";
}

int64_t conv_weight_gradient_scratch_bytes(const ConvParams& shape, int threads) {
  const ConvGeometry g(shape);
  if (is_empty(g) || has_no_terms(g)) return 0;
  if (takes_planes(g)) {
    const Planes p(g);
    return p.sums_bytes() + threads * p.plane_floats() * int64_t{sizeof(float)};
  }
  const int64_t floats =
      Images::applies(g) ? scratch_floats(Images(g), threads) : scratch_floats(Windows(g), threads);
  return floats * int64_t{sizeof(float)};
}

void conv_weight_gradient(const ConvParams& shape, const float* x, const float* dy, float* dw,
                          void* scratch, ThreadPool& pool) {
  const ConvGeometry g(shape);
  if (is_empty(g)) return;
  if (has_no_terms(g)) {
    std::fill_n(dw, g.group * g.group_out * g.terms, 0.0f);
  } else if (takes_planes(g)) {
    run_planes(g, x, dy, dw, scratch, pool);
  } else {
    auto* const memory = static_cast<float*>(scratch);
    if (Images::applies(g))
      run_products(Images(g), x, dy, dw, memory, pool);
    else
      run_products(Windows(g), x, dy, dw, memory, pool);
  }
}

void conv_weight_gradient(const ConvParams& shape, const double* x, const double* dy, double* dw,
                          ThreadPool& pool) {
  const ConvGeometry g(shape);
  if (is_empty(g)) return;
  const auto sum_of = [&](int64_t group, int64_t m, int64_t c, int64_t d, int64_t h, int64_t w) {
    double sum = 0;
    for (int64_t n = 0; n < g.batch; ++n) {
      const double* image = x + ((n * g.group + group) * g.group_in + c) * g.in_pixels;
      const double* flow = dy + ((n * g.group + group) * g.group_out + m) * g.out_pixels;
      for (int64_t od = 0; od < g.out[0]; ++od) {
        const int64_t in_d = od * g.stride[0] + d * g.dilation[0] - g.pad[0];
        for (int64_t oh = 0; oh < g.out[1]; ++oh, flow += g.out[2]) {
          const int64_t in_h = oh * g.stride[1] + h * g.dilation[1] - g.pad[1];
          if (in_d < 0 || in_d >= g.in[0] || in_h < 0 || in_h >= g.in[1]) continue;
          const double* line = image + (in_d * g.in[1] + in_h) * g.in[2];
          for (int64_t ow = 0; ow < g.out[2]; ++ow) {
            const int64_t in_w = ow * g.stride[2] + w * g.dilation[2] - g.pad[2];
            if (in_w >= 0 && in_w < g.in[2]) sum += flow[ow] * line[in_w];
          }
        }
      }
    }
    return sum;
  };
  pool.parallel_for(g.group * g.group_out * g.group_in, 1, [&](int64_t begin, int64_t end, int) {
    for (int64_t i = begin; i < end; ++i) {
      const int64_t c = i % g.group_in, m = i / g.group_in % g.group_out,
                    group = i / g.group_in / g.group_out;
      double* to = dw + i * g.taps;
      for (int64_t d = 0; d < g.kernel[0]; ++d) {
        for (int64_t h = 0; h < g.kernel[1]; ++h) {
          for (int64_t w = 0; w < g.kernel[2]; ++w) *to++ = sum_of(group, m, c, d, h, w);
        }
      }
    }
  });
}

}  // namespace sardonyx::kernels
