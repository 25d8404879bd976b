// Convolution against its definition, by every path and instruction set.
#include "kernels/conv/conv.h"

#include <gtest/gtest.h>

#include <cmath>
#include <cstring>
#include <set>
#include <tuple>
#include <vector>

#include "base/thread_pool.h"
#include "gemm_support.h"
#include "kernels/conv/dealt_join.h"
#include "kernels/gemm/tiles.h"
#include "sanitized.h"

namespace sardonyx::kernels::test {
namespace {

int64_t product(const ConvShape::Dims& dims, int rank) {
  int64_t count = 1;
  for (int i = 0; i < rank; ++i) count *= dims[static_cast<size_t>(i)];
  return count;
}

// A square two-dimensional convolution.
ConvShape square(int64_t channels, int64_t size, int64_t out_channels, int64_t kernel,
                 int64_t stride = 1, int64_t pad = 0, int64_t group = 1) {
  ConvShape s;
  s.in_channels = channels;
  s.out_channels = out_channels;
  s.group = group;
  s.in = {size, size, 0};
  s.kernel = {kernel, kernel, 0};
  s.stride = {stride, stride, 1};
  s.pad_begin = s.pad_end = {pad, pad, 0};
  return s;
}

void set_out(ConvShape& s) {
  for (size_t i = 0; i < static_cast<size_t>(s.rank); ++i) {
    s.out[i] = conv_out_size(s.in[i], s.kernel[i], s.stride[i], s.dilation[i], s.pad_begin[i],
                             s.pad_end[i]);
  }
}

std::string describe(const ConvShape& s) {
  std::string text = std::string(s.channels_last ? "channels last, " : "") +
                     std::to_string(s.batch) + "x" + std::to_string(s.in_channels) + "->" +
                     std::to_string(s.out_channels) + " group " + std::to_string(s.group);
  for (size_t i = 0; i < static_cast<size_t>(s.rank); ++i) {
    text += "; in " + std::to_string(s.in[i]) + " kernel " + std::to_string(s.kernel[i]) +
            " stride " + std::to_string(s.stride[i]) + " dilation " +
            std::to_string(s.dilation[i]) + " pads " + std::to_string(s.pad_begin[i]) + "," +
            std::to_string(s.pad_end[i]);
  }
  return text;
}

class ConvTest : public ::testing::TestWithParam<int64_t> {
 protected:
  ConvTest() : target_(GetParam()) {}

  void check(ConvShape s, const Epilogue& epilogue = {}) {
    set_out(s);
    check_layout(s, epilogue);
    s.channels_last = true;
    check_layout(s, epilogue);
  }

