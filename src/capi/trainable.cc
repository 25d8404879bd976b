// Training models made of models for inference, through the C interface.
#include "sardonyx/training_artifacts.h"

#include "capi/handles.h"
#include "capi/views.h"

using namespace sardonyx;
using namespace sardonyx::capi;

struct sardonyx_trainable_report {
  SARDONYX_TAG('t', 'p');
  TrainableReport report;
};

namespace {

void set_optimizer_options(const sardonyx_trainable_options& known, TrainableOptions& options) {
  options.nesterov = known.nesterov != 0;
  if (known.has_momentum != 0) options.momentum = known.momentum;
  if (known.has_smoothing != 0) options.smoothing = known.smoothing;
  if (known.has_betas != 0) options.beta1 = known.beta1, options.beta2 = known.beta2;
  if (known.has_epsilon != 0) options.epsilon = known.epsilon;
  options.clip_value = known.clip_value;
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
  const auto lora = texts(known.lora, known.lora_count, "lora");
  for (size_t i = 0; i < lora.size(); ++i) {
    options.lora.push_back(lora_named(lora[i]));
    if (known.lora_alphas != nullptr) options.lora.back().alpha = known.lora_alphas[i];
  }
  if (known.random_weights != 0) options.initial_weights = InitialWeights::random;
  options.seed = known.seed;
  if (known.precision != nullptr) options.precision = precision_named(known.precision);
  if (known.loss_scale != 0) options.loss_scale = known.loss_scale;
  if (known.scale_growth != 0) options.scale_growth = known.scale_growth;
  options.recompute = known.recompute != 0;
  if (known.has_class_axis != 0) options.class_axis = known.class_axis;
  if (known.has_ignore_index != 0) options.ignore_index = known.ignore_index;
  if (known.huber_delta != 0) options.huber_delta = known.huber_delta;
  set_optimizer_options(known, options);
  return options;
}

// Null for numbers that are no list.
const std::vector<std::string>* list_of(const TrainableReport& report,
                                        sardonyx_trainable_list list) {
  switch (list) {
    case SARDONYX_TRAINABLE_TRAINED: return &report.trained;
    case SARDONYX_TRAINABLE_FROZEN: return &report.frozen;
    case SARDONYX_TRAINABLE_STATISTICS: return &report.statistics;
    case SARDONYX_TRAINABLE_FUNCTIONS: return &report.functions;
    case SARDONYX_TRAINABLE_NOTES: return &report.notes;
    default: return nullptr;
  }
}

}  // namespace

sardonyx_status* sardonyx_make_trainable(const sardonyx_model* model,
                                         const sardonyx_trainable_options* options,
                                         sardonyx_model** trainable) {
  return guarded([&] {
    required(trainable, "trainable");
    *trainable = new sardonyx_model{
        {}, make_trainable(required(model, "model").model, trainable_options(options))};
  });
}

sardonyx_status* sardonyx_make_trainable_reported(const sardonyx_model* model,
                                                  const sardonyx_trainable_options* options,
                                                  sardonyx_model** trainable,
                                                  sardonyx_trainable_report** report) {
  return guarded([&] {
    required(trainable, "trainable"), required(report, "report");
    const Model& given = required(model, "model").model;
    auto told = std::make_unique<sardonyx_trainable_report>();
    *trainable =
        new sardonyx_model{{}, make_trainable(given, trainable_options(options), &told->report)};
    *report = told.release();
  });
}

sardonyx_status* sardonyx_make_trainable_file(const sardonyx_model* model,
                                              const sardonyx_trainable_options* options,
                                              const char* path, const char* external_data,
                                              sardonyx_trainable_report** report) {
  return guarded([&] {
    const Model& given = required(model, "model").model;
    const std::string file = &required(path, "path");
    auto told = std::make_unique<sardonyx_trainable_report>();
    told->report = make_trainable(given, trainable_options(options), file,
                                  external_data == nullptr ? std::string() : external_data);
    if (report != nullptr) *report = told.release();
  });
}

sardonyx_status* sardonyx_make_trainable_of_artifacts(const sardonyx_training_artifacts* artifacts,
                                                      sardonyx_model** trainable,
                                                      sardonyx_trainable_report** report) {
  return guarded([&] {
    required(artifacts, "artifacts"), required(trainable, "trainable");
    const sardonyx_training_artifacts known = known_part(artifacts);
    const TrainingArtifacts files{&required(known.training_model, "training_model"),
                                  &required(known.eval_model, "eval_model"),
                                  &required(known.optimizer_model, "optimizer_model"),
                                  &required(known.checkpoint, "checkpoint")};
    ArtifactOptions options;
    options.outputs = texts(known.outputs, known.output_count, "outputs");
    options.learning_rate = known.learning_rate;
    auto told = std::make_unique<sardonyx_trainable_report>();
    *trainable = new sardonyx_model{{}, make_trainable(files, options, &told->report)};
    if (report != nullptr) *report = told.release();
  });
}

void sardonyx_trainable_report_release(sardonyx_trainable_report* report) {
  release_handle(report);
}

size_t sardonyx_trainable_report_count(const sardonyx_trainable_report* report,
                                       sardonyx_trainable_list list) {
  const auto* found = is_usable(report) ? list_of(report->report, list) : nullptr;
  return found == nullptr ? 0 : found->size();
}

sardonyx_status* sardonyx_trainable_report_text(const sardonyx_trainable_report* report,
                                                sardonyx_trainable_list list, size_t index,
                                                const char** text) {
  return guarded([&] {
    const auto* found = list_of(required(report, "report").report, list);
    required(text, "text");
    if (found == nullptr)
      fail(ErrorCode::bad_input, "there is no list {}; they are 0 to {}", list,
           static_cast<int>(SARDONYX_TRAINABLE_NOTES));
    if (index >= found->size()) refuse_index(index, found->size(), "text");
    *text = (*found)[index].c_str();
  });
}

int64_t sardonyx_trainable_report_elements(const sardonyx_trainable_report* report) {
  return is_usable(report) ? report->report.trained_elements : 0;
}

const char* sardonyx_trainable_report_target(const sardonyx_trainable_report* report) {
  return is_usable(report) ? report->report.target.c_str() : "";
}

sardonyx_status* sardonyx_model_merge_lora(const sardonyx_model* model, sardonyx_model** merged) {
  return guarded([&] {
    const Model& given = required(model, "model").model;
    required(merged, "merged");
    *merged = new sardonyx_model{{}, merge_lora(given)};
  });
}
