#include "kernels/conv/depthwise_vnni.h"

#include "base/cpu.h"

#if defined(__x86_64__)
#include <algorithm>
#include <cstring>

#include "kernels/gemm/blocking.h"
#include "kernels/gemm/pack.h"
#include "kernels/simd/vnni.h"

namespace sardonyx::kernels {
namespace {

constexpr int64_t part = 16;     // channels computed at a time
constexpr int64_t together = 4;  // parts whose lines of the image are read one after the other
constexpr int64_t across = 4;    // outputs of a line at a time: one for each quarter of a vector
constexpr int64_t max_rows = 2;  // lines of output at a time, which share most of their windows
constexpr int64_t max_kernel_rows = 32, max_lines = max_rows * max_kernel_rows;
constexpr int64_t group_bytes = 4 * part;

// Height and width, whatever the sizes of the image: packed weights hold for all of them.
struct Plane {
  explicit Plane(const ConvParams& s)
      : batch(s.batch), channels(s.in_channels), kernel{1, 1}, stride{1, 1}, dilation{1, 1} {
    for (int i = 0; i < s.rank; ++i) {
      const auto from = static_cast<size_t>(i);
      const int to = 2 - s.rank + i;
      kernel[to] = s.kernel[from], stride[to] = s.stride[from], dilation[to] = s.dilation[from];
      in[to] = s.in[from], out[to] = s.out[from], pad[to] = s.pad_begin[from];
    }
  }

  int64_t taps() const { return kernel[0] * kernel[1]; }

  int64_t batch, channels;
  int64_t kernel[2], stride[2], dilation[2], in[2] = {1, 1}, out[2] = {1, 1}, pad[2] = {};
};

int64_t row_groups(const Plane& g) { return divide_up(g.kernel[1], 4); }
// Of the weights of a part of the channels, once.
int64_t part_bytes(const Plane& g) { return g.kernel[0] * row_groups(g) * group_bytes; }
// How often there are weights: sums of two bytes where they have zero points.
int64_t weight_sets(bool has_zeros) { return has_zeros ? 2 : 1; }
// Two signed bytes make -255, but no 255. With this zero point no weight is below 0: those of such
// a channel are packed with the other sign, and so are its sums.
bool is_negated(const int32_t* zeros, int64_t channel) {
  return zeros != nullptr && zeros[channel] == -128;
}

// Lines of the input under so many neighbouring windows.
int64_t window(const Plane& g, int64_t rows) {
  return (rows - 1) * g.stride[0] + (g.kernel[0] - 1) * g.dilation[0] + 1;
}

// How an image is cut into tasks, and what a task keeps of it: for each part of the channels a ring
// of lines between their padding. A line's pixels that are a stride apart lie side by side.
struct Tasks {
  Tasks(const Plane& g, int threads)
      : lines(std::clamp<int64_t>(window(g, max_rows), 1, std::max<int64_t>(1, g.in[0]))),
        entries(round_up(g.out[1], across) + (g.kernel[1] - 1) * g.dilation[1] / g.stride[1] + 1),
        line_bytes(g.stride[1] * entries * part),
        parts(divide_up(g.channels, part)),
        groups(divide_up(parts, together)) {
    constexpr int64_t per_thread = 4;
    if (threads > 1)
      row_tiles = std::min(divide_up(per_thread * threads, g.batch * groups),
                           divide_up(g.out[0], max_rows));
  }

  int64_t count(const Plane& g) const { return g.batch * groups * row_tiles; }
  int64_t ring_bytes() const { return lines * line_bytes; }
  // The rings, and a line of nothing but padding.
  int64_t worker_floats() const {
    return divide_up(std::min(parts, together) * ring_bytes() + line_bytes, 4);
  }

  int64_t lines, entries, line_bytes, parts, groups, row_tiles = 1;
};

// Some channels of an image.
struct Part {
  const uint8_t* in = nullptr;
  uint8_t* out = nullptr;
  const int8_t* weights = nullptr;
  uint8_t* ring = nullptr;
  int64_t done = 0;    // lines before this one are in the ring, as far as they are still needed
  __mmask16 mask = 0;  // of the channels that there are
  alignas(64) int32_t term[part] = {};
  alignas(64) float scale[part] = {};
  alignas(64) float shift[part] = {};

