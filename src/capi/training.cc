#include "sardonyx/training.h"
#include "capi/session.h"
#include "sardonyx/trainable.h"

using namespace sardonyx;
using namespace sardonyx::capi;

struct sardonyx_training {
  SARDONYX_TAG('t', 'r');
  struct Algorithm {
    Descriptions inputs, outputs;
  };
  explicit sardonyx_training(TrainingSession made) : session(std::move(made)) {
    inputs = described(session.inputs());
    outputs = described(session.outputs());
    state = described(session.state_variables());
    for (size_t i = 0; i < session.algorithm_count(); ++i)
      algorithms.push_back({described(session.step_inputs(i)), described(session.step_outputs(i))});
  }

  TrainingSession session;
  Descriptions inputs, outputs, state;  // which texts point into
  std::vector<Algorithm> algorithms;
};

namespace {

TrainingOptions training_options(const sardonyx_training_options* given) {
  const sardonyx_training_options known = known_part(given);
  TrainingOptions options;
  options.threads = known.threads;
  options.reference = known.reference != 0;
  options.fuse = known.no_fusion == 0;
  options.exact = known.exact != 0;
  if (known.has_seed != 0) options.seed = known.seed;
  if (known.recompute != 0) options.recompute = known.recompute > 0;
  return options;
}

// Of a run's options those that limit it: a training has no profile.
RunOptions limits_of(const sardonyx_run_options* given) {
  RunOptions options = run_options(given);
  options.profile = nullptr;
  return options;
}

std::vector<NamedValue> named(const char* const* names, const sardonyx_value* const* values,
                              size_t count, const char* names_argument, const char* argument) {
  if (count > 0) required(values, argument);
  std::vector<NamedValue> list;
  const std::vector<std::string> given = texts(names, count, names_argument);
  for (size_t i = 0; i < count; ++i) list.emplace_back(given[i], value_of(values[i], argument));
  return list;
}

void require_room(size_t count, size_t needed, sardonyx_value** outputs) {
  if (count != needed)
    fail(ErrorCode::bad_input, "there is room for {} outputs; there are {}", count, needed);
  if (count > 0) required(outputs, "outputs");
}

void hand_out(std::vector<Value> values, sardonyx_value** outputs) {
  std::vector<std::unique_ptr<sardonyx_value>> made;
  for (Value& value : values) made.emplace_back(new_value(std::move(value)));
  for (size_t i = 0; i < made.size(); ++i) outputs[i] = made[i].release();
}

const Description& at(const Descriptions& list, size_t index, const char* what) {
  if (index >= list.size())
    fail(ErrorCode::bad_input, "there is no {} {} of {}", what, index, list.size());
  return *list[index];
}

const sardonyx_training::Algorithm& algorithm_of(const sardonyx_training& training, size_t which) {
  if (which >= training.algorithms.size())
    fail(ErrorCode::bad_input, "the model has {} algorithms; there is no number {}",
         training.algorithms.size(), which);
  return training.algorithms[which];
}

TrainableOptions trainable_options(const sardonyx_trainable_options* given) {
  const sardonyx_trainable_options known = known_part(given);
  TrainableOptions options;
  if (known.loss != nullptr) options.loss = loss_named(known.loss);
  if (known.optimizer != nullptr) options.optimizer = optimizer_named(known.optimizer);
  if (known.schedule != nullptr) options.schedule = schedule_named(known.schedule);
  if (known.output != nullptr) options.output = known.output;
  options.learning_rate = known.learning_rate;
  options.weight_decay = known.weight_decay;
  options.clip_norm = known.clip_norm;
  options.schedule.warmup = known.warmup;
  if (known.accumulate != 0) options.accumulate = known.accumulate;
  options.freeze = texts(known.freeze, known.freeze_count, "freeze");
  options.train = texts(known.train, known.train_count, "train");
  for (const std::string& text : texts(known.lora, known.lora_count, "lora"))
    options.lora.push_back(lora_named(text));
  if (known.random_weights != 0) options.initial_weights = InitialWeights::random;
  options.seed = known.seed;
  if (known.precision != nullptr) options.precision = precision_named(known.precision);
  if (known.loss_scale != 0) options.loss_scale = known.loss_scale;
  if (known.scale_growth != 0) options.scale_growth = known.scale_growth;
  options.recompute = known.recompute != 0;
  return options;
}

}  // namespace

sardonyx_status* sardonyx_training_create(const sardonyx_model* model,
                                          const sardonyx_training_options* options,
                                          sardonyx_training** training) {
  return guarded([&] {
    required(training, "training");
    *training = new sardonyx_training(
        TrainingSession(required(model, "model").model, training_options(options)));
  });
}

sardonyx_status* sardonyx_training_load(const char* path, const sardonyx_load_options* load,
                                        const sardonyx_training_options* options,
                                        sardonyx_training** training) {
  return guarded([&] {
    required(training, "training");
    *training = new sardonyx_training(TrainingSession(
        Model(&required(path, "path"), load_options(load)), training_options(options)));
  });
}

void sardonyx_training_release(sardonyx_training* training) { release_handle(training); }

