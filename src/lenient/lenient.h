// Lenient reading: what a model means that breaks a rule of the standard but leaves no doubt. A
// session runs such models; the checker goes on reporting them. docs/lenient.md lists what is
// repaired. Nothing here recurses on a model, and nothing is repaired that could mean two things.
#pragma once

#include <optional>
#include <vector>

#include "base/memory_account.h"
#include "check/check.h"
#include "ir/model.h"

namespace sardonyx::lenient {

struct Repaired {
  MemoryCharge memory;             // of the repaired model
  std::optional<ir::Model> model;  // the repaired one; empty where the given one is as good
  // One for each repair, in the order of making, of severity warning: the rule, the place, what was
  // found (`message`) and what was made of it (`advice`).
  std::vector<check::Diagnostic> repairs;
  // What the runnable profile finds in the model that is left.
  std::vector<check::Diagnostic> findings;
};

// Repairs a copy of the model, which shares its weights, where the runnable profile finds
// something. A model without findings costs no more than the check. `options.profile` must be
// runnable. May be called from any thread.
Repaired repair(const ir::Model& model, const check::Options& options);

}  // namespace sardonyx::lenient