  bool whole() const { return mask == 0xffff; }
};

// Which of the lines under so many neighbouring windows meet weights, and those of which row of the
// kernel, in bytes, for each window; -1 where it meets none.
struct Meetings {
  Meetings(const Plane& g, int64_t rows) : lines(window(g, rows)) {
    for (int64_t l = 0; l < lines; ++l) {
      bool used = false;
      for (int64_t i = 0; i < rows; ++i) {
        const int64_t from = l - i * g.stride[0], tap = from / g.dilation[0];
        const bool meets = from >= 0 && from % g.dilation[0] == 0 && tap < g.kernel[0];
        weights[count][i] = meets ? tap * row_groups(g) * group_bytes : -1;
        used = used || meets;
      }
      if (used) line[count++] = l;
    }
  }

  int64_t lines, count = 0;
  int64_t line[max_lines];
  int64_t weights[max_lines][max_rows];
};

struct RowTile {
  const Plane& g;
  const Tasks& t;
  const int64_t* offsets;  // of each tap of a row, in bytes of a line
  const uint8_t* padding;  // a line
  uint8_t x_top, y_top;    // flips the sign bit of signed bytes
  int32_t zero;
  float low, high;
  int64_t groups, sets, y_size;  // y_size: bytes of an element
  const Meetings* meetings;      // of 1 and 2 windows
};

// Some pixels, `step` bytes apart, side by side. `all`: the part has all of its channels.
template <bool all>
SARDONYX_VNNI void copy_pixels(const uint8_t* from, int64_t step, int64_t count, __mmask16 mask,
                               __m128i top, uint8_t* to) {
  for (int64_t i = 0; i < count; ++i, from += step, to += part) {
    const __m128i pixel = all ? _mm_loadu_si128(reinterpret_cast<const __m128i*>(from))
                              : _mm_maskz_loadu_epi8(mask, from);
    _mm_storeu_si128(reinterpret_cast<__m128i*>(to), _mm_xor_si128(pixel, top));
  }
}

// One line of the image, whose padding is there already.
SARDONYX_VNNI void fill_line(const RowTile& b, const Part& p, int64_t line, uint8_t* to) {
  const Plane& g = b.g;
  const int64_t stride = g.stride[1], pad = g.pad[1], channels = g.channels;
  const __m128i top = _mm_set1_epi8(static_cast<char>(b.x_top));
  const uint8_t* from = p.in + line * g.in[1] * channels;
  for (int64_t phase = 0; phase < stride; ++phase, to += b.t.entries * part) {
    // The first entry that is a pixel, and the one behind the last.
    const int64_t begin = std::max<int64_t>(0, divide_up(pad - phase, stride)),
                  end = std::min(b.t.entries, divide_up(g.in[1] + pad - phase, stride));
    if (begin >= end) continue;
    const auto copy = p.whole() ? copy_pixels<true> : copy_pixels<false>;
    copy(from + (begin * stride + phase - pad) * channels, stride * channels, end - begin, p.mask,
         top, to + begin * part);
  }
}

SARDONYX_VNNI inline __attribute__((always_inline)) __m512i four(const int32_t* of_channels) {
  return _mm512_broadcast_i32x4(_mm_loadu_si128(reinterpret_cast<const __m128i*>(of_channels)));
}

// Products of four taps of 16 channels of `across` pixels: each quarter of a vector holds four
// channels of one output.
struct Quads {
  SARDONYX_VNNI inline __attribute__((always_inline))
  Quads(const uint8_t* line, const int64_t* at) {
    const __m512i p0 = _mm512_loadu_si512(line + at[0]), p1 = _mm512_loadu_si512(line + at[1]),
                  p2 = _mm512_loadu_si512(line + at[2]), p3 = _mm512_loadu_si512(line + at[3]);
    const __m512i low01 = _mm512_unpacklo_epi8(p0, p1), high01 = _mm512_unpackhi_epi8(p0, p1),
                  low23 = _mm512_unpacklo_epi8(p2, p3), high23 = _mm512_unpackhi_epi8(p2, p3);
    of[0] = _mm512_unpacklo_epi16(low01, low23), of[1] = _mm512_unpackhi_epi16(low01, low23);
    of[2] = _mm512_unpacklo_epi16(high01, high23), of[3] = _mm512_unpackhi_epi16(high01, high23);
  }
  __m512i of[4];
};

// Sums of some rows and some times `across` outputs from `column` on: [rows][times][4] vectors.
template <int rows, int times>
SARDONYX_VNNI void add_up(const RowTile& b, const Part& p, const uint8_t* const* lines,
                          int64_t column, int32_t* to) {
  const Meetings& meetings = b.meetings[rows - 1];
  const int64_t part_size = part_bytes(b.g);
  __m512i sums[rows][times][4];
#pragma GCC unroll 4
  for (int i = 0; i < rows; ++i) {
#pragma GCC unroll 4
    for (int k = 0; k < times; ++k) {
#pragma GCC unroll 4
      for (int j = 0; j < 4; ++j) sums[i][k][j] = four(p.term + 4 * j);
    }
  }
  for (int64_t l = 0; l < meetings.count; ++l) {
    const uint8_t* line = lines[l] + column * part;
    for (int64_t c = 0; c < b.groups; ++c) {
      const int64_t* at = b.offsets + 4 * c;
      const Quads first(line, at), second(line + (times - 1) * across * part, at);
#pragma GCC unroll 4
      for (int i = 0; i < rows; ++i) {
        if (meetings.weights[l][i] < 0) continue;
        const int8_t* w = p.weights + meetings.weights[l][i] + c * group_bytes;
        for (int64_t set = 0; set < b.sets; ++set, w += part_size) {
#pragma GCC unroll 4
          for (int j = 0; j < 4; ++j) {
            const __m512i weights = four(reinterpret_cast<const int32_t*>(w + 16 * j));
            sums[i][0][j] = _mm512_dpbusd_epi32(sums[i][0][j], first.of[j], weights);
            if constexpr (times == 2)
              sums[i][1][j] = _mm512_dpbusd_epi32(sums[i][1][j], second.of[j], weights);
          }
        }
      }
    }
  }
#pragma GCC unroll 4
  for (int i = 0; i < rows; ++i) {
#pragma GCC unroll 4
    for (int k = 0; k < times; ++k) {
#pragma GCC unroll 4
      for (int j = 0; j < 4; ++j)
        _mm512_store_si512(to + ((i * times + k) * 4 + j) * part, sums[i][k][j]);
    }
  }
}

// Rounds sums of `across` outputs each.
class Rounder {
 public:
  SARDONYX_VNNI Rounder(const RowTile& b, const Part& p)
      : zero_(_mm512_set1_epi16(static_cast<int16_t>(b.zero))),
        top_(_mm512_set1_epi8(static_cast<char>(b.y_top))),
        channels_(b.g.channels),
        mask_(p.mask) {
    for (int j = 0; j < 4; ++j) scale_[j] = _mm512_broadcast_f32x4(_mm_load_ps(p.scale + 4 * j));
  }

