// Shuffled channels between grouped convolutions against plain runs, on one thread and on two.
#include <fmt/format.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstring>

#include "sardonyx/session.h"

namespace sardonyx {
namespace {

struct Unit {
  int64_t groups = 4, each = 12;
  bool first = true;      // a grouped convolution before the shuffle
  bool residual = false;  // added to what that one makes
  bool depthwise = true;  // between shuffle and the second grouped convolution
  bool used_twice = false;
};

std::string constant(const std::string& name, const std::string& shape, int64_t count) {
  std::string values;
  for (int64_t i = 0; i < count; ++i)
    values +=
        fmt::format("{}{:.3f}", i == 0 ? "" : ", ", 0.4 * std::cos(0.7 * static_cast<double>(i)));
  return fmt::format("  {} = Constant<value = float[{}] {{{}}}>()\n", name, shape, values);
}

std::string model(const Unit& u) {
  const int64_t channels = u.groups * u.each;
  std::string text = constant("bias", std::to_string(channels), channels);
  text += constant("w", fmt::format("{}, {}, 1, 1", channels, u.each), channels * u.each);
  text += constant("w3", fmt::format("{}, 1, 3, 3", channels), channels * 9);
  text += fmt::format("  start = Conv<group = {}>(x, w, bias)\n", u.groups);
  std::string x = "start";
  if (u.first) {
    text += fmt::format("  a = Conv<group = {}>({}, w, bias)\n", u.groups, x);
    text += u.residual ? "  sum = Add(a, start)\n  ra = Relu(sum)\n" : "  ra = Relu(a)\n";
    x = "ra";
  }
  text += fmt::format(
      "  interleaved = Constant<value = int64[5] {{1, {}, {}, 9, 7}}>()\n"
      "  joined = Constant<value = int64[4] {{1, {}, 9, 7}}>()\n"
      "  s0 = Reshape({}, interleaved)\n  s1 = Transpose<perm = [0, 2, 1, 3, 4]>(s0)\n"
      "  s = Reshape(s1, joined)\n",
      u.groups, u.each, channels, x);
  x = "s";
  if (u.depthwise) {
    text += fmt::format("  d = Conv<group = {}, pads = [1, 1, 1, 1]>(s, w3, bias)\n", channels);
    x = "d";
  }
  text += fmt::format("  b = Conv<group = {}>({}, w, bias)\n  y = Sum(b, {})\n", u.groups, x,
                      u.used_twice ? "s" : "start");
  return fmt::format(
      "<ir_version: 10, opset_import: [\"\" : 21]>\n"
      "g (float[1, {}, 9, 7] x) => (float[a, b, c, d] y) {{\n{}}}\n",
      channels, text);
}

TEST(Shuffles, AnswersStayWhatTheyWere) {
  for (const int64_t groups : {2, 3, 4, 8}) {
    for (int kind = 0; kind < 16; ++kind) {
      const Unit unit{groups,         12, (kind & 1) != 0, (kind & 2) != 0, (kind & 4) != 0,
                      (kind & 8) != 0};
      SCOPED_TRACE(fmt::format("{} groups, kind {}", groups, kind));
      const Model m = Model::from_text(model(unit));
      Tensor x(ElementType::float32, {1, groups * unit.each, 9, 7});
      float phase = 0;
      for (float& v : x.mutable_elements<float>()) v = std::sin(phase += 0.37f);
      const std::vector<NamedValue> inputs = {{"x", x}};
      const Tensor one = Session(m, {.threads = 1}).run(inputs)[0].tensor(),
                   two = Session(m, {.threads = 2}).run(inputs)[0].tensor(),
                   plain = Session(m, {.threads = 1, .reference = true}).run(inputs)[0].tensor();
      EXPECT_EQ(std::memcmp(one.data(), two.data(), one.byte_size()), 0);
      for (size_t i = 0; i < plain.elements<float>().size(); ++i) {
        const float wanted = plain.elements<float>()[i];
        ASSERT_NEAR(one.elements<float>()[i], wanted, 2e-5 * (1 + std::abs(wanted))) << "at " << i;
      }
    }
  }
}

// Between the borders of the region, without those around streams of interleaved images.
int64_t inner_transposes(const Unit& unit) {
  const auto steps = Session(Model::from_text(model(unit)), {.threads = 1}).steps();
  return std::ranges::count_if(steps, [](const StepDescription& step) {
    return step.node.starts_with("Reshape") && step.origin != "from interleaved channels";
  });
}

TEST(Shuffles, NeedNoPassOfTheirOwn) {
  // Written by the convolution before them, or (three groups; no such convolution) read by the one
  // behind them.
  EXPECT_EQ(inner_transposes({.groups = 4}), 0);
  EXPECT_EQ(inner_transposes({.groups = 3}), 0);
  EXPECT_EQ(inner_transposes({.groups = 4, .residual = true, .depthwise = false}), 0);
  // What others read, too, stays.
  EXPECT_EQ(inner_transposes({.groups = 3, .used_twice = true}), 2);
}

// `to`, the 24 channels of `from` shuffled in 4 groups.
std::string shuffled(const std::string& from, const std::string& to) {
  return fmt::format(
      "  {1}0 = Reshape({0}, interleaved)\n  {1}1 = Transpose<perm = [0, 2, 1, 3, 4]>({1}0)\n"
      "  {1} = Reshape({1}1, joined)\n",
      from, to);
}

// Of nodes that make y from x, 6 channels, with the weights all, grouped and each.
void expect_plain_answers(const std::string& nodes) {
  const Model m = Model::from_text(
      fmt::format("<ir_version: 10, opset_import: [\"\" : 21]>\n"
                  "g (float[1, 6, 9, 7] x) => (float[a, b, c, d] y) {{\n{}{}{}"
                  "  interleaved = Constant<value = int64[5] {{1, 4, 6, 9, 7}}>()\n"
                  "  joined = Constant<value = int64[4] {{1, 24, 9, 7}}>()\n{}}}\n",
                  constant("all", "24, 6, 1, 1", 144), constant("grouped", "24, 6, 1, 1", 144),
                  constant("each", "24, 1, 1, 1", 24), nodes));
  Tensor x(ElementType::float32, {1, 6, 9, 7});
  float phase = 0;
  for (float& v : x.mutable_elements<float>()) v = std::sin(phase += 0.37f);
  const std::vector<NamedValue> inputs = {{"x", x}};
  const Tensor found = Session(m).run(inputs)[0].tensor(),
               expected = Session(m, {.reference = true}).run(inputs)[0].tensor();
  for (size_t i = 0; i < expected.elements<float>().size(); ++i)
    ASSERT_NEAR(found.elements<float>()[i], expected.elements<float>()[i], 1e-5) << "at " << i;
}

// The convolution writes what the first of two shuffles makes, and the second one stays.
TEST(Shuffles, OneMayFollowAnother) {
  expect_plain_answers("  o = Conv(x, all)\n  p = Conv<group = 4>(o, grouped)\n" +
                       shuffled("p", "q") + shuffled("q", "r") + "  y = Neg(r)\n");
}

TEST(Shuffles, ChannelsInOrderHaveMeans) {
  expect_plain_answers("  p = Conv(x, all)\n" + shuffled("p", "q") +
                       "  r = Conv<group = 24>(q, each)\n  s = GlobalAveragePool(r)\n"
                       "  y = Mul(r, s)\n");
}

// A unit with strides, whose first image is larger than a cache holds.
std::string large_unit() {
  std::string text = constant("w", "112, 6, 1, 1", 112 * 6) + constant("bias", "112", 112) +
                     constant("w3", "112, 1, 3, 3", 112 * 9);
  return fmt::format(
      "<ir_version: 10, opset_import: [\"\" : 21]>\n"
      "g (float[1, 24, 56, 56] x) => (float[a, b, c, d] y) {{\n{}"
      "  a = Conv<group = 4>(x, w, bias)\n  r = Relu(a)\n"
      "  interleaved = Constant<value = int64[5] {{1, 4, 28, 56, 56}}>()\n"
      "  joined = Constant<value = int64[4] {{1, 112, 56, 56}}>()\n"
      "  s0 = Reshape(r, interleaved)\n  s1 = Transpose<perm = [0, 2, 1, 3, 4]>(s0)\n"
      "  s = Reshape(s1, joined)\n"
      "  y = Conv<group = 112, pads = [1, 1, 1, 1], strides = [2, 2]>(s, w3, bias)\n}}\n",
      text);
}

TEST(Shuffles, RunInBandsWithTheDepthwiseConvolutionBehindThem) {
  const Model m = Model::from_text(large_unit());
  const Session one(m, {.threads = 1}), two(m, {.threads = 2}),
      plain(m, {.threads = 1, .reference = true});
  const auto steps = one.steps();
  EXPECT_EQ(std::ranges::count(steps, "conv.chain", &StepDescription::kernel), 1);
  Tensor x(ElementType::float32, {1, 24, 56, 56});
  float phase = 0;
  for (float& v : x.mutable_elements<float>()) v = std::sin(phase += 0.37f);
  const std::vector<NamedValue> inputs = {{"x", x}};
  const Tensor a = one.run(inputs)[0].tensor(), b = two.run(inputs)[0].tensor(),
               expected = plain.run(inputs)[0].tensor();
  EXPECT_EQ(std::memcmp(a.data(), b.data(), a.byte_size()), 0);
  for (size_t i = 0; i < expected.elements<float>().size(); ++i) {
    const float wanted = expected.elements<float>()[i];
    ASSERT_NEAR(a.elements<float>()[i], wanted, 2e-5 * (1 + std::abs(wanted))) << "at " << i;
  }
}

}  // namespace
}  // namespace sardonyx
