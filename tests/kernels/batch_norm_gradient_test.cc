// The gradient of a normalisation by the moments of its batch, against its definition.
#include "kernels/rows/batch_norm_gradient.h"

#include "rows_support.h"

namespace sardonyx::kernels::test {
namespace {

struct Sizes {
  int64_t n, channels, inner;
};

struct Gradients {
  std::vector<double> dx, dscale, dbias;
};

Gradients by_definition(const Sizes& s, double epsilon, const std::vector<double>& x,
                        const std::vector<double>& scale, const std::vector<double>& dy) {
  Gradients made{std::vector<double>(x.size()), {}, {}};
  for (int64_t c = 0; c < s.channels; ++c) {
    std::vector<size_t> at;
    for (int64_t n = 0; n < s.n; ++n) {
      for (int64_t i = 0; i < s.inner; ++i)
        at.push_back(static_cast<size_t>((n * s.channels + c) * s.inner + i));
    }
    const auto count = static_cast<double>(at.size());
    double mean = 0, variance = 0, flow = 0, along = 0;
    for (const size_t i : at) mean += x[i] / count;
    for (const size_t i : at) variance += (x[i] - mean) * (x[i] - mean) / count;
    const double inverse = 1 / std::sqrt(variance + epsilon);
    for (const size_t i : at) flow += dy[i], along += dy[i] * (x[i] - mean) * inverse;
    for (const size_t i : at) {
      const double normal = (x[i] - mean) * inverse;
      made.dx[i] =
          scale[static_cast<size_t>(c)] * inverse * (dy[i] - flow / count - normal * along / count);
    }
    made.dscale.push_back(along);
    made.dbias.push_back(flow);
  }
  return made;
}

std::vector<double> wide(const std::vector<float>& from) { return {from.begin(), from.end()}; }

TEST(BatchNormGradient, EachShape) {
  each_target([] {
    for (const Sizes& s : {Sizes{4, 3, 25}, Sizes{8, 70, 1}, Sizes{2, 5, 130}, Sizes{1, 1, 7},
                           Sizes{33, 64, 1}, Sizes{3, 130, 16}, Sizes{5, 2, 1}}) {
      SCOPED_TRACE(testing::Message() << s.n << " " << s.channels << " " << s.inner);
      const int64_t all = s.n * s.channels * s.inner;
      const auto x = random_floats(all, -2, 5, 1), dy = random_floats(all, -1, 1, 2),
                 scale = random_floats(s.channels, 0.5f, 2, 3);
      const auto expected = by_definition(s, 1e-3, wide(x), wide(scale), wide(dy));
      std::vector<float> dx(x.size()), dscale(scale.size()), dbias(scale.size());
      const auto run = [&](ThreadPool& pool) {
        batch_norm_gradient({s.n, s.channels, s.inner, 1e-3, x.data(), scale.data(), dy.data(),
                             dx.data(), dscale.data(), dbias.data()},
                            pool);
      };
      run(one_thread());
      expect_near(dx, expected.dx, 2e-5);
      expect_near(dscale, expected.dscale, 2e-5);
      expect_near(dbias, expected.dbias, 2e-5);
      const auto first = dx;
      run(two_threads());
      expect_same_bits(first, dx);
      // In place, and without what nobody wants.
      auto flow = dy;
      batch_norm_gradient({s.n, s.channels, s.inner, 1e-3, x.data(), scale.data(), flow.data(),
                           flow.data(), nullptr, nullptr},
                          two_threads());
      expect_same_bits(first, flow);
      const auto wide_x = wide(x), wide_scale = wide(scale), wide_dy = wide(dy);
      std::vector<double> in_double(x.size());
      batch_norm_gradient({s.n, s.channels, s.inner, 1e-3, wide_x.data(), wide_scale.data(),
                           wide_dy.data(), in_double.data(), nullptr, nullptr},
                          two_threads());
      for (size_t i = 0; i < in_double.size(); ++i)
        ASSERT_NEAR(in_double[i], expected.dx[i], 1e-9) << i;
    }
  });
}

}  // namespace
}  // namespace sardonyx::kernels::test