  // The first `count` pixels of them.
  SARDONYX_VNNI void store(const int32_t* sums, int64_t count, uint8_t* to) const {
    __m512i whole[4];
#pragma GCC unroll 4
    for (int j = 0; j < 4; ++j) {
      const __m512 value =
          _mm512_mul_ps(_mm512_cvtepi32_ps(_mm512_load_si512(sums + j * part)), scale_[j]);
      // The second where one is NaN, which as an integer is the lowest.
      whole[j] = _mm512_cvtps_epi32(_mm512_min_ps(_mm512_set1_ps(0x1p30f), value));
    }
    const __m512i bytes = _mm512_xor_si512(
        _mm512_packus_epi16(_mm512_adds_epi16(_mm512_packs_epi32(whole[0], whole[1]), zero_),
                            _mm512_adds_epi16(_mm512_packs_epi32(whole[2], whole[3]), zero_)),
        top_);
    if (count >= across && mask_ == 0xffff) {
      _mm_storeu_si128(pixel(to, 0), _mm512_castsi512_si128(bytes));
      _mm_storeu_si128(pixel(to, 1), _mm512_extracti32x4_epi32(bytes, 1));
      _mm_storeu_si128(pixel(to, 2), _mm512_extracti32x4_epi32(bytes, 2));
      _mm_storeu_si128(pixel(to, 3), _mm512_extracti32x4_epi32(bytes, 3));
      return;
    }
    alignas(64) __m128i pixels[across];
    _mm512_store_si512(pixels, bytes);
    for (int64_t k = 0; k < std::min(count, across); ++k)
      _mm_mask_storeu_epi8(pixel(to, k), mask_, pixels[k]);
  }

