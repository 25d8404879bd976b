// What a caller gives to a run, beside what the model declares.
#pragma once

#include <span>

#include "sardonyx/session.h"

namespace sardonyx {

// Throws Error (bad_input) where a value is of another kind, element type, rank or size than its
// input, or two sizes of one name differ: what a planned run finds when it binds its inputs.
// Absent values are not looked at.
void check_given(std::span<const ValueDescription* const> inputs, std::span<const Value> given);

}  // namespace sardonyx
