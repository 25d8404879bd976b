// Convolutions in tiles of rows against the same convolutions one after the other, by every
// instruction set.
#include "kernels/conv/conv_chain.h"

#include <gtest/gtest.h>

#include <random>
#include <vector>

#include "base/thread_pool.h"
#include "gemm_support.h"
#include "kernels/gemm/tiles.h"

namespace sardonyx::kernels::test {
namespace {

// The next convolution of an image of the last one's size.
ConvParams next(const ConvParams& last, int64_t out_channels, int64_t kernel, int64_t stride,
                int64_t dilation, int64_t pad_begin, int64_t pad_end, int64_t group) {
  ConvParams s;
  s.nhwc = true;
  s.batch = last.batch;
  s.in_channels = last.out_channels;
  s.out_channels = out_channels;
  s.group = group;
  for (size_t i = 0; i < 2; ++i) {
    s.in[i] = last.out[i];
    s.kernel[i] = kernel, s.stride[i] = stride, s.dilation[i] = dilation;
    s.pad_begin[i] = pad_begin, s.pad_end[i] = pad_end;
    s.out[i] = conv_out_size(s.in[i], kernel, stride, dilation, pad_begin, pad_end);
  }
  return s;
}

int64_t floats_out(const ConvParams& s) { return s.batch * s.out[0] * s.out[1] * s.out_channels; }

class ChainTest : public ::testing::TestWithParam<int64_t> {
 protected:
  ChainTest() : target_(GetParam()) {}

  void check(FusedConvChain chain, bool residual, bool means) {
    chain.parts[chain.depthwise].means = means;
    const ConvParams& first = chain.parts[0];
    const int64_t in = first.batch * first.in[0] * first.in[1] * first.in_channels;
    std::vector<Guarded> packs, biases;
    std::vector<ChainPart> parts;
    packs.reserve(3), biases.reserve(3);
    Guarded x(in);
    fill_random(x.data(), in, 1);
    std::vector<float> expected(x.data(), x.data() + in);
    const int64_t out = floats_out(chain.parts[chain.count - 1]);
    Guarded added(out);
    fill_random(added.data(), out, 9);
    std::vector<float> middle;
    for (int i = 0; i < chain.count; ++i) {
      const ConvParams& s = chain.parts[i];
      const int64_t weights =
          s.out_channels * (s.in_channels / s.group) * s.kernel[0] * s.kernel[1];
      Guarded w(weights);
      fill_random(w.data(), weights, static_cast<uint32_t>(2 + i));
      packs.emplace_back(conv_packed_size(s) / 4);
      biases.emplace_back(s.out_channels);
      pack_conv_weights(s, w.data(), nullptr, packs.back().data(), nullptr);
      fill_random(biases.back().data(), s.out_channels, static_cast<uint32_t>(5 + i));
      ChainPart part;
      part.packed = packs.back().data();
      part.epilogue.bias = biases.back().data();
      part.epilogue.activation = i == 0 ? Activation::relu : Activation::hard_swish;
      if (residual && i + 1 == chain.count) part.epilogue.residual = added.data();
      parts.push_back(part);
      Guarded made(floats_out(s)), scratch(conv_scratch_bytes(s, 1) / 4);
      ConvParams alone = s;
      alone.means = false;
      conv_run(alone, expected.data(), part.packed, made.data(), part.epilogue, scratch.data(),
               one_);
      expected.assign(made.data(), made.data() + floats_out(s));
      if (i == chain.depthwise) middle = expected;
    }
    const ConvParams& d = chain.parts[chain.depthwise];
    const int64_t channels = d.out_channels, pixels = d.out[0] * d.out[1];
    Guarded a(out), b(out), mean_a(d.batch * channels), mean_b(d.batch * channels);
    const auto run = [&](Guarded& y, Guarded& mean, ThreadPool& pool) {
      const ChainCut cut = cut_chain(chain);
      Guarded scratch(chain_scratch_bytes(chain, cut, pool.threads()) / 4);
      chain_run(chain, cut, x.data(), parts, y.data(), means ? mean.data() : nullptr,
                scratch.data(), pool);
      EXPECT_TRUE(scratch.intact() && y.intact() && mean.intact());
    };
    run(a, mean_a, one_);
    run(b, mean_b, three_);
    for (int64_t i = 0; i < out; ++i) {
      ASSERT_EQ(a[i], b[i]) << "at " << i;
      ASSERT_NEAR(a[i], expected[static_cast<size_t>(i)], 1e-4) << "at " << i;
    }
    for (int64_t i = 0; means && pixels > 0 && i < d.batch * channels; ++i) {
      double sum = 0;
      for (int64_t p = 0; p < pixels; ++p)
        sum += middle[static_cast<size_t>((i / channels * pixels + p) * channels + i % channels)];
      ASSERT_EQ(mean_a[i], mean_b[i]);
      ASSERT_NEAR(mean_a[i], sum / static_cast<double>(pixels), 1e-4);
    }
  }

