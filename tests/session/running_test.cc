// What runs of a session share and what bounds them: random numbers, memory, variants of the plan.
#include <fmt/format.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <memory>
#include <span>
#include <thread>

#include "run/arena.h"
#include "sardonyx/session.h"
#include "wire/text_parse.h"
#include "wire/write.h"

namespace sardonyx {
namespace {

Model model_of(const std::string& body) {
  return Model::from_text("<ir_version: 10, opset_import: [\"\" : 21]>\n" + body);
}

std::vector<float> floats(const Value& value) {
  const auto elements = value.tensor().elements<float>();
  return {elements.begin(), elements.end()};
}

TEST(NestedGraphs, ConstantsStandAmongTheInputsUpToIrVersion3) {
  const Model model = Model::from_text(R"(<ir_version: 3, opset_import: ["" : 8]>
    g (bool c, float[2] x) => (float[2] y) {
      y = If (c) <
        then_branch = t (float[2] k) => (float[2] v) <float[2] k = {1, 2}> { v = Add (x, k) },
        else_branch = e () => (float[2] v) { v = Neg (x) }
      >
    })");
  for (const bool plain : {false, true}) {
    const Session session(model, {.reference = plain});
    const auto y =
        session.run({{"c", Tensor::scalar<bool>(true)}, {"x", Tensor::of<float>({10, 20}, {2})}});
    EXPECT_EQ(floats(y[0]), (std::vector<float>{11, 22}));
  }
}

// Plain evaluation gives up what nothing reads any more, in graphs of many nodes.
TEST(NestedGraphs, ReadOfManyNodesWhatIsNotMadeByThem) {
  std::string nodes = "v0 = Neg (x)\n";
  for (int i = 1; i < 100; ++i) {
    nodes += fmt::format(R"(v{} = If (c) <
        then_branch = t () => (float[2] a) {{ a = Add (v{}, an_input_with_a_long_name_{}) }},
        else_branch = e () => (float[2] b) {{ b = Add (v0, an_input_with_a_long_name_{}) }}
      >
      )",
                         i, i - 1, i % 7, i % 7);
  }
  std::string inputs;
  std::vector<NamedValue> values{{"c", Tensor::scalar<bool>(true)},
                                 {"x", Tensor::of<float>({10, 20}, {2})}};
  for (int i = 0; i < 7; ++i) {
    inputs += fmt::format(", float[2] an_input_with_a_long_name_{}", i);
    values.push_back(
        {fmt::format("an_input_with_a_long_name_{}", i), Tensor::of<float>({1, 0}, {2})});
  }
  const Model model =
      model_of("g (bool c, float[2] x" + inputs + ") => (float[2] v99) { " + nodes + " }");
  for (const bool plain : {false, true})
    EXPECT_EQ(floats(Session(model, {.reference = plain}).run(values)[0]),
              (std::vector<float>{89, -20}));
}

// A product with a matrix of ones, and where those lie in the file (smaller ones would be copied
// from odd addresses).
struct ModelInMemory {
  std::string bytes;
  size_t weights;
};

ModelInMemory product_in_memory() {
  const std::vector<float> ones(160 * 160, 1.0f);
  const std::string raw(reinterpret_cast<const char*>(ones.data()), ones.size() * sizeof(float));
  ir::Model model = wire::parse_model(R"(<ir_version: 10, opset_import: ["" : 21]>
    g (float[n, 160] x) => (float[n, 160] y) { y = MatMul (x, w) })");
  ir::TensorProto& w = model.graph->initializers.emplace_back();
  w.name = "w", w.dims = {160, 160}, w.data_type = 1;
  w.has_raw_data = true, w.raw_data = Bytes::copy_of(std::as_bytes(std::span(raw)));
  ModelInMemory made{wire::write_model(model), 0};
  made.weights = made.bytes.find(raw);
  return made;
}

TEST(PackEarly, ReadsWeightsWhenTheSessionIsMadeOtherwiseTheFirstRunDoes) {
  const std::vector<NamedValue> inputs = {
      {"x", Tensor::of<float>(std::vector<float>(160, 1), {1, 160})}};
  for (const bool early : {false, true}) {
    ModelInMemory file = product_in_memory();
    const Model model(file.bytes.data(), file.bytes.size(), "", std::make_shared<int>(0));
    const Session session(model, {.prepack = early});
    EXPECT_GT(session.packed_bytes(), 0);
    std::fill_n(file.bytes.begin() + static_cast<ptrdiff_t>(file.weights), 160 * 160 * 4, '\0');
    EXPECT_EQ(floats(session.run(inputs)[0])[0], early ? 160 : 0);
    // Packed once: what stands in the file by now is of no interest.
    std::fill_n(file.bytes.begin() + static_cast<ptrdiff_t>(file.weights), 160 * 160 * 4, '\1');
    EXPECT_EQ(floats(session.run(inputs)[0])[0], early ? 160 : 0);
  }
}

const std::string random_model = R"(g (int64 trips, int64[R] shape) => (a, b, c) {
  keep = Constant<value = bool {1}>()
  a = RandomNormal<shape = [4]>()
  first, b = Loop(trips, keep, a) <body = body (int64 i, bool go, float[4] state) => (
      bool go_on, float[4] next, float[4] drawn) {
    go_on = Identity(go)
    drawn = RandomUniform<shape = [4]>()
    next = Add(state, drawn)
  }>
  zero = Constant<value = float {0.0}>()
  open = Expand(zero, shape)
  c = RandomUniformLike(open)
})";

