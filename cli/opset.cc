// sardonyx opset
#include <fmt/format.h>

#include <memory>

#include "arguments.h"
#include "commands.h"
#include "loading.h"
#include "session/operator_sets.h"
#include "session/print.h"
#include "session/reading.h"
#include "terminal.h"

namespace sardonyx::cli {
namespace {

using json = nlohmann::ordered_json;

struct OpsetCommand {
  std::string document, exported, converted;
  int64_t version = 0;
  bool exports = false, as_json = false;

  int run() const {
    if (exports) return write_own();
    name_mapped_file(document);
    const ir::OperatorSet set = read_operator_set_file(document);
    if (!converted.empty()) {
      save_operator_set(set, converted);
      tell_written(converted, fmt::format("wrote {}\n", printable(converted)));
      return ok;
    }
    return show(set);
  }

  int write_own() const {
    const std::string domain = exported == "ai.onnx" ? "" : exported;
    const ir::OperatorSet set = export_operator_set(domain, version);
    save_operator_set(set, document);
    tell_written(document,
                 fmt::format("wrote {}: version {} of {}, {} operators, {} of them with a body\n",
                             printable(document), set.opset_version, exported,
                             set.operators.size() + set.functions.size(), set.functions.size()));
    return ok;
  }

  int show(const ir::OperatorSet& set) const {
    const std::vector<check::Diagnostic> found = check::check(set);
    if (as_json) {
      emit_json(to_json(set, found));
    } else {
      std::string text = fmt::format(
          "{} version {}, IR version {}\n", set.domain.empty() ? "ai.onnx" : printable(set.domain),
          set.opset_version, set.ir_version ? std::to_string(*set.ir_version) : "?");
      for (const ir::OperatorDefinition& op : set.operators)
        text += fmt::format("  {}-{}{}\n", printable(op.op_type), op.since_version,
                            op.is_experimental() ? " (experimental)" : "");
      for (const ir::Function& function : set.functions)
        text +=
            fmt::format("  {}-{} with a body of {} nodes\n", printable(function.name),
                        function.since_version.value_or(set.opset_version), function.nodes.size());
      for (const check::Diagnostic& finding : found) text += printable(finding.to_string()) + "\n";
      emit(text);
    }
    return check::has_errors(found) ? findings : ok;
  }

  json to_json(const ir::OperatorSet& set, const std::vector<check::Diagnostic>& found) const {
    json report = {{"document", document},         {"domain", set.domain},
                   {"version", set.opset_version}, {"ir_version", set.ir_version.value_or(0)},
                   {"operators", json::array()},   {"findings", json::array()}};
    for (const ir::OperatorDefinition& op : set.operators)
      report["operators"].push_back({{"name", op.op_type},
                                     {"since", op.since_version},
                                     {"experimental", op.is_experimental()},
                                     {"body", false}});
    for (const ir::Function& function : set.functions)
      report["operators"].push_back({{"name", function.name},
                                     {"since", function.since_version.value_or(set.opset_version)},
                                     {"experimental", function.status.value_or(1) == 0},
                                     {"body", true}});
    for (const check::Diagnostic& finding : found)
      report["findings"].push_back({{"severity", check::name_of(finding.severity)},
                                    {"rule", finding.rule},
                                    {"place", finding.place.to_string()},
                                    {"message", finding.message},
                                    {"advice", finding.advice}});
    return report;
  }
};

}  // namespace

void add_opset(CLI::App& app, Action& action) {
  auto command = std::make_shared<OpsetCommand>();
  CLI::App* opset = app.add_subcommand(
      "opset", "Show and check an operator set document, or write one of the standard's sets");
  opset
      ->add_option("DOCUMENT", command->document,
                   "The document: binary, or .json or .textproto by its name")
      ->required()
      ->check(not_empty());
  CLI::Option* exported =
      opset
          ->add_option("--export", command->exported,
                       "Write this domain's operators (ai.onnx, ai.onnx.ml, …) to DOCUMENT")
          ->type_name("DOMAIN");
  opset->add_option("--version", command->version, "Of which version (the newest)")
      ->needs(exported)
      ->check(whole_number(1))
      ->type_name("N");
  opset->add_option("--convert", command->converted, "Write it to this file, in another form")
      ->transform(output_file())
      ->excludes(exported)
      ->type_name("FILE");
  opset->add_flag("--json", command->as_json, "One JSON object (docs/cli.md)");
  opset->callback([command, &action, exported] {
    command->exports = exported->count() > 0;
    if (command->document == "-")
      command->document = command->exports ? "/dev/stdout" : "/dev/stdin";
    action = [command] { return command->run(); };
  });
}

}  // namespace sardonyx::cli
