#include <iterator>

#include "capi/handles.h"

namespace sardonyx::capi {
namespace {

constexpr sardonyx_code codes[]{
    SARDONYX_UNREADABLE, SARDONYX_INVALID_MODEL, SARDONYX_UNSUPPORTED,   SARDONYX_BAD_INPUT,
    SARDONYX_RUN_FAILED, SARDONYX_CANCELLED,     SARDONYX_OUT_OF_MEMORY, SARDONYX_INTERNAL};
static_assert(std::size(codes) == static_cast<size_t>(ErrorCode::internal) + 1);

// For when there is no memory for another one; never released.
sardonyx_status& without_memory() {
  static sardonyx_status status{{}, SARDONYX_OUT_OF_MEMORY, "no memory is left", ""};
  return status;
}

sardonyx_status* made(sardonyx_code code, const char* message, const char* location) noexcept {
  try {
    return new sardonyx_status{{}, code, message, location};
  } catch (...) {
    return &without_memory();
  }
}

}  // namespace

sardonyx_status* status_of_exception() noexcept {
  try {
    throw;
  } catch (const Error& error) {
    return made(codes[static_cast<size_t>(error.code())], error.what(), error.location().c_str());
  } catch (const std::bad_alloc&) {
    return &without_memory();
  } catch (const std::exception& error) {
    return made(SARDONYX_INTERNAL, error.what(), "");
  } catch (...) {
    return made(SARDONYX_INTERNAL, "an exception of an unknown type", "");
  }
}

Error error_of(sardonyx_status* status) {
  const auto* const found = std::ranges::find(codes, status->code);
  const auto code =
      found == std::end(codes) ? ErrorCode::run_failed : static_cast<ErrorCode>(found - codes);
  std::string message = status->message, location = status->location;
  const std::string before = location + ": ";
  if (!location.empty() && message.starts_with(before)) message.erase(0, before.size());
  sardonyx_status_release(status);
  return Error(code, std::move(message), std::move(location));
}

void refuse_null(const char* name) {
  fail(ErrorCode::bad_input, "the argument '{}' is NULL", name);
}

void refuse_handle(const char* name) {
  fail(ErrorCode::bad_input,
       "the argument '{}' is no such handle: it was released, or is one of another kind", name);
}

int64_t limit_of(int64_t bytes) {
  if (bytes < 0) fail(ErrorCode::bad_input, "a memory limit of {} bytes is negative", bytes);
  return bytes;
}

std::vector<std::string> texts(const char* const* names, size_t count, const char* argument) {
  std::vector<std::string> list;
  if (count > 0) required(names, argument);
  for (size_t i = 0; i < count; ++i) list.emplace_back(&required(names[i], argument));
  return list;
}

}  // namespace sardonyx::capi

using namespace sardonyx;

uint32_t sardonyx_api_version(void) { return SARDONYX_API_VERSION; }

const char* sardonyx_version(void) {
  static const std::string text(version());
  return text.c_str();
}

sardonyx_code sardonyx_status_code(const sardonyx_status* status) {
  if (status == nullptr) return SARDONYX_OK;
  return capi::is_usable(status) ? status->code : SARDONYX_BAD_INPUT;
}

const char* sardonyx_status_message(const sardonyx_status* status) {
  if (status == nullptr) return "";
  return capi::is_usable(status) ? status->message.c_str() : "the status was released";
}

const char* sardonyx_status_location(const sardonyx_status* status) {
  return capi::is_usable(status) ? status->location.c_str() : "";
}

void sardonyx_status_release(sardonyx_status* status) {
  if (status != &capi::without_memory()) capi::release_handle(status);
}

sardonyx_status* sardonyx_status_create(sardonyx_code code, const char* message) {
  if (code == SARDONYX_OK) return nullptr;
  const bool is_given = message != nullptr && message[0] != 0;
  return capi::made(code, is_given ? message : "an error that nothing was said of", "");
}
