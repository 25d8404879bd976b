// make_trainable and fit, called from C++.
#include <gtest/gtest.h>

#include <algorithm>
#include <atomic>
#include <cmath>
#include <cstring>
#include <functional>
#include <set>
#include <thread>
#include <tuple>

#include "sardonyx/fit.h"
#include "sardonyx/trainable.h"
#include "scratch_folder.h"
#include "train/augment.h"

namespace sardonyx::test {
namespace {

constexpr const char* line = R"(
<ir_version: 10, opset_import: ["": 21]>
g (float[N,2] x) => (float[N,1] y) <float[2,1] w = {1, -1}, float[1] b = {0}, float[1] scale = {2}> {
  xw = MatMul (x, w)
  y = Add (xw, b)
}
)";

Model line_model() { return Model::from_text(line); }

TrainingData examples(int64_t count = 40) {
  Tensor x(ElementType::float32, {count, 2}), target(ElementType::float32, {count, 1});
  const auto in = x.mutable_elements<float>(), out = target.mutable_elements<float>();
  uint32_t state = 1;
  for (int64_t i = 0; i < count; ++i) {
    float row[2];
    for (float& value : row) {
      state = state * 1664525 + 1013904223;
      value = static_cast<float>(state >> 16) / 32768 - 1;
    }
    const auto at = static_cast<size_t>(i);
    in[2 * at] = row[0], in[2 * at + 1] = row[1];
    out[at] = 3 * row[0] - 2 * row[1] + 0.5f;
  }
  return TrainingData({{"x", x}, {"target", target}});
}

TrainableOptions squares(Optimizer optimizer = Optimizer::sgd, double rate = 0.1) {
  TrainableOptions options;
  options.loss = Loss::mse, options.optimizer = optimizer, options.learning_rate = rate;
  return options;
}

Tensor state_of(const TrainingSession& session, std::string_view name) {
  for (const auto& [key, value] : session.state()) {
    if (key == name) return value.tensor();
  }
  ADD_FAILURE() << "no state " << name;
  return {};
}

std::string error_of(const std::function<void()>& call) {
  try {
    call();
  } catch (const Error& error) {
    return error.what();
  }
  return "no error";
}

constexpr const char* in_functions = R"(
<ir_version: 10, opset_import: ["": 21, "local": 1]>
g (float[N,2] x) => (float[N,1] y) <float[2,1] w = {1, -1}, float[2] s = {1, 1}, float[2] b = {0, 0},
  float[2] mean = {0, 0}, float[2] var = {1, 1}> {
  h = local.block (x, s, b, mean, var)
  y = MatMul (h, w)
}
<domain: "local", opset_import: ["": 21, "local": 1]>
block (x, s, b, mean, var) => (y) {
  y = local.normalize (x, s, b, mean, var)
}
<domain: "local", opset_import: ["": 21]>
normalize (x, s, b, mean, var) => (y) {
  z = BatchNormalization (x, s, b, mean, var)
  y = Dropout (z)
}
)";

// A Softmax of opset 9, which makes one row of channels and pixels, is a part of the loss where
// there is one pixel.
TEST(MakeTrainable, TakesTheSoftmaxOfARowIntoTheLoss) {
  std::vector<float> losses;
  for (const char* end : {"y = Softmax (p)", "y = Identity (p)"}) {
    const Model model =
        Model::from_text(std::string("<ir_version: 8, opset_import: [\"\": 9]>\n"
                                     "g (float[N,3,2,2] x) => (float[N,2,1,1] y)"
                                     " <float[2,3,1,1] w = {1, -1, 2, 0.5, 0.25, -2}> {\n"
                                     "c = Conv (x, w)\n p = GlobalAveragePool (c)\n ") +
                         end + "\n}");
    TrainableOptions options;
    options.optimizer = Optimizer::sgd;
    TrainingSession session(make_trainable(model, options));
    Tensor x(ElementType::float32, {1, 3, 2, 2});
    for (size_t i = 0; i < 12; ++i)
      x.mutable_elements<float>()[i] = 0.25f * static_cast<float>(i) - 1;
    const auto told = session.step({{"x", x}, {"target", Tensor::of<int64_t>({0}, {1, 1, 1})}});
    losses.push_back(told.at(0).tensor().elements<float>()[0]);
  }
  EXPECT_FLOAT_EQ(losses[0], losses[1]);
}

