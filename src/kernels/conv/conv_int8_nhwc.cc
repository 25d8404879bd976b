#include "kernels/conv/conv_int8_nhwc.h"

#include <algorithm>
#include <cstring>
#include <vector>

#include "base/cpu.h"
#include "kernels/conv/depthwise_int8.h"
#include "kernels/conv/depthwise_vnni.h"
#include "kernels/conv/geometry.h"
#include "kernels/conv/windows.h"
#include "kernels/gemm/blocking.h"
#include "kernels/gemm/gemm_int8.h"
#include "kernels/gemm/pack.h"

namespace sardonyx::kernels {
namespace {

constexpr int64_t row_block = 64;  // rows of one product

bool is_depthwise(const ConvParams& s) {
  return s.group > 1 && s.group == s.in_channels && s.group == s.out_channels;
}

struct ByteRows {
  explicit ByteRows(const ConvGeometry& g)
      : g(g),
        groups(row_groups(g.terms)),
        pixels(g.batch * g.out_pixels),
        panels(divide_up(g.group_out, byte_panel_columns)) {}

  const ConvGeometry& g;
  int64_t groups, pixels, panels;

  int64_t row_bytes() const { return 4 * groups; }
  int64_t panel_bytes() const { return byte_panel_bytes(groups); }

  // Tiles of bytes take 16 groups at a time: worth some multiplications by 0.
  static int64_t row_groups(int64_t terms) {
    constexpr int64_t step = 16, least = 12;
    const int64_t groups = vnni_groups(terms);
    return has_amx() && groups >= least ? round_up(groups, step) : groups;
  }
  // Windows of one pixel each, one after the other.
  bool reads_images() const {
    return g.taps == 1 && g.stride == ConvParams::Dims{1, 1, 1} && g.pad == ConvParams::Dims{} &&
           g.in == g.out;
  }
};

// How the pixels and panels are shared out: in blocks of pixels that differ by a tile at most.
struct RowTasks {
  RowTasks(const ByteRows& rows, int threads) : pixels(rows.pixels) {
    constexpr int64_t near_bytes = 256 << 10;  // windows that stay in the second-level cache
    const int64_t fitting = near_bytes / rows.row_bytes() / row_block * row_block;
    const int64_t wanted = threads == 1 ? 1 : 2 * threads;
    step = has_amx() ? 16 : 1;
    tiles = divide_up(pixels, step);
    blocks = divide_up(pixels, std::clamp<int64_t>(fitting, row_block, 4 * row_block));
    // Few pixels are better not parted: each part reads all weights.
    if (blocks > 1 || rows.panels < wanted) blocks = std::max(blocks, std::min(wanted, tiles));
    per_task = divide_up(rows.panels, std::min(divide_up(wanted, blocks), rows.panels));
    panel_groups = divide_up(rows.panels, per_task);
  }

  int64_t begin(int64_t block) const { return std::min(pixels, tiles * block / blocks * step); }
  int64_t most() const { return divide_up(tiles, blocks) * step; }  // pixels of a block
  int64_t tasks() const { return blocks * panel_groups; }

