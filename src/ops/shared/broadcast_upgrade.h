// The broadcasting of opset 1 to 6 (attributes `broadcast` and `axis`) in today's terms.
#pragma once

#include "ops/upgrade_context.h"

namespace sardonyx::ops {

// For Add, Sub, Mul, Div, Pow, And, Or, Xor, Equal, Greater, Less before version 7: B, a contiguous
// run of A's dimensions, gets trailing dimensions of 1 where `axis` asks for them. Also drops
// consumed_inputs.
void upgrade_broadcast(UpgradeContext& ctx);

}  // namespace sardonyx::ops
