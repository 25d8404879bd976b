// How often operators' shape formulas have been evaluated.
#pragma once

#include <cstdint>

namespace sardonyx::infer {

// By this thread since it began. What a run adds to it is inference that the plan did not save.
int64_t formulas_evaluated();

}  // namespace sardonyx::infer
