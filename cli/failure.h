// Why a command failed, for people and for programs.
#pragma once

#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "sardonyx/error.h"

namespace sardonyx::cli {

struct Failure {
  int exit_code = 0;
  std::string kind;   // "unreadable", "usage": docs/cli.md lists them
  std::string place;  // where in the command line, the model or a file; may be empty
  std::string message;

  std::string text() const;  // "place: message", printable
};

Failure failure_of(const Error& error);
Failure usage_failure(std::string message);
// Of the exception being handled.
Failure current_failure();

// {"kind": …, "exit_code": …, "place": …, "message": …}
nlohmann::ordered_json to_json(const Failure& failure);

// How the command line asks for results; looked up before it is parsed, since parsing may fail.
enum class ReportForm { text, json, sarif };
ReportForm report_form(const std::vector<std::string>& arguments);

// The whole report of a command that failed; empty for people, who read standard error.
std::string failure_report(const Failure& failure, ReportForm form);

}  // namespace sardonyx::cli
