// The public interface from end to end, on models in textual syntax.
#include "sardonyx/session.h"

#include <gtest/gtest.h>

#include <atomic>
#include <filesystem>
#include <fstream>
#include <thread>

#include "sardonyx/infer.h"
#include "sardonyx/profile.h"
#include "scratch_folder.h"

namespace sardonyx {
namespace {

constexpr std::string_view header = "<ir_version: 10, opset_import: [\"\" : 21]>\n";

Model model_of(const std::string& body) { return Model::from_text(std::string(header) + body); }

std::vector<float> floats(const Value& value) {
  const auto elements = value.tensor().elements<float>();
  return {elements.begin(), elements.end()};
}

std::string message_of(const std::function<void()>& action, ErrorCode expected) {
  try {
    action();
  } catch (const Error& error) {
    EXPECT_EQ(error.code(), expected) << error.what();
    return error.what();
  }
  ADD_FAILURE() << "no error";
  return {};
}

const std::string add_one = R"(g (float[N, 2] x) => (float[N, 2] y) {
  one = Constant<value = float {1.0}>()
  y = Add(x, one)
})";

TEST(Session, RunsAndRunsAgainWithOtherSizes) {
  const Session session(model_of(add_one));
  for (const int64_t n : {1, 3, 2, 0, 3}) {
    Tensor x(ElementType::float32, {n, 2});
    for (float& v : x.mutable_elements<float>()) v = 4;
    const auto outputs = session.run({{"x", x}});
    EXPECT_EQ(outputs[0].tensor().shape(), (Shape{n, 2}));
    for (const float v : floats(outputs[0])) EXPECT_EQ(v, 5);
  }
}

TEST(Session, DescribesItsInputsAndOutputs) {
  const Session session(model_of(add_one));
  ASSERT_EQ(session.inputs().size(), 1u);
  EXPECT_EQ(session.inputs()[0].type, "float[N,2]");
  EXPECT_EQ(session.outputs()[0].name, "y");
}

TEST(Session, BadInputIsNamed) {
  const Session session(model_of(add_one));
  const Tensor good(ElementType::float32, {1, 2});
  EXPECT_NE(message_of(
                [&] {
                  session.run({{"z", good}});
                },
                ErrorCode::bad_input)
                .find("it has 'x'"),
            std::string::npos);
  EXPECT_NE(
      message_of([&] { session.run(std::vector<NamedValue>{}); }, ErrorCode::bad_input).find("'x'"),
      std::string::npos);
  const Tensor wide(ElementType::float32, {1, 3});
  EXPECT_NE(message_of(
                [&] {
                  session.run({{"x", wide}});
                },
                ErrorCode::bad_input)
                .find("dimension 1 must be 2"),
            std::string::npos);
  const Tensor flat(ElementType::float32, {2});
  EXPECT_NE(message_of(
                [&] {
                  session.run({{"x", flat}});
                },
                ErrorCode::bad_input)
                .find("rank 1 instead of 2"),
            std::string::npos);
  const Tensor integers(ElementType::int32, {1, 2});
  EXPECT_NE(message_of(
                [&] {
                  session.run({{"x", integers}});
                },
                ErrorCode::bad_input)
                .find("int32"),
            std::string::npos);
  EXPECT_EQ(floats(session.run({{"x", Tensor::of<float>({1, 2}, {1, 2})}})[0]),
            (std::vector<float>{2, 3}));
}

TEST(Session, SparseInputsAreOfTheTypeThatTheModelTakes) {
  const Model model = Model::from_text(R"(<ir_version: 10, opset_import: ["com.microsoft" : 1]>
    g (sparse_tensor(float[2, k]) a, float[3, 2] b) => (float[2, 2] y) {
      y = com.microsoft.SparseToDenseMatMul(a, b)
    })");
  const Tensor b = Tensor::of<float>({1, 2, 3, 4, 5, 6}, {3, 2});
  const Tensor ones = Tensor::of<float>({1, 1}, {2}), places = Tensor::of<int64_t>({0, 5}, {2});
  for (const bool plain : {false, true}) {
    const Session session(model, {.reference = plain});
    const auto run = [&](const Tensor& values, const Tensor& indices, const Shape& shape) {
      return session.run({{"a", Value(SparseTensor{values, indices, shape})}, {"b", b}})[0];
    };
    EXPECT_EQ(floats(run(ones, places, {2, 3})), (std::vector<float>{1, 2, 5, 6}));
    const auto refused = [&](const Tensor& values, const Shape& shape) {
      return message_of([&] { run(values, places, shape); }, ErrorCode::bad_input);
    };
    EXPECT_EQ(refused(ones, {6}),
              "input 'a': has shape [6], the model takes sparse_tensor(float[2,k])");
    EXPECT_EQ(refused(ones, {3, 3}),
              "input 'a': has shape [3,3], the model takes sparse_tensor(float[2,k])");
    EXPECT_TRUE(refused(Tensor::of<double>({1, 1}, {2}), {2, 3})
                    .starts_with("input 'a': holds double, the model takes sparse_tensor(float"));
    EXPECT_NE(message_of(
                  [&] {
                    run(ones, ones, {2, 3});
                  },
                  ErrorCode::run_failed)
                  .find("must be int64[2] or int64[2,2], and are float[2]"),
              std::string::npos);
  }
}

