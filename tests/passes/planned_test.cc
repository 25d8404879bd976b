// Planned, fused runs of random graphs against plain ones.
#include <fmt/format.h>
#include <gtest/gtest.h>

#include <cmath>

#include "sardonyx/session.h"

namespace sardonyx {
namespace {

// Graphs over values of shape [N, 8]: chains and branches of operators that fuse, share memory,
// work in place, capture and loop.
class Generator {
 public:
  explicit Generator(uint64_t seed) : state_(seed * 2 + 1) {}

  std::string graph(int nodes) {
    text_ =
        "  w_range = Constant<value_floats = [0.1, -0.2, 0.3, 0.05, -0.15, 0.25, -0.3, 0.2]>()\n"
        "  w_shape = Constant<value_ints = [8, 1]>()\n"
        "  w_column = Reshape(w_range, w_shape)\n"
        "  w = Add(w_column, w_range)\n"
        "  half = Constant<value_float = 0.5>()\n"
        "  zero = Constant<value_float = 0.0>()\n"
        "  trips = Constant<value_int = 3>()\n"
        "  last = Constant<value_ints = [-1]>()\n"
        "  keep = Constant<value = bool {1}>()\n";
    for (int i = 0; i < nodes; ++i) add_node();
    const size_t n = values_.size();
    return fmt::format(
        "<ir_version: 10, opset_import: [\"\" : 21]>\n"
        "g (float[N, 8] x, float[N, 8] z) => (float[N, 8] {}, float[N, 8] {}) {{\n{}}}\n",
        values_[n - 1], values_[n - 2], text_);
  }

 private:
  uint32_t next(uint32_t below) {
    state_ = state_ * 6364136223846793005u + 1442695040888963407u;
    return static_cast<uint32_t>(state_ >> 33) % below;
  }
  std::string pick() { return values_[next(static_cast<uint32_t>(values_.size()))]; }

  void add_node() {
    const std::string a = pick(), b = pick(), y = fmt::format("v{}", counter_++);
    const auto line = [&](const std::string& text) { text_ += "  " + text + "\n"; };
    switch (next(12)) {
      case 0: line(fmt::format("{} = Add({}, {})", y, a, b)); break;
      case 1: line(fmt::format("{0}_p = Mul({1}, {2}) {0} = Tanh({0}_p)", y, a, b)); break;
      case 2: line(fmt::format("{} = Relu({})", y, a)); break;
      case 3: line(fmt::format("{0}_s = Sigmoid({1}) {0} = Mul({1}, {0}_s)", y, a)); break;
      case 4: line(fmt::format("{} = Softmax({})", y, a)); break;
      case 5:
        line(fmt::format("{0}_m = MatMul({1}, w) {0}_b = Add({0}_m, w_range) {0} = Tanh({0}_b)", y,
                         a));
        break;
      case 6:
        line(fmt::format("{0}_t = Transpose({1}) {0}_u = Mul({0}_t, half) {0} = Transpose({0}_u)",
                         y, a));
        break;
      case 7:
        line(fmt::format(
            "{0}_c = Concat<axis = 1>({1}, {2}) {0}, {0}_q = Split<axis = 1, num_outputs = "
            "2>({0}_c)",
            y, a, b));
        break;
      case 8:
        line(
            fmt::format("{0}_m = ReduceMean({1}, last) {0}_d = Sub({1}, {0}_m) "
                        "{0}_s = Mul({0}_d, {0}_d) {0} = Tanh({0}_s)",
                        y, a));
        break;
      case 9:
        line(fmt::format(
            "{0}_m = ReduceSum<keepdims = 0>({1}) {0}_g = Greater({0}_m, zero) "
            "{0} = If({0}_g) <then_branch = {0}_then () => ({0}_x) {{ {0}_y = MatMul({1}, w) "
            "{0}_z = Add({0}_y, w_range) {0}_x = Tanh({0}_z) }}, "
            "else_branch = {0}_else () => ({0}_w) {{ {0}_unused = Exp({2}) {0}_w = Relu({2}) }}>",
            y, a, b));
        break;
      case 10:
        line(fmt::format(
            "{0} = Loop(trips, keep, {1}) <body = {0}_body (int64 {0}_i, bool {0}_k, float[A, B] "
            "{0}_in) => (bool {0}_k2, float[A, B] {0}_out) {{ {0}_k2 = Identity({0}_k) "
            "{0}_m = MatMul({0}_in, w) {0}_n = Add({0}_m, {2}) {0}_out = Tanh({0}_n) }}>",
            y, a, b));
        break;
      default:
        line(
            fmt::format("{0}_shape = Shape({1}) {0}_e = Expand(half, {0}_shape) "
                        "{0}_s = Sub({1}, {0}_e) {0} = Clip({0}_s, zero, half)",
                        y, a));
    }
    values_.push_back(y);
  }

