#include "session/lowered.h"

#include <fmt/format.h>

#include <algorithm>
#include <string_view>
#include <unordered_map>
#include <unordered_set>
#include <vector>

#include "base/fail.h"
#include "base/memory_account.h"
#include "base/similar.h"
#include "base/value_kind.h"
#include "ir/dimension.h"
#include "ir/tensor.h"
#include "lower/lower.h"
#include "ops/step.h"
#include "session/refusal.h"
#include "wire/footprint.h"

namespace sardonyx {

std::set<std::string> defaults_of(const ir::Graph& graph) {
  std::unordered_set<std::string_view> inputs;  // most models have few
  for (const ir::ValueInfo& input : graph.inputs) inputs.insert(input.name);
  std::set<std::string> defaults;
  const auto add = [&](const std::string& initializer) {
    if (inputs.contains(initializer)) defaults.insert(initializer);
  };
  for (const ir::TensorProto& one : graph.initializers) add(one.name);
  for (const ir::SparseTensorProto& one : graph.sparse_initializers) add(one.values.name);
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

void refuse_wrong_sizes(const DimSizes& sizes, const std::vector<ir::ValueInfo>& inputs) {
  refuse_unknown_sizes(sizes, ir::size_names(inputs));
}

void fix_sizes(const DimSizes& sizes, std::vector<ir::ValueInfo>& values) {
  for (ir::ValueInfo& value : values) {
    if (!value.type || !value.type->shape) continue;
    for (ir::Dimension& dim : value.type->shape->dims) {
      const auto found = sizes.find(ir::declared_name(dim));
      if (found != sizes.end()) ir::set_number(dim, found->second);
    }
  }
}

namespace {

[[noreturn]] void refuse_name(const std::string& place, const char* what, const std::string& name,
                              const std::vector<std::string_view>& known) {
  const std::string_view meant = closest(name, known);
  fail_at(place, ErrorCode::bad_input, "the model has no {} of this name{}", what,
          meant.empty() ? "" : fmt::format("; did you mean '{}'?", meant));
}

void replace_initializer(ir::Graph& graph, const std::string& name, const Value& value) {
  const std::string place = fmt::format("initializer '{}'", name);
  const auto found = std::ranges::find(graph.initializers, name, &ir::TensorProto::name);
  if (found == graph.initializers.end()) {
    std::vector<std::string_view> known;
    for (const ir::TensorProto& one : graph.initializers) known.push_back(one.name);
    for (const ir::SparseTensorProto& one : graph.sparse_initializers) {
      if (one.values.name == name)
        fail_at(place, ErrorCode::unsupported,
                "is sparse, and sparse initializers are not replaced; give the value as an input, "
                "or change the model");
    }
    refuse_name(place, "initializer", name, known);
  }
  const auto wanted = [&] {
    return fmt::format("{}{}", name_of(found->element_type()),
                       to_string(std::span<const int64_t>(found->dims)));
  };
  if (!value.is_tensor())
    fail_at(place, ErrorCode::bad_input, "is to be replaced by {}, the model has {}",
            with_article(value.kind()), wanted());
  const Tensor& tensor = value.tensor();
  if (tensor.element_type() != found->element_type() ||
      !std::ranges::equal(tensor.shape(), found->dims)) {
    fail_at(place, ErrorCode::bad_input, "is to be replaced by {}{}, the model has {}",
            name_of(tensor.element_type()), to_string(tensor.shape()), wanted());
  }
  *found = ir::to_proto(ops::to_owned(value).tensor(), name);
}

void replace_initializers(ir::Graph& graph, const std::vector<NamedValue>& values) {
  std::set<std::string_view> seen;
  for (const auto& [name, value] : values) {
    if (!seen.insert(name).second)
      fail_at(fmt::format("initializer '{}'", name), ErrorCode::bad_input,
              "is given twice; each takes one value");
    replace_initializer(graph, name, value);
  }
}

bool is_output(const ir::Graph& graph, const std::string& name) {
  return std::ranges::find(graph.outputs, name, &ir::ValueInfo::name) != graph.outputs.end();
}

// The outputs of the graph's nodes.
std::vector<std::string_view> made_names(const ir::Graph& graph) {
  std::vector<std::string_view> names;
  for (const ir::Node& node : graph.nodes) {
    for (const std::string& name : node.outputs) {
      if (!name.empty()) names.push_back(name);
    }
  }
  return names;
}

// Outputs from `own` on, which are those wanted, in the order in which they are.
void sort_outputs(ir::Graph& graph, size_t own, const std::vector<std::string>& wanted) {
  std::unordered_map<std::string_view, size_t> places;
  for (size_t i = 0; i < wanted.size(); ++i) places.emplace(wanted[i], i);
  const auto place = [&](const ir::ValueInfo& output) { return places.at(output.name); };
  std::ranges::sort(graph.outputs.begin() + static_cast<std::ptrdiff_t>(own), graph.outputs.end(),
                    {}, place);
}

// Makes outputs of those values that the graph makes, with their declared types. What it does not
// make may be inside a function, and is there when that is inlined. `last`: there is no later.
void add_outputs(ir::Graph& graph, const std::vector<std::string>& wanted, bool last) {
  if (wanted.empty()) return;
  const std::vector<std::string_view> made = made_names(graph);
  const std::unordered_set<std::string_view> known(made.begin(), made.end());
  for (const std::string& name : wanted) {
    if (is_output(graph, name)) continue;
    if (!known.contains(name)) {
      if (last) refuse_name(fmt::format("value '{}'", name), "node with an output", name, made);
      continue;
    }
    const auto declared = std::ranges::find(graph.value_info, name, &ir::ValueInfo::name);
    if (declared == graph.value_info.end()) {
      graph.outputs.push_back({name, {}, {}, {}, {}});
    } else {
      graph.outputs.push_back(*declared);
    }
  }
}

}  // namespace

std::shared_ptr<const Model::Implementation> with_given(const Model& model,
                                                        const std::vector<NamedValue>& values) {
  const Model::Implementation& from = model.implementation();
  if (!from.defers_data || !from.model.graph) return model.share();
  const auto elsewhere = [&](const NamedValue& one) {
    const auto& tensors = from.model.graph->initializers;
    const auto found = std::ranges::find(tensors, one.first, &ir::TensorProto::name);
    return found != tensors.end() && found->is_external();
  };
  if (std::ranges::none_of(values, elsewhere)) return model.share();
  ir::Model changed = from.model;
  for (const NamedValue& one : values) {
    if (elsewhere(one)) replace_initializer(*changed.graph, one.first, one.second);
  }
  return ModelMaker::derive(model, std::move(changed)).share();
}

ir::Graph lowered_graph(const Model::Implementation& model, const SessionOptions& options,
                        const std::set<std::string>& overridden, bool separate_sizes) {
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
  if (!options.dimensions.empty()) {
    for (auto* list : {&graph.inputs, &graph.outputs, &graph.value_info})
      fix_sizes(options.dimensions, *list);
  }
  if (separate_sizes) ir::separate_sizes(copy);
  replace_initializers(graph, options.initializers);
  const size_t own_outputs = graph.outputs.size();
  add_outputs(graph, options.extra_outputs, false);
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
  add_outputs(lowered, options.extra_outputs, true);
  sort_outputs(lowered, own_outputs, options.extra_outputs);
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
