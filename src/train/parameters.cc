// Which initializers of a model learn.
#include <algorithm>
#include <unordered_map>
#include <unordered_set>

#include "base/fail.h"
#include "base/listed.h"
#include "ir/walk.h"
#include "schema/schema.h"
#include "train/draft.h"

namespace sardonyx::train {
namespace {

using Role = Parameter::Role;

// Where a node reads a value.
struct Use {
  const ir::Node* node;
  size_t input;
};

using Makers = std::unordered_map<std::string_view, const ir::Node*>;
using Uses = std::unordered_map<std::string_view, std::vector<Use>>;

bool is_one_of(std::string_view op, std::initializer_list<std::string_view> names) {
  return std::ranges::find(names, op) != names.end();
}

// Nodes that give a value another shape or order: it is read by what reads their output.
bool only_moves(const ir::Node& node) {
  return is_one_of(node.op_type, {"Transpose", "Reshape", "Squeeze", "Unsqueeze", "Identity",
                                  "Flatten", "Expand", "Split", "Slice", "Concat"});
}

// Constants that are a part of the computation and not of what was learned.
bool is_fixed(const Use& use) {
  const std::string_view op = use.node->op_type;
  if (op == "BatchNormalization" && use.input >= 3) return true;  // statistics
  if (is_one_of(op, {"QuantizeLinear", "DequantizeLinear"}) && use.input >= 1) return true;
  if (op == "RotaryEmbedding" && use.input >= 1) return true;  // tables of cosines and sines
  if (op == "GroupQueryAttention" && use.input >= 7) return true;
  if (is_one_of(op, {"Pow", "Clip", "Dropout", "Pad", "Resize", "Upsample", "Where", "Max", "Min",
                     "Mod", "Range", "Expand", "ConstantOfShape", "OneHot", "Equal", "Less",
                     "Greater", "LessOrEqual", "GreaterOrEqual"}))
    return true;
  // Normalising an image: what was learned stands in products and sums.
  if (is_one_of(op, {"Sub", "Div"})) return true;
  const schema::Signature* signature = schema::newest(use.node->domain, use.node->op_type);
  const schema::Formal* formal =
      signature ? signature->input(static_cast<int>(use.input)) : nullptr;
  return formal != nullptr &&
         formal->differentiable == schema::Differentiability::not_differentiable;
}

bool is_normalization(std::string_view op) {
  return is_one_of(op, {"BatchNormalization", "LayerNormalization", "InstanceNormalization",
                        "GroupNormalization", "RMSNormalization"});
}

Role role_of(const Use& use, const Shape& shape) {
  const std::string_view op = use.node->op_type;
  if (is_normalization(op)) return use.input == 1 ? Role::scale : Role::bias;
  if (op == "Mul") return Role::scale;
  if (op == "PRelu") return Role::scale;
  const bool third = use.input == 2 && is_one_of(op, {"Conv", "ConvTranspose", "Gemm"});
  const bool recurrent = use.input == 3 && is_one_of(op, {"LSTM", "GRU", "RNN"});
  return third || recurrent || (op == "Add" && shape.size() == 1) ? Role::bias : Role::weight;
}

int64_t product(const Shape& shape, size_t from) {
  int64_t all = 1;
  for (size_t i = from; i < shape.size(); ++i) all *= std::max<int64_t>(shape[i], 1);
  return all;
}

int64_t fan_in_of(const Use& use, const Shape& shape) {
  if (shape.size() < 2) return 0;
  const std::string_view op = use.node->op_type;
  if (op == "Conv") return product(shape, 1);
  if (op == "MatMul") return shape[shape.size() - 2];
  if (op == "Gemm") {
    const ir::Attribute* turned = use.node->find(use.input == 1 ? "transB" : "transA");
    const bool is_turned = turned != nullptr && turned->i.value_or(0) != 0;
    return shape[use.input == 1 && is_turned ? 1 : 0];
  }
  return shape.back();
}

// A tensor of one element is a number that a formula needs, as a rule; where it is added to a
// product it is the shift of a layer that has one output, and where an operator has a name for it,
// a weight.
bool is_lone_weight(const Use& use, const Makers& makers) {
  if (use.node->op_type == "Mul") return false;
  if (use.node->op_type != "Add") return true;
  if (use.node->inputs.size() != 2) return false;
  const auto maker = makers.find(use.node->inputs[1 - use.input]);
  return maker != makers.end() &&
         is_one_of(maker->second->op_type, {"MatMul", "Gemm", "Conv", "ConvTranspose", "Einsum"});
}

// What computes with the value in the end, past nodes that only move it.
std::vector<Use> last_uses(const Uses& uses, std::string_view name) {
  std::vector<Use> found;
  std::vector<std::string_view> waiting{name};
  std::unordered_set<std::string_view> seen{name};
  while (!waiting.empty()) {
    const auto of = uses.find(waiting.back());
    waiting.pop_back();
    if (of == uses.end()) continue;
    for (const Use& use : of->second) {
      const bool data = use.input == 0 || use.node->op_type == "Concat";
      if (!only_moves(*use.node) || !data) {
        found.push_back(use);
        continue;
      }
      for (const std::string& output : use.node->outputs) {
        if (seen.insert(output).second) waiting.push_back(output);
      }
    }
  }
  return found;
}

void require_met(const std::vector<std::string>& patterns, const ir::Graph& graph,
                 std::string_view what) {
  for (const std::string& pattern : patterns) {
    const bool met = std::ranges::any_of(
        graph.initializers, [&](const ir::TensorProto& one) { return fits(pattern, one.name); });
    if (met) continue;
    std::vector<std::string> some;
    for (const ir::TensorProto& one : graph.initializers) some.push_back("'" + one.name + "'");
    fail(ErrorCode::bad_input, "no initializer fits '{}' of {}; the model has {}", pattern, what,
         some.empty() ? "none" : listed(some, 8));
  }
}

}  // namespace

std::vector<size_t> nodes_behind(const ir::Graph& graph, const std::string& value) {
  std::unordered_map<std::string_view, size_t> makers;
  for (size_t i = 0; i < graph.nodes.size(); ++i) {
    for (const std::string& output : graph.nodes[i].outputs) makers.emplace(output, i);
  }
  std::vector<char> needed(graph.nodes.size(), 0);
  std::vector<std::string> waiting{value};
  while (!waiting.empty()) {
    const auto maker = makers.find(waiting.back());
    waiting.pop_back();
    if (maker == makers.end() || needed[maker->second]++) continue;
    const ir::Node& node = graph.nodes[maker->second];
    waiting.insert(waiting.end(), node.inputs.begin(), node.inputs.end());
    for_each_inner(node, [&](const ir::Node& inner) {
      waiting.insert(waiting.end(), inner.inputs.begin(), inner.inputs.end());
    });
  }
  std::vector<size_t> behind;
  for (size_t i = 0; i < needed.size(); ++i) {
    if (needed[i]) behind.push_back(i);
  }
  return behind;
}

std::vector<Parameter> choose_parameters(const ir::Graph& graph, const std::string& scores,
                                         ElementType element, const TrainableOptions& options,
                                         const std::vector<Parameter>& lora,
                                         TrainableReport& report) {
  require_met(options.train, graph, "train");
  require_met(options.freeze, graph, "freeze");
  Uses uses;
  Makers makers;
  const auto add = [&](const ir::Node& node) {
    for (size_t i = 0; i < node.inputs.size(); ++i) uses[node.inputs[i]].push_back({&node, i});
    for (const std::string& output : node.outputs) makers.emplace(output, &node);
  };
  for (const size_t index : nodes_behind(graph, scores)) {
    const ir::Node& node = graph.nodes[index];
    add(node);
    for_each_inner(node, add);
  }
  std::vector<Parameter> chosen = lora;
  const auto is_lora = [&](const std::string& name) {
    return std::ranges::any_of(lora, [&](const Parameter& one) { return one.name == name; });
  };
  bool other_type = false, quantized = false;
  for (const ir::TensorProto& tensor : graph.initializers) {
    if (is_lora(tensor.name)) continue;
    const std::vector<Use> last = last_uses(uses, tensor.name);
    if (last.empty()) continue;
    const bool named = fits_any(options.train, tensor.name);
    quantized = quantized || std::ranges::any_of(last, [](const Use& use) {
                  return use.node->op_type == "DequantizeLinear" && use.input == 0;
                });
    const auto is_lone = [&](const Use& use) { return is_lone_weight(use, makers); };
    const bool looks_learned = !tensor.dims.empty() && std::ranges::none_of(last, is_fixed) &&
                               (product(tensor.dims, 0) > 1 || std::ranges::all_of(last, is_lone));
    if (!named && !looks_learned) continue;
    if (tensor.element_type() != element) {
      const bool is_float = tensor.element_type() == ElementType::float16 ||
                            tensor.element_type() == ElementType::bfloat16 ||
                            tensor.element_type() == ElementType::float32 ||
                            tensor.element_type() == ElementType::float64;
      other_type = other_type || is_float;
      if (named)
        fail(ErrorCode::bad_input, "'{}' holds {} and can't learn; the loss is of {}", tensor.name,
             name_of(tensor.element_type()), name_of(element));
      continue;
    }
    const bool wanted = options.train.empty() ? lora.empty() : named;
    if (!wanted || fits_any(options.freeze, tensor.name)) {
      report.frozen.push_back(tensor.name);
      continue;
    }
    const Use& use = last.front();
    chosen.push_back(
        {tensor.name, tensor.dims, role_of(use, tensor.dims), fan_in_of(use, tensor.dims), {}});
  }
  if (chosen.empty())
    fail(ErrorCode::bad_input,
         "nothing would learn: the loss depends on no initializer of {} that is not frozen{}; {}",
         name_of(element), other_type ? " (there are some of other types)" : "",
         quantized ? "weights are quantised: train the model as it was before, or name scales "
                     "(--train PATTERN)"
                   : "train names some (--train PATTERN)");
  for (const Parameter& one : chosen) {
    report.trained.push_back(one.name);
    report.trained_elements += product(one.shape, 0);
  }
  return chosen;
}

}  // namespace sardonyx::train