// Of rows alone: one along the batch stays, and the report tells of it.
TEST(MakeTrainable, LeavesASoftmaxAlongTheBatchBeforeTheLoss) {
  const auto notes_of = [](int axis) {
    TrainableReport report;
    make_trainable(
        Model::from_text("<ir_version: 10, opset_import: [\"\": 21]>\n"
                         "g (float[2,3,1,1] x) => (float[2,3,1,1] y)"
                         " <float[1,3,1,1] w = {1, -1, 2}> {\n"
                         " h = Mul (x, w) f = Flatten (h) p = Softmax <axis = " +
                         std::to_string(axis) + "> (f) s = Shape (h) y = Reshape (p, s)\n}"),
        TrainableOptions(), &report);
    return report.notes.size();
  };
  EXPECT_EQ(notes_of(1), 0u);
  EXPECT_EQ(notes_of(0), 1u);
}

TEST(MakeTrainable, LeavesASoftmaxAlongOtherAxesBeforeTheLoss) {
  const auto notes_of = [](int axis, int64_t class_axis) {
    TrainableOptions options;
    options.class_axis = class_axis;
    TrainableReport report;
    make_trainable(Model::from_text("<ir_version: 10, opset_import: [\"\": 21]>\n"
                                    "g (float[2,3,4,5] x) => (float[2,3,4,5] y)"
                                    " <float[1,3,1,1] w = {1, -1, 2}> {\n"
                                    " h = Mul (x, w) y = Softmax <axis = " +
                                    std::to_string(axis) + "> (h)\n}"),
                   options, &report);
    return report.notes.size();
  };
  EXPECT_EQ(notes_of(1, 1), 0u);
  EXPECT_EQ(notes_of(-3, 1), 0u);
  EXPECT_EQ(notes_of(2, -2), 0u);
  EXPECT_EQ(notes_of(-1, 1), 0u);  // classes stand along the last axis then
  EXPECT_EQ(notes_of(-1, -1), 0u);
  EXPECT_EQ(notes_of(-1, 3), 0u);
  EXPECT_THROW(notes_of(-1, 2), Error);
  EXPECT_THROW(notes_of(-1, 7), Error);
  EXPECT_EQ(notes_of(0, 1), 1u);
  EXPECT_EQ(notes_of(2, 1), 1u);
}

TEST(MakeTrainable, TellsOfASoftmaxThatTheLossDoesNotTakeIn) {
  const auto notes_of = [](const std::string& nodes, Loss loss) {
    TrainableOptions options;
    options.loss = loss;
    TrainableReport report;
    make_trainable(Model::from_text("<ir_version: 10, opset_import: [\"\": 21]>\n"
                                    "g (float[N,3] x) => (float[N,2] y)"
                                    " <float[3,2] w = {1, -1, 2, 0.5, 0.25, -2},"
                                    " int64[2] shape = {-1, 2}> {\n h = MatMul (x, w)\n " +
                                    nodes + "\n}"),
                   options, &report);
    std::string text;
    for (const std::string& note : report.notes) text += note + "\n";
    return text;
  };
  const std::string told =
      notes_of("p = Softmax (h) y = Reshape (p, shape)", Loss::softmax_cross_entropy);
  EXPECT_NE(told.find("Softmax making 'p'"), std::string::npos) << told;
  EXPECT_NE(told.find("an output that is what this one takes, 'h'"), std::string::npos) << told;
  EXPECT_NE(notes_of("y = Sigmoid (h)", Loss::bce_with_logits).find("Sigmoid"), std::string::npos);
  EXPECT_EQ(notes_of("y = Softmax (h)", Loss::softmax_cross_entropy), "");
  EXPECT_EQ(notes_of("p = Relu (h) y = Reshape (p, shape)", Loss::softmax_cross_entropy), "");
  EXPECT_EQ(notes_of("y = Sigmoid (h)", Loss::mse), "");
}

