// sardonyx check
#include <fmt/format.h>

#include <memory>

#include "commands.h"
#include "loading.h"
#include "session/check_file.h"
#include "session/print.h"
#include "terminal.h"

namespace sardonyx::cli {
namespace {

using json = nlohmann::ordered_json;

struct CheckCommand {
  std::string model;
  bool strict = false;
  bool unknown_domains = false;
  size_t most = 1000;
  bool as_json = false;

  int run() const;
};

std::string counted(int64_t count, std::string_view what) {
  return fmt::format("{} {}{}", count, what, count == 1 ? "" : "s");
}

json to_json(const check::Diagnostic& finding) {
  return {{"severity", check::name_of(finding.severity)},
          {"rule", finding.rule},
          {"place", finding.place.to_string()},
          {"node", finding.place.node_name},
          {"operator", finding.place.op},
          {"message", finding.message},
          {"advice", finding.advice}};
}

int CheckCommand::run() const {
  std::vector<check::Diagnostic> diagnostics;
  {
    const Progress progress("checking " + model);
    name_mapped_file(model);
    check::Options options;
    options.profile = strict ? check::Profile::strict : check::Profile::standard;
    options.unknown_domains_are_errors = unknown_domains;
    options.max_diagnostics = most;
    diagnostics = check_model_file(model, options);
  }
  int64_t counts[3] = {};
  for (const check::Diagnostic& finding : diagnostics)
    ++counts[static_cast<size_t>(finding.severity)];
  const auto of = [&](check::Severity severity) { return counts[static_cast<size_t>(severity)]; };
  const int64_t errors = of(check::Severity::error), warnings = of(check::Severity::warning),
                infos = of(check::Severity::info);
  if (as_json) {
    json report = {{"model", model},
                   {"errors", errors},
                   {"warnings", warnings},
                   {"infos", infos},
                   {"findings", json::array()}};
    for (const check::Diagnostic& finding : diagnostics)
      report["findings"].push_back(to_json(finding));
    emit_json(report);
  } else {
    std::string text;
    for (const check::Diagnostic& finding : diagnostics)
      text += printable(finding.to_string()) + "\n";
    if (diagnostics.empty()) {
      text += fmt::format("{}: nothing to report\n", printable(model));
    } else {
      text += fmt::format("{}: {}, {}, {}\n", printable(model), counted(errors, "error"),
                          counted(warnings, "warning"), counted(infos, "note"));
    }
    emit(text);
  }
  return errors > 0 ? findings : ok;
}

}  // namespace

void add_check(CLI::App& app, Action& action) {
  auto command = std::make_shared<CheckCommand>();
  CLI::App* check = app.add_subcommand(
      "check", "Check a model against the rules of the standard; exit 1 for errors");
  check->add_option("MODEL", command->model, "The model; its external data is not needed")
      ->required();
  check->add_flag("--strict", command->strict, "What real models often break is an error, too");
  check->add_flag("--unknown-domains", command->unknown_domains,
                  "Operators of domains that nobody defines are errors");
  check->add_option("--max", command->most, "List at most N findings of each severity (1000)")
      ->type_name("N");
  check->add_flag("--json", command->as_json, "One JSON object (docs/cli.md)");
  check->callback([command, &action] { action = [command] { return command->run(); }; });
}

}  // namespace sardonyx::cli
