// Attention decomposed, in the ways exporters spell it: one step, with the same results.
#include <fmt/format.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <optional>
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
constexpr std::string_view transposed = "  t = Transpose<perm = [0, 1, 3, 2]>(k)\n";
constexpr std::string_view rest = "  w = Softmax<axis = -1>(m)\n  y = MatMul(w, v)\n";

std::vector<Spelling> spellings() {
  const std::string product = fmt::format("{}  s = MatMul(q, t)\n  c = Mul(s, half)\n", transposed);
  return {
      {"Bias", product + "  m = Add(c, bias)\n"},
      {"CountsElseLeast", product + "  m = Where(mask, c, least)\n"},
      {"CountsElseSome", product + "  m = Where(mask, c, some)\n"},
      {"CountsElseNo", product + "  m = Where(mask, c, no)\n"},
      {"FilledWithLeast", product + "  m = Where(mask, least, c)\n", true},
      {"FilledWithNo", product + "  m = Where(mask, no, c)\n", true},
      {"UnscaledAndFilled",
       fmt::format("{}  s = MatMul(q, t)\n  m = Where(mask, some, s)\n", transposed), true},
      {"OperandsScaled",
       fmt::format("  p = Mul(q, half)\n{}  r = Mul(half, t)\n  s = MatMul(p, r)\n  m = Add(s, "
                   "bias)\n",
                   transposed)},
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

// A graph from its inputs to y, and sizes of these to run it with.
struct Form {
  std::string name, inputs, nodes;
  std::vector<std::vector<Shape>> runs;
  std::ptrdiff_t attentions = 1;
};

Model model_of(const Form& form) {
  return Model::from_text(
      fmt::format("<ir_version: 10, opset_import: [\"\" : 21]>\ng ({}) => (float y) {{\n{}{}}}\n",
                  form.inputs, constants, form.nodes));
}

std::string triangle(std::string_view type, int64_t rows, int64_t columns) {
  std::string made =
      fmt::format("  table = Constant<value = {}[1,1,{},{}] {{", type, rows, columns);
  for (int64_t i = 0; i < rows * columns; ++i)
    made += fmt::format("{}{}", i > 0 ? ", " : "", i % columns <= i / columns ? 1 : 0);
  return made + "}>()\n";
}

// GPT-2's mask: of a triangle, the rows keys - queries : keys.
std::string by_lengths(const std::string& table, std::string_view last) {
  return table +
         "  k = Concat<axis = 2>(a, b)\n  v = Concat<axis = 2>(c, d)\n"
         "  first = Constant<value = int64[1] {0}>()\n  one = Constant<value = int64[1] {1}>()\n"
         "  rows = Constant<value = int64[1] {2}>()\n  columns = Constant<value = int64[1] {3}>()\n"
         "  ks = Shape(k)\n  keys = Gather(ks, rows)\n  qs = Shape(q)\n  queries = Gather(qs, "
         "rows)\n"
         "  start = Sub(keys, queries)\n  part = Slice(table, start, keys, rows, one)\n"
         "  cut = Slice(part, first, keys, columns, one)\n" +
         fmt::format("  mask = {}\n", last) +
         "  t = Transpose<perm = [0, 1, 3, 2]>(k)\n  s = MatMul(q, t)\n  h = Div(s, two)\n"
         "  n = Where(mask, h, least)\n  m = Add(n, bias)\n" +
         std::string(rest);
}
constexpr const char* cached =
    "float[B, 2, Q, 4] q, float[B, 2, P, 4] a, float[B, 2, Q, 4] b, float[B, 2, P, 4] c, "
    "float[B, 2, Q, 4] d, float[B, 1, 1, T] bias";
std::vector<Shape> past_and(int64_t b, int64_t p, int64_t q) {
  return {{b, 2, q, 4}, {b, 2, p, 4}, {b, 2, q, 4}, {b, 2, p, 4}, {b, 2, q, 4}, {b, 1, 1, p + q}};
}

// Four dimensions, or three.
std::string of_scores(const std::string& mask) {
  return std::string(transposed) + "  s = MatMul(q, t)\n" + mask + std::string(rest);
}
std::string flat(const std::string& mask) {
  return "  t = Transpose<perm = [0, 2, 1]>(k)\n  s = MatMul(q, t)\n" + mask + std::string(rest);
}

// Sizes of q, of k and of v, and those of masks.
std::vector<Shape> sizes(int64_t b, int64_t q, int64_t k, std::vector<Shape> masks) {
  std::vector<Shape> made{{b, 2, q, 4}, {b, 2, k, 4}, {b, 2, k, 4}};
  made.insert(made.end(), masks.begin(), masks.end());
  return made;
}
std::vector<Shape> flat_sizes(int64_t b, int64_t q, int64_t k, std::vector<Shape> masks = {}) {
  std::vector<Shape> made{{b, q, 4}, {b, k, 4}, {b, k, 4}};
  made.insert(made.end(), masks.begin(), masks.end());
  return made;
}

std::vector<Form> causal_forms() {
  return {
      {"CausalByLengths",
       cached,
       by_lengths(triangle("bool", 8, 8), "Identity(cut)"),
       {past_and(2, 0, 5), past_and(1, 3, 5), past_and(2, 7, 1), past_and(2, 8, 1),
        past_and(1, 7, 2), past_and(1, 7, 3), past_and(1, 0, 1), past_and(1, 4, 0)}},
      {"CausalOfBytes",
       cached,
       by_lengths(triangle("uint8", 8, 8), "Cast<to = 9>(cut)"),
       {past_and(2, 0, 5), past_and(1, 3, 5), past_and(2, 7, 1), past_and(2, 8, 1)}},
      // Where the table ends there is one row for all queries, or none.
      {"CausalByTooFewRows",
       cached,
       by_lengths(triangle("bool", 4, 20), "Identity(cut)"),
       {past_and(2, 0, 3), past_and(2, 2, 2), past_and(2, 3, 2), past_and(2, 3, 5),
        past_and(2, 4, 1), past_and(2, 4, 2), past_and(2, 2, 3)}},
  };
}

std::vector<Form> forms_of_sizes() {
  const std::string qkv = "float[B, 2, Q, 4] q, float[B, 2, K, 4] k, float[B, 2, K, 4] v, ";
  return {
      {"MaskOfItsOwnSizes",
       qkv + "bool[C, H, R, L] mask",
       of_scores("  m = Where(mask, s, least)\n"),
       {sizes(2, 5, 7, {{2, 2, 5, 7}}), sizes(2, 5, 7, {{1, 1, 1, 1}}),
        sizes(1, 5, 7, {{3, 1, 5, 7}}), sizes(2, 1, 7, {{1, 2, 6, 7}}),
        sizes(1, 1, 7, {{3, 1, 150, 1}}), sizes(1, 140, 7, {{3, 1, 140, 7}}),
        sizes(2, 1, 7, {{1, 1, 0, 7}}), sizes(1, 5, 7, {{0, 1, 1, 7}}),
        sizes(2, 5, 0, {{1, 1, 5, 1}}), sizes(2, 5, 1, {{1, 1, 1, 7}}),
        sizes(2, 5, 7, {{1, 1, 1, 6}}), sizes(2, 5, 7, {{1, 1, 4, 7}}),
        sizes(2, 5, 7, {{3, 1, 1, 7}}), sizes(2, 5, 7, {{1, 3, 1, 7}})}},
      {"BiasOfItsOwnSizes",
       qkv + "bool[Q, 1] mask, float[C, 1, R, L] bias",
       of_scores("  n = Where(mask, no, s)\n  m = Add(bias, n)\n"),
       {sizes(2, 5, 7, {{5, 1}, {2, 1, 5, 7}}), sizes(1, 1, 7, {{1, 1}, {2, 1, 3, 7}}),
        sizes(2, 5, 7, {{5, 1}, {2, 1, 5, 3}}), sizes(2, 5, 7, {{5, 1}, {2, 1, 4, 7}})}},
      {"KeysOfHalfPrecision",
       "float[B, 2, Q, 4] q, float[B, 2, K, 4] wide, float[B, 2, K, 4] v",
       "  k = Cast<to = 10>(wide)\n  i = Transpose<perm = [0, 1, 3, 2]>(k)\n"
       "  t = Cast<to = 1>(i)\n  m = MatMul(q, t)\n" +
           std::string(rest),
       {sizes(2, 5, 7, {})}},
      {"TwoSums",
       qkv + "float[1, 2, Q, K] bias, float[B, 1, 1, K] more",
       of_scores("  c = Mul(half, s)\n  n = Add(bias, c)\n  m = Add(n, more)\n"),
       {sizes(2, 5, 7, {{1, 2, 5, 7}, {2, 1, 1, 7}})}},
      {"ThreeSums",
       qkv + "float[1, 2, Q, K] bias, float[B, 1, 1, K] more",
       of_scores("  c = Add(s, bias)\n  n = Add(c, more)\n  m = Add(n, more)\n"),
       {sizes(2, 5, 7, {{1, 2, 5, 7}, {2, 1, 1, 7}})},
       0},
      // The product with the only query would be computed for each row of the mask.
      {"OneQueryForManyRows",
       "float[B, 2, 1, 4] q, float[B, 2, K, 4] k, float[B, 2, K, 4] v, float[R, 1] bias",
       of_scores("  m = Add(s, bias)\n"),
       {sizes(2, 1, 7, {{3, 1}})},
       0},
      {"SumWithWhatScoresMake",
       qkv + "float[B, 2, Q, K] bias",
       of_scores("  n = Mul(s, bias)\n  m = Add(s, n)\n"),
       {sizes(2, 5, 7, {{2, 2, 5, 7}})},
       0},
  };
}

std::vector<Form> flat_forms() {
  const std::string qkv = "float[N, Q, 4] q, float[N, K, 4] k, float[N, K, 4] v";
  return {
      {"Flat",
       qkv,
       flat("  m = Mul(s, half)\n"),
       {flat_sizes(6, 5, 7), flat_sizes(1, 1, 3), flat_sizes(2, 140, 600), flat_sizes(2, 5, 0),
        flat_sizes(0, 5, 7)}},
      {"FlatMasked",
       qkv + ", bool[Q, 1] mask, float[N, 1, K] bias",
       flat("  n = Where(mask, s, some)\n  m = Add(n, bias)\n"),
       {flat_sizes(6, 5, 7, {{5, 1}, {6, 1, 7}})}},
      {"FlatMaskOfItsOwnSizes",
       qkv + ", float[M, R, L] bias",
       flat("  m = Add(bias, s)\n"),
       {flat_sizes(6, 5, 7, {{6, 5, 7}}), flat_sizes(6, 5, 7, {{1, 5, 1}}),
        flat_sizes(1, 1, 7, {{3, 9, 7}}), flat_sizes(6, 5, 7, {{2, 5, 7}}),
        flat_sizes(6, 5, 7, {{6, 5, 3}})}},
      {"FlatWithLengthFirst",
       "float[Q, N, 4] a, float[K, N, 4] k, float[K, N, 4] c",
       "  q = Transpose<perm = [1, 0, 2]>(a)\n  v = Transpose<perm = [1, 0, 2]>(c)\n"
       "  t = Transpose<perm = [1, 2, 0]>(k)\n  m = MatMul(q, t)\n  w = Softmax<axis = 2>(m)\n"
       "  x = MatMul(w, v)\n  y = Transpose<perm = [1, 0, 2]>(x)\n",
       {{{5, 6, 4}, {7, 6, 4}, {7, 6, 4}}, {{1, 3, 4}, {7, 3, 4}, {7, 3, 4}}}},
      {"FlatOfOneBatchOfKeys",
       "float[N, Q, 4] q, float[1, K, 4] k, float[N, K, 4] v",
       flat("  m = Mul(s, half)\n"),
       {{{6, 5, 4}, {1, 7, 4}, {6, 7, 4}}},
       0},
      {"FlatOverQueries",
       "float[N, 5, 4] q, float[N, 5, 4] k, float[N, 5, 4] v",
       "  t = Transpose<perm = [0, 2, 1]>(k)\n  m = MatMul(q, t)\n  w = Softmax<axis = 1>(m)\n"
       "  y = MatMul(w, v)\n",
       {flat_sizes(6, 5, 5)},
       0},
  };
}

// Masks for batches that are counted in rows of three: Reshape, a mask, and Reshape back.
std::vector<Form> forms_in_rows() {
  const auto joined = [](const std::string& to) {
    return "  one = Constant<value = int64[" + to + ">()\n" +
           "  q = Reshape(a, one)\n  k = Reshape(b, one)\n  v = Reshape(c, one)\n";
  };
  const std::string heads = "float[B, 3, 5, 4] a, float[B, 3, 5, 4] b, float[B, 3, 5, 4] c, ";
  const std::string of_heads =
      joined("3] {-1, 5, 4}") + "  t = Transpose<perm = [0, 2, 1]>(k)\n  s = MatMul(q, t)\n" +
      "  apart = Constant<value = int64[4] {-1, 3, 5, 5}>()\n  r = Reshape(s, apart)\n";
  const std::string as_heads =
      "  whole = Constant<value = int64[3] {-1, 5, 5}>()\n  m = Reshape(n, whole)\n" +
      std::string(rest);
  const std::string windows =
      "float[B, 3, 2, 5, 4] a, float[B, 3, 2, 5, 4] b, float[B, 3, 2, 5, 4] c, "
      "float[1, 2, 5, 5] bias, ";
  const std::string of_windows =
      joined("4] {-1, 2, 5, 4}") + std::string(transposed) +
      "  s = MatMul(q, t)\n  e = Add(s, bias)\n" +
      "  apart = Constant<value = int64[5] {-1, 3, 2, 5, 5}>()\n  r = Reshape(e, apart)\n";
  const std::string as_windows =
      "  whole = Constant<value = int64[4] {-1, 2, 5, 5}>()\n  m = Reshape(n, whole)\n" +
      std::string(rest);
  const auto three = [](int64_t b, Shape mask) {
    const Shape all{b, 3, 5, 4};
    return std::vector<Shape>{all, all, all, std::move(mask)};
  };
  const auto six = [](int64_t b, Shape mask) {
    const Shape all{b, 3, 2, 5, 4};
    return std::vector<Shape>{all, all, all, {1, 2, 5, 5}, std::move(mask)};
  };
  return {
      {"HeadsInRows",
       heads + "float[B, 1, 5, 5] bias",
       of_heads + "  n = Add(r, bias)\n" + as_heads,
       {three(2, {2, 1, 5, 5}), three(1, {1, 1, 5, 5}), three(0, {0, 1, 5, 5})}},
      {"HeadsInRowsWhere",
       heads + "bool[1, H, R, L] mask",
       of_heads + "  n = Where(mask, no, r)\n" + as_heads,
       {three(2, {1, 3, 5, 5}), three(2, {1, 1, 1, 1}), three(2, {1, 3, 1, 5}),
        three(2, {1, 2, 5, 5}), three(2, {1, 1, 1, 4})}},
      {"HeadsInRowsOfAnotherMask",
       heads + "float[C, 1, 5, 5] bias",
       of_heads + "  n = Add(r, bias)\n" + as_heads,
       {three(2, {2, 1, 5, 5}), three(2, {1, 1, 5, 5}), three(1, {3, 1, 5, 5}),
        three(2, {3, 1, 5, 5})},
       0},
      {"RowsOfQueries",
       heads + "float[1, 5] bias",
       joined("3] {-1, 5, 4}") + "  t = Transpose<perm = [0, 2, 1]>(k)\n  s = MatMul(q, t)\n" +
           "  apart = Constant<value = int64[4] {0, 5, -1, 5}>()\n  r = Reshape(s, apart)\n"
           "  n = Add(r, bias)\n" +
           as_heads,
       {three(2, {1, 5})},
       0},
      {"HeadsTurnedInRows",
       heads + "float[1, 3, 5, 5] bias",
       of_heads + "  x = Add(r, bias)\n  n = Transpose<perm = [1, 0, 2, 3]>(x)\n" + as_heads,
       {three(2, {1, 3, 5, 5})},
       0},
      {"RowsThatAreReadTwice",
       heads + "float[1, 3, 5, 5] bias",
       of_heads + "  x = Add(r, bias)\n  n = Mul(x, r)\n" + as_heads,
       {three(2, {1, 3, 5, 5})},
       0},
      {"Windows",
       windows + "float[1, 3, 1, 5, 5] mask",
       of_windows + "  n = Add(r, mask)\n" + as_windows,
       {six(2, {1, 3, 1, 5, 5}), six(1, {1, 3, 1, 5, 5}), six(0, {1, 3, 1, 5, 5})}},
      {"WindowsOfItsOwnSizes",
       windows + "float[1, W, H, 5, L] mask",
       of_windows + "  n = Add(mask, r)\n" + as_windows,
       {six(2, {1, 3, 2, 5, 5}), six(2, {1, 1, 1, 5, 1}), six(2, {1, 3, 1, 5, 5}),
        six(2, {1, 2, 2, 5, 5}), six(2, {1, 3, 2, 5, 4})}},
      {"WhereAfterASum",
       windows + "bool[1, 3, 1, 5, 5] mask",
       of_windows + "  n = Where(mask, r, least)\n" + as_windows,
       {six(2, {1, 3, 1, 5, 5})},
       0},
  };
}

// Scores of positions in an image, to which something is added for rows, and something for columns.
std::vector<Form> forms_in_parts() {
  const auto nodes = [](const std::string& sums) {
    return flat(
        "  apart = Constant<value = int64[5] {-1, 2, 3, 2, 3}>()\n"
        "  r = Reshape(s, apart)\n" +
        sums + "  whole = Constant<value = int64[3] {-1, 6, 6}>()\n  m = Reshape(n, whole)\n");
  };
  const auto five = [](int64_t b, Shape high, Shape wide) {
    return std::vector<Shape>{{b, 6, 4}, {b, 6, 4}, {b, 6, 4}, std::move(high), std::move(wide)};
  };
  const std::string inputs = "float[B, 6, 4] q, float[B, 6, 4] k, float[B, 6, 4] v, ",
                    terms = "float[B, 2, 3, 2, 1] high, float[B, 2, 3, 1, 3] wide",
                    sums = "  a = Add(r, high)\n  n = Add(a, wide)\n";
  return {
      {"RowsAndColumns",
       inputs + terms,
       nodes(sums),
       {five(2, {2, 2, 3, 2, 1}, {2, 2, 3, 1, 3}), five(1, {1, 2, 3, 2, 1}, {1, 2, 3, 1, 3}),
        five(0, {0, 2, 3, 2, 1}, {0, 2, 3, 1, 3})}},
      {"OtherSides",
       inputs + terms,
       nodes("  a = Add(high, r)\n  n = Add(wide, a)\n"),
       {five(2, {2, 2, 3, 2, 1}, {2, 2, 3, 1, 3})}},
      {"AllOfOne",
       inputs + "float[1, 2, 3, 2, 1] high, float[B, 2, 3, 2, 3] wide",
       nodes(sums),
       {five(2, {1, 2, 3, 2, 1}, {2, 2, 3, 2, 3})}},
      {"NoElementForEachScore",
       inputs + "float[1, 2, 1, 2, 1] high, float[1, 2, 1, 1, 3] wide",
       nodes(sums),
       {five(2, {1, 2, 1, 2, 1}, {1, 2, 1, 1, 3})},
       0},
      {"BatchesOfTheirOwn",
       inputs + "float[C, 2, 3, 2, 1] high, float[C, 2, 3, 1, 3] wide",
       nodes(sums),
       {five(2, {2, 2, 3, 2, 1}, {2, 2, 3, 1, 3}), five(2, {1, 2, 3, 2, 1}, {1, 2, 3, 1, 3})},
       0},
      {"PartsThatAreReadTwice",
       inputs + terms,
       nodes("  a = Add(r, high)\n  b = Add(a, wide)\n  n = Mul(a, b)\n"),
       {five(2, {2, 2, 3, 2, 1}, {2, 2, 3, 1, 3})},
       0},
      {"ASumThatIsReadTwice",
       inputs + terms,
       nodes("  a = Add(r, high)\n  n = Add(a, a)\n"),
       {five(2, {2, 2, 3, 2, 1}, {2, 2, 3, 1, 3})},
       0},
  };
}

// Two heads of keys for six of queries.
std::vector<Form> forms_in_groups() {
  const std::string start =
      "  axis = Constant<value = int64[1] {2}>()\n"
      "  thrice = Constant<value = int64[5] {1, 1, 3, 1, 1}>()\n"
      "  six = Constant<value = int64[4] {0, 6, -1, 4}>()\n";
  const auto repeated = [](const std::string& from, const std::string& to) {
    return fmt::format(
        "  {1}1 = Unsqueeze({0}, axis)\n  {1}2 = Expand({1}1, thrice)\n"
        "  {1} = Reshape({1}2, six)\n",
        from, to);
  };
  const auto of_groups = [](int64_t b, int64_t q, int64_t k) {
    return std::vector<Shape>{{b, 6, q, 4}, {b, 2, k, 4}, {b, 2, k, 4}, {b, 6, q, k}};
  };
  const std::string inputs =
      "float[B, 6, Q, 4] q, float[B, 2, K, 4] few, float[B, 2, K, 4] less, float[B, 6, Q, K] bias";
  return {
      {"GroupsOfHeads",
       inputs,
       start + repeated("few", "k") + repeated("less", "v") + of_scores("  m = Add(s, bias)\n"),
       {of_groups(2, 5, 7), of_groups(2, 1, 7), of_groups(1, 140, 9)}},
      {"GroupsOfTurnedHeads",
       "float[B, 6, Q, 4] q, float[B, K, 2, 4] early, float[B, K, 2, 4] late",
       start +
           "  few = Transpose<perm = [0, 2, 1, 3]>(early)\n"
           "  less = Transpose<perm = [0, 2, 1, 3]>(late)\n" +
           repeated("few", "k") + repeated("less", "v") + of_scores("  m = Mul(s, half)\n"),
       {{{2, 6, 5, 4}, {2, 7, 2, 4}, {2, 7, 2, 4}}}},
  };
}

TEST(AttentionOfGroups, ReadsKeysAsTheyAre) {
  for (const Form& form : forms_in_groups()) {
    const Session session(model_of(form), {.threads = 1});
    EXPECT_EQ(session.steps().size(), 1u) << form.name;
  }
}

// A mask's opposite, and keys that are cast where they lie, get names that no value of the model
// has.
TEST(AttentionOfNames, LeavesOtherValuesAlone) {
  const Model model = Model::from_text(fmt::format(
      "<ir_version: 10, opset_import: [\"\" : 21]>\n"
      "g (float[2, 3, 5, 4] q, double[2, 3, 7, 4] k, float[2, 3, 7, 4] v, bool[2, 1, 5, 7] mask) "
      "=> (float[2, 3, 5, 4] y, float[2, 3, 5, 4] z) {{\n{}  m__allowed = Neg(q)\n"
      "  u__keys = Exp(q)\n  t = Transpose<perm = [0, 1, 3, 2]>(k)\n  u = Cast<to = 1>(t)\n"
      "  s = MatMul(q, u)\n  m = Where(mask, least, s)\n{}  z = Add(m__allowed, u__keys)\n}}\n",
      constants, rest));
  Tensor keys(ElementType::float64, {2, 3, 7, 4});
  std::ranges::copy(random_tensor(keys.shape(), 2).elements<float>(),
                    keys.mutable_elements<double>().begin());
  const std::vector<NamedValue> inputs{{"q", random_tensor({2, 3, 5, 4}, 1)},
                                       {"k", keys},
                                       {"v", random_tensor({2, 3, 7, 4}, 3)},
                                       {"mask", mask(true, 7)}};
  const Session fused(model, {.threads = 1}), apart(model, {.threads = 1, .fuse = false});
  const auto steps = fused.steps();
  EXPECT_EQ(std::ranges::count(steps, "attention.tiles", &StepDescription::kernel), 1);
  const auto made = fused.run(inputs), expected = apart.run(inputs);
  for (size_t k = 0; k < 2; ++k) {
    const auto a = made[k].tensor().elements<float>(), b = expected[k].tensor().elements<float>();
    for (size_t i = 0; i < b.size(); ++i) EXPECT_NEAR(a[i], b[i], 1e-5) << i << " of " << k;
  }
}

// Keys that are cast and multiplied once for two attentions, or for an output, stay as they are.
TEST(AttentionOfSharedKeys, LeavesWhatOthersRead) {
  const std::string shared =
      "  t = Transpose<perm = [0, 1, 3, 2]>(k)\n  u = Cast<to = 1>(t)\n  r = Mul(u, half)\n"
      "  s = MatMul(q, r)\n  w = Softmax<axis = -1>(s)\n  y = MatMul(w, v)\n";
  for (const std::string more :
       {"  z = Neg(r)\n",
        "  a = MatMul(v, r)\n  b = Softmax<axis = -1>(a)\n  z = MatMul(b, v)\n"}) {
    const Model model = Model::from_text(
        fmt::format("<ir_version: 10, opset_import: [\"\" : 21]>\n"
                    "g (float[2, 3, 7, 4] q, double[2, 3, 7, 4] k, float[2, 3, 7, 4] v) "
                    "=> (float y, float z) {{\n{}{}{}}}\n",
                    constants, shared, more));
    Tensor keys(ElementType::float64, {2, 3, 7, 4});
    std::ranges::copy(random_tensor(keys.shape(), 2).elements<float>(),
                      keys.mutable_elements<double>().begin());
    const std::vector<NamedValue> inputs{
        {"q", random_tensor({2, 3, 7, 4}, 1)}, {"k", keys}, {"v", random_tensor({2, 3, 7, 4}, 3)}};
    const Session fused(model, {.threads = 1}), apart(model, {.threads = 1, .fuse = false});
    const auto made = fused.run(inputs), expected = apart.run(inputs);
    for (size_t k = 0; k < 2; ++k) {
      const auto a = made[k].tensor().elements<float>(), b = expected[k].tensor().elements<float>();
      ASSERT_EQ(a.size(), b.size()) << more;
      for (size_t i = 0; i < b.size(); ++i) EXPECT_NEAR(a[i], b[i], 1e-5) << i << " of " << more;
    }
  }
}

// Elements for "float[N, 5] q, bool[5] mask".
std::vector<NamedValue> made_inputs(std::string_view text, std::span<const Shape> shapes) {
  std::vector<NamedValue> made;
  for (const Shape& shape : shapes) {
    const size_t name = text.find("] ") + 2, end = std::min(text.find(',', name), text.size());
    Tensor tensor = random_tensor(shape, static_cast<uint32_t>(made.size()));
    if (text.starts_with("bool")) {
      Tensor mask(ElementType::boolean, shape);
      std::ranges::transform(tensor.elements<float>(), mask.mutable_elements<bool>().begin(),
                             [](float v) { return v > -0.5f; });
      tensor = std::move(mask);
    }
    made.push_back({std::string(text.substr(name, end - name)), std::move(tensor)});
    text = text.substr(std::min(end + 2, text.size()));
  }
  return made;
}

// The result; nothing where the session refuses the inputs.
std::optional<Value> result_of(const Session& session, const std::vector<NamedValue>& inputs) {
  try {
    return session.run(inputs)[0];
  } catch (const Error&) {
    return std::nullopt;
  }
}

class AttentionOfSizes : public testing::TestWithParam<Form> {};

TEST_P(AttentionOfSizes, GivesWhatItsNodesGive) {
  const Form& form = GetParam();
  const Model model = model_of(form);
  const Session fused(model, {.threads = 2}), apart(model, {.threads = 1, .fuse = false});
  EXPECT_EQ(std::ranges::count(fused.steps(), "attention.tiles", &StepDescription::kernel),
            form.attentions);
  for (size_t run = 0; run < form.runs.size(); ++run) {
    SCOPED_TRACE(fmt::format("run {}", run));
    const auto inputs = made_inputs(form.inputs, form.runs[run]);
    const auto made = result_of(fused, inputs), expected = result_of(apart, inputs);
    ASSERT_EQ(made.has_value(), expected.has_value());
    ASSERT_TRUE(expected || run > 0);
    if (!expected) continue;
    ASSERT_EQ(made->tensor().shape(), expected->tensor().shape());
    const auto y = made->tensor().elements<float>(), z = expected->tensor().elements<float>();
    for (size_t i = 0; i < y.size(); ++i) {
      EXPECT_EQ(std::isnan(y[i]), std::isnan(z[i])) << i;
      if (!std::isnan(z[i])) {
        EXPECT_NEAR(y[i], z[i], 1e-5) << i;
      }
    }
  }
}

const auto name_of_form = [](const auto& given) { return given.param.name; };
INSTANTIATE_TEST_SUITE_P(Causal, AttentionOfSizes, testing::ValuesIn(causal_forms()), name_of_form);
INSTANTIATE_TEST_SUITE_P(Sizes, AttentionOfSizes, testing::ValuesIn(forms_of_sizes()),
                         name_of_form);
INSTANTIATE_TEST_SUITE_P(Flat, AttentionOfSizes, testing::ValuesIn(flat_forms()), name_of_form);
INSTANTIATE_TEST_SUITE_P(Groups, AttentionOfSizes, testing::ValuesIn(forms_in_groups()),
                         name_of_form);
INSTANTIATE_TEST_SUITE_P(Parts, AttentionOfSizes, testing::ValuesIn(forms_in_parts()),
                         name_of_form);
INSTANTIATE_TEST_SUITE_P(Rows, AttentionOfSizes, testing::ValuesIn(forms_in_rows()), name_of_form);

}  // namespace
}  // namespace sardonyx
