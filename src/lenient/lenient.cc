#include "lenient/lenient.h"

#include "lenient/repairs.h"
#include "wire/footprint.h"

namespace sardonyx::lenient {

Repaired repair(const ir::Model& given, const check::Options& options) {
  Repaired made;
  warn_of_doubled_imports(given, made.repairs);
  made.findings = check::check(given, options);
  if (made.findings.empty() && !has_spare_coefficients(given)) return made;
  const size_t warned = made.repairs.size();
  MemoryCharge copied(wire::memory_of(given));
  ir::Model model = given;
  // In this order: what a node's version is decides what is wrong with it, and dead nodes are
  // found in a graph whose values have one maker each.
  import_operator_sets(model, options, made.repairs);
  read_by_fitting_versions(model, made.repairs);
  drop_branch_inputs(model, made.repairs);
  drop_spare_coefficients(model, made.repairs);
  drop_duplicates(model, made.repairs);
  sort_nodes(model, made.repairs);
  if (made.repairs.size() > warned) made.findings = check::check(model, options);
  if (check::has_errors(made.findings)) {
    const size_t before = made.repairs.size();
    drop_dead_nodes(model, made.findings, made.repairs);
    if (made.repairs.size() > before) made.findings = check::check(model, options);
  }
  if (made.repairs.size() > warned) {
    made.model = std::move(model);
    made.memory = std::move(copied);
  }
  return made;
}

}  // namespace sardonyx::lenient
