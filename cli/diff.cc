// sardonyx diff
#include "sardonyx/compose.h"

#include <fmt/format.h>

#include <memory>

#include "arguments.h"
#include "commands.h"
#include "comparison.h"
#include "fail.h"
#include "loading.h"
#include "sardonyx/compare_runs.h"
#include "sardonyx/text.h"
#include "terminal.h"

namespace sardonyx::cli {
namespace {

using json = nlohmann::ordered_json;
using Kind = ModelDifference::Kind;

struct DiffCommand {
  std::string first, second, trusted_folder;
  DiffOptions options;
  bool no_weights = false, no_annotations = false, as_json = false;
  bool runs = false;
  CompareRunsOptions comparing;
  Option relative, absolute;

  int run();

 private:
  int compare_values();
};

std::string_view name_of(Kind kind) {
  switch (kind) {
    case Kind::only_in_first: return "only_in_first";
    case Kind::only_in_second: return "only_in_second";
    case Kind::changed: break;
  }
  return "changed";
}

std::string line_of(const ModelDifference& difference) {
  const std::string place = printable(difference.place);
  switch (difference.kind) {
    case Kind::only_in_first: return fmt::format("- {}: {}\n", place, printable(difference.first));
    case Kind::only_in_second:
      return fmt::format("+ {}: {}\n", place, printable(difference.second));
    case Kind::changed: break;
  }
  return fmt::format("~ {}: {} -> {}\n", place, printable(difference.first),
                     printable(difference.second));
}

int DiffCommand::compare_values() {
  if (relative.count() > 0) comparing.tolerance.relative = options.relative;
  if (absolute.count() > 0) comparing.tolerance.absolute = options.absolute;
  RunComparison comparison;
  {
    const Progress progress("comparing " + first);
    name_mapped_file(first);
    comparison = compare_runs(read_run(first), read_run(second), comparing);
  }
  if (comparison.values.empty())
    fail_at(first, ErrorCode::bad_input, "has no value in common with '{}'", second);
  if (as_json) {
    json report = {{"first", first}, {"second", second}};
    report.update(to_json(comparison));
    emit_json(report);
  } else {
    emit(comparison_text(comparison, options.most));
  }
  return comparison.agree() ? ok : findings;
}

int DiffCommand::run() {
  if (runs && (no_weights || no_annotations || !trusted_folder.empty()))
    throw UsageError("--no-weights, --no-annotations and --trust-folder are for models, not --run");
  if (runs) return compare_values();
  if (comparing.common_only) throw UsageError("--common is for --run");
  options.weights = !no_weights;
  options.annotations = !no_annotations;
  DiffResult result;
  {
    const Progress progress("comparing " + first);
    name_mapped_file(first);
    const LoadOptions loading{.trusted_folder = trusted_folder, .load_external_data = false};
    result = diff(Model(first, loading), Model(second, loading), options);
  }
  if (as_json) {
    json report = {{"first", first},
                   {"second", second},
                   {"same", result.same()},
                   {"left_out", result.left_out},
                   {"differences", json::array()}};
    for (const ModelDifference& d : result.differences)
      report["differences"].push_back({{"kind", name_of(d.kind)},
                                       {"place", d.place},
                                       {"first", d.first},
                                       {"second", d.second}});
    emit_json(report);
  } else {
    std::string text;
    for (const ModelDifference& d : result.differences) text += line_of(d);
    if (result.left_out > 0) text += fmt::format("and {} more\n", result.left_out);
    if (result.same()) text = "no differences\n";
    emit(text);
  }
  return result.same() ? ok : findings;
}

}  // namespace

void add_diff(const Options& app, Action& action) {
  auto command = std::make_shared<DiffCommand>();
  const Options diff = app.add_command(
      "diff", "What distinguishes two models, or two runs; exit 1 where anything does");
  add_model_argument(diff, "FIRST", command->first,
                     "A model, in any form; with --run, the outputs of a run");
  add_model_argument(diff, "SECOND", command->second, "Another");
  diff.add_flag("--run", command->runs,
                "Compare values of runs, by their names: .npz files or folders of .npy and .pb");
  diff.add_flag("--common", command->comparing.common_only, "Of runs: only values that both have");
  command->relative =
      diff.add_option("--rtol", command->options.relative,
                      "Equal is |a - b| <= rtol * |b| + atol (0; for --run as run --expect)");
  command->absolute =
      diff.add_option("--atol", command->options.absolute, "The absolute part of that");
  diff.add_flag("--no-weights", command->no_weights, "Types and shapes of weights only");
  diff.add_flag("--no-annotations", command->no_annotations,
                "Not documentation, metadata, producer and names of nodes");
  diff.add_option("--max", command->options.most, "List at most N differences (1000)")
      .check(whole_number(0))
      .type_name("N");
  diff.add_option("--trust-folder", command->trusted_folder,
                  "A folder that links of external data may lead into")
      .check(not_empty())
      .type_name("DIR");
  diff.add_flag("--json", command->as_json, "One JSON object (docs/cli.md)");
  diff.on_chosen([command, &action] { action = [command] { return command->run(); }; });
}

}  // namespace sardonyx::cli
