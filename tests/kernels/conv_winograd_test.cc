// Convolutions by Winograd's tiles.
#include <limits>

#include "conv_support.h"

namespace sardonyx::kernels::test {
namespace {

class WinogradConvTest : public ConvTest {};

TEST_P(WinogradConvTest, AnySize) {
  static const float some = 0;
  for (const int64_t size : sizes<int64_t>({1, 3, 33, 5, 56, 20, 14, 4, 7})) {
    for (const int64_t way : {0, 1, 2, 3, 4, 5}) {
      ConvParams s = square(21, size, 40, 3, 1, way / 2);
      s.winograd = way % 2 == 0 ? 2 : 4;
      Epilogue e;
      e.bias_axis = BiasAxis::row;
      e.residual = size % 2 == 0 ? &some : nullptr;
      e.activation = size % 3 == 0 ? Activation::none : Activation::leaky_relu;
      check(s, e);
    }
  }
  for (const int tile : {2, 4}) {
    ConvParams wide = square(sanitized ? 6 : 70, 30, sanitized ? 34 : 100, 3, 1, 1);
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

TEST_P(WinogradConvTest, DilatedKernels) {
  static const float some = 0;
  for (const int64_t size : sizes<int64_t>({1, 3, 5, 12, 19})) {
    for (const int64_t dilation : sizes<int64_t>({2, 3, 6, 18})) {
      ConvParams s = square(21, size, 40, 3, 1, dilation);
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
        ConvParams cropped = s;
        cropped.pad_begin = {-1, dilation, 0}, cropped.pad_end = {3, -1, 0};
        check(cropped);
        ConvParams groups = square(24, size, 48, 3, 1, 1, 2);
        groups.dilation = {dilation, dilation, 1};
        groups.pad_begin = groups.pad_end = {dilation, 0, 0};
        groups.winograd = side;
        check(groups);
      }
    }
  }
}

// The promise of conv.h.
TEST_P(WinogradConvTest, StaysNearTheTruth) {
  for (const auto& [channels, tile] : {std::pair<int64_t, int>{64, 4}, {512, 4}, {512, 2}}) {
    ConvParams s = square(channels, 14, 32, 3, 1, 1);
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

// Outputs whose windows don't hold a pixel have no part of it, whatever it is.
TEST_P(WinogradConvTest, ExtremePixelsStayInTheirWindows) {
  constexpr float inf = std::numeric_limits<float>::infinity();
  constexpr float nan = std::numeric_limits<float>::quiet_NaN();
  const auto check_pixels = [&](ConvParams s, int64_t pixel, int64_t count, float value) {
    set_out(s);
    SCOPED_TRACE(describe(s) + "; tiles of " + std::to_string(s.winograd) + "; " +
                 std::to_string(count) + " pixels from " + std::to_string(pixel) + " on are " +
                 std::to_string(value));
    const int64_t pixels = s.in[0] * s.in[1], out = s.out_channels * s.out[0] * s.out[1];
    Guarded x(s.in_channels * pixels), w(s.out_channels * s.in_channels / s.group * 9);
    Guarded without(out), expected(out), y(out);
    fill_random(x.data(), x.size(), 1);
    fill_random(w.data(), w.size(), 2);
    for (int64_t i = 0; i < w.size(); i += 5) w.data()[i] = 0;  // as edge detectors have them
    const int64_t channel = pixel % s.in_channels;
    float* const plane = x.data() + channel * pixels;
    std::fill_n(plane + pixel, count, 0.0f);
    conv_reference(s, x.data(), w.data(), without.data(), {});
    std::fill_n(plane + pixel, count, value);
    conv_reference(s, x.data(), w.data(), expected.data(), {});
    if (s.nhwc) {
      turn(x, 1, s.in_channels, pixels);
      turn(without, 1, s.out_channels, s.out[0] * s.out[1]);
      turn(expected, 1, s.out_channels, s.out[0] * s.out[1]);
    }
    Guarded packed(conv_packed_size(s) / 4), scratch(conv_scratch_bytes(s, 1) / 4);
    pack_conv_weights(s, w.data(), nullptr, packed.data(), nullptr);
    conv_run(s, x.data(), packed.data(), y.data(), {}, scratch.data(), one_);
    EXPECT_TRUE(scratch.intact());
    for (int64_t i = 0; i < out; ++i) {
      if (std::isnan(expected[i])) {
        ASSERT_TRUE(std::isnan(y[i])) << "at " << i;
      } else if (std::isinf(expected[i])) {
        ASSERT_EQ(y[i], expected[i]) << "at " << i;
      } else if (expected[i] == without[i]) {
        ASSERT_NEAR(y[i], expected[i], 2e-3) << "at " << i;
      } else {
        ASSERT_NEAR(y[i] / value, expected[i] / value, 1e-5) << "at " << i;
      }
    }
  };
  for (const int tile : {2, 4}) {
    for (const bool nhwc : {false, true}) {
      for (const int64_t size : sizes<int64_t>({9, 30, 4})) {
        for (const float value : {1e3f, 1e6f, -1e38f, -inf, nan}) {
          ConvParams s = square(20, size, 12, 3, 1, 1);
          s.nhwc = nhwc;
          s.winograd = tile;
          for (const int64_t pixel : {int64_t{0}, size / 2 * (size + 1), size * size - 2})
            check_pixels(s, pixel, 1, value);
          ConvParams groups = square(20, size, 24, 3, 1, 1, 2);
          groups.nhwc = nhwc;
          groups.winograd = tile;
          if (nhwc) groups.dilation = {2, 3, 1};
          check_pixels(groups, size * (size - 1), size, value);
        }
      }
    }
  }
}

// Many weights of a small image: the larger tiles would save little time for more than twice the
// memory.
TEST_P(WinogradConvTest, LargerTilesAreWorthTheirMemory) {
  const auto tile = [](int64_t channels, int64_t size) {
    ConvParams s = square(channels, size, channels, 3, 1, 1);
    s.nhwc = true;
    set_out(s);
    return winograd_tile(s);
  };
  EXPECT_EQ(tile(64, 56), 4);
  EXPECT_EQ(tile(512, 28), 4);
  EXPECT_EQ(tile(512, 14), 2);
}

INSTANTIATE_TEST_SUITE_P(Targets, WinogradConvTest, ::testing::ValuesIn(usable_targets()),
                         target_name);

}  // namespace
}  // namespace sardonyx::kernels::test
