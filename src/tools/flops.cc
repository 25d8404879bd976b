#include "tools/flops.h"

#include <algorithm>
#include <cmath>
#include <deque>
#include <string_view>
#include <unordered_map>
#include <unordered_set>

#include "infer/infer.h"
#include "ir/dimension.h"
#include "ir/walk.h"
#include "lower/lower.h"
#include "session/node_work.h"

namespace sardonyx {
namespace {

using infer::ValueFacts;

constexpr int max_body_depth = 64;

// Operators whose output shares its input's memory.
bool is_view(std::string_view op) {
  return op == "Identity" || op == "Reshape" || op == "Squeeze" || op == "Unsqueeze" ||
         op == "Flatten";
}

class Counter {
 public:
  Counter(const DimSizes& sizes, const std::unordered_set<std::string>& weights)
      : given_(sizes), weights_(weights) {
    findings_.symbols = &symbols_;
  }

  Cost count(const ir::Graph& graph) {
    findings_.problem = [](const ir::Node&, const Error&) {};
    infer::Scope scope;
    cost_.flops = graph_flops(graph, scope, 0);
    cost_.value_bytes = live_bytes(graph, scope);
    for (int id = 0; id < symbols_.size(); ++id) {
      const ir::Symbol& symbol = symbols_[id];
      if (used_.contains(id) && !is_unknown(symbol)) cost_.sizes[symbol.name] = size_of(symbol);
    }
    return std::move(cost_);
  }

 private:
  bool is_unknown(const ir::Symbol& symbol) const {
    return symbol.decided_by_run || declared_.find(symbol.name) == declared_.end();
  }
  int64_t size_of(const ir::Symbol& symbol) const {
    const auto given = given_.find(symbol.name);
    if (given != given_.end()) return given->second;
    if (symbol.upper && symbol.upper->is_constant()) return *symbol.upper->value();
    return 1;
  }

  int64_t value(const ir::Dim& dim) {
    if (const auto number = dim.value()) return *number;
    std::vector<int> ids;
    dim.collect_symbols(ids);
    used_.insert(ids.begin(), ids.end());
    for (const int id : ids) {
      const ir::Symbol& symbol = symbols_[id];
      if (is_unknown(symbol) && !given_.contains(symbol.name) &&
          !(symbol.upper && symbol.upper->is_constant()))
        guessed_ = true;
    }
    while (static_cast<int>(sizes_.size()) < symbols_.size()) {
      sizes_.push_back(size_of(symbols_[static_cast<int>(sizes_.size())]));
    }
    return dim.evaluate(sizes_).value_or(1);
  }

  // NaN where the shape is not known.
  double elements(const ValueFacts* known) {
    if (known == nullptr || !known->type.is_tensor() || !known->type.shape) return NAN;
    double product = 1;
    for (const ir::Dim& dim : *known->type.shape) product *= static_cast<double>(value(dim));
    return product;
  }

  double graph_flops(const ir::Graph& graph, infer::Scope& scope, int depth) {
    for (const ir::ValueInfo& input : graph.inputs) {
      if (!input.type || !input.type->shape) continue;
      for (const ir::Dimension& dim : input.type->shape->dims) {
        declared_.emplace(ir::declared_name(dim));
      }
    }
    infer::enter(graph, scope, findings_);
    infer::infer_graph(graph, scope, findings_);
    double sum = 0;
    for (const ir::Node& node : graph.nodes) {
      guessed_ = false;
      const double flops = node_flops(node, scope, depth);
      if (std::isnan(flops) || guessed_) ++cost_.unknown_nodes;
      if (!std::isnan(flops)) sum += flops;
    }
    guessed_ = false;
    return sum;
  }

  double inner_flops(const ir::Node& node, const infer::Scope& scope, int depth) {
    double sum = 0, largest = 0;
    ir::for_each_subgraph(node, [&](const ir::Graph& graph, const ir::Attribute&, int) {
      if (depth >= max_body_depth) return;
      infer::Scope inside(&scope);
      const double flops = graph_flops(graph, inside, depth + 1);
      sum += flops;
      largest = std::max(largest, flops);
    });
    return node.op_type == "If" ? largest : sum;
  }

  std::vector<OperandShape> operands(const std::vector<std::string>& names,
                                     const infer::Scope& scope) {
    std::vector<OperandShape> made;
    for (const std::string& name : names) {
      OperandShape& operand = made.emplace_back();
      const ValueFacts* known = name.empty() ? nullptr : scope.find(name);
      if (known == nullptr) continue;
      operand.state = OperandShape::State::open;
      if (!known->type.is_tensor()) continue;
      operand.element = known->type.element;
      if (!known->type.shape) continue;
      operand.state = OperandShape::State::known;
      std::vector<int64_t>& shape = shapes_.emplace_back();
      for (const ir::Dim& dim : *known->type.shape) shape.push_back(value(dim));
      operand.shape = shape;
    }
    return made;
  }

