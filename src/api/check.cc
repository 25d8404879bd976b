#include "sardonyx/check.h"

#include <algorithm>

#include "check/operator_set.h"
#include "session/model.h"
#include "tools/check_file.h"

namespace sardonyx {
namespace {

CheckFileOptions inner(const CheckOptions& options) {
  CheckFileOptions checking;
  const bool strict = options.profile == CheckProfile::strict;
  checking.rules.profile = static_cast<check::Profile>(options.profile);
  checking.rules.unknown_domains_are_errors = options.unknown_domains_are_errors;
  checking.rules.max_diagnostics = options.max_diagnostics;
  checking.full = options.full || strict;
  checking.data = options.data || strict;
  checking.trusted_folder = options.trusted_folder;
  checking.operator_sets = options.operator_sets;
  checking.libraries = options.libraries;
  return checking;
}

}  // namespace

int64_t CheckReport::count(Severity severity) const {
  return std::ranges::count(diagnostics, severity, &Diagnostic::severity);
}

CheckReport check_file(const std::string& path, const CheckOptions& options) {
  return {check_model_file(path, inner(options))};
}

CheckReport check_model(const Model& model, const CheckOptions& options) {
  const Model::Implementation& given = model.implementation();
  CheckFileOptions checking = inner(options);
  if (checking.trusted_folder.empty()) checking.trusted_folder = given.trusted_folder;
  return {check_model(given.model, checking, &given.custom)};
}

std::vector<CheckRule> check_rules() {
  std::vector<CheckRule> rules;
  for (const auto& list : {check::rules(), file_rules(), check::operator_set_rules()}) {
    for (const check::Rule& rule : list) {
      const auto level = [](check::Level one) { return static_cast<CheckLevel>(one); };
      rules.push_back(
          {rule.id, rule.title, level(rule.runnable), level(rule.standard), level(rule.strict)});
    }
  }
  return rules;
}

}  // namespace sardonyx
