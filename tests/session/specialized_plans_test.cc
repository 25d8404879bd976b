// Plans for what the sizes of a run decide: If on a size, inputs without a rank, shapes of any
// length.
#include <gtest/gtest.h>

#include <algorithm>
#include <cstring>
#include <thread>

#include "infer/evaluations.h"
#include "sardonyx/profile.h"
#include "sardonyx/session.h"

namespace sardonyx {
namespace {

Model model_of(const std::string& body) {
  return Model::from_text("<ir_version: 10, opset_import: [\"\" : 21]>\n" + body);
}

Tensor filled(Shape shape) {
  Tensor tensor(ElementType::float32, std::move(shape));
  float next = -0.7f;
  for (float& v : tensor.mutable_elements<float>()) v = next = next > 0.7f ? -0.7f : next + 0.13f;
  return tensor;
}

Tensor list(std::vector<int64_t> values) {
  Tensor tensor(ElementType::int64, {static_cast<int64_t>(values.size())});
  std::ranges::copy(values, tensor.mutable_elements<int64_t>().begin());
  return tensor;
}

using Inputs = std::vector<NamedValue>;

void expect_same(const std::vector<Value>& made, const std::vector<Value>& wanted) {
  ASSERT_EQ(made.size(), wanted.size());
  for (size_t i = 0; i < made.size(); ++i) {
    ASSERT_EQ(made[i].tensor().shape(), wanted[i].tensor().shape()) << i;
    const auto a = made[i].tensor().elements<float>(), b = wanted[i].tensor().elements<float>();
    for (size_t e = 0; e < a.size(); ++e) ASSERT_NEAR(a[e], b[e], 1e-5) << i << ": " << e;
  }
}

// A session beside plain evaluation.
class Both {
 public:
  explicit Both(const Model& model) : planned_(model), plain_(model, {.reference = true}) {}
  void run(const Inputs& inputs) const { expect_same(planned_.run(inputs), plain_.run(inputs)); }
  const Session& planned() const { return planned_; }