// Their nodes get their training form like those of the main graph.
TEST(MakeTrainable, OpensFunctionsWhoseNodesChangeInTraining) {
  TrainableReport report;
  const Model model = make_trainable(Model::from_text(in_functions), squares(), &report);
  EXPECT_EQ(report.statistics, (std::vector<std::string>{"mean", "var"}));
  EXPECT_TRUE(std::ranges::any_of(report.notes, [](const std::string& note) {
    return note.find("functions have given way") != std::string::npos;
  }));
  TrainingSession session(model);
  session.initialize();
  Tensor x = Tensor::of<float>({1, 2, 3, 4}, {2, 2}), target = Tensor::of<float>({1, 2}, {2, 1});
  session.step({{"x", x}, {"target", target}});
  EXPECT_NE(state_of(session, "mean").elements<float>()[0], 0.0f);

  // What is the same in training stays a call.
  const Model calls = make_trainable(Model::from_text(R"(
<ir_version: 10, opset_import: ["": 21, "local": 1]>
g (float[N,2] x) => (float[N,1] y) <float[2,1] w = {1, -1}> { y = local.product (x, w) }
<domain: "local", opset_import: ["": 21]>
product (x, w) => (y) { y = MatMul (x, w) }
)"),
                                     squares(), &report);
  EXPECT_TRUE(report.notes.empty());
  EXPECT_TRUE(std::ranges::any_of(calls.functions(),
                                  [](const FunctionView& one) { return one.name() == "product"; }));
}

TEST(MakeTrainable, LearnsALine) {
  TrainableReport report;
  TrainingSession session(make_trainable(line_model(), squares(), &report));
  EXPECT_EQ(report.trained, (std::vector<std::string>{"w", "b"}));
  EXPECT_EQ(report.trained_elements, 3);
  EXPECT_EQ(report.target, "target");
  FitOptions options;
  options.epochs = 60, options.batch = 8;
  const TrainingData data = examples();
  int64_t steps = 0;
  options.on_step = [&](const FitProgress& at) { steps = at.step; };
  const FitResult result = fit(session, data, options);
  EXPECT_EQ(result.step, 300);
  EXPECT_EQ(steps, 300);
  ASSERT_EQ(result.epochs.size(), 60u);
  EXPECT_LT(result.epochs.back().training[0].value, 1e-6);
  EXPECT_NEAR(state_of(session, "w").elements<float>()[0], 3, 1e-2);
  EXPECT_NEAR(state_of(session, "b").elements<float>()[0], 0.5, 1e-2);
  EXPECT_LT(measure(session, data)[0].value, 1e-4);
  EXPECT_EQ(state_of(session, "updates").elements<int64_t>()[0], 300);
}

// The rate is state: who sets it to 0 stops learning, and nothing else changes.
TEST(MakeTrainable, TheRateIsState) {
  TrainingSession session(make_trainable(line_model(), squares()));
  session.set_state({{"learning_rate", Tensor::scalar(0.0f)}});
  fit(session, examples());
  EXPECT_EQ(state_of(session, "w").elements<float>()[0], 1);
  session.set_state({{"learning_rate", Tensor::scalar(0.1f)}});
  fit(session, examples());
  EXPECT_NE(state_of(session, "w").elements<float>()[0], 1);
  EXPECT_EQ(state_of(session, "learning_rate").elements<float>()[0], 0.1f);
}

// A plan with fusion and the reference, which computes node after node, agree for each optimizer.
TEST(MakeTrainable, AgreesWithTheReference) {
  for (const auto optimizer :
       {Optimizer::sgd, Optimizer::momentum, Optimizer::adam, Optimizer::adamw, Optimizer::adagrad,
        Optimizer::rmsprop, Optimizer::lamb}) {
    TrainableOptions options = squares(optimizer, 0.01);
    options.weight_decay = 0.01, options.clip_norm = 1, options.accumulate = 2;
    options.schedule = schedule_named("cosine:20");
    const Model model = make_trainable(line_model(), options);
    TrainingSession planned(model), reference(model, {.reference = true});
    for (TrainingSession* session : {&planned, &reference})
      fit(*session, examples(), {.epochs = 4, .batch = 8});
    for (const char* name : {"w", "b"}) {
      const Tensor a = state_of(planned, name), b = state_of(reference, name);
      for (size_t i = 0; i < static_cast<size_t>(a.size()); ++i)
        EXPECT_NEAR(a.elements<float>()[i], b.elements<float>()[i], 1e-5)
            << name << " by optimizer " << static_cast<int>(optimizer);
    }
  }
}