  void check_layout(const ConvShape& s, Epilogue epilogue) {
    SCOPED_TRACE(describe(s));
    const int64_t terms = s.in_channels / s.group * product(s.kernel, s.rank);
    const int64_t in_pixels = product(s.in, s.rank), out_pixels = product(s.out, s.rank);
    // NaN stands before and after the input, so that reading outside it shows.
    Guarded x(s.batch * s.in_channels * in_pixels, 1);
    Guarded w(s.out_channels * terms, 1);
    const int64_t out = s.batch * s.out_channels * out_pixels;
    Guarded before(out), expected(out), one(out), two(out);
    fill_random(x.data(), x.size(), 1);
    fill_random(w.data(), w.size(), 2);
    fill_random(before.data(), out, 3);
    Guarded bias(s.out_channels);
    fill_random(bias.data(), s.out_channels, 4);
    if (epilogue.bias_axis != BiasAxis::none) epilogue.bias = bias.data();
    const bool residual = epilogue.residual != nullptr;
    if (residual) epilogue.residual = before.data();
    conv_reference(s, x.data(), w.data(), expected.data(), epilogue);
    if (s.channels_last) {
      if (!s.planes) turn(x, s.batch, s.in_channels, in_pixels);
      turn(before, s.batch, s.out_channels, out_pixels);
      turn(expected, s.batch, s.out_channels, out_pixels);
    }

    // As sessions pack them, that know no sizes of images yet.
    ConvShape format = s;
    format.batch = 1;
    format.in = format.out = format.pad_begin = format.pad_end = {};
    EXPECT_EQ(conv_packed_size(format), conv_packed_size(s));
    Guarded packed(conv_packed_size(format) / 4);
    pack_conv_weights(format, w.data(), nullptr, packed.data(), &two_);
    EXPECT_TRUE(packed.intact());
    // What was bound for several threads may run on one.
    EXPECT_LE(conv_scratch_bytes(s, 1), conv_scratch_bytes(s, 2));
    EXPECT_LE(conv_scratch_bytes(s, 1), conv_scratch_bytes(s, 5));
    for (auto [y, pool] : {std::pair<Guarded*, ThreadPool*>{&one, &one_}, {&two, &two_}}) {
      if (residual) {  // in place
        std::copy_n(before.data(), out, y->data());
        epilogue.residual = y->data();
      }
      Guarded scratch(conv_scratch_bytes(s, pool->threads()) / 4);
      conv_run(s, x.data(), packed.data(), y->data(), epilogue, scratch.data(), *pool);
      EXPECT_TRUE(scratch.intact());
      EXPECT_TRUE(y->intact());
    }
    EXPECT_EQ(std::memcmp(one.data(), two.data(), sizeof(float) * static_cast<size_t>(out)), 0);
    const ConvPath path = choose_conv(s).path;
    // The last: long sums grow while they are rounded.
    double tolerance =
        3e-6 + 2e-6 * std::sqrt(static_cast<double>(terms)) + 1e-8 * static_cast<double>(terms);
    if (path == ConvPath::winograd || path == ConvPath::winograd_last) tolerance *= 10;
    if (s.coarse) tolerance += 0x1p-15 * std::sqrt(static_cast<double>(terms));
    for (int64_t i = 0; i < out; ++i) {
      ASSERT_NEAR(one[i], expected[i], tolerance) << "at " << i;
    }
    paths_.insert(path);
  }

  // Channels x pixels to pixels x channels, in each of the batch.
  static void turn(Guarded& values, int64_t batch, int64_t channels, int64_t pixels) {
    const std::vector<float> old(values.data(), values.data() + batch * channels * pixels);
    for (int64_t n = 0; n < batch; ++n) {
      for (int64_t c = 0; c < channels; ++c) {
        for (int64_t p = 0; p < pixels; ++p) {
          values.data()[(n * pixels + p) * channels + c] =
              old[static_cast<size_t>((n * channels + c) * pixels + p)];
        }
      }
    }
  }

  UseTarget target_;
  ThreadPool one_{1};
  ThreadPool two_{2};
  std::set<ConvPath> paths_;
};

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
        ConvShape s = square(channels, size, 24, kernel, stride, pad);
        s.batch = 2;
        s.channels_last = true;
        set_out(s);
        if (!reads_planes(s)) continue;
        s.planes = true;
        check_layout(s, {});
        ++read;
      }
    }
  }
  EXPECT_GT(read, 30);
}

TEST_P(ConvTest, GroupsWhoseChannelsComeShuffled) {
  static const float some = 0;
  for (const int64_t each : {1, 5, 34}) {
    for (const int64_t groups : {2, 3, 4}) {
      for (const int64_t size : {1, 5, 20}) {
        ConvShape s = square(groups * each, size, groups * (each + 1), 1, 1, 0, groups);
        s.batch = 2;
        s.channels_last = true;
        s.shuffle = groups;
        set_out(s);
        Epilogue e;
        e.bias_axis = BiasAxis::row;
        e.residual = size == 5 ? &some : nullptr;
        check_layout(s, e);
        s.shuffle = each;
        check_layout(s, e);
      }
    }
  }
}

