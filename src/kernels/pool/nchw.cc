#include "kernels/pool/nchw.h"

#include <algorithm>
#include <limits>

#include "kernels/pool/lines.h"
#include "kernels/pool/span.h"
#include "kernels/rows/grain.h"
#include "kernels/rows/row_math.h"

namespace sardonyx::kernels {
namespace {

constexpr int64_t block_floats = 3072;  // of lines at once, which stay near
constexpr int64_t vector_floats = 16;   // what lines are aligned to; of the largest vectors
constexpr int64_t block_rows = block_floats / (2 * vector_floats);
constexpr int64_t kept_columns = 512;

int64_t round_up(int64_t n) { return (n + vector_floats - 1) / vector_floats * vector_floats; }

// What the windows of some outputs along a line read, from the first to the last.
int64_t reach_of(const PoolShape& s, int64_t outputs) {
  return (outputs - 1) * s.stride[2] + (s.kernel[2] - 1) * s.dilation[2] + 1;
}

// Lines of output, of all slices of a plane together, are cut into parts of `columns` outputs;
// `rows` lines make a block.
struct Cut {
  explicit Cut(const PoolShape& s)
      : lines(s.out[0] * s.out[1]),
        columns(std::min(s.out[2], (part_floats(lines) - reach_of(s, 1)) / s.stride[2] + 1)),
        pitch(round_up(reach_of(s, columns)) + vector_floats),
        rows(std::min(lines, block_floats / pitch)) {
    if (rows > 1) rows -= rows % 2;  // since two lines are joined together
  }

  // The most of one line, so that there is room for two that are joined together.
  static int64_t part_floats(int64_t lines) {
    return (lines == 1 ? block_floats : block_floats / 2) - 2 * vector_floats;
  }

  int64_t blocks() const { return (lines + rows - 1) / rows; }
  int64_t parts(const PoolShape& s) const { return (s.out[2] + columns - 1) / columns; }

  int64_t lines, columns;
  int64_t pitch;  // floats of a line of a part, its padding, and what vectors write beyond
  int64_t rows;
};

// Of how many elements inside, or inside the padding, averages along an axis are; 1 where there are
// none.
float counted(const PoolShape& s, int axis, const Span& span, bool count_include_pad) {
  const int64_t count = count_include_pad ? padded_positions(s, axis, span) : span.end - span.begin;
  return static_cast<float>(std::max<int64_t>(count, 1));
}

PoolColumn column_of(const PoolShape& s, int64_t line, bool count_include_pad) {
  const Span slices = span_of(s, 0, line / s.out[1]), rows = span_of(s, 1, line % s.out[1]);
  PoolColumn column;
  column.slices = static_cast<int32_t>(std::max<int64_t>(slices.end - slices.begin, 0));
  column.rows = static_cast<int32_t>(std::max<int64_t>(rows.end - rows.begin, 0));
  if (column.slices != 0 && column.rows != 0) {
    column.row = static_cast<int32_t>((slices.origin + slices.begin * s.dilation[0]) * s.in[1] +
                                      rows.origin + rows.begin * s.dilation[1]);
  }
  column.inside = counted(s, 0, slices, count_include_pad) * counted(s, 1, rows, count_include_pad);
  return column;
}

// Outputs of a line from `first` on, and the floats that they read, from `from` on.
struct Part {
  Part() = default;
  Part(const PoolShape& s, const Cut& cut, int64_t index)
      : first(index * cut.columns), out(std::min(cut.columns, s.out[2] - first)) {
    const int64_t origin = first * s.stride[2] - s.pad_before[2], reach = reach_of(s, out);
    from = std::clamp<int64_t>(origin, 0, s.in[2]);
    n = std::clamp<int64_t>(origin + reach, from, s.in[2]) - from;
    before = std::min(from - origin, reach);
    whole = n == reach;
  }
  // Whether the same padding and divisors are theirs.
  bool operator==(const Part& other) const {
    return out == other.out && (first == other.first || (whole && other.whole));
  }