// Inputs are used for the time of a call alone, also where they are handed on.
TEST(MakeTrainable, OutputsOwnTheirMemory) {
  const Model model = Model::from_text(R"(<ir_version: 10, opset_import: ["" : 21]>
    g (float[N, 2] x, seq(float[2]) s) => (float[N, 1] y, float[N, 2] x, seq(float[2]) t)
    <float[2, 1] w = {1, 2}> { y = MatMul(x, w) t = Identity(s) })");
  TrainableOptions options;
  options.output = "y";
  options.loss = Loss::mse;
  for (const bool plain : {false, true}) {
    const TrainingSession training(make_trainable(model, options), {.reference = plain});
    float memory[]{1, 2};
    const Tensor x = Tensor::view(ElementType::float32, {1, 2}, memory, 8);
    const auto made = training.infer({{"x", x}, {"s", Value(Sequence{{x.reshaped({2})}})}});
    memory[0] = 7;
    EXPECT_EQ(made.at(1).tensor().elements<float>()[0], 1);
    EXPECT_EQ(made.at(2).sequence().items.at(0).tensor().elements<float>()[0], 1);
  }
}

TEST(MakeTrainable, WorksInDouble) {
  std::string text = line;
  for (size_t at = 0; (at = text.find("float[", at)) != text.npos;) text.replace(at, 5, "double");
  TrainableOptions options = squares(Optimizer::adamw, 0.05);
  options.schedule.warmup = 3;
  TrainingSession session(make_trainable(Model::from_text(text), options));
  const Tensor x = Tensor::of<double>({1, 2, 3, 4}, {2, 2}), t = Tensor::of<double>({1, 2}, {2, 1});
  const double first = session.step({{"x", x}, {"target", t}})[0].tensor().elements<double>()[0];
  double last = first;
  for (int i = 0; i < 50; ++i)
    last = session.step({{"x", x}, {"target", t}})[0].tensor().elements<double>()[0];
  EXPECT_LT(last, first / 10);
}

// Products are computed in half precision; weights, state and the loss stay float32.
TEST(MakeTrainable, HalfPrecisionLearns) {
  for (const auto precision : {Precision::bfloat16, Precision::float16}) {
    TrainableOptions options = squares(Optimizer::momentum, 0.05);
    options.precision = precision, options.accumulate = 2, options.clip_norm = 4;
    const Model model = make_trainable(line_model(), options);
    TrainingSession session(model), reference(model, {.reference = true});
    for (TrainingSession* one : {&session, &reference})
      fit(*one, examples(), {.epochs = 40, .batch = 8});
    EXPECT_NEAR(state_of(session, "w").elements<float>()[0], 3, 3e-2);
    EXPECT_NEAR(state_of(session, "b").elements<float>()[0], 0.5, 3e-2);
    EXPECT_NEAR(state_of(session, "w").elements<float>()[0],
                state_of(reference, "w").elements<float>()[0], 3e-2);
    EXPECT_LT(measure(session, examples())[0].value, 1e-3);
    // float16 finds its scale first.
    EXPECT_GE(state_of(session, "updates").elements<int64_t>()[0], 95);
    EXPECT_LE(state_of(session, "updates").elements<int64_t>()[0], 100);
  }
}

