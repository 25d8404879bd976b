// Convolution with channels last as matrix multiplication that copies no windows: the rows of a
// tile are neighbouring pixels of a line, a stride apart, and each term is at the same distance
// from all of them. Where windows reach beyond the image, its lines are copied first, with zeros
// around them; where the image comes with its channels first, their pixels are assembled on this
// way.
#include <algorithm>
#include <cmath>

#include "kernels/conv/live_taps.h"
#include "kernels/conv/panel_tasks.h"
#include "kernels/conv/path.h"
#include "kernels/gemm/bf16x3.h"
#include "kernels/gemm/bf16x3_block.h"
#include "kernels/gemm/block.h"
#include "kernels/move/transpose_block.h"

namespace sardonyx::kernels {
namespace {

// The pixels and lines under `count` neighbouring windows along an axis.
int64_t span_of(const ConvGeometry& g, size_t axis, int64_t count) {
  return (count - 1) * g.stride[axis] + (g.kernel[axis] - 1) * g.dilation[axis] + 1;
}

// Floats from one output position's place to the next; what only one of them needs may be absurd.
int64_t step_of(const ConvGeometry& g, size_t axis, int64_t floats) {
  return g.out[axis] > 1 ? g.stride[axis] * floats : 0;
}

bool reaches_beyond(const ConvGeometry& g) {
  for (size_t axis = 0; axis < ConvParams::max_rank; ++axis) {
    if (g.pad[axis] > 0 || span_of(g, axis, g.out[axis]) - g.pad[axis] > g.in[axis]) return true;
  }
  return false;
}

// How the output is cut: nchw_input into blocks of lines, or of a part of a line, those into strips
// of pixels that one tile takes.
struct LineRows {
  LineRows(const TileKernels& kernels, const ConvGeometry& g)
      : kernels(kernels),
        g(g),
        channels(g.group * g.group_in),
        pairs(kernels.tile_rows == 2 * low_tile_rows && g.out[2] == low_tile_rows && g.out[1] > 1),
        units(pairs ? divide_up(g.out[1], 2) : g.out[1]),
        line(g.out[2], kernels.tile_rows),
        panels{g.group_out, kernels.panel_columns, kernels.lanes},
        chunks{g.terms},
        copies(reaches_beyond(g) || g.nchw_input ||
               (g.shuffle == 1 && rows_collide(step_of(g, 2, channels), kernels.tile_rows))),
        pixel(!copies            ? channels
              : g.group_in >= 16 ? (divide_up(g.group_in, 16) | 1) * 16
                                 : g.group_in) {
    const int64_t nchw_input = g.batch * g.out[0], all = nchw_input * units * line.count();
    // What a window holds without what it shares with its neighbours.
    const int64_t fresh =
        g.group_in * std::min(g.stride[1], g.kernel[1]) * std::min(g.stride[2], g.kernel[2]);
    int64_t wanted = divide_up(
        all, strip_blocks(all, kernels.tile_rows, fresh, divide_up(g.terms * g.group_out, fresh)));
    if (weights_stay_near(g))
      wanted = std::clamp<int64_t>(all / divide_up(enough_tasks, g.group), 1, wanted);
    parts = divide_up(line.count(), wanted);
    strips_at_once = divide_up(line.count(), parts);
    units_at_once = parts > 1 ? 1 : std::min(units, wanted / line.count());
    blocks = nchw_input * divide_up(units, units_at_once) * parts;
    const int64_t pixels = std::min(g.batch * g.out_pixels, wanted * kernels.tile_rows);
    tasks = {panels, g.terms, g.group * blocks,
             panels_per_task(panels.count(), blocks * g.group, pixels, g.terms, panels.width)};
  }
  static constexpr int64_t enough_tasks = 16;

