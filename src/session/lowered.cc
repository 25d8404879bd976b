#include "session/lowered.h"

#include <fmt/format.h>

#include <algorithm>
#include <string_view>
#include <unordered_set>

#include "base/fail.h"
#include "base/memory_account.h"
#include "ir/dimension.h"
#include "lower/lower.h"
#include "session/refusal.h"
#include "wire/footprint.h"

namespace sardonyx {

std::set<std::string> defaults_of(const ir::Graph& graph) {
  std::unordered_set<std::string_view> initializers;
  for (const ir::TensorProto& one : graph.initializers) initializers.insert(one.name);
  for (const ir::SparseTensorProto& one : graph.sparse_initializers)
    initializers.insert(one.values.name);
  std::set<std::string> defaults;
  for (const ir::ValueInfo& input : graph.inputs) {
    if (initializers.contains(input.name)) defaults.insert(input.name);
  }
  return defaults;
}

void refuse_broken(const Model::Implementation& model) {
  if (!model.runnable().graph)
    fail_at(model.model.path, ErrorCode::invalid_model, "the model has no graph");
  size_t errors = 0;
  const check::Diagnostic* first = nullptr;
  for (const check::Diagnostic& finding : model.judged().findings) {
    if (finding.severity != check::Severity::error) continue;
    if (errors++ == 0) first = &finding;
  }
  if (first == nullptr) return;
  std::string message = fmt::format("{}{}{} [{}]", first->message,
                                    first->advice.empty() ? "" : "; ", first->advice, first->rule);
  if (errors > 1) message += fmt::format(" (and {} more; `sardonyx check` lists them)", errors - 1);
  throw Error(refusal_code(*first), message, first->place.to_string());
}

ir::Graph lowered_graph(const Model::Implementation& model, const SessionOptions& options,
                        const std::set<std::string>& overridden) {
  const ir::Model& given = model.runnable();
  const MemoryCharge copied(wire::memory_of(given));
  ir::Model copy;
  copy.ir_version = given.ir_version;
  copy.opset_imports = given.opset_imports;
  copy.functions = given.functions;
  copy.graph = given.graph;
  copy.path = given.path;
  ir::Graph& graph = *copy.graph;
  ir::name_open_sizes(graph);
  const std::set<std::string> defaults = defaults_of(graph);
  std::erase_if(graph.inputs, [&](const ir::ValueInfo& i) {
    return defaults.contains(i.name) && !overridden.contains(i.name);
  });
  std::erase_if(graph.initializers,
                [&](const ir::TensorProto& t) { return overridden.contains(t.name); });
  std::erase_if(graph.sparse_initializers,
                [&](const ir::SparseTensorProto& t) { return overridden.contains(t.values.name); });
  ir::Graph lowered =
      lower::lower(copy, {.assume_inference = options.assume_inference, .custom = &model.custom});
  const MemoryCharge beside_the_copy(wire::memory_of(lowered));
  if (!options.all_outputs) return lowered;
  std::unordered_set<std::string> outputs;
  for (const ir::ValueInfo& output : lowered.outputs) outputs.insert(output.name);
  for (const ir::Node& node : lowered.nodes) {
    for (const std::string& name : node.outputs) {
      if (!name.empty() && outputs.insert(name).second)
        lowered.outputs.push_back({name, {}, {}, {}, {}});
    }
  }
  return lowered;
}

}  // namespace sardonyx