// A gradient that is not finite: nothing is updated, and the scale of the loss is halved.
TEST(MakeTrainable, AnOverflowUpdatesNothing) {
  TrainableOptions options = squares(Optimizer::adam);
  options.precision = Precision::float16, options.loss_scale = 0x1p24, options.scale_growth = 3;
  TrainingSession session(make_trainable(line_model(), options));
  // Errors of about 100 times 2 times the scale pass what float16 holds.
  const Tensor x = Tensor::of<float>({1, 1}, {1, 2}), t = Tensor::of<float>({-100}, {1, 1});
  const auto scale = [&] { return state_of(session, "loss_scale").elements<float>()[0]; };
  int64_t broken = 0;
  while (state_of(session, "updates").elements<int64_t>()[0] == 0 && broken < 40) {
    EXPECT_EQ(scale(), std::ldexp(1.0f, static_cast<int>(24 - broken)));
    EXPECT_EQ(state_of(session, "w").elements<float>()[0], 1);
    const auto told = session.step({{"x", x}, {"target", t}});
    EXPECT_TRUE(std::isfinite(told[0].tensor().elements<float>()[0]));
    ++broken;
  }
  EXPECT_GT(broken, 10);
  EXPECT_LT(broken, 30);
  EXPECT_NE(state_of(session, "w").elements<float>()[0], 1);
  // Three steps in a row without one double it.
  const float found = scale();
  session.set_state({{"loss_scale", Tensor::scalar(found / 64)}});
  for (int i = 0; i < 2; ++i) session.step({{"x", x}, {"target", t}});
  EXPECT_EQ(scale(), found / 32);
  session.initialize();
  EXPECT_EQ(scale(), 0x1p24f);
}

TEST(MakeTrainable, HalfPrecisionTakesFloat32) {
  std::string text = line;
  for (size_t at = 0; (at = text.find("float[", at)) != text.npos;) text.replace(at, 5, "double");
  TrainableOptions options = squares();
  options.precision = Precision::bfloat16;
  EXPECT_NE(error_of([&] { make_trainable(Model::from_text(text), options); }).find("float32"),
            std::string::npos);
  options.precision = Precision::float16, options.loss_scale = 0;
  EXPECT_NE(error_of([&] { make_trainable(line_model(), options); }).find("loss_scale"),
            std::string::npos);
  EXPECT_NE(error_of([] { precision_named("fp8"); }).find("bf16"), std::string::npos);
}

// Products of LoRA become part of the weights, transposed ones and those that two nodes share too.
TEST(MergeLora, ComputesTheSame) {
  const Model model = Model::from_text(R"(
<ir_version: 10, opset_import: ["": 21]>
g (float[N,3] x) => (float[N,2] y)
<float[3,3] shared = {0.1,0.2,0.3,0.4,0.5,-0.6,-0.7,0.8,1}, float[2,3] turned = {1,0,-1,2,1,0}, float[2] c = {1,2}> {
  a = MatMul (x, shared)
  b = Tanh (a)
  d = MatMul (b, shared)
  y = Gemm <transB = 1, alpha = 0.5> (d, turned, c)
}
)");
  TrainableOptions options = squares(Optimizer::sgd, 0.01);
  options.lora = {{2, "*", 3}};
  TrainingSession session(make_trainable(model, options));
  const Tensor x = Tensor::of<float>({1, -1, 0.5f, 0.25f, 2, -2}, {2, 3}),
               t = Tensor::of<float>({1, 0, 0, 1}, {2, 2});
  for (int i = 0; i < 20; ++i) session.step({{"x", x}, {"target", t}});
  const ScratchFolder folder;
  const std::string path = folder / "merged.onnx", whole = folder / "trained.onnx";
  session.save(path, {.merge_lora = true});
  session.save(whole);
  const auto expected = session.infer({{"x", x}})[0].tensor();
  const auto plain = Session(model).run({{"x", x}})[0].tensor();
  EXPECT_NE(expected.elements<float>()[0], plain.elements<float>()[0]);
  for (const Model& merged : {Model(path), merge_lora(Model(whole))}) {
    EXPECT_EQ(merged.to_text().find("lora"), std::string::npos);
    const auto found = Session(merged).run({{"x", x}})[0].tensor();
    for (size_t i = 0; i < 4; ++i)
      EXPECT_NEAR(found.elements<float>()[i], expected.elements<float>()[i], 1e-4);
  }
  EXPECT_NE(error_of([&] { merge_lora(model); }).find("no low-rank products"), std::string::npos);
  TrainingSession other(make_trainable(model, squares()));
  EXPECT_NE(error_of([&] { other.save(path, {.merge_lora = true}); }).find("no low-rank products"),
            std::string::npos);
}

