// Profiles that several runs fill at the same time.
#include "sardonyx/profile.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <future>
#include <map>
#include <nlohmann/json.hpp>
#include <vector>

#include "sardonyx/session.h"

namespace sardonyx {
namespace {

Model looping() {
  return Model::from_text(R"(<ir_version: 10, opset_import: ["" : 21]>
    g (float[4] x, int64 trips) => (float[4] y) <bool go = {1}> {
      y = Loop(trips, go, x) <body = b (int64 i, bool c, float[4] v) => (bool d, float[4] w) {
        d = Identity(c) w = Softmax(v) }> })");
}

void run_many(const Session& session, Profile& profile, int count, int64_t trips = 5) {
  RunOptions options;
  options.profile = &profile;
  std::vector<std::future<std::vector<Value>>> ends;
  for (int i = 0; i < count; ++i) {
    ends.push_back(session.run_async(
        {{"x", Tensor::of<float>({1, 2, 3, 4}, {4})}, {"trips", Tensor::scalar<int64_t>(trips)}},
        options));
  }
  for (auto& end : ends) end.get();
}

TEST(Profile, RunsAtTheSameTime) {
  const Session session(looping(), {.threads = 2});
  Profile profile;
  constexpr int count = 40;
  run_many(session, profile, count);
  ASSERT_EQ(profile.runs().size(), static_cast<size_t>(count));
  int in_body = -1;
  for (size_t i = 0; i < profile.steps().size(); ++i) {
    if (profile.steps()[i].operator_name == "Softmax") in_body = static_cast<int>(i);
  }
  ASSERT_GE(in_body, 0);
  EXPECT_GE(profile.steps()[static_cast<size_t>(in_body)].inside, 0);
  for (const Profile::Run& run : profile.runs()) {
    EXPECT_GT(run.end, run.begin);
    ASSERT_GT(run.steps.size(), static_cast<size_t>(in_body));
    EXPECT_EQ(run.steps[static_cast<size_t>(in_body)].calls, 5);
  }
  std::vector<int> events(count, 0);
  int64_t last = 0;
  for (const Profile::Event& event : profile.events()) {
    EXPECT_GE(event.end, last);
    last = event.end;
    const Profile::Run& run = profile.runs()[static_cast<size_t>(event.run)];
    EXPECT_GE(event.begin, run.begin);
    EXPECT_LE(event.end, run.end);
    if (event.step == in_body) ++events[static_cast<size_t>(event.run)];
  }
  EXPECT_EQ(events, std::vector<int>(count, 5));
}

// Inputs that are refused are no run; what comes of them in another plan is one.
TEST(Profile, RefusedInputsAreNoRun) {
  const Session session(Model::from_text(R"(<ir_version: 10, opset_import: ["" : 21]>
    g (float[N] x, float[N] y) => (float[M] z) { z = Concat<axis = 0>(x, y) })"));
  Profile profile;
  RunOptions options;
  options.profile = &profile;
  const Tensor two(ElementType::float32, {2}), pair(ElementType::float32, {1, 2});
  EXPECT_THROW(session.run({{"x", pair}, {"y", two}}, options), Error);
  EXPECT_EQ(profile.runs().size(), 0u);
  session.run({{"x", two}, {"y", Tensor(ElementType::float32, {3})}}, options);
  EXPECT_EQ(profile.runs().size(), 1u);
  EXPECT_EQ(profile.steps().size(), 1u);
}

TEST(Profile, KeepsNoMoreEventsThanItIsTold) {
  const Session session(looping(), {.threads = 2});
  Profile all, few(7);
  run_many(session, all, 10);
  run_many(session, few, 10);
  EXPECT_EQ(few.events().size(), 7u);
  EXPECT_EQ(few.dropped_events(), static_cast<int64_t>(all.events().size()) - 7);
}

TEST(Profile, AsText) {
  const Session session(looping(), {.threads = 1});
  Profile profile;
  run_many(session, profile, 2);
  const std::string text = profile_json(profile), trace = profile_trace(profile, "a \"name\"");
  EXPECT_NE(text.find("\"operator\":\"Softmax\""), std::string::npos);
  EXPECT_NE(trace.find("sardonyx: a \\\"name\\\""), std::string::npos);
  EXPECT_NE(trace.find("\"run 1\""), std::string::npos);
}

// Viewers take a span that begins within another one of its lane for a call of that.
TEST(Profile, RunsAtTheSameTimeHaveLanesOfTheirOwn) {
  const Session session(looping(), {.threads = 2});
  Profile profile;
  run_many(session, profile, 4, 3000);
  const auto trace = nlohmann::json::parse(profile_trace(profile));
  struct Span {
    double begin, end;
  };
  std::map<int, std::vector<Span>> lanes;
  for (const auto& event : trace["traceEvents"]) {
    if (event["ph"] != "X") continue;
    const double begin = event["ts"].get<double>();
    lanes[event["tid"].get<int>()].push_back({begin, begin + event["dur"].get<double>()});
  }
  constexpr double rounding = 1e-3;  // microseconds
  for (auto& [lane, spans] : lanes) {
    std::ranges::sort(spans, [](const Span& a, const Span& b) {
      return a.begin != b.begin ? a.begin < b.begin : a.end > b.end;
    });
    std::vector<double> open;
    for (const Span& span : spans) {
      while (!open.empty() && open.back() <= span.begin + rounding) open.pop_back();
      if (!open.empty()) {
        ASSERT_LE(span.end, open.back() + rounding) << "in lane " << lane;
      }
      open.push_back(span.end);
    }
  }
}

}  // namespace
}  // namespace sardonyx
