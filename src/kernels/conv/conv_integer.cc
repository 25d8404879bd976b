#include "kernels/conv/conv_integer.h"

#include <algorithm>
#include <cstddef>

#include "kernels/gemm/integer.h"

namespace sardonyx::kernels {
namespace {

constexpr int64_t width = integer_panel_columns;

struct Sizes {
  int64_t in[3] = {1, 1, 1}, out[3] = {1, 1, 1}, kernel[3] = {1, 1, 1}, stride[3] = {1, 1, 1},
          dilation[3] = {1, 1, 1}, pad[3] = {};
  int64_t channels, rows, taps, terms, in_pixels, out_pixels;  // of one group

  explicit Sizes(const ConvParams& s) {
    for (int i = 0; i < s.rank; ++i) {
      const int to = 3 - s.rank + i;
      const auto from = static_cast<size_t>(i);
      in[to] = s.in[from], out[to] = s.out[from], kernel[to] = s.kernel[from];
      stride[to] = s.stride[from], dilation[to] = s.dilation[from], pad[to] = s.pad_begin[from];
    }
    channels = s.in_channels / s.group, rows = s.out_channels / s.group;
    taps = kernel[0] * kernel[1] * kernel[2], terms = channels * taps;
    in_pixels = in[0] * in[1] * in[2], out_pixels = out[0] * out[1] * out[2];
  }
  int64_t panels() const { return (out_pixels + width - 1) / width; }
};

int64_t aligned_bytes(int64_t bytes) { return (bytes + 63) / 64 * 64; }
int64_t panel_bytes(const Sizes& z) {
  return aligned_bytes(integer_pairs(z.terms) * 2 * width * 2);
}
int64_t sums_bytes(const Sizes& z) { return aligned_bytes(z.rows * width * 4); }

// Where one position of the kernel lies for each column of a panel, the same in every channel.
struct Tap {
  int64_t first = -1;  // of 32 neighbouring elements inside the plane; -1 where they are not
  int16_t mask[width] = {};
  int64_t at[width] = {};  // -1 outside
};

// The input columns of one panel of output positions, two terms side by side.
template <class X>
class Columns {
 public:
  Columns(const Sizes& z, int64_t first, int64_t count) : z_(z), count_(count) {
    for (int64_t j = 0; j < count; ++j) {
      const int64_t p = first + j;
      const int64_t at[3] = {p / (z.out[1] * z.out[2]), p / z.out[2] % z.out[1], p % z.out[2]};
      for (int i = 0; i < 3; ++i) origin_[i][j] = at[i] * z.stride[i] - z.pad[i];
    }
  }

  void fill(const X* x, int32_t zero, int16_t* panel) const {
    constexpr int64_t max_taps = 49;
    if (z_.taps > max_taps) return fill_singly(x, zero, panel);
    Tap taps[max_taps];
    for (int64_t i = 0; i < z_.taps; ++i) set(taps[i], i);
    static constexpr Tap nothing{};
    int64_t channel = 0, tap = 0;
    for (int64_t term = 0; term < z_.terms; term += 2) {
      const Tap &a = taps[tap], &b = next(channel, tap, term) ? taps[tap] : nothing;
      const X* to_a = x + (term / z_.taps) * z_.in_pixels;
      const X* to_b = x + channel * z_.in_pixels;
      int16_t* to = panel + term * width;
      if (a.first >= 0 && (b.first >= 0 || &b == &nothing)) {
        const bool both = &b != &nothing;
        pair_terms(to_a + a.first, a.mask, both ? to_b + b.first : to_a + a.first, b.mask, zero,
                   to);
      } else {
        std::fill_n(to, 2 * width, int16_t{0});
        copy(to_a, a, zero, to);
        if (&b != &nothing) copy(to_b, b, zero, to + 1);
      }
      if (++tap == z_.taps) tap = 0, ++channel;
    }
  }

 private:
  // From the first term of a pair to the second; false where there is none.
  bool next(int64_t& channel, int64_t& tap, int64_t term) const {
    if (++tap == z_.taps) tap = 0, ++channel;
    return term + 1 < z_.terms;
  }

  // A position of the kernel, by how far it is from the origin.
  struct Offset {
    int64_t d, h, w;
  };
  Offset offset_of(int64_t tap) const {
    return {tap / (z_.kernel[1] * z_.kernel[2]) * z_.dilation[0],
            tap / z_.kernel[2] % z_.kernel[1] * z_.dilation[1],
            tap % z_.kernel[2] * z_.dilation[2]};
  }

  int64_t place(const Offset& from, int64_t j) const {
    const int64_t z = origin_[0][j] + from.d, y = origin_[1][j] + from.h,
                  x = origin_[2][j] + from.w;
    const bool inside = z >= 0 && z < z_.in[0] && y >= 0 && y < z_.in[1] && x >= 0 && x < z_.in[2];
    return inside ? (z * z_.in[1] + y) * z_.in[2] + x : -1;
  }