TEST(MakeTrainable, NamesThatAreTaken) {
  const Model model = Model::from_text(R"(
<ir_version: 10, opset_import: ["": 21]>
g (float[N,2] target) => (float[N,1] loss) <float[2,1] updates = {1, -1}, float[2] rate = {1, 1}> {
  training_Sub = Mul (target, rate)
  loss = MatMul (training_Sub, updates)
}
)");
  TrainableReport report;
  TrainingSession session(make_trainable(model, squares(), &report));
  EXPECT_EQ(report.target, "target_1");
  const Tensor x = Tensor::of<float>({1, 2}, {1, 2}), t = Tensor::of<float>({1}, {1, 1});
  const auto told = session.step({{"target", x}, {"target_1", t}});
  EXPECT_FLOAT_EQ(told[0].tensor().elements<float>()[0], 4);
}

// Sizes that are open: each kind of batch has a plan of its own where gradients need sizes.
TEST(MakeTrainable, ConvolutionsOfOpenSizes) {
  const Model model = Model::from_text(R"(
<ir_version: 10, opset_import: ["": 21]>
g (float[N,1,H,W] x) => (float[N,1,H,W] y) <float[1,1,3,3] w = {0,0,0,0,2,0,0,0,0}> {
  y = Conv <pads = [1,1,1,1]> (x, w)
}
)");
  TrainingSession session(make_trainable(model, squares(Optimizer::sgd, 0.1)));
  for (const int64_t side : {4, 5, 4, 6}) {
    const Shape shape{side - 2, 1, side, side};
    Tensor x(ElementType::float32, shape);
    std::ranges::fill(x.mutable_elements<float>(), 1.0f);
    const auto told = session.step({{"x", x}, {"target", x}});
    EXPECT_TRUE(std::isfinite(told[0].tensor().elements<float>()[0]));
  }
  EXPECT_EQ(session.turn(), 4u);
  EXPECT_LT(state_of(session, "w").elements<float>()[4], 2);
  const Tensor wrong = Tensor::of<float>({1}, {1, 1, 1});
  EXPECT_NE(error_of([&] {
              session.step({{"x", wrong}, {"target", wrong}});
            }).find("rank 3"),
            std::string::npos);
}

TEST(MakeTrainable, SaysWhatHasNoGradient) {
  const Model model = Model::from_text(R"(
<ir_version: 10, opset_import: ["": 21]>
g (float[1,2] x) => (float[1,2] y) <float[1,2] w = {1, -1}, int64 first = {0}> {
  a = Mul(x, w)
  s = SequenceConstruct(a)
  y, all = Scan <num_scan_inputs = 1, body = b (float[1,2] before, float[2] row) => (float[1,2] after, float[2] out) {
    held = SequenceAt(s, first)
    after = Add(before, held)
    out = Identity(row)
  }> (a, x)
}
)");
  const std::string text = error_of([&] { make_trainable(model, squares()); });
  EXPECT_EQ(text.find("Scan making 'y'"), 0u) << text;
  EXPECT_NE(text.find("has no gradient"), std::string::npos) << text;
}

TEST(Fit, StopsWhereItIsAsked) {
  TrainingSession session(make_trainable(line_model(), squares()));
  std::atomic<bool> stop = false;
  FitOptions options;
  options.epochs = 100, options.batch = 8, options.stop = &stop;
  options.on_step = [&](const FitProgress& at) { stop = at.step == 7; };
  const FitResult result = fit(session, examples(), options);
  EXPECT_TRUE(result.stopped);
  EXPECT_EQ(result.step, 7);
  EXPECT_EQ(session.turn(), 7u);
}

