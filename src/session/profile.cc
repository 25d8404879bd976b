#include "session/profile.h"

#include <algorithm>
#include <chrono>
#include <cmath>
#include <mutex>
#include <optional>
#include <set>
#include <unordered_map>

#include "base/loop_recorder.h"
#include "base/moved_from.h"
#include "ir/internal_domain.h"
#include "ir/origin.h"
#include "ir/walk.h"
#include "run/observer.h"
#include "session/node_work.h"

namespace sardonyx {

struct Profile::Implementation {
  size_t max_events = 0;
  std::vector<Step> steps;
  std::vector<Run> runs;
  std::vector<Event> events;
  int64_t dropped = 0;
  int threads = 1;
  int64_t zero = -1;                                      // when the first run began
  std::set<std::shared_ptr<const run::Plan>> plans;       // that it has steps of
  std::unordered_map<const run::Plan*, int> first_steps;  // of each plan, in `steps`
  std::mutex mutex;                                       // runs may go on at the same time
};

Profile::Profile(size_t max_events) : implementation_(std::make_unique<Implementation>()) {
  implementation_->max_events = max_events;
}
Profile::~Profile() = default;
Profile::Profile(Profile&&) noexcept = default;
Profile& Profile::operator=(Profile&&) noexcept = default;

const std::vector<Profile::Step>& Profile::steps() const {
  return behind(implementation_, "profile").steps;
}
const std::vector<Profile::Run>& Profile::runs() const {
  return behind(implementation_, "profile").runs;
}
const std::vector<Profile::Event>& Profile::events() const {
  return behind(implementation_, "profile").events;
}
int64_t Profile::dropped_events() const { return behind(implementation_, "profile").dropped; }
Profile::Implementation& Profile::implementation() { return behind(implementation_, "profile"); }
int Profile::threads() const { return behind(implementation_, "profile").threads; }

namespace {

int64_t now() {
  using namespace std::chrono;
  return duration_cast<nanoseconds>(steady_clock::now().time_since_epoch()).count();
}

std::string full_name(const ir::Node& node) {
  const std::string_view domain = ir::canonical_domain(node.domain);
  return domain.empty() || domain == ir::internal_domain
             ? node.op_type
             : fmt::format("{}.{}", domain, node.op_type);
}

class Recorder final : public run::Observer {
 public:
  Recorder(Profile::Implementation& profile, int threads) : profile_(profile), loops_(threads) {
    const std::lock_guard lock(profile_.mutex);
    profile_.threads = std::max(profile_.threads, threads);
    const int64_t begin = now();
    if (profile_.zero < 0) profile_.zero = begin;
    zero_ = profile_.zero;
    run_.begin = begin - zero_;
  }

  LoopRecorder& loops() { return loops_; }

  // What the run was, together with those that ended before.
  void end_run() {
    if (!number_) return;
    run_.end = now() - zero_;
    const std::lock_guard lock(profile_.mutex);
    const size_t before = profile_.events.size();
    const size_t kept = std::min(events_.size(), profile_.max_events - before);
    profile_.dropped += dropped_ + static_cast<int64_t>(events_.size() - kept);
    const auto last = events_.begin() + static_cast<std::ptrdiff_t>(kept);
    profile_.events.insert(profile_.events.end(), events_.begin(), last);
    std::inplace_merge(
        profile_.events.begin(), profile_.events.begin() + static_cast<std::ptrdiff_t>(before),
        profile_.events.end(), [](const auto& a, const auto& b) { return a.end < b.end; });
    profile_.runs[*number_] = std::move(run_);
  }

  void begin_plan(const run::Plan& plan) override {
    const std::lock_guard lock(profile_.mutex);
    if (!number_) {
      number_ = profile_.runs.size();
      profile_.runs.push_back(run_);
    }
    const auto [at, is_new] =
        profile_.first_steps.try_emplace(&plan, static_cast<int>(profile_.steps.size()));
    if (is_new) add_steps(plan);
    run_.steps.resize(profile_.steps.size());
    bodies_.push_back({&plan, at->second, open_.size()});
  }

  void end_plan() noexcept override {
    open_.resize(bodies_.back().open);  // a step that failed has no end
    bodies_.pop_back();
    loops_.clear();
  }

  void begin_step(int index) override {
    // What the step around this one did in parallel so far is its own.
    if (!open_.empty()) take_loops(open_.back().step);
    open_.push_back({bodies_.back().first + index, 0, 0});
    open_.back().begin = now();
  }

