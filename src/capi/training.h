// What handles of trainings hold.
#pragma once

#include <utility>
#include <vector>

#include "capi/session.h"
#include "sardonyx/training.h"

struct sardonyx_training {
  SARDONYX_TAG('t', 'r');
  struct Algorithm {
    sardonyx::capi::Descriptions inputs, outputs;
  };
  explicit sardonyx_training(sardonyx::TrainingSession made) : session(std::move(made)) {
    inputs = sardonyx::capi::described(session.inputs());
    outputs = sardonyx::capi::described(session.outputs());
    state = sardonyx::capi::described(session.state_variables());
    for (size_t i = 0; i < session.algorithm_count(); ++i)
      algorithms.push_back({sardonyx::capi::described(session.step_inputs(i)),
                            sardonyx::capi::described(session.step_outputs(i))});
  }

  sardonyx::TrainingSession session;
  sardonyx::capi::Descriptions inputs, outputs, state;  // which texts point into
  std::vector<Algorithm> algorithms;
};

namespace sardonyx::capi {

// Algorithm `which`; Error (bad_input) where there is none.
const sardonyx_training::Algorithm& algorithm_of(const sardonyx_training& training, size_t which);

}  // namespace sardonyx::capi