  int64_t pixels, step, tiles, blocks, per_task, panel_groups;
};

int64_t worker_floats(const ByteRows& rows, const RowTasks& tasks) {
  // Windows, which a short line may overrun, and their sums.
  return round_up(divide_up(tasks.most() * (rows.row_bytes() + 4) + line_piece_bytes, 4), 16);
}

bool stays_signed(const ByteRows& rows, const ConvInt8& job) {
  return job.x_type == ElementType::int8 && signed_rows(rows.groups) != SignedRows::no;
}

// What products take the bytes of x for, less what they are.
int32_t raised_by(const ByteRows& rows, ElementType x_type) {
  return signed_rows(rows.groups) == SignedRows::as_they_are ? 0 : sign_offset(x_type, false);
}

// Windows of pixels [first, end), unsigned unless signed ones will do. What lies between windows
// meets weights of 0.
void copy_windows(const ByteRows& rows, const ConvInt8& job, int64_t first, int64_t end,
                  uint8_t* to) {
  const ConvGeometry& g = rows.g;
  const auto zero = static_cast<uint8_t>(job.x_zero - raised_by(rows, job.x_type));
  const auto* images = static_cast<const uint8_t*>(job.x);
  const int64_t image_bytes = g.in_pixels * g.group_in;
  Windows<uint8_t>(g, images + g.batch * image_bytes, zero)
      .copy([&](int64_t n) { return images + n * image_bytes; }, OutputPixel(g, first), end - first,
            to, rows.row_bytes());
  if (job.x_type == ElementType::int8 && !stays_signed(rows, job))
    flip_signs(to, (end - first) * rows.row_bytes(), to);
}

// Of bytes as products take them.
void sum_rows(const ByteRowsOf& rows, int64_t terms, int32_t* sums) {
  const auto top_bit = static_cast<uint8_t>(rows.is_signed ? 0x80 : 0);
  sum_byte_rows(rows.data, rows.stride, rows.count, terms, top_bit, sums);
  if (!rows.is_signed || signed_rows(rows.groups) != SignedRows::as_they_are) return;
  for (int64_t i = 0; i < rows.count; ++i)
    sums[i] =
        static_cast<int32_t>(static_cast<uint32_t>(sums[i]) - static_cast<uint32_t>(128 * terms));
}

// What the sums of each output channel begin with, wrapping as the standard's int32 do: `term`.
void fill_terms(const ConvParams& shape, const ConvInt8& job, int64_t terms, int32_t* to) {
  const int64_t channels = conv_int8_nhwc_channels(shape);
  for (int64_t m = 0; m < channels; ++m) {
    const bool used = m < shape.out_channels;
    const auto w_zero = static_cast<uint32_t>(used && job.w_zero ? job.w_zero[m] : 0);
    const auto bias = static_cast<uint32_t>(used && job.bias ? job.bias[m] : 0);
    const auto sum = static_cast<uint32_t>(used ? job.weight_sums[m] : 0);
    to[m] = static_cast<int32_t>(bias - static_cast<uint32_t>(job.x_zero) *
                                            (sum - static_cast<uint32_t>(terms) * w_zero));
  }
}

void run_rows_task(const ByteRows& rows, const RowTasks& tasks, const ConvInt8& job,
                   const ByteFinish& finish, int64_t task, const PackedBlocks& spaces, int worker) {
  const ConvGeometry& g = rows.g;
  const int64_t where = task / tasks.panel_groups, first = tasks.begin(where),
                end = tasks.begin(where + 1);
  const int64_t total = g.batch * g.in_pixels * g.group_in;
  // Bytes of the next pixel meet weights of 0; behind the last pixel there are none.
  const bool is_signed = stays_signed(rows, job);
  const bool in_place = rows.reads_images() && (job.x_type == ElementType::uint8 || is_signed) &&
                        (end - 1) * g.group_in + rows.row_bytes() <= total;
  auto* space = reinterpret_cast<uint8_t*>(spaces.space(worker));
  auto* row_sums = reinterpret_cast<int32_t*>(space + tasks.most() * rows.row_bytes());
  const uint8_t* windows =
      in_place ? static_cast<const uint8_t*>(job.x) + first * g.group_in : space;
  const ByteRowsOf from{windows, in_place ? g.group_in : rows.row_bytes(), end - first, rows.groups,
                        is_signed};
  if (spaces.changes(worker, where)) {
    if (!in_place) copy_windows(rows, job, first, end, space);
    if (finish.factor) sum_rows(from, g.terms, row_sums);
  }
  const int64_t begin = task % tasks.panel_groups * tasks.per_task;
  const auto* const addend = static_cast<const uint8_t*>(job.addend);
  for (int64_t p = begin; p < std::min(begin + tasks.per_task, rows.panels); ++p) {
    const int64_t column = p * byte_panel_columns;
    ByteFinish at = finish;
    at.term += column, at.scale += column;
    if (at.bias) at.bias += column;
    if (at.factor) at.factor += column;
    const int8_t* panel = job.weights + p * rows.panel_bytes();
    const int64_t next_bytes = p + 1 < rows.panels ? rows.panel_bytes() : 0;
    const BytesAhead next{panel + next_bytes, next_bytes};
    const int64_t place = first * g.group_out + column;
    if (addend != nullptr) at.addend = addend + place;
    byte_panel_finish(from, panel, at, row_sums, std::min(byte_panel_columns, g.group_out - column),
                      static_cast<uint8_t*>(job.y) + byte_size(job.y_type, place), g.group_out,
                      next);
  }
}

// Weights [out_channels, channels, taps] as signed rows [out_channels, row_bytes], taps before
// channels, filled up with 0.
std::vector<int8_t> weight_rows(const ConvGeometry& g, int64_t row_bytes, ElementType type,
                                const void* w, ThreadPool& pool) {
  const auto* from = static_cast<const uint8_t*>(w);
  const auto mask = static_cast<uint8_t>(type == ElementType::int8 ? 0 : 0x80);
  std::vector<int8_t> rows(static_cast<size_t>(g.group_out * row_bytes));
  constexpr int64_t task = 32768;  // bytes
  pool.parallel_for(g.group_out, std::max<int64_t>(1, task / std::max<int64_t>(1, row_bytes)),
                    [&](int64_t begin, int64_t end, int) {
                      for (int64_t m = begin; m < end; ++m) {
                        const uint8_t* row = from + m * g.group_in * g.taps;
                        int8_t* to = rows.data() + m * row_bytes;
                        if (g.taps == 1) {
                          std::transform(row, row + g.group_in, to, [mask](uint8_t byte) {
                            return static_cast<int8_t>(byte ^ mask);
                          });
                          continue;
                        }
                        for (int64_t t = 0; t < g.taps; ++t) {
                          for (int64_t c = 0; c < g.group_in; ++c)
                            *to++ = static_cast<int8_t>(row[c * g.taps + t] ^ mask);
                        }
                      }
                    });
  return rows;
}

// Weights with their zero points taken off.
void pack_depthwise(const ConvParams& shape, ElementType type, const uint8_t* w,
                    const int32_t* zeros, void* out, int32_t* sums) {
  const ConvGeometry g(shape);
  const auto mask = static_cast<uint8_t>(type == ElementType::int8 ? 0 : 0x80);
  std::vector<int16_t> weights;
  for (int64_t i = 0; i < g.group * g.taps; ++i)
    weights.push_back(static_cast<int16_t>(static_cast<int8_t>(w[i] ^ mask) - zeros[i / g.taps]));
  if (depthwise_vnni_applies(shape)) {
    const bool has_zeros =
        std::any_of(zeros, zeros + g.group, [](int32_t zero) { return zero != 0; });
    return pack_depthwise_vnni(shape, weights.data(), has_zeros ? zeros : nullptr,
                               static_cast<int8_t*>(out), sums);
  }
  constexpr int64_t part = depthwise_bytes_part;
  auto* floats = static_cast<float*>(out);
  std::fill_n(floats, depthwise_bytes_weights(g), 0.0f);
  for (int64_t c = 0; c < g.group; ++c) {
    for (int64_t t = 0; t < g.taps; ++t)
      floats[(c / part * g.taps + t) * part + c % part] =
          weights[static_cast<size_t>(c * g.taps + t)];
  }
}

}  // namespace

bool conv_int8_nhwc_applies(const ConvParams& shape) {
  if (shape.group == 1) return shape.in_channels > 0;
  return is_depthwise(shape) && ConvGeometry(shape).taps <= max_depthwise_bytes_taps;
}

int64_t conv_int8_nhwc_channels(const ConvParams& shape) {
  return round_up(shape.out_channels, byte_panel_columns);
}

int64_t conv_int8_nhwc_weights_size(const ConvParams& shape) {
  const ConvGeometry g(shape);
  if (is_depthwise(shape)) {
    return depthwise_vnni_applies(shape) ? depthwise_vnni_weights_size(shape)
                                         : depthwise_bytes_weights(g) * int64_t{sizeof(float)};
  }
  const ByteRows rows(g);
  return rows.panels * rows.panel_bytes();
}

void pack_conv_int8_nhwc_weights(const ConvParams& shape, ElementType type, const void* w,
                                 const int32_t* zeros, void* out, int32_t* sums, ThreadPool& pool) {
  const ConvGeometry g(shape);
  std::fill_n(sums, conv_int8_nhwc_channels(shape), 0);
  if (is_depthwise(shape)) {
    pack_depthwise(shape, type, static_cast<const uint8_t*>(w), zeros, out, sums);
    return;
  }
  const ByteRows rows(g);
  const std::vector<int8_t> by_row = weight_rows(g, rows.row_bytes(), type, w, pool);
  pack_byte_panels(ElementType::int8, by_row.data(), 1, rows.row_bytes(), rows.row_bytes(),
                   g.group_out, static_cast<int8_t*>(out), sums, pool);
}

int64_t conv_int8_nhwc_scratch_bytes(const ConvParams& shape, int threads) {
  const ConvGeometry g(shape);
  if (g.batch * g.out_pixels == 0 || shape.out_channels == 0) return 0;
  if (is_depthwise(shape)) {
    return depthwise_vnni_applies(shape) ? depthwise_vnni_scratch(shape, threads)
                                         : depthwise_bytes_scratch(g, threads);
  }
  const ByteRows rows(g);
  return conv_int8_nhwc_channels(shape) * 4 + max_scratch(threads, [&](int count) {
           return count * (scratch_alignment +
                           worker_floats(rows, RowTasks(rows, count)) * int64_t{sizeof(float)});
         });
}

void conv_int8_nhwc(const ConvParams& shape, const ConvInt8& given, void* scratch,
                    ThreadPool& pool) {
  const ConvGeometry g(shape);
  if (g.batch * g.out_pixels == 0 || shape.out_channels == 0) return;
  ConvInt8 job = given;
  if (is_depthwise(shape)) {
    return depthwise_vnni_applies(shape) ? depthwise_vnni(shape, job, scratch, pool)
                                         : depthwise_bytes(g, job, scratch, pool);
  }
  const ByteRows rows(g);
  job.x_zero += raised_by(rows, job.x_type);
  const RowTasks tasks(rows, pool.threads());
  auto* terms = static_cast<int32_t*>(scratch);
  fill_terms(shape, job, g.terms, terms);
  ByteFinish finish;
  finish.term = terms;
  finish.factor = job.w_zero;
  finish.scale = job.scale, finish.bias = job.shift;
  finish.each = true;
  finish.type = job.y_type, finish.zero = job.zero;
  finish.low = job.low, finish.high = job.high;
  if (job.addend != nullptr) finish.sum = &job.sum, finish.type = job.sum.y.type;
  const PackedBlocks spaces(terms + conv_int8_nhwc_channels(shape), pool.threads(),
                            worker_floats(rows, tasks));
  const int64_t work = tasks.most() * rows.row_bytes() * tasks.per_task * byte_panel_columns;
  pool.parallel_for(tasks.tasks(), std::max<int64_t>(1, 2000000 / std::max<int64_t>(1, work)),
                    [&](int64_t begin, int64_t end, int worker) {
                      for (int64_t i = begin; i < end; ++i)
                        run_rows_task(rows, tasks, job, finish, i, spaces, worker);
                    });
}

}  // namespace sardonyx::kernels
