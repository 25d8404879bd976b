// Gradients of convolutions' weights, against their definition.
#include "kernels/conv/weight_gradient.h"

#include <random>

#include "gemm_support.h"
#include "rows_support.h"
#include "sanitized.h"

namespace sardonyx::kernels::test {
namespace {

struct Sizes {
  int64_t in = 1, out = 1, taps = 1;
};
Sizes sizes_of(const ConvParams& s) {
  Sizes sizes;
  for (size_t i = 0; i < static_cast<size_t>(s.rank); ++i)
    sizes.in *= s.in[i], sizes.out *= s.out[i], sizes.taps *= s.kernel[i];
  return sizes;
}

// Index of element `at` of axes of these sizes along each of them.
ConvParams::Dims places(const ConvParams::Dims& size, int rank, int64_t at) {
  ConvParams::Dims place{};
  for (int i = rank; i-- > 0;) {
    place[static_cast<size_t>(i)] = at % size[static_cast<size_t>(i)];
    at /= size[static_cast<size_t>(i)];
  }
  return place;
}

std::vector<double> by_definition(const ConvParams& s, const std::vector<double>& x,
                                  const std::vector<double>& dy) {
  const Sizes n = sizes_of(s);
  const int64_t ins = s.in_channels / s.group, outs = s.out_channels / s.group;
  std::vector<double> dw;
  for (int64_t m = 0; m < s.out_channels; ++m) {
    for (int64_t c = 0; c < ins; ++c) {
      for (int64_t t = 0; t < n.taps; ++t) {
        const auto tap = places(s.kernel, s.rank, t);
        double sum = 0;
        for (int64_t o = 0; o < n.out; ++o) {
          const auto place = places(s.out, s.rank, o);
          int64_t pixel = 0;
          bool inside = true;
          for (size_t i = 0; i < static_cast<size_t>(s.rank); ++i) {
            const int64_t at = place[i] * s.stride[i] + tap[i] * s.dilation[i] - s.pad_begin[i];
            inside = inside && at >= 0 && at < s.in[i];
            pixel = pixel * s.in[i] + at;
          }
          for (int64_t b = 0; inside && b < s.batch; ++b) {
            sum += x[static_cast<size_t>((b * s.in_channels + m / outs * ins + c) * n.in + pixel)] *
                   dy[static_cast<size_t>((b * s.out_channels + m) * n.out + o)];
          }
        }
        dw.push_back(sum);
      }
    }
  }
  return dw;
}

std::vector<double> wide(const float* from, int64_t count) { return {from, from + count}; }

void check_weight_gradient(const ConvParams& s) {
  const Sizes n = sizes_of(s);
  SCOPED_TRACE(
      testing::Message() << "rank " << s.rank << " batch " << s.batch << " " << s.in_channels
                         << " -> " << s.out_channels << " in " << s.group << " groups, in "
                         << s.in[0] << " " << s.in[1] << " " << s.in[2] << " out " << s.out[0]
                         << " " << s.out[1] << " " << s.out[2] << " kernel " << s.kernel[0] << " "
                         << s.kernel[1] << " " << s.kernel[2] << " stride " << s.stride[0] << " "
                         << s.stride[1] << " " << s.stride[2] << " dilation " << s.dilation[0]
                         << " " << s.dilation[1] << " " << s.dilation[2] << " pad "
                         << s.pad_begin[0] << " " << s.pad_begin[1] << " " << s.pad_begin[2]);
  Guarded x(s.batch * s.in_channels * n.in, 1), dy(s.batch * s.out_channels * n.out, 3);
  fill_random(x.data(), x.size(), 1);
  fill_random(dy.data(), dy.size(), 2);
  const int64_t count = s.out_channels * s.in_channels / s.group * n.taps;
  const auto run = [&](ThreadPool& pool) {
    Guarded dw(count, 1);
    Guarded scratch((conv_weight_gradient_scratch_bytes(s, pool.threads()) + 3) / 4);
    conv_weight_gradient(s, x.data(), dy.data(), dw.data(), scratch.data(), pool);
    EXPECT_TRUE(dw.intact() && scratch.intact());
    return std::vector<float>(dw.data(), dw.data() + count);
  };
  const auto dw = run(one_thread());
  expect_same_bits(dw, run(two_threads()));
  const auto wide_x = wide(x.data(), x.size()), wide_dy = wide(dy.data(), dy.size());
  const auto expected = by_definition(s, wide_x, wide_dy);
  const auto terms = static_cast<double>(s.batch * n.out);
  expect_near(dw, expected, 6e-7 * std::sqrt(terms) + 1e-6);
  std::vector<double> in_double(static_cast<size_t>(count));
  conv_weight_gradient(s, wide_x.data(), wide_dy.data(), in_double.data(), two_threads());
  for (size_t i = 0; i < expected.size(); ++i) ASSERT_NEAR(in_double[i], expected[i], 1e-9);
}

ConvParams image(int64_t batch, int64_t in_channels, int64_t out_channels, int64_t group,
                 int64_t size, int64_t kernel, int64_t stride, int64_t pad) {
  ConvParams s;
  s.batch = batch, s.in_channels = in_channels, s.out_channels = out_channels, s.group = group;
  for (size_t i = 0; i < 2; ++i) {
    s.in[i] = size, s.kernel[i] = kernel, s.stride[i] = stride, s.pad_begin[i] = pad;
    s.out[i] = conv_out_size(size, kernel, stride, 1, pad, pad);
  }
  return s;
}

TEST(ConvWeightGradient, RandomShapes) {
  each_target([] {
    std::mt19937 engine(1);
    const auto draw = [&](int64_t low, int64_t high) {
      return std::uniform_int_distribution<int64_t>(low, high)(engine);
    };
    for (int i = 0; i < times(300); ++i) {
      ConvParams s;
      s.rank = static_cast<int>(draw(1, 3));
      s.group = draw(0, 1) == 0 ? 1 : draw(1, 5);
      s.batch = draw(1, 5);
      s.in_channels = s.group * draw(1, 6), s.out_channels = s.group * draw(1, 20);
      if (draw(0, 3) == 0) s.out_channels = s.group;
      for (size_t d = 0; d < static_cast<size_t>(s.rank); ++d) {
        s.in[d] = draw(1, s.rank == 3 ? 7 : 40), s.kernel[d] = draw(1, s.rank == 1 ? 11 : 4);
        s.stride[d] = draw(1, 3), s.dilation[d] = draw(1, 3);
        s.pad_begin[d] = draw(-1, 3), s.pad_end[d] = draw(0, 3);
        s.out[d] = conv_out_size(s.in[d], s.kernel[d], s.stride[d], s.dilation[d], s.pad_begin[d],
                                 s.pad_end[d]);
        if (s.out[d] > 1 && draw(0, 3) == 0) --s.out[d];
      }
      check_weight_gradient(s);
    }
  });
}

TEST(ConvWeightGradient, SizesOfNetworks) {
  each_target([] {
    check_weight_gradient(image(3, 3, 16, 1, 32, 3, 1, 1));    // several parts of an image
    check_weight_gradient(image(9, 16, 24, 1, 8, 3, 1, 1));    // several images
    check_weight_gradient(image(11, 40, 33, 1, 7, 3, 2, 1));   // lines that end within vectors
    check_weight_gradient(image(5, 64, 48, 1, 9, 1, 1, 0));    // pointwise
    check_weight_gradient(image(5, 64, 17, 1, 9, 1, 2, 0));    // with strides
    check_weight_gradient(image(2, 3, 20, 1, 40, 7, 2, 3));    // stem
    check_weight_gradient(image(2, 96, 40, 1, 6, 5, 1, 2));    // blocks of channels
    check_weight_gradient(image(4, 24, 24, 24, 14, 3, 1, 1));  // depthwise
    check_weight_gradient(image(4, 24, 48, 24, 15, 5, 2, 2));  // with two outputs for each channel
    check_weight_gradient(image(2, 32, 32, 8, 12, 3, 1, 1));   // groups of four
    check_weight_gradient(image(2, 32, 64, 2, 12, 3, 1, 1));   // two groups
    check_weight_gradient(image(70, 4, 8, 1, 2, 2, 2, 0));     // a pixel an image
  });
}

TEST(ConvWeightGradient, LongSumsKeepTheirDigits) {
  // Of half a million terms of one sign: added one after the other they would lose three digits.
  ConvParams s = image(128, 1, 8, 1, 64, 1, 1, 0);
  const Sizes n = sizes_of(s);
  std::vector<float> x(static_cast<size_t>(s.batch * n.in), 0.1f);
  std::vector<float> dy(static_cast<size_t>(s.batch * s.out_channels * n.out), 0.7f);
  std::vector<float> dw(static_cast<size_t>(s.out_channels));
  Guarded scratch((conv_weight_gradient_scratch_bytes(s, 1) + 3) / 4);
  conv_weight_gradient(s, x.data(), dy.data(), dw.data(), scratch.data(), one_thread());
  const double expected = static_cast<double>(s.batch * n.out) * 0.1f * 0.7f;
  for (const float sum : dw) EXPECT_NEAR(sum / expected, 1, 5e-6);
}

TEST(ConvWeightGradient, NothingToAddIsZero) {
  ConvParams s = image(0, 2, 3, 1, 5, 3, 1, 1);
  std::vector<float> dw(54, 1.0f);
  conv_weight_gradient(s, nullptr, nullptr, dw.data(), nullptr, one_thread());
  EXPECT_EQ(dw, std::vector<float>(54, 0.0f));
  s.batch = 2, s.out = {};
  dw.assign(54, 1.0f);
  conv_weight_gradient(s, nullptr, nullptr, dw.data(), nullptr, one_thread());
  EXPECT_EQ(dw, std::vector<float>(54, 0.0f));
}

TEST(ConvWeightGradient, InfinitiesBesideALineDoNotSpoilIt) {
  // A depthwise line that ends within a vector: what stands behind it belongs to the next one.
  ConvParams s = image(1, 2, 2, 2, 5, 1, 1, 0);
  s.kernel = {1, 2}, s.pad_begin = {}, s.out = {5, 4};
  std::vector<float> x(50, 1.0f), dy(40, 1.0f), dw(4);
  x[0] = std::numeric_limits<float>::infinity();
  dy[0] = 0;
  // 0 * inf is NaN where the tap reads it, and only there.
  Guarded scratch((conv_weight_gradient_scratch_bytes(s, 1) + 3) / 4);
  conv_weight_gradient(s, x.data(), dy.data(), dw.data(), scratch.data(), one_thread());
  EXPECT_TRUE(std::isnan(dw[0]));
  EXPECT_EQ(dw[1], 19);
  EXPECT_EQ(dw[2], 20);
  EXPECT_EQ(dw[3], 20);
}

}  // namespace
}  // namespace sardonyx::kernels::test
