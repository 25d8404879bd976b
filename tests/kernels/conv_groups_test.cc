// Convolutions of groups, with channels as they come, shuffled and interleaved.
#include "conv_support.h"
#include "kernels/conv/interleaved_concat.h"
#include "kernels/gemm/tiles.h"

namespace sardonyx::kernels::test {
namespace {

class GroupedConvTest : public ConvTest {};

TEST_P(GroupedConvTest, GroupsWhoseChannelsComeShuffled) {
  static const float some = 0;
  for (const int64_t each : {1, 5, 34}) {
    for (const int64_t groups : {2, 3, 4}) {
      for (const int64_t size : {1, 5, 20}) {
        ConvParams s = square(groups * each, size, groups * (each + 1), 1, 1, 0, groups);
        s.batch = 2;
        s.nhwc = true;
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

TEST_P(GroupedConvTest, GroupsThatDealTheirChannelsOut) {
  static const float some = 0;
  for (const int64_t groups : {2, 4, 8}) {
    for (const auto& [in, out] :
         {std::pair<int64_t, int64_t>{1, 3}, {6, 28}, {34, 34}, {17, 5}, {256, 9}}) {
      for (const int64_t size : {1, 5, 20}) {
        ConvParams s = square(groups * in, size, groups * out, 1, 1, 0, groups);
        s.batch = 2;
        s.nhwc = s.shuffles_output = true;
        set_out(s);
        if (!can_shuffle_output(s)) {  // groups are more than lanes
          EXPECT_LT(tile_kernels().lanes, groups);
          continue;
        }
        Epilogue e;
        e.bias_axis = BiasAxis::row;
        e.activation = size == 5 ? Activation::sigmoid : Activation::relu;
        check_layout(s, e);
        EXPECT_EQ(choose_conv(s).path, ConvPath::interleaved_nhwc);
        s.shuffle = in;  // and find them interleaved
        e.residual = &some;
        check_layout(s, e);
        EXPECT_EQ(choose_conv(s).path, ConvPath::interleaved_nhwc);
      }
    }
  }
}

// Neighbouring pixels of one image, whichever dimension they are cut along.
TEST_P(GroupedConvTest, SomeLinesOfAnImageDealOutTheirChannels) {
  struct Cut {
    ConvParams::Dims in, first, count;
    bool interleaved;
  };
  for (const Cut& cut :
       {Cut{{9, 7, 0}, {2, 0, 0}, {5, 7, 0}, true}, Cut{{9, 1, 0}, {8, 0, 0}, {1, 1, 0}, true},
        Cut{{1, 40, 0}, {0, 3, 0}, {1, 30, 0}, true}, Cut{{9, 7, 0}, {0, 2, 0}, {9, 5, 0}, false},
        Cut{{9, 7, 0}, {1, 2, 0}, {2, 5, 0}, false}}) {
    for (const int64_t shuffle : {1, 6}) {
      ConvParams s = square(24, 1, 112, 1, 1, 0, 4);
      s.in = cut.in, s.out = cut.count;
      s.shuffle = shuffle;
      for (size_t i = 0; i < 2; ++i) {
        s.pad_begin[i] = -cut.first[i];
        s.pad_end[i] = cut.first[i] + cut.count[i] - cut.in[i];
      }
      s.nhwc = s.shuffles_output = true;
      EXPECT_EQ(choose_conv(s).path == ConvPath::interleaved_nhwc, cut.interleaved);
      if (!cut.interleaved) continue;
      Epilogue e;
      e.bias_axis = BiasAxis::row;
      e.activation = Activation::relu;
      check_layout(s, e);
    }
  }
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
    Guarded y(pixels * channels), scratch(interleaved_concat_floats(channels, pool->threads()));
    interleaved_concat(joined, pixels, groups, relu, y.data(), scratch.data(), *pool);
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

TEST_P(GroupedConvTest, JoinedImagesDealtOut) {
  for (const int64_t groups : {2, 4, 8}) {
    for (const std::vector<int64_t>& parts :
         {std::vector<int64_t>{8}, {5, 3}, {112, 24}, {1, 6, 33}, {20, 0, 300}}) {
      for (const int64_t pixels : {0, 1, 7, 200}) {
        for (const bool relu : {false, true}) check_join(parts, pixels, groups, relu);
      }
    }
  }
}

TEST_P(GroupedConvTest, SmallGroups) {
  static const float some = 0;
  for (const int64_t each : sizes<int64_t>({2, 4, 8, 16})) {
    for (const int64_t size : sizes<int64_t>({1, 6, 29, 13})) {
      for (const int64_t stride : {1, 2, 3}) {
        ConvParams s = square(48, size, 48, 3, stride, 1, 48 / each);
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
    ConvParams cube = square(32, 6, 32, 3, 1, 1, 32 / each);
    cube.rank = 3;
    cube.in[2] = 5, cube.kernel[2] = 2, cube.pad_begin[2] = 1;
    check(cube);
  }
}

INSTANTIATE_TEST_SUITE_P(Targets, GroupedConvTest, ::testing::ValuesIn(usable_targets()),
                         target_name);

}  // namespace
}  // namespace sardonyx::kernels::test
