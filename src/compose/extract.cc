#include "compose/extract.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <optional>
#include <set>
#include <string_view>
#include <tuple>
#include <unordered_map>
#include <unordered_set>

#include "base/fail.h"
#include "base/similar.h"
#include "compose/rename.h"
#include "compose/value_types.h"
#include "infer/infer.h"
#include "ir/named_values.h"
#include "ir/walk.h"

namespace sardonyx::compose {
namespace {

class Extraction {
 public:
  Extraction(const ir::Model& model, const std::vector<std::string>& inputs,
             const std::vector<std::string>& outputs)
      : model_(model), graph_(*model.graph), inputs_(inputs), outputs_(outputs) {
    for (size_t i = 0; i < graph_.nodes.size(); ++i) {
      for (const std::string& name : graph_.nodes[i].outputs) {
        if (!name.empty()) producers_.try_emplace(name, i);
      }
    }
    for (const ir::ValueInfo& input : graph_.inputs) model_inputs_.insert(input.name);
    for (const ir::TensorProto& tensor : graph_.initializers) initializers_.insert(tensor.name);
    for (const ir::SparseTensorProto& tensor : graph_.sparse_initializers)
      initializers_.insert(tensor.values.name);
  }

  ir::Model run() {
    require_known(inputs_, "input");
    require_known(outputs_, "output");
    kept_nodes_.resize(graph_.nodes.size());
    given_.insert(inputs_.begin(), inputs_.end());
    for (const std::string& name : outputs_) need(name, name);
    while (!waiting_.empty()) {
      const auto [node, reason] = waiting_.back();
      waiting_.pop_back();
      for (const std::string& name : needed_by(graph_.nodes[node])) need(name, reason);
    }
    need_annotated();
    ir::Model part = model_;
    part.training_info.clear();
    part.graph = graph();
    drop_unused_functions(part);
    return part;
  }

 private:
  bool is_known(const std::string& name) const {
    return producers_.contains(name) || model_inputs_.contains(name) ||
           initializers_.contains(name);
  }

  // "; did you mean 'relu_1'?" or "".
  std::string like(std::string_view name) const {
    std::vector<std::string_view> known;
    for (const auto& producer : producers_) known.push_back(producer.first);
    known.insert(known.end(), model_inputs_.begin(), model_inputs_.end());
    const std::string_view close = closest(name, known);
    return close.empty() ? "" : fmt::format("; did you mean '{}'?", close);
  }

  void require_known(const std::vector<std::string>& names, std::string_view what) const {
    if (names.empty() && what == "output") fail(ErrorCode::bad_input, "name at least one output");
    std::set<std::string_view> seen;
    for (const std::string& name : names) {
      if (!is_known(name))
        fail(ErrorCode::bad_input, "{} '{}': the main graph has no value of this name{}", what,
             name, like(name));
      if (!seen.insert(name).second)
        fail(ErrorCode::bad_input, "{} '{}' is named twice", what, name);
    }
  }

  static std::vector<std::string> needed_by(const ir::Node& node) {
    std::vector<std::string> names = node.inputs;
    ir::for_each_named_value(node, [&](const std::string& name) { names.push_back(name); });
    ir::for_each_subgraph(node, [&](const ir::Graph& inner, const ir::Attribute&, int) {
      for (std::string& name : infer::captured_names(inner)) names.push_back(std::move(name));
    });
    return names;
  }

  // `reason`: the output that led here, for messages.
  void need(const std::string& name, const std::string& reason) {
    if (name.empty() || !needed_.insert(name).second || given_.contains(name)) return;
    const auto producer = producers_.find(name);
    if (producer != producers_.end()) {
      if (!kept_nodes_[producer->second]) waiting_.emplace_back(producer->second, reason);
      kept_nodes_[producer->second] = true;
    } else if (!initializers_.contains(name) && model_inputs_.contains(name)) {
      fail(ErrorCode::bad_input,
           "output '{}' depends on '{}', an input of the model that is not among the inputs of the "
           "part; add it",
           reason, name);
    }
  }

  // Scales and zero points that annotations of kept values name.
  void need_annotated() {
    for (const ir::TensorAnnotation& annotation : graph_.quantization_annotation) {
      if (!needed_.contains(annotation.tensor_name)) continue;
      for (const ir::StringEntry& entry : annotation.quant_parameter_tensor_names) {
        if (initializers_.contains(entry.value)) needed_.insert(entry.value);
      }
    }
  }

