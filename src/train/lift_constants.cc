// Constants that are nodes, or belong to graphs within nodes, as initializers of the main graph.
#include <algorithm>
#include <map>
#include <utility>

#include "ir/tensor.h"
#include "ir/walk.h"
#include "train/draft.h"

namespace sardonyx::train {
namespace {

bool can_learn(const ir::TensorProto& tensor) {
  const ElementType type = tensor.element_type();
  return !tensor.dims.empty() && (type == ElementType::float32 || type == ElementType::float64 ||
                                  type == ElementType::float16 || type == ElementType::bfloat16);
}

// The tensor of a Constant that could learn; null: the node is none.
const ir::TensorProto* tensor_of(const ir::Node& node) {
  if (node.op_type != "Constant" || !ir::canonical_domain(node.domain).empty() ||
      node.outputs.size() != 1)
    return nullptr;
  const ir::Attribute* value = node.find("value");
  return value != nullptr && value->t && can_learn(*value->t) ? &*value->t : nullptr;
}

bool has(const std::vector<ir::ValueInfo>& values, const std::string& name) {
  return std::ranges::find(values, name, &ir::ValueInfo::name) != values.end();
}

class Lifting {
 public:
  Lifting(ir::Graph& main, NamePool& names) : main_(main), names_(names) {}

  void run() {
    const auto count = [&](const ir::WalkPlace& place) {
      for (const ir::TensorProto& one : place.graph->initializers) ++definitions_[one.name];
      for (const ir::ValueInfo& one : place.graph->inputs) ++definitions_[one.name];
      return true;
    };
    const auto count_outputs = [&](const ir::WalkPlace&, const ir::Node& node, size_t) {
      for (const std::string& output : node.outputs) ++definitions_[output];
    };
    ir::walk(main_, {.enter = count, .node = count_outputs});
    take_constants(main_, {}, true);
    std::ranges::move(lifted_, std::back_inserter(main_.initializers));
  }

 private:
  // Graphs beside each other may use a name for different values; in the main graph each has its
  // own: `renames` says which, of what the graphs around this one had.
  using Renames = std::map<std::string, std::string>;

  void take_constants(ir::Graph& graph, Renames renames, bool is_main) {
    std::vector<ir::TensorProto> own;
    std::erase_if(graph.initializers, [&](const ir::TensorProto& one) {
      const bool goes = !is_main && can_learn(one) && !has(graph.inputs, one.name) &&
                        !has(graph.outputs, one.name);
      if (goes) own.push_back(one);
      return goes;
    });
    std::erase_if(graph.nodes, [&](const ir::Node& node) {
      const ir::TensorProto* tensor = tensor_of(node);
      if (tensor == nullptr || (!is_main && has(graph.outputs, node.outputs[0]))) return false;
      own.push_back(*tensor);
      own.back().name = node.outputs[0];
      return true;
    });
    for (ir::TensorProto& tensor : own) {
      if (!is_main) {
        std::erase_if(graph.value_info,
                      [&](const ir::ValueInfo& info) { return info.name == tensor.name; });
        if (definitions_[tensor.name] > 1)
          tensor.name = renames[tensor.name] = names_.make(tensor.name);
      }
      lifted_.push_back(std::move(tensor));
    }
    for (ir::Node& node : graph.nodes) {
      for (std::string& input : node.inputs) {
        const auto renamed = renames.find(input);
        if (renamed != renames.end()) input = renamed->second;
      }
      const auto within = [&](std::shared_ptr<const ir::Graph>& inner) {
        if (!inner) return;
        auto made = std::make_shared<ir::Graph>(*inner);
        take_constants(*made, renames, false);
        inner = std::move(made);
      };
      for (ir::Attribute& attribute : node.attributes) {
        within(attribute.g);
        std::ranges::for_each(attribute.graphs, within);
      }
    }
  }

  ir::Graph& main_;
  NamePool& names_;
  std::map<std::string, int> definitions_;  // of each name, in all graphs
  std::vector<ir::TensorProto> lifted_;
};

}  // namespace

void lift_constants(ir::Graph& graph, NamePool& names) { Lifting(graph, names).run(); }

}  // namespace sardonyx::train
