// The loop over epochs and batches.
#include <algorithm>
#include <chrono>
#include <cmath>
#include <numeric>
#include <optional>

#include "base/fail.h"
#include "sardonyx/fit.h"
#include "train/augment.h"
#include "train/checkpoints.h"
#include "train/mixed.h"

namespace sardonyx {
namespace {

using Clock = std::chrono::steady_clock;

double seconds_since(Clock::time_point begin) {
  return std::chrono::duration<double>(Clock::now() - begin).count();
}

// The value of a scalar of a step; nothing for others.
std::optional<double> number_of(const Value& value) {
  if (!value.is_tensor() || value.tensor().size() != 1) return std::nullopt;
  const Tensor& tensor = value.tensor();
  switch (tensor.element_type()) {
    case ElementType::float32: return tensor.elements<float>()[0];
    case ElementType::float64: return tensor.elements<double>()[0];
    case ElementType::int64: return static_cast<double>(tensor.elements<int64_t>()[0]);
    default: return std::nullopt;
  }
}

std::vector<Metric> metrics_of(const std::vector<ValueDescription>& outputs,
                               std::span<const Value> values) {
  std::vector<Metric> metrics;
  for (size_t i = 0; i < values.size(); ++i) {
    if (const auto number = number_of(values[i])) metrics.push_back({outputs[i].name, *number});
  }
  return metrics;
}

// Means, each batch counting by its examples; one of none counts for the names alone.
class Mean {
 public:
  void add(const std::vector<Metric>& metrics, int64_t examples) {
    if (sums_.empty()) {
      for (const Metric& metric : metrics) sums_.push_back({metric.name, 0});
    }
    if (examples == 0) return;
    for (size_t i = 0; i < metrics.size() && i < sums_.size(); ++i)
      sums_[i].value += metrics[i].value * static_cast<double>(examples);
    examples_ += examples;
  }
  // Not a number where there was no example.
  std::vector<Metric> take() const {
    std::vector<Metric> means = sums_;
    for (Metric& metric : means)
      metric.value = examples_ > 0 ? metric.value / static_cast<double>(examples_) : NAN;
    return means;
  }

 private:
  std::vector<Metric> sums_;
  int64_t examples_ = 0;
};

std::vector<int64_t> order_of(int64_t count, bool shuffled, uint64_t seed, int64_t epoch) {
  std::vector<int64_t> order(static_cast<size_t>(count));
  std::iota(order.begin(), order.end(), int64_t{0});
  if (!shuffled) return order;
  uint64_t state = mixed(seed ^ mixed(static_cast<uint64_t>(epoch) + 1));
  for (size_t i = order.size(); i > 1; --i) {
    state = mixed(state);
    std::swap(order[i - 1], order[state % i]);
  }
  return order;
}

class Fit {
 public:
  Fit(TrainingSession& session, const TrainingData& data, const FitOptions& options)
      : session_(session), data_(data), options_(options) {
    require(options.batch >= 1, "batch must be at least 1", options.batch);
    require(options.epochs >= 0, "epochs must not be negative", options.epochs);
    require(options.every >= 0, "every must not be negative", options.every);
    require(options.augment.crop >= 0 && options.augment.crop <= max_augmentation_crop,
            "an augmentation crops by 0 to 4096 pixels", options.augment.crop);
    require(options.patience >= 0, "patience must not be negative", options.patience);
    require(options.patience == 0 || options.validation != nullptr,
            "patience waits for a smaller loss of validation data, and there are none",
            options.patience);
    require(options.keep >= 1, "keep must be at least 1", options.keep);
    require(options.first_step >= 0, "first_step must not be negative", options.first_step);
    per_epoch_ = options.drop_last ? data.size() / options.batch
                                   : (data.size() + options.batch - 1) / options.batch;
    require(per_epoch_ > 0, "a batch has more examples than there are, and the last is dropped",
            options.batch);
    if (options.epochs > INT64_MAX / per_epoch_)
      fail(ErrorCode::bad_input, "{} epochs of {} steps are too many", options.epochs, per_epoch_);
    if (session.step_outputs(options.which).empty())
      fail(ErrorCode::bad_input, "algorithm {} gives no loss: all its outputs are updates",
           options.which);
    if (!options.checkpoints.empty()) folder_.emplace(options.checkpoints);
  }

  FitResult run() {
    result_.step = options_.first_step;
    const int64_t last = options_.epochs * per_epoch_;
    while (result_.step < last && !result_.stopped && !result_.stopped_early) epoch();
    if (folder_ && checkpointed_ != result_.step) checkpoint();
    return std::move(result_);
  }