  ir::Graph graph() {
    ir::Graph part;
    part.name = graph_.name;
    part.doc_string = graph_.doc_string;
    part.metadata_props = graph_.metadata_props;
    part.unknown = graph_.unknown;
    std::unordered_set<std::string> kept;  // values of the part
    for (size_t i = 0; i < graph_.nodes.size(); ++i) {
      if (!kept_nodes_[i]) continue;
      ir::Node& node = part.nodes.emplace_back(graph_.nodes[i]);
      for (std::string& output : node.outputs) {
        if (given_.contains(output)) output = spare_name(output);  // another output is needed
        kept.insert(output);
      }
    }
    const auto wanted = [&](const std::string& name) {
      return needed_.contains(name) && !given_.contains(name);
    };
    for (const ir::TensorProto& tensor : graph_.initializers) {
      if (wanted(tensor.name)) part.initializers.push_back(tensor);
    }
    for (const ir::SparseTensorProto& tensor : graph_.sparse_initializers) {
      if (wanted(tensor.values.name)) part.sparse_initializers.push_back(tensor);
    }
    for (const std::string& name : inputs_) part.inputs.push_back(info_of(name));
    // Inputs with a default keep it and stay inputs.
    for (const ir::ValueInfo& input : graph_.inputs) {
      if (wanted(input.name)) part.inputs.push_back(input);
    }
    for (const std::string& name : outputs_) part.outputs.push_back(info_of(name));
    const std::set<std::string_view> declared = [&] {
      std::set<std::string_view> names(inputs_.begin(), inputs_.end());
      names.insert(outputs_.begin(), outputs_.end());
      return names;
    }();
    for (const ir::ValueInfo& info : graph_.value_info) {
      if (!declared.contains(info.name) && (kept.contains(info.name) || wanted(info.name)))
        part.value_info.push_back(info);
    }
    for (const ir::TensorAnnotation& annotation : graph_.quantization_annotation) {
      if (needed_.contains(annotation.tensor_name))
        part.quantization_annotation.push_back(annotation);
    }
    return part;
  }

  // A name that no value of the model has.
  std::string spare_name(const std::string& name) {
    if (taken_.empty()) taken_ = value_names(model_);
    for (int i = 0;; ++i) {
      const auto [spare, is_new] = taken_.insert(fmt::format("{}__{}", name, i));
      if (is_new) return *spare;
    }
  }

  ir::ValueInfo info_of(const std::string& name) {
    for (const auto* infos : {&graph_.inputs, &graph_.outputs, &graph_.value_info}) {
      for (const ir::ValueInfo& info : *infos) {
        if (info.name == name && info.type) return info;
      }
    }
    if (!types_) types_ = value_types(model_);
    ir::ValueInfo info;
    info.name = name;
    const auto found = types_->find(name);
    if (found != types_->end()) info.type = found->second;
    return info;
  }

  const ir::Model& model_;
  const ir::Graph& graph_;
  const std::vector<std::string>& inputs_;
  const std::vector<std::string>& outputs_;
  std::unordered_map<std::string_view, size_t> producers_;
  std::unordered_set<std::string> model_inputs_, initializers_, given_, needed_;
  std::set<std::string> taken_;  // once a spare name is asked for
  std::vector<bool> kept_nodes_;
  std::vector<std::pair<size_t, std::string>> waiting_;
  std::optional<std::unordered_map<std::string, ir::TypeProto>> types_;
};

using FunctionKey = std::tuple<std::string, std::string, std::string>;

}  // namespace

ir::Model extract(const ir::Model& model, const std::vector<std::string>& inputs,
                  const std::vector<std::string>& outputs) {
  if (!model.graph) fail(ErrorCode::invalid_model, "the model has no graph");
  return Extraction(model, inputs, outputs).run();
}

void drop_unused_functions(ir::Model& model) {
  if (model.functions.empty()) return;
  std::map<FunctionKey, size_t> functions;
  for (size_t i = 0; i < model.functions.size(); ++i) {
    const ir::Function& f = model.functions[i];
    functions.try_emplace({std::string(ir::canonical_domain(f.domain)), f.name, f.overload}, i);
  }
  std::vector<bool> used(model.functions.size());
  std::vector<size_t> waiting;
  const ir::WalkCallbacks calls = {.node = [&](const ir::WalkPlace&, const ir::Node& node, size_t) {
    const auto found = functions.find(
        {std::string(ir::canonical_domain(node.domain)), node.op_type, node.overload});
    if (found == functions.end() || used[found->second]) return;
    used[found->second] = true;
    waiting.push_back(found->second);
  }};
  if (model.graph) ir::walk(*model.graph, calls);
  for (const ir::TrainingInfo& info : model.training_info) {
    if (info.initialization) ir::walk(*info.initialization, calls);
    if (info.algorithm) ir::walk(*info.algorithm, calls);
  }
  while (!waiting.empty()) {
    const size_t next = waiting.back();
    waiting.pop_back();
    ir::walk(model.functions[next], calls);
  }
  std::vector<ir::Function> kept;
  for (size_t i = 0; i < used.size(); ++i) {
    if (used[i]) kept.push_back(std::move(model.functions[i]));
  }
  model.functions = std::move(kept);
}

}  // namespace sardonyx::compose
