#include "sardonyx/session.h"

#include <algorithm>
#include <atomic>
#include <cstring>
#include <list>
#include <mutex>
#include <optional>
#include <set>
#include <unordered_map>
#include <unordered_set>

#include "base/affinity.h"
#include "base/fail.h"
#include "base/float_control.h"
#include "base/moved_from.h"
#include "base/thread_pool.h"
#include "check/check.h"
#include "eval/eval.h"
#include "ir/dimension.h"
#include "ir/origin.h"
#include "ir/tensor.h"
#include "ir/value_type.h"
#include "ir/walk.h"
#include "passes/optimize.h"
#include "run/input_match.h"
#include "run/output_memory.h"
#include "run/plan.h"
#include "session/async_runs.h"
#include "session/declared_outputs.h"
#include "session/declared_values.h"
#include "session/describe.h"
#include "session/lowered.h"
#include "session/model.h"
#include "session/packed_weights.h"
#include "session/profile.h"
#include "session/refusal.h"
#include "session/running.h"
#include "session/scalar_inputs.h"
#include "session/session_log.h"
#include "wire/footprint.h"

namespace sardonyx {
namespace {

LoadOptions loading_with(const SessionOptions& options) {
  LoadOptions loading;
  loading.memory_limit = options.memory_limit;
  loading.warn = SessionLog(options, {}).warn();
  return loading;
}

using Names = std::set<std::string>;

constexpr int max_threads = 4096;

int checked_threads(int count) {
  if (count < 0 || count > max_threads)
    fail(ErrorCode::bad_input,
         "threads must be 0, for as many as the process may use, or 1 to {}; got {}", max_threads,
         count);
  return count;
}

}  // namespace

namespace {

// Puts a result where the caller wants it, if that is a tensor of its type and shape.
void give(const Value& result, Value& wanted) {
  const auto fits = [](const Tensor& a, const Tensor& b) {
    return a.element_type() == b.element_type() && a.shape() == b.shape() &&
           a.element_type() != ElementType::string;
  };
  if (!wanted.is_tensor() || !result.is_tensor() || !fits(wanted.tensor(), result.tensor())) {
    wanted = ir::owned(result);  // it may be an input
    return;
  }
  Tensor target = wanted.tensor();
  if (target.byte_size() > 0)
    std::memmove(target.mutable_data(), result.tensor().data(), target.byte_size());
}

// In a run of a model that could be planned, what a node's rules refuse are the values it met.
void blame_inputs(const Error& error) {
  if (error.code() == ErrorCode::invalid_model)
    throw Error(ErrorCode::bad_input, error.message(), error.location());
}

}  // namespace

Threads::Threads(int count) : pool_(std::make_shared<ThreadPool>(checked_threads(count))) {}
int Threads::count() const { return pool_->threads(); }

struct Session::Implementation {
  std::shared_ptr<const Model::Implementation> model;
  SessionOptions options;
  SessionLog log;
  SharedAccount memory;  // that the session charges; null: its maker's, or nobody
  std::shared_ptr<ThreadPool> pool;
  std::unique_ptr<ops::RandomStreams> random;
  std::vector<ValueDescription> inputs, outputs;
  std::unordered_map<std::string_view, size_t> places;  // of the inputs by name
  Names defaults;                                       // inputs with an initializer
  std::unique_ptr<const DeclaredOutputs> declared_outputs;
  std::unique_ptr<const ScalarInputs> scalars;
  std::unique_ptr<PackedWeights> packed;  // null: the session has nothing to do with such files
  // Of nothing overridden, from a file that knows the model as clean: then it runs as it is, and
  // nobody judges it. Taken by the variant that is made first.
  mutable std::optional<OptimizedGraph> graph_of_clean;
  bool is_known_clean = false;

  // What runs for one choice of which initializers the caller overrides.
  struct Chosen {
    Variants::Shared variant;
    std::vector<size_t> positions;  // of its inputs among the session's
  };
  using SharedChosen = std::shared_ptr<const Chosen>;
  SharedChosen main;  // nothing overridden; made with the session
  std::unique_ptr<AsyncRuns> async;

  // The others, the last used first.
  struct Other {
    std::vector<bool> overridden;  // by position among the session's inputs
    bool separate_sizes;
    SharedChosen chosen;
  };
  static constexpr size_t max_others = 16;
  mutable std::mutex mutex;
  mutable std::list<Other> others;
  mutable std::atomic<bool> sizes_differ = false;  // in a run before; it was told of

