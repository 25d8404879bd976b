// The three methods of a training model, on models in the textual syntax.
#include <gtest/gtest.h>

#include <atomic>
#include <cmath>
#include <cstring>
#include <fstream>
#include <functional>
#include <thread>

#include "sardonyx/training.h"
#include "scratch_folder.h"

namespace sardonyx::test {
namespace {

// y = x w + b, squared error, plain descent; b is drawn anew by the initialization.
constexpr const char* linear = R"(
<ir_version: 10, opset_import: ["": 21, "ai.onnx.preview.training": 1], training_info: [{
  initialization: start () => (float[1] b0, float[2,1] w0, int64 n0) {
    b0 = Constant <value_floats = [0.5]> ()
    w0 = Add (w, w)
    n0 = Constant <value_int = 0> ()
  },
  initialization_binding: ["b": "b0", "w": "w0", "n": "n0"],
  algorithm: train (float[N,1] target) => (float loss, float[2,1] w1, float[1] b1, int64 n1)
  <float rate = {0.03125}, int64 n = {7}, int64 one = {1}>
  {
    error = Sub (y, target)
    square = Mul (error, error)
    loss = ReduceMean <keepdims = 0> (square)
    gw, gb = ai.onnx.preview.training.Gradient <xs = ["w", "b"], zs = ["x", "target"], y = "loss"> (w, b, x, target)
    sw = Mul (rate, gw)
    w1 = Sub (w, sw)
    sb = Mul (rate, gb)
    b1 = Sub (b, sb)
    n1 = Add (n, one)
  },
  update_binding: ["w": "w1", "b": "b1", "n": "n1"]
}, {
  algorithm: measure (float[N,1] target) => (float worst) {
    error = Sub (y, target)
    size = Abs (error)
    worst = ReduceMax <keepdims = 0> (size)
  }
}]>
g (float[N,2] x) => (float[N,1] y) <float[2,1] w = {1, -1}, float[1] b = {0.25}> {
  xw = MatMul (x, w)
  y = Add (xw, b)
}
)";

Value floats(std::vector<float> elements, Shape shape) {
  return Tensor::of(std::span<const float>(elements), std::move(shape));
}
std::vector<float> list(const Value& value) {
  const auto elements = value.tensor().elements<float>();
  return {elements.begin(), elements.end()};
}
Value state_of(const TrainingSession& session, std::string_view name) {
  for (const auto& [key, value] : session.state()) {
    if (key == name) return value;
  }
  ADD_FAILURE() << "no state " << name;
  return {};
}

const Value x = floats({1, 2, 3, 4, -1, 0.5f}, {3, 2});
const Value target = floats({1, 0, 2}, {3, 1});

// What the step above does to w, b, in float64.
struct Line {
  double w[2], b;
  double step(double rate) {
    const auto in = x.tensor().elements<float>(), wanted = target.tensor().elements<float>();
    double loss = 0, gw[2] = {0, 0}, gb = 0;
    for (size_t i = 0; i < 3; ++i) {
      const double error = in[2 * i] * w[0] + in[2 * i + 1] * w[1] + b - wanted[i];
      loss += error * error / 3;
      for (size_t k = 0; k < 2; ++k) gw[k] += 2 * error * in[2 * i + k] / 3;
      gb += 2 * error / 3;
    }
    for (size_t k = 0; k < 2; ++k) w[k] -= rate * gw[k];
    b -= rate * gb;
    return loss;
  }
};

TEST(TrainingSession, StepsAsComputedByHand) {
  for (const bool reference : {false, true}) {
    TrainingSession session(Model::from_text(linear), {.reference = reference});
    Line line{{1, -1}, 0.25};
    for (int i = 0; i < 20; ++i) {
      const auto told = session.step({{"x", x}, {"target", target}});
      ASSERT_EQ(told.size(), 1u);
      EXPECT_NEAR(told[0].tensor().elements<float>()[0], line.step(0.03125), 1e-5);
    }
    EXPECT_NEAR(list(state_of(session, "w"))[1], line.w[1], 1e-5);
    EXPECT_NEAR(list(state_of(session, "b"))[0], line.b, 1e-5);
    EXPECT_EQ(state_of(session, "n").tensor().elements<int64_t>()[0], 27);
    EXPECT_EQ(session.turn(), 20u);
    const auto out = session.infer({{"x", floats({1, 1}, {1, 2})}});
    EXPECT_NEAR(list(out[0])[0], line.w[0] + line.w[1] + line.b, 1e-5);
  }
}

TEST(TrainingSession, DescribesWhatItTakesAndGives) {
  const TrainingSession session(Model::from_text(linear));
  EXPECT_EQ(session.algorithm_count(), 2u);
  ASSERT_EQ(session.inputs().size(), 1u);
  EXPECT_EQ(session.inputs()[0].type, "float[N,2]");
  ASSERT_EQ(session.step_inputs().size(), 2u);
  EXPECT_EQ(session.step_inputs()[1].name, "target");
  ASSERT_EQ(session.step_outputs().size(), 1u);
  EXPECT_EQ(session.step_outputs()[0].name, "loss");
  EXPECT_EQ(session.step_outputs(1)[0].name, "worst");
  ASSERT_EQ(session.state_variables().size(), 3u);
  EXPECT_EQ(session.state_variables()[0].name, "w");
  EXPECT_EQ(session.state_variables()[2].name, "n");
}

// All that is bound sees the old state (TR-20), and starts with its initializer (TR-17).
TEST(TrainingSession, InitializesTogether) {
  TrainingSession session(Model::from_text(linear));
  EXPECT_EQ(list(state_of(session, "w")), (std::vector<float>{1, -1}));
  session.initialize();
  EXPECT_EQ(list(state_of(session, "w")), (std::vector<float>{2, -2}));
  EXPECT_EQ(list(state_of(session, "b")), std::vector<float>{0.5});
  EXPECT_EQ(state_of(session, "n").tensor().elements<int64_t>()[0], 0);
}

TEST(TrainingSession, SwapsTogether) {
  TrainingSession session(Model::from_text(R"(
<ir_version: 10, opset_import: ["": 21], training_info: [{
  algorithm: swap () => (float[1] c, float[1] d) { c = Identity (a) d = Identity (b) },
  update_binding: ["a": "d", "b": "c"]
}, {
  initialization: more () => (float[1] e) { e = Add (a, b) },
  initialization_binding: ["a": "e"]
}, {
  initialization: then () => (float[1] e) { e = Add (a, b) },
  initialization_binding: ["b": "e"]
}]>
g () => (float[1] y) <float[1] a = {1}, float[1] b = {2}> { y = Sub (a, b) }
)"));
  session.step({});
  EXPECT_EQ(list(session.infer({})[0]), std::vector<float>{1});
  session.step({});
  EXPECT_EQ(list(session.infer({})[0]), std::vector<float>{-1});
  session.initialize();  // entry by entry: a = 1 + 2, then b = 3 + 2 (TR-18)
  EXPECT_EQ(list(state_of(session, "a")), std::vector<float>{3});
  EXPECT_EQ(list(state_of(session, "b")), std::vector<float>{5});
  EXPECT_TRUE(session.step({}, 1).empty());  // without an algorithm nothing changes (TR-22)
  EXPECT_EQ(list(state_of(session, "a")), std::vector<float>{3});
}

TEST(TrainingSession, MeasuresWithoutChangingAnything) {
  TrainingSession session(Model::from_text(linear));
  const auto worst = session.step({{"x", x}, {"target", target}}, 1);
  EXPECT_NEAR(list(worst[0])[0], 3.25, 1e-6);
  EXPECT_EQ(session.turn(), 0u);
}

std::string error_of(const std::function<void()>& call) {
  try {
    call();
  } catch (const Error& error) {
    return error.what();
  }
  return "no error";
}

void expect_error(const std::function<void()>& call, const std::string& part) {
  const std::string text = error_of(call);
  EXPECT_NE(text.find(part), std::string::npos) << text << "\nhas no: " << part;
}

TEST(TrainingSession, LeavesTheStateOnErrors) {
  TrainingSession session(Model::from_text(linear));
  expect_error([&] { session.step({{"x", x}}); }, "'target'");
  expect_error([&] { session.step({{"x", x}, {"target", floats({1}, {1, 1})}}); }, "'N' is 3");
  expect_error(
      [&] {
        session.step({{"x", x}, {"target", target}, {"w", target}});
      },
      "is a state variable");
  expect_error(
      [&] {
        session.step({{"x", x}, {"target", target}, {"z", target}});
      },
      "input 'z': is not taken; what is: 'x', 'target'");
  expect_error([&] { session.step({{"x", x}, {"x", x}, {"target", target}}); }, "twice");
  expect_error([&] { session.step({}, 2); }, "2 algorithms; there is no number 2");
  expect_error([&] { session.set_state({{"v", x}}); }, "it has 'w', 'b', 'n'");
  expect_error([&] { session.set_state({{"b", floats({1}, {1})}, {"w", x}}); }, "float[2,1]");
  expect_error(
      [&] {
        session.set_state({{"b", floats({1}, {1})}, {"b", floats({1}, {1})}});
      },
      "twice");
  std::atomic<bool> cancel = true;
  expect_error(
      [&] {
        session.step({{"x", x}, {"target", target}}, 0, {.run = {.cancel = &cancel}, .accept = {}});
      },
      "cancelled");
  EXPECT_EQ(session.turn(), 0u);
  EXPECT_EQ(list(state_of(session, "w")), (std::vector<float>{1, -1}));
  EXPECT_EQ(list(state_of(session, "b")), std::vector<float>{0.25});
}

TEST(TrainingSession, AssignsNothingThatIsNotAccepted) {
  TrainingSession session(Model::from_text(linear));
  StepOptions options;
  options.accept = [](std::span<const Value> told) { return std::isfinite(list(told[0])[0]); };
  const auto told =
      session.step({{"x", floats({NAN, 1}, {1, 2})}, {"target", floats({1}, {1, 1})}}, 0, options);
  EXPECT_TRUE(std::isnan(list(told[0])[0]));
  EXPECT_EQ(session.turn(), 0u);
  EXPECT_EQ(list(state_of(session, "w")), (std::vector<float>{1, -1}));
  session.step({{"x", x}, {"target", target}}, 0, options);
  EXPECT_EQ(session.turn(), 1u);
}

TEST(TrainingSession, RefusesUpdatesOfAnotherShape) {
  TrainingSession session(Model::from_text(R"(
<ir_version: 10, opset_import: ["": 21], training_info: [{
  algorithm: grow (float[N] more) => (float[] c) { c = Concat <axis = 0> (a, more) },
  update_binding: ["a": "c"]
}]>
g () => (float[2] y) <float[2] a = {1, 2}> { y = Identity (a) }
)"));
  expect_error([&] { session.step({{"more", floats({1}, {1})}}); }, "float[2], as its initializer");
  session.step({{"more", floats({}, {0})}});
  EXPECT_EQ(list(state_of(session, "a")), (std::vector<float>{1, 2}));
}

// Random operators without a seed: the same numbers in a session that goes on from a file.
constexpr const char* noisy = R"(
<ir_version: 10, opset_import: ["": 21], training_info: [{
  algorithm: walk () => (float[4] w1, float[4] told)
  <float half = {0.5}, bool yes = {1}>
  {
    told, mask = Dropout (x, half, yes)
    noise = RandomNormalLike (w)
    moved = Add (w, noise)
    w1 = Add (moved, told)
  },
  update_binding: ["w": "w1"]
}]>
g (float[4] x) => (float[4] y) <float[4] w = {0, 0, 0, 0}> { y = Add (x, w) }
)";

TEST(TrainingSession, ResumesWithTheSameBits) {
  const ScratchFolder folder;
  const std::string path = folder / "resume.onnx";
  const Value in = floats({1, 2, 3, 4}, {4});
  TrainingSession whole(Model::from_text(noisy), {.threads = 2, .seed = 5});
  TrainingSession first(Model::from_text(noisy), {.threads = 1, .seed = 5});
  TrainingSession other(Model::from_text(noisy), {.seed = 6});
  for (int i = 0; i < 3; ++i) {
    whole.step({{"x", in}});
    first.step({{"x", in}});
    first.infer({{"x", in}});
    other.step({{"x", in}});
  }
  first.save(path, {.metadata = {{"note", "three"}}, .external_data = {}});
  TrainingSession second(path);
  EXPECT_EQ(second.turn(), 3u);
  EXPECT_EQ(second.seed(), 5u);
  EXPECT_EQ(second.metadata("note"), "three");
  for (int i = 0; i < 3; ++i) {
    whole.step({{"x", in}});
    second.step({{"x", in}});
  }
  EXPECT_EQ(list(state_of(whole, "w")), list(state_of(second, "w")));
  EXPECT_NE(list(state_of(whole, "w")), list(state_of(other, "w")));
}

TEST(TrainingSession, SavesTheOptimizersStateToo) {
  const ScratchFolder folder;
  const std::string path = folder / "saved.onnx";
  TrainingSession session(Model::from_text(linear));
  session.step({{"x", x}, {"target", target}});
  session.save(path);
  const TrainingSession again(path);
  const auto before = session.state(), after = again.state();
  ASSERT_EQ(before.size(), after.size());
  for (size_t i = 0; i < before.size(); ++i) {
    const Tensor &a = before[i].second.tensor(), &b = after[i].second.tensor();
    EXPECT_EQ(before[i].first, after[i].first);
    EXPECT_EQ(0, std::memcmp(a.data(), b.data(), a.byte_size())) << before[i].first;
  }
  session.save(path, {.metadata = {}, .external_data = {}, .inference_only = true});
  expect_error([&] { TrainingSession none(path); }, "[TR-03]");
  EXPECT_EQ(list(Session(path).run({{"x", x}})[0]), list(session.infer({{"x", x}})[0]));
}

// Each inference sees the state before or after a step: a and b always sum up to 3.
TEST(TrainingSession, InfersWhileItTrains) {
  TrainingSession session(Model::from_text(R"(
<ir_version: 10, opset_import: ["": 21], training_info: [{
  algorithm: swap () => (float[1] c, float[1] d) { c = Identity (a) d = Identity (b) },
  update_binding: ["a": "d", "b": "c"]
}]>
g () => (float[1] y) <float[1] a = {1}, float[1] b = {2}> { y = Add (a, b) }
)"));
  std::atomic<bool> done = false;
  std::atomic<int> wrong = 0, seen = 0;
  std::vector<std::thread> readers;
  for (int i = 0; i < 2; ++i) {
    readers.emplace_back([&] {
      while (!done || seen < 10) {
        if (list(session.infer({})[0])[0] != 3) ++wrong;
        ++seen;
      }
    });
  }
  for (int i = 0; i < 500; ++i) session.step({});
  done = true;
  for (std::thread& reader : readers) reader.join();
  EXPECT_EQ(wrong, 0);
}

// Models that break a rule of training information are refused, and the rule is named.
TEST(TrainingSession, NamesTheRuleThatAModelBreaks) {
  const std::string folder = std::string(SARDONYX_SOURCE_DIR) + "/tests/check/models/";
  int count = 0;
  for (const char* rule :
       {"TR-05", "TR-07", "TR-08", "TR-09", "TR-10", "TR-11", "TR-12", "TR-14", "TR-21", "TR-23"}) {
    std::ifstream file(folder + rule + "-bad.txt");
    std::string text, line, model;
    const auto check = [&] {
      if (model.find("ir_version") == std::string::npos) return;
      ++count;
      expect_error([&] { TrainingSession session(Model::from_text(model)); },
                   "[" + std::string(rule) + "]");
    };
    while (std::getline(file, line)) {
      if (line.starts_with("#")) {
        check();
        model.clear();
      } else {
        model += line + "\n";
      }
    }
    check();
  }
  EXPECT_GE(count, 10);
  expect_error(
      [&] {
        TrainingSession session(Model::from_text(R"(
<ir_version: 10, opset_import: ["": 21], training_info: [{ algorithm: t () => () { c = Neg (a) } }]>
g () => (float[1] y) <float[1] a = {1}> { y = Neg (a) })"));
      },
      "1 nodes and no outputs");
  expect_error(
      [&] {
        TrainingSession session(Model::from_text(R"(
<ir_version: 10, opset_import: ["": 21]>
g () => (float[1] y) <float[1] a = {1}> { y = Neg (a) })"));
      },
      "[TR-03]");
}

}  // namespace
}  // namespace sardonyx::test
