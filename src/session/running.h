// Running a session from other parts of the library than the session itself.
#pragma once

#include <span>
#include <vector>

#include "sardonyx/session.h"

namespace sardonyx {

// As Session::run by position, of what a Session holds.
void run_session(const Session::Implementation& session, std::span<const Value> inputs,
                 std::span<Value> outputs, const RunOptions& options);

const std::vector<ValueDescription>& inputs_of(const Session::Implementation& session);
const std::vector<ValueDescription>& outputs_of(const Session::Implementation& session);

}  // namespace sardonyx
