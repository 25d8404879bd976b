// TrainingSession: the three methods of a training model.
#include <algorithm>
#include <mutex>
#include <unordered_set>

#include "base/fail.h"
#include "base/moved_from.h"
#include "check/check.h"
#include "ir/walk.h"
#include "sardonyx/training.h"
#include "session/describe.h"
#include "session/lowered.h"
#include "session/model.h"
#include "tools/saving.h"
#include "train/master_weights.h"
#include "train/merge_lora.h"
#include "train/method.h"
#include "train/mixed.h"
#include "train/state.h"
#include "train/step_method.h"

namespace sardonyx {
namespace {

using train::Method;
using train::Snapshot;
using train::StateTable;
using train::StateVariable;
using train::StepMethod;

constexpr std::string_view seed_key = "sardonyx.training.seed";
constexpr std::string_view turn_key = "sardonyx.training.turn";
constexpr std::string_view recompute_key = "sardonyx.training.recompute";

// The checker's rules of training information are this layer's, too: whatever breaks one has no
// meaning that could be run.
void refuse_broken_training(const ir::Model& model, const ops::CustomTable& custom) {
  if (model.training_info.empty())
    fail_at(model.path, ErrorCode::invalid_model,
            "the model has no training information; sardonyx make-trainable makes a model with it "
            "of one for inference [TR-03]");
  const auto concerns = [](const check::Diagnostic& finding) {
    return finding.severity == check::Severity::error &&
           (finding.rule.starts_with("TR-") || finding.place.graph.starts_with("training_info"));
  };
  const auto findings = check::check(model, {.more = &custom});
  const auto count = std::ranges::count_if(findings, concerns);
  if (count == 0) return;
  const check::Diagnostic& first = *std::ranges::find_if(findings, concerns);
  std::string message = fmt::format("{}{}{} [{}]", first.message, first.advice.empty() ? "" : "; ",
                                    first.advice, first.rule);
  if (count > 1) message += fmt::format(" (and {} more; `sardonyx check` lists them)", count - 1);
  throw Error(ErrorCode::invalid_model, message, first.place.to_string());
}

// An algorithm that is empty changes nothing (TR-22); one that computes must give something.
void require_outputs(const ir::Model& model) {
  for (size_t i = 0; i < model.training_info.size(); ++i) {
    const auto& algorithm = model.training_info[i].algorithm;
    if (algorithm && algorithm->outputs.empty() && !algorithm->nodes.empty())
      fail_at(fmt::format("training_info[{}].algorithm", i), ErrorCode::invalid_model,
              "has {} nodes and no outputs, so that it can neither update nor tell anything",
              algorithm->nodes.size());
  }
}

const std::string* find_metadata(const ir::Model& model, std::string_view key) {
  const auto found = std::ranges::find(model.metadata_props, key, &ir::StringEntry::key);
  return found == model.metadata_props.end() ? nullptr : &found->value;
}

uint64_t counted(const ir::Model& model, std::string_view key) {
  const std::string* text = find_metadata(model, key);
  if (text == nullptr) return 0;
  uint64_t number = 0;
  for (const char c : *text) {
    const auto digit = static_cast<uint64_t>(c - '0');
    if (c < '0' || c > '9' || number > (UINT64_MAX - digit) / 10)
      fail_at(fmt::format("metadata_props '{}'", key), ErrorCode::invalid_model,
              "must be a whole number of at most 64 bits; it is '{}'", text->substr(0, 40));
    number = number * 10 + digit;
  }
  return number;
}

// What the caller asks, or what the model was made for.
TrainingOptions resolved(const ir::Model& model, TrainingOptions options) {
  const std::string* recompute = find_metadata(model, recompute_key);
  if (!options.recompute) options.recompute = recompute != nullptr && *recompute == "1";
  return options;
}

void set_metadata(ir::Model& model, std::string_view key, std::string value) {
  const auto found = std::ranges::find(model.metadata_props, key, &ir::StringEntry::key);
  ir::StringEntry& entry =
      found != model.metadata_props.end() ? *found : model.metadata_props.emplace_back();
  entry.key = key, entry.value = std::move(value);
}

}  // namespace

// Functions that neither the main graph nor another function that stays calls.
void train::drop_training(ir::Model& model) {
  model.training_info.clear();
  const auto is_training = [](const ir::StringEntry& entry) {
    return entry.key.starts_with("sardonyx.training.");
  };
  std::erase_if(model.metadata_props, is_training);
  bool changed = true;
  while (changed) {
    std::unordered_set<std::string> called;
    const auto call = [&](const ir::WalkPlace&, const ir::Node& node, size_t) {
      called.insert(std::string(ir::canonical_domain(node.domain)) + ":" + node.op_type);
    };
    ir::walk(model, {.node = call});
    changed = std::erase_if(model.functions, [&](const ir::Function& f) {
                return !called.contains(std::string(ir::canonical_domain(f.domain)) + ":" + f.name);
              }) > 0;
  }
  std::unordered_set<std::string> domains{""};
  const auto note = [&](const ir::WalkPlace&, const ir::Node& node, size_t) {
    domains.insert(std::string(ir::canonical_domain(node.domain)));
  };
  ir::walk(model, {.node = note});
  std::erase_if(model.opset_imports, [&](const ir::OperatorSetId& set) {
    const std::string domain(ir::canonical_domain(set.domain));
    return domain != "ai.onnx.ml" && !domains.contains(domain);
  });
}

namespace {

// What a graph of an entry makes of the state.
struct Update {
  size_t state;
  size_t output;  // of the method's graph
};

struct Entry {
  std::shared_ptr<const Method> initialization;  // null: nothing to do
  std::vector<Update> initialized;
  std::unique_ptr<const StepMethod> step;  // null: an algorithm without outputs
  std::vector<Update> updated;
  std::vector<size_t> told;  // outputs of the step's graph that step() gives
  std::vector<ValueDescription> told_outputs;
};

std::vector<Update> updates(const std::vector<ir::StringEntry>& bindings,
                            const std::vector<std::string>& outputs, const StateTable& table,
                            size_t entry) {
  std::vector<Update> made;
  for (const ir::StringEntry& binding : bindings) {
    const auto output = std::ranges::find(outputs, binding.value) - outputs.begin();
    made.push_back(
        {*table.find(binding.key, static_cast<int>(entry)), static_cast<size_t>(output)});
  }
  return made;
}

const std::vector<ValueDescription> no_values;

}  // namespace

struct TrainingSession::Implementation {
  Implementation(const Model& given, const TrainingOptions& asked)
      : model(given.share()),
        options(resolved(model->runnable(), asked)),
        pool(checked_threads(asked.threads)),
        table(checked(*model)),
        seed(asked.seed.value_or(counted(model->runnable(), seed_key))),
        passing(mixed(seed ^ 0x6d6561737572650a)) {
    const ir::Model& from = model->runnable();
    for (const StateVariable& one : table.all()) {
      ir::ValueInfo info;
      ValueDescription& description = variables.emplace_back(describe(info));
      description.name = one.name, description.element_type = one.element;
      description.shape.emplace();
      for (const int64_t size : one.shape) description.shape->push_back({size, ""});
      description.type = fmt::format("{}{}", name_of(one.element), to_string(one.shape));
    }
    now = std::make_shared<const Snapshot>(
        Snapshot{train::initial_values(from, table), counted(from, turn_key)});
    inference = method(train::inference_model(from, table));
    for (size_t i = 0; i < from.training_info.size(); ++i) entries.push_back(entry(i));
  }

