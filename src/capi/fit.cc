// Training on data, through the C interface.
#include "sardonyx/fit.h"

#include <cstring>

#include "capi/named_values.h"
#include "capi/training.h"
#include "capi/views.h"

using namespace sardonyx;
using namespace sardonyx::capi;

namespace {

// As C holds them; names stay those of `of`.
std::vector<sardonyx_metric> told(const std::vector<Metric>& of) {
  std::vector<sardonyx_metric> metrics;
  for (const Metric& metric : of) metrics.push_back({metric.name.c_str(), metric.value});
  return metrics;
}

}  // namespace

struct sardonyx_training_data {
  SARDONYX_TAG('t', 'd');
  TrainingData data;
};

struct sardonyx_metrics {
  SARDONYX_TAG('m', 'e');
  std::vector<Metric> list;
};

struct sardonyx_fit_result {
  SARDONYX_TAG('f', 'r');
  struct Epoch {
    std::vector<sardonyx_metric> training, validation;
  };
  explicit sardonyx_fit_result(FitResult made) : result(std::move(made)) {
    for (const EpochResult& epoch : result.epochs)
      epochs.push_back({told(epoch.training), told(epoch.validation)});
  }
  const FitResult result;
  std::vector<Epoch> epochs;  // whose names are the result's
};

namespace {

sardonyx_epoch_result shown(const EpochResult& of, const std::vector<sardonyx_metric>& training,
                            const std::vector<sardonyx_metric>& validation) {
  sardonyx_epoch_result made{};
  made.size = sizeof made;
  made.epoch = of.epoch;
  made.training = training.data(), made.training_count = training.size();
  made.validation = validation.data(), made.validation_count = validation.size();
  made.seconds = of.seconds;
  return made;
}

// What a callback returns ends the call, unless it is null.
void go_on(sardonyx_status* status) {
  if (status != nullptr) throw error_of(status);
}

void set_callbacks(const sardonyx_fit_options& known, FitOptions& options) {
  if (known.on_step != nullptr) {
    options.on_step = [tell = known.on_step, user = known.user](const FitProgress& progress) {
      const std::vector<sardonyx_metric> metrics = told(progress.metrics);
      sardonyx_fit_progress made{};
      made.size = sizeof made;
      made.epoch = progress.epoch, made.step = progress.step, made.steps = progress.steps;
      made.examples = progress.examples, made.seconds = progress.seconds;
      made.loss = progress.loss, made.skipped = progress.skipped ? 1 : 0;
      made.metrics = metrics.data(), made.metric_count = metrics.size();
      go_on(tell(&made, user));
    };
  }
  if (known.on_epoch != nullptr) {
    options.on_epoch = [tell = known.on_epoch, user = known.user](const EpochResult& result) {
      const auto training = told(result.training), validation = told(result.validation);
      const sardonyx_epoch_result made = shown(result, training, validation);
      go_on(tell(&made, user));
    };
  }
}

FitOptions fit_options(const sardonyx_fit_options* given) {
  const sardonyx_fit_options known = known_part(given);
  FitOptions options;
  if (known.epochs != 0) options.epochs = known.epochs;
  if (known.batch != 0) options.batch = known.batch;
  options.shuffle = known.no_shuffle == 0;
  options.drop_last = known.drop_last != 0;
  options.augment.flip = known.flip != 0;
  options.augment.crop = known.crop;
  options.which = known.algorithm;
  if (const auto* data = if_given(known.validation, "validation")) options.validation = &data->data;
  if (known.has_measure != 0) options.measure = known.measure;
  if (known.skip_bad_loss != 0) options.bad_loss = BadLoss::skip;
  if (known.checkpoints != nullptr) options.checkpoints = known.checkpoints;
  options.every = known.every;
  if (known.keep != 0) options.keep = known.keep;
  options.first_step = known.first_step;
  options.patience = known.patience;
  if (const auto* stop = if_given(known.stop, "stop")) options.stop = &stop->wanted;
  set_callbacks(known, options);
  return options;
}

}  // namespace

sardonyx_status* sardonyx_training_data_create(const char* const* names,
                                               const sardonyx_value* const* arrays, size_t count,
                                               sardonyx_training_data** data) {
  return guarded([&] {
    required(data, "data");
    *data = new sardonyx_training_data{
        {}, TrainingData(named_values(names, arrays, count, "names", "arrays"))};
  });
}

sardonyx_status* sardonyx_training_data_read(const char* path, const sardonyx_training* training,
                                             size_t algorithm, sardonyx_training_data** data) {
  return guarded([&] {
    const std::string file = &required(path, "path");
    const sardonyx_training& of = required(training, "training");
    required(data, "data");
    algorithm_of(of, algorithm);
    *data = new sardonyx_training_data{{}, TrainingData::read(file, of.session, algorithm)};
  });
}

void sardonyx_training_data_release(sardonyx_training_data* data) { release_handle(data); }

