// Softmax and normalisations against plain loops in double.
#include <algorithm>
#include <cmath>
#include <cstring>
#include <limits>
#include <memory>
#include <numeric>

#include "kernels/rows/normalize.h"
#include "kernels/rows/row_math.h"
#include "kernels/rows/softmax.h"
#include "lines_support.h"
#include "sanitized.h"

namespace sardonyx::kernels {
namespace {

using test::both_pools;
using test::Box;
using test::boxes;
using test::Doubles;
using test::each_line;
using test::each_target;
using test::f32;
using test::index;
using test::one_thread;
using test::other_floats;
using test::random_floats;
using test::through;
using test::tolerance_of;
using test::two_threads;

void softmax_line(const Doubles& x, Doubles& y) {
  const double top = *std::max_element(x.begin(), x.end());
  double sum = 0;
  for (size_t i = 0; i < x.size(); ++i) sum += y[i] = std::exp(x[i] - top);
  for (double& v : y) v /= sum;
}

TEST(RowMath, MasksOfARow) {
  each_target([] {
    constexpr float least = -std::numeric_limits<float>::infinity();
    for (int64_t n = 0; n < 70; ++n) {
      const auto x = random_floats(n + 1, 1), bias = random_floats(n + 1, 2);
      std::vector<float> added = x, kept = x, given = bias;
      std::unique_ptr<bool[]> keep(new bool[index(n)]);
      for (int64_t i = 0; i < n; ++i) keep[index(i)] = i % 3 != 1;
      for (int64_t i = 0; i < n; i += 5) given[index(i)] = least;
      if (n > 10) added[5] = std::numeric_limits<float>::quiet_NaN();  // where the bias is -inf
      const std::vector<float> before = added;
      row_add_bias(given.data(), added.data(), n);
      row_keep(keep.get(), -7, kept.data(), n);
      EXPECT_EQ(added.back(), before.back());
      EXPECT_EQ(kept.back(), x.back());
      for (size_t i = 0; i < index(n); ++i) {
        EXPECT_EQ(added[i], given[i] == least ? least : before[i] + given[i]) << i << " of " << n;
        EXPECT_EQ(kept[i], keep[i] ? x[i] : -7) << i << " of " << n;
      }
    }
  });
}

void log_softmax_line(const Doubles& v, Doubles& y) {
  const double top = *std::max_element(v.begin(), v.end());
  double sum = 0;
  for (const double e : v) sum += std::exp(e - top);
  for (size_t i = 0; i < v.size(); ++i) y[i] = v[i] - top - std::log(sum);
}
void hardmax_line(const Doubles& v, Doubles& y) {
  std::fill(y.begin(), y.end(), 0);
  y[static_cast<size_t>(std::max_element(v.begin(), v.end()) - v.begin())] = 1;
}

TEST(Softmax, AllForms) {
  each_target([] {
    for (const Box& b : boxes) {
      const auto x = random_floats(b.count(), -20, 20);
      Doubles soft, logs, hard;
      each_line(b, x, soft, softmax_line);
      each_line(b, x, logs, log_softmax_line);
      each_line(b, x, hard, hardmax_line);
      const auto run = [&](auto f) {
        return both_pools(b.count(), [&](float* y, ThreadPool& pool) {
          f(f32, x.data(), y, b.outer, b.n, b.inner, pool);
        });
      };
      test::expect_near(run(softmax), soft, 1e-6);
      test::expect_near(run(log_softmax), logs, 2e-6);
      test::expect_near(run(hardmax), hard, 0);
      std::vector<float> in_place = x;
      softmax(f32, in_place.data(), in_place.data(), b.outer, b.n, b.inner, two_threads());
      test::expect_near(in_place, soft, 1e-6);
      in_place = x;
      log_softmax(f32, in_place.data(), in_place.data(), b.outer, b.n, b.inner, two_threads());
      test::expect_near(in_place, logs, 2e-6);
      for (const ElementType type : other_floats) {
        const auto rounded = through(type, x, b.count(), [&](const void* from, void* to) {
          cast_row(type, type, from, to, b.count());
        });
        each_line(b, rounded, soft, softmax_line);
        const auto y = through(type, x, b.count(), [&](const void* from, void* to) {
          softmax(type, from, to, b.outer, b.n, b.inner, two_threads());
        });
        test::expect_near(y, soft, tolerance_of(type));
        each_line(b, rounded, logs, log_softmax_line);
        const auto z = through(type, x, b.count(), [&](const void* from, void* to) {
          log_softmax(type, from, to, b.outer, b.n, b.inner, two_threads());
        });
        test::expect_near(z, logs, 40 * tolerance_of(type));
        each_line(b, rounded, hard, hardmax_line);
        const auto h = through(type, x, b.count(), [&](const void* from, void* to) {
          hardmax(type, from, to, b.outer, b.n, b.inner, two_threads());
        });
        test::expect_near(h, hard, 0);
      }
    }
  });
}

TEST(Softmax, ExtremesOfTheRange) {
  each_target([] {
    // Rows and columns that hold a NaN or nothing but -inf become NaN, their neighbours do not.
    for (const int64_t n : {5, 17, 40, 300}) {
      std::vector<float> wild(index(3 * n), -INFINITY), y(wild.size()), columns(wild.size());
      for (int64_t i = 0; i < n; ++i) wild[index(i)] = float(i);
      wild[index(2 * n + n / 2)] = NAN;
      std::vector<float> transposed(wild.size());
      for (int64_t i = 0; i < 3 * n; ++i) transposed[index(i % n * 3 + i / n)] = wild[index(i)];
      for (auto* const f : {&softmax, &log_softmax}) {
        (*f)(f32, wild.data(), y.data(), 3, n, 1, one_thread());
        (*f)(f32, transposed.data(), columns.data(), 1, n, 3, one_thread());
        for (int64_t i = 0; i < 3 * n; ++i) {
          EXPECT_EQ(std::isnan(y[index(i)]), i >= n) << i << " of " << n;
          EXPECT_EQ(std::isnan(columns[index(i % n * 3 + i / n)]), i >= n) << i << " of " << n;
        }
      }
    }
    const std::vector<float> x{-INFINITY, 0, 3e38f, -3e38f, 3e38f, 1};
    std::vector<float> y(6);
    softmax(f32, x.data(), y.data(), 2, 3, 1, one_thread());
    EXPECT_EQ(y, (std::vector<float>{0, 0, 1, 0, 1, 0}));
    const std::vector<float> nan{1, NAN, 2};
    softmax(f32, nan.data(), y.data(), 1, 3, 1, one_thread());
    EXPECT_TRUE(std::isnan(y[0]) && std::isnan(y[1]) && std::isnan(y[2]));
  });
  EXPECT_THROW(softmax(ElementType::int32, nullptr, nullptr, 1, 1, 1, one_thread()), Error);
}

// ---- normalisations ----

struct Stats {
  double mean = 0, variance = 0;
};
Stats stats_of(const float* x, int64_t n) {
  Stats s;
  for (int64_t i = 0; i < n; ++i) s.mean += x[i];
  s.mean /= static_cast<double>(n);
  for (int64_t i = 0; i < n; ++i) s.variance += (x[i] - s.mean) * (x[i] - s.mean);
  s.variance /= static_cast<double>(n);
  return s;
}

// Rows share their passes with the rows behind them.
TEST(Normalize, RowsOfAMatrixHaveTheBitsTheyHaveAlone) {
  each_target([] {
    ThreadPool pool(1);
    for (const int64_t n : {1, 17, 64, 100, 768}) {
      for (const int64_t rows : {2, 3, 7}) {
        const auto x = random_floats(rows * n, -1, 5), scale = random_floats(n, 0.5f, 2, 2),
                   bias = random_floats(n, -1, 1, 3);
        for (const float* b : {bias.data(), static_cast<const float*>(nullptr)}) {
          std::vector<float> y = x, alone = x;  // in place
          layer_norm(f32, y.data(), scale.data(), b, y.data(), f32, nullptr, nullptr, rows, n, 1e-5,
                     pool);
          for (int64_t r = 0; r < rows; ++r) {
            float* row = alone.data() + r * n;
            layer_norm(f32, row, scale.data(), b, row, f32, nullptr, nullptr, 1, n, 1e-5, pool);
          }
          EXPECT_EQ(std::memcmp(y.data(), alone.data(), y.size() * sizeof(float)), 0);
        }
      }
    }
  });
}

TEST(Normalize, LayerAndRms) {
  each_target([] {
    for (const auto& [rows, n] :
         {std::pair<int64_t, int64_t>{3, 5}, {17, 768}, {2, 5000}, {400, 64}}) {
      const auto x = random_floats(rows * n, -1, 5), scale = random_floats(n, 0.5f, 2, 2),
                 bias = random_floats(n, -1, 1, 3);
      std::vector<float> mean(index(rows)), inverse(index(rows));
      const auto y = both_pools(rows * n, [&, &rows = rows, &n = n](float* to, ThreadPool& pool) {
        layer_norm(f32, x.data(), scale.data(), bias.data(), to, f32, mean.data(), inverse.data(),
                   rows, n, 1e-5, pool);
      });
      const auto z = both_pools(rows * n, [&, &rows = rows, &n = n](float* to, ThreadPool& pool) {
        rms_norm(f32, x.data(), scale.data(), to, rows, n, 1e-5, pool);
      });
      Doubles layer, rms;
      for (int64_t r = 0; r < rows; ++r) {
        const Stats s = stats_of(x.data() + r * n, n);
        EXPECT_NEAR(mean[index(r)], s.mean, 1e-5);
        EXPECT_NEAR(inverse[index(r)], 1 / std::sqrt(s.variance + 1e-5), 1e-4);
        for (int64_t i = 0; i < n; ++i) {
          const double v = x[index(r * n + i)];
          layer.push_back((v - s.mean) / std::sqrt(s.variance + 1e-5) * scale[index(i)] +
                          bias[index(i)]);
          rms.push_back(v / std::sqrt(s.variance + s.mean * s.mean + 1e-5) * scale[index(i)]);
        }
      }
      test::expect_near(y, layer, 3e-6);
      test::expect_near(z, rms, 3e-6);
    }
  });
}

TEST(Normalize, LayerInOtherTypes) {
  const int64_t rows = 6, n = 2500;
  const auto x = random_floats(rows * n, -1, 3);
  for (const ElementType type : other_floats) {
    std::vector<uint8_t> scale(index(byte_size(type, n)));
    const std::vector<float> twos(index(n), 2);
    cast_row(f32, type, twos.data(), scale.data(), n);
    std::vector<float> means(index(rows));
    const auto y = through(type, x, rows * n, [&](const void* from, void* to) {
      layer_norm(type, from, scale.data(), nullptr, to, f32, means.data(), nullptr, rows, n, 1e-5,
                 two_threads());
    });
    Doubles expected;
    for (int64_t r = 0; r < rows; ++r) {
      const Stats s = stats_of(x.data() + r * n, n);
      EXPECT_NEAR(means[index(r)], s.mean, 0.01);
      for (int64_t i = 0; i < n; ++i) {
        expected.push_back((x[index(r * n + i)] - s.mean) / std::sqrt(s.variance + 1e-5) * 2);
      }
    }
    test::expect_near(y, expected, tolerance_of(type));
  }
}

TEST(Normalize, ParameterRows) {
  // Rows 0 1 of parameters for x's rows 0 0 1 1 0 0.
  const std::vector<float> x{-1, 1, -1, 1, -1, 1, -1, 1, -1, 1, -1, 1};
  const std::vector<float> scale{1, 2, 10, 20};
  std::vector<float> y(12);
  rms_norm(f32, x.data(), scale.data(), y.data(), 6, 2, 0, one_thread(), {2, 2});
  EXPECT_EQ(y, (std::vector<float>{-1, 2, -1, 2, -10, 20, -10, 20, -1, 2, -1, 2}));
}

TEST(Normalize, GroupsAndBatches) {
  each_target([] {
    const int64_t n = 3, c = 6, inner = 35;
    const auto x = random_floats(n * c * inner, -1, 5), scale = random_floats(c, 0.5f, 2, 2),
               bias = random_floats(c, -1, 1, 3), mean = random_floats(c, -1, 1, 4),
               variance = random_floats(c, 0.1f, 2, 5);
    for (const int64_t groups : {1, 2, 6}) {
      const auto y = both_pools(n * c * inner, [&](float* to, ThreadPool& pool) {
        group_norm(f32, x.data(), scale.data(), bias.data(), to, n, c, inner, groups, 1e-5, pool);
      });
      const int64_t size = c / groups * inner;
      Doubles expected;
      for (int64_t i = 0; i < n * c * inner; ++i) {
        const Stats s = stats_of(x.data() + i / size * size, size);
        const size_t channel = index(i / inner % c);
        expected.push_back((x[index(i)] - s.mean) / std::sqrt(s.variance + 1e-5) * scale[channel] +
                           bias[channel]);
      }
      test::expect_near(y, expected, 3e-6);
    }
    const auto y = both_pools(n * c * inner, [&](float* to, ThreadPool& pool) {
      batch_norm(f32, x.data(), f32, scale.data(), bias.data(), f32, mean.data(), variance.data(),
                 to, n, c, inner, 1e-3, pool);
    });
    Doubles expected;
    for (int64_t i = 0; i < n * c * inner; ++i) {
      const size_t k = index(i / inner % c);
      expected.push_back((x[index(i)] - mean[k]) / std::sqrt(variance[k] + 1e-3) * scale[k] +
                         bias[k]);
    }
    test::expect_near(y, expected, 3e-6);
    std::vector<float> found_mean(index(c));
    std::vector<double> found_variance(index(c));
    channel_moments(f32, x.data(), f32, found_mean.data(), found_mean.data(), n, c, inner,
                    one_thread());
    std::vector<double> wide(x.begin(), x.end()), wide_mean(index(c));
    channel_moments(ElementType::float64, wide.data(), ElementType::float64, wide_mean.data(),
                    found_variance.data(), n, c, inner, two_threads());
    for (int64_t k = 0; k < c; ++k) {
      Doubles all;
      for (int64_t i = 0; i < n * c * inner; ++i) {
        if (i / inner % c == k) all.push_back(x[index(i)]);
      }
      const double m = std::accumulate(all.begin(), all.end(), 0.0) / double(all.size());
      double v = 0;
      for (const double e : all) v += (e - m) * (e - m);
      EXPECT_NEAR(wide_mean[index(k)], m, 1e-12);
      EXPECT_NEAR(found_variance[index(k)], v / double(all.size()), 1e-12);
    }
  });
  EXPECT_THROW(group_norm(f32, nullptr, nullptr, nullptr, nullptr, 1, 5, 1, 2, 0, one_thread()),
               Error);
}

TEST(Normalize, Lp) {
  each_target([] {
    for (const Box& b : boxes) {
      const auto x = random_floats(b.count());
      for (const int p : {1, 2}) {
        Doubles expected;
        each_line(b, x, expected, [&](const Doubles& v, Doubles& y) {
          double sum = 0;
          for (const double e : v) sum += p == 1 ? std::fabs(e) : e * e;
          for (size_t i = 0; i < v.size(); ++i) y[i] = v[i] / (p == 1 ? sum : std::sqrt(sum));
        });
        const auto y = both_pools(b.count(), [&](float* to, ThreadPool& pool) {
          lp_norm(f32, x.data(), to, b.outer, b.n, b.inner, p, pool);
        });
        test::expect_near(y, expected, 1e-5);
        std::vector<float> in_place = x;
        lp_norm(f32, in_place.data(), in_place.data(), b.outer, b.n, b.inner, p, two_threads());
        EXPECT_EQ(in_place, y);
        for (const ElementType type : other_floats) {
          const auto z = through(type, x, b.count(), [&](const void* from, void* to) {
            lp_norm(type, from, to, b.outer, b.n, b.inner, p, two_threads());
          });
          test::expect_near(z, expected, tolerance_of(type));
        }
      }
    }
    // Columns of zeros among others.
    const std::vector<float> x{0, 3, 0, 0, 4, 0};
    std::vector<float> y(6, 1);
    lp_norm(f32, x.data(), y.data(), 1, 2, 3, 2, one_thread());
    EXPECT_EQ(y, (std::vector<float>{0, 0.6f, 0, 0, 0.8f, 0}));
  });
  const std::vector<float> zeros(4);
  std::vector<float> y(4, 1);
  lp_norm(f32, zeros.data(), y.data(), 1, 4, 1, 2, one_thread());
  EXPECT_EQ(y, zeros);
}

TEST(Normalize, Lrn) {
  each_target([] {
    for (const float beta : {0.75f, 0.5f, 1.0f, 0.6f}) {
      for (const int64_t size : {1, 2, 5, 31}) {
        const int64_t n = 2, c = 9, inner = 530;
        const auto x = random_floats(n * c * inner, -40, 40);
        const auto y = both_pools(n * c * inner, [&](float* to, ThreadPool& pool) {
          lrn(f32, x.data(), to, n, c, inner, size, 0.01f, beta, 1.5f, pool);
        });
        Doubles expected;
        for (int64_t i = 0; i < n * c * inner; ++i) {
          const int64_t channel = i / inner % c;
          double sum = 0;
          for (int64_t k = std::max<int64_t>(0, channel - (size - 1) / 2);
               k <= std::min(c - 1, channel + size / 2); ++k) {
            const double v = x[index(i + (k - channel) * inner)];
            sum += v * v;
          }
          expected.push_back(x[index(i)] *
                             std::pow(1.5 + 0.01 / double(size) * sum, -double(beta)));
        }
        test::expect_near(y, expected, 2e-6);
        const auto half =
            through(ElementType::bfloat16, x, n * c * inner, [&](const void* from, void* to) {
              lrn(ElementType::bfloat16, from, to, n, c, inner, size, 0.01f, beta, 1.5f,
                  two_threads());
            });
        test::expect_near(half, expected, 0.03);
      }
    }
    // Sums beyond the range: nothing is left of any element.
    const std::vector<float> huge(20, 1e25f);
    std::vector<float> y(20);
    lrn(f32, huge.data(), y.data(), 1, 2, 10, 3, 1, 0.75f, 1, one_thread());
    for (const float v : y) EXPECT_EQ(v, 0);
  });
}

}  // namespace
}  // namespace sardonyx::kernels