 private:
  __m128i* pixel(uint8_t* to, int64_t k) const {
    return reinterpret_cast<__m128i*>(to + k * channels_);
  }

  const __m512i zero_, top_;
  __m512 scale_[4];
  const int64_t channels_;
  const __mmask16 mask_;
};

// Makes sums of `across` outputs each floats.
class Scaler {
 public:
  SARDONYX_VNNI Scaler(const RowTile& b, const Part& p)
      : scale_(_mm512_load_ps(p.scale)),
        shift_(_mm512_load_ps(p.shift)),
        low_(_mm512_set1_ps(b.low)),
        high_(_mm512_set1_ps(b.high)),
        channels_(b.g.channels),
        mask_(p.mask) {}

  // The first `count` pixels of them.
  SARDONYX_VNNI void store(const int32_t* sums, int64_t count, float* to) const {
    const __m512i s0 = _mm512_load_si512(sums), s1 = _mm512_load_si512(sums + part),
                  s2 = _mm512_load_si512(sums + 2 * part), s3 = _mm512_load_si512(sums + 3 * part);
    constexpr int first_two = 0x44, last_two = 0xee, even = 0x88, odd = 0xdd;  // quarters
    const __m512i low01 = _mm512_shuffle_i32x4(s0, s1, first_two),
                  low23 = _mm512_shuffle_i32x4(s2, s3, first_two),
                  high01 = _mm512_shuffle_i32x4(s0, s1, last_two),
                  high23 = _mm512_shuffle_i32x4(s2, s3, last_two);
    const __m512i pixels[across] = {
        _mm512_shuffle_i32x4(low01, low23, even), _mm512_shuffle_i32x4(low01, low23, odd),
        _mm512_shuffle_i32x4(high01, high23, even), _mm512_shuffle_i32x4(high01, high23, odd)};
    for (int64_t k = 0; k < std::min(count, across); ++k) {
      const __m512 value = _mm512_fmadd_ps(_mm512_cvtepi32_ps(pixels[k]), scale_, shift_);
      // The second where one is NaN.
      _mm512_mask_storeu_ps(to + k * channels_, mask_,
                            _mm512_min_ps(high_, _mm512_max_ps(low_, value)));
    }
  }

