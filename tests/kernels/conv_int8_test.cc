// Convolutions of bytes in both layouts, against sums of integers one by one.
#include <algorithm>
#include <cmath>
#include <functional>
#include <limits>
#include <numeric>
#include <random>
#include <type_traits>

#include "kernels/conv/conv_int8.h"
#include "kernels/conv/conv_int8_nhwc.h"
#include "kernels/rows_support.h"
#include "sanitized.h"

namespace sardonyx::kernels {
namespace {

using test::each_target;
using test::one_thread;
using test::two_threads;

struct Case {
  ConvParams shape;
  ElementType x_type, w_type, y_type;
  std::vector<uint8_t> x, w;  // N x C x spatial
  std::vector<int32_t> bias, w_zero;
  std::vector<float> scale;
  int32_t x_zero = 0, y_zero = 0;
  std::vector<uint8_t> addend;  // N x C x spatial, or none
  ByteSum sum;
  std::vector<float> shift;  // where y is float32; or none
  float low = -std::numeric_limits<float>::infinity();
  float high = std::numeric_limits<float>::infinity();
};

uint8_t rounded(ElementType type, float v) {
  const bool is_signed = type == ElementType::int8;
  return static_cast<uint8_t>(std::clamp<int64_t>(static_cast<int64_t>(std::nearbyint(v)),
                                                  is_signed ? -128 : 0, is_signed ? 127 : 255));
}

int32_t value(ElementType type, uint8_t byte) {
  return type == ElementType::int8 ? static_cast<int8_t>(byte) : byte;
}

int64_t product(const ConvParams& s, const ConvParams::Dims& dims) {
  return std::accumulate(dims.begin(), dims.begin() + s.rank, int64_t{1}, std::multiplies<>());
}
int64_t in_pixels(const ConvParams& s) { return product(s, s.in); }
int64_t out_pixels(const ConvParams& s) { return product(s, s.out); }

// The pixel of the input, or -1, that a tap of a window meets.
int64_t met(const ConvParams& s, int64_t window, int64_t tap) {
  int64_t pixel = 0, step = 1;
  for (auto i = static_cast<size_t>(s.rank); i-- > 0;) {
    const int64_t at =
        window % s.out[i] * s.stride[i] + tap % s.kernel[i] * s.dilation[i] - s.pad_begin[i];
    if (at < 0 || at >= s.in[i]) return -1;
    pixel += at * step;
    step *= s.in[i], window /= s.out[i], tap /= s.kernel[i];
  }
  return pixel;
}

float of_byte(const ByteScale& how, uint8_t byte) {
  return static_cast<float>(value(how.type, byte) - how.zero) * how.scale;
}

uint8_t added(const Case& c, uint8_t first, uint8_t second) {
  const float sum = of_byte(c.sum.first, first) + of_byte(c.sum.second, second);
  const float quotient = (c.sum.relu ? std::max(sum, 0.0f) : sum) / c.sum.y.scale;
  return rounded(c.sum.y.type, std::nearbyint(quotient) + static_cast<float>(c.sum.y.zero));
}

// Of element i of y [batch, out_channels, pixels], straight from the definition, without a bias.
int64_t exact_sum(const Case& c, int64_t i) {
  const ConvParams& s = c.shape;
  const int64_t group_in = s.in_channels / s.group, group_out = s.out_channels / s.group,
                taps = product(s, s.kernel);
  const int64_t pixel = i % out_pixels(s), m = i / out_pixels(s) % s.out_channels,
                n = i / out_pixels(s) / s.out_channels;
  int64_t sum = 0;
  for (int64_t k = 0; k < group_in; ++k) {
    for (int64_t t = 0; t < taps; ++t) {
      const int64_t from = met(s, pixel, t);
      if (from < 0) continue;
      const int64_t channel = m / group_out * group_in + k;
      const auto at = (n * s.in_channels + channel) * in_pixels(s) + from;
      const auto wt = (m * group_in + k) * taps + t;
      sum += int64_t{value(c.x_type, c.x[static_cast<size_t>(at)]) - c.x_zero} *
             (value(c.w_type, c.w[static_cast<size_t>(wt)]) - c.w_zero[static_cast<size_t>(m)]);
    }
  }
  return sum;
}

size_t channel_of(const Case& c, int64_t i) {
  return static_cast<size_t>(i / out_pixels(c.shape) % c.shape.out_channels);
}

int64_t y_size(const ConvParams& s) { return s.batch * s.out_channels * out_pixels(s); }

std::vector<uint8_t> expected(const Case& c) {
  std::vector<uint8_t> y;
  for (int64_t i = 0; i < y_size(c.shape); ++i) {
    const size_t m = channel_of(c, i);
    const float scaled = static_cast<float>(exact_sum(c, i) + c.bias[m]) * c.scale[m];
    const uint8_t byte = rounded(c.y_type, std::nearbyint(scaled) + static_cast<float>(c.y_zero));
    y.push_back(c.addend.empty() ? byte : added(c, byte, c.addend[static_cast<size_t>(i)]));
  }
  return y;
}

// [n, channels, pixels] as [n, pixels, channels], or back.
template <class T>
std::vector<T> transposed(const std::vector<T>& from, int64_t n, int64_t rows, int64_t columns) {
  std::vector<T> to(from.size());
  for (int64_t i = 0; i < n * rows * columns; ++i) {
    const int64_t image = i / (rows * columns), r = i / columns % rows, c = i % columns;
    to[static_cast<size_t>((image * columns + c) * rows + r)] = from[static_cast<size_t>(i)];
  }
  return to;
}

template <class T>
T* aligned(std::vector<std::byte>& memory, int64_t bytes) {
  memory.assign(static_cast<size_t>(bytes) + 64, std::byte{0xa5});
  auto at = reinterpret_cast<uintptr_t>(memory.data());
  return reinterpret_cast<T*>((at + 63) / 64 * 64);
}

// Y: uint8_t for all bytes, or float.
template <class Y = uint8_t>
std::vector<Y> run(const Case& c, bool last, ThreadPool& pool) {
  ConvParams s = c.shape;
  s.nhwc = last;
  const int64_t channels = conv_int8_nhwc_channels(s);
  std::vector<int32_t> sums(static_cast<size_t>(channels)), zeros(sums.size());
  std::vector<float> scale(sums.size()), shift(sums.size());
  std::copy(c.scale.begin(), c.scale.end(), scale.begin());
  std::copy(c.shift.begin(), c.shift.end(), shift.begin());
  bool any = false;
  for (size_t m = 0; m < c.w_zero.size(); ++m) {
    zeros[m] = c.w_zero[m] - (c.w_type == ElementType::uint8 ? 128 : 0);
    any = any || zeros[m] != 0;
  }
  std::vector<std::byte> weight_memory, scratch_memory;
  // Packed when nothing is known yet but the weights.
  ConvParams packed;
  packed.nhwc = last, packed.group = s.group, packed.rank = s.rank;
  packed.in_channels = s.in_channels, packed.out_channels = s.out_channels;
  packed.kernel = s.kernel;
  auto* weights = aligned<int8_t>(
      weight_memory, last ? conv_int8_nhwc_weights_size(packed) : conv_int8_weights_size(packed));
  if (last) {
    pack_conv_int8_nhwc_weights(packed, c.w_type, c.w.data(), zeros.data(), weights, sums.data(),
                                pool);
  } else {
    pack_conv_int8_weights(packed, c.w_type, c.w.data(), weights, sums.data(), pool);
  }
  const auto scratch_bytes = [&](int threads) {
    return last ? conv_int8_nhwc_scratch_bytes(s, threads) : conv_int8_scratch_bytes(s, threads);
  };
  // What was bound for several threads may run on one.
  EXPECT_LE(scratch_bytes(1), scratch_bytes(2));
  EXPECT_LE(scratch_bytes(1), scratch_bytes(5));
  auto* scratch = aligned<std::byte>(scratch_memory, scratch_bytes(pool.threads()));
  // Nothing may be read behind the input, nor written behind the output.
  const std::vector<uint8_t> x = last ? transposed(c.x, s.batch, s.in_channels, in_pixels(s)) : c.x;
  std::vector<Y> y(static_cast<size_t>(y_size(s)));
  ConvInt8 job;
  job.x_type = c.x_type, job.x = x.data(), job.x_zero = c.x_zero;
  job.weights = weights, job.weight_sums = sums.data();
  job.w_zero = any ? zeros.data() : nullptr;
  job.scale = scale.data();
  job.y_type = c.y_type, job.zero = c.y_zero, job.y = y.data();
  if (std::is_same_v<Y, float>) {
    job.shift = c.shift.empty() ? nullptr : shift.data();
    job.low = c.low, job.high = c.high;
  } else {
    job.bias = c.bias.data();
  }
  if constexpr (std::is_same_v<Y, uint8_t>) {
    if (!c.addend.empty()) {  // where the output will be
      y = transposed(c.addend, s.batch, s.out_channels, out_pixels(s));
      job.addend = job.y = y.data(), job.sum = c.sum;
    }
  }
  (last ? conv_int8_nhwc : conv_int8)(s, job, scratch, pool);
  return last ? transposed(y, s.batch, out_pixels(s), s.out_channels) : y;
}

Case draw(std::mt19937& random) {
  const auto pick = [&](int64_t low, int64_t high) {
    return std::uniform_int_distribution<int64_t>(low, high)(random);
  };
  const auto type = [&] { return pick(0, 1) ? ElementType::int8 : ElementType::uint8; };
  const auto zero = [&](ElementType t) {
    return static_cast<int32_t>(t == ElementType::int8 ? pick(-128, 127) : pick(0, 255));
  };
  Case c;
  ConvParams& s = c.shape;
  const bool depthwise = pick(0, 2) == 0;
  s.batch = pick(0, 9) == 0 ? 0 : pick(1, 2);
  s.in_channels = pick(0, 3) == 0 ? pick(60, 140) : pick(1, 40);
  s.group = depthwise ? s.in_channels : 1;
  s.out_channels = depthwise ? s.in_channels : pick(1, 150);
  s.rank = pick(0, 4) == 0 ? 1 : pick(0, 4) == 0 ? 3 : 2;
  const int64_t longest = s.rank == 3 ? 5 : 14;
  for (size_t i = 0; i < static_cast<size_t>(s.rank); ++i) {
    s.kernel[i] = pick(0, 1) ? pick(1, 7) : 1;
    s.stride[i] = pick(1, 3), s.dilation[i] = pick(1, 2);
    s.pad_begin[i] = pick(-1, 3), s.pad_end[i] = pick(-1, 3);
    s.in[i] = pick(0, 3) == 0 ? 1 : pick(1, longest);
    s.out[i] = conv_out_size(s.in[i], s.kernel[i], s.stride[i], s.dilation[i], s.pad_begin[i],
                             s.pad_end[i]);
  }
  c.x_type = type(), c.w_type = type(), c.y_type = type();
  c.x_zero = zero(c.x_type), c.y_zero = zero(c.y_type);
  c.x.resize(static_cast<size_t>(s.batch * s.in_channels * in_pixels(s)));
  c.w.resize(
      static_cast<size_t>(s.out_channels * (s.in_channels / s.group) * product(s, s.kernel)));
  for (uint8_t& b : c.x) b = static_cast<uint8_t>(pick(0, 255));
  for (uint8_t& b : c.w) b = static_cast<uint8_t>(pick(0, 255));
  const bool zeros = pick(0, 1) == 1;
  for (int64_t m = 0; m < s.out_channels; ++m) {
    c.bias.push_back(static_cast<int32_t>(pick(-5000, 5000)));
    c.w_zero.push_back(zeros ? zero(c.w_type) : c.w_type == ElementType::uint8 ? 128 : 0);
    c.scale.push_back(static_cast<float>(pick(1, 100)) * 1e-5f);
  }
  return c;
}

TEST(ConvInt8, BothLayoutsGiveTheExactSums) {
  std::mt19937 random(11);
  for (int i = 0; i < test::times(120); ++i) {
    const Case c = draw(random);
    const std::vector<uint8_t> y = expected(c);
    each_target([&] {
      for (ThreadPool* pool : {&one_thread(), &two_threads()}) {
        ASSERT_TRUE(conv_int8_nhwc_applies(c.shape));
        EXPECT_EQ(run(c, true, *pool), y) << "channels last, case " << i;
        EXPECT_EQ(run(c, false, *pool), y) << "channels first, case " << i;
      }
    });
  }
}

// What is farthest from its zero point, in either direction.
TEST(ConvInt8, WeightsAtTheEndsOfTheirRange) {
  std::mt19937 random(21);
  for (int i = 0; i < test::times(60); ++i) {
    Case c = draw(random);
    const bool is_signed = c.w_type == ElementType::int8;
    for (uint8_t& w : c.w)
      w = static_cast<uint8_t>((random() % 2 ? 255 : 0) ^ (is_signed ? 0x80 : 0));
    for (int32_t& zero : c.w_zero)
      zero = (random() % 3 == 0 ? 100 : random() % 2 ? 255 : 0) - (is_signed ? 128 : 0);
    const std::vector<uint8_t> y = expected(c);
    each_target([&] {
      for (const bool last : {true, false})
        EXPECT_EQ(run(c, last, one_thread()), y) << "case " << i << ", channels last: " << last;
    });
  }
}

TEST(ConvInt8, FloatsAreScaledShiftedAndHeldInTheirRange) {
  std::mt19937 random(12);
  const auto real = [&](float low, float high) {
    return std::uniform_real_distribution<float>(low, high)(random);
  };
  for (int i = 0; i < test::times(100); ++i) {
    Case c = draw(random);
    c.y_type = ElementType::float32;
    for (int64_t m = 0; i % 3 != 0 && m < c.shape.out_channels; ++m) c.shift.push_back(real(-3, 3));
    if (i % 2 == 0) c.low = 0;
    if (i % 4 == 0) c.high = 6;
    std::vector<double> wanted, error;
    for (int64_t k = 0; k < y_size(c.shape); ++k) {
      const size_t m = channel_of(c, k);
      const double sum = static_cast<double>(exact_sum(c, k)) * c.scale[m];
      wanted.push_back(std::clamp<double>(sum + (c.shift.empty() ? 0 : c.shift[m]), c.low, c.high));
      error.push_back(0x1p-22 * (std::abs(sum) + 3));
    }
    each_target([&] {
      for (ThreadPool* pool : {&one_thread(), &two_threads()}) {
        for (const bool last : {true, false}) {
          const std::vector<float> y = run<float>(c, last, *pool);
          ASSERT_EQ(y.size(), wanted.size());
          for (size_t k = 0; k < y.size(); ++k) {
            ASSERT_NEAR(y[k], wanted[k], error[k])
                << "case " << i << (last ? ", channels last" : ", channels first");
          }
        }
      }
    });
  }
}

TEST(ConvInt8, SumsAreThoseOfRoundedBytes) {
  std::mt19937 random(13);
  const auto pick = [&](int64_t low, int64_t high) {
    return std::uniform_int_distribution<int64_t>(low, high)(random);
  };
  for (int i = 0; i < test::times(60); ++i) {
    Case c = draw(random);
    if (c.shape.group > 1) continue;
    for (int64_t k = 0; k < c.shape.batch * c.shape.out_channels * out_pixels(c.shape); ++k)
      c.addend.push_back(static_cast<uint8_t>(pick(0, 255)));
    const ElementType type = pick(0, 1) ? ElementType::int8 : ElementType::uint8;
    const auto zero =
        static_cast<int32_t>(type == ElementType::int8 ? pick(-128, 127) : pick(0, 255));
    // Scales of which many sums lie in the middle between two bytes, and others.
    const bool round = pick(0, 1) == 1;
    const auto scale = [&] {
      return round ? 0.25f * static_cast<float>(pick(1, 4))
                   : 1e-2f * static_cast<float>(pick(1, 99));
    };
    c.sum = {{c.y_type, scale(), c.y_zero},
             {type, scale(), zero},
             {type, scale(), zero / 2},
             pick(0, 1) == 1};
    const std::vector<uint8_t> y = expected(c);
    each_target([&] {
      for (ThreadPool* pool : {&one_thread(), &two_threads()})
        EXPECT_EQ(run(c, true, *pool), y) << "case " << i;
    });
  }
}

TEST(ConvInt8, ScalesOfAnySizeSaturate) {
  constexpr float infinity = std::numeric_limits<float>::infinity();
  std::mt19937 random(17);
  for (int i = 0; i < 20; ++i) {
    Case c = draw(random);
    const uint8_t least = c.y_type == ElementType::int8 ? 0x80 : 0,
                  most = c.y_type == ElementType::int8 ? 0x7f : 0xff;
    for (const float scale : {std::nanf(""), 1e30f, infinity}) {
      for (size_t m = 0; m < c.scale.size(); ++m)
        c.scale[m] = std::signbit(static_cast<float>(m % 2) - 1) ? -scale : scale;
      // Sums of one sign: those of nothing but biases.
      std::fill(c.w.begin(), c.w.end(), uint8_t{0});
      for (size_t m = 0; m < c.w_zero.size(); ++m) {
        c.w_zero[m] = 0;
        c.bias[m] = 3;
      }
      std::vector<uint8_t> y;
      const int64_t pixels = out_pixels(c.shape);
      for (int64_t k = 0; k < c.shape.batch * c.shape.out_channels * pixels; ++k) {
        const bool negative = k / pixels % c.shape.out_channels % 2 == 0;
        y.push_back(std::isnan(scale) || negative ? least : most);
      }
      each_target([&] { EXPECT_EQ(run(c, true, one_thread()), y) << "case " << i; });
    }
  }
}

TEST(ConvInt8, OtherGroupsHaveNoFormWithChannelsLast) {
  ConvParams s;
  s.in_channels = 8, s.out_channels = 8, s.group = 2, s.kernel = {3, 3, 1};
  EXPECT_FALSE(conv_int8_nhwc_applies(s));
  s.group = 8;
  EXPECT_TRUE(conv_int8_nhwc_applies(s));
  s.kernel = {17, 17, 1};
  EXPECT_FALSE(conv_int8_nhwc_applies(s));
}

}  // namespace
}  // namespace sardonyx::kernels
