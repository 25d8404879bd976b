// Running a plan with a profile.
#pragma once

#include <memory>
#include <span>

#include "run/plan.h"
#include "sardonyx/profile.h"

namespace sardonyx {

// Throws what the run throws; what a failed run has spent until then stays in the profile.
// The profile keeps the plan.
void run_profiled(const std::shared_ptr<const run::Plan>& plan, std::span<const Value> given,
                  std::span<Value> made, eval::Environment& environment, Profile& profile,
                  run::OutputMemory* memory = nullptr);

}  // namespace sardonyx