TEST_P(ConvTest, GroupsThatDealTheirChannelsOut) {
  static const float some = 0;
  for (const int64_t groups : {2, 4, 8}) {
    for (const auto& [in, out] :
         {std::pair<int64_t, int64_t>{1, 3}, {6, 28}, {34, 34}, {17, 5}, {256, 9}}) {
      for (const int64_t size : {1, 5, 20}) {
        ConvShape s = square(groups * in, size, groups * out, 1, 1, 0, groups);
        s.batch = 2;
        s.channels_last = s.deals_out = true;
        set_out(s);
        if (!deals_channels_out(s)) {  // groups are more than lanes
          EXPECT_LT(tile_kernels().lanes, groups);
          continue;
        }
        Epilogue e;
        e.bias_axis = BiasAxis::row;
        e.activation = size == 5 ? Activation::sigmoid : Activation::relu;
        check_layout(s, e);
        EXPECT_EQ(choose_conv(s).path, ConvPath::dealt_last);
        s.shuffle = in;  // and find them dealt out
        e.residual = &some;
        check_layout(s, e);
        EXPECT_EQ(choose_conv(s).path, ConvPath::dealt_last);
      }
    }
  }
}

// Neighbouring pixels of one image, whichever dimension they are cut along.
TEST_P(ConvTest, SomeLinesOfAnImageDealOutTheirChannels) {
  struct Cut {
    ConvShape::Dims in, first, count;
    bool dealt;
  };
  for (const Cut& cut :
       {Cut{{9, 7, 0}, {2, 0, 0}, {5, 7, 0}, true}, Cut{{9, 1, 0}, {8, 0, 0}, {1, 1, 0}, true},
        Cut{{1, 40, 0}, {0, 3, 0}, {1, 30, 0}, true}, Cut{{9, 7, 0}, {0, 2, 0}, {9, 5, 0}, false},
        Cut{{9, 7, 0}, {1, 2, 0}, {2, 5, 0}, false}}) {
    for (const int64_t shuffle : {1, 6}) {
      ConvShape s = square(24, 1, 112, 1, 1, 0, 4);
      s.in = cut.in, s.out = cut.count;
      s.shuffle = shuffle;
      for (size_t i = 0; i < 2; ++i) {
        s.pad_begin[i] = -cut.first[i];
        s.pad_end[i] = cut.first[i] + cut.count[i] - cut.in[i];
      }
      s.channels_last = s.deals_out = true;
      EXPECT_EQ(choose_conv(s).path == ConvPath::dealt_last, cut.dealt);
      if (!cut.dealt) continue;
      Epilogue e;
      e.bias_axis = BiasAxis::row;
      e.activation = Activation::relu;
      check_layout(s, e);
    }
  }
}

// Lines in pairs and alone, tiles at one border of the image, at both and at none, images that are
// near and one that is not.
TEST_P(ConvTest, DepthwiseLinesOfAnyLength) {
  Epilogue e;
  e.bias_axis = BiasAxis::row;
  for (const int64_t kernel : {3, 5, 7}) {
    for (const int64_t stride : {1, 2}) {
      for (const int64_t width : {5, 7, 14, 21, 31}) {
        for (const int64_t height : {1, 4, 7}) {
          ConvShape s = square(35, width, 35, kernel, stride, kernel / 2, 35);
          s.in[0] = height;
          e.activation = height == 4 ? Activation::none : Activation::relu;
          e.alpha = height == 7 ? 0.5f : 1.0f;
          set_out(s);
          s.channels_last = true;
          check_layout(s, e);
        }
      }
    }
  }
  ConvShape large = square(33, 95, 33, 3, 1, 1, 33);
  set_out(large);
  large.channels_last = true;
  check_layout(large, e);
}

void check_join(const std::vector<int64_t>& parts, int64_t pixels, int64_t groups, bool relu) {
  ThreadPool one(1), two(2);
  std::vector<Guarded> images;
  std::vector<JoinedImage> joined;
  images.reserve(parts.size());
  int64_t channels = 0;
  for (const int64_t count : parts) {
    images.emplace_back(pixels * count);
    fill_random(images.back().data(), pixels * count, static_cast<uint32_t>(count));
    if (pixels * count > 0) images.back().data()[0] = NAN;
    joined.push_back({images.back().data(), count});
    channels += count;
  }
  const int64_t each = channels / groups;
  for (ThreadPool* pool : {&one, &two}) {
    Guarded y(pixels * channels), scratch(dealt_join_floats(channels, pool->threads()));
    join_dealt(joined, pixels, groups, relu, y.data(), scratch.data(), *pool);
    EXPECT_TRUE(y.intact() && scratch.intact());
    for (int64_t i = 0; i < pixels * channels; ++i) {
      int64_t c = i % channels % groups * each + i % channels / groups;
      size_t image = 0;
      while (c >= parts[image]) c -= parts[image++];
      float expected = joined[image].x[i / channels * parts[image] + c];
      if (relu && expected < 0) expected = 0;
      ASSERT_EQ(std::memcmp(y.data() + i, &expected, sizeof expected), 0) << "at " << i;
    }
  }
}