int64_t sardonyx_training_data_size(const sardonyx_training_data* data) {
  return is_usable(data) ? data->data.size() : 0;
}

sardonyx_status* sardonyx_training_data_arrays(const sardonyx_training_data* data,
                                               sardonyx_named_values** arrays) {
  return guarded([&] {
    const TrainingData& of = required(data, "data").data;
    required(arrays, "arrays");
    std::vector<NamedValue> values = of.arrays();
    for (auto& [name, value] : values) {  // a C program reads elements where they lie
      const Tensor& tensor = value.tensor();
      constexpr uintptr_t alignment = 16;
      if (tensor.element_type() == ElementType::string ||
          reinterpret_cast<uintptr_t>(tensor.data()) % alignment == 0)
        continue;
      Tensor copy(tensor.element_type(), tensor.shape());
      if (tensor.byte_size() > 0)
        std::memcpy(copy.mutable_data(), tensor.data(), tensor.byte_size());
      value = Value(std::move(copy));
    }
    *arrays = new sardonyx_named_values{{}, std::move(values)};
  });
}

sardonyx_status* sardonyx_training_data_batch(const sardonyx_training_data* data,
                                              const int64_t* places, size_t count,
                                              sardonyx_named_values** batch) {
  return guarded([&] {
    const TrainingData& of = required(data, "data").data;
    required(places, "places"), required(batch, "batch");
    *batch = new sardonyx_named_values{{}, of.batch(std::span(places, count))};
  });
}

sardonyx_status* sardonyx_training_fit(sardonyx_training* training,
                                       const sardonyx_training_data* data,
                                       const sardonyx_fit_options* options,
                                       sardonyx_fit_result** result) {
  return guarded([&] {
    sardonyx_training& of = required(training, "training");
    const TrainingData& given = required(data, "data").data;
    const FitOptions fitting = fit_options(options);
    algorithm_of(of, fitting.which);
    if (fitting.validation != nullptr) algorithm_of(of, fitting.measure);
    auto made = std::make_unique<sardonyx_fit_result>(fit(of.session, given, fitting));
    if (result != nullptr) *result = made.release();
  });
}

void sardonyx_fit_result_release(sardonyx_fit_result* result) { release_handle(result); }

sardonyx_status* sardonyx_fit_result_describe(const sardonyx_fit_result* result,
                                              sardonyx_fit_summary* summary) {
  return guarded([&] {
    const FitResult& of = required(result, "result").result;
    sardonyx_fit_summary made{};
    made.step = of.step;
    made.stopped = of.stopped ? 1 : 0;
    made.stopped_early = of.stopped_early ? 1 : 0;
    made.skipped = of.skipped;
    made.epoch_count = of.epochs.size();
    made.checkpoint = of.checkpoint.c_str();
    fill(summary, "summary", made);
  });
}

sardonyx_status* sardonyx_fit_result_epoch(const sardonyx_fit_result* result, size_t index,
                                           sardonyx_epoch_result* epoch) {
  return guarded([&] {
    const sardonyx_fit_result& of = required(result, "result");
    if (index >= of.epochs.size()) refuse_index(index, of.epochs.size(), "epoch");
    fill(epoch, "epoch",
         shown(of.result.epochs[index], of.epochs[index].training, of.epochs[index].validation));
  });
}

sardonyx_status* sardonyx_training_measure(sardonyx_training* training,
                                           const sardonyx_training_data* data, int64_t batch,
                                           size_t algorithm, sardonyx_metrics** metrics) {
  return guarded([&] {
    sardonyx_training& of = required(training, "training");
    const TrainingData& given = required(data, "data").data;
    required(metrics, "metrics");
    algorithm_of(of, algorithm);
    *metrics = new sardonyx_metrics{
        {}, measure(of.session, given, batch == 0 ? FitOptions().batch : batch, algorithm)};
  });
}

size_t sardonyx_metrics_count(const sardonyx_metrics* metrics) {
  return is_usable(metrics) ? metrics->list.size() : 0;
}

sardonyx_status* sardonyx_metrics_get(const sardonyx_metrics* metrics, size_t index,
                                      const char** name, double* value) {
  return guarded([&] {
    const auto& list = required(metrics, "metrics").list;
    if (index >= list.size()) refuse_index(index, list.size(), "metric");
    if (name != nullptr) *name = list[index].name.c_str();
    if (value != nullptr) *value = list[index].value;
  });
}

void sardonyx_metrics_release(sardonyx_metrics* metrics) { release_handle(metrics); }

sardonyx_status* sardonyx_last_checkpoint(const char* folder, sardonyx_bytes** path,
                                          int64_t* step) {
  return guarded([&] {
    const std::string where = &required(folder, "folder");
    required(path, "path");
    Checkpoint found = last_checkpoint(where);
    *path = new sardonyx_bytes{{}, std::move(found.path)};
    if (step != nullptr) *step = found.step;
  });
}