  int64_t first = 0, out = 0, from = 0, n = 0;
  int64_t before = 0;  // floats of padding before these
  bool whole = false;  // no padding
};

// One thread's memory, and what it is filled for.
struct Workspace {
  alignas(64) float lines[block_floats + vector_floats + pool_lines_room];
  alignas(64) float columns_inside[block_floats + pool_lines_room];
  alignas(64) float scales[block_floats + pool_lines_room];
  float scales_for = 0;
  PoolColumn columns[block_rows];
  Part part;

  // Padding stays as it is from block to block.
  void begin_part(PoolKind kind, const PoolShape& s, const Cut& cut, const Part& next,
                  bool count_include_pad) {
    if (part == next) return;
    part = next;
    std::fill_n(lines, cut.rows * cut.pitch + vector_floats + pool_lines_room,
                kind == PoolKind::max ? min_of<float>() : 0.0f);
    if (kind == PoolKind::max) return;
    for (int64_t k = 0; k < next.out; ++k)
      columns_inside[k] = counted(s, 2, span_of(s, 2, next.first + k), count_include_pad);
    std::fill_n(columns_inside + next.out, pool_lines_room, 1.0f);
    scales_for = 0;
  }
};

}  // namespace

bool pools_by_lines(const PoolShape& s) {
  constexpr int64_t max_rows = std::numeric_limits<int32_t>::max();
  for (int a = 0; a < PoolShape::axes; ++a) {
    if (s.in[a] < 1 || s.out[a] < 1 || s.in[a] > max_rows || s.kernel[a] > 64) return false;
  }
  return s.in[0] <= max_rows / s.in[1] && s.stride[2] <= pool_lines_stride &&
         s.dilation[2] <= block_floats && reach_of(s, 1) <= block_floats / 4;
}

void pool_by_lines(PoolKind kind, const PoolShape& s, const float* x, float* y,
                   bool count_include_pad, ThreadPool& pool) {
  const Cut cut(s);
  const int64_t blocks = cut.blocks(), parts = cut.parts(s);
  PoolColumn kept[kept_columns];
  const bool keeps = cut.lines <= kept_columns;
  for (int64_t i = 0; keeps && i < cut.lines; ++i) kept[i] = column_of(s, i, count_include_pad);
  const int64_t taps = s.kernel[0] * s.kernel[1] + s.kernel[2] + s.stride[2];
  const int64_t cost = cut.rows * cut.columns * taps / 32;
  for_rows_of(s.planes * blocks * parts, cost, pool, [&](int64_t begin, int64_t end) {
    Workspace space;
    for (int64_t task = begin; task < end; ++task) {
      const int64_t line = task / parts % blocks * cut.rows, plane = task / parts / blocks;
      const Part part(s, cut, task % parts);
      space.begin_part(kind, s, cut, part, count_include_pad);
      PoolBlock b;
      b.kind = kind;
      b.count = std::min(cut.rows, cut.lines - line);
      b.columns = keeps ? kept + line : space.columns;
      for (int64_t i = 0; !keeps && i < b.count; ++i)
        space.columns[i] = column_of(s, line + i, count_include_pad);
      b.out = part.out;
      b.n = part.n;
      b.before = part.before;
      b.plane = x + plane * s.in[0] * s.in[1] * s.in[2] + part.from;
      b.row_floats = s.in[2];
      b.slice_rows = s.in[1];
      b.row_dilation = s.dilation[1];
      b.slice_dilation = s.dilation[0];
      b.lines = space.lines + round_up(b.before);
      b.pitch = cut.pitch;
      b.kernel = s.kernel[2];
      b.dilation = s.dilation[2];
      b.stride = s.stride[2];
      b.columns_inside = space.columns_inside;
      b.scales = space.scales;
      b.scales_for = &space.scales_for;
      b.y = y + (plane * cut.lines + line) * s.out[2] + part.first;
      b.y_pitch = s.out[2];
      pool_lines(b);
    }
  });
}

}  // namespace sardonyx::kernels