TEST(Fit, GoesOnInTheMiddleOfAnEpoch) {
  const Model model = make_trainable(line_model(), squares(Optimizer::adam));
  const TrainingData data = examples(37);
  TrainingSession whole(model), parts(model);
  fit(whole, data, {.epochs = 5, .batch = 8});
  std::atomic<bool> stop = false;
  FitOptions options;
  options.epochs = 5, options.batch = 8, options.stop = &stop;
  options.on_step = [&](const FitProgress& at) { stop = at.step == 12; };
  const FitResult first = fit(parts, data, options);
  options.stop = nullptr, options.first_step = first.step;
  EXPECT_EQ(fit(parts, data, options).step, 25);
  for (const auto& [name, value] : whole.state()) {
    const Tensor a = value.tensor(), b = state_of(parts, name);
    EXPECT_EQ(0, std::memcmp(a.data(), b.data(), a.byte_size())) << name;
  }
}

std::vector<NamedValue> image_batch(std::span<const int64_t> places) {
  Tensor images(ElementType::float32, {static_cast<int64_t>(places.size()), 2, 3, 4});
  const auto elements = images.mutable_elements<float>();
  for (size_t i = 0; i < elements.size(); ++i)
    elements[i] = static_cast<float>(places[i / 24] * 100) + static_cast<float>(i % 24) + 1;
  return {{"image", images}, {"label", Tensor::of<int64_t>(places, {images.shape()[0]})}};
}

// Each example is one of the ways in which its image can be moved and mirrored, the same for all of
// its planes, and drawn for it alone: not for its place in the batch.
TEST(Fit, AugmentsImages) {
  std::vector<int64_t> places(64), turned;
  for (size_t i = 0; i < places.size(); ++i) places[i] = static_cast<int64_t>(i);
  turned.assign(places.rbegin(), places.rend());
  const Augmentation how = augmentation_named("flip,crop:1");
  EXPECT_TRUE(how.flip && how.crop == 1);
  auto batch = image_batch(places), other = image_batch(turned), later = image_batch(places);
  train::augment(batch, places, how, 7, 3);
  train::augment(other, turned, how, 7, 3);
  train::augment(later, places, how, 7, 4);
  const auto a = batch[0].second.tensor().elements<float>(),
             b = other[0].second.tensor().elements<float>(),
             c = later[0].second.tensor().elements<float>();
  std::set<std::tuple<int, int, bool>> ways;
  size_t changes = 0;
  for (size_t i = 0; i < 64; ++i) {
    EXPECT_TRUE(std::equal(&a[i * 24], &a[i * 24] + 24, &b[(63 - i) * 24]));
    changes += std::equal(&a[i * 24], &a[i * 24] + 24, &c[i * 24]) ? 0 : 1;
    size_t fitting = 0;
    for (int down = -1; down <= 1; ++down) {
      for (int right = -1; right <= 1; ++right) {
        for (const bool mirrored : {false, true}) {
          bool same = true;
          for (int k = 0; k < 24; ++k) {
            const int plane = k / 12, h = k / 4 % 3 - down,
                      w = (mirrored ? 3 - k % 4 : k % 4) - right;
            const bool inside = h >= 0 && h < 3 && w >= 0 && w < 4;
            const auto value = inside ? static_cast<float>(100 * i) +
                                            static_cast<float>(plane * 12 + h * 4 + w) + 1
                                      : 0.0f;
            same = same && a[i * 24 + static_cast<size_t>(k)] == value;
          }
          if (!same) continue;
          ++fitting;
          ways.insert({down, right, mirrored});
        }
      }
    }
    EXPECT_EQ(fitting, 1u) << "example " << i;
  }
  EXPECT_GT(ways.size(), 14u);
  EXPECT_GT(changes, 50u);
  EXPECT_EQ(batch[1].second.tensor().elements<int64_t>()[5], 5);
}

