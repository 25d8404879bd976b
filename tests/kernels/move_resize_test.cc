// Resize against values of the standard's reference evaluator, and against what must hold.
#include <algorithm>
#include <cmath>
#include <limits>
#include <numeric>
#include <random>

#include "kernels/move/non_max_suppression.h"
#include "kernels/move/resize.h"
#include "kernels/rows_support.h"

namespace sardonyx::kernels {
namespace {

using test::one_thread;
using test::two_threads;

template <class T>
std::vector<T> resized(const Resize& resize, ElementType type, const std::vector<T>& x,
                       int64_t out_count, ThreadPool& pool) {
  std::vector<T> y(static_cast<size_t>(out_count));
  std::vector<double> scratch(static_cast<size_t>(resize.scratch_bytes(type) / 8 + 1));
  resize.run(type, x.data(), y.data(), scratch.data(), pool);
  return y;
}

// 1 to 16 as a 4 x 4 plane, resized by these scales.
struct Golden {
  ResizeOptions options;
  int64_t height, width;
  float height_scale, width_scale;
  std::vector<float> expected;
  float roi_top = 0, roi_bottom = 1, roi_left = 0, roi_right = 1;
};

const std::vector<Golden>& goldens() {
  static const std::vector<Golden> list{
      {{.mode = ResizeMode::linear, .coordinates = CoordinateMode::half_pixel},
       8,
       8,
       2.0f,
       2.0f,
       {1,      1.25f,  1.75f,  2.25f,  2.75f,  3.25f,  3.75f,  4,      2,      2.25f,  2.75f,
        3.25f,  3.75f,  4.25f,  4.75f,  5,      4,      4.25f,  4.75f,  5.25f,  5.75f,  6.25f,
        6.75f,  7,      6,      6.25f,  6.75f,  7.25f,  7.75f,  8.25f,  8.75f,  9,      8,
        8.25f,  8.75f,  9.25f,  9.75f,  10.25f, 10.75f, 11,     10,     10.25f, 10.75f, 11.25f,
        11.75f, 12.25f, 12.75f, 13,     12,     12.25f, 12.75f, 13.25f, 13.75f, 14.25f, 14.75f,
        15,     13,     13.25f, 13.75f, 14.25f, 14.75f, 15.25f, 15.75f, 16}},
      {{.mode = ResizeMode::linear, .coordinates = CoordinateMode::half_pixel},
       2,
       2,
       0.6f,
       0.6f,
       {2.666667f, 4.333333f, 9.333333f, 11}},
      {{.mode = ResizeMode::linear, .coordinates = CoordinateMode::align_corners},
       2,
       2,
       0.6f,
       0.6f,
       {1, 3.142857f, 9.571428f, 11.71428f}},
      {{.mode = ResizeMode::linear, .coordinates = CoordinateMode::half_pixel_symmetric},
       2,
       5,
       0.6f,
       1.3f,
       {3.666667f, 4.397436f, 5.166667f, 5.935898f, 6.666667f, 10.33333f, 11.0641f, 11.83333f,
        12.60256f, 13.33333f}},
      {{.mode = ResizeMode::linear, .coordinates = CoordinateMode::pytorch_half_pixel},
       1,
       3,
       0.25f,
       0.8f,
       {1.125f, 2.375f, 3.625f}},
      // To one element: at the first, as the standard and ONNX Runtime say; the reference evaluator
      // goes half a step before it.
      {{.mode = ResizeMode::cubic, .coordinates = CoordinateMode::pytorch_half_pixel},
       1,
       1,
       0.25f,
       0.25f,
       {1}},
      {{.mode = ResizeMode::linear, .coordinates = CoordinateMode::half_pixel, .antialias = true},
       2,
       1,
       0.6f,
       0.4f,
       {3.38f, 9.88f}},
      {{.mode = ResizeMode::cubic, .coordinates = CoordinateMode::half_pixel, .cubic_a = -0.75},
       3,
       6,
       0.8f,
       1.5f,
       {1.290148f, 1.783203f, 2.589918f, 3.163991f, 3.970703f, 4.46376f, 6.530385f, 7.023438f,
        7.830154f, 8.404227f, 9.210938f, 9.703997f, 11.73546f, 12.22852f, 13.03523f, 13.60931f,
        14.41602f, 14.90908f}},
      {{.mode = ResizeMode::cubic,
        .coordinates = CoordinateMode::asymmetric,
        .cubic_a = -0.5,
        .exclude_outside = true},
       3,
       6,
       0.8f,
       1.5f,
       {1, 1.607143f, 2.333334f, 3, 3.75862f, 4.105263f, 6, 6.607142f, 7.333334f, 8, 8.75862f,
        9.105264f, 11.35294f, 11.96008f, 12.68628f, 13.35294f, 14.11156f, 14.4582f}},
      {{.mode = ResizeMode::cubic, .coordinates = CoordinateMode::half_pixel, .antialias = true},
       2,
       2,
       0.6f,
       0.6f,
       {2.51807f, 4.285886f, 9.589335f, 11.35715f}},
      {{.mode = ResizeMode::linear,
        .coordinates = CoordinateMode::tf_crop_and_resize,
        .extrapolation_value = 10},
       3,
       3,
       0.8f,
       0.8f,
       {7.6f, 10, 10, 11.96364f, 10, 10, 10, 10, 10},
       0.4f,
       1.2f,
       0.6f,
       1.7f},
      {{.mode = ResizeMode::nearest,
        .coordinates = CoordinateMode::half_pixel,
        .nearest = NearestMode::floor},
       6,
       2,
       1.7f,
       0.7f,
       {1, 2, 1, 2, 1, 2, 5, 6, 9, 10, 9, 10}},
      {{.mode = ResizeMode::nearest,
        .coordinates = CoordinateMode::half_pixel,
        .nearest = NearestMode::round_prefer_ceil},
       2,
       10,
       0.5f,
       2.5f,
       {5, 5, 6, 6, 6, 7, 7, 8, 8, 8, 13, 13, 14, 14, 14, 15, 15, 16, 16, 16}},
      {{.mode = ResizeMode::nearest,
        .coordinates = CoordinateMode::asymmetric,
        .nearest = NearestMode::ceil},
       6,
       2,
       1.7f,
       0.7f,
       {1, 3, 5, 7, 9, 11, 9, 11, 13, 15, 13, 15}},
      {{.mode = ResizeMode::nearest,
        .coordinates = CoordinateMode::align_corners,
        .nearest = NearestMode::round_prefer_floor},
       7,
       6,
       1.75f,
       1.5f,
       {1, 2, 2, 3, 3,  4,  1,  2,  2,  3, 3,  4,  5,  6,  6,  7,  7,  8,  5,  6,  6,
        7, 7, 8, 9, 10, 10, 11, 11, 12, 9, 10, 10, 11, 11, 12, 13, 14, 14, 15, 15, 16}},
  };
  return list;
}

// Positions are quotients of whole numbers, whose nearest neighbours no rounding of a scale
// changes.
TEST(Resize, NearestElementsAreThoseOfExactPositions) {
  struct Way {
    CoordinateMode coordinates;
    NearestMode nearest;
  };
  using enum NearestMode;
  const Way ways[] = {{CoordinateMode::align_corners, floor},
                      {CoordinateMode::align_corners, ceil},
                      {CoordinateMode::align_corners, round_prefer_floor},
                      {CoordinateMode::align_corners, round_prefer_ceil},
                      {CoordinateMode::asymmetric, round_prefer_floor},
                      {CoordinateMode::asymmetric, round_prefer_ceil},
                      {CoordinateMode::half_pixel, round_prefer_floor},
                      {CoordinateMode::half_pixel, round_prefer_ceil}};
  for (const auto& [coordinates, nearest] : ways) {
    for (const int64_t in : {3, 5, 6, 7, 9, 10, 13, 14, 15, 19, 20, 21, 26, 28, 39}) {
      for (const int64_t out :
           {2, 3, 4, 5, 6, 7, 8, 9, 11, 12, 14, 20, 22, 27, 33, 39, 49, 63, 100}) {
        const ResizeAxis axes[] = {
            {in, out, static_cast<double>(static_cast<float>(out) / static_cast<float>(in))}};
        const Resize resize(
            {.mode = ResizeMode::nearest, .coordinates = coordinates, .nearest = nearest}, axes);
        std::vector<float> x(static_cast<size_t>(in));
        std::iota(x.begin(), x.end(), 0.0f);
        const auto y = resized(resize, ElementType::float32, x, out, one_thread());
        for (int64_t o = 0; o < out; ++o) {
          // The position is above / below.
          const bool aligns = coordinates == CoordinateMode::align_corners;
          const bool centers = coordinates == CoordinateMode::half_pixel;
          const int64_t below = aligns ? out - 1 : 2 * out, above = aligns ? o * (in - 1)
                                                                    : centers
                                                                        ? (2 * o + 1) * in - out
                                                                        : 2 * o * in;
          const auto down = [](int64_t a, int64_t b) {
            return a >= 0 ? a / b : -((-a + b - 1) / b);
          };
          const int64_t place = nearest == floor  ? down(above, below)
                                : nearest == ceil ? -down(-above, below)
                                : nearest == round_prefer_ceil
                                    ? down(2 * above + below, 2 * below)
                                    : -down(below - 2 * above, 2 * below);
          ASSERT_EQ(y[static_cast<size_t>(o)],
                    static_cast<float>(std::clamp<int64_t>(place, 0, in - 1)))
              << in << " to " << out << ", element " << o;
        }
      }
    }
  }
}

TEST(Resize, BytesOfOneColourKeepIt) {
  for (const ResizeMode mode : {ResizeMode::linear, ResizeMode::cubic}) {
    for (const bool antialias : {false, true}) {
      for (const float scale : {0.7f, 1.5f, 1.3f, 3.0f}) {
        const auto out = static_cast<int64_t>(10 * scale);
        const ResizeAxis axes[] = {{10, out, scale}, {10, out, scale}};
        const Resize resize(
            {.mode = mode, .coordinates = CoordinateMode::half_pixel, .antialias = antialias},
            axes);
        for (int colour = 0; colour < 256; ++colour) {
          const std::vector<uint8_t> x(100, static_cast<uint8_t>(colour));
          for (const uint8_t y : resized(resize, ElementType::uint8, x, out * out, one_thread()))
            ASSERT_EQ(y, colour) << scale;
        }
      }
    }
  }
}

TEST(Resize, AgreesWithTheReference) {
  std::vector<float> x(16);
  std::iota(x.begin(), x.end(), 1.0f);
  for (const Golden& g : goldens()) {
    const ResizeAxis axes[] = {{1, 1, 1},
                               {1, 1, 1},
                               {4, g.height, g.height_scale, g.roi_top, g.roi_bottom},
                               {4, g.width, g.width_scale, g.roi_left, g.roi_right}};
    const Resize resize(g.options, axes);
    const auto y = resized(resize, ElementType::float32, x, g.height * g.width, one_thread());
    const std::vector<double> wide_x(x.begin(), x.end());
    const auto wide =
        resized(resize, ElementType::float64, wide_x, g.height * g.width, two_threads());
    for (size_t i = 0; i < y.size(); ++i) {
      EXPECT_NEAR(y[i], g.expected[i], 2e-5) << "case " << &g - goldens().data() << " at " << i;
      EXPECT_NEAR(wide[i], g.expected[i], 2e-5);
    }
  }
}

TEST(Resize, ThreadsDoNotMatterAndRampsStayRamps) {
  constexpr int64_t h = 61, w = 97, H = 130, W = 211;
  std::vector<float> x(3 * h * w);
  for (int64_t i = 0; i < 3 * h * w; ++i) {
    x[static_cast<size_t>(i)] = static_cast<float>(i / w % h) * 2 + static_cast<float>(i % w);
  }
  const ResizeAxis axes[] = {{3, 3, 1}, {h, H, double(H) / h}, {w, W, double(W) / w}};
  ResizeOptions options{.mode = ResizeMode::linear, .coordinates = CoordinateMode::align_corners};
  const auto y = resized(Resize(options, axes), ElementType::float32, x, 3 * H * W, one_thread());
  test::expect_same_bits(
      y, resized(Resize(options, axes), ElementType::float32, x, 3 * H * W, two_threads()));
  for (int64_t i = 0; i < 3 * H * W; ++i) {
    const double row = double(i / W % H) * (h - 1) / (H - 1),
                 column = double(i % W) * (w - 1) / (W - 1);
    ASSERT_NEAR(y[static_cast<size_t>(i)], 2 * row + column, 1e-4);
  }
  for (const bool antialias : {false, true}) {
    for (const ResizeMode mode : {ResizeMode::linear, ResizeMode::cubic}) {
      options = {.mode = mode, .exclude_outside = true, .antialias = antialias};
      const ResizeAxis smaller[] = {{3, 3, 1}, {h, 17, 17.0 / h}, {w, W, double(W) / w}};
      const std::vector<uint8_t> flat(3 * h * w, 77);
      const auto z =
          resized(Resize(options, smaller), ElementType::uint8, flat, 3 * 17 * W, two_threads());
      for (const uint8_t v : z) ASSERT_NEAR(v, 77, 1);
    }
  }
}

// float32 goes along lines in vectors, float64 element by element.
TEST(Resize, LinesAgreeWithDoubles) {
  struct Case {
    std::vector<int64_t> in, out;
  };
  const Case cases[] = {
      {{2, 3, 5, 40}, {2, 3, 9, 77}},
      {{2, 17, 128}, {2, 8, 64}},
      {{1, 3, 30, 213}, {1, 3, 30, 100}},
      {{2, 60, 7}, {2, 13, 31}},
      {{1, 40, 1000}, {1, 20, 130}},
      {{3, 2000}, {3, 40}},
      {{2, 9000}, {2, 700}},
      {{2, 20, 9001}, {2, 7, 5000}},
      {{2, 6, 33, 50, 1}, {2, 6, 20, 70, 1}},
      {{1, 12, 30, 3}, {1, 20, 47, 3}},
      {{4, 10, 21}, {7, 4, 50}},
      {{3, 11, 4, 21}, {3, 5, 4, 50}},
      {{2, 1, 1}, {2, 5, 33}},
  };
  test::each_target([&] {
    for (const Case& c : cases) {
      int64_t in = 1, out = 1;
      std::vector<ResizeAxis> axes;
      for (size_t d = 0; d < c.in.size(); ++d) {
        in *= c.in[d], out *= c.out[d];
        axes.push_back({c.in[d], c.out[d], double(c.out[d]) / double(c.in[d])});
      }
      const auto x = test::random_floats(in);
      const std::vector<double> wide(x.begin(), x.end());
      for (const ResizeMode mode : {ResizeMode::linear, ResizeMode::cubic}) {
        for (const bool antialias : {false, true}) {
          const Resize resize({.mode = mode, .antialias = antialias}, axes);
          const auto y = resized(resize, ElementType::float32, x, out, one_thread());
          test::expect_same_bits(y, resized(resize, ElementType::float32, x, out, two_threads()));
          test::expect_near(y, resized(resize, ElementType::float64, wide, out, one_thread()),
                            1e-5);
        }
      }
    }
  });
}

// Rows and elements that follow themselves some times, of elements of 32 bits and of others.
TEST(Resize, NearestRepeats) {
  const ResizeOptions options{.coordinates = CoordinateMode::asymmetric,
                              .nearest = NearestMode::floor};
  for (const int64_t times : {2, 3, 4, 5}) {
    for (const int64_t width : {1, 7, 40}) {
      std::vector<int32_t> x(static_cast<size_t>(3 * 6 * width)), wanted;
      std::iota(x.begin(), x.end(), 0);
      const int64_t H = 6 * times, W = width * times;
      for (int64_t i = 0; i < 3 * H * W; ++i)
        wanted.push_back(
            static_cast<int32_t>((i / W / H * 6 + i / W % H / times) * width + i % W / times));
      const ResizeAxis axes[] = {{3, 3, 1}, {6, H, double(times)}, {width, W, double(times)}};
      EXPECT_EQ(resized(Resize(options, axes), ElementType::int32, x, 3 * H * W, two_threads()),
                wanted);
      const std::vector<int16_t> narrow(x.begin(), x.end()),
          narrow_wanted(wanted.begin(), wanted.end());
      EXPECT_EQ(resized(Resize(options, axes), ElementType::int16, narrow, 3 * H * W, one_thread()),
                narrow_wanted);
    }
  }
}

// Images with channels last against the same with channels first: [n, c, h, w] in, h and w out.
struct Pixels {
  int64_t n, c, h, w, out_h, out_w;

