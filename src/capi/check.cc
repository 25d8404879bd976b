#include "capi/handles.h"
#include "session/check_file.h"

namespace {

struct Finding {
  sardonyx_severity severity;
  std::string rule, place, message, advice;
};

}  // namespace

struct sardonyx_report {
  std::vector<Finding> findings;
  size_t errors = 0;
};

using namespace sardonyx;
using namespace sardonyx::capi;

sardonyx_status* sardonyx_check_file(const char* path, const sardonyx_check_options* options,
                                     sardonyx_report** report) {
  return guarded([&] {
    required(report, "report");
    const sardonyx_check_options known = known_part(options);
    CheckFileOptions checking;
    checking.full = known.full != 0 || known.strict != 0;
    checking.data = known.data != 0 || known.strict != 0;
    if (known.strict != 0) checking.rules.profile = check::Profile::strict;
    if (known.trusted_folder != nullptr) checking.trusted_folder = known.trusted_folder;
    auto made = std::make_unique<sardonyx_report>();
    for (const check::Diagnostic& one : check_model_file(&required(path, "path"), checking)) {
      made->findings.push_back({static_cast<sardonyx_severity>(one.severity), std::string(one.rule),
                                one.place.to_string(), one.message, one.advice});
      made->errors += one.severity == check::Severity::error;
    }
    *report = made.release();
  });
}

size_t sardonyx_report_count(const sardonyx_report* report) {
  return report == nullptr ? 0 : report->findings.size();
}

size_t sardonyx_report_errors(const sardonyx_report* report) {
  return report == nullptr ? 0 : report->errors;
}

sardonyx_status* sardonyx_report_finding(const sardonyx_report* report, size_t index,
                                         sardonyx_finding* finding) {
  return guarded([&] {
    const auto& findings = required(report, "report").findings;
    if (index >= findings.size())
      fail(ErrorCode::bad_input, "there is no finding {} of {}", index, findings.size());
    const Finding& one = findings[index];
    fill(finding, sardonyx_finding{0, one.severity, one.rule.c_str(), one.place.c_str(),
                                   one.message.c_str(), one.advice.c_str()});
  });
}

void sardonyx_report_release(sardonyx_report* report) { delete report; }