  UseTarget target_;
  ThreadPool one_{1}, three_{3};
};

TEST_P(ChainTest, AnyShape) {
  std::mt19937 random(7);
  const auto pick = [&](int low, int high) {
    return int64_t{std::uniform_int_distribution<int>(low, high)(random)};
  };
  for (int turn = 0; turn < 120; ++turn) {
    ConvParams image;
    image.batch = pick(1, 3);
    image.out_channels = pick(1, 20);
    image.out = {pick(1, 40), pick(1, 40), 0};
    FusedConvChain chain;
    const bool before = turn % 4 != 0, behind = turn % 4 == 0 || turn % 3 != 0;
    if (before) {
      const int64_t kernel = turn % 5 == 0 ? 3 : 1;
      chain.parts[chain.count++] = next(image, pick(1, 50), kernel, kernel == 3 ? pick(1, 2) : 1, 1,
                                        kernel / 2, kernel / 2, 1);
      chain.depthwise = 1;
      image = chain.parts[0];
    }
    const int64_t kernel = pick(1, 5);
    chain.parts[chain.count++] = next(image, image.out_channels, kernel, pick(1, 3), pick(1, 2),
                                      pick(-1, 3), pick(0, 3), image.out_channels);
    if (behind) {
      image = chain.parts[chain.count - 1];
      chain.parts[chain.count++] = next(image, pick(1, 40), 1, 1, 1, 0, 0, 1);
    }
    SCOPED_TRACE(turn);
    if (image.out[0] <= 0 || image.out[1] <= 0) continue;
    check(chain, turn % 2 == 0, !behind);
  }
}

// What only the last lines of an image need: copies with zeros behind them.
TEST_P(ChainTest, PaddingOnOneSide) {
  std::mt19937 random(8);
  const auto pick = [&](int low, int high) {
    return int64_t{std::uniform_int_distribution<int>(low, high)(random)};
  };
  for (int turn = 0; turn < 60; ++turn) {
    ConvParams image;
    image.batch = pick(1, 2);
    image.out_channels = pick(1, 12);
    image.out = {pick(4, 40), pick(8, 48), 0};
    FusedConvChain chain;
    chain.depthwise = 1;
    const int64_t kernel = pick(2, 4), dilation = pick(1, 2), all = (kernel - 1) * dilation,
                  begin = turn % 3 == 0   ? all
                          : turn % 3 == 1 ? 0
                                          : pick(0, static_cast<int>(all));
    ConvParams& first = chain.parts[chain.count++] =
        next(image, pick(1, 30), kernel, 1, dilation, begin, all - begin, 1);
    // Columns without padding need no copies, either.
    first.stride[1] = kernel, first.dilation[1] = 1;
    first.pad_begin[1] = first.pad_end[1] = 0;
    first.out[1] = conv_out_size(first.in[1], kernel, kernel, 1, 0, 0);
    if (first.out[1] <= 0) continue;
    chain.parts[chain.count++] = next(first, first.out_channels, 3, 1, 1, 1, 1, first.out_channels);
    SCOPED_TRACE(turn);
    check(chain, turn % 2 == 0, false);
  }
}

// A depthwise convolution that looks at single pixels, or along an axis of one: its lines stay
// lines.
TEST_P(ChainTest, DepthwiseWithoutNeighbours) {
  for (const bool wide : {true, false}) {
    ConvParams image;
    image.batch = 2;
    image.out_channels = 5;
    image.out = {33, wide ? 20 : 1, 0};
    FusedConvChain chain;
    chain.depthwise = 1;
    const ConvParams& first = chain.parts[chain.count++] = next(image, 32, 1, 1, 1, 0, 0, 1);
    ConvParams& middle = chain.parts[chain.count++] = next(first, 32, 1, 1, 1, 0, 0, 32);
    if (!wide) middle.kernel[0] = 3, middle.pad_begin[0] = middle.pad_end[0] = 1;
    check(chain, true, true);
    chain.parts[chain.count++] = next(middle, 12, 1, 1, 1, 0, 0, 1);
    check(chain, true, false);
  }
}

TEST_P(ChainTest, GroupsThatDealTheirChannelsOut) {
  for (const int64_t groups : {2, 4}) {
    ConvParams image;
    image.batch = 2;
    image.out_channels = 24;
    for (const auto& [height, width] : {std::pair<int64_t, int64_t>{41, 40}, {9, 1}, {1, 30}}) {
      image.out = {height, width, 0};
      FusedConvChain chain;
      chain.depthwise = 1;
      ConvParams& first = chain.parts[chain.count++] = next(image, 40, 1, 1, 1, 0, 0, groups);
      first.shuffles_output = true;
      if (groups == 4) first.shuffle = 6;
      if (!can_shuffle_output(first)) continue;
      chain.parts[chain.count++] = next(first, 40, 3, 2, 1, 1, 1, 40);
      check(chain, false, false);
      chain.parts[chain.count] = next(chain.parts[1], 20, 1, 1, 1, 0, 0, 1), ++chain.count;
      check(chain, true, false);
    }
  }
}

// To few channels they are dot products where vectors are long enough.
TEST_P(ChainTest, ConvolutionsToFewChannelsBefore) {
  struct Case {
    int64_t height, width, in, out, kernel, stride, pad;
  };
  for (const Case& c : {Case{41, 40, 24, 3, 3, 1, 1},
                        {23, 9, 16, 1, 5, 2, 2},
                        {30, 33, 32, 3, 3, 2, 0},
                        {5, 1, 40, 2, 3, 1, 1}}) {
    ConvParams image;
    image.batch = 2;
    image.out_channels = c.in;
    image.out = {c.height, c.width, 0};
    FusedConvChain chain;
    chain.depthwise = 1;
    chain.parts[0] = next(image, c.out, c.kernel, c.stride, 1, c.pad, c.pad, 1);
    chain.parts[1] = next(chain.parts[0], c.out, 3, 1, 1, 1, 1, c.out);
    chain.parts[2] = next(chain.parts[1], 20, 1, 1, 1, 0, 0, 1);
    SCOPED_TRACE(::testing::Message() << c.in << " to " << c.out);
    const bool dots = choose_conv(chain.parts[0]).path == ConvPath::dots_nhwc;
    EXPECT_EQ(dots, tile_kernels().lanes >= 8 || (!tile_kernels().portable && c.out == 1));
    for (chain.count = 2; chain.count <= 3; ++chain.count) check(chain, true, chain.count == 2);
  }
}

// Where matrix tiles are used, they take whole blocks, but fewer lines go through vectors.
TEST_P(ChainTest, BlocksThatAreLargeEnoughForMatrixTiles) {
  ConvParams image;
  image.out_channels = 192;
  image.out = {26, 112, 0};
  FusedConvChain chain;
  chain.count = 2;
  chain.depthwise = 1;
  chain.parts[0] = next(image, 192, 1, 1, 1, 0, 0, 1);
  chain.parts[1] = next(chain.parts[0], 192, 3, 1, 1, 1, 1, 192);
  const ChainCut cut = cut_chain(chain);
  ConvParams block = chain.parts[0], line = block;
  block.in[0] = block.out[0] = cut.block;
  line.in[0] = line.out[0] = 1;
  EXPECT_EQ(cut.whole_blocks, !same_way(block, line));
  check(chain, false, false);
}

TEST_P(ChainTest, PaysWhereTheExpandedImageIsLargerThanTheCache) {
  ConvParams image;
  image.out_channels = 16;
  for (const auto& [size, pays] : {std::pair<int64_t, bool>{112, true}, {14, false}}) {
    image.out = {size, size, 0};
    FusedConvChain chain;
    chain.count = 2;
    chain.depthwise = 1;
    chain.parts[0] = next(image, 96, 1, 1, 1, 0, 0, 1);
    chain.parts[1] = next(chain.parts[0], 96, 3, 2, 1, 1, 1, 96);
    EXPECT_EQ(chain_pays(chain), pays) << size;
  }
}

TEST_P(ChainTest, ImagesWithoutLinesAreNothing) {
  ConvParams image;
  image.out_channels = 16;
  for (const auto& [height, width] : {std::pair<int64_t, int64_t>{0, 112}, {112, 0}, {0, 0}}) {
    image.out = {height, width, 0};
    FusedConvChain chain;
    chain.count = 2;
    chain.depthwise = 1;
    chain.parts[0] = next(image, 96, 1, 1, 1, 0, 0, 1);
    chain.parts[1] = next(chain.parts[0], 96, 3, 2, 1, 1, 1, 96);
    EXPECT_FALSE(chain_pays(chain));
    EXPECT_EQ(chain_scratch_bytes(chain, cut_chain(chain), 2), 0);
  }
}

INSTANTIATE_TEST_SUITE_P(Targets, ChainTest, ::testing::ValuesIn(usable_targets()), target_name);

}  // namespace
}  // namespace sardonyx::kernels::test
