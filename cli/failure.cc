#include "failure.h"

#include <fmt/format.h>

#include <exception>
#include <new>
#include <string_view>

#include "commands.h"
#include "memory.h"
#include "sardonyx/text.h"
#include "sarif.h"
#include "terminal.h"

namespace sardonyx::cli {

std::string Failure::text() const {
  const std::string shown = printable_message(message);
  return place.empty() ? shown : fmt::format("{}: {}", printable_message(place), shown);
}

Failure failure_of(const Error& error) {
  const auto failure = [&](int code, const char* kind) {
    return Failure{code, kind, error.location(), error.message()};
  };
  switch (error.code()) {
    case ErrorCode::unreadable: return failure(unreadable, "unreadable");
    case ErrorCode::invalid_model: return failure(invalid_model, "invalid_model");
    case ErrorCode::unsupported: return failure(unsupported, "unsupported");
    case ErrorCode::bad_input: return failure(bad_input, "bad_input");
    case ErrorCode::run_failed: return failure(run_failed, "run_failed");
    case ErrorCode::cancelled: return failure(run_failed, "cancelled");
    case ErrorCode::out_of_memory:
      return {run_failed, "out_of_memory", error.location(), error.message() + memory_advice()};
    case ErrorCode::internal: break;
  }
  return failure(run_failed, "internal");
}

Failure usage_failure(std::string message) { return {usage, "usage", "", std::move(message)}; }

Failure current_failure() {
  try {
    throw;
  } catch (const UsageError& error) {
    return usage_failure(error.what());
  } catch (const Error& error) {
    return failure_of(error);
  } catch (const std::bad_alloc&) {
    return {run_failed, "out_of_memory", "", "out of memory" + memory_advice()};
  } catch (const std::exception& error) {
    return {run_failed, "internal", "", fmt::format("internal error: {}", error.what())};
  }
}

nlohmann::ordered_json to_json(const Failure& failure) {
  return {{"kind", failure.kind},
          {"exit_code", failure.exit_code},
          {"place", failure.place},
          {"message", failure.message}};
}

ReportForm report_form(const std::vector<std::string>& arguments) {
  for (size_t i = 1; i < arguments.size(); ++i) {
    const std::string& argument = arguments[i];
    if (argument == "--") break;
    if (argument == "--json") return ReportForm::json;
    if (argument == "--sarif") return ReportForm::sarif;
  }
  return ReportForm::text;
}

std::string failure_report(const Failure& failure, ReportForm form) {
  switch (form) {
    case ReportForm::json: return text_of({{"error", to_json(failure)}});
    case ReportForm::sarif: return text_of(sarif_log(failure));
    case ReportForm::text: break;
  }
  return {};
}

}  // namespace sardonyx::cli
