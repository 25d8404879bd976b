#include "sardonyx/passes.h"

#include <algorithm>
#include <set>
#include <utility>

#include "base/fail.h"
#include "base/thread_pool.h"
#include "check/context.h"
#include "passes/optimize.h"
#include "passes/pipeline.h"
#include "schema/schema.h"
#include "session/lowered.h"
#include "wire/text_print.h"

namespace sardonyx {
namespace {

void collect_domains(const ir::Graph& graph, std::set<std::string>& domains) {
  for (const ir::Node& node : graph.nodes) {
    domains.insert(node.domain);
    for (const ir::Attribute& attribute : node.attributes) {
      if (attribute.g) collect_domains(*attribute.g, domains);
      for (const auto& inner : attribute.graphs) collect_domains(*inner, domains);
    }
  }
}

// A model around the graph, so that the text parses.
std::string text_of(const ir::Graph& graph, size_t max_elements) {
  ir::Model model;
  model.ir_version = check::newest_ir_version;
  std::set<std::string> domains{""};
  collect_domains(graph, domains);
  for (const std::string& domain : domains)
    model.opset_imports.push_back({domain, std::max(schema::latest_opset(domain), 1), {}});
  model.graph = graph;
  return wire::print(model, {.max_elements = max_elements});
}

PassRun run_of(const passes::PassEvent& event) {
  return {std::string(event.pass),
          std::string(event.place),
          event.changed,
          static_cast<std::ptrdiff_t>(event.nodes_before),
          static_cast<std::ptrdiff_t>(event.graph.nodes.size()),
          {event.operators.begin(), event.operators.end()},
          event.seconds};
}

}  // namespace

std::vector<PassDescription> optimizer_passes() {
  std::vector<PassDescription> list;
  for (const passes::Pass& pass : passes::optimizing_passes()) {
    if (std::ranges::none_of(list, [&](const auto& known) { return known.name == pass.name; }))
      list.push_back({std::string(pass.name), std::string(pass.summary)});
  }
  return list;
}

void require_pass(std::string_view name) {
  std::string names;
  for (const PassDescription& pass : optimizer_passes()) {
    if (pass.name == name) return;
    names += (names.empty() ? "" : ", ") + pass.name;
  }
  fail(ErrorCode::bad_input, "there is no pass '{}'; there are {}", name, names);
}

std::string optimized_text(const Model& model, const SessionOptions& options,
                           const PassOptions& pass_options) {
  if (!pass_options.stop_after.empty()) require_pass(pass_options.stop_after);
  refuse_broken(model.implementation());
  ir::Graph graph = lowered_graph(model.implementation(), options, {});
  ThreadPool pool(options.threads);
  passes::OptimizeOptions optimizing{.pool = &pool, .fuse = options.fuse && !options.all_outputs};
  optimizing.stop_after = pass_options.stop_after;
  if (pass_options.observe) {
    optimizing.observer = [&](const passes::PassEvent& event) {
      pass_options.observe(run_of(event),
                           [&] { return text_of(event.graph, pass_options.max_elements); });
    };
  }
  passes::optimize(graph, optimizing);
  return text_of(graph, pass_options.max_elements);
}

}  // namespace sardonyx
