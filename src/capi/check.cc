#include "sardonyx/check.h"
#include "capi/handles.h"

namespace {

struct Finding {
  sardonyx_severity severity;
  std::string rule, message, advice;
  sardonyx::DiagnosticPlace place;
  std::string place_text;
};

}  // namespace

struct sardonyx_report {
  SARDONYX_TAG('r', 'e');
  std::vector<Finding> findings;
  size_t errors = 0;
};

using namespace sardonyx;
using namespace sardonyx::capi;

namespace {

CheckOptions check_options(const sardonyx_check_options* given) {
  const sardonyx_check_options known = known_part(given);
  CheckOptions options;
  options.full = known.full != 0;
  options.data = known.data != 0;
  if (known.strict != 0 && known.runnable != 0)
    fail(ErrorCode::bad_input, "a check is given both 'strict' and 'runnable'");
  if (known.runnable != 0) options.profile = CheckProfile::runnable;
  options.unknown_domains_are_errors = known.unknown_domains_are_errors != 0;
  if (known.max_findings > 0) options.max_diagnostics = known.max_findings;
  options.operator_sets = texts(known.operator_sets, known.operator_set_count, "operator_sets");
  options.libraries = texts(known.libraries, known.library_count, "libraries");
  if (known.strict != 0) options.profile = CheckProfile::strict;
  if (known.trusted_folder != nullptr) options.trusted_folder = known.trusted_folder;
  return options;
}

}  // namespace

sardonyx_report* capi::new_report(const CheckReport& report) {
  auto made = std::make_unique<sardonyx_report>();
  for (const Diagnostic& one : report.diagnostics) {
    made->findings.push_back({static_cast<sardonyx_severity>(one.severity), std::string(one.rule),
                              one.message, one.advice, one.place, one.place.to_string()});
    made->errors += one.severity == Severity::error;
  }
  return made.release();
}

sardonyx_status* sardonyx_check_file(const char* path, const sardonyx_check_options* options,
                                     sardonyx_report** report) {
  return guarded([&] {
    required(report, "report");
    *report = new_report(check_file(&required(path, "path"), check_options(options)));
  });
}

sardonyx_status* sardonyx_check(const sardonyx_model* model, const sardonyx_check_options* options,
                                sardonyx_report** report) {
  return guarded([&] {
    required(report, "report");
    *report = new_report(check_model(required(model, "model").model, check_options(options)));
  });
}

size_t sardonyx_report_count(const sardonyx_report* report) {
  return !is_usable(report) ? 0 : report->findings.size();
}

size_t sardonyx_report_errors(const sardonyx_report* report) {
  return !is_usable(report) ? 0 : report->errors;
}

sardonyx_status* sardonyx_report_finding(const sardonyx_report* report, size_t index,
                                         sardonyx_finding* finding) {
  return guarded([&] {
    const auto& findings = required(report, "report").findings;
    if (index >= findings.size())
      fail(ErrorCode::bad_input, "there is no finding {} of {}", index, findings.size());
    const Finding& one = findings[index];
    const DiagnosticPlace& place = one.place;
    fill(finding, "finding",
         sardonyx_finding{0, one.severity, one.rule.c_str(), one.place_text.c_str(),
                          one.message.c_str(), one.advice.c_str(), place.graph.c_str(),
                          place.node_index, place.node_name.c_str(), place.node_output.c_str(),
                          place.op.c_str(), place.detail.c_str()});
  });
}

void sardonyx_report_release(sardonyx_report* report) { release_handle(report); }