  void set(Tap& tap, int64_t index) const {
    const Offset from = offset_of(index);
    int64_t begin = 0;
    bool neighbours = true, any = false;
    for (int64_t j = 0; j < count_; ++j) {
      tap.at[j] = place(from, j);
      tap.mask[j] = tap.at[j] < 0 ? 0 : -1;
      if (tap.at[j] < 0) continue;
      if (!any) begin = tap.at[j] - j;
      neighbours &= tap.at[j] - j == begin;
      any = true;
    }
    if (!any) begin = 0;
    if (neighbours && begin >= 0 && begin + width <= z_.in_pixels) tap.first = begin;
  }

  void copy(const X* plane, const Tap& tap, int32_t zero, int16_t* to) const {
    for (int64_t j = 0; j < count_; ++j) {
      if (tap.at[j] >= 0) to[2 * j] = static_cast<int16_t>(plane[tap.at[j]] - zero);
    }
  }

  void fill_singly(const X* x, int32_t zero, int16_t* panel) const {
    std::fill_n(panel, integer_pairs(z_.terms) * 2 * width, int16_t{0});
    for (int64_t term = 0; term < z_.terms; ++term) {
      const X* plane = x + term / z_.taps * z_.in_pixels;
      int16_t* to = panel + term / 2 * 2 * width + term % 2;
      const Offset from = offset_of(term % z_.taps);
      for (int64_t j = 0; j < count_; ++j) {
        const int64_t at = place(from, j);
        if (at >= 0) to[2 * j] = static_cast<int16_t>(plane[at] - zero);
      }
    }
  }

  const Sizes& z_;
  int64_t count_;
  int64_t origin_[3][width];
};

template <class X>
void fill_panel(const Sizes& z, int64_t first, int64_t count, const X* x, int32_t zero,
                int16_t* panel) {
  Columns<X>(z, first, count).fill(x, zero, panel);
}

void store(const ConvRequantize& how, const Sizes& z, int32_t* sums, int64_t channel, int64_t at,
           int64_t count) {
  Requantize rows;
  rows.scale = how.scale + (how.scale_each ? channel : 0), rows.scale_row = how.scale_each ? 1 : 0;
  rows.zero = &how.zero;
  for (int64_t r = 0; how.bias && r < z.rows; ++r) {
    const auto bias = static_cast<uint32_t>(how.bias[channel + r]);
    for (int64_t j = 0; j < count; ++j)
      sums[r * width + j] = static_cast<int32_t>(static_cast<uint32_t>(sums[r * width + j]) + bias);
  }
  requantize(how.type, rows, sums, width, z.rows, count, static_cast<uint8_t*>(how.y) + at,
             z.out_pixels);
}

}  // namespace

int64_t conv_integer_weights_size(const ConvParams& shape) {
  return integer_rows_size(shape.out_channels, Sizes(shape).terms);
}

void pack_conv_integer_weights(const ConvParams& shape, ElementType type, const void* w,
                               const int32_t* zero, bool zero_each, int16_t* packed,
                               ThreadPool& pool) {
  const int64_t terms = Sizes(shape).terms;
  pack_integer_rows(type, w, terms, 1, shape.out_channels, terms, zero, zero_each, packed, pool);
}

int64_t conv_integer_scratch_bytes(const ConvParams& shape, int threads) {
  const Sizes z(shape);
  return (panel_bytes(z) + sums_bytes(z)) * threads;
}

void conv_integer(const ConvParams& shape, ElementType x_type, const void* x, int32_t x_zero,
                  const int16_t* weights, int32_t* sums, const ConvRequantize* how, void* scratch,
                  ThreadPool& pool) {
  const Sizes z(shape);
  const int64_t pairs = integer_pairs(z.terms), panels = z.panels(),
                each = panel_bytes(z) + sums_bytes(z);
  const int64_t grain =
      std::max<int64_t>(1, 200000 / std::max<int64_t>(1, z.terms * width * (z.rows + 4)));
  pool.parallel_for(
      shape.batch * shape.group * panels, grain, [&](int64_t begin, int64_t end, int worker) {
        auto* panel = reinterpret_cast<int16_t*>(static_cast<std::byte*>(scratch) + worker * each);
        auto* own = reinterpret_cast<int32_t*>(static_cast<std::byte*>(scratch) + worker * each +
                                               panel_bytes(z));
        for (int64_t i = begin; i < end; ++i) {
          const int64_t first = i % panels * width, count = std::min(width, z.out_pixels - first);
          const int64_t g = i / panels % shape.group, n = i / panels / shape.group;
          const int64_t image = (n * shape.in_channels + g * z.channels) * z.in_pixels;
          if (x_type == ElementType::int8)
            fill_panel(z, first, count, static_cast<const int8_t*>(x) + image, x_zero, panel);
          else
            fill_panel(z, first, count, static_cast<const uint8_t*>(x) + image, x_zero, panel);
          const int16_t* rows = weights + g * z.rows * pairs * 2;
          const int64_t channel = g * z.rows,
                        at = (n * shape.out_channels + channel) * z.out_pixels + first;
          if (how == nullptr) {
            integer_panel_product(rows, z.rows, pairs, panel, count, sums + at, z.out_pixels);
          } else {
            integer_panel_product(rows, z.rows, pairs, panel, count, own, width);
            store(*how, z, own, channel, at, count);
          }
        }
      });
}

}  // namespace sardonyx::kernels
