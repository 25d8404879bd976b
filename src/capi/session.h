// What handles of sessions, and of what goes with their runs, hold.
#pragma once

#include <memory>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "capi/handles.h"
#include "sardonyx/profile.h"

namespace sardonyx::capi {

using Descriptions = std::vector<std::unique_ptr<Description>>;

// Inputs and outputs as the functions of the interface tell them.
Descriptions described(const std::vector<ValueDescription>& values);

}  // namespace sardonyx::capi

struct sardonyx_session {
  SARDONYX_TAG('s', 'e');
  sardonyx::capi::Descriptions inputs, outputs;  // texts point into
  std::unordered_map<std::string_view, size_t> input_places, output_places;
  // Ends first: that waits for runs, whose callbacks may ask for the others.
  sardonyx::Session session;
};

struct sardonyx_profile {
  SARDONYX_TAG('p', 'r');
  sardonyx::Profile profile;
  std::string json, trace;  // that were asked for
};

namespace sardonyx::capi {

RunOptions run_options(const sardonyx_run_options* given);
SessionOptions session_options(const sardonyx_session_options* given);

}  // namespace sardonyx::capi