 private:
  Session planned_, plain_;
};

bool is_planned(const std::vector<StepDescription>& steps) {
  return std::ranges::none_of(steps,
                              [](const auto& step) { return step.kernel == "evaluated plainly"; });
}

int64_t evaluated_by(const Session& session, const Inputs& inputs) {
  const int64_t before = infer::formulas_evaluated();
  session.run(inputs);
  return infer::formulas_evaluated() - before;
}

// x.squeeze(1) as PyTorch's exporter writes it, with something before and after.
std::string squeeze(const std::string& from, const std::string& to) {
  return R"(
    sizes = Shape()" +
         from + R"()
    at = Constant<value = int64 {1}>()
    size = Gather(sizes, at)
    one = Constant<value = int64 {1}>()
    is_one = Equal(size, one)
    squeezed = If(is_one) <
      then_branch = t () => (float[A, B] inner) {
        axis = Constant<value = int64[1] {1}>()
        inner = Squeeze()" +
         from + R"(, axis) },
      else_branch = e () => (float[A, B, C] inner) { inner = Identity()" +
         from + R"() }>
    doubled = Add(squeezed, squeezed)
    )" + to +
         " = Tanh(doubled)\n";
}

const std::string squeezes =
    "g (float[n, m, 4] x) => (float[P, Q] y) {\n a = Relu(x)" + squeeze("a", "y") + "}";

TEST(SpecializedPlans, AnIfOnASizeIsDecidedByTheRun) {
  const Both both(model_of(squeezes));
  EXPECT_FALSE(is_planned(both.planned().steps()));
  for (const int64_t m : {1, 1, 3, 1, 2, 5})
    for (const int64_t n : {2, 7}) both.run({{"x", filled({n, m, 4})}});
  for (const int64_t m : {1, 4}) {
    const PlanDescription plan = both.planned().plan_for({{"x", filled({2, m, 4})}});
    EXPECT_TRUE(is_planned(plan.steps));
    ASSERT_EQ(plan.guards.size(), 1u);
    EXPECT_EQ(plan.guards[0], m == 1 ? "If making 'squeezed' takes its then_branch"
                                     : "If making 'squeezed' takes its else_branch");
    // Relu, the branch as a view, and what follows in one pass.
    EXPECT_EQ(plan.steps.size(), m == 1 ? 3u : 2u);
  }
}

// Of all sizes but the one that decides, none makes a plan.
TEST(SpecializedPlans, OtherSizesArePlannedOnce) {
  const Session session(model_of(squeezes));
  EXPECT_GT(evaluated_by(session, {{"x", filled({2, 1, 4})}}), 0);
  EXPECT_GT(evaluated_by(session, {{"x", filled({2, 3, 4})}}), 0);
  for (int64_t n = 1; n < 40; ++n)
    for (const int64_t m : {n, int64_t{1}, 41 - n})
      EXPECT_EQ(evaluated_by(session, {{"x", filled({n, m, 4})}}), 0) << n << " " << m;
}

TEST(SpecializedPlans, BranchesAndBodiesHoldSuchIfs) {
  const Both in_branch(model_of(R"(
  g (float[n, m, 4] x, bool upper) => (float[P, Q] y) {
    a = Relu(x)
    y = If(upper) <
      then_branch = up () => (float[P, Q] made) {)" +
                                squeeze("a", "made") + R"(},
      else_branch = down () => (float[P, Q, R] made) { made = Neg(x) }>
  })"));
  const Both in_body(model_of(R"(
  g (float[n, m, 4] x, int64 trips) => (float[P, Q, R] y, float[n, m, 4] last) {
    yes = Constant<value = bool {1}>()
    last, y = Loop(trips, yes, x) <body = b (int64 i, bool go, float[n, m, 4] state) => (
        bool go_on, float[n, m, 4] next, float[P, Q] made) {
      go_on = Identity(go)
      next = Sigmoid(state))" +
                              squeeze("next", "made") + R"(
    }>
  })"));
  for (const int64_t m : {1, 3, 1, 2}) {
    for (const bool upper : {true, false})
      in_branch.run({{"x", filled({2, m, 4})}, {"upper", Tensor::scalar<bool>(upper)}});
    for (const int64_t trips : {3, 1})
      in_body.run({{"x", filled({2, m, 4})}, {"trips", Tensor::scalar<int64_t>(trips)}});
  }
  // No run evaluates nodes plainly, which would infer them.
  EXPECT_EQ(evaluated_by(in_branch.planned(),
                         {{"x", filled({5, 1, 4})}, {"upper", Tensor::scalar<bool>(true)}}),
            0);
  EXPECT_EQ(evaluated_by(in_body.planned(),
                         {{"x", filled({5, 1, 4})}, {"trips", Tensor::scalar<int64_t>(4)}}),
            0);
}

// A size of a body's own may have the name of one of the model's inputs without being it.
TEST(SpecializedPlans, NamesInsideBodiesAreTheirOwn) {
  const Both both(model_of(R"(
  g (float[n, m, 4] x, int64 trips) => (float y) {
    yes = Constant<value = bool {1}>()
    last = Loop(trips, yes, x) <body = b (int64 i, bool go, float[n, m, 4] state) => (
        bool go_on, float[n, m, 4] next) {
      go_on = Identity(go)
      next = Concat<axis = 1>(state, state)
    }>)" + squeeze("last", "wide") +
                           R"(
    y = ReduceSum<keepdims = 0>(wide)
  })"));
  for (const int64_t trips : {0, 1, 2})
    for (const int64_t m : {1, 2})
      both.run({{"x", filled({2, m, 4})}, {"trips", Tensor::scalar<int64_t>(trips)}});
}

// Branches may use the same names for values of their own.
TEST(SpecializedPlans, OpenedBranchesDoNotMixUpNames) {
  const Both both(model_of(R"(
  g (float[n, 4] x, float[m, 4] z) => (float[P] y, float[Q] w) {
    one = Constant<value = int64[1] {1}>()
    xs = Shape<start = 0, end = 1>(x)
    zs = Shape<start = 0, end = 1>(z)
    x_one = Equal(xs, one)
    z_one = Equal(zs, one)
    y = If(x_one) <
      then_branch = t () => (float[4] made) { axis = Constant<value = int64[1] {0}>()
        local = Squeeze(x, axis)
        made = Exp(local) },
      else_branch = e () => (float[n, 4] made) { local = Neg(x)
        made = Exp(local) }>
    w = If(z_one) <
      then_branch = t () => (float[4] local) { axis = Constant<value = int64[1] {0}>()
        made = Squeeze(z, axis)
        local = Neg(made) },
      else_branch = e () => (float[m, 4] z) {}>
  })"));
  for (const int64_t n : {1, 2, 1})
    for (const int64_t m : {1, 3}) both.run({{"x", filled({n, 4})}, {"z", filled({m, 4})}});
}

TEST(SpecializedPlans, ConditionsOfManyKinds) {
  const Both both(model_of(R"(
  g (float[n, m] x) => (float[P] y) {
    zero = Constant<value = int64[1] {0}>()
    three = Constant<value = int64[1] {3}>()
    ns = Shape<start = 0, end = 1>(x)
    ms = Shape<start = 1, end = 2>(x)
    total = Mul(ns, ms)
    few = Less(total, three)
    same = Equal(ns, ms)
    either = Or(few, same)
    wide = GreaterOrEqual(ms, ns)
    both = And(either, wide)
    neither = Not(both)
    odd = Mod(ns, three)
    rest = Cast<to = 9>(odd)
    condition = And(neither, rest)
    y = If(condition) <
      then_branch = t () => (float[K] flat) { minus = Constant<value = int64[1] {-1}>()
        flat = Reshape(x, minus) },
      else_branch = e () => (float[n, m] same_x) { same_x = Neg(x) }>
  })"));
  for (int64_t n = 0; n < 7; ++n)
    for (int64_t m = 0; m < 5; ++m) both.run({{"x", filled({n, m})}});
}

TEST(SpecializedPlans, InputsWithoutARankHaveTheRuns) {
  const Both both(model_of(R"(
  g (float[] x, float[n] b) => (float[] y) {
    axis = Constant<value = int64[1] {-1}>()
    r = Relu(x)
    s = ReduceSum<keepdims = 1>(r, axis)
    y = Add(s, b)
  })"));
  const std::vector<Shape> shapes = {{4}, {2, 3}, {5, 3}, {2, 3, 4}, {4}, {1, 2, 3, 4}};
  for (const Shape& shape : shapes) both.run({{"x", filled(shape)}, {"b", filled({5})}});
  const Inputs inputs = {{"x", filled({7, 9})}, {"b", filled({2})}};
  EXPECT_EQ(evaluated_by(both.planned(), inputs), 0);
  const PlanDescription plan = both.planned().plan_for(inputs);
  EXPECT_TRUE(is_planned(plan.steps));
  EXPECT_EQ(plan.guards, std::vector<std::string>{"input 'x' has 2 dimensions"});
}

TEST(SpecializedPlans, ListsOfAnyLengthAreShapes) {
  const Both both(model_of(R"(
  g (float[n, 4] x, int64[r] shape) => (float[P] y) {
    a = Relu(x)
    b = Reshape(a, shape)
    c = Exp(b)
    y = Neg(c)
  })"));
  const std::vector<std::vector<int64_t>> shapes = {{-1}, {2, -1}, {8, 3}, {2, 3, 4}, {-1}, {24}};
  for (const auto& shape : shapes) both.run({{"x", filled({6, 4})}, {"shape", list(shape)}});
  const PlanDescription plan =
      both.planned().plan_for({{"x", filled({6, 4})}, {"shape", list({4, 6})}});
  EXPECT_TRUE(is_planned(plan.steps));
  ASSERT_EQ(plan.guards.size(), 1u);
  EXPECT_EQ(plan.guards[0], "size 'r' is 2");
}

// Sixty Ifs, of which each run's size decides another one: few plans are made.
std::string ladder() {
  std::string text =
      "g (float[n, 1] x) => (float[P] y0) {\n axis = Constant<value = int64[1] {1}>()\n"
      " n = Shape<start = 0, end = 1>(x)\n";
  std::string last = "x";
  for (int i = 60; i > 0; --i) {
    const std::string at = std::to_string(i);
    text += " k" + at + " = Constant<value = int64[1] {" + at + "}>()\n c" + at + " = Equal(n, k" +
            at + ")\n";
  }
  for (int i = 60; i > 0; --i) {
    const std::string at = std::to_string(i), out = i == 1 ? "y0" : "s" + at;
    text += " " + out + " = If(c" + at +
            ") <then_branch = t () => (float[n] p) { p = Squeeze(x, axis) },\n" +
            "  else_branch = e () => (float q) { q = Neg(" + last + ") }>\n";
    last = out;
  }
  return text + "}";
}

TEST(SpecializedPlans, HowManyAreMadeIsBounded) {
  const Session session(model_of(ladder()));
  const auto is_sized = [&](int64_t n) {
    return !session.plan_for({{"x", filled({n, 1})}}).guards.empty();
  };
  int made = 0;
  for (int round = 0; round < 4; ++round) {
    for (int64_t n = 10; n < 50; ++n) made += is_sized(n);
  }
  // 8 at once, which 3 more rounds find again, and some in the place of others.
  EXPECT_GE(made, 8);
  EXPECT_LE(made, 8 * 4 + 4);
  // What comes all the time gets its plan in the end, and keeps it.
  int runs = 0;
  while (!is_sized(55) && runs < 5000) ++runs;
  EXPECT_LT(runs, 1000);
  EXPECT_TRUE(is_sized(55));
}

TEST(SpecializedPlans, ManyCallersGetTheSame) {
  const Session session(model_of(squeezes), {.threads = 2});
  const Session plain(model_of(squeezes), {.threads = 1, .reference = true});
  std::vector<std::vector<Value>> wanted;
  for (int64_t m = 1; m < 4; ++m) wanted.push_back(plain.run({{"x", filled({3, m, 4})}}));
  std::vector<std::thread> callers;
  for (int t = 0; t < 6; ++t) {
    callers.emplace_back([&, t] {
      for (int i = 0; i < 30; ++i) {
        const int m = (i + t) % 3;
        expect_same(session.run({{"x", filled({3, m + 1, 4})}}), wanted[static_cast<size_t>(m)]);
      }
    });
  }
  for (std::thread& caller : callers) caller.join();
}

// The first run of a session has the bits of all later ones.
TEST(SpecializedPlans, SessionsOfAModelShareThem) {
  const Model model = model_of(squeezes);
  const Session first(model);
  const Inputs inputs = {{"x", filled({3, 1, 4})}};
  const auto one = first.run(inputs);
  const Session second(model);
  EXPECT_EQ(evaluated_by(second, inputs), 0);
  const auto two = second.run(inputs);
  EXPECT_EQ(
      std::memcmp(one[0].tensor().data(), two[0].tensor().data(), one[0].tensor().byte_size()), 0);
}

std::string error_of(const Session& session, const Inputs& inputs) {
  try {
    session.run(inputs);
  } catch (const Error& error) {
    EXPECT_EQ(error.code(), ErrorCode::bad_input);
    return error.what();
  }
  return "none";
}

TEST(SpecializedPlans, WrongShapesAreRefusedAsByAnyPlan) {
  const Session session(model_of(squeezes));
  EXPECT_NE(error_of(session, {{"x", filled({3, 4})}}).find("[n,m,4]"), std::string::npos);
  EXPECT_NE(error_of(session, {{"x", filled({3, 1, 5})}}).find("[n,m,4]"), std::string::npos);
  session.run({{"x", filled({3, 1, 4})}});
  EXPECT_NE(error_of(session, {{"x", filled({3, 1, 5})}}).find("[n,m,4]"), std::string::npos);
}

// A branch that can't be is an error of the runs that take it.
TEST(SpecializedPlans, ABranchThatCanNotBeFailsWhenItIsTaken) {
  const Session session(model_of(R"(
  g (float[n, 3] x, float[5, 7] w) => (float[P] y) {
    one = Constant<value = int64[1] {1}>()
    ns = Shape<start = 0, end = 1>(x)
    is_one = Equal(ns, one)
    y = If(is_one) <
      then_branch = t () => (float[n, 7] product) { product = MatMul(x, w) },
      else_branch = e () => (float[K] flat) { minus = Constant<value = int64[1] {-1}>()
        flat = Reshape(x, minus) }>
  })"));
  const Tensor w = filled({5, 7});
  for (int i = 0; i < 2; ++i) {
    EXPECT_EQ(session.run({{"x", filled({2, 3})}, {"w", w}})[0].tensor().shape(), Shape({6}));
    EXPECT_THROW(session.run({{"x", filled({1, 3})}, {"w", w}}), Error);
  }
}

// A plan that can't be made is not tried again, whatever the other sizes.
TEST(SpecializedPlans, PlansThatCanNotBeAreTriedOnce) {
  const Session session(model_of(R"(
  g (float[n, m, 3] x) => (float[P] y) {
    one = Constant<value = int64 {1}>()
    at = Constant<value = int64 {1}>()
    sizes = Shape(x)
    size = Gather(sizes, at)
    is_one = Equal(size, one)
    flat = If(is_one) <
      then_branch = t () => (float[A, B] made) { axis = Constant<value = int64[1] {1}>()
        made = Squeeze(x, axis) },
      else_branch = e () => (float[A, B, C] made) { made = Neg(x) }>
    w = Constant<value = float[1, 4, 3] {0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0}>()
    r = Constant<value = float[1, 4, 4] {0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0}>()
    all, y = RNN<hidden_size = 4>(flat, w, r)
  })"));
  for (int64_t n = 1; n < 30; ++n) EXPECT_THROW(session.run({{"x", filled({n, 1, 3})}}), Error);
  EXPECT_FALSE(session.plan_for({{"x", filled({3, 2, 3})}}).guards.empty());
  EXPECT_EQ(session.run({{"x", filled({3, 2, 3})}})[0].tensor().shape(), Shape({1, 2, 4}));
}

TEST(SpecializedPlans, ProfilesHoldStepsOfAllPlans) {
  const Session session(model_of(squeezes));
  Profile profile;
  for (const int64_t m : {1, 2, 1}) {
    std::vector<Value> inputs = {Value(filled({2, m, 4}))}, outputs(1);
    session.run(inputs, outputs, {.profile = &profile});
  }
  ASSERT_EQ(profile.runs().size(), 3u);
  const size_t steps = session.plan_for({{"x", filled({2, 1, 4})}}).steps.size() +
                       session.plan_for({{"x", filled({2, 2, 4})}}).steps.size();
  EXPECT_EQ(profile.steps().size(), steps);
}

}  // namespace
}  // namespace sardonyx