TEST(Session, SizesOfOneNameMustAgree) {
  const Session session(model_of("g (float[N] a, float[N] b) => (float[N] y) { y = Add(a, b) }"));
  const std::string message = message_of(
      [&] {
        session.run(
            {{"a", Tensor(ElementType::float32, {2})}, {"b", Tensor(ElementType::float32, {3})}});
      },
      ErrorCode::bad_input);
  EXPECT_NE(message.find("'N' is 2 by dimension 0 of input 'a'"), std::string::npos) << message;
}

TEST(Session, ShapesThatDoNotFitAreRefusedBeforeAnythingRuns) {
  const Session session(
      model_of("g (float[N, K] a, float[L, M] b) => (float[N, M] y) { y = MatMul(a, b) }"));
  const std::string message = message_of(
      [&] {
        session.run({{"a", Tensor(ElementType::float32, {2, 3})},
                     {"b", Tensor(ElementType::float32, {4, 2})}});
      },
      ErrorCode::bad_input);
  EXPECT_NE(message.find("MatMul"), std::string::npos) << message;
}

TEST(Session, UnknownOperatorIsUnsupportedAndDefinedTooLateIsInvalid) {
  EXPECT_THROW(Session(model_of("g (float[1] x) => (float[1] y) { y = Reluu(x) }")), Error);
  const Model late = Model::from_text(
      "<ir_version: 8, opset_import: [\"\" : 17]>\n"
      "g (float[1] x) => (float[1] y) { y = Relu(t) t = Relu(x) }",
      {.strict = true});
  EXPECT_THROW(Session{late}, Error);
}

TEST(Session, InitializersAreDefaultsThatCallersOverride) {
  const Session session(
      model_of(R"(g (float[2] x, float[2] w = {1, 2}) => (float[2] y) { y = Mul(x, w) })"));
  const Tensor x = Tensor::of<float>({3, 3}, {2});
  EXPECT_EQ(floats(session.run({{"x", x}})[0]), (std::vector<float>{3, 6}));
  EXPECT_EQ(floats(session.run({{"x", x}, {"w", Tensor::of<float>({5, 5}, {2})}})[0]),
            (std::vector<float>{15, 15}));
  EXPECT_EQ(floats(session.run({{"x", x}})[0]), (std::vector<float>{3, 6}));
}

TEST(Session, FillsTheCallersBuffer) {
  const Session session(model_of(add_one));
  std::vector<float> memory(4, 0);
  const std::vector<Value> inputs = {Tensor::of<float>({1, 2, 3, 4}, {2, 2})};
  std::vector<Value> outputs = {Tensor::view(ElementType::float32, {2, 2}, memory.data(), 16)};
  session.run(inputs, outputs);
  EXPECT_EQ(memory, (std::vector<float>{2, 3, 4, 5}));
}

TEST(Session, OutputsOwnTheirMemory) {
  // An input, a constant and one value twice, all handed out.
  const Session session(
      model_of(R"(g (float[2] x) => (float[2] a, float[2] b, float[2] c, float[1, 2] d) {
    a = Identity(x)
    b = Constant<value = float[2] {7, 8}>()
    c = Relu(x)
    shape = Constant<value = int64[2] {1, 2}>()
    d = Reshape(c, shape)
  })"));
  std::vector<Value> outputs;
  {
    Tensor x = Tensor::of<float>({1, 2}, {2});
    outputs = session.run({{"x", Tensor::view(ElementType::float32, {2}, x.data(), 8)}});
  }
  session.run({{"x", Tensor::of<float>({-1, -1}, {2})}});
  EXPECT_EQ(floats(outputs[0]), (std::vector<float>{1, 2}));
  EXPECT_EQ(floats(outputs[1]), (std::vector<float>{7, 8}));
  EXPECT_EQ(floats(outputs[2]), (std::vector<float>{1, 2}));
  EXPECT_EQ(outputs[3].tensor().shape(), (Shape{1, 2}));
}

// Inputs are used for the time of the call alone, whatever holds their memory and hands it on.
TEST(Session, OutputsThatHandInputsOnOwnTheirMemory) {
  const std::string header = "<ir_version: 10, opset_import: [\"\" : 21]>\n";
  for (const bool plain : {false, true}) {
    float memory[]{1, 2};
    const auto given = [&] { return Tensor::view(ElementType::float32, {2}, memory, 8); };
    const auto run = [&](const std::string& graph, Value x) {
      memory[0] = 1;
      const Session session(Model::from_text(header + graph), {.reference = plain});
      Value made = session.run({{"x", std::move(x)}})[0];
      memory[0] = 7;
      return made;
    };
    const auto first = [](const Value& value) { return value.tensor().elements<float>()[0]; };
    const Sequence sequence{{given(), given()}};
    Optional optional;
    optional.held = std::make_unique<Value>(given());
    EXPECT_EQ(first(run("g (float[2] x) => (float[2] x) { }", given())), 1);
    EXPECT_EQ(first(run("g (seq(float[2]) x) => (seq(float[2]) y) { y = Identity(x) }", sequence)
                        .sequence()
                        .items[1]),
              1);
    EXPECT_EQ(
        first(run("g (seq(float[2]) x) => (seq(float[2]) y) { y = SequenceErase(x) }", sequence)
                  .sequence()
                  .items[0]),
        1);
    EXPECT_EQ(first(*run("g (optional(float[2]) x) => (optional(float[2]) y) { y = Identity(x) }",
                         std::move(optional))
                         .optional()
                         .held),
              1);
  }
}

