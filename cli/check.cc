// sardonyx check
#include <fmt/format.h>

#include <algorithm>
#include <memory>

#include "arguments.h"
#include "checked_file.h"
#include "commands.h"
#include "failure.h"
#include "loading.h"
#include "sardonyx/text.h"
#include "sarif.h"
#include "terminal.h"

namespace sardonyx::cli {
namespace {

using json = nlohmann::ordered_json;

struct CheckCommand {
  std::vector<std::string> models;
  bool strict = false;
  bool unknown_domains = false;
  size_t most = 1000;
  bool as_json = false, as_sarif = false;
  CheckOptions options;

  int run() const;
};

std::string counted(int64_t count, std::string_view what) {
  return fmt::format("{} {}{}", count, what, count == 1 ? "" : "s");
}

json to_json(const Diagnostic& finding) {
  return {{"severity", name_of(finding.severity)},
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

json to_json(const CheckedFile& file) {
  json report = {{"model", file.path}};
  if (file.error) {
    report["error"] = to_json(failure_of(*file.error));
    return report;
  }
  report["errors"] = file.report.count(Severity::error);
  report["warnings"] = file.report.count(Severity::warning);
  report["infos"] = file.report.count(Severity::info);
  report["findings"] = json::array();
  for (const Diagnostic& finding : file.report.diagnostics)
    report["findings"].push_back(to_json(finding));
  return report;
}

std::string to_text(const CheckedFile& file) {
  if (file.error) return {};
  std::string text;
  for (const Diagnostic& finding : file.report.diagnostics)
    text += printable(finding.to_string()) + "\n";
  if (file.report.diagnostics.empty())
    return fmt::format("{}: nothing to report\n", printable(file.path));
  return text + fmt::format("{}: {}, {}, {}\n", printable(file.path),
                            counted(file.report.count(Severity::error), "error"),
                            counted(file.report.count(Severity::warning), "warning"),
                            counted(file.report.count(Severity::info), "note"));
}

int exit_code_of(const CheckedFile& file) {
  if (file.error) return failure_of(*file.error).exit_code;
  return file.report.has_errors() ? findings : ok;
}

// One that can't be read, or is no model, does not stop the others.
CheckedFile checked(const std::string& path, const CheckOptions& options) {
  CheckedFile file{path, {}, std::nullopt};
  try {
    file.report = check_file(path, options);
  } catch (const Error& error) {
    file.error = error;
  } catch (const std::bad_alloc&) {
    file.error = Error(ErrorCode::out_of_memory, "out of memory", path);
  }
  return file;
}

int CheckCommand::run() const {
  CheckOptions chosen = options;
  chosen.profile = strict ? CheckProfile::strict : CheckProfile::standard;
  chosen.unknown_domains_are_errors = unknown_domains;
  chosen.max_diagnostics = most;
  std::vector<CheckedFile> files;
  {
    Progress progress("checking " + models[0]);
    for (const std::string& path : models) {
      progress.set("checking " + path);
      name_mapped_file(path);
      files.push_back(checked(path, chosen));
    }
  }
  int worst = ok;
  for (const CheckedFile& file : files) {
    worst = std::max(worst, exit_code_of(file));
    if (file.error) say(fmt::format("sardonyx: {}\n", failure_of(*file.error).text()));
  }
  if (as_sarif) {
    emit_json(sarif_log(files, worst));
  } else if (as_json && files.size() == 1) {
    emit_json(to_json(files[0]));
  } else if (as_json) {
    json report = {{"exit_code", worst}, {"models", json::array()}};
    for (const CheckedFile& file : files) report["models"].push_back(to_json(file));
    emit_json(report);
  } else {
    std::string text;
    for (const CheckedFile& file : files) text += to_text(file);
    emit(text);
  }
  return worst;
}

}  // namespace

void add_check(const Options& app, Action& action) {
  auto command = std::make_shared<CheckCommand>();
  const Options check =
      app.add_command("check", "Check models against the rules of the standard; exit 1 for errors");
  add_model_arguments(check, "MODEL", command->models,
                      "The models; their external data is not needed but for --data");
  check.add_flag("--strict", command->strict,
                 "Also make errors of rules that real models often break");
  check.add_flag("--unknown-domains", command->unknown_domains,
                 "Operators of domains that nobody defines are errors");
  check.add_option("--max", command->most, "List at most N findings of each severity (1000)")
      .check(whole_number(0))
      .type_name("N");
  check.add_flag("--full", command->options.full,
                 "Also infer types and shapes, and compare them with what is declared");
  check.add_flag("--data", command->options.data,
                 "Also look at external data: paths, links, ranges, checksums");
  add_operator_sets(check, command->options.operator_sets);
  add_library_option(check, command->options.libraries);
  check
      .add_option("--trust-folder", command->options.trusted_folder,
                  "A folder that links of external data may lead into")
      .check(not_empty())
      .type_name("DIR");
  const Option as_json =
      check.add_flag("--json", command->as_json, "One JSON object (docs/cli.md)");
  check.add_flag("--sarif", command->as_sarif, "A SARIF log, for continuous integration")
      .excludes(as_json);
  check.on_chosen([command, &action] { action = [command] { return command->run(); }; });
}

}  // namespace sardonyx::cli
