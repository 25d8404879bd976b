#include "lower/upgrade_node.h"

#include <string>
#include <string_view>

#include "base/fail.h"
#include "ir/origin.h"
#include "schema/schema.h"

namespace sardonyx::lower {
namespace {

// Upgrade rules rely on the inputs and outputs that a node of its version must have.
void require_signature(const ir::Node& node, const schema::Signature& bound) {
  const auto check = [&](const std::vector<std::string>& names, int32_t least, int32_t most,
                         std::string_view what) {
    size_t count = names.size();
    while (count > 0 && names[count - 1].empty()) --count;
    if (count >= static_cast<size_t>(least) && count <= static_cast<size_t>(most)) return;
    fail_at(ir::place_of(node), ErrorCode::invalid_model,
            "version {} of {} has {} to {} {}s; the node has {}", bound.since, node.op_type, least,
            most, what, count);
  };
  check(node.inputs, bound.min_inputs, bound.max_inputs, "input");
  check(node.outputs, bound.min_outputs, bound.max_outputs, "output");
  for (size_t i = 0; i < node.inputs.size(); ++i) {
    const schema::Formal* formal = bound.input(i);
    if (!node.inputs[i].empty() || !formal || formal->option == schema::FormalOption::optional)
      continue;
    fail_at(ir::place_of(node), ErrorCode::invalid_model, "input {} '{}' is required and absent", i,
            formal->name);
  }
}

}  // namespace

Upgraded upgrade_node(ir::Node& node, const schema::Signature& bound, const ops::Operator& op,
                      const ops::UpgradeContext::Services& services, bool constants_apart) {
  require_signature(node, bound);
  const std::string made = node.name.empty() && !node.outputs.empty() ? node.outputs[0] : "";
  ops::UpgradeContext context(node, bound.since, &bound, services);
  op.upgrade(context);
  Upgraded upgraded;
  if (constants_apart) upgraded.constants = context.take_constants();
  upgraded.before = context.take_before();
  upgraded.after = context.take_after();
  upgraded.shapes = context.take_shapes();
  upgraded.dropped = context.dropped();
  // The node as the model has it.
  const auto source = [&] {
    ir::Node old;
    old.domain = bound.domain, old.op_type = bound.name;
    old.name = node.name, old.outputs = {made}, old.origin = node.origin;
    ir::keep_source(old);
    return old.sources;
  };
  for (auto* helpers : {&upgraded.before, &upgraded.after}) {
    for (ir::Node& helper : *helpers) {
      helper.origin = fmt::format("from {}-{}{}{}", bound.name, bound.since,
                                  node.origin.empty() ? "" : " ", node.origin);
      if (helper.name.empty()) helper.name = node.name;
      if (helper.op_type != "Constant") helper.sources = source();
    }
  }
  if (node.op_type != bound.name || ir::canonical_domain(node.domain) != bound.domain)
    node.sources = source();
  return upgraded;
}

}  // namespace sardonyx::lower