TEST(Session, SizesThatOnlyTheRunDecides) {
  const Session session(model_of(R"(g (float[N] x) => (int64[1, K] where, float[K, 1] doubled) {
    where = NonZero(x)
    flat_shape = Constant<value = int64[1] {-1}>()
    positions = Reshape(where, flat_shape)
    picked = Gather(x, positions)
    two = Constant<value = float {2.0}>()
    twice = Mul(picked, two)
    axes = Constant<value = int64[1] {1}>()
    doubled = Unsqueeze(twice, axes)
  })"));
  auto outputs = session.run({{"x", Tensor::of<float>({0, 3, 0, 5}, {4})}});
  EXPECT_EQ(floats(outputs[1]), (std::vector<float>{6, 10}));
  outputs = session.run({{"x", Tensor::of<float>({0, 0, 0, 0}, {4})}});
  EXPECT_EQ(outputs[1].tensor().shape(), (Shape{0, 1}));
  outputs = session.run({{"x", Tensor::of<float>({1, 1, 1, 1, 1}, {5})}});
  EXPECT_EQ(outputs[1].tensor().shape(), (Shape{5, 1}));
}

TEST(Session, ShapesFromInputs) {
  const Session session(
      model_of("g (float[N] x, int64[R] shape) => (float[] y) { y = Reshape(x, shape) }"));
  const Tensor x = Tensor::of<float>({1, 2, 3, 4}, {4});
  EXPECT_EQ(
      session.run({{"x", x}, {"shape", Tensor::of<int64_t>({2, -1}, {2})}})[0].tensor().shape(),
      (Shape{2, 2}));
  EXPECT_EQ(
      session.run({{"x", x}, {"shape", Tensor::of<int64_t>({4, 1, 1}, {3})}})[0].tensor().shape(),
      (Shape{4, 1, 1}));
}

const std::string loop_model =
    R"(g (int64 trips, float[2] x, float[2] step) => (float[2] last, float[T, 2] all) {
  keep = Constant<value = bool {1}>()
  last, all = Loop <body = inner (int64 i, bool go, float[2] state) => (bool go_on, float[2] next, float[2] seen) {
    go_on = Identity(go)
    next = Add(state, step)
    seen = Mul(next, step)
  }> (trips, keep, x)
})";

TEST(Session, LoopCapturesAndScans) {
  for (const bool plain : {false, true}) {
    const Session session(model_of(loop_model), {.reference = plain});
    const auto outputs = session.run({{"trips", Tensor::scalar<int64_t>(3)},
                                      {"x", Tensor::of<float>({0, 10}, {2})},
                                      {"step", Tensor::of<float>({1, 2}, {2})}});
    EXPECT_EQ(floats(outputs[0]), (std::vector<float>{3, 16}));
    EXPECT_EQ(floats(outputs[1]), (std::vector<float>{1, 24, 2, 28, 3, 32}));
  }
}

TEST(Session, LoopWithoutTripsGivesEmptyScans) {
  const Session session(model_of(loop_model));
  const auto outputs = session.run({{"trips", Tensor::scalar<int64_t>(0)},
                                    {"x", Tensor::of<float>({4, 5}, {2})},
                                    {"step", Tensor::of<float>({1, 2}, {2})}});
  EXPECT_EQ(floats(outputs[0]), (std::vector<float>{4, 5}));
  EXPECT_EQ(outputs[1].tensor().shape(), (Shape{0, 2}));
}

TEST(Session, LoopWhoseStateGrows) {
  const Session session(model_of(R"(g (int64 trips, float[1] x) => (float[L] grown) {
    keep = Constant<value = bool {1}>()
    grown = Loop <body = inner (int64 i, bool go, float[K] state) => (bool go_on, float[K2] next) {
      go_on = Identity(go)
      next = Concat<axis = 0>(state, x)
    }> (trips, keep, x)
  })"));
  for (const int64_t trips : {5, 0, 2}) {
    const auto outputs = session.run(
        {{"trips", Tensor::scalar<int64_t>(trips)}, {"x", Tensor::of<float>({1}, {1})}});
    EXPECT_EQ(outputs[0].tensor().shape(), (Shape{trips + 1}));
  }
}

TEST(Session, LoopAndScanThatDoNotRunKeepTheSizesOfTheirInputs) {
  const Model model = model_of(
      R"(g (float[N, K] x, int64 trips, float[T, K] rows) => (float[A, B, C] all, float[D, E, F] scans, float[G, H] last) {
    keep = Constant<value = bool {1}>()
    all = Loop <body = inner (int64 i, bool go) => (bool go_on, float[P, Q] out) {
      go_on = Identity(go)
      out = Neg(x)
    }> (trips, keep)
    last, scans = Scan <num_scan_inputs = 1, body = each (float[N, K] s, float[K] row) => (float[N, K] s2, float[N, K] out) {
      s2 = Add(s, row)
      out = Mul(s, row)
    }> (x, rows)
  })");
  for (const bool plain : {false, true}) {
    const Session session(model, {.reference = plain});
    for (const int64_t count : {0, 2, 0}) {
      const auto outputs = session.run({{"x", Tensor(ElementType::float32, {3, 4})},
                                        {"trips", Tensor::scalar<int64_t>(count)},
                                        {"rows", Tensor(ElementType::float32, {count, 4})}});
      EXPECT_EQ(outputs[0].tensor().shape(), (Shape{count, 3, 4}));
      EXPECT_EQ(outputs[1].tensor().shape(), (Shape{count, 3, 4}));
      EXPECT_EQ(outputs[2].tensor().shape(), (Shape{3, 4}));
    }
  }
}

