#include "passes.h"

#include <fmt/format.h>

#include <algorithm>
#include <vector>

#include "arguments.h"
#include "commands.h"
#include "sardonyx/passes.h"
#include "sardonyx/text.h"
#include "terminal.h"

namespace sardonyx::cli {
namespace {

using json = nlohmann::ordered_json;

// "-3 Mul, +1 Gelu"
std::string operators_text(const PassRun& run) {
  std::string text;
  for (const auto& [op, count] : run.operators)
    text += fmt::format("{}{:+} {}", text.empty() ? "" : ", ", count, printable(op));
  return text.empty() && run.changed ? "inputs or attributes of nodes" : text;
}

std::string table(const std::vector<PassRun>& runs) {
  size_t width = 0;
  for (const PassRun& run : runs) width = std::max(width, run.name.size());
  std::string text, graph;
  double seconds = 0;
  for (const PassRun& run : runs) {
    seconds += run.seconds;
    if (run.graph != graph) text += fmt::format("{}\n", printable(run.graph));
    graph = run.graph;
    const std::string changed = operators_text(run);
    text += fmt::format("{:>12}  {:<{}}  {:>5}{}{}\n", milliseconds(1e3 * run.seconds), run.name,
                        width, run.nodes_after, changed.empty() ? "" : "  ", changed);
  }
  return text + fmt::format("{:>12}  in all\n", milliseconds(1e3 * seconds));
}

json to_json(const PassRun& run) {
  json one = {{"name", run.name},
              {"graph", run.graph},
              {"changed", run.changed},
              {"nodes_before", run.nodes_before},
              {"nodes_after", run.nodes_after},
              {"operators", json::object()},
              {"ms", 1e3 * run.seconds}};
  for (const auto& [op, count] : run.operators) one["operators"][op] = count;
  return one;
}

}  // namespace

void PassReport::add_options(const Options& command) {
  command.add_flag(
      "--passes", passes,
      "Instead of the steps: each pass of the optimiser, what it changed and its time");
  command
      .add_option("--stop-after", stop_after,
                  "Run no pass after this one, and print the graph that it leaves")
      .check(not_empty())
      .type_name("PASS");
  command.add_option("--print-after", print_after, "Print each graph as this pass leaves it")
      .check(not_empty())
      .type_name("PASS");
}

int PassReport::print(const LoadingOptions& loading, bool as_json) const {
  const Model model = load_model(loading);
  std::vector<PassRun> runs;
  std::string graphs;
  const auto observe = [&](const PassRun& run, const std::function<std::string()>& text) {
    runs.push_back(run);
    if (run.name == print_after)
      graphs += fmt::format("# {}, after {}\n{}\n", printable(run.graph), run.name, text());
  };
  if (!print_after.empty()) require_pass(print_after);
  const std::string left = optimized_text(model, planning_options(loading),
                                          {.stop_after = stop_after, .observe = observe});
  if (!stop_after.empty()) graphs += left;
  if (as_json) {
    json report = {{"model", loading.model}, {"passes", json::array()}};
    for (const PassRun& run : runs) report["passes"].push_back(to_json(run));
    if (!graphs.empty()) report["graphs"] = graphs;
    emit_json(report);
    return ok;
  }
  emit((passes ? table(runs) : "") + graphs);
  return ok;
}

}  // namespace sardonyx::cli
