#include "sarif.h"

#include <fmt/format.h>

#include <map>
#include <string_view>

#include "session/about.h"
#include "session/operator_sets.h"
#include "session/print.h"

namespace sardonyx::cli {
namespace {

using json = nlohmann::ordered_json;

std::string_view level_of(check::Severity severity) {
  switch (severity) {
    case check::Severity::error: return "error";
    case check::Severity::warning: return "warning";
    case check::Severity::info: break;
  }
  return "note";
}

std::string_view level_of(check::Level level) {
  switch (level) {
    case check::Level::error: return "error";
    case check::Level::warning: return "warning";
    case check::Level::info: return "note";
    case check::Level::off: break;
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

}  // namespace

json sarif_log(const std::string& model, const std::vector<check::Diagnostic>& findings) {
  std::map<std::string_view, const check::Rule*> table;
  for (const check::Rule& rule : check::operator_set_rules()) table[rule.id] = &rule;
  for (const check::Rule& rule : file_rules()) table[rule.id] = &rule;
  for (const check::Rule& rule : check::rules()) table[rule.id] = &rule;
  json rules = json::array(), results = json::array();
  std::map<std::string_view, size_t> indices;
  for (const check::Diagnostic& finding : findings) {
    const auto [index, is_new] = indices.try_emplace(finding.rule, indices.size());
    if (is_new) {
      json rule = {{"id", finding.rule}};
      if (const auto known = table.find(finding.rule); known != table.end()) {
        rule["shortDescription"] = {{"text", known->second->title}};
        rule["defaultConfiguration"] = {{"level", level_of(known->second->standard)}};
      }
      rules.push_back(std::move(rule));
    }
    const std::string place = printable(finding.place.to_string());
    std::string text = printable(finding.message);
    if (!finding.advice.empty()) text += "; " + printable(finding.advice);
    json location = {{"physicalLocation", {{"artifactLocation", {{"uri", uri_of(model)}}}}},
                     {"logicalLocations", json::array({{{"fullyQualifiedName", place}}})}};
    results.push_back({{"ruleId", finding.rule},
                       {"ruleIndex", index->second},
                       {"level", level_of(finding.severity)},
                       {"message", {{"text", fmt::format("{}: {}", place, text)}}},
                       {"locations", json::array({std::move(location)})}});
  }
  json driver = {{"name", "sardonyx"}, {"version", about().version}, {"rules", std::move(rules)}};
  return {
      {"$schema", "https://json.schemastore.org/sarif-2.1.0.json"},
      {"version", "2.1.0"},
      {"runs", json::array({{{"tool", {{"driver", std::move(driver)}}},
                             {"artifacts", json::array({{{"location", {{"uri", uri_of(model)}}}}})},
                             {"results", std::move(results)}}})}};
}

}  // namespace sardonyx::cli
