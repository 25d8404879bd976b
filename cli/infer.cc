// sardonyx infer
#include "sardonyx/infer.h"

#include <fmt/format.h>

#include <algorithm>
#include <memory>

#include "arguments.h"
#include "commands.h"
#include "dim_option.h"
#include "loading.h"
#include "sardonyx/text.h"
#include "saving.h"
#include "terminal.h"

namespace sardonyx::cli {
namespace {

using json = nlohmann::ordered_json;
using State = InferredValue::State;

struct InferCommand {
  std::string model;
  std::string output;
  DimOption dims;
  bool in_place = false;
  std::vector<std::string> libraries;
  std::vector<std::string> operator_sets;
  bool strict = false;
  bool all = false;
  bool as_json = false;

  int run() const;
};

constexpr State states[] = {State::known, State::bounded, State::open, State::partial,
                            State::unknown};

std::string_view name_of(State state) {
  switch (state) {
    case State::known: return "known";
    case State::bounded: return "bounded";
    case State::open: return "open";
    case State::partial: return "partial";
    case State::unknown: break;
  }
  return "unknown";
}

json to_json(const InferCommand& command, const Inference& inference) {
  json report = {{"model", command.model}, {"counts", json::object()}};
  for (const State state : states)
    report["counts"][std::string(name_of(state))] = inference.count(state);
  report["values"] = json::array();
  for (const InferredValue& value : inference.values) {
    json shape;  // null
    if (value.shape) shape = json::array();
    for (const InferredSize& size : value.shape.value_or(std::span<const InferredSize>()))
      shape.push_back(size.text());
    report["values"].push_back({{"graph", value.graph},
                                {"name", value.name},
                                {"type", value.type()},
                                {"state", name_of(value.state)},
                                {"shape", std::move(shape)}});
  }
  report["unknowns"] = json::array();
  for (const InferredUnknown& unknown : inference.unknowns) {
    report["unknowns"].push_back({{"name", unknown.name},
                                  {"bound", unknown.bound},
                                  {"node", unknown.node},
                                  {"reason", unknown.reason}});
  }
  report["names"] = json::object();
  for (const InferredName& name : inference.names) report["names"][name.name] = name.expression;
  report["findings"] = json::array();
  for (const InferFinding& finding : inference.findings) {
    report["findings"].push_back({{"severity", finding.is_error ? "error" : "warning"},
                                  {"place", finding.place},
                                  {"message", finding.message}});
  }
  return report;
}

// Lines of columns, each as wide as its widest entry but for the last.
std::string table(const std::vector<std::vector<std::string>>& rows) {
  std::vector<size_t> widths;
  for (const auto& row : rows) {
    widths.resize(std::max(widths.size(), row.size()));
    for (size_t i = 0; i + 1 < row.size(); ++i)
      widths[i] = std::min<size_t>(48, std::max(widths[i], row[i].size()));
  }
  std::string text;
  for (const auto& row : rows) {
    text += "  ";
    for (size_t i = 0; i < row.size(); ++i)
      text += i + 1 == row.size() ? row[i] : fmt::format("{:{}}  ", row[i], widths[i]);
    text += "\n";
  }
  return text;
}

std::string summary(const InferCommand& command, const Inference& inference) {
  std::string text = fmt::format("{}: {} values:", printable(command.model),
                                 grouped(static_cast<int64_t>(inference.values.size())));
  const char* separator = " ";
  for (const State state : states) {
    if (state != State::known && inference.count(state) == 0) continue;
    text += fmt::format("{}{} {}", separator, grouped(inference.count(state)), name_of(state));
    separator = ", ";
  }
  text += "\n";
  std::vector<std::vector<std::string>> rows;
  for (const InferredValue& value : inference.values) {
    if (value.state == State::known && !command.all) continue;
    const std::string_view separator = value.graph.empty() ? "" : ": ";
    rows.push_back({printable(fmt::format("{}{}{}", value.graph, separator, value.name)),
                    printable(value.type())});
  }
  text += table(rows);
  rows.clear();
  for (const InferredUnknown& unknown : inference.unknowns) {
    rows.push_back(
        {printable(unknown.name),
         unknown.bound.empty() ? "" : printable("at most " + unknown.bound),
         printable(unknown.node.empty() ? unknown.reason : unknown.node + ": " + unknown.reason)});
  }
  if (!rows.empty()) text += "decided by the run:\n" + table(rows);
  rows.clear();
  for (const InferredName& name : inference.names)
    rows.push_back({printable(name.name + " = " + name.expression)});
  if (!rows.empty()) text += "learned from the graph:\n" + table(rows);
  for (const InferFinding& finding : inference.findings) {
    text += fmt::format("{}: {}: {}\n", finding.is_error ? "error" : "warning",
                        printable(finding.place), printable(finding.message));
  }
  return text;
}

int InferCommand::run() const {
  InferOptions options;
  options.strict = strict;
  options.sizes = dims.sizes();
  options.libraries = libraries;
  options.operator_sets = operator_sets;
  if (!output.empty()) require_known_ending(output, model);
  if (in_place && descriptor_named(model))
    throw UsageError("--in-place needs the name of a file to append to; --output writes another");
  Inference inference;
  {
    const Progress progress("inferring " + model);
    name_mapped_file(model);
    inference = in_place         ? infer_in_place(model, options)
                : output.empty() ? infer_types(model, options)
                                 : infer_file(model, output, options);
  }
  tell_written(output, as_json ? text_of(to_json(*this, inference)) : summary(*this, inference));
  return inference.has_errors() ? findings : ok;
}

}  // namespace

void add_infer(const Options& app, Action& action) {
  auto command = std::make_shared<InferCommand>();
  const Options infer = app.add_command(
      "infer", "Infer the type and shape of every value; list those that stay unknown, and why");
  add_model_argument(infer, "MODEL", command->model, "The model; its external data is not needed");
  infer
      .add_option("-o,--output", command->output,
                  "Write the model with all that was inferred to this file, MODEL itself allowed")
      .transform(output_file())
      .type_name("FILE");
  infer
      .add_flag("--in-place", command->in_place,
                "Append what MODEL does not declare yet to its own file; weights stay untouched")
      .excludes(infer.option("--output"));
  command->dims.add(infer, open_sizes_help);
  add_operator_sets(infer, command->operator_sets);
  add_library_option(infer, command->libraries);
  infer.add_flag(
      "--strict", command->strict,
      "Declarations that contradict what is inferred, and what the standard forbids though "
      "a run does it, are errors");
  infer.add_flag("--all", command->all, "Also list the values that are known");
  infer.add_flag("--json", command->as_json, "One JSON object (docs/inference.md)");
  infer.on_chosen([command, &action] { action = [command] { return command->run(); }; });
}

}  // namespace sardonyx::cli
