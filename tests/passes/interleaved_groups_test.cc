// Images that stay interleaved between the units of a ShuffleNet, against plain runs, on one thread
// and on two.
#include <fmt/format.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstring>

#include "image_models.h"
#include "sardonyx/session.h"

namespace sardonyx {
namespace {

struct Net {
  int64_t groups = 4, each = 6;
  int units = 2;
  bool flat = false;         // one spatial dimension
  bool any_size = false;     // of images
  std::string end = "last";  // what is made of the last unit's image: nothing, a pool, a slice
  bool output = false;       // an image inside is an output of the graph, too
  int64_t joined = 0;        // channels of the first image that one of two joined images gives
  bool relu = true;          // before the first unit
};

class Text {
 public:
  explicit Text(const Net& net) : net_(net), channels_(net.groups * net.each) {
    constant("bias", std::to_string(channels_), channels_);
    constant("w", fmt::format("{}, {}{}", channels_, net.each, ones()), channels_ * net.each);
    constant("w3", fmt::format("{}, 1{}", channels_, net.flat ? ", 3" : ", 3, 3"),
             channels_ * (net.flat ? 3 : 9));
    std::string x = net.joined > 0 ? join("x") : "x";
    if (net.relu) {
      line(fmt::format("start = Relu({})", x));
      x = "start";
    }
    for (int i = 0; i < net.units; ++i) x = unit(x, i);
    end(x);
  }

  std::string model() const {
    const std::string size = net_.any_size ? net_.flat ? "n" : "n, m" : net_.flat ? "23" : "9, 7";
    const std::string shape = fmt::format("float[1, {}, {}]", channels_, size);
    return fmt::format(
        "<ir_version: 10, opset_import: [\"\" : 21]>\ng ({} x) => (float[{}] y{}) {{\n{}}}\n",
        shape, net_.flat ? "a, b, c" : "a, b, c, d",
        !net_.output ? ""
        : net_.flat  ? ", float[e, f, g] out0"
                     : ", float[e, f, g, h] out0",
        text_);
  }

 private:
  const char* ones() const { return net_.flat ? ", 1" : ", 1, 1"; }
  void line(const std::string& text) { text_ += "  " + text + "\n"; }
  void constant(const std::string& name, const std::string& shape, int64_t count) {
    std::string values;
    for (int64_t i = 0; i < count; ++i)
      values +=
          fmt::format("{}{:.3f}", i == 0 ? "" : ", ", 0.3 * std::cos(0.7 * static_cast<double>(i)));
    line(fmt::format("{} = Constant<value = float[{}] {{{}}}>()", name, shape, values));
  }
  std::string join(const std::string& x) {
    const int64_t other = channels_ - net_.joined;
    constant("wa", fmt::format("{}, {}{}", net_.joined, channels_, ones()),
             net_.joined * channels_);
    constant("wb", fmt::format("{}, {}{}", other, channels_, ones()), other * channels_);
    line(fmt::format("xa = Conv({}, wa)", x));
    line(fmt::format("xb = Conv({}, wb)", x));
    line("joined = Concat<axis = 1>(xa, xb)");
    return "joined";
  }
  std::string unit(const std::string& x, int i) {
    line(fmt::format("a{} = Conv<group = {}>({}, w, bias)", i, net_.groups, x));
    line(fmt::format("r{} = Relu(a{})", i, i));
    line(fmt::format("d{} = Conv<group = {}, pads = [{}]>(r{}, w3, bias)", i, channels_,
                     net_.flat ? "1, 1" : "1, 1, 1, 1", i));
    line(fmt::format("b{} = Conv<group = {}>(d{}, w, bias)", i, net_.groups, i));
    line(fmt::format("s{} = Add(b{}, {})", i, i, x));
    line(fmt::format("out{} = Relu(s{})", i, i));
    return fmt::format("out{}", i);
  }
  void end(const std::string& x) {
    const char* two = net_.flat ? "2" : "2, 2";
    if (net_.end == "pool") {
      line(fmt::format("p = AveragePool<kernel_shape = [{}], strides = [{}]>({})", two, two, x));
      line("y = Conv<group = 1>(p, joint)");
      constant_first("joint", fmt::format("5, {}{}", channels_, ones()), 5 * channels_);
    } else if (net_.end == "global") {
      line(fmt::format("y = GlobalAveragePool({})", x));
    } else if (net_.end == "joined") {
      const std::string twice = std::to_string(2 * channels_);
      constant("joint", fmt::format("{0}, {0}{1}", channels_, ones()), channels_ * channels_);
      constant("bias2", twice, 2 * channels_);
      constant("w2", fmt::format("{}, {}{}", twice, 2 * net_.each, ones()),
               4 * channels_ * net_.each);
      line(fmt::format("p = AveragePool<kernel_shape = [{}], strides = [{}]>({})", two, two, x));
      line("q = Conv(p, joint)\n  both = Concat<axis = 1>(p, q)\n  rb = Relu(both)");
      line(fmt::format("u = Conv<group = {0}>(rb, w2, bias2)\n  v = Conv<group = {0}>(u, w2)",
                       net_.groups));
      line("s = Add(v, rb)\n  rs = Relu(s)");
      line(fmt::format("o = Conv<group = {0}>(rs, w2, bias2)\n  y = Conv<group = {0}>(o, w2)",
                       net_.groups));
    } else if (net_.end == "slice") {
      line("from = Constant<value = int64[1] {1}>()");
      line("to = Constant<value = int64[1] {7}>()");
      line(fmt::format("y = Slice({}, from, to, from)", x));
    } else {
      line(fmt::format("y = Neg({})", x));
    }
  }
  void constant_first(const std::string& name, const std::string& shape, int64_t count) {
    std::string body;
    std::swap(body, text_);
    constant(name, shape, count);
    text_ += body;
  }

