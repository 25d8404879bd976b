// The gradient of a normalisation row by row, against its definition.
#include "kernels/rows/layer_norm_gradient.h"

#include "rows_support.h"

namespace sardonyx::kernels::test {
namespace {

constexpr double epsilon = 1e-3;

struct Gradients {
  std::vector<double> dx, dscale;
};

// `scale` has an element for each of x.
Gradients by_definition(int64_t rows, int64_t n, const std::vector<double>& x,
                        const std::vector<double>& scale, const std::vector<double>& dy) {
  Gradients made{std::vector<double>(x.size()), std::vector<double>(x.size())};
  const auto count = static_cast<double>(n);
  for (int64_t r = 0; r < rows; ++r) {
    const auto begin = static_cast<size_t>(r * n), end = begin + static_cast<size_t>(n);
    double mean = 0, variance = 0, flow = 0, along = 0;
    for (size_t i = begin; i < end; ++i) mean += x[i] / count;
    for (size_t i = begin; i < end; ++i) variance += (x[i] - mean) * (x[i] - mean) / count;
    const double inverse = 1 / std::sqrt(variance + epsilon);
    for (size_t i = begin; i < end; ++i) {
      flow += dy[i] * scale[i];
      along += dy[i] * scale[i] * (x[i] - mean) * inverse;
      made.dscale[i] = dy[i] * (x[i] - mean) * inverse;
    }
    for (size_t i = begin; i < end; ++i) {
      const double normal = (x[i] - mean) * inverse;
      made.dx[i] = inverse * (dy[i] * scale[i] - flow / count - normal * along / count);
    }
  }
  return made;
}

std::vector<double> wide(const std::vector<float>& from) { return {from.begin(), from.end()}; }

struct Places {
  std::vector<int64_t> row_at, at;  // empty: the same scales for each row
  int64_t scales;
};

// Of each element of x its scale, and the other way, added up.
std::vector<double> spread(const Places& p, int64_t rows, int64_t n,
                           const std::vector<float>& scale) {
  std::vector<double> all;
  for (int64_t i = 0; i < rows * n; ++i) {
    const int64_t from =
        p.at.empty() ? i % n
                     : p.row_at[static_cast<size_t>(i / n)] + p.at[static_cast<size_t>(i % n)];
    all.push_back(static_cast<double>(scale[static_cast<size_t>(from)]));
  }
  return all;
}
std::vector<double> added_up(const Places& p, int64_t n, const std::vector<double>& all) {
  std::vector<double> sums(static_cast<size_t>(p.scales));
  for (size_t i = 0; i < all.size(); ++i) {
    const size_t row = i / static_cast<size_t>(n), column = i % static_cast<size_t>(n);
    sums[p.at.empty() ? column : static_cast<size_t>(p.row_at[row] + p.at[column])] += all[i];
  }
  return sums;
}

void check(int64_t rows, int64_t n, const Places& places) {
  SCOPED_TRACE(testing::Message() << rows << " rows of " << n);
  const auto x = random_floats(rows * n, -2, 5, 1), dy = random_floats(rows * n, -1, 1, 2),
             scale = random_floats(places.scales, 0.5f, 2, 3);
  const auto all = by_definition(rows, n, wide(x), spread(places, rows, n, scale), wide(dy));
  const auto dscale_expected = added_up(places, n, all.dscale);
  const auto fill = [&](auto job) {
    if (!places.at.empty())
      job.row_at = places.row_at.data(), job.at = places.at.data(), job.scales = places.scales;
    return job;
  };
  std::vector<float> dx(x.size()), dscale(scale.size()),
      scratch(static_cast<size_t>(layer_norm_gradient_scratch(rows, n)));
  const auto run = [&](const float* flow, float* to, float* to_scale, ThreadPool& pool) {
    layer_norm_gradient(fill(LayerNormGradient<float>{rows, n, epsilon, x.data(), scale.data(),
                                                      flow, to, to_scale}),
                        scratch.data(), pool);
  };
  run(dy.data(), dx.data(), dscale.data(), one_thread());
  expect_near(dx, all.dx, 2e-5);
  expect_near(dscale, dscale_expected, 2e-5);
  const auto first = dx, first_scale = dscale;
  run(dy.data(), dx.data(), dscale.data(), two_threads());
  expect_same_bits(first, dx);
  expect_same_bits(first_scale, dscale);
  // In place, and without what nobody wants.
  auto flow = dy;
  run(flow.data(), flow.data(), nullptr, two_threads());
  expect_same_bits(first, flow);
  run(dy.data(), nullptr, dscale.data(), two_threads());
  expect_same_bits(first_scale, dscale);
  const auto wide_x = wide(x), wide_scale = wide(scale), wide_dy = wide(dy);
  std::vector<double> wide_dx(x.size()), wide_dscale(scale.size()), wide_scratch(scratch.size());
  layer_norm_gradient(
      fill(LayerNormGradient<double>{rows, n, epsilon, wide_x.data(), wide_scale.data(),
                                     wide_dy.data(), wide_dx.data(), wide_dscale.data()}),
      wide_scratch.data(), two_threads());
  for (size_t i = 0; i < wide_dx.size(); ++i) ASSERT_NEAR(wide_dx[i], all.dx[i], 1e-9) << i;
  for (size_t i = 0; i < wide_dscale.size(); ++i)
    ASSERT_NEAR(wide_dscale[i], dscale_expected[i], 1e-9) << i;
}

TEST(LayerNormGradient, EachShape) {
  each_target([] {
    for (const auto& [rows, n] : {std::pair<int64_t, int64_t>{1, 1},
                                  {3, 7},
                                  {8, 16},
                                  {9, 33},
                                  {64, 128},
                                  {300, 70},
                                  {5, 1000},
                                  {2000, 3}}) {
      check(rows, n, {{}, {}, n});
    }
  });
}

TEST(LayerNormGradient, ScalesThatDoNotRepeat) {
  each_target([] {
    check(6, 5, {{0, 1, 2, 0, 1, 2}, {0, 0, 0, 0, 0}, 3});
    check(4, 6, {{0, 6, 12, 18}, {0, 1, 2, 3, 4, 5}, 24});
  });
}

}  // namespace
}  // namespace sardonyx::kernels::test