// What a plan knows neither rank nor size of is what the first iteration would make: by its inputs,
// by values from around it, by what the body declares.
TEST(Session, LoopAndScanThatDoNotRunForeseeTheirOutputs) {
  const Model model = model_of(
      R"(g (float[N] x, int64 trips, int64[K] axes, float[T, N] rows, float[M] state) => (int64[A, B] ranks, int64[C, D, E] hits, float[F, H] last, int64[I, J] scans) {
    keep = Constant<value = bool {1}>()
    y = Unsqueeze(x, axes)
    ranks = Loop <body = b1 (int64 i, bool go) => (bool go_on, int64[R] out) {
      go_on = Identity(go)
      out = Shape(y)
    }> (trips, keep)
    hits = Loop <body = b2 (int64 i, bool go) => (bool go_on, int64[1, 4] out) {
      go_on = Identity(go)
      out = NonZero(x)
    }> (trips, keep)
    last, scans = Scan <num_scan_inputs = 1, body = b3 (float[M2] s, float[N] row) => (float[M3] s2, int64[R] out) {
      z = Unsqueeze(row, axes)
      s2 = Identity(s)
      out = Shape(z)
    }> (state, rows)
  })");
  for (const bool plain : {false, true}) {
    const Session session(model, {.reference = plain});
    for (const int64_t count : {0, 1, 0}) {
      const auto outputs = session.run({{"x", Tensor::of<float>({1, 1, 0, 1, 1}, {5})},
                                        {"trips", Tensor::scalar<int64_t>(count)},
                                        {"axes", Tensor::of<int64_t>({0, 1}, {2})},
                                        {"rows", Tensor(ElementType::float32, {count, 5})},
                                        {"state", Tensor(ElementType::float32, {2})}});
      EXPECT_EQ(outputs[0].tensor().shape(), (Shape{count, 3}));
      EXPECT_EQ(outputs[1].tensor().shape(), (Shape{count, 1, 4}));
      EXPECT_EQ(outputs[3].tensor().shape(), (Shape{count, 3}));
    }
  }
}

// Nor how many values a sequence from around the loop holds.
TEST(Session, LoopsThatDoNotRunForeseeWhatSequencesMake) {
  const Model model = model_of(
      R"(g (float[N] x, int64 trips) => (float[A, B, C] joined, float[D, E, F] opened) {
    two = SequenceConstruct(x, x)
    maybe = Optional(two)
    joined = Loop <body = b1 (int64 i, bool go) => (bool go_on, float[P, N] out) {
      go_on = Identity(go)
      out = ConcatFromSequence<axis = 0, new_axis = 1>(two)
    }> (trips, "")
    opened = Loop <body = b2 (int64 i, bool go) => (bool go_on, float[P, N] out) {
      go_on = Identity(go)
      held = OptionalGetElement(maybe)
      out = ConcatFromSequence<axis = 0, new_axis = 1>(held)
    }> (trips, "")
  })");
  for (const bool plain : {false, true}) {
    const Session session(model, {.reference = plain});
    for (const int64_t count : {0, 1, 0}) {
      const auto outputs = session.run(
          {{"x", Tensor::of<float>({1, 2, 3}, {3})}, {"trips", Tensor::scalar<int64_t>(count)}});
      EXPECT_EQ(outputs[0].tensor().shape(), (Shape{count, 2, 3})) << plain;
      EXPECT_EQ(outputs[1].tensor().shape(), (Shape{count, 2, 3})) << plain;
    }
  }
}

// A state's size in a body is another than that of a state around it, though both come first.
TEST(Session, BodiesInsideBodiesRunByTheirPlans) {
  const Session session(
      model_of(
          R"(g (float[N] x, float[M] y, int64 trips) => (float[K] grown, float[A] halves, float[B] sums) {
    grown = Loop <body = outer (int64 i, bool go, float[P] whole) => (bool go_on, float[Q] longer) {
      go_on = Identity(go)
      inside = Loop <body = inner (int64 j, bool on, float[R] part) => (bool on2, float[S] more) {
        on2 = Identity(on)
        both = Concat<axis = 0>(part, whole)
        most = ReduceMax(both)
        less = Neg(most)
        more = Concat<axis = 0>(part, less)
      }> (trips, "", y)
      least = ReduceMin(inside)
      longer = Concat<axis = 0>(whole, least)
    }> (trips, "", x)
    items = SequenceConstruct(x, grown)
    halved = SequenceMap <body = each (float[C] item) => (float[C] half) {
      others = SequenceMap <body = all (float[D] other) => (float sum) {
        added = Sum(other)
        negative = Abs(added)
        pair = Concat<axis = 0>(negative, item)
        sum = ReduceSum<keepdims = 0>(pair)
      }> (items)
      first = Constant<value = int64 {0}>()
      at = SequenceAt(others, first)
      half = Mul(item, at)
    }> (items)
    halves = ConcatFromSequence<axis = 0>(halved)
    sums = Neg(halves)
  })"),
      {.fuse = false});
  Profile profile;
  session.run({{"x", Tensor::of<float>({1, 2}, {2})},
               {"y", Tensor::of<float>({3, 4, 5}, {3})},
               {"trips", Tensor::scalar<int64_t>(3)}},
              {.profile = &profile});
  int64_t loops = 0, maps = 0;
  for (size_t i = 0; i < profile.steps().size(); ++i) {
    const Profile::Step& step = profile.steps()[i];
    if (step.graph == "inner" && step.operator_name == "Neg")
      loops += profile.runs()[0].steps[i].calls;
    if (step.graph == "all" && step.operator_name == "Abs")
      maps += profile.runs()[0].steps[i].calls;
  }
  EXPECT_EQ(loops, 9);
  EXPECT_EQ(maps, 4);
}

