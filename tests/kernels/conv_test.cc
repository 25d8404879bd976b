// Convolution against its definition, by every path and instruction set.
#include <tuple>

#include "conv_support.h"
#include "kernels/gemm/tiles.h"

namespace sardonyx::kernels::test {
namespace {

TEST_P(ConvTest, LayersOfResidualNetworks) {
  check(square(3, 50, 24, 7, 2, 3));
  check(square(24, 28, 40, 3, 1, 1));
  check(square(40, 14, 33, 3, 2, 1));
  check(square(64, 14, 64, 3, 1, 1));
  check(square(96, 7, 64, 3, 1, 1));
  check(square(33, 28, 48, 1));
  check(square(33, 28, 48, 1, 2));
  check(square(200, 7, 120, 1));
  check(square(500, 3, 40, 3, 1, 1));
  check(square(500, 7, 40, 3, 1, 1));  // sums in two parts
  check(square(1024, 28, 24, 1, 2));   // pixels that fall into the same sets of a cache
}

TEST_P(ConvTest, PicturesThatComeAsPlanes) {
  int read = 0;
  for (const int64_t channels : {2, 3, 4}) {
    for (const int64_t size : {15, 28, 33, 57}) {
      for (const auto& [kernel, stride, pad] : {std::tuple<int64_t, int64_t, int64_t>{3, 2, 1},
                                                {7, 2, 3},
                                                {3, 2, 0},
                                                {2, 1, 0},
                                                {5, 3, 1}}) {
        ConvParams s = square(channels, size, 24, kernel, stride, pad);
        s.batch = 2;
        s.nhwc = true;
        set_out(s);
        if (!takes_nchw_input(s)) continue;
        s.nchw_input = true;
        check_layout(s, {});
        ++read;
      }
    }
  }
  EXPECT_GT(read, 30);
}

TEST_P(ConvTest, ProductsAsPreciseAsHalves) {
  for (ConvParams shape :
       {square(96, 14, 96, 1), square(48, 14, 64, 3, 2, 1), square(33, 7, 40, 5)}) {
    shape.coarse = true;
    check(shape);
  }
}

TEST_P(ConvTest, FactorsOfInputChannels) {
  for (const int64_t out : {3, 24, 70, 200}) {
    for (const int64_t size : {1, 7, 12}) {
      ConvParams s = square(37, size, out, 1);
      s.batch = 2;
      s.nhwc = s.input_factors = true;
      set_out(s);
      SCOPED_TRACE(describe(s));
      ASSERT_TRUE(takes_input_factors(s));
      const int64_t pixels = size * size, count = s.batch * out * pixels;
      Guarded x(s.batch * 37 * pixels), scaled(s.batch * 37 * pixels), w(out * 37);
      Guarded factors(s.batch * 37), packed(conv_packed_size(s) / 4);
      Guarded before(count), expected(count), one(count), two(count);
      fill_random(x.data(), x.size(), 1);
      fill_random(w.data(), w.size(), 2);
      fill_random(factors.data(), factors.size(), 3);
      fill_random(before.data(), count, 4);
      Epilogue e;
      e.residual = before.data();
      pack_conv_weights(s, w.data(), nullptr, packed.data(), nullptr);
      for (auto [y, pool] : {std::pair<Guarded*, ThreadPool*>{&one, &one_}, {&two, &two_}}) {
        Guarded scratch(conv_scratch_bytes(s, pool->threads()) / 4);
        conv_run(s, x.data(), packed.data(), y->data(), e, scratch.data(), *pool,
                 {.input_factors = factors.data()});
        EXPECT_TRUE(scratch.intact() && y->intact());
      }
      for (int64_t i = 0; i < x.size(); ++i) {
        const int64_t image = i / (37 * pixels);
        scaled.data()[i] = x[i] * factors[image * 37 + i % 37];
      }
      for (int64_t i = 0; i < count; ++i) {
        double sum = before[i];
        for (int64_t c = 0; c < 37; ++c)
          sum += double{scaled[i / out * 37 + c]} * double{w[i % out * 37 + c]};
        ASSERT_NEAR(one[i], sum, 2e-5) << "at " << i;
        ASSERT_EQ(one[i], two[i]);
      }
    }
  }
}

TEST_P(ConvTest, FewOutputChannels) {
  for (const int64_t out : {1, 2, 3, 5, 8, 10}) {
    check(square(7, 21, out, 3, 1, 1));
    check(square(7, 21, out, 1));
  }
  check(square(12, 17, 12, 3, 1, 1, 3));
  check(square(32, 9, 32, 3, 2, 1, 8));
}

// Dot products along the lines of windows.
TEST_P(ConvTest, FewOutputChannelsOfManyTerms) {
  static const float some = 0;
  for (const int64_t outputs : sizes<int64_t>({1, 2, 5, 4, 6, 7, 3, 8, 9})) {
    for (const int64_t channels : sizes<int64_t>({5, 16, 33})) {
      for (const int64_t stride : {1, 2}) {
        ConvParams s = square(channels, 13, outputs, 7, stride, 3);
        s.batch = 2;
        Epilogue e;
        e.bias_axis = BiasAxis::row;
        e.residual = outputs % 2 == 0 ? &some : nullptr;
        e.activation = outputs % 3 == 0 ? Activation::tanh : Activation::relu;
        e.alpha = 0.5f, e.beta = 0.25f;
        check(s, e);
        s.kernel = {3, 2, 0}, s.dilation = {1, 3, 1}, s.pad_begin = {-1, 5, 0};
        check(s);
        s.kernel = {3, 1, 0}, s.dilation = {1, 1, 1}, s.pad_begin = s.pad_end = {1, 0, 0};
        s.stride = {1, 1, 1};
        for (const int64_t width : {1, 4}) {  // one column is no axis
          s.in[1] = width;
          check(s);
        }
      }
    }
    ConvParams line = square(24, 40, outputs, 7, 1, 3);
    line.rank = 1;
    check(line);
    ConvParams cube = square(40, 6, outputs, 3, 1, 1);
    cube.rank = 3;
    cube.in[2] = 5, cube.kernel[2] = 2, cube.pad_begin[2] = 1;
    check(cube);
  }
}

// As atrous spatial pyramids have them: some kernel positions read the image for some outputs, some
// for none.
TEST_P(ConvTest, KernelsThatReachBeyondTheImage) {
  for (const int64_t size : sizes<int64_t>({1, 4, 14})) {
    for (const int64_t dilation : sizes<int64_t>({2, 5, 12, 24})) {
      for (const int64_t stride : {1, 2}) {
        ConvParams s = square(70, size, 40, 3, stride, dilation);
        s.dilation = {dilation, dilation, 1};
        s.batch = size < 5 ? 9 : 2;
        check(s);
        s.pad_begin[0] += 3, s.pad_end[0] += 5;  // lines of padding alone
        check(s, {.bias_axis = BiasAxis::row});
        s.group = 2;
        check(s);
      }
    }
  }
  ConvParams wide = square(1500, 3, 20, 3, 1, 2);  // sums in several parts
  wide.dilation = {2, 4, 1};
  wide.pad_begin = wide.pad_end = {2, 4, 0};
  check(wide);
  ConvParams cube;
  cube.rank = 3;
  cube.batch = 2;
  cube.in_channels = 66;
  cube.out_channels = 18;
  cube.in = {3, 4, 5};
  cube.kernel = {3, 3, 5};
  cube.dilation = {2, 9, 3};
  cube.pad_begin = cube.pad_end = {2, 9, 6};
  check(cube);
}

TEST_P(ConvTest, OneAndThreeDimensions) {
  ConvParams line;
  line.rank = 1;
  line.in_channels = 5;
  line.out_channels = 20;
  for (const int64_t kernel : {1, 3, 8}) {
    for (const int64_t stride : {1, 2, 5}) {
      line.in = {101, 0, 0};
      line.kernel = {kernel, 0, 0};
      line.stride = {stride, 1, 1};
      line.pad_begin = {2, 0, 0};
      line.pad_end = {kernel, 0, 0};
      check(line);
      ConvParams depthwise = line;
      depthwise.group = 5;
      depthwise.out_channels = 10;
      check(depthwise);
    }
  }
  ConvParams cube;
  cube.rank = 3;
  cube.in_channels = 4;
  cube.out_channels = 18;
  cube.in = {5, 9, 11};
  cube.kernel = {3, 2, 3};
  cube.pad_begin = {1, 0, 2};
  cube.pad_end = {0, 1, 1};
  cube.stride = {1, 2, 1};
  check(cube);
  cube.group = 2;
  check(cube);
  cube.group = 4;
  cube.out_channels = 4;
  check(cube);
}

TEST_P(ConvTest, RandomShapes) {
  std::mt19937 random(7);
  const auto between = [&](int64_t low, int64_t high) {
    return std::uniform_int_distribution<int64_t>(low, high)(random);
  };
  for (int i = 0; i < 400; ++i) {
    ConvParams s;
    s.rank = static_cast<int>(between(1, 3));
    s.batch = between(1, 2);
    s.group = between(0, 2) == 0 ? between(1, 6) : 1;
    s.in_channels = s.group * (between(0, 1) ? between(1, 9) : 1);
    s.out_channels = s.group * between(1, 40 / s.group);
    for (size_t d = 0; d < static_cast<size_t>(s.rank); ++d) {
      s.in[d] = between(1, s.rank == 1 ? 90 : s.rank == 2 ? 24 : 9);
      s.kernel[d] = between(1, 4);
      s.stride[d] = between(1, 3);
      s.dilation[d] = between(1, 2);
      s.pad_begin[d] = between(0, 3);
      s.pad_end[d] = between(0, 3);
      if (between(0, 9) == 0) s.pad_begin[d] = -1;
    }
    check(s);
  }
}

TEST_P(ConvTest, EveryPathWasTaken) {
  check(square(6, 9, 6, 3, 1, 1, 6));
  check(square(6, 9, 6, 2, 1, 0, 6));
  check(square(6, 9, 12, 3, 1, 1));
  check(square(6, 9, 32, 1));
  check(square(6, 5, 32, 3));
  ConvParams tiled = square(6, 9, 32, 3);
  tiled.winograd = 4;
  check(tiled);
  check(square(32, 9, 32, 3, 1, 1, 8));
  ConvParams thin = square(6, 9, 32, 3);
  thin.in[1] = 3;
  check(thin);
  check(square(24, 9, 2, 3, 1, 1));
  check(square(24, 9, 1, 3, 1, 1));
  // Groups and dot products need vectors.
  std::string taken;
  for (const ConvPath path : paths_) taken.append(name_of(path)).append(" ");
  EXPECT_EQ(paths_.size(), tile_kernels().portable ? 10u : 12u) << taken;
}

TEST_P(ConvTest, ImagesNarrowerThanAVector) {
  for (const int64_t size : {1, 2, 3, 4, 6, 8, 13}) {
    check(square(9, size, 32, 3, 1, 1));
    check(square(9, size, 32, 3, 2, 1));
    check(square(9, size, 32, 3, 3, 1));
    check(square(9, size, 3, 3, 1, 1));
    check(square(9, size, 32, 5, 1, 4));
  }
  ConvParams thin = square(3, 40, 32, 3, 1, 1);
  thin.in[1] = 1;  // more rows in a strip than are tracked as runs
  thin.kernel[1] = 3;
  check(thin);
}

TEST_P(ConvTest, LargeKernels) {
  check(square(2, 30, 20, 11, 4, 2));
  check(square(3, 24, 16, 9, 1, 4));
  check(square(1, 24, 20, 9, 2, 4));
}

TEST_P(ConvTest, StridesLongerThanTheImage) {
  for (const int64_t stride : {int64_t{40}, int64_t{1} << 31, int64_t{1} << 40}) {
    check(square(3, 20, 20, 3, stride, 1));
    check(square(3, 20, 3, 3, stride, 1, 3));
    check(square(3, 20, 2, 3, stride, 1));
  }
}

TEST_P(ConvTest, EmptySizes) {
  check(square(3, 2, 8, 5));         // no output pixel
  check(square(0, 5, 20, 3, 1, 1));  // no input channel
  ConvParams none = square(4, 5, 20, 3);
  none.batch = 0;
  check(none);
  none.batch = 1;
  none.out_channels = 0;
  check(none);
}

TEST(ConvChoice, NamesWhatItRefused) {
  ConvParams s = square(8, 3, 64, 3, 1, 1);
  set_out(s);
  const ConvChoice choice = choose_conv(s);
  EXPECT_EQ(name_of(choice.path), "channel_vectors");
  ASSERT_EQ(choice.refusals().size(), 4u);
  for (const auto& refusal : choice.refusals()) EXPECT_FALSE(refusal.reason.empty());
}

INSTANTIATE_TEST_SUITE_P(Targets, ConvTest, ::testing::ValuesIn(usable_targets()), target_name);

}  // namespace
}  // namespace sardonyx::kernels::test
