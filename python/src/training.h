// A training session as Python steps it.
#pragma once

#include <nanobind/nanobind.h>

#include <atomic>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "convert.h"
#include "model.h"
#include "sardonyx/training.h"
#include "session.h"

namespace sardonyx::python {

// Values by name, and the objects whose memory they view.
struct TakenValues {
  std::vector<NamedValue> values;
  KeptObjects kept;
};
// A dict by name, or a list in the order of `wanted`. `what`: "input", for errors.
TakenValues taken_values(nb::handle given, const std::vector<ValueDescription>& wanted,
                         std::string_view what);

// Throws for a negative number; too large ones are the session's to refuse.
size_t algorithm_numbered(int64_t which);

nb::dict objects_by_name(const std::vector<ValueDescription>& described, std::vector<Value> values);

class RunningTraining {
 public:
  RunningTraining(const HeldModel& model, const TrainingOptions& options);
  ~RunningTraining();
  RunningTraining(const RunningTraining&) = delete;
  RunningTraining& operator=(const RunningTraining&) = delete;

  // Throws in a process that was forked off after the session was made.
  TrainingSession& session() const;
  // The same, for what changes the state.
  TrainingSession& changed_session() const;

  void initialize(Cancel* cancel, std::optional<double> timeout);
  nb::dict step(nb::handle inputs, size_t which, nb::object accept, Cancel* cancel,
                std::optional<double> timeout);
  nb::dict infer(nb::handle inputs, Cancel* cancel, std::optional<double> timeout);
  void set_state(nb::handle values);
  void tell() const { model_.tell(); }

 private:
  bool is_accepted(const nb::object& accept, std::span<const Value> outputs, size_t which);

  HeldModel model_;
  std::unique_ptr<TrainingSession> session_;
  int born_in_ = 0;                           // how many forks there had been
  std::atomic<unsigned long> accepting_ = 0;  // the thread that decides about a step; 0: none does
};

}  // namespace sardonyx::python
