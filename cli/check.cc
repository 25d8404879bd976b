// sardonyx check
#include <fmt/format.h>

#include <memory>

#include "arguments.h"
#include "commands.h"
#include "loading.h"
#include "sarif.h"
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
  bool as_json = false, as_sarif = false;
  CheckFileOptions options;

  int run() const;
};

std::string counted(int64_t count, std::string_view what) {
  return fmt::format("{} {}{}", count, what, count == 1 ? "" : "s");
}

json to_json(const check::Diagnostic& finding) {
  return {{"severity", check::name_of(finding.severity)},
          {"rule", finding.rule},
          {"place", finding.place.to_string()},
          {"graph", finding.place.graph},
          {"index", finding.place.node_index},
          {"node", finding.place.node_name},
          {"operator", finding.place.op},
          {"part", finding.place.detail},
          {"message", finding.message},
          {"advice", finding.advice}};
}

int CheckCommand::run() const {
  std::vector<check::Diagnostic> diagnostics;
  {
    const Progress progress("checking " + model);
    name_mapped_file(model);
    CheckFileOptions chosen = options;
    chosen.rules.profile = strict ? check::Profile::strict : check::Profile::standard;
    chosen.rules.unknown_domains_are_errors = unknown_domains;
    chosen.rules.max_diagnostics = most;
    diagnostics = check_model_file(model, chosen);
  }
  int64_t counts[3] = {};
  for (const check::Diagnostic& finding : diagnostics)
    ++counts[static_cast<size_t>(finding.severity)];
  const auto of = [&](check::Severity severity) { return counts[static_cast<size_t>(severity)]; };
  const int64_t errors = of(check::Severity::error), warnings = of(check::Severity::warning),
                infos = of(check::Severity::info);
  if (as_sarif) {
    emit_json(sarif_log(model, diagnostics));
  } else if (as_json) {
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
  add_model_argument(*check, "MODEL", command->model,
                     "The model; its external data is not needed but for --data");
  check->add_flag("--strict", command->strict, "What real models often break is an error, too");
  check->add_flag("--unknown-domains", command->unknown_domains,
                  "Operators of domains that nobody defines are errors");
  check->add_option("--max", command->most, "List at most N findings of each severity (1000)")
      ->check(whole_number(0))
      ->type_name("N");
  check->add_flag("--full", command->options.full,
                  "Also infer types and shapes, and compare them with what is declared");
  check->add_flag("--data", command->options.data,
                  "Also look at external data: paths, links, ranges, checksums");
  check
      ->add_option("--opset", command->options.operator_sets,
                   "A document of an operator set that the model imports; repeatable")
      ->allow_extra_args(false)
      ->type_name("FILE");
  add_library_option(*check, command->options.libraries);
  check
      ->add_option("--trust-folder", command->options.trusted_folder,
                   "A folder that links of external data may lead into")
      ->type_name("DIR");
  CLI::Option* as_json =
      check->add_flag("--json", command->as_json, "One JSON object (docs/cli.md)");
  check->add_flag("--sarif", command->as_sarif, "A SARIF log, for continuous integration")
      ->excludes(as_json);
  check->callback([command, &action] { action = [command] { return command->run(); }; });
}

}  // namespace sardonyx::cli