// Sizes inside the body are not those after the last iteration.
TEST(Session, LoopWhoseStateGrowsByARowInEachIteration) {
  const Model model = model_of(
      R"(g (float[P, 2] cache, float[N, 2] x, float[T] times) => (float[L, 2] grown, float[M] sums, int64 count) {
    keep = Constant<value = bool {1}>()
    zero = Constant<value = int64 {0}>()
    shape = Shape(times)
    trips = Squeeze(shape)
    five = Constant<value = int64 {5}>()
    grown, sums = Loop <body = inner (int64 i, bool go, float[K, 2] state) => (bool go_on, float[K2, 2] next, float sum) {
      go_on = Identity(go)
      next = Concat<axis = 0>(state, x)
      sum = ReduceSum<keepdims = 0>(next)
    }> (trips, keep, cache)
    fixed, count = Loop <body = inner2 (int64 i, bool go, float[K, 2] state, int64 k) => (bool go_on, float[K2, 2] next, int64 k2) {
      go_on = Identity(go)
      next = Concat<axis = 0>(state, x)
      k2 = Add(k, five)
    }> (five, keep, cache, zero)
  })");
  for (const bool plain : {false, true}) {
    const Session session(model, {.reference = plain});
    for (const int64_t trips : {3, 0, 5}) {
      Tensor x(ElementType::float32, {2, 2}), cache(ElementType::float32, {1, 2});
      for (float& v : cache.mutable_elements<float>()) v = 0;
      for (float& v : x.mutable_elements<float>()) v = 1;
      const auto outputs = session.run(
          {{"cache", cache}, {"x", x}, {"times", Tensor(ElementType::float32, {trips})}});
      EXPECT_EQ(outputs[0].tensor().shape(), (Shape{1 + 2 * trips, 2}));
      ASSERT_EQ(outputs[1].tensor().shape(), (Shape{trips}));
      for (int64_t i = 0; i < trips; ++i)
        EXPECT_EQ(floats(outputs[1])[static_cast<size_t>(i)], static_cast<float>(4 * (i + 1)));
      EXPECT_EQ(outputs[2].tensor().elements<int64_t>()[0], 25);
    }
  }
}

TEST(Session, SequencesThatBeginEmptyGrowInLoops) {
  const Model model = model_of(
      R"(g (float[N, K] x, int64 trips) => (float[A, B] joined, float[C, D, E] stacked, int64 count) {
    keep = Constant<value = bool {1}>()
    empty = SequenceEmpty()
    first = SequenceInsert(empty, x)
    all = Loop <body = inner (int64 i, bool go, seq(float[]) s) => (bool go_on, seq(float[]) s2) {
      go_on = Identity(go)
      s2 = SequenceInsert(s, x)
    }> (trips, keep, first)
    joined = ConcatFromSequence<axis = 0>(all)
    stacked = ConcatFromSequence<axis = 0, new_axis = 1>(all)
    count = SequenceLength(all)
  })");
  for (const bool plain : {false, true}) {
    const Session session(model, {.reference = plain});
    for (const int64_t trips : {2, 0, 4}) {
      const auto outputs = session.run(
          {{"x", Tensor(ElementType::float32, {2, 3})}, {"trips", Tensor::scalar<int64_t>(trips)}});
      EXPECT_EQ(outputs[0].tensor().shape(), (Shape{2 * (trips + 1), 3}));
      EXPECT_EQ(outputs[1].tensor().shape(), (Shape{trips + 1, 2, 3}));
      EXPECT_EQ(outputs[2].tensor().elements<int64_t>()[0], trips + 1);
    }
  }
}