  const Net& net_;
  int64_t channels_;
  std::string text_;
};

int64_t turns(const Net& net) {
  const auto steps = Session(Model::from_text(Text(net).model()), {.threads = 1}).steps();
  return std::ranges::count_if(steps, [](const StepDescription& step) {
    return step.node.starts_with("Transpose") && step.origin == "from interleaved channels";
  });
}

void expect_same_answers(const Net& net) {
  const Model m = Model::from_text(Text(net).model());
  Shape shape{1, net.groups * net.each, net.flat ? 23 : 9};
  if (!net.flat) shape.push_back(7);
  Tensor x(ElementType::float32, shape);
  float phase = 0;
  for (float& v : x.mutable_elements<float>()) v = std::sin(phase += 0.37f);
  const std::vector<NamedValue> inputs = {{"x", x}};
  const auto one = Session(m, {.threads = 1}).run(inputs),
             two = Session(m, {.threads = 2}).run(inputs),
             plain = Session(m, {.threads = 1, .reference = true}).run(inputs);
  for (size_t k = 0; k < plain.size(); ++k) {
    const Tensor &a = one[k].tensor(), &b = two[k].tensor(), &wanted = plain[k].tensor();
    ASSERT_EQ(a.shape(), wanted.shape());
    EXPECT_EQ(std::memcmp(a.data(), b.data(), a.byte_size()), 0);
    for (size_t i = 0; i < wanted.elements<float>().size(); ++i) {
      const float value = wanted.elements<float>()[i];
      ASSERT_NEAR(a.elements<float>()[i], value, 2e-5 * (1 + std::abs(value))) << "at " << i;
    }
  }
}

TEST(DealtStreams, AnswersStayWhatTheyWere) {
  for (const int64_t groups : {2, 3, 4, 8}) {
    for (const int64_t each : {2, 6, 17}) {
      for (const char* end : {"last", "pool", "global", "slice", "joined"}) {
        for (int kind = 0; kind < 8; ++kind) {
          SCOPED_TRACE(fmt::format("{} groups of {}, {}, kind {}", groups, each, end, kind));
          expect_same_answers({.groups = groups,
                               .each = each,
                               .units = 3,
                               .flat = (kind & 1) != 0,
                               .any_size = (kind & 2) != 0,
                               .end = end,
                               .output = (kind & 4) != 0});
        }
      }
    }
  }
}

TEST(DealtStreams, JoinedImagesAreDealtOutOnTheirWay) {
  for (const int64_t groups : {2, 4, 8}) {
    for (const int64_t each : {12, 17}) {
      for (const int64_t joined : {int64_t{1}, each + 1, groups * each - 3}) {
        for (const bool relu : {false, true}) {
          SCOPED_TRACE(fmt::format("{} groups of {}, {} {}", groups, each, joined, relu));
          const Net net{.groups = groups, .each = each, .units = 3, .joined = joined, .relu = relu};
          expect_same_answers(net);
          if (groups <= 4) {
            EXPECT_EQ(turns(net), 1);  // at the end
          }
        }
      }
    }
  }
}

TEST(DealtStreams, TurnOnlyAtTheirEnds) {
  EXPECT_EQ(turns({.groups = 4, .units = 3}), 2);
  EXPECT_EQ(turns({.groups = 4, .units = 3, .end = "pool"}), 2);
  EXPECT_EQ(turns({.groups = 4, .units = 3, .any_size = true, .end = "pool"}), 2);
  EXPECT_EQ(turns({.groups = 4, .units = 3, .flat = true, .end = "pool"}), 2);
  // Where no such convolution is, or too few of them.
  EXPECT_EQ(turns({.groups = 3, .units = 3}), 0);
  EXPECT_EQ(turns({.groups = 4, .units = 1}), 0);
}

// An image that a Transpose has given channels last may be read by branches.
TEST(DealtStreams, BranchesReadChannelsInTheirOrder) {
  test::ThreeWays(
      Model::from_text(fmt::format(
          "<ir_version: 10, opset_import: [\"\" : 21]>\n"
          "g (float[1, 24, 9, 7] x) => (float[a, b, c, d] y) {{\n{}"
          "  none = Constant<value = float {{0}}>()\n  most = ReduceMax<keepdims = 0>(x)\n"
          "  positive = Greater(most, none)\n  p = Conv<group = 4>(x, w)\n"
          "  q = Transpose<perm = [0, 2, 3, 1]>(p)\n  r = Relu(q)\n"
          "  s = Transpose<perm = [0, 3, 1, 2]>(r)\n  s0 = Conv<group = 4>(s, w)\n"
          "  s1 = Conv<group = 4>(s, w)\n  s2 = Conv<group = 4>(s, w)\n  sum = Sum(s0, s1, s2)\n"
          "  t = Transpose<perm = [0, 2, 3, 1]>(sum)\n  u = If(positive) <then_branch = a () => "
          "(v) {{ v = Neg(r) }}, else_branch = b () => (v) {{ v = Identity(r) }}>\n"
          "  y = Add(t, u)\n}}\n",
          test::constant("w", "24, 6, 1, 1", 144))))
      .check(test::picture({1, 24, 9, 7}), 2e-5);
}

}  // namespace
}  // namespace sardonyx
