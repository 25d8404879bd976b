// What gradients hold in memory, and how often they compute things.
#include <gtest/gtest.h>

#include <algorithm>

#include "sardonyx/session.h"

namespace sardonyx::test {
namespace {

constexpr const char* header =
    "<ir_version: 10, opset_import: [\"\" : 27, \"ai.onnx.preview.training\" : 1]>\n";
constexpr int64_t mebibyte = 1 << 20;

Tensor filled(Shape shape, float low, float high) {
  Tensor tensor(ElementType::float32, std::move(shape));
  const auto all = tensor.mutable_elements<float>();
  for (size_t i = 0; i < all.size(); ++i)
    all[i] = low + (high - low) * static_cast<float>(i % 1021) / 1021.0f;
  return tensor;
}

template <class T>
Tensor zeros(int64_t count) {
  return Tensor::of<T>(std::vector<T>(static_cast<size_t>(count), T{0}), {count});
}

// Of 65,536 elements read at 65,536 places a matrix of both has 16 GiB.
TEST(GradientCost, SamplesHoldNoMatrixOfAllElements) {
  RunOptions options;
  options.memory_limit = 96 * mebibyte;
  const Session grid(Model::from_text(
      std::string(header) +
      "g (float[1, 1, 256, 256] x, float[1, 256, 256, 2] p) => (float[1, 1, 256, 256] d) {\n"
      " y = GridSample<mode = \"linear\">(x, p)\n"
      " d = ai.onnx.preview.training.Gradient<xs = [\"x\"], zs = [\"p\"], y = \"y\">(x, p)\n}"));
  const auto outputs = grid.run(
      {{"x", filled({1, 1, 256, 256}, -1, 1)}, {"p", filled({1, 256, 256, 2}, -0.9f, 0.9f)}},
      options);
  EXPECT_GT(outputs[0].tensor().elements<float>().size(), 0u);

  const Session regions(Model::from_text(
      std::string(header) +
      "g (float[1, 4, 128, 128] x, float[256, 4] r, int64[256] b) => (float[1, 4, 128, 128] d) {\n"
      " y = RoiAlign<output_height = 7, output_width = 7, sampling_ratio = 2>(x, r, b)\n"
      " d = ai.onnx.preview.training.Gradient<xs = [\"x\"], zs = [\"r\", \"b\"], y = \"y\">(x, r, "
      "b)\n}"));
  EXPECT_NO_THROW((void)regions.run({{"x", filled({1, 4, 128, 128}, -1, 1)},
                                     {"r", filled({256, 4}, 3, 90)},
                                     {"b", zeros<int64_t>(256)}},
                                    options));

  // A table of words, of which few are looked up: the gradient is a table, and nothing else is.
  const Session words(
      Model::from_text(std::string(header) +
                       "g (float[60000, 64] w, int32[5] i) => (float[60000, 64] d) {\n"
                       " y = Gather(w, i)\n"
                       " d = ai.onnx.preview.training.Gradient<xs = [\"w\"], zs = [\"i\"], y = "
                       "\"y\">(w, i)\n}"));
  options.memory_limit = 40 * mebibyte;
  EXPECT_NO_THROW(
      (void)words.run({{"w", filled({60000, 64}, -1, 1)}, {"i", zeros<int32_t>(5)}}, options));
}

// One product sums over all batches: a product of each and their sum would take 64 MiB more.
TEST(GradientCost, WeightsOfBatchesAreOneProduct) {
  const Session session(Model::from_text(
      std::string(header) +
      "g (float[N, 4, 256] x, float[256, 256] w) => (float[256, 256] d) {\n y = MatMul(x, w)\n"
      " d = ai.onnx.preview.training.Gradient<xs = [\"w\"], zs = [\"x\"], y = \"y\">(w, x)\n}"));
  RunOptions options;
  options.memory_limit = 16 * mebibyte;
  const auto d =
      session.run({{"x", filled({256, 4, 256}, -1, 1)}, {"w", filled({256, 256}, -1, 1)}}, options);
  // Rows of x count up to 1020 and begin anew.
  double sum = 0;
  const Tensor x = filled({256, 4, 256}, -1, 1);
  for (size_t row = 0; row < 1024; ++row)
    sum += static_cast<double>(x.elements<float>()[row * 256 + 7]);
  EXPECT_NEAR(d[0].tensor().elements<float>()[7 * 256 + 9], sum, 1e-3);
}

// What broadcast nothing is not summed, and so not copied.
TEST(GradientCost, NothingIsSummedWhereNothingWasBroadcast) {
  const auto sums_in = [](const std::string& shape) {
    const Session session(Model::from_text(
        std::string(header) + "g (float[N, 8] x, float" + shape + " w) => (float[N, 8] d, float" +
        shape +
        " e) {\n y = Add(x, w)\n z = Sin(y)\n"
        " d, e = ai.onnx.preview.training.Gradient<xs = [\"x\", \"w\"], y = \"z\">(x, w)\n}"));
    const std::vector<StepDescription> steps = session.steps();
    return std::count_if(steps.begin(), steps.end(), [](const StepDescription& step) {
      return step.kernel.starts_with("sum_like");
    });
  };
  EXPECT_EQ(sums_in("[N, 8]"), 0);
  EXPECT_EQ(sums_in("[8]"), 1);
  EXPECT_EQ(sums_in("[M, 8]"), 2);  // M may be 1, and N
}

size_t loops_in(const Session& session) {
  const std::vector<StepDescription> steps = session.steps();
  return static_cast<size_t>(std::count_if(steps.begin(), steps.end(), [](const auto& step) {
    return step.node.starts_with("Loop") || step.node.starts_with("Scan");
  }));
}

TEST(GradientCost, LoopsRunForwardOnce) {
  const Session session(Model::from_text(
      std::string(header) +
      "g (float[4] x, int64 n) => (float y, float[4] d) {\n"
      " go = Constant<value = bool {1}>()\n"
      " e, all = Loop(n, go, x) <body = b (int64 i, bool c, v) => (o, r, k) { o = Identity(c)\n r "
      "= Tanh(v)\n"
      "  k = Mul(r, v) }>\n y = ReduceSum<keepdims = 0>(all)\n"
      " d = ai.onnx.preview.training.Gradient<xs = [\"x\"], zs = [\"n\"], y = \"y\">(x, n)\n}"));
  EXPECT_EQ(loops_in(session), 2u);  // the loop and its gradient
}

// The products of the bodies of all loops, in order.
std::vector<std::ptrdiff_t> products_of_loops(const std::string& nodes) {
  const Session session(
      Model::from_text(std::string(header) +
                       "g (float[8, 16] x, float[16, 16] w, float[16] b) => (float[8, 16] d, "
                       "float[16, 16] e) {\n n = Constant<value = int64 {3}>()\n go = "
                       "Constant<value = bool {1}>()\n " +
                       nodes +
                       "\n d, e = ai.onnx.preview.training.Gradient<xs = [\"x\", \"w\"], zs = "
                       "[\"b\"], y = \"y\">(x, w, b)\n}"));
  std::vector<std::ptrdiff_t> products;
  for (const StepDescription& step : session.steps()) {
    for (const StepDescription::Body& body : step.bodies)
      products.push_back(std::ranges::count_if(body.steps, [](const StepDescription& inner) {
        return inner.node.find("MatMul") != std::string::npos ||
               inner.node.find("Gemm") != std::string::npos;
      }));
  }
  return products;
}

// Two products forward, two of their gradients each: none is computed again.
TEST(GradientCost, ProductsOfLoopsAreComputedOnce) {
  using Counts = std::vector<std::ptrdiff_t>;
  const std::string step =
      "m = MatMul(v, w)\n a = Add(m, b)\n t = Tanh(a)\n k = MatMul(t, w)\n s = Sigmoid(k)\n r = "
      "Mul(s, v)";
  EXPECT_EQ(products_of_loops(
                "y = Loop(n, go, x) <body = l (int64 i, bool c, v) => (o, r) { o = Identity(c)\n" +
                step + " }>"),
            (Counts{2, 4}));
  EXPECT_EQ(products_of_loops("y, all = Scan<num_scan_inputs = 1, body = l (v, e) => (r, f) { " +
                              step + "\n f = Mul(e, e) }>(x, b)"),
            (Counts{2, 4}));
  // Where shapes differ from iteration to iteration, the iteration is computed again.
  EXPECT_EQ(products_of_loops(
                "z = Constant<value_ints = [0]>()\n y = Loop(n, go, x) <body = l (int64 i, bool c, "
                "v) => (o, r) { o = Identity(c)\n one = Constant<value_ints = [1]>()\n ii = "
                "Reshape(i, one)\n end = Add(ii, one)\n part = Slice(v, z, end, z)\n"
                " m = MatMul(part, w)\n t = Tanh(m)\n h = ReduceSum(t, z)\n r = Mul(v, h) }>"),
            (Counts{1, 3}));
}

}  // namespace
}  // namespace sardonyx::test