  void end_step(int index, const ops::StepShapes& shapes) override {
    const int64_t end = now();
    const Open step = open_.back();
    open_.pop_back();
    take_loops(step.step);
    Profile::Sum& sum = run_.steps[static_cast<size_t>(step.step)];
    sum.nanoseconds += end - step.begin;
    sum.inside_nanoseconds += step.inside;
    ++sum.calls;
    count_work(bodies_.back().plan->steps()[static_cast<size_t>(index)], shapes, sum);
    if (!open_.empty()) open_.back().inside += end - step.begin;
    add_event(step.step, 0, step.begin, end);
  }

 private:
  struct Body {
    const run::Plan* plan;
    int first;    // step of its plan
    size_t open;  // steps around it
  };
  struct Open {
    int step;
    int64_t begin;
    int64_t inside;
  };

  void add_steps(const run::Plan& plan) {
    const int inside = open_.empty() ? -1 : open_.back().step;
    for (const run::PlanStep& step : plan.steps()) {
      Profile::Step& made = profile_.steps.emplace_back();
      made.node = ir::describe(*step.node);
      made.operator_name = full_name(*step.node);
      made.origin = step.node->origin;
      made.sources = ir::told_sources(*step.node);
      made.kernel = step.step ? std::string(step.step->kernel()) : "evaluated plainly";
      if (inside >= 0) made.graph = plan.graph().name;
      made.inside = inside;
    }
  }

  void take_loops(int step) {
    Profile::Sum& sum = run_.steps[static_cast<size_t>(step)];
    for (int thread = 1; thread < loops_.threads(); ++thread) {
      for (const LoopPart& part : loops_.parts(thread)) {
        sum.helped_nanoseconds += part.end - part.begin;
        add_event(step, thread, part.begin, part.end);
      }
    }
    loops_.clear();
  }

  void add_event(int step, int thread, int64_t begin, int64_t end) {
    if (events_.size() >= profile_.max_events) {
      ++dropped_;
      return;
    }
    events_.push_back({static_cast<int>(*number_), step, thread, begin - zero_, end - zero_});
  }

  static OperandShape operand(bool present, const auto& type, const auto& shape) {
    if (!present) return {};
    if (type() == ElementType::undefined) return {OperandShape::State::open, {}, {}};
    return {OperandShape::State::known, type(), shape()};
  }

  void count_work(const run::PlanStep& step, const ops::StepShapes& shapes, Profile::Sum& sum) {
    const ir::Node& node = *step.node;
    if (step.step && step.step->traits().view_of_input >= 0) return;
    if (ir::has_graphs(node)) return;
    inputs_.clear(), outputs_.clear();
    for (int i = 0; i < shapes.input_count(); ++i) {
      inputs_.push_back(operand(
          shapes.has_input(i), [&] { return shapes.in_type(i); },
          [&] { return shapes.in_shape(i); }));
    }
    for (int i = 0; i < shapes.output_count(); ++i) {
      outputs_.push_back(operand(
          shapes.has_output(i), [&] { return shapes.out_type(i); },
          [&] { return shapes.out_shape(i); }));
    }
    const double operations = node_operations(node, inputs_, outputs_);
    if (!std::isnan(operations)) sum.operations += operations;
    is_read_.assign(inputs_.size(), true);
    if (step.step && !is_product(node)) {
      for (const int unread : step.step->traits().unread_inputs) {
        if (static_cast<size_t>(unread) < is_read_.size())
          is_read_[static_cast<size_t>(unread)] = false;
      }
    }
    sum.bytes += node_bytes(node, inputs_, outputs_, is_read_);
  }

  Profile::Implementation& profile_;  // max_events never changes; the rest is read under its lock
  LoopRecorder loops_;
  Profile::Run run_;  // this one, and its number among the profile's: none where inputs are refused
  std::optional<size_t> number_;
  int64_t zero_ = 0;
  std::vector<Profile::Event> events_;
  int64_t dropped_ = 0;
  std::vector<Body> bodies_;
  std::vector<Open> open_;
  std::vector<OperandShape> inputs_, outputs_;
  std::vector<bool> is_read_;
};

}  // namespace

void run_profiled(const std::shared_ptr<const run::Plan>& plan, std::span<const Value> given,
                  std::span<Value> made, eval::Environment& environment, Profile& profile,
                  run::OutputMemory* memory) {
  {
    const std::lock_guard lock(profile.implementation().mutex);
    profile.implementation().plans.insert(plan);
  }
  Recorder recorder(profile.implementation(), environment.pool().threads());
  const LoopRecorder::Scope scope(recorder.loops());
  environment.observer = &recorder;
  try {
    plan->run(given, {}, made, environment, memory);
  } catch (...) {
    recorder.end_run();
    throw;
  }
  recorder.end_run();
}

}  // namespace sardonyx