TEST_P(ConvTest, JoinedImagesDealtOut) {
  for (const int64_t groups : {2, 4, 8}) {
    for (const std::vector<int64_t>& parts :
         {std::vector<int64_t>{8}, {5, 3}, {112, 24}, {1, 6, 33}, {20, 0, 300}}) {
      for (const int64_t pixels : {0, 1, 7, 200}) {
        for (const bool relu : {false, true}) check_join(parts, pixels, groups, relu);
      }
    }
  }
}

TEST_P(ConvTest, ProductsAsPreciseAsHalves) {
  for (ConvShape shape :
       {square(96, 14, 96, 1), square(48, 14, 64, 3, 2, 1), square(33, 7, 40, 5)}) {
    shape.coarse = true;
    check(shape);
  }
}

TEST_P(ConvTest, Depthwise) {
  for (const int64_t kernel : {3, 5, 7, 2}) {
    for (const int64_t stride : {1, 2, 3}) {
      for (const int64_t size : {1, 2, 5, 7, 14, 19, 28, 40, 56}) {
        check(square(6, size, 6, kernel, stride, kernel / 2, 6));
        check(square(3, size, 6, kernel, stride, 0, 3));
      }
    }
  }
}

TEST_P(ConvTest, DepthwiseOfManyChannels) {
  for (const int64_t channels : {16, 33, 300, 700}) {
    check(square(channels, 15, channels, 3, 1, 1, channels));
    check(square(channels, 15, channels, 5, 2, 2, channels));
    check(square(channels, 9, channels, 4, 1, 1, channels));
  }
  ConvShape volume;
  volume.rank = 3;
  volume.batch = 2;
  volume.in_channels = volume.out_channels = volume.group = 37;
  volume.in = {4, 9, 11};
  volume.kernel = {2, 3, 3};
  volume.pad_begin = volume.pad_end = {1, 1, 1};
  check(volume);
}

