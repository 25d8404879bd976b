// Identity: the output is the input, of any kind.
#include "ops/operator.h"

namespace sardonyx::ops {
namespace identity_unit {
namespace {

void infer(InferContext& ctx) { ctx.set_known(0, ctx.known(0)); }

std::unique_ptr<Step> prepare(PrepareContext& ctx) {
  if (ctx.in_type(0).is_tensor()) return make_view_step("identity.view");
  return make_allocating_step("identity.value",
                              [](RunContext& run) { run.set_output(0, run.in_value(0)); });
}

constexpr Operator operators[] = {{.name = "Identity", .infer = infer, .prepare = prepare}};

}  // namespace
}  // namespace identity_unit

std::span<const Operator> identity_operators() { return identity_unit::operators; }

}  // namespace sardonyx::ops