 private:
  static void require(bool holds, std::string_view what, int64_t value) {
    if (!holds) fail(ErrorCode::bad_input, "{}; got {}", what, value);
  }

  void epoch() {
    const auto begin = Clock::now();
    const int64_t epoch = result_.step / per_epoch_;
    const auto order = order_of(data_.size(), options_.shuffle, session_.seed(), epoch);
    Mean mean;
    for (int64_t at = result_.step % per_epoch_; at < per_epoch_; ++at) {
      if (options_.stop != nullptr && options_.stop->load()) {
        result_.stopped = true;
        return;
      }
      step(epoch, at, order, mean);
      const bool is_due =
          options_.every > 0 ? result_.step % options_.every == 0 : at + 1 == per_epoch_;
      if (folder_ && is_due) checkpoint();
    }
    EpochResult done{epoch, mean.take(), {}, seconds_since(begin)};
    if (options_.validation != nullptr) {
      done.validation = measure(session_, *options_.validation, options_.batch, options_.measure);
      watch(done);
    }
    if (options_.on_epoch) options_.on_epoch(done);
    result_.epochs.push_back(std::move(done));
  }

  void step(int64_t epoch, int64_t at, const std::vector<int64_t>& order, Mean& mean) {
    const auto first = static_cast<size_t>(at * options_.batch);
    const size_t count = std::min(static_cast<size_t>(options_.batch), order.size() - first);
    const auto places = std::span(order).subspan(first, count);
    auto batch = data_.batch(places);
    train::augment(batch, places, options_.augment, session_.seed(), epoch);
    FitProgress progress;
    StepOptions stepping;
    stepping.accept = [&](std::span<const Value> told) {
      progress.loss = number_of(told[0]).value_or(0);
      progress.skipped = !std::isfinite(progress.loss);
      return !progress.skipped;
    };
    const auto told = session_.step(batch, options_.which, stepping);
    if (progress.skipped) {
      if (options_.bad_loss == BadLoss::stop)
        fail_at(fmt::format("epoch {}, step {}", epoch + 1, result_.step + 1),
                ErrorCode::run_failed,
                "the loss is {}; nothing of this step was assigned: a smaller learning rate or "
                "clipped gradients may help, and such steps can be left out",
                progress.loss);
      ++result_.skipped;
    }
    progress.metrics = metrics_of(session_.step_outputs(options_.which), told);
    mean.add(progress.metrics, progress.skipped ? 0 : static_cast<int64_t>(count));
    ++result_.step;
    examples_ += static_cast<int64_t>(count);
    if (!options_.on_step) return;
    progress.epoch = epoch, progress.step = result_.step;
    progress.steps = options_.epochs * per_epoch_;
    progress.examples = examples_, progress.seconds = seconds_since(begin_);
    options_.on_step(progress);
  }

  // The loss of validation is the first that is measured.
  void watch(const EpochResult& done) {
    if (options_.patience <= 0 || done.validation.empty()) return;
    const double loss = done.validation[0].value;
    if (loss < best_) {
      best_ = loss, worse_ = 0;
    } else if (++worse_ >= options_.patience) {
      result_.stopped_early = true;
    }
  }

  void checkpoint() {
    result_.checkpoint = folder_->write(session_, result_.step, options_.keep);
    checkpointed_ = result_.step;
  }

  TrainingSession& session_;
  const TrainingData& data_;
  const FitOptions& options_;
  const Clock::time_point begin_ = Clock::now();
  std::optional<train::CheckpointFolder> folder_;
  int64_t per_epoch_ = 0, examples_ = 0, checkpointed_ = -1, worse_ = 0;
  double best_ = INFINITY;
  FitResult result_;
};

}  // namespace

FitResult fit(TrainingSession& session, const TrainingData& data, const FitOptions& options) {
  return Fit(session, data, options).run();
}

std::vector<Metric> measure(TrainingSession& session, const TrainingData& data, int64_t batch,
                            size_t which) {
  if (batch < 1) fail(ErrorCode::bad_input, "batch must be at least 1; got {}", batch);
  const auto order = order_of(data.size(), false, 0, 0);
  Mean mean;
  for (size_t first = 0; first < order.size(); first += static_cast<size_t>(batch)) {
    const size_t count = std::min(static_cast<size_t>(batch), order.size() - first);
    StepOptions unchanged;
    unchanged.accept = [](std::span<const Value>) { return false; };
    const auto told =
        session.step(data.batch(std::span(order).subspan(first, count)), which, unchanged);
    mean.add(metrics_of(session.step_outputs(which), told), static_cast<int64_t>(count));
  }
  return mean.take();
}

}  // namespace sardonyx
