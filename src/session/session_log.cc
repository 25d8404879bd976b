#include "session/session_log.h"

namespace sardonyx {

std::string_view name_of(LogLevel level) {
  switch (level) {
    case LogLevel::debug: return "debug";
    case LogLevel::info: return "info";
    case LogLevel::warning: return "warning";
    case LogLevel::error: return "error";
  }
  return "unknown";
}

std::string LogMessage::to_string() const {
  return std::string(name_of(level)) + ": " + Warning{rule, place, message, advice}.to_string();
}

void SessionLog::tell(const LogMessage& message) const {
  if (!tells(message.level)) return;
  if (!log_) return model_warn_({message.rule, message.place, message.message, message.advice});
  try {
    log_(message);
  } catch (...) {  // it is told things in passing; what is done goes on
  }
}

SessionLog::Warn SessionLog::warn() const {
  if (!tells(LogLevel::warning)) return {};
  if (!log_) return model_warn_;
  return [log = *this](const Warning& w) {
    log.tell({LogLevel::warning, w.rule, w.place, w.message, w.advice});
  };
}

}  // namespace sardonyx
