#include "kernels/conv/conv_int8.h"

#include <algorithm>
#include <array>
#include <cstring>

#include "kernels/conv/tap_lines.h"
#include "kernels/gemm/gemm_int8.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "kernels/conv/conv_int8.cc"
#include <hwy/foreach_target.h>
#include <hwy/highway.h>

HWY_BEFORE_NAMESPACE();
namespace sardonyx::kernels {
namespace HWY_NAMESPACE {
namespace hn = hwy::HWY_NAMESPACE;

// out[4 * i + c] = in[c][i] ^ mask; a channel that is not there is null and gives 0.
template <class D>
HWY_INLINE void InterleavePart(D d, const uint8_t* const* in, int64_t i, uint8_t mask,
                               uint8_t* out) {
  const auto load = [&](int c) HWY_ATTR {
    return in[c] ? hn::Xor(hn::LoadU(d, in[c] + i), hn::Set(d, mask)) : hn::Zero(d);
  };
  hn::StoreInterleaved4(load(0), load(1), load(2), load(3), d, out + 4 * i);
}

void InterleaveRow(const uint8_t* const* in, int64_t n, uint8_t mask, uint8_t* out) {
  const hn::ScalableTag<uint8_t> d;
  const hn::CappedTag<uint8_t, 16> short_d;
  const auto lanes = static_cast<int64_t>(hn::Lanes(d)),
             few = static_cast<int64_t>(hn::Lanes(short_d));
  int64_t i = 0;
  for (; i + lanes <= n; i += lanes) InterleavePart(d, in, i, mask, out);
  for (; i + few <= n; i += few) InterleavePart(short_d, in, i, mask, out);
  for (; i < n; ++i) {
    for (int c = 0; c < 4; ++c)
      out[4 * i + c] = in[c] ? static_cast<uint8_t>(in[c][i] ^ mask) : uint8_t{0};
  }
}

// Of each line: sums[j] = sum over t of weights[4 * t] * plane[offsets[t] + j * stride], or, where
// `ones`, of the plane alone. Floats hold every partial sum exactly: at most conv_int8_max_taps
// products below 2^15.
void TapSums(const uint8_t* plane, const TapLines& at, const int8_t* weights, bool ones,
             int32_t* sums) {
  const hn::ScalableTag<float> d;
  const hn::RebindToSigned<decltype(d)> di;
  const hn::RebindToUnsigned<decltype(d)> du;
  const hn::Rebind<uint8_t, decltype(d)> d8;
  const hn::Rebind<uint16_t, decltype(d)> d16;
  const auto lanes = static_cast<int64_t>(hn::Lanes(d));
  const auto load = [&](const uint8_t* from, int64_t left) HWY_ATTR {
    if (at.stride == 1) return hn::PromoteTo(du, hn::LoadU(d8, from));
    if (at.stride == 2) {
      HWY_ALIGN uint16_t pairs[hn::MaxLanes(d)];
      std::memcpy(pairs, from, sizeof pairs);
      return hn::And(hn::PromoteTo(du, hn::LoadU(d16, pairs)), hn::Set(du, 0xff));
    }
    HWY_ALIGN uint32_t values[hn::MaxLanes(d)] = {};
    for (int64_t l = 0; l < std::min(lanes, left); ++l) values[l] = from[l * at.stride];
    return hn::Load(du, values);
  };
  for (int64_t line = 0; line < at.lines; ++line, plane += at.line_stride, sums += at.count) {
    for (int64_t j = 0; j < at.count; j += lanes) {
      auto sum = hn::Zero(d);
      for (int64_t t = 0; t < at.taps; ++t) {
        const auto wide = load(plane + at.offsets[t] + j * at.stride, at.count - j);
        const auto x = hn::ConvertTo(d, hn::BitCast(di, wide));
        const float weight = ones ? 1.0f : static_cast<float>(weights[4 * t]);
        sum = hn::MulAdd(x, hn::Set(d, weight), sum);
      }
      hn::StoreU(hn::ConvertTo(di, sum), di, sums + j);
    }
  }
}

}  // namespace HWY_NAMESPACE
}  // namespace sardonyx::kernels
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace sardonyx::kernels {

HWY_EXPORT(InterleaveRow);
HWY_EXPORT(TapSums);

namespace {

constexpr int64_t width = byte_panel_columns;
constexpr int64_t row_block = 48;

int64_t aligned_bytes(int64_t bytes) { return (bytes + 63) / 64 * 64; }

struct Sizes {
  int64_t in[3] = {1, 1, 1}, out[3] = {1, 1, 1}, kernel[3] = {1, 1, 1}, stride[3] = {1, 1, 1},
          dilation[3] = {1, 1, 1}, pad[3] = {};
  int64_t padded[3];                              // the part of the padded input that is read
  int64_t channels, rows, taps, groups, columns;  // of one group; channels in groups
  int64_t in_pixels, out_pixels, volume;          // volume: of the padded input

  explicit Sizes(const ConvParams& s) {
    for (int i = 0; i < s.rank; ++i) {
      const int to = 3 - s.rank + i;
      const auto from = static_cast<size_t>(i);
      in[to] = s.in[from], out[to] = s.out[from], kernel[to] = s.kernel[from];
      stride[to] = s.stride[from], dilation[to] = s.dilation[from], pad[to] = s.pad_begin[from];
    }
    if (reads_images()) join_lines();
    for (int i = 0; i < 3; ++i)
      padded[i] =
          std::max<int64_t>(0, (out[i] - 1) * stride[i] + (kernel[i] - 1) * dilation[i] + 1);
    channels = s.in_channels / s.group, rows = s.out_channels / s.group;
    taps = kernel[0] * kernel[1] * kernel[2], columns = (channels + 3) / 4, groups = columns * taps;
    in_pixels = in[0] * in[1] * in[2], out_pixels = out[0] * out[1] * out[2];
    volume = padded[0] * padded[1] * padded[2];
  }
  // Windows of one pixel each, one after the other.
  bool reads_images() const {
    return std::ranges::all_of(std::array{0, 1, 2}, [&](int i) {
      return kernel[i] == 1 && stride[i] == 1 && pad[i] == 0 && in[i] == out[i];
    });
  }
  void join_lines() {
    in[2] *= in[0] * in[1], in[0] = in[1] = 1;
    out[2] *= out[0] * out[1], out[0] = out[1] = 1;
  }
  int64_t panels() const { return (out_pixels + width - 1) / width; }
  int64_t row_bytes() const { return 4 * groups; }
  // Output channels of a task: fewer where there are too few panels for several threads.
  int64_t block(int64_t groups) const {
    const int64_t wanted = (8 + panels() * groups - 1) / std::max<int64_t>(1, panels() * groups);
    const int64_t each = (rows + wanted - 1) / wanted;
    return std::max<int64_t>(1, (each + row_block - 1) / row_block * row_block);
  }
};

int64_t image_bytes(const Sizes& z, int64_t group) {
  return aligned_bytes(group * z.columns * z.volume * 4);
}
int64_t panel_bytes(const Sizes& z) { return z.groups * width * 4; }

// One image with four channels side by side, its padding filled with the zero point.
void interleave(const Sizes& z, const ConvParams& shape, const uint8_t* x, uint8_t mask,
                uint8_t zero, uint8_t* image, ThreadPool& pool) {
  const int64_t line = z.padded[2], lines = z.padded[0] * z.padded[1];
  pool.parallel_for(
      shape.group * z.columns * lines, std::max<int64_t>(1, 4096 / std::max<int64_t>(1, line)),
      [&](int64_t begin, int64_t end, int) {
        for (int64_t i = begin; i < end; ++i) {
          const int64_t column = i / lines % z.columns, g = i / lines / z.columns;
          const int64_t at[2] = {i % lines / z.padded[1] - z.pad[0], i % z.padded[1] - z.pad[1]};
          auto* to = image + i * line * 4;
          const int64_t some = std::min<int64_t>(4, z.channels - 4 * column);
          const int64_t left = std::clamp<int64_t>(z.pad[2], 0, line),
                        from = std::max<int64_t>(0, -z.pad[2]),
                        inside = std::clamp<int64_t>(z.in[2] - from, 0, line - left);
          const bool outside =
              at[0] < 0 || at[0] >= z.in[0] || at[1] < 0 || at[1] >= z.in[1] || inside == 0;
          const auto fill = [&](int64_t first, int64_t count) {
            for (int64_t j = first; j < first + count; ++j) {
              for (int64_t c = 0; c < 4; ++c) to[4 * j + c] = c < some ? zero : uint8_t{0};
            }
          };
          if (outside) {
            fill(0, line);
            continue;
          }
          const uint8_t* planes[4] = {};
          for (int64_t c = 0; c < some; ++c) {
            planes[c] = x + (g * z.channels + 4 * column + c) * z.in_pixels +
                        (at[0] * z.in[1] + at[1]) * z.in[2] + from;
          }
          fill(0, left);
          HWY_DYNAMIC_DISPATCH(InterleaveRow)(planes, inside, mask, to + 4 * left);
          fill(left + inside, line - left - inside);
        }
      });
}

// Output positions [first, first + count) as runs that lie in one row.
struct Runs {
  int64_t count = 0;
  int64_t at[width], size[width], base[width];  // base: of the first tap, in groups of the image

  Runs(const Sizes& z, int64_t first, int64_t pixels) {
    for (int64_t j = 0; j < pixels;) {
      const int64_t p = first + j, w = p % z.out[2], h = p / z.out[2] % z.out[1],
                    d = p / z.out[2] / z.out[1];
      at[count] = j;
      size[count] = std::min(pixels - j, z.out[2] - w);
      base[count] =
          (d * z.stride[0] * z.padded[1] + h * z.stride[1]) * z.padded[2] + w * z.stride[2];
      j += size[count++];
    }
  }
};

void fill_panel(const Sizes& z, const Runs& runs, const uint8_t* image, uint8_t* panel) {
  const int64_t stride = z.stride[2];
  for (int64_t column = 0; column < z.columns; ++column) {
    for (int64_t d = 0; d < z.kernel[0]; ++d) {
      for (int64_t h = 0; h < z.kernel[1]; ++h) {
        for (int64_t w = 0; w < z.kernel[2]; ++w, panel += 4 * width) {
          const int64_t tap = (d * z.dilation[0] * z.padded[1] + h * z.dilation[1]) * z.padded[2] +
                              w * z.dilation[2];
          for (int64_t r = 0; r < runs.count; ++r) {
            const uint8_t* from = image + 4 * (column * z.volume + runs.base[r] + tap);
            uint8_t* to = panel + 4 * runs.at[r];
            if (stride == 1) {
              std::memcpy(to, from, static_cast<size_t>(4 * runs.size[r]));
              continue;
            }
            for (int64_t j = 0; j < runs.size[r]; ++j)
              std::memcpy(to + 4 * j, from + 4 * j * stride, 4);
          }
        }
      }
    }
  }
}

// What the sums of output channels from `channel` on become: one after the other in rows of
// `width`. The terms wrap, as those of the standard's int32 do.
struct ChannelFinish {
  int64_t channel, count;
  int32_t term[row_block], w_zero[row_block];
  ByteFinish how;

  ChannelFinish(const Sizes& z, const ConvInt8& job, int64_t channel, int64_t count,
                const int32_t* pixel_sums)
      : channel(channel), count(count) {
    const auto terms = static_cast<uint32_t>(z.channels * z.taps);
    for (int64_t r = 0; r < count; ++r) {
      const int64_t m = channel + r;
      w_zero[r] = job.w_zero ? job.w_zero[m] : 0;
      term[r] = static_cast<int32_t>(static_cast<uint32_t>(job.bias ? job.bias[m] : 0) -
                                     static_cast<uint32_t>(job.x_zero) *
                                         (static_cast<uint32_t>(job.weight_sums[m]) -
                                          terms * static_cast<uint32_t>(w_zero[r])));
    }
    how.term = term;
    how.scale = job.scale ? job.scale + channel : nullptr;
    how.bias = job.shift ? job.shift + channel : nullptr;
    how.type = job.y_type, how.zero = job.zero;
    how.low = job.low, how.high = job.high;
    if (job.w_zero) how.factor = pixel_sums;
  }
  // Of so many pixels. `to`: where they begin in each channel of the output.
  void operator()(const Sizes& z, const ConvInt8& job, const int32_t* sums, int64_t pixels,
                  int64_t to) const {
    to += channel * z.out_pixels;
    if (!job.sums) {
      finish_bytes(how, {sums, w_zero, count}, pixels,
                   static_cast<uint8_t*>(job.y) + byte_size(job.y_type, to), z.out_pixels);
      return;
    }
    for (int64_t r = 0; r < count; ++r, sums += width, to += z.out_pixels) {
      for (int64_t j = 0; j < pixels; ++j) {
        const uint32_t pixel = how.factor ? static_cast<uint32_t>(how.factor[j]) : 0;
        job.sums[to + j] =
            static_cast<int32_t>(static_cast<uint32_t>(sums[j]) + static_cast<uint32_t>(term[r]) -
                                 pixel * static_cast<uint32_t>(w_zero[r]));
      }
    }
  }
};

// --- one input channel in a group

constexpr int64_t plane_slack = 256;  // bytes that whole vectors read beyond the plane

int64_t plane_bytes(const Sizes& z) { return aligned_bytes(z.volume + plane_slack); }

// The part of a plane that is read, with its padding.
void pad_plane(const Sizes& z, const uint8_t* x, uint8_t mask, uint8_t zero, uint8_t* out) {
  std::memset(out, zero, static_cast<size_t>(z.volume));
  const int64_t left = std::clamp<int64_t>(z.pad[2], 0, z.padded[2]),
                from = std::max<int64_t>(0, -z.pad[2]),
                inside = std::clamp<int64_t>(z.in[2] - from, 0, z.padded[2] - left);
  for (int64_t d = 0; d < z.padded[0]; ++d) {
    for (int64_t h = 0; h < z.padded[1]; ++h) {
      const int64_t at_d = d - z.pad[0], at_h = h - z.pad[1];
      if (at_d < 0 || at_d >= z.in[0] || at_h < 0 || at_h >= z.in[1]) continue;
      const uint8_t* row = x + (at_d * z.in[1] + at_h) * z.in[2] + from;
      uint8_t* to = out + (d * z.padded[1] + h) * z.padded[2] + left;
      for (int64_t j = 0; j < inside; ++j) to[j] = static_cast<uint8_t>(row[j] ^ mask);
    }
  }
}

// Every output channel of one input channel.
void run_plane(const Sizes& z, const ConvInt8& job, int64_t group, const uint8_t* plane,
               int64_t y) {
  int64_t offsets[conv_int8_max_taps];
  int64_t taps = 0;
  for (int64_t d = 0; d < z.kernel[0]; ++d) {
    for (int64_t h = 0; h < z.kernel[1]; ++h) {
      for (int64_t w = 0; w < z.kernel[2]; ++w)
        offsets[taps++] =
            (d * z.dilation[0] * z.padded[1] + h * z.dilation[1]) * z.padded[2] + w * z.dilation[2];
    }
  }
  // Short lines are finished several at a time; whole vectors are written beyond the last.
  alignas(64) int32_t sums[2 * width], pixel_sums[2 * width];
  const int8_t* weights = job.weights + group * (z.rows + 1) * z.row_bytes();
  const int64_t lines = z.out[0] * z.out[1], piece = std::min(width, z.out[2]);
  const bool flat = z.out[0] == 1 && z.out[2] <= width;
  const int64_t together = flat ? width / z.out[2] : 1;
  const auto compute = [&](const int8_t* taps_of_row, bool ones, int64_t first, int64_t end,
                           int64_t w, int64_t count, int32_t* to) {
    const int64_t d = first / z.out[1], h = first % z.out[1];
    const int64_t row = d * z.stride[0] * z.padded[1] + h * z.stride[1];
    const TapLines at{offsets, taps, end - first, z.stride[1] * z.padded[2], count, z.stride[2]};
    HWY_DYNAMIC_DISPATCH(TapSums)
    (plane + row * z.padded[2] + w * z.stride[2], at, taps_of_row, ones, to);
  };
  for (int64_t line = 0; line < lines; line += together) {
    const int64_t end = std::min(lines, line + together);
    for (int64_t w = 0; w < z.out[2]; w += piece) {
      const int64_t count = std::min(piece, z.out[2] - w);
      if (job.w_zero) compute(weights, true, line, end, w, count, pixel_sums);
      for (int64_t r = 0; r < z.rows; ++r) {
        compute(weights + r * z.row_bytes(), false, line, end, w, count, sums);
        ChannelFinish(z, job, group * z.rows + r, 1, pixel_sums)(z, job, sums, (end - line) * count,
                                                                 y + line * z.out[2] + w);
      }
    }
  }
}

void run_planes(const Sizes& z, const ConvParams& shape, const ConvInt8& job, uint8_t mask,
                uint8_t* scratch, ThreadPool& pool) {
  const int64_t work = z.out_pixels * z.taps * z.rows + z.volume;
  pool.parallel_for(
      shape.batch * shape.group, std::max<int64_t>(1, 100000 / std::max<int64_t>(1, work)),
      [&](int64_t begin, int64_t end, int worker) {
        uint8_t* plane = scratch + worker * plane_bytes(z);
        for (int64_t i = begin; i < end; ++i) {
          const int64_t n = i / shape.group;
          pad_plane(z, static_cast<const uint8_t*>(job.x) + i * z.in_pixels, mask,
                    static_cast<uint8_t>(job.x_zero), plane);
          run_plane(z, job, i % shape.group, plane, n * shape.out_channels * z.out_pixels);
        }
      });
}

struct Task {
  int64_t group, panel, first, end;  // output channels [first, end) of the group
};

void run_task(const Sizes& z, const ConvInt8& job, const Task& task, const uint8_t* image,
              int64_t y, uint8_t* panel) {
  const int64_t first = task.panel * width, count = std::min(width, z.out_pixels - first);
  const int64_t bytes = z.row_bytes();
  const int8_t* weights = job.weights + task.group * (z.rows + 1) * bytes;
  fill_panel(z, Runs(z, first, count), image + task.group * z.columns * z.volume * 4, panel);
  alignas(64) int32_t pixel_sums[width];
  if (job.w_zero)
    byte_panel_product(false, weights + z.rows * bytes, bytes, 1, z.groups, panel, count,
                       pixel_sums);
  alignas(64) int32_t sums[row_block * width];
  for (int64_t i = task.first; i < task.end; i += row_block) {
    const int64_t some = std::min(row_block, task.end - i);
    byte_panel_product(false, weights + i * bytes, bytes, some, z.groups, panel, count, sums);
    ChannelFinish(z, job, task.group * z.rows + i, some, pixel_sums)(z, job, sums, count,
                                                                     y + first);
  }
}

}  // namespace

int64_t conv_int8_weights_size(const ConvParams& shape) {
  const Sizes z(shape);
  return (shape.out_channels + shape.group) * z.row_bytes();
}

void pack_conv_int8_weights(const ConvParams& shape, ElementType type, const void* w, int8_t* out,
                            int32_t* sums, ThreadPool& pool) {
  const Sizes z(shape);
  const auto* from = static_cast<const uint8_t*>(w);
  const auto mask = static_cast<uint8_t>(type == ElementType::int8 ? 0 : 0x80);
  const auto pack_row = [&](int64_t m) {
    const int64_t g = m / (z.rows + 1), row = m % (z.rows + 1);
    const bool ones = row == z.rows;
    int8_t* const to = out + m * z.row_bytes();
    std::memset(to, 0, static_cast<size_t>(z.row_bytes()));
    int32_t sum = 0;
    for (int64_t c = 0; c < z.channels; ++c) {
      for (int64_t t = 0; t < z.taps; ++t) {
        const int64_t at = ((g * z.rows + row) * z.channels + c) * z.taps + t;
        const auto value = ones ? int8_t{1} : static_cast<int8_t>(from[at] ^ mask);
        to[(c / 4 * z.taps + t) * 4 + c % 4] = value;
        sum += value;
      }
    }
    if (!ones) sums[g * z.rows + row] = sum;
  };
  constexpr int64_t task = 32768;  // bytes
  pool.parallel_for(shape.out_channels + shape.group,
                    std::max<int64_t>(1, task / std::max<int64_t>(1, z.row_bytes())),
                    [&](int64_t begin, int64_t end, int) {
                      for (int64_t m = begin; m < end; ++m) pack_row(m);
                    });
}

int64_t conv_int8_scratch_bytes(const ConvParams& shape, int threads) {
  const Sizes z(shape);
  if (z.channels == 1) return plane_bytes(z) * threads;
  return image_bytes(z, shape.group) + panel_bytes(z) * threads;
}

void conv_int8(const ConvParams& shape, const ConvInt8& given, void* scratch, ThreadPool& pool) {
  const Sizes z(shape);
  if (z.out_pixels == 0 || shape.out_channels == 0) return;
  ConvInt8 job = given;
  const auto mask = static_cast<uint8_t>(job.x_type == ElementType::int8 ? 0x80 : 0);
  job.x_zero += sign_offset(job.x_type, false);
  if (z.channels == 1) return run_planes(z, shape, job, mask, static_cast<uint8_t*>(scratch), pool);
  auto* image = static_cast<uint8_t*>(scratch);
  auto* panels = image + image_bytes(z, shape.group);
  const int64_t block = z.block(shape.group), blocks = (z.rows + block - 1) / block;
  const int64_t tasks = shape.group * z.panels() * blocks;
  const int64_t work = z.groups * width * (std::min(block, z.rows) + 8);
  for (int64_t n = 0; n < shape.batch; ++n) {
    const auto* x = static_cast<const uint8_t*>(job.x) + n * shape.in_channels * z.in_pixels;
    const int64_t y = n * shape.out_channels * z.out_pixels;
    interleave(z, shape, x, mask, static_cast<uint8_t>(job.x_zero), image, pool);
    pool.parallel_for(
        tasks, std::max<int64_t>(1, 400000 / std::max<int64_t>(1, work)),
        [&](int64_t begin, int64_t end, int worker) {
          uint8_t* panel = panels + worker * panel_bytes(z);
          for (int64_t i = begin; i < end; ++i) {
            const int64_t b = i % blocks, p = i / blocks % z.panels(), g = i / blocks / z.panels();
            run_task(z, job, {g, p, b * block, std::min(z.rows, (b + 1) * block)}, image, y, panel);
          }
        });
  }
}

}  // namespace sardonyx::kernels
#endif