// A list that a step changes may be what others still read: the caller, a constant of the graph, a
// node behind it, an earlier iteration.
TEST(Session, SequencesThatAreChangedStayWhatTheyAreForOthers) {
  const Model model = model_of(
      R"(g (seq(float[]) s, float[] x, int64 trips) => (int64[7] counts, seq(float[]) grown, seq(float[]) same) {
    keep = Constant<value = bool {1}>()
    longer = SequenceInsert(s, x)
    shorter = SequenceErase(s)
    longest = SequenceInsert(longer, x)
    grown, before = Loop <body = inner (int64 i, bool go, seq(float[]) a, seq(float[]) b) => (bool go_on, seq(float[]) a2, seq(float[]) b2) {
      go_on = Identity(go)
      a2 = SequenceInsert(a, x)
      b2 = Identity(a)
    }> (trips, keep, s, s)
    same = Identity(s)
    c0 = SequenceLength(s)
    c1 = SequenceLength(longer)
    c2 = SequenceLength(shorter)
    c3 = SequenceLength(longest)
    c4 = SequenceLength(grown)
    c5 = SequenceLength(before)
    c6 = SequenceLength(same)
    axis = Constant<value = int64[1] {0}>()
    r0 = Unsqueeze(c0, axis)
    r1 = Unsqueeze(c1, axis)
    r2 = Unsqueeze(c2, axis)
    r3 = Unsqueeze(c3, axis)
    r4 = Unsqueeze(c4, axis)
    r5 = Unsqueeze(c5, axis)
    r6 = Unsqueeze(c6, axis)
    counts = Concat<axis = 0>(r0, r1, r2, r3, r4, r5, r6)
  })");
  Sequence given;
  for (int i = 0; i < 3; ++i) given.items.emplace_back(Tensor::of<float>({1, 2}, {2}));
  const Value s(std::move(given));
  for (const bool plain : {false, true}) {
    const Session session(model, {.reference = plain});
    for (const int64_t trips : {4, 1, 4}) {
      const auto made = session.run(
          {{"s", s}, {"x", Tensor::of<float>({7}, {1})}, {"trips", Tensor::scalar(trips)}});
      const auto counts = made[0].tensor().elements<int64_t>();
      EXPECT_EQ((std::vector<int64_t>(counts.begin(), counts.end())),
                (std::vector<int64_t>{3, 4, 2, 5, 3 + trips, 2 + trips, 3}));
      EXPECT_EQ(made[1].sequence().items.size(), static_cast<size_t>(3 + trips));
      EXPECT_EQ(made[2].sequence().items.size(), 3U);
      EXPECT_EQ(s.sequence().items.size(), 3U);
    }
  }
}

TEST(Session, MemoryForWhatTheRunDecidesIsTakenOnceForItsBound) {
  const Session session(model_of(R"(g (float[N, 16] x, float[N] keep) => (float[M] y) {
    axis = Constant<value = int64 {0}>()
    axis0 = Constant<value = int64[1] {0}>()
    places = NonZero(keep)
    at = Gather(places, axis)
    rows = Gather(x, at)
    sorted = Softmax(rows)
    turned = Transpose<perm = [1, 0]>(sorted)
    sums = CumSum(turned, axis)
    y = ReduceMax<keepdims = 0>(sums, axis0)
  })"));
  const auto run = [&](int64_t kept) {
    Tensor x(ElementType::float32, {1000, 16}), keep(ElementType::float32, {1000});
    for (float& v : x.mutable_elements<float>()) v = 1;
    for (int64_t i = 0; i < 1000; ++i)
      keep.mutable_elements<float>()[static_cast<size_t>(i)] = i < kept ? 1.0f : 0.0f;
    EXPECT_EQ(session.run({{"x", x}, {"keep", keep}})[0].tensor().shape(), (Shape{kept}));
    return session.arena_bytes();
  };
  const int64_t first = run(3);
  EXPECT_EQ(run(700), first);
  EXPECT_EQ(run(1000), first);
  EXPECT_EQ(run(1), first);
}

TEST(Session, IfTakesOneBranch) {
  const Session session(model_of(R"(g (bool c, float[2] x) => (float[] y) {
    y = If (c) <then_branch = t () => (float[2] a) { a = Neg(x) },
                else_branch = e () => (float[4] b) { b = Concat<axis = 0>(x, x) }>
  })"));
  const Tensor x = Tensor::of<float>({1, 2}, {2});
  EXPECT_EQ(floats(session.run({{"c", Tensor::scalar<bool>(true)}, {"x", x}})[0]),
            (std::vector<float>{-1, -2}));
  EXPECT_EQ(floats(session.run({{"c", Tensor::scalar<bool>(false)}, {"x", x}})[0]),
            (std::vector<float>{1, 2, 1, 2}));
}

TEST(Session, FunctionsNestAndTakeAttributes) {
  const std::string text = R"(<ir_version: 10, opset_import: ["" : 21, "own" : 1]>
g (float[2] x) => (float[2] y) { y = own.Outer<slope = 0.5>(x) }
<domain: "own", opset_import: ["" : 21, "own" : 1]>
Outer <slope> (x) => (y) {
  t = own.Inner<alpha: float = @slope>(x)
  y = Add(t, x)
}
<domain: "own", opset_import: ["" : 21]>
Inner <alpha> (x) => (y) { y = LeakyRelu<alpha: float = @alpha>(x) })";
  const Session session(Model::from_text(text));
  EXPECT_EQ(floats(session.run({{"x", Tensor::of<float>({-2, 2}, {2})}})[0]),
            (std::vector<float>{-3, 4}));
}

// Values inside a function, and those of bodies in it, are called what the caller's are.
constexpr std::string_view functions_with_bodies =
    R"(<ir_version: 10, opset_import: ["" : 21, "own" : 1]>