  static int checked_threads(int count) {
    constexpr int most = 4096;
    if (count < 0 || count > most)
      fail(ErrorCode::bad_input,
           "threads must be 0, for as many as the process may use, or 1 to {}; got {}", most,
           count);
    return count;
  }

  static const ir::Model& checked(const Model::Implementation& model) {
    refuse_broken(model);
    refuse_broken_training(model.runnable(), model.custom);
    require_outputs(model.runnable());
    return model.runnable();
  }

  std::shared_ptr<const Method> method(train::MethodModel from) const {
    return within_limit(model->memory, [&] {
      auto made = std::make_shared<const Method>(*model, std::move(from), table, options, pool);
      model->packs.release_pages_of_files();
      return made;
    });
  }

  Entry entry(size_t index) {
    const ir::Model& from = model->runnable();
    const ir::TrainingInfo& info = from.training_info[index];
    Entry made;
    if (info.initialization && !info.initialization_binding.empty()) {
      const auto outputs = train::unique_names(info.initialization_binding);
      made.initialized = updates(info.initialization_binding, outputs, table, index);
      made.initialization = method(train::initialization_model(from, table, index, outputs));
    }
    std::vector<std::string> outputs = train::unique_names(info.update_binding);
    made.updated = updates(info.update_binding, outputs, table, index);
    if (info.algorithm) {
      for (const ir::ValueInfo& output : info.algorithm->outputs) {
        if (std::ranges::find(outputs, output.name) != outputs.end()) continue;
        made.told.push_back(outputs.size());
        outputs.push_back(output.name);
      }
    }
    if (outputs.empty()) return made;
    made.step = std::make_unique<const StepMethod>(
        train::step_model(from, table, index, outputs), table,
        [this](train::MethodModel sized) { return method(std::move(sized)); });
    for (const size_t output : made.told) made.told_outputs.push_back(made.step->outputs()[output]);
    return made;
  }

