// BatchNormalization and Dropout in their training form, and products of half precision, beside the
// main graph's own.
#include <algorithm>

#include "ir/tensor.h"
#include "ir/walk.h"
#include "ops/upgrade_context.h"
#include "train/draft.h"

namespace sardonyx::train {
namespace {

using Copies = std::map<std::string, std::string>;

bool is_standard(const ir::Node& node, std::string_view op) {
  return node.op_type == op && ir::canonical_domain(node.domain).empty();
}

bool normalizes_for_inference(const ir::Node& node) {
  const ir::Attribute* mode = node.find("training_mode");
  return is_standard(node, "BatchNormalization") && (mode == nullptr || mode->i.value_or(0) == 0);
}

// Whether the node normalises with statistics that training should gather. Where its scale and
// shift are frozen, so are they.
bool trains_statistics(const ir::Node& node, const ir::Graph& main,
                       const std::set<std::string>& trained, const TrainableOptions& options) {
  if (!normalizes_for_inference(node) || node.inputs.size() != 5) return false;
  if (!trained.contains(node.inputs[1]) && !trained.contains(node.inputs[2])) return false;
  const auto is_initializer = [&](const std::string& name) {
    return !fits_any(options.freeze, name) &&
           std::ranges::find(main.initializers, name, &ir::TensorProto::name) !=
               main.initializers.end();
  };
  return is_initializer(node.inputs[3]) && is_initializer(node.inputs[4]);
}

bool is_idle_dropout(const ir::Node& node) {
  return is_standard(node, "Dropout") && (node.inputs.size() < 3 || node.inputs[2].empty());
}

void replace(std::vector<std::string>& names, const Copies& copies) {
  for (std::string& name : names) {
    const auto copy = copies.find(name);
    if (copy != copies.end()) name = copy->second;
  }
}

// Products, whose operands may be of half precision.
bool is_product(const ir::Node& node) {
  return is_standard(node, "MatMul") || is_standard(node, "Gemm") || is_standard(node, "Conv") ||
         is_standard(node, "ConvTranspose");
}

}  // namespace

bool has_training_form(const ir::Node& node, const TrainableOptions& options) {
  return normalizes_for_inference(node) || is_idle_dropout(node) ||
         (options.precision != Precision::float32 && is_product(node));
}

namespace {

// Casts to half precision of what products read; one for each value.
class HalfOperands {
 public:
  HalfOperands(ir::Graph& to, NamePool& names, const TrainableOptions& options)
      : to_(to),
        names_(names),
        type_(options.precision == Precision::bfloat16  ? ElementType::bfloat16
              : options.precision == Precision::float16 ? ElementType::float16
                                                        : ElementType::undefined) {}

  bool wants(const ir::Node& node) const {
    return type_ != ElementType::undefined && is_product(node);
  }
  // The node on operands of half precision, and its output as float32 again.
  void add(ir::Node node) {
    for (std::string& input : node.inputs) {
      if (input.empty()) continue;
      std::string& half = made_[input];
      if (half.empty()) {
        half = names_.make(input + "_half");
        cast(input, half, type_);
      }
      input = half;
    }
    const std::string output = node.outputs[0];
    node.outputs[0] = names_.make(output + "_half");
    const std::string made = node.outputs[0];
    to_.nodes.push_back(std::move(node));
    cast(made, output, ElementType::float32);
  }

 private:
  void cast(const std::string& from, const std::string& to, ElementType type) {
    ir::Node& node = to_.nodes.emplace_back();
    node.op_type = "Cast";
    node.inputs = {from}, node.outputs = {to};
    node.attributes = {ops::int_attribute("to", static_cast<int64_t>(type))};
  }

  ir::Graph& to_;
  NamePool& names_;
  const ElementType type_;
  std::map<std::string, std::string> made_;
};

bool reads_copies(const ir::Node& node, const Copies& copies) {
  const auto is_copied = [&](const std::string& name) { return copies.contains(name); };
  bool reads = std::ranges::any_of(node.inputs, is_copied);
  ir::for_each_subgraph(node, [&](const ir::Graph& graph, const ir::Attribute&, int) {
    const auto look = [&](const ir::WalkPlace&, const ir::Node& inner, size_t) {
      reads = reads || std::ranges::any_of(inner.inputs, is_copied);
    };
    ir::walk(graph, {.enter = {}, .leave = {}, .node = look});
  });
  return reads;
}

// What subgraphs capture of the copies; no name inside them is one of the main graph's.
void replace_captured(ir::Node& node, const Copies& copies) {
  if (!ir::has_graphs(node)) return;
  const auto inside = [&](const std::shared_ptr<const ir::Graph>& graph) {
    auto changed = std::make_shared<ir::Graph>(*graph);
    ir::walk_mutable(*changed, [&](std::vector<ir::Node>& nodes) {
      for (ir::Node& inner : nodes) replace(inner.inputs, copies);
    });
    return changed;
  };
  for (ir::Attribute& attribute : node.attributes) {
    if (attribute.g) attribute.g = inside(attribute.g);
    for (auto& graph : attribute.graphs) graph = inside(graph);
  }
}

}  // namespace

std::map<std::string, std::string> add_training_form(const ir::Graph& main,
                                                     const std::string& scores, ir::Graph& to,
                                                     GraphBuilder& builder, NamePool& names,
                                                     const std::set<std::string>& trained,
                                                     const TrainableOptions& options,
                                                     std::vector<RunningStatistics>& statistics) {
  Copies copies;
  HalfOperands halves(to, names, options);
  std::string yes;
  for (const size_t index : nodes_behind(main, scores)) {
    const ir::Node& node = main.nodes[index];
    const bool normalizes = trains_statistics(node, main, trained, options);
    const bool drops = is_idle_dropout(node);
    const bool multiplies = halves.wants(node);
    if (!normalizes && !drops && !multiplies && !reads_copies(node, copies)) continue;
    ir::Node copy = node;
    if (!copy.name.empty()) copy.name += "_training";
    replace(copy.inputs, copies);
    replace_captured(copy, copies);
    for (std::string& output : copy.outputs) {
      if (output.empty()) continue;
      const std::string made = names.make(output + "_training");
      copies[output] = made;
      output = made;
    }
    if (normalizes) {
      std::erase_if(copy.attributes,
                    [](const ir::Attribute& one) { return one.name == "training_mode"; });
      copy.attributes.push_back(ops::int_attribute("training_mode", 1));
      copy.outputs.resize(1);
      for (const size_t input : {size_t{3}, size_t{4}}) {
        copy.outputs.push_back(names.make(node.inputs[input] + "_next"));
        statistics.push_back({node.inputs[input], copy.outputs.back()});
      }
    }
    if (drops) {
      if (yes.empty()) yes = builder.truth(true);
      copy.inputs.resize(3);
      copy.inputs[2] = yes;
      // The derivative needs to know what was kept.
      if (copy.outputs.size() < 2) copy.outputs.push_back(names.make(node.outputs[0] + "_kept"));
    }
    if (multiplies)
      halves.add(std::move(copy));
    else
      to.nodes.push_back(std::move(copy));
  }
  return copies;
}

}  // namespace sardonyx::train
