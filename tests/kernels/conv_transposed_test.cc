// Transposed convolution as convolutions, against its definition.
#include "kernels/conv/transposed.h"

#include <cmath>
#include <random>

#include "gemm_support.h"
#include "kernels/conv/depthwise_transposed.h"
#include "rows_support.h"
#include "sanitized.h"

namespace sardonyx::kernels::test {
namespace {

struct Grid {  // three axes, the missing ones in front
  explicit Grid(const ConvParams& s) {
    for (size_t i = 0; i < static_cast<size_t>(s.rank); ++i) {
      const size_t to = 3 - static_cast<size_t>(s.rank) + i;
      in[to] = s.in[i], out[to] = s.out[i], kernel[to] = s.kernel[i];
      stride[to] = s.stride[i], pad[to] = s.pad_begin[i];
    }
  }
  static int64_t at(const int64_t (&size)[3], int64_t a, int64_t b, int64_t c) {
    return (a * size[1] + b) * size[2] + c;
  }
  int64_t in[3] = {1, 1, 1}, out[3] = {1, 1, 1}, kernel[3] = {1, 1, 1}, stride[3] = {1, 1, 1},
          pad[3] = {};
};

int64_t count_of(const int64_t (&size)[3]) { return size[0] * size[1] * size[2]; }

// Element [n][c][pixel] of images of that layout.
int64_t element(const ConvParams& s, int64_t channels, int64_t pixels, int64_t n, int64_t c,
                int64_t pixel) {
  return s.nhwc ? (n * pixels + pixel) * channels + c : (n * channels + c) * pixels + pixel;
}

std::vector<double> by_definition(const ConvParams& s, const float* x, const float* w,
                                  const float* factors, const float* bias) {
  const Grid g(s);
  const int64_t ins = count_of(g.in), outs = count_of(g.out), taps = count_of(g.kernel);
  std::vector<double> y(static_cast<size_t>(s.batch * s.out_channels * outs));
  for (int64_t n = 0; n < s.batch; ++n) {
    for (int64_t m = 0; m < s.out_channels; ++m) {
      const auto at = [&](int64_t pixel) -> double& {
        return y[static_cast<size_t>(element(s, s.out_channels, outs, n, m, pixel))];
      };
      for (int64_t i = 0; i < ins; ++i) {
        const int64_t from[3] = {i / g.in[2] / g.in[1], i / g.in[2] % g.in[1], i % g.in[2]};
        for (int64_t t = 0; t < taps; ++t) {
          const int64_t tap[3] = {t / g.kernel[2] / g.kernel[1], t / g.kernel[2] % g.kernel[1],
                                  t % g.kernel[2]};
          int64_t to[3];
          bool lands = true;
          for (size_t k = 0; k < 3; ++k) {
            to[k] = from[k] * g.stride[k] + tap[k] - g.pad[k];
            lands = lands && to[k] >= 0 && to[k] < g.out[k];
          }
          for (int64_t c = 0; lands && c < s.in_channels; ++c) {
            at(Grid::at(g.out, to[0], to[1], to[2])) +=
                static_cast<double>(x[element(s, s.in_channels, ins, n, c, i)]) *
                static_cast<double>(w[(c * s.out_channels + m) * taps + t]) *
                static_cast<double>(factors[m]);
          }
        }
      }
      for (int64_t i = 0; i < outs; ++i)
        at(i) = std::max(0.0, at(i) + static_cast<double>(bias[m]));
    }
  }
  return y;
}

void check(ConvParams s) {
  const Grid g(s);
  const int64_t ins = count_of(g.in), outs = count_of(g.out), taps = count_of(g.kernel);
  SCOPED_TRACE(testing::Message() << "rank " << s.rank << (s.nhwc ? " last " : " first ") << s.batch
                                  << " x " << s.in_channels << " -> " << s.out_channels << " in "
                                  << g.in[0] << " " << g.in[1] << " " << g.in[2] << " kernel "
                                  << g.kernel[0] << " " << g.kernel[1] << " " << g.kernel[2]
                                  << " stride " << g.stride[0] << " " << g.stride[1] << " "
                                  << g.stride[2] << " pad " << g.pad[0] << " " << g.pad[1] << " "
                                  << g.pad[2] << " out " << g.out[0] << " " << g.out[1] << " "
                                  << g.out[2]);
  Guarded x(s.batch * s.in_channels * ins, 1), w(s.in_channels * s.out_channels * taps, 1);
  fill_random(x.data(), x.size(), 1);
  fill_random(w.data(), w.size(), 2);
  const auto factors = random_floats(s.out_channels, 0.5f, 2, 3);
  const auto bias = random_floats(s.out_channels, -1, 1, 4);
  Epilogue epilogue;
  epilogue.activation = Activation::relu;
  epilogue.bias = bias.data();
  // As sessions pack them, that know no sizes of images yet.
  ConvParams format = s;
  format.batch = 1;
  format.in = format.out = format.pad_begin = {};
  Guarded packed(transposed_packed_size(format) / 4);
  pack_transposed_weights(format, w.data(), factors.data(), packed.data(), &one_thread());
  EXPECT_TRUE(packed.intact());
  const auto run = [&](ThreadPool& pool) {
    Guarded y(s.batch * s.out_channels * outs, 1);
    Guarded scratch((transposed_scratch_bytes(s, pool.threads()) + 3) / 4);
    transposed_run(s, x.data(), packed.data(), y.data(), epilogue, scratch.data(), pool);
    EXPECT_TRUE(y.intact() && scratch.intact());
    return std::vector<float>(y.data(), y.data() + y.size());
  };
  const auto y = run(one_thread());
  expect_same_bits(y, run(two_threads()));
  const double terms = static_cast<double>(s.in_channels * taps);
  expect_near(y, by_definition(s, x.data(), w.data(), factors.data(), bias.data()),
              1e-6 * std::sqrt(terms) + 1e-6);
}

TEST(TransposedConv, RandomShapes) {
  each_target([] {
    std::mt19937 engine(1);
    const auto draw = [&](int64_t low, int64_t high) {
      return std::uniform_int_distribution<int64_t>(low, high)(engine);
    };
    for (int i = 0; i < times(300); ++i) {
      ConvParams s;
      s.rank = static_cast<int>(draw(1, 3));
      s.batch = draw(1, 2), s.in_channels = draw(1, 9), s.out_channels = draw(1, 20);
      for (size_t k = 0; k < static_cast<size_t>(s.rank); ++k) {
        s.in[k] = draw(1, 6), s.stride[k] = draw(1, 4), s.kernel[k] = draw(s.stride[k], 7);
        s.pad_begin[k] = draw(0, 4);
        const int64_t full = (s.in[k] - 1) * s.stride[k] + s.kernel[k] - s.pad_begin[k];
        s.out[k] = std::max<int64_t>(1, full + draw(-3, 3));
      }
      for (const bool last : {false, true}) {
        s.nhwc = last;
        check(s);
        if (testing::Test::HasFailure()) return;
      }
    }
  });
}

// More than is made at a time; few channels; phases beside each other of which some have a tap
// less.
TEST(TransposedConv, Bands) {
  ConvParams s;
  s.in_channels = 3, s.out_channels = 40;
  s.in = {70, 41, 0}, s.kernel = {3, 4, 0}, s.stride = {2, 2, 1}, s.pad_begin = {1, 1, 0};
  s.out = {140, 82, 0};
  for (const bool last : {false, true}) {
    s.nhwc = last;
    check(s);
  }
  ConvParams line;
  line.rank = 1;
  line.in_channels = 2, line.out_channels = 33, line.nhwc = true;
  line.in = {1500, 0, 0}, line.kernel = {16, 0, 0}, line.stride = {8, 1, 1},
  line.pad_begin = {4, 0, 0};
  line.out = {12000, 0, 0};
  check(line);
}

TEST(TransposedConv, NothingToRead) {
  ConvParams s;
  s.in_channels = 4, s.out_channels = 8;
  s.in = {0, 3, 0}, s.kernel = {3, 3, 0}, s.stride = {2, 2, 1}, s.out = {2, 7, 0};
  for (const bool last : {false, true}) {
    s.nhwc = last;
    check(s);
  }
}

// Each channel is a transposed convolution of its own.
void check_depthwise(const ConvParams& s) {
  const Grid g(s);
  const int64_t ins = count_of(g.in), outs = count_of(g.out), taps = count_of(g.kernel);
  const int64_t channels = s.in_channels;
  SCOPED_TRACE(testing::Message() << "rank " << s.rank << " channels " << channels << " in "
                                  << g.in[0] << " " << g.in[1] << " " << g.in[2] << " kernel "
                                  << g.kernel[0] << " " << g.kernel[1] << " " << g.kernel[2]
                                  << " stride " << g.stride[0] << " " << g.stride[1] << " "
                                  << g.stride[2] << " pad " << g.pad[0] << " " << g.pad[1] << " "
                                  << g.pad[2] << " out " << g.out[0] << " " << g.out[1] << " "
                                  << g.out[2]);
  Guarded x(s.batch * channels * ins, 1), w(channels * taps, 1), packed(channels * taps, 1);
  fill_random(x.data(), x.size(), 1);
  fill_random(w.data(), w.size(), 2);
  const auto bias = random_floats(channels, -1, 1, 4);
  pack_depthwise_transposed(channels, taps, w.data(), packed.data());
  const auto run = [&](ThreadPool& pool) {
    Guarded y(s.batch * channels * outs, 1);
    depthwise_transposed(s, x.data(), packed.data(), bias.data(), y.data(), pool);
    EXPECT_TRUE(y.intact());
    return std::vector<float>(y.data(), y.data() + y.size());
  };
  const auto y = run(one_thread());
  expect_same_bits(y, run(two_threads()));
  std::vector<double> wanted(y.size());
  for (size_t o = 0; o < y.size(); ++o)
    wanted[o] = static_cast<double>(bias[o % static_cast<size_t>(channels)]);
  for (int64_t i = 0; i < s.batch * ins * taps; ++i) {
    const int64_t n = i / taps / ins, from = i / taps % ins, t = i % taps;
    const int64_t at[3] = {from / (g.in[1] * g.in[2]), from / g.in[2] % g.in[1], from % g.in[2]},
                  tap[3] = {t / (g.kernel[1] * g.kernel[2]), t / g.kernel[2] % g.kernel[1],
                            t % g.kernel[2]};
    int64_t to[3];
    bool inside = true;
    for (int k = 0; k < 3; ++k) {
      to[k] = at[k] * g.stride[k] + tap[k] - g.pad[k];
      inside = inside && to[k] >= 0 && to[k] < g.out[k];
    }
    for (int64_t c = 0; inside && c < channels; ++c)
      wanted[static_cast<size_t>((n * outs + Grid::at(g.out, to[0], to[1], to[2])) * channels +
                                 c)] += static_cast<double>(x[(n * ins + from) * channels + c]) *
                                        static_cast<double>(w[c * taps + t]);
  }
  expect_near(y, wanted, 1e-6 * std::sqrt(static_cast<double>(taps)) + 1e-6);
}

TEST(TransposedConv, Depthwise) {
  each_target([] {
    std::mt19937 engine(1);
    const auto draw = [&](int64_t low, int64_t high) {
      return std::uniform_int_distribution<int64_t>(low, high)(engine);
    };
    for (int i = 0; i < times(300); ++i) {
      ConvParams s;
      s.rank = static_cast<int>(draw(1, 3));
      s.batch = draw(1, 2);
      s.nhwc = true;
      s.in_channels = s.out_channels = s.group = draw(0, 9) == 0 ? draw(60, 140) : draw(1, 40);
      for (size_t k = 0; k < static_cast<size_t>(s.rank); ++k) {
        s.in[k] = draw(0, 6), s.stride[k] = draw(1, 4), s.kernel[k] = draw(1, 7);
        s.pad_begin[k] = draw(-1, 4);
        const int64_t full = (s.in[k] - 1) * s.stride[k] + s.kernel[k] - s.pad_begin[k];
        s.out[k] = std::max<int64_t>(1, full + draw(-3, 3));
      }
      check_depthwise(s);
      if (testing::Test::HasFailure()) return;
    }
  });
}

}  // namespace
}  // namespace sardonyx::kernels::test
