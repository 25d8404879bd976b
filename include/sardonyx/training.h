// Training as the standard describes it (IR, "Training Related Information"): a model with
// training_info is a stateful object with three methods.
//
//   sardonyx::TrainingSession session("trainable.onnx");
//   session.initialize();
//   auto losses = session.step({{"image", images}, {"target", labels}});
//   auto outputs = session.infer({{"image", image}});
//   session.save("trained.onnx");
//
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "sardonyx/session.h"

#pragma GCC visibility push(default)  // what a shared library gives to others

namespace sardonyx {

struct TrainingOptions {
  int threads = 0;         // counts the caller; as for SessionOptions
  bool reference = false;  // node after node without plan and fusion
  bool fuse = true;        // combine operators into one step where that is exact enough
  bool exact = false;      // no algorithm that trades accuracy for speed
  // Of random operators without a seed of their own: it and the number of steps before it decide
  // what a step draws. Unset: that of the session which saved the model, or 0.
  std::optional<uint64_t> seed = std::nullopt;
  // Keep less of what a step's derivative reads, and compute the rest again: much less memory for
  // networks of many layers, up to a third more time. The same bits as without where no operators
  // are combined (`fuse`). Unset: as make_trainable was told.
  std::optional<bool> recompute = std::nullopt;
};

struct StepOptions {
  RunOptions run = {};
  // Given the outputs before anything is assigned; false: nothing is, the step has not happened.
  // Called from within step(). Empty: all steps count.
  std::function<bool(std::span<const Value> outputs)> accept = {};
};

struct TrainingSaveOptions {
  // Added to the model's metadata_props; what has the same key there gives way.
  std::vector<std::pair<std::string, std::string>> metadata = {};
  // The file beside the model that takes the larger tensors; empty: all in the model file.
  std::string external_data = {};
  // Leave training_info out, and the functions that only it calls: a model for inference alone.
  // Weights behind a network of half precision are of half precision again.
  bool inference_only = false;
  // Add the low-rank products of LoRA to the weights beside which they stand: a model for inference
  // alone that is as fast as before. Error (bad_input) where there are none.
  bool merge_lora = false;
};

// The three methods of a training model. What they change is the state: the initializers of the
// main graph and of the algorithms that the model's bindings name. A step sees the state of its
// beginning, and assigns all that it updates together at its end; where it fails, is cancelled or
// refused, nothing has changed. Any number of threads may infer while one trains: each sees the
// state before or after a step, never one in between. Calls that change the state wait for each
// other. Results do not depend on the number of threads. Move-only.
//
// Constructors throw Error: (unreadable); (invalid_model) where the model breaks a rule of the
// standard, those for training_info among them, or has no training_info; (unsupported).
class TrainingSession {
 public:
  explicit TrainingSession(const std::string& path, const TrainingOptions& options = {});
  explicit TrainingSession(const Model& model, const TrainingOptions& options = {});
  ~TrainingSession();
  TrainingSession(TrainingSession&&) noexcept;
  TrainingSession& operator=(TrainingSession&&) noexcept;

  // Entries of training_info, each of which has an initialization and an algorithm.
  size_t algorithm_count() const;
  // What infer() takes and gives: those of the main graph that are no state.
  const std::vector<ValueDescription>& inputs() const;
  const std::vector<ValueDescription>& outputs() const;
  // What a step takes: inputs of the main graph that the algorithm needs, then its own.
  const std::vector<ValueDescription>& step_inputs(size_t which = 0) const;
  // What a step gives: the algorithm's outputs that it does not assign to the state.
  const std::vector<ValueDescription>& step_outputs(size_t which = 0) const;
  // The state variables: the main graph's, then each algorithm's. A name that several algorithms
  // have is distinguished by its place, "training_info[1].rate".
  const std::vector<ValueDescription>& state_variables() const;

  // Runs the initialization of each entry in order, and assigns what it makes; all or nothing.
  // Entries without one leave their state as it is.
  void initialize(const RunOptions& options = {});

  // One step of one of the algorithms. An algorithm without update bindings changes nothing: it
  // measures. Throws Error: (bad_input) for wrong names, shapes or types, and where an update has
  // not the shape of its state variable, (run_failed), (cancelled), (out_of_memory).
  std::vector<Value> step(const std::vector<NamedValue>& inputs, size_t which = 0,
                          const StepOptions& options = {});

  // The main graph with the current state. Free of side effects.
  std::vector<Value> infer(const std::vector<NamedValue>& inputs,
                           const RunOptions& options = {}) const;

  // All state variables, of one moment. The tensors do not change when training goes on.
  std::vector<NamedValue> state() const;
  // Assigns these state variables together; the others keep their values. Throws Error (bad_input)
  // for names that are none or come twice, and values of another type or shape.
  void set_state(const std::vector<NamedValue>& values);

  // Steps and initializations that have changed the state, those before a save among them.
  uint64_t turn() const;
  uint64_t seed() const;
  // Of metadata_props of the model that was loaded; empty where it has no such key.
  std::string metadata(std::string_view key) const;

  // Writes the model with the current state in its initializers, the algorithms' too. A session
  // made of it goes on with the same bits. The file appears whole or not at all.
  void save(const std::string& path, const TrainingSaveOptions& options = {}) const;

  // For the library's own programs; not part of the stable interface.
  struct [[gnu::visibility("hidden")]] Implementation;

 private:
  std::unique_ptr<Implementation> implementation_;
};

}  // namespace sardonyx

#pragma GCC visibility pop