  uint64_t state_;
  int counter_ = 0;
  std::string text_;
  std::vector<std::string> values_{"x", "z"};
};

Tensor waves(int64_t rows, float phase) {
  Tensor tensor(ElementType::float32, {rows, 8});
  for (float& v : tensor.mutable_elements<float>()) v = std::cos(phase += 0.9f);
  return tensor;
}

TEST(PlannedRun, AgreesWithThePlainOne) {
  for (uint64_t seed = 0; seed < 60; ++seed) {
    const std::string text = Generator(seed).graph(14);
    SCOPED_TRACE(text);
    const Model model = Model::from_text(text);
    const Session planned(model, {.threads = 1}), plain(model, {.threads = 1, .reference = true});
    for (const int64_t rows : {3, 1, 5, 5}) {
      const std::vector<NamedValue> inputs = {{"x", waves(rows, 0)}, {"z", waves(rows, 2)}};
      const auto found = planned.run(inputs), expected = plain.run(inputs);
      for (size_t i = 0; i < expected.size(); ++i) {
        ASSERT_EQ(found[i].tensor().shape(), expected[i].tensor().shape());
        const auto a = found[i].tensor().elements<float>(),
                   b = expected[i].tensor().elements<float>();
        for (size_t k = 0; k < a.size(); ++k)
          ASSERT_NEAR(a[k], b[k], 1e-4 * (1 + std::abs(b[k]))) << "output " << i << " at " << k;
      }
    }
  }
}

// A convolution and all that may follow it, up to four operators, in every order.
// One over the divisor is infinite, and the quotient is not.
TEST(PlannedRun, DivisorsWithoutAnInverseDivide) {
  const Model model = Model::from_text(R"(<ir_version: 10, opset_import: ["" : 21]>
    g (float[2, 8] x) => (float[2, 8] y) {
      w = Constant<value_floats = [1e-42, 1e-42, 1e-42, 1e-42, 1e-42, 1e-42, 1e-42, 1e-42]>()
      shape = Constant<value_ints = [8, 8]>()
      matrix = Expand(w, shape)
      p = MatMul(x, matrix)
      least = Constant<value = float {1.401298464324817e-45}>()
      y = Div(p, least)
    })");
  const Tensor x = Tensor::of<float>(std::vector<float>(16, 1.0f), {2, 8});
  const Tensor wanted = Session(model, {.reference = true}).run({{"x", x}})[0].tensor();
  const Tensor made = Session(model, {.threads = 1}).run({{"x", x}})[0].tensor();
  for (size_t i = 0; i < 16; ++i) {
    ASSERT_TRUE(std::isfinite(wanted.elements<float>()[i]));
    EXPECT_EQ(made.elements<float>()[i], wanted.elements<float>()[i]);
  }
}

TEST(PlannedRun, OperatorsAfterConvolutionsKeepTheirOrder) {
  const std::string_view operators[] = {"Relu({0})", "Tanh({0})", "Add({0}, r)", "Add(r, {0})"};
  constexpr size_t kinds = std::size(operators), length = 4;
  Tensor x(ElementType::float32, {1, 2, 3, 3}), r(ElementType::float32, {1, 2, 3, 3});
  float phase = 0;
  for (float& v : x.mutable_elements<float>()) v = std::cos(phase += 0.9f);
  for (float& v : r.mutable_elements<float>()) v = std::cos(phase += 1.3f);
  for (size_t chain = 0; chain < kinds * kinds * kinds * kinds; ++chain) {
    std::string text =
        "<ir_version: 10, opset_import: [\"\" : 21]>\n"
        "g (float[1, 2, 3, 3] x, float[1, 2, 3, 3] r) => (float[1, 2, 3, 3] y)\n"
        "<float[2, 2, 1, 1] w = {0.5, -1, 1, 0.25}, float[2] s = {1.5, -0.5}, float[2] b = {0.1, "
        "-0.2},"
        " float[2] v = {1, 2}> {\n"
        "  c = Conv(x, w)\n  a0 = BatchNormalization(c, s, b, b, v)\n";
    for (size_t i = 0, rest = chain; i < length; ++i, rest /= kinds) {
      const std::string before = fmt::format("a{}", i);
      text += fmt::format("  {} = {}\n", i + 1 == length ? "y" : fmt::format("a{}", i + 1),
                          fmt::format(fmt::runtime(operators[rest % kinds]), before));
    }
    text += "}\n";
    const Model model = Model::from_text(text);
    const std::vector<NamedValue> inputs = {{"x", x}, {"r", r}};
    const auto found = Session(model, {.threads = 1}).run(inputs),
               expected = Session(model, {.threads = 1, .reference = true}).run(inputs);
    const auto a = found[0].tensor().elements<float>(), b = expected[0].tensor().elements<float>();
    for (size_t k = 0; k < a.size(); ++k) ASSERT_NEAR(a[k], b[k], 1e-5) << text;
  }
}

}  // namespace
}  // namespace sardonyx
