// Where a session's messages go.
#pragma once

#include <functional>
#include <string>

#include "sardonyx/log.h"
#include "sardonyx/model.h"
#include "sardonyx/session.h"

namespace sardonyx {

// Messages go to the log that the options name, from their level on. Without a log warnings go to
// the `warn` of the model, and nothing else is told. Thread-safe.
class SessionLog {
 public:
  using Warn = std::function<void(const Warning&)>;

  SessionLog() = default;
  SessionLog(const SessionOptions& options, Warn model_warn)
      : log_(options.log), level_(options.log_level), model_warn_(std::move(model_warn)) {}

  // Whether anybody is told: texts need not be made otherwise.
  bool tells(LogLevel level) const {
    return log_ ? level >= level_ : model_warn_ && level == LogLevel::warning;
  }
  // Throws nothing that the log throws; `warn` of models may throw.
  void tell(const LogMessage& message) const;
  // For what only knows of warnings; null where nobody is told. It may outlive this.
  Warn warn() const;

 private:
  Log log_;
  LogLevel level_ = LogLevel::warning;
  Warn model_warn_;
};

}  // namespace sardonyx
