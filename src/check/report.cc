#include "check/report.h"

namespace sardonyx {

std::string_view name_of(Severity severity) {
  switch (severity) {
    case Severity::error: return "error";
    case Severity::warning: return "warning";
    case Severity::info: return "info";
  }
  return "error";
}

std::string DiagnosticPlace::to_string() const {
  std::string text = graph;
  if (node_index >= 0) {
    text += fmt::format("{}node {} {}", text.empty() ? "" : ", ", node_index, op);
    if (!node_name.empty()) text += fmt::format(" '{}'", node_name);
    if (!node_output.empty()) text += fmt::format(" making '{}'", node_output);
  }
  if (!detail.empty()) text += (text.empty() ? "" : ", ") + detail;
  return text;
}

std::string Diagnostic::to_string() const {
  return fmt::format("{}: {}: {}{}{} [{}]", name_of(severity), place.to_string(), message,
                     advice.empty() ? "" : "; ", advice, rule);
}

}  // namespace sardonyx

namespace sardonyx::check {
namespace {

Severity severity_of(Level level) {
  switch (level) {
    case Level::error: return Severity::error;
    case Level::warning: return Severity::warning;
    default: return Severity::info;
  }
}

}  // namespace

bool has_errors(std::span<const Diagnostic> diagnostics) {
  for (const Diagnostic& diagnostic : diagnostics) {
    if (diagnostic.severity == Severity::error) return true;
  }
  return false;
}

std::span<const Rule> rules() { return rule_table; }

std::string Where::whole_detail() const {
  if (part.empty()) return detail;
  return fmt::format("{}{}{} '{}'", detail, detail.empty() ? "" : ", ", part, part_name);
}

Place Where::to_place() const {
  Place place;
  place.graph = graph ? graph->path() : std::string(root);
  if (node) {
    place.node_index = static_cast<int64_t>(node_index);
    place.node_name = node->name;
    if (node->name.empty() && !node->outputs.empty()) place.node_output = node->outputs[0];
    const std::string_view domain = ir::canonical_domain(node->domain);
    place.op = fmt::format("{}{}{}", domain, domain.empty() ? "" : ".", node->op_type);
  }
  place.detail = whole_detail();
  return place;
}

Level Report::level(const Rule& rule) const {
  if (ir_version_ < rule.ir_from || ir_version_ > rule.ir_to) return Level::off;
  switch (options_.profile) {
    case Profile::runnable: return rule.runnable;
    case Profile::standard: return rule.standard;
    case Profile::strict: return rule.strict;
  }
  return rule.standard;
}

void Report::push(const Rule& rule, Level level, const Where& where, std::string_view advice,
                  std::string message) {
  Diagnostic& diagnostic = diagnostics_.emplace_back();
  diagnostic.severity = severity_of(level);
  diagnostic.rule = rule.id;
  diagnostic.place = where.to_place();
  diagnostic.place.graph = as_utf8(std::move(diagnostic.place.graph));
  diagnostic.place.node_name = as_utf8(std::move(diagnostic.place.node_name));
  diagnostic.place.node_output = as_utf8(std::move(diagnostic.place.node_output));
  diagnostic.place.op = as_utf8(std::move(diagnostic.place.op));
  diagnostic.place.detail = as_utf8(std::move(diagnostic.place.detail));
  diagnostic.message = as_utf8(std::move(message));
  diagnostic.advice = as_utf8(std::string(advice));
}

std::vector<Diagnostic> Report::take() {
  for (const Level level : {Level::error, Level::warning, Level::info}) {
    const size_t count = counts_[static_cast<size_t>(level)];
    if (count <= options_.max_diagnostics) continue;
    Diagnostic& last = diagnostics_.emplace_back();
    last.severity = severity_of(level);
    last.rule = "more";
    last.place.graph = "model";
    last.message = fmt::format("{} more findings of this severity are left out",
                               count - options_.max_diagnostics);
  }
  return std::move(diagnostics_);
}

}  // namespace sardonyx::check
