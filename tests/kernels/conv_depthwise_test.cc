// Depthwise convolutions, and the means of what they make.
#include "conv_support.h"

namespace sardonyx::kernels::test {
namespace {

class DepthwiseConvTest : public ConvTest {};

// Lines in pairs and alone, tiles at one border of the image, at both and at none, images that are
// near and one that is not.
TEST_P(DepthwiseConvTest, LinesOfAnyLength) {
  Epilogue e;
  e.bias_axis = BiasAxis::row;
  for (const int64_t kernel : {3, 5, 7}) {
    for (const int64_t stride : {1, 2}) {
      for (const int64_t width : {5, 7, 14, 21, 31}) {
        for (const int64_t height : {1, 4, 7}) {
          ConvParams s = square(35, width, 35, kernel, stride, kernel / 2, 35);
          s.in[0] = height;
          e.activation = height == 4 ? Activation::none : Activation::relu;
          e.alpha = height == 7 ? 0.5f : 1.0f;
          set_out(s);
          s.nhwc = true;
          check_layout(s, e);
        }
      }
    }
  }
  ConvParams large = square(33, 95, 33, 3, 1, 1, 33);
  set_out(large);
  large.nhwc = true;
  check_layout(large, e);
}

TEST_P(DepthwiseConvTest, AnySize) {
  for (const int64_t kernel : {3, 5, 7, 2}) {
    for (const int64_t stride : {1, 2, 3}) {
      for (const int64_t size : {1, 2, 5, 7, 14, 19, 28, 40, 56}) {
        check(square(6, size, 6, kernel, stride, kernel / 2, 6));
        check(square(3, size, 6, kernel, stride, 0, 3));
      }
    }
  }
}

// Several taps of a row at once, and two lines under a column.
TEST_P(DepthwiseConvTest, RowsAndColumns) {
  Epilogue e;
  e.bias_axis = BiasAxis::row;
  e.activation = Activation::relu;
  for (const int64_t taps : {2, 3, 4, 5, 6, 9, 11}) {
    for (const int64_t channels : {16, 35}) {
      for (const int64_t width : {1, 6, 8, 23}) {
        for (const bool column : {false, true}) {
          ConvParams s = square(channels, width, channels, taps, 1, taps / 2, channels);
          const size_t across = column ? 1 : 0;
          s.kernel[across] = 1;
          s.pad_begin[across] = s.pad_end[across] = 0;
          s.in[0] = column ? 9 : 2;
          set_out(s);
          s.nhwc = true;
          check_layout(s, e);
        }
      }
    }
  }
  for (const int64_t size : {4, 9}) check(square(20, 25, 20, size, 1, size / 2, 20));
}

// Lines under a window that is one pixel, or a column of two, to which more is done than to clip
// them: a worker has memory for as many as it computes at once.
TEST_P(DepthwiseConvTest, LinesThatAreStored) {
  Epilogue e;
  e.bias_axis = BiasAxis::row;
  e.activation = Activation::sigmoid;
  for (const int64_t taps : {1, 2}) {
    for (const int64_t channels : {16, 48, 300}) {
      ConvParams s = square(channels, 600, channels, taps, 1, 0, channels);
      s.kernel[1] = 1;
      s.in[0] = 4;
      s.pad_begin[0] = s.pad_end[0] = 1;
      if (channels == 300) s.in[1] = 60;
      set_out(s);
      s.nhwc = true;
      check_layout(s, e);
    }
  }
}

TEST_P(DepthwiseConvTest, ManyChannels) {
  for (const int64_t channels : {16, 33, 300, 700}) {
    check(square(channels, 15, channels, 3, 1, 1, channels));
    check(square(channels, 15, channels, 5, 2, 2, channels));
    check(square(channels, 9, channels, 4, 1, 1, channels));
  }
  ConvParams volume;
  volume.rank = 3;
  volume.batch = 2;
  volume.in_channels = volume.out_channels = volume.group = 37;
  volume.in = {4, 9, 11};
  volume.kernel = {2, 3, 3};
  volume.pad_begin = volume.pad_end = {1, 1, 1};
  check(volume);
}

TEST_P(DepthwiseConvTest, MeansOfImages) {
  for (const int64_t channels : {5, 33, 300}) {
    for (const int64_t size : {1, 8, 31}) {
      ConvParams s = square(channels, size, channels, 3, 1, 1, channels);
      s.batch = 2;
      s.nhwc = s.means = true;
      set_out(s);
      SCOPED_TRACE(describe(s));
      ASSERT_TRUE(gives_means(s));
      const int64_t pixels = size * size, count = s.batch * channels * pixels;
      Guarded x(count), w(channels * 9), packed(conv_packed_size(s) / 4), y(count);
      Guarded one(s.batch * channels), two(s.batch * channels);
      fill_random(x.data(), count, 1);
      fill_random(w.data(), channels * 9, 2);
      pack_conv_weights(s, w.data(), nullptr, packed.data(), nullptr);
      for (const Activation activation : {Activation::relu, Activation::silu}) {
        Epilogue e;
        e.activation = activation;
        for (auto [means, pool] : {std::pair<Guarded*, ThreadPool*>{&one, &one_}, {&two, &two_}}) {
          Guarded scratch(conv_scratch_bytes(s, pool->threads()) / 4);
          conv_run(s, x.data(), packed.data(), y.data(), e, scratch.data(), *pool,
                   {.means = means->data()});
          EXPECT_TRUE(scratch.intact() && means->intact() && y.intact());
        }
        for (int64_t i = 0; i < s.batch * channels; ++i) {
          double sum = 0;
          for (int64_t p = 0; p < pixels; ++p)
            sum += y[(i / channels * pixels + p) * channels + i % channels];
          ASSERT_NEAR(one[i], sum / static_cast<double>(pixels), 1e-6) << "at " << i;
          ASSERT_EQ(one[i], two[i]);
        }
      }
    }
  }
}

TEST_P(DepthwiseConvTest, KeepsEveryEpilogue) {
  static const float some = 0;
  for (int activation = 0; activation <= static_cast<int>(Activation::gelu_tanh); ++activation) {
    for (int kind = 0; kind < 4; ++kind) {
      Epilogue e;
      e.activation = static_cast<Activation>(activation);
      e.p0 = e.activation == Activation::clip ? -0.3f : 0.2f;
      e.p1 = 0.5f;
      e.bias_axis = kind % 2 == 0 ? BiasAxis::none : BiasAxis::row;
      e.residual = kind >= 2 ? &some : nullptr;
      e.residual_last = kind == 3;
      e.alpha = 0.5f;
      check(square(5, 19, 5, 3, 1, 1, 5), e);
      check(square(5, 19, 40, 3, 2, 1), e);
      check(square(5, 19, 2, 3, 2, 1), e);
    }
  }
}

// Kernels long enough for lines to be laid out by the phases of the stride, and lines of more than
// one block of columns.
TEST_P(DepthwiseConvTest, ByPhases) {
  const auto line = [](int64_t size, int64_t kernel, int64_t stride, int64_t dilation) {
    ConvParams s;
    s.rank = 1;
    s.in_channels = 2, s.out_channels = 4, s.group = 2;
    s.in = {size, 0, 0};
    s.kernel = {kernel, 0, 0};
    s.stride = {stride, 1, 1};
    s.dilation = {dilation, 1, 1};
    s.pad_begin = {kernel / 2, 0, 0};
    s.pad_end = {kernel / 2 + 3, 0, 0};
    return s;
  };
  for (const int64_t stride : {1, 2, 3, 4, 6, 16}) {
    for (const int64_t dilation : {1, 2, 7}) {
      check(line(9001, 11, stride, dilation));
      check(line(300, 7, stride, dilation));
      check(line(5, 41, stride, dilation));
    }
    check(line(200, 3, stride, 5));
    check(square(3, 23, 3, 9, stride, 5, 3));
  }
  check(line(70, 11, 17, 1));                   // a stride that is gathered
  check(line(4000, 3, 3, (int64_t{1} << 13)));  // a kernel that is not laid out
  ConvParams cube = line(40, 8, 3, 1);
  cube.rank = 3;
  cube.in = {6, 5, 40};
  cube.kernel = {3, 2, 8};
  cube.stride = {2, 1, 3};
  cube.dilation = {1, 2, 3};
  cube.pad_begin = {2, 1, 9};
  cube.pad_end = {1, 3, 20};
  check(cube);
  Epilogue epilogue;
  epilogue.bias_axis = BiasAxis::row;
  epilogue.activation = Activation::silu;
  check(line(9001, 41, 3, 1), epilogue);
  epilogue.activation = Activation::relu;
  check(cube, epilogue);
}

INSTANTIATE_TEST_SUITE_P(Targets, DepthwiseConvTest, ::testing::ValuesIn(usable_targets()),
                         target_name);

}  // namespace
}  // namespace sardonyx::kernels::test
