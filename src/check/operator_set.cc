#include "check/operator_set.h"

#include <fmt/format.h>

#include <array>
#include <set>
#include <string>
#include <tuple>

#include "check/context.h"

namespace sardonyx::check {
namespace {

using levels::error, levels::info, levels::warning;

constexpr std::array set_rules = {
    row("O-16", error, "the document begins with its magic word"),
    row("O-17", error, "ir_version is one of the standard's"),
    row("O-03", info, "domains of operator sets are reversed DNS names"),
    row("O-01", error, "the version of the set is positive"),
    row("O-20", error, "an operator has a name and a version"),
    row("O-08", error, "an operator is not newer than the set"),
    row("O-21", error, "name and version of an operator are unique in the set"),
    row("O-11", warning, "experimental operators may change"),
    row("O-12", warning, "experimental operators of ai.onnx are gone"),
    row("O-22", info, "operators without a body cannot be checked"),
};

class SetCheck {
 public:
  SetCheck(const ir::OperatorSet& set, const Options& options) : set_(set), options_(options) {}

  std::vector<Diagnostic> run() {
    header();
    std::set<std::tuple<std::string, std::string, int64_t>> seen;
    for (const ir::OperatorDefinition& op : set_.operators) {
      const std::string place = fmt::format("operator '{}'", op.op_type);
      definition(place, op.op_type, op.since_version);
      if (!seen.emplace(op.op_type, "", op.since_version).second) twice(place);
      if (op.status && (*op.status < 0 || *op.status > 1))
        add("O-11", place, "",
            fmt::format("status is 0 (experimental) or 1 (stable); found {}", *op.status));
      if (op.status && op.is_experimental())
        add("O-11", place, "", "it is experimental and may change in the next version of the set");
    }
    for (const ir::Function& function : set_.functions) {
      const std::string place = fmt::format("function '{}'", function.name);
      definition(place, function.name, function.since_version.value_or(set_.opset_version));
      if (!seen.emplace(function.name, function.overload,
                        function.since_version.value_or(set_.opset_version))
               .second)
        twice(place);
      if (ir::canonical_domain(function.domain) != ir::canonical_domain(set_.domain) &&
          !function.domain.empty())
        add("O-01", place, "put it into a document of its own domain",
            fmt::format("the set is of domain '{}'; found '{}'", set_.domain, function.domain));
    }
    bodies();
    if (!set_.operators.empty())
      add("O-22", "operators", "",
          fmt::format("a document holds no signatures: of {} operators without a body only name "
                      "and version are known",
                      set_.operators.size()));
    return std::move(found_);
  }

 private:
  void header() {
    if (set_.magic != ir::operator_set_magic)
      add("O-16", "magic", "is it an operator set document at all?",
          fmt::format("it is '{}'; found '{}'", ir::operator_set_magic, set_.magic));
    if (!set_.ir_version || *set_.ir_version < 3 || *set_.ir_version > newest_ir_version)
      add("O-17", "ir_version", "set the IR version the document was written for",
          fmt::format("operator sets exist in IR versions 3 to {}; {}", newest_ir_version,
                      set_.ir_version ? fmt::format("found {}", *set_.ir_version)
                                      : std::string("it is missing")));
    if (set_.opset_version < 1)
      add("O-01", "opset_version", "",
          fmt::format("versions of operator sets start at 1; found {}", set_.opset_version));
    const std::string_view domain = ir::canonical_domain(set_.domain);
    if (!domain.empty() && !schema::is_standard_domain(domain) && !is_reversed_dns(domain))
      add("O-03", "domain", "",
          fmt::format("domains should be reversed DNS names such as "
                      "com.example; found '{}'",
                      domain));
  }

  void definition(const std::string& place, const std::string& name, int64_t since) {
    if (name.empty()) add("O-20", place, "", "an operator has a name; it is empty");
    if (since < 1)
      add("O-20", place, "", fmt::format("an operator has a version from 1 on; found {}", since));
    if (since > set_.opset_version)
      add("O-08", place, "",
          fmt::format("it came with version {}, which is after the set's version {}", since,
                      set_.opset_version));
  }

  void twice(const std::string& place) {
    add("O-21", place, "remove one", "the set defines it twice in one version");
  }

  // The bodies obey the rules of functions: they are checked as those of a model without a graph.
  void bodies() {
    if (set_.functions.empty()) return;
    ir::Model model;
    model.ir_version = std::max<int64_t>(set_.ir_version.value_or(newest_ir_version), 8);
    model.functions = set_.functions;
    for (ir::Function& function : model.functions) {
      if (function.domain.empty()) function.domain = set_.domain;
    }
    model.opset_imports.push_back({set_.domain, std::max<int64_t>(set_.opset_version, 1), {}});
    for (Diagnostic& finding : check(model, options_)) {
      // Of the model around them nothing is said, nor that operators may be functions.
      if (finding.place.graph.starts_with("function")) {
        if (finding.rule == "F-19" || finding.rule == "F-17") continue;
        found_.push_back(std::move(finding));
      }
    }
  }

  void add(std::string_view id, std::string_view place, std::string_view advice,
           std::string message) {
    for (const Rule& rule : set_rules) {
      if (rule.id != id) continue;
      const Level level = options_.profile == Profile::runnable   ? rule.runnable
                          : options_.profile == Profile::standard ? rule.standard
                                                                  : rule.strict;
      if (level == Level::off) return;
      Diagnostic& finding = found_.emplace_back();
      finding.severity = level == Level::error     ? Severity::error
                         : level == Level::warning ? Severity::warning
                                                   : Severity::info;
      finding.rule = rule.id;
      finding.place.graph = "operator set";
      finding.place.detail = place;
      finding.message = std::move(message);
      finding.advice = advice;
    }
  }

  const ir::OperatorSet& set_;
  const Options& options_;
  std::vector<Diagnostic> found_;
};

}  // namespace

std::vector<Diagnostic> check(const ir::OperatorSet& set, const Options& options) {
  return SetCheck(set, options).run();
}

std::span<const Rule> operator_set_rules() { return set_rules; }

}  // namespace sardonyx::check
