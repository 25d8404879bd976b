// Many callers of few sessions: what they share must neither mix nor race. ./dev tsan runs this
// under ThreadSanitizer.
#include <fmt/format.h>
#include <gtest/gtest.h>

#include <atomic>
#include <chrono>
#include <cstring>
#include <set>
#include <thread>

#include "sardonyx/profile.h"
#include "sardonyx/session.h"

namespace sardonyx {
namespace {

// `count` small numbers as the textual syntax writes them.
std::string numbers(int count) {
  std::string text;
  for (int i = 0; i < count; ++i)
    text += fmt::format("{}{:.3f}", i == 0 ? "" : ", ", 0.25 * ((i * 7919 % 201) - 100) / 100);
  return text;
}

// Products and convolutions with constant weights, of floats and of bytes, rows, regions, a loop, a
// branch and sizes that the run decides.
Model mixed_model() {
  return Model::from_text(fmt::format(R"(<ir_version: 10, opset_import: ["" : 21]>
    mixed (float[n,32] x, float[1,8,s,s] picture, int64 trips, bool up, float[32] shift)
        => (float[n,32] y, float[1,8,s,s] z, uint8[1,8,s,s] q, int64[2,k] places)
      <float[32,32] w = {{{}}}, float[32] scale = {{{}}}, float[8,8,3,3] kernel = {{{}}}, float[32] shift = {{{}}},
       float step = {{0.125}}, uint8 middle = {{128}}, int8 none = {{0}}> {{
      go = Constant <value = bool {{1}}> ()
      h = MatMul (x, w)
      g = Gelu (h)
      added = Add (g, shift)
      rows = LayerNormalization (added, scale)
      last = Loop (trips, go, rows) <body = body (int64 i, bool c, float[n,32] v) => (bool d, float[n,32] u) {{
        d = Identity (c)
        t = MatMul (v, w)
        u = Softmax (t)
      }}>
      y = If (up) <
        then_branch = rise () => (float[n,32] a) {{ e = Exp (last)  a = Add (e, x) }},
        else_branch = fall () => (float[n,32] b) {{ b = Mul (last, x) }}>
      zero = Constant <value = float {{0.0}}> ()
      above = Greater (x, zero)
      places = NonZero (above)
      c = Conv <pads = [1, 1, 1, 1]> (picture, kernel)
      z = Relu (c)
      bytes = QuantizeLinear (picture, step, middle)
      weights = QuantizeLinear (kernel, step, none)
      q = QLinearConv <pads = [1, 1, 1, 1]> (bytes, step, middle, weights, step, none, step, middle)
    }})",
                                      numbers(32 * 32), numbers(32), numbers(8 * 8 * 9),
                                      numbers(32)));
}

std::vector<NamedValue> inputs_for(int64_t n, int64_t s, int64_t trips, bool up) {
  Tensor x(ElementType::float32, {n, 32}), picture(ElementType::float32, {1, 8, s, s});
  int i = 0;
  for (float& v : x.mutable_elements<float>()) v = static_cast<float>(++i % 23 - 11) / 8;
  for (float& v : picture.mutable_elements<float>()) v = static_cast<float>(++i % 17 - 8) / 4;
  return {{"x", x},
          {"picture", picture},
          {"trips", Tensor::scalar<int64_t>(trips)},
          {"up", Tensor::scalar<bool>(up)}};
}

std::vector<NamedValue> inputs_of(int turn) {
  return inputs_for(1 + turn % 5 * 20, 3 + turn % 3 * 9, turn % 4, turn % 2 == 0);
}
constexpr int different_inputs = 60;

bool same_bytes(const std::vector<Value>& a, const std::vector<Value>& b) {
  if (a.size() != b.size()) return false;
  for (size_t i = 0; i < a.size(); ++i) {
    const Tensor &x = a[i].tensor(), &y = b[i].tensor();
    if (x.shape() != y.shape() || std::memcmp(x.data(), y.data(), x.byte_size()) != 0) return false;
  }
  return true;
}

void together(int count, const auto& body) {
  std::vector<std::thread> threads;
  for (int i = 0; i < count; ++i) threads.emplace_back([&, i] { body(i); });
  for (std::thread& thread : threads) thread.join();
}

class Sessions : public testing::Test {
 protected:
  Model model = mixed_model();
  std::vector<std::vector<Value>> expected;  // by one thread, one after the other

