// Normalisations by the root mean square decomposed, recognised or not, against plain runs.
#include <fmt/format.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>

#include "sardonyx/session.h"

namespace sardonyx {
namespace {

// Rows of 6: the squares q of w, their mean m, e = m + epsilon, its inverse root i, n = w * i,
// y = n * scale.
struct Spelling {
  std::string square = "Pow(w, two)";
  std::string mean = "ReduceMean(q, axes)";
  std::string more = "Add(m, epsilon)";
  std::string inverse = "r = Sqrt(e)\n  i = Reciprocal(r)";
  std::string normal = "Mul(w, i)";
  bool scale_first = false;
  std::string two = "float {2.0}", one = "float {1.0}", power = "float {-0.5}";
  std::string epsilon = "float {0.001}";
  std::string axes = "-1";
  std::string scale_shape = "6";
  int half = 0;             // 10, 16: w is a Cast from that type, and n is cast back to it
  bool wide_scale = false;  // n is not cast back
  std::string also;         // a further output
};

std::string model(const Spelling& s) {
  const bool narrows = s.half != 0 && !s.wide_scale;
  const std::string n = narrows ? "c" : "n";
  std::string text = fmt::format(
      "<ir_version: 10, opset_import: [\"\" : 23]>\n"
      "g (float[A, B, 6] x) => (float[C, D, 6] z{}) {{\n",
      s.also.empty() ? "" : ", float[K, L, M] " + s.also);
  for (const auto& [name, value] : {std::pair("two", s.two), std::pair("one", s.one),
                                    std::pair("power", s.power), std::pair("epsilon", s.epsilon)})
    text += fmt::format("  {} = Constant<value = {}>()\n", name, value);
  text += fmt::format("  axes = Constant<value_ints = [{}]>()\n", s.axes);
  text += fmt::format("  floats = Constant<value = float[{}] {{0.5, -1, 2, 1.5, -0.25, 3}}>()\n",
                      s.scale_shape);
  text += fmt::format("  scale = Cast<to = {}>(floats)\n", narrows ? s.half : 1);
  if (s.half != 0) {
    text += fmt::format("  h = Cast<to = {}>(x)\n  [widened] w = Cast<to = 1>(h)\n", s.half);
  } else {
    text += "  w = Softmax(x)\n";
  }
  text +=
      fmt::format("  [square] q = {}\n  [mean] m = {}\n  [more] e = {}\n  {}\n  [normal] n = {}\n",
                  s.square, s.mean, s.more, s.inverse, s.normal);
  if (narrows) text += fmt::format("  [narrowed] c = Cast<to = {}>(n)\n", s.half);
  text += s.scale_first ? fmt::format("  [scaled] y = Mul(scale, {})\n", n)
                        : fmt::format("  [scaled] y = Mul({}, scale)\n", n);
  return text + "  z = Cast<to = 1>(y)\n}\n";
}

Tensor rows() {
  Tensor x(ElementType::float32, {2, 3, 6});
  float phase = 0;
  for (float& v : x.mutable_elements<float>()) v = 3 * std::sin(phase += 0.9f);
  return x;
}

std::vector<StepDescription> normalizations(const Model& m) {
  auto steps = Session(m, {.threads = 1}).steps();
  std::erase_if(steps, [](const StepDescription& step) {
    return !step.node.starts_with("RMSNormalization");
  });
  return steps;
}

void expect_same_as_plain(const Model& m, int half) {
  const std::vector<NamedValue> inputs = {{"x", rows()}};
  const auto found = Session(m, {.threads = 1}).run(inputs),
             plain = Session(m, {.threads = 1, .reference = true}).run(inputs);
  const double tolerance = half == 16 ? 2e-2 : half == 10 ? 2e-3 : 4e-6;
  for (size_t k = 0; k < found.size(); ++k) {
    const auto a = found[k].tensor().elements<float>(), b = plain[k].tensor().elements<float>();
    ASSERT_EQ(found[k].tensor().shape(), plain[k].tensor().shape());
    for (size_t i = 0; i < b.size(); ++i)
      ASSERT_NEAR(a[i], b[i], tolerance * (1 + std::abs(b[i]))) << "output " << k << " at " << i;
  }
}

void expect_recognised(const Spelling& s) {
  const std::string text = model(s);
  SCOPED_TRACE(text);
  const Model m = Model::from_text(text);
  EXPECT_EQ(normalizations(m).size(), 1u);
  expect_same_as_plain(m, s.half);
}

void expect_left(const Spelling& s) {
  const std::string text = model(s);
  SCOPED_TRACE(text);
  const Model m = Model::from_text(text);
  EXPECT_EQ(normalizations(m).size(), 0u);
  expect_same_as_plain(m, s.half);
}

TEST(RmsNormalizations, MaySquareByAWholeNumber) {
  for (const char* two : {"int64 {2}", "int32 {2}", "int64[1] {2}"})
    expect_recognised({.two = two});
  expect_left({.two = "int64 {3}"});
}

TEST(RmsNormalizations, AreRecognisedInEverySpelling) {
  const std::vector<std::pair<std::string, std::string>> inverses = {
      {"r = Sqrt(e)\n  i = Reciprocal(r)", "Mul(w, i)"},
      {"r = Sqrt(e)\n  i = Reciprocal(r)", "Mul(i, w)"},
      {"r = Sqrt(e)\n  i = Div(one, r)", "Mul(w, i)"},
      {"i = Pow(e, power)", "Mul(w, i)"},
      {"r = Sqrt(e)", "Div(w, r)"},
  };
  for (const std::string square : {"Pow(w, two)", "Mul(w, w)"}) {
    for (const std::string more : {"Add(m, epsilon)", "Add(epsilon, m)"}) {
      for (const auto& [inverse, normal] : inverses) {
        for (const int half : {0, 10, 16}) {
          for (const bool wide : {false, true})
            expect_recognised({.square = square,
                               .more = more,
                               .inverse = inverse,
                               .normal = normal,
                               .scale_first = wide,
                               .half = half,
                               .wide_scale = wide});
        }
      }
    }
  }
  expect_recognised({.epsilon = "float[1, 1] {0.001}", .axes = "2"});
}

TEST(RmsNormalizations, NameTheNodesTheyReplace) {
  const auto of = [](const Spelling& s) {
    return normalizations(Model::from_text(model(s))).at(0).sources;
  };
  using Names = std::vector<std::string>;
  EXPECT_EQ(of({.inverse = "[root] r = Sqrt(e)\n  [inverse] i = Reciprocal(r)"}),
            (Names{"Pow 'square'", "ReduceMean 'mean'", "Add 'more'", "Sqrt 'root'",
                   "Reciprocal 'inverse'", "Mul 'normal'", "Mul 'scaled'"}));
  EXPECT_EQ(of({.inverse = "[root] r = Sqrt(e)", .normal = "Div(w, r)", .half = 10}),
            (Names{"Cast 'widened'", "Pow 'square'", "ReduceMean 'mean'", "Add 'more'",
                   "Sqrt 'root'", "Div 'normal'", "Cast 'narrowed'", "Mul 'scaled'"}));
}

// Without a scale that is a vector along the rows they are scaled by ones.
TEST(RmsNormalizations, AreRecognisedWithoutScale) {
  const Spelling s{.scale_shape = "1, 1, 6"};
  expect_recognised(s);
  const auto found = normalizations(Model::from_text(model(s)));
  EXPECT_EQ(found.at(0).sources.back(), "Mul 'normal'");
  expect_recognised({.also = "n"});
}

TEST(RmsNormalizations, AreLeftWhereTheyAreNotQuiteThat) {
  expect_left({.axes = "1"});
  expect_left({.axes = "1, 2"});
  expect_left({.two = "float {3.0}"});
  expect_left({.two = "float {2.001}"});
  expect_left({.square = "Abs(w)"});
  expect_left({.inverse = "i = Pow(e, power)", .power = "float {-0.25}"});
  expect_left({.inverse = "r = Sqrt(e)\n  i = Div(one, r)", .one = "float {2.0}"});
  expect_left({.normal = "Mul(x, i)"});
  expect_left({.inverse = "r = Sqrt(e)", .normal = "Div(r, w)"});
  // Epsilon: one for each element, a value that is computed, one that adds a dimension.
  expect_left({.epsilon = "float[6] {0.001, 0.002, 0.003, 0.004, 0.005, 0.006}"});
  expect_left({.more = "Add(m, m)"});
  expect_left({.more = "Sub(m, epsilon)"});
}

TEST(RmsNormalizations, AreLeftWhereOthersReadWhatIsInside) {
  for (const std::string value : {"q", "m", "e", "r", "i"}) expect_left({.also = value});
  expect_left({.inverse = "r = Sqrt(e)\n  i = Reciprocal(r)", .normal = "Mul(i, i)"});
}

// Of rows, by constant statistics: one factor and term for each channel.
TEST(BatchNormalizations, OfRowsAreFactorsAndTerms) {
  const Model model = Model::from_text(
      "<ir_version: 10, opset_import: [\"\" : 21]>\n"
      "g (float[A, B, 3] x) => (float[C, 3] y)\n"
      "<float[3] s = {1.5, -0.5, 2}, float[3] b = {0.1, -0.2, 0.3}, float[3] m = {1, 2, -3},"
      " float[3] v = {0.5, 2, 4}> {\n"
      "  r = Flatten<axis = 2>(x)\n  y = BatchNormalization<epsilon = 0.25>(r, s, b, m, v)\n}\n");
  Tensor x(ElementType::float32, {2, 5, 3});
  float phase = 0;
  for (float& value : x.mutable_elements<float>()) value = std::cos(phase += 0.9f);
  const Session session(model, {.threads = 1});
  const auto found = session.run({{"x", x}}),
             expected = Session(model, {.threads = 1, .reference = true}).run({{"x", x}});
  const auto a = found[0].tensor().elements<float>(), b = expected[0].tensor().elements<float>();
  ASSERT_EQ(a.size(), b.size());
  for (size_t i = 0; i < a.size(); ++i) EXPECT_NEAR(a[i], b[i], 1e-5);
  EXPECT_TRUE(std::ranges::any_of(session.steps(),
                                  [](const auto& step) { return step.kernel == "scale_shift"; }));
}

}  // namespace
}  // namespace sardonyx
