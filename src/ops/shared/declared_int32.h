// Positions that early releases gave as int32.
#pragma once

#include "ops/upgrade_context.h"

namespace sardonyx::ops {

// The newest version gives int64 there: casts it back where the model declares int32.
inline void keep_int32(UpgradeContext& ctx, size_t output) {
  if (!ctx.has_output(output)) return;
  std::vector<std::string>& inputs = ctx.node().inputs;
  inputs.push_back(ctx.node().outputs[output]);  // what is known is asked for by input
  const ElementType declared = ctx.element(inputs.size() - 1);
  inputs.pop_back();
  if (declared != ElementType::int32) return;
  std::string result;
  const std::string wide = ctx.detach_output(output, &result);
  ctx.after("Cast", {wide}, result,
            {int_attribute("to", static_cast<int64_t>(ElementType::int32))});
}

}  // namespace sardonyx::ops