  void SetUp() override {
    const Session session(model, {.threads = 1});
    for (int turn = 0; turn < different_inputs; ++turn)
      expected.push_back(session.run(inputs_of(turn)));
  }
};

TEST_F(Sessions, GiveEachCallerItsOwnResult) {
  // Fewer than the threads share these, more run alone, as many do now one and now the other.
  const Session session(model, {.threads = 3});
  for (const int callers : {2, 3, 8}) {
    std::atomic<int> wrong{0};
    together(callers, [&](int caller) {
      for (int i = 0; i < 40; ++i) {
        const int turn = (caller * 11 + i) % different_inputs;
        wrong += !same_bytes(session.run(inputs_of(turn)), expected[static_cast<size_t>(turn)]);
      }
    });
    EXPECT_EQ(wrong, 0) << callers << " callers";
  }
}

// A run that is under way keeps the other thread of two busy: steps are cut for one thread in
// memory that was bound for two.
TEST_F(Sessions, HaveTheSameResultsBesideARunThatDoesNotEnd) {
  const Session session(model, {.threads = 2});
  std::atomic<bool> cancel{false};
  std::thread other([&] {
    RunOptions options;
    options.cancel = &cancel;
    EXPECT_THROW(session.run(inputs_for(1, 3, 1'000'000'000, true), options), Error);
  });
  int wrong = 0;
  for (int turn = 0; turn < different_inputs; ++turn)
    wrong += !same_bytes(session.run(inputs_of(turn)), expected[static_cast<size_t>(turn)]);
  cancel = true;
  other.join();
  EXPECT_EQ(wrong, 0);
}

TEST_F(Sessions, OfOneModelAndOneSetOfThreadsComeAndGo) {
  const Threads threads(3);
  std::atomic<int> wrong{0};
  together(6, [&](int caller) {
    for (int i = 0; i < 6; ++i) {
      const Session session(model, {.shared_threads = threads});
      for (int k = 0; k < 5; ++k) {
        const int turn = (caller * 7 + i * 5 + k) % different_inputs;
        wrong += !same_bytes(session.run(inputs_of(turn)), expected[static_cast<size_t>(turn)]);
      }
    }
  });
  EXPECT_EQ(wrong, 0);
}

TEST_F(Sessions, MakePlansForOverriddenDefaultsOnce) {
  const Session session(model, {.threads = 2});
  Tensor shift(ElementType::float32, {32});
  for (float& v : shift.mutable_elements<float>()) v = 0.5f;
  auto inputs = inputs_of(4);
  inputs.push_back({"shift", shift});
  const auto wanted = Session(model, {.threads = 1}).run(inputs);
  std::atomic<int> wrong{0};
  together(8, [&](int caller) {
    for (int i = 0; i < 20; ++i) {
      const bool overridden = (caller + i) % 2 == 0;
      wrong += !same_bytes(session.run(overridden ? inputs : inputs_of(4)),
                           overridden ? wanted : expected[4]);
    }
  });
  EXPECT_EQ(wrong, 0);
}

TEST_F(Sessions, StopOneRunAndNoOther) {
  const Session session(model, {.threads = 2});
  std::atomic<bool> cancel{false};
  std::atomic<int> wrong{0}, stopped{0};
  together(5, [&](int caller) {
    if (caller == 0) {
      std::this_thread::sleep_for(std::chrono::milliseconds(20));
      cancel = true;
    } else if (caller < 3) {
      RunOptions options;
      options.cancel = &cancel;
      try {
        session.run(inputs_for(16, 3, 1'000'000'000, true), options);
      } catch (const Error& error) {
        stopped += error.code() == ErrorCode::cancelled;
      }
    } else {
      for (int turn = 0; turn < 30; ++turn)
        wrong += !same_bytes(session.run(inputs_of(turn)), expected[static_cast<size_t>(turn)]);
    }
  });
  EXPECT_EQ(stopped, 2);
  EXPECT_EQ(wrong, 0);
}

TEST_F(Sessions, FillAProfileForEachCaller) {
  const Session session(model, {.threads = 3});
  std::atomic<int> wrong{0};
  together(4, [&](int caller) {
    Profile profile;
    RunOptions options;
    options.profile = &profile;
    for (int i = 0; i < 20; ++i) {
      const int turn = (caller * 13 + i) % different_inputs;
      wrong +=
          !same_bytes(session.run(inputs_of(turn), options), expected[static_cast<size_t>(turn)]);
    }
    wrong += profile.runs().size() != 20;
    for (const Profile::Run& run : profile.runs()) {
      int64_t inside = 0;
      for (const Profile::Sum& sum : run.steps) inside += sum.nanoseconds - sum.inside_nanoseconds;
      wrong += inside <= 0 || inside > run.end - run.begin;
    }
    for (const Profile::Event& event : profile.events()) {
      const Profile::Run& run = profile.runs()[static_cast<size_t>(event.run)];
      wrong += event.begin < run.begin || event.end > run.end || event.begin > event.end;
      wrong += event.thread < 0 || event.thread > 2;
    }
  });
  EXPECT_EQ(wrong, 0);
}

TEST(RandomSteps, GiveEachOfManyRunsOtherNumbers) {
  const Session session(Model::from_text(R"(<ir_version: 10, opset_import: ["" : 21]>
    g () => (float[4] y) { y = RandomUniform <shape = [4]> () })"),
                        {.threads = 2});
  constexpr int callers = 6, runs = 50;
  std::vector<std::vector<float>> firsts(callers);
  together(callers, [&](int caller) {
    for (int i = 0; i < runs; ++i) {
      const auto made = session.run({});
      firsts[static_cast<size_t>(caller)].push_back(made[0].tensor().elements<float>()[0]);
    }
  });
  std::set<float> all;
  for (const auto& some : firsts) all.insert(some.begin(), some.end());
  EXPECT_GT(all.size(), static_cast<size_t>(callers * runs * 95 / 100));
}

// Each size decides other branches: plans are made, found and replaced while others run theirs.
TEST(SpecializedPlans, AreMadeOnceForManyCallers) {
  std::string nodes =
      "axis = Constant <value = int64[1] {1}> ()\n n = Shape <start = 0, end = 1> (x)\n";
  std::string last = "x";
  for (int i = 1; i <= 12; ++i) {
    nodes += fmt::format(R"(k{0} = Constant <value = int64[1] {{{0}}}> ()
      c{0} = Equal (n, k{0})
      s{0} = If (c{0}) <
        then_branch = t () => (float[n] p) {{ p = Squeeze (x, axis) }},
        else_branch = e () => (float[n, m] o) {{ o = Neg ({1}) }}>
      )",
                         i, last);
    last = fmt::format("s{}", i);
  }
  const Session session(Model::from_text("<ir_version: 10, opset_import: [\"\" : 21]>\n"
                                         "g (float[n, 1] x) => (float[a] y) {\n" +
                                         nodes + "y = Exp (" + last + ")\n}"),
                        {.threads = 2});
  std::atomic<int> wrong{0};
  std::vector<std::thread> callers;
  for (int t = 0; t < 6; ++t) {
    callers.emplace_back([&, t] {
      for (int i = 0; i < 60; ++i) {
        const int64_t n = 1 + (i / 2 + t / 2) % 13;
        Tensor x(ElementType::float32, {n, 1});
        for (float& v : x.mutable_elements<float>()) v = 0;
        const std::vector<Value> made = session.run({{"x", x}});
        const Shape wanted = n == 13 ? Shape{n, 1} : Shape{n};
        wrong += made[0].tensor().shape() != wanted || made[0].tensor().elements<float>()[0] != 1;
      }
    });
  }
  for (std::thread& caller : callers) caller.join();
  EXPECT_EQ(wrong, 0);
}

}  // namespace
}  // namespace sardonyx