  const TileKernels& kernels;
  const ConvGeometry& g;
  int64_t channels;
  bool pairs;     // a strip is two whole lines
  int64_t units;  // lines or pairs of them
  Strips line;
  Panels panels;
  Chunks chunks;
  bool copies;
  int64_t pixel;      // floats from one pixel to the next, as tiles read them
  int64_t parts = 1;  // blocks that a line is cut into
  int64_t strips_at_once = 1, units_at_once = 1, blocks = 1;
  PanelTasks tasks{panels, g.terms, 1, 1};

  int64_t max_pixels() const {
    return std::min(g.batch * g.out_pixels, units_at_once * strips_at_once * kernels.tile_rows);
  }
  // Of a block's lines and columns.
  int64_t max_lines() const { return std::min(units_at_once * (pairs ? 2 : 1), g.out[1]); }
  int64_t max_columns() const { return std::min(strips_at_once * kernels.tile_rows, g.out[2]); }
  int64_t copied_lines() const { return span_of(g, 1, max_lines()); }
  int64_t copied_columns() const { return span_of(g, 2, max_columns()); }
  int64_t copied_floats() const {
    return copies ? round_up(g.kernel[0] * copied_lines() * copied_columns() * pixel, 16) : 0;
  }
  int64_t offset_floats() const { return round_up(g.terms, 16); }
  int64_t partial() const {
    return partial_floats(chunks, strips_at_once * units_at_once, kernels);
  }
  int64_t worker_floats() const {
    return offset_floats() + copied_floats() + round_up(partial(), 16);
  }
};

// One block: where it is in the output.
struct LineBlock {
  LineBlock(const LineRows& t, int64_t index)
      : first_strip(index % t.parts * t.strips_at_once),
        end_strip(std::min(first_strip + t.strips_at_once, t.line.count())),
        column(t.line.begin(first_strip)),
        columns(t.line.begin(end_strip) - column) {
    const int64_t per_plane = divide_up(t.units, t.units_at_once);
    first_unit = index / t.parts % per_plane * t.units_at_once;
    end_unit = std::min(first_unit + t.units_at_once, t.units);
    const int64_t plane = index / t.parts / per_plane;
    image = plane / t.g.out[0], depth = plane % t.g.out[0];
    row = first_unit * (t.pairs ? 2 : 1);
    rows = std::min(end_unit * (t.pairs ? 2 : 1), t.g.out[1]) - row;
  }
  int64_t first_strip, end_strip;  // of each line
  int64_t column, columns;
  int64_t first_unit, end_unit;
  int64_t image, depth;
  int64_t row, rows;
};

// The lines under the block's windows with zeros where they leave the image, one group's channels.
void copy_lines(const LineRows& t, const Call& call, const LineBlock& b, int64_t group, float* to) {
  const ConvGeometry& g = t.g;
  const float* image = call.image_nhwc(b.image, group);
  const int64_t width = t.copied_columns(), height = span_of(g, 1, b.rows);
  const int64_t left = b.column * g.stride[2] - g.pad[2];
  const int64_t top = b.row * g.stride[1] - g.pad[1];
  const int64_t end = left + span_of(g, 2, b.columns);
  const int64_t first = std::clamp<int64_t>(left, 0, g.in[2]),
                last = std::clamp<int64_t>(end, first, g.in[2]);
  const bool dense = t.pixel == t.channels;
  for (int64_t d = 0; d < g.kernel[0]; ++d) {
    const int64_t depth = b.depth * g.stride[0] - g.pad[0] + d * g.dilation[0];
    float* line_to = to + d * t.copied_lines() * width * t.pixel;
    for (int64_t h = 0; h < height; ++h, line_to += width * t.pixel) {
      const int64_t row = top + h;
      if (depth < 0 || depth >= g.in[0] || row < 0 || row >= g.in[1] || first >= last) {
        std::fill_n(line_to, (end - left) * t.pixel, 0.0f);
        continue;
      }
      std::fill_n(line_to, (first - left) * t.pixel, 0.0f);
      const int64_t pixel = (depth * g.in[1] + row) * g.in[2] + first;
      const float* from = image + pixel * (g.nchw_input ? 1 : t.channels);
      float* at = line_to + (first - left) * t.pixel;
      if (g.nchw_input) {
        interleave_columns(reinterpret_cast<const uint32_t*>(from), g.in_pixels,
                           reinterpret_cast<uint32_t*>(at), last - first, t.channels);
        at += (last - first) * t.channels;
      } else if (dense) {
        at = std::copy_n(from, (last - first) * t.channels, at);
      } else {
        for (int64_t x = first; x < last; ++x, from += t.channels, at += t.pixel)
          std::copy_n(from, g.group_in, at);
      }
      std::fill_n(at, (end - last) * t.pixel, 0.0f);
    }
  }
}

// Each term's distance from a pixel's place.
void fill_offsets(const LineRows& t, int64_t group, int32_t* offsets) {
  const ConvGeometry& g = t.g;
  const int64_t lines = t.copies ? t.copied_lines() : g.in[1],
                columns = t.copies ? t.copied_columns() : g.in[2];
  const int64_t depth_step = t.copies ? lines : g.dilation[0] * lines;
  const int64_t interleaved = t.channels / g.shuffle;
  for (int64_t d = 0; d < g.kernel[0]; ++d) {
    for (int64_t h = 0; h < g.kernel[1]; ++h) {
      for (int64_t w = 0; w < g.kernel[2]; ++w) {
        const int64_t at =
            ((d * depth_step + h * g.dilation[1]) * columns + w * g.dilation[2]) * t.pixel;
        if (g.shuffle == 1) {
          for (int64_t c = 0; c < g.group_in; ++c) *offsets++ = static_cast<int32_t>(at + c);
          continue;
        }
        const int64_t first = group * g.group_in;
        int64_t group_at = first % g.shuffle, index = first / g.shuffle;
        for (int64_t c = 0; c < g.group_in; ++c) {
          *offsets++ = static_cast<int32_t>(at + group_at * interleaved + index);
          if (++group_at == g.shuffle) group_at = 0, ++index;
        }
      }
    }
  }
}

// Where tiles find a block's pixels.
struct BlockImage {
  const float* origin;            // under the block's first pixel
  int64_t row_step, column_step;  // floats from one output pixel to the next
};

BlockImage image_of(const LineRows& t, const Call& call, const LineBlock& b, int64_t group,
                    const float* copied) {
  const ConvGeometry& g = t.g;
  const int64_t column_step = step_of(g, 2, t.pixel);
  if (t.copies) return {copied, step_of(g, 1, t.copied_columns() * t.pixel), column_step};
  const int64_t depth = b.depth * g.stride[0] - g.pad[0], row = b.row * g.stride[1] - g.pad[1],
                column = b.column * g.stride[2] - g.pad[2];
  return {call.image_nhwc(b.image, g.shuffle == 1 ? group : 0) +
              ((depth * g.in[1] + row) * g.in[2] + column) * t.pixel,
          step_of(g, 1, g.in[2] * t.pixel), column_step};
}

// Terms [begin, end) that output lines [first, last) of a block need.
struct LiveTerms {
  LiveTerms(const ConvGeometry& g, const LineBlock& b, int64_t first, int64_t last) {
    // Only the taps of the outermost axis stand together.
    const bool flat = g.kernel[0] == 1;
    const TapRange taps = flat ? TapRange(g, 1, first, last) : TapRange(g, 0, b.depth, b.depth + 1);
    const int64_t terms = g.terms / g.kernel[flat ? 1 : 0];
    begin = taps.first * terms, end = taps.end * terms;
  }
  int64_t begin, end;
};

// The strips of a block one after the other: visit(index, first row's place, that of row 7, rows,
// first pixel counted through the batch, what they need).
template <class Visit>
void for_strips(const LineRows& t, const LineBlock& b, const BlockImage& image, Visit&& visit) {
  const ConvGeometry& g = t.g;
  const int64_t plane = (b.image * g.out[0] + b.depth) * g.out[1];
  const int64_t rows_at_once = t.pairs ? 2 : 1;
  int64_t index = 0;
  for (int64_t row = 0; row < b.rows; row += rows_at_once) {
    const float* line = image.origin + row * image.row_step;
    const int64_t pixel = (plane + b.row + row) * g.out[2];
    const int64_t rows = std::min(b.rows - row, rows_at_once);
    const LiveTerms live(g, b, b.row + row, b.row + row + rows);
    if (t.pairs) {
      visit(index++, line, line + image.row_step, rows * low_tile_rows, pixel, live);
      continue;
    }
    int64_t begin = b.column;
    for (int64_t s = b.first_strip; s < b.end_strip; ++s) {
      const int64_t end = t.line.begin(s + 1);
      const float* low = line + (begin - b.column) * image.column_step;
      visit(index++, low, low + low_tile_rows * image.column_step, end - begin, pixel + begin,
            live);
      begin = end;
    }
  }
}

void multiply_strips(const LineRows& t, const Call& call, const LineBlock& b,
                     const BlockImage& image, int64_t group, int64_t panel, const int32_t* offsets,
                     float* partial) {
  alignas(64) float near_sums[max_lanes * max_tile_columns];
  const int64_t width = t.panels.stored(panel), first_column = panel * t.panels.width,
                columns = t.panels.used(panel);
  const int vectors = t.panels.vectors(panel);
  const int64_t strips = (b.end_unit - b.first_unit) * (b.end_strip - b.first_strip);
  const bool finishes = t.kernels.finishes(call.epilogue), chunked = t.chunks.count() > 1;
  const float* weights =
      call.weights + (group * t.panels.stored_columns() + first_column) * t.g.terms;
  TileJob job;
  job.a_stride = image.column_step;
  job.b_stride = width;
  job.form = TileForm::by_offsets;
  job.half_empty = t.kernels.halves && t.panels.ends_half(panel);
  for (int64_t i = 0; i < t.chunks.count(); ++i) {
    const Terms terms = chunk_terms(t.chunks, i);
    job.resume = !terms.first;
    const Ahead ahead =
        Ahead::piece(weights + (terms.begin + terms.size) * width, terms.size * width);
    const PrefetchPlan prefetch(ahead, strips, terms.size);
    for_strips(t, b, image,
               [&](int64_t strip, const float* low, const float* high, int64_t rows, int64_t pixel,
                   const LiveTerms& live) {
                 const int64_t begin =
                     std::clamp(live.begin, terms.begin, terms.begin + terms.size);
                 const int64_t end = std::clamp(live.end, begin, terms.begin + terms.size);
                 job.k = end - begin;
                 job.b = weights + begin * width;
                 job.offsets = offsets + begin;
                 prefetch.apply(job, strip);
                 job.a = low;
                 job.a_high = high;
                 job.sums = chunked ? partial + strip * max_lanes * width : near_sums;
                 if (!terms.last) return t.kernels.tiles[rows][vectors](job);
                 TileStore store = call.place_nhwc(group, first_column, columns, pixel, rows);
                 job.store = finishes ? &store : nullptr;
                 t.kernels.tiles[rows][vectors](job);
                 if (finishes) return;
                 store.sums = job.sums;
                 store.sums_stride = width;
                 t.kernels.store(store);
               });
  }
}

void run_line_task(const LineRows& t, const Call& call, int64_t task, const PackedBlocks& spaces,
                   int worker) {
  const ConvGeometry& g = t.g;
  const int64_t where = t.tasks.block(task), group = where % g.group;
  const LineBlock b(t, where / g.group);
  auto* offsets = reinterpret_cast<int32_t*>(spaces.space(worker));
  float* copied = spaces.space(worker) + t.offset_floats();
  if (spaces.changes(worker, where)) {
    fill_offsets(t, group, offsets);
    if (t.copies) copy_lines(t, call, b, group, copied);
  }
  const BlockImage image = image_of(t, call, b, group, copied);
  for (int64_t panel = t.tasks.begin(task), end = t.tasks.end(task); panel < end; ++panel)
    multiply_strips(t, call, b, image, group, panel, offsets, copied + t.copied_floats());
}

// In doubles, since sizes may be absurd.
bool is_sparse(const ConvGeometry& g) {
  const auto span = [&](size_t axis, int64_t count) {
    return static_cast<double>(count - 1) * static_cast<double>(g.stride[axis]) +
           static_cast<double>(g.kernel[axis] - 1) * static_cast<double>(g.dilation[axis]) + 1;
  };
  constexpr double most = 4;  // times what windows hold
  const int64_t columns = std::min<int64_t>(g.out[2], 14);
  const double near = span(1, 1) * span(2, columns);
  const double far = span(0, 1) * span(1, g.out[1]) * span(2, g.out[2]) *
                     static_cast<double>(g.group * g.group_in);
  return near > most * static_cast<double>(columns * g.kernel[1] * g.kernel[2]) || far > 0x1p30;
}

// As measured, in cycles: a value of a window takes 2.3 to copy, for each task of a block where
// sums come in several parts; one of the weights 2.6 to split, which few rows do not hide; and
// these tiles do 24 multiply-adds in one.
bool tiles_are_faster(const TileKernels& kernels, const ConvGeometry& g) {
  const int64_t rows = g.batch * g.out_pixels;
  if (g.group != 1 || !bf16x3_pays(kernels.lanes, rows, g.group_out, g.terms)) return false;
  const auto terms = static_cast<double>(g.terms), columns = static_cast<double>(g.group_out);
  const Chunks chunks = split_chunks(g.terms);
  const int64_t strips = divide_up(rows, bf16x3_size),
                blocks =
                    bf16x3_blocks(strips, chunks, 1);  // the same way for any number of threads
  const auto copies = static_cast<double>(chunks.count() > 1 ? divide_up(4, blocks) : 1);
  const double copied = bf16x3_cycles(rows, g.group_out, g.terms, g.coarse) +
                        2.3 * copies * static_cast<double>(rows) * terms + 2.6 * columns * terms;
  const double stored = static_cast<double>(round_up(g.group_out, kernels.lanes));
  return copied < static_cast<double>(rows) * stored * terms / 24;
}

}  // namespace

std::string_view refuses_lines_nhwc(const ConvGeometry& g) {
  if (g.shuffle != 1) return {};  // no other path knows it
  if (g.batch <= 0 || g.out_pixels <= 0 || g.terms <= 0 || g.group_out <= 0)
    return "nothing to compute";
  const TileKernels& kernels = tile_kernels();
  if (is_sparse(g)) return "windows are far apart";
  if (g.taps > 1 && g.out_pixels < kernels.tile_rows && g.batch * g.out_pixels < kernels.tile_rows)
    return "so few windows are soon copied";
  if (g.out[2] < std::min<int64_t>(kernels.tile_rows / 2, g.out_pixels))
    return "lines are shorter than tiles";
  if (tiles_are_faster(kernels, g)) return "matrix tiles multiply copied windows faster";
  return {};
}

int64_t lines_nhwc_worker_floats(const ConvGeometry& g) {
  return LineRows(tile_kernels(), g).worker_floats();
}

void run_lines_nhwc(const Call& call, const PackedBlocks& spaces, ThreadPool& pool) {
  const LineRows t(tile_kernels(), call.g);
  for_tasks(pool, t.tasks.count(), t.tasks.grain(t.max_pixels()),
            [&](int64_t task, int worker) { run_line_task(t, call, task, spaces, worker); });
}

}  // namespace sardonyx::kernels