TEST(Fit, GoesOnWithTheSameImages) {
  const Model model = make_trainable(Model::from_text(R"(
<ir_version: 10, opset_import: ["": 21]>
g (float[N,1,4,4] x) => (float[N,1,4,4] y) <float[1,1,3,3] w = {0,0,0,0,2,0,0,0,0}> {
  y = Conv <pads = [1,1,1,1]> (x, w)
}
)"),
                                     squares());
  Tensor x(ElementType::float32, {21, 1, 4, 4});
  for (size_t i = 0; i < 336; ++i) x.mutable_elements<float>()[i] = static_cast<float>(i % 17) / 16;
  const TrainingData data({{"x", x}, {"target", x}});
  TrainingSession whole(model), parts(model), plain(model);
  FitOptions options;
  options.epochs = 4, options.batch = 4;
  fit(plain, data, options);
  options.augment = augmentation_named("crop:2,flip");
  fit(whole, data, options);
  std::atomic<bool> stop = false;
  options.stop = &stop;
  options.on_step = [&](const FitProgress& at) { stop = at.step == 9; };
  const FitResult first = fit(parts, data, options);
  options.stop = nullptr, options.first_step = first.step;
  fit(parts, data, options);
  const Tensor a = state_of(whole, "w"), b = state_of(parts, "w"), c = state_of(plain, "w");
  EXPECT_EQ(0, std::memcmp(a.data(), b.data(), a.byte_size()));
  EXPECT_NE(0, std::memcmp(a.data(), c.data(), a.byte_size()));
}

TEST(Fit, AugmentationsThatAreNone) {
  for (const char* text : {"", "flip,", "crop", "crop:", "crop:0", "crop:-1", "crop:5000", "turn"})
    EXPECT_NE(error_of([&] { augmentation_named(text); }).find("an augmentation is"),
              std::string::npos)
        << text;
  TrainingSession session(make_trainable(line_model(), squares()));
  EXPECT_NE(
      error_of([&] { fit(session, examples(), {.augment = {.flip = true}}); }).find("no images"),
      std::string::npos);
  EXPECT_NE(error_of([&] { fit(session, examples(), {.augment = {.crop = -1}}); }).find("crops"),
            std::string::npos);
}

TEST(Fit, RefusesWhatMakesNoSense) {
  TrainingSession session(make_trainable(line_model(), squares()));
  const TrainingData data = examples();
  EXPECT_NE(error_of([&] { fit(session, data, {.batch = 0}); }).find("batch"), std::string::npos);
  EXPECT_NE(error_of([&] { fit(session, data, {.epochs = -1}); }).find("epochs"),
            std::string::npos);
  EXPECT_NE(error_of([&] { fit(session, data, {.batch = 50, .drop_last = true}); }).find("dropped"),
            std::string::npos);
  EXPECT_NE(error_of([&] { fit(session, data, {.which = 3}); }).find("no number 3"),
            std::string::npos);
  EXPECT_NE(error_of([&] { data.batch(std::vector<int64_t>{40}); }).find("none at 40"),
            std::string::npos);
  EXPECT_NE(error_of([] { TrainingData none({}); }).find("no arrays"), std::string::npos);
  EXPECT_EQ(session.turn(), 0u);
}

// A scalar is given to each step as it is.
TEST(Fit, ScalarsBelongToAllExamples) {
  const TrainingData data({{"a", Tensor::scalar(2.0f)}, {"b", Tensor::of<float>({1, 2, 3}, {3})}});
  EXPECT_EQ(data.size(), 3);
  const auto batch = data.batch(std::vector<int64_t>{2, 0});
  EXPECT_EQ(batch[0].second.tensor().rank(), 0);
  EXPECT_EQ(batch[1].second.tensor().elements<float>()[0], 3);
  EXPECT_EQ(batch[1].second.tensor().elements<float>()[1], 1);
}

TEST(Fit, InfersMeanwhile) {
  TrainingSession session(make_trainable(line_model(), squares(Optimizer::adam)));
  std::atomic<bool> done = false;
  std::atomic<int64_t> seen = 0;
  const Tensor x = Tensor::of<float>({1, 1}, {1, 2});
  std::thread reader([&] {
    while (!done || seen == 0) {
      const auto y = session.infer({{"x", x}});
      seen += std::isfinite(y[0].tensor().elements<float>()[0]) ? 1 : -1'000'000;
    }
  });
  fit(session, examples(), {.epochs = 20, .batch = 4});
  done = true;
  reader.join();
  EXPECT_GT(seen, 0);
}

}  // namespace
}  // namespace sardonyx::test
