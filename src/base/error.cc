#include "sardonyx/error.h"

#include <utility>

namespace sardonyx {

std::string_view name_of(ErrorCode code) {
  switch (code) {
    case ErrorCode::unreadable: return "unreadable";
    case ErrorCode::invalid_model: return "invalid model";
    case ErrorCode::unsupported: return "unsupported";
    case ErrorCode::bad_input: return "bad input";
    case ErrorCode::run_failed: return "run failed";
    case ErrorCode::cancelled: return "cancelled";
    case ErrorCode::out_of_memory: return "out of memory";
    case ErrorCode::internal: return "internal error";
  }
  return "internal error";
}

Error::Error(ErrorCode code, std::string message, std::string location)
    : code_(code), message_(std::move(message)), location_(std::move(location)) {
  what_ = location_.empty() ? message_ : location_ + ": " + message_;
}

Error Error::within(std::string_view outer) const {
  std::string location(outer);
  if (!location_.empty()) location += ", " + location_;
  return Error(code_, message_, std::move(location));
}

}  // namespace sardonyx
