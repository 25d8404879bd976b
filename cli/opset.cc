// sardonyx opset
#include <fmt/format.h>

#include <algorithm>
#include <memory>

#include "arguments.h"
#include "commands.h"
#include "fail.h"
#include "loading.h"
#include "sardonyx/operator_set.h"
#include "sardonyx/text.h"
#include "terminal.h"

namespace sardonyx::cli {
namespace {

using json = nlohmann::ordered_json;

bool has_body(const DocumentedOperator& op) { return op.body.has_value(); }

struct OpsetCommand {
  std::string document, exported, converted;
  int64_t version = 0;
  bool exports = false, as_json = false;

  int run() const {
    if (exports) return write_own();
    const std::string problem = gather_pipe(document == "-" ? "/dev/stdin" : document);
    if (!problem.empty()) fail_at(document, ErrorCode::unreadable, "{}", problem);
    name_mapped_file(document);
    const OperatorSet set(document);
    if (!converted.empty()) {
      set.save(converted);
      tell_written(converted, fmt::format("wrote {}\n", printable(converted)));
      return ok;
    }
    return show(set);
  }

  int write_own() const {
    const OperatorSet set = OperatorSet::of_standard(exported, version);
    set.save(document);
    const std::vector<DocumentedOperator> operators = set.operators();
    const auto bodies = std::ranges::count_if(operators, has_body);
    tell_written(
        document,
        fmt::format("wrote {}: version {} of {}, {} operators, {} of them with a body\n",
                    printable(document), set.version(), exported, operators.size(), bodies));
    return ok;
  }

  int show(const OperatorSet& set) const {
    const CheckReport found = set.check();
    if (as_json) {
      emit_json(to_json(set, found));
    } else {
      std::string text =
          fmt::format("{} version {}, IR version {}\n",
                      set.domain().empty() ? "ai.onnx" : printable(set.domain()), set.version(),
                      set.ir_version() ? std::to_string(*set.ir_version()) : "?");
      for (const DocumentedOperator& op : set.operators()) {
        text += fmt::format("  {}-{}", printable(op.name), op.since);
        text += op.body ? fmt::format(" with a body of {} nodes\n", op.body->nodes().size())
                : op.is_experimental ? " (experimental)\n"
                                     : "\n";
      }
      for (const Diagnostic& finding : found.diagnostics)
        text += printable(finding.to_string()) + "\n";
      emit(text);
    }
    return found.has_errors() ? findings : ok;
  }

  json to_json(const OperatorSet& set, const CheckReport& found) const {
    json report = {{"document", document},       {"domain", set.domain()},
                   {"version", set.version()},   {"ir_version", set.ir_version().value_or(0)},
                   {"operators", json::array()}, {"findings", json::array()}};
    for (const DocumentedOperator& op : set.operators())
      report["operators"].push_back({{"name", op.name},
                                     {"since", op.since},
                                     {"experimental", op.is_experimental},
                                     {"body", has_body(op)}});
    for (const Diagnostic& finding : found.diagnostics)
      report["findings"].push_back({{"severity", name_of(finding.severity)},
                                    {"rule", finding.rule},
                                    {"place", finding.place.to_string()},
                                    {"message", finding.message},
                                    {"advice", finding.advice}});
    return report;
  }
};

}  // namespace

void add_opset(const Options& app, Action& action) {
  auto command = std::make_shared<OpsetCommand>();
  const Options opset = app.add_command(
      "opset", "Show and check an operator set document, or write one of the standard's sets");
  opset
      .add_option("DOCUMENT", command->document,
                  "The document: binary, or .json or .textproto by its name")
      .required()
      .check(not_empty());
  const Option exported =
      opset
          .add_option("--export", command->exported,
                      "Write this domain's operators (ai.onnx, ai.onnx.ml, …) to DOCUMENT")
          .type_name("DOMAIN");
  opset.add_option("--version", command->version, "Of which version (the newest)")
      .needs(exported)
      .check(whole_number(1))
      .type_name("N");
  opset.add_option("--convert", command->converted, "Write it to this file, in another form")
      .transform(output_file())
      .excludes(exported)
      .type_name("FILE");
  opset.add_flag("--json", command->as_json, "One JSON object (docs/cli.md)");
  opset.on_chosen([command, &action, exported] {
    command->exports = exported.count() > 0;
    if (command->document == "-")
      command->document = command->exports ? "/dev/stdout" : "/dev/stdin";
    action = [command] { return command->run(); };
  });
}

}  // namespace sardonyx::cli
