// What the steps of runs cost.
//
//   sardonyx::Profile profile;
//   session.run(inputs, {.profile = &profile});
//   for (const auto& step : profile.steps()) …
//
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#pragma GCC visibility push(default)  // what a shared library gives to others

namespace sardonyx {

// Filled by the runs it is given to (RunOptions::profile), several of which may go on at the same
// time; not for several sessions. What it says is read while none of them goes on. Sessions of
// reference evaluation, which have no steps, leave it without steps. Move-only.
class Profile {
 public:
  // `max_events`: that are kept, of all runs together; times and sums count those beyond it too.
  explicit Profile(size_t max_events = size_t{1} << 20);
  ~Profile();
  Profile(Profile&&) noexcept;
  Profile& operator=(Profile&&) noexcept;

  struct Step {
    std::string node;           // "Conv 'stem/conv'", as Session::steps() calls it
    std::string operator_name;  // "Conv"; with its domain where that is not ai.onnx
    std::string origin;         // as in StepDescription
    std::vector<std::string> sources;
    std::string kernel;  // "conv.pointwise_nhwc"
    std::string graph;   // the name of the body it is in; empty for the model's own graph
    int inside = -1;     // the step (of control flow) whose body it is in
  };
  // Those of the model's own graph come first, in order, one for each of Session::steps(); those of
  // bodies follow when they first run.
  const std::vector<Step>& steps() const;

  // What one run spent in one step, all its calls together. A step inside a body counts in the
  // step around it too.
  struct Sum {
    int64_t nanoseconds = 0;
    int64_t inside_nanoseconds = 0;  // of them in the steps of its bodies
    int64_t helped_nanoseconds =
        0;  // that other threads worked for it, its bodies' steps not counted
    int64_t calls = 0;
    // Floating-point operations (a multiply-add counts as two; docs/profiling.md) and bytes of the
    // inputs it read and the outputs it made, by their shapes. Without its bodies' steps.
    double operations = 0;
    double bytes = 0;
  };
  struct Run {
    int64_t begin = 0;  // nanoseconds since the first run began
    int64_t end = 0;
    std::vector<Sum> steps;  // by step; those found by later runs are not in it
  };
  const std::vector<Run>& runs() const;

  // One call of a step on the run's own thread, or what another thread did of one of its loops.
  struct Event {
    int run = 0;
    int step = 0;
    int thread = 0;     // 0: that of the run
    int64_t begin = 0;  // nanoseconds since the first run began
    int64_t end = 0;
  };
  // In order of their ends.
  const std::vector<Event>& events() const;
  // How many more there were.
  int64_t dropped_events() const;
  // Threads of the session's pool, the run's own included; 1 before the first run.
  int threads() const;

  // For the library itself.
  struct [[gnu::visibility("hidden")]] Implementation;
  [[gnu::visibility("hidden")]] Implementation& implementation();

 private:
  std::unique_ptr<Implementation> implementation_;
};

// All of a profile as JSON: {"threads", "dropped_events", "steps": [{"node", "operator", "origin",
// "sources", "kernel", "graph", "inside"}], "runs": [{"begin", "end", "steps": [{"nanoseconds",
// "inside_nanoseconds", "helped_nanoseconds", "calls", "operations", "bytes"}]}]}; times are in
// nanoseconds.
std::string profile_json(const Profile& profile);
// Its runs and events as trace events, for chrome://tracing and Perfetto; `name` stands for the
// process.
std::string profile_trace(const Profile& profile, std::string_view name = {});

}  // namespace sardonyx

#pragma GCC visibility pop