g (float[N] x, bool c) => (float[N] y, float[N] z, float[N] w) {
  y = own.Branches(x, c)
  z = own.Repeats(x)
  w = own.Deep(c, x)
}
<domain: "own", opset_import: ["" : 21]>
Branches (a, test) => (y) {
  y = If (test) <
    then_branch = t () => (float[N] o) { x = Neg(a) o = Add(x, a) },
    else_branch = e () => (float[N] x) <float[1] c = {2}> { x = Mul(a, c) }>
}
<domain: "own", opset_import: ["" : 21]>
Repeats (a) => (y) {
  n = Constant<value = int64 {3}>()
  k = Constant<value = bool {1}>()
  y = Loop (n, k, a) <
    body = b (int64 i, bool go, float[N] x) => (bool go_on, float[N] next) {
      go_on = Identity(go)
      next = Add(x, a)
    }>
}
<domain: "own", opset_import: ["" : 21, "own" : 1]>
Deep (test, a) => (r) {
  r = If (test) <
    then_branch = t () => (float[N] o) {
      x = Neg(a)
      o = If (test) <
        then_branch = tt () => (float[N] c) { c = own.Branches(a, test) },
        else_branch = te () => (float[N] c) { c = Identity(x) }>
    },
    else_branch = e () => (float[N] x) {
      c = Identity(a)
      x = If (test) <
        then_branch = et () => (float[N] y) { y = Neg(c) },
        else_branch = ee () => (float[N] y) { y = Add(c, a) }>
    }>
})";

TEST(Session, NamesInsideFunctionsAreNotTheCallers) {
  const Model model = Model::from_text(std::string(functions_with_bodies));
  for (const bool plain : {false, true}) {
    const Session session(model, {.reference = plain});
    for (const bool c : {true, false}) {
      const auto outputs =
          session.run({{"x", Tensor::of<float>({1, 2}, {2})}, {"c", Tensor::scalar(c)}});
      EXPECT_EQ(floats(outputs[0]), (c ? std::vector<float>{0, 0} : std::vector<float>{2, 4}));
      EXPECT_EQ(floats(outputs[1]), (std::vector<float>{4, 8}));
      EXPECT_EQ(floats(outputs[2]), (c ? std::vector<float>{0, 0} : std::vector<float>{2, 4}));
    }
  }
}

