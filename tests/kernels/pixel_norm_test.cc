// Normalisation with channels last against the one with channels first.
#include "kernels/rows/pixel_norm.h"

#include "kernels/rows/normalize.h"
#include "rows_support.h"

namespace sardonyx::kernels::test {
namespace {

// [n, channels, pixels] of [n, pixels, channels].
std::vector<float> planes(const std::vector<float>& x, int64_t n, int64_t pixels,
                          int64_t channels) {
  std::vector<float> y;
  for (int64_t i = 0; i < n; ++i) {
    for (int64_t c = 0; c < channels; ++c) {
      for (int64_t p = 0; p < pixels; ++p)
        y.push_back(x[static_cast<size_t>((i * pixels + p) * channels + c)]);
    }
  }
  return y;
}

TEST(PixelNorm, AsWithChannelsFirst) {
  each_target([] {
    for (const int64_t pixels : {1, 7, 128, 300}) {
      for (const int64_t channels : {2, 6, 16, 90}) {
        for (const int64_t groups : {int64_t{1}, int64_t{2}, channels}) {
          SCOPED_TRACE(testing::Message() << pixels << " " << channels << " " << groups);
          const int64_t n = 2, all = n * pixels * channels;
          const auto x = random_floats(all, -1, 5), scale = random_floats(channels, 0.5f, 2, 2),
                     bias = random_floats(channels, -1, 1, 3);
          Epilogue relu;
          relu.activation = Activation::relu;
          std::vector<float> one(x), two(x), expected(static_cast<size_t>(all)),
              scratch(static_cast<size_t>(pixel_norm_floats(pixels, channels)));
          // In place.
          pixel_norm(one.data(), scale.data(), bias.data(), one.data(), n, pixels, channels, groups,
                     1e-5, relu, scratch.data(), one_thread());
          pixel_norm(two.data(), scale.data(), bias.data(), two.data(), n, pixels, channels, groups,
                     1e-5, relu, scratch.data(), two_threads());
          expect_same_bits(one, two);
          const auto first = planes(x, n, pixels, channels);
          group_norm(ElementType::float32, first.data(), scale.data(), bias.data(), expected.data(),
                     n, channels, pixels, groups, 1e-5, one_thread());
          std::vector<double> wanted(expected.begin(), expected.end());
          for (double& v : wanted) v = std::max(v, 0.0);
          // One pixel is its own mean: what rounding leaves is divided by almost nothing.
          expect_near(planes(one, n, pixels, channels), wanted, pixels == 1 ? 1e-3 : 1e-5);
        }
      }
    }
  });
}

}  // namespace
}  // namespace sardonyx::kernels::test
