// Training through the C interface: sessions, and the models that they are made of.
#include "capi/training.h"

#include <algorithm>

#include "capi/named_values.h"

using namespace sardonyx;
using namespace sardonyx::capi;

const sardonyx_training::Algorithm& capi::algorithm_of(const sardonyx_training& training,
                                                       size_t which) {
  if (which >= training.algorithms.size())
    fail(ErrorCode::bad_input, "the model has {} algorithms; there is no number {}",
         training.algorithms.size(), which);
  return training.algorithms[which];
}

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

bool is_accepted(std::span<const Value> made, sardonyx_accept_function accept, void* user) {
  std::vector<std::unique_ptr<sardonyx_value>> handles;
  std::vector<const sardonyx_value*> told;
  for (const Value& value : made) {
    handles.emplace_back(new_value(value));
    told.push_back(handles.back().get());
  }
  return accept(told.data(), told.size(), user) != 0;
}

const Description& at(const Descriptions& list, size_t index, const char* what) {
  if (index >= list.size())
    fail(ErrorCode::bad_input, "there is no {} {} of {}", what, index, list.size());
  return *list[index];
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
    const TrainingOptions wanted = training_options(options);  // refused before a file is read
    *training = new sardonyx_training(
        TrainingSession(Model(&required(path, "path"), load_options(load)), wanted));
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
  return guarded([&] {
    fill(info, "info", at(required(training, "training").inputs, index, "input").info());
  });
}
sardonyx_status* sardonyx_training_output(const sardonyx_training* training, size_t index,
                                          sardonyx_value_info* info) {
  return guarded([&] {
    fill(info, "info", at(required(training, "training").outputs, index, "output").info());
  });
}
sardonyx_status* sardonyx_training_state_variable(const sardonyx_training* training, size_t index,
                                                  sardonyx_value_info* info) {
  return guarded([&] {
    fill(info, "info", at(required(training, "training").state, index, "state variable").info());
  });
}
sardonyx_status* sardonyx_training_step_input(const sardonyx_training* training, size_t algorithm,
                                              size_t index, sardonyx_value_info* info) {
  return guarded([&] {
    const auto& of = algorithm_of(required(training, "training"), algorithm);
    fill(info, "info", at(of.inputs, index, "input").info());
  });
}
sardonyx_status* sardonyx_training_step_output(const sardonyx_training* training, size_t algorithm,
                                               size_t index, sardonyx_value_info* info) {
  return guarded([&] {
    const auto& of = algorithm_of(required(training, "training"), algorithm);
    fill(info, "info", at(of.outputs, index, "output").info());
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
  return sardonyx_training_step_if(training, algorithm, options, input_names, inputs, input_count,
                                   nullptr, nullptr, outputs, output_count);
}

sardonyx_status* sardonyx_training_step_if(sardonyx_training* training, size_t algorithm,
                                           const sardonyx_run_options* options,
                                           const char* const* input_names,
                                           const sardonyx_value* const* inputs, size_t input_count,
                                           sardonyx_accept_function accept, void* user,
                                           sardonyx_value** outputs, size_t output_count) {
  return guarded([&] {
    sardonyx_training& of = required(training, "training");
    require_room(output_count, algorithm_of(of, algorithm).outputs.size(), outputs);
    StepOptions stepping;
    stepping.run = limits_of(options);
    if (accept != nullptr) {
      stepping.accept = [accept, user](std::span<const Value> made) {
        return is_accepted(made, accept, user);
      };
    }
    hand_out(
        of.session.step(named_values(input_names, inputs, input_count, "input_names", "inputs"),
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
    hand_out(
        of.session.infer(named_values(input_names, inputs, input_count, "input_names", "inputs"),
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
        .session.set_state(named_values(names, values, count, "names", "values"));
  });
}

sardonyx_status* sardonyx_training_state(const sardonyx_training* training,
                                         sardonyx_named_values** list) {
  return guarded([&] {
    const sardonyx_training& of = required(training, "training");
    required(list, "list");
    *list = new sardonyx_named_values{{}, of.session.state()};
  });
}

uint64_t sardonyx_training_seed(const sardonyx_training* training) {
  return !is_usable(training) ? 0 : training->session.seed();
}

sardonyx_status* sardonyx_training_metadata(const sardonyx_training* training, const char* key,
                                            sardonyx_bytes** text) {
  return guarded([&] {
    const sardonyx_training& of = required(training, "training");
    const std::string_view wanted = &required(key, "key");
    give_bytes(text, [&] { return of.session.metadata(wanted); });
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
    const auto keys = texts(known.metadata_keys, known.metadata_count, "metadata_keys");
    const auto values = texts(known.metadata_values, known.metadata_count, "metadata_values");
    for (size_t i = 0; i < keys.size(); ++i) saving.metadata.emplace_back(keys[i], values[i]);
    required(training, "training").session.save(&required(path, "path"), saving);
  });
}
