// Who is told of the steps of a run: profiles.
#pragma once

#include "run/plan.h"

namespace sardonyx::run {

// Called on the thread of the run, between its steps. A run without an observer pays one branch for
// each segment of a plan.
class Observer {
 public:
  virtual ~Observer() = default;
  // A plan begins to run: the model's own or, between the beginning and the end of a step of
  // another one, that of a body. The plan outlives the session's runs.
  virtual void begin_plan(const Plan& plan) = 0;
  // Also where the run fails, and then without the end of the step that failed.
  virtual void end_plan() noexcept = 0;
  virtual void begin_step(int index) = 0;
  // `shapes`: of the step's inputs and outputs; only tensors have an element type.
  virtual void end_step(int index, const ops::StepShapes& shapes) = 0;
};

}  // namespace sardonyx::run
