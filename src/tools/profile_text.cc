// Profiles as text for other programs.
#include <fmt/format.h>

#include <algorithm>
#include <nlohmann/json.hpp>
#include <numeric>
#include <string>
#include <vector>

#include "sardonyx/profile.h"

namespace sardonyx {
namespace {

using json = nlohmann::ordered_json;

std::string dumped(const json& value) {
  return value.dump(-1, ' ', false, json::error_handler_t::replace);
}

// Elements one after the other: a million of them would be gigabytes as one JSON value.
class List {
 public:
  explicit List(std::string& text) : text_(text) { text_ += '['; }
  void add(const json& element) {
    text_ += is_first_ ? "" : ",\n";
    text_ += dumped(element);
    is_first_ = false;
  }
  void end() { text_ += ']'; }

 private:
  std::string& text_;
  bool is_first_ = true;
};

json step_json(const Profile::Step& step) {
  return {{"node", step.node},       {"operator", step.operator_name}, {"origin", step.origin},
          {"sources", step.sources}, {"kernel", step.kernel},          {"graph", step.graph},
          {"inside", step.inside}};
}

json run_json(const Profile::Run& run) {
  json sums = json::array();
  for (const Profile::Sum& sum : run.steps) {
    sums.push_back({{"nanoseconds", sum.nanoseconds},
                    {"inside_nanoseconds", sum.inside_nanoseconds},
                    {"helped_nanoseconds", sum.helped_nanoseconds},
                    {"calls", sum.calls},
                    {"operations", sum.operations},
                    {"bytes", sum.bytes}});
  }
  return {{"begin", run.begin}, {"end", run.end}, {"steps", std::move(sums)}};
}

// A step's work of one call, on average over all runs.
struct Work {
  double operations = 0, bytes = 0;
  int64_t calls = 0;
};

std::vector<Work> work_of(const Profile& profile) {
  std::vector<Work> work(profile.steps().size());
  for (const Profile::Run& run : profile.runs()) {
    for (size_t i = 0; i < run.steps.size(); ++i) {
      work[i].operations += run.steps[i].operations;
      work[i].bytes += run.steps[i].bytes;
      work[i].calls += run.steps[i].calls;
    }
  }
  return work;
}

json span(const std::string& name, const std::string& category, int thread, int64_t begin,
          int64_t end, json arguments) {
  return {{"name", name},
          {"cat", category},
          {"ph", "X"},
          {"pid", 1},
          {"tid", thread},
          {"ts", static_cast<double>(begin) * 1e-3},
          {"dur", static_cast<double>(end - begin) * 1e-3},
          {"args", std::move(arguments)}};
}

// Runs that went on at the same time stand in lanes of their own: spans of one lane that overlap
// would be taken for calls of each other.
std::vector<int> lanes_of(const std::vector<Profile::Run>& runs) {
  std::vector<size_t> order(runs.size());
  std::iota(order.begin(), order.end(), size_t{0});
  std::ranges::stable_sort(order, {}, [&](size_t i) { return runs[i].begin; });
  std::vector<int> lanes(runs.size());
  std::vector<int64_t> ends;
  for (const size_t i : order) {
    const auto free = std::ranges::find_if(ends, [&](int64_t end) { return end <= runs[i].begin; });
    lanes[i] = static_cast<int>(free - ends.begin());
    if (free == ends.end())
      ends.push_back(runs[i].end);
    else
      *free = runs[i].end;
  }
  return lanes;
}

json label(std::string_view what, int thread, const std::string& name) {
  return {{"name", what}, {"ph", "M"}, {"pid", 1}, {"tid", thread}, {"args", {{"name", name}}}};
}

std::string origin_of(const Profile::Step& step) {
  if (step.sources.empty()) return step.origin;
  return fmt::format("from {}", fmt::join(step.sources, ", "));
}

json event_json(const Profile& profile, const Profile::Event& event, int lane, const Work& work) {
  const Profile::Step& step = profile.steps()[static_cast<size_t>(event.step)];
  json arguments = {{"run", event.run}, {"step", event.step}, {"kernel", step.kernel}};
  const std::string origin = origin_of(step);
  if (!origin.empty()) arguments["origin"] = origin;
  if (step.inside >= 0) {
    arguments["graph"] = step.graph;
    arguments["inside"] = profile.steps()[static_cast<size_t>(step.inside)].node;
  }
  if (event.thread == 0 && work.calls > 0) {
    arguments["operations"] = work.operations / static_cast<double>(work.calls);
    arguments["bytes"] = work.bytes / static_cast<double>(work.calls);
  }
  return span(event.thread == 0 ? step.node : step.node + " (part)", step.operator_name,
              lane * profile.threads() + event.thread, event.begin, event.end,
              std::move(arguments));
}

}  // namespace

std::string profile_json(const Profile& profile) {
  std::string text =
      fmt::format("{{\"threads\":{},\"dropped_events\":{},\n\"steps\":", profile.threads(),
                  profile.dropped_events());
  List steps(text);
  for (const Profile::Step& step : profile.steps()) steps.add(step_json(step));
  steps.end();
  text += ",\n\"runs\":";
  List runs(text);
  for (const Profile::Run& run : profile.runs()) runs.add(run_json(run));
  runs.end();
  return text + "}\n";
}

std::string profile_trace(const Profile& profile, std::string_view name) {
  std::string text = "{\"traceEvents\":";
  List events(text);
  events.add(label("process_name", 0, fmt::format("sardonyx{}{}", name.empty() ? "" : ": ", name)));
  const std::vector<int> lanes = lanes_of(profile.runs());
  const int count = lanes.empty() ? 1 : std::ranges::max(lanes) + 1;
  for (int i = 0; i < count * profile.threads(); ++i) {
    const int lane = i / profile.threads(), thread = i % profile.threads();
    const std::string beside = lane == 0 ? "" : fmt::format(", beside {}", lane);
    events.add(
        label("thread_name", i, (thread == 0 ? "run" : fmt::format("helper {}", thread)) + beside));
  }
  for (size_t i = 0; i < profile.runs().size(); ++i) {
    const Profile::Run& run = profile.runs()[i];
    events.add(span(fmt::format("run {}", i), "run", lanes[i] * profile.threads(), run.begin,
                    run.end, json::object()));
  }
  const std::vector<Work> work = work_of(profile);
  for (const Profile::Event& event : profile.events())
    events.add(event_json(profile, event, lanes[static_cast<size_t>(event.run)],
                          work[static_cast<size_t>(event.step)]));
  events.end();
  const json about = {{"model", name},
                      {"threads", profile.threads()},
                      {"dropped_events", profile.dropped_events()}};
  return text + ",\n\"displayTimeUnit\":\"ms\",\"otherData\":" + dumped(about) + "}\n";
}

}  // namespace sardonyx
