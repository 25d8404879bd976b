// Types that an operator's newest version allows, and the version that a model imports does not.
#pragma once

#include <functional>
#include <map>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "infer/infer.h"
#include "ir/model.h"
#include "ir/walk.h"

namespace sardonyx {

// What was inferred of a model's values. Those of subgraphs of one name are one where their element
// types agree, and unknown where they differ.
class InferredTypes {
 public:
  // A scope of the lowered model, which must outlive this.
  void add(const infer::Scope& scope);
  // Null where nothing is known.
  const infer::ValueFacts* find(std::string_view name) const;

 private:
  std::map<std::string_view, const infer::ValueFacts*> values_;
};

struct VersionFinding {
  std::string message, advice;
};
// Inference goes by the newest version of each operator. Reports each node of the model, outside of
// its functions, whose inputs or outputs have types that only versions behind the imported one
// allow.
void check_version_types(const ir::Model& model, const InferredTypes& types,
                         const std::function<void(const ir::WalkPlace&, const ir::Node&, size_t,
                                                  VersionFinding)>& report);

}  // namespace sardonyx
