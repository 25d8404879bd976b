// Steps that compute parts of a network again.
#include "train/recompute.h"

#include <gtest/gtest.h>

#include <cmath>
#include <cstring>

#include "sardonyx/fit.h"
#include "sardonyx/trainable.h"

namespace sardonyx::test {
namespace {

// Layers of a product and a function of one value, with a sum around each.
Model deep(int layers, const std::string& more = {}) {
  std::string weights, nodes;
  std::string x = "x";
  for (int i = 0; i < layers; ++i) {
    const std::string n = std::to_string(i);
    weights += (i == 0 ? "" : ", ") + std::string("float[16,16] w") + n + " = {";
    for (int k = 0; k < 256; ++k)
      weights += (k == 0 ? "" : ", ") + std::to_string(std::sin(k * 1.7 + i) * 0.2);
    weights += "}";
    nodes += "  a" + n + " = MatMul (" + x + ", w" + n + ")\n  b" + n + " = Tanh (a" + n + ")\n" +
             more + "  c" + n + " = Sigmoid (b" + n + ")\n  d" + n + " = Mul (b" + n + ", c" + n +
             ")\n  x" + n + " = Add (" + x + ", d" + n + ")\n";
    x = "x" + n;
  }
  return Model::from_text(
      "<ir_version: 10, opset_import: [\"\": 21]>\ng (float[N,16] x) => "
      "(float[N,16] y) <" +
      weights + "> {\n" + nodes + "  y = Identity (" + x + ")\n}\n");
}

NamedValue numbers(const char* name, int64_t rows, double phase) {
  Tensor made(ElementType::float32, {rows, 16});
  const auto elements = made.mutable_elements<float>();
  for (size_t i = 0; i < elements.size(); ++i)
    elements[i] = static_cast<float>(std::sin(static_cast<double>(i) * 0.37 + phase));
  return {name, made};
}

TrainableOptions squares() {
  TrainableOptions options;
  options.loss = Loss::mse, options.optimizer = Optimizer::momentum;
  return options;
}

void expect_same_state(const TrainingSession& a, const TrainingSession& b) {
  const auto first = a.state(), second = b.state();
  ASSERT_EQ(first.size(), second.size());
  for (size_t i = 0; i < first.size(); ++i) {
    const Tensor &x = first[i].second.tensor(), &y = second[i].second.tensor();
    ASSERT_EQ(x.byte_size(), y.byte_size());
    EXPECT_EQ(0, std::memcmp(x.data(), y.data(), x.byte_size())) << first[i].first;
  }
}

// The least memory limit with which a step runs.
int64_t needed(TrainingSession& session, int64_t rows) {
  const auto runs = [&](int64_t limit) {
    StepOptions options;
    options.run.memory_limit = limit;
    try {
      session.step({numbers("x", rows, 0), numbers("target", rows, 1)}, 0, options);
    } catch (const Error& error) {
      EXPECT_EQ(error.code(), ErrorCode::out_of_memory) << error.what();
      return false;
    }
    return true;
  };
  int64_t low = 1, high = int64_t{1} << 30;
  while (high - low > 4096) {
    const int64_t middle = (low + high) / 2;
    (runs(middle) ? high : low) = middle;
  }
  return high;
}

TEST(Recompute, GivesTheSameBits) {
  const Model model = make_trainable(deep(8), squares());
  for (const bool fuse : {false, true}) {
    TrainingSession plain(model, {.fuse = fuse}), again(model, {.fuse = fuse, .recompute = true});
    for (int i = 0; i < 5; ++i) {
      for (TrainingSession* session : {&plain, &again})
        session->step({numbers("x", 512, i), numbers("target", 512, i + 1)});
    }
    expect_same_state(plain, again);
  }
}

TEST(Recompute, TakesLessMemory) {
  const Model model = make_trainable(deep(16), squares());
  TrainingSession plain(model), again(model, {.recompute = true});
  const int64_t with = needed(again, 1024), without = needed(plain, 1024);
  EXPECT_LT(static_cast<double>(with), 0.6 * static_cast<double>(without))
      << with << " bytes and " << without;
}

// Bits do not depend on the number of threads, nor on whether the model or the caller asks.
TEST(Recompute, TheModelSaysSo) {
  TrainableOptions options = squares();
  options.recompute = true;
  const Model model = make_trainable(deep(8), options);
  TrainingSession by_model(model, {.threads = 2}), asked(model, {.threads = 1, .recompute = true}),
      not_asked(model, {.recompute = false});
  for (TrainingSession* session : {&by_model, &asked})
    session->step({numbers("x", 512, 0), numbers("target", 512, 1)});
  expect_same_state(by_model, asked);
  EXPECT_LT(needed(by_model, 1024), needed(not_asked, 1024));
}

// What is drawn without a seed is drawn once.
TEST(Recompute, KeepsWhatIsDrawn) {
  std::string text = R"(
<ir_version: 10, opset_import: ["": 21]>
g (float[N,16] x) => (float[N,16] y) <float[16,16] w = {)";
  for (int k = 0; k < 256; ++k) text += (k == 0 ? "" : ", ") + std::to_string(std::cos(k) * 0.3);
  text += R"(}> {
  half = Constant <value_float = 0.5> ()
)";
  std::string x = "x";
  for (int i = 0; i < 8; ++i) {
    const std::string n = std::to_string(i);
    text += "  a" + n + " = MatMul (" + x + ", w)\n  b" + n + " = Tanh (a" + n + ")\n  d" + n +
            " = Dropout (b" + n + ", half)\n  x" + n + " = Add (" + x + ", d" + n + ")\n";
    x = "x" + n;
  }
  text += "  y = Identity (" + x + ")\n}\n";
  const Model model = make_trainable(Model::from_text(text), squares());
  TrainingSession plain(model, {.fuse = false}), again(model, {.fuse = false, .recompute = true});
  for (int i = 0; i < 4; ++i) {
    for (TrainingSession* session : {&plain, &again})
      session->step({numbers("x", 256, i), numbers("target", 256, i + 1)});
  }
  expect_same_state(plain, again);
  EXPECT_LT(needed(again, 1024), needed(plain, 1024));
}

TEST(Recompute, LeavesASmallStepAsItIs) {
  ir::Graph graph;
  EXPECT_EQ(train::recompute(graph), 0u);
  const Model model = make_trainable(deep(1), squares());
  TrainingSession plain(model), again(model, {.recompute = true});
  for (TrainingSession* session : {&plain, &again})
    session->step({numbers("x", 2, 0), numbers("target", 2, 1)});
  expect_same_state(plain, again);
}

}  // namespace
}  // namespace sardonyx::test