  // NaN where it can't be told.
  double node_flops(const ir::Node& node, const infer::Scope& scope, int depth) {
    const auto holds_graph = [](const ir::Attribute& attribute) {
      return attribute.kind == ir::AttributeKind::graph;
    };
    if (std::any_of(node.attributes.begin(), node.attributes.end(), holds_graph))
      return inner_flops(node, scope, depth);
    shapes_.clear();
    const auto inputs = operands(node.inputs, scope), outputs = operands(node.outputs, scope);
    return node_operations(node, inputs, outputs);
  }

  double bytes(const ValueFacts* known) {
    const double count = elements(known);
    return std::isnan(count) ? 0 : std::ceil(count * bit_width(known->type.element) / 8);
  }

  // The largest sum of what is alive at a node, views counted once. Weights don't count.
  double live_bytes(const ir::Graph& graph, const infer::Scope& scope) {
    std::unordered_map<std::string_view, std::string_view> root;
    const auto root_of = [&](std::string_view name) {
      const auto found = root.find(name);
      return found == root.end() ? name : found->second;
    };
    std::unordered_map<std::string_view, size_t> last_use;
    std::deque<std::string> captured;  // names that maps hold views of
    for (size_t i = 0; i < graph.nodes.size(); ++i) {
      const ir::Node& node = graph.nodes[i];
      if (is_view(node.op_type) && !node.inputs.empty() && node.outputs.size() == 1) {
        root[node.outputs[0]] = root_of(node.inputs[0]);
      }
      for (const std::string& name : node.inputs) last_use[root_of(name)] = i;
      ir::for_each_subgraph(node, [&](const ir::Graph& inner, const ir::Attribute&, int) {
        for (std::string& name : infer::captured_names(inner))
          last_use[root_of(captured.emplace_back(std::move(name)))] = i;
      });
    }
    for (const auto& output : graph.outputs) last_use[root_of(output.name)] = graph.nodes.size();

    std::vector<std::vector<std::string_view>> ends(graph.nodes.size() + 1);
    double alive = 0, most = 0;
    const auto begin = [&](std::string_view name) {
      if (name.empty() || root_of(name) != name || weights_.contains(std::string(name))) return;
      alive += bytes(scope.find(name));
      const auto use = last_use.find(name);
      if (use != last_use.end()) ends[use->second].push_back(name);
    };
    for (const auto& input : graph.inputs) begin(input.name);
    most = alive;
    for (size_t i = 0; i < graph.nodes.size(); ++i) {
      for (const std::string& name : graph.nodes[i].outputs) begin(name);
      most = std::max(most, alive);
      for (const std::string_view name : ends[i]) alive -= bytes(scope.find(name));
    }
    return most;
  }

  const DimSizes& given_;
  const std::unordered_set<std::string>& weights_;
  ir::SymbolTable symbols_;
  infer::InferenceContext findings_;
  std::unordered_set<std::string> declared_;
  std::unordered_set<int> used_;
  std::vector<int64_t> sizes_;               // of the symbols, by id
  std::deque<std::vector<int64_t>> shapes_;  // of the node at hand
  bool guessed_ = false;                     // a size without a bound went into the node's cost
  Cost cost_;
};

// Weights that lie in files of their own become inputs: their shapes are enough. Returns the names
// of all weights.
std::unordered_set<std::string> take_weights(ir::Graph& graph) {
  std::unordered_set<std::string> inputs, weights;
  for (const ir::ValueInfo& input : graph.inputs) inputs.insert(input.name);
  for (const ir::TensorProto& tensor : graph.initializers) {
    weights.insert(tensor.name);
    if (!tensor.is_external() || inputs.contains(tensor.name)) continue;
    ir::TypeProto type;
    type.kind = ir::TypeProto::Kind::tensor;
    type.elem_type = tensor.data_type;
    type.shape.emplace();
    for (const int64_t dim : tensor.dims) type.shape->dims.emplace_back().value = dim;
    graph.inputs.push_back({tensor.name, std::move(type), {}, {}, {}});
  }
  std::erase_if(graph.initializers,
                [](const ir::TensorProto& tensor) { return tensor.is_external(); });
  // Inputs with a default are taken to be left at it.
  std::unordered_set<std::string_view> defaults;
  for (const ir::TensorProto& tensor : graph.initializers) defaults.insert(tensor.name);
  std::erase_if(graph.inputs,
                [&](const ir::ValueInfo& input) { return defaults.contains(input.name); });
  return weights;
}

}  // namespace

Cost cost_of(const ir::Model& model, const DimSizes& sizes, const ops::CustomTable& custom) {
  ir::Model copy;
  copy.ir_version = model.ir_version;
  copy.opset_imports = model.opset_imports;
  copy.functions = model.functions;
  copy.graph = model.graph;
  ir::name_open_sizes(*copy.graph);
  const auto weights = take_weights(*copy.graph);
  return Counter(sizes, weights).count(lower::lower(copy, {.custom = &custom}));
}

}  // namespace sardonyx