  SharedChosen choose(const std::vector<bool>& overridden, bool separate_sizes) const;
  SharedChosen choose(const VariantChoice& choice) const;
  Variants::Shared make_variant(const VariantChoice& choice) const;
  Variants::Shared made_variant(const VariantChoice& choice) const;
  // Names of the inputs and outputs of a variant whose outputs are not all values.
  std::vector<std::string> input_names(const Names& overridden) const;
  std::vector<std::string> output_names() const;
  // Whether graphs may come from a file, and be kept in one.
  bool shares_graphs() const {
    return options.initializers.empty() && model->custom.empty() && !options.reference &&
           !options.all_outputs;
  }
  const ir::Graph& runnable() const {
    return *(is_known_clean ? model->model : model->runnable()).graph;
  }
  // Opens the files that options name, and takes what they have for a model that they know as
  // clean.
  void take_packed();
  // The optimised graph of a file; false where none has it.
  bool take_graph(const VariantChoice& choice, Variant& variant) const;
  // Lowers and optimises. False where there is no one optimised graph: the variant is plain or
  // sized.
  bool make_graph(const VariantChoice& choice, Variant& variant) const;
  void pack_now() const;
  // After plans may have been made.
  void store_packed() const;
  size_t place_of(const std::string& name) const;
  std::vector<Value> by_position(const std::vector<NamedValue>& named) const;
  // Inputs in the variant's order. Borrows those given.
  struct Taken {
    SharedChosen chosen;
    std::vector<Value> ordered;  // where that is another order
    std::span<const Value> inputs;
  };
  Taken take(std::span<const Value> given, bool separate_sizes = false) const;
  void take_scalars(Taken& taken) const;
  // The plan that a run with these inputs takes; null where it is plain.
  SpecializedPlans::SpecializedPlan plan_of(const Variant& variant,
                                            std::span<const Value> given) const;
  // What the callback of an asynchronous run threw.
  void tell_of_lost(std::string_view what) const;
  void tell_of_plan(const Variant& variant, std::span<const Value> given,
                    std::span<const std::string> guards) const;
  void run(const Variant& variant, std::span<const Value> given, std::span<Value> made,
           const RunOptions& options) const;
  // With outputs in memory of the caller's allocator.
  bool run_into_allocated(const Variant& variant, std::span<const Value> given,
                          std::span<Value> made, const RunOptions& options,
                          eval::Environment& environment) const;
  // Where inputs have sizes of their own under one name.
  void run_with_separate_sizes(std::span<const Value> given, std::span<Value> made,
                               const RunOptions& options, const run::SizesDiffer& refused) const;
  // As Session::run.
  void run(std::span<const Value> given, std::span<Value> made, const RunOptions& options) const;
  std::vector<Value> run(const std::vector<NamedValue>& named, const RunOptions& options) const;
  // Returns false where no output can have another shape than in the run before.
  bool run_variant(const Variant& variant, std::span<const Value> given, std::span<Value> made,
                   const RunOptions& options, eval::Environment& environment,
                   run::OutputMemory* memory) const;
};

Session::Implementation::SharedChosen Session::Implementation::choose(
    const std::vector<bool>& overridden, bool separate_sizes) const {
  const auto is_wanted = [&](const Other& o) {
    return o.overridden == overridden && o.separate_sizes == separate_sizes;
  };
  {
    const std::lock_guard lock(mutex);
    const auto found = std::find_if(others.begin(), others.end(), is_wanted);
    if (found != others.end()) {
      others.splice(others.begin(), others, found);
      return found->chosen;
    }
  }
  Names names;
  for (size_t i = 0; i < overridden.size(); ++i) {
    if (overridden[i]) names.insert(inputs[i].name);
  }
  SharedChosen chosen = choose(VariantChoice(options, names, separate_sizes));
  const std::lock_guard lock(mutex);
  if (std::none_of(others.begin(), others.end(), is_wanted))
    others.push_front({overridden, separate_sizes, chosen});
  if (others.size() > max_others) others.pop_back();
  return chosen;
}

Session::Implementation::SharedChosen Session::Implementation::choose(
    const VariantChoice& choice) const {
  auto chosen = std::make_shared<Chosen>();
  const auto make = [&] { return within_limit(memory, [&] { return make_variant(choice); }); };
  chosen->variant = options.initializers.empty() ? model->variants.get(choice, make) : make();
  store_packed();
  if (options.prepack) pack_now();
  for (const std::string& name : chosen->variant->input_names)
    chosen->positions.push_back(places.at(name));
  return chosen;
}

void Session::Implementation::pack_now() const {
  model->packs.make_all(*pool);
  model->packs.release_pages_of_files();
}

void Session::Implementation::store_packed() const {
  if (packed) within_limit(memory, [&] { packed->store(*pool); });
}

Variants::Shared Session::Implementation::make_variant(const VariantChoice& choice) const {
  try {
    return made_variant(choice);
  } catch (MemoryLimitReached& reached) {
    reached.locate(model->model.path);
    throw;
  }
}

std::vector<std::string> Session::Implementation::input_names(const Names& overridden) const {
  std::vector<std::string> names;
  for (const ir::ValueInfo& input : runnable().inputs) {
    if (!defaults.contains(input.name) || overridden.contains(input.name))
      names.push_back(input.name);
  }
  return names;
}

std::vector<std::string> Session::Implementation::output_names() const {
  std::vector<std::string> names;
  for (const ir::ValueInfo& output : runnable().outputs) names.push_back(output.name);
  for (const std::string& name : options.extra_outputs) {
    if (std::ranges::find(names, name) == names.end()) names.push_back(name);
  }
  return names;
}

void Session::Implementation::take_packed() try {
  if (options.reference || (options.packed.empty() && options.cache_folder.empty())) return;
  if (model->defers_data) refuse_broken(*model);  // which brings in what the files are told by
  packed = std::make_unique<PackedWeights>(*model, options, log);
  const VariantChoice choice(options, {}, false);
  const std::string text = to_text(choice);
  if (!shares_graphs() || model->defers_data || !model->model.graph ||
      model->variants.was_asked_for(choice) || !packed->knows_clean_model(text))
    return;
  is_known_clean = true;
  defaults = defaults_of(*model->model.graph);
  graph_of_clean = packed->graph(text, input_names({}), output_names());
  is_known_clean = graph_of_clean.has_value();
} catch (const Error&) {
  refuse_broken(*model);  // matters more
  throw;
}

bool Session::Implementation::take_graph(const VariantChoice& choice, Variant& variant) const {
  if (!packed || !shares_graphs()) return false;
  variant.input_names = input_names(choice.overridden);
  const std::string text = to_text(choice);
  auto stored = text == to_text(VariantChoice(options, {}, false))
                    ? std::exchange(graph_of_clean, std::nullopt)
                    : std::nullopt;
  if (!stored) stored = packed->graph(text, variant.input_names, output_names());
  if (!stored) return false;
  if (const auto warn = log.warn()) std::ranges::for_each(stored->warnings, warn);
  variant.graph = std::move(stored->graph);
  variant.memory.add(wire::memory_of(variant.graph));
  return true;
}

bool Session::Implementation::make_graph(const VariantChoice& choice, Variant& variant) const {
  refuse_broken(*model);  // which nobody has looked at, where a file knows it as clean
  ir::Graph& graph = variant.graph;
  graph = lowered_graph(*model, options, choice.overridden, choice.separate_sizes);
  variant.input_names.clear();
  for (const ir::ValueInfo& input : graph.inputs) variant.input_names.push_back(input.name);
  const bool keep = model->graphs.are_wanted() && shares_graphs();
  std::vector<Warning> warnings;
  // The other variant of these inputs has said what is to be said.
  const DeclaredValues::Warn warn = choice.separate_sizes ? DeclaredValues::Warn() : log.warn();
  const DeclaredValues::Warn warn_and_keep = [&](const Warning& warning) {
    warnings.push_back(warning);
    if (warn) warn(warning);
  };
  DeclaredValues declared(runnable(), keep && !choice.separate_sizes ? warn_and_keep : warn);
  declared.hold_initializers();
  const auto inferred = declared.observer();
  variant.memory.add(wire::memory_of(graph));
  if (options.reference) {
    passes::require_sound(graph, {.pool = pool.get(), .inferred = inferred});
    return false;
  }
  const bool fuse = options.fuse && !options.all_outputs;
  variant.sized = SpecializedPlans::of(
      graph, {.packs = &model->packs, .fuse = fuse, .exact = options.exact}, *pool, inferred);
  model->packs.release_pages_of_files();
  if (variant.sized) return false;
  passes::optimize(graph, {.pool = pool.get(), .fuse = fuse, .inferred = inferred});
  model->packs.release_pages_of_files();
  if (keep)
    model->graphs.add({to_text(choice), model->judged().is_clean, graph, std::move(warnings)});
  return true;
}

Variants::Shared Session::Implementation::made_variant(const VariantChoice& choice) const {
  auto made = std::make_shared<Variant>();
  if (!take_graph(choice, *made) && !make_graph(choice, *made)) return made;
  const run::PlanServices services{&model->packs, options.exact};
  made->plan = std::make_shared<const run::Plan>(
      std::move(made->graph), std::span<const ops::ValueFacts>(),
      std::vector<std::pair<std::string, ops::ValueFacts>>(), services);
  model->packs.release_pages_of_files();
  return made;
}

SpecializedPlans::SpecializedPlan Session::Implementation::plan_of(
    const Variant& variant, std::span<const Value> given) const {
  if (!variant.sized) return {variant.plan, nullptr};
  SpecializedPlans::SpecializedPlan plan =
      within_limit(memory, [&] { return variant.sized->plan_for(given, *pool); });
  if (plan.is_new) {
    if (log.tells(LogLevel::debug)) tell_of_plan(variant, given, *plan.guards);
    store_packed();
  }
  if (plan.is_new && options.prepack) pack_now();
  return plan;
}

void Session::Implementation::tell_of_lost(std::string_view what) const {
  log.tell({.level = LogLevel::error,
            .place = "session",
            .message = fmt::format("the callback of an asynchronous run threw: {}", what),
            .advice = "it is dropped; callbacks have to deal with their errors themselves"});
}

void Session::Implementation::tell_of_plan(const Variant& variant, std::span<const Value> given,
                                           std::span<const std::string> guards) const {
  std::string sizes;
  for (size_t i = 0; i < given.size(); ++i) {
    if (!given[i].is_tensor()) continue;
    sizes += fmt::format("{}'{}' [{}]", sizes.empty() ? "" : ", ", variant.input_names[i],
                         fmt::join(given[i].tensor().shape(), ","));
  }
  log.tell({.level = LogLevel::debug,
            .place = "session",
            .message = fmt::format("a plan was made for inputs {}; it takes for granted: {}", sizes,
                                   fmt::join(guards, ", "))});
}

void Session::Implementation::run(const Variant& variant, std::span<const Value> given,
                                  std::span<Value> made, const RunOptions& run_options) const {
  std::optional<FloatControlScope> flushed;
  if (options.flush_denormals) flushed.emplace(FloatControl::current().with_flushed_denormals());
  eval::Environment environment(*pool, random.get());
  environment.cancel = run_options.cancel;
  environment.deadline = run_options.deadline;
  environment.memory_limit = run_options.memory_limit;
  const bool anew = options.output_allocator
                        ? run_into_allocated(variant, given, made, run_options, environment)
                        : run_variant(variant, given, made, run_options, environment, nullptr);
  // What views the caller's memory is copied, as outputs that are tensors have been already.
  for (Value& value : made) {
    if (value.kind() != Value::Kind::none && !value.is_tensor()) value = ir::owned(value);
  }
  if (declared_outputs->is_active() && (anew || !declared_outputs->has_checked()))
    declared_outputs->check(variant.input_names, given, made);
}

bool Session::Implementation::run_into_allocated(const Variant& variant,
                                                 std::span<const Value> given,
                                                 std::span<Value> made,
                                                 const RunOptions& run_options,
                                                 eval::Environment& environment) const {
  run::OutputMemory memory(options.output_allocator);
  std::vector<const void*> before;
  for (const Value& value : made)
    before.push_back(value.is_tensor() ? value.tensor().data() : nullptr);
  const bool anew = run_variant(variant, given, made, run_options, environment, &memory);
  memory.bring(environment, made, before);
  return anew;
}

bool Session::Implementation::run_variant(const Variant& variant, std::span<const Value> given,
                                          std::span<Value> made, const RunOptions& run_options,
                                          eval::Environment& environment,
                                          run::OutputMemory* memory) const {
  if (environment.is_watched()) environment.check_cancelled();  // there may be no step at all
  if (const auto plan = plan_of(variant, given).plan) {
    try {
      if (run_options.profile == nullptr) return plan->run(given, {}, made, environment, memory);
      run_profiled(plan, given, made, environment, *run_options.profile, memory);
      return true;
    } catch (const Error& error) {
      blame_inputs(error);
      throw;
    }
  }
  run::match_inputs(variant.graph.inputs, given);
  eval::Frame frame;
  for (size_t i = 0; i < given.size(); ++i)
    frame.set(variant.input_names[i], ir::aligned(given[i]));
  std::vector<Value> results;
  try {
    results = eval::run_graph(variant.graph, frame, environment, {.observe = {}, .is_sound = true});
  } catch (const Error& error) {
    blame_inputs(error);
    throw;
  }
  for (size_t i = 0; i < made.size() && i < results.size(); ++i) give(results[i], made[i]);
  return true;
}

Session::Session(const std::string& path, const SessionOptions& options)
    : Session(Model(path, loading_with(options)), options) {}

namespace {

// The outputs of a variant; those that the model does not declare have the types that the plan
// knows.
std::vector<ir::ValueInfo> typed_outputs(const Variant& variant) {
  std::vector<ir::ValueInfo> outputs = variant.outputs();
  if (!variant.plan) return outputs;
  for (size_t i = 0; i < outputs.size(); ++i) {
    const auto at = static_cast<size_t>(variant.plan->outputs()[i]);
    const ir::ValueType& type = variant.plan->values()[at].known.type;
    if (!outputs[i].type && type.is_known()) outputs[i].type = ir::to_proto(type);
  }
  return outputs;
}

// How many threads of its own a session is to have.
int wanted_threads(const SessionOptions& options) {
  if (options.threads > 0) return options.threads;
  const std::set<int> different(options.processors.begin(), options.processors.end());
  return different.empty() ? usable_cpus() : static_cast<int>(different.size());
}

std::shared_ptr<ThreadPool> pool_of(const SessionOptions& options) {
  if (options.processors.empty()) return std::make_shared<ThreadPool>(options.threads);
  usable_cpus();  // asked for before this thread is moved
  const StartOn there(options.processors);
  return std::make_shared<ThreadPool>(wanted_threads(options));
}

void tell_of_fewer_threads(const SessionLog& log, int wanted, int found) {
  if (found >= wanted) return;
  log.tell(
      {.level = LogLevel::warning,
       .place = "session",
       .message = fmt::format("{} threads were asked for; the system started {}", wanted, found),
       .advice = "runs take longer; raise the limit of processes, or ask for fewer threads"});
}

void check_options(const SessionOptions& options) {
  checked_threads(options.threads);
  if (options.shared_threads && !options.processors.empty())
    fail(ErrorCode::bad_input,
         "processors are for threads of the session's own, and it was given shared threads");
}

}  // namespace

Session::Session(const Model& model, const SessionOptions& options)
    : implementation_(std::make_shared<Implementation>()) {
  check_options(options);
  Implementation& s = *implementation_;
  s.model = with_given(model, options.initializers);
  s.options = options;
  s.log = SessionLog(options, s.model->warn);
  if (options.memory_limit != 0) {
    const int64_t used = s.model->memory ? s.model->memory->used() : 0;
    s.memory =
        std::make_shared<MemoryAccount>(options.memory_limit, "SessionOptions::memory_limit", used);
  }
  s.random = std::make_unique<ops::RandomStreams>(options.seed);
  within_limit(s.memory, [&] { s.take_packed(); });
  if (!s.is_known_clean) refuse_broken(*s.model);
  if (options.shared_threads) {
    s.pool = options.shared_threads->pool_;
  } else {
    s.pool = pool_of(options);
  }
  if (!options.shared_threads)
    tell_of_fewer_threads(s.log, wanted_threads(options), s.pool->threads());
  s.async = std::make_unique<AsyncRuns>(s.pool->threads(), options.processors, s.log);
  const ir::Graph& graph = s.runnable();
  if (!s.is_known_clean) s.defaults = defaults_of(graph);
  std::vector<ir::ValueInfo> inputs = graph.inputs;
  std::vector<ir::ValueInfo> outputs = graph.outputs;
  ir::name_open_sizes(inputs);
  if (!options.dimensions.empty()) {
    refuse_wrong_sizes(options.dimensions, inputs);
    fix_sizes(options.dimensions, inputs);
    fix_sizes(options.dimensions, outputs);
  }
  for (const ir::ValueInfo& input : inputs) {
    s.inputs.push_back(describe(input));
    s.inputs.back().optional = s.defaults.contains(input.name);
  }
  std::stable_partition(s.inputs.begin(), s.inputs.end(),
                        [](const ValueDescription& d) { return !d.optional; });
  s.declared_outputs =
      std::make_unique<DeclaredOutputs>(std::move(inputs), std::move(outputs), s.log.warn());
  s.scalars = std::make_unique<ScalarInputs>(s.inputs, s.model->strict, s.log.warn());
  for (size_t i = 0; i < s.inputs.size(); ++i) s.places.emplace(s.inputs[i].name, i);
  s.main = s.choose(VariantChoice(options, {}, false));
  s.graph_of_clean.reset();  // another session may have made the variant meanwhile
  for (const ir::ValueInfo& output : typed_outputs(*s.main->variant))
    s.outputs.push_back(describe(output));
}

Session::~Session() {
  if (implementation_) implementation_->async->finish();
}
Session::Session(Session&&) noexcept = default;
Session& Session::operator=(Session&& other) noexcept {
  if (this == &other) return *this;
  if (implementation_) implementation_->async->finish();
  implementation_ = std::move(other.implementation_);
  return *this;
}

const std::vector<ValueDescription>& Session::inputs() const {
  return behind(implementation_, "session").inputs;
}
const std::vector<ValueDescription>& Session::outputs() const {
  return behind(implementation_, "session").outputs;
}

// inputs.size() where no input has the name. A few names are compared faster than one is hashed.
size_t Session::Implementation::place_of(const std::string& name) const {
  constexpr size_t few = 8;
  if (inputs.size() <= few) {
    const auto at = std::ranges::find(inputs, name, &ValueDescription::name);
    return static_cast<size_t>(at - inputs.begin());
  }
  const auto found = places.find(name);
  return found == places.end() ? inputs.size() : found->second;
}

std::vector<Value> Session::Implementation::by_position(
    const std::vector<NamedValue>& named) const {
  std::vector<Value> given(inputs.size());
  for (const auto& [name, value] : named) {
    const size_t at = place_of(name);
    if (at == inputs.size()) {
      std::string names;
      for (const ValueDescription& d : inputs)
        names += (names.empty() ? "'" : ", '") + d.name + "'";
      fail_at(fmt::format("input '{}'", name), ErrorCode::bad_input,
              "the model has no input of this name; it has {}", names.empty() ? "none" : names);
    }
    if (given[at].kind() != Value::Kind::none)
      fail_at(fmt::format("input '{}'", name), ErrorCode::bad_input,
              "is given twice; each input takes one value");
    given[at] = value;
  }
  return given;
}

Session::Implementation::Taken Session::Implementation::take(std::span<const Value> given,
                                                             bool separate_sizes) const {
  if (given.size() > inputs.size())
    fail(ErrorCode::bad_input, "the model has {} inputs; got {}", inputs.size(), given.size());
  std::vector<bool> overridden;
  for (size_t i = 0; i < inputs.size(); ++i) {
    const bool is_given = i < given.size() && given[i].kind() != Value::Kind::none;
    if (is_given && inputs[i].optional) {
      overridden.resize(inputs.size());
      overridden[i] = true;
    }
    if (!is_given && !inputs[i].optional && inputs[i].kind != Value::Kind::optional) {
      fail_at(fmt::format("input '{}'", inputs[i].name), ErrorCode::bad_input,
              "is missing; the model takes {}", inputs[i].type);
    }
  }
  if (separate_sizes) overridden.resize(inputs.size());
  Taken taken{overridden.empty() ? main : choose(overridden, separate_sizes), {}, {}};
  const std::vector<size_t>& positions = taken.chosen->positions;
  bool in_order = positions.size() <= given.size();
  for (size_t i = 0; in_order && i < positions.size(); ++i)
    in_order = positions[i] == i && given[i].kind() != Value::Kind::none;
  if (in_order) {
    taken.inputs = given.first(positions.size());
    take_scalars(taken);
    return taken;
  }
  for (const size_t i : positions) {
    const bool is_given = i < given.size() && given[i].kind() != Value::Kind::none;
    // What may be left out has a type that is optional: then it has no element.
    taken.ordered.push_back(is_given ? given[i] : Value(Optional()));
  }
  taken.inputs = taken.ordered;
  take_scalars(taken);
  return taken;
}

void Session::Implementation::take_scalars(Taken& taken) const {
  if (!scalars->exist()) return;
  for (size_t i = 0; i < taken.inputs.size(); ++i) {
    auto meant = scalars->meant(taken.chosen->positions[i], taken.inputs[i]);
    if (!meant) continue;
    if (taken.ordered.empty()) {
      taken.ordered.assign(taken.inputs.begin(), taken.inputs.end());
      taken.inputs = taken.ordered;
    }
    taken.ordered[i] = std::move(*meant);
  }
}

std::vector<Value> Session::Implementation::run(const std::vector<NamedValue>& named,
                                                const RunOptions& run_options) const {
  const std::vector<Value> given = by_position(named);
  std::vector<Value> made(outputs.size());
  run(given, made, run_options);
  return made;
}

void Session::Implementation::run(std::span<const Value> given, std::span<Value> made,
                                  const RunOptions& run_options) const {
  if (given.size() > inputs.size() || made.size() != outputs.size()) {
    fail(ErrorCode::bad_input, "the model has {} inputs and {} outputs; got {} and {}",
         inputs.size(), outputs.size(), given.size(), made.size());
  }
  const auto run_with = [&](bool separate_sizes) {
    const Taken taken = take(given, separate_sizes);
    run(*taken.chosen->variant, taken.inputs, made, run_options);
  };
  // Sizes that differed once do so again: they are not refused first each time.
  if (sizes_differ.load(std::memory_order_relaxed)) {
    try {
      return run_with(true);
    } catch (const Error& error) {
      if (error.code() != ErrorCode::bad_input) throw;  // else it is told below
    }
  }
  try {
    run_with(false);
  } catch (const run::SizesDiffer& refused) {
    if (model->strict) throw;
    run_with_separate_sizes(given, made, run_options, refused);
  }
}

void Session::Implementation::run_with_separate_sizes(std::span<const Value> given,
                                                      std::span<Value> made,
                                                      const RunOptions& run_options,
                                                      const run::SizesDiffer& refused) const {
  const Taken taken = take(given, true);
  try {
    run(*taken.chosen->variant, taken.inputs, made, run_options);
  } catch (const run::ShapeMismatch&) {
    throw;  // something else is wrong with them
  } catch (const Error& error) {
    if (error.code() != ErrorCode::bad_input && error.code() != ErrorCode::run_failed) throw;
    throw Error(error.code(),
                fmt::format("{}. If these sizes are as they are meant: {}", refused.message(),
                            error.what()),
                refused.location());
  }
  if (sizes_differ.exchange(true)) return;
  const Warning warning{"SH-10", refused.location(), refused.difference(),
                        fmt::format("each input keeps its own; where that is meant, give the size "
                                    "another name: {}",
                                    refused.rename())};
  if (const auto warn = log.warn()) warn(warning);
}

std::vector<Value> Session::run(const std::vector<NamedValue>& inputs,
                                const RunOptions& options) const {
  return behind(implementation_, "session").run(inputs, options);
}

void Session::run(std::span<const Value> inputs, std::span<Value> outputs,
                  const RunOptions& options) const {
  behind(implementation_, "session").run(inputs, outputs, options);
}

void Session::run_async(std::vector<NamedValue> inputs, Done done, RunOptions options) const {
  // What a function object holds must be copied with it: held once instead.
  struct Work {
    std::shared_ptr<const Implementation> session;
    std::vector<NamedValue> inputs;
    Done done;
    RunOptions options;
  };
  AsyncRuns& runs = *behind(implementation_, "session").async;
  auto work = std::make_shared<Work>(
      Work{implementation_, std::move(inputs), std::move(done), std::move(options)});
  runs.add([work = std::move(work)] {
    std::vector<Value> made;
    std::exception_ptr error;
    try {
      made = work->session->run(work->inputs, work->options);
    } catch (...) {
      error = std::current_exception();
    }
    // Nothing of the run outlives `done`: who waits for that may end what the session depends on.
    const std::weak_ptr<const Implementation> session = work->session;
    const auto tell = [&](std::string_view what) {
      if (const auto alive = session.lock()) alive->tell_of_lost(what);
    };
    try {
      work->inputs = {};
      work->options = {};
      work->session.reset();
      if (const Done done = std::move(work->done)) done(std::move(made), std::move(error));
    } catch (const std::exception& thrown) {
      tell(thrown.what());
    } catch (...) {
      tell("an object of another type than std::exception");
    }
  });
}

std::future<std::vector<Value>> Session::run_async(std::vector<NamedValue> inputs,
                                                   RunOptions options) const {
  auto promise = std::make_shared<std::promise<std::vector<Value>>>();
  std::future<std::vector<Value>> future = promise->get_future();
  const auto done = [promise = std::move(promise)](std::vector<Value> made,
                                                   std::exception_ptr error) {
    if (error) {
      promise->set_exception(std::move(error));
    } else {
      promise->set_value(std::move(made));
    }
  };
  run_async(std::move(inputs), done, std::move(options));
  return future;
}

void run_session(const Session::Implementation& session, std::span<const Value> inputs,
                 std::span<Value> outputs, const RunOptions& options) {
  session.run(inputs, outputs, options);
}

const std::vector<ValueDescription>& inputs_of(const Session::Implementation& session) {
  return session.inputs;
}

const std::vector<ValueDescription>& outputs_of(const Session::Implementation& session) {
  return session.outputs;
}

namespace {

constexpr int max_body_levels = 16;  // of bodies in bodies that are described

std::vector<StepDescription> describe(const run::Plan* plan, int level = 0);

std::vector<StepDescription::Body> bodies_of(const run::PlanStep& step, int level) {
  std::vector<StepDescription::Body> bodies;
  if (level >= max_body_levels) return bodies;
  for (const run::PlanStep::Body& body : step.bodies) {
    StepDescription::Body& description = bodies.emplace_back();
    ir::for_each_subgraph(*step.node, [&](const ir::Graph& graph, const ir::Attribute& of, int i) {
      if (&graph == body.graph && description.name.empty())
        description.name = i < 0 ? of.name : fmt::format("{}[{}]", of.name, i);
    });
    description.is_planned = body.plan != nullptr;
    description.steps = describe(body.plan.get(), level + 1);
  }
  return bodies;
}

std::vector<StepDescription> describe(const run::Plan* plan, int level) {
  std::vector<StepDescription> steps;
  if (plan == nullptr) return steps;
  for (const run::PlanStep& step : plan->steps()) {
    StepDescription& description = steps.emplace_back();
    description.node = ir::describe(*step.node);
    description.origin = step.node->origin;
    description.sources = ir::told_sources(*step.node);
    description.kernel = step.step ? std::string(step.step->kernel()) : "evaluated plainly";
    for (const ops::Refusal& refusal : step.refusals) {
      description.refused.push_back(fmt::format("{}: {}", refusal.kernel, refusal.reason));
    }
    description.bodies = bodies_of(step, level);
  }
  return steps;
}

}  // namespace

std::vector<StepDescription> Session::steps() const {
  const Implementation& s = behind(implementation_, "session");
  const Variant& variant = *s.main->variant;
  const auto plan = variant.sized ? variant.sized->symbolic(*s.pool) : variant.plan;
  return describe(plan.get());
}

PlanDescription Session::plan_for(const std::vector<NamedValue>& inputs) const {
  const Implementation& s = behind(implementation_, "session");
  const std::vector<Value> given = s.by_position(inputs);
  const Implementation::Taken taken = s.take(given);
  const SpecializedPlans::SpecializedPlan plan = s.plan_of(*taken.chosen->variant, taken.inputs);
  return {plan.guards ? *plan.guards : std::vector<std::string>(), describe(plan.plan.get())};
}

int64_t Session::packed_bytes() const {
  return behind(implementation_, "session").model->packs.bytes();
}

int64_t Session::arena_bytes() const {
  const auto& variant = behind(implementation_, "session").main->variant;
  if (variant->sized) return variant->sized->arena_bytes();
  return variant->plan ? variant->plan->arena_bytes() : 0;
}

std::string_view version() { return SARDONYX_VERSION; }

}  // namespace sardonyx
