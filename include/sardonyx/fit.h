// Training on data: batches of arrays, epochs, checkpoints.
//
//   sardonyx::TrainingSession session("trainable.onnx");
//   const auto data = sardonyx::TrainingData::read("train.npz", session);
//   sardonyx::FitResult result = sardonyx::fit(session, data, {.epochs = 5, .batch = 64});
//
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "sardonyx/training.h"

#pragma GCC visibility push(default)  // what a shared library gives to others

namespace sardonyx {

// Examples: arrays of the same first size, one for each input of a step, by name. A scalar is given
// to each step as it is. Cheap to copy.
class TrainingData {
 public:
  // Throws Error (bad_input) where there is no array, first sizes differ, or no array has elements.
  explicit TrainingData(std::vector<NamedValue> arrays);

  // Reads an .npz file, whose arrays have the names of the step's inputs, or a folder with NAME.npy
  // for each of them; arrays of other names are left out. Arrays that are stored uncompressed are
  // mapped, so that they may be larger than the memory; batch() lets go of what it has read in long
  // pieces. Throws Error: (unreadable) where files are
  // missing or no such arrays; (bad_input) where an array is missing, holds another type than the
  // step takes, or is shorter than others.
  static TrainingData read(const std::string& path, const TrainingSession& session,
                           size_t which = 0);

  int64_t size() const { return size_; }  // examples
  // Arrays that were read from an .npz may lie at any address: batch() copies rows out of them.
  const std::vector<NamedValue>& arrays() const { return arrays_; }
  // The examples at these places, as a step takes them.
  std::vector<NamedValue> batch(std::span<const int64_t> places) const;

 private:
  std::vector<NamedValue> arrays_;
  std::vector<bool> is_mapped_;  // which of them lie in a mapped file
  int64_t size_ = 0;
};

// Means over the examples of an epoch of what the steps gave; NaN where all of them were left out.
struct Metric {
  std::string name;
  double value = 0;
};

struct FitProgress {
  int64_t epoch = 0;            // that runs, from 0
  int64_t step = 0;             // steps done in all, those before a resumption among them
  int64_t steps = 0;            // in all epochs
  int64_t examples = 0;         // done by this call
  double seconds = 0;           // since it began
  double loss = 0;              // of the last step: the first of what it gave
  bool skipped = false;         // its loss was no finite number, and nothing was assigned
  std::vector<Metric> metrics;  // of the last step
};

// What an epoch gave: means of the metrics over its steps, and over the validation data if there is
// any.
struct EpochResult {
  int64_t epoch = 0;
  std::vector<Metric> training, validation;
  double seconds = 0;
};

// What to do where a loss is no finite number: end with an error, or leave the step out.
enum class BadLoss { stop, skip };

// Images of a batch in another form in each epoch: of arrays with the axes [examples, channels,
// height, width], all alike. What happens to an example is decided by the session's seed, the epoch
// and its place among the examples, so that a training that goes on draws the same.
constexpr int64_t max_augmentation_crop = 4096;
struct Augmentation {
  bool flip = false;  // half of them are mirrored, left to right
  int64_t crop = 0;   // pixels: cut anew from images with so many zeros on each side
};
// "flip", "crop:4", "flip,crop:4"; Error (bad_input) for others.
Augmentation augmentation_named(std::string_view text);

struct FitOptions {
  int64_t epochs = 1;
  int64_t batch = 32;
  bool shuffle = true;        // each epoch in another order, which the session's seed decides
  bool drop_last = false;     // leave out the last batch of an epoch where it is smaller
  Augmentation augment = {};  // of what is learned from, not of `validation`
  size_t which = 0;           // the algorithm that learns
  // Not null: measured after each epoch by algorithm `measure`, whose updates, if it has any, are
  // not assigned.
  const TrainingData* validation = nullptr;
  size_t measure = 1;
  // What to do where the loss of a step is NaN or infinite: stop with Error (run_failed), the state
  // being that before the step, or leave the step out.
  BadLoss bad_loss = BadLoss::stop;
  // A folder that checkpoints go to, one every `every` steps (0: after each epoch), when `stop` is
  // set and at the end; the last `keep` stay. One process at a time may use it.
  std::string checkpoints = {};
  int64_t every = 0;
  int64_t keep = 2;
  // Where to go on: steps that the session's model has done already. last_checkpoint() tells.
  int64_t first_step = 0;
  // End after this many epochs in a row without a smaller loss of `validation`, which must be there
  // then (0: never).
  int64_t patience = 0;
  const std::atomic<bool>* stop = nullptr;  // set it from anywhere to stop after the step at hand
  std::function<void(const FitProgress&)> on_step = {};
  std::function<void(const EpochResult&)> on_epoch = {};
};

struct FitResult {
  int64_t step = 0;  // steps done in all
  bool stopped = false;
  bool stopped_early = false;  // by `patience`
  int64_t skipped = 0;
  std::vector<EpochResult> epochs;
  std::string checkpoint;  // the last one that was written
};

// Trains. The order of the examples is decided by the session's seed, the epoch and nothing else,
// so that a training that was interrupted and goes on from a checkpoint ends with the same bits.
// Throws Error as the steps do; (bad_input) for options that do not fit; (unreadable) where a
// checkpoint can't be written or its folder is in use: the last one stays intact.
FitResult fit(TrainingSession& session, const TrainingData& data, const FitOptions& options = {});

// Means of what an algorithm without update bindings gives over all examples.
std::vector<Metric> measure(TrainingSession& session, const TrainingData& data, int64_t batch = 32,
                            size_t which = 1);

struct Checkpoint {
  std::string path;  // empty: there is none
  int64_t step = 0;
};
// The checkpoint of a folder that was written last. Throws Error (unreadable) where the folder
// can't be read.
Checkpoint last_checkpoint(const std::string& folder);

}  // namespace sardonyx

#pragma GCC visibility pop
