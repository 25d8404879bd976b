#include "sarif.h"

#include <fmt/format.h>

#include <map>
#include <string_view>

#include "sardonyx/about.h"
#include "sardonyx/text.h"

namespace sardonyx::cli {
namespace {

using json = nlohmann::ordered_json;

std::string_view level_of(Severity severity) {
  switch (severity) {
    case Severity::error: return "error";
    case Severity::warning: return "warning";
    case Severity::info: break;
  }
  return "note";
}

std::string_view level_of(CheckLevel level) {
  switch (level) {
    case CheckLevel::error: return "error";
    case CheckLevel::warning: return "warning";
    case CheckLevel::info: return "note";
    case CheckLevel::off: break;
  }
  return "none";
}

// A path as a URI reference: what is no letter, digit or one of a few signs is escaped.
std::string uri_of(std::string_view path) {
  std::string uri = path.starts_with('/') ? "file://" : "";
  for (const char c : path) {
    const bool plain = (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') ||
                       std::string_view("/-._~").find(c) != std::string_view::npos;
    uri += plain ? std::string(1, c) : fmt::format("%{:02X}", static_cast<unsigned char>(c));
  }
  return uri;
}

json location_of(std::string_view model) {
  return {{"physicalLocation", {{"artifactLocation", {{"uri", uri_of(model)}}}}}};
}

json notification(const Failure& failure, std::string_view model) {
  json notice = {{"level", "error"},
                 {"message", {{"text", failure.text()}}},
                 {"descriptor", {{"id", failure.kind}}}};
  if (!model.empty()) notice["locations"] = json::array({location_of(model)});
  return notice;
}

// The results of all files, and the rules they speak of.
class Results {
 public:
  Results() {
    // Where documents and models share a rule, it is the model's that counts.
    for (const CheckRule& rule : rules_) table_.try_emplace(rule.id, &rule);
  }

  void add(const std::string& model, const Diagnostic& finding) {
    const auto [index, is_new] = indices_.try_emplace(std::string(finding.rule), indices_.size());
    if (is_new) rules.push_back(rule_json(finding.rule));
    const std::string place = printable(finding.place.to_string());
    std::string text = printable(finding.message);
    if (!finding.advice.empty()) text += "; " + printable(finding.advice);
    json location = location_of(model);
    location["logicalLocations"] = json::array({{{"fullyQualifiedName", place}}});
    results.push_back({{"ruleId", finding.rule},
                       {"ruleIndex", index->second},
                       {"level", level_of(finding.severity)},
                       {"message", {{"text", fmt::format("{}: {}", place, text)}}},
                       {"locations", json::array({std::move(location)})}});
  }

  json rules = json::array(), results = json::array();

 private:
  json rule_json(std::string_view id) const {
    json rule = {{"id", id}};
    if (const auto known = table_.find(id); known != table_.end()) {
      rule["shortDescription"] = {{"text", known->second->title}};
      rule["defaultConfiguration"] = {{"level", level_of(known->second->standard)}};
    }
    return rule;
  }

  std::vector<CheckRule> rules_ = check_rules();
  std::map<std::string_view, const CheckRule*> table_;
  std::map<std::string, size_t> indices_;
};

json log_of(Results results, json artifacts, json notifications, int exit_code) {
  json driver = {
      {"name", "sardonyx"}, {"version", about().version}, {"rules", std::move(results.rules)}};
  json invocation = {{"executionSuccessful", notifications.empty()}, {"exitCode", exit_code}};
  if (!notifications.empty()) invocation["toolExecutionNotifications"] = std::move(notifications);
  return {{"$schema", "https://json.schemastore.org/sarif-2.1.0.json"},
          {"version", "2.1.0"},
          {"runs", json::array({{{"tool", {{"driver", std::move(driver)}}},
                                 {"invocations", json::array({std::move(invocation)})},
                                 {"artifacts", std::move(artifacts)},
                                 {"results", std::move(results.results)}}})}};
}

}  // namespace

json sarif_log(const std::vector<CheckedFile>& files, int exit_code) {
  Results results;
  json artifacts = json::array(), notifications = json::array();
  for (const CheckedFile& file : files) {
    artifacts.push_back({{"location", {{"uri", uri_of(file.path)}}}});
    for (const Diagnostic& finding : file.report.diagnostics) results.add(file.path, finding);
    if (file.error) notifications.push_back(notification(failure_of(*file.error), file.path));
  }
  return log_of(std::move(results), std::move(artifacts), std::move(notifications), exit_code);
}

json sarif_log(const Failure& failure) {
  return log_of({}, json::array(), json::array({notification(failure, "")}), failure.exit_code);
}

}  // namespace sardonyx::cli
