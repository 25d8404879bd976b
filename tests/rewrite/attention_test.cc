// Attention spelled out, in the ways exporters spell it: one step, with the same results.
#include <fmt/format.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <random>

#include "sardonyx/session.h"

namespace sardonyx {
namespace {

constexpr int64_t batch = 2, heads = 3, queries = 5, size = 4;

Tensor random_tensor(Shape shape, uint32_t seed) {
  Tensor made(ElementType::float32, std::move(shape));
  std::mt19937 random(seed);
  std::normal_distribution<float> normal;
  for (float& v : made.mutable_elements<float>()) v = normal(random);
  return made;
}

// True where (query + key + batch) % 3 is not 0, and for one query of the first batch nowhere.
Tensor mask(bool inverted, int64_t keys) {
  Tensor made(ElementType::boolean, {batch, 1, queries, keys});
  bool* at = made.mutable_elements<bool>().data();
  for (int64_t b = 0; b < batch; ++b) {
    for (int64_t q = 0; q < queries; ++q) {
      for (int64_t k = 0; k < keys; ++k, ++at) {
        const bool counts = (b + q + k) % 3 != 0 && !(b == 0 && q == 2);
        *at = counts != inverted;
      }
    }
  }
  return made;
}

Tensor column() {
  Tensor made(ElementType::boolean, {batch, 1, queries, 1});
  int64_t i = 0;
  for (bool& v : made.mutable_elements<bool>()) v = i++ % 4 != 1;
  return made;
}

struct Spelling {
  std::string name;
  std::string nodes;  // from q, k, v, mask and bias to y
  bool inverted = false;
  bool is_attention = true;
};

constexpr std::string_view constants =
    "  half = Constant<value = float {0.5}>()\n  two = Constant<value = float {2.0}>()\n"
    "  least = Constant<value = float {-3.4028235e38}>()\n"
    "  some = Constant<value = float {-10.0}>()\n"
    "  no = Constant<value = float {-inf}>()\n"
    "  fills = Constant<value = float[7] {-1, -2, -3, -4, -5, -6, -7}>()\n";
constexpr std::string_view turned = "  t = Transpose<perm = [0, 1, 3, 2]>(k)\n";
constexpr std::string_view rest = "  w = Softmax<axis = -1>(m)\n  y = MatMul(w, v)\n";

std::vector<Spelling> spellings() {
  const std::string product = fmt::format("{}  s = MatMul(q, t)\n  c = Mul(s, half)\n", turned);
  return {
      {"Bias", product + "  m = Add(c, bias)\n"},
      {"CountsElseLeast", product + "  m = Where(mask, c, least)\n"},
      {"CountsElseSome", product + "  m = Where(mask, c, some)\n"},
      {"CountsElseNo", product + "  m = Where(mask, c, no)\n"},
      {"FilledWithLeast", product + "  m = Where(mask, least, c)\n", true},
      {"FilledWithNo", product + "  m = Where(mask, no, c)\n", true},
      {"UnscaledAndFilled",
       fmt::format("{}  s = MatMul(q, t)\n  m = Where(mask, some, s)\n", turned), true},
      {"OperandsScaled",
       fmt::format("  p = Mul(q, half)\n{}  r = Mul(half, t)\n  s = MatMul(p, r)\n  m = Add(s, "
                   "bias)\n",
                   turned)},
      {"OperandsAndProductScaled",
       "  p = Div(q, two)\n  r = Div(k, two)\n  t = Transpose<perm = [0, 1, 3, 2]>(r)\n"
       "  s = MatMul(p, t)\n  c = Mul(s, two)\n  m = Where(mask, c, least)\n"},
      {"ExpandedToTheScores",
       product + "  all = Shape(c)\n  wide = Expand(mask, all)\n  m = Where(wide, least, c)\n",
       true},
      {"Column", product + "  m = Where(column, c, least)\n"},
      {"BiasInAColumn", product + "  m = Add(c, slope)\n"},
      {"BiasOfAnotherName", product + "  m = Add(c, other)\n"},
      {"OfVectorOfFills", product + "  m = Where(mask, c, fills)\n", false, false},
      {"OfTwoMasks", product + "  n = Where(mask, c, least)\n  m = Add(n, bias)\n"},
      {"OfTwoMasksInverted", product + "  n = Where(mask, no, c)\n  m = Add(slope, n)\n", true},
      {"OfTwoWheres", product + "  n = Where(mask, c, least)\n  m = Where(column, n, some)\n",
       false, false},
  };
}

class Attention : public testing::TestWithParam<Spelling> {};

TEST_P(Attention, IsOneStepWithTheSameResults) {
  const Spelling& spelling = GetParam();
  const Model model = Model::from_text(fmt::format(
      "<ir_version: 10, opset_import: [\"\" : 21]>\n"
      "g (float[B, 3, Q, 4] q, float[B, 3, K, 4] k, float[B, 3, K, 4] v, bool[B, 1, Q, K] mask, "
      "float[Q, K] bias, bool[B, 1, Q, 1] column, float[Q, 1] slope, float[B, 1, 1, L] other) => "
      "(float[B, 3, Q, 4] y) {{\n{}{}{}}}\n",
      constants, spelling.nodes, rest));
  const Session fused(model, {.threads = 1}), apart(model, {.threads = 1, .fuse = false});
  const auto steps = fused.steps();
  EXPECT_EQ(std::ranges::count(steps, "attention.tiles", &StepDescription::kernel),
            spelling.is_attention ? 1 : 0);
  if (spelling.is_attention) {
    EXPECT_LE(steps.size(), spelling.inverted ? 2u : 1u);
  }
  for (const int64_t keys : {7, 1, 0}) {
    if (keys != 7 && !spelling.is_attention) continue;
    std::vector<NamedValue> inputs{{"q", random_tensor({batch, heads, queries, size}, 1)},
                                   {"k", random_tensor({batch, heads, keys, size}, 2)},
                                   {"v", random_tensor({batch, heads, keys, size}, 3)},
                                   {"mask", mask(spelling.inverted, keys)},
                                   {"bias", random_tensor({queries, keys}, 4)},
                                   {"column", column()},
                                   {"slope", random_tensor({queries, 1}, 5)},
                                   {"other", random_tensor({batch, 1, 1, keys}, 6)}};
    const Value made = fused.run(inputs)[0], expected = apart.run(inputs)[0];
    const auto y = made.tensor().elements<float>(), z = expected.tensor().elements<float>();
    ASSERT_EQ(y.size(), z.size());
    for (size_t i = 0; i < y.size(); ++i) {
      EXPECT_EQ(std::isnan(y[i]), std::isnan(z[i])) << i << " of " << keys << " keys";
      if (!std::isnan(z[i])) {
        EXPECT_NEAR(y[i], z[i], 1e-5) << i << " of " << keys << " keys";
      }
    }
  }
}

INSTANTIATE_TEST_SUITE_P(Spelled, Attention, testing::ValuesIn(spellings()),
                         [](const auto& given) { return given.param.name; });

}  // namespace
}  // namespace sardonyx
