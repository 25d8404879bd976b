// Statuses: what went wrong, with a number of ONNX Runtime's.
#include <new>

#include "ort_api/handles.h"

namespace sardonyx::ort_api {

namespace {

constexpr int first_carried = 1000;  // behind all that ErrorCode has

// What new_status() gives where there is no memory for another one; never released.
OrtStatus* out_of_memory_status() {
  static OrtStatus status{ORT_RUNTIME_EXCEPTION, "out of memory"};
  return &status;
}

OrtStatus* CreateStatus(OrtErrorCode code, const char* message) {
  return new_status(code, message == nullptr ? "" : message);
}

OrtErrorCode GetErrorCode(const OrtStatus* status) {
  return status == nullptr ? ORT_OK : status->code;
}

const char* GetErrorMessage(const OrtStatus* status) {
  return status == nullptr ? "" : status->message.c_str();
}

}  // namespace

void ReleaseStatus(OrtStatus* status) {
  if (status != out_of_memory_status()) delete status;
}

OrtStatus* new_status(OrtErrorCode code, std::string_view message) noexcept {
  OrtStatus* const reserve = out_of_memory_status();
  try {
    return new OrtStatus{code, std::string(message)};
  } catch (const std::bad_alloc&) {
    return reserve;
  }
}

OrtErrorCode code_of(ErrorCode code) {
  if (static_cast<int>(code) >= first_carried)
    return static_cast<OrtErrorCode>(static_cast<int>(code) - first_carried);
  switch (code) {
    case ErrorCode::unreadable: return ORT_NO_SUCHFILE;
    case ErrorCode::invalid_model: return ORT_INVALID_GRAPH;
    case ErrorCode::unsupported: return ORT_NOT_IMPLEMENTED;
    case ErrorCode::bad_input: return ORT_INVALID_ARGUMENT;
    case ErrorCode::run_failed:
    case ErrorCode::out_of_memory: return ORT_RUNTIME_EXCEPTION;
    case ErrorCode::cancelled:
    case ErrorCode::internal: break;
  }
  return ORT_FAIL;
}

ErrorCode error_code_of(OrtErrorCode code) {
  switch (code) {
    case ORT_FAIL: return ErrorCode::internal;
    case ORT_INVALID_ARGUMENT: return ErrorCode::bad_input;
    case ORT_NO_SUCHFILE: return ErrorCode::unreadable;
    case ORT_NOT_IMPLEMENTED: return ErrorCode::unsupported;
    case ORT_RUNTIME_EXCEPTION: return ErrorCode::run_failed;
    default: break;
  }
  return code > 0 && code < first_carried ? static_cast<ErrorCode>(first_carried + code)
                                          : ErrorCode::run_failed;
}

OrtStatus* status_of_exception() noexcept {
  try {
    throw;
  } catch (const Failure& failure) {
    return new_status(failure.code, failure.message);
  } catch (const Error& error) {
    return new_status(code_of(error.code()), error.what());
  } catch (const std::bad_alloc&) {
    return new_status(ORT_RUNTIME_EXCEPTION, "out of memory");
  } catch (const std::exception& other) {
    return new_status(ORT_RUNTIME_EXCEPTION, other.what());
  } catch (...) {
    return new_status(ORT_FAIL, "an exception that says nothing of itself");
  }
}

void throw_status(OrtStatus* status) {
  if (status == nullptr) return;
  Failure failure{status->code == ORT_OK ? ORT_FAIL : status->code, status->message};
  ReleaseStatus(status);
  throw failure;
}

void add_status(OrtApi& table) {
  table.CreateStatus = CreateStatus;
  table.GetErrorCode = GetErrorCode;
  table.GetErrorMessage = GetErrorMessage;
  table.ReleaseStatus = ReleaseStatus;
}

}  // namespace sardonyx::ort_api
