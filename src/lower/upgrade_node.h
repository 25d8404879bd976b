// One node of an older version as the nodes of the newest that do its work.
#pragma once

#include <vector>

#include "ir/model.h"
#include "ops/operator.h"
#include "ops/upgrade_context.h"

namespace sardonyx::lower {

// What an upgrade makes beside the node that it changes. All have their origin and sources.
struct Upgraded {
  std::vector<ops::UpgradeContext::NamedConstant> constants;
  std::vector<ir::Node> before, after;
  std::vector<ops::UpgradeContext::NamedShape> shapes;  // which the new nodes may not tell
  bool dropped = false;                                 // the others stand for the node
};

// Changes `node`, which is of the version that `bound` is of, by its operator's upgrade. Where
// `constants_apart`, constants that it makes come as such rather than as nodes. Throws Error
// (invalid_model) with the node's place where it does not fit its signature.
Upgraded upgrade_node(ir::Node& node, const schema::Signature& bound, const ops::Operator& op,
                      const ops::UpgradeContext::Services& services, bool constants_apart);

}  // namespace sardonyx::lower
