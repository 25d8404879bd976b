// sardonyx info, sardonyx explain
#include <fmt/format.h>

#include <algorithm>
#include <memory>

#include "arguments.h"
#include "commands.h"
#include "loading.h"
#include "model_inputs.h"
#include "passes.h"
#include "sardonyx/info.h"
#include "sardonyx/text.h"
#include "terminal.h"

namespace sardonyx::cli {
namespace {

using json = nlohmann::ordered_json;

struct InfoCommand {
  std::string model;
  DimOption dims;
  std::vector<std::string> libraries;
  bool as_json = false, full = false;

  int run() const;
};

json port_json(const std::vector<ModelInfo::Port>& ports) {
  json list = json::array();
  for (const auto& port : ports) {
    json one = {{"name", port.name}, {"type", port.type}};
    if (port.has_default) one["has_default"] = true;
    list.push_back(std::move(one));
  }
  return list;
}

json to_json(const ModelInfo& info) {
  json report = {{"model", info.path},
                 {"file_bytes", info.file_bytes},
                 {"producer", info.producer},
                 {"domain", info.domain},
                 {"model_version", info.model_version},
                 {"description", info.description},
                 {"graph", info.graph_name},
                 {"nodes", info.nodes},
                 {"functions", info.functions},
                 {"training", info.training}};
  report["ir_version"] = info.ir_version ? json(*info.ir_version) : json();
  report["opsets"] = json::array();
  for (const auto& [domain, version] : info.opsets)
    report["opsets"].push_back({{"domain", domain}, {"version", version}});
  report["metadata"] = json::array();
  for (const auto& [key, value] : info.metadata)
    report["metadata"].push_back({{"key", key}, {"value", value}});
  report["inputs"] = port_json(info.inputs);
  report["outputs"] = port_json(info.outputs);
  report["operators"] = json::array();
  for (const auto& op : info.operators) {
    report["operators"].push_back(
        {{"name", op.name}, {"count", op.count}, {"supported", op.supported}});
  }
  report["parameters"] = {
      {"count", info.parameters}, {"bytes", info.parameter_bytes}, {"types", json::object()}};
  for (const auto& [type, count] : info.parameter_types)
    report["parameters"]["types"][type] = count;
  report["external_data"] = {{"files", info.external_files},
                             {"present", info.external_data_present}};
  if (info.cost) {
    report["cost"] = {{"flops", info.cost->flops},
                      {"value_bytes", info.cost->value_bytes},
                      {"unknown_nodes", info.cost->unknown_nodes},
                      {"sizes", json::object()}};
    for (const auto& [name, size] : info.cost->sizes) report["cost"]["sizes"][name] = size;
  } else {
    report["cost"] = nullptr;
    report["cost_reason"] = info.cost_reason;
  }
  return report;
}

void line(std::string& text, std::string_view key, std::string_view value) {
  if (!value.empty()) text += fmt::format("{:<12} {}\n", key, printable(value));
}

std::string list_types(const ModelInfo& info) {
  std::string text;
  for (const auto& [type, count] : info.parameter_types) {
    text += fmt::format("{}{} {}", text.empty() ? "" : ", ", grouped(count), type);
  }
  return text;
}

std::string cost_text(const ModelInfo& info) {
  if (!info.cost) return fmt::format("{:<12} unknown: {}\n", "cost", printable(info.cost_reason));
  const Cost& cost = *info.cost;
  std::string sizes;
  for (const auto& [name, size] : cost.sizes)
    sizes += fmt::format("{}{} = {}", sizes.empty() ? " (with " : ", ", printable(name), size);
  if (!sizes.empty()) sizes += ")";
  std::string text = fmt::format("{:<12} {} a run{}\n", "cost", flops_text(cost.flops), sizes);
  if (cost.unknown_nodes > 0) {
    text += fmt::format("{:<12} without {} {} whose operator or sizes are not known\n", "",
                        cost.unknown_nodes, cost.unknown_nodes == 1 ? "node" : "nodes");
  }
  text += fmt::format("{:<12} {} of weights, up to {} of other values at a time\n", "memory",
                      bytes_text(static_cast<double>(info.parameter_bytes)),
                      bytes_text(cost.value_bytes));
  return text;
}

// Whole vocabularies and configurations are kept in metadata: a line of each is enough.
std::string cut(std::string_view text, bool full) {
  constexpr size_t shown = 160;
  if (full || text.size() <= shown) return std::string(text);
  size_t end = shown;
  while (end > 0 && (static_cast<unsigned char>(text[end]) & 0xc0) == 0x80) --end;
  return fmt::format("{}… ({} bytes; --full shows all)", text.substr(0, end),
                     grouped(static_cast<int64_t>(text.size())));
}

std::string to_text(const ModelInfo& info, bool full) {
  std::string text;
  line(text, "model",
       fmt::format("{} ({})", info.path, bytes_text(static_cast<double>(info.file_bytes))));
  line(text, "graph", info.graph_name);
  line(text, "producer", info.producer);
  line(text, "description", cut(info.description, full));
  std::string opsets;
  for (const auto& [domain, version] : info.opsets)
    opsets += fmt::format("{}{} {}", opsets.empty() ? "" : ", ", domain, version);
  line(text, "opsets", opsets);
  line(text, "IR version", info.ir_version ? std::to_string(*info.ir_version) : "not given");
  for (const auto& [key, value] : info.metadata)
    line(text, "metadata", fmt::format("{} = {}", cut(key, full), cut(value, full)));
  for (const auto& port : info.inputs) {
    line(
        text, "input",
        fmt::format("{}  {}{}", port.name, port.type, port.has_default ? "  (has a default)" : ""));
  }
  for (const auto& port : info.outputs)
    line(text, "output", fmt::format("{}  {}", port.name, port.type));
  line(text, "parameters", info.parameters == 0 ? "none" : list_types(info));
  for (const std::string& file : info.external_files) {
    line(text, "external",
         file + (info.external_data_present ? "" : "  (not all of the external data is there)"));
  }
  text += cost_text(info);
  for (const std::string& function : info.functions) line(text, "function", function);
  if (info.training) line(text, "training", "yes");
  line(text, "nodes", grouped(info.nodes));
  for (const auto& op : info.operators) {
    text += fmt::format("{:>8}  {}{}\n", grouped(op.count), printable(op.name),
                        op.supported ? "" : "  (not supported)");
  }
  return text;
}

int InfoCommand::run() const {
  const DimSizes sizes = dims.sizes();
  ModelInfo info;
  {
    const Progress progress("reading " + model);
    name_mapped_file(model);
    info = model_info(model, sizes, libraries);
  }
  if (as_json) {
    emit_json(to_json(info));
  } else {
    emit(to_text(info, full));
  }
  return ok;
}

struct ExplainCommand {
  LoadingOptions loading;
  ModelInputs inputs;
  PassReport passes;
  bool as_json = false;

