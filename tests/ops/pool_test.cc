// Pools, global pools, unpooling, and pooling over regions.
#include "nn_support.h"

namespace sardonyx::ops_test {
namespace {

TEST(Pool, SymbolicSizes) {
  const Inferred g(R"(g (float[n, c, h, w] x) => (float[a] y) {
    a, i = MaxPool <kernel_shape = [3, 3], strides = [2, 2], pads = [1, 1, 1, 1]> (x)
    b = AveragePool <kernel_shape = [2, 2], strides = [2, 2], ceil_mode = 1> (x)
    c1 = LpPool <kernel_shape = [3, 3], auto_pad = "SAME_UPPER"> (x)
    d = GlobalAveragePool (x)
  })");
  EXPECT_EQ(g.shape("a"), "[n,c,floor((h + 1)/2),floor((w + 1)/2)]");
  EXPECT_EQ(g.shape("i"), g.shape("a"));
  EXPECT_EQ(g.shape("c1"), "[n,c,h,w]");
  EXPECT_EQ(g.shape("d"), "[n,c,1,1]");
}

// In ceil mode no window begins beyond the input and its front padding.
TEST(Pool, CeilModeLeavesOutWindowsOfPadding) {
  for (int64_t in = 1; in <= 12; ++in) {
    for (int64_t stride = 1; stride <= 4; ++stride) {
      const Tensor x(ElementType::float32, {1, 1, in});
      std::memset(const_cast<void*>(x.data()), 0, x.byte_size());
      const std::string attributes =
          fmt::format("<kernel_shape = [2], strides = [{}], pads = [1, 1], ceil_mode = 1>", stride);
      const int64_t out = run_node("MaxPool " + attributes, {x})[0].tensor().shape()[2];
      int64_t wanted = (in + 2 - 2 + stride - 1) / stride + 1;
      if ((wanted - 1) * stride >= in + 1) --wanted;
      EXPECT_EQ(out, wanted) << "in " << in << " stride " << stride;
    }
  }
}

TEST(Pool, FractionalPowersOfVersionOne) {
  Random random(1);
  const Tensor x = random.floats({1, 2, 4, 4});
  for (const char* node :
       {"y = LpPool <kernel_shape = [4, 4], p = 2.5> (x)", "y = GlobalLpPool <p = 2.5> (x)"}) {
    const Tensor y = run(upgraded(node, 1), {{"x", x}}, "y").tensor();
    ASSERT_EQ(y.shape(), (Shape{1, 2, 1, 1}));
    for (size_t c = 0; c < 2; ++c) {
      double sum = 0;
      for (size_t i = 0; i < 16; ++i)
        sum += std::pow(std::abs(static_cast<double>(x.elements<float>()[c * 16 + i])), 2.5);
      EXPECT_NEAR(y.elements<float>()[c], std::pow(sum, 1 / 2.5), 1e-4);
    }
  }
  EXPECT_EQ(
      upgraded("y = LpPool <kernel_shape = [2, 2], p = 3.0> (x)", 1).nodes.back().find("p")->i, 3);
  EXPECT_EQ(upgraded("y = GlobalLpPool (x)", 1).nodes.back().find("p")->i, 2);
}

TEST(Pool, GlobalPowers) {
  Random random(2);
  const Tensor x = random.floats({2, 3, 5});
  for (const int64_t p : {1, 2, 3}) {
    const Tensor y = run_node(fmt::format("GlobalLpPool <p = {}>", p), {x})[0].tensor();
    for (size_t i = 0; i < 6; ++i) {
      double sum = 0;
      for (size_t k = 0; k < 5; ++k)
        sum += std::pow(std::abs(static_cast<double>(x.elements<float>()[i * 5 + k])),
                        static_cast<double>(p));
      EXPECT_NEAR(y.elements<float>()[i], std::pow(sum, 1.0 / static_cast<double>(p)), 1e-5);
    }
  }
}

TEST(Pool, MistakesAreNamed) {
  const Tensor x(ElementType::float32, {1, 2, 4, 4});
  EXPECT_NE(error_of([&] {
              run_node("MaxPool <kernel_shape = [2]>", {x});
            }).find("'kernel_shape' must have 2 entries"),
            std::string::npos);
  EXPECT_NE(error_of([&] {
              run_node("MaxPool <kernel_shape = [2, 2], pads = [-1, 0, 0, 0]>", {x});
            }).find("'pads'"),
            std::string::npos);
  EXPECT_NE(error_of([&] {
              run_node("LpPool <kernel_shape = [2, 2], p = 0>", {x});
            }).find("p must be at least 1"),
            std::string::npos);
}

TEST(MaxUnpool, InvertsMaxPool) {
  Random random(3);
  const Tensor x = random.floats({1, 2, 4, 6});
  const auto pooled = run_node("MaxPool <kernel_shape = [2, 2], strides = [2, 2]>", {x}, 2);
  const Tensor y = run_node("MaxUnpool <kernel_shape = [2, 2], strides = [2, 2]>",
                            {pooled[0].tensor(), pooled[1].tensor()})[0]
                       .tensor();
  ASSERT_EQ(y.shape(), x.shape());
  int64_t kept = 0;
  for (size_t i = 0; i < 48; ++i) {
    const float value = y.elements<float>()[i];
    kept += value != 0;
    if (value != 0) {
      EXPECT_EQ(value, x.elements<float>()[i]);
    }
  }
  EXPECT_EQ(kept, 12);
  const Tensor bad = Tensor::of<int64_t>({99}, {1, 1, 1, 1});
  EXPECT_FALSE(
      error_of([&] {
        run_node("MaxUnpool <kernel_shape = [2, 2]>", {Tensor::of<float>({1}, {1, 1, 1, 1}), bad});
      }).empty());
}

TEST(RoiAlign, RegionsAreChecked) {
  Random random(4);
  const Tensor x = random.floats({2, 3, 8, 8}), roi = Tensor::of<float>({1, 1, 5, 5}, {1, 4});
  const std::string call = "RoiAlign <output_height = 2, output_width = 2>";
  EXPECT_EQ(run_node(call, {x, roi, Tensor::of<int64_t>({1}, {1})})[0].tensor().shape(),
            (Shape{1, 3, 2, 2}));
  EXPECT_NE(error_of([&] {
              run_node(call, {x, roi, Tensor::of<int64_t>({2}, {1})});
            }).find("[0, 2)"),
            std::string::npos);
  EXPECT_NE(error_of([&] {
              run_node(call, {x, roi, Tensor::of<int64_t>({-1}, {1})});
            }).find("[0, 2)"),
            std::string::npos);
  const Tensor huge = Tensor::of<float>({0, 0, 1e30f, 1e30f}, {1, 4});
  EXPECT_NE(error_of([&] {
              run_node(call, {x, huge, Tensor::of<int64_t>({0}, {1})});
            }).find("samples a bin"),
            std::string::npos);
  EXPECT_EQ(*upgraded("y = RoiAlign (x, r, b)", 10)
                 .nodes.back()
                 .find("coordinate_transformation_mode")
                 ->s,
            "output_half_pixel");
}

TEST(MaxRoiPool, WildRegionsAreClipped) {
  Random random(5);
  const Tensor x = random.floats({1, 2, 6, 6});
  const Tensor rois = Tensor::of<float>(
      {0, -1e30f, -5, 1e30f, 50, 0, 100, 100, 110, 110, 0, NAN, NAN, NAN, NAN}, {3, 5});
  const Tensor y = run_node("MaxRoiPool <pooled_shape = [2, 2]>", {x, rois})[0].tensor();
  EXPECT_EQ(y.shape(), (Shape{3, 2, 2, 2}));
  for (size_t i = 8; i < 16; ++i) EXPECT_EQ(y.elements<float>()[i], 0);  // outside: no pixel
}

// Samples that are placed once for all channels give what each plane's own do, whether a bin has
// few or many.
TEST(RoiAlign, SamplesOfAllChannelsAgreeWithDoubles) {
  Random random(5);
  const Tensor x = random.floats({2, 7, 20, 22});
  Tensor rois(ElementType::float32, {4, 4}), images(ElementType::int64, {4});
  const float corners[] = {1, 2, 9, 7, -3, -4, 30, 25, 5, 5, 5.2f, 5.1f, 21, 0, 40, 19};
  for (size_t i = 0; i < 16; ++i) rois.mutable_elements<float>()[i] = corners[i];
  for (size_t i = 0; i < 4; ++i) images.mutable_elements<int64_t>()[i] = i % 2;
  const auto doubles = [](const Tensor& from) {
    return run_node("Cast <to = 11>", {from})[0].tensor();
  };
  for (const int ratio : {0, 1, 3, 17}) {
    for (const char* mode : {"half_pixel", "output_half_pixel"}) {
      const std::string node = fmt::format(
          "RoiAlign <output_height = 3, output_width = 2, sampling_ratio = {}, "
          "coordinate_transformation_mode = \"{}\">",
          ratio, mode);
      const Tensor y = run_node(node, {x, rois, images})[0].tensor();
      expect_near(doubles(y), run_node(node, {doubles(x), doubles(rois), images})[0].tensor(),
                  1e-5);
    }
  }
}

TEST(GridSample, IdentityGridReadsTheInput) {
  Random random(6);
  const Tensor x = random.floats({1, 2, 3, 4});
  Tensor grid(ElementType::float32, {1, 3, 4, 2});
  for (size_t i = 0; i < 12; ++i) {
    grid.mutable_elements<float>()[2 * i] = -1 + 2 * static_cast<float>(i % 4) / 3;
    grid.mutable_elements<float>()[2 * i + 1] = -1 + 2 * static_cast<float>(i / 4) / 2;
  }
  for (const char* mode : {"nearest", "linear", "cubic"}) {
    expect_near(
        run_node(fmt::format("GridSample <align_corners = 1, mode = \"{}\">", mode), {x, grid})[0],
        x, 1e-4);
  }
  for (float& value : grid.mutable_elements<float>()) value = value > 0 ? INFINITY : NAN;
  for (const char* padding : {"zeros", "border", "reflection"}) {
    EXPECT_EQ(run_node(fmt::format("GridSample <padding_mode = \"{}\">", padding), {x, grid})[0]
                  .tensor()
                  .shape(),
              x.shape());
  }
  EXPECT_EQ(
      *upgraded("y = GridSample <mode = \"bicubic\"> (x, g)", 16).nodes.back().find("mode")->s,
      "cubic");
}

// Many points of many planes at once give what one after the other does.
TEST(GridSample, PlanesAgreeWithDoubles) {
  Random random(7);
  const Tensor x = random.floats({2, 5, 6, 7});
  Tensor grid = random.floats({2, 11, 13, 2});
  for (float& value : grid.mutable_elements<float>()) value *= 1.4f;
  grid.mutable_elements<float>()[3] = INFINITY;
  grid.mutable_elements<float>()[4] = NAN;
  const auto doubles = [](const Tensor& from) {
    return run_node("Cast <to = 11>", {from})[0].tensor();
  };
  for (const char* padding : {"zeros", "border", "reflection"}) {
    for (int corners = 0; corners < 2; ++corners) {
      const std::string node =
          fmt::format("GridSample <mode = \"linear\", padding_mode = \"{}\", align_corners = {}>",
                      padding, corners);
      const Tensor y = run_node(node, {x, grid})[0].tensor();
      expect_near(doubles(y), run_node(node, {doubles(x), doubles(grid)})[0].tensor(), 1e-5);
    }
  }
}

TEST(GridSample, TheNearestWholeNumberIsThatOfX) {
  constexpr int64_t odd = (int64_t{1} << 60) + 1;
  const Tensor x = Tensor::of<int64_t>({odd, -odd}, {1, 1, 2}),
               grid = Tensor::of<float>({-0.9f, 0.8f, 9.0f}, {1, 3, 1});
  const std::string node = "GridSample <align_corners = 1, mode = \"nearest\", padding_mode = ";
  EXPECT_EQ(elements<int64_t>(run_node(node + "\"zeros\">", {x, grid})[0].tensor()),
            (std::vector<int64_t>{odd, -odd, 0}));
  EXPECT_EQ(elements<int64_t>(run_node(node + "\"border\">", {x, grid})[0].tensor()),
            (std::vector<int64_t>{odd, -odd, -odd}));
}

// An element outside that has no weight is not read: the one at the end may be infinite.
TEST(GridSample, PointsAtTheEdgeReadOnlyWhatIsInside) {
  Tensor x(ElementType::float32, {1, 1, 1, 2}), grid(ElementType::float32, {1, 1, 1, 2});
  x.mutable_elements<float>()[0] = INFINITY, x.mutable_elements<float>()[1] = 1;
  grid.mutable_elements<float>()[0] = 1.25f, grid.mutable_elements<float>()[1] = 0;
  EXPECT_EQ(run_node("GridSample <mode = \"linear\">", {x, grid})[0].tensor().elements<float>()[0],
            0.25f);
}

}  // namespace
}  // namespace sardonyx::ops_test
