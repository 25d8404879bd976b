// Pooling against a loop over every window.
#include "kernels/pool/pool.h"

#include <cmath>
#include <limits>

#include "kernels/convert/cast.h"
#include "kernels/rows_support.h"
#include "sanitized.h"

namespace sardonyx::kernels {
namespace {

using test::each_target;
using test::one_thread;
using test::two_threads;

enum class Kind { max, average, average_with_pad, lp };

struct Expected {
  std::vector<double> y;
  std::vector<int64_t> indices;
};

int64_t volume(const int64_t* d) { return d[0] * d[1] * d[2]; }

Expected reference(Kind kind, const PoolShape& s, const std::vector<float>& x, bool column_major) {
  Expected result;
  for (int64_t o = 0; o < s.planes * volume(s.out); ++o) {
    const int64_t plane = o / volume(s.out);
    const int64_t out[3] = {o / (s.out[1] * s.out[2]) % s.out[0], o / s.out[2] % s.out[1],
                            o % s.out[2]};
    double value = kind == Kind::max ? -INFINITY : 0;
    int64_t found = -1, inside = 0, padded = 0;
    for (int64_t k = 0; k < volume(s.kernel); ++k) {
      const int64_t at[3] = {k / (s.kernel[1] * s.kernel[2]), k / s.kernel[2] % s.kernel[1],
                             k % s.kernel[2]};
      int64_t p[3];
      bool in = true, in_padded = true;
      for (int a = 0; a < 3; ++a) {
        p[a] = out[a] * s.stride[a] - s.pad_before[a] + at[a] * s.dilation[a];
        in = in && p[a] >= 0 && p[a] < s.in[a];
        in_padded = in_padded && p[a] < s.in[a] + s.pad_after[a];
      }
      padded += in_padded;
      if (!in) continue;
      ++inside;
      const int64_t offset = (p[0] * s.in[1] + p[1]) * s.in[2] + p[2];
      const double v = x[static_cast<size_t>(plane * volume(s.in) + offset)];
      if (kind == Kind::max && v > value) {
        value = v;
        found = plane * volume(s.in) +
                (column_major ? (p[2] * s.in[1] + p[1]) * s.in[0] + p[0] : offset);
      }
      if (kind == Kind::lp) value += std::pow(std::fabs(v), 3);
      if (kind == Kind::average || kind == Kind::average_with_pad) value += v;
    }
    if (kind == Kind::average) value = inside == 0 ? 0 : value / static_cast<double>(inside);
    if (kind == Kind::average_with_pad)
      value = padded == 0 ? 0 : value / static_cast<double>(padded);
    if (kind == Kind::lp) value = std::cbrt(value);
    result.y.push_back(value);
    result.indices.push_back(found);
  }
  return result;
}

std::vector<PoolShape> shapes() {
  std::vector<PoolShape> list;
  // planes, in, out, kernel, stride, dilation, pad before, pad after
  list.push_back({4, {1, 1, 50}, {1, 1, 25}, {1, 1, 2}, {1, 1, 2}});
  list.push_back({3, {1, 20, 37}, {1, 18, 35}, {1, 3, 3}});
  list.push_back(
      {3, {1, 56, 75}, {1, 28, 38}, {1, 3, 3}, {1, 2, 2}, {1, 1, 1}, {0, 1, 1}, {0, 1, 1}});
  list.push_back(
      {2, {1, 13, 40}, {1, 7, 11}, {1, 3, 2}, {1, 1, 3}, {1, 3, 5}, {0, 0, 1}, {0, 0, 0}});
  list.push_back({2, {5, 6, 7}, {5, 3, 4}, {3, 2, 3}, {1, 2, 2}, {1, 1, 1}, {1, 0, 1}, {1, 0, 1}});
  list.push_back({2, {1, 4, 4}, {1, 3, 3}, {1, 3, 3}, {1, 2, 2}, {1, 1, 1}, {0, 0, 0}, {0, 2, 2}});
  list.push_back({5, {1, 9, 11}, {1, 1, 1}, {1, 9, 11}});
  list.push_back({1, {1, 3, 3}, {1, 4, 4}, {1, 1, 1}, {1, 2, 2}, {1, 1, 1}, {0, 2, 2}, {0, 2, 2}});
  list.push_back(
      {2, {1, 9, 13}, {1, 8, 11}, {1, 2, 3}, {1, 1, 1}, {1, 1, 1}, {0, 1, 1}, {0, -1, -1}});
  list.push_back({2, {1, 20, 21}, {1, 10, 10}, {1, 2, 2}, {1, 2, 2}});
  list.push_back({2, {1, 12, 14}, {1, 4, 6}, {1, 9, 9}});
  list.push_back(
      {200, {1, 14, 14}, {1, 14, 14}, {1, 5, 5}, {1, 1, 1}, {1, 1, 1}, {0, 2, 2}, {0, 2, 2}});
  list.push_back(
      {2, {1, 130, 90}, {1, 130, 90}, {1, 3, 5}, {1, 1, 1}, {1, 1, 1}, {0, 1, 2}, {0, 1, 2}});
  list.push_back(
      {2, {1, 70, 61}, {1, 23, 19}, {1, 4, 3}, {1, 3, 3}, {1, 1, 2}, {0, 1, 0}, {0, 2, 0}});
  // Lines that are cut into parts, with every way to step along them.
  list.push_back({2, {1, 1, 9003}, {1, 1, 2250}, {1, 1, 4}, {1, 1, 4}});
  list.push_back(
      {2, {1, 1, 7000}, {1, 1, 3500}, {1, 1, 3}, {1, 1, 2}, {1, 1, 1}, {0, 0, 1}, {0, 0, 1}});
  list.push_back(
      {1, {1, 3, 5000}, {1, 3, 1001}, {1, 1, 7}, {1, 1, 5}, {1, 1, 1}, {0, 0, 4}, {0, 0, 4}});
  list.push_back(
      {1, {1, 4, 4100}, {1, 2, 4096}, {1, 3, 3}, {1, 1, 1}, {1, 1, 4}, {0, 0, 2}, {0, 0, 2}});
  list.push_back(
      {1, {1, 5, 4000}, {1, 5, 1334}, {1, 3, 4}, {1, 1, 3}, {1, 1, 1}, {0, 1, 1}, {0, 1, 2}});
  // Volumes; more lines than are looked at beforehand; windows apart; rows that share nothing.
  list.push_back(
      {3, {6, 9, 21}, {6, 5, 11}, {3, 3, 3}, {1, 2, 2}, {1, 1, 1}, {1, 1, 1}, {1, 1, 1}});
  list.push_back(
      {2, {7, 8, 40}, {3, 8, 38}, {3, 2, 3}, {1, 1, 1}, {2, 1, 1}, {0, 1, 0}, {0, 0, 0}});
  list.push_back(
      {1, {1, 700, 9}, {1, 700, 9}, {1, 3, 3}, {1, 1, 1}, {1, 1, 1}, {0, 1, 1}, {0, 1, 1}});
  list.push_back({2, {1, 40, 33}, {1, 36, 29}, {1, 3, 3}, {1, 1, 1}, {1, 2, 2}});
  list.push_back({2, {1, 41, 50}, {1, 14, 17}, {1, 2, 2}, {1, 3, 3}});
  list.push_back(
      {2, {1, 30, 30}, {1, 16, 16}, {1, 2, 5}, {1, 2, 2}, {1, 1, 1}, {0, 1, 3}, {0, 1, 2}});
  return list;
}

template <class Run>
std::vector<float> both_pools(size_t n, Run&& run) {
  std::vector<float> y(n), z(n);
  run(y.data(), one_thread());
  run(z.data(), two_threads());
  test::expect_same_bits(y, z);
  return y;
}

TEST(Pool, FloatAgainstTheReference) {
  each_target([] {
    for (const PoolShape& s : shapes()) {
      const auto x = test::random_floats(s.planes * volume(s.in));
      const auto n = static_cast<size_t>(s.planes * volume(s.out));
      const auto type = ElementType::float32;
      for (const bool column_major : {false, true}) {
        const Expected expected = reference(Kind::max, s, x, column_major);
        std::vector<int64_t> indices(n);
        const auto y = both_pools(n, [&](float* to, ThreadPool& pool) {
          max_pool(type, s, x.data(), to, nullptr, column_major, pool);
        });
        const auto z = both_pools(n, [&](float* to, ThreadPool& pool) {
          max_pool(type, s, x.data(), to, indices.data(), column_major, pool);
        });
        test::expect_same_bits(y, z);
        test::expect_near(y, expected.y, 0);
        EXPECT_EQ(indices, expected.indices);
      }
      for (const bool with_pad : {false, true}) {
        const auto y = both_pools(n, [&](float* to, ThreadPool& pool) {
          average_pool(type, s, x.data(), to, with_pad, pool);
        });
        test::expect_near(
            y, reference(with_pad ? Kind::average_with_pad : Kind::average, s, x, false).y, 1e-6);
      }
      const auto y = both_pools(
          n, [&](float* to, ThreadPool& pool) { lp_pool(type, s, x.data(), to, 3, pool); });
      test::expect_near(y, reference(Kind::lp, s, x, false).y, 1e-5);
    }
  });
}

// What flows back goes to the element that the window took, among equals and NaN, too.
TEST(Pool, GradientOfTheLargest) {
  each_target([] {
    for (const PoolShape& s : shapes()) {
      auto x = test::random_floats(s.planes * volume(s.in));
      for (size_t i = 0; i < x.size(); i += 7) x[i] = std::round(x[i]);
      for (size_t i = 5; i < x.size(); i += 211) x[i] = NAN;
      const auto n = static_cast<size_t>(s.planes * volume(s.out));
      std::vector<float> y(n);
      std::vector<int64_t> places(n);
      max_pool(ElementType::float32, s, x.data(), y.data(), places.data(), false, one_thread());
      const auto dy = test::random_floats(static_cast<int64_t>(n), -1, 1, 2);
      std::vector<double> expected(x.size());
      for (size_t i = 0; i < n; ++i) {
        if (places[i] >= 0) expected[static_cast<size_t>(places[i])] += static_cast<double>(dy[i]);
      }
      const auto dx = both_pools(x.size(), [&](float* to, ThreadPool& pool) {
        max_pool_gradient(s, x.data(), dy.data(), to, pool);
      });
      test::expect_near(dx, expected, 1e-5);
      const std::vector<double> wide_x(x.begin(), x.end()), wide_dy(dy.begin(), dy.end());
      std::vector<double> wide(x.size());
      max_pool_gradient(s, wide_x.data(), wide_dy.data(), wide.data(), two_threads());
      for (size_t i = 0; i < wide.size(); ++i) ASSERT_NEAR(wide[i], expected[i], 1e-12) << i;
    }
  });
}

TEST(Pool, OtherTypesAgreeWithFloat) {
  for (const PoolShape& s : shapes()) {
    auto x = test::random_floats(s.planes * volume(s.in), -100, 100);
    for (float& v : x) v = std::round(v);
    const auto in = static_cast<int64_t>(x.size());
    const int64_t out = s.planes * volume(s.out);
    const auto expected = reference(Kind::max, s, x, false);
    for (const ElementType type : {ElementType::float64, ElementType::float16,
                                   ElementType::bfloat16, ElementType::int8, ElementType::int32}) {
      std::vector<uint8_t> source(static_cast<size_t>(byte_size(type, in)));
      std::vector<uint8_t> target(static_cast<size_t>(byte_size(type, out)));
      std::vector<float> y(static_cast<size_t>(out));
      cast(ElementType::float32, type, x.data(), source.data(), in, {}, one_thread());
      max_pool(type, s, source.data(), target.data(), nullptr, false, two_threads());
      cast(type, ElementType::float32, target.data(), y.data(), out, {}, one_thread());
      for (size_t i = 0; i < y.size(); ++i) {
        if (std::isinf(expected.y[i])) continue;  // nothing but padding: the type's lowest
        ASSERT_EQ(y[i], expected.y[i]) << name_of(type);
      }
      if (!is_floating(type)) continue;
      average_pool(type, s, source.data(), target.data(), false, two_threads());
      cast(type, ElementType::float32, target.data(), y.data(), out, {}, one_thread());
      test::expect_near(y, reference(Kind::average, s, x, false).y,
                        type == ElementType::bfloat16 ? 0.01 : 0.002);
    }
  }
}

// Channels x pixels to pixels x channels.
std::vector<float> turned(const std::vector<float>& x, int64_t channels, int64_t pixels) {
  std::vector<float> y(x.size());
  for (int64_t c = 0; c < channels; ++c) {
    for (int64_t p = 0; p < pixels; ++p)
      y[static_cast<size_t>(p * channels + c)] = x[static_cast<size_t>(c * pixels + p)];
  }
  return y;
}

TEST(Pool, Nhwc) {
  each_target([] {
    for (PoolShape s : shapes()) {
      for (const int64_t channels : test::sizes<int64_t>({24, 5, 33, 1})) {
        s.planes = channels;
        auto x = test::random_floats(channels * volume(s.in));
        const auto average = reference(Kind::average, s, x, false).y,
                   with_pad = reference(Kind::average_with_pad, s, x, false).y;
        const auto image = turned(x, channels, volume(s.in));
        PoolShape last = s;
        last.planes = 1;
        const auto n = static_cast<size_t>(channels * volume(s.out));
        const auto by = [&](auto&& run) {
          return turned(both_pools(n, run), volume(s.out), channels);
        };
        test::expect_near(by([&](float* to, ThreadPool& pool) {
                            average_pool_nhwc(last, channels, image.data(), to, false, pool);
                          }),
                          average, 1e-6);
        test::expect_near(by([&](float* to, ThreadPool& pool) {
                            average_pool_nhwc(last, channels, image.data(), to, true, pool);
                          }),
                          with_pad, 1e-6);
        // Where there is something that is no number, too.
        for (int kind = 0; kind < 3; ++kind) {
          for (size_t i = 0; kind > 0 && i < x.size(); i += kind == 1 ? 37 : 5) x[i] = NAN;
          const auto dirty = turned(x, channels, volume(s.in));
          std::vector<float> expected(n);
          max_pool(ElementType::float32, s, x.data(), expected.data(), nullptr, false,
                   one_thread());
          const auto y = by([&](float* to, ThreadPool& pool) {
            max_pool_nhwc(ElementType::float32, last, channels, dirty.data(), to, pool);
          });
          for (size_t i = 0; i < n; ++i) {
            ASSERT_EQ(std::isnan(y[i]), std::isnan(expected[i]));
            if (!std::isnan(y[i])) {
              ASSERT_EQ(y[i], expected[i]);
            }
          }
        }
      }
    }
  });
}

TEST(Pool, NanWinsAndPaddingNever) {
  each_target([] {
    std::vector<float> x(40, -5), y(39);
    x[20] = NAN;
    const PoolShape s{1, {1, 1, 40}, {1, 1, 39}, {1, 1, 2}};
    max_pool(ElementType::float32, s, x.data(), y.data(), nullptr, false, one_thread());
    for (size_t i = 0; i < 39; ++i) EXPECT_EQ(std::isnan(y[i]), i == 19 || i == 20);
    const PoolShape padded{1,         {1, 1, 2}, {1, 1, 4}, {1, 1, 1},
                           {1, 1, 1}, {1, 1, 1}, {0, 0, 1}, {0, 0, 1}};
    int8_t low[2] = {-3, -4}, out[4];
    int64_t indices[4];
    max_pool(ElementType::int8, padded, low, out, indices, false, one_thread());
    EXPECT_EQ(out[0], -128);
    EXPECT_EQ(out[1], -3);
    EXPECT_EQ(indices[0], -1);
    EXPECT_EQ(indices[2], 1);
  });
}

// What is no number wins in the windows that it is in and nowhere else, however the others are
// found; infinities of both signs are numbers.
TEST(Pool, NanInPlanes) {
  each_target([] {
    for (const int64_t kernel : {2, 3, 5}) {
      for (const int64_t stride : {1, 2, 3}) {
        constexpr int64_t h = 45, w = 37, pad = 1;
        const int64_t H = (h + 2 * pad - kernel) / stride + 1,
                      W = (w + 2 * pad - kernel) / stride + 1;
        const PoolShape s{
            3,         {1, h, w},     {1, H, W},    {1, kernel, kernel}, {1, stride, stride},
            {1, 1, 1}, {0, pad, pad}, {0, pad, pad}};
        auto x = test::random_floats(3 * h * w);
        for (size_t i = 0; i < x.size(); i += 131) x[i] = i < h * w ? NAN : INFINITY;
        for (size_t i = h * w; i < x.size(); i += 77) x[i] = -INFINITY;
        x[static_cast<size_t>(2 * h * w)] = -NAN;
        x[x.size() - 1] = NAN;
        const auto y = both_pools(static_cast<size_t>(3 * H * W), [&](float* to, ThreadPool& pool) {
          max_pool(ElementType::float32, s, x.data(), to, nullptr, false, pool);
        });
        for (int64_t o = 0; o < 3 * H * W; ++o) {
          const int64_t top = o / W % H * stride - pad, left = o % W * stride - pad;
          float best = -INFINITY;
          for (int64_t i = std::max<int64_t>(top, 0); i < std::min(top + kernel, h); ++i) {
            for (int64_t j = std::max<int64_t>(left, 0); j < std::min(left + kernel, w); ++j) {
              const float v = x[static_cast<size_t>((o / (H * W) * h + i) * w + j)];
              if (!(v <= best) && !std::isnan(best)) best = v;
            }
          }
          const float found = y[static_cast<size_t>(o)];
          ASSERT_TRUE(found == best || (std::isnan(best) && std::isnan(found)))
              << kernel << " " << stride << " at " << o << ": " << found << ", not " << best;
        }
      }
    }
  });
}

TEST(Pool, NanAndItsPlace) {
  each_target([] {
    for (const int64_t stride : {1, 2, 3}) {
      const int64_t out = (200 - 3) / stride + 1;
      const PoolShape s{1, {1, 1, 200}, {1, 1, out}, {1, 1, 3}, {1, 1, stride}};
      auto x = test::random_floats(200);
      for (const size_t at : {7, 8, 50, 52, 121, 199}) x[at] = NAN;
      for (const size_t at : {80, 81, 82, 83, 84}) x[at] = -INFINITY;
      for (const size_t at : {150, 151, 152}) x[at] = 3;
      const auto n = static_cast<size_t>(out);
      std::vector<float> y(n);
      std::vector<int64_t> places(n);
      max_pool(ElementType::float32, s, x.data(), y.data(), places.data(), false, one_thread());
      for (size_t k = 0; k < n; ++k) {
        size_t best = k * static_cast<size_t>(stride);
        const size_t end = best + 3;
        for (size_t i = best + 1; i < end; ++i) {
          if (x[i] > x[best] || (std::isnan(x[i]) && !std::isnan(x[best]))) best = i;
        }
        EXPECT_EQ(places[k], static_cast<int64_t>(best));
        EXPECT_TRUE(y[k] == x[best] || (std::isnan(x[best]) && std::isnan(y[k])));
      }
    }
  });
}

TEST(Pool, WholePlanesOfEverySize) {
  each_target([] {
    for (const int64_t n : {1, 3, 4, 7, 16, 17, 49, 64, 100, 255, 256, 257, 1000}) {
      constexpr int64_t planes = 9;
      const PoolShape s{planes, {1, 1, n}, {1, 1, 1}, {1, 1, n}};
      auto x = test::random_floats(planes * n, -9, -1);
      const auto at = [n](int64_t plane, int64_t i) { return static_cast<size_t>(plane * n + i); };
      x[at(3, n / 2)] = NAN;
      x[at(4, 0)] = -INFINITY;
      if (n > 2) x[at(5, 0)] = INFINITY, x[at(5, n - 1)] = -INFINITY;
      const auto largest = both_pools(planes, [&](float* to, ThreadPool& pool) {
        max_pool(ElementType::float32, s, x.data(), to, nullptr, false, pool);
      });
      const auto mean = both_pools(planes, [&](float* to, ThreadPool& pool) {
        average_pool(ElementType::float32, s, x.data(), to, false, pool);
      });
      for (int64_t p = 0; p < planes; ++p) {
        double sum = 0;
        float most = -INFINITY;
        for (int64_t i = 0; i < n; ++i) {
          sum += x[at(p, i)];
          if (!(x[at(p, i)] <= most) && !std::isnan(most)) most = x[at(p, i)];
        }
        const auto place = static_cast<size_t>(p);
        EXPECT_TRUE(largest[place] == most || (std::isnan(most) && std::isnan(largest[place])));
        if (std::isfinite(sum)) {
          EXPECT_NEAR(mean[place], sum / static_cast<double>(n), 1e-5);
        } else {
          EXPECT_EQ(std::isnan(mean[place]), std::isnan(sum));
        }
      }
    }
  });
}

TEST(Pool, HugeWindowsEndSoon) {
  const int64_t huge = int64_t{1} << 39;
  const std::vector<float> x{1, 2, 3};
  std::vector<float> y(3);
  PoolShape s{1,         {1, 1, 3}, {1, 1, 3},    {1, 1, 2 * huge},
              {1, 1, 1}, {1, 1, 1}, {0, 0, huge}, {0, 0, huge}};
  for (const bool with_pad : {false, true}) {
    average_pool(ElementType::float32, s, x.data(), y.data(), with_pad, one_thread());
    EXPECT_NEAR(y[0], with_pad ? 0 : 2, 1e-6);
  }
  max_pool(ElementType::float32, s, x.data(), y.data(), nullptr, false, one_thread());
  EXPECT_EQ(y[0], 3);
  s.stride[2] = 0;
  EXPECT_THROW(max_pool(ElementType::float32, s, x.data(), y.data(), nullptr, false, one_thread()),
               Error);
  s.stride[2] = int64_t{1} << 50;
  EXPECT_THROW(max_pool(ElementType::float32, s, x.data(), y.data(), nullptr, false, one_thread()),
               Error);
}

TEST(Pool, Unpool) {
  const std::vector<float> x{1, 2};
  const std::vector<int64_t> at{3, 0};
  std::vector<float> y(5, 9);
  max_unpool(ElementType::float32, x.data(), at.data(), 2, y.data(), 5, one_thread());
  EXPECT_EQ(y, (std::vector<float>{2, 0, 0, 1, 0}));
  const std::vector<int64_t> bad{3, 5};
  const auto message = test::error_of([&] {
    max_unpool(ElementType::float32, x.data(), bad.data(), 2, y.data(), 5, one_thread());
  });
  EXPECT_NE(message.find("index 5"), std::string::npos) << message;
}

}  // namespace
}  // namespace sardonyx::kernels
