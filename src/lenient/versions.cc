// Nodes that fit another version of their operator than the imported one.
#include <fmt/format.h>

#include <set>

#include "lenient/repairs.h"
#include "lenient/scopes.h"
#include "schema/schema.h"

namespace sardonyx::lenient {
namespace {

// The nearest version, other than `bound`, that the node fits; null where there is none.
const schema::Signature* nearest_fit(const ir::Node& node, const schema::Signature* bound,
                                     int64_t imported) {
  const auto versions = schema::versions(node.domain, node.op_type);
  const schema::Signature* earlier = nullptr;
  for (const schema::Signature& one : versions) {
    if (&one == bound || one.deprecated || !fits(node, one)) continue;
    if (one.since <= imported) {
      earlier = &one;
    } else {
      return earlier != nullptr ? earlier : &one;
    }
  }
  return earlier;
}

// What keeps a node from being of the bound version.
check::Diagnostic misfit(const Scope& scope, size_t index, const schema::Signature* bound,
                         int64_t imported, const schema::Signature& taken) {
  const ir::Node& node = (*scope.nodes)[index];
  const std::string advice = fmt::format("it is read as of version {}, which fits", taken.since);
  if (bound == nullptr)
    return repaired("O-04", place_of(scope, index),
                    fmt::format("opset {}, which is imported, has no {}", imported, node.op_type),
                    advice);
  for (const ir::Attribute& attribute : node.attributes) {
    if (bound->attribute(attribute.name) != nullptr || taken.attribute(attribute.name) == nullptr)
      continue;
    return repaired(
        "D-23", place_of(scope, index, fmt::format("attribute '{}'", attribute.name)),
        fmt::format("{} of version {} has no such attribute", node.op_type, bound->since), advice);
  }
  return repaired("D-10", place_of(scope, index),
                  fmt::format("{} of version {} has other inputs, outputs or attributes",
                              node.op_type, bound->since),
                  advice);
}

}  // namespace

void read_by_fitting_versions(ir::Model& model, Repairs& repairs) {
  std::set<std::pair<std::string_view, std::string_view>> functions;
  for (const ir::Function& function : model.functions)
    functions.emplace(ir::canonical_domain(function.domain), function.name);
  for_each_scope(model, [&](Scope& scope) {
    const std::vector<ir::OperatorSetId>& imports =
        scope.function != nullptr ? scope.function->opset_imports : model.opset_imports;
    for (size_t i = 0; i < scope.nodes->size(); ++i) {
      ir::Node& node = (*scope.nodes)[i];
      const std::string_view domain = ir::canonical_domain(node.domain);
      if (!schema::is_standard_domain(domain) || functions.contains({domain, node.op_type}))
        continue;
      int64_t imported = ir::opset_of(node, imports);
      if (imported == 0 && domain.empty() && model.ir_version.value_or(3) < 3) imported = 1;
      const schema::Signature* bound = schema::find(domain, node.op_type, imported);
      if (imported <= 0 || (bound != nullptr && (bound->deprecated || fits(node, *bound))))
        continue;
      const schema::Signature* taken = nearest_fit(node, bound, imported);
      if (taken == nullptr) continue;
      repairs.push_back(misfit(scope, i, bound, imported, *taken));
      node.opset = taken->since;
    }
  });
}

}  // namespace sardonyx::lenient