TEST_P(ConvTest, MeansOfImages) {
  for (const int64_t channels : {5, 33, 300}) {
    for (const int64_t size : {1, 8, 31}) {
      ConvShape s = square(channels, size, channels, 3, 1, 1, channels);
      s.batch = 2;
      s.channels_last = s.means = true;
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

TEST_P(ConvTest, FactorsOfInputChannels) {
  for (const int64_t out : {3, 24, 70, 200}) {
    for (const int64_t size : {1, 7, 12}) {
      ConvShape s = square(37, size, out, 1);
      s.batch = 2;
      s.channels_last = s.input_factors = true;
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

TEST_P(ConvTest, DepthwiseKeepsEveryEpilogue) {
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
        ConvShape s = square(channels, 13, outputs, 7, stride, 3);
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
    ConvShape line = square(24, 40, outputs, 7, 1, 3);
    line.rank = 1;
    check(line);
    ConvShape cube = square(40, 6, outputs, 3, 1, 1);
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
        ConvShape s = square(70, size, 40, 3, stride, dilation);
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
  ConvShape wide = square(1500, 3, 20, 3, 1, 2);  // sums in several parts
  wide.dilation = {2, 4, 1};
  wide.pad_begin = wide.pad_end = {2, 4, 0};
  check(wide);
  ConvShape cube;
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
  ConvShape line;
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
      ConvShape depthwise = line;
      depthwise.group = 5;
      depthwise.out_channels = 10;
      check(depthwise);
    }
  }
  ConvShape cube;
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

// Kernels long enough for lines to be laid out by the phases of the stride, and lines of more than
// one block of columns.
TEST_P(ConvTest, DepthwiseByPhases) {
  const auto line = [](int64_t size, int64_t kernel, int64_t stride, int64_t dilation) {
    ConvShape s;
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
  ConvShape cube = line(40, 8, 3, 1);
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

TEST_P(ConvTest, RandomShapes) {
  std::mt19937 random(7);
  const auto between = [&](int64_t low, int64_t high) {
    return std::uniform_int_distribution<int64_t>(low, high)(random);
  };
  for (int i = 0; i < 400; ++i) {
    ConvShape s;
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

TEST_P(ConvTest, SmallGroups) {
  static const float some = 0;
  for (const int64_t each : sizes<int64_t>({2, 4, 8, 16})) {
    for (const int64_t size : sizes<int64_t>({1, 6, 29, 13})) {
      for (const int64_t stride : {1, 2, 3}) {
        ConvShape s = square(48, size, 48, 3, stride, 1, 48 / each);
        s.batch = 2;
        Epilogue e;
        e.bias_axis = BiasAxis::row;
        e.residual = size % 2 == 0 ? &some : nullptr;
        e.activation = size % 3 == 0 ? Activation::relu : Activation::leaky_relu;
        e.alpha = 0.5f, e.beta = 0.25f;
        check(s, e);
        s.kernel = {5, 2, 0}, s.dilation = {1, 2, 1}, s.pad_begin = {-1, 3, 0};
        check(s);
      }
    }
    ConvShape cube = square(32, 6, 32, 3, 1, 1, 32 / each);
    cube.rank = 3;
    cube.in[2] = 5, cube.kernel[2] = 2, cube.pad_begin[2] = 1;
    check(cube);
  }
}

TEST_P(ConvTest, Winograd) {
  static const float some = 0;
  for (const int64_t size : sizes<int64_t>({1, 3, 33, 5, 56, 20, 14, 4, 7})) {
    for (const int64_t way : {0, 1, 2, 3, 4, 5}) {
      ConvShape s = square(21, size, 40, 3, 1, way / 2);
      s.winograd = way % 2 == 0 ? 2 : 4;
      Epilogue e;
      e.bias_axis = BiasAxis::row;
      e.residual = size % 2 == 0 ? &some : nullptr;
      e.activation = size % 3 == 0 ? Activation::none : Activation::leaky_relu;
      check(s, e);
    }
  }
  for (const int tile : {2, 4}) {
    ConvShape wide = square(sanitized ? 6 : 70, 30, sanitized ? 34 : 100, 3, 1, 1);
    wide.winograd = tile;
    wide.in = {12, 61, 0};
    wide.batch = 2;
    check(wide);
    wide.group = 2;
    wide.pad_begin = {0, 2, 0};
    check(wide);
    wide.pad_begin = {-1, -2, 0};
    check(wide);
  }
}

TEST_P(ConvTest, WinogradOfDilatedKernels) {
  static const float some = 0;
  for (const int64_t size : sizes<int64_t>({1, 3, 5, 12, 19})) {
    for (const int64_t dilation : sizes<int64_t>({2, 3, 6, 18})) {
      ConvShape s = square(21, size, 40, 3, 1, dilation);
      s.in[1] = size + 2;
      s.dilation = {dilation, dilation / 2, 1};
      s.batch = 2;
      Epilogue e;
      e.bias_axis = BiasAxis::row;
      e.residual = size % 2 == 0 ? &some : nullptr;
      e.activation = size % 3 == 0 ? Activation::relu : Activation::tanh;
      for (const int side : {2, 4}) {
        s.winograd = side;
        check(s, e);
        ConvShape cropped = s;
        cropped.pad_begin = {-1, dilation, 0}, cropped.pad_end = {3, -1, 0};
        check(cropped);
        ConvShape groups = square(24, size, 48, 3, 1, 1, 2);
        groups.dilation = {dilation, dilation, 1};
        groups.pad_begin = groups.pad_end = {dilation, 0, 0};
        groups.winograd = side;
        check(groups);
      }
    }
  }
}

// The promise of conv.h.
TEST_P(ConvTest, WinogradStaysNearTheTruth) {
  for (const auto& [channels, tile] : {std::pair<int64_t, int>{64, 4}, {512, 4}, {512, 2}}) {
    ConvShape s = square(channels, 14, 32, 3, 1, 1);
    s.winograd = tile;
    set_out(s);
    Guarded x(channels * 196), w(32 * channels * 9), expected(32 * 196), y(32 * 196);
    fill_random(x.data(), x.size(), 1);
    fill_random(w.data(), w.size(), 2);
    conv_reference(s, x.data(), w.data(), expected.data(), Epilogue());
    Guarded packed(conv_packed_size(s) / 4), scratch(conv_scratch_bytes(s, 1) / 4);
    pack_conv_weights(s, w.data(), nullptr, packed.data(), nullptr);
    conv_run(s, x.data(), packed.data(), y.data(), Epilogue(), scratch.data(), one_);
    double square_sum = 0, worst = 0;
    for (int64_t i = 0; i < y.size(); ++i) {
      square_sum += double{expected[i]} * expected[i];
      worst = std::max(worst, std::abs(double{y[i]} - expected[i]));
    }
    EXPECT_LT(worst, 2e-5 * std::sqrt(square_sum / static_cast<double>(y.size())));
  }
}

// Many weights of a small image: the larger tiles would save little time for more than twice the
// memory.
TEST_P(ConvTest, LargerWinogradTilesAreWorthTheirMemory) {
  const auto tile = [](int64_t channels, int64_t size) {
    ConvShape s = square(channels, size, channels, 3, 1, 1);
    s.channels_last = true;
    set_out(s);
    return winograd_tile(s);
  };
  EXPECT_EQ(tile(64, 56), 4);
  EXPECT_EQ(tile(512, 28), 4);
  EXPECT_EQ(tile(512, 14), 2);
}

TEST_P(ConvTest, EveryPathWasTaken) {
  check(square(6, 9, 6, 3, 1, 1, 6));
  check(square(6, 9, 6, 2, 1, 0, 6));
  check(square(6, 9, 12, 3, 1, 1));
  check(square(6, 9, 32, 1));
  check(square(6, 5, 32, 3));
  ConvShape tiled = square(6, 9, 32, 3);
  tiled.winograd = 4;
  check(tiled);
  check(square(32, 9, 32, 3, 1, 1, 8));
  ConvShape thin = square(6, 9, 32, 3);
  thin.in[1] = 3;
  check(thin);
  check(square(24, 9, 2, 3, 1, 1));
  // Groups and dot products need long vectors.
  std::string taken;
  for (const ConvPath path : paths_) taken.append(name_of(path)).append(" ");
  EXPECT_EQ(paths_.size(), tile_kernels().lanes >= 8 ? 12u : 10u) << taken;
}

TEST_P(ConvTest, ImagesNarrowerThanAVector) {
  for (const int64_t size : {1, 2, 3, 4, 6, 8, 13}) {
    check(square(9, size, 32, 3, 1, 1));
    check(square(9, size, 32, 3, 2, 1));
    check(square(9, size, 32, 3, 3, 1));
    check(square(9, size, 3, 3, 1, 1));
    check(square(9, size, 32, 5, 1, 4));
  }
  ConvShape thin = square(3, 40, 32, 3, 1, 1);
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
  ConvShape none = square(4, 5, 20, 3);
  none.batch = 0;
  check(none);
  none.batch = 1;
  none.out_channels = 0;
  check(none);
}

TEST(ConvChoice, NamesWhatItRefused) {
  ConvShape s = square(8, 3, 64, 3, 1, 1);
  set_out(s);
  const ConvChoice choice = choose_conv(s);
  EXPECT_EQ(name_of(choice.path), "channel_vectors");
  ASSERT_EQ(choice.refusals().size(), 4u);
  for (const auto& refusal : choice.refusals()) EXPECT_FALSE(refusal.reason.empty());
}

INSTANTIATE_TEST_SUITE_P(Targets, ConvTest, ::testing::ValuesIn(usable_targets()), target_name);

}  // namespace
}  // namespace sardonyx::kernels::test
