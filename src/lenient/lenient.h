// Lenient reading: what a model means that breaks a rule of the standard but leaves no doubt. A
// session runs such models; the checker goes on reporting them. docs/lenient.md lists what is
// repaired. Nothing here recurses on a model, and nothing is repaired that could mean two things.
#pragma once

#include <vector>

#include "check/check.h"
#include "ir/model.h"

namespace sardonyx::lenient {

struct Repaired {
  // One for each repair, in the order of making, of severity warning: the rule, the place, what was
  // found (`message`) and what was made of it (`advice`).
  std::vector<check::Diagnostic> repairs;
  // What the runnable profile still finds in the model as it is now.
  std::vector<check::Diagnostic> findings;
};

// Repairs the model in place where the runnable profile finds errors. A model without errors costs
// no more than the check. `options.profile` must be runnable. Subgraphs that other models share are
// copied before they are changed. May be called from any thread.
Repaired repair(ir::Model& model, const check::Options& options);

}  // namespace sardonyx::lenient