  std::vector<ResizeAxis> axes(bool last) const {
    const ResizeAxis rows{h, out_h, double(out_h) / double(h)},
        columns{w, out_w, double(out_w) / double(w)};
    if (last) return {{n, n, 1}, rows, columns, {c, c, 1}};
    return {{n, n, 1}, {c, c, 1}, rows, columns};
  }
  int64_t in() const { return n * c * h * w; }
  int64_t out() const { return n * c * out_h * out_w; }
};
template <class T>
std::vector<T> channels_last(const std::vector<T>& x, int64_t channels, int64_t plane) {
  std::vector<T> y(x.size());
  for (size_t i = 0; i < x.size(); ++i) {
    const auto at = static_cast<int64_t>(i);
    const int64_t image = at / plane / channels, c = at / plane % channels, p = at % plane;
    y[static_cast<size_t>((image * plane + p) * channels + c)] = x[i];
  }
  return y;
}

template <class T>
void expect_nearest_pixels(const Pixels& p, const ResizeOptions& options, ElementType type) {
  std::vector<T> x(static_cast<size_t>(p.in()));
  std::iota(x.begin(), x.end(), T{});
  const auto planes = resized(Resize(options, p.axes(false)), type, x, p.out(), one_thread());
  const auto turned = channels_last(x, p.c, p.h * p.w);
  for (ThreadPool* pool : {&one_thread(), &two_threads()}) {
    EXPECT_EQ(resized(Resize(options, p.axes(true)), type, turned, p.out(), *pool),
              channels_last(planes, p.c, p.out_h * p.out_w));
  }
}

constexpr Pixels pixels[] = {{1, 64, 7, 9, 14, 18},    {2, 3, 5, 4, 15, 8},   {1, 100, 6, 5, 9, 5},
                             {3, 17, 1, 1, 6, 4},      {1, 33, 9, 8, 4, 11},  {1, 512, 4, 4, 8, 8},
                             {1, 20, 1, 200, 1, 1000}, {2, 37, 30, 3, 7, 40}, {1, 16, 5, 5, 5, 5}};

TEST(Resize, NearestPixels) {
  test::each_target([&] {
    for (const Pixels& p : pixels) {
      for (const CoordinateMode mode : {CoordinateMode::asymmetric, CoordinateMode::half_pixel}) {
        const ResizeOptions options{.coordinates = mode, .nearest = NearestMode::floor};
        expect_nearest_pixels<uint8_t>(p, options, ElementType::uint8);
        expect_nearest_pixels<int16_t>(p, options, ElementType::int16);
        expect_nearest_pixels<int32_t>(p, options, ElementType::int32);
        expect_nearest_pixels<double>(p, options, ElementType::float64);
      }
    }
  });
}

TEST(Resize, SumsOfPixels) {
  test::each_target([&] {
    for (const Pixels& p : pixels) {
      const auto x = test::random_floats(p.in());
      const std::vector<double> wide(x.begin(), x.end());
      const auto turned = channels_last(x, p.c, p.h * p.w);
      for (const ResizeMode mode : {ResizeMode::linear, ResizeMode::cubic}) {
        for (const bool antialias : {false, true}) {
          const ResizeOptions options{
              .mode = mode, .exclude_outside = p.n == 2, .antialias = antialias};
          const Resize resize(options, p.axes(true));
          const auto y = resized(resize, ElementType::float32, turned, p.out(), one_thread());
          test::expect_same_bits(
              y, resized(resize, ElementType::float32, turned, p.out(), two_threads()));
          const auto wanted =
              channels_last(resized(Resize(options, p.axes(false)), ElementType::float64, wide,
                                    p.out(), one_thread()),
                            p.c, p.out_h * p.out_w);
          for (size_t i = 0; i < y.size(); ++i)
            ASSERT_NEAR(y[i], wanted[i], 4e-6) << i << " of " << p.c << " channels";
        }
      }
    }
  });
}

// What has no weight is not read, and images whose other axes stand between the two that change.
TEST(Resize, SumsOfPixelsReadWhatTheyNeed) {
  std::vector<float> x(static_cast<size_t>(2 * 3 * 4 * 18), 1.0f);
  for (size_t i = 0; i < x.size(); i += 18) x[i] = static_cast<float>(i / 18 % 4);
  const ResizeAxis axes[] = {{2, 4, 2}, {3, 3, 1}, {4, 7, 1.75}, {18, 18, 1}};
  const ResizeOptions options{.mode = ResizeMode::linear,
                              .coordinates = CoordinateMode::align_corners};
  test::each_target([&] {
    const auto y =
        resized(Resize(options, axes), ElementType::float32, x, 4 * 3 * 7 * 18, two_threads());
    for (size_t i = 0; i < y.size(); ++i)
      ASSERT_FLOAT_EQ(y[i], i % 18 == 0 ? static_cast<float>(i / 18 % 7) / 2 : 1.0f) << i;
    auto odd = x;
    std::fill_n(odd.begin() + 18, 18, std::numeric_limits<float>::infinity());
    const auto z =
        resized(Resize(options, axes), ElementType::float32, odd, 4 * 3 * 7 * 18, one_thread());
    for (size_t i = 0; i < z.size(); ++i) ASSERT_FALSE(std::isnan(z[i])) << i;
    EXPECT_FLOAT_EQ(z[0], 0);
  });
}

// 17 / 1.7 is 10, though the float32 nearest to 1.7 is larger.
TEST(Resize, NearestRoundsQuotientsAsFloats) {
  std::vector<int32_t> x(20), wanted;
  std::iota(x.begin(), x.end(), 0);
  for (int32_t o = 0; o < 34; ++o) wanted.push_back(o * 10 / 17);
  const ResizeAxis axes[] = {{20, 34, double(1.7f)}};
  const ResizeOptions options{.coordinates = CoordinateMode::asymmetric,
                              .nearest = NearestMode::floor};
  EXPECT_EQ(resized(Resize(options, axes), ElementType::int32, x, 34, one_thread()), wanted);
}

TEST(Resize, NearestMovesAnything) {
  const std::vector<std::string> x{"a", "b", "c"};
  const ResizeAxis axes[] = {{3, 6, 2}};
  const ResizeOptions options{.coordinates = CoordinateMode::asymmetric,
                              .nearest = NearestMode::floor};
  const auto y = resized(Resize(options, axes), ElementType::string, x, 6, one_thread());
  EXPECT_EQ(y, (std::vector<std::string>{"a", "a", "b", "b", "c", "c"}));
  EXPECT_EQ(
      resized(Resize(options, {}), ElementType::int32, std::vector<int32_t>{5}, 1, one_thread()),
      std::vector<int32_t>{5});
}

TEST(Resize, IntegersAreHeldAtTheirBounds) {
  // A cubic overshoots at the edge between 0 and 255.
  const std::vector<uint8_t> x{0, 0, 0, 255, 255, 255};
  const ResizeAxis axes[] = {{6, 24, 4}};
  const auto y =
      resized(Resize({.mode = ResizeMode::cubic}, axes), ElementType::uint8, x, 24, one_thread());
  EXPECT_TRUE(std::is_sorted(y.begin() + 11, y.begin() + 13));
  EXPECT_EQ(*std::max_element(y.begin(), y.end()), 255);
  EXPECT_EQ(*std::min_element(y.begin(), y.begin() + 11), 0);
  EXPECT_LT(y[11], 128);
}

TEST(Resize, RefusesWhatHasNoMeaning) {
  const auto refused = [](ResizeOptions options, ResizeAxis axis) {
    return !test::error_of([&] { Resize(options, std::span(&axis, 1)); }).empty();
  };
  EXPECT_TRUE(refused({}, {4, 4, 0}));
  EXPECT_TRUE(refused({}, {4, 4, -1}));
  EXPECT_TRUE(refused({}, {4, 4, NAN}));
  EXPECT_TRUE(refused({}, {0, 4, 1}));
  EXPECT_TRUE(refused({.mode = ResizeMode::linear, .antialias = true}, {4, 4, 1e-12}));
  EXPECT_TRUE(refused({.coordinates = CoordinateMode::tf_crop_and_resize}, {4, 4, 1, NAN, 1}));
  EXPECT_FALSE(refused({}, {4, 0, 0.1}));
}

// Of several hundred boxes, many of which overlap exactly as much as is allowed.
TEST(NonMaxSuppression, KeepsWhatTheDefinitionKeeps) {
  constexpr int64_t count = 600;
  std::mt19937 random(3);
  std::vector<float> boxes, scores;
  for (int64_t i = 0; i < count; ++i) {
    const auto y = static_cast<float>(random() % 24), x = static_cast<float>(random() % 24);
    boxes.insert(boxes.end(), {y, x, y + static_cast<float>(random() % 5),
                               x + static_cast<float>(random() % 5)});
    scores.push_back(static_cast<float>(count - i));
  }
  boxes[4 * 7] = NAN, boxes[4 * 8 + 3] = INFINITY;
  for (const float threshold : {0.f, 1.f / 3, 0.5f, 1.f}) {
    CountedVector<int64_t> wanted, kept;
    for (int64_t i = 0; i < count; ++i) {
      const auto overlaps = [&](int64_t other) {
        const float *a = boxes.data() + 4 * i, *b = boxes.data() + 4 * other;
        const float height = std::min(a[2], b[2]) - std::max(a[0], b[0]),
                    width = std::min(a[3], b[3]) - std::max(a[1], b[1]);
        const float common = width * height;
        const float joint = (a[2] - a[0]) * (a[3] - a[1]) + (b[2] - b[0]) * (b[3] - b[1]) - common;
        return height > 0 && width > 0 && common / joint > threshold;
      };
      if (std::any_of(kept.begin(), kept.end(), overlaps)) continue;
      kept.push_back(i);
      wanted.insert(wanted.end(), {0, 0, i});
    }
    const SuppressionOptions options{.max_per_class = count, .iou_threshold = threshold};
    EXPECT_EQ(non_max_suppression(options, 1, 1, count, boxes.data(), scores.data()), wanted)
        << threshold;
  }
}

TEST(NonMaxSuppression, DropsWhatOverlaps) {
  const std::vector<float> boxes{0, 0,  1, 1,  0, 0.1f,  1, 1.1f,  0, -0.1f, 1, 0.9f,
                                 0, 10, 1, 11, 0, 10.1f, 1, 11.1f, 0, 100,   1, 101};
  const std::vector<float> scores{0.9f, 0.75f, 0.6f, 0.95f, 0.5f, 0.3f};
  SuppressionOptions options{.max_per_class = 3, .iou_threshold = 0.5f};
  using V = CountedVector<int64_t>;
  EXPECT_EQ(non_max_suppression(options, 1, 1, 6, boxes.data(), scores.data()),
            (V{0, 0, 3, 0, 0, 0, 0, 0, 5}));
  options.has_score_threshold = true;
  options.score_threshold = 0.4f;
  EXPECT_EQ(non_max_suppression(options, 1, 1, 6, boxes.data(), scores.data()),
            (V{0, 0, 3, 0, 0, 0}));
  options.max_per_class = 0;
  EXPECT_TRUE(non_max_suppression(options, 1, 1, 6, boxes.data(), scores.data()).empty());
  // The corners may come in any order; two classes are apart; a NaN score is no score.
  const std::vector<float> flipped{1, 1, 0, 0, 0, 0.1f, 1, 1.1f};
  const std::vector<float> two{0.9f, 0.8f, NAN, 0.7f};
  options = {.max_per_class = 9, .iou_threshold = 0.5f};
  EXPECT_EQ(non_max_suppression(options, 1, 2, 2, flipped.data(), two.data()),
            (V{0, 0, 0, 0, 1, 1}));
  const std::vector<float> centers{0.5f, 0.5f, 1, 1, 0.5f, 0.6f, 1, 1};
  options.center_point_box = true;
  EXPECT_EQ(non_max_suppression(options, 1, 1, 2, centers.data(), two.data()), (V{0, 0, 0}));
}

}  // namespace
}  // namespace sardonyx::kernels
