// What handles of sessions, and of what goes with their runs, hold.
#pragma once

#include <memory>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "capi/handles.h"
#include "sardonyx/profile.h"

struct sardonyx_session {
  sardonyx::Session session;
  std::vector<std::unique_ptr<sardonyx::capi::Description>> inputs, outputs;  // texts point into
  std::unordered_map<std::string_view, size_t> output_places;
};

struct sardonyx_profile {
  sardonyx::Profile profile;
  std::string json, trace;  // that were asked for
};

namespace sardonyx::capi {

RunOptions run_options(const sardonyx_run_options* given);

}  // namespace sardonyx::capi
