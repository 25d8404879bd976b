// make_trainable of nodes within the graphs of others: branches, iterations.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>

#include "sardonyx/fit.h"
#include "sardonyx/trainable.h"

namespace sardonyx::test {
namespace {

// `nodes` make h of x, both [N, 2], with the weights of a BatchNormalization.
Model network(const std::string& nodes, const std::string& more = "") {
  return Model::from_text(R"(
<ir_version: 10, opset_import: ["": 21]>
g (float[N,2] x) => (float[N,1] y) <float[2,1] w = {1, -1}, float[2] s = {1, 2}, float[2] b = {0, 1},
  float[2] mean = {0, 0.5}, float[2] var = {1, 2}, bool yes = {1}, int64 two = {2}, float half = {0.5})" +
                          more + ">\n{" + nodes + "\n y = MatMul (h, w) }");
}

using States = std::map<std::string, std::vector<float>>;

// What is state after some steps, and the losses.
States trained(const Model& model, const TrainableOptions& options) {
  TrainableReport report;
  TrainingSession session(make_trainable(model, options, &report));
  session.initialize();
  States found;
  for (int step = 0; step < 5; ++step) {
    Tensor x(ElementType::float32, {6, 2}), target(ElementType::float32, {6, 1});
    for (size_t i = 0; i < 12; ++i)
      x.mutable_elements<float>()[i] = std::sin(static_cast<float>(12 * step + 7 * i));
    for (size_t i = 0; i < 6; ++i) target.mutable_elements<float>()[i] = static_cast<float>(i) / 3;
    const auto told = session.step({{"x", x}, {"target", target}});
    found["loss"].push_back(told[0].tensor().elements<float>()[0]);
  }
  for (const auto& [name, value] : session.state()) {
    if (value.tensor().element_type() != ElementType::float32) continue;
    const auto elements = value.tensor().elements<float>();
    found[name] = {elements.begin(), elements.end()};
  }
  for (const std::string& name : report.statistics) found["statistics"].push_back(name == "mean");
  return found;
}

void expect_near(const States& a, const States& b) {
  ASSERT_EQ(a.size(), b.size());
  for (const auto& [name, values] : a) {
    SCOPED_TRACE(name);
    const auto other = b.find(name);
    ASSERT_NE(other, b.end());
    ASSERT_EQ(values.size(), other->second.size());
    for (size_t i = 0; i < values.size(); ++i) EXPECT_NEAR(values[i], other->second[i], 1e-5);
  }
}

TrainableOptions squares_of_sgd() {
  TrainableOptions options;
  options.loss = Loss::mse, options.optimizer = Optimizer::sgd, options.learning_rate = 0.05;
  return options;
}

constexpr const char* normalized = "BatchNormalization (x, s, b, mean, var)";

// Running statistics that an If gathers are those of its nodes without it. The branch that does not
// run changes none.
TEST(TrainingForm, OfBranches) {
  const TrainableOptions options = squares_of_sgd();
  const States plain = trained(network(std::string("h = ") + normalized), options);
  EXPECT_NE(plain.at("mean")[0], 0);
  EXPECT_NE(plain.at("s")[0], 1);
  expect_near(
      trained(network(std::string("h = If (yes) <then_branch = t () => (float[N,2] p) { p = ") +
                      normalized + " }, else_branch = e () => (float[N,2] q) { q = Neg (x) }>"),
              options),
      plain);
  // Branches within branches, both of which normalise.
  expect_near(
      trained(network(std::string(
                          "no = Not (yes)\n h = If (no) <then_branch = t () => (float[N,2] p) { "
                          "p0 = Neg (x)\n p = BatchNormalization (p0, s, b, mean, var) }, "
                          "else_branch = e () => (float[N,2] q) { q = If (yes) <then_branch = "
                          "t2 () => (float[N,2] r) { r = ") +
                      normalized + " }, else_branch = e2 () => (float[N,2] u) { u = Neg (x) }> }>"),
              options),
      plain);
}

// What two nodes share is averaged twice in a step, in the main graph as in iterations.
TEST(TrainingForm, OfIterations) {
  const TrainableOptions options = squares_of_sgd();
  const States plain = trained(network("z = BatchNormalization (x, s, b, mean, var)\n h = "
                                       "BatchNormalization (z, s, b, mean, var)"),
                               options);
  EXPECT_EQ(plain.at("statistics"), (std::vector<float>{1, 0}));
  expect_near(
      trained(network("h = Loop (two, , x) <body = i (int64 n, bool c, float[N,2] p) => (bool d, "
                      "float[N,2] q) { d = Identity (c)\n q = BatchNormalization (p, s, b, mean, "
                      "var) }>"),
              options),
      plain);
  // A Scan hands its results out behind the statistics.
  States scanned = trained(
      network("h, rows = Scan (x, steps) <num_scan_inputs = 1, body = i (float[N,2] p, float "
              "o) => (float[N,2] q, float[N,2] r) { q = BatchNormalization (p, s, b, mean, "
              "var)\n r = Neg (q) }>",
              ", float[2] steps = {1, 1}"),
      options);
  scanned.erase("steps");
  expect_near(scanned, plain);
}

// Weights that belong to a branch or an iteration learn, too.
TEST(TrainingForm, ConstantsWithinGraphsLearn) {
  const TrainableOptions options = squares_of_sgd();
  const States plain = trained(
      network("z = MatMul (x, k)\n h = MatMul (z, k)", ", float[2,2] k = {0.5, 1, -1, 0.25}"),
      options);
  EXPECT_NE(plain.at("k")[0], 0.5f);
  const auto within = [&](const std::string& body, const std::string& constants) {
    return trained(
        network("h = Loop (two, , x) <body = i (int64 n, bool c, float[N,2] p) => (bool d, "
                "float[N,2] q) " +
                constants + " { d = Identity (c)\n " + body + " }>"),
        options);
  };
  expect_near(within("q = MatMul (p, k)", "<float[2,2] k = {0.5, 1, -1, 0.25}>"), plain);
  expect_near(
      within("k = Constant <value = float[2,2] {0.5, 1, -1, 0.25}> ()\n q = MatMul (p, k)", ""),
      plain);
  // Two branches call different weights alike.
  TrainableReport report;
  make_trainable(
      network("h = If (yes) <then_branch = t () => (float[N,2] p) <float[2,2] k = {1, 2, 3, 4}> "
              "{ p = MatMul (x, k) }, else_branch = e () => (float[N,2] q) <float[2,2] k = {5, "
              "6, 7, 8}> { q = MatMul (x, k) }>"),
      options, &report);
  EXPECT_EQ(report.trained.size(), 3u);
  // What a constant is called, another graph may call its input.
  const Model named = make_trainable(
      network(
          "z = Loop (two, , x) <body = i (int64 n, bool c, float[N,2] k) => (bool d, float[N,2] q) "
          "{ d "
          "= Identity (c)\n q = Neg (k) }>\n h = If (yes) <then_branch = t () => (float[N,2] p) "
          "<float[2,2] k = {1, 2, 3, 4}> { p = MatMul (z, k) }, else_branch = e () => (float[N,2] "
          "u) "
          "{ u = Neg (z) }>"),
      options, &report);
  EXPECT_NO_THROW(TrainingSession(named).initialize());
  EXPECT_EQ(report.trained, (std::vector<std::string>{"w", "k_1"}));
}

// Each iteration drops others, and what flows back knows which.
TEST(TrainingForm, DropoutOfIterations) {
  TrainableOptions options = squares_of_sgd();
  const Model model = make_trainable(network("h = Loop (two, , x) <body = i (int64 n, bool c, "
                                             "float[N,2] p) => (bool d, float[N,2] q) { "
                                             "d = Identity (c)\n q = Dropout (p, half) }>"),
                                     options);
  TrainingSession session(model);
  session.initialize();
  const Tensor x = Tensor::of<float>(std::vector<float>(128, 1), {64, 2});
  const Tensor target = Tensor::of<float>(std::vector<float>(64, 0), {64, 1});
  const float loss = session.step({{"x", x}, {"target", target}})[0].tensor().elements<float>()[0];
  // Of ones only some are left, four times as large; without Dropout the loss is that of 1 - 1.
  EXPECT_GT(loss, 0.5f);
  EXPECT_EQ(session.step({{"x", x}, {"target", target}}, 1)[0].tensor().elements<float>()[0] > 0.5f,
            false);
}

// Products within branches and iterations are of half precision, weights cast once around them.
TEST(TrainingForm, HalfPrecisionOfIterations) {
  TrainableOptions options = squares_of_sgd();
  const std::string weights = ", float[2,2] k = {0.5, 1, -1, 0.25}";
  const std::string loop =
      "h = Loop (two, , x) <body = i (int64 n, bool c, float[N,2] p) => (bool d, float[N,2] q) { d "
      "= "
      "Identity (c)\n q = MatMul (p, k) }>";
  const States plain = trained(network(loop, weights), options);
  options.precision = Precision::bfloat16;
  const States half = trained(network(loop, weights), options);
  for (const char* name : {"k", "w", "loss"}) {
    for (size_t i = 0; i < plain.at(name).size(); ++i)
      EXPECT_NEAR(half.at(name)[i], plain.at(name)[i], 0.05) << name;
  }
  EXPECT_NE(half.at("loss"), plain.at("loss"));
  const std::string text = make_trainable(network(loop, weights), options).to_text();
  const size_t cast = text.find("k_half = Cast"), holder = text.find("Loop", text.find("train ("));
  ASSERT_NE(cast, text.npos) << text;
  EXPECT_LT(cast, holder) << text;
}

}  // namespace
}  // namespace sardonyx::test