  std::shared_ptr<const Snapshot> current() const {
    const std::lock_guard lock(mutex);
    return now;
  }
  void publish(Snapshot next) {
    auto made = std::make_shared<const Snapshot>(std::move(next));
    const std::lock_guard lock(mutex);
    now.swap(made);
  }

  const Entry& at(size_t which) const {
    if (which >= entries.size())
      fail(ErrorCode::bad_input, "the model has {} algorithms; there is no number {}",
           entries.size(), which);
    return entries[which];
  }

  void assign(const std::vector<Update>& updates, const std::vector<Value>& made,
              std::string_view what, Snapshot& next) const {
    for (const Update& update : updates) {
      train::require_fits(table.all()[update.state], made[update.output], what);
      next.values[update.state] = made[update.output].tensor();
    }
  }

  const std::shared_ptr<const Model::Implementation> model;
  const TrainingOptions options;
  mutable ThreadPool pool;
  const StateTable table;
  const uint64_t seed;
  mutable ops::RandomStreams passing;  // of what changes no state
  std::vector<ValueDescription> variables;
  std::shared_ptr<const Method> inference;
  std::vector<Entry> entries;

  std::mutex changing;  // held by who changes the state, from reading to assigning it
  mutable std::mutex mutex;
  std::shared_ptr<const Snapshot> now;
};

TrainingSession::TrainingSession(const std::string& path, const TrainingOptions& options)
    : TrainingSession(Model(path), options) {}
TrainingSession::TrainingSession(const Model& model, const TrainingOptions& options)
    : implementation_(std::make_unique<Implementation>(model, options)) {}
TrainingSession::~TrainingSession() = default;
TrainingSession::TrainingSession(TrainingSession&&) noexcept = default;
TrainingSession& TrainingSession::operator=(TrainingSession&&) noexcept = default;

size_t TrainingSession::algorithm_count() const {
  return behind(implementation_, "training session").entries.size();
}

const std::vector<ValueDescription>& TrainingSession::inputs() const {
  return behind(implementation_, "training session").inference->inputs();
}
const std::vector<ValueDescription>& TrainingSession::outputs() const {
  return behind(implementation_, "training session").inference->outputs();
}
const std::vector<ValueDescription>& TrainingSession::step_inputs(size_t which) const {
  const Entry& entry = behind(implementation_, "training session").at(which);
  return entry.step ? entry.step->inputs() : no_values;
}
const std::vector<ValueDescription>& TrainingSession::step_outputs(size_t which) const {
  return behind(implementation_, "training session").at(which).told_outputs;
}
const std::vector<ValueDescription>& TrainingSession::state_variables() const {
  return behind(implementation_, "training session").variables;
}

void TrainingSession::initialize(const RunOptions& options) {
  Implementation& s = behind(implementation_, "training session");
  const std::lock_guard lock(s.changing);
  Snapshot next = *s.current();
  ops::RandomStreams random(mixed(s.seed ^ mixed(next.turn)));
  for (size_t i = 0; i < s.entries.size(); ++i) {
    const Entry& entry = s.entries[i];
    if (!entry.initialization) continue;
    const auto made = entry.initialization->run({}, next, random, options);
    s.assign(entry.initialized, made, fmt::format("initialized by training_info[{}],", i), next);
  }
  ++next.turn;
  s.publish(std::move(next));
}

std::vector<Value> TrainingSession::step(const std::vector<NamedValue>& inputs, size_t which,
                                         const StepOptions& options) {
  Implementation& s = behind(implementation_, "training session");
  const Entry& entry = s.at(which);
  if (!entry.step) return {};
  const auto tell = [&](std::vector<Value>& made) {
    std::vector<Value> told;
    for (const size_t output : entry.told) told.push_back(std::move(made[output]));
    return told;
  };
  if (entry.updated.empty()) {
    auto made = entry.step->for_inputs(inputs)->run(inputs, *s.current(), s.passing, options.run);
    return tell(made);
  }
  const std::lock_guard lock(s.changing);
  const auto before = s.current();
  ops::RandomStreams random(mixed(s.seed ^ mixed(before->turn)));
  auto made = entry.step->for_inputs(inputs)->run(inputs, *before, random, options.run);
  Snapshot next = *before;
  s.assign(entry.updated, made, fmt::format("updated by training_info[{}],", which), next);
  std::vector<Value> told = tell(made);
  if (options.accept && !options.accept(told)) return told;
  ++next.turn;
  s.publish(std::move(next));
  return told;
}

std::vector<Value> TrainingSession::infer(const std::vector<NamedValue>& inputs,
                                          const RunOptions& options) const {
  const Implementation& s = behind(implementation_, "training session");
  return s.inference->run(inputs, *s.current(), s.passing, options);
}

std::vector<NamedValue> TrainingSession::state() const {
  const Implementation& s = behind(implementation_, "training session");
  const auto now = s.current();
  std::vector<NamedValue> named;
  for (size_t i = 0; i < now->values.size(); ++i)
    named.emplace_back(s.table.all()[i].name, now->values[i]);
  return named;
}

void TrainingSession::set_state(const std::vector<NamedValue>& values) {
  Implementation& s = behind(implementation_, "training session");
  const std::lock_guard lock(s.changing);
  Snapshot next = *s.current();
  std::unordered_set<size_t> given;
  for (const auto& [name, value] : values) {
    const std::string place = fmt::format("state variable '{}'", name);
    const auto index = s.table.find_named(name);
    if (!index)
      fail_at(place, ErrorCode::bad_input, "is none of the model's; it has {}", s.table.names());
    if (!given.insert(*index).second) fail_at(place, ErrorCode::bad_input, "is given twice");
    train::require_fits(s.table.all()[*index], value, "given a value,");
    // The caller's memory may change after the call.
    const Tensor& tensor = value.tensor();
    next.values[*index] = tensor.owner() ? tensor : ops::to_owned(value).tensor();
  }
  s.publish(std::move(next));
}

uint64_t TrainingSession::turn() const {
  return behind(implementation_, "training session").current()->turn;
}
uint64_t TrainingSession::seed() const { return behind(implementation_, "training session").seed; }

std::string TrainingSession::metadata(std::string_view key) const {
  const std::string* found =
      find_metadata(behind(implementation_, "training session").model->runnable(), key);
  return found == nullptr ? std::string() : *found;
}

void TrainingSession::save(const std::string& path, const TrainingSaveOptions& options) const {
  const Implementation& s = behind(implementation_, "training session");
  const auto now = s.current();
  ir::Model model = s.model->runnable();
  train::store_values(model, s.table, now->values);
  set_metadata(model, seed_key, fmt::format("{}", s.seed));
  set_metadata(model, turn_key, fmt::format("{}", now->turn));
  if (options.inference_only || options.merge_lora) train::drop_training(model);
  if (options.merge_lora && train::merge_lora(model) == 0)
    fail(ErrorCode::bad_input,
         "the model has no low-rank products to merge; make_trainable adds them where it is asked "
         "for LoRA");
  if (options.inference_only && model.graph) train::narrow_master_weights(*model.graph);
  for (const auto& [key, value] : options.metadata) set_metadata(model, key, value);
  SaveOptions saving;
  saving.external_data = options.external_data;
  save_model(std::move(model), path, saving);
}

}  // namespace sardonyx