  int run();

 private:
  // For the inputs that options name, with random values for the others; for all sizes without.
  PlanDescription plan_of(const Loaded& loaded);
};

// Bodies nest no deeper than the library describes them.
json steps_json(const std::vector<StepDescription>& steps) {
  json list = json::array();
  for (const StepDescription& step : steps) {
    json one = {{"node", step.node},
                {"origin", step.origin},
                {"sources", step.sources},
                {"kernel", step.kernel},
                {"refused", step.refused}};
    if (!step.bodies.empty()) one["bodies"] = json::array();
    for (const StepDescription::Body& body : step.bodies)
      one["bodies"].push_back(
          {{"name", body.name}, {"planned", body.is_planned}, {"steps", steps_json(body.steps)}});
    list.push_back(std::move(one));
  }
  return list;
}

void steps_text(const std::vector<StepDescription>& steps, size_t indent, std::string& text) {
  size_t width = 0;
  for (const StepDescription& step : steps)
    width = std::max(width, std::min<size_t>(step.kernel.size(), 32));
  const size_t under = indent + 9 + width;
  for (size_t i = 0; i < steps.size(); ++i) {
    const StepDescription& step = steps[i];
    text += fmt::format("{:>{}}{:>5}  {:<{}}  {}\n", "", indent, i, step.kernel, width,
                        printable(step.node));
    const std::string origin = origin_text(step.origin, step.sources, max_sources_shown);
    if (!origin.empty()) text += fmt::format("{:>{}}{}\n", "", under, printable(origin));
    for (const std::string& refusal : step.refused)
      text += fmt::format("{:>{}}not {}\n", "", under, printable(refusal));
    for (const StepDescription::Body& body : step.bodies) {
      text += fmt::format("{:>{}}{}{}\n", "", indent + 9, printable(body.name),
                          body.is_planned ? ":" : ": planned when it runs");
      steps_text(body.steps, indent + 6, text);
    }
  }
}

PlanDescription ExplainCommand::plan_of(const Loaded& loaded) {
  if (!inputs.are_given()) return {{}, loaded.session.steps()};
  inputs.fill_with_random();
  const auto given = inputs.values(loaded.model, loaded.session.inputs());
  return inputs.explaining([&] { return loaded.session.plan_for(given); });
}

int ExplainCommand::run() {
  if (loading.reference)
    throw UsageError("explain: reference execution has no steps; leave out --reference");
  if (passes.is_wanted() && inputs.are_given())
    throw UsageError(
        "explain: --passes shows what holds for all inputs; leave out --input, --inputs, "
        "--random-inputs and --dim");
  if (passes.is_wanted()) return passes.print(loading, as_json);
  inputs.parse();
  loading.seed = inputs.seed();
  const Loaded loaded = load(loading);
  const auto [guards, steps] = plan_of(loaded);
  if (as_json) {
    json report = {{"model", loading.model},
                   {"load_ms", loaded.milliseconds},
                   {"packed_bytes", loaded.session.packed_bytes()},
                   {"guards", guards},
                   {"steps", json::array()}};
    report["steps"] = steps_json(steps);
    emit_json(report);
    return ok;
  }
  std::string text;
  for (const std::string& one : guards)
    text += fmt::format("planned for runs in which {}\n", printable(one));
  steps_text(steps, 0, text);
  text += fmt::format("{} step{}, {} of packed weights, prepared in {}\n", steps.size(),
                      steps.size() == 1 ? "" : "s",
                      bytes_text(static_cast<double>(loaded.session.packed_bytes())),
                      milliseconds(loaded.milliseconds));
  emit(text);
  return ok;
}

}  // namespace

void add_info(const Options& app, Action& action) {
  auto command = std::make_shared<InfoCommand>();
  const Options info =
      app.add_command("info", "What is in a model: inputs, outputs, operators, parameters, cost");
  add_model_argument(info, "MODEL", command->model, "The model; its external data is not needed");
  command->dims.add(info, std::string(open_sizes_help) + "; for the cost, 1 without it");
  add_library_option(info, command->libraries);
  info.add_flag("--full", command->full, "Long descriptions and metadata in full");
  info.add_flag("--json", command->as_json, "One JSON object (docs/cli.md)");
  info.on_chosen([command, &action] { action = [command] { return command->run(); }; });
}

void add_explain(const Options& app, Action& action) {
  auto command = std::make_shared<ExplainCommand>();
  const Options explain =
      app.add_command("explain", "Print the steps that running a model consists of, and why");
  add_loading_options(explain, command->loading);
  command->inputs.add_options(explain);
  command->passes.add_options(explain);
  explain.add_flag("--json", command->as_json, "One JSON object (docs/cli.md)");
  explain.on_chosen([command, &action] { action = [command] { return command->run(); }; });
}

}  // namespace sardonyx::cli
