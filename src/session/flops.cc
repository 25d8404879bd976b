#include "session/flops.h"

#include <algorithm>
#include <cmath>
#include <optional>
#include <string_view>
#include <unordered_map>
#include <unordered_set>

#include "infer/infer.h"
#include "ir/walk.h"
#include "rewrite/lower.h"

namespace sardonyx {
namespace {

using infer::Known;

constexpr int max_depth = 64;

// Operators that move, choose or describe elements without arithmetic.
bool only_moves(std::string_view op) {
  static const std::unordered_set<std::string_view> names = {"Cast",
                                                             "CastLike",
                                                             "Compress",
                                                             "Concat",
                                                             "ConcatFromSequence",
                                                             "Constant",
                                                             "ConstantOfShape",
                                                             "DepthToSpace",
                                                             "Dropout",
                                                             "Expand",
                                                             "EyeLike",
                                                             "Flatten",
                                                             "Gather",
                                                             "GatherElements",
                                                             "GatherND",
                                                             "Identity",
                                                             "NonZero",
                                                             "OneHot",
                                                             "Optional",
                                                             "OptionalGetElement",
                                                             "OptionalHasElement",
                                                             "Pad",
                                                             "Range",
                                                             "Reshape",
                                                             "ReverseSequence",
                                                             "ScatterElements",
                                                             "ScatterND",
                                                             "SequenceAt",
                                                             "SequenceConstruct",
                                                             "SequenceEmpty",
                                                             "SequenceErase",
                                                             "SequenceInsert",
                                                             "SequenceLength",
                                                             "Shape",
                                                             "Size",
                                                             "Slice",
                                                             "SpaceToDepth",
                                                             "Split",
                                                             "SplitToSequence",
                                                             "Squeeze",
                                                             "StringConcat",
                                                             "StringNormalizer",
                                                             "StringSplit",
                                                             "TensorScatter",
                                                             "Tile",
                                                             "Transpose",
                                                             "Trilu",
                                                             "Unique",
                                                             "Unsqueeze",
                                                             "Where"};
  return names.contains(op);
}

// Operators whose output shares its input's memory.
bool is_view(std::string_view op) {
  return op == "Identity" || op == "Reshape" || op == "Squeeze" || op == "Unsqueeze" ||
         op == "Flatten";
}

bool counts_what_it_reads(std::string_view op) {
  return op.starts_with("Reduce") || op == "Softmax" || op == "LogSoftmax" || op == "ArgMax" ||
         op == "ArgMin" || op.starts_with("Global") || op == "TopK" || op == "CumSum";
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

  double value(const ir::Dim& dim) {
    if (const auto number = dim.value()) return static_cast<double>(*number);
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
    return static_cast<double>(dim.evaluate(sizes_).value_or(1));
  }

  // NaN where the shape is not known.
  double elements(const Known* known) {
    if (known == nullptr || !known->type.is_tensor() || !known->type.shape) return NAN;
    double product = 1;
    for (const ir::Dim& dim : *known->type.shape) product *= value(dim);
    return product;
  }
  double dimension(const Known* known, int axis) {
    if (known == nullptr || !known->type.shape) return NAN;
    const auto& shape = *known->type.shape;
    const auto at = axis < 0 ? axis + static_cast<int>(shape.size()) : axis;
    return at < 0 || at >= static_cast<int>(shape.size()) ? NAN
                                                          : value(shape[static_cast<size_t>(at)]);
  }
  // The product of the dimensions from `axis` on.
  double product_from(const Known* known, size_t axis) {
    if (known == nullptr || !known->type.shape) return NAN;
    double product = 1;
    for (size_t i = axis; i < known->type.shape->size(); ++i)
      product *= value((*known->type.shape)[i]);
    return product;
  }

  double graph_flops(const ir::Graph& graph, infer::Scope& scope, int depth) {
    for (const ir::ValueInfo& input : graph.inputs) {
      if (!input.type || !input.type->shape) continue;
      for (const ir::Dimension& dim : input.type->shape->dims) {
        if (dim.param) declared_.insert(*dim.param);
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
      if (depth >= max_depth) return;
      infer::Scope inside(&scope);
      const double flops = graph_flops(graph, inside, depth + 1);
      sum += flops;
      largest = std::max(largest, flops);
    });
    return node.op_type == "If" ? largest : sum;
  }

  // What is known of a node's inputs and outputs; null for absent ones.
  struct Operands {
    const ir::Node& node;
    const infer::Scope& scope;
    const Known* in(size_t i) const { return at(node.inputs, i); }
    const Known* out(size_t i) const { return at(node.outputs, i); }

   private:
    const Known* at(const std::vector<std::string>& names, size_t i) const {
      return i < names.size() && !names[i].empty() ? scope.find(names[i]) : nullptr;
    }
  };

  // NaN where it can't be told.
  double node_flops(const ir::Node& node, const infer::Scope& scope, int depth) {
    const std::string_view op = node.op_type;
    if (op == "If" || op == "Loop" || op == "Scan" || op == "SequenceMap") {
      return inner_flops(node, scope, depth);
    }
    if (only_moves(op)) return 0;
    const Operands x{node, scope};
    if (const auto flops = product_flops(op, x)) return *flops;
    if (op == "MaxPool" || op == "AveragePool" || op == "LpPool") {
      return elements(x.out(0)) * window(node);
    }
    if (op.ends_with("Normalization") || op == "LRN") return 5 * elements(x.out(0));
    if (counts_what_it_reads(op)) return elements(x.in(0));
    return element_flops(x);
  }

  // Of the operators that are sums of products; nullopt for others.
  std::optional<double> product_flops(std::string_view op, const Operands& x) {
    const double bias = x.in(2) != nullptr ? 1 : 0;
    if (op == "MatMul" || op == "MatMulInteger" || op == "QLinearMatMul") {
      return 2 * elements(x.out(0)) * dimension(x.in(0), -1);
    }
    if (op == "Gemm") {
      const ir::Attribute* transposed = x.node.find("transA");
      const bool turned = transposed != nullptr && transposed->i.value_or(0) != 0;
      return elements(x.out(0)) * (2 * dimension(x.in(0), turned ? 0 : 1) + bias);
    }
    if (op == "Conv") return elements(x.out(0)) * (2 * product_from(x.in(1), 1) + bias);
    if (op == "ConvInteger") return 2 * elements(x.out(0)) * product_from(x.in(1), 1);
    if (op == "QLinearConv") return 2 * elements(x.out(0)) * product_from(x.in(3), 1);
    if (op == "ConvTranspose") {
      return 2 * elements(x.in(0)) * product_from(x.in(1), 1) + bias * elements(x.out(0));
    }
    if (op == "LSTM" || op == "GRU" || op == "RNN") {
      // [steps, batch, input] times W and R, each [directions, gates, …]
      const double rows = elements(x.in(0)) / dimension(x.in(0), -1);
      return 2 * rows * (elements(x.in(1)) + elements(x.in(2)));
    }
    if (op == "Attention") return attention_flops(x.in(0), x.in(1), x.in(2), x.out(0));
    return std::nullopt;
  }

  // One for each floating-point element that is made.
  double element_flops(const Operands& x) {
    double sum = 0;
    bool known = false;
    for (size_t i = 0; i < x.node.outputs.size(); ++i) {
      const Known* made = x.out(i);
      if (made == nullptr || !made->type.is_tensor()) continue;
      known = true;
      if (is_floating(made->type.element)) sum += elements(made);
    }
    return known ? sum : NAN;
  }

  // Scores and weighted sum: for each query and key, the width of keys and of values.
  double attention_flops(const Known* query, const Known* key, const Known* value,
                         const Known* made) {
    if (query == nullptr || !query->type.shape) return NAN;
    const int length_axis = query->type.shape->size() == 4 ? 2 : 1;
    return 2 * dimension(key, length_axis) * elements(query) +
           2 * dimension(value, length_axis) * elements(made);
  }

  static double window(const ir::Node& node) {
    const ir::Attribute* kernel = node.find("kernel_shape");
    double product = 1;
    if (kernel != nullptr) {
      for (const int64_t size : kernel->ints) product *= static_cast<double>(size);
    }
    return product;
  }

  double bytes(const Known* known) {
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
    for (size_t i = 0; i < graph.nodes.size(); ++i) {
      const ir::Node& node = graph.nodes[i];
      if (is_view(node.op_type) && !node.inputs.empty() && node.outputs.size() == 1) {
        root[node.outputs[0]] = root_of(node.inputs[0]);
      }
      for (const std::string& name : node.inputs) last_use[root_of(name)] = i;
      ir::for_each_subgraph(node, [&](const ir::Graph& inner, const ir::Attribute&, int) {
        for (const std::string& name : infer::captured_names(inner)) last_use[root_of(name)] = i;
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
  infer::Findings findings_;
  std::unordered_set<std::string> declared_;
  std::unordered_set<int> used_;
  std::vector<int64_t> sizes_;  // of the symbols, by id
  bool guessed_ = false;        // a size without a bound went into the node's cost
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
  const auto weights = take_weights(*copy.graph);
  return Counter(sizes, weights).count(rewrite::lower(copy, {.custom = &custom}));
}

}  // namespace sardonyx
