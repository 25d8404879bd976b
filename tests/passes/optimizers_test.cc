// Steps of AdamW in arithmetic, recognised or not, against plain runs.
#include <fmt/format.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "sardonyx/session.h"

namespace sardonyx {
namespace {

Tensor drawn_floats(Shape shape, float low, float high, uint32_t state) {
  Tensor tensor(ElementType::float32, std::move(shape));
  for (float& value : tensor.mutable_elements<float>()) {
    state = state * 1664525 + 1013904223;
    value = low + (high - low) * static_cast<float>(state >> 8) / 16777216.0f;
  }
  return tensor;
}

struct AdamWSpelling {
  std::string rate_shape;  // "1, 1, 1"
  bool corrects = true;    // the averages' start at 0
  std::string way = "Mul(rate, whole)", whole = "Add(direction, pulled)";
  std::string square = "Mul(g, g)";
};

// 37 elements: no whole number of vectors.
std::string adamw_model(const AdamWSpelling& s) {
  return fmt::format(
      "<ir_version: 10, opset_import: [\"\" : 21]>\n"
      "m (float[37] x, float[37] g, float[37] v, float[37] h, float{} rate, float share, float "
      "spread) => (float[] new_x, float[37] new_v, float[37] new_h)\n"
      "<float a = {{0.9}}, float ar = {{0.1}}, float b = {{0.99}}, float br = {{0.01}}, float e = "
      "{{1e-6}}, float decay = {{0.01}}> {{\n"
      " kv = Mul(v, a)\n av = Mul(ar, g)\n new_v = Add(av, kv)\n sq = {}\n kh = Mul(b, h)\n"
      " ah = Mul(br, sq)\n new_h = Add(kh, ah)\n root = Sqrt(new_h)\n {}\n"
      " below = Add(e, dev)\n direction = Div(mean, below)\n pulled = Mul(decay, x)\n whole = {}\n"
      " way = {}\n new_x = Sub(x, way)\n}}",
      s.rate_shape.empty() ? "" : "[" + s.rate_shape + "]", s.square,
      s.corrects ? "dev = Div(root, spread)\n mean = Div(new_v, share)"
                 : "dev = Identity(root)\n mean = Identity(new_v)",
      s.whole, s.way);
}

// Whether it runs as one step; what it gives is what plain evaluation gives.
bool is_one_step(const AdamWSpelling& spelling, const Shape& rate = {}) {
  const std::vector<NamedValue> inputs{
      {"x", drawn_floats({37}, -1, 1, 1)},         {"g", drawn_floats({37}, -2, 2, 2)},
      {"v", drawn_floats({37}, -1, 1, 3)},         {"h", drawn_floats({37}, 0, 1, 4)},
      {"rate", drawn_floats(rate, 0.1f, 0.1f, 5)}, {"share", Tensor::scalar<float>(0.19f)},
      {"spread", Tensor::scalar<float>(0.14f)}};
  const Model text = Model::from_text(adamw_model(spelling));
  const Session planned(text), plain(text, {.reference = true});
  const auto found = planned.run(inputs), wanted = plain.run(inputs);
  for (size_t k = 0; k < 3; ++k) {
    EXPECT_EQ(found[k].tensor().shape(), wanted[k].tensor().shape());
    const auto a = found[k].tensor().elements<float>(), b = wanted[k].tensor().elements<float>();
    for (size_t i = 0; i < a.size(); ++i) EXPECT_NEAR(a[i], b[i], 2e-6) << k << " " << i;
  }
  return std::ranges::any_of(planned.steps(),
                             [](const StepDescription& step) { return step.kernel == "adamw"; });
}

TEST(FusedOptimizers, AdamW) {
  EXPECT_TRUE(is_one_step({}));
  EXPECT_TRUE(is_one_step({.corrects = false}));
  EXPECT_TRUE(is_one_step({.way = "Mul(whole, rate)", .whole = "Add(pulled, direction)"}));
  EXPECT_TRUE(is_one_step({.rate_shape = "1"}, {1}));
}

TEST(FusedOptimizers, OtherArithmeticStays) {
  EXPECT_FALSE(is_one_step({.rate_shape = "1, 1, 1"}, {1, 1, 1}));  // the result has this rank
  EXPECT_FALSE(is_one_step({.rate_shape = "37"}, {37}));
  EXPECT_FALSE(is_one_step({.square = "Mul(g, x)"}));
  EXPECT_FALSE(is_one_step({.whole = "Sub(direction, pulled)"}));
}

std::string replaced(std::string text, std::string_view old, std::string_view now) {
  for (size_t at = 0; (at = text.find(old, at)) != std::string::npos; at += now.size())
    text.replace(at, old.size(), now);
  return text;
}

// The same in float64, whose 0.9 is not that of float32.
TEST(FusedOptimizers, NumbersOfFloat64KeepTheirDigits) {
  std::string held = adamw_model({});
  for (const auto& [old, now] : {std::pair{"0.9}", "0.875}"},
                                 {"0.99}", "0.96875}"},
                                 {"0.1}", "0.125}"},
                                 {"0.01}", "0.03125}"},
                                 {"1e-6}", "0.0625}"}})
    held = replaced(held, old, now);
  for (const auto& [text, is_step] : {std::pair{adamw_model({}), false}, {held, true}}) {
    const Model model = Model::from_text(replaced(text, "float", "double"));
    std::vector<NamedValue> inputs;
    for (const auto& [name, number] : {std::pair{"x", 0.3},
                                       {"g", -1.7},
                                       {"v", 0.8},
                                       {"h", 0.6},
                                       {"rate", 0.1},
                                       {"share", 0.19},
                                       {"spread", 0.14}}) {
      const bool single = std::string_view(name).size() > 1;
      Tensor value(ElementType::float64, single ? Shape{} : Shape{37});
      std::ranges::fill(value.mutable_elements<double>(), number);
      inputs.push_back({name, value});
    }
    const Session planned(model), plain(model, {.reference = true});
    const auto found = planned.run(inputs), wanted = plain.run(inputs);
    for (size_t k = 0; k < 3; ++k) {
      const double a = found[k].tensor().elements<double>()[36],
                   b = wanted[k].tensor().elements<double>()[36];
      EXPECT_NEAR(a, b, 1e-14) << k;
    }
    EXPECT_EQ(std::ranges::count(planned.steps(), "adamw", &StepDescription::kernel),
              is_step ? 1 : 0);
  }
}

}  // namespace
}  // namespace sardonyx
