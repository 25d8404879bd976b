// What callers of a session may get wrong, and what it tells of bodies; statistics; runs compared.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <functional>
#include <string>
#include <vector>

#include "../../cli/statistics.h"
#include "sardonyx/compare_runs.h"
#include "sardonyx/session.h"

namespace sardonyx {
namespace {

constexpr const char* head = "<ir_version: 8, opset_import: [\"\" : 17]>\n";

ErrorCode code_of(const std::function<void()>& act) {
  try {
    act();
  } catch (const Error& error) {
    return error.code();
  }
  ADD_FAILURE() << "no error";
  return ErrorCode::internal;
}

Tensor numbers(std::initializer_list<float> list) {
  Tensor tensor(ElementType::float32, {static_cast<int64_t>(list.size())});
  std::copy(list.begin(), list.end(), tensor.mutable_elements<float>().begin());
  return tensor;
}

TEST(SessionArguments, AnInputGivenTwiceIsRefused) {
  const Model model =
      Model::from_text(std::string(head) + "g (float[n] x) => (float[n] y) { y = Relu (x) }");
  for (const bool plain : {false, true}) {
    SessionOptions options;
    options.reference = plain;
    const Session session(model, options);
    EXPECT_EQ(session.run({{"x", numbers({1})}}).size(), 1u);
    EXPECT_EQ(code_of([&] {
                session.run({{"x", numbers({1})}, {"x", numbers({2})}});
              }),
              ErrorCode::bad_input);
  }
}

TEST(SessionArguments, ThreadCountsAreChecked) {
  const Model model =
      Model::from_text(std::string(head) + "g (float[n] x) => (float[n] y) { y = Relu (x) }");
  for (const int count : {-1, -100, 4097, 1 << 30}) {
    EXPECT_EQ(code_of([&] { Threads threads(count); }), ErrorCode::bad_input);
    SessionOptions options;
    options.threads = count;
    EXPECT_EQ(code_of([&] { Session session(model, options); }), ErrorCode::bad_input);
  }
  EXPECT_EQ(Threads(1).count(), 1);
  EXPECT_GE(Threads(0).count(), 1);
}

TEST(SessionArguments, StepsTellTheirBodies) {
  const Session session(Model::from_text(std::string(head) + R"(
      g (bool c, float[n] x) => (float[n] y) {
        y = If (c) < then_branch = t () => (float[n] a) { s = Relu (x) a = Sqrt (s) },
                     else_branch = e () => (float[n] b) { b = Neg (x) } > })"));
  const std::vector<StepDescription> steps = session.steps();
  ASSERT_EQ(steps.size(), 1u);
  ASSERT_EQ(steps[0].bodies.size(), 2u);
  EXPECT_EQ(steps[0].bodies[0].name, "then_branch");
  EXPECT_EQ(steps[0].bodies[1].name, "else_branch");
  EXPECT_FALSE(steps[0].bodies[0].steps.empty());
  ASSERT_EQ(steps[0].bodies[1].steps.size(), 1u);
  EXPECT_TRUE(steps[0].bodies[1].steps[0].node.starts_with("Neg"));
}

TEST(Statistics, PercentilesAreOfTheNearestRank) {
  EXPECT_EQ(percentile({5}, 0.9), 5);
  EXPECT_EQ(percentile({1, 2, 3, 4, 5}, 0.9), 5);  // four of five are only 80 %
  EXPECT_EQ(percentile({10, 9, 8, 7, 6, 5, 4, 3, 2, 1}, 0.9), 9);
  EXPECT_EQ(percentile({1, 2, 3, 4}, 0.5), 2);
  EXPECT_EQ(percentile({3, 1, 2}, 0), 1);
  EXPECT_EQ(percentile({3, 1, 2}, 1), 3);
  EXPECT_EQ(median({4, 1, 3, 2}), 2.5);
}

TEST(CompareRuns, TheFirstDifferenceIsInTheOrderOfTheActualValues) {
  const std::vector<NamedValue> actual = {
      {"a", numbers({1, 2})}, {"b", numbers({1, NAN})}, {"c", numbers({7})}};
  const std::vector<NamedValue> expected = {
      {"c", numbers({8})}, {"b", numbers({1, 2})}, {"a", numbers({1, 2})}, {"d", numbers({1})}};
  const RunComparison comparison = compare_runs(actual, expected);
  ASSERT_NE(comparison.first_difference(), nullptr);
  EXPECT_EQ(comparison.first_difference()->name, "b");
  EXPECT_EQ(comparison.first_difference()->actual->nans, 1);
  EXPECT_EQ(comparison.differing(), 3);
  EXPECT_TRUE(comparison.values.back().is_missing);
  const RunComparison common =
      compare_runs(actual, expected, {.tolerance = {}, .common_only = true});
  EXPECT_EQ(common.values.size(), 3u);
}

}  // namespace
}  // namespace sardonyx
