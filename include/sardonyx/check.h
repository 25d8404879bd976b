// Checking models against the rules of the standard: docs/checker.md lists them.
//
//   for (const auto& found : sardonyx::check_file("model.onnx").diagnostics)
//     std::cout << found.to_string() << '\n';
//
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "sardonyx/diagnostic.h"
#include "sardonyx/model.h"

#pragma GCC visibility push(default)  // what a shared library gives to others

namespace sardonyx {

enum class CheckProfile : uint8_t {
  runnable,  // only what makes running impossible, as errors; nothing else is reported
  standard,  // what the standard forbids is an error, what it advises against a warning
  strict,    // what real models often break is an error, too
};

struct CheckOptions {
  CheckProfile profile = CheckProfile::standard;
  // Also infer types and shapes: what does not fit an operator, or contradicts what is declared.
  // The strict profile does it anyway.
  bool full = false;
  // Also look at external data: paths, links, ranges and, where they are stated, checksums. The
  // strict profile does it anyway. Of a model whose external data was loaded there is nothing left
  // to look at.
  bool data = false;
  // An operator of a domain that neither the standard nor the model defines is an error, not
  // information.
  bool unknown_domains_are_errors = false;
  // Of each severity. What comes after is counted, not listed; a last finding says how many.
  size_t max_diagnostics = 1000;
  std::string trusted_folder = {};  // as in LoadOptions
  // Operator set documents (files) that the model's imports may refer to.
  std::vector<std::string> operator_sets = {};
  // Libraries of operators (files), whose code runs.
  std::vector<std::string> libraries = {};
};

struct CheckReport {
  // The model's own, then graph by graph. Empty: there is nothing to report.
  std::vector<Diagnostic> diagnostics = {};

  // How many diagnostics have this severity.
  int64_t count(Severity severity) const;
  bool has_errors() const { return count(Severity::error) > 0; }
};

// However broken a model is, that is a finding; these throw Error only where there is no model to
// check or an option names a file that can't be used: (unreadable), (invalid_model), (bad_input).
// May be called from any thread. check_file needs no external data but for `data`; check_model
// looks at the model as it is, with what its libraries and documents have brought to it.
CheckReport check_file(const std::string& path, const CheckOptions& options = {});
CheckReport check_model(const Model& model, const CheckOptions& options = {});

// How a profile reports a rule; `off`: not at all.
enum class CheckLevel : uint8_t { off, info, warning, error };

// A rule that the checker can report.
struct CheckRule {
  std::string_view id;     // "G-03"; "L-…" are limits of Sardonyx's own
  std::string_view title;  // what it asks, in one line
  CheckLevel runnable = CheckLevel::off;
  CheckLevel standard = CheckLevel::off;
  CheckLevel strict = CheckLevel::off;
};

// Every rule, those for operator set documents included.
std::vector<CheckRule> check_rules();

}  // namespace sardonyx

#pragma GCC visibility pop