 private:
  const __m512 scale_, shift_, low_, high_;
  const int64_t channels_;
  const __mmask16 mask_;
};

template <int rows, int times, class How, class Y>
SARDONYX_VNNI void store_outputs(const RowTile& b, const How& how, const int32_t* sums,
                                 int64_t column, Y* to) {
  for (int64_t i = 0; i < rows; ++i) {
    for (int64_t k = 0; k < times; ++k)
      how.store(sums + (i * times + k) * 4 * part, b.g.out[1] - column - k * across,
                to + (i * b.g.out[1] + k * across) * b.g.channels);
  }
}

template <int rows, int times>
SARDONYX_VNNI void outputs(const RowTile& b, const Part& p, const uint8_t* const* lines,
                           int64_t column, uint8_t* y) {
  alignas(64) int32_t sums[rows * times * 4 * part];
  add_up<rows, times>(b, p, lines, column, sums);
  if (b.y_size == 1) return store_outputs<rows, times>(b, Rounder(b, p), sums, column, y);
  store_outputs<rows, times>(b, Scaler(b, p), sums, column, reinterpret_cast<float*>(y));
}

// A line of windows.
template <int rows>
void line_of_outputs(const RowTile& b, const Part& p, const uint8_t* const* lines, uint8_t* y) {
  const int64_t end = b.g.out[1], pixel = b.g.channels * b.y_size;
  int64_t x = 0;
  for (; x + across < end; x += 2 * across) outputs<rows, 2>(b, p, lines, x, y + x * pixel);
  if (x < end) outputs<rows, 1>(b, p, lines, x, y + x * pixel);
}

// `rows` lines of output from `row` on.
void run_rows(const RowTile& b, Part& p, int64_t row, int64_t rows) {
  const Plane& g = b.g;
  const int64_t top = row * g.stride[0] - g.pad[0];
  const Meetings& meetings = b.meetings[rows - 1];
  const int64_t end = std::min(top + meetings.lines, g.in[0]);
  for (p.done = std::max({p.done, top, int64_t{0}}); p.done < end; ++p.done)
    fill_line(b, p, p.done, p.ring + p.done % b.t.lines * b.t.line_bytes);
  const uint8_t* lines[max_lines];
  for (int64_t l = 0; l < meetings.count; ++l) {
    const int64_t line = top + meetings.line[l];
    const bool inside = line >= 0 && line < g.in[0];
    lines[l] = inside ? p.ring + line % b.t.lines * b.t.line_bytes : b.padding;
  }
  uint8_t* y = p.out + row * g.out[1] * g.channels * b.y_size;
  rows == 2 ? line_of_outputs<2>(b, p, lines, y) : line_of_outputs<1>(b, p, lines, y);
}

struct Job {
  const Plane& g;
  const ConvInt8& job;
  const Tasks& t;
  const int64_t* offsets;
  const Meetings* meetings;

  void run(int64_t task, uint8_t* space) const {
    const int64_t row_tile = task % t.row_tiles, group = task / t.row_tiles % t.groups,
                  image = task / t.row_tiles / t.groups;
    const int64_t first = group * together, count = std::min(together, t.parts - first);
    uint8_t* padding = space + count * t.ring_bytes();
    const int32_t x_sign = job.x_type == ElementType::int8 ? 0x80 : 0,
                  y_sign = job.y_type == ElementType::int8 ? 0x80 : 0;
    std::memset(space, job.x_zero + x_sign,
                static_cast<size_t>(count * t.ring_bytes() + t.line_bytes));
    const RowTile b{g,
                    t,
                    offsets,
                    padding,
                    static_cast<uint8_t>(x_sign),
                    static_cast<uint8_t>(y_sign),
                    job.zero + y_sign,
                    job.low,
                    job.high,
                    row_groups(g),
                    weight_sets(job.w_zero != nullptr),
                    byte_size(job.y_type, 1),
                    meetings};
    Part parts[together];
    for (int64_t i = 0; i < count; ++i) {
      parts[i] = part_of(first + i, image);
      parts[i].ring = space + i * t.ring_bytes();
    }
    const int64_t end = g.out[0] * (row_tile + 1) / t.row_tiles;
    for (int64_t row = g.out[0] * row_tile / t.row_tiles; row < end; row += max_rows) {
      for (int64_t i = 0; i < count; ++i) run_rows(b, parts[i], row, std::min(max_rows, end - row));
    }
  }

