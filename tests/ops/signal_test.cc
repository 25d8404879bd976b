// Fourier transforms, windows, determinants, losses and quantization.
#include <complex>
#include <numbers>

#include "nn_support.h"

namespace sardonyx::ops_test {
namespace {

Tensor scalar(int64_t value) { return Tensor::scalar<int64_t>(value); }

TEST(Dft, EveryLengthIsTheSum) {
  Random random(1);
  for (int64_t n = 1; n <= 40; ++n) {
    const Tensor x = random.floats({1, n, 2});
    const Tensor y = run_node("DFT", {x})[0].tensor();
    for (int64_t k = 0; k < n; ++k) {
      std::complex<double> sum;
      for (int64_t t = 0; t < n; ++t) {
        const std::complex<double> value(x.elements<float>()[static_cast<size_t>(2 * t)],
                                         x.elements<float>()[static_cast<size_t>(2 * t + 1)]);
        sum += value * std::polar(1.0, -2 * std::numbers::pi * static_cast<double>(k * t % n) /
                                           static_cast<double>(n));
      }
      ASSERT_NEAR(y.elements<float>()[static_cast<size_t>(2 * k)], sum.real(), 1e-4) << n;
      ASSERT_NEAR(y.elements<float>()[static_cast<size_t>(2 * k + 1)], sum.imag(), 1e-4) << n;
    }
    expect_near(run_node("DFT <inverse = 1>", {y})[0], x, 1e-5);
  }
}

TEST(Dft, OneSidedAndBack) {
  Random random(2);
  for (const int64_t n : {1, 2, 5, 8, 15, 16}) {
    const Tensor x = random.floats({3, n, 1});
    const Tensor half = run_node("DFT <onesided = 1>", {x})[0].tensor();
    ASSERT_EQ(half.shape(), (Shape{3, n / 2 + 1, 2}));
    expect_near(run_node("DFT <onesided = 1, inverse = 1>", {half, scalar(n)})[0], x, 1e-5);
  }
}

TEST(Dft, AxesLengthsAndTheOldAttribute) {
  Random random(3);
  const Tensor x = random.floats({4, 6, 1});
  const Tensor along = run_node("DFT", {x, Tensor(), scalar(0)})[0].tensor();
  EXPECT_EQ(along.shape(), (Shape{4, 6, 2}));
  expect_near(run(upgraded("y = DFT <axis = 0> (x)", 17), {{"x", x}}, "y"), along);
  expect_near(run(upgraded("y = DFT (x)", 17), {{"x", x}}, "y"), run_node("DFT", {x})[0]);
  EXPECT_EQ(run_node("DFT", {x, scalar(9)})[0].tensor().shape(), (Shape{4, 9, 2}));
  EXPECT_NE(error_of([&] {
              run_node("DFT", {x, scalar(0)});
            }).find("dft_length must be at least 1"),
            std::string::npos);
  EXPECT_NE(error_of([&] {
              run_node("DFT", {x, Tensor(), scalar(2)});
            }).find("last dimension"),
            std::string::npos);
  EXPECT_NE(error_of([&] {
              run_node("DFT", {x, Tensor(), scalar(7)});
            }).find("[-3, 2]"),
            std::string::npos);
  // Where only the run knows the axis.
  EXPECT_NE(error_of([&] {
              run("g (float[4, 6, 1] x, int64 axis) => (y) { y = DFT (x, , axis) }",
                  {x, scalar(INT64_MAX)});
            }).find("axis"),
            std::string::npos);
}

TEST(Stft, FramesAreTransformsOfSlices) {
  Random random(4);
  const Tensor x = random.floats({2, 20, 1}), window = random.floats({6});
  const Tensor y = run_node("STFT <onesided = 0>", {x, scalar(4), window})[0].tensor();
  ASSERT_EQ(y.shape(), (Shape{2, 4, 6, 2}));
  Tensor frame(ElementType::float32, {1, 6, 1});
  for (size_t i = 0; i < 6; ++i)
    frame.mutable_elements<float>()[i] =
        x.elements<float>()[20 + 8 + i] * window.elements<float>()[i];
  const Tensor wanted = run_node("DFT", {frame})[0].tensor();
  for (size_t i = 0; i < 12; ++i)
    EXPECT_NEAR(y.elements<float>()[(1 * 4 + 2) * 12 + i], wanted.elements<float>()[i], 1e-5);
  const Tensor flat =
      run_node("STFT <onesided = 0>", {x.reshaped({2, 20}), scalar(4), window})[0].tensor();
  EXPECT_TRUE(std::ranges::equal(flat.elements<float>(), y.elements<float>()));
  EXPECT_NE(error_of([&] {
              run_node("STFT", {x.reshaped({2, 2, 5, 2}), scalar(4), window});
            }).find("batch, length and parts"),
            std::string::npos);
  EXPECT_NE(error_of([&] {
              run_node("STFT", {x, scalar(0), window});
            }).find("frame_step"),
            std::string::npos);
  EXPECT_NE(error_of([&] {
              run_node("STFT", {x, scalar(4), Tensor(), scalar(21)});
            }).find("one frame long"),
            std::string::npos);
}

TEST(SignalWindow, EndsMeetOrRepeat) {
  const Tensor symmetric = run_node("HannWindow <periodic = 0>", {scalar(9)})[0].tensor();
  for (size_t i = 0; i < 9; ++i)
    EXPECT_NEAR(symmetric.elements<float>()[i], symmetric.elements<float>()[8 - i], 1e-6);
  EXPECT_NEAR(symmetric.elements<float>()[4], 1, 1e-6);
  EXPECT_EQ(
      run_node("HammingWindow <output_datatype = 11>", {scalar(4)})[0].tensor().element_type(),
      ElementType::float64);
  EXPECT_EQ(run_node("BlackmanWindow", {scalar(0)})[0].tensor().size(), 0);
  EXPECT_NE(error_of([] { run_node("HannWindow", {scalar(-1)}); }).find("negative"),
            std::string::npos);
  EXPECT_NE(error_of([] {
              run_node("HannWindow <output_datatype = 8>", {scalar(4)});
            }).find("output_datatype"),
            std::string::npos);
}

TEST(Mel, BandsMustLieInTheSpectrum) {
  const Tensor low = Tensor::scalar<float>(0), high = Tensor::scalar<float>(8000),
               far = Tensor::scalar<float>(80000);
  EXPECT_EQ(run_node("MelWeightMatrix", {scalar(8), scalar(64), scalar(16000), low, high})[0]
                .tensor()
                .shape(),
            (Shape{33, 8}));
  EXPECT_NE(error_of([&] {
              run_node("MelWeightMatrix", {scalar(8), scalar(64), scalar(16000), low, far});
            }).find("spectrum bins"),
            std::string::npos);
  EXPECT_NE(error_of([&] {
              run_node("MelWeightMatrix", {scalar(8), scalar(64), scalar(0), low, high});
            }).find("sample_rate"),
            std::string::npos);
}

TEST(Det, PivotsAndSingularMatrices) {
  const Tensor x = Tensor::of<float>({0, 2, 3, 4, 1, 2, 2, 4}, {2, 2, 2});
  EXPECT_EQ(elements<float>(run_node("Det", {x})[0]), (std::vector<float>{-6, 0}));
  EXPECT_EQ(elements<float>(run_node("Det", {Tensor(ElementType::float32, {0, 0})})[0]),
            (std::vector<float>{1}));
}

TEST(Loss, CrossEntropyIsLikelihoodOfLogSoftmax) {
  Random random(5);
  const Tensor x = random.floats({3, 4, 2}),
               labels = Tensor::of<int64_t>({0, 3, 1, 1, 2, 0}, {3, 2}),
               weights = Tensor::of<float>({1, 2, 0.5f, 3}, {4});
  for (const char* reduction : {"none", "sum", "mean"}) {
    const std::string attributes = fmt::format("<reduction = \"{}\", ignore_index = 1>", reduction);
    const auto both = run_node("SoftmaxCrossEntropyLoss " + attributes, {x, labels, weights}, 2);
    expect_near(both[1], run_node("LogSoftmax <axis = 1>", {x})[0]);
    expect_near(
        run_node("NegativeLogLikelihoodLoss " + attributes, {both[1].tensor(), labels, weights})[0],
        both[0]);
  }
  EXPECT_NE(
      error_of([&] {
        run_node("SoftmaxCrossEntropyLoss", {x, Tensor::of<int64_t>({0, 4, 1, 1, 2, 0}, {3, 2})});
      }).find("[0, 4)"),
      std::string::npos);
  EXPECT_NE(error_of([&] {
              run_node("SoftmaxCrossEntropyLoss <reduction = \"max\">", {x, labels});
            }).find("reduction"),
            std::string::npos);
}

// --- Quantization

TEST(Quantize, RoundsHalvesToEvenAndSaturates) {
  const Tensor x = Tensor::of<float>({-1000, -0.5f, 0.5f, 1.5f, 2.5f, 1000, NAN, INFINITY}, {8}),
               one = Tensor::scalar<float>(1);
  EXPECT_EQ(elements<uint8_t>(run_node("QuantizeLinear", {x, one})[0]),
            (std::vector<uint8_t>{0, 0, 0, 2, 2, 255, 0, 255}));
  EXPECT_EQ(elements<int8_t>(run_node("QuantizeLinear", {x, one, Tensor::scalar<int8_t>(10)})[0]),
            (std::vector<int8_t>{-128, 10, 10, 12, 12, 127, -128, 127}));
}

TEST(Quantize, EveryTypeComesBack) {
  Random random(6);
  const Tensor x = random.floats({3, 5, 7}, 3);
  for (const auto type :
       {ElementType::uint8, ElementType::int8, ElementType::int16, ElementType::uint16,
        ElementType::int4, ElementType::uint4, ElementType::int2, ElementType::uint2,
        ElementType::float8e4m3fn, ElementType::float8e5m2, ElementType::float4e2m1}) {
    const Tensor scale = Tensor::scalar<float>(
        type == ElementType::int2 || type == ElementType::uint2 ? 2.0f : 0.5f);
    const Tensor q =
        run_node(fmt::format("QuantizeLinear <output_dtype = {}>", static_cast<int>(type)),
                 {x, scale})[0]
            .tensor();
    ASSERT_EQ(q.element_type(), type);
    const Tensor y = run_node("DequantizeLinear", {q, scale})[0].tensor();
    const bool is_unsigned = type == ElementType::uint8 || type == ElementType::uint16 ||
                             type == ElementType::uint4 || type == ElementType::uint2;
    for (size_t i = 0; i < static_cast<size_t>(x.size()); ++i) {
      const float wanted =
          is_unsigned ? std::max(x.elements<float>()[i], 0.0f) : x.elements<float>()[i];
      ASSERT_NEAR(y.elements<float>()[i], wanted, scale.elements<float>()[0] * 0.51f + 0.3f)
          << name_of(type);
    }
  }
}

TEST(Quantize, BlocksAndAxes) {
  Random random(7);
  const Tensor x = random.floats({2, 5, 3});
  for (const int64_t axis : {0, 1, 2}) {
    Shape blocks = x.shape();
    blocks[static_cast<size_t>(axis)] = (blocks[static_cast<size_t>(axis)] + 1) / 2;
    Tensor scale(ElementType::float32, blocks);
    for (float& value : scale.mutable_elements<float>())
      value = 0.01f + 0.02f * (random.number() + 1);
    const std::string attributes = fmt::format("<axis = {}, block_size = 2>", axis);
    const Tensor q =
        run_node("QuantizeLinear " + attributes, {x, scale, Tensor(ElementType::int8, blocks)})[0]
            .tensor();
    const Tensor y =
        run_node("DequantizeLinear " + attributes, {q, scale, Tensor(ElementType::int8, blocks)})[0]
            .tensor();
    EXPECT_EQ(y.shape(), x.shape());
  }
  const Tensor scale = Tensor::of<float>({0.5f, 1, 2}, {3});
  EXPECT_EQ(elements<uint8_t>(run_node("QuantizeLinear <axis = -1>",
                                       {Tensor::of<float>({2, 2, 2}, {1, 3}), scale})[0]),
            (std::vector<uint8_t>{4, 2, 1}));
  EXPECT_NE(error_of([&] {
              run_node("QuantizeLinear <axis = 1>", {x, scale});
            }).find("one value for each slice"),
            std::string::npos);
  EXPECT_NE(error_of([&] {
              run_node("QuantizeLinear <axis = 9>", {x, scale});
            }).find("[-3, 2]"),
            std::string::npos);
}

TEST(Quantize, VersionTenIsPerTensor) {
  const Tensor x = Tensor::of<float>({1, 2, 3, 4}, {2, 2}), scale = Tensor::of<float>({0.5f}, {1}),
               zero = Tensor::of<uint8_t>({10}, {1});
  EXPECT_EQ(elements<uint8_t>(run(upgraded("y = QuantizeLinear (x, s, z)", 10),
                                  {{"x", x}, {"s", scale}, {"z", zero}}, "y")),
            (std::vector<uint8_t>{12, 14, 16, 18}));
}

TEST(DynamicQuantize, RangeIncludesZero) {
  const auto y = run_node("DynamicQuantizeLinear", {Tensor::of<float>({1, 2, 5.1f}, {3})}, 3);
  EXPECT_EQ(y[2].tensor().elements<uint8_t>()[0], 0);
  EXPECT_EQ(elements<uint8_t>(y[0]), (std::vector<uint8_t>{50, 100, 255}));
  const auto zeros = run_node("DynamicQuantizeLinear", {Tensor::of<float>({0, 0}, {2})}, 3);
  EXPECT_EQ(elements<uint8_t>(zeros[0]), (std::vector<uint8_t>{0, 0}));
  EXPECT_EQ(elements<float>(zeros[1]), (std::vector<float>{1}));  // a scale that divides
}

}  // namespace
}  // namespace sardonyx::ops_test