size_t sardonyx_training_algorithm_count(const sardonyx_training* training) {
  return !is_usable(training) ? 0 : training->algorithms.size();
}
size_t sardonyx_training_input_count(const sardonyx_training* training) {
  return !is_usable(training) ? 0 : training->inputs.size();
}
size_t sardonyx_training_output_count(const sardonyx_training* training) {
  return !is_usable(training) ? 0 : training->outputs.size();
}
size_t sardonyx_training_state_count(const sardonyx_training* training) {
  return !is_usable(training) ? 0 : training->state.size();
}
size_t sardonyx_training_step_input_count(const sardonyx_training* training, size_t algorithm) {
  if (!is_usable(training) || algorithm >= training->algorithms.size()) return 0;
  return training->algorithms[algorithm].inputs.size();
}
size_t sardonyx_training_step_output_count(const sardonyx_training* training, size_t algorithm) {
  if (!is_usable(training) || algorithm >= training->algorithms.size()) return 0;
  return training->algorithms[algorithm].outputs.size();
}

sardonyx_status* sardonyx_training_input(const sardonyx_training* training, size_t index,
                                         sardonyx_value_info* info) {
  return guarded(
      [&] { fill(info, at(required(training, "training").inputs, index, "input").info()); });
}
sardonyx_status* sardonyx_training_output(const sardonyx_training* training, size_t index,
                                          sardonyx_value_info* info) {
  return guarded(
      [&] { fill(info, at(required(training, "training").outputs, index, "output").info()); });
}
sardonyx_status* sardonyx_training_state_variable(const sardonyx_training* training, size_t index,
                                                  sardonyx_value_info* info) {
  return guarded([&] {
    fill(info, at(required(training, "training").state, index, "state variable").info());
  });
}
sardonyx_status* sardonyx_training_step_input(const sardonyx_training* training, size_t algorithm,
                                              size_t index, sardonyx_value_info* info) {
  return guarded([&] {
    const auto& of = algorithm_of(required(training, "training"), algorithm);
    fill(info, at(of.inputs, index, "input").info());
  });
}
sardonyx_status* sardonyx_training_step_output(const sardonyx_training* training, size_t algorithm,
                                               size_t index, sardonyx_value_info* info) {
  return guarded([&] {
    const auto& of = algorithm_of(required(training, "training"), algorithm);
    fill(info, at(of.outputs, index, "output").info());
  });
}

sardonyx_status* sardonyx_training_initialize(sardonyx_training* training,
                                              const sardonyx_run_options* options) {
  return guarded([&] { required(training, "training").session.initialize(limits_of(options)); });
}

sardonyx_status* sardonyx_training_step(sardonyx_training* training, size_t algorithm,
                                        const sardonyx_run_options* options,
                                        const char* const* input_names,
                                        const sardonyx_value* const* inputs, size_t input_count,
                                        sardonyx_value** outputs, size_t output_count) {
  return guarded([&] {
    sardonyx_training& of = required(training, "training");
    require_room(output_count, algorithm_of(of, algorithm).outputs.size(), outputs);
    StepOptions stepping;
    stepping.run = limits_of(options);
    hand_out(of.session.step(named(input_names, inputs, input_count, "input_names", "inputs"),
                             algorithm, stepping),
             outputs);
  });
}

sardonyx_status* sardonyx_training_infer(const sardonyx_training* training,
                                         const sardonyx_run_options* options,
                                         const char* const* input_names,
                                         const sardonyx_value* const* inputs, size_t input_count,
                                         sardonyx_value** outputs, size_t output_count) {
  return guarded([&] {
    const sardonyx_training& of = required(training, "training");
    require_room(output_count, of.outputs.size(), outputs);
    hand_out(of.session.infer(named(input_names, inputs, input_count, "input_names", "inputs"),
                              limits_of(options)),
             outputs);
  });
}

sardonyx_status* sardonyx_training_get_state(const sardonyx_training* training, const char* name,
                                             sardonyx_value** value) {
  return guarded([&] {
    const std::string wanted = &required(name, "name");
    required(value, "value");
    for (auto& [key, held] : required(training, "training").session.state()) {
      if (key != wanted) continue;
      *value = new_value(std::move(held));
      return;
    }
    fail(ErrorCode::bad_input, "the model has no state variable '{}'", wanted);
  });
}

sardonyx_status* sardonyx_training_set_state(sardonyx_training* training, const char* const* names,
                                             const sardonyx_value* const* values, size_t count) {
  return guarded([&] {
    required(training, "training")
        .session.set_state(named(names, values, count, "names", "values"));
  });
}

uint64_t sardonyx_training_turn(const sardonyx_training* training) {
  return !is_usable(training) ? 0 : training->session.turn();
}

sardonyx_status* sardonyx_training_save(const sardonyx_training* training, const char* path,
                                        const sardonyx_training_save_options* options) {
  return guarded([&] {
    const sardonyx_training_save_options known = known_part(options);
    TrainingSaveOptions saving;
    saving.inference_only = known.inference_only != 0;
    saving.merge_lora = known.merge_lora != 0;
    if (known.external_data != nullptr) saving.external_data = known.external_data;
    required(training, "training").session.save(&required(path, "path"), saving);
  });
}

sardonyx_status* sardonyx_make_trainable(const sardonyx_model* model,
                                         const sardonyx_trainable_options* options,
                                         sardonyx_model** trainable) {
  return guarded([&] {
    required(trainable, "trainable");
    *trainable = new sardonyx_model{
        {}, make_trainable(required(model, "model").model, trainable_options(options))};
  });
}