 private:
  Part part_of(int64_t index, int64_t image) const {
    const int64_t channel = index * part, used = std::min(part, g.channels - channel);
    Part p;
    p.in = static_cast<const uint8_t*>(job.x) + image * g.in[0] * g.in[1] * g.channels + channel;
    p.out = static_cast<uint8_t*>(job.y) +
            byte_size(job.y_type, image * g.out[0] * g.out[1] * g.channels + channel);
    p.weights = job.weights + index * part_bytes(g) * weight_sets(job.w_zero != nullptr);
    p.mask = static_cast<__mmask16>((1 << used) - 1);
    const auto x_zero =
        static_cast<uint32_t>(job.x_zero + (job.x_type == ElementType::int8 ? 0x80 : 0));
    for (int64_t c = 0; c < used; ++c) {
      const int64_t m = channel + c;
      const auto bias = static_cast<uint32_t>(job.bias ? job.bias[m] : 0);
      const uint32_t term = bias - x_zero * static_cast<uint32_t>(job.weight_sums[m]);
      const bool negated = is_negated(job.w_zero, m);
      p.term[c] = static_cast<int32_t>(negated ? 0 - term : term);
      p.scale[c] = negated ? -job.scale[m] : job.scale[m];
      p.shift[c] = job.shift ? job.shift[m] : 0;
    }
    return p;
  }
};

}  // namespace

bool depthwise_vnni_applies(const ConvParams& shape) {
  return has_avx512_vnni() && shape.rank <= 2 && Plane(shape).kernel[0] <= max_kernel_rows;
}

int64_t depthwise_vnni_weights_size(const ConvParams& shape) {
  const Plane g(shape);
  return divide_up(g.channels, part) * part_bytes(g) * weight_sets(true);
}

void pack_depthwise_vnni(const ConvParams& shape, const int16_t* weights, const int32_t* zeros,
                         int8_t* out, int32_t* sums) {
  const Plane g(shape);
  const bool has_zeros = zeros != nullptr;
  const int64_t groups = row_groups(g), width = g.kernel[1], sets = weight_sets(has_zeros);
  std::memset(out, 0, static_cast<size_t>(divide_up(g.channels, part) * part_bytes(g) * sets));
  for (int64_t c = 0; c < g.channels; ++c) {
    const int sign = is_negated(zeros, c) ? -1 : 1;
    sums[c] = 0;
    for (int64_t t = 0; t < g.taps(); ++t) {
      const int given = weights[c * g.taps() + t], weight = sign * given,
                half = has_zeros ? weight / 2 : 0;
      const int64_t group = t / width * groups + t % width / 4;
      int8_t* to = out + c / part * part_bytes(g) * sets + group * group_bytes + c % part * 4 +
                   t % width % 4;
      *to = static_cast<int8_t>(weight - half);
      if (has_zeros) to[part_bytes(g)] = static_cast<int8_t>(half);
      sums[c] += given;
    }
  }
}

int64_t depthwise_vnni_scratch(const ConvParams& shape, int threads) {
  const Plane g(shape);
  return round_up(4 * row_groups(g), 16) * int64_t{sizeof(int64_t)} +
         max_scratch(threads, [&](int count) {
           return count *
                  (scratch_alignment + Tasks(g, count).worker_floats() * int64_t{sizeof(float)});
         });
}

void depthwise_vnni(const ConvParams& shape, const ConvInt8& job, void* scratch, ThreadPool& pool) {
  const Plane g(shape);
  const Tasks tasks(g, pool.threads());
  auto* offsets = static_cast<int64_t*>(scratch);
  const int64_t taps = round_up(4 * row_groups(g), 16);
  for (int64_t t = 0; t < taps; ++t) {
    const int64_t at = std::min(t, g.kernel[1] - 1) * g.dilation[1];
    offsets[t] = (at % g.stride[1] * tasks.entries + at / g.stride[1]) * part;
  }
  const PackedBlocks spaces(offsets + taps, pool.threads(), tasks.worker_floats());
  const Meetings meetings[max_rows] = {{g, 1}, {g, 2}};
  const Job all{g, job, tasks, offsets, meetings};
  const int64_t work =
      divide_up(g.out[0], tasks.row_tiles) * g.out[1] * part * together * g.taps() / 4;
  pool.parallel_for(tasks.count(g), divide_up(task_work, std::max<int64_t>(1, work)),
                    [&](int64_t begin, int64_t end, int worker) {
                      for (int64_t i = begin; i < end; ++i)
                        all.run(i, reinterpret_cast<uint8_t*>(spaces.space(worker)));
                    });
}

}  // namespace sardonyx::kernels

#else

namespace sardonyx::kernels {

bool depthwise_vnni_applies(const ConvParams&) { return false; }
int64_t depthwise_vnni_weights_size(const ConvParams&) { return 0; }
void pack_depthwise_vnni(const ConvParams&, const int16_t*, const int32_t*, int8_t*, int32_t*) {}
int64_t depthwise_vnni_scratch(const ConvParams&, int) { return 0; }
void depthwise_vnni(const ConvParams&, const ConvInt8&, void*, ThreadPool&) {}

}  // namespace sardonyx::kernels
#endif