TEST(RandomNumbers, GoOnFromRunToRunHoweverTheyAreRun) {
  const Model model = model_of(random_model);
  const Session planned(model, {.seed = 5}), plain(model, {.reference = true, .seed = 5}),
      other(model, {.seed = 6});
  const std::vector<NamedValue> inputs = {{"trips", Tensor::scalar<int64_t>(3)},
                                          {"shape", Tensor::of<int64_t>({2, 2}, {2})}};
  std::vector<std::vector<float>> before(3);
  for (int run = 0; run < 3; ++run) {
    const auto x = planned.run(inputs), y = plain.run(inputs), z = other.run(inputs);
    for (size_t i = 0; i < x.size(); ++i) {
      EXPECT_EQ(floats(x[i]), floats(y[i])) << "output " << i << ", run " << run;
      EXPECT_NE(floats(x[i]), floats(z[i]));
      EXPECT_NE(floats(x[i]), before[i]);  // another part of the stream
      before[i] = floats(x[i]);
    }
    const auto drawn = floats(x[1]);  // each trip draws anew
    ASSERT_EQ(drawn.size(), 12u);
    EXPECT_NE(std::vector<float>(drawn.begin(), drawn.begin() + 4),
              std::vector<float>(drawn.begin() + 4, drawn.begin() + 8));
  }
}

std::string error_of(const Session& session, const std::vector<NamedValue>& inputs, int64_t limit) {
  RunOptions options;
  options.memory_limit = limit;
  try {
    session.run(inputs, options);
  } catch (const Error& error) {
    EXPECT_EQ(error.code(), ErrorCode::out_of_memory) << error.what();
    return error.what();
  }
  return {};
}

TEST(MemoryLimit, CountsWorkingMemory) {
  const Session session(model_of(R"(g (float[N] x) => (float[1] y) {
    axes = Constant<value = int64[1] {1}>()
    c = Unsqueeze(x, axes)
    square = Mul(c, x)
    more = Exp(square)
    y = ReduceSum<keepdims = 0>(more)
  })"));
  const std::vector<NamedValue> inputs = {{"x", Tensor(ElementType::float32, {1000})}};
  EXPECT_NE(error_of(session, inputs, 1 << 20), "");
  EXPECT_EQ(error_of(session, inputs, 16 << 20), "");
  EXPECT_NE(error_of(session, inputs, 1 << 20), "");  // also what an earlier run left
}

const std::string busy_loop = R"(g (int64 trips, float[N] x) => (float[N] y) {
  keep = Constant<value = bool {1}>()
  y = Loop(trips, keep, x) <body = body (int64 i, bool go, float[N] state) => (
      bool go_on, float[N] next) {
    go_on = Identity(go)
    e = Tanh(state)
    next = Add(e, x)
  }>
})";

