// com.microsoft: Gelu, BiasGelu and QuickGelu have bodies in spec/functions; FastGelu takes an
// optional bias.
#include "ops/contrib/body.h"
#include "ops/operator.h"

namespace sardonyx::ops {
namespace contrib_activations_unit {
namespace {

void fast_gelu(UpgradeContext& ctx) {
  Body body(ctx);
  std::string x = body.input(0);
  if (body.has(1)) x = body.op("Add", {x, body.input(1)});
  body.give(0, "Gelu", {x}, {string_attribute("approximate", "tanh")});
}

constexpr Operator operators[] = {
    {.name = "FastGelu", .domain = "com.microsoft", .upgrade = fast_gelu},
};

}  // namespace
}  // namespace contrib_activations_unit

std::span<const Operator> contrib_activations_operators() {
  return contrib_activations_unit::operators;
}

}  // namespace sardonyx::ops
