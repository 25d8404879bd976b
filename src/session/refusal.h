// How a session and the tools refuse a model by a finding of the checker.
#pragma once

#include "check/check.h"
#include "sardonyx/error.h"

namespace sardonyx {

// Versions newer than any known one are no mistake of the model.
inline ErrorCode refusal_code(const check::Diagnostic& finding) {
  const bool is_newer = finding.rule == "M-03" || finding.rule == "M-12";
  return is_newer ? ErrorCode::unsupported : ErrorCode::invalid_model;
}

}  // namespace sardonyx