TEST(MemoryLimit, IterationsGiveBackWhatTheyTook) {
  for (const bool plain : {false, true}) {
    const Session session(model_of(busy_loop), {.reference = plain});
    const std::vector<NamedValue> inputs = {{"trips", Tensor::scalar<int64_t>(1000)},
                                            {"x", Tensor(ElementType::float32, {25'000})}};
    EXPECT_EQ(error_of(session, inputs, 2 << 20), "") << plain;  // 0.1 MB a trip
    EXPECT_NE(error_of(session, inputs, 50'000), "") << plain;
  }
}

TEST(MemoryLimit, ScanOutputsAddUp) {
  for (const bool plain : {false, true}) {
    const Session session(model_of(R"(g (int64 trips, float[N] x) => (float[T, N] y) {
      keep = Constant<value = bool {1}>()
      y = Loop(trips, keep) <body = body (int64 i, bool go) => (bool go_on, float[N] piece) {
        go_on = Identity(go)
        piece = Tanh(x)
      }>
    })"),
                          {.reference = plain});
    const std::vector<NamedValue> inputs = {{"trips", Tensor::scalar<int64_t>(1000)},
                                            {"x", Tensor(ElementType::float32, {2'500})}};
    EXPECT_NE(error_of(session, inputs, 5 << 20), "") << plain;  // 10 MB in all
    EXPECT_EQ(error_of(session, inputs, 64 << 20), "") << plain;
  }
}

// Six inputs with defaults 1, 2, 4 …; the output is their sum.
Model model_with_defaults() {
  std::string inputs, sum = "x", nodes;
  for (int i = 0; i < 6; ++i) {
    inputs += fmt::format(", float d{} = {{{}.0}}", i, 1 << i);
    nodes += fmt::format("  s{0} = Add({1}, d{0})\n", i, sum);
    sum = fmt::format("s{}", i);
  }
  return model_of("g (float x" + inputs + ") => (float " + sum + ") {\n" + nodes + "}");
}

TEST(Variants, AnyChoiceOfDefaultsRuns) {
  const Model model = model_with_defaults();
  const Session session(model);
  ASSERT_EQ(session.inputs().size(), 7u);
  const auto check = [&](int chosen) {
    std::vector<NamedValue> inputs = {{"x", Tensor::scalar<float>(100)}};
    float expected = 100;
    for (int i = 0; i < 6; ++i) {
      const bool overridden = (chosen >> i) & 1;
      if (overridden) inputs.emplace_back(fmt::format("d{}", i), Tensor::scalar<float>(1000));
      expected += overridden ? 1000 : static_cast<float>(1 << i);
    }
    EXPECT_EQ(floats(session.run(inputs)[0]), std::vector<float>{expected}) << chosen;
  };
  for (int round = 0; round < 2; ++round) {
    for (int chosen = 0; chosen < 64; ++chosen) check(chosen);
  }
  std::vector<std::thread> threads;
  for (int t = 0; t < 4; ++t) {
    threads.emplace_back([&, t] {
      for (int i = 0; i < 64; ++i) check((i * 7 + t) % 8);
    });
  }
  for (std::thread& thread : threads) thread.join();
}

// A trip count of no elements would make a loop that never ends.
TEST(Loops, CountsAndConditionsHoldOneElement) {
  const Model model = model_of(R"(g (int64[T] trips, bool[C] keep, float[2] x) => (float[2] y) {
    y = Loop(trips, keep, x) <body = b (int64 i, bool go, float[2] state) => (
        bool go_on, float[2] next) { go_on = Identity(go)
      next = Add(state, state) }>
  })");
  const Value x = Tensor::of<float>({1, 2}, {2});
  const auto integers = [](int64_t n) { return Tensor(ElementType::int64, {n}); };
  for (const bool plain : {false, true}) {
    const Session session(model, {.reference = plain});
    const auto run = [&](Tensor trips, Tensor keep) {
      return session.run({{"trips", trips}, {"keep", keep}, {"x", x}});
    };
    EXPECT_EQ(floats(run(Tensor::of<int64_t>({2}, {1}), Tensor::of<bool>({true}, {1}))[0]),
              (std::vector<float>{4, 8}));
    EXPECT_THROW(run(integers(0), Tensor::of<bool>({true}, {1})), Error);
    EXPECT_THROW(run(integers(2), Tensor::of<bool>({true}, {1})), Error);
    EXPECT_THROW(run(Tensor::of<int64_t>({2}, {1}), Tensor(ElementType::boolean, {0})), Error);
  }
}

TEST(LateSteps, ShareTheMemoryOfTheirInputs) {
  const std::string text = R"(g (float[N, M] x, int64[2] shape) => (float[A, B] y, float[C, D] z) {
    one = Constant<value = float {1.0}>()
    t = Add(x, one)
    r = Reshape(t, shape)
    y = Mul(r, r)
    u = Mul(x, x)
    v = Reshape(u, shape)
    w = Exp(x)
    z = Identity(v)
    q = Add(y, z)
  })";
  for (const bool plain : {false, true}) {
    const Session session(model_of(text), {.reference = plain});
    for (const std::vector<int64_t>& shape :
         {std::vector<int64_t>{3, 2}, {1, 6}, {2, -1}, {6, 1}, {3, 2}}) {
      const auto outputs = session.run({{"x", Tensor::of<float>({1, 2, 3, 4, 5, 6}, {2, 3})},
                                        {"shape", Tensor::of<int64_t>(shape, {2})}});
      EXPECT_EQ(floats(outputs[0]), (std::vector<float>{4, 9, 16, 25, 36, 49}));
      EXPECT_EQ(floats(outputs[1]), (std::vector<float>{1, 4, 9, 16, 25, 36}));
      EXPECT_EQ(outputs[1].tensor().shape()[0], shape[0]);
    }
    EXPECT_THROW(session.run({{"x", Tensor::of<float>({1, 2, 3, 4, 5, 6}, {2, 3})},
                              {"shape", Tensor::of<int64_t>({2, 2}, {2})}}),
                 Error);
  }
}

// Range's size is known when it runs; Compress makes its own output.
TEST(LateSteps, FillOutputsWhereTheyLieAndTakeBackMemory) {
  const Model model = model_of(R"(g (int64 n, bool[k] keep) => (int64[m] y, int64[c] some) {
    zero = Constant <value = int64 {0}> ()
    one = Constant <value = int64 {1}> ()
    y = Range (zero, n, one)
    some = Compress (y, keep)
  })");
  const Session session(model);
  constexpr int64_t n = 100'000;  // large enough to be kept
  Tensor keep(ElementType::boolean, {n});
  std::fill_n(static_cast<uint8_t*>(keep.mutable_data()), n, uint8_t{1});
  const std::vector<Value> inputs{Tensor::scalar<int64_t>(n), keep};
  std::vector<Value> outputs(2);
  session.run(inputs, outputs);
  const auto expect_counted = [&] {
    for (const Value& output : outputs) {
      const auto found = output.tensor().elements<int64_t>();
      ASSERT_EQ(found.size(), static_cast<size_t>(n));
      EXPECT_EQ(found[0], 0);
      EXPECT_EQ(found[n - 1], n - 1);
    }
  };
  expect_counted();
  const void* places[] = {outputs[0].tensor().data(), outputs[1].tensor().data()};
  session.run(inputs, outputs);  // into the same tensors
  expect_counted();
  EXPECT_EQ(outputs[0].tensor().data(), places[0]);
  EXPECT_EQ(outputs[1].tensor().data(), places[1]);
  outputs = std::vector<Value>(2);
  session.run(inputs, outputs);  // into what the caller let go of
  expect_counted();
  EXPECT_EQ(outputs[0].tensor().data(), places[0]);
  Tensor given(ElementType::int64, {3});
  outputs[0] = given;  // of another shape: made new
  session.run(inputs, outputs);
  expect_counted();
  // A caller's own memory, which nobody owns.
  std::vector<int64_t> memory(n);
  outputs[0] = Tensor::view(ElementType::int64, {n}, memory.data(), n * sizeof(int64_t));
  session.run(inputs, outputs);
  EXPECT_EQ(outputs[0].tensor().data(), memory.data());
  expect_counted();
}

TEST(Arena, WhatCannotBeAddressedIsRefused) {
  run::ArenaLayout layout;
  constexpr int64_t block = int64_t{1} << 60;
  for (int i = 0; i < 7; ++i) EXPECT_EQ(layout.take(block), i * block);
  EXPECT_THROW(layout.take(block), Error);
  run::ArenaLayout growing;
  for (int i = 0; i < 7; ++i) growing.take(block);
  growing.give(6 * block, block);  // the stretch at the end grows beyond what there is
  EXPECT_THROW(growing.take(2 * block), Error);
}

}  // namespace
}  // namespace sardonyx
