// What an operator of a model means: its signature in the model's version, the newest one, and the
// code for that.
#pragma once

#include <cstdint>
#include <vector>

#include "base/name_map.h"
#include "ir/imports.h"
#include "ir/model.h"
#include "lower/lower.h"
#include "ops/operator.h"
#include "schema/schema.h"

namespace sardonyx::lower {

// What the nodes of one operator mean in one version of its domain.
struct ResolvedOperator {
  int64_t version;                  // of the domain; 0: it is not imported
  const schema::Signature* bound;   // null where the version has no such operator
  const schema::Signature* newest;  // null where nobody knows it
  const ops::Operator* op;          // null where there is no code for it
  // Of nodes that mean what the newest version does and is what there is a kernel for, as long as
  // they have no graphs; null: they have to change.
  const ops::Operator* as_is;
};

// Looks meanings up, each operator's once as far as nodes of one version are asked for.
class OperatorResolver {
 public:
  explicit OperatorResolver(const LowerOptions& options);

  ResolvedOperator of(const ir::Node& node, const std::vector<ir::OperatorSetId>& imports);

  // Whether nodes of this operator, in their newest form, give way to their function's body where
  // they have one. `op`: null where there is no code for it.
  bool wants_body(const ops::Operator* op) const {
    return options_.expand_bodies &&
           (op == nullptr || op->prepare == nullptr || options_.prefer_function_bodies);
  }

 private:
  ResolvedOperator find(const ir::Node& node, int64_t version) const;

  const LowerOptions& options_;
  ir::ImportIndex imports_;
  NameMap<uint32_t> at_;  // by the operator's name, in meanings_
  std::vector<ResolvedOperator> meanings_;
};

// Whether a node has to be upgraded by the operator's upgrade. `bound` and `op` may be null.
bool must_upgrade(const schema::Signature* bound, const schema::Signature& newest,
                  const ops::Operator* op);

// Whether the version has such an operator; of domains that are not the standard's, whether it is
// imported at all.
bool is_known(const ir::Node& node, const ResolvedOperator& resolved);

// Throws Error (invalid_model, unsupported) for what is not known, and says why.
void require_known(const ir::Node& node, const ResolvedOperator& resolved);

}  // namespace sardonyx::lower
