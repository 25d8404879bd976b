#include "train/method.h"

#include <algorithm>

#include "base/fail.h"
#include "eval/eval.h"
#include "ir/tensor.h"
#include "lower/lower.h"
#include "passes/optimize.h"
#include "run/input_match.h"
#include "session/describe.h"
#include "session/profile.h"
#include "train/recompute.h"
#include "train/updates.h"

namespace sardonyx::train {

constexpr int64_t small_constants = 65536;  // bytes that folding may add where it hardly helps

Method::Method(const Model::Implementation& model, MethodModel method, const StateTable& table,
               const TrainingOptions& options, ThreadPool& pool)
    : pool_(pool), table_(table), states_(std::move(method.states)) {
  const ir::Graph& graph = *method.model.graph;
  for (size_t i = 0; i + states_.size() < graph.inputs.size(); ++i)
    inputs_.push_back(describe(graph.inputs[i]));
  for (const ir::ValueInfo& output : graph.outputs) outputs_.push_back(describe(output));
  const bool saves_memory = options.recompute.value_or(false);
  graph_ =
      lower::lower(method.model, {.recompute_iterations = saves_memory, .custom = &model.custom});
  if (options.reference) {
    passes::require_sound(graph_, {.pool = &pool});
    return;
  }
  split_updates(graph_);
  if (saves_memory) recompute(graph_);
  passes::OptimizeOptions optimizing{.pool = &pool, .fuse = options.fuse};
  if (method.runs_once)
    optimizing.max_growth = optimizing.total_growth = optimizing.all_growth = small_constants;
  passes::optimize(graph_, optimizing);
  hoist_updates(graph_);
  const run::PlanServices services{&model.packs, options.exact, saves_memory};
  plan_ = std::make_shared<const run::Plan>(std::move(graph_), std::span<const ops::ValueFacts>(),
                                            std::vector<std::pair<std::string, ops::ValueFacts>>(),
                                            services);
  graph_ = {};
}

std::vector<Value> in_order(const std::vector<ValueDescription>& inputs, const StateTable& table,
                            const std::vector<NamedValue>& named) {
  std::vector<Value> values(inputs.size());
  for (const auto& [name, value] : named) {
    const auto found = std::ranges::find(inputs, name, &ValueDescription::name);
    const std::string place = fmt::format("input '{}'", name);
    if (found == inputs.end()) {
      if (table.find_named(name))
        fail_at(place, ErrorCode::bad_input, "is a state variable; set_state changes those");
      std::string names;
      for (const ValueDescription& one : inputs)
        names += (names.empty() ? "'" : ", '") + one.name + "'";
      fail_at(place, ErrorCode::bad_input, "is not taken; what is: {}",
              names.empty() ? "nothing" : names);
    }
    Value& to = values[static_cast<size_t>(found - inputs.begin())];
    if (to.kind() != Value::Kind::none)
      fail_at(place, ErrorCode::bad_input, "is given twice; each input takes one value");
    to = value;
  }
  for (size_t i = 0; i < values.size(); ++i) {
    if (values[i].kind() != Value::Kind::none) continue;
    if (inputs[i].kind != Value::Kind::optional)
      fail_at(fmt::format("input '{}'", inputs[i].name), ErrorCode::bad_input,
              "is missing; the model takes {}", inputs[i].type);
    values[i] = Value(Optional());
  }
  return values;
}

std::vector<Value> Method::run_graph(const std::vector<Value>& given, eval::Environment& env,
                                     Profile* profile) const {
  if (plan_) {
    std::vector<Value> made(outputs_.size());
    if (profile != nullptr)
      run_profiled(plan_, given, made, env, *profile);
    else
      plan_->run(given, {}, made, env);
    return made;
  }
  run::match_inputs(graph_.inputs, given);
  eval::Frame frame;
  for (size_t i = 0; i < given.size(); ++i) frame.set(graph_.inputs[i].name, ir::aligned(given[i]));
  return eval::run_graph(graph_, frame, env, {.observe = {}, .is_sound = true});
}

std::vector<Value> Method::run(const std::vector<NamedValue>& inputs, const Snapshot& state,
                               ops::RandomStreams& random, const RunOptions& options) const {
  std::vector<Value> given = in_order(inputs_, table_, inputs);
  for (const size_t index : states_) given.emplace_back(state.values[index]);
  eval::Environment environment(pool_, &random);
  environment.cancel = options.cancel;
  environment.deadline = options.deadline;
  environment.memory_limit = options.memory_limit;
  environment.check_cancelled();
  try {
    std::vector<Value> made = run_graph(given, environment, options.profile);
    for (Value& value : made) value = ir::owned(value);  // it may be an input
    return made;
  } catch (const Error& error) {
    // Of a graph that could be planned, what a node's rules refuse are the values it met.
    if (error.code() != ErrorCode::invalid_model) throw;
    throw Error(ErrorCode::bad_input, error.message(), error.location());
  }
}

}  // namespace sardonyx::train