// What an upgrade adds beside the node, the list of axes, is not called what a value there is.
TEST(Session, NamesInsideFunctionsAreNotTaken) {
  const Session session(Model::from_text(R"(<ir_version: 8, opset_import: ["" : 11, "own" : 1]>
g (float[N] x, bool c) => (float[N, 1] y) { y = own.F(x, c) }
<domain: "own", opset_import: ["" : 11]>
F (a, test) => (y) {
  y = If (test) <
    then_branch = t () => (float[N, 1] o) {
      axes__0 = Neg(a)
      o = Unsqueeze<axes = [1]>(axes__0)
    },
    else_branch = e () => (float[N, 1] q) { q = Unsqueeze<axes = [1]>(a) }>
})"));
  const auto outputs =
      session.run({{"x", Tensor::of<float>({1, 2}, {2})}, {"c", Tensor::scalar(true)}});
  EXPECT_EQ(floats(outputs[0]), (std::vector<float>{-1, -2}));
}

TEST(Session, ManyThreadsShareOneSession) {
  const Session session(model_of(add_one), {.threads = 2});
  std::atomic<int> wrong{0};
  std::vector<std::thread> callers;
  for (int t = 0; t < 8; ++t) {
    callers.emplace_back([&, t] {
      for (int64_t i = 0; i < 50; ++i) {
        const int64_t n = 1 + (t + i) % 7;
        Tensor x(ElementType::float32, {n, 2});
        for (float& v : x.mutable_elements<float>()) v = static_cast<float>(t);
        for (const float v : floats(session.run({{"x", x}})[0]))
          wrong += v != static_cast<float>(t) + 1;
      }
    });
  }
  for (std::thread& caller : callers) caller.join();
  EXPECT_EQ(wrong, 0);
}

TEST(Session, CancelAndDeadlineStopARun) {
  const Session session(model_of(loop_model));
  const std::vector<NamedValue> inputs = {{"trips", Tensor::scalar<int64_t>(1'000'000'000)},
                                          {"x", Tensor::of<float>({0, 0}, {2})},
                                          {"step", Tensor::of<float>({1, 1}, {2})}};
  std::atomic<bool> cancel{true};
  RunOptions cancelled;
  cancelled.cancel = &cancel;
  message_of([&] { session.run(inputs, cancelled); }, ErrorCode::cancelled);
  RunOptions late;
  late.deadline = std::chrono::steady_clock::now() + std::chrono::milliseconds(20);
  message_of([&] { session.run(inputs, late); }, ErrorCode::cancelled);
  const Session constant(model_of("g () => (float[1] y) { y = Constant<value_floats = [1.0]>() }"));
  message_of([&] { constant.run({}, cancelled); }, ErrorCode::cancelled);  // has no step
}

TEST(Session, MemoryLimitHolds) {
  const Session session(
      model_of("g (float[N] x) => (float[N, N] y) { axes = Constant<value = int64[1] {1}>() c = "
               "Unsqueeze(x, axes) y = Mul(c, x) }"));
  RunOptions options;
  options.memory_limit = 1 << 20;
  message_of(
      [&] {
        session.run({{"x", Tensor(ElementType::float32, {2000})}}, options);
      },
      ErrorCode::out_of_memory);
  EXPECT_EQ(session.run({{"x", Tensor::of<float>({2, 3}, {2})}}, options)[0].tensor().size(), 4);
}

TEST(Session, AllOutputsAndSteps) {
  const Session session(model_of("g (float[2] x) => (float[2] y) { t = Relu(x) y = Neg(t) }"),
                        {.all_outputs = true});
  ASSERT_EQ(session.outputs().size(), 2u);
  EXPECT_EQ(session.outputs()[1].name, "t");
  EXPECT_EQ(session.steps().size(), 2u);
}

// A weight that folding makes: only sessions that share their plan can share its pack.
TEST(Session, SessionsOfOneModelShareWhatTheyPack) {
  const Model model = model_of(
      "g (float[N, 2] x) => (float[N, 2] y) { w = Constant<value = float[2, 2] {1, 2, 3, 4}>() v = "
      "Mul(w, w) y = MatMul(x, v) }");
  const Tensor x = Tensor::of<float>({1, 1}, {1, 2});
  const Session first(model, {.threads = 1});
  EXPECT_EQ(floats(first.run({{"x", x}})[0]), (std::vector<float>{10, 20}));
  const int64_t packed = first.packed_bytes();
  EXPECT_GT(packed, 0);
  const Session second(model, {.threads = 2});
  EXPECT_EQ(floats(second.run({{"x", x}})[0]), (std::vector<float>{10, 20}));
  EXPECT_EQ(floats(first.run({{"x", x}})[0]), (std::vector<float>{10, 20}));
  EXPECT_EQ(second.packed_bytes(), packed);
}

TEST(Session, SessionsOfOneModelWithOtherOptionsHavePlansOfTheirOwn) {
  const Model model = model_of("g (float[2] x) => (float[2] y) { t = Relu(x) y = Neg(t) }");
  const Session fused(model), apart(model, {.fuse = false}), all(model, {.all_outputs = true}),
      plain(model, {.reference = true});
  EXPECT_EQ(fused.steps().size(), 1u);
  EXPECT_EQ(apart.steps().size(), 2u);
  EXPECT_EQ(all.outputs().size(), 2u);
  EXPECT_EQ(plain.steps().size(), 0u);
  const Tensor x = Tensor::of<float>({-1, 2}, {2});
  for (const Session* session : {&fused, &apart, &all, &plain})
    EXPECT_EQ(floats(session->run({{"x", x}})[0]), (std::vector<float>{0, -2}));
}

// All want the same two plans at the same time.
TEST(Session, ManyThreadsMakeSessionsOfOneModel) {
  const Model model = model_of(
      "g (float[2] x, float[2] w) => (float[2] y) <float[2] w = {2, 3}> { v = Mul(w, w) y = Mul(x, "
      "v) }");
  const Tensor x = Tensor::of<float>({1, 1}, {2}), w = Tensor::of<float>({1, 2}, {2});
  std::vector<std::thread> threads;
  std::atomic<int> right = 0;
  for (int i = 0; i < 8; ++i) {
    threads.emplace_back([&] {
      const Session session(model, {.threads = 1});
      if (floats(session.run({{"x", x}})[0]) == std::vector<float>{4, 9}) ++right;
      if (floats(session.run({{"x", x}, {"w", w}})[0]) == std::vector<float>{1, 4}) ++right;
    });
  }
  for (std::thread& thread : threads) thread.join();
  EXPECT_EQ(right, 16);
}

TEST(Session, AModelThatCannotRunIsRefusedEachTime) {
  const Model model = model_of("g (float[2] x) => (float[2] y) { y = Unheard(x) }");
  for (int i = 0; i < 2; ++i) EXPECT_THROW(Session{model}, Error);
}

TEST(Session, OperatorSetDocumentsGiveBodies) {
  const test::ScratchFolder folder;
  const std::string path = folder / "twice.json";
  std::ofstream(path) << R"({"magic": "ONNXOPSET", "irVersion": "9", "domain": "org.example",
    "opsetVersion": "1", "operator": [{"opType": "Opaque", "sinceVersion": "1", "status": "STABLE"}],
    "functions": [{"name": "Twice", "domain": "org.example", "input": ["a"], "output": ["b"],
                   "opsetImport": [{"domain": "", "version": "21"}],
                   "node": [{"input": ["a", "a"], "output": ["b"], "opType": "Add"}]}]})";
  const auto text = [](const std::string& op) {
    return R"(<ir_version: 10, opset_import: ["" : 21, "org.example" : 1]>
      g (float[2] x) => (float[2] y) { y = org.example.)" +
           op + " (x) }";
  };
  LoadOptions options;
  options.operator_sets = {path};
  const Model model = Model::from_text(text("Twice"), options);
  Tensor x(ElementType::float32, {2});
  for (float& v : x.mutable_elements<float>()) v = 3;
  EXPECT_EQ(floats(Session(model).run({{"x", x}})[0]), (std::vector<float>{6, 6}));
  EXPECT_FALSE(infer_types(model).has_errors());
  EXPECT_NE(message_of([&] { const Session session(Model::from_text(text("Twice"))); },
                       ErrorCode::unsupported)
                .find("org.example"),
            std::string::npos);
  message_of([&] { const Session session(Model::from_text(text("Opaque"), options)); },
             ErrorCode::unsupported);
  message_of([&] { Model::from_text(text("Twice"), {.operator_sets = {path + ".absent"}}); },
             ErrorCode::unreadable);
  std::filesystem::remove(path);
}

}  // namespace
}  // namespace sardonyx
